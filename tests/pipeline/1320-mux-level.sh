#!/bin/bash
# mux --start-above, --stop-below, --pre-roll: files begin and end at the frames where what is heard says so.
. "$(dirname "$0")/../lib.sh"

level()
{
	"$PYTHON" "$TOP/tests/pipeline/level.py" "$@"
}

edit()
{
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" edit "$@"
}

cut() # RAW FRAME_BYTES BEGIN END
{
	head -c $(($2 * $4)) "$1" | tail -c $(($2 * ($4 - $3)))
}

raw_of() # FILE [FORMAT]: samples of an audio file
{
	capture ${2:+-f $2} "$1" | mux -o - --format raw
}

# is_slice FILE RAW FRAME_BYTES "BEGIN END" FORMAT
is_slice()
{
	cut "$2" "$3" $4 >want.raw
	raw_of "$1" "$5" >got.raw
	same got.raw want.raw "$1 and frames $4"
}

exact() # RATE CHANNELS FORMAT SEED EXT
{
	local rate=$1 channels=$2 format=$3 seed=$4 ext=$5 bytes hold preroll n=0
	bytes=$(($2 * ${format:1:2} / 8))
	hold=$((rate * 7 / 10)) preroll=$((rate / 4))
	level make s.wav $rate $channels $format 12 $seed
	raw_of s.wav >s.raw
	level takes s.raw $channels $format -45 -50 $hold $preroll >takes
	cat takes
	[ "$(wc -l <takes)" -ge 2 ]
	capture s.wav | mux -q -o "t-%i.$ext" --start-above -45dB --stop-below -50dB:700ms --pre-roll 250ms
	eq "$(ls t-* | wc -l)" "$(wc -l <takes)" "files"
	while read -r take; do
		n=$((n + 1))
		is_slice "$(printf 't-%03d.%s' $n $ext)" s.raw $bytes "$take" $format
	done <takes
}
seed=3
for f in "48000 2 s16 wav" "44100 1 s24 flac" "48000 3 f32 caf" "8000 2 s16 aiff" "96000 2 f32 w64" "48000 8 s24 rf64"; do
	read -r rate channels format ext <<<"$f"
	test_case "$ext, $format, $channels ch, $rate Hz: each file is the very slice" exact $rate $channels $format $((seed++)) $ext
done

# Whatever the packets are: of 1 frame, and of many.
blocks()
{
	local block
	level make s.wav 8000 2 s16 6 7
	raw_of s.wav >s.raw
	level takes s.raw 2 s16 -45 -45 800 333 >takes
	for block in 1 7 4000; do
		rm -f t-*
		capture --block $block s.wav | mux -q -o 't.wav' --start-above -45dB --stop-below -45dB:100ms --pre-roll 333smp
		n=0
		while read -r take; do
			n=$((n + 1))
			is_slice "$(printf 't-%03d.wav' $n)" s.raw 4 "$take" s16
		done <takes
		eq "$(ls t-* | wc -l)" $n
	done
}
test_case "the length of the packets does not matter" blocks

# Levels are those of what decode gives; the packets go into the files as they are, with what a decoder needs before them.
opus() # FRAME
{
	local n=0
	level make s.wav 48000 2 s16 14 11
	capture s.wav | encode -b 128k --frame "$1" >s.weir
	decode <s.weir | mux -o - --format raw >s.raw
	level takes s.raw 2 f32 -45 -50 24000 12000 >takes
	cat takes
	[ "$(wc -l <takes)" -ge 3 ]
	mux -q -o 't-%i.opus' --start-above -45dB --stop-below -50dB:500ms --pre-roll 250ms <s.weir
	eq "$(ls t-* | wc -l)" "$(wc -l <takes)" "files"
	while read -r begin end; do
		n=$((n + 1))
		f=$(printf 't-%03d.opus' $n)
		demux $f | decode | mux -o - --format raw >got.raw
		cut s.raw 8 $begin $end >want.raw
		"$PYTHON" - $f <<'PY'
import sys
import numpy as np
a, b = np.fromfile("want.raw", "<f4"), np.fromfile("got.raw", "<f4")
assert len(a) == len(b), (sys.argv[1], len(a) // 2, len(b) // 2)
rms = lambda v: float(np.sqrt((v * v).mean()))
print(sys.argv[1], rms(a - b), rms(a))
assert rms(a - b) < 0.01 * rms(a) and rms((a - b)[4800:]) < 0.005 * rms(a)
PY
		if have opusinfo; then
			opusinfo $f >info
			! command grep -qi warning info || fail "opusinfo: $(cat info)"
		fi
	done <takes
}
for frame in 2.5ms 20ms 60ms; do
	test_case "Opus in packets of $frame: to the frame of what it decodes to" opus $frame
done

edges()
{
	# Loud from the first frame to the last: one file, all of it.
	capture -d 2s -r 48000 -c 1 -f s16 gen:noise:white >a.weir
	mux -o - --format raw <a.weir >want.raw
	mux -q -o a.wav --start-above -45dB --stop-below -50dB:1s <a.weir
	raw_of a-001.wav >got.raw
	same got.raw want.raw
	eq "$(ls a-*)" a-001.wav
	# A single sample, the last one; and without --stop-below the rest of the stream is one file.
	"$PYTHON" - <<'PY'
import numpy as np
x = np.zeros(48000, "<i2")
x[-1] = 1000
x.tofile("last.raw")
x[100] = -1000
x.tofile("both.raw")
PY
	for f in last both; do
		capture raw:- -r 48000 -c 1 -f s16 <$f.raw 2>/dev/null >$f.weir || capture -r 48000 -c 1 -f s16 raw:$f.raw >$f.weir
	done
	mux -q -o l.wav --start-above -45dB --pre-roll 10smp <last.weir
	raw_of l-001.wav >got.raw
	eq "$(od -An -v -td2 got.raw | tr -s ' \n' ' ')" " 0 0 0 0 0 0 0 0 0 0 1000 "
	mux -q -o o.wav --start-above -45dB --pre-roll 50smp <both.weir
	cut both.raw 2 50 48000 >want.raw
	raw_of o-001.wav >got.raw
	same got.raw want.raw
	eq "$(ls o-*)" o-001.wav
	mux -q -o c.wav --start-above -45dB --stop-below -45dB:1smp --pre-roll 0 <both.weir
	eq "$(raw_of c-001.wav | od -An -td2 | tr -s ' ')" " -1000 0"
	eq "$(raw_of c-002.wav | od -An -td2 | tr -s ' ')" " 1000"
	# Takes that follow each other closely: the pre-roll of one does not repeat the end of the other.
	mux -q -o n.wav --start-above -45dB --stop-below -45dB:900ms --pre-roll 60s <both.weir
	raw_of n-001.wav >1.raw
	raw_of n-002.wav >2.raw
	cat 1.raw 2.raw | cmp - both.raw
	eq "$(bytes_of 1.raw)" $((2 * (100 + 1 + 43200)))
}
test_case "the first frame, the last one, takes that touch" edges

# In one file of each: its own level, or any track's for all.
tracks()
{
	level make a.wav 48000 1 s16 12 21
	level make b.wav 48000 1 s16 12 22
	mux a.wav b.wav >ab.weir
	mux -q -o 't%t-%i.wav' --start-above -45dB --stop-below -50dB:1s --pre-roll 100ms <ab.weir
	for t in a b; do
		raw_of $t.wav >$t.raw
		level takes $t.raw 1 s16 -45 -50 48000 4800 >takes-$t
	done
	! cmp -s takes-a takes-b
	for t in 1a 2b; do
		n=0
		while read -r take; do
			n=$((n + 1))
			is_slice "$(printf 't%s-%03d.wav' ${t:0:1} $n)" ${t:1}.raw 2 "$take" s16
		done <takes-${t:1}
		eq "$(ls t${t:0:1}-* | wc -l)" $n
	done

	"$PYTHON" -c '
import numpy as np
np.stack([np.fromfile(f + ".raw", "<i2") for f in "ab"], 1).tofile("ab.raw")'
	level takes ab.raw 2 s16 -45 -50 48000 4800 >takes
	cat takes
	mux -q -o 's%t-%i.wav' --sync --start-above -45dB --stop-below -50dB:1s --pre-roll 100ms <ab.weir
	n=0
	while read -r take; do
		n=$((n + 1))
		is_slice "$(printf 's1-%03d.wav' $n)" a.raw 2 "$take" s16
		is_slice "$(printf 's2-%03d.wav' $n)" b.raw 2 "$take" s16
	done <takes
	eq "$(ls s1-* s2-* | wc -l)" $((2 * n))
}
test_case "each track by its own level; with --sync any track starts all" tracks

# A track that lags behind, one that ends early, one that says nothing: the others are not kept from their takes.
sync_apart()
{
	level make a.wav 48000 1 s16 12 31
	capture a.wav | mux -o - --format raw >a.raw
	capture a.wav >a.weir
	capture -d 1s -r 44100 -c 1 -f s16 gen:silence >short.weir
	mux a.weir short.weir | mux -q -o 's%t-%i.wav' --sync --start-above -45dB --stop-below -50dB:1s --pre-roll 100ms
	level takes a.raw 1 s16 -45 -50 48000 4800 >takes
	n=0
	while read -r begin end; do
		n=$((n + 1))
		is_slice "$(printf 's1-%03d.wav' $n)" a.raw 2 "$begin $end" s16
		raw_of "$(printf 's2-%03d.wav' $n)" >other.raw
		near $(($(bytes_of other.raw) / 2)) "$(awk "BEGIN { print ($end - $begin) * 44100 / 48000 }")" 1 "frames of the silent one"
	done <takes
	eq "$(ls s1-* s2-* | wc -l)" $((2 * n))
}
test_case "--sync: a track that has ended is silence in the files of the others" sync_apart

gaps()
{
	# Packets 3 and 4 of 512 frames are lost; the burst begins in packet 8, and the pre-roll reaches back to packet 2.
	"$PYTHON" - <<'PY'
import numpy as np
x = np.arange(1, 20001) % 100
x[8 * 512 + 100] = 9000
x.astype("<i2").tofile("s.raw")
x[3 * 512:5 * 512] = 0
x.astype("<i2").tofile("holes.raw")
PY
	capture --block 512 -r 48000 -c 1 -f s16 raw:s.raw >s.weir
	edit s.weir drop.weir drop:1:3-4
	edit s.weir gap.weir gap:1:3-4:2
	for f in drop gap; do
		expect_status 3 mux -q -o $f.wav --start-above -20dB --stop-below -20dB:100ms --pre-roll 3000smp <$f.weir
		is_slice $f-001.wav holes.raw 2 "$((8 * 512 + 100 - 3000)) $((8 * 512 + 101 + 4800))" s16
		eq "$(ls $f-*)" $f-001.wav
		# It begins in the hole.
		expect_status 3 mux -q -o in$f.wav --start-above -20dB --stop-below -20dB:100ms --pre-roll 2500smp <$f.weir
		is_slice in$f-001.wav holes.raw 2 "$((8 * 512 + 100 - 2500)) $((8 * 512 + 101 + 4800))" s16
	done
}
test_case "gaps in the pre-roll stay, as silence" gaps

split()
{
	level make s.wav 48000 1 s16 12 41
	raw_of s.wav >s.raw
	level takes s.raw 1 s16 -45 -50 48000 4800 >takes
	capture s.wav | mux -q -o 'p-%i.wav' --split-every 800ms --start-above -45dB --stop-below -50dB:1s --pre-roll 100ms
	n=0
	while read -r begin end; do
		for ((; begin < end; begin += 38400)); do
			n=$((n + 1))
			is_slice "$(printf 'p-%03d.wav' $n)" s.raw 2 "$begin $((begin + 38400 < end ? begin + 38400 : end))" s16
		done
	done <takes
	eq "$(ls p-* | wc -l)" $n
}
test_case "with --split-every each take is cut from its own beginning" split

names()
{
	# Every packet says its wall-clock: position 0 is at 2026-01-02 12:59:58 UTC; loud at 3.25 s.
	"$PYTHON" - "$TOP/tests/pipeline" <<'PY'
import subprocess, struct, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import numpy as np, weirfile
x = np.zeros(5 * 8000, "<i2")
x[26000:28000] = 5000
x.tofile("s.raw")
open("s.weir", "wb").write(subprocess.run("capture --block 100 -r 8000 -c 1 -f s16 raw:s.raw", shell=True, capture_output=True).stdout)
with open("t.weir", "wb") as f:
    for p in weirfile.read("s.weir"):
        if p.type == 3:
            struct.pack_into("<q", p.head, 32, 1767358798 * 10**9 + p.pos * 10**9 // 8000)
        f.write(p.pack())
PY
	TZ=UTC mux -o 'v-%H%M%S.flac' --start-above -45dB --stop-below -50dB:1s --pre-roll 250ms <t.weir 2>err
	eq "$(ls v-*)" v-130001.flac
	one_line err "v-130001.flac: 0:01.500 .*, from 0:03.000$"
	if have metaflac; then
		metaflac --export-tags-to=- v-130001.flac >tags
		contains tags START_POSITION=24000
		contains tags START_UTC=2026-01-02T13:00:01.000Z
	fi
	# A first name that is taken is refused before anything is recorded; later ones step aside.
	echo mine >x-001.wav
	expect_status 1 mux -q -o x.wav --start-above -45dB <s.weir 2>err
	one_line err "x-001.wav: exists"
	echo mine >y-002.wav
	cat s.weir s.weir | mux -q -o y.wav --start-above -45dB --stop-below -50dB:1s
	eq "$(cat y-002.wav)" mine
	eq "$(echo y-*)" "y-001.wav y-002.wav y-003.wav"
}
test_case "names by the time of the take, tags, and nothing is overwritten" names

nothing()
{
	capture -d 2s -r 48000 -c 2 -f s16 gen:sine:level=-60dB >q.weir
	mux -o q.wav --start-above -45dB <q.weir 2>err
	one_line err "^mux: q.wav: nothing was written: the loudest was -(59.9|60.0) dB, and nothing above -45.0 dB$"
	eq "$(echo *)" "err q.weir"
	mux -q -o q.wav --start-above -45dB <q.weir 2>err
	empty err
	capture -d 1s -r 48000 -c 2 gen:silence | mux -o q.flac --start-above -150dB 2>err
	one_line err "only silence"
	eq "$(echo *)" "err q.weir"
}
test_case "what never gets loud makes no file, and that is said" nothing

usage()
{
	capture -d 10ms gen:sine >s.weir
	wrong()
	{
		local pattern=$1
		shift
		expect_status 2 mux -q "$@" <s.weir 2>err
		one_line err "$pattern"
		eq "$(echo *)" "err s.weir"
	}
	wrong "^mux: --stop-below: '-50dB:2' belongs|--stop-below: belongs to --start-above" -o x.wav --stop-below -50dB:2
	wrong "--pre-roll: belongs to --start-above" -o x.wav --pre-roll 1s
	wrong "--stop-below: '-40dB' is above the level of --start-above, -45 dB" -o x.wav --start-above -45dB --stop-below -40dB
	wrong "--stop-below: 'x' is not a level" -o x.wav --start-above -45dB --stop-below -50dB:1s --stop-below x
	wrong "--stop-below: '0' is not a time" -o x.wav --start-above -45dB --stop-below -50dB:0
	wrong "--pre-roll: '61' is not a time" -o x.wav --start-above -45dB --pre-roll 61
	wrong "--start-above: makes several files" -o - --format wav --start-above -45dB
	wrong "--start-above: is for audio files" -o x.weir --start-above -45dB
	wrong "--start-above: is for audio files" --start-above -45dB
	# A pre-roll that would take too much memory.
	capture -d 1s -r 384k -c 64 -f f32 gen:silence >big.weir
	expect_status 1 mux -q -o x.wav --start-above -45dB --pre-roll 60s <big.weir 2>err
	one_line err "--pre-roll: track 1 would need 5[0-9]{3} MiB for it, and may have 256"
}
test_case "what does not go together is refused" usage

# Fed with a part of a take, and killed: the file is there, whole up to a second before.
killed() # EXT
{
	local pid
	mkfifo f
	capture -d 20s -r 48000 -c 2 -f s16 gen:noise:white >s.weir
	mux -o - --format raw <s.weir >s.raw
	exec 9<>f
	mux -q -o k.$1 --start-above -45dB --stop-below -50dB:1s <f &
	pid=$!
	head -c 1000000 s.weir >&9
	wait_for 5 test -s k-001.$1.part
	kept_enough() { [ "$(bytes_of k-001.$1.part)" -ge 300000 ]; }
	wait_for 5 kept_enough $1
	kill -9 $pid
	wait $pid || :
	exec 9>&-
	raw_of k-001.$1.part >got.raw
	n=$(bytes_of got.raw)
	between $n $((1000000 - 192000 - 70000)) 1000000
	cmp -n $n got.raw s.raw
}
for ext in wav flac caf; do
	test_case "kill -9 in a take: the .$ext file is valid" killed $ext
done

stopped()
{
	local pid
	mkfifo f
	capture -d 2s -r 48000 -c 2 -f s16 gen:noise:white >s.weir
	exec 9<>f
	mux -o k.wav --start-above -45dB --stop-below -50dB:1s <f 2>err &
	pid=$!
	head -c 100000 s.weir >&9
	wait_for 5 test -e k-001.wav.part
	kill -INT $pid
	wait $pid
	exec 9>&-
	contains err "k-001.wav: 0:00."
	raw_of k-001.wav >got.raw
	mux -o - --format raw <s.weir >s.raw
	[ "$(bytes_of got.raw)" -gt 50000 ]
	cmp -n "$(bytes_of got.raw)" got.raw s.raw
}
test_case "SIGINT in a take: it gets its name" stopped

changes()
{
	capture -d 1s -r 48000 -c 2 -f s16 gen:noise:white >a.weir
	capture -d 1s -r 44100 -c 1 -f s16 gen:noise:white >b.weir
	cat a.weir a.weir b.weir | mux -q -o x.wav --start-above -45dB --stop-below -50dB:1s
	eq "$(echo x-*)" "x-001.wav x-002.wav"
	eq "$(raw_of x-001.wav | wc -c) $(raw_of x-002.wav | wc -c)" "384000 88200"
	# Opus of two encoders in a row: the coding begins anew, and so does the take.
	for s in 1 2; do
		capture -d 1s -r 48000 -c 1 gen:noise:white | encode >o.weir
		cat o.weir
	done | mux -q -o y.opus --start-above -45dB --stop-below -50dB:1s
	eq "$(echo y-*)" "y-001.opus y-002.opus"
	for f in y-*; do
		eq "$(demux $f | decode | mux -o - --format raw | wc -c)" 192000
	done
}
test_case "another format, or Opus that begins anew, is another take" changes

# What the file cannot hold is said, and what was recorded before it stays.
changes_to_what_a_file_cannot_hold()
{
	capture -d 200ms -r 48000 -c 2 -f s16 gen:noise:white >a.weir
	capture -d 200ms -r 48000 -c 12 -f s16 gen:noise:white >b.weir
	cat a.weir b.weir >ab.weir
	expect_status 1 mux -q -o x.flac --start-above -45dB <ab.weir 2>err
	contains err "FLAC holds 1 to 8 channels, and track 1 has 12"
	eq "$(ls x-*)" x-001.flac
}
test_case "a track that becomes what the file cannot hold" changes_to_what_a_file_cannot_hold

# A group of one is as free as a track by itself.
changes_alone_in_a_group()
{
	capture -d 200ms -r 48000 -c 2 -f s16 gen:noise:white >a.weir
	capture -d 200ms -r 44100 -c 1 -f s16 gen:noise:white >b.weir
	cat a.weir b.weir a.weir | mux -q -o x.wav --sync --start-above -45dB --stop-below -50dB:1s
	eq "$(for f in x-*.wav; do raw_of $f | wc -c; done | paste -sd' ')" "38400 17640 38400"
}
test_case "--sync: another format of the only track is another take" changes_alone_in_a_group

# A timeline that is moved back: nothing is missing, and no silence is put at the end.
moved_back()
{
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" make s.weir track:1:1:1:48000:1:1:0 data:1:0:480:20 data:1:0:480:20:2 end:0
	mux -o want.raw s.weir 2>said
	eq "$(bytes_of want.raw)" $((2 * 19200))
	mux --start-above -100dB --pre-roll 0 -o a.wav s.weir 2>said
	raw_of a-001.wav s16 >got.raw
	same got.raw want.raw
	eq "$(ls a-*)" a-001.wav
}
test_case "a timeline that is moved back" moved_back

done_testing
