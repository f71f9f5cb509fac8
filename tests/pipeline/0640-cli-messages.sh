#!/bin/bash
# What the tools say to somebody who is new to them: slips on the command line, inputs that are something else, clipping,
# losses and their places, and one line of progress in a pipeline.
. "$(dirname "$0")/../lib.sh"

# says STATUS REGEX CMD…: one line on standard error that matches; standard output is thrown away.
says()
{
	local wanted=$1 regex=$2
	shift 2
	expect_status "$wanted" "$@" </dev/null >/dev/null 2>err
	one_line err "$regex"
}

# ---- options ----

near_misses()
{
	says 2 '^encode: --bitrte: .*did you mean --bitrate\?' encode --bitrte 96k
	says 2 '^encode: --birtate: .*did you mean --bitrate\?' encode --birtate=96k
	says 2 '^encode: --bit: .*did you mean --bitrate\?' encode --bit 96k
	says 2 '^meter: --verbos: .*did you mean --verbose\?' meter --verbos
	says 2 '^capture: --durations: .*did you mean --duration\?' capture --durations 3s
	# What nothing comes near to gets no advice, however long it is.
	says 2 '^encode: --zzz: is not an option \(--help lists them\)$' encode --zzz
	says 2 '^encode: --x: is not an option \(--help' encode --x
	says 2 '^encode: --a{70}: is not an option \(--help' encode "--$(printf 'a%.0s' {1..200})"
}

output_option()
{
	local t
	for t in capture encode decode mix; do
		says 2 "^$t: -o: .*weir mux -o FILE makes a file of the stream" "$t" -o x.wav
		says 2 "^$t: -ox.wav: .*weir mux -o FILE makes a file of the stream" "$t" -ox.wav
		says 2 "^$t: --output: .*weir mux -o FILE makes a file of the stream" "$t" --output=x.wav
	done
	says 2 "^inspect: -o: .*stdout" inspect -o x
	# There it is for pictures.
	capture gen:silence -d 0.1 >a.weir
	says 1 "^demux: x.wav: no track of raw video.*weir mux -o FILE makes a file of audio" demux -o x.wav a.weir
	[ ! -e x.wav ]
}

units_left_out()
{
	says 2 "^encode: -b: '96' .*is 96k meant\?$" encode -b 96
	grep -q 'from 500 to' err
	says 2 "^encode: -b: '0' .*bit/s$" encode -b 0
	says 2 "^encode: -b: '9G' .*bit/s$" encode -b 9G
	make_wav a.wav 44100 2 s16 4410
	says 2 '^capture: -r: 48 Hz .*is 48k meant\?' capture -r 48 a.wav
	says 2 "^resample: -r: '48' .*is 48k meant\?" resample -r 48 a.wav
	says 2 "^mix: -r: '48' .*is 48k meant\?" mix -r 48 a.wav
	says 2 '^capture: -r: 44 Hz .*is 44k meant\?' capture -r 44 -
	# Slow signals are made and read as they are.
	capture -r 100 -d 1s gen:sine:freq=5 >slow.weir
	eq "$(inspect --json slow.weir | json - 'd["summary"]["frames"]["1"]')" 100
	head -c 200 /dev/zero | capture -r 100 -c 1 -f s16 raw:- | inspect >/dev/null
	capture -r 1k a.wav | inspect >/dev/null
}

generator_parameters()
{
	says 2 "^capture: gen:noise:brown: 'brown' is not white, pink or KEY=VALUE" capture gen:noise:brown
	says 2 "^capture: gen:sine:quiet: 'quiet' is not KEY=VALUE" capture gen:sine:quiet
	says 2 "^capture: gen:sine:level=-20: level='-20' .*is -20dB meant\?" capture gen:sine:level=-20
	says 2 "^capture: gen:sine:level=-300dB: .* from -200 to 40 dB$" capture gen:sine:level=-300dB
}

fec_needs_time()
{
	capture -d 1s -c 1 gen:noise >a.weir
	says 2 '^encode: --fec: .*10ms or more.*5ms' encode --fec --frame 5ms a.weir
	says 2 '^encode: --fec: .*2\.5ms' encode --frame 2.5ms --fec a.weir
	encode --fec --frame 10ms a.weir >/dev/null
	encode --frame 5ms a.weir >/dev/null
}

# ---- inputs ----

# Sources that are capture's: no other tool waits for them or takes them for empty files.
sources_of_capture()
{
	local t s
	for t in encode decode demux inspect meter mix mux; do
		for s in gen:sine raw:x.raw pulse: jack:system; do
			status_of timeout 20 "$t" $([ "$t" != mux ] || echo -o x.wav) "$s" >out 2>err
			eq "$status" 2 "$t $s"
			one_line err "^$t: $s: is for capture.*weir capture $s"
			empty out
		done
	done
	[ ! -e x.wav ] && [ ! -e x.wav.part ]
	# A file that is called so is one.
	capture -d 0.1s gen:sine >gen:sine
	inspect --verify gen:sine >/dev/null
}

# song.m4a, or any bytes.
unknown_content()
{
	local t
	"$PYTHON" -c '
import random
r = random.Random(3)
open("any.bin", "wb").write(bytes(r.randrange(256) for _ in range(5000)))
open("song.m4a", "wb").write(b"\0\0\0\x1cftypM4A \0\0\2\0M4A isomiso2" + bytes(r.randrange(256) for _ in range(20000)))'
	for t in capture encode decode demux inspect meter mix mux; do
		for f in any.bin song.m4a; do
			says 1 "^$t: $f: is in no audio format known here.*ffmpeg -i FILE" "$t" $([ "$t" != mux ] || echo -o x.wav) $f
			grep -qF 'raw:FILE with -r, -c and -f' err
			[ "$t" != capture ] || continue
			status_of "$t" $([ "$t" != mux ] || echo -o x.wav) <$f >out 2>err
			eq "$status" 1
			one_line err "^$t: <stdin>: is in no audio format known here"
			# Through a pipe, too.
			status_of "$t" $([ "$t" != mux ] || echo -o x.wav) < <(cat $f) >out 2>err
			eq "$status" 1
			one_line err "^$t: <stdin>: is in no audio format known here"
		done
	done
	status_of capture - <any.bin >out 2>err
	one_line err "^capture: <stdin>: is in no audio format known here"
	empty out
	# Damage at the beginning that is longer than what is looked at: still a stream.
	capture -d 1s gen:count >a.weir
	{ head -c 9000 any.bin any.bin -q; cat a.weir; } >late.weir
	status_of inspect --verify late.weir >out 2>err
	eq "$status" 3
	empty err
}

one_name()
{
	local t
	for t in encode demux meter; do
		status_of "$t" <&- >out 2>err
		one_line err "^$t: <stdin>: "
	done
	status_of capture - <&- >out 2>err
	one_line err "^capture: <stdin>: "
	status_of encode --help >/dev/full 2>err
	one_line err "^encode: <stdout>: "
	status_of capture -d 1s gen:sine >/dev/full 2>err
	one_line err "^capture: <stdout>: "
}

# ---- losses ----

flac_losses()
{
	have flac || skip "flac is not installed"
	make_wav a.wav 44100 2 s16 100000
	flac -s -o a.flac a.wav
	"$PYTHON" - <<'PY'
b = open("a.flac", "rb").read()
n = len(b)
open("less.flac", "wb").write(b[:n // 4] + b[n // 4 + 30000:])
open("both.flac", "wb").write(b[:n // 4] + b[n // 4 + 30000:3 * n // 4])
PY
	says 3 '^capture: less\.flac: damaged: [0-9]+ frames lost in 1 place, from frame [0-9]+ \([0-9.]+ s\) on$' capture less.flac
	capture less.flac 2>/dev/null >less.weir || :
	# The place that is said is the place of the hole.
	inspect --json less.weir >lines || :
	hole=$("$PYTHON" -c '
import json
for l in open("lines"):
    d = json.loads(l)
    if d.get("type") == "GAP":
        print(d["pos"], "%.3f" % (d["pos"] / 44100)); break')
	contains err "from frame ${hole% *} (${hole#* } s) on"
	says 3 '^capture: both\.flac: cut short: [0-9]+ of 100000 frames are there; damaged: [0-9]+ frames lost in 1 place, from frame [0-9]+' \
		capture both.flac
}

opus_losses()
{
	capture -d 10s -c 2 gen:noise | encode | mux -o a.opus
	head -c 100000 a.opus >cut.opus
	says 3 '^capture: cut\.opus: .*ends in the middle of a page, after frame [0-9]+ \([0-9.]+ s\)' capture cut.opus
	frame=$(sed 's/.*after frame \([0-9]*\) .*/\1/' err)
	capture cut.opus 2>/dev/null >cut.weir || :
	inspect --json cut.weir >lines || :
	eq "$(json lines 'd["summary"]["frames"]["1"]')" "$frame"
	says 3 "^demux: cut\.opus: .*after frame $frame " demux cut.opus
}

# A stream whose maker lost something, not one that was cut.
words_for_damage()
{
	capture -d 4s gen:noise | encode | mux -o a.opus
	"$PYTHON" -c '
b = bytearray(open("a.opus", "rb").read())
b[len(b) // 2] ^= 0x10
open("bad.opus", "wb").write(b)'
	demux bad.opus >bad.weir 2>/dev/null || :
	status_of decode bad.weir >out.weir 2>err
	eq "$status" 3
	grep -q 'damaged or cut short before it came here' err
	status_of inspect out.weir >said
	grep -q 'damaged or cut short before it came here' said
	capture -d 0.05s gen:count >one.weir
	inspect one.weir >said
	tail -1 said | grep -q ': 5 packets, 1 track, track 1: 2400 frames, 0 gaps, 0 frames lost, 0 bytes damaged: whole'
	inspect bad.weir >said || :
	tail -1 said | grep -q ', 1 gap, '
}

nothing_behind_start()
{
	make_wav a.wav 48000 1 s16 4800
	expect_status 0 capture --start 100 a.wav >out.weir 2>err
	one_line err '^capture: a\.wav: ends before --start \(100 s\): nothing is left$'
	expect_status 0 capture --start 4800smp - <a.wav >out.weir 2>err
	one_line err '^capture: <stdin>: ends before --start \(frame 4800\)'
	expect_status 0 capture --start 4799smp a.wav >out.weir 2>err
	empty err
	# Nothing was asked for.
	expect_status 0 capture -d 0 --start 1smp a.wav >out.weir 2>err
	empty err
}

# ---- clipping ----

# loud.wav: f32, so many samples over full scale.
loud()
{
	"$PYTHON" - "$@" <<'PY'
import struct, sys
import numpy as np
over = int(sys.argv[1])
x = np.full((4800, 2), 0.25, "<f4")
x.reshape(-1)[100:100 + over] = 1.5
raw = x.tobytes()
head = struct.pack("<HHIIHH", 3, 2, 48000, 48000 * 8, 8, 32)
open("loud.wav", "wb").write(b"RIFF" + struct.pack("<I", 36 + len(raw)) + b"WAVEfmt " + struct.pack("<I", 16) + head + b"data" +
                             struct.pack("<I", len(raw)) + raw)
PY
}

capture_clips()
{
	local f
	loud 77
	for f in s16 s24 s32; do
		expect_status 0 capture -f $f loud.wav >out.weir 2>err
		one_line err '^capture: loud\.wav: 77 samples clipped: '
		capture -q -f $f loud.wav >out.weir 2>err
		empty err
	done
	capture -f s16 -q --stats=60 loud.wav 2>err >/dev/null
	eq "$(json err 'd["clipped_samples"]')" 77
	# Of channels and rates that change on the way, too.
	expect_status 0 capture -f s16 -c 4 loud.wav >out.weir 2>err
	one_line err '^capture: loud\.wav: 77 samples clipped'
	expect_status 0 capture -f s16 -r 96k loud.wav >out.weir 2>err
	one_line err '^capture: loud\.wav: [0-9]+ samples clipped'
	capture loud.wav >out.weir 2>err
	empty err
	capture -r 96k loud.wav >out.weir 2>err
	empty err
	loud 0
	capture -f s16 --stats=60 loud.wav 2>err >/dev/null
	one_line err
	eq "$(json err 'd["clipped_samples"]')" 0
}

decode_clips()
{
	loud 4000
	encode loud.wav >a.weir
	expect_status 0 decode -f s16 a.weir >out.weir 2>err
	one_line err '^decode: track 1: [0-9]+ samples clipped: '
	n=$(sed 's/.*: \([0-9]*\) samples.*/\1/' err)
	decode -q -f s16 --stats=60 a.weir 2>err >/dev/null
	one_line err
	eq "$(json err 'd["clipped_samples"]')" "$n"
	decode a.weir >out.weir 2>err
	empty err
}

# ---- on a terminal ----

# Of a pipeline the last tool shows where it is, and what it says stands on a line of its own.
one_line_of_progress()
{
	"$PYTHON" - "$TOP/tests/pipeline" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
from terminal import Terminal

t = Terminal("capture --realtime -r 48k gen:sine | encode | mux -v -o x.opus", 80, 24)
t.wait(lambda t: any("mux: 0:0" in l for l in t.lines()))
t.stop()
screen = [l for l in t.lines() if l]
assert "capture: 0:" not in t.raw and "encode: 0:" not in t.raw, t.raw
assert screen and all(l.startswith("mux: ") for l in screen), screen
assert any(l.startswith("mux: x.opus: ") for l in screen), screen
assert not any("x, " in l or l.endswith("x") for l in screen), screen

# A message in the middle of the work: nothing stands before it, nor behind it.
t = Terminal("capture --realtime -d 1.2s gen:count | head -c 300000 | decode", 80, 24)
t.wait(lambda t: any("decode: 0:0" in l for l in t.lines()))
while t.read(10):
    pass
screen = [l for l in t.lines() if l]
assert len(screen) == 1 and screen[0].startswith("decode: <stdin>: "), screen
PY
}

# A word with a colon that is no file was meant as a source.
sources_that_are_none()
{
	expect_status 1 capture mic: 2>err >out
	one_line err "^capture: mic:: No such file or directory; sources of sound: pulse: pipewire: jack: alsa:, and gen: raw:\$"
	expect_status 1 capture line-in:1 2>err >out
	one_line err "sources of sound: "
	expect_status 1 capture ./mic: 2>err >out
	one_line err "No such file or directory\$"
	expect_status 1 capture no.wav 2>err >out
	one_line err "No such file or directory\$"
}

test_case "options: what may have been meant" near_misses
test_case "a source that is none: which there are" sources_that_are_none
test_case "-o where there is none: who makes files" output_option
test_case "a k that was left out" units_left_out
test_case "generators: white or pink, and dB" generator_parameters
test_case "--fec with packets that are too short" fec_needs_time
test_case "generators, raw samples and devices are for capture" sources_of_capture
test_case "what nothing here knows is said the same way by every tool" unknown_content
test_case "<stdin> and <stdout> are the names of standard input and output" one_name
test_case "FLAC: losses are said with their place" flac_losses
test_case "Opus: an end in the middle of a page is said with its time" opus_losses
test_case "a stream with a hole was damaged, not cut; one is not many" words_for_damage
test_case "capture --start behind the end says so" nothing_behind_start
test_case "capture says how many samples clipped" capture_clips
test_case "decode says how many samples clipped" decode_clips
test_case "progress: one line, of the last tool" one_line_of_progress
done_testing
