/*
 * A livesource on the timeline of another: both are captured at once, each by its own clock, and what they heard at one
 * moment stands at one place of both tracks.  The first is left as it is; the frames of the other are made anew by
 * livesync.h where the two clocks differ enough, else they are copied.
 *
 * Devices of one server may have one clock (live_format.clock): their frames are only put in their places, by the server's own
 * count where there is one, and never made anew.
 *
 * It begins where its first frame belongs: with a gap, or without what was captured before the other began.  Through f32: the
 * low 8 bits of s32 are rounded.
 *
 * All of it is for the thread that reads both.
 */
#ifndef MEDIA_LIVEPLACE_H
#define MEDIA_LIVEPLACE_H

#include "media/livesource.h"
#include "media/livesync.h"

/* Before the first read of l.  to outlives it, and is read by the same thread.  Returns: ERR_OK, ERR_ARG, ERR_NOMEM.  Role: control. */
enum err liveplace_open(struct livesource *l, const struct livesource *to, struct err_why *why) WEIR_MUSTUSE;
void liveplace_release(struct livesource *l);

/* As source_read(). */
enum err liveplace_read(struct source *s, struct livesource *l, uint8_t *dst, size_t max_frames, struct source_block *b) WEIR_MUSTUSE;
/* For livesource: this frame was captured at mono_ns. */
void liveplace_see(struct livesource *l, int64_t frame, int64_t mono_ns);

/* How many parts in a million the device is faster than the other, as found so far; and the frames in for a frame out, now. */
double liveplace_ppm(const struct livesource *l);
double liveplace_ratio(const struct livesource *l);

#endif
