/*
 * Makes a reader's packets a regular stream: tracks, positions, holes, fragments, concatenation.  Part of the reader: nobody
 * else includes this.
 */
#ifndef WIRE_TIMELINE_H
#define WIRE_TIMELINE_H

#include "wire/reader.h"

/*
 * One sound packet into the stream.  Returns: ERR_OK: hand *p out (it may have been changed); ERR_END: hand *gap out first,
 * then *p; ERR_AGAIN: nothing of it is to be handed out, or not yet; else it failed, with r->why.
 */
enum err timeline_accept(struct reader *r, struct packet *p, struct packet *gap) WEIR_MUSTUSE;

/* The next packet of zeros of a SILENT one that came without payload.  Returns: false if none is left. */
bool timeline_silence(struct reader *r, struct packet *p);

#endif
