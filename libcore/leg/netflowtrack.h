/*
 * A flow's track on the stream: announced, what is missing written as gaps, and where its positions and times come from.
 */
#ifndef LEG_NETFLOWTRACK_H
#define LEG_NETFLOWTRACK_H

#include "leg/netflow.h"

/* Wall clock of a position of the jitter buffer, by the last SR.  Returns: UNITS_UNKNOWN_NS: there was none. */
int64_t netflowtrack_utc_ns(const struct netflow *f, int64_t jitter_pos);

/* Track position of timestamp zero of the unwrapped ones, as the sender says it.  Returns: it says so. */
bool netflowtrack_base(const struct netflow *f, int64_t *base);

/* The track begins at pos, unless it has.  Returns: what the writer said, as all of these do. */
enum err netflowtrack_announce(struct netflow *f, int64_t pos) WEIR_MUSTUSE;

/* So many frames behind what is written are missing.  Holes that follow each other are one: it is written when something else comes. */
enum err netflowtrack_add_gap(struct netflow *f, int64_t frames, enum packet_gap_reason reason) WEIR_MUSTUSE;
enum err netflowtrack_end_gap(struct netflow *f) WEIR_MUSTUSE;

/* What is written next goes into the queue without a flush: while one waits, packets come in and slots change hands. */
enum err netflowtrack_make_room(struct netflow *f) WEIR_MUSTUSE;

/* Flags of a packet by how it was had.  Channels that did not come are as good as concealed, and counted. */
uint16_t netflowtrack_flags(struct netflow *f, const struct jitter_part *part);

#endif
