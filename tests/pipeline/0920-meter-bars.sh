#!/bin/bash
# meter's bars on a terminal: they are there, keep to the size while it changes, and go away.
. "$(dirname "$0")/../lib.sh"
export PYTHONPATH=$TOP/tests/pipeline PYTHONDONTWRITEBYTECODE=1

live()
{
	"$PYTHON" - <<'PY'
from terminal import Terminal
t = Terminal("capture -q --realtime -r 48k -c 2 gen:sine:freq=997,level=-20dB | meter", 80, 24)
bar = lambda t, y: t.lines()[y].count("\u2588")
t.wait(lambda t: bar(t, 1) and "M " in t.lines()[3])
lines = t.lines()
assert lines[0].startswith("1 ") and " LUFS" in lines[0] and "dBTP" in lines[0], lines[0]
assert abs(bar(t, 1) - 2 / 3 * (bar(t, 1) + lines[1].count("\u2591") + lines[1].count("\u2502"))) < 2, lines[1]
assert "-20.0" in lines[1] and "-60" in lines[5] and lines[6] == "", lines
assert t.too_wide == 0

# Smaller, larger, tiny: it clears and keeps to the new size.
for columns, rows, wanted in ((40, 10, 1), (200, 50, 1), (20, 6, 0), (80, 24, 1)):
    before = len(t.raw)
    t.size(columns, rows)
    # Cleared, and two drawings more.
    t.wait(lambda t: "\033[2J" in t.raw[before:] and t.raw[before:].split("\033[2J")[1].count("\033[K") > 12)
    assert t.too_wide == 0, (columns, t.too_wide)
    assert bool(bar(t, 1)) == bool(wanted), t.lines()
    assert max(map(len, t.lines())) < columns
assert t.stop() == 0
assert not any(t.lines()), t.lines()
PY
}

# No picture where it would be in the way: with -q, on a simple terminal, and in a file.
none()
{
	"$PYTHON" - <<'PY'
from terminal import Terminal
for command, env in (("meter -q", {}), ("meter", {"TERM": "dumb"}), ("meter 2>err", {})):
    t = Terminal("export TERM=%s; capture -q --realtime -d 1s gen:sine | %s" % (env.get("TERM", "xterm"), command), 80, 24)
    while t.read(10):
        pass
    assert t.process.wait(10) == 0
    assert "\u2588" not in t.raw, repr(t.raw[:300])
PY
	[ ! -s err ]
}

plain_characters()
{
	"$PYTHON" - <<'PY'
from terminal import Terminal
t = Terminal("export LC_ALL=C NO_COLOR=1; capture -q --realtime gen:sine:level=-20dB | meter", 80, 24)
t.wait(lambda t: "####" in t.lines()[1] and "....." in t.lines()[1])
assert t.raw.isascii() and "\033[3" not in t.raw and "\033[9" not in t.raw
t.stop()
PY
}

# The stream and the bars do not meet; the report comes when the bars are gone.
through()
{
	"$PYTHON" - <<'PY'
from terminal import Terminal
t = Terminal("capture -q --realtime -d 1.5s gen:sine | meter --through >out.weir", 80, 24)
t.wait(lambda t: "\u2588" in t.lines()[1])
t.wait(lambda t: "track 1" in t.lines()[0] and not any("\u2588" in l for l in t.lines()))
while t.read(10):
    pass
PY
	inspect --verify out.weir
}

test_case "bars that keep to the terminal while it changes its size" live
test_case "no bars with -q, on a dumb terminal, in a file" none
test_case "ASCII and no colours where that is asked for" plain_characters
test_case "bars beside a stream that passes, and the report after them" through
done_testing
