/* The ring between a device's callback and the thread that reads or writes, without a device. */
#include "check.h"

#include "base/units.h"
#include "media/livesink.h"
#include "media/livesource.h"
#include "rt/clock.h"

#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t stop;

/* A source over a livesource that has no device. */
static struct livesource *make_source(struct source *s, uint32_t block_frames, int64_t ring_ns)
{
	struct livesource *l = calloc(1, sizeof(*l));
	const struct live_format format = { .rate_hz = 48000, .channels = 2, .sample = SAMPLE_S16, .block_frames = block_frames, .device = "test" };
	struct err_why why;

	memset(s, 0, sizeof(*s));
	s->fd = -1;
	s->stop = &stop;
	CHECK_EQ(livesource_init(l, &format, ring_ns, &why), ERR_OK);
	livesource_attach(s, l);
	return l;
}

static int16_t frames[2 * 4096];

static void push(struct livesource *l, int64_t *made, uint32_t n)
{
	for (uint32_t i = 0; i < 2 * n; i++)
		frames[i] = (int16_t)(2 * *made + i);
	*made += n;
	livesource_push(l, frames, n, *made * UNITS_NS_PER_S / 48000);
}

/* Everything there is; checks that each frame is in its place.  Returns: frames; *gap of them missing. */
static uint64_t pull(struct source *s, int64_t *at, uint64_t *dropped, uint64_t *lost)
{
	static int16_t out[2 * 4096];
	struct source_block b;
	uint64_t n = 0;

	while (!source_would_block(s, 4096)) {
		enum err e = source_read(s, (uint8_t *)out, 1000, &b);
		if (e)
			break;
		CHECK_EQ(b.pos, *at);
		for (size_t i = 0; i < 2 * b.n_frames; i++) {
			if (out[i] != (int16_t)(2 * *at + (int64_t)i))
				CHECK_EQ(out[i], (int16_t)(2 * *at + (int64_t)i));
		}
		if (b.gap_frames)
			*(b.gap_reason == PACKET_GAP_DROPPED ? dropped : lost) += b.gap_frames;
		*at += (int64_t)(b.n_frames + b.gap_frames);
		n += b.n_frames;
	}
	return n;
}

static void test_all_comes_through(void)
{
	struct source s;
	struct livesource *l = make_source(&s, 64, UNITS_NS_PER_S / 10);
	int64_t made = 0, at = 0;
	uint64_t dropped = 0, lost = 0, got = 0;

	for (int i = 0; i < 5000; i++) {
		push(l, &made, i % 3 ? 64 : 33);
		if (i % 7 == 0)
			got += pull(&s, &at, &dropped, &lost);
	}
	got += pull(&s, &at, &dropped, &lost);
	CHECK_EQ(got, (uint64_t)made);
	CHECK_EQ(dropped + lost, 0);
	CHECK_EQ(s.cut, false);
	source_release(&s);
}

static void test_full_ring_drops_whole_blocks(void)
{
	struct source s;
	struct livesource *l = make_source(&s, 100, UNITS_NS_PER_S / 10);
	int64_t made = 0, at = 0;
	uint64_t dropped = 0, lost = 0, got;

	for (int i = 0; i < 400; i++)
		push(l, &made, 100);
	got = pull(&s, &at, &dropped, &lost);
	CHECK(got >= 4800);       /* what was promised */
	CHECK_EQ(got % 100, 0);
	CHECK_EQ(dropped, 0);     /* it is said when the next block comes */
	push(l, &made, 100);
	CHECK_EQ(pull(&s, &at, &dropped, &lost), 100);
	CHECK_EQ(dropped, (uint64_t)made - got - 100);
	CHECK_EQ(atomic_load(&l->counts.dropped_frames), dropped);
	CHECK_EQ(atomic_load(&l->counts.drops), 1);
	CHECK_EQ(at, made);
	CHECK_EQ(s.cut, true);
	CHECK_EQ(s.lost_frames, dropped);
	source_release(&s);
}

/* Both kinds of hole, and one at the very end. */
static void test_holes_keep_their_length(void)
{
	struct source s;
	struct livesource *l = make_source(&s, 64, UNITS_NS_PER_S / 10);
	struct source_block b;
	uint8_t out[4 * 64];
	int64_t made = 0, at = 0;
	uint64_t dropped = 0, lost = 0;

	push(l, &made, 64);
	livesource_lose(l, 1000);
	made += 1000;
	push(l, &made, 64);
	CHECK_EQ(pull(&s, &at, &dropped, &lost), 128);
	CHECK_EQ(lost, 1000);
	livesource_lose(l, 7);
	livesource_gone(l, "it was pulled out");
	livesource_gone(l, "the second word does not count");
	CHECK_EQ(source_read(&s, out, 64, &b), ERR_OK);
	CHECK_EQ(b.gap_frames, 7);
	CHECK_EQ(b.gap_reason, PACKET_GAP_XRUN);
	CHECK_EQ(source_read(&s, out, 64, &b), ERR_END);
	CHECK_STR(s.warning, "it was pulled out, after frame 1135");
	CHECK_EQ(s.cut, true);
	source_release(&s);
}

static void test_stop_ends_a_wait(void)
{
	struct source s;
	struct source_block b;
	uint8_t out[64];

	(void)make_source(&s, 64, UNITS_NS_PER_S / 10);
	stop = 1;
	CHECK_EQ(source_read(&s, out, 4, &b), ERR_END);
	stop = 0;
	source_release(&s);
}

/* ---- playing ---- */

static void make_sink(struct livesink *l, int64_t latency_ns)
{
	const struct live_format format = { .rate_hz = 48000, .channels = 2, .sample = SAMPLE_S16, .block_frames = 64, .device = "test" };
	struct err_why why;

	CHECK_EQ(livesink_init(l, &format, latency_ns, 0, &why), ERR_OK);
}

static void test_sink_plays_all_and_says_so(void)
{
	struct livesink l;
	int16_t in[2 * 1000], out[2 * 64];
	size_t at = 0;

	make_sink(&l, UNITS_NS_PER_S / 1000);
	for (int i = 0; i < 2000; i++)
		in[i] = (int16_t)(i + 1);
	CHECK_EQ(livesink_write(&l, (uint8_t *)in, 1000), ERR_OK);
	atomic_store(&l.ended, true);
	for (;;) {
		uint32_t n = livesink_pull(&l, out, 64);

		CHECK(!memcmp(out, in + 2 * at, n * 4));
		at += n;
		if (n < 64)
			break;
	}
	CHECK_EQ(at, 1000);
	CHECK_EQ(atomic_load(&l.drained), true);
	CHECK_EQ(atomic_load(&l.counts.played_frames), 1000);
	CHECK_EQ(atomic_load(&l.counts.underruns), 0);
	CHECK_EQ(atomic_load(&l.counts.silent_frames), 0);
	livesink_release(&l);
}

static void test_sink_counts_an_underrun_and_waits_for_its_threshold(void)
{
	struct livesink l;
	int16_t in[2 * 100], out[2 * 64], zeros[2 * 64] = { 0 };

	make_sink(&l, UNITS_NS_PER_S / 480); /* 100 frames */
	CHECK_EQ(l.threshold_frames, 100);
	memset(in, 1, sizeof(in));
	CHECK_EQ(livesink_write(&l, (uint8_t *)in, 100), ERR_OK);
	CHECK_EQ(livesink_pull(&l, out, 64), 64);
	CHECK_EQ(livesink_pull(&l, out, 64), 64);
	CHECK(!memcmp(out, in, 36 * 4));
	CHECK(!memcmp(out + 72, zeros, 28 * 4));
	CHECK_EQ(atomic_load(&l.counts.underruns), 1);
	CHECK_EQ(atomic_load(&l.counts.silent_frames), 28);
	/* Too little: silence still, of the same underrun. */
	CHECK_EQ(livesink_write(&l, (uint8_t *)in, 99), ERR_OK);
	CHECK_EQ(livesink_pull(&l, out, 64), 64);
	CHECK(!memcmp(out, zeros, 64 * 4));
	CHECK_EQ(atomic_load(&l.counts.underruns), 1);
	CHECK_EQ(atomic_load(&l.counts.silent_frames), 92);
	CHECK_EQ(livesink_write(&l, (uint8_t *)in, 1), ERR_OK);
	CHECK_EQ(livesink_pull(&l, out, 64), 64);
	CHECK(!memcmp(out, in, 64 * 4));
	CHECK_EQ(atomic_load(&l.counts.played_frames), 164);
	livesink_release(&l);
}

/* n cycles in which as much comes as goes. */
static void cycles(struct livesink *l, unsigned n)
{
	static const int16_t in[2 * 64];
	int16_t out[2 * 64];

	while (n--) {
		CHECK_EQ(livesink_pull(l, out, 64), 64);
		CHECK_EQ(livesink_write(l, (const uint8_t *)in, 64), ERR_OK);
	}
}

static size_t waiting(struct livesink *l)
{
	return ring_fill(&l->ring) / l->frame_bytes;
}

/* The device stood still while a live stream went on: what piled up is not heard late from then on. */
static void test_live_sink_skips_what_a_stall_piled_up(void)
{
	static const int16_t in[2 * 960];
	struct livesink l;

	make_sink(&l, 4 * UNITS_NS_PER_S / 750); /* 256 frames */
	l.skips = true;
	CHECK_EQ(livesink_write(&l, (const uint8_t *)in, 256), ERR_OK);
	cycles(&l, 750 * 3);
	CHECK_EQ(waiting(&l), 256);
	CHECK_EQ(atomic_load(&l.counts.skipped_frames), 0);
	/* What may be a wobble stays. */
	CHECK_EQ(livesink_write(&l, (const uint8_t *)in, 32), ERR_OK);
	cycles(&l, 750);
	CHECK_EQ(waiting(&l), 288);
	/* What waits for its turn between two bursts of 120 ms was needed. */
	for (unsigned i = 0; i < 10; i++) {
		int16_t out[2 * 64];
		for (unsigned k = 0; k < 90; k++) {
			CHECK_EQ(livesink_pull(&l, out, 64), 64);
			for (unsigned j = 0; !k && j < 6; j++)
				CHECK_EQ(livesink_write(&l, (const uint8_t *)in, 960), ERR_OK);
		}
	}
	CHECK_EQ(atomic_load(&l.counts.skipped_frames), 0);
	CHECK_EQ(livesink_write(&l, (const uint8_t *)in, 960), ERR_OK);
	cycles(&l, 750);
	CHECK_EQ(waiting(&l), 256);
	CHECK_EQ(atomic_load(&l.counts.skipped_frames), 960 + 32);
	CHECK_EQ(atomic_load(&l.counts.underruns), 0);
	livesink_release(&l);
}

/* Silence for n cycles, then what the threshold is, and it plays again. */
static void run_dry(struct livesink *l, unsigned n)
{
	static const int16_t in[2 * 6400];
	int16_t out[2 * 64];
	uint64_t played;

	CHECK_EQ(waiting(l) < 64, true);
	while (n--)
		CHECK_EQ(livesink_pull(l, out, 64), 64);
	played = atomic_load(&l->counts.played_frames);
	CHECK_EQ(livesink_write(l, (const uint8_t *)in, l->threshold_frames - waiting(l) - 1), ERR_OK);
	CHECK_EQ(livesink_pull(l, out, 64), 64);
	CHECK_EQ(atomic_load(&l->counts.played_frames), played);
	CHECK_EQ(livesink_write(l, (const uint8_t *)in, 1), ERR_OK);
	while (waiting(l) >= 64)
		CHECK_EQ(livesink_pull(l, out, 64), 64);
}

/* Of a live stream: what comes at once, and what the device needs; more each time it was too little, but not for a pause, and not without end. */
static void test_live_sink_finds_its_threshold(void)
{
	struct livesink l;
	unsigned ms[] = { 32, 42, 42, 52, 62, 72, 82, 92, 100, 100, 100 };

	make_sink(&l, UNITS_NS_PER_S / 50);
	livesink_adapt(&l);
	CHECK_EQ(l.threshold_frames, 960);
	livesink_expect(&l, 96); /* 2 ms */
	CHECK_EQ(livesink_write(&l, (const uint8_t[4 * 1056]){ 0 }, 1056), ERR_OK);
	livesink_expect(&l, 480);
	CHECK_EQ(l.threshold_frames, 1056);
	for (int i = 0; i < 16; i++)
		CHECK_EQ(livesink_pull(&l, (int16_t[128]){ 0 }, 64), 64);
	CHECK_EQ(atomic_load(&l.counts.underruns), 0);
	/* 10 ms each time; the third time nothing comes for a third of a second. */
	for (unsigned i = 0; i < ARRAY_LEN(ms); i++) {
		run_dry(&l, i == 2 ? 250 : 3);
		CHECK_EQ(l.threshold_frames, 48 * ms[i]);
	}
	CHECK_EQ(atomic_load(&l.counts.underruns), ARRAY_LEN(ms));
	livesink_release(&l);
	/* What was asked for stays. */
	make_sink(&l, UNITS_NS_PER_S / 50);
	livesink_expect(&l, 96);
	CHECK_EQ(livesink_write(&l, (const uint8_t[4 * 960]){ 0 }, 960), ERR_OK);
	for (int i = 0; i < 15; i++)
		CHECK_EQ(livesink_pull(&l, (int16_t[128]){ 0 }, 64), 64);
	run_dry(&l, 3);
	CHECK_EQ(l.threshold_frames, 960);
	livesink_release(&l);
	/* A device that takes 43 ms at a time needs two of them. */
	struct live_format slow = { .rate_hz = 48000, .channels = 2, .sample = SAMPLE_S16, .block_frames = 2048, .device = "test" };
	struct err_why why;
	CHECK_EQ(livesink_init(&l, &slow, UNITS_NS_PER_S / 50, 0, &why), ERR_OK);
	livesink_adapt(&l);
	CHECK_EQ(l.threshold_frames, 4096);
	livesink_release(&l);
}

/* ---- the clock ---- */

/* A device 100 ppm slow, with callbacks up to 5 ms late: the line finds the rate, never goes back, and stays within the jitter. */
static void test_clock_fit(void)
{
	struct clock_fit f;
	uint32_t random = 1;
	int64_t last = INT64_MIN;
	double worst_ns = 0;

	clock_fit_init(&f, 48000);
	for (int64_t k = 0; k < 6000; k++) {
		double true_ns = (double)(k * 960) * 1.0001 * (double)UNITS_NS_PER_S / 48000;
		random = random * 1664525u + 1013904223u;
		double late_ns = (double)(random >> 8) / (1 << 24) * 5e6;
		int64_t t = clock_fit_at(&f, k * 960, (int64_t)(true_ns + late_ns));

		CHECK(t > last);
		last = t;
		double off_ns = (double)t - true_ns - 2.5e6;
		if (k > 1000 && (off_ns > worst_ns || -off_ns > worst_ns))
			worst_ns = off_ns > 0 ? off_ns : -off_ns;
	}
	CHECK_NEAR(clock_fit_ppb(&f), 100e3, 60e3);
	CHECK(worst_ns < 1.5e6);
}

/* After a jump of the device's clock the line is there at once, and did not go back. */
static void test_clock_fit_begins_anew(void)
{
	struct clock_fit f;
	int64_t at;

	clock_fit_init(&f, 48000);
	for (int64_t k = 0; k < 100; k++)
		(void)clock_fit_at(&f, k * 480, k * UNITS_NS_PER_S / 100);
	at = clock_fit_at(&f, 48000, 3 * UNITS_NS_PER_S);
	CHECK_EQ(at, 3 * UNITS_NS_PER_S);
	CHECK(clock_fit_at(&f, 48480, UNITS_NS_PER_S) >= at);
}

int main(void)
{
	CHECK_RUN(test_all_comes_through);
	CHECK_RUN(test_full_ring_drops_whole_blocks);
	CHECK_RUN(test_holes_keep_their_length);
	CHECK_RUN(test_stop_ends_a_wait);
	CHECK_RUN(test_sink_plays_all_and_says_so);
	CHECK_RUN(test_sink_counts_an_underrun_and_waits_for_its_threshold);
	CHECK_RUN(test_live_sink_skips_what_a_stall_piled_up);
	CHECK_RUN(test_live_sink_finds_its_threshold);
	CHECK_RUN(test_clock_fit);
	CHECK_RUN(test_clock_fit_begins_anew);
	return check_end();
}
