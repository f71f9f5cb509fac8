#!/bin/bash
# resample: lengths, places, holes, formats, what passes, and that threads change nothing.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/mixlib.sh"

weirfile()
{
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" "$@"
}

# raw STREAM RAW [TRACK]: its samples; prints the first position
raw()
{
	weirfile pcm "$1" "${3-1}" "$2"
}

# py PROGRAM: numpy as np, load(NAME, DTYPE, CHANNELS) as doubles
py()
{
	"$PYTHON" - "$@" <<PY
import numpy as np, sys
def load(name, dtype="<f4", channels=1):
    return np.frombuffer(open(name, "rb").read(), dtype).astype(float).reshape(-1, channels)
$(cat)
PY
}

frames()
{
	{ inspect --json "$1" || :; } | json - "d[\"summary\"][\"frames\"][\"${2-1}\"]"
}

# ---- lengths and places ----

lengths()
{
	local n from to
	while read -r from to n want; do
		make_wav a.wav $from 1 s16 $n
		resample -r $to a.wav >out.weir
		eq "$(frames out.weir)" $want "$n frames from $from to $to"
		inspect --verify out.weir
	done <<-EOF
		44100 48000 44100 48000
		48000 22050 240000 110250
		48000 44100 1 1
		48000 44100 0 0
		96000 48000 1 1
		192000 44100 1 0
		44100 48000 12347 13439
		48000 44101 47777 43896
		44100 192000 9999 43533
		8000 11025 1 1
		6000 6144000 100 102400
		6144000 6000 102400 100
	EOF
}

impulse()
{
	tone a.wav 44100 f32 '(k(44100) == 22050) * 0.5'
	for q in low medium high very-high; do
		resample -r 48k -q $q a.wav >out.weir
		holds out.weir "len(a[0]) == 48000 and np.abs(a[0][:, 0]).argmax() == 24000 and np.abs(a[0][23999:4000:-1] - a[0][24001:44000]).max() < 1e-6"
	done
	# One whose phase is not linear rings behind the impulse only.
	resample -r 48k --phase minimum a.wav >out.weir
	holds out.weir 'len(a[0]) == 48000 and (a[0][24001:30000] ** 2).sum() > 1e6 * (a[0][:23950] ** 2).sum()'
}

very_short()
{
	tone a.wav 48000 f32 'np.full(1, 0.5)'
	resample -r 44.1k a.wav >out.weir
	holds out.weir 'len(a[0]) == 1 and abs(a[0][0]) > 0.1'
	capture -d 0 gen:sine | resample -r 44.1k >out.weir
	eq "$(weirfile list out.weir 1 | grep -c DATA || :)" 0
	inspect --verify out.weir
}

# 30 kHz in a file of 96 kHz: nothing of it may come down to 18 kHz.
no_alias()
{
	tone a.wav 96000 f32 '0.5 * sin(30000, 96000)'
	for q in high very-high; do
		resample -r 48k -q $q a.wav >out.weir
		holds out.weir 'len(a[0]) == 48000 and np.abs(a[0][2000:46000]).max() < 1e-5'
		raw out.weir out.raw >/dev/null
		# Every frequency of every part, the beginning and the end of the tone left out.
		py <<-'PY'
			x = load("out.raw")[2000:46000, 0]
			spectrum = np.abs(np.fft.rfft(x * np.hanning(len(x)))) / (len(x) / 4)
			assert 20 * np.log10(spectrum.max()) < -100, 20 * np.log10(spectrum.max())
		PY
	done
}

first_positions()
{
	make_wav a.wav 44100 2 f32 20000
	capture a.wav >a.weir
	"$PYTHON" - "$TOP/tests/pipeline" <<'PY'
import struct, sys
sys.path.insert(0, sys.argv[1])
import weirfile
for shift, out in (44100, "even.weir"), (12345, "odd.weir"), (-777, "early.weir"):
    with open(out, "wb") as f:
        for p in weirfile.read("a.weir"):
            if p.track == 1:
                if p.type == 2:
                    b = bytearray(p.payload)
                    struct.pack_into("<q", b, 16, shift)
                    p.payload = bytes(b)
                elif p.type == 3:
                    struct.pack_into("<q", p.head, 16, p.pos + shift)
                    p.pos += shift
                elif p.type == 6:
                    b = bytearray(p.payload)
                    at = b.index(struct.pack("<q", 20000))
                    struct.pack_into("<q", b, at, 20000 + shift)
                    p.payload = bytes(b)
            f.write(p.pack())
PY
	resample -r 48k a.wav >plain.weir
	eq "$(raw plain.weir plain.raw)" 0
	inspect --verify even.weir
	resample -r 48k even.weir >out.weir
	eq "$(raw out.weir out.raw)" 48000
	same plain.raw out.raw
	resample -r 48k odd.weir >out.weir
	eq "$(raw out.weir out.raw)" $(((12345 * 48000 + 22050) / 44100))
	inspect --verify out.weir
	resample -r 48k early.weir >out.weir
	eq "$(raw out.weir out.raw)" -846
	eq "$(inspect --json out.weir | json - '[l for l in lines if l.get("type") == "TRACK"][0]["first_pos"]')" -846
}

# ---- holes ----

# What is behind a hole is what it would be had the hole been silence and all before it; the hole is as long as it was.
holes()
{
	make_wav a.wav 44100 2 f32 40000
	capture --block 1000 a.wav >a.weir
	weirfile edit a.weir b.weir gap:1:10-14:2 gap:1:20-20:3
	status_of resample -r 48k b.weir >out.weir
	eq "$status" 0
	inspect --verify out.weir >said || :
	grep -q '6 gaps, 6531 frames lost' said
	weirfile list out.weir 1 | awk '$1 == "GAP" { if ($2 != end) print $2, $5; end = $2 + $3 } END { print end }' >gaps
	eq "$(tr '\n' ' ' <gaps)" "10884 2 21769 3 22857 "
	raw out.weir out.raw >/dev/null
	raw a.weir a.raw >/dev/null
	py <<-'PY'
		a = load("a.raw", channels=2).astype("<f4")
		a[:15000] = 0
		a[20000:21000] = 0
		a[:20000].tofile("second.raw")
		b = load("a.raw", channels=2).astype("<f4")
		b[:21000] = 0
		b.tofile("third.raw")
	PY
	for part in second third; do
		capture -r 44.1k -c 2 -f f32 raw:$part.raw | resample -r 48k >$part.weir
		raw $part.weir $part.out >/dev/null
	done
	py <<-'PY'
		out, second, third = load("out.raw", channels=2), load("second.out", channels=2), load("third.out", channels=2)
		assert len(out) == 43537
		assert (out[10884:16327] == 0).all() and (out[21769:22857] == 0).all()
		assert np.abs(out[16327:21769] - second[16327:21769]).max() < 2e-7
		assert np.abs(out[22857:] - third[22857:]).max() < 2e-7
	PY
}

# A hundred holes, of lengths that are no whole number of output frames: nothing adds up.
hundred_holes()
{
	local i ops=()
	capture -c 1 -r 48k --block 960 -d 60s gen:sine >a.weir
	for i in {0..99}; do
		ops+=(gap:1:$((i * 29 + 10))-$((i * 29 + 12 + i % 7)):2)
	done
	weirfile edit a.weir b.weir "${ops[@]}"
	resample -r 44100 b.weir >out.weir
	weirfile list b.weir 1 >in.list
	weirfile list out.weir 1 >out.list
	"$PYTHON" - <<'PY'
def gaps(path):
    return [(int(l[1]), int(l[2])) for l in map(str.split, open(path)) if l[0] == "GAP"]
def end(path):
    return max(int(l[1]) + int(l[2]) for l in map(str.split, open(path)) if l[0] in ("DATA", "GAP"))
a, b = gaps("in.list"), gaps("out.list")
merged = []
for pos, n in a:
    if merged and sum(merged[-1]) == pos:
        merged[-1] = (merged[-1][0], merged[-1][1] + n)
    else:
        merged.append((pos, n))
out = []
for pos, n in b:
    if out and sum(out[-1]) == pos:
        out[-1] = (out[-1][0], out[-1][1] + n)
    else:
        out.append((pos, n))
assert len(merged) == len(out) == 100, (len(merged), len(out))
for (p, n), (q, m) in zip(merged, out):
    assert abs(q - p * 44100 / 48000) <= 0.5 and abs(q + m - (p + n) * 44100 / 48000) <= 0.5, (p, n, q, m)
assert end("out.list") == 60 * 44100, end("out.list")
PY
	eq "$(frames out.weir)" "$(awk '$1 == "DATA" { n += $3 } END { print n }' out.list)"
	# Holes shorter than a frame of the output: said where they are, and never more than one frame too late.
	capture -c 1 -r 192k --block 3 -d 10ms gen:noise:white >a.weir
	ops=()
	for i in {0..30}; do
		ops+=(gap:1:$((i * 20 + 10)):2)
	done
	weirfile edit a.weir b.weir "${ops[@]}"
	resample -r 44100 b.weir >out.weir
	eq "$(weirfile list out.weir 1 | grep -c GAP)" 31
	weirfile list out.weir 1 | awk '$1 == "DATA" || $1 == "GAP" { if (n++ && $2 != end) exit 1; end = $2 + $3 } END { exit end != 441 }'
}

# ---- formats ----

formats()
{
	local f
	tone a.wav 44100 s16 '0.6 * sin(997, 44100) + 0.2 * noise(44100)[:, 0]'
	resample -r 48k a.wav >f32.weir
	eq "$(inspect --json f32.weir | json - '[l for l in lines if l.get("type") == "TRACK"][0]["sample"]')" f32
	raw f32.weir f32.raw >/dev/null
	for f in s16 s24 s32; do
		resample -r 48k -f $f a.wav >$f.weir
		raw $f.weir $f.raw >/dev/null
		resample -r 48k -f $f --no-dither a.wav >plain.weir
		raw plain.weir $f.plain >/dev/null
	done
	resample -r 48k -f s16 a.wav >again.weir
	same s16.weir again.weir
	py <<-'PY'
		f = load("f32.raw")[:, 0]
		assert len(f) == 48000
		def whole(name, bits):
		    raw = np.frombuffer(open(name, "rb").read(), np.uint8)
		    if bits == 24:
		        raw = np.concatenate([np.zeros((len(raw) // 3, 1), np.uint8), raw.reshape(-1, 3)], 1).copy()
		        return raw.view("<i4")[:, 0] >> 8
		    return raw.view("<i%d" % (bits // 8))
		for bits in 16, 24, 32:
		    want = f * 2.0 ** (bits - 1)
		    assert np.abs(whole("s%d.plain" % bits, bits) - want).max() <= 0.5
		    error = whole("s%d.raw" % bits, bits) - want
		    if bits < 32:
		        # that of rounding, 1/12, and triangular noise, 2/12
		        assert abs(np.sqrt((error ** 2).mean()) - 0.5) < 0.02 and np.abs(error).max() <= 1.51
		    else:
		        assert np.abs(error).max() <= 0.5
	PY
	# Double stays double, and is computed in double.
	resample -r 44.1k -f f64 a.wav >a.weir
	"$PYTHON" - "$TOP/tests/pipeline" <<'PY'
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import weirfile
with open("b.weir", "wb") as f:
    for p in weirfile.read("a.weir"):
        if p.type == 3:
            p.payload = (0.5 * np.sin(2 * np.pi * 997 / 44100 * np.arange(p.pos, p.pos + p.dur))).astype("<f8").tobytes()
        f.write(p.pack())
PY
	resample -r 48k b.weir >f64.weir
	eq "$(inspect --json f64.weir | json - '[l for l in lines if l.get("type") == "TRACK"][0]["sample"]')" f64
	raw f64.weir f64.raw >/dev/null
	py <<-'PY'
		x = load("f64.raw", "<f8")[4000:44000, 0]
		w = 2 * np.pi * 997 * np.arange(4000, 44000) / 48000
		m = np.stack([np.sin(w), np.cos(w)], 1)
		rest = x - m @ np.linalg.lstsq(m, x, rcond=None)[0]
		assert 20 * np.log10(np.sqrt((rest ** 2).mean())) < -165
	PY
}

clipping()
{
	# Its steps ring over full scale.
	tone a.wav 44100 s16 'np.where((k(44100) // 100) % 2, 0.9999, -0.9999)'
	resample -r 48k a.wav >f32.weir
	raw f32.weir f32.raw >/dev/null
	resample -r 48k -f s16 --no-dither --stats=60 --stats-file s a.wav >s16.weir
	want=$("$PYTHON" -c 'import numpy as np; f = np.rint(np.fromfile("f32.raw", "<f4").astype(float) * 32768); print(int(((f > 32767) | (f < -32768)).sum()))')
	between "$want" 1000 48000
	eq "$(json s 'd["clipped_samples"]')" "$want"
}

# ---- what passes ----

passing()
{
	capture -r 48k -d 1 -n a -f s16 gen:sine >a.weir
	capture -r 44.1k -d 1 -n b gen:noise:white >b.weir
	mux a.weir b.weir >both.weir
	resample -r 48k both.weir >out.weir
	eq "$(frames out.weir 1)" 48000
	eq "$(frames out.weir 2)" 48000
	raw both.weir 1.in 1 >/dev/null
	raw out.weir 1.out 1 >/dev/null
	same 1.in 1.out
	resample -r 48k b.weir >alone.weir
	raw alone.weir alone.raw 1 >/dev/null
	raw out.weir 2.out 2 >/dev/null
	same alone.raw 2.out
	# Only one of them; and only the format of one that has the rate
	resample -r 96k -t b both.weir >out.weir
	eq "$(frames out.weir 1) $(frames out.weir 2)" "48000 96000"
	raw out.weir 1.out 1 >/dev/null
	same 1.in 1.out
	resample -r 48k -f s32 a.weir >out.weir
	raw out.weir 1.out >/dev/null
	py <<-'PY'
		assert (load("1.in", "<i2") * 65536 == load("1.out", "<i4")).all()
	PY
	expect_status 1 resample -r 96k -t c both.weir >out.weir 2>err
	one_line err 'resample: c: no such track'
}

opus_is_refused()
{
	capture -d 1 gen:sine | encode >a.weir
	expect_status 1 resample -r 44.1k a.weir >out.weir 2>err
	one_line err 'track 1: opus audio of 48000 Hz cannot be resampled: decode it first'
	resample -r 48k a.weir >out.weir
	weirfile list a.weir 1 >in.list
	weirfile list out.weir 1 >out.list
	same in.list out.list
	capture -d 1 -n pcm gen:sine | mux a.weir - | resample -r 44.1k -t pcm >out.weir
	eq "$(frames out.weir 2)" 44100
}

usage()
{
	expect_status 2 resample </dev/null >out 2>err
	one_line err '-r: is needed.*1000 to 6144000'
	expect_status 2 resample -r 6144001 </dev/null >out 2>err
	one_line err '6144001.*1000 to 6144000'
	expect_status 2 resample -r 48k -q best </dev/null >out 2>err
	one_line err "'best'.*quick.*very-high"
	expect_status 2 resample -r 48k a b </dev/null >out 2>err
	make_wav a.wav 6144000 1 s16 100
	expect_status 2 resample -r 999 a.wav >out 2>err
	one_line err "'999' is not a rate.*1000 to 6144000"
	expect_status 1 resample -r 1000 a.wav >out 2>err
	one_line err 'track 1: from 6144000 to 1000 Hz: the ratio is 5000 or more'
}

# ---- packets ----

# Wall-clock time, flags and counts of what was dropped go along with the frames.
along()
{
	capture -c 1 -r 48k --block 960 -d 4 gen:sine >a.weir
	"$PYTHON" - "$TOP/tests/pipeline" <<'PY'
import struct, sys
sys.path.insert(0, sys.argv[1])
import weirfile
n = 0
with open("b.weir", "wb") as f:
    for p in weirfile.read("a.weir"):
        if p.type == 3:
            struct.pack_into("<q", p.head, 32, 10**18 + n * 20 * 10**6)
            struct.pack_into("<I", p.head, 48, 480 if n >= 100 else 0)
            if 50 <= n < 53:
                p.flags |= 8
            n += 1
        f.write(p.pack())
PY
	resample -r 44.1k b.weir >out.weir
	"$PYTHON" - "$TOP/tests/pipeline" <<'PY'
import struct, sys
sys.path.insert(0, sys.argv[1])
import weirfile
data = [p for p in weirfile.read("out.weir") if p.type == 3]
for p in data:
    utc, = struct.unpack_from("<q", p.head, 32)
    assert abs(utc - 10**18 - p.pos / 44100 * 1e9) < 2, (p.pos, utc)
    assert bool(p.flags & 8) == (p.pos < 53 * 882 and p.pos + p.dur > 50 * 882), (p.pos, p.dur, p.flags)
assert struct.unpack_from("<I", data[-1].head, 48)[0] == 441
assert struct.unpack_from("<I", data[0].head, 48)[0] == 0
PY
	# A packet that says that it is silent has no frames to read.
	"$PYTHON" - "$TOP/tests/pipeline" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
import weirfile
for name, silent in ("silent.weir", True), ("zeros.weir", False):
    n = 0
    with open(name, "wb") as f:
        for p in weirfile.read("a.weir"):
            if p.type == 3:
                n += 1
                if 50 <= n < 100:
                    p.payload = b"" if silent else bytes(len(p.payload))
                    p.flags |= 0x40 if silent else 0
            f.write(p.pack())
PY
	resample -r 44.1k silent.weir >1.weir
	resample -r 44.1k zeros.weir >2.weir
	raw 1.weir 1.raw >/dev/null
	raw 2.weir 2.raw >/dev/null
	same 1.raw 2.raw
}

cut()
{
	capture -d 2 -r 44.1k gen:sine >a.weir
	head -c 200000 a.weir >cut.weir
	status_of resample -r 48k cut.weir >out.weir 2>err
	eq "$status" 3
	one_line err 'cut.weir'
	n=$(frames cut.weir)
	eq "$(weirfile list out.weir 1 | awk '$1 == "DATA" { n += $3 } END { print n }')" $(((n * 48000 * 2 + 44100) / 88200))
	eq "$({ inspect --json out.weir || :; } | json - 'd["summary"]["complete"]')" false
}

# ---- the same everywhere ----

# The whole stream, however many threads, whatever the processor, from a pipe in small pieces too.
jobs_change_nothing()
{
	local ch j
	for ch in 1 2 3 8 33; do
		make_wav a.wav 44100 $ch f32 30011
		capture --block 700 a.wav >a.weir
		weirfile edit a.weir b.weir gap:1:7-9:2
		resample -r 48k b.weir >1.weir
		for j in 2 3 64; do
			resample -r 48k -j $j b.weir >j.weir
			same 1.weir j.weir
		done
		WEIR_CPU=c resample -r 48k b.weir >c.weir
		same 1.weir c.weir
		"$PYTHON" -c '
import sys
b = open("b.weir", "rb").read()
for i in range(0, len(b), 4097):
    sys.stdout.buffer.write(b[i : i + 4097])
    sys.stdout.buffer.flush()' | resample -r 48k -j 2 >j.weir
		same 1.weir j.weir
	done
	# f64 in planes
	resample -r 48k -f f64 b.weir >1.weir
	resample -r 48k -f f64 -j 2 b.weir >j.weir
	same 1.weir j.weir
}

as_capture()
{
	local f ch
	for ch in 1 2 9; do
		make_wav a.wav 44100 $ch s24 50021
		for f in s16 s24 s32 f32; do
			capture -r 48k -f $f a.wav >a.weir
			resample -r 48k -f $f a.wav >b.weir
			capture a.wav | resample -r 48k -f $f >c.weir
			eq "$(raw a.weir a.raw)$(raw b.weir b.raw)$(raw c.weir c.raw)" 000
			same a.raw b.raw
			same a.raw c.raw
		done
	done
}

# Holes in a file, too: those of Ogg Opus.
as_capture_with_holes()
{
	capture -d 8 gen:sweep | encode | mux -q -o a.opus
	"$PYTHON" - <<'PY'
b = open("a.opus", "rb").read()
pages, at = [], 0
while at < len(b):
    n = b[at + 26]
    size = 27 + n + sum(b[at + 27 : at + 27 + n])
    pages.append(b[at : at + size])
    at += size
n = len(pages)
del pages[n // 4 : n * 3 // 4]
open("b.opus", "wb").write(b"".join(pages))
PY
	status_of capture -r 44.1k b.opus >a.weir 2>err
	eq "$status" 3
	status_of resample -r 44.1k b.opus >b.weir 2>err
	eq "$status" 3
	weirfile list a.weir | awk '$1 == "GAP"' >a.gaps
	weirfile list b.weir | awk '$1 == "GAP"' >b.gaps
	[ -s a.gaps ]
	same a.gaps b.gaps
	eq "$(raw a.weir a.raw)$(raw b.weir b.raw)" 00
	same a.raw b.raw
}

# Of the last second of a long run nothing is allocated any more, and nothing is kept.
allocations()
{
	local q ch j n a
	while read -r q ch j; do
		for n in 500 5000; do
			capture -r 44.1k -c $ch --block 240 -d $((n * 240))smp -f s16 gen:noise:white |
				resample -r 48k -q $q -j $j --stats=60 --stats-file $n.stats >/dev/null
		done
		a=$(json 500.stats 'd["allocs"]')
		[ "$a" != 0 ] || skip "allocations are not counted in this build"
		eq "$(json 5000.stats 'd["allocs"]')" "$a" "allocations after 500 and 5000 packets, $q, $ch channels, -j $j"
	done <<-EOF
		quick 2 1
		medium 2 1
		high 16 1
		very-high 2 1
		very-high 16 2
	EOF
	capture -r 44.1k -c 2 -d 600 gen:silence | resample -r 48k -q quick --stats=60 --stats-file s >/dev/null
	between "$(json s 'd["rss_kib"]')" 100 8192 "KiB"
}

test_case "lengths are exact" lengths
test_case "an impulse stays in its place, symmetric" impulse
test_case "one frame, and none" very_short
test_case "nothing comes down from above half the rate" no_alias
test_case "a stream that begins elsewhere" first_positions
test_case "holes stay, and what is behind them is where it belongs" holes
test_case "a hundred holes add up" hundred_holes
test_case "formats and dither" formats
test_case "clipping is counted" clipping
test_case "what has the rate passes" passing
test_case "Opus is refused" opus_is_refused
test_case "usage" usage
test_case "time, flags and silence go along" along
test_case "an input that is cut" cut
test_case "threads and pieces change nothing" jobs_change_nothing
test_case "capture -r makes the same" as_capture
test_case "capture -r makes the same of a file with a hole" as_capture_with_holes
test_case "no allocations, little memory" allocations
done_testing
