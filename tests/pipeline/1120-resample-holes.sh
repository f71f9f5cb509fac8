#!/bin/bash
# Whoever resamples on the way, in mix and in encode: frames behind a hole stand where they would be without it, to a part of a frame.
. "$(dirname "$0")/../lib.sh"

edit()
{
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" edit "$@"
}

# A sine at 44.1 kHz with a hole that ends at a place that is no multiple of a frame of 48 kHz.  The phase behind it is measured by a fit.
cat >"$TMPDIR/phase.py" <<'PY'
import sys
import numpy as np
path, begin, end, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
x = np.fromfile(path, "<f4").astype(float)[begin:end]
w = 2 * np.pi * 997 / 48000
t = w * np.arange(begin, begin + len(x))
a, b = np.linalg.lstsq(np.stack([np.sin(t), np.cos(t)], 1), x, rcond=None)[0]
frames = np.arctan2(b, a) / w
print("off by %.5f frames of 48 kHz, level %.4f" % (frames, np.hypot(a, b)))
assert abs(frames) < limit, frames
assert np.hypot(a, b) > 0.4
PY

make()
{
	"$PYTHON" -c '
import numpy as np
(0.5 * np.sin(2 * np.pi * 997 / 44100 * np.arange(100 + 441 * 200))).astype("<f4").tofile("s.raw")'
	capture --block 100 -r 44.1k -c 1 -f f32 raw:s.raw >small.weir
	# Packets of 100 frames: 101 to 130 are a hole, which ends at frame 13100, at 14258.50 of 48 kHz.
	edit small.weir gap.weir gap:1:101-130:2
	edit small.weir drop.weir drop:1:101-130
}

mixed()
{
	local f
	make
	for f in gap drop; do
		mix -r 48k $f.weir >m.weir || [ $? = 3 ]
		mux -o - --format raw <m.weir >m.raw || [ $? = 3 ]
		"$PYTHON" "$TMPDIR/phase.py" m.raw 2000 9000 0.0005
		"$PYTHON" "$TMPDIR/phase.py" m.raw 17000 60000 0.0005
	done
	# And so the frames are those of a stream without a hole, but near it.
	mix -r 48k small.weir | mux -o - --format raw >want.raw
	"$PYTHON" - <<'PY'
import numpy as np
a, b = np.fromfile("want.raw", "<f4"), np.fromfile("m.raw", "<f4")
assert len(a) == len(b)
d = np.abs(a - b)
assert d[:10000].max() < 1e-6 and d[15000:].max() < 1e-5, (d[:10000].max(), d[15000:].max())
assert np.abs(b[11200:14100]).max() < 1e-3
PY
}
test_case "mix: frames behind a hole stand where they belong" mixed

encoded()
{
	local f
	make
	for f in gap drop; do
		encode -b 256k --application audio $f.weir >e.weir || [ $? = 3 ]
		decode e.weir >d.weir || [ $? = 3 ]
		mux -o - --format raw <d.weir >d.raw || [ $? = 3 ]
		"$PYTHON" "$TMPDIR/phase.py" d.raw 2000 9000 0.05
		"$PYTHON" "$TMPDIR/phase.py" d.raw 19000 60000 0.05
	done
}
test_case "encode: frames behind a hole stand where they belong" encoded

# A track that goes on behind its END goes on as it was announced.
behind_the_end()
{
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" make a.weir track:1:1:1:48000:1:1:0 data:1:0:480:10 end:1 data:1:4800:480:10 end:0
	resample -r 96000 a.weir | inspect --verify >out
	contains out "track 1: 19200 frames, 0 gaps"
	encode a.weir | decode | inspect --verify >out
	contains out "track 1: 9600 frames, 0 gaps"
}
test_case "frames behind the END of their track" behind_the_end

done_testing
