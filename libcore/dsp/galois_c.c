#include "dsp/galois.h"

/* 2x: shift, and subtract the polynomial where a bit runs over. */
static uint8_t twice(uint8_t x)
{
	return (uint8_t)(x << 1 ^ (x & 0x80 ? 0x1d : 0));
}

void galois_init(struct galois *g)
{
	for (unsigned f = 0; f < 256; f++) {
		uint8_t power = (uint8_t)f; /* f · 2^bit */
		for (unsigned bit = 0; bit < 8; bit++, power = twice(power)) {
			uint8_t *half = g->halves[f] + (bit < 4 ? 0 : 16);
			unsigned n = 1u << bit % 4;
			half[0] = 0;
			for (unsigned below = 0; below < n; below++)
				half[n + below] = half[below] ^ power;
		}
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
