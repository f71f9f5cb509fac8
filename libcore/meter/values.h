/*
 * Everything a meter knows at one moment, as numbers with the names they have in reports; and limits on them:
 * "true_peak_dbtp>-1".
 */
#ifndef METER_VALUES_H
#define METER_VALUES_H

#include "meter/meter.h"

/* NAN stands for what has no value. */
struct values {
	double frames, duration_s;
	double integrated_lufs, loudness_range_lu, momentary_max_lufs, short_term_max_lufs;
	double momentary_lufs, short_term_lufs;   /* of the last 400 ms, 3 s */
	double true_peak_dbtp, sample_peak_dbfs;  /* of the highest channel */
	double rms_dbfs, dc_offset;               /* of the worst channel; dc_offset as a magnitude */
	double clipped_samples, clipped_runs, nonfinite_samples; /* of all channels */
	double correlation;
	double gaps, lost_frames, concealed_frames;
	bool has_compare;
	double frames_offset, frames_missing, snr_db, max_abs_error;
	bool identical;
};

enum values_kind {
	VALUES_COUNT,  /* a whole number */
	VALUES_LEVEL,  /* without a value it is minus infinity */
	VALUES_EXCESS, /* without a value it is infinite: the SNR of what has no error */
	VALUES_NUMBER, /* without a value there is nothing to compare */
};

struct values_key {
	const char *name;
	enum values_kind kind;
	size_t offset;             /* of the double in struct values */
};

struct values values_read(const struct meter *m);

/* The key of this name, or NULL. */
const struct values_key *values_find(const char *name, size_t name_bytes);
/* All of them, in the order of the report. */
extern const struct values_key values_keys[];
extern const unsigned values_n_keys;

/* Only there if the track is compared with another; not there where neither loudness nor true peak is measured. */
bool values_is_compared(const struct values_key *key);
bool values_is_costly(const struct values_key *key);

static inline double values_get(const struct values *v, const struct values_key *key)
{
	double d;
	memcpy(&d, (const char *)v + key->offset, sizeof(d));
	return d;
}

/* ---- limits ---- */

enum values_test { VALUES_ABOVE, VALUES_NOT_BELOW, VALUES_BELOW, VALUES_NOT_ABOVE };

struct values_limit {
	const struct values_key *key;
	enum values_test test;
	double limit;
};

/* "KEY>NUMBER", also with ">=", "<", "<=".  Returns: ERR_OK, ERR_ARG with *why. */
enum err values_limit_parse(struct values_limit *l, const char *text, struct err_why *why) WEIR_MUSTUSE;

/*
 * True if the value is where it must not be.  *value is what it is: minus infinity for a level of silence, NAN (and
 * false) for what was not measured.
 */
bool values_limit_broken(const struct values_limit *l, const struct values *v, double *value);

/* "above", "not below", "below", "not above". */
const char *values_test_name(enum values_test test);

#endif
