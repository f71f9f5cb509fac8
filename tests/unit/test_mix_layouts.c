/* Layouts: the tables of ITU-R BS.775, what they leave open, and pan laws. */
#include "check.h"

#include "mix/layouts.h"

#define MASK_51 0x3fu     /* FL FR FC LFE BL BR */
#define MASK_51_SIDE 0x60fu
#define MASK_71 0x63fu
#define HALF_POWER 0.70710678118654752

static void same(const double *got, const double *wanted, size_t n, const char *what)
{
	for (size_t k = 0; k < n; k++)
		if (fabs(got[k] - wanted[k]) > 1e-15)
			CHECK_FAIL("%s: coefficient %zu is %.17g, not %.17g", what, k, got[k], wanted[k]);
}

static void test_bs775(void)
{
	const double stereo[12] = { 1, 0, HALF_POWER, 0, HALF_POWER, 0, 0, 1, HALF_POWER, 0, 0, HALF_POWER };
	const double mono[6] = { HALF_POWER, HALF_POWER, 1, 0, 0.5, 0.5 };
	double m[64];

	CHECK_OK(layouts_matrix(m, 2, 3, 6, MASK_51));
	same(m, stereo, 12, "5.1 to stereo");
	CHECK_OK(layouts_matrix(m, 2, 3, 6, MASK_51_SIDE));
	same(m, stereo, 12, "5.1 with sides to stereo");
	CHECK_OK(layouts_matrix(m, 1, 4, 6, MASK_51));
	same(m, mono, 6, "5.1 to mono");
	CHECK_OK(layouts_matrix(m, 1, 4, 2, 3));
	same(m, mono, 2, "stereo to mono");
}

static void test_up_and_across(void)
{
	double m[64];
	const double both[2] = { 1, 1 };
	CHECK_OK(layouts_matrix(m, 2, 3, 1, 4));
	same(m, both, 2, "mono to stereo");

	/* Stereo into 5.1: left and right, nothing else; mono is its centre. */
	CHECK_OK(layouts_matrix(m, 6, MASK_51, 2, 3));
	for (unsigned o = 0; o < 6; o++)
		for (unsigned i = 0; i < 2; i++)
			CHECK(m[o * 2 + i] == (o == i ? 1 : 0));
	CHECK_OK(layouts_matrix(m, 6, MASK_51, 1, 4));
	for (unsigned o = 0; o < 6; o++)
		CHECK(m[o] == (o == 2 ? 1 : 0));

	/* 7.1 into 5.1 with backs: the sides join the backs, LFE stays. */
	CHECK_OK(layouts_matrix(m, 6, MASK_51, 8, MASK_71));
	for (unsigned i = 0; i < 8; i++) {
		unsigned to = i < 6 ? i : i - 2;
		for (unsigned o = 0; o < 6; o++)
			CHECK(m[o * 8 + i] == (o == to ? 1 : 0));
	}
	/* Backs and sides are each other's places. */
	CHECK_OK(layouts_matrix(m, 6, MASK_51, 6, MASK_51_SIDE));
	for (unsigned k = 0; k < 36; k++)
		CHECK(m[k] == (k % 7 == 0 ? 1 : 0));
}

/* Constant power: what any channel of any layout gives to any layout with FL and FR is at most itself, and not nothing. */
static void test_nothing_is_lost(void)
{
	static const struct {
		unsigned channels;
		uint64_t mask;
	} outs[] = { { 1, 4 }, { 2, 3 }, { 3, 7 }, { 4, 0x33 }, { 5, 0x37 }, { 6, MASK_51 }, { 6, MASK_51_SIDE }, { 8, MASK_71 } };
	double m[18 * 18];

	for (size_t k = 0; k < ARRAY_LEN(outs); k++) {
		/* 18 channels, each place of the mask. */
		CHECK_OK(layouts_matrix(m, outs[k].channels, outs[k].mask, 18, 0x3ffff));
		for (unsigned i = 0; i < 18; i++) {
			double power = 0;
			for (unsigned o = 0; o < outs[k].channels; o++)
				power += m[o * 18 + i] * m[o * 18 + i];
			bool lfe_lost = i == 3 && !(outs[k].mask & 8);
			if (lfe_lost ? power != 0 : power < 0.0624 || power > 1.0 + 1e-12)
				CHECK_FAIL("place %u into mask %#llx: power %g", i, (unsigned long long)outs[k].mask, power);
		}
	}
}

static void test_without_masks(void)
{
	double m[600];
	CHECK_OK(layouts_matrix(m, 12, 0, 10, 0));
	for (unsigned o = 0; o < 12; o++)
		for (unsigned i = 0; i < 10; i++)
			CHECK(m[o * 10 + i] == (o == i ? 1 : 0));
	CHECK_EQ(layouts_matrix(m, 2, 3, 12, 0), ERR_ARG);

	struct track t = track_pcm(48000, 6, SAMPLE_S16);
	CHECK_EQ(layouts_mask(&t), MASK_51);
	t.layout = TRACK_LAYOUT_WAVE;
	t.wave_mask = MASK_51_SIDE;
	CHECK_EQ(layouts_mask(&t), MASK_51_SIDE);
	t.wave_mask = 1; /* does not name 6 channels */
	CHECK_EQ(layouts_mask(&t), MASK_51);
	t = track_pcm(48000, 12, SAMPLE_S16);
	CHECK_EQ(layouts_mask(&t), 0);
}

static void test_pan(void)
{
	double m[4];
	layouts_pan(m, 1, 0);
	CHECK_NEAR(m[0], HALF_POWER, 1e-15);
	CHECK_NEAR(m[1], HALF_POWER, 1e-15);
	layouts_pan(m, 1, -1);
	CHECK(m[0] == 1 && m[1] == 0);
	layouts_pan(m, 1, 1);
	CHECK(m[0] == 0 && m[1] == 1);
	layouts_pan(m, 2, 0);
	CHECK(m[0] == 1 && m[1] == 0 && m[2] == 0 && m[3] == 1);
	layouts_pan(m, 2, -1);
	CHECK(m[0] == 1 && m[1] == 1 && m[2] == 0 && m[3] == 0);
	layouts_pan(m, 2, 1);
	CHECK(m[0] == 0 && m[1] == 0 && m[2] == 1 && m[3] == 1);
	for (double p = -1; p <= 1; p += 0.01) {
		layouts_pan(m, 1, p);
		CHECK_NEAR(m[0] * m[0] + m[1] * m[1], 1, 1e-12);
		layouts_pan(m, 2, p);
		/* Each input keeps its power. */
		CHECK_NEAR(m[0] * m[0] + m[2] * m[2], 1, 1e-12);
		CHECK_NEAR(m[1] * m[1] + m[3] * m[3], 1, 1e-12);
	}
}

int main(void)
{
	CHECK_RUN(test_bs775);
	CHECK_RUN(test_up_and_across);
	CHECK_RUN(test_nothing_is_lost);
	CHECK_RUN(test_without_masks);
	CHECK_RUN(test_pan);
	return check_end();
}
