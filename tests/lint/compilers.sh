#!/bin/bash
# gcc and clang both take every file without a warning.
. "$(dirname "$0")/../lib.sh"

compile()
{
	local cc=$1 f n=0 bad=0 flags extra
	cd "$TOP"
	flags=$(make -s --no-print-directory CC="$cc" SAN= print-ALL_CFLAGS)
	for f in $(make -s --no-print-directory CC="$cc" print-LIB_SRC) cmd/*.c tests/unit/*.c; do
		[ -e "$f" ] || continue
		extra=
		case $f in
		*_avx2.c) extra='-mavx2 -mfma' ;;
		*_sse42.c) extra=-msse4.2 ;;
		*_armv8.c) extra=-march=armv8-a+crc ;;
		esac
		n=$((n + 1))
		# The flags hold quoted words, as in the Makefile's own commands.
		eval "$cc $flags -MF /dev/null $extra -Itests -fsyntax-only \$f" || { echo "$cc: $f"; bad=$((bad + 1)); }
	done
	[ "$n" -ge 20 ] || fail "only $n files were compiled"
	[ "$bad" = 0 ]
}

# What was built was taken by the compiler that built it: warnings are errors.
built_with_gcc()
{
	[ -z "${SAN-}" ] && "${CC:-cc}" --version | grep -q 'Free Software Foundation' && [ -e "$B/libcore.a" ]
}

for cc in gcc clang; do
	if [ $cc = gcc ] && built_with_gcc; then
		continue
	elif have $cc; then
		test_case "$cc takes every file without a warning" compile $cc
	else
		skip_case "$cc takes every file without a warning" "$cc is not installed"
	fi
done
done_testing
