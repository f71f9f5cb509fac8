#include "stage/retimeplanes.h"

#include "base/cpu.h"
#include "base/units.h"

#include <stdlib.h>
#include <string.h>

static size_t sample_bytes(const struct retimeplanes *p)
{
	return p->is_double ? sizeof(double) : sizeof(float);
}

enum err retimeplanes_init(struct retimeplanes *p, unsigned n_channels, bool is_double, unsigned n_batches, size_t in_frames, size_t out_frames)
{
	const size_t channels = n_channels;
	void *samples;

	p->channels = n_channels;
	p->is_double = is_double;
	dsp_init(&p->dsp, cpu_flags());
	/* An odd number of cache lines each: the same frame of all planes must not fall into one set of the cache. */
	size_t in_bytes = (units_round_up(in_frames * sample_bytes(p), 64) | 64) + 128;
	size_t out_bytes = (units_round_up(out_frames * sample_bytes(p), 64) | 64) + 128;

	p->pointers = calloc((2 * n_batches + 1) * channels, sizeof(*p->pointers));
	if (!p->pointers || posix_memalign(&samples, 64, n_batches * channels * (in_bytes + out_bytes)))
		return ERR_NOMEM;
	p->samples = samples;
	p->at = p->pointers;
	for (size_t i = 0; i < n_batches; i++) {
		struct retimeplanes_batch *b = &p->batches[i];
		uint8_t *first = p->samples + i * channels * (in_bytes + out_bytes);
		b->in = p->pointers + (2 * i + 1) * channels;
		b->out = p->pointers + (2 * i + 2) * channels;
		for (size_t c = 0; c < channels; c++) {
			b->in[c] = first + c * in_bytes;
			b->out[c] = first + channels * in_bytes + c * out_bytes;
		}
	}
	return ERR_OK;
}

void retimeplanes_release(struct retimeplanes *p)
{
	free(p->pointers);
	free(p->samples);
	memset(p, 0, sizeof(*p));
}

void **retimeplanes_from(const struct retimeplanes *p, void *const *planes, size_t at)
{
	for (unsigned c = 0; c < p->channels; c++)
		p->at[c] = (uint8_t *)planes[c] + at * sample_bytes(p);
	return p->at;
}

void retimeplanes_split(const struct retimeplanes *p, void *const *planes, size_t at, const void *frames, size_t n_frames)
{
	void **to = retimeplanes_from(p, planes, at);
	const double *sample = frames;

	if (!p->is_double) {
		p->dsp.split((float *const *)to, frames, p->channels, n_frames);
		return;
	}
	for (size_t i = 0; i < n_frames; i++)
		for (unsigned c = 0; c < p->channels; c++)
			((double *)to[c])[i] = *sample++;
}

void retimeplanes_join(const struct retimeplanes *p, void *frames, void *const *planes, size_t at, size_t n_frames)
{
	void **from = retimeplanes_from(p, planes, at);
	double *sample = frames;

	if (!p->is_double) {
		p->dsp.join(frames, (const float *const *)from, p->channels, n_frames);
		return;
	}
	for (size_t i = 0; i < n_frames; i++)
		for (unsigned c = 0; c < p->channels; c++)
			*sample++ = ((const double *)from[c])[i];
}
