#!/bin/bash
# Where a track begins and ends when it is played: to the frame, also when a BYE is lost; and silence that was never sent.
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

listen()
{
	netrecv --stats=0.05 --stats-file stats "$@" rtp://127.0.0.1:5004 >out.weir 2>err &
	pid=$!
	wait_for 5 hears 5004
}

said()
{
	[ -s stats ] && [ "$(tail -n 1 stats | json - "int(d.get('$1', 0) >= $2)" 2>/dev/null)" = 1 ]
}

stop()
{
	kill -INT "$pid"
	wait "$pid"
}

# Opus of a length that is no whole number of packets: as many frames as were encoded.
length()
{
	capture -d 23456smp -c 2 -f s16 gen:sine:freq=440 | encode --frame 5ms >in.weir
	listen --retime --latency 400ms --on-leave 'echo >left'
	netsend -q rtp://127.0.0.1:5004 in.weir
	wait_for 5 test -e left
	stop
	eq "$(json stats 'd["frames_out"]')" 23456
	eq "$(json stats 'd["concealed_frames"]')" 0
	inspect --verify out.weir >report || fail "$(cat report)"
}

# edit EXPRESSION: trace.weir without the RTCP datagrams with BYE whose number n the expression is true for.
without()
{
	"$PYTHON" - "$1" <<-'PY'
	import os, sys
	sys.path.insert(0, os.environ["TOP"] + "/tests/pipeline")
	import weirfile
	n = 0
	with open("less.weir", "wb") as out:
	    for p in weirfile.read("trace.weir"):
	        d, at, bye = p.payload[32:], 0, False
	        while p.type == 3 and len(d) > 1 and 192 <= d[1] <= 223 and at + 4 <= len(d):
	            bye = bye or d[at + 1] == 203
	            at += 4 + 4 * int.from_bytes(d[at + 2:at + 4], "big")
	        n += bye
	        if not (bye and eval(sys.argv[1], {"n": n})):
	            out.write(p.pack())
	print(n)
	PY
}

# BYE comes three times, and the last is as good as the first; what comes again opens no track.
byes()
{
	capture -d 23456smp -c 2 -f s16 gen:sine:freq=440 | encode --frame 5ms >in.weir
	listen --no-retime --record-trace trace.weir --on-leave 'echo >left'
	netsend -q rtp://127.0.0.1:5004 in.weir
	wait_for 5 test -e left
	stop
	for lost in "n < 1" "n < 2" "n < 3"; do
		eq "$(without "$lost")" 3
		netrecv --replay less.weir --retime --latency 400ms >out.weir 2>err || fail "$(cat err)"
		inspect --verify out.weir >report || fail "$(cat report)"
		contains report "1 track"
		contains report "23456 frames, 0 gaps"
	done
}

# Speech with pauses, for which nothing is sent: nothing was lost, and nothing concealed.
pauses()
{
	"$PYTHON" - <<-'PY'
	import numpy as np, wave
	t = np.arange(3 * 48000) / 48000
	talk = np.where((t < 0.5) | (t > 2.2), np.sin(2 * np.pi * 150 * t * (1 + 0.1 * np.sin(5 * t))) * 9000 + np.sin(2 * np.pi * 900 * t) * 3000, 0)
	w = wave.open("talk.wav", "wb")
	w.setparams((1, 2, 48000, 0, "NONE", ""))
	w.writeframes(talk.astype("<i2").tobytes())
	PY
	decode talk.wav | encode --application voip --frame 20ms -b 24k --dtx >in.weir
	[ "$("$PYTHON" "$TOP"/tests/pipeline/weirfile.py list in.weir | grep -c '^GAP')" -gt 0 ] || fail "the encoder sent everything"
	listen --record-trace trace.weir --no-retime --on-leave 'echo >left'
	netsend -q rtp://127.0.0.1:5004 in.weir
	wait_for 8 test -e left
	stop
	netrecv --replay trace.weir --retime --latency 400ms --stats --stats-file played >out.weir 2>err || fail "$(cat err)"
	eq "$(json played 'd["lost_frames"]')" 0
	eq "$(json played 'd["concealed_frames"]')" 0
	[ "$(json played 'd["unsent_frames"]')" -gt 48000 ] || fail "$(cat played)"
}

test_case "Opus that is played has its length to the frame" length
test_case "BYE is said three times: two may be lost" byes
test_case "what DTX did not send is not lost" pauses
done_testing
