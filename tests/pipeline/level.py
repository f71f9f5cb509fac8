"""Recording on level, frame by frame, apart from the library.

	level.py make OUT.wav RATE CHANNELS s16|s24|f32 SECONDS SEED    quiet noise with louder bursts in it
	level.py takes RAW CHANNELS FORMAT START_DB STOP_DB HOLD PREROLL [FIRST]
		the takes that there should be, in frames: "BEGIN END", one a line
"""
import struct
import sys

import numpy as np

BYTES = {"s16": 2, "s24": 3, "f32": 4}


def samples(path, fmt):
    raw = np.fromfile(path, np.uint8)
    if fmt == "s16":
        return raw.view("<i2") / 2.0**15
    if fmt == "f32":
        return raw.view("<f4").astype(float)
    b = raw.reshape(-1, 3)
    padded = np.zeros((len(b), 4), np.uint8)
    padded[:, 1:] = b
    return padded.reshape(-1).view("<i4") / 2.0**31


def make(out, rate, channels, fmt, seconds, seed):
    rng = np.random.default_rng(seed)
    n = int(rate * seconds)
    x = rng.uniform(-0.001, 0.001, (n, channels))  # −60 dB
    bursts = max(3, int(seconds / 2))
    for k in range(bursts):
        begin, length = int((k + rng.uniform(0, 0.5)) * n / bursts), int(rng.integers(1, n // bursts // 2))
        level = [0.3, 0.004, 0.02][k % 3]  # −48 dB is between, the others are loud
        # In one channel only, so that all must be looked at.
        x[begin : begin + length, rng.integers(0, channels)] *= level / 0.001
    if fmt == "f32":
        raw = x.astype("<f4").tobytes()
    else:
        bits = 8 * BYTES[fmt]
        raw = np.round(x * (1 << (bits - 1))).astype("<i8").reshape(-1).view(np.uint8).reshape(-1, 8)[:, : bits // 8].tobytes()
    block = channels * BYTES[fmt]
    head = struct.pack("<HHIIHH", 3 if fmt == "f32" else 1, channels, rate, rate * block, block, 8 * BYTES[fmt])
    raw += b"\0" * (len(raw) & 1)
    with open(out, "wb") as f:
        f.write(b"RIFF" + struct.pack("<I", 36 + len(raw)) + b"WAVEfmt " + struct.pack("<I", 16) + head)
        f.write(b"data" + struct.pack("<I", n * block) + raw)


def takes(peaks, start_db, stop_db, hold, preroll, first=0):
    start, stop = np.float32(10 ** (start_db / 20)), np.float32(10 ** (stop_db / 20))
    out, floor, at, n = [], 0, 0, len(peaks)
    loud, active = np.flatnonzero(peaks > start), np.flatnonzero(peaks >= stop)
    while True:
        k = np.searchsorted(loud, at)
        if k == len(loud):
            return [(a + first, b + first) for a, b in out]
        last = loud[k]
        begin = max(floor, last - preroll)
        for a in active[np.searchsorted(active, last) :]:
            if a - last > hold:
                break
            last = a
        end = min(n, last + 1 + hold)
        out.append((int(begin), int(end)))
        floor = at = end


if __name__ == "__main__":
    what, args = sys.argv[1], sys.argv[2:]
    if what == "make":
        make(args[0], int(args[1]), int(args[2]), args[3], float(args[4]), int(args[5]))
    elif what == "takes":
        x = samples(args[0], args[2]).reshape(-1, int(args[1]))
        first = int(args[7]) if len(args) > 7 else 0
        for begin, end in takes(np.abs(x).max(axis=1), float(args[3]), float(args[4]), int(args[5]), int(args[6]), first):
            print(begin, end)
    else:
        sys.exit(__doc__)
