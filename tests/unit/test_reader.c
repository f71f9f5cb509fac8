/*
 * wire/reader: what is handed out is regular whatever came in, nothing intact is lost to damage, and everything lost
 * is counted.
 */
#include "check.h"
#include "stream_maker.h"

#include "wire/reader.h"

#include <fcntl.h>
#include <unistd.h>

/* ---- a reader fed through a pipe, a chunk whenever it asks ---- */

struct source {
	struct reader r;
	const uint8_t *bytes;
	size_t n_bytes, at_bytes, chunk_bytes;
	bool random_chunks;
	int fds[2];
	unsigned n_calls;
};

static bool source_open(struct source *s, const void *bytes, size_t n_bytes, size_t chunk_bytes,
	const struct reader_options *o)
{
	struct err_why why = {0};
	*s = (struct source){.bytes = bytes, .n_bytes = n_bytes, .chunk_bytes = chunk_bytes};
	if (pipe(s->fds))
		abort();
	(void)fcntl(s->fds[1], F_SETPIPE_SZ, 1 << 20);
	return CHECK_OK(reader_open(&s->r, s->fds[0], "test", o, &why));
}

static void source_close(struct source *s)
{
	reader_release(&s->r);
	close(s->fds[0]);
	if (s->fds[1] >= 0)
		close(s->fds[1]);
}

static bool feed(struct source *s)
{
	size_t n = s->n_bytes - s->at_bytes;
	size_t chunk = s->random_chunks ? 1 + check_rand_below(s->chunk_bytes) : s->chunk_bytes;
	if (n > chunk)
		n = chunk;
	if (n == 0) {
		close(s->fds[1]);
		s->fds[1] = -1;
	} else if (write(s->fds[1], s->bytes + s->at_bytes, n) != (ssize_t)n) {
		abort();
	}
	s->at_bytes += n;
	return true;
}

static enum err next(struct source *s, struct packet *p)
{
	for (;;) {
		enum err e = reader_next(&s->r, p);
		if (++s->n_calls > 100000000)
			abort(); /* it goes round in circles */
		if (e != ERR_AGAIN)
			return e;
		if (s->fds[1] >= 0)
			feed(s);
		if ((e = reader_fill(&s->r)))
			return e;
	}
}

/* ---- what was handed out, as lines: "TRACK 1", "DATA 1 @0+64", "GAP 1 @64+64 unknown", "END 1" ---- */

static char story[1 << 16];

static bool samples_are_right(const struct packet *p, int64_t shift)
{
	for (uint32_t i = 0; i < p->dur; i++)
		if (get_le16(p->payload + 2 * i) != maker_sample(p->track, p->pos - shift + i))
			return false;
	return true;
}

/* Read to the end.  Returns: how it ended. */
static enum err tell(struct source *s)
{
	struct packet p;
	enum err e;
	size_t n = 0;
	char scratch[8];
	story[0] = 0;
	while ((e = next(s, &p)) == ERR_OK && n < sizeof(story) - 100) {
		n += (size_t)snprintf(story + n, sizeof(story) - n, "%s %u", packet_type_name(p.type, scratch), p.track);
		if (p.type == PACKET_DATA || p.type == PACKET_GAP)
			n += (size_t)snprintf(story + n, sizeof(story) - n, " @%lld+%u", (long long)p.pos, p.dur);
		if (p.type == PACKET_GAP) {
			struct packet_gap g;
			CHECK_OK(packet_gap_unpack(&g, p.payload, p.payload_bytes));
			n += (size_t)snprintf(story + n, sizeof(story) - n, " %s", packet_gap_reason_name(g.reason));
		}
		n += (size_t)snprintf(story + n, sizeof(story) - n, "\n");
	}
	return e;
}

static enum err tell_of(const struct maker *m, struct source *s, const struct reader_options *o)
{
	source_open(s, m->bytes, m->n_bytes, 1 << 16, o);
	return tell(s);
}

/* ---- whole streams ---- */

static void make_simple(struct maker *m, uint32_t sid, int64_t first_pos, int n_packets)
{
	maker_stream(m, sid);
	maker_mono(m, 1, 0, 48000, first_pos);
	for (int i = 0; i < n_packets; i++)
		maker_mono_data(m, maker_mono_packet(1, first_pos + 64 * i, 64, (uint32_t)i));
	maker_end(m, 1, first_pos + 64 * n_packets, PACKET_END_NORMAL);
	maker_end(m, 0, 0, PACKET_END_NORMAL);
}

static void test_whole_stream(void)
{
	struct maker m = {0};
	struct source s;
	make_simple(&m, 77, 0, 3);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nDATA 1 @0+64\nDATA 1 @64+64\nDATA 1 @128+64\nEND 1\n");
	CHECK(!reader_is_cut(&s.r));
	CHECK(!s.r.truncated);
	CHECK_EQ(s.r.damaged_bytes, 0);
	CHECK_EQ(s.r.n_resyncs, 0);
	CHECK_EQ(s.r.n_packets, 7);
	CHECK_EQ(s.r.n_bytes, m.n_bytes);
	CHECK_EQ(s.r.n_streams, 1);
	struct reader_track *rt = reader_track(&s.r, 1);
	if (CHECK(rt)) {
		CHECK_EQ(rt->frames, 192);
		CHECK_EQ(rt->gaps, 0);
		CHECK_EQ(rt->expect_pos, 192);
	}
	CHECK(!reader_track(&s.r, 2));
	/* And it stays at its end. */
	struct packet p;
	CHECK_EQ(reader_next(&s.r, &p), ERR_END);
	source_close(&s);
	maker_release(&m);
}

static void test_bytes_one_at_a_time(void)
{
	struct maker m = {0};
	struct source s;
	struct packet p;
	check_seed(20);
	make_simple(&m, 77, -312, 20);
	for (int way = 0; way < 3; way++) {
		source_open(&s, m.bytes, m.n_bytes, way == 0 ? 1 : way == 1 ? 63 : 700, NULL);
		s.random_chunks = way == 2;
		int64_t pos = -312;
		enum err e;
		while ((e = next(&s, &p)) == ERR_OK) {
			if (p.type != PACKET_DATA)
				continue;
			CHECK_EQ(p.pos, pos);
			CHECK(samples_are_right(&p, 0));
			pos += p.dur;
		}
		CHECK_EQ(e, ERR_END);
		CHECK_EQ(pos, -312 + 20 * 64);
		CHECK(!reader_is_cut(&s.r));
		source_close(&s);
	}
	maker_release(&m);
}

static void test_payloads_are_aligned_and_live_until_the_fill(void)
{
	struct maker m = {0};
	struct source s;
	struct packet held[64];
	make_simple(&m, 77, 0, 400);
	source_open(&s, m.bytes, m.n_bytes, 5000, NULL);
	unsigned n = 0;
	int64_t pos = 0;
	for (;;) {
		struct packet p;
		enum err e = reader_next(&s.r, &p);
		if (e == ERR_OK && p.type == PACKET_DATA && n < ARRAY_LEN(held)) {
			CHECK_EQ((uintptr_t)p.payload % 64, 0);
			CHECK(p.payload == p.head + 64);
			held[n++] = p;
		}
		if (e == ERR_OK)
			continue;
		/* All that were handed out since the last fill are still there. */
		for (unsigned i = 0; i < n; i++) {
			CHECK_EQ(held[i].pos, pos);
			CHECK(samples_are_right(&held[i], 0));
			pos += held[i].dur;
		}
		n = 0;
		if (e != ERR_AGAIN)
			break;
		if (s.fds[1] >= 0)
			feed(&s);
		CHECK_OK(reader_fill(&s.r));
	}
	CHECK_EQ(pos, 400 * 64);
	source_close(&s);
	maker_release(&m);
}

static void test_cut_at_every_byte(void)
{
	struct maker m = {0};
	size_t payload_ends[5], stream_end;
	maker_stream(&m, 99);
	stream_end = m.n_bytes;
	maker_mono(&m, 1, 0, 48000, 0);
	for (int i = 0; i < 3; i++) {
		maker_mono_data(&m, maker_mono_packet(1, 50 * i, 50, (uint32_t)i));
		payload_ends[i] = m.last + 64 + 100;
	}
	maker_end(&m, 1, 150, PACKET_END_NORMAL);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	for (size_t cut = 0; cut <= m.n_bytes; cut++) {
		struct source s;
		struct packet p;
		enum err e;
		int64_t frames = 0, want = 0;
		source_open(&s, m.bytes, cut, 1 << 16, NULL);
		while ((e = next(&s, &p)) == ERR_OK) {
			if (p.type == PACKET_DATA) {
				CHECK(samples_are_right(&p, 0));
				frames += p.dur;
			}
			CHECK(p.type != PACKET_GAP);
		}
		for (int i = 0; i < 3; i++)
			want += cut >= payload_ends[i] ? 50 : 0;
		bool ok = CHECK_EQ(frames, want);
		if (cut < stream_end)
			/* Not even the STREAM came whole: no stream, or one cut short; never a clean end. */
			ok &= CHECK(e == ERR_FORMAT || (e == ERR_END && reader_is_cut(&s.r)));
		else
			ok &= CHECK_EQ(e, ERR_END) & CHECK_EQ(s.r.truncated, cut < m.n_bytes) &
				CHECK_EQ(reader_is_cut(&s.r), cut < m.n_bytes);
		if (e == ERR_FORMAT)
			CHECK(*s.r.why.reason);
		else if (cut < m.n_bytes) {
			char words[300];
			reader_describe_loss(&s.r, words, sizeof(words));
			ok &= CHECK(strstr(words, "byte"));
		}
		source_close(&s);
		if (!ok) {
			CHECK_FAIL("cut at %zu of %zu", cut, m.n_bytes);
			break;
		}
	}
	maker_release(&m);
}

/* ---- one after another ---- */

static void test_concatenated_streams_go_on(void)
{
	struct maker m = {0};
	struct source s;
	struct packet p;
	enum err e;
	make_simple(&m, 5, 0, 2);
	make_simple(&m, 5, 0, 3);     /* the same file again: the same id */
	make_simple(&m, 6, 1000, 1);  /* begins at another place */
	make_simple(&m, 7, -312, 1);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nDATA 1 @0+64\nDATA 1 @64+64\nEND 1\n"
		"TRACK 1\nDATA 1 @128+64\nDATA 1 @192+64\nDATA 1 @256+64\nEND 1\n"
		"TRACK 1\nDATA 1 @320+64\nEND 1\nTRACK 1\nDATA 1 @384+64\nEND 1\n");
	CHECK(!reader_is_cut(&s.r));
	CHECK_EQ(s.r.n_streams, 4);
	CHECK_EQ(reader_track(&s.r, 1)->frames, 7 * 64);
	CHECK_EQ(reader_track(&s.r, 1)->lost_objects, 0);
	CHECK_EQ(reader_track(&s.r, 1)->gaps, 0);
	source_close(&s);

	/* seq goes on; first_pos stands on the joined timeline; the samples are the right ones. */
	static const int64_t shifts[] = {0, 128, 320 - 1000, 384 + 312};
	static const int64_t first[] = {0, 128, 320, 384};
	source_open(&s, m.bytes, m.n_bytes, 1 << 16, NULL);
	int stream = -1;
	uint32_t seq = 0;
	while ((e = next(&s, &p)) == ERR_OK) {
		if (p.type == PACKET_TRACK) {
			stream++;
			CHECK_EQ(reader_track(&s.r, 1)->track.first_pos, first[stream]);
		} else if (p.type == PACKET_DATA) {
			CHECK_EQ(p.seq, seq++);
			CHECK(samples_are_right(&p, shifts[stream]));
		}
	}
	CHECK_EQ(e, ERR_END);
	CHECK_EQ(stream, 3);
	source_close(&s);
	maker_release(&m);
}

static void test_concatenated_tracks_keep_together(void)
{
	struct maker m = {0};
	struct source s;
	/* Two tracks of different rates and lengths: the second stream begins behind the longer one, for both. */
	for (uint32_t sid = 1; sid <= 2; sid++) {
		maker_stream(&m, sid);
		maker_mono(&m, 1, 0, 48000, 0);
		maker_mono(&m, 2, 0, 24000, 0);
		maker_mono_data(&m, maker_mono_packet(1, 0, 480, 0));
		maker_mono_data(&m, maker_mono_packet(2, 0, 480, 0));
		maker_end(&m, 0, 0, PACKET_END_NORMAL);
	}
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nTRACK 2\nDATA 1 @0+480\nDATA 2 @0+480\n"
		"TRACK 1\nTRACK 2\nGAP 1 @480+480 paused\nDATA 1 @960+480\nDATA 2 @480+480\n");
	CHECK(!reader_is_cut(&s.r));
	CHECK_EQ(reader_track(&s.r, 1)->lost_frames, 0);
	source_close(&s);
	maker_release(&m);
}

/* A hole as long as a GAP can say, and one that is longer. */
static void test_the_longest_hole(void)
{
	for (int64_t more = 0; more <= 1; more++) {
		struct maker m = {0};
		struct source s;
		maker_stream(&m, 1);
		maker_mono(&m, 1, 0, 48000, 0);
		maker_mono_data(&m, maker_mono_packet(1, 0, 10, 0));
		maker_mono_data(&m, maker_mono_packet(1, 10 + (int64_t)UINT32_MAX + more, 10, 1));
		maker_end(&m, 0, 0, PACKET_END_NORMAL);
		CHECK_EQ(tell_of(&m, &s, NULL), more ? ERR_FORMAT : ERR_END);
		CHECK_STR(story, more ? "TRACK 1\nDATA 1 @0+10\n"
				      : "TRACK 1\nDATA 1 @0+10\nGAP 1 @10+4294967295 unknown\nDATA 1 @4294967305+10\n");
		source_close(&s);
		maker_release(&m);
	}
}

/* What follows begins where the last one is over, not before: at another rate that is rounded up. */
static void test_concatenated_at_another_rate(void)
{
	struct maker m = {0};
	struct source s;
	make_simple(&m, 77, 0, 1); /* 64 frames of 48000 Hz are 58.8 of 44100 … */
	maker_stream(&m, 78);
	maker_mono(&m, 2, 0, 44100, 0);
	maker_mono_data(&m, maker_mono_packet(2, 0, 10, 0)); /* … that end at 69, which is 75.1 */
	maker_end(&m, 2, 10, PACKET_END_NORMAL);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	maker_stream(&m, 79);
	maker_mono(&m, 3, 0, 48000, 0);
	maker_mono_data(&m, maker_mono_packet(3, 0, 10, 0));
	maker_end(&m, 3, 10, PACKET_END_NORMAL);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nDATA 1 @0+64\nEND 1\nTRACK 2\nDATA 2 @59+10\nEND 2\nTRACK 3\nDATA 3 @76+10\nEND 3\n");
	source_close(&s);
	maker_release(&m);
}

static void test_concatenated_onto_a_cut_one(void)
{
	struct maker m = {0};
	struct source s;
	make_simple(&m, 5, 0, 2);
	m.n_bytes -= 128; /* its END */
	make_simple(&m, 6, 0, 1);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nDATA 1 @0+64\nDATA 1 @64+64\nEND 1\nTRACK 1\nDATA 1 @128+64\nEND 1\n");
	CHECK(s.r.truncated);
	CHECK(reader_is_cut(&s.r));
	CHECK_EQ(s.r.damaged_bytes, 0);
	source_close(&s);

	/* Cut in the middle of a packet: what follows is not lost with it. */
	m.n_bytes = 0;
	make_simple(&m, 5, 0, 2);
	m.n_bytes -= 256 + 100;
	make_simple(&m, 6, 0, 1);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nDATA 1 @0+64\nTRACK 1\nDATA 1 @64+64\nEND 1\n");
	CHECK(s.r.truncated);
	CHECK_EQ(s.r.damaged_bytes, 92);
	source_close(&s);
	maker_release(&m);
}

static void test_end_reasons_are_passed_on(void)
{
	for (unsigned reason = 0; reason < 4; reason++) {
		struct maker m = {0};
		struct source s;
		maker_stream(&m, 1);
		maker_mono(&m, 1, 0, 48000, 0);
		maker_end(&m, 0, 0, reason);
		CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
		CHECK_EQ(s.r.end_reason, reason);
		CHECK_EQ(reader_is_cut(&s.r), reason == PACKET_END_TRUNCATED || reason == PACKET_END_ERROR);
		source_close(&s);
		maker_release(&m);
	}
}

/* ---- holes, overlaps, counters ---- */

static void test_a_hole_gets_its_gap(void)
{
	struct maker m = {0};
	struct source s;
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	maker_mono_data(&m, maker_mono_packet(1, 64, 64, 1));     /* the first one is missing */
	maker_mono_data(&m, maker_mono_packet(1, 200, 64, 4));
	maker_end(&m, 1, 300, PACKET_END_NORMAL);                 /* and something at the end */
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nGAP 1 @0+64 unknown\nDATA 1 @64+64\nGAP 1 @128+72 unknown\nDATA 1 @200+64\n"
		"GAP 1 @264+36 unknown\nEND 1\n");
	struct reader_track *rt = reader_track(&s.r, 1);
	CHECK_EQ(rt->frames, 128);
	CHECK_EQ(rt->gaps, 3);
	CHECK_EQ(rt->lost_frames, 64 + 72 + 36);
	CHECK_EQ(rt->lost_objects, 2);
	CHECK(reader_is_cut(&s.r));
	CHECK(!s.r.truncated);
	source_close(&s);
	maker_release(&m);
}

static void test_announced_gaps(void)
{
	struct maker m = {0};
	struct source s;
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	maker_gap(&m, 1, 0, 10, PACKET_GAP_NOT_STARTED);
	maker_mono_data(&m, maker_mono_packet(1, 10, 10, 0));
	maker_gap(&m, 1, 20, 10, PACKET_GAP_DTX);
	maker_gap(&m, 1, 30, 10, PACKET_GAP_NETWORK);
	maker_mono_data(&m, maker_mono_packet(1, 40, 10, 1));
	maker_gap(&m, 1, 45, 15, PACKET_GAP_XRUN);    /* its first half came already */
	maker_gap(&m, 1, 50, 5, PACKET_GAP_XRUN);     /* all of it */
	maker_gap(&m, 1, 70, 10, PACKET_GAP_PAUSED);  /* a hole before the hole */
	maker_mono_data(&m, maker_mono_packet(1, 80, 10, 2));
	maker_end(&m, 1, 90, PACKET_END_NORMAL);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nGAP 1 @0+10 not started\nDATA 1 @10+10\nGAP 1 @20+10 DTX or mute\n"
		"GAP 1 @30+10 network loss\nDATA 1 @40+10\nGAP 1 @50+10 capture xrun\nGAP 1 @60+10 unknown\n"
		"GAP 1 @70+10 paused\nDATA 1 @80+10\nEND 1\n");
	struct reader_track *rt = reader_track(&s.r, 1);
	CHECK_EQ(rt->frames, 30);
	CHECK_EQ(rt->gaps, 3);
	CHECK_EQ(rt->lost_frames, 30);
	CHECK_EQ(rt->silent_frames, 30);
	source_close(&s);
	maker_release(&m);
}

static void test_frames_that_come_twice(void)
{
	struct maker m = {0};
	struct source s;
	struct packet p;
	enum err e;
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	maker_mono_data(&m, maker_mono_packet(1, 0, 100, 0));
	maker_mono_data(&m, maker_mono_packet(1, 60, 100, 1)); /* 40 of them again */
	maker_mono_data(&m, maker_mono_packet(1, 0, 100, 2));  /* all of them */
	maker_mono_data(&m, maker_mono_packet(1, 60, 100, 3)); /* ends where the last one did */
	maker_mono_data(&m, maker_mono_packet(1, 160, 10, 4));
	maker_end(&m, 1, 170, PACKET_END_NORMAL);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	source_open(&s, m.bytes, m.n_bytes, 1 << 16, NULL);
	int64_t pos = 0;
	unsigned n_data = 0;
	while ((e = next(&s, &p)) == ERR_OK) {
		CHECK(p.type != PACKET_GAP);
		if (p.type != PACKET_DATA)
			continue;
		n_data++;
		CHECK(p.dur > 0);
		CHECK_EQ(p.pos, pos);
		CHECK_EQ(p.payload_bytes, 2 * p.dur);
		CHECK_EQ(p.object_bytes, 2 * p.dur);
		CHECK(samples_are_right(&p, 0));
		pos += p.dur;
	}
	CHECK_EQ(e, ERR_END);
	CHECK_EQ(pos, 170);
	CHECK_EQ(n_data, 3); /* nothing is handed out of what came whole a second time */
	CHECK_EQ(reader_track(&s.r, 1)->frames, 170);
	CHECK_EQ(reader_track(&s.r, 1)->overlap_frames, 240);
	source_close(&s);
	maker_release(&m);
}

static void test_far_back_is_an_error_unless_said(void)
{
	for (int way = 0; way < 3; way++) {
		struct maker m = {0};
		struct source s;
		maker_stream(&m, 1);
		maker_mono(&m, 1, 0, 1000, 0);
		maker_mono_data(&m, maker_mono_packet(1, 0, 2000, 0));
		struct packet p = maker_mono_packet(1, way == 1 ? 1000 : 999, 10, 1);
		p.flags |= way == 2 ? PACKET_DISCONT : 0;
		maker_mono_data(&m, p);
		maker_mono_data(&m, maker_mono_packet(1, way == 2 ? 1009 : 2000, 10, 2));
		maker_end(&m, 0, 0, PACKET_END_NORMAL);
		enum err e = tell_of(&m, &s, NULL);
		if (way == 0) {
			CHECK_EQ(e, ERR_FORMAT);
			CHECK(strstr(s.r.why.reason, "back"));
			struct packet again;
			CHECK_EQ(reader_next(&s.r, &again), ERR_FORMAT);
			CHECK_EQ(reader_fill(&s.r), ERR_FORMAT);
		} else if (way == 1) {
			CHECK_STR(story, "TRACK 1\nDATA 1 @0+2000\nDATA 1 @2000+10\n");
		} else {
			CHECK_STR(story, "TRACK 1\nDATA 1 @0+2000\nDATA 1 @999+10\nDATA 1 @1009+10\n");
		}
		source_close(&s);
		maker_release(&m);
	}
}

/* A track of another kind is another one: the units of a message do not say where its audio goes on. */
static void test_another_kind_begins_anew(void)
{
	struct maker m = {0};
	struct source s;
	struct track t = { .kind = TRACK_DATA, .codec = TRACK_BYTES, .rate_num = 48000, .rate_den = 1 };
	maker_stream(&m, 1);
	maker_track(&m, 1, 0, 0, &t);
	struct packet p = maker_mono_packet(1, 0, 1, 0);
	p.dur = 1u << 30;
	maker_mono_data(&m, p);
	maker_mono(&m, 1, 1, 48000, 0);
	p = maker_mono_packet(1, 0, 10, 1);
	p.gen = 1;
	maker_mono_data(&m, p);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_EQ(reader_track(&s.r, 1)->overlap_frames, 0);
	source_close(&s);
	maker_release(&m);
}

static void test_a_jump_ahead_that_was_said_is_no_hole(void)
{
	struct maker m = {0};
	struct source s;
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	maker_mono_data(&m, maker_mono_packet(1, 0, 10, 0));
	struct packet p = maker_mono_packet(1, 5000, 10, 1);
	p.flags |= PACKET_DISCONT;
	maker_mono_data(&m, p);
	maker_end(&m, 1, 5010, PACKET_END_NORMAL);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nDATA 1 @0+10\nDATA 1 @5000+10\nEND 1\n");
	CHECK_EQ(reader_track(&s.r, 1)->gaps, 0);
	CHECK_EQ(reader_track(&s.r, 1)->frames, 20);
	source_close(&s);
	maker_release(&m);
}

static void test_dropped_upstream_is_told_from_lost(void)
{
	struct maker m = {0};
	struct source s;
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	struct packet p = maker_mono_packet(1, 0, 10, UINT32_MAX - 1);
	p.dropped = UINT32_MAX - 4;
	maker_mono_data(&m, p);
	p = maker_mono_packet(1, 20, 10, UINT32_MAX); /* 10 frames dropped on purpose; the counter wraps */
	p.dropped = 5;
	maker_mono_data(&m, p);
	p = maker_mono_packet(1, 40, 10, 1);          /* one object lost; seq wraps */
	p.dropped = 5;
	maker_mono_data(&m, p);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nDATA 1 @0+10\nGAP 1 @10+10 dropped by policy\nDATA 1 @20+10\n"
		"GAP 1 @30+10 unknown\nDATA 1 @40+10\n");
	struct reader_track *rt = reader_track(&s.r, 1);
	CHECK_EQ(rt->dropped_frames, 10);
	CHECK_EQ(rt->lost_objects, 1);
	source_close(&s);
	maker_release(&m);
}

static void test_extreme_positions_do_no_harm(void)
{
	static const int64_t places[] = {INT64_MAX, INT64_MIN, INT64_MAX - 63, INT64_C(1) << 61, -(INT64_C(1) << 61),
		INT64_C(1) << 60, -(INT64_C(1) << 60), INT64_C(1) << 33};
	for (size_t first = 0; first < ARRAY_LEN(places); first++)
		for (size_t i = 0; i < ARRAY_LEN(places); i++)
			for (int twice = 1; twice <= 2; twice++) {
				struct maker m = {0};
				struct source s;
				for (int k = 1; k <= twice; k++) {
					maker_stream(&m, (uint32_t)k);
					maker_mono(&m, 1, 0, 48000, places[first]);
					maker_mono_data(&m, maker_mono_packet(1, places[i], 64, 0));
					maker_gap(&m, 1, places[i], UINT32_MAX, 1);
					maker_end(&m, 1, places[i], PACKET_END_NORMAL);
					maker_end(&m, 0, 0, PACKET_END_NORMAL);
				}
				enum err e = tell_of(&m, &s, NULL);
				CHECK(e == ERR_END || e == ERR_FORMAT);
				source_close(&s);
				maker_release(&m);
			}
}

/* ---- announcements ---- */

static void test_data_needs_its_announcement(void)
{
	struct maker m = {0};
	struct source s;
	maker_stream(&m, 1);
	maker_mono_data(&m, maker_mono_packet(1, 0, 10, 0));   /* no TRACK yet */
	maker_gap(&m, 1, 0, 10, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	maker_mono_data(&m, maker_mono_packet(1, 0, 10, 0));
	struct packet p = maker_mono_packet(1, 10, 10, 1);
	p.gen = 1;                                             /* not that generation */
	maker_mono_data(&m, p);
	maker_mono_data(&m, maker_mono_packet(2, 0, 10, 0));
	maker_mono_data(&m, maker_mono_packet(0, 0, 10, 0));
	maker_mono_data(&m, maker_mono_packet(65535, 0, 10, 0));
	maker_mono(&m, 1, 1, 48000, 10);
	maker_mono_data(&m, p);
	maker_mono_data(&m, maker_mono_packet(1, 20, 10, 2));  /* the generation before */
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nDATA 1 @0+10\nTRACK 1\nDATA 1 @10+10\n");
	CHECK_EQ(s.r.n_orphans, 7);
	source_close(&s);
	maker_release(&m);
}

static void test_repeats_are_not_handed_out_but_serve_who_comes_late(void)
{
	struct maker m = {0};
	struct source s;
	struct track t = track_pcm(48000, 1, SAMPLE_S16);
	maker_stream(&m, 3);
	maker_track(&m, 1, 0, 0, &t);
	maker_mono_data(&m, maker_mono_packet(1, 0, 10, 0));
	size_t late = m.n_bytes;
	maker_mono_data(&m, maker_mono_packet(1, 10, 10, 1));
	maker_stream_with(&m, 3, PACKET_REPEAT, PACKET_MAX_PAYLOAD_BYTES);
	t.next_pos = 20;
	t.next_seq = 2;
	maker_track(&m, 1, 0, PACKET_REPEAT, &t);
	maker_mono_data(&m, maker_mono_packet(1, 20, 10, 2));
	maker_mono_data(&m, maker_mono_packet(1, 30, 10, 3));
	maker_end(&m, 1, 40, PACKET_END_NORMAL);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nDATA 1 @0+10\nDATA 1 @10+10\nDATA 1 @20+10\nDATA 1 @30+10\nEND 1\n");
	CHECK(!reader_is_cut(&s.r));
	source_close(&s);

	/* From the middle: nothing before the announcement, and no hole from the beginning of time. */
	for (int way = 0; way < 2; way++) {
		/* On a packet's edge, or in the middle of one. */
		size_t from = way ? late - 70 : late;
		source_open(&s, m.bytes + from, m.n_bytes - from, 1 << 16, NULL);
		CHECK_EQ(tell(&s), ERR_END);
		CHECK_STR(story, "TRACK 1\nDATA 1 @20+10\nDATA 1 @30+10\nEND 1\n");
		CHECK_EQ(reader_track(&s.r, 1)->lost_objects, 0);
		CHECK(reader_is_cut(&s.r)); /* it is not the whole of the stream */
		source_close(&s);
	}
	maker_release(&m);
}

static void test_tracks_beyond_the_limits(void)
{
	static const struct { uint16_t channels; uint32_t rate_hz; enum err err; } rows[] = {
		{1024, 48000, ERR_END}, {1025, 48000, ERR_LIMIT}, {65535, 48000, ERR_LIMIT}, {0, 48000, ERR_END},
		{2, 6144000, ERR_END}, {2, 6144001, ERR_END}, {2, UINT32_MAX, ERR_END},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct maker m = {0};
		struct source s;
		struct track t = track_pcm(rows[i].rate_hz, rows[i].channels, SAMPLE_S16);
		maker_stream(&m, 1);
		maker_mono(&m, 1, 0, 48000, 0);
		maker_track(&m, 2, 0, 0, &t);
		maker_mono_data(&m, maker_mono_packet(1, 0, 10, 0));
		maker_end(&m, 0, 0, PACKET_END_NORMAL);
		CHECK_EQ(tell_of(&m, &s, NULL), rows[i].err);
		if (rows[i].err == ERR_LIMIT)
			CHECK(strstr(s.r.why.reason, "1024"));
		else /* An impossible one is damage, and does not take the other track with it. */
			CHECK(strstr(story, "DATA 1 @0+10"));
		source_close(&s);
		maker_release(&m);
	}
}

static void test_largest_announcement_and_object_claims(void)
{
	struct maker m = {0};
	struct source s;
	static uint8_t big[TRACK_MAX_BYTES];
	struct track t = track_pcm(48000, 1, SAMPLE_S16);
	CHECK_OK(track_set_tlv(&t, 0x99, big, TRACK_MAX_BYTES - TRACK_FIXED_BYTES - 8));
	t.largest_object_bytes = UINT32_MAX; /* claims 4 GiB: no memory is taken for that */
	maker_stream(&m, 1);
	maker_track(&m, 1, 0, 0, &t);
	maker_mono_data(&m, maker_mono_packet(1, 0, 10, 0));
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nDATA 1 @0+10\n");
	CHECK(reader_track(&s.r, 1)->object_room_bytes <= 64u << 20);
	source_close(&s);
	maker_release(&m);
	track_release(&t);
}

static void test_many_tracks(void)
{
	struct maker m = {0};
	struct source s;
	maker_stream(&m, 1);
	for (unsigned id = 1; id <= 65534; id += 257)
		maker_mono(&m, (uint16_t)id, 0, 48000, 0);
	maker_mono(&m, 65534, 0, 48000, 0);
	maker_mono_data(&m, maker_mono_packet(65534, 0, 10, 0));
	maker_mono_data(&m, maker_mono_packet(258, 0, 10, 0));
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK(strstr(story, "DATA 65534 @0+10\nDATA 258 @0+10\n"));
	CHECK_EQ(s.r.n_tracks, 256);
	source_close(&s);
	maker_release(&m);
}

/* ---- packets of other shapes ---- */

static void test_unknown_types_and_critical_ones(void)
{
	struct maker m = {0};
	struct source s;
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	maker_packet(&m, (struct packet){.type = 0x41, .track = 1, .payload_bytes = 5}, "hello");
	maker_packet(&m, (struct packet){.type = 0x3F, .track = 9, .payload_bytes = 0}, "");
	maker_packet(&m, (struct packet){.type = PACKET_SKIP, .payload_bytes = 100}, m.bytes);
	maker_mono_data(&m, maker_mono_packet(1, 0, 10, 0));
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\n0x41 1\n0x3F 9\nDATA 1 @0+10\n");
	CHECK(!reader_is_cut(&s.r));
	source_close(&s);

	m.n_bytes -= 128;
	maker_packet(&m, (struct packet){.type = 0x80, .payload_bytes = 0}, "");
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_VERSION);
	CHECK(strstr(s.r.why.reason, "0x80"));
	CHECK(strstr(story, "DATA 1 @0+10"));
	source_close(&s);
	maker_release(&m);
}

static void test_raw_hands_everything_out(void)
{
	struct maker m = {0};
	struct source s;
	struct reader_options o = {.raw = true};
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	maker_packet(&m, (struct packet){.type = PACKET_SKIP, .payload_bytes = 3}, "abc");
	maker_mono_data(&m, maker_mono_packet(1, 0, 10, 0));
	maker_stream_with(&m, 1, PACKET_REPEAT, PACKET_MAX_PAYLOAD_BYTES);
	maker_mono_data(&m, maker_mono_packet(1, 50, 10, 0));
	maker_end(&m, 1, 60, PACKET_END_NORMAL);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, &o), ERR_END);
	CHECK_STR(story, "STREAM 0\nTRACK 1\nSKIP 0\nDATA 1 @0+10\nSTREAM 0\nDATA 1 @50+10\nEND 1\nEND 0\n");
	CHECK_EQ(reader_track(&s.r, 1)->lost_frames, 40);
	source_close(&s);
	maker_release(&m);
}

static void test_headers_with_extensions(void)
{
	struct maker m = {0};
	struct source s;
	struct packet p;
	enum err e;
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	for (unsigned i = 0; i < 16; i++) {
		p = maker_mono_packet(1, 10 * i, 10, i);
		p.hunits = (uint8_t)(1 + i);
		maker_mono_data(&m, p);
	}
	maker_end(&m, 1, 160, PACKET_END_NORMAL);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	for (size_t chunk = 1; chunk < 2000; chunk += 333) {
		unsigned n = 0;
		source_open(&s, m.bytes, m.n_bytes, chunk, NULL);
		while ((e = next(&s, &p)) == ERR_OK)
			if (p.type == PACKET_DATA) {
				CHECK_EQ(p.hunits, 1 + n);
				CHECK_EQ(p.pos, 10 * n);
				CHECK(samples_are_right(&p, 0));
				n++;
			}
		CHECK_EQ(e, ERR_END);
		CHECK_EQ(n, 16);
		CHECK(!reader_is_cut(&s.r));
		source_close(&s);
	}
	maker_release(&m);
}

static void test_payload_limits(void)
{
	for (int big = 0; big < 2; big++) {
		struct maker m = {0};
		struct source s;
		struct reader_options o = {.big_payloads = big};
		maker_stream_with(&m, 1, 0, 1 << 20);
		maker_mono(&m, 1, 0, 48000, 0);
		maker_mono_data(&m, maker_mono_packet(1, 0, 1 << 19, 0));
		maker_end(&m, 0, 0, PACKET_END_NORMAL);
		enum err e = tell_of(&m, &s, &o);
		if (big) {
			CHECK_EQ(e, ERR_END);
			CHECK_STR(story, "TRACK 1\nDATA 1 @0+524288\n");
		} else {
			CHECK_EQ(e, ERR_LIMIT);
			CHECK(strstr(s.r.why.reason, "65536"));
		}
		source_close(&s);
		maker_release(&m);
	}
	/* The largest that every reader takes. */
	struct maker m = {0};
	struct source s;
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	for (unsigned i = 0; i < 40; i++)
		maker_mono_data(&m, maker_mono_packet(1, 32768 * i, 32768, i));
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_EQ(reader_track(&s.r, 1)->frames, 40 * 32768);
	CHECK(!reader_is_cut(&s.r));
	source_close(&s);
	maker_release(&m);
}

static void test_sizes_that_contradict_the_announcement(void)
{
	struct maker m = {0};
	struct source s;
	uint8_t bytes[100] = {0};
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	struct packet p = maker_mono_packet(1, 0, 10, 0);
	p.payload_bytes = p.object_bytes = 19;
	maker_packet(&m, p, bytes);      /* 10 frames in 19 bytes */
	p.payload_bytes = p.object_bytes = 22;
	maker_packet(&m, p, bytes);      /* in 22 */
	p.payload_bytes = 20;
	p.object_offset_bytes = 10;
	p.object_bytes = 20;
	maker_packet(&m, p, bytes);      /* a fragment that reaches beyond its object */
	p.object_offset_bytes = UINT32_MAX;
	maker_packet(&m, p, bytes);
	p = maker_mono_packet(1, 0, UINT32_MAX, 0);
	p.payload_bytes = 20;
	maker_packet(&m, p, bytes);
	maker_mono_data(&m, maker_mono_packet(1, 0, 10, 0));
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nDATA 1 @0+10\n");
	CHECK_EQ(s.r.damaged_bytes, 5 * 128); /* each of the five, and all of it */
	CHECK_EQ(reader_track(&s.r, 1)->overlap_frames, 0);
	CHECK(reader_is_cut(&s.r));
	source_close(&s);
	maker_release(&m);
}

static void test_silence_and_trim(void)
{
	struct maker m = {0};
	struct source s;
	struct packet p;
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	p = maker_mono_packet(1, 0, 100000, 0);
	p.payload_bytes = p.object_bytes = 0;
	p.flags |= PACKET_SILENT;
	maker_packet(&m, p, "");
	p = maker_mono_packet(1, 100000, 20, 1); /* 20 frames, the first 12 of which count */
	p.dur = 12;
	p.flags |= PACKET_TRIM;
	maker_mono_data(&m, p);
	maker_end(&m, 1, 100012, PACKET_END_NORMAL);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nDATA 1 @0+100000\nDATA 1 @100000+12\nEND 1\n");
	source_close(&s);

	struct reader_options o = {.expand_silence = true};
	source_open(&s, m.bytes, m.n_bytes, 1 << 16, &o);
	int64_t pos = 0;
	enum err e;
	while ((e = next(&s, &p)) == ERR_OK) {
		if (p.type != PACKET_DATA)
			continue;
		CHECK_EQ(p.pos, pos);
		CHECK_EQ(p.payload_bytes, 2 * p.dur);
		CHECK(p.payload_bytes <= PACKET_MAX_PAYLOAD_BYTES);
		if (pos < 100000)
			for (uint32_t i = 0; i < p.payload_bytes; i++)
				if (!CHECK_EQ(p.payload[i], 0))
					break;
		pos += p.dur;
	}
	CHECK_EQ(e, ERR_END);
	CHECK_EQ(pos, 100012);
	CHECK_EQ(reader_track(&s.r, 1)->frames, 100012);
	source_close(&s);
	maker_release(&m);
}

/* A silent packet behind a hole: the GAP first, then all of the silence. */
static void test_silence_behind_a_hole(void)
{
	struct maker m = {0};
	struct source s;
	struct reader_options o = {.expand_silence = true};
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	struct packet p = maker_mono_packet(1, 100, 40000, 0);
	p.payload_bytes = p.object_bytes = 0;
	p.flags |= PACKET_SILENT;
	maker_packet(&m, p, "");
	maker_mono_data(&m, maker_mono_packet(1, 40100, 10, 1));
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, &o), ERR_END);
	CHECK_STR(story, "TRACK 1\nGAP 1 @0+100 unknown\nDATA 1 @100+32768\nDATA 1 @32868+7232\nDATA 1 @40100+10\n");
	source_close(&s);
	maker_release(&m);
}

/* ---- fragments ---- */

static void make_fragments(struct maker *m, int leave_out)
{
	struct track t = track_pcm(48000, 2, SAMPLE_F32);
	static uint8_t object[160000];
	t.largest_object_bytes = sizeof(object);
	maker_stream(m, 1);
	maker_track(m, 1, 0, 0, &t);
	int k = 0;
	for (unsigned o = 0; o < 3; o++) {
		for (size_t i = 0; i < sizeof(object); i++)
			object[i] = (uint8_t)(i * 7 + o);
		for (uint32_t at = 0; at < sizeof(object); at += 65536, k++) {
			struct packet p = packet_data(1, 20000 * o, 20000, sizeof(object));
			p.seq = o;
			p.object_offset_bytes = at;
			p.object_bytes = sizeof(object);
			p.payload_bytes = sizeof(object) - at < 65536 ? (uint32_t)(sizeof(object) - at) : 65536;
			if (k != leave_out)
				maker_packet(m, p, object + at);
		}
	}
	maker_end(m, 1, 60000, PACKET_END_NORMAL);
	maker_end(m, 0, 0, PACKET_END_NORMAL);
}

static void test_fragments_become_whole(void)
{
	for (int leave_out = -1; leave_out < 9; leave_out++) {
		struct maker m = {0};
		struct source s;
		struct packet p;
		enum err e;
		unsigned got = 0;
		int64_t gap_frames = 0;
		make_fragments(&m, leave_out);
		source_open(&s, m.bytes, m.n_bytes, 100000, NULL);
		while ((e = next(&s, &p)) == ERR_OK) {
			if (p.type == PACKET_GAP)
				gap_frames += p.dur;
			if (p.type != PACKET_DATA)
				continue;
			unsigned o = (unsigned)(p.pos / 20000);
			bool ok = CHECK_EQ(p.payload_bytes, 160000) & CHECK_EQ(p.dur, 20000) & CHECK_EQ(p.object_offset_bytes, 0);
			for (size_t i = 0; ok && i < 160000; i++)
				ok = CHECK_EQ(p.payload[i], (uint8_t)(i * 7 + o));
			got |= 1u << o;
		}
		CHECK_EQ(e, ERR_END);
		CHECK_EQ(got, leave_out < 0 ? 7 : 7 & ~(1u << leave_out / 3));
		CHECK_EQ(gap_frames, leave_out < 0 ? 0 : 20000);
		CHECK_EQ(reader_is_cut(&s.r), leave_out >= 0);
		source_close(&s);
		maker_release(&m);
	}
}

static void test_fragments_can_be_kept(void)
{
	struct maker m = {0};
	struct source s;
	struct packet p;
	enum err e;
	struct reader_options o = {.keep_fragments = true};
	uint32_t at = 0;
	unsigned n = 0;
	make_fragments(&m, -1);
	source_open(&s, m.bytes, m.n_bytes, 100000, &o);
	while ((e = next(&s, &p)) == ERR_OK) {
		CHECK(p.type != PACKET_GAP);
		if (p.type != PACKET_DATA)
			continue;
		CHECK_EQ(p.object_offset_bytes, at);
		CHECK_EQ(p.object_bytes, 160000);
		CHECK_EQ(p.seq, n / 3);
		at = (at + p.payload_bytes) % 160000;
		n++;
	}
	CHECK_EQ(e, ERR_END);
	CHECK_EQ(n, 9);
	CHECK_EQ(reader_track(&s.r, 1)->frames, 60000);
	CHECK_EQ(reader_track(&s.r, 1)->lost_objects, 0);
	CHECK(!reader_is_cut(&s.r));
	source_close(&s);
	maker_release(&m);
}

/* ---- what is no stream, and damage ---- */

static void test_what_is_no_stream_is_named(void)
{
	static const struct { const char *bytes; size_t n; const char *word; } rows[] = {
		{"", 0, "empty"}, {"W", 1, "not"}, {"RIFF\0\0\0\0WAVEfmt ", 16, "WAV"}, {"OggS\0\2", 6, "Ogg"}, {"fLaC", 4, "FLAC"},
		{"FORM\0\0\0\0AIFF", 12, "AIFF"}, {"hello, world\n", 13, "not"}, {"\0\0\0\0\0\0\0", 7, "not"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct source s;
		source_open(&s, rows[i].bytes, rows[i].n, 1 << 16, NULL);
		CHECK_EQ(tell(&s), ERR_FORMAT);
		CHECK(strstr(s.r.why.reason, rows[i].word));
		CHECK_STR(s.r.why.thing, "test");
		source_close(&s);
	}
	/* Much that is no stream: it is not read for ever. */
	static uint8_t noise[4 << 20];
	struct source s;
	check_seed(21);
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)check_rand();
	source_open(&s, noise, sizeof(noise), 1 << 16, NULL);
	CHECK_EQ(tell(&s), ERR_FORMAT);
	source_close(&s);
}

static void test_another_major_version(void)
{
	struct maker m = {0};
	struct source s;
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	m.bytes[4] = 0x20;
	put_le32(m.bytes + 60, crc_32c(0, m.bytes, 60));
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_VERSION);
	CHECK(strstr(s.r.why.reason, "2"));
	source_close(&s);
	maker_release(&m);
}

static void test_a_wrong_payload_crc_is_a_loss(void)
{
	struct maker m = {0};
	struct source s;
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	maker_mono_data(&m, maker_mono_packet(1, 0, 10, 0));
	maker_mono_data(&m, maker_mono_packet(1, 10, 10, 1));
	m.bytes[m.last + 64 + 3] ^= 0x10;
	maker_mono_data(&m, maker_mono_packet(1, 20, 10, 2));
	maker_end(&m, 1, 30, PACKET_END_NORMAL);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_STR(story, "TRACK 1\nDATA 1 @0+10\nGAP 1 @10+10 damaged bytes\nDATA 1 @20+10\nEND 1\n");
	CHECK_EQ(s.r.damaged_bytes, 128);
	CHECK(reader_is_cut(&s.r));
	CHECK(!s.r.truncated);
	char words[300];
	reader_describe_loss(&s.r, words, sizeof(words));
	CHECK(strstr(words, "128 bytes damaged") && strstr(words, "10 frames lost"));
	reader_describe_loss(&s.r, words, 10);
	CHECK(strlen(words) < 10);
	source_close(&s);
	maker_release(&m);
}

/* Looking for the way back finds the same however the bytes come: a sync word is cut in every place. */
static void test_the_way_back_in_small_pieces(void)
{
	struct maker m = {0};
	struct source s;
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	maker_mono_data(&m, maker_mono_packet(1, 0, 10, 0));
	maker_mono_data(&m, maker_mono_packet(1, 10, 10, 1));
	m.bytes[m.last + 20] ^= 1; /* its header */
	maker_mono_data(&m, maker_mono_packet(1, 20, 10, 2));
	size_t back = m.last;
	maker_end(&m, 1, 30, PACKET_END_NORMAL);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	for (size_t chunk = 1; chunk < back + 70; chunk++) {
		source_open(&s, m.bytes, m.n_bytes, chunk, NULL);
		CHECK_EQ(tell(&s), ERR_END);
		CHECK_STR(story, "TRACK 1\nDATA 1 @0+10\nGAP 1 @10+10 damaged bytes\nDATA 1 @20+10\nEND 1\n");
		CHECK_EQ(s.r.damaged_bytes, 128);
		source_close(&s);
	}
	maker_release(&m);
}

static void test_damaged_padding_loses_nothing(void)
{
	struct maker m = {0}, other = {0};
	struct source s;
	make_simple(&other, 2, 0, 10);
	maker_stream(&m, 1);
	maker_mono(&m, 1, 0, 48000, 0);
	for (unsigned i = 0; i < 4; i++)
		maker_mono_data(&m, maker_mono_packet(1, 10 * i, 10, i));
	maker_end(&m, 1, 40, PACKET_END_NORMAL);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	/* Padding cut short, grown, and overwritten with the sync word: rule (b). */
	size_t data = m.n_bytes - 2 * 128 - 4 * 128;
	for (int way = 0; way < 4; way++) {
		struct maker d = {0};
		size_t pad = data + 64 + 20;
		maker_raw(&d, m.bytes, pad);
		if (way == 1)
			maker_raw(&d, other.bytes + 30, 300);
		if (way == 2)
			maker_raw(&d, "WEI\xD2WEI\xD2", 8);
		size_t skip = way == 0 ? 44 : way == 3 ? 1 : 0;
		maker_raw(&d, m.bytes + pad + skip, m.n_bytes - pad - skip);
		CHECK_EQ(tell_of(&d, &s, NULL), ERR_END);
		CHECK_STR(story, "TRACK 1\nDATA 1 @0+10\nDATA 1 @10+10\nDATA 1 @20+10\nDATA 1 @30+10\nEND 1\n");
		CHECK_EQ(reader_track(&s.r, 1)->gaps, 0);
		source_close(&s);
		maker_release(&d);
	}
	maker_release(&other);
	maker_release(&m);
}

/* A file inside a stream is payload, whatever happens around it. */
static void test_a_stream_inside_a_payload_is_payload(void)
{
	struct maker inner = {0}, m = {0};
	struct source s;
	make_simple(&inner, 0xBAD, 0, 5);
	struct track t = {.kind = TRACK_DATA, .codec = TRACK_BYTES, .rate_num = 1000, .rate_den = 1, .policy = TRACK_LOSSY};
	maker_stream(&m, 1);
	maker_track(&m, 1, 0, 0, &t);
	maker_mono(&m, 2, 0, 48000, 0);
	size_t victim = 0;
	for (unsigned i = 0; i < 6; i++) {
		struct packet p = packet_data(1, i, 1, (uint32_t)inner.n_bytes);
		p.seq = i;
		maker_packet(&m, p, inner.bytes);
		if (i == 2)
			victim = m.last;
		maker_mono_data(&m, maker_mono_packet(2, 10 * i, 10, i));
	}
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	/* The header in front of it is hit, so that a search runs through the payload. */
	m.bytes[victim + 20] ^= 1;
	CHECK_EQ(tell_of(&m, &s, NULL), ERR_END);
	CHECK_EQ(s.r.n_streams, 1);
	CHECK_EQ(s.r.sid, 1);
	CHECK_EQ(reader_track(&s.r, 2)->frames, 60);
	CHECK_EQ(reader_track(&s.r, 1)->packets, 5);
	CHECK_EQ(reader_track(&s.r, 1)->lost_objects, 1);
	source_close(&s);
	maker_release(&m);
	maker_release(&inner);
}

/* ---- random damage ---- */

struct made_packet {
	size_t at, header_payload_bytes; /* what must be whole; padding need not be */
	uint16_t track;
	int64_t pos;
	uint32_t dur;
	bool intact, seen;
};

struct damaged {
	uint8_t *bytes;
	int64_t *origin; /* the place in the original, −1 for bytes that were changed or put in */
	size_t n_bytes, room_bytes;
};

static void damaged_add(struct damaged *d, uint8_t byte, int64_t origin)
{
	if (d->n_bytes == d->room_bytes) {
		d->room_bytes = d->room_bytes ? 2 * d->room_bytes : 1 << 16;
		d->bytes = realloc(d->bytes, d->room_bytes);
		d->origin = realloc(d->origin, d->room_bytes * sizeof(*d->origin));
		if (!d->bytes || !d->origin)
			abort();
	}
	d->bytes[d->n_bytes] = byte;
	d->origin[d->n_bytes++] = origin;
}

/* Flip, delete or insert at about n_places random places behind the first keep_bytes. */
static void do_damage(struct damaged *d, const struct maker *m, size_t keep_bytes, unsigned n_places, const struct maker *other)
{
	uint64_t every = (m->n_bytes - keep_bytes) / n_places;
	size_t next = keep_bytes + check_rand_below(2 * every);
	for (size_t i = 0; i < m->n_bytes; i++) {
		if (i < next) {
			damaged_add(d, m->bytes[i], (int64_t)i);
			continue;
		}
		next = i + 1 + check_rand_below(2 * every);
		size_t n = check_rand_below(4) ? 1 + check_rand_below(200) : 1;
		switch (check_rand_below(4)) {
		case 0: /* one bit */
			damaged_add(d, m->bytes[i] ^ (uint8_t)(1u << check_rand_below(8)), -1);
			break;
		case 1: /* gone */
			i += n - 1;
			break;
		case 2: /* put in */
			for (size_t k = 0; k < n; k++)
				damaged_add(d, (uint8_t)check_rand(), -1);
			damaged_add(d, m->bytes[i], (int64_t)i);
			break;
		case 3: /* a piece of another stream put in, or overwritten by rubbish */
			if (check_rand() & 1) {
				size_t from = check_rand_below(other->n_bytes), k = 0;
				size_t amount = check_rand_below(2000);
				for (; k < amount && from + k < other->n_bytes; k++)
					damaged_add(d, other->bytes[from + k], -1);
				damaged_add(d, m->bytes[i], (int64_t)i);
			} else {
				for (size_t k = 0; k < n && i < m->n_bytes; k++, i++)
					damaged_add(d, (uint8_t)check_rand(), -1);
				i--;
			}
			break;
		}
	}
}

static void mark_intact(struct made_packet *made, size_t n_made, const struct damaged *d, size_t n_original)
{
	/* Where each original byte went. */
	int64_t *place = malloc(n_original * sizeof(*place));
	if (!place)
		abort();
	for (size_t i = 0; i < n_original; i++)
		place[i] = -1;
	for (size_t i = 0; i < d->n_bytes; i++)
		if (d->origin[i] >= 0)
			place[d->origin[i]] = (int64_t)i;
	for (size_t k = 0; k < n_made; k++) {
		struct made_packet *p = &made[k];
		p->seen = false;
		p->intact = place[p->at] >= 0;
		for (size_t i = 1; p->intact && i < p->header_payload_bytes; i++)
			p->intact = place[p->at + i] == place[p->at] + (int64_t)i;
	}
	free(place);
}

static struct { unsigned packets, intact, damages, resyncs; } sums;

static void one_damaged_stream(uint64_t seed, bool pcrc, size_t chunk_bytes)
{
	check_seed(seed);
	/* Two audio tracks and one of bytes, whose objects are often whole streams of their own. */
	struct maker inner = {0}, m = {0};
	struct damaged d = {0};
	enum { N = 1500 };
	static struct made_packet made[N];
	make_simple(&inner, (uint32_t)check_rand() | 1, 0, 12);
	m.no_pcrc = !pcrc;
	maker_stream(&m, (uint32_t)check_rand() | 1);
	maker_mono(&m, 1, 0, 48000, 0);
	maker_mono(&m, 2, 0, 44100, -100);
	struct track t = {.kind = TRACK_DATA, .codec = TRACK_BYTES, .rate_num = 1000, .rate_den = 1, .policy = TRACK_LOSSY};
	maker_track(&m, 3, 0, 0, &t);
	size_t keep_bytes = m.n_bytes;
	int64_t pos[4] = {0, 0, -100, 0};
	uint32_t seq[4] = {0};
	for (size_t k = 0; k < N; k++) {
		uint16_t id = (uint16_t)(1 + check_rand_below(3));
		uint32_t dur = id == 3 ? 1 : (uint32_t)(1 + check_rand_below(check_rand_below(4) ? 400 : 3000));
		struct packet p;
		if (id < 3) {
			p = maker_mono_packet(id, pos[id], dur, seq[id]);
			maker_mono_data(&m, p);
		} else {
			p = packet_data(3, pos[3], 1, (uint32_t)inner.n_bytes);
			size_t from = 0;
			if (check_rand() & 1) {
				from = check_rand_below(inner.n_bytes);
				p.payload_bytes = p.object_bytes = (uint32_t)check_rand_below(inner.n_bytes - from + 1);
			}
			p.seq = seq[3];
			maker_packet(&m, p, inner.bytes + from);
		}
		made[k] = (struct made_packet){.at = m.last, .header_payload_bytes = 64 + p.payload_bytes, .track = id,
			.pos = pos[id], .dur = dur};
		pos[id] += dur;
		seq[id]++;
	}
	maker_end(&m, 1, pos[1], PACKET_END_NORMAL);
	maker_end(&m, 2, pos[2], PACKET_END_NORMAL);
	maker_end(&m, 0, 0, PACKET_END_NORMAL);
	do_damage(&d, &m, keep_bytes, 1000, &inner);
	mark_intact(made, N, &d, m.n_bytes);

	/* Few enough places must be whole that the test means something, and many enough. */
	unsigned n_intact = 0, n_seen = 0, n_wrong = 0, n_missed = 0, n_same = 0;
	for (size_t k = 0; k < N; k++)
		n_intact += made[k].intact;

	struct source s;
	struct packet p;
	enum err e;
	source_open(&s, d.bytes, d.n_bytes, chunk_bytes, NULL);
	s.random_chunks = true;
	int64_t end[4] = {0, 0, -100, 0};
	size_t last[4] = {0};
	while ((e = next(&s, &p)) == ERR_OK) {
		if (p.type == PACKET_GAP) {
			CHECK(p.track == 1 || p.track == 2);
			CHECK_EQ(p.pos, end[p.track & 3]);
			end[p.track & 3] += p.dur;
		}
		if (p.type != PACKET_DATA)
			continue;
		size_t k = last[p.track & 3];
		while (k < N && (made[k].track != p.track || made[k].pos != p.pos))
			k++;
		if (k == N) {
			if (pcrc)
				CHECK_FAIL("track %u at %lld was never made", p.track, (long long)p.pos);
			n_wrong++;
			continue;
		}
		last[p.track & 3] = k + 1;
		made[k].seen = true;
		n_seen++;
		if (p.track < 3) {
			CHECK_EQ(p.pos, end[p.track]);
			end[p.track] += p.dur;
		}
		if (pcrc || made[k].intact) {
			CHECK_EQ(p.dur, made[k].dur);
			if (!CHECK_MEM(p.payload, m.bytes + made[k].at + 64, made[k].header_payload_bytes - 64))
				n_wrong++;
		}
		/* Touched and yet the same: a zero taken out of zeros, a byte overwritten by itself. */
		n_same += !made[k].intact;
	}
	CHECK_EQ(e, ERR_END);
	for (size_t k = 0; k < N; k++)
		if (made[k].intact && !made[k].seen) {
			if (n_missed++ < 3)
				CHECK_FAIL("packet %zu (track %u, pos %lld, byte %zu) is intact and did not come out", k, made[k].track,
					(long long)made[k].pos, made[k].at);
		}
	if (pcrc) {
		CHECK_EQ(n_seen, n_intact + n_same);
		CHECK(n_same <= N / 100);
		CHECK_EQ(n_wrong, 0);
	}
	CHECK_EQ(n_missed, 0);
	CHECK(n_intact > N / 10 && n_intact < N * 9 / 10);
	CHECK(reader_is_cut(&s.r));
	CHECK(s.r.n_resyncs >= 100);
	CHECK_EQ(s.r.n_streams, 1);
	/* Every place of the two audio tracks is either frames or a gap, up to the last thing that came. */
	for (uint16_t id = 1; id <= 2; id++) {
		struct reader_track *rt = reader_track(&s.r, id);
		if (CHECK(rt)) {
			CHECK_EQ(rt->expect_pos, end[id]);
			CHECK_EQ((int64_t)(rt->frames + rt->lost_frames), end[id] - (id == 2 ? -100 : 0));
		}
	}
	CHECK(s.r.damaged_bytes > 0 && s.r.damaged_bytes <= d.n_bytes);
	sums.packets += N;
	sums.intact += n_intact;
	sums.resyncs += (unsigned)s.r.n_resyncs;
	source_close(&s);
	free(d.bytes);
	free(d.origin);
	maker_release(&m);
	maker_release(&inner);
}

static void test_every_untouched_packet_is_recovered(void)
{
	unsigned rounds = getenv("WEIR_ROUNDS") ? (unsigned)atoi(getenv("WEIR_ROUNDS")) : 24;
	uint64_t seed = getenv("WEIR_SEED") ? strtoull(getenv("WEIR_SEED"), NULL, 0) : 100;
	static const size_t chunks[] = {1 << 16, 4096, 100};
	for (unsigned i = 0; i < rounds && !check_state.failures; i++) {
		if (!getenv("WEIR_SEED"))
			one_damaged_stream(seed + i, true, chunks[i % 3]);
		else
			one_damaged_stream(seed, true, chunks[i % 3]);
	}
	printf("# %u packets, %u untouched and recovered, %u resynchronisations\n", sums.packets, sums.intact, sums.resyncs);
}

static void test_the_same_without_payload_crc(void)
{
	/* Damage inside a payload cannot be seen then; what was not touched still comes out. */
	for (uint64_t i = 0; i < 9 && !check_state.failures; i++)
		one_damaged_stream(500 + i, false, 1 << 14);
}

/* ---- the descriptor ---- */

static void test_a_stop_ends_the_input(void)
{
	struct maker m = {0};
	struct source s;
	struct packet p;
	volatile sig_atomic_t stop = 0;
	struct reader_options o = {.stop = &stop};
	make_simple(&m, 5, 0, 100);
	source_open(&s, m.bytes, m.n_bytes, 1000, &o);
	while (next(&s, &p) == ERR_OK && !(p.type == PACKET_DATA && p.pos == 640))
		;
	stop = 1;
	enum err e;
	int n = 0;
	while ((e = next(&s, &p)) == ERR_OK)
		n++;
	CHECK_EQ(e, ERR_END);
	CHECK(n < 20);
	CHECK(s.r.stopped);
	/* Stopping on request is no damage. */
	CHECK_EQ(s.r.damaged_bytes, 0);
	CHECK(!s.r.truncated);
	source_close(&s);
	maker_release(&m);
}

static void test_a_failing_read_is_told(void)
{
	struct reader r;
	struct packet p;
	struct err_why why = {0};
	int fd = open("/", O_RDONLY | O_DIRECTORY);
	CHECK_OK(reader_open(&r, fd, "a folder", NULL, &why));
	CHECK_EQ(reader_next(&r, &p), ERR_AGAIN);
	CHECK_EQ(reader_fill(&r), ERR_SYS);
	CHECK_STR(r.why.thing, "a folder");
	CHECK_EQ(reader_next(&r, &p), ERR_SYS);
	reader_release(&r);
	reader_release(&r);
	close(fd);
}

static void test_input_that_does_not_block(void)
{
	struct maker m = {0};
	struct source s;
	make_simple(&m, 5, 0, 3);
	source_open(&s, m.bytes, m.n_bytes, 100, NULL);
	fcntl(s.fds[0], F_SETFL, O_NONBLOCK);
	CHECK_EQ(tell(&s), ERR_END);
	CHECK_STR(story, "TRACK 1\nDATA 1 @0+64\nDATA 1 @64+64\nDATA 1 @128+64\nEND 1\n");
	source_close(&s);
	maker_release(&m);
}

int main(void)
{
	CHECK_RUN(test_whole_stream);
	CHECK_RUN(test_bytes_one_at_a_time);
	CHECK_RUN(test_payloads_are_aligned_and_live_until_the_fill);
	CHECK_RUN(test_cut_at_every_byte);
	CHECK_RUN(test_concatenated_streams_go_on);
	CHECK_RUN(test_concatenated_tracks_keep_together);
	CHECK_RUN(test_the_longest_hole);
	CHECK_RUN(test_concatenated_at_another_rate);
	CHECK_RUN(test_concatenated_onto_a_cut_one);
	CHECK_RUN(test_end_reasons_are_passed_on);
	CHECK_RUN(test_a_hole_gets_its_gap);
	CHECK_RUN(test_announced_gaps);
	CHECK_RUN(test_frames_that_come_twice);
	CHECK_RUN(test_far_back_is_an_error_unless_said);
	CHECK_RUN(test_another_kind_begins_anew);
	CHECK_RUN(test_a_jump_ahead_that_was_said_is_no_hole);
	CHECK_RUN(test_dropped_upstream_is_told_from_lost);
	CHECK_RUN(test_extreme_positions_do_no_harm);
	CHECK_RUN(test_data_needs_its_announcement);
	CHECK_RUN(test_repeats_are_not_handed_out_but_serve_who_comes_late);
	CHECK_RUN(test_tracks_beyond_the_limits);
	CHECK_RUN(test_largest_announcement_and_object_claims);
	CHECK_RUN(test_many_tracks);
	CHECK_RUN(test_unknown_types_and_critical_ones);
	CHECK_RUN(test_raw_hands_everything_out);
	CHECK_RUN(test_headers_with_extensions);
	CHECK_RUN(test_payload_limits);
	CHECK_RUN(test_sizes_that_contradict_the_announcement);
	CHECK_RUN(test_silence_and_trim);
	CHECK_RUN(test_silence_behind_a_hole);
	CHECK_RUN(test_fragments_become_whole);
	CHECK_RUN(test_fragments_can_be_kept);
	CHECK_RUN(test_what_is_no_stream_is_named);
	CHECK_RUN(test_another_major_version);
	CHECK_RUN(test_a_wrong_payload_crc_is_a_loss);
	CHECK_RUN(test_the_way_back_in_small_pieces);
	CHECK_RUN(test_damaged_padding_loses_nothing);
	CHECK_RUN(test_a_stream_inside_a_payload_is_payload);
	CHECK_RUN(test_every_untouched_packet_is_recovered);
	CHECK_RUN(test_the_same_without_payload_crc);
	CHECK_RUN(test_a_stop_ends_the_input);
	CHECK_RUN(test_a_failing_read_is_told);
	CHECK_RUN(test_input_that_does_not_block);
	return check_end();
}
