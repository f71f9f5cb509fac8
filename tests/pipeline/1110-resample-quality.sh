#!/bin/bash
# resample's filters: passband, images and aliases in steps of 1 Hz, noise; the table of its page.
. "$(dirname "$0")/../lib.sh"

quality()
{
	"$PYTHON" "$TOP/tests/quality/resample.py" "$@"
}

figures()
{
	quality --check --pair "$1"
}

swept()
{
	quality --check --sweep --quality high --quality very-high --pair "$1"
}

# The page says what is measured.
page()
{
	quality --mdoc --pair 44100,48000 --quality high --quality very-high >rows
	[ "$(wc -l <rows)" = 2 ]
	while read -r row; do
		grep -qxF -- "$row" "$TOP/man/weir-resample.1" || fail "not in the page: $row"
	done <rows
}

for pair in 44100,48000 48000,44100 48000,96000 192000,44100; do
	test_case "passband, images and noise, $pair" figures $pair
done
for pair in 44100,48000 192000,44100; do
	test_case "a sweep, every hertz, $pair" swept $pair
done
test_case "the table of the page" page
done_testing
