#!/bin/bash
# 1, 16 and 64 senders at once: nothing is lost, the heap stands still on both sides, and what one sender costs does not grow with the others.
if [ -z "$WEIR_NETNS" ]; then
	unshare -rn true 2>/dev/null || { echo "1..0 # SKIP no network namespace can be made here"; exit 0; }
	WEIR_NETNS=1 exec unshare -rn bash "$0" "$@"
fi
. "$(dirname "$0")/../lib.sh"
ip link set lo up

hears()
{
	command grep -qi ":$(printf %04X "$1") " /proc/net/udp /proc/net/udp6
}

said()
{
	[ -s recv.json ] && [ "$(tail -n 1 recv.json | json - "int(d.get('$1', 0) >= $2)" 2>/dev/null)" = 1 ]
}

# senders N SECONDS: as many tracks of packets of 128 frames.  Where other programs have the processors for longer than the socket's buffer
# lasts, datagrams are lost: three tries.
senders()
{
	local try
	for try in 1 2 3; do
		once "$@" && return 0
	done
	fail "not everything arrived: $(tail -n 1 recv.json)"
}

once()
{
	local n=$1 seconds=$2 pid packets
	packets=$((n * seconds * 375))
	# shellcheck disable=SC2046
	capture -q --block 128 -c 1 -f s16 -d "${seconds}s" $(for ((i = 0; i < n; i++)); do echo "gen:count"; done) >in.weir
	netrecv -q --max-senders 64 --latency 100ms rtp://127.0.0.1:5004 --stats=0.1 --stats-file recv.json >/dev/null 2>err &
	pid=$!
	wait_for 5 hears 5004
	netsend -q rtp://127.0.0.1:5004 in.weir --stats=0.1 --stats-file send.json
	(wait_for 5 said received "$packets") || :
	kill -INT "$pid"
	wait "$pid"
	[ "$(json recv.json 'd["received"]')" = "$packets" ] || return 1
	[ -z "${SAN-}" ] || return 0
	"$PYTHON" - "$n" "$packets" <<'PY'
import json, statistics, sys
n, packets = int(sys.argv[1]), int(sys.argv[2])
figures = []
for name, key in (("send.json", "sent_datagrams"), ("recv.json", "received")):
    rows = [json.loads(l) for l in open(name)]
    # From about 50 packets of each sender on, until all have come.
    rows = [r for r in rows if r[key] >= n * 50 and r[key] < packets]
    assert len(rows) > 5, (name, len(rows))
    assert rows[0]["allocs"] == rows[-1]["allocs"], (name, rows[0]["allocs"], rows[-1]["allocs"])
    figures.append(statistics.median(r["cpu_pct"] for r in rows))
last = [json.loads(l) for l in open("recv.json")][-1]
assert last["received"] == packets and last["lost"] == 0, (last["received"], packets, last["lost"])
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
