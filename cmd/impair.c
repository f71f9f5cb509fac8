/*
 * impair: what a bad network does, where there is none: to the packets of a stream, in virtual time, or to the datagrams between any
 * two programs, as they pass.
 */
#include "leg/degrade.h"
#include "leg/proxy.h"
#include "leg/tracefile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_QUEUE_BYTES 65536

/* The options as they are typed. */
struct wishes {
	double loss_pct, reorder_pct, duplicate_pct;
	int64_t seed, lose_every, reorder_by;
	struct opt_time delay, jitter, deadline, duration;
	int shape, direction;
	const char *burst, *spikes, *stalls, *drift, *trace, *record;
	int32_t bandwidth_bps;
	uint64_t queue_bytes;
	bool overtake, raw, force;
	struct opt_list tracks;
};

struct impair {
	struct tool tool;
	struct wishes wishes;
	struct impairment_config network;
	struct tracefile trace;
	FILE *record;
	struct sinkfile record_file;
	struct pump pump;
	struct degrade degrade;
	struct stats stats;
	struct proxy proxy;
	struct err_why why;
};

enum direction { BOTH, THERE, BACK };

/* ---- options that are more than a number ---- */

/* "4" packets or "10ms". */
static void take_burst(struct impair *self, const char *text)
{
	struct opt_time time = { 0 };

	if (!opt_parse_number(text, "", 1, &self->network.burst_packets) && self->network.burst_packets >= 1 && self->network.burst_packets <= 1e6)
		return;
	self->network.burst_packets = 0;
	if (opt_parse_time(text, &time) || time.is_frames || time.value <= 0 || time.value > IMPAIRMENT_MAX_DELAY_NS || strspn(text, "0123456789.") == strlen(text))
		tool_usage(&self->tool, "--burst", "'%s' is neither packets from 1 to 1000000 nor a time to 3600 s with its unit, as 10ms", text);
	self->network.burst_ns = time.value;
}

/* "A,B": each by a row of its own. */
static void take_pair(struct impair *self, const char *option, const char *text, const struct opt *first, const struct opt *second)
{
	const char *comma = strchr(text, ',');
	char head[64];

	if (!comma || (size_t)(comma - text) >= sizeof(head))
		tool_usage(&self->tool, option, "'%s' is not %s,%s", text, first->arg, second->arg);
	snprintf(head, sizeof(head), "%.*s", (int)(comma - text), text);
	if (opt_value(first, option, head, &self->why) || opt_value(second, option, comma + 1, &self->why))
		tool_usage(&self->tool, self->why.thing, "%s", self->why.reason);
}

static void take_spikes(struct impair *self, const char *text)
{
	double pct = 0;
	struct opt_time mean = { 0 };
	const struct opt share = OPT_PERCENT(0, "spikes", &pct, 0, 100, ""), time = OPT_TIME(0, "spikes", "TIME", &mean, 0, 3600, "");

	take_pair(self, "--spikes", text, &share, &time);
	if (mean.is_frames)
		tool_usage(&self->tool, "--spikes", "'%s' has no time but frames", text);
	self->network.spikes = pct / 100;
	self->network.spike_ns = mean.value;
}

static void take_stalls(struct impair *self, const char *text)
{
	struct opt_time length = { 0 }, every = { 0 };
	const struct opt first = OPT_TIME(0, "stalls", "TIME", &length, 0, 3600, ""), second = OPT_TIME(0, "stalls", "EVERY", &every, 0, 3600, "");

	take_pair(self, "--stalls", text, &first, &second);
	if (length.is_frames || every.is_frames)
		tool_usage(&self->tool, "--stalls", "'%s' has no time but frames", text);
	self->network.stall_ns = length.value;
	self->network.stall_every_ns = every.value;
}

/* "80ppm", "-200". */
static void take_drift(struct impair *self, const char *text)
{
	char number[32];
	double ppm;
	size_t n = strlen(text);

	if (n > 3 && !strcmp(text + n - 3, "ppm"))
		n -= 3;
	snprintf(number, sizeof(number), "%.*s", n < sizeof(number) ? (int)n : 0, text);
	if (opt_parse_number(number, "", 1, &ppm) || !(fabs(ppm) <= IMPAIRMENT_MAX_DRIFT_PPB / 1e3))
		tool_usage(&self->tool, "--drift", "'%s' is not parts in a million from -10000 to 10000, as 80ppm", text);
	self->network.drift_ppb = (int32_t)lrint(ppm * 1e3);
}

/* A time that frames make no sense for. */
static int64_t plain_ns(struct impair *self, const char *option, const struct opt_time *t)
{
	if (t->is_frames)
		tool_usage(&self->tool, option, "is a time, not frames");
	return t->value;
}

static void take_wishes(struct impair *self)
{
	const struct wishes *w = &self->wishes;
	struct impairment_config *c = &self->network;

	c->seed = (uint64_t)w->seed;
	c->loss = w->loss_pct / 100;
	c->lose_every = (uint32_t)w->lose_every;
	c->delay_ns = plain_ns(self, "--delay", &w->delay);
	c->jitter_ns = plain_ns(self, "--jitter", &w->jitter);
	c->shape = (enum impairment_shape)w->shape;
	c->reorder = w->reorder_pct / 100;
	c->reorder_by = (unsigned)w->reorder_by;
	c->duplicate = w->duplicate_pct / 100;
	c->rate_bps = (uint64_t)w->bandwidth_bps;
	c->queue_bytes = w->queue_bytes;
	c->may_overtake = w->overtake;
	if (w->burst)
		take_burst(self, w->burst);
	if (w->spikes)
		take_spikes(self, w->spikes);
	if (w->stalls)
		take_stalls(self, w->stalls);
	if (w->drift)
		take_drift(self, w->drift);
	(void)plain_ns(self, "--deadline", &w->deadline);
	(void)plain_ns(self, "--duration", &w->duration);
	if (w->burst && !(c->loss > 0))
		tool_usage(&self->tool, "--burst", "nothing is lost without --loss");
	if (select_check(&w->tracks, &self->why))
		tool_usage(&self->tool, self->why.thing, "%s", self->why.reason);
}

/* Is the network possible at all?  Before anything is opened. */
static void check_network(struct impair *self)
{
	struct impairment probe;

	if (!impairment_init(&probe, &self->network, &self->why))
		return;
	char option[sizeof(self->why.thing) + 2];
	snprintf(option, sizeof(option), "--%s", self->why.thing);
	tool_usage(&self->tool, option, "%s", self->why.reason);
}

static enum err open_traces(struct impair *self)
{
	const struct wishes *w = &self->wishes;
	enum err e = w->trace ? tracefile_read(&self->trace, w->trace, &self->why) : ERR_OK;

	self->network.trace = self->trace.delays_ns;
	self->network.n_trace = self->trace.n;
	if (!e && w->record)
		e = tracefile_create(&self->record, &self->record_file, w->record, w->force, &self->why);
	return e;
}

/* ---- a stream ---- */

static enum err run_stream(struct impair *self, const char *input)
{
	const struct wishes *w = &self->wishes;
	const struct input_options in = { .streams_only = false };
	const struct degrade_options o = {
		.network = self->network, .raw = w->raw, .wanted = &w->tracks, .record = self->record,
		.deadline_ns = w->deadline.is_set ? plain_ns(self, "--deadline", &w->deadline) : -1,
	};
	char missing[128], line[320];
	uint16_t track;
	enum err e;

	if ((e = degrade_init(&self->degrade, &self->pump, &o, &self->pump.why)) || (e = pump_open(&self->pump, &self->tool, input, &in)))
		return e;
	degrade_seed(&self->degrade);
	e = pump_run(&self->pump, degrade_packet, degrade_finish, &self->degrade);
	for (unsigned i = 0; degrade_describe(&self->degrade, i, line, &track); i++) {
		char thing[32];
		snprintf(thing, sizeof(thing), "track %u", track);
		tool_note(&self->tool, thing, "%s", line);
	}
	if ((!e || e == ERR_CUT) && select_missing(&self->degrade.hits, &w->tracks, missing))
		e = err_say(&self->pump.why, ERR_FORMAT, missing, "no such track in the input");
	return e;
}

/* ---- datagrams ---- */

static struct url take_url(struct impair *self, const char *text)
{
	struct url u;

	if (url_parse(&u, text, &self->why))
		tool_usage(&self->tool, self->why.thing, "%s", self->why.reason);
	if (u.scheme != URL_UDP)
		tool_usage(&self->tool, text, "is not udp://HOST:PORT: what is in the datagrams does not matter here");
	return u;
}

static enum err run_proxy(struct impair *self, const char *from, const char *to)
{
	const struct wishes *w = &self->wishes;
	const struct proxy_options o = {
		.network = self->network, .there = w->direction != BACK, .back = w->direction != THERE,
		.duration_ns = plain_ns(self, "--duration", &w->duration), .record = self->record,
	};
	struct url urls[2] = { take_url(self, from), take_url(self, to) };
	char thing[2 * DGRAM_TEXT_BYTES + 8], line[400];
	enum err e;

	if (!urls[1].host[0])
		tool_usage(&self->tool, to, "has no host to send to");
	if ((e = proxy_open(&self->proxy, &self->tool, &self->stats, &urls[0], &urls[1], &o, &self->why)) ||
		(e = stats_begin(&self->stats, &self->tool, &self->why)))
		return e;
	tool_note(&self->tool, self->proxy.from, "listening, for %s", self->proxy.to);
	e = proxy_run(&self->proxy);
	stats_end(&self->stats);
	if (e)
		self->why = self->proxy.why;
	for (unsigned d = 0; d < PROXY_N_WAYS; d++) {
		snprintf(thing, sizeof(thing), d == PROXY_THERE ? "to %s" : "back from %s", self->proxy.to);
		tool_note(&self->tool, thing, "%s", proxy_describe(&self->proxy, d, line));
	}
	return e;
}

/* What is for one of the two kinds of work is not for the other. */
static void check_mode(struct impair *self, bool is_proxy)
{
	const struct wishes *w = &self->wishes;
	const char *wrong = NULL;

	if (w->force && !w->record)
		tool_usage(&self->tool, "--force", "nothing is overwritten without --record-trace");
	if (is_proxy)
		wrong = w->deadline.is_set ? "--deadline" : w->raw ? "--raw" : w->tracks.n ? "--track" : NULL;
	else
		wrong = w->duration.is_set ? "--duration" : w->direction != BOTH ? "--direction" : NULL;
	if (wrong)
		tool_usage(&self->tool, wrong, is_proxy ? "is for a stream, not for datagrams" : "is for datagrams, with two udp:// addresses");
}

int main(int argc, char **argv)
{
	static struct impair impair = { .wishes = { .seed = 1, .reorder_by = 1, .queue_bytes = DEFAULT_QUEUE_BYTES } };
	static const struct opt_choice shapes[] = {
		{ "normal", IMPAIRMENT_NORMAL }, { "exponential", IMPAIRMENT_EXPONENTIAL }, { "uniform", IMPAIRMENT_UNIFORM }, { NULL, 0 },
	};
	static const struct opt_choice directions[] = { { "both", BOTH }, { "there", THERE }, { "back", BACK }, { NULL, 0 } };
	struct impair *self = &impair;
	struct wishes *w = &self->wishes;
	enum err e, closed;

	const struct opt options[] = {
		OPT_GROUP("What is lost:"),
		OPT_PERCENT(0, "loss", &w->loss_pct, 0, 100, "share of packets that are lost"),
		OPT_STRING(0, "burst", "LENGTH", &w->burst, "mean length of a loss: packets, or a time with its unit (each by itself)"),
		OPT_INT(0, "lose-every", "N", &w->lose_every, 0, 1000000000, "lose every Nth packet"),
		OPT_GROUP("When it comes:"),
		OPT_TIME(0, "delay", "TIME", &w->delay, 0, 3600, "of every packet"),
		OPT_TIME(0, "jitter", "TIME", &w->jitter, 0, 3600, "how far delays spread: deviation, or mean if exponential"),
		OPT_CHOICE(0, "jitter-shape", "SHAPE", &w->shape, shapes, "how: normal, exponential or uniform (normal)"),
		OPT_STRING(0, "spikes", "PCT,TIME", &w->spikes, "share of packets that come later still, by TIME in the mean"),
		OPT_STRING(0, "stalls", "TIME,EVERY", &w->stalls, "nothing comes for TIME, about every EVERY; then all of it"),
		OPT_STRING(0, "trace", "FILE", &w->trace, "the delay of each packet from a file, or that it is lost"),
		OPT_STRING(0, "record-trace", "FILE", &w->record, "write such a file of what happens here"),
		OPT_FLAG(0, "overtake", &w->overtake, "jitter lets packets overtake each other"),
		OPT_STRING(0, "drift", "PPM", &w->drift, "the sender's clock is faster than the receiver's, as 80ppm"),
		OPT_GROUP("How often and in which order:"),
		OPT_PERCENT(0, "reorder", &w->reorder_pct, 0, 100, "share of packets that later ones overtake"),
		OPT_INT(0, "reorder-by", "N", &w->reorder_by, 1, 1000, "so many (1)"),
		OPT_PERCENT(0, "duplicate", &w->duplicate_pct, 0, 100, "share of packets that come twice"),
		OPT_GROUP("How much:"),
		OPT_BITRATE(0, "bandwidth", &w->bandwidth_bps, 100, 2e9, "what goes through, headers of the network included"),
		OPT_SIZE(0, "queue", &w->queue_bytes, 64, 1e9, "what may wait for that; more is lost (64K)"),
		OPT_GROUP("Options:"),
		OPT_INT(0, "seed", "N", &w->seed, 0, 4294967295.0, "another fate (1)"),
		OPT_LIST('t', "track", "TRACK", &w->tracks, "only these tracks of a stream: number, name or kind; others pass"),
		OPT_TIME(0, "deadline", "TIME", &w->deadline, 0, 3600, "in a stream, later than the fastest by more is lost (never)"),
		OPT_FLAG(0, "raw", &w->raw, "a stream of packets as they arrive: unordered, twice, no mark where one is lost"),
		OPT_CHOICE(0, "direction", "WHERE", &w->direction, directions, "which datagrams: both, there or back (both)"),
		OPT_TIME('d', "duration", "TIME", &w->duration, 0.001, 31536000, "end after so long, datagrams only"),
		OPT_FLAG('y', "force", &w->force, "--record-trace overwrites a file that is there"),
		OPT_END
	};
	tool_begin(&self->tool, "impair", "[options] [INPUT | udp://[HOST]:PORT udp://HOST:PORT]",
		"Do to a stream, or to datagrams on their way, what a bad network does.", options, &argc, &argv);
	bool is_proxy = argc > 1 && url_is_url(argv[1]);
	if (is_proxy && argc != 3)
		tool_usage(&self->tool, argv[1], "two addresses are wanted: where datagrams come to, and where they go on to");
	if (!is_proxy && argc > 2)
		tool_usage(&self->tool, argv[2], "one input at most");
	check_mode(self, is_proxy);
	take_wishes(self);
	check_network(self);

	e = open_traces(self);
	if (!e)
		e = is_proxy ? run_proxy(self, argv[1], argv[2]) : run_stream(self, argc > 1 ? argv[1] : "-");
	if (self->pump.why.reason[0])
		self->why = self->pump.why;
	if (self->record && (closed = tracefile_close(self->record, &self->record_file, &self->why)) && (!e || e == ERR_CUT))
		e = closed;
	pump_release(&self->pump); /* its last line has the counters of the others */
	degrade_release(&self->degrade);
	proxy_release(&self->proxy);
	tracefile_release(&self->trace);
	return tool_end(&self->tool, e, &self->why);
}
