#include "dsp/levels.h"

#include <arm_neon.h>

/* vmaxnm leaves the other operand where one is NaN. */
float levels_neon_peak(const float *x, size_t n_samples)
{
	float32x4_t a = vdupq_n_f32(0.0f), b = a;
	size_t i = 0;
	for (; i + 8 <= n_samples; i += 8) {
		a = vmaxnmq_f32(a, vabsq_f32(vld1q_f32(x + i)));
		b = vmaxnmq_f32(b, vabsq_f32(vld1q_f32(x + i + 4)));
	}
	float peak = vmaxnmvq_f32(vmaxnmq_f32(a, b)), rest = levels_c_peak(x + i, n_samples - i);
	return rest > peak ? rest : peak;
}
