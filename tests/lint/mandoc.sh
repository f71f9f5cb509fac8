#!/bin/bash
# The pages are good mdoc, every tool has one, and each has the sections that a reader looks for.
. "$(dirname "$0")/../lib.sh"

lint()
{
	# mandoc looks for other pages only where the system keeps its own: references() does that for ours.
	mandoc -Tlint -Wall "$TOP"/man/*.[157] >lint.out 2>&1 || :
	sed -i -e '/outdated mandoc.db/d' -e '/referenced manual not found/d' lint.out
	empty lint.out
}

# Pages refer to pages of this project alone, and to ones that exist.
references()
{
	local name section bad=0
	while read -r name section; do
		[ -e "$TOP/man/$name.$section" ] || { echo "there is no man/$name.$section"; bad=1; }
	done < <(sed -n 's/^\.\(It \)\{0,1\}Xr \([^ ]*\) \([0-9]\).*/\2 \3/p' "$TOP"/man/*.[157] | sort -u)
	return $bad
}

sections()
{
	local f s bad=0
	for f in "$TOP"/man/*.1; do
		for s in NAME SYNOPSIS DESCRIPTION 'EXIT STATUS' EXAMPLES 'SEE ALSO' BUGS; do
			grep -q "^\.Sh $s\$" "$f" || { echo "$f has no $s"; bad=1; }
		done
	done
	return $bad
}

every_tool()
{
	local t bad=0
	for t in "$TOP"/cmd/*.c; do
		t=$(basename "$t" .c)
		[ "$t" = weir ] || t=weir-$t
		[ -e "$TOP/man/$t.1" ] || { echo "man/$t.1 is missing"; bad=1; }
	done
	return $bad
}

# Whoever looks for a tool finds it: in the README, in weir(1), and in weir(7).
found()
{
	local t bad=0
	for t in "$TOP"/cmd/*.c; do
		t=$(basename "$t" .c)
		[ "$t" != weir ] || continue
		grep -q "^| \`$t\` |" "$TOP/README.md" || { echo "the README's table does not have $t"; bad=1; }
		grep -q "^\.It Xr weir-$t 1" "$TOP/man/weir.1" || { echo "weir(1) does not list $t"; bad=1; }
		grep -q "^\.Xr weir-$t 1" "$TOP/man/weir.7" || { echo "weir(7) does not refer to $t"; bad=1; }
	done
	return $bad
}

# One line says the same in the page and in the list of `weir`.
summaries()
{
	local t summary bad=0
	weir >list
	for t in "$TOP"/cmd/*.c; do
		t=$(basename "$t" .c)
		[ "$t" != weir ] || continue
		summary=$(sed -n "s/^  $t  *//p" list)
		[ -n "$summary" ] || { echo "'weir' does not list $t"; bad=1; continue; }
		grep -qFx ".Nd $summary" "$TOP/man/weir-$t.1" || { echo "man/weir-$t.1: .Nd is not: $summary"; bad=1; }
	done
	return $bad
}

if have mandoc; then
	test_case "mandoc has nothing to say" lint
else
	skip_case "mandoc has nothing to say" "mandoc is not installed"
fi
test_case "pages refer to pages that exist" references
test_case "pages have their sections" sections
test_case "every tool has a page" every_tool
test_case "README, weir(1) and weir(7) have every tool" found
test_case "page and list have the same summary" summaries
done_testing
