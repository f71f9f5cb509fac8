#!/bin/bash
# meter --compare: offsets, losses and errors are found to the frame.
. "$(dirname "$0")/../lib.sh"

# drop_data N IN OUT: a weir stream without its Nth DATA packet, counted from 0.
drop_data()
{
	"$PYTHON" - "$@" <<'PY'
import struct, sys
n, data, out, at = int(sys.argv[1]), open(sys.argv[2], "rb").read(), open(sys.argv[3], "wb"), 0
while at < len(data):
    size = 64 * data[at + 15] + (struct.unpack_from("<I", data, at + 8)[0] + 63) // 64 * 64
    if data[at + 5] != 3 or n != 0:
        out.write(data[at : at + size])
    n -= data[at + 5] == 3
    at += size
PY
}

# shifted FRAMES IN OUT: a s16 stereo WAV whose audio comes FRAMES later (or, below 0, earlier), of the same length.
shifted()
{
	"$PYTHON" - "$@" <<'PY'
import sys
n, data = int(sys.argv[1]), open(sys.argv[2], "rb").read()
head, body = data[:44], data[44:]
body = bytes(4 * n) + body[: len(body) - 4 * n] if n >= 0 else body[-4 * n :] + bytes(-4 * n)
open(sys.argv[3], "wb").write(head + body)
PY
}

compare()
{
	meter --json --compare "$2" "$1" | json - "d['tracks'][0]['compare']$3"
}

identical()
{
	local format
	for format in s16 s24 s32 f32; do
		make_wav a.wav 48000 2 $format 100001
		cp a.wav b.wav
		eq "$(compare a.wav b.wav '["identical"]')" true
		capture a.wav | meter --json --compare b.wav >c.json
		eq "$(json c.json 'd["tracks"][0]["compare"]')" '{"frames_offset": 0, "frames_missing": 0, "frames_extra": 0, "frames_compared": 100001, "snr_db": null, "max_abs_error": 0.0, "identical": true}'
	done
	# The same samples in a wider format are the same.
	make_wav a.wav 48000 2 s16 48000
	capture -f f32 a.wav >b.weir
	eq "$(compare b.weir a.wav '["identical"]')" true
}

offsets()
{
	local n
	make_wav a.wav 48000 2 s16 200000
	for n in 1 -1 312 -312 47999 -48000; do
		shifted "$n" a.wav b.wav
		meter --json --compare a.wav b.wav >c.json
		eq "$(json c.json 'd["tracks"][0]["compare"]["frames_offset"]')" "$n"
		eq "$(json c.json 'd["tracks"][0]["compare"]["frames_missing"]')" "${n#-}"
		eq "$(json c.json 'd["tracks"][0]["compare"]["identical"]')" false
	done
}

missing()
{
	make_wav a.wav 48000 2 s16 200000
	capture --block 1000 a.wav >a.weir
	drop_data 7 a.weir b.weir
	drop_data 150 b.weir c.weir
	meter --json --compare a.wav c.weir >c.json || eq $? 3
	eq "$(json c.json '[d["tracks"][0][k] for k in ("gaps", "lost_frames", "frames")]')" '[2, 2000, 198000]'
	eq "$(json c.json '[d["tracks"][0]["compare"][k] for k in ("frames_offset", "frames_missing", "snr_db", "max_abs_error", "identical")]')" \
		'[0, 2000, null, 0.0, false]'
	# A shorter track lacks its end.
	capture -d 1s a.wav | meter --json --compare a.wav >c.json
	eq "$(json c.json 'd["tracks"][0]["compare"]["frames_missing"]')" 152000
}

# Tones that die away are like themselves half a second later; a hole does not make that the best place.
decaying()
{
	"$PYTHON" - <<'PY'
import numpy as np
t = np.arange(200000) / 48000
x = 0.4 * np.exp(-t / 0.8) * (np.sin(2 * np.pi * 220 * t) + np.sin(2 * np.pi * 262 * t))
open("a.raw", "wb").write(np.round(x * 32767).astype("<i2").tobytes())
PY
	capture -r 48k -c 1 -f s16 --block 4096 raw:a.raw >a.weir
	local n
	for n in 0 2 10; do
		drop_data $n a.weir b.weir
		meter --json --compare a.weir b.weir >c.json 2>err || eq $? 3
		eq "$(json c.json '[d["tracks"][0]["compare"][k] for k in ("frames_offset", "frames_missing", "frames_extra", "snr_db")]')" '[0, 4096, 0, null]' "packet $n lost"
	done
}

error_measured()
{
	make_wav a.wav 48000 1 f32 100000 1
	"$PYTHON" - <<'PY'
import numpy as np
data = open("a.wav", "rb").read()
x = np.frombuffer(data[44:], "<f4").astype("f8")
e = np.random.default_rng(2).uniform(-0.001, 0.001, len(x))
e[5000] = 0.125
y = (x + e).astype("<f4")
open("b.wav", "wb").write(data[:44] + y.tobytes())
d = y.astype("f8") - x
print(10 * np.log10((x ** 2).sum() / (d ** 2).sum()), abs(d).max(), file=open("wanted", "w"))
PY
	read -r snr most <wanted
	meter --json --compare a.wav b.wav >c.json
	near "$(json c.json 'd["tracks"][0]["compare"]["snr_db"]')" "$snr" 1e-6
	near "$(json c.json 'd["tracks"][0]["compare"]["max_abs_error"]')" "$most" 1e-9
	meter --compare a.wav b.wav >c.txt
	grep -qE 'compare +offset \+0 frames, 0 missing, 0 extra, SNR [0-9.]+ dB, largest error 0\.125' c.txt
	expect_status 1 meter --compare a.wav --fail-above 'snr_db<90' b.wav >out 2>err
	one_line err 'snr_db is'
}

# Track by track, where the reference has several.
several_tracks()
{
	make_wav a.wav 48000 2 s16 48000 1
	make_wav b.wav 44100 1 s16 44100 2
	capture a.wav b.wav >ab.weir
	eq "$(meter --json --compare ab.weir ab.weir | json - '[t["compare"]["identical"] for t in d["tracks"]]')" '[true, true]'
}

cannot_compare()
{
	make_wav a.wav 48000 2 s16 48000
	make_wav b.wav 44100 2 s16 48000
	make_wav c.wav 48000 1 s16 48000
	expect_status 1 meter --compare b.wav a.wav 2>err >out
	one_line err 'has 2 channels at 44100 Hz, track 1 has 2 at 48000 Hz: they cannot be compared; weir capture -r 48k b\.wav makes them alike$'
	capture -r 48k b.wav | meter --json --compare - a.wav 2>/dev/null && fail "standard input as the reference"
	capture -r 48k b.wav >b.weir
	meter --compare b.weir a.wav >out
	capture b.wav >b44.weir
	expect_status 1 meter --compare b44.weir a.wav 2>err >out
	one_line err 'compared; weir resample -r 48k b44\.weir makes them alike$'
	resample -r 48k b44.weir >b.weir
	meter --compare b.weir a.wav >out
	capture c.wav >c.weir
	expect_status 1 meter --compare c.weir a.wav 2>err >out
	one_line err 'they cannot be compared$'
	expect_status 1 meter --compare c.wav a.wav 2>err >out
	one_line err 'has 1 channel at 48000 Hz, track 1 has 2 at .*; weir capture -c 2 c\.wav makes them alike$'
	expect_status 1 meter --compare none.wav a.wav 2>err >out
	one_line err 'none\.wav'
	expect_status 2 meter --compare - a.wav 2>err >out
	one_line err 'compare'
}

test_case "the same samples are identical, in every format" identical
test_case "offsets up to a second either way" offsets
test_case "lost packets and a lost end are missing frames" missing
test_case "a hole in what decays is a hole, and no offset" decaying
test_case "SNR and the largest error" error_measured
test_case "track by track" several_tracks
test_case "other rates and channel counts are refused" cannot_compare
done_testing
