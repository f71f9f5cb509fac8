#include "dsp/galois.h"

/* a · b by the definition: shift, and subtract the polynomial where a bit runs over. */
static uint8_t multiply(uint8_t a, uint8_t b)
{
	unsigned product = 0, shifted = a;

	for (; b; b >>= 1) {
		if (b & 1)
			product ^= shifted;
		shifted = shifted << 1 ^ (shifted & 0x80 ? 0x11d : 0);
	}
	return (uint8_t)product;
}

void galois_init(struct galois *g)
{
	for (unsigned f = 0; f < 256; f++)
		for (unsigned n = 0; n < 16; n++) {
			g->halves[f][n] = multiply((uint8_t)f, (uint8_t)n);
			g->halves[f][16 + n] = multiply((uint8_t)f, (uint8_t)(n << 4));
		}
	/* x^254 is the inverse of x, since x^255 is 1. */
	for (unsigned f = 0; f < 256; f++) {
		uint8_t square = (uint8_t)f, power = 1;
		for (int i = 0; i < 7; i++) {
			square = galois_multiply(g, square, square);
			power = galois_multiply(g, power, square);
		}
		g->inverse[f] = power;
	}
}

/* A table of whole bytes first: one look-up a byte instead of two. */
static void whole(uint8_t table[256], const uint8_t halves[32])
{
	for (unsigned high = 0; high < 16; high++)
		for (unsigned low = 0; low < 16; low++)
			table[high << 4 | low] = halves[low] ^ halves[16 + high];
}

#define WORTH_A_TABLE 256 /* bytes, from where on making the table costs less than it saves */

void galois_c_add(uint8_t *dst, const uint8_t *src, size_t n_bytes, const uint8_t halves[32])
{
	uint8_t table[256];

	if (n_bytes < WORTH_A_TABLE) {
		for (size_t i = 0; i < n_bytes; i++)
			dst[i] ^= halves[src[i] & 15] ^ halves[16 + (src[i] >> 4)];
		return;
	}
	whole(table, halves);
	for (size_t i = 0; i < n_bytes; i++)
		dst[i] ^= table[src[i]];
}

void galois_c_set(uint8_t *dst, const uint8_t *src, size_t n_bytes, const uint8_t halves[32])
{
	for (size_t i = 0; i < n_bytes; i++)
		dst[i] = halves[src[i] & 15] ^ halves[16 + (src[i] >> 4)];
}
