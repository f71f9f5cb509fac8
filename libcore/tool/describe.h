/*
 * Packets and tracks as text: one line for people, one JSON object for scripts.  Names of fields: weir-stream(5).
 */
#ifndef TOOL_DESCRIBE_H
#define TOOL_DESCRIBE_H

#include "wire/packet.h"
#include "wire/track.h"

#include <stdio.h>

/*
 * One line: type, track, position, what it covers, bytes, flags.  t is the track as announced, or NULL.
 * Returns: ERR_OK, ERR_NOMEM when an announcement could not be unpacked for that.
 */
enum err describe_packet(FILE *out, const struct packet *p, const struct track *t) WEIR_MUSTUSE;

/* The same as a JSON object on one line, an announcement with its fields. */
enum err describe_packet_json(FILE *out, const struct packet *p, const struct track *t) WEIR_MUSTUSE;

/* A string as JSON, quotes included: bad UTF-8 becomes U+FFFD, control characters are escaped (RFC 8259 section 7). */
void describe_json_string(FILE *out, const char *text, size_t n_bytes);

#endif
