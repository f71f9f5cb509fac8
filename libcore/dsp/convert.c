#include "dsp/convert.h"

#include "base/bytes.h"
#include "base/cpu.h"

size_t convert_sample_bytes(enum sample format)
{
	switch (format) {
	case SAMPLE_S16:
		return 2;
	case SAMPLE_S24:
		return 3;
	case SAMPLE_S24_32:
	case SAMPLE_S32:
	case SAMPLE_F32:
		return 4;
	case SAMPLE_F64:
		return 8;
	case SAMPLE_CODED:
		break;
	}
	return 0;
}

static bool is_24(enum sample format)
{
	return format == SAMPLE_S24 || format == SAMPLE_S24_32;
}

bool convert_loses(enum sample from, enum sample to)
{
	if (to == SAMPLE_S16)
		return from != SAMPLE_S16;
	return is_24(to) && (from == SAMPLE_S32 || from == SAMPLE_F32 || from == SAMPLE_F64);
}

#define COPY(name, bytes)                                                                                \
	static size_t name(struct convert_noise *noise, void *dst, const void *src, size_t n_samples)    \
	{                                                                                                \
		(void)noise;                                                                             \
		if (dst != src)                                                                          \
			memcpy(dst, src, n_samples * (bytes));                                           \
		return 0;                                                                                \
	}
COPY(copy_2, 2)
COPY(copy_3, 3)
COPY(copy_4, 4)
COPY(copy_8, 8)

static convert_fn *pick_copy(size_t sample_bytes)
{
	return sample_bytes == 2 ? copy_2 : sample_bytes == 3 ? copy_3 : sample_bytes == 4 ? copy_4 : copy_8;
}

/* The finaliser of MurmurHash3: neighbouring seeds and lanes give unrelated states. */
static uint32_t scatter(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x85ebca6bu;
	x ^= x >> 13;
	x *= 0xc2b2ae35u;
	return x ^ x >> 16;
}

enum err convert_init(struct convert *c, enum sample from, enum sample to, bool dither, uint32_t seed)
{
	*c = (struct convert){.from = from, .to = to};
	if (!convert_sample_bytes(from) || !convert_sample_bytes(to))
		return ERR_ARG;

	c->dithers = dither && convert_loses(from, to);
	for (uint32_t i = 0; i < CONVERT_LANES; i++) {
		uint32_t state = scatter(scatter(seed) + 0x9e3779b9u * (i + 1));
		c->noise.lane[i] = state ? state : 1;
	}

	if (from == to) {
		c->fn = pick_copy(convert_sample_bytes(from));
		return ERR_OK;
	}
	c->fn = convert_c_pick(from, to, c->dithers);
#if defined(__x86_64__)
	if (cpu_has(CPU_AVX2))
		c->fn = convert_avx2_pick(from, to, c->dithers);
#endif
	return ERR_OK;
}

void convert_swap(void *dst, const void *src, size_t n_samples, size_t sample_bytes)
{
	uint8_t *d = dst;
	const uint8_t *s = src;
	switch (sample_bytes) {
	case 2:
		for (size_t i = 0; i < n_samples; i++)
			put_le16(d + 2 * i, get_be16(s + 2 * i));
		break;
	case 3:
		for (size_t i = 0; i < n_samples; i++)
			put_le24(d + 3 * i, (uint32_t)s[3 * i] << 16 | (uint32_t)s[3 * i + 1] << 8 | s[3 * i + 2]);
		break;
	case 4:
		for (size_t i = 0; i < n_samples; i++)
			put_le32(d + 4 * i, get_be32(s + 4 * i));
		break;
	case 8:
		for (size_t i = 0; i < n_samples; i++)
			put_le64(d + 8 * i, get_be64(s + 8 * i));
		break;
	default:
		if (dst != src)
			memcpy(dst, src, n_samples * sample_bytes);
	}
}

void convert_from_u8(int16_t *dst, const uint8_t *src, size_t n_samples)
{
	for (size_t i = 0; i < n_samples; i++)
		dst[i] = (int16_t)((src[i] - 128) * 256);
}

void convert_from_s8(int16_t *dst, const uint8_t *src, size_t n_samples)
{
	for (size_t i = 0; i < n_samples; i++)
		dst[i] = (int16_t)((int8_t)src[i] * 256);
}

/* G.711 section 3.1: even bits are inverted; sign (1 is positive), 3 bits of segment, 4 of step; 13 bits, here in 16. */
void convert_from_alaw(int16_t *dst, const uint8_t *src, size_t n_samples)
{
	for (size_t i = 0; i < n_samples; i++) {
		int x = src[i] ^ 0x55;
		int segment = x >> 4 & 7;
		int size = (x & 15) * 16 + 8;
		if (segment)
			size = (size + 256) << (segment - 1);
		dst[i] = (int16_t)(x & 128 ? size : -size);
	}
}

/* G.711 section 3.2: all bits are inverted; sign (1 is negative), segment, step; 14 bits, here in 16. */
void convert_from_ulaw(int16_t *dst, const uint8_t *src, size_t n_samples)
{
	for (size_t i = 0; i < n_samples; i++) {
		int x = src[i] ^ 0xff;
		int size = (((x & 15) * 8 + 132) << (x >> 4 & 7)) - 132;
		dst[i] = (int16_t)(x & 128 ? -size : size);
	}
}

#if !defined(__x86_64__)
convert_fn *convert_avx2_pick(enum sample from, enum sample to, bool dithers)
{
	(void)from;
	(void)to;
	(void)dithers;
	return NULL;
}
#endif
