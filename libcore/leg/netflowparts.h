/*
 * A track of more channels than one flow carries: its flows are parts, whose packets are put together (net/assembly.h), and a
 * joint flow plays or passes what is whole.
 */
#ifndef LEG_NETFLOWPARTS_H
#define LEG_NETFLOWPARTS_H

#include "leg/netflow.h"

/*
 * The joint flow of a track of which `format` (codec, rate, and channels: of one part) and binding b tell.  The same as netflow_begin().
 */
enum err netflowparts_begin_joint(struct netflow *f, const struct netflow_options *o, struct writer *out, uint16_t id, const struct rtp_format *format,
	const struct rtcp_binding *b, struct err_why *why) WEIR_MUSTUSE;

/*
 * A part of joint begins, with binding b: it needs no memory.  *f is zero, or was netflow_end()ed.
 * Returns: false: its channels have a sender already, or are outside of the track; *f is as it was.
 */
bool netflowparts_begin(struct netflow *f, struct netflow *joint, uint32_t ssrc, const struct rtp_format *format, const struct rtcp_binding *b, int64_t now_ns);

/* A flow by itself turns out to be a part: its track ends.  Returns: false: as above; it stays what it is. */
bool netflowparts_become(struct netflow *f, struct netflow *joint, const struct rtcp_binding *b, int64_t now_ns);

/* Do they belong together?  joint and a binding of a flow from `from`. */
bool netflowparts_belongs(const struct netflow *joint, const struct rtcp_binding *b, const struct dgram_addr *from);

/* Part: the place of a timestamp on the track, that all parts have in common. */
int64_t netflowparts_pos(struct netflow *f, uint32_t ts);

/* Part: its samples at pos.  What is whole with them goes into the joint flow's buffer.  Returns: as assembly_put(). */
enum assembly_put netflowparts_put(struct netflow *f, int64_t pos, uint32_t frames, const uint8_t *payload, bool follows, bool copy, int64_t arrival_ns);

/* Joint: what is needed up to `before` and has not come whole goes into the buffer as it is.  Other flows: nothing. */
void netflowparts_give_up(struct netflow *f, int64_t before);

#endif
