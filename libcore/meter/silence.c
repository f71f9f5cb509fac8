#include "meter/silence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum err silence_init(struct silence *s, unsigned n_channels, double threshold, uint64_t min_frames)
{
	*s = (struct silence){
		.n_channels = n_channels,
		.threshold = (float)threshold,
		.min_frames = min_frames ? min_frames : 1,
		.ranges = malloc(SILENCE_MAX_RANGES * sizeof(*s->ranges)),
	};
	return s->ranges ? ERR_OK : ERR_NOMEM;
}

void silence_release(struct silence *s)
{
	free(s->ranges);
	memset(s, 0, sizeof(*s));
}

static bool is_loud(const struct silence *s, const float *frame)
{
	bool loud = false;
	for (unsigned c = 0; c < s->n_channels; c++)
		loud |= fabsf(frame[c]) > s->threshold;
	return loud;
}

/* A loud frame at `end` closes what was quiet before it. */
static void close_range(struct silence *s, uint64_t end)
{
	if (end - s->quiet_since_frame < s->min_frames)
		return;
	if (s->n_ranges == SILENCE_MAX_RANGES) {
		s->n_omitted++;
		return;
	}
	s->ranges[s->n_ranges++] = (struct silence_range){ s->quiet_since_frame, end };
}

/*
 * No more frames than min_frames: between two loud frames of one such piece no range can lie, so only the first loud
 * frame (if something quiet led up to it) and the last one matter.
 */
static void add_piece(struct silence *s, const float *frames, size_t n_frames)
{
	size_t last = n_frames;
	while (last > 0 && !is_loud(s, frames + (last - 1) * s->n_channels))
		last--;
	if (last > 0) {
		if (s->quiet_since_frame + s->min_frames <= s->position_frames + n_frames) {
			size_t first = 0;
			while (!is_loud(s, frames + first * s->n_channels))
				first++;
			close_range(s, s->position_frames + first);
		}
		s->quiet_since_frame = s->position_frames + last;
	}
	s->position_frames += n_frames;
}

void silence_add(struct silence *s, const float *frames, size_t n_frames)
{
	while (n_frames) {
		size_t n = n_frames < s->min_frames ? n_frames : (size_t)s->min_frames;
		add_piece(s, frames, n);
		frames += n * s->n_channels;
		n_frames -= n;
	}
}

void silence_add_gap(struct silence *s, uint64_t n_frames)
{
	s->position_frames += n_frames;
}

static bool lasts(const struct silence *s)
{
	uint64_t n_quiet = s->position_frames - s->quiet_since_frame;
	return n_quiet >= s->min_frames && n_quiet > 0;
}

unsigned silence_count(const struct silence *s)
{
	return s->n_ranges + lasts(s);
}

struct silence_range silence_at(const struct silence *s, unsigned i)
{
	return i < s->n_ranges ? s->ranges[i] : (struct silence_range){ s->quiet_since_frame, s->position_frames };
}
