/*
 * The sound of a flow that is played: packets decoded, holes concealed, one behind the other in a FIFO of float frames.
 */
#ifndef LEG_NETFLOWSOUND_H
#define LEG_NETFLOWSOUND_H

#include "leg/netflow.h"

/* Memory and tables, before the first packet.  Role: io; allocates.  Returns: ERR_OK, ERR_NOMEM, ERR_ARG. */
enum err netflowsound_begin(struct netflow *f, struct err_why *why) WEIR_MUSTUSE;

/* Room in the fifo for n frames, made by the caller having asked for no more than a packet beyond a block. */
float *netflowsound_room(struct netflow *f, uint32_t n_frames);

/* Decode the packet's frames behind those in the fifo. */
void netflowsound_packet(struct netflow *f, const struct jitter_part *part);

/* Frames that did not come, or that are filled in. */
void netflowsound_hole(struct netflow *f, uint32_t frames, const struct jitter_part *part);

/* What was filled in behind the last packet: so many frames of it were never sent, the rest was late or lost. */
void netflowsound_settle(struct netflow *f, int64_t unsent_frames);

#endif
