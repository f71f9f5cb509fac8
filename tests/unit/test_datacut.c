/* tool/datacut, dataspec: bytes into messages however they arrive, each byte looked at once; what a spec says. */
#include "check.h"

#include "stage/datacut.h"
#include "stage/dataspec.h"

/* All messages of `bytes`, given piece by piece, as one string with '|' behind each, and the status bytes of MIDI put before theirs. */
static enum err cut_all(enum datacut_form form, const uint8_t *bytes, size_t n_bytes, size_t piece_bytes, char *out)
{
	struct datacut c = { .form = form };
	struct datacut_part part;
	size_t at = 0, there = 0, n = 0;
	enum err e;

	for (;;) {
		there = there + piece_bytes < n_bytes ? there + piece_bytes : n_bytes;
		while ((e = datacut_next(&c, bytes + at, there - at, there == n_bytes, &part)) == ERR_OK) {
			if (part.status)
				n += (size_t)sprintf(out + n, "%02x", part.status);
			for (size_t i = 0; i < part.n_bytes; i++) {
				uint8_t b = bytes[at + part.at_bytes + i];
				n += (size_t)sprintf(out + n, form == DATACUT_MIDI ? "%02x" : "%c", b);
			}
			out[n++] = '|';
			at += part.taken_bytes;
		}
		if (e == ERR_AGAIN)
			at += part.taken_bytes;
		if (e != ERR_AGAIN || there == n_bytes)
			break;
	}
	out[n] = 0;
	return e;
}

static void check_cut(enum datacut_form form, const char *bytes, size_t n_bytes, enum err wanted_e, const char *wanted)
{
	char out[512];

	for (size_t piece = 1; piece <= n_bytes + 1; piece++) {
		enum err e = cut_all(form, (const uint8_t *)bytes, n_bytes, piece, out);
		if (e != wanted_e || strcmp(out, wanted))
			CHECK_FAIL("pieces of %zu: %d '%s', wanted %d '%s'", piece, e, out, wanted_e, wanted);
	}
}
#define CUT(form, bytes, e, wanted) check_cut((form), (bytes), sizeof(bytes) - 1, (e), (wanted))

static void test_lines(void)
{
	CUT(DATACUT_LINES, "", ERR_AGAIN, "");
	CUT(DATACUT_LINES, "one\ntwo\n", ERR_AGAIN, "one|two|");
	CUT(DATACUT_LINES, "\n\nlast", ERR_AGAIN, "||last|");
	CUT(DATACUT_LINES, "with\r\n", ERR_AGAIN, "with\r|");
}

static void test_prefixed(void)
{
	CUT(DATACUT_LE32, "\3\0\0\0abc\0\0\0\0\1\0\0\0z", ERR_AGAIN, "abc||z|");
	CUT(DATACUT_BE32, "\0\0\0\3abc\0\0\0\1z", ERR_AGAIN, "abc|z|");
	CUT(DATACUT_LE32, "\1\0\0\0a\5\0\0\0ab", ERR_FORMAT, "a|");
	CUT(DATACUT_LE32, "\1\0\0\0a\5\0", ERR_FORMAT, "a|");
	CUT(DATACUT_LE32, "\1\0\0\0a\1\0\20\0b", ERR_LIMIT, "a|");
	CUT(DATACUT_LE32, "\377\377\377\377", ERR_LIMIT, "");
	CUT(DATACUT_BE32, "\0\20\0\1", ERR_LIMIT, "");
}

static void test_midi(void)
{
	/* Notes with running status, a clock between and within, a program change, system exclusive, and data that nobody announced. */
	CUT(DATACUT_MIDI, "\x90\x40\x7f\x40\x00\xf8\x41\x7f", ERR_AGAIN, "90407f|904000|f8|90417f|");
	CUT(DATACUT_MIDI, "\x90\x40\xf8\x7f\xc1\x05\x06", ERR_AGAIN, "9040f87f|c105|c106|");
	CUT(DATACUT_MIDI, "\xf0\x7e\x01\x02\xf7\xfe\xf6\xf3\x05", ERR_AGAIN, "f07e0102f7|fe|f6|f305|");
	CUT(DATACUT_MIDI, "\x12\x34\x80\x01\x02", ERR_AGAIN, "800102|");
	CUT(DATACUT_MIDI, "\xf0\x01\x90\x01\x02", ERR_AGAIN, "f001|900102|");
	CUT(DATACUT_MIDI, "\xf2\x01\x02\x03\x90\x05\x06", ERR_AGAIN, "f20102|900506|");
	CUT(DATACUT_MIDI, "\x90\x40", ERR_FORMAT, "");
	/* A cable that fell silent within a message while its clock goes on: neither waited for nor gathered. */
	CUT(DATACUT_MIDI, "\x90\x40\xf8\xf8\xf8\xf8\xf8\xf8\xf8\xf8\xf8\xf8\xf8\xf8\xf8\xf8\xf8\x7f\xb0\x07\x7f", ERR_AGAIN,
		"9040f8f8f8f8f8f8f8f8f8f8f8f8f8f8|f8|b0077f|");
}

/* A line of more than a mebibyte is cut, and never within a character, wherever the limit falls. */
static void test_long_lines(void)
{
	static const char *const characters[] = { "x", "\xc3\xb6", "\xe2\x82\xac", "\xf0\x9f\x8e\xb5" };
	uint8_t *text = malloc(3 * DATACUT_MAX_BYTES + 64);

	for (size_t k = 0; k < ARRAY_LEN(characters); k++)
		for (size_t shift = 0; shift < 4; shift++) {
			struct datacut c = { .form = DATACUT_LINES };
			struct datacut_part part;
			size_t length = strlen(characters[k]), n = shift, at = 0, parts = 0, sum = 0;
			memset(text, 'a', shift);
			while (n < 2 * DATACUT_MAX_BYTES + 1000) {
				memcpy(text + n, characters[k], length);
				n += length;
			}
			text[n] = '\n';
			while (datacut_next(&c, text + at, n + 1 - at, true, &part) == ERR_OK) {
				CHECK(part.n_bytes <= DATACUT_MAX_BYTES);
				CHECK(part.n_bytes == 0 || (text[at + part.n_bytes] & 0xC0) != 0x80);
				CHECK(at == 0 || (text[at] & 0xC0) != 0x80);
				sum += part.n_bytes;
				at += part.taken_bytes;
				parts++;
			}
			CHECK_EQ(parts, 3);
			CHECK_EQ(sum, n);
			CHECK_EQ(at, n + 1);
			CHECK_EQ(c.n_cut, 2);
		}
	/* What is no UTF-8 is cut at the limit. */
	memset(text, 0xBF, DATACUT_MAX_BYTES + 10);
	CHECK_EQ(datacut_whole_bytes(text, DATACUT_MAX_BYTES), DATACUT_MAX_BYTES);
	free(text);
}

/* A line that comes a byte at a time is looked at once: not a million times. */
static void test_time_is_linear(void)
{
	struct datacut c = { .form = DATACUT_LINES };
	struct datacut_part part;
	uint8_t *text = malloc(DATACUT_MAX_BYTES);
	size_t n = 0;

	memset(text, 'a', DATACUT_MAX_BYTES);
	for (n = 1; n < DATACUT_MAX_BYTES; n++) {
		CHECK_EQ(datacut_next(&c, text, n, false, &part), ERR_AGAIN);
		CHECK_EQ(c.looked_bytes, n);
	}
	text[n - 1] = '\n';
	CHECK_OK(datacut_next(&c, text, n, false, &part));
	CHECK_EQ(part.n_bytes, n - 1);
	free(text);
}

static void test_specs(void)
{
	struct dataspec s;
	struct err_why why;

	CHECK_OK(dataspec_parse(&s, "--data", "/run/cues.fifo", &why));
	CHECK_STR(s.place, "/run/cues.fifo");
	CHECK_STR(s.name, "cues.fifo");
	CHECK_EQ(s.fd, -1);
	CHECK_EQ(s.codec, TRACK_UTF8);
	CHECK(!s.is_lossy);
	CHECK_EQ(s.queue, 1024);
	CHECK_EQ(s.ttl_ms, 0);
	CHECK_OK(dataspec_parse(&s, "--data", "3,name=pads,lossy,midi,ttl=20ms,queue=7", &why));
	CHECK_EQ(s.fd, 3);
	CHECK_STR(s.name, "pads");
	CHECK(s.is_lossy);
	CHECK_EQ(s.codec, TRACK_MIDI1);
	CHECK_EQ(s.queue, 7);
	CHECK_EQ(s.ttl_ms, 20);
	CHECK_OK(dataspec_parse(&s, "--data", "-,lossy", &why));
	CHECK_EQ(s.fd, 0);
	CHECK_EQ(s.queue, 64);
	CHECK_EQ(s.ttl_ms, 100);
	CHECK_OK(dataspec_parse(&s, "--data", "file:/a/b.tar", &why));
	CHECK(s.is_file);
	CHECK_STR(s.name, "b.tar");
	CHECK_EQ(s.codec, TRACK_BYTES);
	CHECK_OK(dataspec_parse(&s, "--data", "unix:/run/x,osc", &why));
	CHECK(s.is_socket);

	static const char *const bad[] = {
		"", ",name=x", "a,", "a,nonsense", "a,queue=0", "a,queue=1025", "a,queue=1.5", "a,lossy,ttl=x", "a,ttl=1s", "a,lossy,ttl=2h", "a,name=",
		"file:a,lossy", "file:a,text", "unix:", "file:",
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		why = (struct err_why){ 0 };
		if (dataspec_parse(&s, "--data", bad[i], &why) != ERR_ARG || !why.reason[0] || strcmp(why.thing, "--data"))
			CHECK_FAIL("'%s' is taken, or refused without a word", bad[i]);
	}
}

int main(void)
{
	CHECK_RUN(test_lines);
	CHECK_RUN(test_prefixed);
	CHECK_RUN(test_midi);
	CHECK_RUN(test_long_lines);
	CHECK_RUN(test_time_is_linear);
	CHECK_RUN(test_specs);
	return check_end();
}
