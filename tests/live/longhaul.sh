#!/bin/bash
# Capture of 32 channels in blocks of 32 frames while all processors are kept busy by other work: what was late, lost or dropped is
# all in the statistics, and the heap stands still.  It runs alone.  20 s; by hand for longer: bash tests/live/longhaul.sh 600
seconds=20
case ${1-} in [0-9]*) seconds=$1 && shift ;; esac
. "$(dirname "$0")/live.sh"

jack_begin counter

# reader OUT: the stream on standard input, packet by packet.  Each frame is the server's frame counter; what the packet says of its
# place must agree with that, everywhere, or a sample was lost in silence.
cat >"$lib_scratch/reader.py" <<'PY'
import collections, json, struct, sys
import numpy as np
f = sys.stdin.buffer
offset, frames, gaps, wrong, at, dropped = None, 0, collections.Counter(), [], None, 0
first = True
while True:
    head = f.read(64)
    if len(head) < 64:
        break
    payload, extra = struct.unpack_from("<I", head, 8)[0], head[15] - 1
    if extra:
        f.read(64 * extra)
    body = f.read((payload + 63) // 64 * 64)[:payload]
    kind, (pos, dur) = head[5], struct.unpack_from("<qI", head, 16)
    if kind not in (3, 4):
        continue
    if at is not None and pos != at:
        wrong.append(f"a packet stands at {pos} where {at} was to come")
    at = pos + dur
    if kind == 4:
        gaps[struct.unpack_from("<H", head, 6)[0]] += dur
        continue
    x = np.frombuffer(body, "<f4").reshape(-1, 32)
    numbers = np.round((x.astype(np.float64) + 1) * 2**23).astype(np.int64)
    if first and not x.any():
        continue
    first = False
    d = (numbers - (pos + np.arange(dur))[:, None]) % 2**24
    if offset is None:
        offset = d[0, 0]
    bad = np.nonzero((d != offset).any(axis=1))[0]
    if len(bad) and len(wrong) < 10:
        wrong.append(f"frame {pos + bad[0]}: the number is {numbers[bad[0]].tolist()[:3]}…, {d[bad[0]].tolist()[:3]} off and not {offset}")
    frames += dur
json.dump({"frames": frames, "gap_frames": sum(gaps.values()), "end": at, "wrong": wrong}, open(sys.argv[1], "w"))
PY

busy()
{
	local i
	for ((i = 0; i < $(nproc); i++)); do
		nice -n 19 "$PYTHON" -c 'while True: pass' &
		busy_pids+=($!)
	done
}

haul()
{
	[ -z "${SAN-}" ] || skip "with sanitizers the heap is theirs, and everything is late"
	start_jack 32 32
	"$lib_scratch/counter" 32 &
	local counter=$! capture reader
	wait_for 20 jack_lists counter:out_32
	mkfifo stream
	"$PYTHON" "$lib_scratch/reader.py" read.json <stream &
	reader=$!
	busy_pids=()
	busy
	capture --ring 2s --stats=1 --stats-file s.json jack:counter >stream 2>capture.err &
	capture=$!
	enough()
	{
		[ "$(wc -l <s.json 2>/dev/null || echo 0)" -ge $((seconds * 3 / 4)) ]
	}
	wait_for $((seconds * 4 + 20)) enough
	# A tick that is known to be late: the whole process stands still for so long.
	local before=${EPOCHREALTIME/./}
	kill -STOP "$capture"
	still_for()
	{
		[ $((${EPOCHREALTIME/./} - before)) -ge 300000 ]
	}
	wait_for 10 still_for
	kill -CONT "$capture"
	seconds_are_over()
	{
		[ "$(wc -l <s.json)" -ge "$seconds" ]
	}
	wait_for $((seconds * 4 + 20)) seconds_are_over
	kill -INT "$capture"
	ends "$capture" 60
	ends "$reader" 120
	kill "${busy_pids[@]}"
	cat capture.err
	"$PYTHON" - "$lib_scratch/summary" <<'PY'
import json, sys
lines = [json.loads(l) for l in open("s.json")]
last, read = lines[-1], json.load(open("read.json"))
print(json.dumps({k: last[k] for k in ("t_s", "ticks", "late", "max_late_us", "tick_max_us", "tick_p999_us", "xruns", "lost_frames", "dropped_frames",
    "ring_high_pct", "cpu_pct", "rss_kib", "allocs", "voluntary_switches", "involuntary_switches")}), json.dumps(read), file=open(sys.argv[1], "w"), sep="\n")
assert not read["wrong"], read["wrong"]
# All that is missing has been said, and stands as gaps in the stream.
assert read["gap_frames"] == last["lost_frames"], (read, last["lost_frames"])
assert last["lost_frames"] >= last["dropped_frames"]
assert read["end"] == last["frames_out"] + last["lost_frames"] or read["end"] == last["frames_out"], (read, last["frames_out"])
# A tick for each block: none was not measured.
blocks = (read["end"] - last["lost_frames"] + last["dropped_frames"]) // 32
assert blocks <= last["ticks"] <= blocks + 2000, (blocks, last["ticks"])
# The tick that was late on purpose is among the late ones.
assert last["late"] >= 1 and last["max_late_us"] >= 200000, (last["late"], last["max_late_us"])
assert last["tick_max_us"] >= last["max_late_us"]
# The heap: from second 5 to the end.
allocs = [l["allocs"] for l in lines if l["t_s"] >= 5]
assert len(allocs) >= 5 and len(set(allocs)) == 1, allocs
rss = [l["rss_kib"] for l in lines if l["t_s"] >= 5]
# The last line stands behind the end, whose code was not in memory before.
assert rss[-2] - rss[0] <= 256, (rss[0], rss[-2])
# Neither does anything of it go back.
for key in ("ticks", "late", "dropped_frames", "lost_frames", "max_late_us", "tick_max_us"):
    values = [l[key] for l in lines]
    assert values == sorted(values), (key, values)
PY
	kill "$counter"
	ends "$counter" 10 || :
	stop_jack
}

test_case "$seconds s of 32 channels at 32 frames beside busy processors: nothing in silence" haul
sed 's/^/# /' "$lib_scratch/summary" 2>/dev/null
done_testing
