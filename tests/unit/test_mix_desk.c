/* The desk's words, and matrices from text. */
#include "check.h"

#include "base/units.h"
#include "stage/desk.h"
#include "stage/matrixfile.h"

#include <unistd.h>

static struct desk desk;
static char reply[4096];

static bool says(const char *line, const char *wanted)
{
	bool changes;
	desk_command(&desk, line, reply, sizeof(reply), &changes);
	CHECK_STR(reply, wanted);
	return changes;
}

static void begin(void)
{
	desk_release(&desk);
	desk_init(&desk);
	CHECK_OK(desk_join(&desk, "voice"));
	CHECK_OK(desk_join(&desk, "the piano"));
	CHECK_OK(desk_join(&desk, "bass"));
}

static void test_commands(void)
{
	begin();
	CHECK(says("gain 2 -6dB", "ok\n"));
	CHECK_NEAR(desk_gain(&desk, 1), 0.50118723362727, 1e-12);
	CHECK(says("  gain\tvoice 0.5\r", "ok\n"));
	CHECK_NEAR(desk_gain(&desk, 0), 0.5, 1e-12);
	CHECK(says("pan 3 0.3", "ok\n"));
	CHECK(desk.tracks[2].is_panned && desk.tracks[2].pan == 0.3 && !desk.tracks[1].is_panned);
	CHECK(says("mute 2 bass", "ok\n"));
	CHECK(desk_gain(&desk, 1) == 0 && desk_gain(&desk, 2) == 0 && desk_gain(&desk, 0) > 0);
	CHECK(says("solo 3", "ok\n"));
	CHECK(desk_gain(&desk, 0) == 0 && desk_gain(&desk, 2) == 0);
	CHECK(says("unmute", "ok\n"));
	CHECK(desk_gain(&desk, 2) == 1 && desk_gain(&desk, 0) == 0);
	CHECK(!says("list", "1\tvoice\tgain -6.02dB\n2\tthe piano\tgain -6.00dB\n3\tbass\tgain 0.00dB\tpan 0.3\tsolo\n"));
	CHECK(says("solo 3", "ok\n"));
	CHECK_EQ(desk.n_solo, 1);
	CHECK(says("unsolo", "ok\n"));
	CHECK_EQ(desk.n_solo, 0);
	CHECK(desk_gain(&desk, 0) > 0);
	CHECK(says("gain 0", "ok\n"));
	CHECK(desk_gain(&desk, 0) == 0 && desk_gain(&desk, 1) == 0);
	/* Who joins gets what was said to all, but for solo. */
	CHECK(says("gain -20dB", "ok\n"));
	CHECK(says("solo", "ok\n"));
	CHECK_OK(desk_join(&desk, "late"));
	CHECK(desk_gain(&desk, 3) == 0);
	CHECK(says("unsolo", "ok\n"));
	CHECK_NEAR(desk_gain(&desk, 3), 0.1, 1e-12);
}

/* A name that several have is all of them; a number is one. */
static void test_one_name_of_two(void)
{
	struct err_why why = { 0 };
	begin();
	CHECK_OK(desk_join(&desk, "voice"));
	CHECK_OK(desk_option(&desk, "gain", "-g", "voice=0.5", &why));
	CHECK_NEAR(desk_gain(&desk, 0), 0.5, 1e-12);
	CHECK_NEAR(desk_gain(&desk, 1), 1, 0);
	CHECK_NEAR(desk_gain(&desk, 2), 1, 0);
	CHECK_NEAR(desk_gain(&desk, 3), 0.5, 1e-12);
	CHECK_OK(desk_option(&desk, "gain", "-g", "4=0.25", &why));
	CHECK_NEAR(desk_gain(&desk, 0), 0.5, 1e-12);
	CHECK_NEAR(desk_gain(&desk, 3), 0.25, 1e-12);
	CHECK_OK(desk_option(&desk, "pan", "--pan", "voice=-1", &why));
	CHECK(desk.tracks[0].pan == -1 && desk.tracks[3].pan == -1 && !desk.tracks[1].is_panned);
	CHECK(says("gain voice 1", "ok\n"));
	CHECK(desk_gain(&desk, 0) == 1 && desk_gain(&desk, 3) == 1);
	CHECK(says("solo voice", "ok\n"));
	CHECK_EQ(desk.n_solo, 2);
	CHECK(desk_gain(&desk, 0) == 1 && desk_gain(&desk, 1) == 0 && desk_gain(&desk, 3) == 1);
	CHECK(says("unsolo 1 voice", "ok\n"));
	CHECK_EQ(desk.n_solo, 0);
	CHECK(says("mute voice", "ok\n"));
	CHECK(desk_gain(&desk, 0) == 0 && desk_gain(&desk, 2) == 1 && desk_gain(&desk, 3) == 0);
}

/* No level at all: minus infinity is silence. */
static void test_minus_infinity(void)
{
	static const char *const spelled[] = { "-inf", "-infdB", "-INF", "-infdb" };
	struct err_why why = { 0 };
	char text[32];
	for (size_t i = 0; i < ARRAY_LEN(spelled); i++) {
		begin();
		snprintf(text, sizeof(text), "2=%s", spelled[i]);
		CHECK_OK(desk_check_option("gain", "-g", text, &why));
		CHECK_OK(desk_option(&desk, "gain", "-g", text, &why));
		CHECK(desk_gain(&desk, 1) == 0 && desk_gain(&desk, 0) == 1);
		snprintf(text, sizeof(text), "gain 1 %s", spelled[i]);
		CHECK(says(text, "ok\n"));
		CHECK(desk_gain(&desk, 0) == 0);
	}
	static const char *const wrong[] = { "inf", "+inf", "infdB", "-infinity", "-infdBx", "nan", "-nan", "-in" };
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		if (desk_check_option("gain", "-g", wrong[i], &why) != ERR_ARG)
			CHECK_FAIL("'%s' is taken for a level", wrong[i]);
}

static void test_mistakes(void)
{
	begin();
	CHECK(!says("", ""));
	CHECK(!says("   ", ""));
	CHECK(!says("gain 4 1", "error: no track 4 (1 to 3, or a name)\n"));
	CHECK(!says("gain 0 1", "error: no track 0 (1 to 3, or a name)\n"));
	CHECK(!says("gain -1 1", "error: no track -1 (1 to 3, or a name)\n"));
	CHECK(!says("gain 99999999999999999999999 1", "error: no track 99999999999999999999999 (1 to 3, or a name)\n"));
	CHECK(!says("gain", "error: gain [TRACK] LEVEL\n"));
	CHECK(!says("pan 1 2 3", "error: pan [TRACK] -1..1\n"));
	CHECK(!says("pan 1 1.1", "error: '1.1' is not a number from -1 to 1\n"));
	CHECK(!says("mute 2 nobody", "error: no track nobody (1 to 3, or a name)\n"));
	CHECK(!desk.tracks[1].mute);
	CHECK(!says("volume 2 1", "error: 'volume' is not one of gain, pan, mute, unmute, solo, unsolo, list\n"));
	char line[3000];
	memset(line, 'a', sizeof(line));
	line[sizeof(line) - 1] = 0;
	CHECK(!says(line, "error: the line is too long\n"));
	/* An answer that does not fit is cut. */
	char small[10];
	bool changes;
	desk_command(&desk, "list", small, sizeof(small), &changes);
	CHECK_EQ(strlen(small), 9);
}

static void test_options(void)
{
	struct err_why why = { 0 };
	begin();
	CHECK_OK(desk_option(&desk, "gain", "-g", "2=-20dB", &why));
	CHECK_OK(desk_option(&desk, "gain", "-g", "the piano=0.25", &why));
	CHECK_NEAR(desk.tracks[1].gain, 0.25, 1e-12);
	CHECK_OK(desk_option(&desk, "pan", "--pan", "-0.5", &why));
	CHECK(desk.tracks[0].pan == -0.5 && desk.tracks[2].is_panned);
	CHECK_EQ(desk_option(&desk, "gain", "-g", "9=1", &why), ERR_ARG);
	CHECK_OK(desk_check_option("gain", "-g", "9=1", &why));
	CHECK_EQ(desk_check_option("gain", "-g", "=1", &why), ERR_ARG);
	CHECK_EQ(desk_check_option("gain", "-g", "a=b", &why), ERR_ARG);
	CHECK_EQ(desk_check_option("pan", "--pan", "1=2", &why), ERR_ARG);
}

static enum err read_text(const char *text, struct matrixfile *m, struct err_why *why)
{
	FILE *f = fopen("matrix.txt", "w");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
	memset(why, 0, sizeof(*why));
	enum err e = matrixfile_read(m, "matrix.txt", why);
	unlink("matrix.txt");
	return e;
}

static void test_matrix(void)
{
	struct matrixfile m;
	struct err_why why;
	const double want[6] = { 1, 0.5, -1, 0, 0.1, 0.25 };

	CHECK_OK(read_text("# comment\n\n1 0.5\t-1 # three\n  0, -20dB; 0.25\n", &m, &why));
	CHECK(m.rows == 2 && m.columns == 3);
	for (unsigned k = 0; k < 6; k++)
		CHECK_NEAR(m.coef[k], want[k], 1e-12);
	matrixfile_release(&m);
	matrixfile_release(&m);
	CHECK_EQ(read_text("", &m, &why), ERR_FORMAT);
	CHECK_EQ(read_text("1 2\n3\n", &m, &why), ERR_FORMAT);
	CHECK_STR(why.reason, "line 2 has 1 numbers, the lines before have 2");
	CHECK_EQ(read_text("1 x\n", &m, &why), ERR_FORMAT);
	CHECK_EQ(matrixfile_read(&m, "nowhere.txt", &why), ERR_SYS);
}

int main(void)
{
	CHECK_RUN(test_commands);
	CHECK_RUN(test_one_name_of_two);
	CHECK_RUN(test_minus_infinity);
	CHECK_RUN(test_mistakes);
	CHECK_RUN(test_options);
	CHECK_RUN(test_matrix);
	desk_release(&desk);
	return check_end();
}
