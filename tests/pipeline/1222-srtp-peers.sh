#!/bin/bash
# srtp:// with GStreamer and ffmpeg, both ways, in both profiles where they have them: the same to the bit.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"
. "$TOP/tests/srtplib.sh"

gst_names()
{
	case $1 in
	aead) cipher=aes-128-gcm auth=null ;;
	sha1) cipher=aes-128-icm auth=hmac-sha1-80 ;;
	esac
}

from_gstreamer()
{
	local profile=$1 cipher auth key
	have gst-launch-1.0 && gst-inspect-1.0 srtpenc >/dev/null 2>&1 || skip "GStreamer's srtpenc is not installed"
	gst_names "$profile"
	key=$(sdes "$profile" gst.key | hex)
	listen gst.key --codec l16 -r 48k -c 2
	gst-launch-1.0 -q filesrc location="$TMPDIR/a.wav" ! wavparse ! audioconvert ! audio/x-raw,format=S16BE,rate=48000,channels=2 ! \
		rtpL16pay pt=96 mtu=1000 seqnum-offset=100 ! srtpenc key="$key" rtp-cipher=$cipher rtp-auth=$auth rtcp-cipher=$cipher rtcp-auth=$auth ! \
		udpsink host=127.0.0.1 port=5004 sync=true 2>gst.err || { cat gst.err; fail "gst-launch-1.0"; }
	got
	eq "$(figure stats auth_failed)" 0
}

to_gstreamer()
{
	local profile=$1 cipher auth key
	have gst-launch-1.0 && gst-inspect-1.0 srtpdec >/dev/null 2>&1 || skip "GStreamer's srtpdec is not installed"
	gst_names "$profile"
	key=$(sdes "$profile" gst.key | hex)
	gst-launch-1.0 -q udpsrc address=127.0.0.1 port=5004 num-buffers=100 caps="application/x-srtp,media=(string)audio,clock-rate=(int)48000,encoding-name=(string)L16,channels=(int)2,payload=(int)96,ssrc=(uint)4711,srtp-key=(buffer)$key,srtp-cipher=(string)$cipher,srtp-auth=(string)$auth,srtcp-cipher=(string)$cipher,srtcp-auth=(string)$auth" ! \
		srtpdec ! rtpL16depay ! audioconvert ! audio/x-raw,format=S16LE ! filesink location=got.raw 2>gst.err &
	local gst=$!
	wait_for 10 udp_bound 5004
	netsend -q --rtcp off --ssrc 4711 --key-file gst.key srtp://127.0.0.1:5004 "$TMPDIR/a.wav"
	wait $gst || { cat gst.err; fail "gst-launch-1.0"; }
	same "$TMPDIR/a.raw" got.raw
}

from_ffmpeg()
{
	local key
	have ffmpeg || skip "ffmpeg is not installed"
	key=$(sdes sha1 ff.key)
	listen ff.key --codec l16 -r 48k -c 2
	ffmpeg -v error -re -i "$TMPDIR/a.wav" -c:a pcm_s16be -f rtp -srtp_out_suite AES_CM_128_HMAC_SHA1_80 -srtp_out_params "$key" \
		srtp://127.0.0.1:5004 >/dev/null 2>ff.err || { cat ff.err; fail "ffmpeg"; }
	got
	eq "$(figure stats auth_failed)" 0
}

# ffmpeg takes the key from the session description, as SDES has it there.
to_ffmpeg()
{
	have ffmpeg || skip "ffmpeg is not installed"
	sdes sha1 ff.key >/dev/null
	netsend -q --fast --ssrc 5 --sdp a.sdp --sdp-key --key-file ff.key srtp://127.0.0.1:5004 "$TMPDIR/a.wav" 2>/dev/null || :
	contains a.sdp "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:$(cut -d : -f 2 ff.key)"
	eq "$(stat -c %a a.sdp)" 600 "mode of a description with a key in it"
	ffmpeg -v error -protocol_whitelist file,udp,rtp,srtp,crypto -i a.sdp -f s16le -y got.raw 2>ff.err &
	local ff=$!
	wait_for 10 udp_bound 5004
	netsend -q --ssrc 5 --key-file ff.key srtp://127.0.0.1:5004 "$TMPDIR/a.wav"
	wait_for 10 eval 'sleep 0.1; kill -INT '$ff' 2>/dev/null; ! kill -0 '$ff' 2>/dev/null'
	# ffmpeg begins where it has found out what comes, and may end a little early.
	"$PYTHON" - "$TMPDIR/a.raw" got.raw <<'PY'
import sys
want, got = (open(p, "rb").read() for p in sys.argv[1:])
assert len(got) > len(want) // 2, (len(got), len(want))
assert got in want
PY
}

for profile in aead sha1; do
	test_case "$profile: from GStreamer" from_gstreamer $profile
	test_case "$profile: to GStreamer" to_gstreamer $profile
done
test_case "from ffmpeg" from_ffmpeg
test_case "to ffmpeg" to_ffmpeg
done_testing
