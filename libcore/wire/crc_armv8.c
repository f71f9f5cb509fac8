/* CRC-32C by the ARMv8 instruction. */
#include "wire/crc.h"

#include "base/bytes.h"

#include <arm_acle.h>

uint32_t crc_32c_armv8(uint32_t crc, const void *p, size_t n_bytes)
{
	const uint8_t *b = p;
	uint32_t c = ~crc;

	for (; n_bytes >= 8; b += 8, n_bytes -= 8)
		c = __crc32cd(c, get_le64(b));
	for (; n_bytes; b++, n_bytes--)
		c = __crc32cb(c, *b);
	return ~c;
}
