/* Linear prediction goes on with what is regular, stays bounded, and has nothing to say about silence. */
#include "check.h"

#include "dsp/predict.h"

static void test_tones_go_on(void)
{
	float past[1000], next[3000];

	for (unsigned i = 0; i < 1000; i++)
		past[i] = 0.4f * (float)sin(0.13 * i + 1) + 0.2f * (float)sin(0.71 * i);
	predict_extend(past, 1000, next, 480);
	for (unsigned i = 0; i < 480; i++)
		CHECK_NEAR(next[i], 0.4 * sin(0.13 * (1000 + i) + 1) + 0.2 * sin(0.71 * (1000 + i)), 0.02);
}

static void test_noise_stays_bounded(void)
{
	float past[2000], next[4000];

	for (unsigned i = 0; i < 2000; i++)
		past[i] = (float)check_rand_below(2001) / 1000 - 1;
	for (unsigned n_past = 1; n_past < 2000; n_past += 37) {
		predict_extend(past, n_past, next, 4000);
		for (unsigned i = 0; i < 4000; i++)
			if (!CHECK(fabsf(next[i]) < 2))
				return;
	}
}

static void test_silence_and_nothing(void)
{
	float past[500] = { 0 }, next[50], constant[500];

	memset(next, 1, sizeof(next));
	predict_extend(past, 500, next, 50);
	for (unsigned i = 0; i < 50; i++)
		CHECK_EQ(next[i], 0);
	memset(next, 1, sizeof(next));
	predict_extend(past, 0, next, 50);
	for (unsigned i = 0; i < 50; i++)
		CHECK_EQ(next[i], 0);
	for (unsigned i = 0; i < 500; i++)
		constant[i] = 0.25f;
	predict_extend(constant, 500, next, 50);
	for (unsigned i = 0; i < 50; i++)
		CHECK_NEAR(next[i], 0.25, 1e-3);
}

int main(void)
{
	check_seed(5);
	CHECK_RUN(test_tones_go_on);
	CHECK_RUN(test_noise_stays_bounded);
	CHECK_RUN(test_silence_and_nothing);
	return check_end();
}
