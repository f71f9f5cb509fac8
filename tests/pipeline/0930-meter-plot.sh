#!/bin/bash
# meter --plot: a picture that is a valid PNG, shows what was measured, and is a file like any other.
. "$(dirname "$0")/../lib.sh"
export PYTHONPATH=$TOP/tests/pipeline PYTHONDONTWRITEBYTECODE=1

# What the build can do, asked of the tool.
capture -d 10ms gen:sine | meter --report /dev/null --plot - >/dev/null 2>"$lib_scratch/why" ||
	skip_all "$(cat "$lib_scratch/why")"

valid_png()
{
	capture -r 48k -c 2 -d 3s gen:sine:freq=1000,level=-20dB | meter --plot p.png >report
	contains report 'integrated'
	[ ! -e p.png.part ]
	read -r width height colours < <("$PYTHON" "$PYTHONPATH/png.py" look p.png)
	eq "$width $height" '1600 900'
	[ "$colours" -gt 200 ] || fail "only $colours colours"
	[ "$(bytes_of p.png)" -lt 1500000 ]
}

same_bytes()
{
	capture -r 48k -c 2 -d 2s gen:noise:pink >a.weir
	meter --plot a.png a.weir >/dev/null
	meter --plot b.png --json a.weir >/dev/null
	meter --through --plot c.png <a.weir 2>/dev/null >through.weir
	inspect --verify through.weir
	meter --plot - --report r.txt a.weir >d.png
	cat a.weir | meter --plot e.png >/dev/null
	for f in b c d e; do same a.png $f.png; done
	contains r.txt integrated
	# How the frames are cut into packets does not show, but in single pixels of loudness.
	capture -r 48k -c 2 -d 2s --block 333 gen:noise:pink | meter --plot f.png >/dev/null
	"$PYTHON" - <<'PY'
import png
a, f = png.read("a.png"), png.read("f.png")
different = (a != f).any(axis=2).mean()
assert different < 0.01, different
PY
}

# The tone's line in the spectrum lies where the scale says, one line and no other.
tone_in_its_place()
{
	for freq in 100 1000 10000; do
		capture -r 48k -c 1 -d 4s gen:sine:freq=$freq,level=-20dB | meter -y --plot p.png >/dev/null
		FREQ=$freq "$PYTHON" - <<'PY'
import os, math
import numpy as np, png
a = png.read("p.png")
light = a[:, 400:1200].sum(axis=2).mean(axis=1)
top, bottom = 584, 852  # the lowest panel
rows = light[top:bottom]
y = top + int(np.argmax(rows))
hz = float(os.environ["FREQ"])
wanted = bottom - (bottom - top) * math.log(hz / 20) / math.log(24000 / 20)
assert abs(y - wanted) < 4, (hz, y, wanted)
far = np.abs(np.arange(top, bottom) - y) > 40
assert np.median(rows[far]) < 0.25 * rows.max(), (np.median(rows[far]), rows.max())
PY
	done
}

# Lost frames are red over the whole height, a pause is violet, silence grey, and each only where it is.
shading()
{
	capture -r 48k -c 1 --block 4800 -d 10s gen:sine:freq=500,level=-12dB >whole.weir
	"$PYTHON" "$PYTHONPATH/weirfile.py" edit whole.weir holes.weir gap:1:20-39:2 gap:1:60-79:7
	meter --plot whole.png whole.weir >/dev/null
	meter --plot holes.png --json holes.weir >holes.json 2>err || true
	eq "$(json holes.json 'd["tracks"][0]["lost_frames"]')" 96000
	"$PYTHON" - <<'PY'
import png
a, b = png.read("whole.png"), png.read("holes.png")
at = lambda seconds: int(84 + 140 * seconds)

def tint(picture, t0, t1):
    """How much redder, and bluer, than green the time from t0 to t1 is, in each of the three panels."""
    out = []
    for y0, y1 in ((120, 340), (400, 540), (620, 840)):
        p = picture[y0:y1, at(t0) + 3 : at(t1) - 3].reshape(-1, 3).mean(axis=0)
        out.append((p[0] - p[1], p[2] - p[1]))
    return out

for (red, blue), (red0, blue0) in zip(tint(b, 2, 4), tint(a, 2, 4)):
    assert red > red0 + 20 and red > 25, ("lost", red, red0)
for (red, blue), (red0, blue0) in zip(tint(b, 6, 8), tint(a, 6, 8)):
    assert blue > 20 and blue > red + 10, ("pause", red, blue)
# Where nothing is missing, waveform and spectrum are as they were.
for t0, t1 in ((0, 1.9), (4.2, 5.8), (8.2, 9.9)):
    x = slice(at(t0) + 8, at(t1) - 8)
    assert (a[130:340, x] != b[130:340, x]).any(axis=2).mean() < 0.1, (t0, t1)
    assert (a[600:840, x] != b[600:840, x]).any(axis=2).mean() < 0.1, (t0, t1)
# The text that says what was lost is red, and only where something was.
red = lambda p: ((p[60:90, :800, 0] > 200) & (p[60:90, :800, 1] < 120)).sum()
assert red(b) > 100 and red(a) == 0, (red(a), red(b))
PY
	meter --plot p.png --silence -60dB:500ms <(capture -r 48k -c 1 -d 2s gen:silence) >/dev/null
	meter --plot q.png --silence off <(capture -r 48k -c 1 -d 2s gen:silence) >/dev/null
	"$PYTHON" - <<'PY'
import png
p, q = png.read("p.png"), png.read("q.png")
for y in (150, 300, 480):
    assert p[y, 300:1300].mean() > q[y, 300:1300].mean() + 10, y
PY
}

odd_tracks()
{
	# Nothing, less than a window, no loudness, many channels, levels only, a rate below everything.
	capture -r 48k -d 0 gen:sine 2>/dev/null | meter -y --plot p.png >/dev/null || true
	local args
	for args in '-r 48k -c 1 -d 1smp' '-r 48k -c 2 -d 100smp' '-r 8k -c 6 -d 1s' '-r 48k -c 40 -d 300ms' '-r 192k -c 1 -d 1s' '-r 1000 -c 1 -d 3s'; do
		capture $args gen:sine:freq=300 | meter -y --plot p.png >/dev/null
		meter -y --levels-only --plot q.png <(capture $args gen:sine:freq=300) >/dev/null
		eq "$("$PYTHON" "$PYTHONPATH/png.py" size p.png q.png)" '1600 900 1600 900' "$args"
	done
	# A name that is no UTF-8, one with control characters, one that is too long for the title.
	local name
	for name in $'x\xe9\xff' $'a\tb\x1b[31m' "$(printf '%0120d' 7)" 'Ünïcödé – 音'; do
		capture -r 48k -d 100ms -n "$name" gen:sine | meter -y --plot p.png >/dev/null
		"$PYTHON" "$PYTHONPATH/png.py" size p.png >/dev/null
	done
}

several()
{
	make_wav a.wav 48000 2 s16 4800
	make_wav b.wav 44100 1 s16 4410
	capture a.wav b.wav | meter --plot p.png >/dev/null
	[ -s p.png ] && [ -s p-001.png ]
	capture a.wav b.wav | meter --plot 'track-%t-%n.png' >/dev/null
	[ -s track-1-a.png ] && [ -s track-2-b.png ]
	meter --plot 'in-%i.png' a.wav b.wav >/dev/null
	[ -s in-001.png ] && [ -s in-002.png ]
	same in-001.png track-1-a.png
	capture a.wav b.wav | meter -t 2 --plot one.png >/dev/null
	[ -s one.png ] && [ ! -e one-001.png ]
	expect_status 1 meter --plot - --report r a.wav b.wav >x.png 2>err
	one_line err "takes one picture"
	"$PYTHON" "$PYTHONPATH/png.py" size x.png >/dev/null
	expect_status 2 meter --plot 'p-%Q.png' a.wav 2>err
	one_line err "'%Q' is no conversion"
}

file_manners()
{
	make_wav a.wav 48000 2 s16 4800
	echo mine >p.png
	expect_status 1 meter --plot p.png a.wav >out 2>err
	one_line err 'p\.png.*exists'
	empty out
	eq "$(cat p.png)" mine
	meter -y --plot p.png a.wav >/dev/null
	"$PYTHON" "$PYTHONPATH/png.py" size p.png >/dev/null
	expect_status 1 meter --plot no/such/p.png a.wav >out 2>err
	one_line err 'No such file'
	empty out
	expect_status 1 meter --plot /dev/full a.wav >out 2>err
	one_line err 'No space'
	contains out track
	expect_status 2 meter --plot - a.wav 2>err
	one_line err 'give --report'
	expect_status 2 meter --plot - --through a.wav 2>err
	one_line err 'carries the stream'
	# An input that cannot be read to its end leaves no picture; one that was cut has one.
	head -c 3000 /dev/urandom >noise
	expect_status 1 meter --plot n.png noise >out 2>err
	[ ! -e n.png ] && [ ! -e n.png.part ]
	capture a.wav >a.weir
	head -c 9000 a.weir >cut.weir
	expect_status 3 meter --plot cut.png cut.weir >out 2>err
	"$PYTHON" "$PYTHONPATH/png.py" size cut.png >/dev/null
	# Coded tracks are no sound yet.
	expect_status 1 meter --plot e.png <(capture -r 48k -d 1s gen:sine | encode) >out 2>err
	contains err 'no track to make a picture of'
	[ ! -e e.png ] && [ ! -e e.png.part ]
}

# It says so, before anything is measured, and without --plot nothing is missing.
without_library()
{
	mkdir lib
	echo 'no library' >lib/libcairo.so.2
	make_wav a.wav 48000 2 s16 4800
	LD_LIBRARY_PATH=$PWD/lib expect_status 1 meter --plot p.png a.wav >out 2>err
	one_line err 'libcairo.*is needed to draw'
	empty out
	[ ! -e p.png ] && [ ! -e p.png.part ]
	LD_LIBRARY_PATH=$PWD/lib meter a.wav >out
	contains out 'track 1'
}

built_without_library()
{
	local flags
	flags=$(make -s --no-print-directory -C "$TOP" CAIRO=no CC="${CC:-cc}" SAN="${SAN-}" print-ALL_CFLAGS)
	case $flags in *HAVE_CAIRO*) fail "CAIRO=no: $flags" ;; esac
	make_wav a.wav 48000 2 s16 4800
	(cd "$TOP" && eval "${CC:-cc} $flags -MF /dev/null -c -o '$OLDPWD/canvas.o' libcore/media/canvas.c")
	eval "${CC:-cc} $(make -s --no-print-directory -C "$TOP" CC="${CC:-cc}" SAN="${SAN-}" print-ALL_LDFLAGS) -o meter '$B/cmd/meter.o' canvas.o '$B/libcore.a' \
		$(make -s --no-print-directory -C "$TOP" print-LDLIBS)"
	expect_status 1 ./meter --plot p.png a.wav >out 2>err
	one_line err 'was not there when this program was built'
	./meter a.wav >out
	contains out 'track 1'
}

# The library is no cost for those who do not draw.
not_loaded()
{
	! ldd "$BIN/meter" | grep -q cairo
	have strace || skip "strace is not installed"
	make_wav a.wav 48000 2 s16 4800
	strace -f -e trace=openat -o trace meter a.wav >/dev/null || skip "strace cannot trace here"
	! grep -q cairo trace
	strace -f -e trace=openat -o trace meter --plot p.png a.wav >/dev/null
	grep -q cairo trace
}

test_case "a valid PNG of 1600 × 900, beside the report" valid_png
test_case "the same bytes each time: file, pipe, --through, standard output" same_bytes
test_case "a tone lies where the scale of frequencies says" tone_in_its_place
test_case "lost frames, pauses and silence are shaded where they are" shading
test_case "tracks and names of every kind" odd_tracks
test_case "a picture a track, with names from a pattern" several
test_case "existing files, full disks, inputs that fail" file_manners
test_case "without the library: one line, before anything is done" without_library
test_case "built without the library: one line" built_without_library
test_case "the library is loaded only to draw" not_loaded
done_testing
