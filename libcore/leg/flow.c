#include "leg/flow.h"

#include "net/opustoc.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_RING_BYTES (64u << 10)
#define AHEAD_PARTS 4                /* of a second */
#define N_BLOCKS 4u                  /* stream packets that a ring holds, at least */
#define FORGET_NS (5 * UNITS_NS_PER_S) /* a reporter that was not heard for so long */

static void begin_control(const struct flow *f, struct red_control *c)
{
	int64_t packet_us = units_scale(f->packet_frames ? f->packet_frames : 1, 1000000, f->rate_hz);

	red_control_init(c, f->level_min, f->level_max, packet_us > 0 ? (uint32_t)packet_us : 1);
}

/* What suits everybody who reports; nobody does: what is the least. */
static void choose(struct flow *f)
{
	struct red_control alone;
	struct red_choice one;
	bool any = false;

	f->choice = (struct red_choice){ 0 };
	for (unsigned i = 0; i < FLOW_MAX_REPORTERS && f->level_max; i++) {
		if (!f->reporters[i].is_used)
			continue;
		any = true;
		red_control_choice(&f->reporters[i].control, &one);
		red_choice_join(&f->choice, &one);
	}
	if (!any && f->level_min) {
		begin_control(f, &alone);
		red_control_choice(&alone, &f->choice);
	}
}

static size_t ring_bytes(const struct packer *p, const struct track *t)
{
	struct packet block = { .dur = t->nominal_dur, .payload_bytes = PACKER_MAX_OPUS_BYTES };
	uint32_t most = t->frame_bytes ? PACKET_MAX_PAYLOAD_BYTES / t->frame_bytes : 0;

	if (t->frame_bytes && (block.dur == 0 || block.dur > most))
		block.dur = most;
	/* Records are no longer than twice the packets they hold. */
	size_t n = 2 * N_BLOCKS * packer_bound_bytes(p, &block);
	return n > LEAST_RING_BYTES ? n : LEAST_RING_BYTES;
}

enum err flow_init(struct flow *f, const struct track *t, const struct packer_options *o, unsigned level_min, unsigned level_max,
	struct err_why *why)
{
	struct packer_options with = *o;
	enum err e;

	memset(f, 0, sizeof(*f));
	if (level_max) {
		f->history_memory = malloc(red_history_bytes(RED_DISTANCE_MAX));
		if (!f->history_memory)
			return err_say(why, ERR_NOMEM, "redundancy", "%s", err_text(ERR_NOMEM));
		red_history_init(&f->history, f->history_memory, RED_DISTANCE_MAX, o->pt);
		with.history = &f->history;
	}
	if ((e = packer_init(&f->packer, t, &with, why)) || (e = ring_init(&f->ring, ring_bytes(&f->packer, t), why))) {
		flow_release(f);
		return e;
	}
	char name[128];
	size_t n = strlen(track_name(t, name));
	memcpy(f->name, name, n < sizeof(f->name) ? n : sizeof(f->name) - 1);
	f->track = t->id;
	f->rate_hz = track_rate_hz(t);
	f->packet_frames = o->packet_frames ? o->packet_frames : t->nominal_dur;
	f->all_channels = t->channels;
	f->sample = t->sample;
	f->wave_mask = t->layout == TRACK_LAYOUT_WAVE ? t->wave_mask : 0;
	f->first_pos = t->first_pos;
	f->end_pos = RTCP_UNKNOWN_POS;
	f->level_min = level_min;
	f->level_max = level_max;
	choose(f);
	return ERR_OK;
}

void flow_release(struct flow *f)
{
	ring_release(&f->ring);
	free(f->history_memory);
	f->history_memory = NULL;
}

/* ---- in ---- */

static size_t record_bytes(size_t rtp_bytes)
{
	return (size_t)units_round_up(sizeof(struct flow_record) + rtp_bytes + FLOW_TAIL_BYTES, 8);
}

size_t flow_record_bytes(const struct flow_record *r)
{
	return record_bytes(r->payload_bytes + RTP_HEADER_BYTES);
}

/* Which copies go along is chosen when a packet is put in: it must not lie here long after a receiver has said what it loses. */
static bool is_ahead(const struct flow *f)
{
	return f->level_max && f->has_put && f->put_line - f->sent_line > f->rate_hz / AHEAD_PARTS;
}

bool flow_has_room(const struct flow *f, const struct packet *in)
{
	uint8_t *at;

	if (is_ahead(f))
		return false;
	size_t n_packets = f->packer.o.codec == RTP_CODEC_OPUS ? 1 : in->dur / f->packer.o.packet_frames + 3;
	size_t needed = packer_bound_bytes(&f->packer, in) + n_packets * record_bytes(0) + record_bytes(packer_max_bytes(&f->packer));

	return ring_room(&f->ring, &at) >= needed;
}

/* One packet by `take`, behind the others.  Returns: false: there was none. */
static bool put_one(struct flow *f, bool flush)
{
	struct packer_out out;
	uint8_t *at;

	if (ring_room(&f->ring, &at) < record_bytes(packer_max_bytes(&f->packer)))
		return false;
	uint8_t *rtp = at + sizeof(struct flow_record);
	if (flush ? packer_flush(&f->packer, rtp, &out) : packer_take(&f->packer, f->choice.n_copies ? &f->choice : NULL, rtp, &out))
		return false;
	struct flow_record r = {
		.bytes = (uint32_t)out.n_bytes, .dur = out.dur, .pos = out.pos, .line = out.line, .ts = out.ts, .seq = out.seq,
		.payload_bytes = (uint16_t)out.payload_bytes,
	};
	if (!f->has_put)
		f->sent_line = out.line; /* nothing yet, from here on */
	f->has_put = true;
	f->put_line = out.line + out.dur;
	memcpy(at, &r, sizeof(r));
	ring_commit(&f->ring, flow_record_bytes(&r));
	return true;
}

void flow_put(struct flow *f, const struct packet *in)
{
	if (f->packet_frames == 0 && in->dur <= OPUSTOC_MAX_FRAMES)
		f->packet_frames = in->dur;
	packer_put(&f->packer, in);
	while (put_one(f, false))
		;
}

void flow_flush(struct flow *f)
{
	(void)put_one(f, true);
}

/* ---- out ---- */

struct flow_record *flow_peek(const struct flow *f, size_t after_bytes, uint8_t **rtp)
{
	uint8_t *at;

	if (ring_peek(&f->ring, &at) <= after_bytes)
		return NULL;
	/* Records are multiples of 8 bytes in a ring of pages. */
	struct flow_record *r = (void *)(at + after_bytes);
	*rtp = at + after_bytes + sizeof(*r);
	return r;
}

bool flow_rebind(struct flow *f, const struct flow_record *r)
{
	if (f->is_bound && r->ts - f->bound_ts == (uint32_t)(uint64_t)(r->pos - f->bound_pos))
		return false;
	f->gen += f->is_bound;
	f->is_bound = true;
	f->bound_pos = r->pos;
	f->bound_line = r->line;
	f->bound_ts = r->ts;
	return true;
}

void flow_note_sent(struct flow *f, const struct flow_record *r)
{
	if (f->has_sent && r->seq < f->last_seq)
		f->roc++;
	f->last_seq = r->seq;
	f->has_sent = true;
	f->sent_packets++;
	f->sent_payload_bytes += r->payload_bytes;
	f->sent_frames += r->dur;
	f->sent_line = r->line + r->dur;
	f->sent_ts = r->ts + r->dur;
}

void flow_consume(struct flow *f, size_t n_bytes)
{
	ring_consume(&f->ring, n_bytes);
}

bool flow_is_done(const struct flow *f)
{
	uint8_t *at;

	return f->is_over && ring_peek(&f->ring, &at) == 0;
}

/* ---- what is said of it ---- */

struct rtcp_binding flow_binding(const struct flow *f, int64_t utc_ns)
{
	const struct packer *p = &f->packer;
	struct rtcp_binding b = {
		.ssrc = p->o.ssrc, .track = f->track, .gen = f->gen, .pt = p->o.pt, .codec = p->o.codec,
		.sample = f->sample, .channels = p->o.codec == RTP_CODEC_OPUS ? f->all_channels : p->o.channels,
		.first_channel = p->o.first_channel, .all_channels = f->all_channels,
		.rate_hz = f->rate_hz,
		.ts0 = f->is_bound ? f->bound_ts : p->o.ts, .pos0 = f->is_bound ? f->bound_pos : f->first_pos,
		.roc = f->has_sent && f->last_seq == UINT16_MAX ? f->roc + 1 : f->roc,
		.seq = f->has_sent ? (uint16_t)(f->last_seq + 1) : p->o.seq,
		.first_pos = f->first_pos, .end_pos = f->end_pos, .utc_ns = utc_ns,
	};
	memcpy(b.name, f->name, sizeof(b.name));
	return b;
}

bool flow_report(struct flow *f, uint32_t reporter, const struct rtcp_loss *loss, int64_t now_ns)
{
	struct red_choice before = f->choice;
	struct flow_reporter *place = NULL;

	for (unsigned i = 0; i < FLOW_MAX_REPORTERS; i++) {
		struct flow_reporter *r = &f->reporters[i];

		r->is_used = r->is_used && now_ns - r->heard_ns <= FORGET_NS;
		if (r->is_used ? r->ssrc == reporter : !place)
			place = r;
	}
	if (!place || !f->level_max)
		return false;
	if (!place->is_used) {
		place->is_used = true;
		place->ssrc = reporter;
		begin_control(f, &place->control);
	}
	place->heard_ns = now_ns;
	(void)red_control_report(&place->control, loss);
	choose(f);
	return memcmp(&before, &f->choice, sizeof(before)) != 0;
}

unsigned flow_level(const struct flow *f)
{
	unsigned level = f->level_min;

	for (unsigned i = 0; i < FLOW_MAX_REPORTERS; i++) {
		if (f->reporters[i].is_used && f->reporters[i].control.level > level)
			level = f->reporters[i].control.level;
	}
	return level;
}
