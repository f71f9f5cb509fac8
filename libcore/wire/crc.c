#include "wire/crc.h"

#include "base/bytes.h"
#include "base/cpu.h"
#include "wire/crc_table.h"

/* Slicing by eight: eight bytes are eight independent look-ups. */
uint32_t crc_32c_portable(uint32_t crc, const void *p, size_t n_bytes)
{
	const uint8_t *b = p;
	uint32_t c = ~crc;

	for (; n_bytes >= 8; b += 8, n_bytes -= 8) {
		uint32_t lo = get_le32(b) ^ c;
		uint32_t hi = get_le32(b + 4);
		c = crc_table[7][lo & 0xff] ^ crc_table[6][lo >> 8 & 0xff] ^ crc_table[5][lo >> 16 & 0xff] ^
			crc_table[4][lo >> 24] ^ crc_table[3][hi & 0xff] ^ crc_table[2][hi >> 8 & 0xff] ^
			crc_table[1][hi >> 16 & 0xff] ^ crc_table[0][hi >> 24];
	}
	for (; n_bytes; b++, n_bytes--)
		c = (c >> 8) ^ crc_table[0][(c ^ *b) & 0xff];
	return ~c;
}

uint32_t crc_32c(uint32_t crc, const void *p, size_t n_bytes)
{
#if defined(__x86_64__)
	if (cpu_has(CPU_SSE42))
		return crc_32c_sse42(crc, p, n_bytes);
#elif defined(__aarch64__)
	if (cpu_has(CPU_CRC))
		return crc_32c_armv8(crc, p, n_bytes);
#endif
	return crc_32c_portable(crc, p, n_bytes);
}
