/* net/impairment and net/transit: every effect has the shares and moments asked for, effects do not disturb one another, and a seed is a fate. */
#include "check.h"

#include "base/units.h"
#include "net/impairment.h"
#include "net/transit.h"

#define N 200000
#define MS INT64_C(1000000)

/* ---- chances ---- */

static void test_random_is_xoshiro(void)
{
	/* The published sequence of xoshiro256** from the state 1, 2, 3, 4. */
	struct impairment_random r = { .s = { 1, 2, 3, 4 } };
	static const uint64_t wanted[] = {
		11520u, 0u, 1509978240u, 1215971899390074240u, 1216172134540287360u, 607988272756665600u, 16172922978634559625u,
	};

	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		CHECK_EQ(impairment_random(&r), wanted[i]);
}

static void test_log(void)
{
	double worst = 0;

	for (int e = -200; e <= 200; e++)
		for (int k = 0; k < 500; k++) {
			double x = ldexp(1 + k / 500.0 + 1e-9, e), right = log(x), ulp = nextafter(fabs(right), INFINITY) - fabs(right);
			double off = fabs(impairment_log(x) - right) / ulp;
			worst = off > worst ? off : worst;
		}
	printf("# logarithm: at most %.2f units in the last place from the library's\n", worst);
	CHECK(worst <= 2.5);
	CHECK_EQ(impairment_log(1) == 0, 1);
}

static void test_moments(void)
{
	struct impairment_random r;
	double sum = 0, squares = 0, fourth = 0, beyond = 0, exponential = 0, exponential_squares = 0;

	impairment_seed(&r, 5, 1);
	for (int i = 0; i < N; i++) {
		double x = impairment_normal(&r), y;
		sum += x;
		squares += x * x;
		fourth += x * x * x * x;
		beyond += fabs(x) > 2;
		y = impairment_exponential(&r);
		CHECK(y >= 0);
		exponential += y;
		exponential_squares += y * y;
	}
	/* Five standard errors of each. */
	CHECK_NEAR(sum / N, 0, 5 / sqrt(N));
	CHECK_NEAR(squares / N, 1, 5 * sqrt(2.0 / N));
	CHECK_NEAR(fourth / N, 3, 5 * sqrt(96.0 / N));
	CHECK_NEAR(beyond / N, 0.0455003, 5 * sqrt(0.0455 * 0.9545 / N));
	CHECK_NEAR(exponential / N, 1, 5 / sqrt(N));
	CHECK_NEAR(exponential_squares / N, 2, 5 * sqrt(20.0 / N));
}

/* ---- loss ---- */

struct tally {
	double share, mean_burst;
	uint64_t longest_burst;
};

static struct tally lose(struct impairment_config c, int64_t every_ns)
{
	struct impairment m;
	struct impairment_fate f;
	struct tally t = { 0 };
	uint64_t lost = 0, bursts = 0, run = 0;

	CHECK_OK(impairment_init(&m, &c, NULL));
	for (int i = 0; i < N; i++) {
		impairment_send(&m, i * every_ns, 100, &f);
		bool is_lost = f.cause != IMPAIRMENT_ARRIVES;
		lost += is_lost;
		bursts += is_lost && run == 0;
		run = is_lost ? run + 1 : 0;
		t.longest_burst = run > t.longest_burst ? run : t.longest_burst;
	}
	CHECK_EQ(m.counts.packets, N);
	CHECK_EQ(m.counts.lost, lost);
	CHECK_EQ(m.counts.bursts, bursts);
	t.share = (double)lost / N;
	t.mean_burst = bursts ? (double)lost / (double)bursts : 0;
	return t;
}

static void test_random_loss(void)
{
	static const double shares[] = { 0, 0.001, 0.01, 0.05, 0.2, 0.5, 0.99, 1 };

	for (size_t i = 0; i < ARRAY_LEN(shares); i++)
		for (uint64_t seed = 0; seed < 3; seed++) {
			double p = shares[i];
			struct tally t = lose((struct impairment_config){ .seed = seed, .loss = p }, 20 * MS);
			CHECK_NEAR(t.share, p, 5 * sqrt(p * (1 - p) / N));
			if (p > 0 && p < 1) /* of losses that know nothing of each other, 1/(1 − p) in a row */
				CHECK_NEAR(t.mean_burst, 1 / (1 - p), 0.05 / (1 - p) / sqrt(p));
		}
}

static void test_bursts_of_packets(void)
{
	static const double shares[] = { 0.01, 0.05, 0.2, 0.6 }, lengths[] = { 1.7, 4, 20 };

	for (size_t i = 0; i < ARRAY_LEN(shares); i++)
		for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
			double p = shares[i], b = lengths[k];
			struct tally t = lose((struct impairment_config){ .seed = 3, .loss = p, .burst_packets = b }, 5 * MS);
			/* n·p/b bursts of geometric length: their number and mean are that well known. */
			double n_bursts = N * p / b;
			CHECK_NEAR(t.mean_burst, b, 5 * b / sqrt(n_bursts));
			CHECK_NEAR(t.share, p, 5 * p * sqrt(2 / n_bursts));
		}
}

static void test_outages_of_time(void)
{
	/* 10 ms at 5 % at 2.5 ms: bursts of 4 and a half in the mean (the one that begins it, and those within), as by packets. */
	struct tally t = lose((struct impairment_config){ .seed = 9, .loss = 0.05, .burst_ns = 10 * MS }, 5 * MS / 2);
	CHECK_NEAR(t.share, 0.05, 0.004);
	/* A burst that is seen holds k ≥ 1 packets: 1/(1 − e^(−T/τ)) of them. */
	CHECK_NEAR(t.mean_burst, 1 / (1 - exp(-0.25)), 0.3);
	t = lose((struct impairment_config){ .seed = 9, .loss = 0.05, .burst_ns = 10 * MS }, 20 * MS);
	CHECK_NEAR(t.share, 0.05, 0.004);
	CHECK_NEAR(t.mean_burst, 1 / (1 - exp(-2.0)), 0.1);
	/* A share next to nothing, and a silence of years between two packets, end. */
	lose((struct impairment_config){ .loss = 1e-300, .burst_ns = 1 }, INT64_C(40000000000000));
	lose((struct impairment_config){ .loss = 0.5, .burst_ns = 1 }, INT64_C(40000000000000));
	lose((struct impairment_config){ .stall_ns = 1, .stall_every_ns = 2 }, INT64_C(40000000000000));
}

static void test_every_nth(void)
{
	struct impairment_config c = { .lose_every = 7 };
	struct impairment m;
	struct impairment_fate f;

	CHECK_OK(impairment_init(&m, &c, NULL));
	for (int i = 1; i <= 700; i++) {
		impairment_send(&m, 0, 1, &f);
		CHECK_EQ(f.cause != IMPAIRMENT_ARRIVES, i % 7 == 0);
	}
}

/* ---- time ---- */

struct spread {
	double mean_ms, deviation_ms, min_ms, max_ms;
};

static struct spread delay(struct impairment_config c, int64_t every_ns)
{
	struct impairment m;
	struct impairment_fate f;
	struct spread s = { .min_ms = INFINITY, .max_ms = -INFINITY };
	double sum = 0, squares = 0;
	int64_t last_ns = INT64_MIN;

	CHECK_OK(impairment_init(&m, &c, NULL));
	for (int i = 0; i < N; i++) {
		impairment_send(&m, i * every_ns, 100, &f);
		double ms = (double)(f.out_ns - i * every_ns) / 1e6;
		CHECK_EQ(f.cause, IMPAIRMENT_ARRIVES);
		if (!c.may_overtake)
			CHECK(f.out_ns >= last_ns);
		last_ns = f.out_ns;
		sum += ms;
		squares += ms * ms;
		s.min_ms = ms < s.min_ms ? ms : s.min_ms;
		s.max_ms = ms > s.max_ms ? ms : s.max_ms;
	}
	s.mean_ms = sum / N;
	s.deviation_ms = sqrt(squares / N - s.mean_ms * s.mean_ms);
	return s;
}

static void test_delay_and_jitter(void)
{
	struct impairment_config c = { .delay_ns = 100 * MS };
	struct spread s = delay(c, 20 * MS);
	CHECK_EQ(s.min_ms == 100 && s.max_ms == 100, 1);

	c.jitter_ns = 10 * MS;
	s = delay(c, 1000 * MS); /* far enough apart that none waits for another */
	CHECK_NEAR(s.mean_ms, 100, 5 * 10 / sqrt(N));
	CHECK_NEAR(s.deviation_ms, 10, 5 * 10 / sqrt(2.0 * N));
	c.may_overtake = true;
	struct spread again = delay(c, MS);
	CHECK_NEAR(again.mean_ms, s.mean_ms, 1e-9);
	CHECK_NEAR(again.deviation_ms, s.deviation_ms, 1e-9);

	c.shape = IMPAIRMENT_EXPONENTIAL;
	s = delay(c, MS);
	CHECK_NEAR(s.mean_ms, 110, 5 * 10 / sqrt(N));
	CHECK_NEAR(s.deviation_ms, 10, 0.25);
	CHECK(s.min_ms >= 100);
	c.shape = IMPAIRMENT_UNIFORM;
	s = delay(c, MS);
	CHECK_NEAR(s.mean_ms, 100, 5 * 5.77 / sqrt(N));
	CHECK_NEAR(s.deviation_ms, 10 / sqrt(3), 0.05);
	CHECK(s.min_ms >= 90 && s.max_ms <= 110);

	/* In order, packets a millisecond apart wait for each other: later in the mean, never earlier. */
	c = (struct impairment_config){ .delay_ns = 100 * MS, .jitter_ns = 10 * MS };
	CHECK(delay(c, MS).mean_ms > 110);
	/* No packet comes out before it was sent. */
	c.delay_ns = 0;
	s = delay(c, 1000 * MS);
	CHECK(s.min_ms >= 0);
	CHECK_NEAR(s.mean_ms, 10 / sqrt(2 * M_PI), 0.1);
}

static void test_spikes_and_stalls(void)
{
	struct impairment_config c = { .spikes = 0.02, .spike_ns = 6 * MS };
	struct spread s = delay(c, 100 * MS);
	CHECK_NEAR(s.mean_ms, 0.02 * 6, 5 * sqrt(0.02 * 2 * 36 / N));
	CHECK(s.max_ms > 30);

	/* 25 ms about every 3 s: of the time so much stands still, and the wait of those within is half of it. */
	c = (struct impairment_config){ .stall_ns = 25 * MS, .stall_every_ns = 3000 * MS };
	s = delay(c, MS);
	CHECK(s.max_ms <= 25);
	CHECK_NEAR(s.mean_ms, 25.0 / 3000 * 12.5, 0.02);
}

static void test_rate_and_queue(void)
{
	/* 972 + 28 bytes at 800 kbit/s: 10 ms each.  Ten at once leave one after another. */
	struct impairment_config c = { .rate_bps = 800000, .overhead_bytes = 28 };
	struct impairment m;
	struct impairment_fate f;

	CHECK_OK(impairment_init(&m, &c, NULL));
	for (int i = 0; i < 10; i++) {
		impairment_send(&m, 5 * MS, 972, &f);
		CHECK_EQ(f.out_ns, 5 * MS + (i + 1) * 10 * MS);
	}
	impairment_send(&m, 500 * MS, 972, &f);
	CHECK_EQ(f.out_ns, 510 * MS);

	/* A queue of 5000 bytes takes five, and one more every 10 ms. */
	c.queue_bytes = 5000;
	CHECK_OK(impairment_init(&m, &c, NULL));
	for (int i = 0; i < 10; i++) {
		impairment_send(&m, 0, 972, &f);
		CHECK_EQ(f.cause, i < 5 ? IMPAIRMENT_ARRIVES : IMPAIRMENT_BY_QUEUE);
	}
	impairment_send(&m, 10 * MS, 972, &f);
	CHECK_EQ(f.cause, IMPAIRMENT_ARRIVES);
	CHECK_EQ(f.out_ns, 60 * MS);
	impairment_send(&m, 10 * MS, 972, &f);
	CHECK_EQ(f.cause, IMPAIRMENT_BY_QUEUE);
	CHECK_EQ(m.counts.queue_lost, 6);
	CHECK_EQ(m.counts.lost, 6);
}

static void test_drift(void)
{
	struct impairment_config c = { .drift_ppb = 80000, .is_virtual = true };
	struct impairment m;
	struct impairment_fate f;
	const int64_t hour_ns = 3600 * UNITS_NS_PER_S;

	CHECK_OK(impairment_init(&m, &c, NULL));
	impairment_send(&m, 7, 1, &f);
	CHECK_EQ(f.out_ns, 7);
	impairment_send(&m, 7 + hour_ns, 1, &f);
	/* An hour of a clock that is 80 ppm fast takes 3600/1.00008 s: 287.977 ms less. */
	CHECK_EQ(f.out_ns, 7 + hour_ns - 287976962);
	CHECK_EQ(f.late_ns, 0);

	c.is_virtual = false; /* alive, nothing comes out before it was sent: the delay is used up */
	c.delay_ns = 100 * MS;
	CHECK_OK(impairment_init(&m, &c, NULL));
	impairment_send(&m, 0, 1, &f);
	CHECK_EQ(f.out_ns, 100 * MS);
	impairment_send(&m, 1000 * UNITS_NS_PER_S, 1, &f);
	CHECK_EQ(f.out_ns, 1000 * UNITS_NS_PER_S + 100 * MS - 79993601);
	impairment_send(&m, hour_ns, 1, &f);
	CHECK_EQ(f.out_ns, hour_ns);
	c.drift_ppb = -80000;
	CHECK_OK(impairment_init(&m, &c, NULL));
	impairment_send(&m, 0, 1, &f);
	impairment_send(&m, hour_ns, 1, &f);
	CHECK_EQ(f.out_ns, hour_ns + 100 * MS + 288023042);
}

static void test_trace(void)
{
	static const int64_t trace[] = { 5 * MS, IMPAIRMENT_LOST, 1 * MS };
	struct impairment_config c = { .trace = trace, .n_trace = 3, .delay_ns = 10 * MS };
	struct impairment m;
	struct impairment_fate f;

	CHECK_OK(impairment_init(&m, &c, NULL));
	for (int64_t i = 0; i < 9; i++) {
		impairment_send(&m, i * 100 * MS, 1, &f);
		if (i % 3 == 1)
			CHECK_EQ(f.cause, IMPAIRMENT_BY_TRACE);
		else
			CHECK_EQ(f.out_ns, i * 100 * MS + 10 * MS + trace[i % 3]);
	}
}

static void test_trace_lines(void)
{
	static const struct {
		const char *line;
		enum err e;
		int64_t ns;
	} rows[] = {
		{ "1.5ms\n", ERR_OK, 1500000 }, { " 0.25s \r\n", ERR_OK, 250 * MS }, { "2", ERR_OK, 2000 * MS }, { "17us", ERR_OK, 17000 },
		{ "123ns", ERR_OK, 123 }, { "0.000000001", ERR_OK, 1 }, { "0.0000000019", ERR_OK, 1 }, { "lost\n", ERR_OK, IMPAIRMENT_LOST },
		{ "", ERR_AGAIN, 0 }, { "  \n", ERR_AGAIN, 0 }, { "# said\n", ERR_AGAIN, 0 }, { "-1ms", ERR_FORMAT, 0 }, { "1 2", ERR_FORMAT, 0 },
		{ "lost it", ERR_FORMAT, 0 }, { "3601s", ERR_FORMAT, 0 }, { "3600", ERR_OK, 3600000 * MS }, { "1.2.3", ERR_FORMAT, 0 }, { "ms", ERR_FORMAT, 0 },
		{ "99999999999999999999999", ERR_FORMAT, 0 }, { "nan", ERR_FORMAT, 0 }, { "1e3", ERR_FORMAT, 0 }, { ".5ms", ERR_OK, 500000 },
		{ "3600.1s", ERR_FORMAT, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t ns = -1;
		enum err e = impairment_trace_line(rows[i].line, &ns);
		if (e != rows[i].e || (e == ERR_OK && ns != rows[i].ns))
			CHECK_FAIL("'%s': %d, %lld", rows[i].line, e, (long long)ns);
	}
}

/* ---- order and number ---- */

static void test_shares_of_order(void)
{
	struct impairment_config c = { .seed = 4, .reorder = 0.05, .reorder_by = 3, .duplicate = 0.1 };
	struct impairment m;
	struct impairment_fate f;
	uint64_t reordered = 0, doubled = 0;

	CHECK_OK(impairment_init(&m, &c, NULL));
	for (int i = 0; i < N; i++) {
		impairment_send(&m, i * MS, 1, &f);
		CHECK(f.behind == 0 || f.behind == 3);
		reordered += f.behind > 0;
		doubled += f.is_doubled;
	}
	CHECK_NEAR((double)reordered / N, 0.05, 5 * sqrt(0.05 * 0.95 / N));
	CHECK_NEAR((double)doubled / N, 0.1, 5 * sqrt(0.1 * 0.9 / N));
	CHECK_EQ(m.counts.reordered, reordered);
	CHECK_EQ(m.counts.duplicated, doubled);
}

static void test_nothing_is_nothing(void)
{
	struct impairment_config c = { .seed = 1 };
	struct impairment m;
	struct impairment_fate f;

	CHECK(impairment_is_nothing(&c));
	CHECK_OK(impairment_init(&m, &c, NULL));
	for (int i = 0; i < 1000; i++) {
		impairment_send(&m, i, 1, &f);
		CHECK_EQ(f.cause, IMPAIRMENT_ARRIVES);
		CHECK_EQ(f.out_ns, i);
		CHECK(!f.is_doubled && !f.behind);
	}
	/* Time that goes back is no time. */
	impairment_send(&m, 10, 1, &f);
	CHECK_EQ(f.out_ns, 999);
}

static void test_impossible_configs(void)
{
	static const struct impairment_config bad[] = {
		{ .loss = 1.01 }, { .loss = -0.1 }, { .duplicate = NAN }, { .delay_ns = -1 }, { .jitter_ns = IMPAIRMENT_MAX_DELAY_NS + 1 },
		{ .loss = 0.8, .burst_packets = 2 }, { .loss = 0.1, .burst_packets = 0.5 }, { .loss = 1, .burst_ns = 1 }, { .drift_ppb = 10000001 },
		{ .stall_ns = 2, .stall_every_ns = 1 },
	};
	struct impairment m;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err_why why = { 0 };
		CHECK_EQ(impairment_init(&m, &bad[i], &why), ERR_ARG);
		CHECK(why.reason[0]);
	}
}

/* ---- the same everywhere ---- */

static uint64_t digest(const struct impairment_config *c)
{
	struct impairment m;
	struct impairment_fate f;
	uint64_t hash = 0xcbf29ce484222325u;

	CHECK_OK(impairment_init(&m, c, NULL));
	for (int i = 0; i < N; i++) {
		impairment_send(&m, i * 5 * MS, 100 + (uint32_t)i % 7, &f);
		const uint64_t parts[] = { f.cause, (uint64_t)f.out_ns, (uint64_t)f.late_ns, f.is_doubled, (uint64_t)f.copy_ns, f.behind };
		for (size_t k = 0; k < ARRAY_LEN(parts); k++)
			hash = (hash ^ parts[k]) * 0x100000001b3u;
	}
	return hash;
}

static const struct impairment_config everything = {
	.seed = 7, .loss = 0.05, .burst_packets = 3, .lose_every = 1001, .delay_ns = 20 * MS, .jitter_ns = 4 * MS, .spikes = 0.02,
	.spike_ns = 6 * MS, .stall_ns = 25 * MS, .stall_every_ns = 3000 * MS, .reorder = 0.03, .duplicate = 0.01, .rate_bps = 200000,
	.queue_bytes = 4000, .overhead_bytes = 28, .drift_ppb = 80000, .is_virtual = true,
};

static void test_a_seed_is_a_fate(void)
{
	struct impairment_config c = everything;
	uint64_t first = digest(&c);

	printf("# digest %016llx\n", (unsigned long long)first);
	CHECK_EQ(digest(&c), first);
	/* What came out on the machine where this was written: another compiler or processor gives the same. */
	CHECK_EQ(first, 0xaefecc9c6793f8d7u);
	c.seed = 8;
	CHECK(digest(&c) != first);
}

/* What one effect does stays the same when others come to it. */
static void test_effects_do_not_meet(void)
{
	struct impairment_config only_loss = { .seed = 7, .loss = 0.05, .burst_packets = 3, .lose_every = 1001 };
	struct impairment_config no_loss = everything;
	struct impairment a, b;
	struct impairment_fate f, g;

	CHECK_OK(impairment_init(&a, &everything, NULL));
	CHECK_OK(impairment_init(&b, &only_loss, NULL));
	for (int i = 0; i < N; i++) {
		impairment_send(&a, i * 5 * MS, 10, &f);
		impairment_send(&b, i * 5 * MS, 10, &g);
		CHECK_EQ(f.cause == IMPAIRMENT_BY_CHANCE, g.cause == IMPAIRMENT_BY_CHANCE);
	}
	no_loss.loss = 0;
	no_loss.lose_every = 0;
	CHECK(digest(&no_loss) != digest(&everything));
}

/* ---- transit ---- */

static void test_transit_is_in_order(void)
{
	struct transit t;
	uint32_t slot;
	int64_t out_ns, last_ns = 0;

	CHECK_OK(transit_init(&t, 1000));
	check_seed(1);
	for (uint32_t i = 0; i < 1000; i++)
		CHECK(transit_put(&t, (int64_t)check_rand_below(300), i, 0, 0));
	CHECK(!transit_put(&t, 0, 0, 0, 0));
	uint32_t last_slot = 0, n = 0;
	CHECK(!transit_take(&t, -1, &slot, NULL));
	while (transit_take(&t, 1000, &slot, &out_ns)) {
		CHECK(out_ns > last_ns || (out_ns == last_ns && (slot > last_slot || n == 0)) || n == 0);
		last_ns = out_ns;
		last_slot = slot;
		n++;
	}
	CHECK_EQ(n, 1000);
	CHECK_EQ(transit_next_ns(&t), INT64_MAX);
	transit_release(&t);
	transit_release(&t);
}

static void take_all(struct transit *t, int64_t now_ns, char *out)
{
	uint32_t slot;

	while (transit_take(t, now_ns, &slot, NULL))
		*out++ = (char)('0' + slot);
	*out = 0;
}

static void test_transit_overtakes(void)
{
	struct transit t;
	char order[32];

	CHECK_OK(transit_init(&t, 16));
	/* 1 waits for two later ones, 4 for one. */
	for (uint32_t i = 0; i < 7; i++)
		CHECK(transit_put(&t, i * 10, i, i == 1 ? 2 : i == 4 ? 1 : 0, 1000));
	take_all(&t, 500, order);
	CHECK_STR(order, "0231546");
	/* The last one is not overtaken by anybody, and goes when its time is over. */
	CHECK(transit_put(&t, 100, 8, 3, 700));
	CHECK_EQ(transit_next_ns(&t), 700);
	take_all(&t, 699, order);
	CHECK_STR(order, "");
	take_all(&t, 700, order);
	CHECK_STR(order, "8");
	transit_release(&t);
}

int main(void)
{
	CHECK_RUN(test_random_is_xoshiro);
	CHECK_RUN(test_log);
	CHECK_RUN(test_moments);
	CHECK_RUN(test_random_loss);
	CHECK_RUN(test_bursts_of_packets);
	CHECK_RUN(test_outages_of_time);
	CHECK_RUN(test_every_nth);
	CHECK_RUN(test_delay_and_jitter);
	CHECK_RUN(test_spikes_and_stalls);
	CHECK_RUN(test_rate_and_queue);
	CHECK_RUN(test_drift);
	CHECK_RUN(test_trace);
	CHECK_RUN(test_trace_lines);
	CHECK_RUN(test_shares_of_order);
	CHECK_RUN(test_nothing_is_nothing);
	CHECK_RUN(test_impossible_configs);
	CHECK_RUN(test_a_seed_is_a_fate);
	CHECK_RUN(test_effects_do_not_meet);
	CHECK_RUN(test_transit_is_in_order);
	CHECK_RUN(test_transit_overtakes);
	return check_end();
}
