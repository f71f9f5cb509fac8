"""
killed.py FORMAT STREAM N: N recordings of STREAM by `mux -o k.FORMAT` at once, fed at the pace of its audio, each killed with
SIGKILL at a random moment.  Every NAME.part must play (in ffmpeg, where that is installed, and here) and hold, exactly, the
beginning of what was recorded: at most one second of audio less than had been written to the recorder.
"""
import os
import random
import shutil
import struct
import subprocess
import sys
import time

form, stream_path, n_recordings = sys.argv[1], sys.argv[2], int(sys.argv[3])
seed = int(os.environ.get("WEIR_SEED", "0")) or random.randrange(1, 1 << 30)
random.seed(seed)
print("seed %d" % seed)
LEAST_S, MOST_S = 0.4, 3.5


def packets(stream):
    """(position of its end in frames or None, bytes) of each."""
    at = 0
    while at < len(stream):
        head = stream[at:at + 64]
        n = head[15] * 64 + (struct.unpack_from("<I", head, 8)[0] + 63) // 64 * 64
        pos, dur = struct.unpack_from("<qI", head, 16)
        yield (pos + dur if head[5] == 3 else None), stream[at:at + n]
        at += n


def read_and_remove(*paths):
    """The bytes of the first that is there; b"" if none is."""
    data = b""
    for path in paths:
        if os.path.exists(path):
            if not data:
                with open(path, "rb") as f:
                    data = f.read()
            os.unlink(path)
    return data


def decoded(path):
    """Its audio as s16, by us.  What is cut is told by status 3, and is no failure."""
    if form == "raw":
        with open(path, "rb") as f:
            return f.read()
    commands = {"weir": "mux -q -o w.raw %s", "opus": "demux %s | decode -f s16 --no-dither | mux -q -o w.raw"}
    p = subprocess.run(["bash", "-c", commands.get(form, "capture %s | mux -q -o w.raw") % path], stderr=subprocess.PIPE)
    # What is not whole keeps its unfinished name.
    data = read_and_remove("w.raw", "w.raw.part")
    assert p.returncode in (0, 3), "status %d: %s" % (p.returncode, p.stderr)
    return data


def by_ffmpeg(path):
    p = subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-f", "s16le", "-"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return p.stdout


def by_sox(path, kind):
    p = subprocess.run(["sox", "-t", kind, path, "-t", "s16", "-"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return p.stdout


class Recording:
    pass


def main():
    with open(stream_path, "rb") as f:
        plan = list(packets(f.read()))
    recordings = []
    for i in range(n_recordings):
        r = Recording()
        r.folder = "r%d" % i
        os.mkdir(r.folder)
        r.process = subprocess.Popen(["mux", "-q", "-o", "k." + form], cwd=r.folder, stdin=subprocess.PIPE)
        r.dies_s = random.uniform(LEAST_S, MOST_S)
        r.fed_frames = 0
        recordings.append(r)
    begin = time.monotonic()
    for end, data in plan:
        # A packet is there when the time it covers is over.
        while end is not None and time.monotonic() - begin < end / 48000:
            time.sleep(0.002)
        now = time.monotonic() - begin
        for r in recordings:
            if r.process is None:
                continue
            if now >= r.dies_s:
                r.process.kill()
                r.process.wait()
                r.process.stdin.close()
                r.process = None
                continue
            r.process.stdin.write(data)
            r.process.stdin.flush()
            if end is not None:
                r.fed_frames = end
        if all(r.process is None for r in recordings):
            break
    worst = 0
    whole = None
    if form != "opus":
        whole = b"".join(d[64 * d[15]:][:struct.unpack_from("<I", d, 8)[0]] for e, d in plan if e is not None)
    for r in recordings:
        path = os.path.join(r.folder, "k.%s.part" % form)
        assert r.process is None, "fed to the end before it was killed"
        assert not os.path.exists(path[:-5]), "the final name is there"
        audio = decoded(path)
        ways = [("weir", audio)]
        if shutil.which("ffmpeg") and form not in ("raw", "weir"):
            ways.append(("ffmpeg", by_ffmpeg(path)))
        if shutil.which("sox") and form in ("wav", "flac", "aiff", "caf", "w64"):
            ways.append(("sox", by_sox(path, form)))
        if shutil.which("opusdec") and form == "opus":
            subprocess.run(["opusdec", "--quiet", "--rate", "48000", path, "o.raw"], stderr=subprocess.DEVNULL)
            ways.append(("opusdec", read_and_remove("o.raw")))
        for who, got in ways:
            lost = r.fed_frames - len(got) // 2
            assert lost <= 48000, "%s: %d frames of %d are missing after a kill at %.3f s" % (who, lost, r.fed_frames, r.dies_s)
            # What had not been counted as fed may be there as well: the last packet was on its way.
            assert len(got) // 2 <= r.fed_frames + 1000, "%s: %d frames, %d were fed" % (who, len(got) // 2, r.fed_frames)
            if whole is not None:
                assert got == whole[:len(got)], "%s: not the samples that were recorded" % who
            worst = max(worst, lost)
        shutil.rmtree(r.folder)
    print("%s: %d recordings killed, at most %d frames (%.0f ms) lost" % (form, n_recordings, worst, worst / 48))


main()
