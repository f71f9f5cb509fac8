/* -t/--track: which tracks a list asks for. */
#include "check.h"

#include "tool/select.h"

static struct opt_list list_of(const char *a, const char *b)
{
	struct opt_list l = { .n = a ? b ? 2 : 1 : 0 };
	l.value[0] = a;
	l.value[1] = b;
	return l;
}

static struct track named(uint16_t id, uint8_t kind, const char *name)
{
	struct track t = { .id = id, .kind = kind };
	CHECK_EQ(track_set_name(&t, name), ERR_OK);
	return t;
}

static void test_match(void)
{
	struct track vocals = named(1, TRACK_AUDIO, "vocals"), cam = named(12, TRACK_VIDEO, "cam, left"), nameless = named(3, TRACK_TEXT, "");
	struct track seven = named(2, TRACK_AUDIO, "7");
	static const struct { const char *a, *b; bool vocals, cam, nameless, seven; } cases[] = {
		{ NULL, NULL, true, true, true, true },
		{ "1", NULL, true, false, false, false },
		{ "12,3", NULL, false, true, true, false },
		{ "3", "1", true, false, true, false },
		{ "vocals", NULL, true, false, false, false },
		{ "Vocals", NULL, false, false, false, false },
		{ "vocal", NULL, false, false, false, false },
		{ "audio", NULL, true, false, false, true },
		{ "video,text", NULL, false, true, true, false },
		{ "cam, left", NULL, false, true, false, false }, /* the whole value is a name with a comma in it */
		{ "7", NULL, false, false, false, false },        /* digits are a number, never a name */
		{ "002", NULL, false, false, false, true },
		{ "99999999999999999999", NULL, false, false, false, false },
	};
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct opt_list l = list_of(cases[i].a, cases[i].b);
		CHECK_EQ(select_match(&l, &vocals), cases[i].vocals);
		CHECK_EQ(select_match(&l, &cam), cases[i].cam);
		CHECK_EQ(select_match(&l, &nameless), cases[i].nameless);
		CHECK_EQ(select_match(&l, &seven), cases[i].seven);
	}
	track_release(&vocals);
	track_release(&cam);
	track_release(&nameless);
	track_release(&seven);
}

static void test_check(void)
{
	static const struct { const char *a; enum err e; } cases[] = {
		{ "1", ERR_OK }, { "65534", ERR_OK }, { "name,2,audio", ERR_OK }, { "0", ERR_ARG }, { "65535", ERR_ARG },
		{ "4294967297", ERR_ARG }, { "", ERR_ARG }, { "1,", ERR_ARG }, { ",1", ERR_ARG }, { "a,,b", ERR_ARG },
	};
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct opt_list l = list_of(cases[i].a, NULL);
		struct err_why why = { 0 };
		CHECK_EQ(select_check(&l, &why), cases[i].e);
		CHECK_EQ(why.reason[0] != 0, cases[i].e != ERR_OK);
	}
	char many[3 * SELECT_MAX_ITEMS] = "";
	for (unsigned i = 0; i < SELECT_MAX_ITEMS; i++)
		memcpy(many + 2 * i, "a,", 3);
	many[2 * SELECT_MAX_ITEMS - 1] = 0;
	struct opt_list l = list_of(many, NULL);
	CHECK_EQ(select_check(&l, NULL), ERR_OK);
	l = list_of(many, "b");
	CHECK_EQ(select_check(&l, NULL), ERR_ARG);
}

static void test_missing(void)
{
	struct track vocals = named(1, TRACK_AUDIO, "vocals"), drums = named(2, TRACK_AUDIO, "drums, all");
	struct select_hits hits = { 0 };
	char out[128];
	struct opt_list l = list_of("2,bass", "vocals");
	CHECK_STR(select_missing(&hits, &l, out), "2");
	select_note(&hits, &l, &drums);
	CHECK_STR(select_missing(&hits, &l, out), "bass");
	select_note(&hits, &l, &vocals);
	CHECK_STR(select_missing(&hits, &l, out), "bass");

	hits = (struct select_hits){ 0 };
	l = list_of("drums, all", "audio");
	select_note(&hits, &l, &vocals);
	CHECK_STR(select_missing(&hits, &l, out), "drums");
	select_note(&hits, &l, &drums);
	CHECK(!select_missing(&hits, &l, out));

	l = list_of(NULL, NULL);
	CHECK(!select_missing(&hits, &l, out));
	track_release(&vocals);
	track_release(&drums);
}

int main(void)
{
	CHECK_RUN(test_match);
	CHECK_RUN(test_check);
	CHECK_RUN(test_missing);
	return check_end();
}
