/*
 * Arithmetic in GF(256) modulo x^8+x^4+x^3+x^2+1 (0x11d), where adding is exclusive or: what Reed–Solomon codes are
 * made of.  Integers only: every version is equal to the bit.
 *
 * A factor is used through two tables of 16: of its products with the lower and with the upper half of a byte.  All 256
 * pairs are 8 KiB, made once by galois_init().
 */
#ifndef DSP_GALOIS_H
#define DSP_GALOIS_H

#include <stddef.h>
#include <stdint.h>

struct galois {
	uint8_t halves[256][32]; /* of factor f: products with 0…15, then with 0x00, 0x10 … 0xf0 */
	uint8_t inverse[256];    /* inverse[0] is 0 and means nothing */
};

void galois_init(struct galois *g);

/* The product of two. */
static inline uint8_t galois_multiply(const struct galois *g, uint8_t a, uint8_t b)
{
	return g->halves[a][b & 15] ^ g->halves[a][16 + (b >> 4)];
}

/* dst[i] += factor · src[i], factor given by its halves.  The two do not overlap, unless they are the same. */
typedef void galois_add_fn(uint8_t *dst, const uint8_t *src, size_t n_bytes, const uint8_t halves[32]);

/* dst[i] = factor · src[i] */
typedef void galois_set_fn(uint8_t *dst, const uint8_t *src, size_t n_bytes, const uint8_t halves[32]);

galois_add_fn galois_c_add, galois_avx2_add;
galois_set_fn galois_c_set, galois_avx2_set;

#endif
