#!/bin/bash
# The completions are those of the option tables as they are now; "make completions" makes them.
. "$(dirname "$0")/../lib.sh"

files=$TOP/completions

current()
{
	mkdir made
	sh "$files/generate.sh" "$BIN" made
	local f
	for f in weir.bash _weir weir.fish; do
		same "made/$f" "$files/$f" "run 'make completions'"
	done
}

test_case "completions are made from the option tables as they are" current
done_testing
