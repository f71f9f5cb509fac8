#!/bin/bash
# weir top: running tools are found, asked, put in pipeline order, and shown; and the self-meter that it shows.
. "$(dirname "$0")/../lib.sh"
export PYTHONPATH=$TOP/tests/pipeline PYTHONDONTWRITEBYTECODE=1

# Six stages, for as long as the test lives.
begin_six()
{
	capture -q --realtime -r 44100 -c 2 --block 441 -n "$1" gen:sine:level=-20dB | meter --through 2>/dev/null | encode | decode | resample -r 48k |
		mux -q >/dev/null &
	six=$!
}

# ours FILE: the tools of this test's pipelines in the list, in its order.  Others may run on this machine, with other jobs as parents.
ours()
{
	"$PYTHON" - "$1" "$$" "$BIN" <<'PY'
import json, os, sys
rows = [json.loads(l) for l in open(sys.argv[1])][-1]["tools"]
def is_ours(pid):
    while pid > 1:
        if pid == int(sys.argv[2]):
            return True
        try:
            pid = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return False
rows = [r for r in rows if is_ours(r["pid"])]
json.dump(rows, open("ours.json", "w"))
print(" ".join(r["tool"] for r in rows))
PY
}

six_are_there()
{
	top --json >list.json
	[ "$(ours list.json)" = "capture meter encode decode resample mux" ]
}

order()
{
	begin_six one
	wait_for 20 six_are_there
	"$PYTHON" - <<'PY'
import json
rows = json.load(open("ours.json"))
assert len({r["pipeline"] for r in rows}) == 1
assert [r["stage"] for r in rows] == [1, 2, 3, 4, 5, 6], rows
assert [r["reads_from"] for r in rows] == [0, 1, 1, 1, 1, 1], rows
for r in rows:
    assert r["answers"] and r["state"] in "RSD", r
    assert 500 < r["rss_kib"] < 100000 and r["cpu_pct"] >= 0, r
    assert r["dropped_frames"] == r["gaps"] == r["lost_frames"] == 0, r
PY
	# It moves on, at the pace of the clock; and who was asked once goes on counting.
	top --json >a.json
	ours a.json >/dev/null && mv ours.json a
	sleep 1
	top --json >b.json
	ours b.json >/dev/null && mv ours.json b
	"$PYTHON" - <<'PY'
import json, os
a, b = json.load(open("a")), json.load(open("b"))
counted = os.environ.get("SAN", "") == ""
for x, y in zip(a, b):
    span = y["t_s"] - x["t_s"]
    assert span > 1
    moved = y["position_s"] - x["position_s"]
    assert abs(moved - span) < 1.5, (y["tool"], moved, span)
    assert y["voluntary_switches"] > x["voluntary_switches"], y
    assert not counted or x["allocs"] > 0
ticks = b[0]["ticks"] - a[0]["ticks"]
assert abs(ticks - 100 * (b[0]["position_s"] - a[0]["position_s"])) <= 2, ticks
assert b[0]["tick_p999_us"] <= b[0]["tick_max_us"] and b[0]["tick_max_us"] > 0, b[0]
PY
	# A list for people.
	top --once >list
	grep -Eq '^PIPE +TOOL +PID' list
	for t in capture meter encode decode resample mux; do
		grep -Eq "^[0-9]+\.[0-9]+ +$t " list
	done
}

# A stage that is stopped is shown as such and disturbs nobody; processes that ended are gone from the list.
stopped()
{
	begin_six two
	wait_for 20 six_are_there
	local pid
	pid=$("$PYTHON" -c 'import json; print([r["pid"] for r in json.load(open("ours.json")) if r["tool"] == "decode"][0])')
	kill -STOP "$pid"
	top --json >list.json
	eq "$(ours list.json)" "capture meter encode decode resample mux"
	eq "$(json ours.json '[r["state"] for r in d if r["tool"] == "decode"][0]')" T
	kill -CONT "$pid"
	top --json >list.json
	eq "$(ours list.json)" "capture meter encode decode resample mux"
	ne "$(json ours.json '[r["state"] for r in d if r["tool"] == "decode"][0]')" T
	pid=$("$PYTHON" -c 'import json; print([r["pid"] for r in json.load(open("ours.json")) if r["tool"] == "capture"][0])')
	kill -TERM "$pid"
	wait "$six"
	top --json >list.json
	eq "$(ours list.json)" ""
}

# Two sources through FIFOs into one tool.
branches()
{
	mkfifo a b
	capture -q --realtime -c 2 gen:sine >a &
	capture -q --realtime -c 2 gen:noise >b &
	mix -q --live a b >/dev/null &
	three_are_there()
	{
		top --json >list.json
		[ "$(ours list.json)" = "capture capture mix" ]
	}
	wait_for 20 three_are_there
	eq "$(json ours.json '[r["reads_from"] for r in d]')" "[0, 0, 2]"
	eq "$(json ours.json 'len({r["pipeline"] for r in d})')" 1
	top --json >list.json
	ours list.json
	"$PYTHON" -c '
import json
mix = json.load(open("ours.json"))[2]
assert mix["ticks"] > 0, mix'
}

# WEIR_STATS=1 measures and publishes from the start: the page is there though nobody asked.
unasked()
{
	WEIR_STATS=1 capture -q --realtime -d 30s -c 1 --block 480 gen:silence >/dev/null &
	local pid=$!
	has_page()
	{
		ls -l "/proc/$pid/fd" 2>/dev/null | command grep -q memfd:weir-stats
	}
	wait_for 20 has_page
	capture -q --realtime -d 30s -c 1 gen:silence >/dev/null &
	local other=$!
	ls -l "/proc/$other/fd" | command grep -c memfd:weir-stats >n || :
	eq "$(cat n)" 0 "pages of a tool that nobody asked"
	# All ticks since it began are there at the first look.
	top --json >list.json
	ours list.json
	"$PYTHON" - "$pid" <<'PY'
import json, sys
r = [r for r in json.load(open("ours.json")) if r["pid"] == int(sys.argv[1])][0]
assert abs(r["ticks"] - 100 * r["position_s"]) <= 2, r
PY
	kill "$pid" "$other"
}

# The signal does nothing else: the stream is whole, and what a program of another kind would do is not tried.
asked_often()
{
	capture -q -d 300s -c 2 gen:count | decode >out.weir &
	local last=$! i
	for ((i = 0; i < 50; i++)); do
		top --once >/dev/null
		kill -0 "$last" 2>/dev/null || break
	done
	wait "$last"
	inspect --verify out.weir
	sleep 30 &
	top --json >list.json
	! grep -q '"tool": "sleep"' list.json
	kill -0 $!
}

picture()
{
	begin_six three
	wait_for 20 six_are_there
	"$PYTHON" - <<'PY'
import os, signal
from terminal import Terminal
names = ["capture", "meter", "encode", "decode", "resample", "mux"]

def tools(t):
    return [l.split()[1] for l in t.lines()[2:] if len(l.split()) > 2]

def shows(t, wanted):
    found = iter(tools(t))
    return all(any(f == n for f in found) for n in wanted)

t = Terminal("top --interval 0.2 <&2 >&2", 130, 40)
t.wait(lambda t: shows(t, names) and t.lines()[1].startswith("PIPE"))
assert t.lines()[0].startswith("weir top ") and "tools in" in t.lines()[0], t.lines()[0]
assert t.modes == {"?1049", "?25"} and t.too_wide == 0
head = t.lines()[1].split()
assert head == "PIPE TOOL PID S POSITION CPU% RSS TICKS LATE P99.9 MAX RING HIGH DROPS GAPS ALLOC/s DRIFT".split(), head
# Narrower, lower, tiny, large again: it clears and keeps to the new size.
for columns, rows, fits in ((80, 40, True), (50, 40, True), (80, 5, False), (12, 3, False), (200, 60, True)):
    before = len(t.raw)
    t.size(columns, rows)
    t.wait(lambda t: "\033[2J" in t.raw[before:] and t.raw[before:].split("\033[2J", 1)[1].count("\033[J") > 1)
    assert t.too_wide == 0, (columns, rows, t.too_wide)
    assert max(map(len, t.lines())) < columns
    if fits:
        assert shows(t, names), t.lines()
    elif rows > 3:
        assert any(l.endswith(" more") for l in t.lines()), t.lines()
# q gives the terminal back as it was.
os.write(t.master, b"q")
while t.read(10):
    pass
assert t.process.wait(10) == 0 and not t.modes and not any(t.lines()), t.lines()
# So does an interrupt.
t = Terminal("trap : INT; stty -a <&2 >before; top <&2 >&2; stty -a <&2 >after", 100, 20)
t.wait(lambda t: shows(t, names))
os.killpg(t.process.pid, signal.SIGINT)
while t.read(10):
    pass
assert not t.modes
before, after = (" ".join(open(n).read().split()) for n in ("before", "after"))
assert before == after and " icanon" in before and " echo " in before, (before, after)
PY
}

# Late ticks are counted, one by one: a reader that stops for 300 ms makes those blocks late that it did not take in time.
late_is_counted()
{
	capture -q --realtime -d 3s -r 48k -c 32 --block 480 gen:silence --stats=0.1 --stats-file s.json | "$PYTHON" -c '
import os, time
n = 0
while True:
    b = os.read(0, 65536)
    if not b:
        break
    n += len(b)
    if n > 32 * 4 * 48000:
        n = -10**12
        time.sleep(0.6)
'
	"$PYTHON" - <<'PY'
import json
lines = [json.loads(l) for l in open("s.json")]
last = lines[-1]
assert last["ticks"] == 300, last["ticks"]
assert last["late"] >= 10 and last["max_late_us"] > 150000, last
assert last["max_late_us"] < last["tick_max_us"] <= last["max_late_us"] + 20000, last
assert last["tick_p999_us"] <= last["tick_max_us"], last
for key in ("packets_out", "frames_out", "allocs", "voluntary_switches", "involuntary_switches", "ticks", "late", "position_s"):
    values = [l[key] for l in lines]
    assert values == sorted(values), (key, values)
# The last line comes when the printer's thread has ended.
assert set(lines[-2]["threads"]) == {"capture", "stats"}, lines[-2]["threads"]
cpu_ms = last["cpu_pct"] / 100 * last["t_s"] * 1000
assert abs(last["threads"]["capture"] + lines[-2]["threads"]["stats"] - cpu_ms) <= 20 + cpu_ms * 0.1, (last["threads"], cpu_ms)
PY
}

test_case "six stages, in order, each with its counters" order
test_case "a stage that is stopped, and stages that end" stopped
test_case "two sources into one mix, through FIFOs" branches
test_case "WEIR_STATS=1: published and measured from the start" unasked
test_case "being asked changes nothing, and others are not asked" asked_often
test_case "the picture in a terminal, at any size, and the terminal given back" picture
test_case "every late tick is counted" late_is_counted
done_testing
