/*
 * What this processor can do, read once.  WEIR_CPU=c|sse2|sse42|avx2|neon lowers it, so that tests and users reach
 * every version of a kernel on one machine.
 */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdbool.h>

enum cpu_flag {
	CPU_SSE2 = 1,
	CPU_SSE42 = 2,
	CPU_AVX2 = 4, /* and FMA, which every AVX2 processor we meet has */
	CPU_NEON = 8,
	CPU_CRC = 16, /* ARMv8 CRC32 */
};

/* The flags that may be used: the processor's, lowered by WEIR_CPU.  The first call reads both.  Any role after that. */
unsigned cpu_flags(void);

static inline bool cpu_has(enum cpu_flag flag)
{
	return (cpu_flags() & flag) != 0;
}

#endif
