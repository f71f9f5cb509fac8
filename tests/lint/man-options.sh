#!/bin/bash
# The page of each tool has the options that the tool has: names, argument words, ranges, words to choose from, and the
# defaults that the option table mentions.  Those that all tools have are in weir(7).
. "$(dirname "$0")/../lib.sh"

cat >"$TMPDIR/options.py" <<'PY'
import re, sys

COMMON = ("quiet", "verbose", "stats", "stats-file", "help", "version")

def rows(path):
    out = {}
    for line in open(path, encoding="utf-8"):
        letter, name, arg, kind, lo, hi, choices, text = line.rstrip("\n").split("\t")
        out[name] = dict(letter="" if letter == "-" else letter, arg=arg, kind=kind, lo=lo, hi=hi,
                         choices=choices.split(",") if choices else [], help=text)
    return out

def page_items(path):
    """name → (letter, argument, is optional, text) of each .It that is an option."""
    items, current = {}, None
    for line in open(path, encoding="utf-8"):
        line = line.rstrip("\n")
        m = re.match(r"\.It (?:Fl (\w) , )?Fl -([a-z0-9-]+)(?: Ar (\S+)| Ns Op Ns = Ns Ar (\S+))?$", line)
        if m:
            current = m.group(2)
            assert current not in items, f"{path}: --{current} stands there twice"
            items[current] = [m.group(1) or "", m.group(3) or m.group(4) or "", bool(m.group(4)), ""]
        elif re.match(r"\.It Fl ", line):
            sys.exit(f"{path}: '{line}' is not in the form '.It Fl x , Fl -name Ar WORD'")
        elif re.match(r"\.(It|El|Sh|Ss)\b", line):
            current = None
        elif current:
            items[current][3] += " " + re.sub(r"^\.[A-Z][a-z] ", "", line)
    return items

tool, dump, page, common_page = sys.argv[1:]
real, said, common = rows(dump), page_items(page), page_items(common_page)
bad = []
for name, r in real.items():
    where, items = (common_page, common) if name in COMMON and tool != "weir" else (page, said)
    if name not in items:
        bad.append(f"--{name} is not in {where}")
        continue
    letter, arg, optional, text = items[name]
    taken = name in COMMON and not r["letter"] and any(o["letter"] == letter for o in real.values())
    if letter != r["letter"] and not taken:
        bad.append(f"--{name}: the page has -{letter}, the tool -{r['letter']}")
    if arg != r["arg"]:
        bad.append(f"--{name}: the page has the argument {arg}, the tool {r['arg']}")
    if optional != (r["kind"] == "optional"):
        bad.append(f"--{name}: the page and the tool disagree whether the value may be left out")
    words = re.sub(r"\s+", " ", text.replace("\\", ""))
    if r["lo"] and f"{r['lo']} to {r['hi']}" not in words:
        bad.append(f"--{name}: the page does not say '{r['lo']} to {r['hi']}':{words}")
    for c in r["choices"]:
        if not re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(c), words):
            bad.append(f"--{name}: the page does not mention {c}")
    m = re.search(r"\((?:default:? )?([0-9][^() ]*)\)|default:? ([^(),; ]+)|([^(),; ]+) by default", r["help"])
    default = m and next(g for g in m.groups() if g)
    if default and default not in ("is", "by") and not re.search(r"(?<![\w.])%s(?![\w])" % re.escape(default), words):
        bad.append(f"--{name}: the page does not mention its default {default}")
for name in said:
    if name not in real:
        bad.append(f"--{name} is in {page} and not in the tool")
if tool != "weir":
    for name in common:
        if name not in COMMON:
            bad.append(f"{common_page} has --{name}, which not all tools have")
print("\n".join(bad))
sys.exit(bool(bad))
PY

# Against its synopsis, too: every option is there, by its letter or its name.
options()
{
	local t=$1 page=$TOP/man/weir-$1.1 letter name rest
	[ "$t" != weir ] || page=$TOP/man/weir.1
	"$t" --dump-options >dump
	"$PYTHON" "$TMPDIR/options.py" "$t" dump "$page" "$TOP/man/weir.7"
	sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESC/p' "$page" >synopsis
	while IFS=$'\t' read -r letter name rest; do
		case $name in quiet | verbose | stats | stats-file | help | version) continue ;; esac
		grep -qE -- "(Fl|[|]) (-$name|$letter)( |$)" synopsis || fail "$page: the synopsis does not have --$name"
	done <dump
}

# The check sees what it is there to see.
finds()
{
	printf 'r\trate\tRATE\trate\t1\t9\t\tthe rate (default: 5)\n-\tway\tWAY\tchoice\t\t\tin,out\twhich way\n' >dump
	cat >good.1 <<'MAN'
.It Fl r , Fl -rate Ar RATE
The rate, from 1 to 9; 5 if left out.
.It Fl -way Ar WAY
.Li in
or
.Li out .
MAN
	: >seven
	"$PYTHON" "$TMPDIR/options.py" t dump good.1 seven
	local change
	for change in 's/Ar RATE/Ar HZ/' 's/1 to 9/1 to 8/' 's/out ./away ./' 's/Fl r , //' 's/; 5 if/; 6 if/' 's/-way/-path/'; do
		sed "$change" good.1 >bad.1
		expect_status 1 "$PYTHON" "$TMPDIR/options.py" t dump bad.1 seven
	done
}

# What a tool adds to the statistics by itself.
statistics()
{
	local page=$TOP/man/weir-$1.1 key
	for key in $(sed -nE 's/.*stats_key\([^"]*"([a-z0-9_]+)".*/\1/p' "$TOP/cmd/$1.c"); do
		grep -qE "^\.(Pq |Op )?Li (.* )?$key( |$)" "$page" || fail "$page: .Li $key is missing"
	done
}

test_case "the check sees each kind of difference" finds
for t in "$TOP"/cmd/*.c; do
	t=$(basename "$t" .c)
	test_case "$t: the page has the options of the tool" options "$t"
	test_case "$t: the page has the counters of the tool" statistics "$t"
done
done_testing
