/* When a take begins and ends: to the frame, against a model that looks at one frame after the other. */
#include "check.h"

#include "stage/levelgate.h"

#include <math.h>

#define MAX_EVENTS 4096

struct event { int what; int64_t pos; };
struct run { struct event events[MAX_EVENTS]; unsigned n; };

static uint64_t seed;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % n);
}

static void note(struct run *r, int what, int64_t pos)
{
	if (CHECK(r->n < MAX_EVENTS))
		r->events[r->n++] = (struct event){ what, pos };
}

static void drain(struct levelgate *g, struct run *r)
{
	enum levelgate_event what;
	int64_t pos;

	while ((what = levelgate_decide(g, &pos)) != LEVELGATE_NOTHING)
		note(r, (int)what, pos);
}

/* The definition, frame by frame: peaks[i] of frame i, which lies at first + i. */
static void model(struct run *r, const float *peaks, size_t n, int64_t first, float start, float stop, int64_t hold, int64_t preroll)
{
	bool open = false;
	int64_t floor_pos = first, quiet = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t pos = first + (int64_t)i;
		if (!open) {
			if (peaks[i] > start) {
				note(r, LEVELGATE_BEGIN, pos - preroll > floor_pos ? pos - preroll : floor_pos);
				open = true;
				quiet = 0;
			}
			continue;
		}
		quiet = peaks[i] < stop ? quiet + 1 : 0;
		if (quiet == hold) {
			note(r, LEVELGATE_END, pos + 1);
			floor_pos = pos + 1;
			open = false;
		}
	}
}

static struct opt_time smp(int64_t n)
{
	return (struct opt_time){ .is_set = true, .is_frames = true, .value = n };
}

static void check_same(const struct run *got, const struct run *want)
{
	CHECK_EQ(got->n, want->n);
	for (unsigned i = 0; i < got->n && i < want->n; i++) {
		CHECK_EQ(got->events[i].what, want->events[i].what);
		CHECK_EQ(got->events[i].pos, want->events[i].pos);
	}
}

/* Bursts and silences of random lengths, with levels around the two of the gate. */
static void make_signal(float *x, float *peaks, size_t n, unsigned channels)
{
	static const float levels[] = { 0, 0.0005f, 0.0021f, 0.0031f, 0.0057f, 0.1f, 1.5f };
	size_t left = 0;
	float level = 0;

	for (size_t i = 0; i < n; i++) {
		if (left-- == 0) {
			level = levels[random_below(ARRAY_LEN(levels))];
			left = random_below(3) ? random_below(40) : random_below(4000);
		}
		peaks[i] = 0;
		for (unsigned c = 0; c < channels; c++) {
			float v = level * (float)random_below(1000) / 999;
			x[i * channels + c] = random_below(2) ? v : -v;
			if (v > peaks[i])
				peaks[i] = v;
		}
	}
}

static void test_random(void)
{
	enum { N = 30000 };
	static float x[N * 3], peaks[N];
	static struct run got, want;

	for (unsigned k = 0; k < 200; k++) {
		unsigned channels = 1 + random_below(3), i;
		int64_t hold = 1 + random_below(k % 3 ? 600 : 6), preroll = random_below(500), first = (int64_t)random_below(100000) - 50000;
		struct levelgate g;
		struct levelgate_options o = {
			.start_db = -45, .stop_db = -50, .has_stop = true, .hold = smp(hold), .preroll = smp(preroll),
		};
		make_signal(x, peaks, N, channels);
		got.n = want.n = 0;
		levelgate_init(&g, &o);
		if (!CHECK_OK(levelgate_add(&g, 48000, 1, channels, 4096, &i)))
			return;
		for (size_t at = 0; at < N;) {
			size_t n = 1 + random_below(random_below(2) ? 2000 : 70);
			n = n < N - at ? n : N - at;
			CHECK(levelgate_room(&g, i) >= n);
			levelgate_hear(&g, i, first + (int64_t)at, x + at * channels, n);
			drain(&g, &got);
			at += n;
			CHECK_EQ(levelgate_decided(&g, i), first + (int64_t)at);
		}
		model(&want, peaks, N, first, powf(10, -45 / 20.0f), powf(10, -50 / 20.0f), hold, preroll);
		check_same(&got, &want);
		CHECK(want.n > 4);
		levelgate_release(&g);
	}
}

/* The same frames as three members of one gate that come in another order, and as one member with three channels. */
static void test_members(void)
{
	enum { N = 30000 };
	static float x[N * 3], peaks[N], one[N];
	static struct run got, want;

	for (unsigned k = 0; k < 50; k++) {
		struct levelgate g;
		struct levelgate_options o = { .start_db = -45, .stop_db = -50, .has_stop = true, .hold = smp(300), .preroll = smp(100) };
		size_t at[3] = { 0 };
		unsigned id[3];
		make_signal(x, peaks, N, 3);
		got.n = want.n = 0;
		levelgate_init(&g, &o);
		for (unsigned m = 0; m < 3; m++)
			CHECK_OK(levelgate_add(&g, 48000, 1, 1, 4096, &id[m]));
		while (at[0] < N || at[1] < N || at[2] < N) {
			unsigned m = random_below(3);
			size_t n = 1 + random_below(900);
			if (n > N - at[m])
				n = N - at[m];
			if (n > levelgate_room(&g, id[m]))
				n = levelgate_room(&g, id[m]);
			if (!n)
				continue;
			for (size_t i = 0; i < n; i++)
				one[i] = x[(at[m] + i) * 3 + m];
			levelgate_hear(&g, id[m], (int64_t)at[m], one, n);
			at[m] += n;
			drain(&g, &got);
		}
		model(&want, peaks, N, 0, powf(10, -45 / 20.0f), powf(10, -50 / 20.0f), 300, 100);
		check_same(&got, &want);
		levelgate_release(&g);
	}
}

/* Two members of different rates: the frame that opens it is in the file of both. */
static void test_rates(void)
{
	static float zeros[48000], loud[10] = { 1 };
	static struct run got;
	struct levelgate g;
	struct levelgate_options o = { .start_db = -20, .stop_db = -20, .has_stop = true, .hold = { .is_set = true, .value = 100000000 } };
	unsigned a, b;

	levelgate_init(&g, &o);
	CHECK_OK(levelgate_add(&g, 48000, 1, 1, 8192, &a));
	CHECK_OK(levelgate_add(&g, 44100, 1, 1, 8192, &b));
	CHECK_EQ(g.hold_frames, 4800);
	levelgate_hear(&g, a, 0, zeros, 8000);
	levelgate_hear(&g, b, 0, zeros, 4409);
	drain(&g, &got);
	CHECK_EQ(got.n, 0);
	/* Frame 4409 of 44.1 kHz is at 4798.9 of 48 kHz: in frame 4798. */
	levelgate_hear(&g, b, 0, loud, 1);
	levelgate_hear(&g, b, 0, zeros, 3000);
	drain(&g, &got);
	CHECK_EQ(got.n, 1);
	CHECK_EQ(got.events[0].what, LEVELGATE_BEGIN);
	CHECK_EQ(got.events[0].pos, 4798);
	CHECK_EQ(levelgate_place(&g, b, 4798), 4409);
	/* b says no more: it is passed by, and a alone closes the gate. */
	levelgate_hear(&g, a, 0, zeros, levelgate_room(&g, a));
	drain(&g, &got);
	CHECK_EQ(got.n, 1);
	levelgate_pass(&g);
	drain(&g, &got);
	CHECK_EQ(got.n, 2);
	CHECK_EQ(got.events[1].what, LEVELGATE_END);
	CHECK_EQ(got.events[1].pos, 4799 + 4800);
	levelgate_release(&g);
}

/* Levels themselves: equal is neither above nor below; NaN is nothing, infinity is loud; the last frames count. */
static void test_levels(void)
{
	static struct run got;
	struct levelgate g;
	struct levelgate_options o = { .start_db = 0, .stop_db = 0, .has_stop = true, .hold = smp(3), .preroll = smp(0) };
	float x[12] = { 1, -1, NAN, 0.99f, 0, 0, 1.01f, 1, 0, 0, 0, -INFINITY };
	unsigned i;

	levelgate_init(&g, &o);
	CHECK_OK(levelgate_add(&g, 48000, 1, 1, 100, &i));
	levelgate_hear(&g, i, 5, x, 12);
	drain(&g, &got);
	CHECK_EQ(got.n, 3);
	CHECK_EQ(got.events[0].pos, 11);
	CHECK_EQ(got.events[1].what, LEVELGATE_END);
	CHECK_EQ(got.events[1].pos, 16);
	CHECK_EQ(got.events[2].pos, 16);
	CHECK(g.is_open);
	CHECK_EQ(levelgate_last(&g), 17);
	/* The timeline moves while it is open: the hold goes on counting what there is. */
	levelgate_hear_nothing(&g, i, 0, 2);
	drain(&g, &got);
	levelgate_move(&g, i, 1000);
	CHECK(g.is_open);
	levelgate_hear_nothing(&g, i, 0, 2);
	drain(&g, &got);
	CHECK_EQ(got.n, 4);
	CHECK_EQ(got.events[3].pos, 1001);
	levelgate_release(&g);

	/* Without a stop it stays open. */
	o.has_stop = false;
	got.n = 0;
	levelgate_init(&g, &o);
	CHECK_OK(levelgate_add(&g, 48000, 1, 1, 100, &i));
	levelgate_hear(&g, i, 0, &x[6], 1);
	for (unsigned k = 0; k < 1000; k++) {
		levelgate_hear_nothing(&g, i, 0, 100);
		drain(&g, &got);
	}
	CHECK_EQ(got.n, 1);
	CHECK(g.is_open);
	levelgate_release(&g);
}

/* A member that has ended and is heard again counts again: nothing is decided beyond it. */
static void test_comes_again(void)
{
	static const float quiet[64], loud[1] = { 1 };
	struct levelgate g;
	struct levelgate_options o = { .start_db = -20, .preroll = { .is_set = true, .is_frames = true } };
	struct run got = { .n = 0 };
	unsigned a, b;

	levelgate_init(&g, &o);
	if (!CHECK(levelgate_add(&g, 48000, 1, 1, 1024, &a) == ERR_OK && levelgate_add(&g, 48000, 1, 1, 1024, &b) == ERR_OK))
		return;
	levelgate_hear(&g, a, 0, quiet, 10);
	levelgate_end(&g, a);
	levelgate_hear(&g, b, 0, quiet, 64);
	drain(&g, &got);
	CHECK_EQ(levelgate_decided(&g, b), 64);
	levelgate_hear_nothing(&g, a, 10, 60);
	levelgate_hear(&g, b, 64, quiet, 64);
	drain(&g, &got);
	CHECK_EQ(levelgate_decided(&g, b), 70);
	levelgate_hear(&g, a, 70, loud, 1);
	drain(&g, &got);
	CHECK_EQ(got.n, 1);
	CHECK_EQ(got.events[0].pos, 70);
	levelgate_release(&g);
}

int main(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20260102;
	printf("# seed %llu\n", (unsigned long long)seed);
	CHECK_RUN(test_levels);
	CHECK_RUN(test_random);
	CHECK_RUN(test_members);
	CHECK_RUN(test_rates);
	CHECK_RUN(test_comes_again);
	return check_end();
}
