/*
 * What a mixing desk has for each track: a gain, a place, mute and solo; and the words that set them, in options and while
 * a mix runs.
 *
 *   gain [TRACK] LEVEL    pan [TRACK] -1…1    mute [TRACK…]    unmute [TRACK…]    solo [TRACK…]    unsolo [TRACK…]    list
 *
 * TRACK is a name, and means all who have it, or a number; without one it is all of them.  LEVEL is -6dB, -inf or a factor.
 */
#ifndef STAGE_DESK_H
#define STAGE_DESK_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define DESK_MAX_GAIN_DB 120.0

struct desk_track {
	char name[128];
	double gain;              /* a factor */
	double pan;               /* −1…1 */
	bool is_panned;           /* pan was set: without it a track keeps its channels as they are */
	bool mute, solo;
};

struct desk {
	struct desk_track *tracks;
	unsigned n_tracks, tracks_room;
	unsigned n_solo;
	/* what all were given, and those that join will be */
	struct desk_track others;
};

/* Zero, with a gain of 1 for all. */
void desk_init(struct desk *d);
void desk_release(struct desk *d);
/* One more track.  Allocates. */
enum err desk_join(struct desk *d, const char *name) WEIR_MUSTUSE;

/* The factor that counts: 0 when it is muted or others are solo. */
double desk_gain(const struct desk *d, unsigned i);

/* An option's value: "2=-6dB", "voice=0.5", "-6dB" for all; which is "gain" or "pan".  Returns: ERR_OK; ERR_ARG with *why. */
enum err desk_option(struct desk *d, const char *which, const char *option, const char *text, struct err_why *why) WEIR_MUSTUSE;
/* The same for a number alone, to be checked before there are tracks: the value's range and form. */
enum err desk_check_option(const char *which, const char *option, const char *text, struct err_why *why) WEIR_MUSTUSE;

/*
 * One command, without its newline.  reply becomes text that ends in a newline: "ok", the list, or "error: …".
 * *changes: something is to be heard.  Allocates nothing.
 */
void desk_command(struct desk *d, const char *line, char *reply, size_t reply_bytes, bool *changes);

#endif
