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

#if !defined(__x86_64__)
convert_fn *convert_avx2_pick(enum sample from, enum sample to, bool dithers)
{
	(void)from;
	(void)to;
	(void)dithers;
	return NULL;
}
#endif
