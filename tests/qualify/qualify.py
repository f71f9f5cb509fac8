#!/usr/bin/env python3
"""The qualification: many channels of sound beside raw pictures through capture, mux and demux, measured.

  qualify.py [options] BUILD

Arms, one after the other: sound alone, pictures alone, both, pictures alone, sound alone.  Prints a report, writes it as Markdown
(--report) and as JSON (--json); the raw numbers of each arm lie in --artefacts, with their SHA-256 sums in the report.  Exit status 1
when a goal was missed: of speed and waits only in arms beside which nothing else kept the machine busy, of losses in any.
"""
import argparse
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024
CORES = os.cpu_count()


# ---- watching processes ----

def cpu_ticks(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def rss_kib(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * PAGE_KIB


def switches(pid):
    with open(f"/proc/{pid}/status") as f:
        return sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)


def busy_ticks():
    """Of the whole machine: all but idle and waiting."""
    with open("/proc/stat") as f:
        t = [int(x) for x in f.readline().split()[1:9]]
    return sum(t) - t[3] - t[4], t[7]


QUIET_PCT = 15  # of a core, for everybody else: more than that and waits are those of the machine


class Watch(threading.Thread):
    """Samples each process once a second: memory, processor time, switches."""

    def __init__(self, processes):
        super().__init__(daemon=True)
        self.processes, self.samples, self.ending = processes, {n: [] for n in processes}, threading.Event()

    def run(self):
        begin = time.monotonic()
        while not self.ending.wait(max(0.0, 1.0 - (time.monotonic() - begin) % 1.0)):
            now = time.monotonic()
            for name, p in self.processes.items():
                try:
                    self.samples[name].append((now - begin, rss_kib(p.pid), cpu_ticks(p.pid), switches(p.pid)))
                except (OSError, IndexError):
                    pass

    def result(self):
        out = {}
        for name, s in self.samples.items():
            s = [x for x in s if x[1] > 0]
            if len(s) < 2:
                continue
            span = s[-1][0] - s[0][0]
            # The first fifth, or ten seconds, is for what is touched once.
            settled = [x for x in s if x[0] >= min(10.0, 0.2 * s[-1][0])]
            out[name] = {
                "cpu_pct": round(100 * (s[-1][2] - s[0][2]) / TICKS / span, 2), "rss_max_kib": max(x[1] for x in s), "rss_last_kib": s[-1][1],
                "rss_slope_kib_per_min": round(slope([(x[0] / 60, x[1]) for x in settled]), 3), "switches_per_s": round((s[-1][3] - s[0][3]) / span),
            }
        return out


def slope(points):
    """The median of the slopes between all pairs (Theil, Sen): a page touched late is a step, and no trend."""
    points = points[:: max(1, len(points) // 300)]
    slopes = sorted((b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(points) for b in points[i + 1:])
    return slopes[len(slopes) // 2] if slopes else 0.0


# ---- an arm ----

class Run:
    def __init__(self, args, folder, name):
        self.args, self.folder, self.name = args, folder, name
        self.bin, self.load = os.path.join(args.build, "bin"), os.path.join(args.build, "tests", "qualify", "load")
        self.processes = {}
        self.frame_bytes = args.width * args.height * 4
        self.files = []

    def path(self, what):
        p = os.path.join(self.folder, f"{self.name}-{what}")
        self.files.append(p)
        return p

    def start(self, name, argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=()):
        p = subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=open(self.path(name + ".log"), "wb"), pass_fds=pass_fds)
        self.processes[name] = p
        return p

    def tool(self, name, *argv, **kw):
        stats = ["--stats=1", "--stats-file", self.path(name + "-stats.jsonl")]
        return self.start(name, [os.path.join(self.bin, name), *argv, *stats], **kw)

    def go(self, seconds, sound, pictures):
        a = self.args
        tmp = tempfile.mkdtemp(prefix="weir-qualify.")
        fifo_in, fifo_out = os.path.join(tmp, "in"), os.path.join(tmp, "out")
        os.mkfifo(fifo_in)
        os.mkfifo(fifo_out)
        r1, w1 = os.pipe()   # samples
        r2, w2 = os.pipe()   # capture to mux
        r3, w3 = os.pipe()   # mux to demux
        r4, w4 = os.pipe()   # demux to the listener
        rb, wb = os.pipe()   # bulk
        audio_report, video_report = self.path("sound.json"), self.path("pictures.json")
        bulk = pictures and a.transport == "bulk"
        mux = ["--live", "--video", f"{fifo_in},{a.width}x{a.height},rgba,{a.fps}"] if pictures else []
        demux = ["--video" if sound else "-o", fifo_out] if pictures else []
        if bulk:
            mux += ["--bulk-fd", str(wb)]
            demux += ["--bulk-fd", str(rb)]
        before, stolen = busy_ticks()
        load_before = os.getloadavg()[0]
        begin = time.monotonic()
        if pictures:
            self.start("frames-in", [self.load, "frames-in", fifo_out, str(self.frame_bytes)], stdout=open(video_report, "wb"))
        if sound:
            self.start("audio-in", [self.load, "audio-in", str(a.channels), str(a.rate), str(a.block)], stdin=r4, stdout=open(audio_report, "wb"))
        self.tool("demux", *demux, stdin=r3, stdout=w4 if sound else subprocess.DEVNULL, pass_fds=(rb,) if bulk else ())
        self.tool("mux", *mux, stdin=r2 if sound else subprocess.DEVNULL, stdout=w3, pass_fds=(wb,) if bulk else ())
        if sound:
            self.tool("capture", "-r", str(a.rate), "-c", str(a.channels), "-f", "f32", "--block", str(a.block), "raw:-", stdin=r1, stdout=w2)
            self.start("audio-out", [self.load, "audio-out", str(a.channels), str(a.rate), str(a.block), str(seconds)], stdout=w1)
        if pictures:
            self.start("frames-out", [self.load, "frames-out", fifo_in, str(self.frame_bytes), str(a.fps), str(seconds)],
                       stdout=open(self.path("frames-out.json"), "wb"))
        for fd in (r1, w1, r2, w2, r3, w3, r4, w4, rb, wb):
            os.close(fd)
        watch = Watch(self.processes)
        watch.start()
        limit = time.monotonic() + seconds + 30
        statuses = {}
        for name, p in self.processes.items():
            try:
                statuses[name] = p.wait(max(1, limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
                statuses[name] = "did not end"
        watch.ending.set()
        watch.join()
        wall = time.monotonic() - begin
        after, stolen_after = busy_ticks()
        shutil.rmtree(tmp)
        result = {"arm": self.name, "seconds": seconds, "statuses": statuses, "processes": watch.result(), "load_before": load_before}
        used = sum(r["cpu_pct"] for r in result["processes"].values())
        result["machine_busy_pct"] = round(100 * (after - before) / TICKS / wall, 1)
        result["others_pct"] = round(max(0.0, result["machine_busy_pct"] - used * seconds / wall), 1)
        result["is_quiet"] = result["others_pct"] <= QUIET_PCT
        ends = [n for n in result["processes"] if "-" in n]
        result["ends_cpu_pct"] = round(sum(result["processes"].pop(n)["cpu_pct"] for n in ends), 1)
        result["stolen_pct"] = round(100 * (stolen_after - stolen) / TICKS / wall, 2)
        if sound:
            result["sound"] = json.load(open(audio_report))
            result["sound"].update(json.loads(open(self.path("audio-out.log")).read().splitlines()[-1]))
            result["sound"]["dropped_frames"] = result["sound"]["frames_sent"] - result["sound"]["frames"]
        if pictures:
            result["pictures"] = json.load(open(video_report))
            result["pictures"].update(json.load(open(self.path("frames-out.json"))))
            stats = [json.loads(line) for line in open(self.path("mux-stats.jsonl"))]
            result["pictures"]["said_dropped"] = stats[-1]["video_dropped"]
        return result


# ---- goals ----

def goals(arm, args):
    """(what, value, good, holds on a busy machine too)"""
    out = []
    s, v = arm.get("sound"), arm.get("pictures")
    # A rate is known no better than its ends: 5 ms, a third of a picture, which counts in a short arm only.
    fps_off = max(0.01, args.fps * 0.005 / arm["seconds"])
    if v:
        out += [
            ("unique frames a second", v["unique_per_s"], v["unique_per_s"] >= args.fps - fps_off, False),
            ("seconds under 59", v["seconds_under_59"], v["seconds_under_59"] == 0, False),
            ("seconds under 50", v["seconds_under_50"], v["seconds_under_50"] == 0, False),
            ("frames damaged or repeated", v["bad_frames"] + v["repeated_frames"], v["bad_frames"] + v["repeated_frames"] == 0, True),
            # A frame that is not there is one that mux said it dropped.
            ("frames missing that nobody counted", v["frames_sent"] - v["unique_frames"] - v["said_dropped"],
             v["frames_sent"] - v["unique_frames"] == v["said_dropped"], True),
        ]
    if s:
        out += [
            ("audio frames dropped", s["dropped_frames"], s["dropped_frames"] == 0, True),
            ("audio samples damaged", s["bad_frames"], s["bad_frames"] == 0, True),
            ("continuity", s["continuity"], s["continuity"] == 1.0, True),
            ("discontinuities", s["discontinuities"], s["discontinuities"] == 0, True),
            ("audio wait median, ms", s["wait_median_ms"], s["wait_median_ms"] <= 0.4, False),
            ("audio wait p95, ms", s["wait_p95_ms"], s["wait_p95_ms"] <= 1.0, False),
        ]
    for name, p in arm["processes"].items():
        out.append((f"{name}: RSS, KiB", p["rss_max_kib"], p["rss_max_kib"] <= 12288, False))
        # What is touched for the first time makes a slope of any short run.
        if arm["seconds"] >= 60:
            out.append((f"{name}: RSS slope, KiB/min", p["rss_slope_kib_per_min"], abs(p["rss_slope_kib_per_min"]) < 0.5, False))
    return out


def machine():
    model = "unknown"
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return f"{CORES} × {model}, Linux {platform.release()}"


# ---- the report ----

def report(results, args, sums):
    out = ["# Qualification", "",
           f"{args.channels} channels × {args.rate} Hz f32 in blocks of {args.block} frames, beside {args.width}×{args.height} RGBA at {args.fps:g} a second "
           f"({args.width * args.height * 4 * args.fps / 1e6:.1f} MB/s), through `capture | mux --live --video | demux --video`"
           + (", the pictures in a pipe of their own (`--bulk-fd`)." if args.transport == "bulk" else "."), "",
           f"Machine: {machine()}. Taken {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC by `tests/qualify/qualify.py`.", "",
           "A wait is from the write of a block of samples before `capture` to its read behind `demux`: three programs and four pipes. Frames are counted when "
           "their number is new and the sum over their bytes is right. Processor times are percents of one core. The slope of "
           "the memory is the median of those between all pairs of samples.", "",
           "| | " + " | ".join(r["arm"] for r in results) + " |", "|---|" + "---|" * len(results)]

    def row(title, get):
        cells = []
        for r in results:
            try:
                cells.append(str(get(r)))
            except KeyError:
                cells.append("–")
        out.append(f"| {title} | " + " | ".join(cells) + " |")

    row("seconds", lambda r: f"{r['seconds']:g}")
    row("unique frames a second", lambda r: f"{r['pictures']['unique_per_s']:.3f}")
    row("frames sent, arrived, dropped by mux", lambda r: "{frames_sent}, {unique_frames}, {said_dropped}".format(**r["pictures"]))
    row("seconds under 59, under 50", lambda r: "{seconds_under_59}, {seconds_under_50}".format(**r["pictures"]))
    row("frame latency mean, max, ms", lambda r: "{latency_mean_ms:.1f}, {latency_max_ms:.1f}".format(**r["pictures"]))
    row("audio frames sent, dropped", lambda r: "{frames_sent}, {dropped_frames}".format(**r["sound"]))
    row("continuity, discontinuities", lambda r: "{continuity:.6f}, {discontinuities}".format(**r["sound"]))
    row("audio wait median, ms", lambda r: f"{r['sound']['wait_median_ms']:.3f}")
    row("audio wait p95, p99, ms", lambda r: "{wait_p95_ms:.3f}, {wait_p99_ms:.3f}".format(**r["sound"]))
    row("audio wait p99.9, max, ms", lambda r: "{wait_p999_ms:.3f}, {wait_max_ms:.3f}".format(**r["sound"]))
    for tool in ("capture", "mux", "demux"):
        row(f"{tool}: CPU %, switches/s", lambda r, t=tool: "{cpu_pct}, {switches_per_s}".format(**r["processes"][t]))
        row(f"{tool}: RSS max KiB, slope KiB/min", lambda r, t=tool: "{rss_max_kib}, {rss_slope_kib_per_min:+.2f}".format(**r["processes"][t]))
    row("the four ends, CPU %", lambda r: r["ends_cpu_pct"])
    row("machine busy, others, stolen, % of a core", lambda r: f"{r['machine_busy_pct']}, {r['others_pct']}, {r['stolen_pct']}")
    row("load before", lambda r: f"{r['load_before']:.2f}")
    missed = [(r["arm"], *g) for r in results for g in goals(r, args) if not g[2]]
    out += ["", "## Goals", ""]
    out += [f"- Missed in {arm}: {what}: {value}." for arm, what, value, _, _ in missed] or ["All were met in every arm."]
    loud = [r["arm"] for r in results if not r["is_quiet"]]
    if loud:
        out += ["", f"Others kept the machine busy by more than {QUIET_PCT} % of a core during: {', '.join(loud)}. Rates and waits are then those of the "
                "machine; losses and counts are not."]
    bad = [(r["arm"], r["statuses"]) for r in results if any(v for v in r["statuses"].values())]
    out += [""] + [f"Ended other than with 0 in {arm}: {statuses}." for arm, statuses in bad] if bad else []
    out += ["", "## Artefacts", "", "| SHA-256 | file |", "|---|---|"] + [f"| `{s}` | {f} |" for f, s in sums]
    return "\n".join(out) + "\n", missed, bad


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("build")
    ap.add_argument("--minutes", type=float, default=1.0, help="of the arm with both")
    ap.add_argument("--baseline", type=float, help="seconds of each other arm; default: a tenth of the minutes, 5 to 60 s")
    ap.add_argument("--channels", type=int, default=32)
    ap.add_argument("--rate", type=int, default=48000)
    ap.add_argument("--block", type=int, default=64)
    ap.add_argument("--width", type=int, default=1920)
    ap.add_argument("--height", type=int, default=1080)
    ap.add_argument("--fps", type=float, default=60)
    ap.add_argument("--transport", choices=("pipe", "bulk"), default="pipe")
    ap.add_argument("--arms", default="sound,pictures,both,pictures,sound")
    ap.add_argument("--report")
    ap.add_argument("--json")
    ap.add_argument("--artefacts", help="folder; default: BUILD/qualify")
    args = ap.parse_args()
    args.fps = int(args.fps) if args.fps == int(args.fps) else args.fps
    folder = args.artefacts or os.path.join(args.build, "qualify")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    baseline = args.baseline if args.baseline is not None else min(60.0, max(5.0, 6 * args.minutes))

    results, files = [], []
    names = args.arms.split(",")
    for i, kind in enumerate(names):
        name = kind + (f" {names[:i + 1].count(kind)}" if names.count(kind) > 1 else "")
        run = Run(args, folder, name.replace(" ", "-"))
        seconds = args.minutes * 60 if kind == "both" else baseline
        print(f"qualify: {name}, {seconds:g} s", file=sys.stderr, flush=True)
        r = run.go(seconds, kind != "pictures", kind != "sound")
        r["arm"] = name
        results.append(r)
        with open(run.path("result.json"), "w") as f:
            json.dump(r, f, indent=1)
        files += run.files
    sums = []
    for f in sorted(f for f in set(files) if ".json" in f):
        if os.path.exists(f) and os.path.getsize(f):
            with open(f, "rb") as src:
                sums.append((os.path.basename(f), hashlib.sha256(src.read()).hexdigest()))
    text, missed, bad = report(results, args, sums)
    print(text)
    if args.report:
        with open(args.report, "w") as f:
            f.write(text)
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"machine": machine(), "arms": results, "missed": [m[:3] for m in missed]}, f, indent=1)
    quiet = {r["arm"] for r in results if r["is_quiet"]}
    hard = [m for m in missed if m[4] or m[0] in quiet]
    for m in hard:
        print(f"qualify: {m[0]}: {m[1]}: {m[2]}", file=sys.stderr)
    crashed = bad
    sys.exit(1 if hard or crashed else 0)


main()
