/* Two devices with clocks of their own, in virtual time: the second's frames stay in their places on the first's timeline. */
#include "check.h"

#include "base/units.h"
#include "media/livesync.h"
#include "rt/clock.h"

#include <stdlib.h>

#define RATE_HZ 48000
#ifdef WEIR_SANITIZED
#define HOUR_S 600 /* of such time an hour is too long */
#else
#define HOUR_S 3600
#endif
#define BLOCK 480

/* A device: frames come at a rate that is off, and a block's timestamp is late by up to jitter. */
struct device {
	double ppm, jitter_s, begin_s;
	int64_t frame;            /* captured so far */
	struct clock_fit fit;
};

static double captured_s(const struct device *d, double frame)
{
	return d->begin_s + frame / (RATE_HZ * (1 + d->ppm * 1e-6));
}

static int64_t stamp_ns(struct device *d)
{
	double late_s = (double)(check_rand() >> 40) * 0x1p-24 * d->jitter_s;

	return (int64_t)llrint((captured_s(d, (double)d->frame) + late_s + 1000) * 1e9);
}

struct result {
	double worst_frames;      /* of place against truth, after the first 30 s */
	double wobble_ppm;        /* rms of the step about its mean, in the second half */
	double mean_ppm;
	uint64_t in, out;
	int64_t jumped_frames;
};

/* Each block of the second device is seen and taken; every frame in comes out, and nothing else. */
static struct result run(struct device *a, struct device *b, double seconds)
{
	static float in[2 * BLOCK], out[2 * BLOCK + 64];
	struct livesync s = { 0 };
	struct result r = { 0 };
	double sum = 0, squares = 0;
	uint64_t n = 0;
	size_t fill = 0, used;

	CHECK_EQ(livesync_init(&s, RATE_HZ, 1), ERR_OK);
	clock_fit_init(&a->fit, RATE_HZ);
	clock_fit_init(&b->fit, RATE_HZ);
	(void)clock_fit_at(&a->fit, a->frame, stamp_ns(a));
	while (captured_s(b, (double)b->frame) < b->begin_s + seconds) {
		while (captured_s(a, (double)(a->frame + BLOCK)) <= captured_s(b, (double)b->frame)) {
			a->frame += BLOCK;
			(void)clock_fit_at(&a->fit, a->frame, stamp_ns(a));
		}
		int64_t t = clock_fit_at(&b->fit, b->frame, stamp_ns(b));
		double want = clock_fit_pos(&a->fit, t);
		if (!s.started)
			livesync_begin(&s, b->frame, llrint(want), t);
		livesync_see(&s, b->frame, want, t);
		int64_t jump = livesync_jump(&s);
		r.jumped_frames += jump;
		if (jump > 0)
			livesync_skip(&s, jump);
		else
			livesync_gap(&s, -jump);
		b->frame += BLOCK;
		fill += BLOCK;
		size_t made = livesync_run(&s, out, BLOCK + 64, in, fill, &used);
		CHECK(made < BLOCK + 64);
		CHECK_EQ(used, fill);
		fill -= used;
		r.in += used;
		r.out += made;
		double now_s = captured_s(b, (double)b->frame);
		if (now_s - b->begin_s > 30) {
			double truth = (now_s - a->begin_s) * RATE_HZ * (1 + a->ppm * 1e-6);
			double off = fabs(livesync_place(&s, b->frame) - truth);
			r.worst_frames = off > r.worst_frames ? off : r.worst_frames;
		}
		if (now_s - b->begin_s > seconds / 2) {
			double ppm = varirate_ppm(&s.v);
			sum += ppm;
			squares += ppm * ppm;
			n++;
		}
	}
	r.mean_ppm = sum / (double)n;
	r.wobble_ppm = sqrt(squares / (double)n - r.mean_ppm * r.mean_ppm);
	CHECK(llabs((int64_t)r.out + VARIRATE_AHEAD_FRAMES + 1 - llrint((double)r.in / (1 + r.mean_ppm * 1e-6))) < RATE_HZ / 100);
	livesync_release(&s);
	return r;
}

static void hour(double a_ppm, double b_ppm, double jitter_s)
{
	struct device a = { .ppm = a_ppm, .jitter_s = jitter_s }, b = { .ppm = b_ppm, .jitter_s = jitter_s, .begin_s = 0.123456 };
	struct result r = run(&a, &b, HOUR_S);

	printf("# clocks at %+g and %+g ppm, timestamps late by 0 to %g ms: ratio %+.3f ppm, wobble %.2f ppm rms, off by %.2f frames at most\n", a_ppm, b_ppm,
		jitter_s * 1e3, r.mean_ppm, r.wobble_ppm, r.worst_frames);
	/* The step is the ratio of the two clocks. */
	CHECK_NEAR(r.mean_ppm, ((1 + b_ppm * 1e-6) / (1 + a_ppm * 1e-6) - 1) * 1e6, 1.0);
	CHECK(r.wobble_ppm < 20);
	/* A quarter of a millisecond, the first half minute apart. */
	CHECK(r.worst_frames < 12);
	CHECK_EQ(r.jumped_frames, 0);
}

static void test_an_hour_at_100_ppm(void)
{
	check_seed(1);
	hour(0, 100, 0.0005);
	hour(-100, 100, 0.001);
}

static void test_an_hour_at_200_ppm(void)
{
	check_seed(1);
	hour(200, -200, 0.001);
}

/* One clock: nothing is corrected, every frame is a copy. */
static void test_equal_clocks_stay_exact(void)
{
	check_seed(1);
	struct device a = { .ppm = 30, .jitter_s = 0.0002 }, b = { .ppm = 30, .jitter_s = 0.0002, .begin_s = 0.5 };
	struct result r = run(&a, &b, 600);

	CHECK_EQ(r.mean_ppm == 0 && r.wobble_ppm == 0, true);
	CHECK_EQ(r.in, r.out + VARIRATE_AHEAD_FRAMES);
	CHECK(r.worst_frames < 24);
}

/* A first timestamp that was wrong by 20 ms, either way: put right once. */
static void test_a_bad_beginning_is_put_right(void)
{
	for (int sign = -1; sign <= 1; sign += 2) {
		struct livesync s = { 0 };
		size_t used;
		float in[480] = { 0 }, out[600];
		int64_t jumped = 0;

		CHECK_EQ(livesync_init(&s, RATE_HZ, 1), ERR_OK);
		livesync_begin(&s, 0, 960, 0);
		for (int64_t k = 0; k < 500; k++) {
			livesync_see(&s, k * 480, (double)(960 + k * 480 + sign * 960), k * UNITS_NS_PER_S / 100);
			int64_t jump = livesync_jump(&s);
			jumped += jump;
			if (jump > 0)
				livesync_skip(&s, jump);
			else
				livesync_gap(&s, -jump);
			(void)livesync_run(&s, out, 600, in, 480, &used);
		}
		/* What belongs later than it lies needs a gap. */
		CHECK_NEAR(jumped, -sign * 960, 48);
		CHECK_NEAR(livesync_place(&s, 480 * 500), 960 + 480 * 500 + sign * 960, 48);
		livesync_release(&s);
	}
}

/* What both hear is at the same place of both tracks: a tone, sampled by two clocks that are 150 ppm apart. */
static void test_a_tone_is_in_phase(void)
{
	enum { SECONDS = 40, HZ = 997 };
	struct device a = { .ppm = -50 }, b = { .ppm = 100, .begin_s = 0.25 };
	struct livesync s = { 0 };
	float in[BLOCK], out[BLOCK + 64];
	double cosine = 0, sine = 0, worst = 0;
	size_t used;

	CHECK_EQ(livesync_init(&s, RATE_HZ, 1), ERR_OK);
	clock_fit_init(&a.fit, RATE_HZ);
	clock_fit_init(&b.fit, RATE_HZ);
	(void)clock_fit_at(&a.fit, 0, stamp_ns(&a));
	while (b.frame < SECONDS * RATE_HZ) {
		while (captured_s(&a, (double)(a.frame + BLOCK)) <= captured_s(&b, (double)b.frame)) {
			a.frame += BLOCK;
			(void)clock_fit_at(&a.fit, a.frame, stamp_ns(&a));
		}
		int64_t t = clock_fit_at(&b.fit, b.frame, stamp_ns(&b));
		double want = clock_fit_pos(&a.fit, t);
		if (!s.started)
			livesync_begin(&s, b.frame, llrint(want), t);
		livesync_see(&s, b.frame, want, t);
		for (int i = 0; i < BLOCK; i++)
			in[i] = (float)(0.5 * sin(2 * M_PI * HZ * captured_s(&b, (double)(b.frame + i))));
		b.frame += BLOCK;
		int64_t pos = s.next_pos;
		size_t made = livesync_run(&s, out, BLOCK + 64, in, BLOCK, &used);
		cosine = sine = 0;
		for (size_t i = 0; i < made; i++) {
			double w = 2 * M_PI * HZ * captured_s(&a, (double)pos + (double)i);
			sine += out[i] * sin(w);
			cosine += out[i] * cos(w);
		}
		double off_frames = atan2(cosine, sine) / (2 * M_PI * HZ) * RATE_HZ;
		if (pos > 20 * RATE_HZ && fabs(off_frames) > worst)
			worst = fabs(off_frames);
	}
	printf("# a tone of %d Hz: off by %.2f frames at most after 20 s\n", HZ, worst);
	CHECK(worst < 10);
	livesync_release(&s);
}

/* The wall clock is set by an hour: what is said of it moves, but never jumps. */
static void test_the_wall_clock_never_jumps(void)
{
	struct clock_utc u = { 0 };
	int64_t at = 0, last = clock_utc_move(&u, 0, 5 * UNITS_NS_PER_S);

	CHECK_EQ(last, 5 * UNITS_NS_PER_S);
	for (int i = 0; i < 2000; i++) {
		at += UNITS_NS_PER_S;
		int64_t now = clock_utc_move(&u, at, 6 * UNITS_NS_PER_S);
		CHECK(now >= last && now - last <= UNITS_NS_PER_S / 2000);
		last = now;
	}
	CHECK_EQ(last, 6 * UNITS_NS_PER_S);
	for (int i = 0; i < 100; i++) {
		at += UNITS_NS_PER_S / 1000;
		int64_t now = clock_utc_move(&u, at, -3600 * UNITS_NS_PER_S);
		CHECK(now <= last && last - now <= UNITS_NS_PER_S / 1000 / 2000);
		last = now;
	}
}

int main(void)
{
	CHECK_RUN(test_an_hour_at_100_ppm);
	CHECK_RUN(test_an_hour_at_200_ppm);
	CHECK_RUN(test_equal_clocks_stay_exact);
	CHECK_RUN(test_a_bad_beginning_is_put_right);
	CHECK_RUN(test_a_tone_is_in_phase);
	CHECK_RUN(test_the_wall_clock_never_jumps);
	return check_end();
}
