#!/bin/bash
# NEWS, VERSION and what the programs say agree.
. "$(dirname "$0")/../lib.sh"

version=$(cat "$TOP/VERSION")

news()
{
	eq "$(sed -n 's/^weir \([0-9][0-9.]*\).*/\1/p' "$TOP/NEWS" | head -1)" "$version" "the newest release in NEWS"
}

tag()
{
	local t
	t=$(git -C "$TOP" describe --tags --exact-match 2>/dev/null) || skip "this commit has no tag"
	eq "$t" "v$version" "the tag"
}

programs()
{
	local t n=0
	for t in "$BIN"/*; do
		[ -x "$t" ] || continue
		n=$((n + 1))
		contains <("$t" --version) " $version"
	done
	[ "$n" -ge 2 ] || fail "no tools in $BIN"
}

test_case "NEWS begins with the version" news
test_case "the tag is the version" tag
test_case "every program says the version" programs
done_testing
