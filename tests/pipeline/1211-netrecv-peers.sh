#!/bin/bash
# ffmpeg and GStreamer send, netrecv hears: every packet of Opus as it was made, every sample of L16 and L24; with a
# session description and without.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"
have ffmpeg || skip_all "ffmpeg is not installed"

# same_packets: each of sent.opus came as it is.
same_packets()
{
	demux sent.opus >sent.weir
	PYTHONPATH=$TOP/tests/pipeline "$PYTHON" -c '
import weirfile
want, got = ([p.payload for p in weirfile.read(f) if p.type == 3] for f in ("sent.weir", "out.weir"))
assert want and got == want, (len(got), len(want))'
}

# decoded_is_reference: what ffmpeg decodes of the file that was sent is what we decode of what came, from its first packet on.
decoded_is_reference()
{
	ffmpeg -v error -i sent.opus -c:a pcm_f32le -f f32le ref.raw
	decode out.weir | samples - >got.raw
	"$PYTHON" - <<'PY'
import numpy as np
ref, got = (np.fromfile(n, "<f4").reshape(-1, 2) for n in ("ref.raw", "got.raw"))
best = 1e9
for skip in range(0, 1300):            # the pre-skip that RTP does not tell, or a first packet that came short
    n = min(len(ref), len(got) - skip)
    if abs(got[skip + 9600] - ref[9600]).max() < 1e-3:
        best = min(best, abs(got[skip + 4800 : skip + n - 960] - ref[4800 : n - 960]).max())
print("largest difference", best)
assert best < 2e-4, best
PY
}

opus_file()
{
	capture -d 0.8s -c 2 -f s16 gen:sweep:from=100,to=4000,time=0.8s | encode --frame "$1" -b 96k | mux -o sent.opus 2>/dev/null
}

ffmpeg_opus()
{
	opus_file 20ms
	if [ "$1" = sdp ]; then
		ffmpeg -v error -i sent.opus -t 0.02 -c copy -f rtp -sdp_file x.sdp rtp://127.0.0.1:5004
		hear --no-retime x.sdp
	else
		hear --no-retime rtp://127.0.0.1:5004
	fi
	ffmpeg -v error -re -i sent.opus -c copy -f rtp rtp://127.0.0.1:5004 >ignored
	wait_for 10 heard received 41
	stop
	is_whole
	eq "$(figure stats lost)" 0
	same_packets
	decoded_is_reference
}

ffmpeg_pcm()
{
	capture -d 0.5s -c 2 -f "$1" gen:noise:white,seed=8 >in.weir
	mux -o in.wav in.weir 2>/dev/null
	hear --no-retime $3 rtp://127.0.0.1:5004
	ffmpeg -v error -re -i in.wav -c:a "$2" -f rtp rtp://127.0.0.1:5004 >ignored
	wait_for 10 heard frames_out 24000
	stop
	is_whole
	same_sound in.weir out.weir
}

gst()
{
	have gst-launch-1.0 || skip "gst-launch-1.0 is not installed"
	gst-launch-1.0 -q "$@" ! udpsink host=127.0.0.1 port=5004
}

gst_opus()
{
	gst-inspect-1.0 rtpopuspay >ignored 2>&1 || skip "GStreamer has no rtpopuspay"
	opus_file 10ms
	hear --no-retime $1 rtp://127.0.0.1:5004
	gst filesrc location=sent.opus ! oggdemux ! opusparse ! rtpopuspay
	wait_for 10 heard received 80
	stop
	is_whole
	eq "$(figure stats lost)" 0
	same_packets
	decoded_is_reference
}

gst_pcm()
{
	capture -d 0.5s -c 2 -f "$1" gen:noise:white,seed=9 >in.weir
	mux -o in.wav in.weir 2>/dev/null
	hear --no-retime rtp://127.0.0.1:5004
	gst filesrc location=in.wav ! wavparse ! audioconvert dithering=none ! "$2"
	wait_for 10 heard frames_out 24000
	stop
	is_whole
	same_sound in.weir out.weir
}

test_case "Opus of ffmpeg, without a description" ffmpeg_opus plain
test_case "Opus of ffmpeg, by its session description" ffmpeg_opus sdp
test_case "L16 of ffmpeg: what it is the packets prove" ffmpeg_pcm s16 pcm_s16be
test_case "L24 of ffmpeg, as an option says" ffmpeg_pcm s24 pcm_s24be "--codec l24 -r 48k -c 2 --pt 97"
test_case "Opus of GStreamer" gst_opus
test_case "L16 of GStreamer" gst_pcm s16 rtpL16pay
test_case "L24 of GStreamer" gst_pcm s24 rtpL24pay
done_testing
