/*
 * Feeds made-up signals to a meter, for the meter's tests.
 */
#ifndef METER_FEED_H
#define METER_FEED_H

#include "check.h"

#include "meter/meter.h"

#include <math.h>
#include <stdlib.h>

#define METER_FEED_FRAMES 1000u /* a packet; no multiple of anything the meter uses */

/* One sample: frame n of channel c. */
typedef double meter_feed_fn(void *arg, int64_t n, unsigned c);

struct meter_feed {
	struct meter meter;
	int64_t pos;
	unsigned n_channels;
	float *block;
};

__attribute__((unused)) static void meter_feed_open_track(struct meter_feed *f, const struct track *t, const struct meter_options *options)
{
	struct meter_options standard = METER_OPTIONS;
	*f = (struct meter_feed){ .n_channels = t->channels };
	f->block = (float *)malloc((size_t)METER_FEED_FRAMES * t->channels * sizeof(float));
	CHECK(f->block);
	CHECK_EQ(meter_init(&f->meter, t, options ? options : &standard), ERR_OK);
}

__attribute__((unused)) static void meter_feed_open(struct meter_feed *f, uint32_t rate_hz, unsigned n_channels)
{
	struct track t = track_pcm(rate_hz, (uint16_t)n_channels, SAMPLE_F32);
	t.id = 1;
	if (n_channels > 2) {
		t.layout = TRACK_LAYOUT_WAVE;
		t.wave_mask = track_usual_mask(n_channels);
	}
	meter_feed_open_track(f, &t, NULL);
}

/* n_frames more; the signal's own frame count goes on. */
__attribute__((unused)) static void meter_feed_add(struct meter_feed *f, int64_t n_frames, meter_feed_fn *signal, void *arg)
{
	while (n_frames > 0) {
		uint32_t n = n_frames < METER_FEED_FRAMES ? (uint32_t)n_frames : METER_FEED_FRAMES;
		for (uint32_t i = 0; i < n; i++)
			for (unsigned c = 0; c < f->n_channels; c++)
				f->block[i * f->n_channels + c] = (float)signal(arg, f->pos + i, c);
		struct packet p = packet_data(1, f->pos, n, n * f->n_channels * (uint32_t)sizeof(float));
		p.payload = (const uint8_t *)f->block;
		CHECK_EQ(meter_data(&f->meter, &p), ERR_OK);
		f->pos += n;
		n_frames -= n;
	}
}

__attribute__((unused)) static void meter_feed_close(struct meter_feed *f)
{
	meter_release(&f->meter);
	free(f->block);
}

/* The factor of a level in dB; 0 at or below -200 dB. */
__attribute__((unused)) static double meter_feed_factor(double db)
{
	return db > -200 ? pow(10, db / 20) : 0;
}

/* A sine of a peak of its own for each channel, or one for all. */
struct meter_feed_sine {
	double rate_hz, freq_hz;
	double peak[8];           /* of channel 0…7; with same, [0] for all */
	bool same;
};

__attribute__((unused)) static double meter_feed_sine_at(void *arg, int64_t n, unsigned c)
{
	const struct meter_feed_sine *s = (const struct meter_feed_sine *)arg;
	double peak = s->peak[s->same ? 0 : c];
	return peak == 0 ? 0 : peak * sin(2 * M_PI * s->freq_hz * (double)n / s->rate_hz);
}

#endif
