#include "leg/sending.h"

#include "base/units.h"
#include "rt/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

#define LONGEST_WAIT_NS UNITS_NS_PER_S

static enum err describe(struct sending *s)
{
	enum err e = ERR_OK;

	for (unsigned i = 0; i < s->o.n_files && !e; i++)
		e = sessionfile_write(&s->o.files[i], &s->sender, &s->why);
	if (!e && s->announce.is_on)
		e = announce_tell(&s->announce, &s->why);
	s->told = true;
	return e;
}

static enum err take_track(struct sending *s, const struct packet *k)
{
	const struct track *t = input_track(&s->in, k->track);
	char thing[32];
	enum err e;

	if (!t)
		return ERR_OK;
	select_note(&s->hits, &s->o.wanted, t);
	if (!select_match(&s->o.wanted, t))
		return ERR_OK;
	s->links.is_live = s->sender.o.is_live = s->in.is_stream && !s->from_file && (s->in.reader.stream.flags & PACKET_STREAM_LIVE);
	if (s->o.n_weir && (e = linkout_stream(&s->links, &s->in.reader.stream, &s->why)))
		return e;
	if (s->o.n_weir && t->kind != TRACK_AUDIO) {
		s->n_carried++;
		return linkout_track(&s->links, t, NULL, 0, &tool_stop, &s->why);
	}
	unsigned n_before = s->sender.n_begun;
	e = sender_track(&s->sender, t, &s->why);
	if (e == ERR_FORMAT && !s->o.wanted.n) {
		/* Nobody asked for this one by name: the others go. */
		snprintf(thing, sizeof(thing), "track %u", t->id);
		tool_warn(s->tool, thing, "%s", s->why.reason);
		s->why = (struct err_why){ 0 }; /* said; what goes wrong later has a reason of its own */
		s->n_passed_over++;
		return ERR_OK;
	}
	if (!e && s->o.n_weir)
		e = linkout_track(&s->links, t, NULL, 0, &tool_stop, &s->why);
	return !e && s->told && s->sender.n_begun != n_before ? describe(s) : e;
}

/* One packet of the input.  Returns: ERR_AGAIN: it waits for room. */
static enum err take(struct sending *s, struct packet *k)
{
	const struct track *t = s->o.n_weir && k->track ? input_track(&s->in, k->track) : NULL;
	struct packet_end end;
	enum err e;

	/* What is no event of now begins when everybody is there. */
	s->waits_for_link = s->o.n_weir && k->type == PACKET_DATA && !s->links.is_live && !linkout_is_met(&s->links);
	if (s->waits_for_link)
		return ERR_AGAIN;
	if (t && t->kind != TRACK_AUDIO && k->type != PACKET_TRACK) {
		e = select_match(&s->o.wanted, t) ? linkout_take(&s->links, k, t) : ERR_OK;
		s->waits_for_link = e == ERR_AGAIN;
		return e;
	}
	switch (k->type) {
	case PACKET_TRACK:
		return take_track(s, k);
	case PACKET_END:
		if (k->track)
			sender_end_track(&s->sender, k->track, packet_end_unpack(&end, k->payload, k->payload_bytes) ? RTCP_UNKNOWN_POS : end.end_pos);
		return ERR_OK;
	case PACKET_DATA:
		/* A receiver must know the session before its first packet comes. */
		if (!s->told && s->sender.n_flows && (e = describe(s)))
			return e;
		break;
	}
	return sender_take(&s->sender, k);
}

/* Take from the input until there is nothing in memory, no room, or the end. */
static enum err take_all(struct sending *s)
{
	enum err e = ERR_OK;

	while (!s->over && !s->waits && !e) {
		if (!s->has_held) {
			e = input_next(&s->in, &s->held);
			s->waits = e == ERR_AGAIN;
			s->over = e == ERR_END;
			s->has_held = !e;
			if (e)
				return s->waits || s->over ? ERR_OK : e;
		}
		e = take(s, &s->held);
		if (e == ERR_AGAIN)
			return ERR_OK;
		s->has_held = false;
	}
	return e;
}

static void count(struct sending *s)
{
	uint64_t frames = s->sender.gone.frames, packets = s->sender.gone.packets;

	if (!stats_on(&s->stats) && !s->progress.on)
		return;
	for (unsigned i = 0; i < s->sender.n_flows; i++) {
		frames += s->sender.flows[i]->sent_frames;
		packets += s->sender.flows[i]->sent_packets;
	}
	stats_set(&s->stats.packets_in, s->in.is_stream ? s->in.reader.n_packets : packets);
	stats_set(&s->stats.packets_out, packets);
	stats_set(&s->stats.frames_in, frames);
	stats_set(&s->stats.frames_out, frames);
	progress_update(&s->progress, sender_position_s(&s->sender), -1);
}

/* Until something is due, or something came. */
static enum err wait(struct sending *s, int64_t next_ns)
{
	struct pollfd p[SENDER_MAX_URLS + LINKOUT_MAX + 1];
	unsigned n_polls = sender_polls(&s->sender, p);
	int64_t wait_ns = next_ns == INT64_MAX ? LONGEST_WAIT_NS : next_ns - clock_now_ns();
	bool hears = s->waits && !s->over;

	n_polls += linkout_polls(&s->links, p + n_polls);
	if (hears)
		p[n_polls] = (struct pollfd){ .fd = s->in.fd, .events = POLLIN };
	wait_ns = wait_ns < 0 ? 0 : wait_ns > LONGEST_WAIT_NS ? LONGEST_WAIT_NS : wait_ns;
	struct timespec t = { .tv_sec = wait_ns / UNITS_NS_PER_S, .tv_nsec = wait_ns % UNITS_NS_PER_S };
	if (ppoll(p, n_polls + hears, &t, NULL) < 0)
		return errno == EINTR ? ERR_OK : err_sys(&s->why, s->in.name);
	if (!hears || !p[n_polls].revents)
		return ERR_OK;
	s->waits = false;
	return input_fill(&s->in);
}

/* The sound goes where the link found somebody. */
static void follow_links(struct sending *s)
{
	struct dgram_addr peer;

	linkout_work(&s->links);
	for (unsigned i = 0; i < s->links.n_to; i++) {
		if (linksend_peer(&s->links.to[i].send, &peer))
			sender_redirect(&s->sender, s->o.weir_to[i], &peer);
	}
}

static enum err run_all(struct sending *s)
{
	enum err e;

	for (;;) {
		if ((e = take_all(s)))
			return e;
		int64_t next_ns = sender_work(&s->sender), announce_ns = announce_work(&s->announce, clock_now_ns());
		count(s);
		follow_links(s);
		if (tool_stop || (s->over && sender_is_empty(&s->sender)))
			return ERR_OK;
		/* What waits for room has it now, when nothing else is left to send. */
		if (s->has_held && !s->waits_for_link && sender_is_empty(&s->sender))
			continue;
		if ((e = wait(s, next_ns < announce_ns ? next_ns : announce_ns)))
			return e;
	}
}

/* What the end of the input was worth. */
static enum err finish(struct sending *s)
{
	char text[200];

	sender_bye(&s->sender);
	count(s);
	enum packet_end_reason reason = tool_stop ? PACKET_END_INTERRUPTED : input_is_cut(&s->in) ? PACKET_END_TRUNCATED : PACKET_END_NORMAL;
	enum err e = s->o.n_weir ? linkout_end(&s->links, reason, &tool_stop, &s->why) : ERR_OK;
	if (e || tool_stop)
		return tool_stop ? ERR_OK : e;
	if (select_missing(&s->hits, &s->o.wanted, text))
		return err_say(&s->why, ERR_FORMAT, text, "no such track in the input");
	if (s->sender.n_flows == 0 && !s->n_passed_over && !s->n_carried && !input_is_cut(&s->in))
		return err_say(&s->why, ERR_FORMAT, s->in.name, "has no sound to send");
	if (s->sender.n_flows == 0 && s->n_passed_over)
		return err_say(&s->why, ERR_FORMAT, s->in.name, "has no track that can be sent");
	if (!input_is_cut(&s->in))
		return ERR_OK;
	input_describe_loss(&s->in, text, sizeof(text));
	return err_say(&s->why, ERR_CUT, s->in.name, "%s", text);
}

/* An Ogg Opus file goes as it is, any other audio file as PCM. */
static enum err open_input(struct sending *s, const char *name)
{
	struct input_options io = { .undecoded = true };
	struct stat st;
	enum err e;

	io.reader.stop = io.source.stop = &tool_stop;
	io.reader.expand_silence = true;
	e = input_open(&s->in, name, &io, &s->why);
	if (e == ERR_FORMAT && strcmp(name, "-")) {
		io.undecoded = false;
		s->why = (struct err_why){ 0 };
		e = input_open(&s->in, name, &io, &s->why);
	}
	if (e)
		return e;
	s->from_file = fstat(s->in.fd, &st) == 0 && S_ISREG(st.st_mode);
	return ERR_OK;
}

static void begin_counting(struct sending *s)
{
	const struct {
		const char *key;
		const atomic_uint_fast64_t *value;
	} keys[] = {
		{ "sent_datagrams", &s->sender.sent_datagrams }, { "sent_bytes", &s->sender.sent_bytes },
		{ "send_errors", &s->sender.send_errors }, { "repair_datagrams", &s->sender.repair_datagrams },
		{ "redundant_copies", &s->sender.redundant_copies }, { "redundancy_level", &s->sender.red_level },
		{ "rtcp_in", &s->sender.rtcp_in }, { "receivers", &s->sender.n_reporting }, { "receivers_gone", &s->sender.n_gone },
		{ "peer_lost", &s->sender.peer_lost }, { "peer_jitter_us", &s->sender.peer_jitter_us },
		{ "round_trip_us", &s->sender.round_trip_us }, { "refused_packets", &s->sender.refused },
		{ "skipped_holes", &s->sender.skipped },
		{ "clipped_samples", &s->sender.clipped },
	};

	for (unsigned i = 0; i < ARRAY_LEN(keys); i++)
		stats_key(&s->stats, keys[i].key, keys[i].value);
	if (s->o.n_weir)
		linkout_count(&s->links, &s->stats);
}

enum err sending_open(struct sending *s, struct tool *t, const char *input)
{
	enum err e;

	s->tool = t;
	begin_counting(s);
	/* Packets leave at their moment, not in the 50 µs after it. */
	prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
	if ((e = open_input(s, input)) || (e = linkout_open(&s->links, t, s->o.weir, s->o.n_weir, s->o.key.has_secret ? s->o.psk : NULL, &s->why)) ||
		(e = sender_open(&s->sender, &s->o.sender, t, &s->stats, &s->why)) || (e = stats_begin(&s->stats, t, &s->why)))
		return e;
	progress_begin(&s->progress, t);
	if (s->o.announce)
		announce_begin(&s->announce, &s->sender);
	return ERR_OK;
}

enum err sending_run(struct sending *s)
{
	enum err e = run_all(s);

	if (!e)
		return finish(s);
	if (!s->why.reason[0])
		s->why = s->in.why;
	return e;
}

void sending_release(struct sending *s)
{
	progress_end(&s->progress);
	stats_end(&s->stats);
	announce_end(&s->announce);
	sender_release(&s->sender);
	linkout_release(&s->links);
	input_release(&s->in);
	secret_wipe(s->o.psk, sizeof(s->o.psk));
	keyfile_wipe(&s->o.key);
}
