#!/bin/bash
# Every name that libcore/LAYER/x.c gives to the linker begins with x_: so a caller knows which header to open.
. "$(dirname "$0")/../lib.sh"

# What stands in front of the C library's own functions has their names.
allowed()
{
	case $1:$2 in
	heap:malloc | heap:calloc | heap:realloc | heap:reallocarray | heap:free | heap:cfree) ;;
	heap:memalign | heap:aligned_alloc | heap:posix_memalign | heap:valloc | heap:pvalloc | heap:malloc_usable_size) ;;
	*) return 1 ;;
	esac
}

prefixes()
{
	local src obj module symbol n=0 bad=0
	for src in "$TOP"/libcore/*/*.c; do
		obj=$B/${src#"$TOP"/}
		obj=${obj%.c}.o
		[ -e "$obj" ] || continue
		module=$(basename "$src" .c)
		# Versions of a kernel, and the part of a module that the deadline role calls, belong to the module.
		module=${module%_c} module=${module%_avx2} module=${module%_sse2} module=${module%_sse42}
		module=${module%_neon} module=${module%_armv8} module=${module%_dl}
		for symbol in $(nm -g --defined-only "$obj" | awk 'NF == 3 && $3 !~ /^_/ { print $3 }'); do
			n=$((n + 1))
			case $symbol in "$module"_*) continue ;; esac
			allowed "$module" "$symbol" && continue
			echo "${src#"$TOP"/}: $symbol does not begin with ${module}_"
			bad=$((bad + 1))
		done
	done
	[ "$n" -ge 50 ] || fail "only $n symbols were found in $B: is it built?"
	[ "$bad" = 0 ]
}

test_case "external names begin with their module's name" prefixes
done_testing
