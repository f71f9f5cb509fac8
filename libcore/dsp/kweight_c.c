#include "dsp/kweight.h"

void kweight_c_energy(const struct kweight_filter *filter, struct kweight_channel *state, double *energy,
	const float *x, unsigned channels, size_t n_frames)
{
	const double *sb = filter->shelf_b, *sa = filter->shelf_a, *pb = filter->pass_b, *pa = filter->pass_a;
	for (unsigned c = 0; c < channels; c++) {
		struct kweight_channel s = state[c];
		double sum = 0.0;
		for (size_t f = 0; f < n_frames; f++) {
			double x0 = x[f * channels + c];
			double y0 = sb[0] * x0 + sb[1] * s.x1 + sb[2] * s.x2 - sa[1] * s.y2 - sa[0] * s.y1;
			double z0 = pb[0] * y0 + pb[1] * s.y1 + pb[2] * s.y2 - pa[1] * s.z2 - pa[0] * s.z1;
			s = (struct kweight_channel){x0, s.x1, y0, s.y1, z0, s.z1};
			sum += z0 * z0;
		}
		energy[c] += sum;
		state[c] = (struct kweight_channel){kweight_settle(s.x1), kweight_settle(s.x2), kweight_settle(s.y1),
			kweight_settle(s.y2), kweight_settle(s.z1), kweight_settle(s.z2)};
	}
}
