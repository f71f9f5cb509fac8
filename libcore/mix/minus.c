#include "mix/minus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum err minus_init(struct minus *m, unsigned channels, size_t block_frames)
{
	memset(m, 0, sizeof(*m));
	m->channels = channels;
	m->block_frames = block_frames;
	m->total = calloc(channels * block_frames, sizeof(*m->total));
	m->mix = calloc(channels * block_frames, sizeof(*m->mix));
	if (m->total && m->mix)
		return ERR_OK;
	minus_release(m);
	return ERR_NOMEM;
}

void minus_release(struct minus *m)
{
	for (unsigned i = 0; i < m->n_parts; i++)
		free(m->parts[i].samples);
	free(m->parts);
	free(m->total);
	free(m->mix);
	memset(m, 0, sizeof(*m));
}

enum err minus_join(struct minus *m)
{
	if (m->n_parts == m->parts_room) {
		unsigned room = m->parts_room ? 2 * m->parts_room : 8;
		struct minus_part *more = realloc(m->parts, room * sizeof(*more));
		if (!more)
			return ERR_NOMEM;
		m->parts = more;
		m->parts_room = room;
	}
	struct minus_part *p = &m->parts[m->n_parts];
	*p = (struct minus_part){ .samples = calloc(m->channels * m->block_frames, sizeof(double)) };
	if (!p->samples)
		return ERR_NOMEM;
	m->n_parts++;
	return ERR_OK;
}

void minus_begin(struct minus *m, size_t n_frames)
{
	m->n_frames = n_frames;
	m->n_loud = 0;
	for (unsigned i = 0; i < m->n_parts; i++)
		m->parts[i].has_some = m->parts[i].is_loud = false;
}

double *minus_part(struct minus *m, unsigned i)
{
	struct minus_part *p = &m->parts[i];

	if (!p->has_some)
		memset(p->samples, 0, m->n_frames * m->channels * sizeof(*p->samples));
	p->has_some = true;
	return p->samples;
}

/* Loud, and silence, are told from the largest magnitude. */
static double peak_of(const double *x, size_t n)
{
	double peak = 0;
	for (size_t k = 0; k < n; k++)
		peak = fabs(x[k]) > peak ? fabs(x[k]) : peak;
	return peak;
}

static void add(double *to, const double *x, size_t n)
{
	for (size_t k = 0; k < n; k++)
		to[k] += x[k];
}

void minus_sum(struct minus *m)
{
	const size_t n = m->n_frames * m->channels;

	memset(m->total, 0, n * sizeof(*m->total));
	for (unsigned i = 0; i < m->n_parts; i++) {
		struct minus_part *p = &m->parts[i];
		if (!p->has_some)
			continue;
		double peak = peak_of(p->samples, n);
		p->has_some = peak > 0;
		p->is_loud = peak > MINUS_LOUD;
		m->n_loud += p->is_loud;
		if (p->has_some && !p->is_loud)
			add(m->total, p->samples, n);
	}
}

const double *minus_mix(struct minus *m, unsigned i, double self, bool *is_shared)
{
	const struct minus_part *p = &m->parts[i];
	const size_t n = m->n_frames * m->channels;

	*is_shared = m->n_loud == 0 && (!p->has_some || self == 1);
	if (*is_shared)
		return m->total;
	if (p->has_some && !p->is_loud && self != 1) {
		const double without = 1 - self;
		for (size_t k = 0; k < n; k++)
			m->mix[k] = m->total[k] - p->samples[k] * without;
	} else {
		memcpy(m->mix, m->total, n * sizeof(*m->mix));
	}
	for (unsigned j = 0; m->n_loud && j < m->n_parts; j++) {
		const struct minus_part *loud = &m->parts[j];
		double gain = j == i ? self : 1;
		for (size_t k = 0; loud->is_loud && gain != 0 && k < n; k++)
			m->mix[k] += loud->samples[k] * gain;
	}
	return m->mix;
}
