#include "base/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

/* 0 = not read yet; else the flags with CPU_KNOWN set.  Two threads that race write the same value. */
static atomic_uint cpu_state;
#define CPU_KNOWN 0x80000000u

static unsigned detect(void)
{
	unsigned flags = 0;
#if defined(__x86_64__)
	__builtin_cpu_init();
	flags |= CPU_SSE2;
	if (__builtin_cpu_supports("sse4.2"))
		flags |= CPU_SSE42;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		flags |= CPU_AVX2;
#elif defined(__aarch64__)
	flags |= CPU_NEON;
	if (getauxval(AT_HWCAP) & (1u << 7)) /* HWCAP_CRC32 */
		flags |= CPU_CRC;
#endif
	return flags;
}

static unsigned allowed_by(const char *name)
{
	if (!name || !*name)
		return ~0u;
	if (!strcmp(name, "c"))
		return 0;
	if (!strcmp(name, "sse2"))
		return CPU_SSE2;
	if (!strcmp(name, "sse42"))
		return CPU_SSE2 | CPU_SSE42;
	return ~0u;
}

unsigned cpu_flags(void)
{
	unsigned state = atomic_load_explicit(&cpu_state, memory_order_relaxed);
	if (!state) {
		state = (detect() & allowed_by(getenv("WEIR_CPU"))) | CPU_KNOWN;
		atomic_store_explicit(&cpu_state, state, memory_order_relaxed);
	}
	return state & ~CPU_KNOWN;
}
