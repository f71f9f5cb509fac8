/*
 * PCM to Opus, one track: blocks of any length in, whole Opus packets out, delay-compensated to the sample.
 * Up to two channels the plain API of libopus is used (half the cost of the multistream one), above that families 1 and 255.
 */
#ifndef MEDIA_OPUSENC_H
#define MEDIA_OPUSENC_H

#include "wire/packet.h"
#include "wire/track.h"

/* What the encoder is tuned for; the numbers are libopus's own. */
enum opusenc_application { OPUSENC_VOIP = 2048, OPUSENC_AUDIO = 2049, OPUSENC_LOWDELAY = 2051 };

enum opusenc_mode { OPUSENC_VBR, OPUSENC_CVBR, OPUSENC_CBR };

struct opusenc_options {
	int32_t bitrate_bps;      /* 0: libopus decides (auto); 500…512000 a channel */
	uint32_t frame_us;        /* 2500 5000 10000 20000 40000 60000 */
	int application;          /* enum opusenc_application */
	int complexity;           /* 0…10 */
	enum opusenc_mode mode;
	bool fec, dtx;
	int expect_loss_pct;      /* 0…100 */
	int family;               /* −1: by layout (0 for 1–2 channels, 1 up to 8 with a known layout, else 255) */
};

/* Receives each packet: type DATA (flags, pos, dur, payload set) or GAP (reason DTX) in track's new rate.  payload is valid during the call. */
typedef enum err opusenc_out_fn(void *user, const struct packet *p);

struct opusenc; /* opusenc.c */

/*
 * For a PCM track; *coded becomes the announcement of the Opus track (name, tags, layout, OpusHead in CODEC_PRIVATE,
 * original rate).  Not an Opus rate: resampled to 48 kHz (soxr, very high).  Allocates everything here.
 * Returns: ERR_OK, ERR_ARG, ERR_LIMIT (more than 255 channels), ERR_NOMEM, ERR_CODEC.
 */
enum err opusenc_new(struct opusenc **e, const struct track *pcm, const struct opusenc_options *o, struct track *coded,
	struct err_why *why) WEIR_MUSTUSE;
/* n_frames frames at pos.  Consecutive calls must be contiguous; a hole is opusenc_gap(). */
enum err opusenc_write(struct opusenc *e, int64_t pos, const void *frames, size_t n_frames, opusenc_out_fn *out, void *user) WEIR_MUSTUSE;
/* A hole of n_frames at pos: what is held is finished, the hole is passed on as a GAP in the new rate, coding restarts behind it. */
enum err opusenc_gap(struct opusenc *e, int64_t pos, uint64_t n_frames, const struct packet_gap *gap, opusenc_out_fn *out, void *user) WEIR_MUSTUSE;
/* The end: what the look-ahead holds comes out, the last packet trimmed.  An empty track gives one packet of which nothing is kept. */
enum err opusenc_finish(struct opusenc *e, opusenc_out_fn *out, void *user) WEIR_MUSTUSE;
/* Is the source not at a rate that Opus has? */
bool opusenc_resamples(const struct opusenc *e);
void opusenc_free(struct opusenc *e);

#endif
