#!/usr/bin/env python3
"""Speed, side by side: each case runs ours and the peers in turn, several rounds, and prints medians and ratios.

Times of one machine mean little; ratios of one run do.  CPU is user + system of everything the command started.
usage: bench.py BUILD_DIR [--rounds N] [--minutes N] [PATTERN...]
"""
import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def programme(minutes, rate=48000):
    """Stereo material with some of everything: plucked tones, noise bursts, a slow sweep, near silence."""
    rng = np.random.default_rng(7)
    n = int(minutes * 60 * rate)
    out = np.zeros((n, 2), np.float32)
    second = rate
    for i in range(0, n, second):
        t = np.arange(min(second, n - i)) / rate
        f = 110 * 2 ** (rng.integers(0, 36) / 12)
        pluck = np.exp(-4 * t) * sum(np.sin(2 * np.pi * f * k * t) / k for k in range(1, 8)) * 0.2
        noise = rng.standard_normal(len(t)) * np.exp(-30 * (t % 0.25)) * 0.05
        sweep = 0.05 * np.sin(2 * np.pi * (200 + 4000 * (i % (20 * second)) / (20 * second)) * t)
        out[i:i + len(t), 0] = pluck + noise + sweep
        out[i:i + len(t), 1] = 0.7 * pluck + np.roll(noise, 17) - sweep
    return out


def wav(path, samples, rate, kind):
    import struct
    ch = samples.shape[1]
    if kind == "s16":
        raw, tag, bits = np.round(samples * 32767).astype("<i2").tobytes(), 1, 16
    else:
        raw, tag, bits = samples.astype("<f4").tobytes(), 3, 32
    block = ch * bits // 8
    with open(path, "wb") as f:
        f.write(b"RIFF" + struct.pack("<I", 36 + len(raw)) + b"WAVEfmt " +
                struct.pack("<IHHIIHH", 16, tag, ch, rate, rate * block, block, bits) + b"data" + struct.pack("<I", len(raw)))
        f.write(raw)


def run(command, own_figure):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    p = subprocess.run(["bash", "-c", "set -o pipefail; " + command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if p.returncode:
        sys.exit("bench: %s\n%s" % (command, p.stderr.decode(errors="replace")[-500:]))
    if own_figure:
        return float(p.stdout), wall
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


class Bench:
    def __init__(self, args):
        self.args = args
        self.failures = 0

    def wants(self, *titles):
        return not self.args.patterns or any(p in title for p in self.args.patterns for title in titles)

    def case(self, title, entries, goals=()):
        """entries: (name, command, needed program or None); the first is ours; goals: (peer, 'cpu'|'wall', most)."""
        if not self.wants(title):
            return
        entries = [e for e in entries if e[2] is None or shutil.which(e[2])]
        figures = {name: [] for name, _, _ in entries}
        for _ in range(self.args.rounds):
            for name, command, _ in entries:
                figures[name].append(run(command, name.startswith("floor")))
        ours = entries[0][0]
        print("\n%s" % title)
        print("  %-22s %9s %9s %9s %9s" % ("", "cpu s", "wall s", "cpu x", "wall x"))
        ratios = {}
        for name, _, _ in entries:
            cpu = statistics.median(c for c, _ in figures[name])
            wall = statistics.median(w for _, w in figures[name])
            rc = statistics.median(a[0] / b[0] if b[0] else 0 for a, b in zip(figures[ours], figures[name]))
            rw = statistics.median(a[1] / b[1] for a, b in zip(figures[ours], figures[name]))
            ratios[name] = {"cpu": rc, "wall": rw}
            print("  %-22s %9.3f %9.3f %9s %9s" % (name, cpu, wall, "" if name == ours else "%.3f" % rc,
                                                    "" if name == ours or name.startswith("floor") else "%.3f" % rw))
        for peer, what, most in goals:
            if peer in ratios:
                held = ratios[peer][what] <= most
                self.failures += not held
                print("  %s: %s at most %.2f x %s: %.3f" % ("held" if held else "FALLS SHORT", what, most, peer, ratios[peer][what]))
        sys.stdout.flush()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("build")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--minutes", type=float, default=10)
    ap.add_argument("patterns", nargs="*")
    args = ap.parse_intermixed_args()
    build = os.path.abspath(args.build)
    os.environ["PATH"] = build + "/bin:" + os.environ["PATH"]
    floor = build + "/tests/bench/floor"
    work = tempfile.mkdtemp(prefix="weir-bench.")
    os.chdir(work)
    try:
        print("%d rounds in turn, %g minutes of stereo at 48 kHz; 'x' is ours over theirs" % (args.rounds, args.minutes))
        samples = programme(args.minutes)
        wav("in.wav", samples, 48000, "s16")
        with open("in.s16", "wb") as f:
            f.write(np.round(samples * 32767).astype("<i2").tobytes())
        for name in ("in.wav", "in.s16"):
            with open(name, "rb") as f:  # into the page cache, as every later run finds it
                while f.read(1 << 20):
                    pass
        b = Bench(args)
        files(b, floor)
        meters(b, build)
        resampling(b, floor)
        losses(b, build)
        jitter(b, build)
        latency(b, build)
    finally:
        shutil.rmtree(work)


def files(b, floor):
    if not b.wants("Opus encode 96 kb/s 20 ms complexity 10 5 1", "Opus encode 128 kb/s 2.5 ms", "Opus decode 20 ms, float",
                   "Opus decode 2.5 ms, float", "copy WAV to WAV", "GB of 64 KiB packets through three stages", "start-up, 100 times"):
        return
    encode = "capture -q in.wav | encode -q -b 96k --complexity %d | mux -q -y -o ours.opus"
    for complexity, most in ((10, 1.05), (5, 1.08), (1, 1.08)):
        b.case("Opus encode 96 kb/s 20 ms complexity %d" % complexity, [
            ("weir", encode % complexity, None),
            ("floor opus_encode", "%s encode in.s16 2 96000 %d 960" % (floor, complexity), None),
            ("opusenc", "opusenc --quiet --bitrate 96 --comp %d in.wav theirs.opus" % complexity, "opusenc"),
            ("ffmpeg", "ffmpeg -v error -y -i in.wav -c:a libopus -b:a 96k -compression_level %d theirs.opus" % complexity, "ffmpeg"),
            ("gstreamer", "gst-launch-1.0 -q filesrc location=in.wav ! wavparse ! audioconvert ! opusenc bitrate=96000 complexity=%d"
             " ! oggmux ! filesink location=theirs.opus" % complexity, "gst-launch-1.0"),
        ], [("floor opus_encode", "cpu", most), ("opusenc", "wall", 1.0), ("ffmpeg", "wall", 1.0)])
    b.case("Opus encode 128 kb/s 2.5 ms complexity 5", [
        ("weir", "capture -q in.wav | encode -q -b 128k --frame 2.5ms --complexity 5 | mux -q -y -o ours25.opus", None),
        ("floor opus_encode", "%s encode in.s16 2 128000 5 120" % floor, None),
        ("opusenc", "opusenc --quiet --bitrate 128 --framesize 2.5 --comp 5 in.wav theirs25.opus", "opusenc"),
        ("ffmpeg", "ffmpeg -v error -y -i in.wav -c:a libopus -b:a 128k -frame_duration 2.5 -compression_level 5 theirs25.opus", "ffmpeg"),
    ], [("floor opus_encode", "cpu", 1.08), ("opusenc", "wall", 1.0), ("ffmpeg", "wall", 1.0)])
    subprocess.run(["bash", "-c", encode % 5 + "; capture -q in.wav | encode -q -b 128k --frame 2.5ms --complexity 1 | mux -q -y -o ours25.opus"],
                   check=True)
    for title, path, frame, most in (("Opus decode 20 ms, float", "ours.opus", 960, 1.15), ("Opus decode 2.5 ms, float", "ours25.opus", 120, 1.15)):
        b.case(title, [
            ("weir", "capture -q %s >/dev/null" % path, None),
            ("weir demux | decode", "demux -q %s | decode -q >/dev/null" % path, None),
            ("floor opus_decode", "%s decode in.s16 2 %d %d" % (floor, 96000 if frame == 960 else 128000, frame), None),
            ("opusdec", "opusdec --quiet --float %s theirs.wav" % path, "opusdec"),
            ("ffmpeg libopus", "ffmpeg -v error -y -c:a libopus -i %s -c:a pcm_f32le theirs.wav" % path, "ffmpeg"),
        ], [("floor opus_decode", "cpu", most)])
    b.case("copy WAV to WAV", [
        ("weir", "capture -q in.wav | mux -q -y -o ours.wav", None),
        ("sox", "sox in.wav theirs.wav", "sox"),
        ("ffmpeg", "ffmpeg -v error -y -i in.wav -c copy theirs.wav", "ffmpeg"),
    ], [("sox", "wall", 1.0), ("ffmpeg", "wall", 1.0), ("sox", "cpu", 1.0), ("ffmpeg", "cpu", 1.0)])
    subprocess.run(["bash", "-c", "capture -q --block 16384 raw:/dev/zero -r 48k -c 2 -f s16 -d 3h | mux -q -y -o big.weir"], check=True)
    size = os.path.getsize("big.weir")
    b.case("%.2f GB of 64 KiB packets through three stages" % (size / 1e9), [
        ("weir", "mux -q big.weir | demux -q | mux -q >/dev/null", None),
        ("cat", "cat big.weir | cat | cat >/dev/null", None),
    ])
    if not b.args.patterns or any("stages" in p or "64" in p for p in b.args.patterns):
        walls = []
        for _ in range(b.args.rounds):
            walls.append(run("mux -q big.weir | demux -q | mux -q >/dev/null", False)[1])
        print("  %.2f GB/s through each stage (goal 2; three stages at once on %d CPUs)" % (size / 1e9 / statistics.median(walls), os.cpu_count()))
        one = statistics.median(run("demux -q <big.weir >/dev/null", False)[1] for _ in range(b.args.rounds))
        print("  %.2f GB/s one stage alone, file to /dev/null" % (size / 1e9 / one))
    # 64 files of a minute, whatever --minutes says: shifted pieces of the programme.
    subprocess.run(["bash", "-c", "for i in $(seq 0 63); do capture -q --start $((i % 8))s -d 60s in.wav | mux -q -y -o m$i.wav; done"], check=True)
    sixty_four = " ".join("m%d.wav" % i for i in range(64))
    b.case("mix 64 stereo files of a minute", [
        ("weir", "mix -q %s >/dev/null" % sixty_four, None),
        ("sox -m", "sox -m %s theirs.wav" % sixty_four, "sox"),
        ("ffmpeg amix", "ffmpeg -v error -y %s -filter_complex amix=inputs=64:normalize=0 theirs.wav"
         % " ".join("-i m%d.wav" % i for i in range(64)), "ffmpeg"),
    ], [("sox -m", "cpu", 1 / 5), ("ffmpeg amix", "cpu", 1 / 6)])
    b.case("start-up, 100 times", [
        ("weir capture", "for i in {1..100}; do capture --version; done >/dev/null", None),
        ("weir encode", "for i in {1..100}; do encode --version; done >/dev/null", None),
        ("weir mux", "for i in {1..100}; do mux --version; done >/dev/null", None),
        ("weir meter", "for i in {1..100}; do meter --version; done >/dev/null", None),
        ("true", "for i in {1..100}; do /bin/true; done", None),
        ("sox", "for i in {1..100}; do sox --version; done >/dev/null", "sox"),
        ("opusenc", "for i in {1..100}; do opusenc --version; done >/dev/null", "opusenc"),
    ])


def meters(b, build):
    """Loudness on the programme, and on steady noise, where no block is too low to raise a true peak; levels alone; a picture."""
    if not b.wants("meter: R128 with range and true peak", "meter: the same, steady noise", "meter: peak and RMS alone",
                   "meter: R128, and a picture of waveform, loudness and spectrum", "meter: peak tick"):
        return
    rng = np.random.default_rng(8)
    n = int(b.args.minutes * 60 * 48000)
    wav("noise.wav", np.clip(rng.standard_normal((n, 2)).astype(np.float32) * 0.2, -1, 1), 48000, "s16")
    for title, path in (("R128 with range and true peak", "in.wav"), ("the same, steady noise", "noise.wav")):
        b.case("meter: " + title, [
            ("weir", "meter -q %s >/dev/null" % path, None),
            ("ffmpeg ebur128", "ffmpeg -v error -nostats -i %s -af ebur128=peak=true -f null -" % path, "ffmpeg"),
            ("loudgain", "loudgain -q %s >/dev/null" % path, "loudgain"),
        ], [("ffmpeg ebur128", "cpu", 0.125), ("loudgain", "cpu", 0.125)])
    b.case("meter: peak and RMS alone", [
        ("weir", "meter -q --levels-only --silence off in.wav >/dev/null", None),
        ("weir, all it can", "meter -q in.wav >/dev/null", None),
        ("sox -n stats", "sox in.wav -n stats 2>/dev/null", "sox"),
        ("ffmpeg astats", "ffmpeg -v error -nostats -i in.wav -af astats=measure_perchannel=Peak_level+RMS_level:measure_overall=none -f null -", "ffmpeg"),
        ("ffmpeg volumedetect", "ffmpeg -v error -nostats -i in.wav -af volumedetect -f null -", "ffmpeg"),
    ], [("sox -n stats", "cpu", 0.5), ("ffmpeg astats", "cpu", 0.2), ("ffmpeg volumedetect", "cpu", 0.5)])
    if subprocess.run(["meter", "-q", "--plot", "ours.png", "--report", "ours.txt", "in.wav"], stderr=subprocess.DEVNULL).returncode == 0:
        b.case("meter: R128, and a picture of waveform, loudness and spectrum", [
            ("weir", "meter -q -y --plot ours.png in.wav >/dev/null", None),
            ("sox, spectrum alone", "sox in.wav -n spectrogram -x 1400 -y 257 -o theirs.png", "sox"),
        ], [("sox, spectrum alone", "cpu", 1.1)])
    kernels = build + "/tests/kernels/kernels"
    if os.access(kernels, os.X_OK):
        tick = [l for l in subprocess.run([kernels, "--bench", "levels"], capture_output=True, text=True, check=True).stdout.splitlines()
                if "peak tick" in l]
        print("\nmeter: peak tick, 16 channels x 1024 frames (goal: 8 times the scalar loop)\n  %s" % "\n  ".join(tick))


def resampling(b, floor):
    """As in a file to a file, against the programs; and alone, against libsoxr on samples in memory."""
    for from_hz, to_hz, text in ((44100, 48000, "44.1 to 48"), (96000, 44100, "96 to 44.1")):
        titles = ["resample %s kHz, file to file" % text] + ["resample %s kHz, %s" % (text, q) for q in ("very-high", "high")]
        if not b.wants(*titles):
            continue
        samples = programme(b.args.minutes, from_hz)
        wav("from.wav", samples, from_hz, "s16")
        samples.astype("<f4").tofile("from.f32")
        b.case(titles[0], [
            ("weir", "resample --quiet -r %d -f s16 from.wav | mux -q -y -o ours.wav" % to_hz, None),
            ("weir, high", "resample --quiet -q high -r %d -f s16 from.wav | mux -q -y -o ours.wav" % to_hz, None),
            ("sox rate -v", "sox from.wav theirs.wav rate -v %d" % to_hz, "sox"),
            ("ffmpeg soxr 28", "ffmpeg -v error -y -i from.wav -af aresample=%d:resampler=soxr:precision=28 theirs.wav" % to_hz, "ffmpeg"),
        ], [("sox rate -v", "cpu", 0.75), ("sox rate -v", "wall", 1.0), ("ffmpeg soxr 28", "cpu", 1.0), ("ffmpeg soxr 28", "wall", 1.0)])
        for title, quality, recipe in zip(titles[1:], ("very-high", "high"), (6, 4)):
            b.case(title, [
                ("weir", "resample --quiet -q %s -r %d from.wav >/dev/null" % (quality, to_hz), None),
                ("floor soxr", "%s soxr from.f32 2 %d %d %d" % (floor, from_hz, to_hz, recipe), None),
            ], [("floor soxr", "cpu", 1.10)])
    titles = ["resample 44.1 to 48 kHz, 32 channels, " + t for t in ("very-high", "high", "two threads")]
    if not b.wants(*titles):
        return
    wide = np.tile(programme(b.args.minutes / 5, 44100), (1, 16))
    wav("wide.wav", wide, 44100, "s16")
    wide.astype("<f4").tofile("wide.f32")
    del wide
    for title, quality, recipe in zip(titles, ("very-high", "high"), (6, 4)):
        b.case(title, [
            ("weir", "resample --quiet -q %s -r 48k wide.wav >/dev/null" % quality, None),
            ("floor soxr", "%s soxr wide.f32 32 44100 48000 %d" % (floor, recipe), None),
            ("sox rate -v", "sox wide.wav -t raw -e float -b 32 - rate -v 48k >/dev/null", "sox"),
            ("ffmpeg soxr 28", "ffmpeg -v error -y -i wide.wav -af aresample=48000:resampler=soxr:precision=28 -f f32le - >/dev/null", "ffmpeg"),
        ][:2 if quality == "high" else 4], [("floor soxr", "cpu", 1.10), ("sox rate -v", "cpu", 0.75), ("ffmpeg soxr 28", "cpu", 1.0)])
    b.case(titles[2], [
        ("weir -j 2", "resample --quiet -j 2 -r 48k wide.wav >/dev/null", None),
        ("weir -j 1", "resample --quiet -r 48k wide.wav >/dev/null", None),
    ], [("weir -j 1", "wall", 1 / 1.7)])


def losses(b, build):
    """What is left of losses after RED and Reed-Solomon, beside the table they were chosen by; and what a block costs."""
    if not b.wants("losses left after RED and Reed-Solomon"):
        return
    print("\nlosses left after RED and Reed-Solomon (goal: within 20 % of the table)")
    r = subprocess.run([build + "/tests/bench/losses"], capture_output=True, text=True)
    print("  " + r.stdout.strip().replace("\n", "\n  "))
    b.failures += r.returncode != 0
    rows = subprocess.run([build + "/tests/kernels/kernels", "--bench", "galois"], capture_output=True, text=True, check=True).stdout
    print("  Reed-Solomon, 8+4 packets of 335 bytes (planned: 12400 ns by tables, 1300 ns with AVX2)")
    print("  " + "\n  ".join(l for l in rows.splitlines() if "8+4" in l))
    print("  Opus through outages of 10 ms, compared with the same packets without loss")
    r = subprocess.run(["bash", os.path.join(HERE, "outages.sh")], capture_output=True, text=True)
    print("  " + (r.stdout.strip() or "not measured: " + r.stderr.strip()[-200:]).replace("\n", "\n  "))


def jitter(b, build):
    """Depth, glitches and drift of the jitter buffer in virtual networks; in brackets what was planned."""
    if not b.wants("jitter buffer and clock drift"):
        return
    print("\njitter buffer and clock drift, in virtual time (in brackets: as planned; goal: glitches within twice the budget)")
    r = subprocess.run([build + "/tests/bench/jitter"], capture_output=True, text=True)
    print("  " + r.stdout.strip().replace("\n", "\n  "))
    b.failures += r.returncode != 0


def latency(b, build):
    """Click in to click out over loopback and JACK, beside the other programs that do that."""
    if not b.wants("latency from click to click"):
        return
    print("\nlatency from click to click (goal at 64 frames: PCM 4.5 ms, Opus 9 ms; at 128: less than any of the others)")
    for period, which in ((64, ["weir", "JackTrip"]), (128, [])):
        r = subprocess.run([sys.executable, os.path.join(HERE, "latency.py"), build, "--period", str(period), *which], capture_output=True, text=True)
        print("  " + (r.stdout.strip() or "not measured: " + r.stderr.strip()[-200:]).replace("\n", "\n  "))
        b.failures += r.returncode != 0


if __name__ == "__main__":
    main()
