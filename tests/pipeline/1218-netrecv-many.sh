#!/bin/bash
# 1, 16 and 64 senders at once: nothing is lost, the heap stands still on both sides, and what one sender costs does not grow with the others.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

# senders N SECONDS: as many tracks of packets of 128 frames.  Each packet comes, or the kernel has counted that it had no room for it: which
# it has not when the receiver is let run.
senders()
{
	local n=$1 seconds=$2 packets dropped
	packets=$((n * seconds * 375))
	# shellcheck disable=SC2046
	capture -q --block 128 -c 1 -f s16 -d "${seconds}s" $(for ((i = 0; i < n; i++)); do echo "gen:count"; done) >in.weir
	hear --no-retime --max-senders 64 --latency 100ms rtp://127.0.0.1:5004
	netsend -q rtp://127.0.0.1:5004 in.weir --stats=0.05 --stats-file sent
	wait_for 20 all_left
	dropped=$(udp_dropped 5004)
	stop
	eq "$(figures sent packets_out send_errors)" "$packets 0"
	between $((packets - $(figure stats received))) 0 "$dropped" "packets that did not come, though the kernel had room"
	[ "$dropped" != 0 ] || is_whole
	[ -z "${SAN-}" ] || return 0
	"$PYTHON" - "$n" "$packets" <<'PY'
import json, statistics, sys
n, packets = int(sys.argv[1]), int(sys.argv[2])
figures = []
for name, key in (("sent", "packets_out"), ("stats", "received")):
    rows = [json.loads(l) for l in open(name)]
    # From about 50 packets of each sender on, until the first has ended.
    rows = [r for r in rows if n * 50 <= r[key] < packets * 0.95]
    assert len(rows) > 5 and rows[-1][key] > 4 * rows[0][key], (name, len(rows))
    assert rows[0]["allocs"] == rows[-1]["allocs"], (name, rows[0]["allocs"], rows[-1]["allocs"])
    figures.append(statistics.median(r["cpu_pct"] for r in rows))
last = [json.loads(l) for l in open("stats")][-1]
open("../cost", "a").write("%d %.3f %.3f %d\n" % (n, figures[0], figures[1], last["rss_kib"]))
PY
}

# What is needed once is in the figure of a single one; between 16 and 64 it must not show.
flat()
{
	[ -z "${SAN-}" ] || skip "what sanitizers cost is theirs"
	sed 's/^\([0-9]*\) \(.*\) \(.*\) \(.*\)/\1 senders: netsend \2 %, netrecv \3 % of a core, \4 KiB/' ../cost >>"$lib_scratch/summary"
	"$PYTHON" - <<'PY'
rows = {int(l.split()[0]): [float(x) for x in l.split()[1:]] for l in open("../cost")}
for i, tool in enumerate(("netsend", "netrecv")):
    few, many = rows[16][i] / 16, rows[64][i] / 64
    assert many <= 1.5 * few, (tool, few, many)
PY
}

test_case "one sender" senders 1 2
test_case "16 senders" senders 16 2
test_case "64 senders" senders 64 2
test_case "what a sender costs does not grow" flat
sed 's/^/# /' "$lib_scratch/summary" 2>/dev/null
done_testing
