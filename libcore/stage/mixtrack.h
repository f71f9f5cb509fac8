/* Inside of mixin: the tracks of its inputs, and how their frames come into the queues, in the mix's rate and by position. */
#ifndef STAGE_MIXTRACK_H
#define STAGE_MIXTRACK_H

#include "stage/mixin.h"

/* In a queue: frames at a position of the mix, or (n_frames 0) the format of what follows. */
struct mixtrack_piece {
	int64_t pos;
	uint32_t n_frames;
	uint16_t channels;
	uint16_t format;
	uint64_t wave_mask;
};

struct mixin_track *mixtrack_find(const struct mixin_input *input, uint16_t id);
void mixtrack_free(struct mixin_track *t);

/* A position of a track, in the mix's frames. */
int64_t mixtrack_to_mix(const struct mixin *m, const struct track *t, int64_t pos);

/* A TRACK packet came by.  Returns: ERR_OK; ERR_FORMAT: of what cannot be mixed; ERR_NOMEM …: as all here, with m->why. */
enum err mixtrack_meet(struct mixin *m, struct mixin_input *input, uint16_t id) WEIR_MUSTUSE;

/* The track has a format, for the first time or another one: what is resampled until now comes out first. */
enum err mixtrack_set_format(struct mixin *m, struct mixin_track *t, const struct track *as) WEIR_MUSTUSE;

/* What t hands out from here on. */
void mixtrack_adopt(struct mixin_track *t, const struct mixtrack_piece *p);

/* Where the packet belongs: where its timeline begins anew nothing is missing, and what comes stands behind what came. */
int64_t mixtrack_place(struct mixin_track *t, const struct packet *p);

/* Frames, of the mix's rate, into the queue.  Returns: also ERR_LIMIT: the spool is full; ERR_SYS.  Role: io: as all that put frames there. */
enum err mixtrack_put(struct mixin *m, struct mixin_track *t, int64_t pos, size_t n_frames, const void *frames, size_t frame_bytes) WEIR_MUSTUSE;

/* Frames of the input's rate and format, through the resampler into the queue. */
enum err mixtrack_resample(struct mixin *m, struct mixin_track *t, int64_t pos, const uint8_t *frames, size_t n_frames) WEIR_MUSTUSE;

/* Everything before pos, of the mix, is here. */
void mixtrack_reach(struct mixin_track *t, int64_t pos);

/* A stretch without frames, up to a position of the input. */
enum err mixtrack_gap(struct mixin *m, struct mixin_track *t, int64_t end_pos) WEIR_MUSTUSE;

/* The track is over; the input is, well or not: whatever was lost is said. */
enum err mixtrack_end(struct mixin *m, struct mixin_track *t) WEIR_MUSTUSE;
enum err mixtrack_end_input(struct mixin *m, struct mixin_input *input, const struct err_why *failure) WEIR_MUSTUSE;

#endif
