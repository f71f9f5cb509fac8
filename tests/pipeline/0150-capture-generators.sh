# Generators make what they say, at any rate, channel count and format, whatever the block.
. "$(dirname "$0")/../lib.sh"

pcm() # STREAM RAW
{
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" pcm "$1" 1 "$2" >/dev/null
}

counts()
{
	for format in s16 s24 s32 f32; do
		for args in "-r 8000 -c 1" "-r 48000 -c 2" "-r 192000 -c 7" "-r 44100 -c 32"; do
			capture $args -f $format -d 100ms gen:count >a.weir
			inspect --verify a.weir >said
			contains said "every sample right"
		done
	done
}

any_block()
{
	for spec in sine:freq=997,level=-3dB noise:white,seed=5 noise:pink sweep:from=50,to=5000,time=50ms impulse:every=7ms silence ident count; do
		capture -d 100ms gen:$spec >a.weir
		capture -d 100ms --block 13 gen:$spec >b.weir
		pcm a.weir a.raw
		pcm b.weir b.raw
		same a.raw b.raw "$spec"
		# and from any place on
		capture --start 1001smp -d 1000smp gen:$spec >c.weir
		pcm c.weir c.raw
		[[ $spec == sweep* ]] || same c.raw <(dd if=a.raw iflag=skip_bytes,count_bytes skip=8008 count=8000 status=none) "$spec from the middle"
	done
}

tones()
{
	capture -c 6 -d 1s gen:ident >a.weir
	pcm a.weir ident.raw
	capture -c 1 -d 10s gen:noise:pink,level=-20dB >a.weir
	pcm a.weir pink.raw
	capture -c 1 -d 1s gen:sine:freq=997,level=0.5 >a.weir
	pcm a.weir sine.raw
	capture -c 1 -d 2s gen:sweep:from=100,to=10000 >a.weir
	pcm a.weir sweep.raw
	"$PYTHON" - <<'PY'
import numpy as np
x = np.fromfile("ident.raw", "<f4").reshape(-1, 6)
found = [int(np.argmax(np.abs(np.fft.rfft(x[:, c])))) for c in range(6)]
assert found == [200, 300, 400, 500, 600, 700], found
x = np.fromfile("pink.raw", "<f4").astype(float)
s, f = np.abs(np.fft.rfft(x)) ** 2, np.fft.rfftfreq(len(x), 1 / 48000)
octaves = [10 * np.log10(s[(f >= lo) & (f < 2 * lo)].sum()) for lo in (62.5, 125, 250, 500, 1000, 2000, 4000, 8000)]
assert max(octaves) - min(octaves) < 2, octaves
assert abs(10 * np.log10((x ** 2).mean()) + 20) < 1
x = np.fromfile("sine.raw", "<f4").astype(float)
assert abs(np.abs(x).max() - 0.5) < 1e-4 and np.argmax(np.abs(np.fft.rfft(x))) == 997
x = np.fromfile("sweep.raw", "<f4").astype(float)
assert len(x) == 96000
# half-way through an exponential sweep stands the geometric mean: 1 kHz
part = x[48000 - 2400:48000 + 2400] * np.hanning(4800)
assert abs(np.argmax(np.abs(np.fft.rfft(part))) * 10 - 1000) < 60
PY
}

endless()
{
	set +o pipefail
	for spec in sine noise:white noise:pink impulse silence ident count; do
		capture gen:$spec 2>log | head -c 3000000 >/dev/null
		eq "${PIPESTATUS[0]}" 141 "$spec goes on"
		empty log
	done
	# the sweep has an end of its own
	set -o pipefail
	eq "$(capture gen:sweep:time=1.5s | inspect --json | json - 'd["summary"]["frames"]["1"]')" 72000
	eq "$(capture -d 1s gen:sweep | inspect --json | json - 'd["summary"]["frames"]["1"]')" 48000
}

test_case "gen:count is right in every format" counts
test_case "the same samples in any block and from any place" any_block
test_case "tones, noise and sweep are what they should be" tones
test_case "generators go on until somebody ends them" endless
done_testing
