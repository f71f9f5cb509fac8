/*
 * Numbers in byte order: the only way packets and file headers are packed and unpacked.  Never cast a struct.
 */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BYTES_LE(bits, x) (x)
#define BYTES_BE(bits, x) __builtin_bswap##bits(x)
#else
#define BYTES_LE(bits, x) __builtin_bswap##bits(x)
#define BYTES_BE(bits, x) (x)
#endif

#define BYTES_DEFINE(bits)                                                        \
	static inline uint##bits##_t get_le##bits(const uint8_t *p)               \
	{                                                                         \
		uint##bits##_t x;                                                 \
		memcpy(&x, p, sizeof(x));                                         \
		return BYTES_LE(bits, x);                                         \
	}                                                                         \
	static inline uint##bits##_t get_be##bits(const uint8_t *p)               \
	{                                                                         \
		uint##bits##_t x;                                                 \
		memcpy(&x, p, sizeof(x));                                         \
		return BYTES_BE(bits, x);                                         \
	}                                                                         \
	static inline void put_le##bits(uint8_t *p, uint##bits##_t v)             \
	{                                                                         \
		uint##bits##_t x = BYTES_LE(bits, v);                             \
		memcpy(p, &x, sizeof(x));                                         \
	}                                                                         \
	static inline void put_be##bits(uint8_t *p, uint##bits##_t v)             \
	{                                                                         \
		uint##bits##_t x = BYTES_BE(bits, v);                             \
		memcpy(p, &x, sizeof(x));                                         \
	}

BYTES_DEFINE(16)
BYTES_DEFINE(32)
BYTES_DEFINE(64)

static inline uint32_t get_le24(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
}

static inline void put_le24(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
}

#endif
