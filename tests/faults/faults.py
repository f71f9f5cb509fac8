"""
faults.py KIND…: runs every tool once for each call of that KIND (heap, fd, mmap, io, thread), which fails in that run, until a
run meets no failure any more; KIND short, eintr and pipe run it under short reads and writes, interrupted calls, small pipes;
KIND leak runs it under valgrind, undisturbed and with a sample of failures.

Whatever happens a tool ends by itself, not by a signal; with status 0 and exactly what it writes undisturbed, or with another
status and one line on standard error, leaving no file under its final name that is not whole.  Prints TAP.
"""
import os
import shutil
import struct
import subprocess
import sys
import time

B = os.environ["B"]
BIN = os.path.join(B, "bin")
PRELOAD = os.path.join(B, "tests", "faults", "fault.so")
SANITIZED = bool(os.environ.get("SAN"))
LIMIT_S = 60 if SANITIZED else 20
# Every call in turn takes long for the largest; beyond this many, one in every few, more at the beginning.
ALL = bool(os.environ.get("WEIR_THOROUGH"))
DENSE = 150

n_tests = 0
n_failed = 0
n_hits = {}
n_fragile = {}
# Libraries that do not look at what malloc gives them: nothing here can help that, but it is counted and said.
FRAGILE = {"libsoxr": "libsoxr 0.1.3 uses memory it did not get"}
if SANITIZED:
    FRAGILE["libasan"] = "the sanitizer itself needs memory"


def point(ok, words, lines=()):
    global n_tests, n_failed
    n_tests += 1
    n_failed += not ok
    for line in lines:
        print("# " + line)
    print("%sok %d - %s" % ("" if ok else "not ", n_tests, words), flush=True)


def skip(words, reason):
    global n_tests
    n_tests += 1
    print("ok %d - %s # SKIP %s" % (n_tests, words, reason), flush=True)


def environment(**more):
    env = dict(os.environ, LD_PRELOAD=PRELOAD, LC_ALL="C.UTF-8", WEIR_FAULT_HIT="../hit", **more)
    if SANITIZED:
        env["ASAN_OPTIONS"] = "verify_asan_link_order=0:allocator_may_return_null=1:exitcode=99:detect_leaks=1"
    return env


def files_here():
    found = {}
    for root, _, names in os.walk("."):
        for name in names:
            path = os.path.join(root, name)
            if not os.path.isfile(path):
                continue  # a socket, a FIFO
            with open(path, "rb") as f:
                found[os.path.relpath(path, ".")] = f.read()
    return found


class Result:
    pass


def run(case, env, before=()):
    """One run in an empty folder."""
    name, argv, stdin = case
    os.mkdir("run")
    os.chdir("run")
    r = Result()
    try:
        with open(os.path.join("..", stdin) if stdin else "/dev/null", "rb") as f:
            p = subprocess.Popen(list(before) + [os.path.join(BIN, argv[0])] + argv[1:], stdin=f, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=env)
            try:
                r.out, r.err = p.communicate(timeout=LIMIT_S)
                r.status = p.returncode
            except subprocess.TimeoutExpired:
                p.kill()
                r.out, r.err = p.communicate()
                r.status = "time"
        r.files = files_here()
        for path in r.files:
            os.unlink(path)
        r.files.pop("stats", None)  # times are never the same
    finally:
        os.chdir("..")
        for root, dirs, names in os.walk("run", topdown=False):
            for n in names:
                os.unlink(os.path.join(root, n))
            os.rmdir(root)
    r.hit = os.path.exists("hit")
    r.who = ""
    if r.hit:
        with open("hit", encoding="utf-8") as f:
            r.who = f.read()
        os.unlink("hit")
    return r


def stream_claims_to_be_whole(data):
    """Ends with an END of the stream for reason "normal"."""
    end = data[-128:]
    return len(end) == 128 and end[:4] == b"WEI\xd2" and end[5] == 6 and end[12:14] == b"\0\0" and end[64:66] == b"\0\0"


def data_of_tracks(stream):
    """The DATA packets of each track, in their order."""
    tracks, at = {}, 0
    while at + 64 <= len(stream):
        head = stream[at:at + 64]
        n_bytes = head[15] * 64 + (struct.unpack_from("<I", head, 8)[0] + 63) // 64 * 64
        if head[5] == 3:
            # Without the stream's id and the CRC over it.
            tracks.setdefault(head[12:14], []).append(stream[at:at + 52] + stream[at + 64:at + n_bytes])
        at += n_bytes
    return tracks


def same_output(case, a, b):
    # Which track's packet comes first may depend on which input was ready first; and the id of a stream on the length of
    # its source, which may not be told.  Nothing else may.
    if case[0] in ("join streams", "capture Ogg Opus"):
        return data_of_tracks(a) == data_of_tracks(b)
    return a == b


def what_is_wrong(case, r, good):
    """Nothing, or a list of complaints."""
    wrong = []
    if r.status == "time":
        return ["did not end within %d s" % LIMIT_S]
    if r.status < 0 or b"DEADLYSIGNAL" in r.err or b"AddressSanitizer: CHECK failed" in r.err:
        for library in FRAGILE:
            if r.who.startswith(library) or (library.encode() in r.err and r.status > 0):
                n_fragile[library] = n_fragile.get(library, 0) + 1
                return []
        return ["died by signal %d after a call of %s: %s" % (-r.status, r.who or "?", r.err[-1500:].decode("utf-8", "replace"))]
    if r.status == 0:
        if not same_output(case, r.out, good.out):
            wrong.append("status 0, but stdout is not what it should be (%d bytes, %d undisturbed)" % (len(r.out), len(good.out)))
        if r.files != good.files:
            wrong.append("status 0, but the files are not what they should be: %s" % sorted(r.files))
        return wrong
    if r.status not in (1, 3):
        wrong.append("status %d" % r.status)
    lines = r.err.splitlines()
    if len(lines) != 1 or not lines[0].strip():
        wrong.append("status %d and %d lines on stderr: %s" % (r.status, len(lines), r.err[:1500]))
    for path, data in r.files.items():
        if not path.endswith(".part") and good.files.get(path) != data:
            wrong.append("status %d, and %s stands there under its final name, not whole" % (r.status, path))
    if r.out != good.out and stream_claims_to_be_whole(r.out) and r.status == 1:
        wrong.append("status %d, and yet the stream on stdout ends as if it were whole" % r.status)
    return wrong


def one_by_one(case, good, kind):
    n = 0
    problems = []
    began = time.time()
    while True:
        n += 1 if ALL or n < DENSE else 1 + (n - DENSE) // 12
        r = run(case, environment(WEIR_FAULT="%s:%d" % (kind, n)))
        n_hits[kind] = n_hits.get(kind, 0) + r.hit
        # Undisturbed it must be right as well: else nothing was proved.
        wrong = what_is_wrong(case, r, good) if r.hit else ([] if r.status == good.status and same_output(case, r.out, good.out) else ["undisturbed it is not the same"])
        problems += ["%s:%d: %s" % (kind, n, w) for w in wrong]
        if not r.hit or len(problems) > 12:
            break
    words = "%s: each of %d %s calls fails (%d runs, %.1f s)" % (case[0], n - 1, kind, n, time.time() - began)
    point(not problems, words, [l for p in problems for l in p.splitlines()])


WAYS = {
    "short": [{"WEIR_SHORT": "1"}, {"WEIR_SHORT": "-97"}, {"WEIR_SHORT": "-5000"}],
    "eintr": [{"WEIR_EINTR": "2"}, {"WEIR_EINTR": "3", "WEIR_SHORT": "-1000"}],
    "pipe": [{"WEIR_PIPE": "4096"}, {"WEIR_PIPE": "8192", "WEIR_SHORT": "-3000"}],
}


def under_conditions(case, good, kind):
    problems = []
    for way in WAYS[kind]:
        r = run(case, environment(**way))
        if r.status != good.status or not same_output(case, r.out, good.out) or r.files != good.files:
            problems.append("%s: status %s, %d bytes out (%d), files %s: %s" % (
                way, r.status, len(r.out), len(good.out), sorted(r.files), r.err[-300:]))
    point(not problems, "%s: %s changes nothing" % (case[0], {"short": "reading and writing a byte or a few at a time",
          "eintr": "being interrupted", "pipe": "a pipe of one page"}[kind]), problems)


VALGRIND = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite,indirect,possible",
            "--soname-synonyms=somalloc=NONE", "--trace-children=no"]


def without_leaks(case, good, number):
    """A failing heap call is not among them: under valgrind the allocator is its own."""
    problems = []
    for fault in ("none:0",) if number % 4 and not ALL else ("none:0", "fd:1", "mmap:2", "io:2", "io:8"):
        r = run(case, environment(WEIR_FAULT=fault, WEIR_FAULT_ONLY=case[1][0]), VALGRIND)
        if r.status == 99 or b"==" in r.err or r.status == "time":
            problems.append("%s: %s" % (fault, r.err.decode("utf-8", "replace")[:4000]))
        elif r.hit or fault == "none:0":
            problems += ["%s: %s" % (fault, w) for w in what_is_wrong(case, r, good)]
    point(not problems, "%s: nothing leaks, no memory is used that is not there" % case[0], [l for p in problems for l in p.splitlines()])


# ---- material: a quarter of a second, made here and by the tools themselves ----

def make_wav(path, frames=12000, channels=2, rate=48000):
    x = 1
    samples = bytearray()
    for _ in range(frames * channels):
        x = (x * 1103515245 + 12345) & 0x7fffffff
        samples += struct.pack("<h", (x >> 15) - 32768 >> 2)
    head = struct.pack("<HHIIHH", 1, channels, rate, rate * channels * 2, channels * 2, 16)
    with open(path, "wb") as f:
        f.write(b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + struct.pack("<I", 16) + head +
                b"data" + struct.pack("<I", len(samples)) + samples)


def make(argv, stdin=None, out=None):
    """Material by a tool, undisturbed.  Returns whether that worked."""
    with open(stdin or "/dev/null", "rb") as i, open(out or "/dev/null", "wb") as o:
        return subprocess.call([os.path.join(BIN, argv[0])] + argv[1:], stdin=i, stdout=o) == 0


def cases():
    make_wav("a.wav")
    make_wav("b.wav", 6000, 1, 44100)
    made = [make(["capture", "a.wav"], out="pcm.weir"), make(["capture", "a.wav", "b.wav"], out="two.weir"),
            make(["encode"], "pcm.weir", "opus.weir"), make(["mux", "-q", "-o", "a.opus"], "opus.weir")]
    for kind in ("flac", "caf", "aiff", "w64"):
        made.append(make(["mux", "-q", "-o", "a." + kind], "pcm.weir"))
    if not all(made):
        point(False, "the material is made", ["by capture, encode, mux: %s" % made])
        return []
    rows = [
        ("capture a WAV file", ["capture", "../a.wav"], None),
        ("capture WAV from stdin", ["capture", "-"], "a.wav"),
        ("capture two files", ["capture", "../a.wav", "../b.wav"], None),
        ("capture FLAC", ["capture", "../a.flac"], None),
        ("capture CAF from stdin", ["capture", "-"], "a.caf"),
        ("capture Ogg Opus", ["capture", "../a.opus"], None),
        ("capture a generator", ["capture", "-d", "100ms", "gen:sine"], None),
        ("encode", ["encode"], "pcm.weir"),
        ("encode 44.1 kHz", ["encode", "-t", "2"], "two.weir"),
        ("encode on two threads, with statistics", ["encode", "-j", "2", "--stats=0.05", "--stats-file", "stats"], "two.weir"),
        ("decode", ["decode"], "opus.weir"),
        ("mux to WAV", ["mux", "-q", "-o", "x.wav"], "pcm.weir"),
        ("mux to FLAC", ["mux", "-q", "-o", "x.flac"], "pcm.weir"),
        ("mux to Ogg Opus", ["mux", "-q", "-o", "x.opus"], "opus.weir"),
        ("mux to CAF", ["mux", "-q", "-o", "x.caf"], "pcm.weir"),
        ("mux to AIFF", ["mux", "-q", "-o", "x.aiff"], "pcm.weir"),
        ("mux to W64", ["mux", "-q", "-o", "x.w64"], "pcm.weir"),
        ("mux to .weir", ["mux", "-q", "-o", "x.weir"], "pcm.weir"),
        ("mux to a file a track", ["mux", "-q", "-o", "x-%t.wav"], "two.weir"),
        ("mux to WAV on stdout", ["mux", "-q", "--format", "wav", "-o", "-"], "pcm.weir"),
        ("join streams", ["mux", "../pcm.weir", "../opus.weir"], None),
        ("demux Ogg Opus", ["demux", "../a.opus"], None),
        ("demux a stream", ["demux", "-t", "1"], "two.weir"),
        ("demux to a file a track", ["demux", "--split", "o", "../two.weir"], None),
        ("inspect", ["inspect", "--verify"], "two.weir"),
        ("inspect as JSON", ["inspect", "--json"], "opus.weir"),
        ("meter", ["meter"], "two.weir"),
        ("meter a file, compared, to a report", ["meter", "--json", "--compare", "../pcm.weir", "--report", "r.json", "../a.wav"], None),
        ("resample", ["resample", "-r", "96k", "-q", "low"], "two.weir"),
        ("resample a file on two threads", ["resample", "-r", "44.1k", "-f", "s16", "-j", "2", "-q", "low", "../a.wav"], None),
        ("mix files, resampled", ["mix", "../a.wav", "../b.wav"], None),
        ("mix-minus of a stream, limited", ["mix", "--minus", "--limiter", "-f", "s16"], "two.weir"),
        ("mix a stream, with a socket for commands", ["mix", "--control", "s", "-g", "1=0.5"], "two.weir"),
        ("mix to a peak", ["mix", "--normalize", "peak:-3dB", "../a.wav", "../pcm.weir"], None),
        ("meter on the way", ["meter", "--through", "--report", "r.txt", "--interval", "20ms"], "pcm.weir"),
    ]
    # ../ because a run has a folder of its own; stdin is opened from outside it.
    return rows


def main():
    if SANITIZED and not os.path.exists(PRELOAD):
        print("1..0 # SKIP no preload for this build")
        return 0
    if "leak" in sys.argv[1:]:
        if SANITIZED:
            print("1..0 # SKIP in this build every run looks for leaks")
            return 0
        if not shutil.which("valgrind"):
            print("1..0 # SKIP valgrind is not installed")
            return 0
    rows = cases()
    only = os.environ.get("WEIR_CASE")
    for number, case in enumerate(rows):
        if only and only not in case[0]:
            continue
        good = run(case, environment())
        if good.status != 0 or good.err:
            point(False, case[0] + ": works undisturbed", ["status %s: %s" % (good.status, good.err[-500:])])
            continue
        for kind in sys.argv[1:]:
            if kind == "leak":
                without_leaks(case, good, number)
            elif kind in WAYS:
                under_conditions(case, good, kind)
            else:
                one_by_one(case, good, kind)
    for library, n in n_fragile.items():
        skip("%d runs that died of a failed call of %s" % (n, library), FRAGILE[library])
    for kind, n in n_hits.items():
        point(n > 0, "%d %s calls failed in all: the preload is at work" % (n, kind))
    print("1..%d" % n_tests)
    return n_failed != 0


sys.exit(main())
