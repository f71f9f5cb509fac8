#include "stage/session.h"

#include "base/units.h"
#include "media/liveplace.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Which boot of which machine CLOCK_MONOTONIC counts from; zeros where the system does not say. */
static void read_boot_id(uint8_t id[16])
{
	char text[64] = { 0 };
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	unsigned digits = 0;

	if (fd >= 0)
		close(fd);
	for (ssize_t i = 0; i < n && digits < 32; i++) {
		char c = text[i];
		int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
		if (digit < 0)
			continue;
		id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | digit);
		digits++;
	}
	if (digits < 32)
		memset(id, 0, 16);
}

enum err session_init(struct session *s, struct tool *tool, struct stats *stats, unsigned n, const struct session_options *o)
{
	memset(s, 0, sizeof(*s));
	s->tool = tool;
	s->stats = stats;
	s->options = *o;
	s->n = n;
	atomic_init(&s->ratio_e9, UNITS_NS_PER_S);
	read_boot_id(s->boot_id);
	s->devices = calloc(n, sizeof(*s->devices));
	return s->devices ? ERR_OK : ERR_NOMEM;
}

void session_release(struct session *s)
{
	free(s->devices);
	s->devices = NULL;
	s->n = 0;
}

static void tell(void *user, const char *text)
{
	const struct session_device *d = user;

	tool_warn(d->session->tool, d->name, "%s", text);
}

enum err session_add(struct session *s, unsigned i, const struct source *source, struct err_why *why)
{
	struct session_device *d = &s->devices[i];
	enum err e = ERR_OK;

	if (!(d->live = livesource_of(source)))
		return ERR_OK;
	d->session = s;
	snprintf(d->name, sizeof(d->name), "%s", source->name);
	stats_tick(s->stats, &d->tick);
	atomic_store_explicit(&d->live->tick, &d->tick, memory_order_relaxed);
	if (s->options.keep)
		livesource_keep(d->live, tell, d);
	if (!s->first)
		s->first = d->live;
	else if (!s->options.own_clocks)
		e = liveplace_open(d->live, s->first, why);
	return e;
}

/* What the devices' callbacks counted, of all together; of the rings the fullest. */
static void count_devices(void *user)
{
	struct session *s = user;
	uint64_t dropped = 0, xruns = 0, warnings = 0, now_pct = 0, low_pct = 100, high_pct = 0;

	for (unsigned i = 0; i < s->n; i++) {
		struct livesource *l = s->devices[i].live;
		if (!l)
			continue;
		uint64_t size = l->ring.size_bytes, fill = ring_fill(&l->ring), low = atomic_load(&l->counts.fill_low_bytes), high = atomic_load(&l->counts.fill_high_bytes);
		dropped += atomic_load(&l->counts.dropped_frames);
		xruns += atomic_load(&l->counts.xruns);
		warnings += atomic_load(&l->counts.warnings);
		now_pct = fill * 100 / size > now_pct ? fill * 100 / size : now_pct;
		low_pct = low * 100 / size < low_pct ? low * 100 / size : low_pct;
		high_pct = high * 100 / size > high_pct ? high * 100 / size : high_pct;
	}
	stats_set(&s->stats->dropped_frames, dropped);
	stats_set(&s->xruns, xruns);
	stats_set(&s->xrun_warnings, warnings);
	stats_ring(s->stats, now_pct, low_pct, high_pct);
}

void session_keys(struct session *s)
{
	if (!s->first)
		return;
	stats_key(s->stats, "xruns", &s->xruns);
	stats_key(s->stats, "xrun_warnings", &s->xrun_warnings);
	if (s->options.keep) {
		stats_key(s->stats, "absences", &s->absences);
		stats_key(s->stats, "absent_frames", &s->absent_frames);
	}
	stats_key(s->stats, "ratio_e9", &s->ratio_e9);
	stats_watch(s->stats, count_devices, s);
}

/* Absences of all devices; the drift of the one that has the most against the first, or of a single one against the machine's clock. */
static void count_clocks(struct session *s)
{
	uint64_t absences = 0, absent = 0;
	double ppm = 0, ratio = 1;
	bool compared = false;

	for (unsigned i = 0; i < s->n; i++) {
		const struct livesource *l = s->devices[i].live;
		if (!l)
			continue;
		absences += l->n_absences;
		absent += l->absent_frames;
		if (!l->place || (compared && fabs(liveplace_ppm(l)) <= fabs(ppm)))
			continue;
		compared = true;
		ppm = liveplace_ppm(l);
		ratio = liveplace_ratio(l);
	}
	stats_set(&s->absences, absences);
	stats_set(&s->absent_frames, absent);
	stats_set(&s->ratio_e9, (uint64_t)llrint(ratio * 1e6 * 1000));
	/* It counts what is slower. */
	stats_drift(s->stats, compared ? llrint(-ppm * 1000) : llrint(clock_fit_ppb(&s->first->fit)));
}

/* Losses of a device are said as they happen, and stay in the source for the end.  Absences are said by themselves. */
static void say_losses(struct session *s, struct session_device *d, const struct source *source)
{
	uint64_t lost = source->lost_frames - d->live->absent_frames;

	if (lost == d->loss_said || !source->warning[0])
		return;
	/* Once a second at most; the end says it all. */
	int64_t now_ns = clock_now_ns();
	if (s->loss_said_ns && now_ns - s->loss_said_ns < UNITS_NS_PER_S)
		return;
	s->loss_said_ns = now_ns;
	d->loss_said = lost;
	tool_warn(s->tool, source->name, "%s", source->warning);
}

/* Once, when the thread has begun. */
static void say_scheduling(struct session_device *d)
{
	int scheduling = atomic_load_explicit(&d->live->scheduling, memory_order_relaxed);
	char text[256];

	if (d->scheduling_said || scheduling == LIVE_RUNS_UNKNOWN)
		return;
	d->scheduling_said = true;
	if (*live_say_scheduling(scheduling, text, sizeof(text)))
		tool_note(d->session->tool, d->name, "%s", text);
}

/* The three clocks at this moment: the wall's, the machine's, and the first device's. */
static enum err put_clock(struct session *s, struct writer *w)
{
	const struct livesource *l = s->first;
	const struct clock_fit *line = livesource_line(l);
	struct packet_clock c = { .error_ppb = 0 };
	struct timespec wall;
	double uncertainty_ns, slower_ppb;

	int64_t before_ns = clock_now_ns();
	if (!line || before_ns < s->clock_due_ns)
		return ERR_OK;
	s->clock_due_ns = before_ns + UNITS_NS_PER_S;
	clock_gettime(CLOCK_REALTIME, &wall);
	int64_t after_ns = clock_now_ns();
	c.realtime_ns = wall.tv_sec * UNITS_NS_PER_S + wall.tv_nsec;
	c.monotonic_ns = before_ns + (after_ns - before_ns) / 2;
	memcpy(c.boot_id, s->boot_id, sizeof(c.boot_id));
	c.media_ns = llrint(clock_fit_pos(line, c.monotonic_ns) * UNITS_NS_PER_S / l->format.rate_hz);
	slower_ppb = clock_fit_ppb(line);
	c.error_ppb = (int32_t)llrint(-slower_ppb);
	uncertainty_ns = (double)(after_ns - before_ns) / 2 + line->jitter_ns;
	c.uncertainty_ns = uncertainty_ns < UINT32_MAX ? (uint32_t)llrint(uncertainty_ns) : UINT32_MAX;
	return writer_clock(w, &c);
}

enum err session_turn(struct session *s, const struct feed_track *t, struct writer *w)
{
	struct session_device *d = &s->devices[t->id - 1u];

	if (!d->live)
		return ERR_OK;
	say_scheduling(d);
	say_losses(s, d, &t->source);
	count_clocks(s);
	return d->live == s->first ? put_clock(s, w) : ERR_OK;
}

void session_end_track(struct session *s, const struct feed_track *t)
{
	const struct session_device *d = &s->devices[t->id - 1u];
	const struct source *source = &t->source;
	uint64_t warnings = d->live ? atomic_load(&d->live->counts.warnings) : 0;

	if (warnings)
		tool_warn(s->tool, source->name, "the server spoke of %" PRIu64 " xrun%s: audio may be damaged where some program was late", warnings, warnings == 1 ? "" : "s");
	if (source->warning[0] && !(d->live && source->lost_frames && !d->live->absent_frames && source->lost_frames == d->loss_said))
		tool_warn(s->tool, source->name, "%s", source->warning);
}
