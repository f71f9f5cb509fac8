/*
 * CRC-32C (Castagnoli: reflected 0x82F63B78, init and xorout all ones), RFC 3720 appendix B.4.
 * crc_32c(0, "123456789", 9) = 0xE3069283.
 */
#ifndef WIRE_CRC_H
#define WIRE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* CRC of n_bytes at p, going on from `crc` (0 to begin).  Chosen once by cpu_flags().  Role: any. */
uint32_t crc_32c(uint32_t crc, const void *p, size_t n_bytes);

/* The definition: slicing by 8, and the versions for processors that have the instruction.  Same result. */
uint32_t crc_32c_portable(uint32_t crc, const void *p, size_t n_bytes);
uint32_t crc_32c_sse42(uint32_t crc, const void *p, size_t n_bytes);
uint32_t crc_32c_armv8(uint32_t crc, const void *p, size_t n_bytes);

#endif
