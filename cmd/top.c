/* top: the running tools of the user in the terminal, in pipeline order, with what they count about themselves. */
#include "base/units.h"
#include "rt/clock.h"
#include "rt/wake.h"
#include "tool/stats.h"
#include "tool/tool.h"
#include "stage/toplist.h"
#include "stage/topview.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RATES_NS (UNITS_NS_PER_S / 2) /* a snapshot's rates are those of so long a while */

struct top {
	struct tool tool;
	struct stats stats;
	struct opt_time interval;
	bool once, json;
	struct toplist list;
	struct topview_screen screen;
	struct err_why why;
};

/* Two looks, since a rate needs two numbers. */
static enum err snapshot(struct top *t)
{
	enum err e = toplist_update(&t->list, &t->why);

	if (e)
		return e;
	if (t->list.n_rows)
		wake_sleep_until(clock_now_ns() + RATES_NS, &tool_stop);
	if ((e = toplist_update(&t->list, &t->why)))
		return e;
	if (t->json)
		topview_json(stdout, &t->list);
	else
		topview_table(stdout, &t->list, INT_MAX, 0, false, "\n");
	return ERR_OK;
}

static enum err watch(struct top *t)
{
	int64_t every_ns = t->interval.value, next_ns = clock_now_ns();
	enum err e = ERR_OK;

	topview_begin(&t->screen);
	while (!tool_stop && !e) {
		if (clock_now_ns() >= next_ns) {
			e = toplist_update(&t->list, &t->why);
			next_ns = clock_now_ns() + every_ns;
		}
		topview_draw(&t->screen, &t->list, (double)every_ns / UNITS_NS_PER_S);
		int key = topview_wait(&t->screen, next_ns, &tool_stop);
		if (key == 'q' || key == 'Q' || ferror(stdout))
			break;
	}
	topview_end(&t->screen);
	return e;
}

int main(int argc, char **argv)
{
	static struct top t = { .interval = { .value = UNITS_NS_PER_S } };
	enum err e;

	const struct opt options[] = {
		OPT_TIME(0, "interval", "TIME", &t.interval, 0.1, 3600, "look again so often (1s)"),
		OPT_FLAG(0, "once", &t.once, "print one list and exit; also where stdout is no terminal"),
		OPT_FLAG(0, "json", &t.json, "the same, as JSON"),
		OPT_END
	};
	tool_begin(&t.tool, "top", "[options]", "Show the running tools of the user, in pipeline order.", options, &argc, &argv);
	if (argc > 1)
		tool_usage(&t.tool, argv[1], "is one operand too many: top takes none");
	if (t.interval.is_frames)
		tool_usage(&t.tool, "--interval", "has no rate here: give seconds, 0.1 to 3600");

	if ((e = toplist_init(&t.list, &t.why)) || (e = stats_begin(&t.stats, &t.tool, &t.why)))
		goto out;
	e = t.once || t.json || !isatty(STDOUT_FILENO) ? snapshot(&t) : watch(&t);
out:
	stats_end(&t.stats);
	toplist_release(&t.list);
	return tool_end(&t.tool, e, &t.why);
}
