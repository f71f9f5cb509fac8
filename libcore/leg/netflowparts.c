#include "leg/netflowparts.h"

#include "leg/netflowin.h"

enum err netflowparts_begin_joint(struct netflow *f, const struct netflow_options *o, struct writer *out, uint16_t id, const struct rtp_format *format,
	const struct rtcp_binding *b, struct err_why *why)
{
	struct rtp_format whole = { format->codec, format->clock_hz, b->all_channels };
	unsigned sample_bytes = rtp_codec_sample_bytes(format->codec);
	uint32_t max_frames = sample_bytes && format->channels ? NETFLOW_MAX_PAYLOAD_BYTES / sample_bytes / format->channels : 0;
	size_t n_bytes = assembly_bytes(b->all_channels, sample_bytes, max_frames);
	enum err e;

	if (!n_bytes)
		return err_say(why, ERR_ARG, "sender", "a track of %u channels in parts: up to %u", b->all_channels, ASSEMBLY_MAX_CHANNELS);
	if ((e = netflow_begin_sized(f, o, out, id, 0, &whole, o->n_slots < NETFLOW_JOINT_SLOTS ? o->n_slots : NETFLOW_JOINT_SLOTS,
		max_frames * b->all_channels * sample_bytes, why)))
		return e;
	f->used = false;
	if ((e = netflow_take_memory(&f->assembly_memory, &f->assembly_memory_bytes, n_bytes, why)))
		return e;
	assembly_init(&f->assembly, b->all_channels, sample_bytes, max_frames, f->assembly_memory);
	f->used = f->is_joint = f->is_weir = true;
	netflowin_bind(f, b);
	return ERR_OK;
}

bool netflowparts_begin(struct netflow *f, struct netflow *joint, uint32_t ssrc, const struct rtp_format *format, const struct rtcp_binding *b, int64_t now_ns)
{
	int member = assembly_join(&joint->assembly, b->first_channel, format->channels, now_ns);

	if (member < 0)
		return false;
	netflow_clear(f);
	f->o = joint->o;
	f->out = joint->out;
	f->id = joint->id;
	f->ssrc = ssrc;
	f->format = *format;
	f->newest_seq = f->round_trip_ns = f->one_way_ns = -1;
	f->joint = joint;
	f->member = (unsigned)member;
	f->used = true;
	netflowin_bind(f, b);
	return true;
}

bool netflowparts_become(struct netflow *f, struct netflow *joint, const struct rtcp_binding *b, int64_t now_ns)
{
	int member = assembly_join(&joint->assembly, b->first_channel, f->format.channels, now_ns);

	if (member < 0)
		return false;
	(void)!netflow_end(f, PACKET_END_NORMAL); /* what the writer says it keeps */
	/* Nothing is played or passed here any more. */
	jitter_restart(&f->jitter, false);
	f->playing = f->draining = false;
	f->used = true;
	f->id = joint->id;
	f->joint = joint;
	f->member = (unsigned)member;
	f->has_base = false;
	netflowin_bind(f, b);
	return true;
}

bool netflowparts_belongs(const struct netflow *joint, const struct rtcp_binding *b, const struct dgram_addr *from)
{
	const struct rtcp_binding *of = &joint->binding;

	return joint->used && joint->is_joint && !joint->ending && dgram_same(&joint->from, from) && of->track == b->track && of->codec == b->codec &&
		of->rate_hz == b->rate_hz && of->all_channels == b->all_channels;
}

int64_t netflowparts_pos(struct netflow *f, uint32_t ts)
{
	if (!f->has_base)
		f->base = f->binding.pos0 - rtp_peek_ts(&f->ts, f->binding.ts0);
	f->has_base = true;
	return rtp_peek_ts(&f->ts, ts) + f->base;
}

static void take_whole(struct netflow *joint, const struct jitter_packet *p)
{
	joint->last_ns = p->arrival_ns;
	jitter_put(&joint->jitter, p);
}

enum assembly_put netflowparts_put(struct netflow *f, int64_t pos, uint32_t frames, const uint8_t *payload, bool follows, bool copy, int64_t arrival_ns)
{
	struct jitter_packet whole;

	if (f->joint->jitter.state != JITTER_IDLE && pos + frames <= f->joint->jitter.next_pos) {
		f->jitter.counts.late += !copy;
		return ASSEMBLY_HAD;
	}
	enum assembly_put put = assembly_put(&f->joint->assembly, f->member, pos, frames, payload, follows, copy, arrival_ns, &whole);
	if (put == ASSEMBLY_WHOLE)
		take_whole(f->joint, &whole);
	f->counts.refused += put == ASSEMBLY_REFUSED;
	return put;
}

void netflowparts_give_up(struct netflow *f, int64_t before)
{
	struct jitter_packet partial;

	while (f->is_joint && assembly_give_up(&f->assembly, before, &partial))
		jitter_put(&f->jitter, &partial);
}
