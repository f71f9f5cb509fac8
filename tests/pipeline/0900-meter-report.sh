#!/bin/bash
# meter: values of made-up signals, reports for people and scripts, limits, passing a stream through.
. "$(dirname "$0")/../lib.sh"

# signal FILE RATE MASK PYTHON-EXPRESSION: a WAV of f32 samples; the expression gives an array of frames × channels, with
# fs, np and tone(seconds, dBFS, hz=1000) to make it of.  MASK 0 writes a plain header.
signal()
{
	"$PYTHON" - "$@" <<'PY'
import struct, sys
import numpy as np
path, fs, mask = sys.argv[1], int(sys.argv[2]), int(sys.argv[3], 0)

def tone(seconds, db, hz=1000.0):
    return 10 ** (db / 20) * np.sin(2 * np.pi * hz * np.arange(round(seconds * fs)) / fs)

def stereo(x):
    return np.stack([x, x], 1)

x = np.atleast_2d(np.asarray(eval(sys.argv[4]), dtype="<f4"))
if x.shape[0] == 1 and x.shape[1] > 64:
    x = x.T
ch = x.shape[1]
head = struct.pack("<HHIIHH", 0xFFFE if mask else 3, ch, fs, fs * ch * 4, ch * 4, 32)
if mask:
    head += struct.pack("<HHI", 22, 32, mask) + bytes.fromhex("0300000000001000800000aa00389b71")
raw = x.tobytes()
with open(path, "wb") as f:
    f.write(b"RIFF" + struct.pack("<I", 20 + len(head) + len(raw)) + b"WAVEfmt " + struct.pack("<I", len(head)) + head)
    f.write(b"data" + struct.pack("<I", len(raw)) + raw)
PY
}

tone_in_json()
{
	signal a.wav 48000 0 'stereo(tone(20, -23))'
	meter --json a.wav >a.json
	[ "$(wc -l <a.json)" = 1 ]
	eq "$(json a.json 'len(d["tracks"])')" 1
	eq "$(json a.json '[d["tracks"][0][k] for k in ("track", "rate_hz", "channels", "frames", "duration_s", "gaps", "lost_frames")]')" \
		'[1, 48000, 2, 960000, 20.0, 0, 0]'
	for key in integrated_lufs momentary_max_lufs short_term_max_lufs true_peak_dbtp sample_peak_dbfs; do
		near "$(json a.json "d['tracks'][0]['$key']")" -23 0.1 "$key"
	done
	near "$(json a.json 'd["tracks"][0]["loudness_range_lu"]')" 0 0.01
	near "$(json a.json 'd["tracks"][0]["correlation"]')" 1 1e-9
	eq "$(json a.json '[c["name"] for c in d["tracks"][0]["per_channel"]]')" '["FL", "FR"]'
	near "$(json a.json 'd["tracks"][0]["per_channel"][1]["rms_dbfs"]')" -26.01 0.01
	# The same from a stream on standard input.
	capture a.wav | meter --json >b.json
	eq "$(json b.json 'd["tracks"][0]["per_channel"]')" "$(json a.json 'd["tracks"][0]["per_channel"]')"
	eq "$(json b.json 'd["tracks"][0]["integrated_lufs"]')" "$(json a.json 'd["tracks"][0]["integrated_lufs"]')"
}

silence_is_null()
{
	local frames
	for frames in 0 1 48000; do
		signal a.wav 48000 0 "np.zeros(($frames, 2))"
		meter --json a.wav >a.json
		eq "$(json a.json '[d["tracks"][0][k] for k in ("integrated_lufs", "loudness_range_lu", "momentary_max_lufs", "short_term_max_lufs",
			"true_peak_dbtp", "sample_peak_dbfs")] if d["tracks"] else [None] * 6')" '[null, null, null, null, null, null]'
		! grep -qE 'nan|inf' a.json
		meter a.wav >a.txt
		! grep -qE '[-: ](nan|inf)' a.txt
	done
}

short_has_no_loudness()
{
	signal a.wav 48000 0 'stereo(tone(0.399, -20))'
	meter --json a.wav >a.json
	eq "$(json a.json 'd["tracks"][0]["integrated_lufs"]')" null
	near "$(json a.json 'd["tracks"][0]["sample_peak_dbfs"]')" -20 0.01
	signal a.wav 48000 0 'stereo(tone(0.4, -20))'
	meter --json a.wav >a.json
	near "$(json a.json 'd["tracks"][0]["integrated_lufs"]')" -20 0.1
}

mono_counts_once()
{
	signal a.wav 48000 0 'tone(4, -23)'
	near "$(meter --json a.wav | json - 'd["tracks"][0]["integrated_lufs"]')" -26 0.1
	near "$(meter --json --dual-mono a.wav | json - 'd["tracks"][0]["integrated_lufs"]')" -23 0.1
}

gate_drops_quiet_parts()
{
	signal a.wav 48000 0 'stereo(np.concatenate([tone(2, -36), tone(4, -23), tone(2, -36)]))'
	near "$(meter --json a.wav | json - 'd["tracks"][0]["integrated_lufs"]')" -23.29 0.1
}

surround_weights()
{
	signal a.wav 48000 0x3F 'np.stack([tone(2, d) for d in (-28, -28, -24, -10, -30, -30)], 1)'
	near "$(meter --json a.wav | json - 'd["tracks"][0]["integrated_lufs"]')" -23 0.1
	signal b.wav 48000 0x3F 'np.stack([tone(2, d) for d in (-400, -400, -400, -20, -400, -400)], 1)'
	meter --json b.wav >b.json
	eq "$(json b.json 'd["tracks"][0]["integrated_lufs"]')" null
	near "$(json b.json 'd["tracks"][0]["sample_peak_dbfs"]')" -20 0.01
	eq "$(json b.json '[c["name"] for c in d["tracks"][0]["per_channel"]]')" '["FL", "FR", "FC", "LFE", "BL", "BR"]'
}

true_peak()
{
	signal a.wav 48000 0 '0.5 * np.minimum(1, np.minimum(np.arange(9600), 9599 - np.arange(9600)) / 480) * np.sin(np.pi / 2 * np.arange(9600) + np.pi / 4)'
	meter --json a.wav >a.json
	near "$(json a.json 'd["tracks"][0]["sample_peak_dbfs"]')" -9.03 0.01
	between "$(json a.json 'd["tracks"][0]["true_peak_dbtp"]')" -6.4 -5.8
}

clipping_dc_nan()
{
	signal a.wav 48000 0 'np.array([0.25] * 100 + [1.0, 1.5, -2.0] + [0.25] * 97 + [-1.0] + [np.nan, np.inf] + [0.25] * 100)'
	meter --json a.wav >a.json
	eq "$(json a.json '[d["tracks"][0]["per_channel"][0][k] for k in ("clipped_samples", "clipped_runs", "nonfinite_samples")]')" '[4, 2, 2]'
	near "$(json a.json 'd["tracks"][0]["per_channel"][0]["sample_peak_dbfs"]')" 6.0206 0.001
	near "$(json a.json 'd["tracks"][0]["per_channel"][0]["dc_offset"]')" "$(awk 'BEGIN { print (297 * 0.25 + 1 + 1.5 - 2 - 1) / 303 }')" 1e-6
}

silence_ranges()
{
	signal a.wav 8000 0 'stereo(np.concatenate([tone(1.5, -6), np.zeros(12000), tone(1, -6), np.zeros(2000), tone(1, -70), tone(0.5, -6)]))'
	meter --json a.wav >a.json
	# The first sample of a tone is 0, too: one frame of it is still silence.
	eq "$(json a.json '[[round(r["start_s"], 2), round(r["end_s"], 2)] for r in d["tracks"][0]["silence"]]')" '[[1.5, 3.0], [4.0, 5.25]]'
	eq "$(meter --json --silence -60dB:1.3s a.wav | json - 'len(d["tracks"][0]["silence"])')" 1
	eq "$(meter --json --silence -80dB:200ms a.wav | json - 'len(d["tracks"][0]["silence"])')" 2
	eq "$(meter --json --silence off a.wav | json - 'd["tracks"][0]["silence"]')" '[]'
	meter a.wav >a.txt
	contains a.txt '0:01.500 to 0:03.000, 1.500 s'
}

for_people()
{
	signal a.wav 48000 0 'stereo(tone(4, -23))'
	meter a.wav >a.txt
	contains a.txt '48000 Hz, 2 channels, 0:04.000, 192000 frames'
	grep -qE '^  integrated +-(23\.00|22\.99) LUFS +range +0\.00 LU$' a.txt
	grep -qE '^  FR +-23\.00 +-23\.00 +-26\.01 +0\.00000 +0 +0 +0$' a.txt
}

several_inputs()
{
	signal a.wav 48000 0 'stereo(tone(1, -23))'
	signal b.wav 44100 0 'tone(1, -20)'
	meter --json a.wav b.wav >ab.json
	[ "$(wc -l <ab.json)" = 2 ]
	eq "$(json ab.json '[l["input"] for l in lines]')" '["a.wav", "b.wav"]'
	near "$(json ab.json 'd["tracks"][0]["sample_peak_dbfs"]')" -20 0.01
	# Several tracks of one stream are one report.
	capture a.wav b.wav | meter --json >t.json
	eq "$(json t.json '[t["rate_hz"] for t in d["tracks"]]')" '[48000, 44100]'
	eq "$(capture a.wav b.wav | meter --json -t 2 | json - '[t["track"] for t in d["tracks"]]')" '[2]'
}

odd_names()
{
	signal a.wav 48000 0 'tone(1, -20)'
	local name=$'x\xe9\xff"\\.wav'
	cp a.wav "$name"
	meter --json "./$name" >a.json
	"$PYTHON" -c 'import json; d = json.loads(open("a.json", encoding="utf-8").read()); assert "\ufffd" in d["input"], d["input"]'
}

interval_reports()
{
	signal a.wav 48000 0 'stereo(tone(2.5, -23))'
	meter --json --interval 1s a.wav >a.json
	eq "$(json a.json '[[l["final"], l["tracks"][0]["frames"]] for l in lines]')" '[[false, 48000], [false, 96000], [true, 120000]]'
	near "$(json a.json 'lines[1]["tracks"][0]["momentary_lufs"]')" -23 0.1
	eq "$(meter --interval 480smp a.wav | grep -c ' LUFS, true peak ')" 250
	# The same numbers at the end as without.
	meter --json a.wav >b.json
	local key
	for key in integrated_lufs momentary_max_lufs true_peak_dbtp sample_peak_dbfs frames; do
		near "$(json a.json "d['tracks'][0]['$key']")" "$(json b.json "d['tracks'][0]['$key']")" 1e-9 "$key"
	done
}

passes_through()
{
	signal a.wav 48000 0 'stereo(tone(3, -23))'
	capture a.wav -d 3s gen:count | meter --through --json 2>report.json >through.weir
	capture a.wav -d 3s gen:count >plain.weir
	inspect --verify through.weir
	eq "$(inspect --json through.weir | json - 'd["summary"]["frames"]')" "$(inspect --json plain.weir | json - 'd["summary"]["frames"]')"
	meter --compare a.wav -t 1 --json through.weir >c.json
	eq "$(json c.json 'd["tracks"][0]["compare"]["identical"]')" true
	near "$(json report.json 'd["tracks"][0]["integrated_lufs"]')" -23 0.1
	capture a.wav | meter --through --report r.txt >/dev/null 2>err
	empty err
	contains r.txt 'integrated'
}

report_files()
{
	signal a.wav 48000 0 'tone(1, -20)'
	meter --json --report r.json a.wav >out
	empty out
	eq "$(json r.json 'd["tracks"][0]["frames"]')" 48000
	cp r.json old.json
	expect_status 1 meter --json --report r.json a.wav 2>err
	one_line err 'r\.json.*exists'
	same r.json old.json
	meter --report r.json -y a.wav
	contains r.json 'track 1'
	expect_status 1 meter --report /dev/full a.wav 2>err
	one_line err 'No space'
	expect_status 1 meter a.wav 2>err >/dev/full
	one_line err 'No space'
	expect_status 1 meter --report no/such/folder a.wav 2>err
	one_line err 'No such file'
}

limits()
{
	signal a.wav 48000 0 'stereo(tone(1, -0.5))'
	meter --json --fail-above 'true_peak_dbtp>0' a.wav >out
	expect_status 1 meter --json --fail-above 'true_peak_dbtp>-1' a.wav >out 2>err
	eq "$(json out 'd["tracks"][0]["frames"]')" 48000
	one_line err 'true_peak_dbtp is -0\.[45][0-9]*, above -1$'
	expect_status 1 meter --fail-above 'integrated_lufs>-14' --fail-above 'clipped_samples>0' --fail-above 'sample_peak_dbfs>-1' a.wav >out 2>err
	[ "$(wc -l <err)" = 2 ]
	signal s.wav 48000 0 'np.zeros((48000, 2))'
	meter --fail-above 'true_peak_dbtp>-1' s.wav >out
	expect_status 1 meter --fail-above 'integrated_lufs<-30' s.wav >out 2>err
	one_line err 'minus infinity'
	expect_status 2 meter --fail-above 'loudness>1' a.wav 2>err
	one_line err 'integrated_lufs'
}

# A gate that has seen nothing does not open.
nothing_measured()
{
	signal a.wav 48000 0 'stereo(tone(1, -20))'
	capture a.wav | encode >a.opus.weir
	expect_status 1 meter --fail-above 'true_peak_dbtp>-1' a.opus.weir >out 2>err
	grep -q 'a\.opus\.weir: track 1 was not measured: no limit is known to hold' err
	expect_status 1 meter -q --fail-above 'true_peak_dbtp>-1' a.opus.weir >out 2>err
	one_line err 'track 1 was not measured'
	# Without limits that is a note, as before.
	meter a.opus.weir >out 2>err
	one_line err 'track 1.*decode it first'
	# One of two is not enough.
	capture a.wav >a.weir
	capture a.wav a.wav | encode -t 2 >both.weir
	expect_status 1 meter --fail-above 'true_peak_dbtp>-1' both.weir >out 2>err
	grep -q 'both\.weir: track 2 was not measured' err
	meter -t 1 --fail-above 'true_peak_dbtp>-1' both.weir >out
	# No track at all: none of that name, or none in the input.
	expect_status 1 meter -t nobody --fail-above 'true_peak_dbtp>-1' a.weir >out 2>err
	one_line err 'a\.weir: nothing was measured: no limit is known to hold'
	expect_status 1 meter --json -t audio,nobody a.weir >out 2>err
	one_line err '^meter: nobody: no such track in the input'
	eq "$(json out '[t["track"] for t in d["tracks"]]')" '[1]'
	# A track without a frame.
	capture -r 48k -d 0 gen:sine >none.weir 2>/dev/null
	expect_status 1 meter --fail-above 'true_peak_dbtp>-1' none.weir >out 2>err
	one_line err 'nothing was measured'
	expect_status 1 sh -c 'capture -r 48k -d 0 gen:sine 2>/dev/null | meter --through --fail-above "true_peak_dbtp>-1" 2>err >out'
	# What is not measured by the options that are given.
	expect_status 2 meter --levels-only --fail-above 'integrated_lufs>-14' a.wav 2>err
	one_line err 'integrated_lufs>-14.*not measured with --levels-only'
	expect_status 2 meter --levels-only --fail-above 'true_peak_dbtp>-1' a.wav 2>err
	one_line err 'not measured with --levels-only'
	meter --levels-only --fail-above 'sample_peak_dbfs>-1' a.wav >out
	expect_status 2 meter --fail-above 'snr_db<40' a.wav 2>err
	one_line err 'snr_db<40.*only measured with --compare'
}

# An input that cannot be read does not keep the others from being looked at.
goes_on()
{
	signal a.wav 48000 0 'tone(1, -20)'
	signal b.wav 48000 0 'tone(1, -30)'
	printf 'no audio at all' >c.wav
	expect_status 1 meter --json a.wav missing.wav c.wav b.wav >out 2>err
	eq "$(json out '[l["input"] for l in lines]')" '["a.wav", "b.wav"]'
	[ "$(wc -l <err)" = 2 ] || fail "$(cat err)"
	grep -q 'missing\.wav: No such file' err
	grep -q 'c\.wav' err
	# Cut and missing: the worse one counts, wherever it is.
	capture a.wav >a.weir
	head -c 100000 a.weir >cut.weir
	expect_status 1 meter --json missing.wav cut.weir b.wav >out 2>err
	eq "$(json out '[l["input"] for l in lines]')" '["cut.weir", "b.wav"]'
	expect_status 1 meter --json cut.weir missing.wav >out 2>err
	expect_status 3 meter --json cut.weir b.wav >out 2>err
	# The report in a file holds what could be read; of nothing there is none.
	expect_status 1 meter --json --report r.json missing.wav b.wav 2>err
	eq "$(json r.json '[l["input"] for l in lines]')" '["b.wav"]'
	expect_status 1 meter --json --report n.json missing.wav 2>err
	[ ! -e n.json ] || fail "a report of nothing"
	# What cannot be written ends it.
	expect_status 1 meter a.wav b.wav 2>err >/dev/full
	one_line err 'No space'
	# A limit is still looked at.
	expect_status 1 meter --fail-above 'sample_peak_dbfs>-25' missing.wav a.wav b.wav >out 2>err
	[ "$(grep -c 'sample_peak_dbfs is' err)" = 1 ] || fail "$(cat err)"
}

wrong_usage()
{
	signal a.wav 48000 0 'tone(1, -20)'
	expect_status 2 meter --silence loud a.wav 2>err
	one_line err 'loud'
	expect_status 2 meter --silence -60dB:0 a.wav 2>err
	one_line err "'0'"
	expect_status 2 meter --through a.wav a.wav 2>err
	one_line err 'through'
	expect_status 2 meter --interval 0 a.wav 2>err
	one_line err 'interval'
	local name
	for name in p.jpg p.JPEG p.svg 'p-%t.pdf' p.wav; do
		expect_status 2 meter --plot "$name" a.wav 2>err >out
		one_line err 'a picture is PNG: name it .*\.png'
		empty out
		[ ! -e "$name" ] || fail "$name was made"
	done
	expect_status 1 meter none.wav 2>err
	one_line err 'none\.wav.*No such file'
	head -c 1000 /dev/urandom >noise
	expect_status 1 meter noise 2>err
	one_line err 'noise'
}

cut_input()
{
	signal a.wav 48000 0 'tone(2, -20)'
	capture a.wav >a.weir
	head -c 200000 a.weir >cut.weir
	expect_status 3 meter --json cut.weir >out 2>err
	one_line err 'cut\.weir'
	between "$(json out 'd["tracks"][0]["frames"]')" 20000 60000
}

allocs_stand_still()
{
	local counts
	[ "$(capture gen:sine -d 1s | meter --stats=10 2>&1 >/dev/null | json - 'd["allocs"]')" != 0 ] || skip "the sanitizer has its own allocator"
	counts=$(for d in 1 60; do
		capture -c 16 --block 1024 -d ${d}s gen:noise | meter --json --stats=100 2>&1 >/dev/null | json - 'd["allocs"]'
	done | sort -u | wc -l)
	eq "$counts" 1 "heap allocations for 50 and 2800 packets are the same number"
}

test_case "a tone's values in JSON, from a file and from a stream" tone_in_json
test_case "silence and an empty file give null, no inf, no nan" silence_is_null
test_case "loudness begins at 400 ms" short_has_no_loudness
test_case "mono counts once, with --dual-mono twice" mono_counts_once
test_case "the relative gate drops the quiet parts" gate_drops_quiet_parts
test_case "surround channels weigh 1.41, the LFE nothing" surround_weights
test_case "a true peak between the samples is found" true_peak
test_case "clipping in samples and rows, DC, NaN and infinities" clipping_dc_nan
test_case "ranges of silence, by level and length" silence_ranges
test_case "text for people" for_people
test_case "several inputs, several tracks, a choice of them" several_inputs
test_case "a name that is no UTF-8 is valid in JSON" odd_names
test_case "--interval reports on the frame, the last is final" interval_reports
test_case "--through passes the stream unchanged" passes_through
test_case "--report: a new file, an old one, a full disk" report_files
test_case "--fail-above: exit 1, the value and the limit in words" limits
test_case "--fail-above fails where nothing was measured" nothing_measured
test_case "an input that is missing or is no audio: the others are measured, exit 1" goes_on
test_case "wrong usage: one line, exit 2; no input: exit 1" wrong_usage
test_case "a cut stream is measured as far as it goes, exit 3" cut_input
test_case "nothing is allocated on the way" allocs_stand_still

# Packets of messages are no audio, whatever their track was before.
other_kinds()
{
	local bytes
	for bytes in 10 960; do
		"$PYTHON" "$TOP/tests/pipeline/weirfile.py" make a.weir track:1:1:1:48000:1:1:0 data:1:0:480:10 track:1:3:32:48000:0:0:0 \
			data:1:4800:1073741824:1:64:$bytes data:1:1073746624:480:1:0:960 end:0
		meter --json a.weir >out
		eq "$(json out '[t["frames"] for t in d["tracks"]]')" '[4800]'
	done
}
test_case "a track that becomes one of messages" other_kinds
done_testing
