/*
 * For kernels: what must be inlined and unrolled at every level of optimisation, lest vectors live in memory.
 */
#ifndef DSP_INLINE_H
#define DSP_INLINE_H

#define INLINE static inline __attribute__((always_inline))

/* Before a loop of at most 8 turns, whose count is known when compiling. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

#endif
