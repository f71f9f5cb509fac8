/*
 * CRC-32C by the instruction.  Its latency is three cycles and its throughput one, so long inputs go in three lanes
 * at once; the lanes are joined by advancing a CRC over LANE_BYTES zero bytes, which is a carry-less multiplication by
 * x^(8·LANE_BYTES) modulo the polynomial: done bit by bit here, once per three lanes, from a constant.
 */
#include "wire/crc.h"

#include "base/bytes.h"

#include <nmmintrin.h>

#define LANE_BYTES 4096u

/* a·b modulo the polynomial, both reflected: bit 31 is x^0. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (int i = 31; i >= 0; i--) {
		product ^= b & (0u - (a >> i & 1u));
		b = (b >> 1) ^ (0x82F63B78u & (0u - (b & 1u)));
	}
	return product;
}

/* x^(8·LANE_BYTES) modulo the polynomial, reflected. */
#define LANE_SHIFT 0x35d73a62u

uint32_t crc_32c_sse42(uint32_t crc, const void *p, size_t n_bytes)
{
	const uint8_t *b = p;
	uint64_t c = ~crc;

	if (n_bytes >= 3 * LANE_BYTES) {
		do {
			uint64_t c1 = 0, c2 = 0;
			for (size_t i = 0; i < LANE_BYTES; i += 8) {
				c = _mm_crc32_u64(c, get_le64(b + i));
				c1 = _mm_crc32_u64(c1, get_le64(b + LANE_BYTES + i));
				c2 = _mm_crc32_u64(c2, get_le64(b + 2 * LANE_BYTES + i));
			}
			c = multiply((uint32_t)c, LANE_SHIFT) ^ (uint32_t)c1;
			c = multiply((uint32_t)c, LANE_SHIFT) ^ (uint32_t)c2;
			b += 3 * LANE_BYTES;
			n_bytes -= 3 * LANE_BYTES;
		} while (n_bytes >= 3 * LANE_BYTES);
	}
	for (; n_bytes >= 8; b += 8, n_bytes -= 8)
		c = _mm_crc32_u64(c, get_le64(b));
	for (; n_bytes; b++, n_bytes--)
		c = _mm_crc32_u8((uint32_t)c, *b);
	return ~(uint32_t)c;
}
