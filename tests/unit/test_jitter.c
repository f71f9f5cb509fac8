#include "net/jitter.h"

#include "check.h"
#include "net/rtp.h"

#define MS 1000000LL
#define DUR 240 /* 5 ms */

static struct jitter j;
static uint8_t memory[1 << 20] __attribute__((aligned(8)));

static void start(int64_t latency_ns, bool pass, uint32_t n_slots)
{
	struct jitter_options o = { .rate_hz = 48000, .block_frames = 48, .glitches = 6, .latency_ns = latency_ns, .n_slots = n_slots, .slot_bytes = 16, .pass = pass };
	struct err_why why;

	CHECK(jitter_bytes(&o) <= sizeof(memory));
	CHECK_EQ(jitter_init(&j, &o, memory, &why), ERR_OK);
}

static enum jitter_put put(int64_t pos, int64_t arrival_ns)
{
	struct jitter_packet p = { .pos = pos, .dur_frames = DUR, .n_bytes = 8, .bytes = (uint8_t *)&pos, .arrival_ns = arrival_ns };
	return jitter_put(&j, &p);
}

static enum jitter_put put_flags(int64_t pos, int64_t arrival_ns, uint16_t flags)
{
	struct jitter_packet p = { .pos = pos, .dur_frames = DUR, .n_bytes = 8, .bytes = (uint8_t *)&pos, .arrival_ns = arrival_ns, .flags = flags };
	return jitter_put(&j, &p);
}

static struct jitter_part take(void)
{
	struct jitter_part p;
	jitter_take(&j, 1u << 30, &p);
	return p;
}

/* Play what is due by device blocks of 1 ms, up to t.  Counts what came. */
static struct {
	int64_t t_ns, n_packets, n_frames, n_missing, n_hold, n_wait, last_pos;
	uint32_t fifo;
	bool in_order;
} played;

static void play_from(int64_t t_ns)
{
	memset(&played, 0, sizeof(played));
	played.t_ns = t_ns;
	played.in_order = true;
	played.last_pos = INT64_MIN;
}

static void play_to(int64_t t_ns)
{
	for (; played.t_ns < t_ns; played.t_ns += MS) {
		jitter_played(&j, played.t_ns, played.fifo);
		while (played.fifo < 48) {
			struct jitter_part p;
			jitter_take(&j, 48 - played.fifo, &p);
			if (p.what == JITTER_WAIT) {
				played.n_wait++;
				played.fifo = 48;
				break;
			}
			if (p.what == JITTER_PACKET) {
				int64_t pos;
				memcpy(&pos, p.bytes, sizeof(pos));
				played.in_order = played.in_order && pos == p.pos && pos > played.last_pos;
				played.last_pos = pos;
				played.n_packets++;
				played.n_frames += p.frames;
			}
			played.n_missing += p.what == JITTER_MISSING ? p.frames : 0;
			played.n_hold += p.what == JITTER_HOLD ? p.frames : 0;
			played.fifo += p.frames;
		}
		played.fifo -= 48;
	}
}

/* 200 packets, 5 ms apart, by order of `which`; then 100 more. */
static void test_reorder_and_duplicates(void)
{
	start(20 * MS, false, 64);
	play_from(0);
	for (int64_t n = 0; n < 200; n++) {
		int64_t k = n % 4 == 1 ? n + 1 : n % 4 == 2 ? n - 1 : n; /* 0 2 1 3 4 6 5 7 … */
		play_to(n * 5 * MS);
		CHECK_EQ(put(k * DUR, n * 5 * MS), n ? JITTER_STORED : JITTER_BEGUN);
		if (n % 10 == 9)
			CHECK_EQ(put(k * DUR, n * 5 * MS + 1), JITTER_DUPLICATE);
	}
	jitter_end(&j);
	play_to(1200 * MS);
	CHECK_EQ(played.n_packets, 200);
	CHECK(played.in_order);
	CHECK_EQ(j.counts.reordered, 50);
	CHECK_EQ(j.counts.duplicate, 20);
	CHECK_EQ(j.counts.late, 0);
	CHECK_EQ(j.counts.glitches, 0);
	CHECK_EQ(played.n_missing, 0);
	CHECK_EQ(played.n_hold, 960); /* 20 ms before the first */
}

static void test_late_and_lost(void)
{
	start(20 * MS, false, 64);
	play_from(0);
	for (int64_t n = 0; n < 300; n++) {
		play_to(n * 5 * MS);
		if (n == 100 || n == 200)
			continue; /* 100 comes late, 200 never */
		put(n * DUR, n * 5 * MS);
		if (n == 107) {
			CHECK_EQ(put(100 * DUR, n * 5 * MS), JITTER_LATE);
			CHECK_EQ(put(99 * DUR, n * 5 * MS), JITTER_DUPLICATE); /* was played: only a second copy */
		}
	}
	CHECK_EQ(j.counts.late, 1);
	CHECK_EQ(j.counts.glitches, 1);
	CHECK_EQ(j.counts.duplicate, 1);
	CHECK_EQ(j.counts.lost_frames, 2 * DUR);
	CHECK(played.in_order);
}

/* A copy fills a hole, and its delay is no delay of the network. */
static void test_copies(void)
{
	start(40 * MS, false, 64);
	play_from(0);
	for (int64_t n = 0; n < 400; n++) {
		play_to(n * 5 * MS);
		if (n % 10 != 5)
			put(n * DUR, n * 5 * MS);
		if (n >= 4)
			put_flags((n - 4) * DUR, n * 5 * MS, JITTER_COPY); /* 20 ms later */
	}
	play_to(400 * 5 * MS);
	CHECK_EQ(j.counts.lost_frames, 0);
	CHECK_EQ(j.counts.duplicate, 0); /* not counted for copies */
	CHECK_EQ(j.counts.received, 360);
	CHECK_EQ(j.counts.late, 0);
	CHECK_NEAR(jitter_depth_s(&j), 0.040, 0.0001);
	CHECK(played.in_order);
}

/* (g) Sequence numbers and timestamps as they come in RTP, across both wraps; and positions across 2^32. */
static void test_wraps(void)
{
	struct rtp_unwrap seq = { 0 }, ts = { 0 };
	int64_t n_packets = 0;

	start(20 * MS, false, 64);
	play_from(0);
	for (int64_t n = 0; n < 1000; n++) {
		int64_t k = n ^ 1; /* every pair swapped */
		uint16_t s = (uint16_t)(65530 + k);
		uint32_t t = (uint32_t)(0xFFFFFFFF - 10 * DUR - 7 + k * DUR);
		rtp_unwrap_seq(&seq, s);
		int64_t pos = rtp_unwrap_ts(&ts, t);
		play_to(n * 5 * MS);
		enum jitter_put got = put(pos, n * 5 * MS);
		n_packets += got == JITTER_STORED || got == JITTER_BEGUN;
	}
	jitter_end(&j);
	play_to(6000 * MS);
	printf("# (g) %lld packets over a wrap of seq and ts, %lld played, %lld frames missing, in order: %d\n", (long long)n_packets,
		(long long)played.n_packets, (long long)played.n_missing, played.in_order);
	CHECK_EQ(n_packets, 1000);
	CHECK_EQ(played.n_packets, 1000);
	CHECK_EQ(played.n_missing, 0);
	CHECK(played.in_order);
	CHECK(played.last_pos > (int64_t)1 << 32);
	CHECK_EQ(seq.highest, 65536 + 65530 + 999);
}

/* One packet from nowhere is not believed; a sender that goes on elsewhere is. */
static void test_stray_and_jump(void)
{
	int64_t n = 0, t = 0;

	start(20 * MS, false, 64);
	play_from(0);
	for (; n < 200; n++, t += 5 * MS) {
		play_to(t);
		put(n * DUR, t);
		if (n == 100)
			CHECK_EQ(put(1LL << 40, t), JITTER_STRAY);
		if (n == 150)
			CHECK_EQ(put(-(1LL << 40), t), JITTER_STRAY);
	}
	CHECK_EQ(j.counts.stray, 2);
	CHECK_EQ(j.counts.restarts, 0);
	CHECK_EQ(put(50000000, t), JITTER_STRAY);
	CHECK_EQ(put(50000000 + DUR, t + 5 * MS), JITTER_BEGUN);
	play_to(t + 6 * MS);
	int64_t before = played.n_packets;
	for (n = 2; n < 50; n++) {
		play_to(t + n * 5 * MS);
		CHECK_EQ(put(50000000 + n * DUR, t + n * 5 * MS), JITTER_STORED);
	}
	play_to(t + 400 * MS);
	CHECK_EQ(j.counts.restarts, 1);
	CHECK_EQ(played.n_packets - before, 49);
	CHECK_EQ(played.last_pos, 50000000 + 49 * DUR);
}

/* Back to small timestamps: heard again within the depth, and nothing of the hours between is made up. */
static void test_jump_back(void)
{
	int64_t t = 0;

	start(20 * MS, false, 64);
	play_from(0);
	for (int64_t n = 0; n < 100; n++, t += 5 * MS) {
		play_to(t);
		put(4000000000 + n * DUR, t);
	}
	for (int64_t n = 0; n < 100; n++, t += 5 * MS) {
		play_to(t);
		put(1000 + n * DUR, t);
	}
	play_to(t);
	CHECK(played.n_packets >= 190);
	CHECK(played.n_missing + played.n_hold < 48000 / 5);
	CHECK_EQ(j.counts.restarts, 1);
}

/* A pause: WAIT after 2 s; going on where time went on, or anew where the sender stood still. */
static void test_pause(void)
{
	for (int stood = 0; stood < 2; stood++) {
		int64_t t = 0;
		start(20 * MS, false, 64);
		play_from(0);
		for (int64_t n = 0; n < 200; n++, t += 5 * MS) {
			play_to(t);
			put(n * DUR, t);
		}
		t += 5000 * MS;
		play_to(t);
		CHECK(played.n_wait > 2900);
		int64_t missing = played.n_missing, pos = 200 * DUR + (stood ? 0 : 5000 * 48);
		CHECK_EQ(put(pos, t), JITTER_BEGUN);
		CHECK_EQ(j.counts.restarts, (uint64_t)stood);
		for (int64_t n = 1; n < 100; n++) {
			play_to(t + n * 5 * MS);
			CHECK_EQ(put(pos + n * DUR, t + n * 5 * MS), JITTER_STORED);
		}
		play_to(t + 520 * MS);
		CHECK_EQ(played.n_packets, 300);
		CHECK_EQ(played.n_missing, missing + (int64_t)(played.n_missing - missing)); /* the end is missing already, nothing between */
		CHECK(played.n_missing - missing <= 48 * 20);
		CHECK(played.in_order);
	}
}

static void test_discont(void)
{
	start(20 * MS, false, 64);
	play_from(0);
	for (int64_t n = 0; n < 20; n++) {
		play_to(n * 5 * MS);
		put(n * DUR, n * 5 * MS);
	}
	CHECK_EQ(put_flags(20 * DUR, 100 * MS, JITTER_DISCONT), JITTER_STORED); /* it does follow */
	CHECK_EQ(put_flags(90 * DUR, 105 * MS, JITTER_DISCONT), JITTER_BEGUN);
	CHECK_EQ(j.counts.restarts, 1);
}

/* Passed on: at once while whole, a hole waited for and then given up, what overtook the first put in front of it. */
static void test_pass(void)
{
	struct jitter_part p;

	start(50 * MS, true, 64);
	put(1 * DUR, 10 * MS);
	put(0 * DUR, 11 * MS);
	jitter_pass(&j, 12 * MS, &p);
	CHECK_EQ(p.what, JITTER_WAIT);
	CHECK_EQ(jitter_due_ns(&j), 55 * MS);
	jitter_pass(&j, 55 * MS, &p);
	CHECK_EQ(p.what, JITTER_PACKET);
	CHECK_EQ(p.pos, 0);
	jitter_pass(&j, 55 * MS, &p);
	CHECK_EQ(p.pos, DUR);
	put(2 * DUR, 56 * MS);
	jitter_pass(&j, 56 * MS, &p);
	CHECK_EQ(p.what, JITTER_PACKET);
	CHECK_EQ(p.pos, 2 * DUR);
	put(4 * DUR, 57 * MS);
	jitter_pass(&j, 57 * MS, &p);
	CHECK_EQ(p.what, JITTER_WAIT);
	int64_t due = jitter_due_ns(&j);
	CHECK(due > 57 * MS && due <= 90 * MS);
	jitter_pass(&j, due, &p);
	CHECK_EQ(p.what, JITTER_MISSING);
	CHECK_EQ(p.pos, 3 * DUR);
	CHECK_EQ(p.frames, DUR);
	jitter_pass(&j, due, &p);
	CHECK_EQ(p.what, JITTER_PACKET);
	CHECK_EQ(p.pos, 4 * DUR);
	CHECK_EQ(jitter_due_ns(&j), INT64_MAX);
	CHECK_EQ(put(3 * DUR, due + MS), JITTER_LATE);
}

/* A sender that was silent, by its numbers: nothing is lost, and nothing is waited for. */
static void test_silence(void)
{
	struct jitter_part p;

	start(50 * MS, true, 64);
	put(0, 0);
	put_flags(DUR, 5 * MS, JITTER_FOLLOWS);
	put_flags(1000 * DUR / 5, 1000 * MS, JITTER_FOLLOWS);
	jitter_pass(&j, 1000 * MS, &p);
	CHECK_EQ(p.what, JITTER_PACKET);
	jitter_pass(&j, 1000 * MS, &p);
	CHECK_EQ(p.pos, DUR);
	jitter_pass(&j, 1000 * MS, &p);
	CHECK_EQ(p.what, JITTER_MISSING);
	CHECK(p.silent);
	CHECK_EQ(p.pos, 2 * DUR);
	CHECK_EQ(p.frames, 198 * DUR);
	jitter_pass(&j, 1000 * MS, &p);
	CHECK_EQ(p.what, JITTER_PACKET);
	CHECK_EQ(j.counts.lost_frames, 0);
}

/* More than the slots hold: refused and counted; what is held stays in order. */
static void test_full(void)
{
	unsigned stored = 0;

	start(1000 * MS, false, 16);
	for (int64_t n = 0; n < 40; n++)
		stored += put(n * DUR, n * 1000) < JITTER_DUPLICATE || j.counts.received == 1;
	CHECK_EQ(stored, 16);
	CHECK_EQ(j.counts.full, 24);
	CHECK_EQ(put(5, 50), JITTER_FULL);
}

/* Bytes and lengths beyond the limits are refused, and nothing is written for them. */
static void test_limits(void)
{
	static const uint8_t bytes[64];
	struct jitter_packet p = { .pos = 0, .dur_frames = DUR, .n_bytes = 17, .bytes = bytes };
	struct jitter_options o = { .rate_hz = 48000, .glitches = 6, .n_slots = 3, .slot_bytes = 16 };
	struct err_why why;

	start(0, false, 16);
	CHECK_EQ(jitter_put(&j, &p), JITTER_STRAY);
	p.n_bytes = 16;
	p.dur_frames = 0;
	CHECK_EQ(jitter_put(&j, &p), JITTER_STRAY);
	p.dur_frames = 48000 * 2 + 1;
	CHECK_EQ(jitter_put(&j, &p), JITTER_STRAY);
	CHECK_EQ(take().what, JITTER_WAIT);
	CHECK_EQ(jitter_bytes(&o), 0);
	CHECK_EQ(jitter_init(&j, &o, memory, &why), ERR_ARG);
}

/* Whatever comes, from whenever: no frame twice, never backwards within a beginning, the slots are never lost. */
static void test_anything(void)
{
	check_seed(20);
	for (int run = 0; run < 200; run++) {
		start(run % 3 ? 0 : 30 * MS, run % 2, 32);
		int64_t t = 0, end = INT64_MIN;
		for (int i = 0; i < 2000; i++) {
			uint64_t r = check_rand();
			t += (int64_t)(r % 4) * MS;
			int64_t pos = (int64_t)(t / MS * 48) + (int64_t)(check_rand() % 4000) - 2000;
			if (r >> 60 == 0)
				pos = (int64_t)check_rand() >> (check_rand() % 40);
			struct jitter_packet p = { .pos = pos, .dur_frames = 1 + (uint32_t)(check_rand() % 500), .n_bytes = 8, .bytes = (uint8_t *)&r,
				.arrival_ns = t + (int64_t)(check_rand() % 3) * MS - MS, .flags = (uint16_t)(check_rand() % 64 == 0 ? 1 + check_rand() % 3 : 0) };
			jitter_put(&j, &p);
			for (int k = 0; k < 3; k++) {
				struct jitter_part part;
				if (run % 2)
					jitter_pass(&j, t, &part);
				else
					jitter_played(&j, t, 0), jitter_take(&j, 48, &part);
				if (part.what != JITTER_PACKET && part.what != JITTER_MISSING)
					continue;
				CHECK(part.frames > 0);
				CHECK(part.jumped || end == INT64_MIN || part.pos + part.skip_frames == end);
				end = part.pos + part.skip_frames + part.frames;
			}
			CHECK(j.n_held + j.n_spare + (j.taken_slot >= 0) == 32);
		}
	}
}

/* Every twentieth packet is lost and had again copy_ns later.  Returns: the depth after 20 s. */
static double depth_with_copies(int64_t copy_ns)
{
	struct jitter_part part;

	start(0, true, 256);
	for (int64_t i = 0; i < 4000; i++) {
		if (i % 20 != 7)
			put(i * DUR, (i + 1) * 5 * MS);
		if (i % 20 == 19)
			put_flags((i - 12) * DUR, (i - 11) * 5 * MS + copy_ns, JITTER_COPY);
		do
			jitter_pass(&j, (i + 1) * 5 * MS, &part);
		while (part.what != JITTER_WAIT);
	}
	return jitter_depth_s(&j);
}

static void test_repairs(void)
{
	double needed = depth_with_copies(60 * MS), found = j.counts.late_copies;

	/* It is waited for, and soon: of 200 repairs no more than the first few were too late. */
	CHECK(needed > 0.060 && needed < 0.065);
	CHECK(found < 10);
	/* What takes longer than is stated is not waited for. */
	CHECK(depth_with_copies((int64_t)(JITTER_REPAIR_S * 1000 + 20) * MS) < 0.01);
}

/* The wait begins at 40 ms and becomes what the network needs: every frame is played, or is among those that were jumped over. */
static void test_skipped(void)
{
	int64_t i, t_ns = 1000 * MS;

	start(0, false, 256);
	play_from(t_ns);
	for (i = 0; i < 1000; i++) {
		int64_t arrival_ns = t_ns + i * 5 * MS + i % 7 * (MS / 10);

		play_to(arrival_ns);
		CHECK_EQ(put(i * DUR, arrival_ns), i ? JITTER_STORED : JITTER_BEGUN);
	}
	CHECK_EQ(played.n_missing, 0);
	CHECK(played.in_order);
	CHECK_EQ(played.n_frames + (int64_t)j.counts.skipped_frames, j.next_pos);
	CHECK(j.counts.skipped_frames > 30 * 48 && j.counts.skipped_frames < 40 * 48);
}

int main(void)
{
	CHECK_RUN(test_reorder_and_duplicates);
	CHECK_RUN(test_late_and_lost);
	CHECK_RUN(test_copies);
	CHECK_RUN(test_wraps);
	CHECK_RUN(test_stray_and_jump);
	CHECK_RUN(test_jump_back);
	CHECK_RUN(test_pause);
	CHECK_RUN(test_discont);
	CHECK_RUN(test_pass);
	CHECK_RUN(test_silence);
	CHECK_RUN(test_full);
	CHECK_RUN(test_limits);
	CHECK_RUN(test_anything);
	CHECK_RUN(test_repairs);
	CHECK_RUN(test_skipped);
	return check_end();
}
