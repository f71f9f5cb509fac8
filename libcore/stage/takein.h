/*
 * What the packets of a track mean for its take: where it begins, what is a hole and what a moved timeline, which holes are too long for a
 * file to have as silence, and where Opus begins a run of its own.
 */
#ifndef STAGE_TAKEIN_H
#define STAGE_TAKEIN_H

#include "stage/take.h"

/* The first frame of a take, or of a new format in it, is at pos.  Returns: as take_open().  Role: io, blocks: as both below. */
enum err takein_begin(struct take *t, int64_t pos) WEIR_MUSTUSE;

/* A DATA packet, a GAP packet.  Returns: ERR_OK; what the files say; ERR_LIMIT: a hole that stdout can have no other file behind. */
enum err takein_data(struct take *t, const struct packet *p) WEIR_MUSTUSE;
enum err takein_gap(struct take *t, const struct packet *p) WEIR_MUSTUSE;

#endif
