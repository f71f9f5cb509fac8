#!/bin/bash
# A track of many channels goes as flows of eight and comes back as one, the same to the bit; what is missing is said.
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

samples()
{
	mux -o x.wav -y "$1" 2>/dev/null
	"$PYTHON" -c 'import sys; d = open("x.wav", "rb").read(); sys.stdout.buffer.write(d[d.index(b"data") + 8:])'
}

# wide CHANNELS FORMAT ARGS-OF-NETRECV…: one track, of the same name, the same samples.
wide()
{
	local channels=$1 format=$2
	shift 2
	capture -d 0.3s -n desk -c "$channels" -f "$format" gen:noise:white,seed=7 >in.weir
	listen "$@"
	netsend -q rtp://127.0.0.1:5004 in.weir
	wait_for 8 said frames_out 14400
	stop
	inspect --verify out.weir >report || fail "$(cat report)"
	contains report "1 track"
	inspect out.weir >shown
	contains shown '"desk"'
	samples in.weir >a
	samples out.weir >b
	same a b
	eq "$(json stats 'd["lost"]')" 0
	eq "$(json stats 'd["concealed_frames"]')" 0
}

# damage PROGRAM: a recording of 20 channels less the datagrams that the expression drops, heard again.
damage()
{
	capture -d 0.5s -c 20 -f s16 gen:noise:white,seed=8 >in.weir
	listen --no-retime --record-trace trace.weir
	netsend -q rtp://127.0.0.1:5004 in.weir
	wait_for 8 said frames_out 24000
	stop
	"$PYTHON" - "$1" <<-'PY'
	import os, struct, sys
	sys.path.insert(0, os.environ["TOP"] + "/tests/pipeline")
	import weirfile
	flows, counts = {}, {}
	with open("damaged.weir", "wb") as out:
	    for p in weirfile.read("trace.weir"):
	        d = p.payload[32:]
	        if p.type == 3 and 96 <= d[1] & 127 < 128 and d[0] >> 6 == 2:
	            ssrc = struct.unpack_from(">I", d, 8)[0]
	            flow = flows.setdefault(ssrc, len(flows))
	            n = counts[flow] = counts.get(flow, -1) + 1
	            if eval(sys.argv[1], {"flow": flow, "n": n}):
	                continue
	        out.write(p.pack())
	PY
	netrecv --replay damaged.weir --no-retime >out.weir 2>err || fail "$(cat err)"
	inspect --verify out.weir >report || :
	contains report "1 track"
}

# Ten packets of one flow are lost: silence in its four channels, every other sample as it was, and no hole.
part_lost()
{
	damage "flow == 2 and 100 <= n < 110"
	contains report "24000 frames, 0 gaps"
	samples in.weir >a
	samples out.weir >b
	"$PYTHON" - <<-'PY' >found
	import numpy as np
	a, b = (np.fromfile(f, "<i2").reshape(-1, 20) for f in "ab")
	wrong = np.nonzero((a != b).any(axis=1))[0]
	frames = wrong[-1] - wrong[0] + 1
	print(np.array_equal(a[:, :16], b[:, :16]), not b[wrong[0]:wrong[-1] + 1, 16:].any(), frames % 10, 400 <= frames <= 1200)
	PY
	eq "$(cat found)" "True True 0 True"
	eq "$("$PYTHON" "$TOP"/tests/pipeline/weirfile.py list out.weir 1 | awk '$1 == "DATA" && $4 ~ /[89a-f]$/' | wc -l)" 10
}

# Ten packets of every flow: a hole.
all_lost()
{
	damage "100 <= n < 110"
	contains report "1 gap"
}

# Without a binding nobody knows that they belong together.
others()
{
	capture -d 0.5s -c 20 -f s16 gen:noise:white,seed=9 >in.weir
	listen --no-retime --codec l16 -c 8
	netsend -q --rtcp off rtp://127.0.0.1:5004 in.weir
	wait_for 8 said senders 3
	stop
	inspect --verify out.weir >report || :
	contains report "3 tracks"
}

test_case "20 channels passed on are one track, bit-identical" wide 20 s16 --no-retime
test_case "64 channels too" wide 64 s24 --no-retime
test_case "20 channels played on the local clock" wide 20 s24 --retime --latency 250ms
test_case "64 channels too" wide 64 s16 --retime --latency 250ms
test_case "what one flow loses is silence in its channels only" part_lost
test_case "what all lose is a hole" all_lost
test_case "without bindings they are tracks of their own" others
done_testing
