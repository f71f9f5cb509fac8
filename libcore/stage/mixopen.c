#include "stage/mixopen.h"

#include "base/units.h"
#include "stage/mixtrack.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAY_AFTER_MS 2000     /* of silence from an input that is waited for */
#define MAX_BLOCK_FRAMES 4096u
#define MIN_BLOCK_FRAMES 32u

static void say(const struct mixin *m, const char *thing, const char *text)
{
	if (m->options.say)
		m->options.say(m->options.user, thing, text);
}

static void note(const struct mixin *m, const char *thing, const char *text)
{
	if (m->options.note)
		m->options.note(m->options.user, thing, text);
}

static bool is_stopped(const struct mixin *m)
{
	return m->options.stop && *m->options.stop;
}

/* Nothing comes from it: after a while, say so.  Returns when something is there, or at a stop. */
static void wait_for_first(struct mixin *m, const struct mixin_input *input, int fd)
{
	int timeout_ms = SAY_AFTER_MS;

	while (!is_stopped(m)) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int n = poll(&p, 1, timeout_ms);
		if (n > 0)
			return;
		if (n == 0) {
			say(m, input->name, "is waited for: nobody has written to it yet");
			timeout_ms = -1;
		}
	}
}

static bool is_device(const struct stat *st)
{
	return S_ISFIFO(st->st_mode) || S_ISCHR(st->st_mode) || S_ISSOCK(st->st_mode);
}

/* What kind of thing a name is.  A FIFO is opened here, at once and without waiting for its writer. */
static enum err look(struct mixin *m, struct mixin_input *input, bool *stdin_used)
{
	struct stat st = { 0 };

	input->direct_fd = -1;
	input->is_regular = true;
	if (!strcmp(input->name, "-")) {
		if (*stdin_used)
			return err_say(&m->why, ERR_ARG, "<stdin>", "cannot be two inputs");
		*stdin_used = true;
		if (isatty(STDIN_FILENO))
			return err_say(&m->why, ERR_ARG, "<stdin>", "is a terminal: there is no stream to read");
		if (fstat(STDIN_FILENO, &st))
			return err_sys(&m->why, "<stdin>");
		input->is_regular = S_ISREG(st.st_mode);
		if (!input->is_regular)
			input->direct_fd = STDIN_FILENO;
	} else if (strncmp(input->name, "gen:", 4) && stat(input->name, &st) == 0 && is_device(&st)) {
		input->is_regular = false;
		if (S_ISFIFO(st.st_mode)) {
			input->direct_fd = open(input->name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
			if (input->direct_fd < 0)
				return err_sys(&m->why, input->name);
		}
	}
	if (m->options.twice && !input->is_regular)
		return err_say(&m->why, ERR_ARG, input->name, "is read twice for --normalize: it must be a file");
	return ERR_OK;
}

/* Streams: up to the first packet that is no announcement. */
static enum err begin_stream(struct mixin *m, struct mixin_input *input)
{
	enum err e;

	while (!input->have_held && !input->ended) {
		e = input_next(&input->in, &input->held);
		if (e == ERR_AGAIN) {
			e = input_fill(&input->in);
			if (!e)
				continue;
		}
		if (e == ERR_END)
			e = mixtrack_end_input(m, input, NULL);
		else if (e)
			m->why = input->in.why;
		if (e)
			return e;
		if (input->ended)
			break;
		if (input->held.type == PACKET_TRACK) {
			if ((e = mixtrack_meet(m, input, input->held.track)))
				return e;
		} else if (input->held.type == PACKET_DATA || input->held.type == PACKET_GAP ||
			(input->held.type == PACKET_END && input->held.track)) {
			input->have_held = true;
		}
	}
	return ERR_OK;
}

static enum err begin_file(struct mixin *m, struct mixin_input *input)
{
	struct feed_track *from = &input->in.feed.tracks[0];

	from->announced = true;
	if (from->source.note[0])
		note(m, input->in.name, from->source.note);
	return mixtrack_meet(m, input, from->id);
}

static enum err open_input(struct mixin *m, struct mixin_input *input, int fd)
{
	const struct input_options o = {
		.reader = { .expand_silence = true, .stop = m->options.stop },
		.source = { .stop = m->options.stop, .duration_frames = -1 },
		.has_fd = fd >= 0, .fd = fd,
	};
	enum err e;

	if (fd >= 0)
		wait_for_first(m, input, fd);
	if ((e = input_open(&input->in, input->name, &o, &m->why)))
		return e;
	input->is_open = true;
	if ((e = input->in.is_stream ? begin_stream(m, input) : begin_file(m, input)))
		return e;
	/* Nothing of it was asked for: nobody waits for its end. */
	input->ended |= input->n_tracks == 0;
	return ERR_OK;
}

/* Where the mix begins, in which steps, and what kind of stream it is. */
void mixopen_settle(struct mixin *m)
{
	uint32_t block = MAX_BLOCK_FRAMES;

	m->first_pos = m->n_tracks ? INT64_MAX : 0;
	m->t0_utc_ns = UNITS_UNKNOWN_NS;
	for (unsigned i = 0; i < m->n_tracks; i++) {
		const struct mixin_track *t = m->tracks[i];
		if (t->first_pos < m->first_pos)
			m->first_pos = t->first_pos;
		if (!t->input->in.is_stream)
			continue;
		uint32_t dur = t->in.nominal_dur;
		if (!dur && t->input->have_held && t->input->held.track == t->id)
			dur = t->input->held.dur;
		int64_t step_frames = mixtrack_to_mix(m, &t->in, dur);
		if (step_frames >= MIN_BLOCK_FRAMES && step_frames < block)
			block = (uint32_t)step_frames;
	}
	for (unsigned i = 0; i < m->n_inputs; i++) {
		const struct input *in = &m->inputs[i].in;
		if (!in->is_stream)
			continue;
		m->is_live |= in->reader.stream.flags & PACKET_STREAM_LIVE;
		if (m->t0_utc_ns == UNITS_UNKNOWN_NS)
			m->t0_utc_ns = in->reader.stream.t0_utc_ns;
	}
	m->block_frames = block;
}

enum err mixopen_all(struct mixin *m)
{
	bool stdin_used = false;
	unsigned n_pipes = 0;
	enum err e;

	for (unsigned i = 0; i < m->n_inputs; i++) {
		if ((e = look(m, &m->inputs[i], &stdin_used)))
			return e;
		n_pipes += m->inputs[i].direct_fd >= 0;
	}
	if (n_pipes > 1) {
		if ((e = feeder_open(&m->feeder, n_pipes, &m->store, &m->why)))
			return e;
		m->feeder.say = m->options.say;
		m->feeder.say_user = m->options.user;
	}
	for (unsigned i = 0; i < m->n_inputs; i++) {
		struct mixin_input *input = &m->inputs[i];
		if (input->direct_fd < 0 || n_pipes < 2)
			continue;
		int read_fd;
		bool owned = input->direct_fd != STDIN_FILENO;
		e = feeder_add(&m->feeder, input->direct_fd, owned, input->name, &read_fd, &m->why);
		input->direct_fd = -1;
		if (e)
			return e;
		input->feed_fd = read_fd;
	}
	if (n_pipes > 1 && (e = feeder_start(&m->feeder, &m->why)))
		return e;
	for (unsigned i = 0; i < m->n_inputs; i++) {
		struct mixin_input *input = &m->inputs[i];
		int fd = n_pipes > 1 ? input->feed_fd : input->direct_fd;
		if ((e = open_input(m, input, fd)))
			return e;
	}
	return ERR_OK;
}
