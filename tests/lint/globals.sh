#!/bin/bash
# libcore keeps no state outside structs.  What is in .data, .bss and thread-local sections is listed here by file, with
# the reason; tables of constants do not count.
. "$(dirname "$0")/../lib.sh"

allowed()
{
	case $1 in
	base/cpu) ;;   # what the processor can do: read once
	base/heap) ;;  # the counters of the process's allocations
	base/role) ;;  # the role of the calling thread
	net/srtpcipher) ;; # whether libsrtp, which has one state for the process, was started
	tool/publish) ;; # whom the signal that asks for counters means
	tool/tool) ;;  # the stop flag that the signal handler sets
	*) return 1 ;;
	esac
}

globals()
{
	local src obj found n=0 bad=0
	for src in "$TOP"/libcore/*/*.c; do
		obj=$B/${src#"$TOP"/}
		obj=${obj%.c}.o
		[ -e "$obj" ] || continue
		n=$((n + 1))
		found=$(objdump -t "$obj" | awk '
			NF < 5 { next }
			$(NF-2) ~ /^\.(data|bss|tdata|tbss)(\.|$)/ && $(NF-2) !~ /^\.data\.rel\.ro/ && $NF !~ /^\./ &&
			$NF !~ /^(__|\*)/ && $(NF-1) !~ /^0+$/ { print $NF }
			$(NF-2) == "*COM*" { print $NF }')
		[ -n "$found" ] || continue
		src=${src#"$TOP"/libcore/}
		allowed "${src%.c}" && continue
		echo "libcore/$src: state outside structs:" $found
		bad=$((bad + 1))
	done
	[ "$n" -ge 20 ] || fail "only $n objects were found in $B: is it built?"
	[ "$bad" = 0 ]
}

# The check itself finds a global and a static local.
finds()
{
	printf 'int a_seen; int a_next(void); int a_next(void) { static int n = 3; return ++n + a_seen; }\n' >a.c
	${CC:-cc} -c -o a.o a.c
	eq "$(objdump -t a.o | awk 'NF >= 5 && $(NF-2) ~ /^\.(data|bss)$/ && $(NF-1) !~ /^0+$/ { n++ } END { print n }')" 2
}

case $B in
*asan* | *ubsan* | *tsan*) skip_case "no state outside structs" "a sanitizer adds its own" ;;
*) test_case "no state outside structs" globals ;;
esac
test_case "the check sees globals and static locals" finds
done_testing
