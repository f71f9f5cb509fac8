# For the tests of mix: audio made by a formula, and results looked at as arrays.

# tone FILE RATE FORMAT EXPRESSION: a WAV of what a Python expression makes; n frames numbers are `k(N)`, channels in columns.
# Formats: s16 s24 f32.  np, k, sin(hz, N, rate=RATE) are there.
tone()
{
	"$PYTHON" - "$@" <<'PY'
import struct, sys
import numpy as np
path, rate, fmt, expression = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
k = lambda n: np.arange(n)
sin = lambda hz, n, rate=rate: np.sin(2 * np.pi * hz * np.arange(n) / rate)
noise = lambda n, ch=1, seed=1: np.random.default_rng(seed).uniform(-1, 1, (n, ch))
x = np.asarray(eval(expression), dtype=float)
x = x.reshape(len(x), -1)
bits = {"s16": 16, "s24": 24, "f32": 32}[fmt]
if fmt == "f32":
    raw = x.astype("<f4").tobytes()
else:
    v = np.round(x * (1 << (bits - 1))).astype("<i8").reshape(-1)
    raw = v.view(np.uint8).reshape(-1, 8)[:, : bits // 8].tobytes()
ch = x.shape[1]
block = ch * bits // 8
head = struct.pack("<HHIIHH", 3 if fmt == "f32" else 1, ch, rate, rate * block, block, bits)
with open(path, "wb") as f:
    f.write(b"RIFF" + struct.pack("<I", 28 + len(raw) + (len(raw) & 1)) + b"WAVEfmt " + struct.pack("<I", 16) + head
            + b"data" + struct.pack("<I", len(raw)) + raw + b"\0" * (len(raw) & 1))
PY
}

# holds FILE.weir… 'EXPRESSION': the audio of the streams' tracks, as arrays a[0], a[1] … of shape (frames, channels), makes the
# expression (parts joined by " and ") true.  Values of integer formats are whole numbers.  read('x.wav') reads a WAV of tone() as floats.
cat >"$TMPDIR/holds.py" <<'PY'
import struct, sys
import numpy as np
SAMPLES = {1: (2, "<i2"), 2: (3, None), 4: (4, "<i4"), 5: (4, "<f4")}

def tracks(path):
    d = open(path, "rb").read()
    at, formats, data = 0, {}, {}
    while at < len(d):
        assert d[at : at + 4] == b"WEI\xd2", (path, at)
        kind, plen, track = d[at + 5], *struct.unpack_from("<IH", d, at + 8)
        hunits, (pos, dur) = d[at + 15], struct.unpack_from("<qI", d, at + 16)
        p = d[at + 64 * hunits : at + 64 * hunits + plen]
        if kind == 2:
            formats[track] = struct.unpack_from("<HBB", p, 64)
            data.setdefault(track, [])
        elif kind == 3:
            data[track].append((pos, dur, p))
        at += 64 * hunits + (plen + 63) // 64 * 64
    out = []
    for t in sorted(data):
        ch, sample, _ = formats[t]
        size, dtype = SAMPLES[sample]
        raw = b"".join(p for _, _, p in data[t])
        for (p0, d0, _), (p1, _, _) in zip(data[t], data[t][1:]):
            assert p0 + d0 == p1, f"track {t}: a hole at {p0 + d0}"
        if dtype:
            x = np.frombuffer(raw, dtype)
        else:
            b = np.frombuffer(raw, np.uint8).reshape(-1, 3).astype(np.int32)
            x = (b[:, 0] | b[:, 1] << 8 | b[:, 2] << 16) << 8 >> 8
        out.append(x.reshape(-1, ch))
    return out

def read(path):
    d = open(path, "rb").read()
    ch, bits = struct.unpack_from("<H", d, 22)[0], struct.unpack_from("<H", d, 34)[0]
    raw = d[44 : 44 + struct.unpack_from("<I", d, 40)[0]]
    if bits == 32:
        return np.frombuffer(raw, "<f4").astype(float).reshape(-1, ch)
    if bits == 16:
        return np.frombuffer(raw, "<i2").reshape(-1, ch) / 32768
    b = np.frombuffer(raw, np.uint8).reshape(-1, 3).astype(np.int32)
    return ((b[:, 0] | b[:, 1] << 8 | b[:, 2] << 16) << 8 >> 8).reshape(-1, ch) / 8388608

db = lambda v: 20 * np.log10(v)
rms = lambda x: float(np.sqrt(np.mean(np.square(x))))
def level(x, hz, rate=48000):
    """Peak of the tone of this frequency in x."""
    w = np.hanning(len(x))
    return 2 * abs(np.sum(x * w * np.exp(-2j * np.pi * hz * np.arange(len(x)) / rate))) / np.sum(w)
a = [t for path in sys.argv[1:-1] for t in tracks(path)]
failed = False
for part in sys.argv[-1].split(" and "):
    value = eval(part)
    if not np.all(value):
        print("does not hold:", part, "->", value, "at", np.argwhere(~np.atleast_1d(value))[:4].tolist())
        failed = True
if failed:
    print("shapes", [t.shape for t in a], "first frames", [t[:4].tolist() for t in a])
sys.exit(failed)
PY

holds()
{
	"$PYTHON" "$TMPDIR/holds.py" "$@"
}
