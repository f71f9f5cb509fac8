/* wire/track: announcements there and back, limits, names, tags and fields. */
#include "check.h"

#include "base/bytes.h"
#include "base/units.h"
#include "wire/packet.h"
#include "wire/track.h"

static const enum sample samples[] = {SAMPLE_S16, SAMPLE_S24, SAMPLE_S24_32, SAMPLE_S32, SAMPLE_F32, SAMPLE_F64};

static void test_sample_formats(void)
{
	static const struct { enum sample sample; unsigned n_bytes; const char *name; } rows[] = {
		{SAMPLE_CODED, 0, "coded"}, {SAMPLE_S16, 2, "s16"}, {SAMPLE_S24, 3, "s24"}, {SAMPLE_S24_32, 4, "s24in32"},
		{SAMPLE_S32, 4, "s32"}, {SAMPLE_F32, 4, "f32"}, {SAMPLE_F64, 8, "f64"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK_EQ(track_sample_bytes(rows[i].sample), rows[i].n_bytes);
		CHECK_STR(track_sample_name(rows[i].sample), rows[i].name);
	}
	CHECK_EQ(track_sample_bytes((enum sample)7), 0);
	CHECK_EQ(track_sample_bytes((enum sample)255), 0);
	CHECK(track_sample_name((enum sample)255));
}

static void test_pcm_track(void)
{
	struct track mono = track_pcm(48000, 1, SAMPLE_S16), stereo = track_pcm(44100, 2, SAMPLE_F32),
		many = track_pcm(96000, 24, SAMPLE_S24);
	CHECK(track_is_pcm(&mono) && !track_is_opus(&mono));
	CHECK_EQ(mono.layout, TRACK_LAYOUT_WAVE);
	CHECK_EQ(mono.wave_mask, 0x4);
	CHECK_EQ(mono.frame_bytes, 2);
	CHECK_EQ(mono.valid_bits, 16);
	CHECK_EQ(mono.next_utc_ns, UNITS_UNKNOWN_NS);
	CHECK_EQ(stereo.wave_mask, 0x3);
	CHECK_EQ(stereo.frame_bytes, 8);
	CHECK_EQ(stereo.original_rate_hz, 44100);
	CHECK_EQ(track_rate_hz(&stereo), 44100);
	CHECK_EQ(many.layout, TRACK_LAYOUT_DISCRETE);
	CHECK_EQ(many.wave_mask, 0);
	CHECK_EQ(many.frame_bytes, 72);
	CHECK_EQ(many.valid_bits, 24);
}

static struct track random_track(void)
{
	enum sample sample = samples[check_rand_below(ARRAY_LEN(samples))];
	struct track t = track_pcm((uint32_t)(1 + check_rand_below(TRACK_MAX_RATE_HZ)),
		(uint16_t)(1 + check_rand_below(TRACK_MAX_CHANNELS)), sample);
	t.policy = (uint8_t)check_rand_below(3);
	t.nominal_dur = (uint32_t)check_rand();
	t.first_pos = (int64_t)check_rand();
	t.next_pos = (int64_t)check_rand();
	t.next_seq = (uint32_t)check_rand();
	t.dropped = (uint32_t)check_rand();
	t.largest_object_bytes = (uint32_t)check_rand();
	t.flags = (uint32_t)check_rand();
	t.next_utc_ns = (int64_t)check_rand();
	t.ref_track = (uint16_t)check_rand();
	t.gen = (uint8_t)check_rand();
	t.priority = (uint8_t)check_rand();
	t.ttl_ms = (uint32_t)check_rand();
	t.layout = (uint8_t)check_rand_below(5);
	t.wave_mask = check_rand();
	t.opus_family = (uint8_t)check_rand();
	t.opus_streams = (uint8_t)check_rand();
	t.opus_coupled = (uint8_t)check_rand();
	t.codec_delay_frames = (uint32_t)check_rand();
	t.preroll_frames = (uint32_t)check_rand();
	t.original_rate_hz = (uint32_t)check_rand();
	t.gain_q8 = (int16_t)check_rand();
	return t;
}

static void test_every_field_goes_there_and_back(void)
{
	check_seed(8);
	for (int i = 0; i < 2000; i++) {
		uint8_t a[1024], b[1024];
		struct track t = random_track(), u = {0};
		struct err_why why = {0};
		if (i & 1)
			CHECK_OK(track_set_name(&t, "a name"));
		if (i & 2)
			CHECK_OK(track_add_tag(&t, "ARTIST", "someone", false));
		size_t n = track_packed_bytes(&t);
		if (!CHECK(n <= sizeof(a)))
			return;
		track_pack(&t, a);
		bool ok = CHECK_OK(track_unpack(&u, a, n, &why)) && CHECK_EQ(track_packed_bytes(&u), n);
		if (ok) {
			track_pack(&u, b);
#define SAME(field) CHECK_EQ(u.field, t.field)
			ok = CHECK_MEM(b, a, n) & SAME(kind) & SAME(policy) & SAME(codec) & SAME(rate_num) & SAME(rate_den) &
				SAME(nominal_dur) & SAME(first_pos) & SAME(next_pos) & SAME(next_seq) & SAME(dropped) &
				SAME(largest_object_bytes) & SAME(flags) & SAME(next_utc_ns) & SAME(ref_track) & SAME(gen) &
				SAME(priority) & SAME(ttl_ms) & SAME(channels) & SAME(sample) & SAME(layout) & SAME(frame_bytes) &
				SAME(valid_bits) & SAME(wave_mask) & SAME(opus_family) & SAME(opus_streams) & SAME(opus_coupled) &
				SAME(codec_delay_frames) & SAME(preroll_frames) & SAME(original_rate_hz) & SAME(gain_q8);
		}
		track_release(&t);
		track_release(&u);
		if (!ok)
			return;
	}
}

static void test_other_kinds_keep_their_bytes(void)
{
	uint8_t a[128] = {TRACK_VIDEO, TRACK_LOSSY, 0x10, 0, 60, 0, 0, 0, 1, 0, 0, 0}, b[128];
	for (size_t i = 64; i < 128; i++)
		a[i] = (uint8_t)(i * 3);
	struct track t = {0};
	CHECK_OK(track_unpack(&t, a, sizeof(a), NULL));
	CHECK_EQ(t.kind, TRACK_VIDEO);
	track_pack(&t, b);
	CHECK_MEM(b, a, 128);
	track_release(&t);
}

static enum err unpack_with(size_t at, unsigned n_bytes, uint64_t value)
{
	uint8_t p[128];
	struct track t = track_pcm(48000, 2, SAMPLE_S24), u = {0};
	struct err_why why = {0};
	track_pack(&t, p);
	if (n_bytes == 1)
		p[at] = (uint8_t)value;
	else if (n_bytes == 2)
		put_le16(p + at, (uint16_t)value);
	else
		put_le32(p + at, (uint32_t)value);
	enum err e = track_unpack(&u, p, sizeof(p), &why);
	if (e)
		CHECK(*why.thing && *why.reason);
	track_release(&u);
	return e;
}

static void test_impossible_announcements_are_refused(void)
{
	CHECK_OK(unpack_with(0, 1, TRACK_AUDIO));
	CHECK_EQ(unpack_with(4, 4, 0), ERR_FORMAT);            /* rate_num */
	CHECK_EQ(unpack_with(8, 4, 0), ERR_FORMAT);            /* rate_den */
	CHECK_EQ(unpack_with(4, 4, TRACK_MAX_RATE_HZ + 1), ERR_FORMAT);
	CHECK_EQ(unpack_with(8, 4, 48001), ERR_FORMAT);        /* less than 1 Hz */
	CHECK_EQ(unpack_with(64, 2, 0), ERR_FORMAT);           /* channels */
	CHECK_EQ(unpack_with(64, 2, TRACK_MAX_CHANNELS + 1), ERR_LIMIT);
	CHECK_EQ(unpack_with(64, 2, 3), ERR_FORMAT);           /* not what a frame holds */
	CHECK_EQ(unpack_with(66, 1, 0), ERR_FORMAT);           /* PCM that is coded */
	CHECK_EQ(unpack_with(66, 1, 7), ERR_FORMAT);
	CHECK_EQ(unpack_with(66, 1, 255), ERR_FORMAT);
	CHECK_EQ(unpack_with(68, 2, 7), ERR_FORMAT);           /* bytes a frame */
	CHECK_EQ(unpack_with(68, 2, 0), ERR_FORMAT);
	CHECK_EQ(unpack_with(70, 2, 25), ERR_FORMAT);          /* valid bits */
	CHECK_OK(unpack_with(70, 2, 20));
	CHECK_OK(unpack_with(2, 2, 0x8001));                   /* a private codec: routed, not understood */
	CHECK_EQ(unpack_with(2, 2, TRACK_OPUS), ERR_OK);
}

static void test_opus_limits(void)
{
	uint8_t p[128];
	struct track t = track_pcm(48000, 255, SAMPLE_S16), u = {0};
	t.codec = TRACK_OPUS;
	t.sample = SAMPLE_CODED;
	t.frame_bytes = 0;
	track_pack(&t, p);
	CHECK_OK(track_unpack(&u, p, 128, NULL));
	CHECK(track_is_opus(&u));
	track_release(&u);
	put_le16(p + 64, 256);
	CHECK_EQ(track_unpack(&u, p, 128, NULL), ERR_FORMAT);
	put_le16(p + 64, 2);
	put_le32(p + 4, 44100);
	CHECK_EQ(track_unpack(&u, p, 128, NULL), ERR_FORMAT);
}

static void test_sizes(void)
{
	static uint8_t p[TRACK_MAX_BYTES + 64], zeros[TRACK_MAX_BYTES];
	struct track t = track_pcm(48000, 1, SAMPLE_S16), u = {0};
	track_pack(&t, p);
	for (size_t n = 0; n < TRACK_FIXED_BYTES; n++)
		CHECK_EQ(track_unpack(&u, p, n, NULL), ERR_FORMAT);
	packet_tlv_pack(p + 128, 0x100, zeros, TRACK_MAX_BYTES - 128 - 8);
	CHECK_OK(track_unpack(&u, p, TRACK_MAX_BYTES, NULL));
	CHECK_EQ(track_packed_bytes(&u), TRACK_MAX_BYTES);
	/* Full: nothing more goes in, and what is there stays. */
	CHECK_EQ(track_set_name(&u, "x"), ERR_LIMIT);
	uint32_t n_bytes = 0;
	CHECK(track_tlv(&u, 0x100, &n_bytes));
	CHECK_EQ(n_bytes, TRACK_MAX_BYTES - 136);
	track_release(&u);
	CHECK_EQ(track_unpack(&u, p, TRACK_MAX_BYTES + 1, NULL), ERR_FORMAT);
}

static void test_fields_that_break_the_area(void)
{
	uint8_t p[160] = {0};
	struct track t = track_pcm(48000, 1, SAMPLE_S16), u = {0};
	struct err_why why = {0};
	track_pack(&t, p);
	packet_tlv_pack(p + 128, TRACK_TLV_NAME, "abcdefgh", 8);
	for (uint64_t n = 25; n <= UINT32_MAX; n = n * 5 / 2) {
		put_le32(p + 132, (uint32_t)n);
		CHECK_EQ(track_unpack(&u, p, sizeof(p), &why), ERR_FORMAT);
	}
	packet_tlv_pack(p + 128, 0x8055, "abcdefgh", 8);
	CHECK_EQ(track_unpack(&u, p, sizeof(p), &why), ERR_VERSION);
	CHECK(strstr(why.reason, "8055"));
}

/* Adding must not depend on how the sender ended its area: exactly, with zeros behind, or without the last padding. */
static void test_fields_are_added_behind_any_end(void)
{
	uint8_t p[256];
	struct track t = track_pcm(48000, 1, SAMPLE_S16);
	for (size_t extra = 0; extra <= 24; extra++) {
		for (int empty = 0; empty < 2; empty++) {
			struct track u = {0};
			char name[128];
			uint32_t n_bytes = 0;
			memset(p, 0, sizeof(p));
			track_pack(&t, p);
			size_t n = 128;
			if (!empty) {
				packet_tlv_pack(p + n, TRACK_TLV_GROUP, "abc", 3);
				n += 11;
			}
			if (!CHECK_OK(track_unpack(&u, p, n + extra, NULL)))
				return;
			CHECK_OK(track_set_name(&u, "flute"));
			bool ok = CHECK_STR(track_name(&u, name), "flute");
			const uint8_t *group = track_tlv(&u, TRACK_TLV_GROUP, &n_bytes);
			ok &= empty ? CHECK(!group) : CHECK(group && n_bytes == 3 && !memcmp(group, "abc", 3));
			/* And what is sent on is read again. */
			track_pack(&u, p);
			struct track v = {0};
			ok &= CHECK_OK(track_unpack(&v, p, track_packed_bytes(&u), NULL));
			ok &= CHECK_STR(track_name(&v, name), "flute");
			CHECK_OK(track_set_name(&v, "oboe"));
			ok &= CHECK_STR(track_name(&v, name), "oboe");
			ok &= CHECK((track_tlv(&v, TRACK_TLV_GROUP, &n_bytes) != NULL) == !empty);
			track_release(&u);
			track_release(&v);
			if (!ok) {
				CHECK_FAIL("%zu bytes behind %s", extra, empty ? "nothing" : "a field");
				return;
			}
		}
	}
}

static void test_set_replace_remove(void)
{
	struct track t = track_pcm(48000, 1, SAMPLE_S16);
	uint32_t n = 0;
	CHECK(!track_tlv(&t, TRACK_TLV_GROUP, &n));
	check_seed(9);
	/* A model: the value lengths of 8 fields, set and removed at random. */
	int lengths[8] = {0};
	for (int i = 0; i < 3000; i++) {
		unsigned tag = 1 + (unsigned)check_rand_below(8);
		uint8_t value[40];
		uint32_t length = (uint32_t)check_rand_below(sizeof(value) + 1);
		memset(value, (int)tag, sizeof(value));
		CHECK_OK(track_set_tlv(&t, (uint16_t)tag, value, length));
		lengths[tag - 1] = (int)length;
		size_t total = 128;
		for (unsigned k = 0; k < 8; k++) {
			const uint8_t *got = track_tlv(&t, (uint16_t)(k + 1), &n);
			if (lengths[k])
				total += packet_tlv_bytes((size_t)lengths[k]);
			if (!CHECK(lengths[k] ? got && n == (uint32_t)lengths[k] && got[0] == k + 1 && got[n - 1] == k + 1 : !got)) {
				track_release(&t);
				return;
			}
		}
		CHECK_EQ(track_packed_bytes(&t), total);
	}
	/* A field that came twice is replaced, not hidden behind the other. */
	uint8_t p[200];
	struct track twice = track_pcm(48000, 1, SAMPLE_S16), u = {0};
	track_pack(&twice, p);
	size_t n_bytes = 128;
	n_bytes += packet_tlv_pack(p + n_bytes, TRACK_TLV_NAME, "one", 3);
	n_bytes += packet_tlv_pack(p + n_bytes, TRACK_TLV_GROUP, "g", 1);
	n_bytes += packet_tlv_pack(p + n_bytes, TRACK_TLV_NAME, "two", 3);
	CHECK_OK(track_unpack(&u, p, n_bytes, NULL));
	CHECK_OK(track_set_name(&u, "three"));
	char words[128];
	CHECK_STR(track_name(&u, words), "three");
	CHECK_OK(track_set_tlv(&u, TRACK_TLV_NAME, NULL, 0));
	CHECK_STR(track_name(&u, words), "");
	CHECK(track_tlv(&u, TRACK_TLV_GROUP, &n));
	track_release(&u);
	/* A value that lies in the track itself. */
	CHECK_OK(track_set_tlv(&t, TRACK_TLV_NAME, "in the area", 11));
	const uint8_t *own = track_tlv(&t, TRACK_TLV_NAME, &n);
	CHECK_OK(track_set_tlv(&t, TRACK_TLV_NAME, own + 3, 8));
	char name[128];
	CHECK_STR(track_name(&t, name), "the area");
	track_release(&t);
	track_release(&t);
}

static void test_copy_is_of_its_own(void)
{
	struct track a = track_pcm(48000, 2, SAMPLE_F32), b = {0}, c = {0};
	char name[128];
	CHECK_OK(track_set_name(&a, "one"));
	CHECK_OK(track_copy(&b, &a));
	CHECK_OK(track_set_name(&a, "two"));
	CHECK_STR(track_name(&b, name), "one");
	track_release(&a);
	CHECK_STR(track_name(&b, name), "one");
	CHECK_EQ(b.frame_bytes, 8);
	track_release(&b);
	CHECK_OK(track_copy(&c, &b));
	CHECK(!c.tlv);
}

static void test_names_are_made_printable(void)
{
	static const struct { const char *set, *got; } rows[] = {
		{"mic", "mic"}, {"", ""}, {"Gr\xC3\xBC\xC3\x9F" "e \xE2\x82\xAC \xF0\x9F\x8E\xB5", "Gr\xC3\xBC\xC3\x9F" "e \xE2\x82\xAC \xF0\x9F\x8E\xB5"},
		{"a\x1b[31mb", "a?[31mb"}, {"tab\there\n", "tab?here?"}, {"del\x7f", "del?"},
		{"\xff\xfe", "??"}, {"\xC0\xAF", "??"}, {"\xED\xA0\x80", "???"}, {"\xE2\x82", "??"}, {"\xF4\x90\x80\x80", "????"},
	};
	struct track t = track_pcm(48000, 1, SAMPLE_S16);
	char name[128];
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK_OK(track_set_name(&t, rows[i].set));
		CHECK_STR(track_name(&t, name), rows[i].got);
	}
	/* C1 control characters move a terminal as well as the C0 ones. */
	CHECK_OK(track_set_name(&t, "\xC2\x9B" "31m"));
	track_name(&t, name);
	CHECK(!strstr(name, "\xC2\x9B"));
	/* Longer than there is room for: cut at a character. */
	char longer[300];
	for (size_t i = 0; i < 298; i += 2)
		memcpy(longer + i, "\xC3\xBC", 3);
	CHECK_OK(track_set_tlv(&t, TRACK_TLV_NAME, longer, 298));
	track_name(&t, name);
	CHECK_EQ(strlen(name), 126);
	CHECK_MEM(name, longer, 126);
	track_release(&t);
}

static void test_tags(void)
{
	struct track t = track_pcm(48000, 1, SAMPLE_S16);
	CHECK(!track_tag(&t, "TITLE"));
	CHECK(!track_tag_at(&t, 0));
	CHECK_OK(track_add_tag(&t, "TITLE", "one", false));
	CHECK_OK(track_add_tag(&t, "ARTIST", "a", false));
	CHECK_OK(track_add_tag(&t, "Artist", "b", false));
	CHECK_OK(track_add_tag(&t, "EMPTY", "", false));
	CHECK_STR(track_tag(&t, "title"), "one");
	CHECK_STR(track_tag(&t, "ARTIST"), "a");
	CHECK_STR(track_tag(&t, "empty"), "");
	CHECK(!track_tag(&t, "ART"));
	CHECK(!track_tag(&t, "TITLES"));
	CHECK_STR(track_tag_at(&t, 0), "TITLE=one");
	CHECK_STR(track_tag_at(&t, 2), "Artist=b");
	CHECK(!track_tag_at(&t, 4));
	/* Replace takes all of that key away. */
	CHECK_OK(track_add_tag(&t, "artist", "c=d", true));
	CHECK_STR(track_tag(&t, "ARTIST"), "c=d");
	CHECK_STR(track_tag_at(&t, 2), "artist=c=d");
	CHECK(!track_tag_at(&t, 3));
	/* Keys as Vorbis comments have them: 0x20…0x7D without '='. */
	static const char *const bad[] = {"", "a=b", "a~", "a\x7f", "a\n", "\xC3\xBC"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_EQ(track_add_tag(&t, bad[i], "v", false), ERR_ARG);
	/* A tag too large leaves the others. */
	static char big[70000];
	memset(big, 'x', sizeof(big) - 1);
	CHECK_EQ(track_add_tag(&t, "BIG", big, false), ERR_LIMIT);
	CHECK_STR(track_tag(&t, "TITLE"), "one");
	track_release(&t);
}

static void test_tags_from_a_stranger(void)
{
	struct track t = track_pcm(48000, 1, SAMPLE_S16);
	/* Without the last NUL, without '=', empty. */
	CHECK_OK(track_set_tlv(&t, TRACK_TLV_TAGS, "TITLE=x\0ARTIST=y", 16));
	CHECK_STR(track_tag_at(&t, 0), "TITLE=x");
	CHECK(!track_tag_at(&t, 1));
	CHECK(!track_tag(&t, "ARTIST"));
	CHECK_OK(track_set_tlv(&t, TRACK_TLV_TAGS, "TITLE\0\0=\0A=1", 13));
	CHECK(!track_tag(&t, "TITLE"));
	CHECK_STR(track_tag(&t, "A"), "1");
	track_release(&t);
}

static void test_channel_names(void)
{
	struct track t = track_pcm(48000, 6, SAMPLE_S16);
	char out[16];
	CHECK_STR(track_channel_name(&t, 0, out), "ch1");
	CHECK_STR(track_channel_name(&t, 1023, out), "ch1024");
	t.layout = TRACK_LAYOUT_WAVE;
	t.wave_mask = 0x603F & ~0x30u;
	static const char *const want[] = {"FL", "FR", "FC", "LFE", "TFC", "TFR"};
	t.wave_mask = 0x600F;
	for (unsigned i = 0; i < 6; i++)
		CHECK_STR(track_channel_name(&t, i, out), want[i]);
	CHECK_STR(track_channel_name(&t, 6, out), "ch7");
	CHECK_OK(track_set_tlv(&t, TRACK_TLV_CHANNEL_NAMES, "kick\0\0a very long name of a channel\0last", 40));
	CHECK_STR(track_channel_name(&t, 0, out), "kick");
	CHECK_STR(track_channel_name(&t, 1, out), "FR");
	CHECK_STR(track_channel_name(&t, 2, out), "a very long nam");
	CHECK_STR(track_channel_name(&t, 3, out), "last");
	CHECK_STR(track_channel_name(&t, 4, out), "TFC");
	track_release(&t);
}

static void test_usual_masks(void)
{
	static const uint64_t want[] = {0, 0x4, 0x3, 0x7, 0x33, 0x37, 0x3F, 0x70F, 0x63F, 0, 0};
	for (unsigned n = 0; n < ARRAY_LEN(want); n++) {
		CHECK_EQ(track_usual_mask(n), want[n]);
		if (want[n])
			CHECK_EQ(__builtin_popcountll(track_usual_mask(n)), n);
	}
	CHECK_EQ(track_usual_mask(UINT32_MAX), 0);
}

int main(void)
{
	CHECK_RUN(test_sample_formats);
	CHECK_RUN(test_pcm_track);
	CHECK_RUN(test_every_field_goes_there_and_back);
	CHECK_RUN(test_other_kinds_keep_their_bytes);
	CHECK_RUN(test_impossible_announcements_are_refused);
	CHECK_RUN(test_opus_limits);
	CHECK_RUN(test_sizes);
	CHECK_RUN(test_fields_that_break_the_area);
	CHECK_RUN(test_fields_are_added_behind_any_end);
	CHECK_RUN(test_set_replace_remove);
	CHECK_RUN(test_copy_is_of_its_own);
	CHECK_RUN(test_names_are_made_printable);
	CHECK_RUN(test_tags);
	CHECK_RUN(test_tags_from_a_stranger);
	CHECK_RUN(test_channel_names);
	CHECK_RUN(test_usual_masks);
	return check_end();
}
