#!/bin/bash
# Words that have no place in what is called done, and white space.
. "$(dirname "$0")/../lib.sh"

# What the project consists of: tracked files, or without git all but what was built.
files()
{
	cd "$TOP"
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1 && [ -n "$(git ls-files | head -1)" ]; then
		git ls-files --cached --others --exclude-standard
	else
		find . -path ./build -prune -o -path ./.git -prune -o -type f -print | sed 's,^\./,,'
	fi | command grep -vE '(^|/)(corpus|data)/'
}

search()
{
	cd "$TOP"
	! files | tr '\n' '\0' | xargs -0 grep -nIE -e "$1" | command grep -v '^tests/lint/comments\.sh:' || exit 1
}

unfinished()
{
	search '\b(TODO|FIXME|XXX|HACK|NEEDSWORK)\b|\b(stubs?|placeholders?|not implemented|unimplemented)\b'
}

# The project speaks of itself: no place on somebody's disk, no number in a tracker, no registry.
elsewhere()
{
	search '(^|[^A-Za-z0-9_])/(work|home|root|Users|mnt|media)/|\b[Ii]ssues? #?[0-9]|#[0-9]+ \(issue\)|\.\./shared'
}

white_space()
{
	cd "$TOP"
	! files | command grep -E '\.([chs]|sh|py|md|mk|[157]|fish|bash)$|Makefile|NEWS' | tr '\n' '\0' |
		xargs -0 grep -nIE '[ 	]+$' || exit 1
	local f bad=0
	while read -r f; do
		[ -s "$f" ] && [ -n "$(tail -c 1 "$f" | tr -d '\n')" ] && { echo "$f does not end in a newline"; bad=1; }
	done < <(files | command grep -E '\.([ch]|sh|py|md|mk|[157])$|Makefile|NEWS')
	return $bad
}

counted()
{
	[ "$(files | wc -l)" -gt 50 ] || fail "hardly any file was found"
}

test_case "files are found" counted
test_case "no words of unfinished work" unfinished
test_case "no words about machines and trackers" elsewhere
test_case "no white space at the ends of lines" white_space
done_testing
