/* base/err: the line for a person, cut to fit, and the statuses' texts. */
#include "check.h"

#include "base/err.h"

#include <errno.h>

static void test_say_fills_the_line(void)
{
	struct err_why why = {.sys_errno = 7};
	CHECK_EQ(err_say(&why, ERR_LIMIT, "--rate", "'%d': accepted is %d to %d", 0, 1, 9), ERR_LIMIT);
	CHECK_EQ(why.err, ERR_LIMIT);
	CHECK_EQ(why.sys_errno, 0);
	CHECK_STR(why.thing, "--rate");
	CHECK_STR(why.reason, "'0': accepted is 1 to 9");
}

static void test_say_without_a_place_for_it(void)
{
	CHECK_EQ(err_say(NULL, ERR_CODEC, "x", "y"), ERR_CODEC);
	errno = EIO;
	CHECK_EQ(err_sys(NULL, "x"), ERR_SYS);
}

static void test_long_words_are_cut(void)
{
	struct err_why why = {0};
	char thing[1000];
	memset(thing, 'a', sizeof(thing) - 1);
	thing[sizeof(thing) - 1] = 0;
	CHECK_EQ(err_say(&why, ERR_ARG, thing, "%s%s", thing, thing), ERR_ARG);
	CHECK_EQ(strlen(why.thing), sizeof(why.thing) - 1);
	CHECK_EQ(strlen(why.reason), sizeof(why.reason) - 1);
}

static void test_sys_maps_errno(void)
{
	static const struct { int sys_errno; enum err err; } rows[] = {
		{ENOMEM, ERR_NOMEM}, {EPIPE, ERR_GONE}, {ENOENT, ERR_SYS}, {ENOSPC, ERR_SYS},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err_why why = {0};
		errno = rows[i].sys_errno;
		CHECK_EQ(err_sys(&why, "file"), rows[i].err);
		CHECK_EQ(errno, rows[i].sys_errno);
		CHECK_EQ(why.err, rows[i].err);
		CHECK_EQ(why.sys_errno, rows[i].sys_errno);
		CHECK_STR(why.thing, "file");
		CHECK_STR(why.reason, strerror(rows[i].sys_errno));
	}
}

static void test_every_status_has_a_text_of_its_own(void)
{
	const char *unknown = err_text((enum err)1000);
	CHECK(unknown && *unknown);
	for (int e = ERR_OK; e <= ERR_GONE; e++) {
		CHECK(strcmp(err_text((enum err)e), unknown) != 0);
		for (int other = ERR_OK; other < e; other++)
			CHECK(strcmp(err_text((enum err)e), err_text((enum err)other)) != 0);
	}
}

int main(void)
{
	CHECK_RUN(test_say_fills_the_line);
	CHECK_RUN(test_say_without_a_place_for_it);
	CHECK_RUN(test_long_words_are_cut);
	CHECK_RUN(test_sys_maps_errno);
	CHECK_RUN(test_every_status_has_a_text_of_its_own);
	return check_end();
}
