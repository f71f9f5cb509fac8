#include "media/opusguard.h"

#include <math.h>
#include <opus/opus.h>

#define STEP_FRAMES 120u       /* 2.5 ms */
#define WATCH_FRAMES 2400u     /* 50 ms: 0.9 to the power of 20 is little */
#define RISE 1.0715f           /* 0.6 dB in a step may the level rise by */
#define SINK 0.98f             /* what was loudest is remembered for an eighth of a second or so */
#define QUIET 0.01f            /* −40 dBFS RMS: not worth a thought */
#define LONGEST_SIZE 1u        /* 5 ms */
#define MAX_PACKET_FRAMES 48

/* ---- the first symbols of a frame ---- */

/* RFC 6716 section 4.1: the range decoder. */
struct range {
	const uint8_t *bytes;
	size_t n_bytes, at;
	uint32_t rng, val;
	uint8_t rem;
};

static uint8_t next_byte(struct range *r)
{
	return r->at < r->n_bytes ? r->bytes[r->at++] : 0;
}

static void normalize(struct range *r)
{
	while (r->rng <= 1u << 23) {
		unsigned symbol = r->rem;

		r->rng <<= 8;
		r->rem = next_byte(r);
		symbol = (symbol << 8 | r->rem) >> 1;
		r->val = ((r->val << 8) + (255u & ~symbol)) & 0x7FFFFFFFu;
	}
}

static void begin(struct range *r, const uint8_t *bytes, size_t n_bytes)
{
	*r = (struct range){ .bytes = bytes, .n_bytes = n_bytes, .rng = 128 };
	r->rem = next_byte(r);
	r->val = 127u - (r->rem >> 1);
	normalize(r);
}

/* A bit that is set once in 2^log. */
static bool read_bit(struct range *r, unsigned log)
{
	uint32_t part = r->rng >> log;
	bool is_set = r->val < part;

	if (!is_set)
		r->val -= part;
	r->rng = is_set ? part : r->rng - part;
	normalize(r);
	return is_set;
}

/* A symbol of n whose chances are even. */
static void skip_uniform(struct range *r, uint32_t n)
{
	uint32_t part = r->rng / n, k = r->val / part + 1, symbol = n - (k < n ? k : n), above = part * (n - 1 - symbol);

	r->val -= above;
	r->rng = symbol ? part : r->rng - above;
	normalize(r);
}

/* Which taps the post-filter has: of four chances 2, 1 and 1. */
static void skip_taps(struct range *r)
{
	uint32_t part = r->rng >> 2, above = r->val >= 2 * part ? 2 * part : r->val >= part ? part : 0;

	r->val -= above;
	r->rng = above == 2 * part ? r->rng - above : part;
	normalize(r);
}

bool opusguard_is_intra(const uint8_t *frame, size_t n_bytes, unsigned size)
{
	struct range r;

	if (n_bytes < 4)
		return false;
	begin(&r, frame, n_bytes);
	if (read_bit(&r, 15)) /* silence */
		return false;
	if (read_bit(&r, 1)) {
		skip_uniform(&r, 6); /* the octave; period and gain are bits at the other end */
		skip_taps(&r);
	}
	if (size)
		(void)read_bit(&r, 3); /* transient */
	return read_bit(&r, 3);
}

/* ---- the watch ---- */

void opusguard_reset(struct opusguard *g)
{
	*g = (struct opusguard){ .level = 0 };
}

void opusguard_lost(struct opusguard *g)
{
	g->is_watching = true;
	g->since_frames = 0;
	g->cut = 0;
}

static float rms(const float *samples, size_t n_samples)
{
	float sums[8] = { 0 }, sum = 0;

	/* Side by side: one addition need not wait for another.  Frames are multiples of 8. */
	for (size_t i = 0; i + 8 <= n_samples; i += 8)
		for (unsigned k = 0; k < 8; k++)
			sums[k] += samples[i + k] * samples[i + k];
	for (unsigned k = 0; k < 8; k++)
		sum += sums[k];
	return sqrtf(sum / (float)n_samples);
}

/* At once where it falls, in a line where it rises. */
static void turn(struct opusguard *g, float gain, float *samples, size_t n_frames, unsigned channels)
{
	float was = 1 - g->cut, from = gain < was ? gain : was, step = (gain - from) / (float)n_frames;

	for (size_t i = 0; i < n_frames; i++)
		for (unsigned c = 0; c < channels; c++)
			samples[i * channels + c] *= from + step * (float)(i + 1);
	g->cut = 1 - gain;
}

/* What the loudest frame up to now was, a little less with time, or a little more while that is allowed. */
static float limit_of(const struct opusguard *g)
{
	float limit = g->level > QUIET ? g->level : QUIET;

	for (uint32_t n = 0; g->is_watching && n < g->since_frames; n += STEP_FRAMES)
		limit *= RISE;
	return limit;
}

static void take_frame(struct opusguard *g, const uint8_t *frame, size_t n_bytes, unsigned size, float *samples, size_t n_frames, unsigned channels)
{
	float level = rms(samples, n_frames * channels), limit = limit_of(g), gain = 1;

	if (g->is_watching && (g->since_frames >= WATCH_FRAMES || opusguard_is_intra(frame, n_bytes, size)))
		g->is_watching = false;
	if (g->is_watching && level > limit)
		gain = limit / level;
	if (gain < 1 || g->cut > 0)
		turn(g, gain, samples, n_frames, channels);
	for (size_t n = 0; n < n_frames; n += STEP_FRAMES)
		g->level *= SINK;
	if (!(level * gain <= g->level))
		g->level = level * gain;
	if (g->is_watching)
		g->since_frames += (uint32_t)n_frames;
}

void opusguard_take(struct opusguard *g, const uint8_t *packet, size_t n_bytes, float *samples, size_t n_frames, unsigned channels)
{
	const unsigned char *frames[MAX_PACKET_FRAMES];
	opus_int16 sizes[MAX_PACKET_FRAMES];
	unsigned char toc;
	int n = n_bytes ? opus_packet_parse(packet, (opus_int32)n_bytes, &toc, frames, sizes, NULL) : 0;
	/* RFC 6716 section 3.1: from 16 on it is CELT, its lower two bits say how long a frame is. */
	unsigned config = n_bytes ? packet[0] >> 3 : 0, size = config & 3;
	size_t each = STEP_FRAMES << size;

	if (n < 1 || config < 16 || size > LONGEST_SIZE || (size_t)n * each != n_frames) {
		opusguard_reset(g);
		return;
	}
	for (int i = 0; i < n; i++)
		take_frame(g, frames[i], (size_t)sizes[i], size, samples + (size_t)i * each * channels, each, channels);
}
