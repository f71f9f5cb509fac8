#!/bin/bash
# The limiter and normalisation.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/mixlib.sh"

limiter()
{
	tone a.wav 48000 f32 '0.9*noise(96000, 2, 1)'
	tone b.wav 48000 f32 '0.9*noise(96000, 2, 2)'
	mix --limiter --stats --stats-file s.json a.wav b.wav >out.weir
	holds out.weir 'len(a[0]) == 96000'
	meter --json out.weir >m.json
	between "$(json m.json 'd["tracks"][0]["true_peak_dbtp"]')" -2 -1 "true peak"
	[ "$(json s.json 'd["limited_frames"]')" -gt 10000 ]
	mix --limiter=-6 -f s16 a.wav b.wav >out.weir
	meter --json out.weir >m.json
	between "$(json m.json 'd["tracks"][0]["true_peak_dbtp"]')" -7 -6 "true peak"
	# What is below the ceiling is not touched, and nothing is late.
	tone quiet.wav 48000 f32 '0.1*noise(30000, 2, 3)'
	mix --limiter quiet.wav >one.weir
	mix quiet.wav >two.weir
	holds one.weir two.weir 'np.array_equal(a[0], a[1])'
	# Shorter than the look-ahead.
	tone short.wav 48000 f32 'np.full(10, 2.0)'
	mix --limiter short.wav >out.weir
	holds out.weir 'len(a[0]) == 10 and a[0] < 0.9 and a[0] > 0.1'
	expect_status 2 mix --limiter=3 short.wav >out.weir 2>err
	one_line err "from -60 to 0"
}

loudness()
{
	tone a.wav 48000 f32 '0.05*np.stack([sin(997, 480000), sin(440, 480000)], 1)'
	tone b.wav 48000 s16 '0.02*noise(300000, 2)'
	local target
	for target in -23 -16LUFS -30; do
		mix --normalize $target a.wav b.wav >out.weir
		meter --json out.weir >m.json
		near "$(json m.json 'd["tracks"][0]["integrated_lufs"]')" "${target%LUFS}" 0.01 "loudness"
	done
	mix --normalize peak:-3dB a.wav b.wav >out.weir
	holds out.weir 'abs(np.max(np.abs(a[0])) - 10 ** (-3 / 20)) < 1e-6'
	mix --normalize truepeak:-3dB a.wav b.wav >out.weir
	meter --json out.weir >m.json
	near "$(json m.json 'd["tracks"][0]["true_peak_dbtp"]')" -3 0.01
	# Also where the end, the beginning or all of it is cut off at full swing: mix and meter mean the same.
	tone cut.wav 48000 f32 '0.3*sin(997, 48012)'
	tone square.wav 48000 f32 '0.3*np.sign(sin(443, 20011))'
	tone noisy.wav 44100 f32 '0.3*noise(20000, 2, 5)*np.linspace(0, 1, 20000)[:, None]'
	tone click.wav 48000 f32 'np.r_[np.zeros(997), 0.3, -0.3, 0.3]'
	tone high.wav 192000 f32 '0.3*noise(20000, 2, 7)'
	local file
	for file in cut square noisy click high; do
		mix --normalize truepeak:-1dB $file.wav >out.weir
		meter --json out.weir >m.json
		near "$(json m.json 'd["tracks"][0]["true_peak_dbtp"]')" -1 0.005 "$file"
	done
	mix --normalize peak:0.5 -f s24 a.wav >out.weir
	holds out.weir 'abs(np.max(np.abs(a[0])) - 2 ** 22) <= 2'
	# The same gain for all: the balance stays.
	mix --normalize -20 a.wav >one.weir
	mix a.wav >two.weir
	holds one.weir two.weir 'np.ptp(a[0][100:200, 0] / a[1][100:200, 0]) < 1e-5'
}

refusals()
{
	tone a.wav 48000 f32 '0.05*sin(997, 48000)'
	tone silent.wav 48000 f32 'np.zeros(48000)'
	mix --normalize -23 silent.wav >out.weir 2>err
	one_line err 'the mix is silent'
	holds out.weir 'len(a[0]) == 48000 and a[0] == 0'
	expect_status 2 mix --normalize -23 a.wav - < <(cat a.wav) >out.weir 2>err
	one_line err 'is read twice for --normalize: it must be a file'
	mix --normalize -23 - <a.wav >out.weir 2>err || fail "stdin that is a file can be read twice: $(cat err)"
	expect_status 2 mix --normalize -23 --minus a.wav >out.weir 2>err
	one_line err 'not with --minus'
	expect_status 2 mix --normalize 5 a.wav >out.weir 2>err
	one_line err "'5' is not a number from -70 to 0"
	expect_status 2 mix --normalize peak:x a.wav >out.weir 2>err
	one_line err "'x' is not a level"
}

test_case "the limiter holds true peaks, and touches nothing below" limiter
test_case "--normalize to a loudness, a peak, a true peak" loudness
test_case "what --normalize cannot do" refusals
done_testing
