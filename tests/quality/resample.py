#!/usr/bin/env python3
"""What resample does to a signal, measured: its filter, images and aliases at every hertz, and noise.

The filter is measured whole: impulses that fall on every place between two input frames give it sample by sample on the
finest grid there is, and its spectrum, in steps of 1 Hz, holds the passband, the images and the aliases of all tones.
Noise is what is left of a tone of -6 dBFS, f32 in and out, when that tone is taken away.  A sweep, tones at every hertz
(one in fifty at a time), looks at what comes out as a listener would: nothing may be where there was no tone.

usage: resample.py [--mdoc] [--check] [--quality Q]... [--pair FROM,TO]...      resample must be in PATH
"""
import argparse
import math
import struct
import subprocess
import sys

import numpy as np

PAIRS = [(44100, 48000), (48000, 44100), (48000, 96000), (192000, 44100)]
QUALITIES = ["quick", "low", "medium", "high", "very-high"]

# What --check asks for: ripple of the passband in dB, rejection in dB, noise in dBFS.
ASKED = {"low": (0.1, 100, -119), "medium": (0.1, 100, -119), "high": (0.01, 125, -140), "very-high": (0.01, 175, -155)}


def resample(samples, from_hz, to_hz, quality, wide=True, phase="linear"):
    """Mono float samples (rounded to f32) through the program; f64 (wide) or f32 comes back, as doubles."""
    raw = np.asarray(samples, "<f4").tobytes()
    head = b"RIFF" + struct.pack("<I", 36 + len(raw)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 3, 1, from_hz, from_hz * 4, 4, 32)
    p = subprocess.run(["resample", "-r", str(to_hz), "-q", quality, "--phase", phase, "-f", "f64" if wide else "f32", "-"],
                       input=head + b"data" + struct.pack("<I", len(raw)) + raw, stdout=subprocess.PIPE, check=True)
    d, at, parts = p.stdout, 0, []
    while at < len(d):
        n, hunits = struct.unpack_from("<I", d, at + 8)[0], d[at + 15]
        start = at + 64 * hunits
        if d[at + 5] == 3:
            parts.append(d[start:start + n])
        at = start + (n + 63) // 64 * 64
    return np.frombuffer(b"".join(parts), "<f8" if wide else "<f4").astype(float)


def response(from_hz, to_hz, quality):
    """The filter's gain at 0, 1, 2 ... Hz, up to half of its own grid's rate."""
    common = math.gcd(from_hz, to_hz)
    in_step, out_step = from_hz // common, to_hz // common
    reach = 300 * max(1, in_step // out_step + 1)  # input frames; no recipe's filter is longer
    spacing = -(-2 * reach // in_step) * in_step + 1
    x = np.zeros((in_step + 1) * spacing)
    places = spacing // 2 + spacing * np.arange(in_step)
    x[places] = 0.5
    y = resample(x, from_hz, to_hz, quality)
    grid_hz = from_hz * out_step
    h = np.zeros(grid_hz)
    half = reach * out_step // in_step
    for n in places:
        first = n * out_step // in_step
        k = np.arange(first - half, first + half + 1)
        h[k * in_step - n * out_step] = 2 * y[k]
    return np.abs(np.fft.rfft(h)) / out_step


def db(x):
    return 20 * np.log10(np.maximum(x, 1e-20))


def filter_figures(from_hz, to_hz, quality):
    gain = db(response(from_hz, to_hz, quality))
    nyquist = min(from_hz, to_hz) // 2
    ends = np.nonzero(np.abs(gain[:nyquist]) > 0.1)[0]
    flat = int(ends[0]) if len(ends) else nyquist
    within = int(flat * 0.95)
    below_3 = np.nonzero(gain < -3)[0]
    minus_3 = int(below_3[0]) if len(below_3) else len(gain)
    return {
        "flat": flat, "ripple": float(np.ptp(gain[:within])), "minus_3": minus_3,
        # Of images and aliases: of all that lies beyond half the lower rate; and of those of tones that are in the passband.
        "rejection": float(-gain[nyquist:].max()),
        "image": float(-gain[min(from_hz, to_hz) - flat:].max()),
    }


def noise(from_hz, to_hz, quality, hz):
    x = 0.5 * np.sin(2 * np.pi * hz / from_hz * np.arange(2 * from_hz))
    y = resample(x, from_hz, to_hz, quality, wide=False)
    k = np.arange(len(y))[to_hz // 2:to_hz // 2 * 3]
    m = np.stack([np.sin(2 * np.pi * hz / to_hz * k), np.cos(2 * np.pi * hz / to_hz * k)], 1)
    rest = y[k] - m @ np.linalg.lstsq(m, y[k], rcond=None)[0]
    return float(db(np.sqrt((rest ** 2).mean())))


def sweep(from_hz, to_hz, quality, flat):
    """Tones at every hertz of the passband, and, above what the new rate holds, of the rest.
    Returns: the loudest thing that was in no tone's place, against a tone, in dB."""
    rng = np.random.default_rng(1)
    worst = -999.0
    step = 50
    window = np.arange(2 * from_hz)
    above = range(to_hz // 2, from_hz // 2) if to_hz < from_hz else range(0)
    for tones in (range(1, flat), above):
        for first in range(step if len(tones) else 0):
            hz = np.array(tones[first::step])
            spectrum = np.zeros(from_hz // 2 + 1, complex)
            spectrum[hz] = np.exp(2j * np.pi * rng.random(len(hz)))
            second = np.fft.irfft(spectrum, from_hz)
            second *= 0.5 / np.abs(second).max()
            level = np.abs(np.fft.rfft(second))[hz[0]] / from_hz
            y = resample(second[window % from_hz], from_hz, to_hz, quality)
            out = np.abs(np.fft.rfft(y[to_hz // 2:to_hz // 2 + to_hz])) / to_hz
            if tones is not above:
                out[hz] = 0
            worst = max(worst, float(db(out.max() / level)))
    return worst


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--mdoc", action="store_true", help="rows for the page")
    ap.add_argument("--check", action="store_true", help="exit 1 if a figure is worse than it must be")
    ap.add_argument("--sweep", action="store_true", help="the sweep, too (slow)")
    ap.add_argument("--quality", action="append")
    ap.add_argument("--pair", action="append", type=lambda s: tuple(map(int, s.split(","))))
    args = ap.parse_args()
    failed = False
    if not args.mdoc:
        print("%-14s %-10s %8s %10s %8s %9s %9s %8s %8s %8s" % (
            "rates", "quality", "flat Hz", "ripple dB", "-3 dB", "rejection", "images", "997 Hz", "high", "sweep"))
    for from_hz, to_hz in args.pair or PAIRS:
        for quality in args.quality or QUALITIES:
            f = filter_figures(from_hz, to_hz, quality)
            low, high_hz = noise(from_hz, to_hz, quality, 997), int(0.9 * f["flat"]) // 10 * 10 + 7
            high = noise(from_hz, to_hz, quality, high_hz)
            swept = sweep(from_hz, to_hz, quality, int(0.999 * f["flat"])) if args.sweep else None
            if args.mdoc:
                print(".It %g to %g Ta %s Ta %d Ta %.3f Ta %.0f Ta %.0f Ta %.0f" % (
                    from_hz / 1000, to_hz / 1000, quality, f["flat"], f["ripple"], f["image"], low, high))
            else:
                print("%6d %6d  %-10s %8d %10.5f %8d %9.1f %9.1f %8.1f %8.1f %8s" % (
                    from_hz, to_hz, quality, f["flat"], f["ripple"], f["minus_3"], f["rejection"], f["image"], low, high,
                    "" if swept is None else "%.1f" % swept))
            sys.stdout.flush()
            if args.check and quality in ASKED:
                ripple, rejection, floor = ASKED[quality]
                bad = [w for w, b in (("ripple", f["ripple"] > ripple), ("images", f["image"] < rejection),
                                      ("noise", max(low, high) > floor),
                                      ("sweep", swept is not None and swept > -min(rejection, 125))) if b]
                if bad:
                    print("%d to %d, %s: falls short: %s" % (from_hz, to_hz, quality, ", ".join(bad)))
                    failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
