#!/bin/bash
# ffmpeg and GStreamer send, netrecv hears: every packet of Opus as it was made, every sample of L16 and L24; with a
# session description and without.
if [ -z "$WEIR_NETNS" ]; then
	unshare -rn true 2>/dev/null || { echo "1..0 # SKIP no network namespace can be made here"; exit 0; }
	WEIR_NETNS=1 exec unshare -rn bash "$0" "$@"
fi
. "$(dirname "$0")/../lib.sh"
ip link set lo up
have ffmpeg || skip_all "ffmpeg is not installed"

hears()
{
	command grep -qi ":$(printf %04X "$1") " /proc/net/udp /proc/net/udp6
}

listen()
{
	netrecv --stats=0.05 --stats-file stats "$@" >out.weir 2>err &
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
	inspect --verify out.weir >report || fail "$(cat report)"
}

# pcm IN OUT: samples, without a header.
pcm()
{
	mux -o x.wav -y "$1" 2>/dev/null
	"$PYTHON" -c 'import sys; d = open("x.wav", "rb").read(); sys.stdout.buffer.write(d[d.index(b"data") + 8:])' >"$2"
}

# packets STREAM: its payloads, one a line.
packets()
{
	PYTHONPATH=$TOP/tests/pipeline "$PYTHON" -c '
import sys, weirfile
for p in weirfile.read(sys.argv[1]):
    if p.type == 3:
        print(p.payload.hex())' "$1"
}

# decoded_is_reference: what ffmpeg decodes of the file that was sent is what we decode of what came, from its first packet on.
decoded_is_reference()
{
	ffmpeg -v error -i sent.opus -c:a pcm_f32le -f f32le ref.raw
	decode out.weir | pcm - got.raw
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
		listen --no-retime x.sdp
	else
		listen --no-retime rtp://127.0.0.1:5004
	fi
	ffmpeg -v error -re -i sent.opus -c copy -f rtp rtp://127.0.0.1:5004 >ignored
	wait_for 5 said received 41
	stop
	eq "$(json stats 'd["lost"]')" 0
	demux sent.opus >sent.weir
	packets sent.weir >a
	packets out.weir >b
	same a b
	decoded_is_reference
}

ffmpeg_pcm()
{
	capture -d 0.5s -c 2 -f "$1" gen:noise:white,seed=8 >in.weir
	mux -o in.wav in.weir 2>/dev/null
	listen --no-retime $3 rtp://127.0.0.1:5004
	ffmpeg -v error -re -i in.wav -c:a "$2" -f rtp rtp://127.0.0.1:5004 >ignored
	wait_for 5 said frames_out 24000
	stop
	pcm in.weir a
	pcm out.weir b
	same a b
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
	listen --no-retime $1 rtp://127.0.0.1:5004
	gst filesrc location=sent.opus ! oggdemux ! opusparse ! rtpopuspay
	wait_for 5 said received 80
	stop
	eq "$(json stats 'd["lost"]')" 0
	demux sent.opus >sent.weir
	packets sent.weir >a
	packets out.weir >b
	same a b
	decoded_is_reference
}

gst_pcm()
{
	capture -d 0.5s -c 2 -f "$1" gen:noise:white,seed=9 >in.weir
	mux -o in.wav in.weir 2>/dev/null
	listen --no-retime rtp://127.0.0.1:5004
	gst filesrc location=in.wav ! wavparse ! audioconvert dithering=none ! "$2"
	wait_for 5 said frames_out 24000
	stop
	pcm in.weir a
	pcm out.weir b
	same a b
}

test_case "Opus of ffmpeg, without a description" ffmpeg_opus plain
test_case "Opus of ffmpeg, by its session description" ffmpeg_opus sdp
test_case "L16 of ffmpeg: what it is the packets prove" ffmpeg_pcm s16 pcm_s16be
test_case "L24 of ffmpeg, as an option says" ffmpeg_pcm s24 pcm_s24be "--codec l24 -r 48k -c 2 --pt 97"
test_case "Opus of GStreamer" gst_opus
test_case "L16 of GStreamer" gst_pcm s16 rtpL16pay
test_case "L24 of GStreamer" gst_pcm s24 rtpL24pay
done_testing
