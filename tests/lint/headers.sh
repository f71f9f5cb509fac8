#!/bin/bash
# Each header compiles alone, and twice.
. "$(dirname "$0")/../lib.sh"

headers()
{
	local h n=0 bad=0 flags
	cd "$TOP"
	flags=$(make -s --no-print-directory print-PKG_CFLAGS)
	for h in libcore/*/*.h tests/*.h; do
		case $h in
		*_table.h | *_kernel.h | *_pairs.h) continue ;; # parts of one .c file
		esac
		n=$((n + 1))
		printf '#include "%s"\n#include "%s"\n' "${h#libcore/}" "${h#libcore/}" |
			${CC:-cc} -std=gnu11 -D_GNU_SOURCE -DWEIR_VERSION='""' -Ilibcore -I. $flags -Wall -Wextra -Werror \
				-Wno-unused-function -fsyntax-only -x c - || {
			echo "$h does not compile alone"
			bad=$((bad + 1))
		}
	done
	[ "$n" -ge 15 ] || fail "only $n headers were found"
	[ "$bad" = 0 ]
}

test_case "each header compiles alone" headers
done_testing
