#include "meter/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY(field, kind_) { .name = #field, .kind = (kind_), .offset = offsetof(struct values, field) }

const struct values_key values_keys[] = {
	KEY(integrated_lufs, VALUES_LEVEL),
	KEY(loudness_range_lu, VALUES_NUMBER),
	KEY(momentary_max_lufs, VALUES_LEVEL),
	KEY(short_term_max_lufs, VALUES_LEVEL),
	KEY(momentary_lufs, VALUES_LEVEL),
	KEY(short_term_lufs, VALUES_LEVEL),
	KEY(true_peak_dbtp, VALUES_LEVEL),
	KEY(sample_peak_dbfs, VALUES_LEVEL),
	KEY(rms_dbfs, VALUES_LEVEL),
	KEY(dc_offset, VALUES_NUMBER),
	KEY(clipped_samples, VALUES_COUNT),
	KEY(clipped_runs, VALUES_COUNT),
	KEY(nonfinite_samples, VALUES_COUNT),
	KEY(correlation, VALUES_NUMBER),
	KEY(gaps, VALUES_COUNT),
	KEY(lost_frames, VALUES_COUNT),
	KEY(concealed_frames, VALUES_COUNT),
	KEY(frames, VALUES_COUNT),
	KEY(duration_s, VALUES_NUMBER),
	KEY(frames_offset, VALUES_COUNT),
	KEY(frames_missing, VALUES_COUNT),
	KEY(snr_db, VALUES_EXCESS),
	KEY(max_abs_error, VALUES_NUMBER),
};
const unsigned values_n_keys = ARRAY_LEN(values_keys);

static void read_channels(struct values *v, const struct meter *m)
{
	v->true_peak_dbtp = v->sample_peak_dbfs = v->rms_dbfs = (double)NAN;
	for (unsigned c = 0; c < m->n_channels; c++) {
		struct amplitude_values a = amplitude_read(&m->amplitude, c);
		v->true_peak_dbtp = fmax(v->true_peak_dbtp, a.true_peak_dbtp); /* fmax passes over NAN */
		v->sample_peak_dbfs = fmax(v->sample_peak_dbfs, a.sample_peak_dbfs);
		v->rms_dbfs = fmax(v->rms_dbfs, a.rms_dbfs);
		v->dc_offset = fmax(v->dc_offset, fabs(a.dc_offset));
		v->clipped_samples += (double)a.clipped_samples;
		v->clipped_runs += (double)a.clipped_runs;
		v->nonfinite_samples += (double)a.nonfinite_samples;
	}
}

struct values values_read(const struct meter *m)
{
	struct loudness_values l = meter_loudness(m);
	struct values v = {
		.frames = (double)m->continuity.frames,
		.duration_s = meter_seconds(m, continuity_span_frames(&m->continuity)),
		.integrated_lufs = l.integrated_lufs,
		.loudness_range_lu = l.range_lu,
		.momentary_max_lufs = l.momentary_max_lufs,
		.short_term_max_lufs = l.short_term_max_lufs,
		.momentary_lufs = l.momentary_lufs,
		.short_term_lufs = l.short_term_lufs,
		.correlation = amplitude_correlation(&m->amplitude),
		.gaps = (double)m->continuity.gaps,
		.lost_frames = (double)m->continuity.lost_frames,
		.concealed_frames = (double)m->continuity.concealed_frames,
		.has_compare = m->has_compare,
		.frames_offset = (double)NAN, .frames_missing = (double)NAN,
		.snr_db = (double)NAN, .max_abs_error = (double)NAN,
	};
	read_channels(&v, m);
	if (m->has_compare) {
		struct compare_values c = compare_read(&m->compare);
		v.frames_offset = (double)c.frames_offset;
		v.frames_missing = (double)c.frames_missing;
		v.snr_db = c.snr_db;
		v.max_abs_error = c.max_abs_error;
		v.identical = c.identical;
	}
	return v;
}

const struct values_key *values_find(const char *name, size_t name_bytes)
{
	for (unsigned i = 0; i < values_n_keys; i++)
		if (strlen(values_keys[i].name) == name_bytes && memcmp(values_keys[i].name, name, name_bytes) == 0)
			return &values_keys[i];
	return NULL;
}

bool values_is_compared(const struct values_key *key)
{
	return key->offset >= offsetof(struct values, frames_offset);
}

bool values_is_costly(const struct values_key *key)
{
	return key->offset == offsetof(struct values, true_peak_dbtp) ||
		(key->offset >= offsetof(struct values, integrated_lufs) && key->offset <= offsetof(struct values, short_term_lufs));
}

/* ---- limits ---- */

static void list_keys(char *out, size_t out_bytes)
{
	size_t at = 0;
	for (unsigned i = 0; i < values_n_keys && at + 1 < out_bytes; i++)
		at += (size_t)snprintf(out + at, out_bytes - at, "%s%s", i ? " " : "", values_keys[i].name);
}

enum err values_limit_parse(struct values_limit *l, const char *text, struct err_why *why)
{
	size_t name_bytes = strcspn(text, "<>= ");
	l->key = values_find(text, name_bytes);
	if (!l->key) {
		char keys[512];
		list_keys(keys, sizeof(keys));
		return err_say(why, ERR_ARG, text, "no such value; there are: %s", keys);
	}
	const char *at = text + name_bytes;
	at += strspn(at, " ");
	bool is_above = *at == '>';
	if (*at != '>' && *at != '<')
		return err_say(why, ERR_ARG, text, "a limit is KEY>NUMBER (or >=, <, <=)");
	at++;
	bool or_equal = *at == '=';
	at += or_equal;
	l->test = is_above ? (or_equal ? VALUES_NOT_BELOW : VALUES_ABOVE) : or_equal ? VALUES_NOT_ABOVE : VALUES_BELOW;

	char *end;
	l->limit = strtod(at, &end);
	end += strspn(end, " ");
	if (end == at || *end || !isfinite(l->limit))
		return err_say(why, ERR_ARG, text, "'%s' is not a number", at);
	return ERR_OK;
}

bool values_limit_broken(const struct values_limit *l, const struct values *v, double *value)
{
	double d = values_get(v, l->key);
	if (isnan(d) && l->key->kind == VALUES_LEVEL)
		d = -(double)INFINITY;
	if (isnan(d) && l->key->kind == VALUES_EXCESS && v->has_compare)
		d = (double)INFINITY;
	*value = d;
	switch (l->test) {
	case VALUES_ABOVE:
		return d > l->limit;
	case VALUES_NOT_BELOW:
		return d >= l->limit;
	case VALUES_BELOW:
		return d < l->limit;
	case VALUES_NOT_ABOVE:
		return d <= l->limit;
	}
	return false;
}

const char *values_test_name(enum values_test test)
{
	static const char *const names[] = { "above", "not below", "below", "not above" };
	return names[test];
}
