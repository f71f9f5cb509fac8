/* The definition of adding to a mix. */
#include "mix/accum.h"

#include "base/bytes.h"
#include "dsp/inline.h"

#include <math.h>

INLINE size_t bytes_of(enum sample f)
{
	return f == SAMPLE_S16 ? 2 : f == SAMPLE_S24 ? 3 : f == SAMPLE_F64 ? 8 : 4;
}

INLINE double load(enum sample format, const uint8_t *p, size_t *n_bad)
{
	uint64_t u;
	double d;
	float f;

	switch (format) {
	case SAMPLE_S16:
		return (int16_t)get_le16(p);
	case SAMPLE_S24:
		return (int32_t)(get_le24(p) << 8) >> 8;
	case SAMPLE_S24_32:
		return (int32_t)(get_le32(p) & 0xffffff00u);
	case SAMPLE_S32:
		return (int32_t)get_le32(p);
	case SAMPLE_F32: {
		uint32_t v = get_le32(p);
		memcpy(&f, &v, sizeof(f));
		d = f;
		break;
	}
	default:
		u = get_le64(p);
		memcpy(&d, &u, sizeof(d));
	}
	if (isfinite(d))
		return d;
	*n_bad += 1;
	return 0;
}

INLINE size_t run(enum sample format, enum accum_kind kind, double *acc, const void *src, size_t n, const double *gain)
{
	const size_t step = bytes_of(format);
	const uint8_t *p = src;
	size_t n_bad = 0;

	if (kind == ACCUM_PAIRS) {
		for (size_t i = 0; i < n; i++, p += step)
			acc[i] += load(format, p, &n_bad) * gain[i & 1];
	} else if (kind == ACCUM_SPREAD) {
		for (size_t f = 0; f < n; f++, p += step) {
			double x = load(format, p, &n_bad);
			acc[2 * f] += x * gain[0];
			acc[2 * f + 1] += x * gain[1];
		}
	} else {
		for (size_t f = 0; f < n; f++, p += 2 * step) {
			double l = load(format, p, &n_bad), r = load(format, p + step, &n_bad);
			acc[2 * f] += l * gain[0] + r * gain[1];
			acc[2 * f + 1] += r * gain[3] + l * gain[2];
		}
	}
	return n_bad;
}

#include "mix/accum_kinds.inc"

accum_fn *accum_c_pick(enum sample format, enum accum_kind kind)
{
	return pick(format, kind);
}
