#!/bin/bash
# A track of many channels goes as flows of eight and comes back as one, the same to the bit; what is missing is said.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

one_track()
{
	is_whole
	contains report "1 track"
	inspect out.weir >shown
	contains shown '"desk"'
	same_sound in.weir out.weir
	eq "$(figures stats lost concealed_frames)" "0 0"
}

desk() # CHANNELS FORMAT
{
	capture -d 0.3s -n desk -c "$1" -f "$2" gen:noise:white,seed=7 >in.weir
}

# One track, of the same name, the same samples.
passed()
{
	desk "$@"
	hear --no-retime rtp://127.0.0.1:5004
	netsend -q rtp://127.0.0.1:5004 in.weir
	wait_for 10 heard frames_out 14400
	stop
	one_track
}

played()
{
	desk "$@"
	sends in rtp://127.0.0.1:5004 in.weir
	replay in --retime --latency 50ms
	one_track
}

# damage EXPRESSION: 20 channels less the datagrams that it is true of.
damage()
{
	capture -d 0.5s -c 20 -f s16 gen:noise:white,seed=8 >in.weir
	sends in rtp://127.0.0.1:5004 in.weir
	less=$1 replay in --no-retime
	inspect --verify out.weir >report || eq $? 3
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
	eq "$(weirfile list out.weir 1 | awk '$1 == "DATA" && $4 ~ /[89a-f]$/' | wc -l)" 10
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
	sends in --rtcp off rtp://127.0.0.1:5004 in.weir
	replay in --no-retime --codec l16 -c 8
	inspect --verify out.weir >report || eq $? 3
	contains report "3 tracks"
}

test_case "20 channels passed on are one track, bit-identical" passed 20 s16
test_case "64 channels too" passed 64 s24
test_case "20 channels played on the local clock" played 20 s24
test_case "64 channels too" played 64 s16
test_case "what one flow loses is silence in its channels only" part_lost
test_case "what all lose is a hole" all_lost
test_case "without bindings they are tracks of their own" others
done_testing
