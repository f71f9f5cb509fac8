#!/bin/bash
# mux -o and gaps: a hole is silence, but not one of a day that 64 bytes speak of.
. "$(dirname "$0")/../lib.sh"

# later IN OUT FIRST FRAMES [TRACK] [TOLD]: from DATA packet FIRST of each track (of TRACK) on everything is FRAMES later; with TOLD, a
# GAP says so.
later()
{
	"$PYTHON" - "$TOP/tests/pipeline" "$@" <<'PY'
import os, struct, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import weirfile
path, out, first, frames = sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
only, told = int(sys.argv[6]) if len(sys.argv) > 6 else 0, len(sys.argv) > 7
seen = {}
with open(out, "wb") as f:
    for p in weirfile.read(path):
        moves = p.track and only in (0, p.track)
        if p.type == 3 and moves:
            n = seen.get(p.track, 0)
            seen[p.track] = n + 1
            if n == first and told:
                gap = weirfile.Packet(p.head, struct.pack("<HHIQqQ", int(os.environ.get("REASON", 2)), 0, 1, 0, -(1 << 63), 0))
                gap.type, gap.flags, gap.pos, gap.dur = 4, gap.flags & 0x20, p.pos, frames
                f.write(gap.pack())
        if moves and seen.get(p.track, 0) > first:
            if p.type == 3:
                p.pos += frames
            elif p.type == 6:
                b = bytearray(p.payload)
                struct.pack_into("<q", b, 24, struct.unpack_from("<q", b, 24)[0] + frames)
                p.payload = bytes(b)
        f.write(p.pack())
PY
}

raw_of()
{
	capture "$1" | mux -o - --format raw
}

frames_of() # FILE…
{
	local f
	for f; do
		case $f in
		*.opus) demux "$f" | decode | inspect --json | json - 'd["summary"]["frames"]["1"]' ;;
		*) capture "$f" | inspect --json | json - 'd["summary"]["frames"]["1"]' ;;
		esac
	done | paste -sd' '
}

day()
{
	local told n
	capture --block 480 -d 1s -r 48000 -c 1 -f s16 gen:count >s.weir
	mux -o - --format raw <s.weir >s.raw
	for told in '' told; do
		for n in 4000000000 172800001; do
			rm -f x*
			later s.weir g.weir 50 $n 0 $told
			expect_status 3 mux -o x.wav <g.weir 2>err
			contains err "in track 1: it goes on in another file"
			eq "$(echo x*)" "x-001.wav x.wav"
			{ raw_of x.wav; raw_of x-001.wav; } | cmp - s.raw
			eq "$(frames_of x.wav x-001.wav)" "24000 24000"
		done
		# Just an hour is silence.
		if [ "$told" ]; then
			later s.weir g.weir 50 172800000 0 $told
			expect_status 3 mux -q -o h.flac <g.weir
			eq "$(frames_of h.flac)" $((48000 + 172800000))
		fi
	done
	# A pipe cannot go on in another file.
	later s.weir g.weir 50 4000000000 0 told
	expect_status 1 mux -q -o - --format raw <g.weir >out 2>err
	one_line err "^mux: <stdout>: a gap of 23:08:53.333 in track 1 is longer than --max-gap"
	cmp -n 48000 out s.raw
	eq "$(bytes_of out)" 48000
	# The last thing there is: no file for it.
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" edit s.weir e.weir gap:1:50-99:2 dur:1:0:480
	"$PYTHON" - "$TOP/tests/pipeline" <<'PY'
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import weirfile
with open("last.weir", "wb") as f:
    for p in weirfile.read("e.weir"):
        if p.type == 4:
            p.dur = 4000000000
            f.write(p.pack())
            break
        f.write(p.pack())
PY
	expect_status 3 mux -q -o l.wav <last.weir
	eq "$(echo l.* l-*) $(frames_of l.wav)" "l.wav l-* 24000"
}
test_case "64 bytes that speak of a day do not fill the disk: the file goes on in another" day

chosen()
{
	capture --block 480 -d 1s -r 48000 -c 2 -f s16 gen:count >s.weir
	mux -o - --format raw <s.weir >s.raw
	later s.weir g.weir 30 96000 0 told
	expect_status 3 mux -q -o a.wav --max-gap 2s <g.weir
	eq "$(echo a*) $(frames_of a.wav)" "a.wav 144000"
	expect_status 3 mux -q -o b.wav --max-gap 95999smp <g.weir
	eq "$(echo b*) $(frames_of b.wav b-001.wav)" "b-001.wav b.wav 14400 33600"
	# Every gap, and several in a row are one.
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" edit s.weir h.weir gap:1:10-12:1 gap:1:20-20:5
	expect_status 3 mux -q -o c.wav --max-gap 0 <h.weir
	eq "$(frames_of c.wav c-001.wav c-002.wav)" "4800 3360 37920"
	expect_status 3 mux -q -o 'd-%i.wav' --max-gap 0 --split-every 500ms <h.weir
	eq "$(frames_of d-*)" "4800 3360 24000 13920"
	expect_status 2 mux -q -o x.wav --max-gap -1 <g.weir 2>err
	one_line err "--max-gap: '-1' is not a time"
}
test_case "--max-gap says how long silence may be" chosen

opus()
{
	capture -d 2s -r 48000 -c 1 gen:noise:pink | encode -b 96k >s.weir
	decode <s.weir | mux -o - --format raw >s.raw
	later s.weir g.weir 50 4000000000 0 told
	expect_status 3 mux -q -o x.opus <g.weir
	eq "$(echo x*)" "x-001.opus x.opus"
	at=$(frames_of x.opus)
	eq "$((at + $(frames_of x-001.opus)))" 96000
	[ "$(bytes_of x.opus)" -lt 50000 ]
	demux x-001.opus | decode | mux -o - --format raw >got.raw
	"$PYTHON" - $at <<'PY'
import sys
import numpy as np
a, b = np.fromfile("s.raw", "<f4")[int(sys.argv[1]):], np.fromfile("got.raw", "<f4")
assert len(a) == len(b)
d = (a - b)[9600:]
assert np.sqrt((d * d).mean()) < 0.01 * np.sqrt((a * a).mean())
PY
}
test_case "Opus goes on in another file at the same frame" opus

sync()
{
	capture --block 480 -d 5s -r 48000 -c 1 -f s16 gen:count >a.weir
	capture --block 441 -d 3s -r 44100 -c 1 -f s16 gen:count >b.weir
	mux a.weir b.weir >ab.weir
	# One track is away for 2 s, the other is there: silence.
	later b.weir gap.weir 100 88200 1 told
	status_of mux a.weir gap.weir >one.weir
	expect_status 3 mux -q -o 'o%t.wav' --sync --max-gap 1s <one.weir
	eq "$(echo o?*.wav)" "o1.wav o2.wav"
	eq "$(frames_of o1.wav o2.wav)" "240000 220500"
	# All are away: all go on in other files, together.
	later ab.weir half.weir 100 96000 1
	later half.weir both.weir 100 88200 2
	expect_status 3 mux -q -o 'p%t.wav' --sync --max-gap 1s <both.weir
	eq "$(echo p*)" "p1-001.wav p1.wav p2-001.wav p2.wav"
	eq "$(frames_of p1.wav p2.wav p1-001.wav p2-001.wav)" "48000 44100 192000 176400"
	# Begins later than anybody has got to: no silence for that, and no end of the recording either.
	REASON=5 later ab.weir late.weir 0 4000000000 2 told
	mux -q -o 'l%t.wav' --sync <late.weir 2>err
	one_line err "track 2 begins more than --max-gap behind the others"
	eq "$(frames_of l2.wav)" 132300
}
test_case "--sync: silence for one, other files for all" sync

level()
{
	capture --block 480 -d 2s -r 48000 -c 1 -f s16 gen:noise:white >s.weir
	mux -o - --format raw <s.weir >s.raw
	later s.weir g.weir 100 4000000000 0 told
	for stop in "" "--stop-below -50dB:24h"; do
		rm -f x*
		# The hold is part of the file; what is longer is not.
		expect_status 3 mux -q -o x.flac --start-above -45dB ${stop/24h/10s} <g.weir
		eq "$(echo x*)" "x-001.flac x-002.flac"
		raw_of x-002.flac >got.raw
		if [ "$stop" ]; then
			eq "$(frames_of x-001.flac x-002.flac)" "528000 72000"
		else
			eq "$(frames_of x-001.flac x-002.flac)" "48000 48000"
			tail -c 96000 s.raw | cmp - got.raw
		fi
	done
}
test_case "recording on level: a gap ends a take, too" level

done_testing
