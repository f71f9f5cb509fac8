#include "dsp/gain.h"

#include <arm_neon.h>

void gain_neon_apply(float *dst, const float *src, size_t n_samples, float gain)
{
	size_t i = 0;
	for (; i + 4 <= n_samples; i += 4)
		vst1q_f32(dst + i, vmulq_n_f32(vld1q_f32(src + i), gain));
	gain_c_apply(dst + i, src + i, n_samples - i, gain);
}

/* A product and a sum, not a fused one: the bits are those of gain_c.c. */
void gain_neon_add(float *dst, const float *src, size_t n_samples, float gain)
{
	size_t i = 0;
	for (; i + 4 <= n_samples; i += 4)
		vst1q_f32(dst + i, vaddq_f32(vld1q_f32(dst + i), vmulq_n_f32(vld1q_f32(src + i), gain)));
	gain_c_add(dst + i, src + i, n_samples - i, gain);
}
