/* leg/linkjoin: whatever a sender brings, what is written is a stream that a reader takes whole. */
#include "check.h"

#include "leg/linkjoin.h"
#include "wire/reader.h"

#include <stdlib.h>
#include <unistd.h>

static struct linkjoin join;
static struct linkrecv_events events;
static struct writer out;
static int64_t shift_ns;
static uint16_t next_id;
static unsigned unknown;         /* this sender's place in time is not known yet */
static unsigned n_asked;
static int fd;

static uint16_t new_id(void *user, uint16_t theirs)
{
	(void)user;
	(void)theirs;
	return next_id++;
}

static bool shift(void *user, unsigned sender, int64_t pos_ns, int64_t *ns)
{
	(void)user;
	(void)pos_ns;
	n_asked++;
	*ns = shift_ns;
	return sender != unknown;
}

static void begin(int64_t by_ns)
{
	struct linkjoin_events e = { .new_id = new_id, .shift = shift };
	struct dgram_addr from = { .any.sa_family = AF_INET, .n_bytes = sizeof(struct sockaddr_in) };
	char path[] = "/tmp/weir-linkjoin-XXXXXX";
	struct err_why why = { 0 };

	shift_ns = by_ns;
	next_id = 1;
	unknown = UINT32_MAX;
	n_asked = 0;
	fd = mkstemp(path);
	CHECK(fd >= 0);
	unlink(path);
	CHECK_OK(linkjoin_init(&join, 2, &e, &why));
	CHECK_OK(writer_open(&out, fd, "test", "test", &why));
	CHECK_OK(writer_begin(&out));
	events = linkjoin_link_events(&join);
	CHECK_OK(events.join(events.user, 0, &from));
}

static enum err bring_of(unsigned sender, struct packet p, const void *payload)
{
	static _Alignas(64) uint8_t wire[PACKET_HEADER_BYTES + 65536];

	p.version = PACKET_VERSION;
	p.hunits = 1;
	p.utc_ns = UNITS_UNKNOWN_NS;
	memset(wire, 0, PACKET_HEADER_BYTES + (size_t)units_round_up(p.payload_bytes, PACKET_UNIT_BYTES));
	memcpy(wire + PACKET_HEADER_BYTES, payload, p.payload_bytes);
	packet_pack(&p, wire);
	p.head = wire;
	p.payload = wire + PACKET_HEADER_BYTES;
	return events.packet(events.user, sender, &p);
}

static bool work(void)
{
	bool taken;

	CHECK_OK(linkjoin_work(&join, &out, &taken));
	return taken;
}

/* As the link does it: one that there is no room for, or no answer yet, is brought again when something was taken. */
static void bring(struct packet p, const void *payload)
{
	enum err e = bring_of(0, p, payload);

	if (e == ERR_AGAIN && work())
		e = bring_of(0, p, payload);
	CHECK_OK(e);
}

static void bring_track(uint16_t id, int64_t first_pos, int64_t next_pos)
{
	struct track t = { .id = id, .kind = TRACK_DATA, .codec = TRACK_BYTES, .rate_num = 1000, .rate_den = 1, .first_pos = first_pos, .next_pos = next_pos };
	uint8_t bytes[TRACK_FIXED_BYTES];

	track_pack(&t, bytes);
	bring((struct packet){ .type = PACKET_TRACK, .track = id, .payload_bytes = sizeof(bytes), .object_bytes = sizeof(bytes) }, bytes);
}

static void bring_data(uint16_t id, int64_t pos, uint32_t dur, uint32_t offset_bytes, uint32_t object_bytes)
{
	bring((struct packet){ .type = PACKET_DATA, .track = id, .pos = pos, .dur = dur, .payload_bytes = 100, .object_offset_bytes = offset_bytes, .object_bytes = object_bytes },
		(uint8_t[100]){ 1 });
}

/* Data packets that the stream has, read again; it is whole. */
static unsigned end(void)
{
	struct reader r;
	struct packet p;
	struct err_why why = { 0 };
	unsigned n = 0;
	enum err e;

	work();
	CHECK_OK(linkjoin_end(&join, &out, PACKET_END_NORMAL));
	CHECK_OK(writer_end(&out, PACKET_END_NORMAL));
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK_OK(reader_open(&r, fd, "test", &(struct reader_options){ .keep_fragments = true }, &why));
	while ((e = reader_next(&r, &p)) == ERR_OK || e == ERR_AGAIN) {
		if (e == ERR_AGAIN)
			CHECK_OK(reader_fill(&r));
		else
			n += p.type == PACKET_DATA;
	}
	CHECK_EQ(e, ERR_END);
	CHECK_EQ(r.damaged_bytes, 0);
	CHECK_EQ(r.n_orphans, 0);
	CHECK(!reader_is_cut(&r));
	reader_release(&r);
	linkjoin_release(&join);
	writer_release(&out);
	close(fd);
	return n;
}

/* Positions that no reader takes. */
static void test_positions(void)
{
	static const int64_t bad[] = { INT64_MIN, INT64_MAX, INT64_C(1) << 61, -(INT64_C(1) << 61), INT64_MAX - 5 };

	begin(0);
	bring_track(1, 0, 0);
	bring_data(1, 0, 1, 0, 100);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		bring_data(1, bad[i], UINT32_MAX, 0, 100);
	bring_data(1, 1, 1, 0, 100);
	CHECK_EQ(end(), 2);
}

/* Nor where the way to our clock leads there. */
static void test_shifted(void)
{
	begin(INT64_MAX);
	bring_track(1, 0, 0);
	for (int64_t pos = 1; pos < INT64_C(1) << 61; pos *= 4)
		bring_data(1, pos, 1, 0, 100);
	bring_data(1, (INT64_C(1) << 61) - 1, 1, 0, 100);
	CHECK(end() > 20);
}

static void test_tracks(void)
{
	begin(0);
	bring_track(1, INT64_MAX, 0);
	bring_track(2, 0, INT64_MIN);
	bring_track(3, 7, 7);
	for (uint16_t id = 1; id <= 3; id++)
		bring_data(id, 7, 1, 0, 100);
	CHECK_EQ(end(), 1);
}

/* A fragment that reaches out of its object. */
static void test_fragments(void)
{
	begin(0);
	bring_track(1, 0, 0);
	bring_data(1, 0, 1, 0, 99);
	bring_data(1, 0, 1, UINT32_MAX, 100);
	bring_data(1, 0, 1, 0, 200);
	bring_data(1, 0, 1, 100, 200);
	bring_data(1, 0, 1, 101, 200);
	CHECK_EQ(end(), 2);
}

static const struct packet message = { .type = PACKET_DATA, .track = 1, .dur = 1, .payload_bytes = 60000, .object_bytes = 60000 };
static const uint8_t text[60000];

static enum err announce_of(unsigned sender)
{
	struct track t = { .id = 1, .kind = TRACK_DATA, .codec = TRACK_BYTES, .rate_num = 1000, .rate_den = 1 };
	uint8_t bytes[TRACK_FIXED_BYTES];

	track_pack(&t, bytes);
	return bring_of(sender, (struct packet){ .type = PACKET_TRACK, .track = 1, .payload_bytes = sizeof(bytes), .object_bytes = sizeof(bytes) }, bytes);
}

static enum err join_of(unsigned sender)
{
	struct dgram_addr from = { .any.sa_family = AF_INET, .n_bytes = sizeof(struct sockaddr_in) };

	return events.join(events.user, sender, &from);
}

/* One whose sound is not heard yet holds up nobody, whatever the others bring meanwhile. */
static void test_waits_alone(void)
{
	unsigned n = 0;

	begin(0);
	unknown = 0;
	CHECK_OK(join_of(1));
	CHECK_OK(announce_of(0));
	CHECK_OK(announce_of(1));
	for (unsigned i = 0; i < 200; i++) {
		(void)!bring_of(0, message, text);
		n += !bring_of(1, message, text);
		work();
		CHECK_EQ(join.counts.packets, n);
	}
	CHECK(n >= 199);
	CHECK(n_asked >= 100);
	/* Its own comes when that is known: none is lost that was taken. */
	unknown = UINT32_MAX;
	CHECK_EQ(bring_of(0, message, text), ERR_AGAIN);
	CHECK(work());
	CHECK_OK(bring_of(0, message, text));
	CHECK_EQ(end(), n + 1);
}

/* An answer is for him who asked, not for the next in his place. */
static void test_place_changes_hands(void)
{
	begin(0);
	unknown = 0;
	CHECK_OK(announce_of(0));
	CHECK_EQ(bring_of(0, message, text), ERR_AGAIN);
	CHECK_OK(events.leave(events.user, 0, false));
	CHECK_OK(join_of(0));
	CHECK_OK(announce_of(0));
	work();
	CHECK_EQ(bring_of(0, message, text), ERR_AGAIN);
	work();
	unknown = UINT32_MAX;
	CHECK_EQ(bring_of(0, message, text), ERR_AGAIN);
	CHECK(work());
	CHECK_OK(bring_of(0, message, text));
	/* Nor is that of one who was answered. */
	CHECK_OK(events.leave(events.user, 0, true));
	CHECK_OK(join_of(0));
	CHECK_OK(announce_of(0));
	unknown = 0;
	CHECK_EQ(bring_of(0, message, text), ERR_AGAIN);
	work();
	CHECK_EQ(bring_of(0, message, text), ERR_AGAIN);
	CHECK_EQ(end(), 1);
}

/* What belongs to no track has no place to wait for. */
static void test_no_track(void)
{
	begin(0);
	unknown = 0;
	bring((struct packet){ .type = PACKET_DATA, .track = 9, .payload_bytes = 8, .object_bytes = 8 }, text);
	bring((struct packet){ .type = PACKET_DATA, .track = 9, .payload_bytes = 8, .object_bytes = 8 }, text);
	CHECK_EQ(n_asked, 0);
	CHECK_EQ(end(), 0);
}

int main(void)
{
	CHECK_RUN(test_waits_alone);
	CHECK_RUN(test_place_changes_hands);
	CHECK_RUN(test_no_track);
	CHECK_RUN(test_positions);
	CHECK_RUN(test_shifted);
	CHECK_RUN(test_tracks);
	CHECK_RUN(test_fragments);
	return check_end();
}
