#include "meter/report.h"

#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

static bool reserve(struct report *r, size_t n_bytes)
{
	if (r->failed)
		return false;
	if (r->n_bytes + n_bytes + 1 <= r->room_bytes)
		return true;
	size_t room = 2 * (r->n_bytes + n_bytes + 1) + 4096;
	char *text = realloc(r->text, room);
	if (!text) {
		r->failed = true;
		return false;
	}
	r->text = text;
	r->room_bytes = room;
	return true;
}

static void put_bytes(struct report *r, const char *bytes, size_t n_bytes)
{
	if (!reserve(r, n_bytes))
		return;
	memcpy(r->text + r->n_bytes, bytes, n_bytes);
	r->n_bytes += n_bytes;
	r->text[r->n_bytes] = 0;
}

static void put(struct report *r, const char *text)
{
	put_bytes(r, text, strlen(text));
}

/* At most 255 bytes. */
WEIR_PRINTF(2, 3) static void put_format(struct report *r, const char *fmt, ...)
{
	char line[256];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	put_bytes(r, line, n < 0 ? 0 : (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

void report_release(struct report *r)
{
	free(r->text);
	memset(r, 0, sizeof(*r));
}

/* ---- JSON ---- */

const char *report_number(double value, char out[static 32])
{
	if (!isfinite(value))
		return memcpy(out, "null", 5);
	value += 0.0; /* no -0 */
	for (int digits = 15; digits <= 17; digits++) {
		int n = snprintf(out, 30, "%.*g", digits, value);
		if (!strpbrk(out, ".e"))
			memcpy(out + n, ".0", 3);
		if (strtod(out, NULL) == value)
			break;
	}
	return out;
}

static void put_string(struct report *r, const char *text)
{
	const uint8_t *s = (const uint8_t *)text;
	size_t left = strlen(text);
	put(r, "\"");
	while (left) {
		size_t n = utf8_length(s, left);
		if (n == 0) {
			put(r, "\\ufffd");
			n = 1;
		} else if (*s == '"' || *s == '\\') {
			put_format(r, "\\%c", *s);
		} else if (*s < 0x20 || *s == 0x7F) {
			put_format(r, "\\u%04x", *s);
		} else {
			put_bytes(r, (const char *)s, n);
		}
		s += n;
		left -= n;
	}
	put(r, "\"");
}

static void put_key(struct report *r, const char *key)
{
	put_format(r, ", \"%s\": ", key);
}

static void put_number(struct report *r, const char *key, double value)
{
	char out[32];
	put_key(r, key);
	put(r, report_number(value, out));
}

static void put_count(struct report *r, const char *key, uint64_t n)
{
	put_key(r, key);
	put_format(r, "%llu", (unsigned long long)n);
}

static void put_channel(struct report *r, const struct meter *m, unsigned c, bool running)
{
	struct amplitude_values a = amplitude_read(&m->amplitude, c);
	put(r, "{\"name\": ");
	put_string(r, m->channel_names[c]);
	put_number(r, "sample_peak_dbfs", a.sample_peak_dbfs);
	put_number(r, "true_peak_dbtp", a.true_peak_dbtp);
	put_number(r, "rms_dbfs", a.rms_dbfs);
	put_number(r, "dc_offset", a.dc_offset);
	put_count(r, "clipped_samples", a.clipped_samples);
	put_count(r, "clipped_runs", a.clipped_runs);
	put_count(r, "nonfinite_samples", a.nonfinite_samples);
	if (running)
		put_number(r, "recent_peak_dbfs", amplitude_recent_dbfs(&m->amplitude, c, AMPLITUDE_REPORT));
	put(r, "}");
}

static void put_silence(struct report *r, const struct meter *m)
{
	put(r, ", \"silence\": [");
	for (unsigned i = 0; m->has_silence && i < silence_count(&m->silence); i++) {
		struct silence_range range = silence_at(&m->silence, i);
		char start[32], end[32];
		put_format(r, "%s{\"start_s\": %s, \"end_s\": %s}", i ? ", " : "",
			report_number(meter_seconds(m, range.start_frame), start),
			report_number(meter_seconds(m, range.end_frame), end));
	}
	put(r, "]");
	if (m->silence.n_omitted)
		put_count(r, "silence_omitted", m->silence.n_omitted);
}

static void put_compare(struct report *r, const struct meter *m)
{
	struct compare_values c = compare_read(&m->compare);
	put_format(r, ", \"compare\": {\"frames_offset\": %lld", (long long)c.frames_offset);
	put_count(r, "frames_missing", c.frames_missing);
	put_count(r, "frames_extra", c.frames_extra);
	put_count(r, "frames_compared", c.frames_compared);
	put_number(r, "snr_db", c.snr_db);
	put_number(r, "max_abs_error", c.max_abs_error);
	put_format(r, ", \"identical\": %s}", c.identical ? "true" : "false");
}

static void put_track(struct report *r, const struct meter *m, enum report_moment moment)
{
	bool running = moment == REPORT_RUNNING;
	struct values v = values_read(m);
	put_format(r, "{\"track\": %u, \"name\": ", m->id);
	put_string(r, m->name);
	if (m->rate_num % m->rate_den == 0)
		put_count(r, "rate_hz", m->rate_hz);
	else
		put_number(r, "rate_hz", (double)m->rate_num / m->rate_den);
	put_count(r, "channels", m->n_channels);
	put_count(r, "frames", m->continuity.frames);
	put_number(r, "duration_s", v.duration_s);
	put_number(r, "start_s", units_to_s(m->continuity.first_pos, m->rate_num, m->rate_den));
	put_number(r, "integrated_lufs", v.integrated_lufs);
	put_number(r, "loudness_range_lu", v.loudness_range_lu);
	put_number(r, "momentary_max_lufs", v.momentary_max_lufs);
	put_number(r, "short_term_max_lufs", v.short_term_max_lufs);
	if (running) {
		put_number(r, "momentary_lufs", v.momentary_lufs);
		put_number(r, "short_term_lufs", v.short_term_lufs);
	}
	put_number(r, "true_peak_dbtp", v.true_peak_dbtp);
	put_number(r, "sample_peak_dbfs", v.sample_peak_dbfs);
	put_number(r, "correlation", v.correlation);
	put_count(r, "gaps", m->continuity.gaps);
	put_count(r, "lost_frames", m->continuity.lost_frames);
	put_count(r, "concealed_frames", m->continuity.concealed_frames);
	if (!running)
		put_silence(r, m);
	put(r, ", \"per_channel\": [");
	for (unsigned c = 0; c < m->n_channels; c++) {
		put(r, c ? ", " : "");
		put_channel(r, m, c, running);
	}
	put(r, "]");
	if (m->has_compare && !running)
		put_compare(r, m);
	put(r, "}");
}

enum err report_json(struct report *r, const char *input, struct meter *const *meters, unsigned n_meters,
	enum report_moment moment)
{
	r->n_bytes = 0;
	put(r, "{\"input\": ");
	put_string(r, input);
	if (moment != REPORT_ONLY)
		put_format(r, ", \"final\": %s", moment == REPORT_FINAL ? "true" : "false");
	put(r, ", \"tracks\": [");
	for (unsigned i = 0; i < n_meters; i++) {
		put(r, i ? ", " : "");
		put_track(r, meters[i], moment);
	}
	put(r, "]}\n");
	return r->failed ? ERR_NOMEM : ERR_OK;
}

/* ---- for people ---- */

/* "-23.00"; "none" where there is no number. */
static const char *two_decimals(double value, char out[static 32])
{
	snprintf(out, 32, "%.2f", value);
	return !isfinite(value) ? "none" : strcmp(out, "-0.00") == 0 ? "0.00" : out;
}

/* "1:02:03.456" */
static const char *clock_time(double seconds, char out[static 32])
{
	long long ms = llround(seconds * 1000.0);
	const char *sign = ms < 0 ? "-" : "";
	ms = llabs(ms);
	long long h = ms / 3600000, min = ms / 60000 % 60, s = ms / 1000 % 60;
	if (h)
		snprintf(out, 32, "%s%lld:%02lld:%02lld.%03lld", sign, h, min, s, ms % 1000);
	else
		snprintf(out, 32, "%s%lld:%02lld.%03lld", sign, min, s, ms % 1000);
	return out;
}

/* Bytes that are no UTF-8, and control characters, as '?'. */
static void put_printable(struct report *r, const char *text)
{
	const uint8_t *s = (const uint8_t *)text;
	for (size_t left = strlen(text), n; left; s += n, left -= n) {
		n = utf8_length(s, left);
		if (n == 0 || *s < 0x20 || *s == 0x7F) {
			put(r, "?");
			n = 1;
		} else {
			put_bytes(r, (const char *)s, n);
		}
	}
}

static void put_title(struct report *r, const struct meter *m)
{
	put_format(r, "track %u", m->id);
	if (m->name[0]) {
		put(r, " \"");
		put_printable(r, m->name);
		put(r, "\"");
	}
}

static void put_head(struct report *r, const struct meter *m, const struct values *v)
{
	char duration[32];
	put_title(r, m);
	put_format(r, ": %.10g Hz, %u channel%s, %s, %llu frames\n", (double)m->rate_num / m->rate_den, m->n_channels,
		m->n_channels == 1 ? "" : "s", clock_time(v->duration_s, duration), (unsigned long long)m->continuity.frames);
	if (m->continuity.gaps || m->continuity.concealed_frames)
		put_format(r, "  %-15s %llu, %llu frames lost, %llu concealed\n", "gaps", (unsigned long long)m->continuity.gaps,
			(unsigned long long)m->continuity.lost_frames, (unsigned long long)m->continuity.concealed_frames);
}

static void put_levels(struct report *r, const struct meter *m, const struct values *v)
{
	char a[32], b[32];
	if (m->has_loudness) {
		put_format(r, "  %-15s %8s LUFS    %-15s %8s LU\n", "integrated", two_decimals(v->integrated_lufs, a), "range",
			two_decimals(v->loudness_range_lu, b));
		put_format(r, "  %-15s %8s LUFS    %-15s %8s LUFS\n", "momentary max", two_decimals(v->momentary_max_lufs, a),
			"short-term max", two_decimals(v->short_term_max_lufs, b));
	}
	if (m->amplitude.options.no_true_peak)
		put_format(r, "  %-15s %8s dBFS\n", "sample peak", two_decimals(v->sample_peak_dbfs, a));
	else
		put_format(r, "  %-15s %8s dBTP    %-15s %8s dBFS\n", "true peak", two_decimals(v->true_peak_dbtp, a), "sample peak",
			two_decimals(v->sample_peak_dbfs, b));
	if (m->amplitude.options.pair[1])
		put_format(r, "  %-15s %8s\n", "correlation", two_decimals(v->correlation, a));
}

static void put_table(struct report *r, const struct meter *m)
{
	put_format(r, "  %-15s %8s %8s %8s %8s %8s %7s %7s\n", "channel", "peak", "true", "RMS", "DC", "clipped", "in rows",
		"NaN/Inf");
	for (unsigned c = 0; c < m->n_channels; c++) {
		struct amplitude_values v = amplitude_read(&m->amplitude, c);
		char a[32], b[32], d[32];
		put(r, "  ");
		size_t from = r->n_bytes;
		put_printable(r, m->channel_names[c]);
		while (!r->failed && r->n_bytes - from < 15)
			put(r, " ");
		put_format(r, " %8s %8s %8s %8.5f %8llu %7llu %7llu\n", two_decimals(v.sample_peak_dbfs, a),
			two_decimals(v.true_peak_dbtp, b), two_decimals(v.rms_dbfs, d), v.dc_offset + 0.0,
			(unsigned long long)v.clipped_samples, (unsigned long long)v.clipped_runs,
			(unsigned long long)v.nonfinite_samples);
	}
}

static void put_rest(struct report *r, const struct meter *m)
{
	for (unsigned i = 0; m->has_silence && i < silence_count(&m->silence); i++) {
		struct silence_range range = silence_at(&m->silence, i);
		char start[32], end[32];
		put_format(r, "  %-15s %s to %s, %.3f s\n", "silence", clock_time(meter_seconds(m, range.start_frame), start),
			clock_time(meter_seconds(m, range.end_frame), end), meter_seconds(m, range.end_frame - range.start_frame));
	}
	if (m->silence.n_omitted)
		put_format(r, "  %-15s and %llu more\n", "silence", (unsigned long long)m->silence.n_omitted);
	if (!m->has_compare)
		return;
	struct compare_values c = compare_read(&m->compare);
	put_format(r, "  %-15s ", "compare");
	if (c.identical) {
		put(r, "identical\n");
		return;
	}
	put_format(r, "offset %+lld frames, %llu missing, %llu extra", (long long)c.frames_offset,
		(unsigned long long)c.frames_missing, (unsigned long long)c.frames_extra);
	if (isfinite(c.snr_db))
		put_format(r, ", SNR %.2f dB, largest error %.3g\n", c.snr_db, c.max_abs_error);
	else
		put(r, c.frames_compared ? ", no error in the rest\n" : ", nothing to compare\n");
}

static void put_running(struct report *r, const struct meter *m)
{
	struct values v = values_read(m);
	char t[32], a[32], b[32], c[32], d[32];
	put_title(r, m);
	put_format(r, " %s: M %s  S %s  I %s LUFS, true peak %s dBTP, lost %llu\n", clock_time(v.duration_s, t),
		two_decimals(v.momentary_lufs, a), two_decimals(v.short_term_lufs, b), two_decimals(v.integrated_lufs, c),
		two_decimals(v.true_peak_dbtp, d), (unsigned long long)m->continuity.lost_frames);
}

enum err report_text(struct report *r, const char *input, struct meter *const *meters, unsigned n_meters,
	enum report_moment moment)
{
	r->n_bytes = 0;
	put(r, ""); /* there is a text, if an empty one */
	if (input) {
		put_printable(r, input);
		put(r, ":\n");
	}
	for (unsigned i = 0; i < n_meters; i++) {
		const struct meter *m = meters[i];
		if (moment == REPORT_RUNNING) {
			put_running(r, m);
			continue;
		}
		struct values v = values_read(m);
		put_head(r, m, &v);
		put_levels(r, m, &v);
		put_table(r, m);
		put_rest(r, m);
	}
	return r->failed ? ERR_NOMEM : ERR_OK;
}
