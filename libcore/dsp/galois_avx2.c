/*
 * A byte shuffle is a look-up in a table of 16, for 32 bytes at once: two of them are a product.
 */
#include "dsp/galois.h"

#include "dsp/inline.h"

#include <immintrin.h>
#include <stdbool.h>

struct tables {
	__m256i low, high;
};

INLINE struct tables tables_of(const uint8_t halves[32])
{
	return (struct tables){
		.low = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)halves)),
		.high = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(halves + 16))),
	};
}

INLINE __m256i product(struct tables t, __m256i x)
{
	const __m256i nibble = _mm256_set1_epi8(15);
	__m256i low = _mm256_shuffle_epi8(t.low, _mm256_and_si256(x, nibble));
	__m256i high = _mm256_shuffle_epi8(t.high, _mm256_and_si256(_mm256_srli_epi64(x, 4), nibble));

	return _mm256_xor_si256(low, high);
}

INLINE void run(bool adds, uint8_t *dst, const uint8_t *src, size_t n_bytes, const uint8_t halves[32])
{
	const struct tables t = tables_of(halves);
	size_t i = 0;

	for (; i + 32 <= n_bytes; i += 32) {
		__m256i x = product(t, _mm256_loadu_si256((const __m256i *)(src + i)));
		if (adds)
			x = _mm256_xor_si256(x, _mm256_loadu_si256((const __m256i *)(dst + i)));
		_mm256_storeu_si256((__m256i *)(dst + i), x);
	}
	if (adds)
		galois_c_add(dst + i, src + i, n_bytes - i, halves);
	else
		galois_c_set(dst + i, src + i, n_bytes - i, halves);
}

void galois_avx2_add(uint8_t *dst, const uint8_t *src, size_t n_bytes, const uint8_t halves[32])
{
	run(true, dst, src, n_bytes, halves);
}

void galois_avx2_set(uint8_t *dst, const uint8_t *src, size_t n_bytes, const uint8_t halves[32])
{
	run(false, dst, src, n_bytes, halves);
}
