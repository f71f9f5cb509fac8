#!/bin/bash
# netsend: what goes out on the wire, byte for byte; taken apart by a reader of its own (rtp.py).  Where it is about times, it runs on a
# clock that goes only while it waits (vclock.c), so that each is exact.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

# ---- PCM ----

# Across both wraps: every sample, every number.
pcm()
{
	local fmt=$1 codec=$2 pt=$3 step=$4
	make_wav a.wav 48000 2 $fmt 24000
	record a 127.0.0.1 5004
	netsend --seq 65500 --timestamp 4294960000 --ssrc 77 rtp://127.0.0.1:5004 a.wav
	wait
	says a.rec "len(p), set(steps([x.seq for x in p], 16)), p[0].seq, p[0].ts, {(x.pt, x.ssrc) for x in p}" \
		"(100, {1}, 65500, 4294960000, {($pt, 77)})"
	says a.rec "set(steps([x.ts for x in p], 32))" "{$step}"
	says a.rec "[i for i, x in enumerate(p) if x.marker]" "[0]"
	says a.rec "($codec(p, 2) == wav('a.wav')).all(), len($codec(p, 2))" "(True, 24000)"
}

f32_becomes_l24()
{
	capture -f f32 gen:sine:freq=997,level=-3dB -c 2 -d 0.2 >a.weir
	weirfile pcm a.weir 1 a.raw >/dev/null
	sends a rtp://127.0.0.1:5004 a.weir
	says a.sent "l24(p, 2).shape, abs(l24(p, 2) - __import__('numpy').fromfile('a.raw', '<f4').reshape(-1, 2).astype(float) * 8388608).max() <= 0.5" "((9600, 2), True)"
	sends a -f s16 rtp://127.0.0.1:5004 a.weir
	says a.sent "abs(l16(p, 2) - __import__('numpy').fromfile('a.raw', '<f4').reshape(-1, 2).astype(float) * 32768).max() <= 0.5" True
}

packet_times()
{
	local t want
	make_wav a.wav 48000 8 s24 4800
	for t in 1ms:48 60smp:60 0.125ms:6; do
		want=${t#*:}
			sends a --fast --packet-time ${t%:*} rtp://127.0.0.1:5004 a.wav
		says a.sent "set(len(x.payload) // 24 for x in p[:-1]), (l24(p, 8) == wav('a.wav')).all()" "({$want}, True)"
	done
	expect_status 2 netsend --packet-time 0 rtp://127.0.0.1:5004 a.wav 2>err
	one_line err "packet-time.*0"
	expect_status 2 netsend --packet-time 10ms rtp://127.0.0.1:5004 a.wav 2>err
	one_line err "packet-time: 480 frames of 24 bytes: a datagram holds 1 to 60, that is 1.25 ms"
}

wide_tracks_are_split()
{
	make_wav a.wav 48000 20 s16 4800
	sends a --ssrc 100 rtp://127.0.0.1:5004 a.wav --sdp a.sdp
	says a.sent "[(s, (l16([x for x in p if x.ssrc == s], n) == wav('a.wav')[:, f:f + n]).all()) for s, f, n in ((100, 0, 8), (101, 8, 8), (102, 16, 4))]" \
		"[(100, True), (101, True), (102, True)]"
	says a.sent "sorted({(x.flow, x.first, x.channels, x.all) for x in app})" "[(100, 0, 8, 20), (101, 8, 8, 20), (102, 16, 4, 20)]"
	# All of one moment leave together, in order.
	says a.sent "{tuple((x.ssrc, x.t - p[i].t) for x in p[i:i + 3]) for i in range(0, len(p), 3)}" "{((100, 0.0), (101, 0.0), (102, 0.0))}"
	contains a.sdp "a=group:BUNDLE 1 2 3"
	contains a.sdp "a=group:LS 1 2 3"
	contains a.sdp "channel-order=SMPTE2110.(U08)"
	sends b --ssrc 100 --port-step 2 rtp://127.0.0.1:5004 a.wav --sdp b.sdp
	says b.sent "sorted({(port, parse_rtp(0, x).ssrc) for _, port, x in d if not is_rtcp(x)})" "[(5004, 100), (5006, 101), (5008, 102)]"
	eq "$(command grep -o '^m=audio [0-9]*' b.sdp | tr '\n' ' ')" "m=audio 5004 m=audio 5006 m=audio 5008 "
}

# ---- Opus ----

opus()
{
	local frame=$1 step=$2
	capture gen:sweep -c 2 -r 48000 -d 0.5 | encode --frame $frame --application lowdelay >a.weir
	record a 127.0.0.1 5004
	netsend --timestamp 4294967000 rtp://127.0.0.1:5004 a.weir --sdp a.sdp
	wait
	"$PYTHON" - a.weir a.rec $step <<'PY'
import pickle, struct, sys
sys.path.insert(0, sys.argv[0])
data = open(sys.argv[1], "rb").read()
want, at = [], 0
while at < len(data):
    n, h = struct.unpack_from("<I", data, at + 8)[0], data[at + 15] * 64
    if data[at + 5] == 3:
        want.append((struct.unpack_from("<q", data, at + 16)[0], data[at + h : at + h + n]))
    at += h + (n + 63) // 64 * 64
got = [x for _, _, x in pickle.load(open(sys.argv[2], "rb")) if not 192 <= x[1] <= 223]
assert [x[12:] for x in got] == [w[1] for w in want], "payloads"
ts = [struct.unpack(">I", x[4:8])[0] for x in got]
assert ts == [(4294967000 + w[0] - want[0][0]) % 2**32 for w in want], "timestamps"
assert set(b - a for a, b in zip([w[0] for w in want], [w[0] for w in want][1:])) == {int(sys.argv[3])}
assert {x[1] & 127 for x in got} == {111}
PY
	contains a.sdp "a=rtpmap:111 opus/48000/2"
	contains a.sdp "a=fmtp:111 stereo=1;sprop-stereo=1"
	contains a.sdp "a=ptime:$((($step + 47) / 48))"
	says a.rec "app[0].pos0, app[0].ts0, app[0].first_pos, app[-1].end_pos, app[0].codec, app[0].rate" "(-120, 4294967000, 0, 24000, 1, 48000)"
}

# Nothing is sent in silence; the first packet after it has the marker and its own time.
dtx()
{
	"$PYTHON" - <<'PY'
import struct, numpy as np
x = np.random.default_rng(2).uniform(-0.3, 0.3, 96000)
x[24000:72000] = 0
raw = (x * 32767).astype("<i2").tobytes()
open("a.wav", "wb").write(b"RIFF" + struct.pack("<I", 36 + len(raw)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 48000, 96000, 2, 16) + b"data" + struct.pack("<I", len(raw)) + raw)
PY
	capture a.wav | encode --application voip --dtx -b 32k >a.weir
	sends a rtp://127.0.0.1:5004 a.weir
	says a.sent "min(len(x.payload) for x in p) > 2" True
	says a.sent "[b.marker == (d != 960) for b, d in zip(p[1:], steps([x.ts for x in p], 32))].count(False)" 0
	says a.sent "p[0].marker, sum(x.marker for x in p) >= 2, max(steps([x.ts for x in p], 32)) > 9600" "(1, True, True)"
	says a.sent "set(late_ns(p, 48000))" "{0}"
}

# ---- time ----

gaps_keep_the_timeline()
{
	capture --block 480 -f s16 gen:count -d 1 >whole.weir
	weirfile edit whole.weir a.weir gap:1:30-49:2 drop:1:70-79
	expect_status 3 sends a rtp://127.0.0.1:5004 a.weir 2>err
	says a.sent "sorted((x.ts - p[0].ts) % 2**32 // 480 for x in p if x.marker)" "[0, 50, 80]"
	says a.sent "set((x.ts - p[0].ts) % 2**32 for x in p) & set(range(30 * 480, 50 * 480)), set((x.ts - p[0].ts) % 2**32 for x in p) & set(range(70 * 480, 80 * 480))" "(set(), set())"
	says a.sent "set(steps([x.seq for x in p], 16))" "{1}"
	says a.sent "set(late_ns(p, 48000)), round(p[-1].t - p[0].t, 9)" "({0}, 0.995)"
}

# Sent when it is due, not when it is there: each at its time, to what a wake-up costs (20 µs), whatever the rate and the length.
pacing()
{
	local rate time
	for rate in 48000 44100 8000; do
		for time in 1ms 5ms 7smp; do
			make_wav a.wav $rate 2 s16 $rate
			sends a --packet-time $time rtp://127.0.0.1:5004 a.wav
			says a.sent "-20000 <= min(late_ns(p, $rate)), max(late_ns(p, $rate)) <= 1, sum(late_ns(p, $rate)) > -1000 * len(p), sum(len(x.payload) for x in p)" \
				"(True, True, True, $((4 * rate)))"
		done
	done
}

# Held up for 150 ms, what is late goes at once and the rest in its time; for 300 ms, the line moves instead of being caught up with.
held_up()
{
	make_wav a.wav 48000 2 s16 48000
	VCLOCK_STALL="400 150" sends a rtp://127.0.0.1:5004 a.wav
	says a.sent "late_ns(p, 48000)[79:112:4], sum(x > 0 for x in late_ns(p, 48000))" "([0, 135000000, 115000000, 95000000, 75000000, 55000000, 35000000, 15000000, 0], 30)"
	VCLOCK_STALL="400 300" sends a rtp://127.0.0.1:5004 a.wav
	says a.sent "[(x, late_ns(p, 48000).count(x)) for x in sorted(set(late_ns(p, 48000)))]" "[(0, 80), (300000000, 120)]"
}

# What is live goes as it comes, but no more than half a second before its time, by a line that moves earlier by a thousandth of the time.
# (What netrecv writes is live; all of it stands in the pipe before netsend begins.)
live()
{
	capture -f s16 -c 1 -r 8000 -d 1.2s gen:noise >a.weir
	sends a rtp://127.0.0.1:5004 a.weir
	replay a --no-retime
	[ "$(bytes_of out.weir)" -lt 65536 ] || fail "a pipe does not hold it"
	mkfifo pipe
	exec 7<>pipe
	cat out.weir >&7
	exec 8<pipe
	exec 7>&-
	sends b rtp://127.0.0.1:5004 <&8
	exec 8<&-
	says b.sent "len(p), sum(x.t == p[0].t for x in p), max(abs(n + 500e6 + (x.t - p[0].t) * 1e6) for x, n in list(zip(p, late_ns(p, 8000)))[101:]) < 50000" \
		"(240, 101, True)"
}

two_tracks_together()
{
	make_wav a.wav 48000 1 s16 24000 1
	make_wav b.wav 44100 2 s16 22050 2
	capture a.wav b.wav >a.weir
	sends a --ssrc 5 rtp://127.0.0.1:5004 a.weir
	says a.sent "sorted({(x.ssrc, x.pt) for x in p})" "[(5, 96), (6, 10)]"
	says a.sent "(l16([x for x in p if x.ssrc == 5], 1) == wav('a.wav')).all(), (l16([x for x in p if x.ssrc == 6], 2) == wav('b.wav')).all()" "(True, True)"
	# A packet of one track goes no later than its own time for the other's sake.
	says a.sent "[-20000 <= min(late_ns(q, r)) and max(late_ns(q, r)) <= 1 for s, r in ((5, 48000), (6, 44100)) for q in ([y for y in p if y.ssrc == s],)]" "[True, True]"
	says a.sent "p[0].t == p[1].t, {p[0].ssrc, p[1].ssrc}" "(True, {5, 6})"
	sends a -t b rtp://127.0.0.1:5004 a.weir
	says a.sent "{len(x.payload) % 4 for x in p}, len({x.ssrc for x in p})" "({0}, 1)"
}

# Longer than what may lie packed ahead, with copies: it does not wait for anything.
fast_is_fast()
{
	capture -d 20s gen:sine:freq=440 -c 2 | encode --complexity 0 >a.weir
	sends a --fast rtp://127.0.0.1:5004 a.weir
	says a.sent "len(p), len({x.t for x in p})" "(1001, 1)"
}

# One that is over and one that follows: no step backwards in anything.
restart()
{
	capture --block 480 -f s16 gen:count -d 0.2 >a.weir
	cat a.weir a.weir >b.weir
	sends a rtp://127.0.0.1:5004 b.weir
	says a.sent "set(steps([x.ts for x in p], 32)) <= {240, 480}, set(steps([x.seq for x in p], 16)), sum(len(x.payload) for x in p), len({x.ssrc for x in p})" "(True, {1}, 76800, 1)"
}

# ---- RTCP ----

reports()
{
	make_wav a.wav 48000 1 s16 120000
	sends a --ssrc 9 rtp://127.0.0.1:5004 a.wav
	says a.sent "{x.ssrc for x in sr}, {x.ssrc for x in rtcp}" "({9}, {9})"
	says a.sent "is_rtcp(d[0][2]), [x.type for x in parse_rtcp(0, d[0][2])]" "(True, [200, 202, 204])"
	says a.sent "len({x.cname for x in rtcp if x.type == 202})" 1
	says a.sent "[(x.ssrc, round(x.t - bye[0].t, 6)) for x in bye], [x.type for x in parse_rtcp(0, d[-1][2])]" "([(9, 0.0), (9, 0.02), (9, 0.04)], [200, 202, 204, 203])"
	# Once a second, and the counts are those of what was sent.
	says a.sent "3 <= len(sr) <= 6, sr[-1].packets == len(p), sr[-1].bytes == sum(len(x.payload) for x in p)" "(True, True, True)"
	# The clock and the timestamps of reports go together, and with those of the sound, to less than a frame; the clock is the wall's.
	says a.sent "max(abs((x.t - p[0].t) * 48000 - (x.ts - p[0].ts) % 2**32) for x in sr) <= 1" True
	says a.sent "max(abs(x.ntp / 2**32 - 2208988800 - 1700000000 - x.t) for x in sr) < 1e-6" True
	says a.sent "{(x.track, x.label, x.pos0, x.rate, x.ts0 == p[0].ts, x.gen) for x in app}" "{(1, 'a', 0, 48000, True, 0)}"
	says a.sent "all((x.seq - x.roc * 0 - p[0].seq) % 2**16 <= len(p) for x in app), app[0].seq == p[0].seq" "(True, True)"
}

rtcp_elsewhere()
{
	make_wav a.wav 48000 1 s16 4800
	sends a --rtcp next-port rtp://127.0.0.1:5004 a.wav --sdp a.sdp
	says a.sent "sorted({(port, is_rtcp(x)) for _, port, x in d}), len(p), len(bye)" "([(5004, False), (5005, True)], 20, 3)"
	! grep -q rtcp-mux a.sdp || fail "the description promises rtcp-mux"
	sends a --rtcp off rtp://127.0.0.1:5004 a.wav
	says a.sent "len(rtcp), len(p)" "(0, 20)"
}

# A report comes back: its loss and the round trip are in the statistics.
reports_are_heard()
{
	make_wav a.wav 48000 1 s16 72000
	"$PYTHON" - <<'PY' &
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 5004))
open("ready", "w").close()
while True:
    d, a = s.recvfrom(2000)
    if d[1] == 200:
        ntp = struct.unpack(">Q", d[8:16])[0]
        rr = struct.pack(">BBHI", 0x81, 201, 7, 4711) + struct.pack(">IIIIII", 9, 0x20000007, 65600, 480, ntp >> 16 & 0xffffffff, 0)
        s.sendto(rr, a)
        s.sendto(b"\x81\xc9\x00\x40garbage", a)
PY
	wait_for 10 test -e ready
	netsend --ssrc 9 --stats=0.2 rtp://127.0.0.1:5004 a.wav 2>s
	eq "$(json s 'd["peer_lost"]')" 7
	eq "$(json s 'd["peer_jitter_us"]')" 10000
	eq "$(json s 'd["receivers"]')" 1
	between "$(json s 'd["round_trip_us"]')" 1 50000
}

# ---- several destinations ----

fan_out()
{
	make_wav a.wav 48000 2 s16 9600
	record a 127.0.0.1 5004
	record b ::1 5004
	record c 239.1.2.3 5006
	record e ff15::7 5008 --iface mc0
	netsend rtp://127.0.0.1:5004 'rtp://[::1]:5004' rtp://239.1.2.3:5006?ttl=3 'rtp://[ff15::7]:5008?iface=mc0' a.wav --sdp a.sdp --sdp b.sdp --sdp c.sdp
	wait
	for x in b c e; do
		"$PYTHON" -c '
import pickle, sys
a, b = ([x for _, _, x in pickle.load(open(f, "rb")) if not 192 <= x[1] <= 223] for f in sys.argv[1:])
assert len(a) == 40 and a == b' a.rec $x.rec
	done
	contains a.sdp "c=IN IP4 127.0.0.1"
	contains b.sdp "c=IN IP6 ::1"
	contains c.sdp "c=IN IP4 239.1.2.3/3"
}

# ---- the end, and what goes wrong ----

interrupted()
{
	mkfifo in
	record a 127.0.0.1 5004
	capture --realtime gen:sine -r 48000 -c 1 -f s16 >in 2>/dev/null &
	env --default-signal=INT netsend --stats=0.05 rtp://127.0.0.1:5004 in 2>s &
	local pid=$!
	sent() { [ "$(json s 'd["sent_datagrams"]' 2>/dev/null || echo 0)" -ge 5 ]; }
	wait_for 10 test -s s
	wait_for 10 sent
	kill -INT $pid
	wait $pid
	wait_for 10 test -e a.rec
	says a.rec "len(bye), len(p) >= 3" "(1, True)"
}

cut_input()
{
	make_wav a.wav 48000 1 s16 4800
	capture a.wav >a.weir
	head -c -128 a.weir >b.weir
	record a 127.0.0.1 5004
	expect_status 3 netsend rtp://127.0.0.1:5004 b.weir 2>err
	one_line err '^netsend: b\.weir: .*end'
	wait
	says a.rec "len(l16(p, 1)), len(bye)" "(4800, 1)"
}

plain_words()
{
	make_wav a.wav 48000 1 s16 2400
	netsend rtp://127.0.0.1:5999 a.wav 2>err
	one_line err '^netsend: 127\.0\.0\.1:5999: nobody listens there$'
	expect_status 1 netsend rtp://192.0.2.1:5004 a.wav 2>err
	one_line err '^netsend: 192\.0\.2\.1:5004: no route to that network$'
	expect_status 1 netsend 'rtp://239.1.1.1:5004?iface=nix0' a.wav 2>err
	one_line err '^netsend: nix0: no such network interface$'
	expect_status 1 netsend rtp://127.0.0.1:5004 nowhere.wav 2>err
	one_line err '^netsend: nowhere\.wav: No such file'
	echo "hello" >t.txt
	expect_status 1 netsend rtp://127.0.0.1:5004 t.txt 2>err
	one_line err '^netsend: t\.txt: '
	capture -f s16 gen:silence -c 1 -d 0.1 | encode >o.weir
	expect_status 1 netsend -t nosuch rtp://127.0.0.1:5004 o.weir 2>err
	one_line err '^netsend: nosuch: no such track in the input$'
	capture -f s16 gen:ident -c 6 -d 0.1 | encode >o6.weir
	expect_status 1 netsend rtp://127.0.0.1:5004 o6.weir 2>err
	contains err "track 1: Opus of 6 channels, of which RTP carries 1 or 2"
	expect_status 1 netsend -t 1 rtp://127.0.0.1:5004 o6.weir 2>err
	one_line err "Opus of 6 channels, of which RTP carries 1 or 2"
}

usage()
{
	local url
	: >in.wav
	for url in rtp://127.0.0.1 rtp://127.0.0.1:0 rtp://127.0.0.1:70000 rtp://::1:5004 'rtp://[::1:5004' rtp://127.0.0.1:5004?pt=128 \
		rtp://127.0.0.1:5004?colour=red http://127.0.0.1:5004 udp://127.0.0.1:5004 rtp://:5004 'rtp://127.0.0.1:5004?pt=1&pt=2' rtp://127.0.0.1:5004?codec=mp3; do
		expect_status 2 netsend "$url" in.wav 2>err
		one_line err "^netsend: "
		contains err "${url%%\?*}"
	done
	expect_status 2 netsend in.wav 2>err
	one_line err "none is named"
	expect_status 2 netsend rtp://127.0.0.1:5004 a b 2>err
	one_line err "one input at most"
	expect_status 2 netsend rtp://127.0.0.1:5004?pt=96 rtp://127.0.0.1:5006?pt=97 in.wav 2>err
	one_line err "payload type 97 here and 96 elsewhere"
	expect_status 2 netsend --redundancy 4 rtp://127.0.0.1:5004 in.wav 2>err
	one_line err "'4' is not auto, off, 1 to 3"
	expect_status 2 netsend srtp://127.0.0.1:5004 in.wav 2>err
	one_line err "needs a key"
	expect_status 2 netsend --sdp a --sdp b rtp://127.0.0.1:5004 in.wav 2>err
	one_line err "2 files for 1 destinations"
	keygen -o key
	expect_status 2 netsend --sdp-key --key-file key srtp://127.0.0.1:5004 in.wav 2>err
	one_line err "--sdp-key: nothing is written: --sdp FILE is missing"
}

descriptions()
{
	make_wav a.wav 48000 2 s24 2400
	netsend -q --session "Probe für Gäste" rtp://127.0.0.1:5004 a.wav --sdp - >a.sdp 2>/dev/null
	netsend -q rtp://127.0.0.1:5004 a.wav --sdp b.sdp 2>/dev/null
	contains a.sdp "s=Probe für Gäste"
	contains a.sdp "m=audio 5004 RTP/AVP 98"
	contains a.sdp "a=rtpmap:98 L24/48000/2"
	contains a.sdp "a=ptime:5"
	contains a.sdp "a=rtcp-mux"
	contains a.sdp "a=ts-refclk:local"
	contains a.sdp "a=mediaclk:sender"
	eq "$(tr -d '\r' <a.sdp | head -2 | cut -c1-7 | tr '\n' ' ')" "v=0 o=weir  "
	[ ! -e b.sdp.part ] || fail "the .part is still there"
	expect_status 2 netsend rtp://127.0.0.1:5004 a.wav --sdp b.sdp 2>err
	one_line err "b.sdp: exists already: -y replaces it"
	netsend -q -y rtp://127.0.0.1:5004 a.wav --sdp b.sdp 2>/dev/null
	expect_status 1 netsend rtp://127.0.0.1:5004 a.wav --sdp nodir/x.sdp 2>err
	one_line err "nodir/x.sdp: No such file"
}

# ---- memory ----

# heap NAME PORT: counts are the same after some packets and after many.
heap()
{
	netsend --stats=0.25 rtp://127.0.0.1:$2 $1.weir 2>$1.stats
	"$PYTHON" - $1.stats <<'PY'
import json, sys
c = [(l["allocs"], l["packets_out"]) for l in map(json.loads, open(sys.argv[1]))][:-1]
c = [x for x in c if x[1] >= 50]
print("# allocations and packets", *c)
assert c[-1][1] >= 600 and c[-1][1] >= 2 * c[0][1], c
assert c[0][0] == c[-1][0], c
PY
}

heap_stands_still()
{
	local opus
	capture gen:sine -c 2 -r 48000 -d 2.5 | encode --complexity 0 --frame 2.5ms --application lowdelay >opus.weir
	capture --block 128 -f f32 gen:sine -c 12 -r 48000 -d 2.5 >pcm.weir
	record a 127.0.0.1 5004
	record b 127.0.0.1 5006 --byes 2
	heap opus 5004 &
	opus=$!
	heap pcm 5006
	wait $opus
}

# Tracks that come and go for ever: only those that are there count against the limit of flows.
tracks_that_come_and_go()
{
	local ops="" i
	for i in $(seq 200); do
		ops="$ops track:$i:1:1:48000:1:1:$((480 * i)) data:$i:$((480 * i)):480:1 end:$i"
	done
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" make in.weir $ops end:0
	local how
	for how in "" "--rtcp off"; do
		expect_status 0 netsend --fast $how --stats --stats-file stats rtp://127.0.0.1:5004 in.weir 2>err
		eq "$(tail -n 1 stats | json - "d['frames_out']")" 96000 "frames"
	done
}

test_case "200 tracks, one after the other" tracks_that_come_and_go
test_case "L16: every sample and number, across both wraps" pcm s16 l16 96 240
test_case "L24: every sample and number, across both wraps" pcm s24 l24 98 240
test_case "float becomes L24, or L16 where it is asked for" f32_becomes_l24
test_case "packet times of PCM" packet_times
test_case "a track of 20 channels becomes three flows" wide_tracks_are_split
test_case "Opus packets go as they are, 2.5 ms" opus 2.5ms 120
test_case "Opus packets go as they are, 20 ms" opus 20ms 960
test_case "DTX: nothing is sent, the marker is" dtx
test_case "gaps keep the timeline" gaps_keep_the_timeline
test_case "packets leave at their positions, to the nanosecond of the clock" pacing
test_case "a sender that was held up catches up, or goes on later" held_up
test_case "what is live goes as it comes, half a second ahead at most" live
test_case "two tracks of different rates leave together" two_tracks_together
test_case "a stream that begins anew goes on" restart
test_case "SR, SDES, binding and BYE" reports
test_case "RTCP to the next port, or not at all" rtcp_elsewhere
test_case "receiver reports are heard" reports_are_heard
test_case "several destinations get the same bytes: IPv4, IPv6, multicast" fan_out
test_case "SIGINT: BYE, and the end" interrupted
test_case "a cut input is sent to its end and said" cut_input
test_case "what the network refuses is said in a line" plain_words
test_case "wrong usage" usage
test_case "session descriptions" descriptions
test_case "--fast does not wait" fast_is_fast
test_case "nothing is allocated while it runs" heap_stands_still
done_testing
