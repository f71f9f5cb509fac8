#include "mix/accum.h"

#include "base/cpu.h"

double accum_scale(enum sample format)
{
	switch (format) {
	case SAMPLE_S16:
		return 0x1p15;
	case SAMPLE_S24:
		return 0x1p23;
	case SAMPLE_S24_32: /* used left-justified, as it lies */
	case SAMPLE_S32:
		return 0x1p31;
	default:
		return 1;
	}
}

accum_fn *accum_pick(enum sample format, enum accum_kind kind, unsigned cpu_flags)
{
#if defined(__x86_64__)
	if (cpu_flags & CPU_AVX2)
		return accum_avx2_pick(format, kind);
#else
	(void)cpu_flags;
#endif
	return accum_c_pick(format, kind);
}

#if !defined(__x86_64__)
accum_fn *accum_avx2_pick(enum sample format, enum accum_kind kind)
{
	(void)format;
	(void)kind;
	return NULL;
}
#endif
