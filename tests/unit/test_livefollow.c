/* A device that plays a live stream, in virtual time: what waits stays what it was, and nothing runs dry. */
#include "check.h"

#include "base/units.h"
#include "media/livefollow.h"

#define RATE_HZ 48000
#ifdef WEIR_SANITIZED
#define HOUR_S 600 /* of such time an hour is too long */
#else
#define HOUR_S 3600
#endif
#define PACKET 128
#define BLOCK 256

struct result {
	double low_frames, high_frames; /* of what waits, after the first 30 s */
	double mean_ppm, wobble_ppm;    /* in the second half */
	uint64_t dry, in, out;
	bool was_exact;                 /* no frame was made anew */
};

static double random_part(void)
{
	return (double)(check_rand() >> 40) * 0x1p-24;
}

/*
 * Packets of a clock that is off by stream_ppm, late by up to jitter_s, and blocks of one that is off by device_ppm.  blocks_s: what a
 * writer that waits for room does every so often, 0 never; every -blocks_s something is skipped, or silence played.
 */
static struct result play(double stream_ppm, double device_ppm, double jitter_s, double seconds, double blocks_s)
{
	static float in[PACKET], out[2 * PACKET];
	struct livefollow f = { 0 };
	struct result r = { .low_frames = 1e9, .high_frames = -1e9, .was_exact = true };
	const double packet_s = PACKET / (RATE_HZ * (1 + stream_ppm * 1e-6)), block_s = BLOCK / (RATE_HZ * (1 + device_ppm * 1e-6)), begin_s = 100;
	double sum = 0, squares = 0, comes_s = 0, blocked_s = 0;
	uint64_t packets = 0, blocks = 0, n = 0;
	int64_t taken = 0, fill = 4800;   /* the threshold was there when it began */
	size_t used;

	CHECK_EQ(livefollow_init(&f, RATE_HZ, 1), ERR_OK);
	r.out = 4800;
	while (comes_s < seconds) {
		/* Never before the one before it. */
		double due_s = (double)++packets * packet_s + random_part() * jitter_s;
		comes_s = due_s > comes_s ? due_s : comes_s;
		for (double t; (t = (double)(blocks + 1) * block_s) <= comes_s; blocks++) {
			int64_t n_taken = fill < BLOCK ? fill : BLOCK;
			fill -= n_taken;
			r.dry += n_taken < BLOCK;
			taken += BLOCK;
			livefollow_device(&f, taken, (int64_t)llrint((begin_s + t + random_part() * 0.0002) * 1e9));
		}
		int64_t now_ns = (int64_t)llrint((begin_s + comes_s) * 1e9);
		if (blocks_s > 0 && comes_s - blocked_s > blocks_s) {
			livefollow_disturb(&f, true, now_ns);
			blocked_s = comes_s;
		}
		if (blocks_s < 0 && comes_s - blocked_s > -blocks_s) {
			int64_t by = random_part() < 0.5 ? 64 : -64;
			livefollow_jumped(&f, by);
			r.out = (uint64_t)((int64_t)r.out + by);
			blocked_s = comes_s;
		}
		livefollow_arrive(&f, PACKET, (int64_t)r.out, now_ns);
		size_t made = livefollow_run(&f, out, 2 * PACKET, in, PACKET, &used);
		CHECK_EQ(used, PACKET);
		r.was_exact &= livefollow_is_exact(&f);
		fill += (int64_t)made;
		r.in += PACKET;
		r.out += made;
		double ahead = (double)r.out - comes_s / block_s * BLOCK;
		if (comes_s > 30) {
			r.low_frames = ahead < r.low_frames ? ahead : r.low_frames;
			r.high_frames = ahead > r.high_frames ? ahead : r.high_frames;
		}
		if (comes_s > seconds / 2) {
			double ppm = varirate_ppm(&f.v);
			sum += ppm;
			squares += ppm * ppm;
			n++;
		}
	}
	r.mean_ppm = sum / (double)n;
	r.wobble_ppm = sqrt(fabs(squares / (double)n - r.mean_ppm * r.mean_ppm));
	livefollow_release(&f);
	return r;
}

static void hour(double stream_ppm, double device_ppm, double jitter_s)
{
	check_seed(1);
	struct result r = play(stream_ppm, device_ppm, jitter_s, HOUR_S, 0);

	printf("# stream %+g, device %+g ppm, packets late by 0 to %g ms: ratio %+.3f ppm, wobble %.2f ppm rms, %.0f to %.0f frames wait, dry %llu times\n",
		stream_ppm, device_ppm, jitter_s * 1e3, r.mean_ppm, r.wobble_ppm, r.low_frames, r.high_frames, (unsigned long long)r.dry);
	CHECK_NEAR(r.mean_ppm, ((1 + stream_ppm * 1e-6) / (1 + device_ppm * 1e-6) - 1) * 1e6, 1.0);
	CHECK(r.wobble_ppm < 20);
	CHECK_EQ(r.dry, 0);
	/* Beside what the packets' lateness and a block make of it. */
	double noise = jitter_s * RATE_HZ + PACKET + BLOCK;
	CHECK(r.low_frames > 4800 - noise - 48 && r.high_frames < 4800 + noise + 48);
}

static void test_an_hour(void)
{
	hour(100, -100, 0.001);
	hour(-200, 0, 0.005);
	hour(0, 200, 0.0005);
}

/* A device that runs dry twice a second still learns the drift: what it inserted is known to the frame. */
static void test_jumps_are_no_drift(void)
{
	check_seed(1);
	struct result r = play(100, -50, 0.001, 600, -0.5);

	printf("# 150 ppm and a jump of 64 frames every 0.5 s: ratio %+.3f ppm, wobble %.2f ppm rms\n", r.mean_ppm, r.wobble_ppm);
	CHECK_NEAR(r.mean_ppm, 150, 2.0);
	CHECK(r.wobble_ppm < 20);
}

/* Without the correction the same hour runs dry: 200 ppm are 720 ms in it. */
static void test_it_would_run_dry(void)
{
	check_seed(1);
	CHECK(play(-200, 0, 0.001, 3600, 1).dry > 0);
}

/* Equal clocks, and a writer that waits for room now and then: bit for bit. */
static void test_stays_exact(void)
{
	check_seed(1);
	CHECK(play(30, 30, 0.001, 600, 0).was_exact);
	CHECK(play(100, 0, 0.001, 60, 1.5).was_exact);
	CHECK(!play(100, 0, 0.001, 60, 0).was_exact);
}

int main(void)
{
	CHECK_RUN(test_an_hour);
	CHECK_RUN(test_jumps_are_no_drift);
	CHECK_RUN(test_it_would_run_dry);
	CHECK_RUN(test_stays_exact);
	return check_end();
}
