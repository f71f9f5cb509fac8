#!/bin/bash
# decode: formats, trims, what is concealed, recovered and passed on, what peers decode.
. "$(dirname "$0")/../lib.sh"

weirfile()
{
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" "$@"
}

ogg()
{
	"$PYTHON" "$TOP/tests/pipeline/oggfile.py" "$@"
}

# ---- formats ----

formats()
{
	local f
	capture gen:sweep:level=-6dB -d 1 | encode >a.weir
	decode a.weir >f32.weir
	weirfile pcm f32.weir 1 f32.raw >/dev/null
	for f in s16 s24 s32; do
		decode -f $f a.weir >$f.weir
		weirfile pcm $f.weir 1 $f.raw >/dev/null
		decode -f $f --no-dither a.weir >$f.plain.weir
		weirfile pcm $f.plain.weir 1 $f.plain.raw >/dev/null
	done
	decode -f s16 a.weir >again.weir
	same s16.weir again.weir "dither is the same every time"
	"$PYTHON" - <<'PY'
import numpy as np
def load(name, bits):
    raw = np.frombuffer(open(name, "rb").read(), np.uint8)
    if bits == 24:
        return np.concatenate([np.zeros((len(raw) // 3, 1), np.uint8), raw.reshape(-1, 3)], 1).copy().view("<i4")[:, 0] >> 8
    return raw.view("<i2" if bits == 16 else "<i4")
f = np.frombuffer(open("f32.raw", "rb").read(), "<f4").astype(float)
assert len(f) == 96000
for bits, steps in (16, 1.51), (24, 1.51), (32, 0.51):
    want = f * 2.0 ** (bits - 1)
    dithered, plain = load("s%d.raw" % bits, bits), load("s%d.plain.raw" % bits, bits)
    assert np.abs(plain - want).max() <= (0.5 if bits < 32 else 0.5), bits
    assert np.abs(dithered - want).max() <= steps, bits
    error = dithered - want
    rms = np.sqrt((error**2).mean())
    if bits < 32:
        # rectangular rounding and triangular noise: 1/12 + 2/12
        assert abs(rms - 0.5) < 0.02, (bits, rms)
        assert abs(error.mean()) < 0.02
PY
}

clipping_is_counted()
{
	capture gen:sine:freq=997,level=0dB -d 1 | encode -b 64k >a.weir
	decode -f s16 --stats=60 a.weir 2>s | cat >b.weir
	decode a.weir >c.weir
	weirfile pcm c.weir 1 c.raw >/dev/null
	want=$("$PYTHON" -c '
import numpy as np
f = np.frombuffer(open("c.raw", "rb").read(), "<f4")
print(int(((f * 32768 >= 32767.5 + 1.5) | (f * 32768 <= -32768.5 - 1.5)).sum()), int(((f * 32768 > 32767.5 - 1.5) | (f * 32768 < -32768.5 + 1.5)).sum()))')
	between "$(json s 'd["clipped_samples"]')" $want "clipped samples"
	json s '[k in d for k in ("concealed_frames", "recovered_frames", "refused_packets")]' | grep -qx '\[true, true, true\]'
}

# ---- as others decode ----

as_peers_decode()
{
	have opusenc && have opusdec || skip "opusenc or opusdec is not installed"
	local n
	for n in 1 12345 47777; do
		make_wav in.wav 48000 2 s16 $n
		opusenc --quiet in.wav in.opus
		demux in.opus | decode >a.weir
		eq "$(weirfile pcm a.weir 1 a.raw)" 0
		opusdec --quiet --float --rate 48000 in.opus f.wav
		"$PYTHON" - $n <<'PY'
import sys
import numpy as np
a = open("a.raw", "rb").read()
f = open("f.wav", "rb").read()
f = f[f.index(b"data") + 8 :]
assert len(a) == 8 * int(sys.argv[1]), len(a)
assert f == a, "other samples than opusdec's"
PY
	done
}

header_gain()
{
	capture gen:sine -d 0.5 | encode | decode >a.weir
	capture gen:sine -d 0.5 | encode >b.weir
	"$PYTHON" - "$TOP/tests/pipeline" <<'PY'
import struct, sys
sys.path.insert(0, sys.argv[1])
import weirfile
with open("c.weir", "wb") as f:
    for p in weirfile.read("b.weir"):
        if p.type == 2:
            b = bytearray(p.payload)
            struct.pack_into("<h", b, 96, -6 * 256)
            p.payload = bytes(b)
        f.write(p.pack())
PY
	decode c.weir >d.weir
	weirfile pcm a.weir 1 a.raw >/dev/null
	weirfile pcm d.weir 1 d.raw >/dev/null
	"$PYTHON" -c '
import numpy as np
a, d = (np.frombuffer(open(n, "rb").read(), "<f4").astype(float) for n in ("a.raw", "d.raw"))
r = np.sqrt((d**2).sum() / (a**2).sum())
assert abs(r - 10**-0.3) < 1e-3, r'
}

# ---- holes ----

short_holes_are_concealed()
{
	capture -c 1 gen:sweep -d 3 | encode >a.weir
	weirfile edit a.weir b.weir drop:1:50-51 drop:1:100-140
	status_of decode --stats=60 b.weir >c.weir 2>err
	eq "$status" 3
	weirfile list c.weir 1 >l
	! grep -q '^GAP' l || fail "a hole of less than 1 s is left"
	# flagged where it was made up
	eq "$(awk '$1 == "DATA" && $4 == "0009" { n += $3 } END { print n }' l)" $((43 * 960))
	eq "$(awk '$4 == "0009" { print $2; exit }' l)" $((50 * 960 - 312))
	eq "$(json err 'd["concealed_frames"]')" $((43 * 960))
	grep -v '^{' err >said || :
	contains said 'b.weir'
	weirfile pcm c.weir 1 c.raw >/dev/null
	eq "$(bytes_of c.raw)" $((144000 * 4))
	# frames before the first hole and long behind the last are what they are without one
	decode a.weir >d.weir
	weirfile pcm d.weir 1 d.raw >/dev/null
	cmp -n $(((50 * 960 - 312) * 4)) c.raw d.raw
}

long_holes_are_passed_on()
{
	capture -c 1 gen:sweep -d 4 | encode >a.weir
	weirfile edit a.weir b.weir drop:1:50-120
	status_of decode b.weir >c.weir 2>err
	eq "$status" 3
	weirfile list c.weir 1 | grep -q "^GAP $((50 * 960 - 312)) $((71 * 960)) "
	expect_status 3 inspect --verify c.weir >said
	grep -q "$((192000 - 71 * 960)) frames, 1 gap, $((71 * 960)) frames lost" said
}

said_gaps()
{
	capture -c 1 gen:sweep -d 2 | encode >a.weir
	# not started, paused: no loss; silence not sent: filled, no loss; lost on the network: concealed, a loss
	weirfile edit a.weir b.weir gap:1:30-31:5 gap:1:40:7 gap:1:50-52:4
	decode b.weir >c.weir
	weirfile list c.weir 1 >l
	eq "$(grep -c '^GAP' l)" 3
	eq "$(awk '$1 == "GAP" { print $5 }' l | tr '\n' ' ')" "5 5 7 "
	! grep -q '^DATA .* 0009 ' l || fail "silence that was not sent is no loss"
	weirfile edit a.weir b.weir gap:1:30:2
	expect_status 3 decode b.weir >c.weir 2>err
	one_line err '^decode: track 1: 1 hole in the input, 960 frames: 960 concealed, 0 recovered$'
}

redundancy_is_used()
{
	# a voice-like sound in SILK, with a copy of each packet in the next
	capture -c 1 gen:sweep:from=100,to=3000,level=-12dB -d 3 | encode --application voip -b 24k --fec --expect-loss 20% >a.weir
	weirfile edit a.weir b.weir drop:1:60 drop:1:70-71 drop:1:90
	expect_status 3 decode b.weir >c.weir 2>err
	weirfile list c.weir 1 >l
	eq "$(awk '$4 == "0011" { n += $3 } END { print n }' l)" 2880 "frames recovered"
	eq "$(awk '$4 == "0009" { n += $3 } END { print n }' l)" 960 "frames concealed"
	# however the input comes in, what comes out is the same
	"$PYTHON" -c '
import os, sys
data = open("b.weir", "rb").read()
for i in range(0, len(data), 777):
    os.write(1, data[i : i + 777])' | { status_of decode; echo $status >&2; } >d.weir 2>err
	same c.weir d.weir "from a pipe in small pieces"
}

damaged_packets()
{
	capture -c 1 gen:sweep -d 1 | encode >a.weir
	weirfile edit a.weir b.weir byte:1:10:0:255 byte:1:10:1:0 empty:1:20 dur:1:30:1920
	expect_status 3 decode --stats=60 b.weir >c.weir 2>err
	eq "$(json err 'd["refused_packets"]')" 2
	weirfile pcm c.weir 1 c.raw >/dev/null
	eq "$(bytes_of c.raw)" $((48000 * 4))
}

streams_that_follow_one_another()
{
	make_wav a.wav 48000 2 s16 12345
	make_wav b.wav 48000 2 s16 777
	capture a.wav | encode --frame 60ms >a.weir
	capture b.wav | encode --frame 5ms >b.weir
	cat a.weir b.weir a.weir | decode >c.weir
	inspect --verify c.weir >said
	grep -q 'track 1: 25467 frames, 0 gaps' said
	weirfile pcm c.weir 1 c.raw >/dev/null
	for f in a b; do
		decode $f.weir >d.weir
		weirfile pcm d.weir 1 $f.raw >/dev/null
	done
	cat a.raw b.raw a.raw >want.raw
	same c.raw want.raw "each as if it stood alone"
}

chained_files()
{
	have opusenc || skip "opusenc is not installed"
	make_wav a.wav 48000 2 s16 9600
	make_wav b.wav 48000 2 s16 14401
	opusenc --quiet a.wav a.opus
	opusenc --quiet b.wav b.opus
	cat a.opus b.opus >c.opus
	demux c.opus | decode >c.weir
	inspect --verify c.weir >said
	grep -q 'track 1: 24001 frames, 0 gaps' said
}

surround()
{
	have opusenc || skip "opusenc is not installed"
	# a tone of its own on each channel of 5.1, in WAVE order
	"$PYTHON" - <<'PY'
import struct
import numpy as np
t = np.arange(19200) / 48000
x = np.stack([0.4 * np.sin(2 * np.pi * f * t) for f in (300, 500, 700, 60, 1100, 1300)], 1)
raw = (x * 32767).astype("<i2").tobytes()
fmt = struct.pack("<HHIIHHHHI", 0xFFFE, 6, 48000, 576000, 12, 16, 22, 16, 0x3F) + bytes.fromhex("0100000000001000800000aa00389b71")
open("in.wav", "wb").write(b"RIFF" + struct.pack("<I", 4 + 8 + len(fmt) + 8 + len(raw)) + b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt + b"data" + struct.pack("<I", len(raw)) + raw)
PY
	check='
import sys
import numpy as np
x = np.frombuffer(open("c.raw", "rb").read(), "<f4").reshape(-1, 6)
assert len(x) == 19200, len(x)
found = [int(np.argmax(np.abs(np.fft.rfft(x[:, c]))) * 2.5 + 0.5) for c in range(6)]
assert [round(f / 10) * 10 for f in found] == [300, 500, 700, 60, 1100, 1300], found'
	opusenc --quiet in.wav in.opus
	demux in.opus | decode >c.weir
	weirfile pcm c.weir 1 c.raw >/dev/null
	"$PYTHON" -c "$check"
	capture in.wav | encode >b.weir
	decode b.weir >c.weir
	weirfile pcm c.weir 1 c.raw >/dev/null
	"$PYTHON" -c "$check"
	inspect --json c.weir >j
	eq "$(json j '[l for l in lines if l.get("type") == "TRACK"][0]["channels"]')" 6
	inspect c.weir | grep -q 'FL FR FC LFE BL BR'
}

others_pass()
{
	capture gen:noise gen:sweep -d 1 | encode -t 1 >a.weir
	decode a.weir >b.weir
	weirfile pcm a.weir 2 a.raw >/dev/null
	weirfile pcm b.weir 2 b.raw >/dev/null
	same a.raw b.raw "PCM passes"
	capture gen:noise gen:sweep -d 1 | encode >a.weir
	decode -t 2 a.weir >b.weir
	inspect b.weir >said
	grep -q '^TRACK  *1 .* opus ' said
	grep -q '^TRACK  *2 .* pcm ' said
}

a_cut_input_says_so()
{
	capture gen:sweep -d 2 | encode >a.weir
	head -c 20000 a.weir >b.weir
	expect_status 3 decode b.weir >c.weir 2>err
	one_line err '^decode: '
	expect_status 3 inspect --verify c.weir >said
}

refusals()
{
	local o
	capture gen:sine -d 0.1 | encode >in.weir
	for o in "-f u8" "-f s17" "--dither" "-t 0"; do
		expect_status 2 decode $o in.weir >out 2>err
		empty out
		one_line err '^decode: '
	done
}

nothing_is_allocated_per_packet()
{
	local short long opts
	capture gen:sweep -d 1 | encode --complexity 0 --frame 2.5ms >s.weir
	capture gen:sweep -d 20 | encode --complexity 0 --frame 2.5ms >l.weir
	for opts in "" "-f s16"; do
		decode $opts --stats=60 s.weir 2>s >/dev/null
		decode $opts --stats=60 l.weir 2>l >/dev/null
		short=$(json s 'd["allocs"]') long=$(json l 'd["allocs"]')
		[ "$short" != 0 ] || skip "allocations are not counted in this build"
		eq "$long" "$short" "allocations with $opts"
	done
}

test_case "formats, dither and rounding" formats

# Noise that is the same in two tracks would add up where they are mixed.
tracks_have_noise_of_their_own()
{
	make_wav in.wav 48000 1 s16 9600
	capture in.wav in.wav | encode | decode -f s16 | mux -q -o 't%t.raw'
	"$PYTHON" - <<'PY'
import numpy as np
a, b = (np.fromfile(n, "<i2").astype(int) for n in ("t1.raw", "t2.raw"))
assert len(a) == len(b) == 9600
d = a - b
assert np.abs(d).max() <= 3 and 0.5 < d.std() < 1, (np.abs(d).max(), d.std())
PY
}
test_case "each track has dither of its own" tracks_have_noise_of_their_own
test_case "clipped samples are counted" clipping_is_counted
test_case "the samples that libopus gives to others" as_peers_decode
test_case "the header gain is applied" header_gain
test_case "holes up to 1 s are concealed, flagged and counted" short_holes_are_concealed
test_case "longer holes are passed on" long_holes_are_passed_on
test_case "gaps that say why they are there" said_gaps
test_case "in-band redundancy brings lost packets back" redundancy_is_used
test_case "packets that are not Opus are concealed" damaged_packets
test_case "concatenated streams: each as if it stood alone" streams_that_follow_one_another
test_case "a chained file" chained_files
test_case "5.1: each channel on its place" surround
test_case "other tracks pass" others_pass
test_case "a cut input: exit 3, and the output says so" a_cut_input_says_so
test_case "what cannot be is refused" refusals
test_case "no allocation per packet" nothing_is_allocated_per_packet

# PCM whose timeline goes back: a second, and as much as Opus has pre-roll, which is said.
a_timeline_that_goes_back()
{
	local back frame
	for back in 3529 24000 48000 96000; do
		for frame in 2.5 20 60; do
			weirfile make a.weir track:1:1:1:48000:1:1:0 data:1:0:4800:30 data:1:$((144000 - back)):4800:10:2 end:1 end:0
			encode --complexity 0 --frame ${frame}ms a.weir >a.opw
			decode a.opw >b.weir
			# The encoder's delay of 312 frames stands in front of what comes behind the step.
			weirfile list b.weir | awk -v at=$((144000 - back - 312)) '$1 == "DATA" { n += $3; steps += $2 != end && n > $3
				wrong += $2 != end && n > $3 && $2 != at; end = $2 + $3 } END { print n, steps, wrong + 0, end }' >got
			eq "$(cat got)" "192312 1 0 $((192000 - back))" "back $back, $frame ms"
			mux -q -y -o a.opus a.opw
			eq "$(capture -q a.opus | inspect - | sed -n 's/.*track 1: \([0-9]*\) frames.*/\1/p')" 192312 "Ogg, back $back, $frame ms"
		done
	done
	for back in 500 3528; do
		weirfile make a.weir track:1:1:1:48000:1:1:0 data:1:0:4800:30 data:1:$((144000 - back)):4800:10:2 end:1 end:0
		expect_status 3 encode --complexity 0 a.weir >a.opw 2>said
		one_line said "^encode: track 1: $back frames stand where others came before"
		decode a.opw >b.weir
		eq "$(weirfile list b.weir | awk '$1 == "DATA" { n += $3 } END { print n }')" $((192000 - back))
	done
	# Announced anew, what came before does not come again: a decoder cannot tell it from pre-roll.
	weirfile make a.weir track:1:1:1:48000:1:1:0 data:1:0:4800:30 track:1:1:1:48000:1:1:96000 data:1:96000:4800:20:2 end:1 end:0
	expect_status 3 encode --complexity 0 a.weir >a.opw 2>said
	one_line said "^encode: track 1: 48000 frames stand where others came before"
	decode a.opw >b.weir
	eq "$(weirfile list b.weir | awk '$1 == "DATA" { n += $3 } END { print n }')" 192000
}
test_case "a timeline that goes back" a_timeline_that_goes_back
done_testing
