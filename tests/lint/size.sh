#!/bin/bash
# A hint, never a failure: a tool past 400 lines has a module in it that wants a header and a test of its own.
. "$(dirname "$0")/../lib.sh"

for f in "$TOP"/cmd/*.c; do
	n=$(wc -l <"$f")
	[ "$n" -le 400 ] || echo "# cmd/$(basename "$f"): $n lines; what of it is a module?"
done

tested()
{
	local t bad=0
	for t in "$TOP"/cmd/*.c; do
		t=$(basename "$t" .c)
		ls "$TOP/tests/pipeline/" | grep -qE "^[0-9]{4}-([a-z0-9-]*-)?$t[-.]" || { echo "no tests/pipeline/NNNN-$t*.sh"; bad=1; }
	done
	return $bad
}

test_case "every tool has a pipeline test" tested
done_testing
