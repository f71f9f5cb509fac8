#!/bin/bash
# Where a track begins and ends when it is played: to the frame, also when a BYE is lost; and silence that was never sent.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

# Opus of a length that is no whole number of packets: as many frames as were encoded.
length()
{
	capture -d 23456smp -c 2 -f s16 gen:sine:freq=440 | encode --frame 5ms >in.weir
	sends in rtp://127.0.0.1:5004 in.weir
	replay in --retime --latency 20ms
	eq "$(figures stats frames_out concealed_frames lost_frames)" "23456 0 0"
	is_whole
	contains report "23456 frames, 0 gaps"
	# Passed on into a file, too, the last packet is cut where the track ended.
	replay in --no-retime --latency 20ms
	is_whole
	contains report "23456 frames, 0 gaps"
	decode in.weir >in.dec
	decode out.weir >out.dec
	same_sound in.dec out.dec
}

# The same on the clock that there is, where BYE has its command.  Whoever is held up for longer than the packets wait conceals.
live()
{
	capture -d 23456smp -c 2 -f s16 gen:sine:freq=440 | encode --frame 5ms >in.weir
	hear --retime --latency 400ms --on-leave 'echo >left' rtp://127.0.0.1:5004
	netsend -q rtp://127.0.0.1:5004 in.weir
	wait_for 10 test -e left
	stop
	eq "$(figures stats received lost)" "$(weirfile list in.weir | grep -c '^DATA') 0"
	eq "$(($(figure stats frames_out) + $(figure stats dropped_frames)))" 23456
}

# BYE comes three times, and the last is as good as the first; what comes again opens no track.
byes()
{
	local lost
	capture -d 23456smp -c 2 -f s16 gen:sine:freq=440 | encode --frame 5ms >in.weir
	sends in rtp://127.0.0.1:5004 in.weir
	says in.sent "len(bye)" 3
	for lost in "bye < 0" "bye == 1" "0 < bye < 3" "bye == 3"; do
		less=$lost replay in --retime --latency 50ms # the last is said 40 ms after the first
		is_whole
		contains report "1 track"
		contains report "23456 frames, 0 gaps"
	done
	# Without any the end is not known: the last packet is played as it is.
	less=bye replay in --retime --latency 50ms
	is_whole
	! grep -q "23456 frames" report || fail "the length is known without a BYE"
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
	[ "$(weirfile list in.weir | grep -c '^GAP')" -gt 0 ] || fail "the encoder sent everything"
	sends in rtp://127.0.0.1:5004 in.weir
	replay in --retime --latency 30ms
	eq "$(figures stats lost_frames concealed_frames)" "0 0"
	between "$(figure stats unsent_frames)" 48000 96000
}

test_case "Opus that is played has its length to the frame" length
test_case "and where it is played as it comes" live
test_case "BYE is said three times: two may be lost" byes
test_case "what DTX did not send is not lost" pauses
done_testing
