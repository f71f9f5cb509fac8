#!/bin/bash
# netsend is understood: ffmpeg and GStreamer receive what it sends, by its session description and without; what they hear is
# the reference to the bit.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

# describe INPUT SDP URL [OPTION…]: the description alone, before anybody sends.
describe()
{
	netsend -q -y --fast "${@:4}" "$3" "$1" --sdp "$2" 2>/dev/null
}

# with_ffmpeg SDP OUT [OPTION…]: receives in the background until BYE.
with_ffmpeg()
{
	timeout 30 ffmpeg -nostdin -v error -protocol_whitelist file,udp,rtp,srtp -i "$1" "${@:3}" -y "$2" &
	wait_for 10 udp_bound 5004
}

# with_gst PIPELINE…: runs in the background until SIGINT.
with_gst()
{
	GST_DEBUG=0 timeout -s INT 30 gst-launch-1.0 -q -e "$@" >gst.out 2>&1 &
	gst=$!
	wait_for 20 udp_bound 5004
}

# The samples so far: until they stand still at a size of at least $2, then end it.
end_gst()
{
	local was=-1
	grown() { local n; n=$(stat -c %s "$1" 2>/dev/null) && [ "$n" -ge "$2" ]; }
	wait_for 10 grown "$1" "$2"
	kill -INT $gst 2>/dev/null || : # it may have ended by BYE
	wait $gst || :
}

# same_pcm RAW WAV BYTES: RAW is the WAV's data, or its end: what came before a receiver was ready is not there.
pcm_is()
{
	"$PYTHON" - "$@" <<'PY'
import sys
got = open(sys.argv[1], "rb").read()
want = open(sys.argv[2], "rb").read()[44:]
assert got == want, (len(got), len(want), want.find(got[:1000]))
PY
}

# ---- PCM ----

ffmpeg_pcm()
{
	local fmt=$1 raw=$2 url=$3
	make_wav a.wav 48000 2 $fmt 48000
	describe a.wav a.sdp "$url"
	with_ffmpeg a.sdp out.raw -f $raw
	netsend --seq 65500 --timestamp 4294960000 "$url" a.wav
	wait
	pcm_is out.raw a.wav
}

gst_pcm()
{
	local fmt=$1 codec=$2 pt=$3 format=$4
	make_wav a.wav 44100 1 $fmt 44100
	with_gst udpsrc port=5004 buffer-size=2000000 caps="application/x-rtp,media=audio,clock-rate=44100,encoding-name=$codec,channels=1,payload=$pt" ! \
		rtp${codec}depay ! audioconvert dithering=none ! audio/x-raw,format=$format ! filesink location=out.raw buffer-mode=unbuffered
	netsend rtp://127.0.0.1:5004 a.wav
	end_gst out.raw $(($(bytes_of a.wav) - 44))
	pcm_is out.raw a.wav
}

# ---- Opus ----

# What ffmpeg got, as packets: the same, and so the same sound.
ffmpeg_opus()
{
	capture -f s16 gen:sweep -c 2 -r 48000 -d 1 | encode --frame $1 >a.weir
	describe a.weir a.sdp rtp://127.0.0.1:5004
	with_ffmpeg a.sdp out.ogg -c copy
	netsend rtp://127.0.0.1:5004 a.weir
	wait
	"$PYTHON" - a.weir out.ogg <<'PY'
import struct, sys
data = open(sys.argv[1], "rb").read()
want, at = [], 0
while at < len(data):
    n, h = struct.unpack_from("<I", data, at + 8)[0], data[at + 15] * 64
    if data[at + 5] == 3:
        want.append(data[at + h : at + h + n])
    at += h + (n + 63) // 64 * 64
data, at, got, part = open(sys.argv[2], "rb").read(), 0, [], b""
while at < len(data):
    n_segments = data[at + 26]
    lacing = data[at + 27 : at + 27 + n_segments]
    at += 27 + n_segments
    for n in lacing:
        part += data[at : at + n]
        at += n
        if n < 255:
            got.append(part)
            part = b""
assert got[2:] == want, (len(got), len(want))
PY
}

# Decoded by libopus there and here.
gst_opus()
{
	capture -f s16 gen:sweep:level=-6dB -c 2 -r 48000 -d 1 | encode -b 96k >a.weir
	decode -f s16 a.weir >ref.weir
	weirfile pcm ref.weir 1 ref.raw >/dev/null
	describe a.weir a.sdp rtp://127.0.0.1:5004
	with_gst udpsrc port=5004 caps="application/x-rtp,media=audio,clock-rate=48000,encoding-name=OPUS,encoding-params=(string)2,payload=111" ! \
		rtpopusdepay ! opusdec plc=false ! audio/x-raw,format=S16LE,channels=2 ! filesink location=out.raw buffer-mode=unbuffered
	netsend rtp://127.0.0.1:5004 a.weir
	end_gst out.raw 192000
	"$PYTHON" - <<'PY'
import numpy as np
ref = np.fromfile("ref.raw", "<i2").reshape(-1, 2).astype(int)
got = np.fromfile("out.raw", "<i2").reshape(-1, 2).astype(int)
# There the look-ahead of 312 is still in front, and the last packet is whole.
n = min(len(ref), len(got) - 312)
assert n >= 48000 - 960, (len(ref), len(got))
worst = abs(ref[:n] - got[312:312 + n]).max()
assert worst <= 1, worst
print("worst difference", worst)
PY
}

# By the description alone, through GStreamer's own session (jitter buffer, RTCP): it answers with reports.
gst_by_sdp()
{
	gst-inspect-1.0 sdpdemux >/dev/null 2>&1 || skip "GStreamer has no sdpdemux"
	make_wav a.wav 48000 2 s16 120000
	describe a.wav a.sdp rtp://127.0.0.1:5004
	with_gst filesrc location=a.sdp ! sdpdemux latency=50 ! rtpL16depay ! audioconvert dithering=none ! audio/x-raw,format=S16LE ! filesink location=out.raw buffer-mode=unbuffered
	netsend --stats=1 rtp://127.0.0.1:5004 a.wav 2>s
	end_gst out.raw 390000
	"$PYTHON" - <<'PY'
want, got = open("a.wav", "rb").read()[44:], open("out.raw", "rb").read()
at = want.find(got[:4000])
assert at >= 0 and want[at:at + len(got)] == got[:len(want) - at], (at, len(got))
assert len(got) >= 0.8 * len(want), len(got)
PY
}

# ---- IPv6, multicast ----

gst_multicast()
{
	make_wav a.wav 48000 1 s24 24000
	with_gst udpsrc address=239.1.2.3 port=5004 multicast-iface=lo caps="application/x-rtp,media=audio,clock-rate=48000,encoding-name=L24,channels=1,payload=98" ! \
		rtpL24depay ! audioconvert dithering=none ! audio/x-raw,format=S24LE ! filesink location=out.raw buffer-mode=unbuffered
	netsend --iface lo --ttl 4 rtp://239.1.2.3:5004 a.wav
	end_gst out.raw 72000
	pcm_is out.raw a.wav
}

# ---- SRTP ----

ffmpeg_srtp()
{
	make_wav a.wav 48000 2 s16 48000
	printf 'AES_CM_128_HMAC_SHA1_80 inline:%s\n' "$(head -c 30 /dev/urandom | base64)" >key
	chmod 600 key
	netsend -q -y --fast --key-file key --sdp-key srtp://127.0.0.1:5004 a.wav --sdp a.sdp 2>/dev/null
	eq "$(stat -c %a a.sdp)" 600 "the description holds the key"
	contains a.sdp "m=audio 5004 RTP/SAVP 96"
	contains a.sdp "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:"
	netsend -q --fast --key-file key srtp://127.0.0.1:5004 a.wav --sdp b.sdp 2>/dev/null
	! grep -q crypto b.sdp || fail "the key is in a description that was not to have it"
	with_ffmpeg a.sdp out.raw -f s16le
	netsend --seq 65500 --key-file key srtp://127.0.0.1:5004 a.wav
	wait
	pcm_is out.raw a.wav
}

gst_srtp()
{
	gst-inspect-1.0 srtpdec >/dev/null 2>&1 || skip "GStreamer has no srtpdec"
	local hex
	make_wav a.wav 48000 1 s16 48000
	head -c 28 /dev/urandom >secret
	printf 'AEAD_AES_128_GCM inline:%s\n' "$(base64 <secret)" >key
	chmod 600 key
	hex=$(od -An -tx1 <secret | tr -d ' \n')
	with_gst udpsrc port=5004 caps="application/x-srtp,media=audio,clock-rate=48000,encoding-name=L16,channels=1,payload=96,ssrc=(uint)77,srtp-key=(buffer)$hex,srtp-cipher=(string)aes-128-gcm,srtp-auth=(string)null,srtcp-cipher=(string)aes-128-gcm,srtcp-auth=(string)null,roc=(uint)0" ! \
		srtpdec name=d d.rtp_src ! rtpL16depay ! audioconvert dithering=none ! audio/x-raw,format=S16LE ! \
		filesink location=out.raw buffer-mode=unbuffered d.rtcp_src ! fakesink async=false
	netsend --ssrc 77 --key-file key srtp://127.0.0.1:5004 a.wav
	end_gst out.raw 96000
	pcm_is out.raw a.wav
}

# One sender, plain to one and encrypted to another: nothing leaks from the one to the other.
both_at_once()
{
	make_wav a.wav 48000 1 s16 9600
	printf 'AES_CM_128_HMAC_SHA1_80 inline:%s\n' "$(head -c 30 /dev/urandom | base64)" >key
	chmod 600 key
	record a 127.0.0.1 5004
	record b 127.0.0.1 5006 --idle 1 --encrypted 1
	WEIR_KEY=$(cat key) netsend rtp://127.0.0.1:5004 srtp://127.0.0.1:5006 a.wav
	wait
	says a.rec "(l16(p, 1) == wav('a.wav')).all(), len(p)" "(True, 40)"
	"$PYTHON" - <<'PY'
import pickle
a, b = ([x for _, _, x in pickle.load(open(f, "rb")) if not 192 <= x[1] <= 223] for f in ("a.rec", "b.rec"))
assert len(a) == len(b)
for x, y in zip(a, b):
    assert x[:12] == y[:12] and len(y) == len(x) + 10
    assert x[12:] != y[12:-10] and x[12:28] not in y
PY
}

if have ffmpeg; then
	test_case "ffmpeg: L16, to the bit, across both wraps" ffmpeg_pcm s16 s16le rtp://127.0.0.1:5004
	test_case "ffmpeg: L24, to the bit" ffmpeg_pcm s24 s24le rtp://127.0.0.1:5004
	test_case "ffmpeg: L16 over IPv6" ffmpeg_pcm s16 s16le 'rtp://[::1]:5004'
	test_case "ffmpeg: L16 by multicast" ffmpeg_pcm s16 s16le rtp://239.1.2.3:5004
	test_case "ffmpeg: Opus, the same packets, 20 ms" ffmpeg_opus 20ms
	test_case "ffmpeg: Opus, the same packets, 2.5 ms" ffmpeg_opus 2.5ms
	test_case "ffmpeg: SRTP with AES-CM and SHA-1" ffmpeg_srtp
else
	skip_case "ffmpeg receives" "ffmpeg is not installed"
fi
if have gst-launch-1.0; then
	test_case "GStreamer: L16, to the bit" gst_pcm s16 L16 11 S16LE
	test_case "GStreamer: L24, to the bit" gst_pcm s24 L24 98 S24LE
	test_case "GStreamer: Opus sounds as decode has it" gst_opus
	test_case "GStreamer: L16 by the session description" gst_by_sdp
	test_case "GStreamer: L24 by multicast" gst_multicast
	test_case "GStreamer: SRTP with AES-GCM" gst_srtp
else
	skip_case "GStreamer receives" "gst-launch-1.0 is not installed"
fi
test_case "plain and encrypted from one sender" both_at_once
done_testing
