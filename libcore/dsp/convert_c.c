/*
 * The definition of every conversion.  Two routes, both without loss before the one rounding:
 *   integer source: left-justified in int32 ("q31"), then rounded down to the target's bits;
 *   float source:   scaled by a power of two in double, rounded once.
 * A dithered target is reached through 30 bits ("q29", full scale 2^29), which leaves room for the noise.
 */
#include "dsp/convert.h"

#include "base/bytes.h"
#include "dsp/inline.h"

INLINE bool is_float(enum sample f)
{
	return f == SAMPLE_F32 || f == SAMPLE_F64;
}

INLINE size_t bytes_of(enum sample f)
{
	return f == SAMPLE_S16 ? 2 : f == SAMPLE_S24 ? 3 : f == SAMPLE_F64 ? 8 : 4;
}

INLINE int bits_of(enum sample f)
{
	return f == SAMPLE_S16 ? 16 : f == SAMPLE_S32 ? 32 : 24;
}

INLINE int32_t load_q31(enum sample from, const uint8_t *p)
{
	switch (from) {
	case SAMPLE_S16:
		return (int32_t)((uint32_t)get_le16(p) << 16);
	case SAMPLE_S24:
		return (int32_t)(get_le24(p) << 8);
	case SAMPLE_S24_32:
		return (int32_t)(get_le32(p) & 0xffffff00u);
	default:
		return (int32_t)get_le32(p);
	}
}

INLINE double load_double(enum sample from, const uint8_t *p)
{
	if (from == SAMPLE_F64) {
		uint64_t u = get_le64(p);
		double d;
		memcpy(&d, &u, sizeof(d));
		return d;
	}
	uint32_t u = get_le32(p);
	float f;
	memcpy(&f, &u, sizeof(f));
	return f;
}

INLINE void store_int(enum sample to, uint8_t *p, int32_t v)
{
	switch (to) {
	case SAMPLE_S16:
		put_le16(p, (uint16_t)v);
		break;
	case SAMPLE_S24:
		put_le24(p, (uint32_t)v);
		break;
	case SAMPLE_S24_32:
		put_le32(p, (uint32_t)v << 8);
		break;
	default:
		put_le32(p, (uint32_t)v);
	}
}

INLINE void store_f32(uint8_t *p, float f)
{
	uint32_t u;
	memcpy(&u, &f, sizeof(u));
	put_le32(p, u);
}

INLINE void store_f64(uint8_t *p, double d)
{
	uint64_t u;
	memcpy(&u, &d, sizeof(u));
	put_le64(p, u);
}

/* To nearest, ties to even, for |v| < 2^31: adding 1.5 * 2^52 leaves the integer in the low bits. */
INLINE int32_t round_even(double v)
{
	uint64_t u;
	v += 0x1.8p52;
	memcpy(&u, &v, sizeof(u));
	return (int32_t)(uint32_t)u;
}

INLINE int32_t saturate(int32_t v, int bits, size_t *n_clipped)
{
	int32_t max = (int32_t)((1u << (bits - 1)) - 1);
	*n_clipped += v > max || v < -max - 1;
	return v > max ? max : v < -max - 1 ? -max - 1 : v;
}

INLINE int32_t from_double(double x, int bits, size_t *n_clipped)
{
	double v = x * (double)(1u << (bits - 1));
	if (bits == 32) {
		bool high = v >= 2147483647.5, low = v < -2147483648.5;
		*n_clipped += high || low;
		return high ? INT32_MAX : low ? INT32_MIN : v == v ? round_even(v) : 0;
	}
	/* The bounds lie outside the range of the target, so that what they catch is still counted. */
	double bound = (double)(1u << bits);
	v = v != v ? 0.0 : v > bound ? bound : v < -bound ? -bound : v;
	return saturate(round_even(v), bits, n_clipped);
}

INLINE int32_t from_q31(int32_t q, int bits, size_t *n_clipped)
{
	int shift = 32 - bits;
	if (shift == 0)
		return q;
	int32_t half = 1 << (shift - 1);
	int32_t top = INT32_MAX - (2 * half - 1); /* the target's largest value */
	if (q >= top + half) { /* a tie there goes up, the largest value being odd */
		*n_clipped += 1;
		q = top;
	}
	return (q + half - 1 + ((q >> shift) & 1)) >> shift;
}

/* The next noise of this lane: the difference of two uniform numbers of `bits` bits. */
INLINE int32_t noise_next(struct convert_noise *noise, int bits)
{
	uint32_t x = noise->lane[noise->next];
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	noise->lane[noise->next] = x;
	noise->next = (noise->next + 1) % CONVERT_LANES;
	return (int32_t)(x >> (32 - bits)) - (int32_t)((x & 0xffff) >> (16 - bits));
}

INLINE int32_t dither_q29(struct convert_noise *noise, int32_t q, int bits, size_t *n_clipped)
{
	int shift = 30 - bits;
	return saturate((q + noise_next(noise, shift) + (1 << (shift - 1))) >> shift, bits, n_clipped);
}

INLINE int32_t q29_from_double(double x)
{
	double v = x * 0x1p29;
	return round_even(v != v ? 0.0 : v > 0x1p30 ? 0x1p30 : v < -0x1p30 ? -0x1p30 : v);
}

INLINE size_t run(enum sample from, enum sample to, bool dithers, struct convert_noise *noise, void *dst,
	const void *src, size_t n_samples)
{
	size_t n_clipped = 0;
	uint8_t *d = dst;
	const uint8_t *s = src;
	for (size_t i = 0; i < n_samples; i++, d += bytes_of(to), s += bytes_of(from)) {
		if (is_float(to)) {
			if (to == SAMPLE_F32)
				store_f32(d, is_float(from) ? (float)load_double(from, s)
							    : (float)load_q31(from, s) * 0x1p-31f);
			else
				store_f64(d, is_float(from) ? load_double(from, s) : load_q31(from, s) * 0x1p-31);
			continue;
		}
		int32_t v;
		if (dithers)
			v = dither_q29(noise, is_float(from) ? q29_from_double(load_double(from, s)) : load_q31(from, s) >> 2,
				bits_of(to), &n_clipped);
		else
			v = is_float(from) ? from_double(load_double(from, s), bits_of(to), &n_clipped)
					   : from_q31(load_q31(from, s), bits_of(to), &n_clipped);
		store_int(to, d, v);
	}
	return n_clipped;
}

#include "dsp/convert_pairs.inc"

convert_fn *convert_c_pick(enum sample from, enum sample to, bool dithers)
{
	return pick(from, to, dithers);
}
