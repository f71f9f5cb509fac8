# mux --split-every, --split-on-clock, --sync: no frame lost or repeated at a cut, and times that are true.
. "$(dirname "$0")/../lib.sh"

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

# Every DATA packet of the track says its wall-clock: position 0 is at NS.
stamp() # IN OUT RATE NS
{
	"$PYTHON" - "$TOP/tests/pipeline" "$@" <<'PY'
import struct, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import weirfile
rate, zero = int(sys.argv[4]), int(sys.argv[5])
with open(sys.argv[3], "wb") as f:
    for p in weirfile.read(sys.argv[2]):
        if p.type == 3:
            struct.pack_into("<q", p.head, 32, zero + round(p.pos * 10**9 / rate))
        f.write(p.pack())
PY
}

pcm()
{
	local ext
	capture -d 250001smp -r 48000 -c 2 -f s16 gen:count >c.weir
	mux -o - --format raw <c.weir >want.raw
	for ext in wav flac aiff caf w64; do
		mux -q -o p.$ext --split-every 1s <c.weir
		eq "$(echo p-*.$ext)" "p-001.$ext p-002.$ext p-003.$ext p-004.$ext p-005.$ext p-006.$ext" "names"
		eq "$(frames_of p-*.$ext)" "48000 48000 48000 48000 48000 10001"
		for f in p-*.$ext; do
			capture $f | mux -o - --format raw
		done >got.raw
		same got.raw want.raw "the $ext pieces in a row"
	done
	mux -q -o 'i%i.wav' --split-every 100000smp <c.weir
	eq "$(frames_of i001.wav i002.wav i003.wav)" "100000 100000 50001"
	# A piece that would be empty is not made.
	capture -d 2s -r 48000 gen:sine | mux -q -o e.wav --split-every 1s
	eq "$(echo e-*)" "e-001.wav e-002.wav"
}
test_case "PCM is cut at the frame, and the pieces in a row are the source" pcm

opus()
{
	local frame
	for frame in 2.5ms 20ms 60ms; do
		capture -d 250001smp -r 48000 -c 1 gen:noise:pink | encode -b 128k --frame $frame >c.weir
		decode <c.weir | mux -o - --format raw >want.raw
		rm -f p-*
		mux -q -o p.opus --split-every 1s <c.weir
		eq "$(frames_of p-*.opus)" "48000 48000 48000 48000 48000 10001"
		for f in p-*.opus; do
			demux $f | decode | mux -o - --format raw
		done >got.raw
		"$PYTHON" - <<'PY'
import numpy as np
a, b = np.fromfile("want.raw", "<f4"), np.fromfile("got.raw", "<f4")
assert len(a) == len(b), (len(a), len(b))
d = a - b
rms = lambda v: float(np.sqrt((v * v).mean()))
for cut in range(48000, len(a), 48000):
    # The pre-roll has brought the decoder where it was: nothing is shifted, lost or twice.
    assert rms(d[cut:cut + 4800]) < 0.06 * rms(a[cut:cut + 4800]), (cut, rms(d[cut:cut + 4800]), rms(a[cut:cut + 4800]))
    assert rms(d[cut + 24000:cut + 48000]) < 0.001 * rms(a) if cut + 48000 <= len(a) else True
PY
		if have opusinfo; then
			for f in p-*.opus; do
				opusinfo $f >info
				! command grep -qi warning info || fail "opusinfo: $(cat info)"
			done
		fi
		if have opusdec; then
			opusdec --quiet p-002.opus p-002.wav
			eq "$(frames_of p-002.wav)" 48000
		fi
	done
	expect_status 2 mux -q -o q.opus --split-every 100ms <c.weir 2>err
	one_line err "0.25 s"
}
test_case "Opus is cut at the frame too: pre-roll is counted in the pre-skip of the next piece" opus

clock()
{
	# Two seconds before 13:00:00 UTC on 2026-01-02.
	local zero=1767358798000000000
	capture -d 5s -r 44100 -c 1 -f s16 gen:count >c.weir
	stamp c.weir s.weir 44100 $zero
	TZ=UTC mux -q -o 'rec-%Y%m%d-%H%M%S.wav' --split-every 1h --split-on-clock <s.weir
	eq "$(echo rec-*)" "rec-20260102-125958.wav rec-20260102-130000.wav"
	eq "$(frames_of rec-*)" "88200 132300"
	capture rec-20260102-130000.wav | inspect --json >/dev/null
	for f in rec-*; do
		capture $f | mux -o - --format raw
	done >got.raw
	mux -o - --format raw <c.weir >want.raw
	same got.raw want.raw
	# Every second of the clock, beginning at its half; with a clock that is not quite the rate's.
	stamp c.weir s.weir 44102 $((zero + 500000000))
	mux -q -o 'tick-%i.wav' --split-every 1s --split-on-clock <s.weir
	eq "$(frames_of tick-*)" "22051 44102 44102 44102 44102 22041"
	# Opus by the clock.
	encode <c.weir >o.weir
	stamp o.weir s.weir 48000 $zero
	mux -q -o 'o-%i.opus' --split-every 1h --split-on-clock <s.weir
	eq "$(frames_of o-*)" "96000 144000"
	expect_status 2 mux -o x.wav --split-on-clock <c.weir 2>err
	one_line err "--split-on-clock: says where --split-every cuts"
}
test_case "--split-on-clock cuts where the wall clock says, at the frame" clock

names()
{
	capture -d 3s -r 8000 gen:sine >c.weir
	# The same name for two pieces: the second gets a number.
	mux -q -o 'same-%Y.wav' --split-every 1s <c.weir
	eq "$(ls same-* | wc -l)" 3
	ls same-????.wav same-????-001.wav same-????-002.wav >/dev/null
	# A later piece steps aside for a file that is there; the first one refuses.
	echo mine >r-002.wav
	mux -q -o r.wav --split-every 1s <c.weir
	eq "$(cat r-002.wav)" mine
	eq "$(ls r-* | wc -l)" 4
	expect_status 1 mux -q -o r.wav --split-every 1s <c.weir 2>err
	one_line err "r-001.wav: exists"
	mux -q -y -o r.wav --split-every 1s <c.weir
	eq "$(frames_of r-002.wav)" 8000
	expect_status 2 mux -o - --format wav --split-every 1s <c.weir 2>err
	one_line err "--split-every"
}
test_case "names of pieces differ, and nothing is overwritten" names

sync()
{
	# The second track begins 1 s late and ends 1.5 s early; the third is at another rate.
	capture -d 4s -r 48000 -c 1 -f s16 gen:count >a.weir
	capture -d 4s -r 48000 -c 1 -f s16 gen:count >b0.weir
	capture -d 3s -r 44100 -c 1 -f s16 gen:count >c.weir
	local per
	per=$(inspect b0.weir | command grep -c '^DATA')
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" edit b0.weir b.weir gap:1:0-11:5 gap:1:30-$((per - 1)):7
	mux a.weir b.weir c.weir >all.weir
	mux -q --sync -o 's%t.wav' <all.weir
	eq "$(frames_of s1.wav s2.wav s3.wav)" "192000 192000 176400"
	# Without it each file has what its track has.
	mux -q -o 'n%t.wav' <all.weir
	eq "$(frames_of n1.wav n3.wav)" "192000 132300"
	eq "$(frames_of n2.wav)" $((192000 - 12 * 4096)) "a late start is no silence without --sync"
	"$PYTHON" - <<'PY'
import numpy as np
a, s = np.fromfile("s1.wav", "<i2")[40:], np.fromfile("s2.wav", "<i2")[40:]
n = 12 * 4096
assert (s[:n] == 0).all()
assert (s[n:30 * 4096] == a[n:30 * 4096]).all()
assert (s[30 * 4096:] == 0).all()
PY
	# Opus: by the decoder's own silence.
	capture -d 4s -r 48000 -c 1 gen:sine | encode >o.weir
	mux o.weir c.weir >oc.weir
	mux a.weir o.weir >ao.weir
	capture -d 2s -r 48000 -c 1 gen:sine | encode >short.weir
	mux o.weir short.weir | mux -q --sync -o 'o%t.opus'
	eq "$(frames_of o1.opus o2.opus)" "192000 192000"
}
test_case "--sync makes all files begin and end together" sync

# To the frame, also where they differ by one.
sync_by_a_frame()
{
	local more
	capture -d 4800smp -r 48000 -c 1 -f s16 gen:count >a.weir
	for more in 1 2; do
		capture -d $((4800 + more))smp -r 48000 -c 1 -f s16 gen:count >b.weir
		mux -q -y --sync -o "s$more-%t.wav" a.weir b.weir
		eq "$(frames_of s$more-1.wav)" $((4800 + more))
		eq "$(frames_of s$more-2.wav)" $((4800 + more))
	done
}
test_case "--sync to the frame" sync_by_a_frame

changes()
{
	capture -d 1s -r 48000 -c 2 -f s16 gen:sine >a.weir
	capture -d 1s -r 44100 -c 1 -f s16 gen:sine >b.weir
	cat a.weir a.weir b.weir | mux -o x.wav 2>err
	contains err "changes to 44100 Hz, 1 channels"
	eq "$(frames_of x.wav x-001.wav)" "96000 44100"
}
test_case "concatenated streams go on in the file; another format goes on in another file" changes

stats()
{
	capture -d 2s -r 48000 -c 1 -f s16 gen:noise:white >in.weir
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" edit in.weir g.weir gap:1:3-4:1 gap:1:8-8:4
	expect_status 3 mux -q --stats=86400 -o x.wav <g.weir 2>err
	eq "$(json err '[d["gap_frames"], d["lost_frames"], d["files"], d["clipped_samples"]]')" "[12288, 8192, 1, 0]"
	eq "$(frames_of x.wav)" 96000
	capture -d 1000smp -c 1 -f f32 gen:sine:level=+6dB | mux -q --stats=86400 -o x.flac 2>err
	[ "$(json err 'd["clipped_samples"]')" -gt 300 ]
}
test_case "silence for holes, losses, clipping and files are counted" stats

done_testing
