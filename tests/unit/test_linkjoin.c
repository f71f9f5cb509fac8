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
	(void)sender;
	(void)pos_ns;
	*ns = shift_ns;
	return true;
}

static void begin(int64_t by_ns)
{
	struct linkjoin_events e = { .new_id = new_id, .shift = shift };
	struct dgram_addr from = { .any.sa_family = AF_INET, .n_bytes = sizeof(struct sockaddr_in) };
	char path[] = "/tmp/weir-linkjoin-XXXXXX";
	struct err_why why = { 0 };

	shift_ns = by_ns;
	next_id = 1;
	fd = mkstemp(path);
	CHECK(fd >= 0);
	unlink(path);
	CHECK_OK(linkjoin_init(&join, 2, &e, &why));
	CHECK_OK(writer_open(&out, fd, "test", "test", &why));
	CHECK_OK(writer_begin(&out));
	events = linkjoin_link_events(&join);
	CHECK_OK(events.join(events.user, 0, &from));
}

static void bring(struct packet p, const void *payload)
{
	static _Alignas(64) uint8_t wire[4096];

	p.version = PACKET_VERSION;
	p.hunits = 1;
	p.utc_ns = UNITS_UNKNOWN_NS;
	memset(wire, 0, sizeof(wire));
	memcpy(wire + PACKET_HEADER_BYTES, payload, p.payload_bytes);
	packet_pack(&p, wire);
	p.head = wire;
	p.payload = wire + PACKET_HEADER_BYTES;
	CHECK_OK(events.packet(events.user, 0, &p));
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
	bool taken;
	enum err e;

	CHECK_OK(linkjoin_work(&join, &out, &taken));
	CHECK_OK(linkjoin_end(&join, &out, PACKET_END_NORMAL));
	CHECK_OK(writer_end(&out, PACKET_END_NORMAL));
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK_OK(reader_open(&r, fd, "test", &(struct reader_options){ .keep_fragments = true }, &why));
	while ((e = reader_next(&r, &p)) == ERR_OK || (e == ERR_AGAIN && !(e = reader_fill(&r))))
		n += p.type == PACKET_DATA;
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

int main(void)
{
	CHECK_RUN(test_positions);
	CHECK_RUN(test_shifted);
	CHECK_RUN(test_tracks);
	CHECK_RUN(test_fragments);
	return check_end();
}
