/*
 * Finds packets in a reader's bytes.  Part of the reader: nobody else includes this.
 */
#ifndef WIRE_RESYNC_H
#define WIRE_RESYNC_H

#include "wire/reader.h"

/* How much of what follows is looked at to tell a stray STREAM from a real one. */
#define RESYNC_LOOK_AHEAD_BYTES (4u * (PACKET_MAX_PAYLOAD_BYTES + 1024u))

/*
 * The next packet on the wire whose header is sound, and its payload where it has a CRC; everything else is passed over and
 * counted as damage.  Returns: as reader_next().
 */
enum err resync_next(struct reader *r, struct packet *p) WEIR_MUSTUSE;

#endif
