/* Reports as text, and limits on values. */
#include "meter_feed.h"

#include "base/heap.h"
#include "meter/report.h"

static void test_numbers(void)
{
	static const struct { double value; const char *text; } rows[] = {
		{ -23, "-23.0" }, { 0, "0.0" }, { -0.0, "0.0" }, { 0.1, "0.1" }, { 1.0 / 3, "0.3333333333333333" }, { 1e300, "1e+300" },
		{ 2.5e-9, "2.5e-09" }, { 123456789, "123456789.0" }, { -3.010299956639812, "-3.010299956639812" },
	};
	char out[32];
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK_STR(report_number(rows[i].value, out), rows[i].text);
		CHECK_NEAR(strtod(out, NULL), rows[i].value, 0);
	}
	CHECK_STR(report_number((double)NAN, out), "null");
	CHECK_STR(report_number((double)-INFINITY, out), "null");
	for (int i = 0; i < 10000; i++) {
		double v = ((double)(check_rand() >> 11) * 0x1p-53 - 0.5) * pow(10, (double)check_rand_below(40) - 20);
		CHECK_NEAR(strtod(report_number(v, out), NULL), v, 0);
	}
}

/* The text behind "key": up to the next comma or bracket, of the first such key after `from`. */
static const char *json_value(const char *json, const char *key, char out[static 64])
{
	char quoted[64];
	snprintf(quoted, sizeof(quoted), "\"%s\": ", key);
	const char *at = strstr(json, quoted);
	if (!at)
		return "(no such key)";
	at += strlen(quoted);
	snprintf(out, 64, "%.*s", (int)(strcspn(at, ",}]") < 63 ? strcspn(at, ",}]") : 63), at);
	return out;
}

static void test_json_of_a_tone(void)
{
	struct track t = track_pcm(48000, 2, SAMPLE_F32);
	t.id = 7;
	CHECK_OK(track_set_name(&t, "a\"b\\c\nd"));
	struct meter_feed f;
	meter_feed_open_track(&f, &t, NULL);
	struct meter_feed_sine sine = { 48000, 1000, { meter_feed_factor(-23) }, true };
	meter_feed_add(&f, 20 * 48000, meter_feed_sine_at, &sine);
	struct report r = { 0 };
	struct meter *m = &f.meter;
	char out[64];
	CHECK_OK(report_json(&r, "in", &m, 1, REPORT_ONLY));
	static const char begin[] = "{\"input\": \"in\", \"tracks\": [{\"track\": 7, \"name\": \"a\\\"b\\\\c";
	CHECK_MEM(r.text, begin, sizeof(begin) - 1);
	CHECK_EQ(r.text[r.n_bytes - 1], '\n');
	CHECK_EQ(strcspn(r.text, "\n"), r.n_bytes - 1);
	CHECK(!strstr(r.text, "final"));
	CHECK_STR(json_value(r.text, "rate_hz", out), "48000");
	CHECK_STR(json_value(r.text, "channels", out), "2");
	CHECK_STR(json_value(r.text, "frames", out), "960000");
	CHECK_STR(json_value(r.text, "duration_s", out), "20.0");
	CHECK_NEAR(strtod(json_value(r.text, "integrated_lufs", out), NULL), -23, 0.05);
	CHECK_STR(json_value(r.text, "loudness_range_lu", out), "0.0");
	CHECK_NEAR(strtod(json_value(r.text, "true_peak_dbtp", out), NULL), -23, 0.02);
	CHECK_NEAR(strtod(json_value(r.text, "correlation", out), NULL), 1, 1e-9);
	CHECK_STR(json_value(r.text, "gaps", out), "0");
	CHECK(strstr(r.text, "\"silence\": []"));
	CHECK(strstr(r.text, "\"per_channel\": [{\"name\": \"FL\""));
	CHECK(strstr(r.text, "{\"name\": \"FR\""));
	CHECK_NEAR(strtod(json_value(r.text, "rms_dbfs", out), NULL), -26.01, 0.01);
	CHECK(!strstr(r.text, "compare"));

	/* A report makes no garbage: its memory is used again. */
	uint64_t before = heap_allocs();
	for (int i = 0; i < 100; i++)
		CHECK_OK(report_json(&r, "in", &m, 1, REPORT_RUNNING));
	CHECK_EQ(heap_allocs(), before);
	CHECK_STR(json_value(r.text, "final", out), "false");
	CHECK_NEAR(strtod(json_value(r.text, "momentary_lufs", out), NULL), -23, 0.05);
	CHECK(!strstr(r.text, "silence"));
	CHECK_OK(report_json(&r, "in", &m, 1, REPORT_FINAL));
	CHECK_STR(json_value(r.text, "final", out), "true");
	report_release(&r);
	meter_feed_close(&f);
	track_release(&t);
}

/* Nothing but null where there is nothing; never a token that is no JSON. */
static void test_json_of_silence(void)
{
	static const char *const keys[] = { "integrated_lufs", "loudness_range_lu", "momentary_max_lufs", "short_term_max_lufs",
		"true_peak_dbtp", "sample_peak_dbfs", "correlation", "rms_dbfs" };
	static float zeros[48000 * 2];
	for (int frames = 0; frames <= 48000; frames += 48000) {
		struct meter_feed f;
		meter_feed_open(&f, 48000, 2);
		struct packet p = packet_data(1, 0, (uint32_t)frames, (uint32_t)(frames * 8));
		p.payload = (const uint8_t *)zeros;
		if (frames)
			CHECK_OK(meter_data(&f.meter, &p));
		struct report r = { 0 };
		struct meter *m = &f.meter;
		char out[64];
		CHECK_OK(report_json(&r, "in", &m, 1, REPORT_ONLY));
		for (size_t i = 0; i < ARRAY_LEN(keys); i++)
			CHECK_STR(json_value(r.text, keys[i], out), "null");
		CHECK(!strstr(r.text, "inf") && !strstr(r.text, "nan"));
		if (frames)
			CHECK(strstr(r.text, "\"silence\": [{\"start_s\": 0.0, \"end_s\": 1.0}]"));
		CHECK_OK(report_text(&r, NULL, &m, 1, REPORT_ONLY));
		CHECK(!strstr(r.text, "inf") && !strstr(r.text, "nan"));
		report_release(&r);
		meter_feed_close(&f);
	}
}

/* Names that are no UTF-8 come out as UTF-8, control characters escaped. */
static void test_json_of_odd_names(void)
{
	struct meter m = { .name = "ok \xC3\xA9 bad \xE9\xFF\xED\xA0\x80 \t\x7F\"\\", .rate_num = 48000, .rate_den = 1 };
	struct meter *list = &m;
	struct report r = { 0 };
	CHECK_OK(report_json(&r, "in", &list, 1, REPORT_ONLY));
	CHECK(strstr(r.text, "\"ok \xC3\xA9 bad \\ufffd\\ufffd\\ufffd\\ufffd\\ufffd \\u0009\\u007f\\\"\\\\\""));
	CHECK_OK(report_text(&r, NULL, &list, 1, REPORT_ONLY));
	CHECK(strstr(r.text, "track 0 \"ok \xC3\xA9 bad ????? ??\"\\\""));
	report_release(&r);
}

static void test_text(void)
{
	struct meter_feed f;
	meter_feed_open(&f, 48000, 2);
	struct meter_feed_sine sine = { 48000, 1000, { meter_feed_factor(-23) }, true };
	meter_feed_add(&f, 20 * 48000, meter_feed_sine_at, &sine);
	struct report r = { 0 };
	struct meter *m = &f.meter;
	CHECK_OK(report_text(&r, NULL, &m, 1, REPORT_ONLY));
	CHECK(strstr(r.text, "track 1: 48000 Hz, 2 channels, 0:20.000, 960000 frames\n"));
	CHECK(strstr(r.text, "  integrated        -22.99 LUFS    range               0.00 LU\n") ||
		strstr(r.text, "  integrated        -23.00 LUFS    range               0.00 LU\n"));
	CHECK(strstr(r.text, "  FR                -23.00   -23.00   -26.01  0.00000        0       0       0\n"));
	/* It fits a terminal of 80 columns. */
	for (const char *line = r.text; *line; line += strcspn(line, "\n") + 1)
		CHECK(strcspn(line, "\n") <= 80);
	CHECK_OK(report_text(&r, NULL, &m, 1, REPORT_RUNNING));
	CHECK_EQ(strcspn(r.text, "\n"), r.n_bytes - 1);
	report_release(&r);
	meter_feed_close(&f);
}

static void check_limit(const char *spec, const struct values *v, bool broken, double wanted)
{
	struct values_limit l;
	struct err_why why = { 0 };
	double value;
	CHECK_OK(values_limit_parse(&l, spec, &why));
	if (values_limit_broken(&l, v, &value) != broken)
		CHECK_FAIL("%s: broken is not %d, the value is %g", spec, broken, value);
	if (!isnan(wanted) || !isnan(value))
		CHECK_NEAR(value, wanted, 1e-12);
}

static void test_limits(void)
{
	double none = (double)NAN, infinity = (double)INFINITY;
	struct values v = { .true_peak_dbtp = -0.5, .integrated_lufs = none, .correlation = none, .snr_db = none, .clipped_samples = 3 };
	check_limit("true_peak_dbtp>-1", &v, true, -0.5);
	check_limit("true_peak_dbtp > -0.5", &v, false, -0.5);
	check_limit("true_peak_dbtp>=-0.5", &v, true, -0.5);
	check_limit("true_peak_dbtp<0", &v, true, -0.5);
	check_limit("true_peak_dbtp<=-0.6", &v, false, -0.5);
	check_limit("clipped_samples>0", &v, true, 3);
	/* Silence is below every level and above none. */
	check_limit("integrated_lufs>-70", &v, false, -infinity);
	check_limit("integrated_lufs<-30", &v, true, -infinity);
	/* What was not measured breaks nothing. */
	check_limit("correlation<0", &v, false, none);
	check_limit("snr_db<40", &v, false, none);
	v.has_compare = true;
	check_limit("snr_db<40", &v, false, infinity);

	/* Which of them are there only with a reference, and which not when levels alone are measured. */
	char compared[256] = "", costly[256] = "";
	for (unsigned i = 0; i < values_n_keys; i++) {
		if (values_is_compared(&values_keys[i]))
			strcat(strcat(compared, " "), values_keys[i].name);
		if (values_is_costly(&values_keys[i]))
			strcat(strcat(costly, " "), values_keys[i].name);
	}
	CHECK_STR(compared, " frames_offset frames_missing snr_db max_abs_error");
	CHECK_STR(costly, " integrated_lufs loudness_range_lu momentary_max_lufs short_term_max_lufs momentary_lufs short_term_lufs true_peak_dbtp");

	static const char *const wrong[] = { "", "loudness>1", "true_peak_dbtp", "true_peak_dbtp>", "true_peak_dbtp>x", "true_peak_dbtp=1",
		">1", "true_peak_dbtp>1 2", "true_peak_dbtp>inf" };
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct values_limit l;
		struct err_why why = { 0 };
		if (values_limit_parse(&l, wrong[i], &why) != ERR_ARG || !why.reason[0])
			CHECK_FAIL("'%s' is taken for a limit", wrong[i]);
	}
}

int main(void)
{
	check_seed(5);
	CHECK_RUN(test_numbers);
	CHECK_RUN(test_json_of_a_tone);
	CHECK_RUN(test_json_of_silence);
	CHECK_RUN(test_json_of_odd_names);
	CHECK_RUN(test_text);
	CHECK_RUN(test_limits);
	return check_end();
}
