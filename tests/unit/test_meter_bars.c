/* Bars: what they show, and that they keep to every size of terminal. */
#include "meter_feed.h"

#include "base/heap.h"
#include "meter/bars.h"

#define MAX_LINES 300

/* The lines of a drawing without escape sequences, and their width; a continuation byte of UTF-8 has none. */
struct picture {
	char line[MAX_LINES][1024];
	unsigned width[MAX_LINES], n_lines, up, widest;
	bool cleared;
};

static void look(struct picture *p, const char *text)
{
	unsigned n = 0;
	memset(p, 0, sizeof(*p));
	for (const char *c = text; *c; c++) {
		if (*c == '\033') {
			unsigned number = 0;
			for (c += 2; (*c >= '0' && *c <= '9') || *c == ';'; c++)
				number = *c == ';' ? 0 : number * 10 + (unsigned)(*c - '0');
			if (*c == 'A')
				p->up = number;
			else if (*c == 'J' && number == 2)
				p->cleared = true;
			else if (!strchr("AHJKm", *c))
				CHECK_FAIL("unknown escape sequence %c", *c);
		} else if (*c == '\n') {
			p->widest = p->width[p->n_lines] > p->widest ? p->width[p->n_lines] : p->widest;
			p->n_lines++;
			n = 0;
		} else if (*c != '\r') {
			p->line[p->n_lines][n++] = *c;
			p->width[p->n_lines] += ((unsigned char)*c & 0xC0) != 0x80;
		}
	}
}

static struct picture picture;

static void draw(struct bars *b, struct meter *m, unsigned columns, unsigned rows, double now_s)
{
	CHECK_OK(bars_draw(b, &m, 1, columns, rows, now_s));
	look(&picture, b->text);
}

static unsigned count(const char *line, char c)
{
	unsigned n = 0;
	for (; *line; line++)
		n += *line == c;
	return n;
}

static void feed_level(struct meter_feed *f, double db, double seconds)
{
	struct meter_feed_sine sine = { 48000, 1000, { meter_feed_factor(db) }, true };
	meter_feed_add(f, llround(seconds * 48000), meter_feed_sine_at, &sine);
}

static void test_picture(void)
{
	struct meter_feed f;
	struct bars b;
	meter_feed_open(&f, 48000, 2);
	bars_init(&b, (struct bars_style){ .utf8 = false, .colour = false });
	feed_level(&f, -20, 4);
	draw(&b, &f.meter, 80, 24, 1);
	CHECK_EQ(picture.n_lines, 6);
	CHECK_EQ(picture.up, 0);
	CHECK_STR(picture.line[0], "1 0:00:04.0  I -20.0 LUFS  TP -20.0 dBTP  LRA 0.0 LU");
	CHECK(strncmp(picture.line[1], "FL    ####", 10) == 0);
	CHECK(strncmp(picture.line[2], "FR    ####", 10) == 0);
	CHECK(strstr(picture.line[1], "  -20.0   -20.0"));
	CHECK(strncmp(picture.line[3], "M     ####", 10) == 0);
	CHECK(strstr(picture.line[4], " -20.0 LUFS"));
	CHECK(strstr(picture.line[5], "-60") && strstr(picture.line[5], " -10 "));
	/* Two thirds of the way from -60 to 0: the mark stands on the end of the bar. */
	unsigned cells = count(picture.line[1], '#') + count(picture.line[1], '.') - 2 + count(picture.line[1], '|');
	CHECK_NEAR(count(picture.line[1], '#'), cells * 2.0 / 3, 1);
	CHECK_EQ(count(picture.line[1], '|'), 1);

	/* The next drawing goes over it. */
	draw(&b, &f.meter, 80, 24, 1.05);
	CHECK_EQ(picture.up, 6);
	CHECK_EQ(picture.n_lines, 6);
	CHECK(!picture.cleared);
	CHECK_OK(bars_clear(&b));
	look(&picture, b.text);
	CHECK_EQ(picture.up, 6);
	CHECK_EQ(picture.n_lines, 0);
	bars_release(&b);
	meter_feed_close(&f);
}

/* The bar falls by 20 dB a second, the mark stays for a second and a half and falls then. */
static void test_fall_and_hold(void)
{
	struct meter_feed f;
	struct bars b;
	meter_feed_open(&f, 48000, 2);
	bars_init(&b, (struct bars_style){ 0 });
	feed_level(&f, -6, 0.5);
	draw(&b, &f.meter, 80, 24, 1);
	CHECK_NEAR(b.channels[0].shown_db, -6, 0.01);
	feed_level(&f, -40, 0.5);
	draw(&b, &f.meter, 80, 24, 1.1);
	CHECK_NEAR(b.channels[0].shown_db, -8, 0.01);
	draw(&b, &f.meter, 80, 24, 2.4);
	CHECK_NEAR(b.channels[0].shown_db, -34, 0.01);
	CHECK_NEAR(b.channels[0].hold_db, -6, 0.01);
	draw(&b, &f.meter, 80, 24, 2.6);
	CHECK_NEAR(b.channels[0].hold_db, -10, 0.01);
	/* A gap of silence takes it below everything, and numbers with it. */
	draw(&b, &f.meter, 80, 24, 60);
	CHECK(strstr(picture.line[1], "     --    -6.0"));
	CHECK_EQ(count(picture.line[1], '#'), 0);
	CHECK_EQ(count(picture.line[1], '|'), 0);
	bars_release(&b);
	meter_feed_close(&f);
}

static double clipped_at(void *arg, int64_t n, unsigned c)
{
	(void)arg;
	return c == 1 && n % 100 == 0 ? -1.0 : 0.1;
}

static void test_over(void)
{
	struct meter_feed f;
	struct bars b;
	meter_feed_open(&f, 48000, 2);
	bars_init(&b, (struct bars_style){ 0 });
	meter_feed_add(&f, 300, clipped_at, NULL);
	draw(&b, &f.meter, 100, 24, 1);
	CHECK(!strstr(picture.line[1], "OVER"));
	CHECK(strstr(picture.line[2], " OVER 3"));
	draw(&b, &f.meter, 40, 24, 2);
	CHECK(!strstr(picture.line[1], "OVER"));
	CHECK(strstr(picture.line[2], " OVER"));
	bars_release(&b);
	meter_feed_close(&f);
}

/* Every size, all styles, a long name of wide characters, more channels than rows: never too wide, never too many lines. */
static void test_keeps_to_the_terminal(void)
{
	struct track t = track_pcm(48000, 40, SAMPLE_F32);
	t.id = 65534;
	CHECK_OK(track_set_name(&t, "\xe4\xb8\xad\xe6\x96\x87\xe5\x90\x8d name \x7f of a track that is rather long, longer than any line"));
	struct meter_feed f;
	meter_feed_open_track(&f, &t, NULL);
	feed_level(&f, 3, 4); /* over, everywhere */
	for (int style = 0; style < 4; style++) {
		struct bars b;
		bars_init(&b, (struct bars_style){ .utf8 = style & 1, .colour = style & 2 });
		unsigned lines = 0, last_columns = 0;
		for (unsigned columns = 1; columns <= 220; columns += columns < 100 ? 1 : 7) {
			for (unsigned rows = 1; rows <= 60; rows += rows < 5 ? 1 : 11) {
				draw(&b, &f.meter, columns, rows, columns);
				CHECK(picture.widest < columns || (columns == 1 && picture.widest == 0));
				CHECK(picture.n_lines < rows || rows == 1);
				CHECK_EQ(picture.n_lines, b.n_lines);
				if (lines && columns != last_columns)
					CHECK(picture.cleared);
				lines = b.n_lines;
				last_columns = columns;
			}
		}
		CHECK(lines > 40);
		bars_release(&b);
	}
	meter_feed_close(&f);
	track_release(&t);
}

static void test_no_allocation(void)
{
	struct meter_feed f;
	struct bars b;
	meter_feed_open(&f, 48000, 2);
	bars_init(&b, (struct bars_style){ .utf8 = true, .colour = true });
	feed_level(&f, -20, 1);
	struct meter *m = &f.meter;
	CHECK_OK(bars_draw(&b, &m, 1, 200, 50, 1));
	uint64_t before = heap_allocs();
	for (int i = 0; i < 100; i++)
		CHECK_OK(bars_draw(&b, &m, 1, 80 + (unsigned)i, 24, 1 + i * 0.05));
	CHECK_EQ(heap_allocs(), before);
	bars_release(&b);
	meter_feed_close(&f);
}

int main(void)
{
	CHECK_RUN(test_picture);
	CHECK_RUN(test_fall_and_hold);
	CHECK_RUN(test_over);
	CHECK_RUN(test_keeps_to_the_terminal);
	CHECK_RUN(test_no_allocation);
	return check_end();
}
