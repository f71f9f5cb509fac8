#!/bin/bash
# What the manual pages and the README show as examples runs, in the order in which it stands there, and what it writes
# is sound.
. "$(dirname "$0")/../lib.sh"

# blocks PAGE: the examples marked .\" run, as a script each: block-1.sh …; prints how many.
blocks()
{
	"$PYTHON" - "$1" <<'PY'
import re, sys
page = open(sys.argv[1], encoding="utf-8").read()
if sys.argv[1].endswith(".md"):
    found = re.findall(r"<!-- run -->\n```sh\n(.*?)^```", page, re.S | re.M)
else:
    found = re.findall(r'^\.\\" run\n\.Bd [^\n]*\n(.*?)^\.Ed', page, re.S | re.M)
for n, text in enumerate(found, 1):
    for roff, plain in (("\\(dq", '"'), ("\\(aq", "'"), ("\\-", "-"), ("\\e", "\\"), ("\\&", "")):
        text = text.replace(roff, plain)
    assert sys.argv[1].endswith(".md") or "\\" not in re.sub(r"\\\n|\\n", "", text), text
    open(f"block-{n}.sh", "w").write(text)
print(len(found))
PY
}

# The files that examples are about.
material()
{
	capture -d 3s -f s16 gen:noise:pink | mux -o song.flac
	capture -d 2s -c 1 -f s16 gen:sine:freq=300 | mux -o talk.wav
	for f in a b c; do
		capture -d 1s -f s24 gen:ident | mux -o $f.wav
	done
}

examples()
{
	local page=$1 n i f
	n=$(blocks "$page")
	[ "$n" -ge 1 ] || fail "no example of $page is marked"
	material
	for ((i = 1; i <= n; i++)); do
		bash -e -u -o pipefail "block-$i.sh" >out 2>err || {
			cat "block-$i.sh" err
			fail "example $i: status $?"
		}
	done
	# What was written is whole.
	for f in *.opus *.wav *.flac *.weir; do
		[ -e "$f" ] || continue
		inspect --verify "$f" >out || { cat out; fail "$f is not whole"; }
	done
	! ls ./*.part 2>/dev/null
}

demo()
{
	mkdir out
	BIN=$BIN OUT=$PWD/out CC=${CC:-cc} SONG= sh "$TOP/tests/demo/demo.sh" >log 2>err
	! grep -v '^mux: ' err
	grep -q 'to the sample' log
	# 10 s of beats and an odd tail at 44.1 kHz.
	grep -q '^frames    485477 at 44100 Hz in the source, 528410 at 48000 Hz in the Opus file$' log
	[ -s out/demo.opus ]
	if have opusdec; then
		opusdec --quiet --rate 48000 out/demo.opus by-opusdec.wav 2>/dev/null
		inspect --json by-opusdec.wav | tail -n 1 >sum
		eq "$(json sum 'd["summary"]["frames"]["1"]')" 528410 "frames by opusdec"
	fi
	# Somebody's own file.
	capture -d 12345smp -r 48k gen:noise | mux -o mine.wav
	BIN=$BIN OUT=$PWD/out CC=false SONG=mine.wav sh "$TOP/tests/demo/demo.sh" >log
	grep -q '^frames    12345 at 48000 Hz in the source, 12345 at' log
}

# The commands at the top of the README are targets that exist.
targets()
{
	local t
	for t in deps deps-check demo check install; do
		grep -q "^$t:" "$TOP/Makefile" "$TOP/tests/tests.mk"
	done
	for t in $(grep -o 'make [a-z-]*' "$TOP/README.md" "$TOP/CONTRIBUTING.md" | sed 's/.*make //' | command grep -vE '^-|^$' | sort -u); do
		grep -qE "^(\.PHONY:.* )?$t( .*)?:|^\.PHONY:.* $t( |$)" "$TOP/Makefile" "$TOP/tests/tests.mk" || fail "make $t is no target"
	done
}

for page in "$TOP"/man/*.[157] "$TOP/README.md"; do
	test_case "$(basename "$page"): the examples run" examples "$page"
done
test_case "the demo makes an Opus file as long as its source" demo
test_case "the targets that the README and CONTRIBUTING name exist" targets
done_testing
