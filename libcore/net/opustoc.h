/*
 * What the first bytes of an Opus packet say without decoding it (RFC 6716 section 3).
 */
#ifndef NET_OPUSTOC_H
#define NET_OPUSTOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPUSTOC_MAX_FRAMES 5760u /* of a packet, at 48 kHz: 120 ms */

/* Frames at 48 kHz; 0 for what is no packet of Opus: empty, longer than 120 ms, without the count that it announces. */
uint32_t opustoc_frames(const uint8_t *packet, size_t n_bytes);

/* 1 or 2. */
unsigned opustoc_channels(const uint8_t *packet, size_t n_bytes);

#endif
