/* leg/linkout: one receiver that takes nothing is no reason for the others to go without, nor to wait. */
#include "check.h"

#include "base/bytes.h"
#include "leg/linkout.h"
#include "leg/linkrecv.h"
#include "rt/clock.h"

#include <unistd.h>

#define OBJECT_BYTES 50000u
#define N_OBJECTS 300u /* three times what is kept for a receiver */

struct sink {
	atomic_bool is_full;
	atomic_uint_fast64_t n, tracks, wrong;
	uint64_t next;
};

static enum err on_packet(void *user, unsigned sender, const struct packet *p)
{
	struct sink *s = user;

	(void)sender;
	if (atomic_load(&s->is_full))
		return ERR_AGAIN;
	if (p->type == PACKET_TRACK)
		atomic_fetch_add(&s->tracks, 1);
	if (p->type != PACKET_DATA)
		return ERR_OK;
	if (p->payload_bytes != OBJECT_BYTES || get_le64(p->payload) < s->next)
		atomic_fetch_add(&s->wrong, 1);
	s->next = get_le64(p->payload) + 1;
	atomic_fetch_add(&s->n, 1);
	return ERR_OK;
}

static struct sink sinks[2];
static struct linkrecv receivers[2];
static struct linkout out;
static struct tool tool = { .name = "test" };

static bool begin(void)
{
	struct url urls[2] = { { .scheme = URL_WEIR, .host = "127.0.0.1" }, { .scheme = URL_WEIR, .host = "127.0.0.1" } };
	struct packet_stream s = { .uuid = { 1, 2, 3 }, .t0_utc_ns = UNITS_UNKNOWN_NS };
	struct err_why why = { 0 };

	memset(&out, 0, sizeof(out));
	for (int i = 0; i < 2; i++) {
		struct linkrecv_options o = { .host = "127.0.0.1", .max_senders = 1, .events = { .user = &sinks[i], .packet = on_packet } };

		sinks[i] = (struct sink){ .is_full = i == 0 };
		if (!CHECK_OK(linkrecv_open(&receivers[i], &o, &why)))
			return false;
		urls[i].port = receivers[i].port;
	}
	if (!CHECK_OK(linkout_open(&out, &tool, urls, 2, NULL, &why)))
		return false;
	out.is_live = true;
	return CHECK_OK(linkout_stream(&out, &s, &why));
}

static void end(void)
{
	linkout_release(&out);
	for (int i = 0; i < 2; i++)
		linkrecv_release(&receivers[i]);
}

static struct track data_track(uint16_t id, enum track_policy policy)
{
	return (struct track){ .id = id, .kind = TRACK_DATA, .codec = TRACK_BYTES, .policy = policy, .rate_num = 1000, .rate_den = 1 };
}

/* Until the second receiver has got n. */
static bool wait_for_second(uint64_t n)
{
	for (int64_t until_ns = clock_now_ns() + 10 * UNITS_NS_PER_S; atomic_load(&sinks[1].n) < n; usleep(500)) {
		linkout_work(&out);
		if (clock_now_ns() > until_ns)
			return false;
	}
	return true;
}

static enum err send_one(const struct track *t, uint64_t i)
{
	static uint8_t bytes[OBJECT_BYTES];
	struct packet p = packet_data(t->id, (int64_t)i, 1, OBJECT_BYTES);

	p.seq = (uint32_t)i;
	p.object_bytes = p.payload_bytes;
	p.payload = bytes;
	put_le64(bytes, i);
	return linkout_take(&out, &p, t);
}

/* What may be dropped is dropped for the one that does not take it. */
static void test_lossy(void)
{
	struct track t = data_track(7, TRACK_LOSSY);
	struct err_why why = { 0 };
	unsigned n = 0;

	if (!begin() || !CHECK_OK(linkout_track(&out, &t, NULL, 0, NULL, &why)))
		return;
	for (uint64_t i = 0; i < N_OBJECTS; i++) {
		CHECK_OK(send_one(&t, i));
		/* There is always room for the second. */
		n += wait_for_second(i + 1);
		if (n <= i)
			break;
	}
	CHECK_EQ(n, N_OBJECTS);
	CHECK_EQ(atomic_load(&sinks[1].n), N_OBJECTS);
	CHECK_EQ(atomic_load(&sinks[1].wrong), 0);
	CHECK_EQ(atomic_load(&sinks[0].n), 0);
	uint64_t dropped = atomic_load(&out.dropped_objects);
	CHECK(dropped > N_OBJECTS / 2 && dropped < N_OBJECTS);
	/* When it takes again, it gets what it has kept, and then the new ones. */
	atomic_store(&sinks[0].is_full, false);
	for (int64_t until_ns = clock_now_ns() + 10 * UNITS_NS_PER_S; atomic_load(&sinks[0].n) < N_OBJECTS - dropped && clock_now_ns() < until_ns; usleep(500))
		linkout_work(&out);
	CHECK_EQ(atomic_load(&sinks[0].n), N_OBJECTS - dropped);
	CHECK_OK(send_one(&t, N_OBJECTS));
	CHECK(wait_for_second(N_OBJECTS + 1));
	for (int64_t until_ns = clock_now_ns() + 10 * UNITS_NS_PER_S; atomic_load(&sinks[0].n) < N_OBJECTS + 1 - dropped && clock_now_ns() < until_ns; usleep(500))
		linkout_work(&out);
	CHECK_EQ(atomic_load(&sinks[0].n), N_OBJECTS + 1 - dropped);
	CHECK_EQ(atomic_load(&sinks[0].wrong), 0);
	end();
}

/* What may not be dropped is waited for once, not for ever, and no announcement holds up a live stream. */
static void test_reliable(void)
{
	struct track t = data_track(7, TRACK_RELIABLE), later = data_track(8, TRACK_RELIABLE);
	static const volatile sig_atomic_t stop;
	struct err_why why = { 0 };
	int64_t longest_ns = 0;
	unsigned n = 0;

	if (!begin() || !CHECK_OK(linkout_track(&out, &t, NULL, 0, NULL, &why)))
		return;
	for (uint64_t i = 0; i < N_OBJECTS; i++) {
		int64_t begin_ns = clock_now_ns();

		while (send_one(&t, i) == ERR_AGAIN && clock_now_ns() - begin_ns < UNITS_NS_PER_S)
			usleep(500);
		longest_ns = clock_now_ns() - begin_ns > longest_ns ? clock_now_ns() - begin_ns : longest_ns;
		n += wait_for_second(i + 1);
		if (n <= i)
			break;
	}
	CHECK_EQ(n, N_OBJECTS);
	CHECK(longest_ns < UNITS_NS_PER_S / 2);
	CHECK(out.to[0].lost > 0);
	CHECK_EQ(out.to[1].lost, 0);
	alarm(20); /* an announcement that waits for ever would be the end of this test */
	CHECK_OK(linkout_track(&out, &later, NULL, 0, &stop, &why));
	for (int i = 0; i < 1000; i++)
		CHECK_OK(linkout_track(&out, &later, NULL, 0, &stop, &why));
	alarm(0);
	/* It gets the announcement when it takes again. */
	atomic_store(&sinks[0].is_full, false);
	for (int64_t until_ns = clock_now_ns() + 10 * UNITS_NS_PER_S; replay_held(&out.to[0].send.replay) && clock_now_ns() < until_ns; usleep(500))
		linkout_work(&out);
	CHECK_OK(send_one(&later, N_OBJECTS));
	for (int64_t until_ns = clock_now_ns() + 10 * UNITS_NS_PER_S; sinks[0].next != N_OBJECTS + 1 && clock_now_ns() < until_ns; usleep(500))
		linkout_work(&out);
	CHECK_EQ(sinks[0].next, N_OBJECTS + 1);
	CHECK(atomic_load(&sinks[0].tracks) >= 2);
	end();
}

int main(void)
{
	CHECK_RUN(test_lossy);
	CHECK_RUN(test_reliable);
	return check_end();
}
