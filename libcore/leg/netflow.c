#include "leg/netflow.h"

#include "base/units.h"
#include "media/opushead.h"
#include "leg/netflowsound.h"
#include "leg/netflowtrack.h"

#include <stdlib.h>
#include <string.h>

/* ---- beginning ---- */

static enum err describe_opus(struct netflow *f, struct err_why *why)
{
	struct opushead h = { .channels = (uint8_t)f->format.channels, .family = 0, .streams = 1, .coupled = f->format.channels == 2 };

	track_release(&f->coded);
	f->coded = (struct track){ .kind = TRACK_AUDIO };
	enum err e = opushead_to_track(&h, &f->coded);
	return e ? err_say(why, e, "Opus", "%s", err_text(e)) : ERR_OK;
}

static enum err describe(struct netflow *f, struct err_why *why)
{
	enum err e = ERR_OK;

	track_release(&f->track);
	f->sample_bytes = rtp_codec_sample_bytes(f->format.codec);
	if (f->format.codec == RTP_CODEC_OPUS) {
		if ((e = describe_opus(f, why)))
			return e;
		if (!f->o->retime)
			return track_copy(&f->track, &f->coded);
		if ((e = opusdec_new(&f->decoder, &f->coded, false, &f->track, why)))
			return e;
		f->sample_bytes = 4;
	} else {
		f->track = track_pcm(f->format.clock_hz, f->format.channels, f->sample_bytes == 2 ? SAMPLE_S16 : SAMPLE_S24);
	}
	f->frame_bytes = f->sample_bytes * f->format.channels;
	return ERR_OK;
}

void netflow_clear(struct netflow *f)
{
	struct netflow was = *f;

	opusdec_free(was.decoder);
	memset(f, 0, sizeof(*f));
	f->dropped_pos = INT64_MIN;
	f->memory = was.memory;
	f->memory_bytes = was.memory_bytes;
	f->assembly_memory = was.assembly_memory;
	f->assembly_memory_bytes = was.assembly_memory_bytes;
	f->fifo = was.fifo;
	f->coded = was.coded;
	f->track = was.track;
	f->conceal = was.conceal;
	f->rate = was.rate;
}

enum err netflow_take_memory(void **memory, size_t *had_bytes, size_t n_bytes, struct err_why *why)
{
	if (n_bytes <= *had_bytes)
		return ERR_OK;
	free(*memory);
	*memory = malloc(n_bytes);
	*had_bytes = *memory ? n_bytes : 0;
	return *memory ? ERR_OK : err_say(why, ERR_NOMEM, "sender", "%s", err_text(ERR_NOMEM));
}

enum err netflow_begin_sized(struct netflow *f, const struct netflow_options *o, struct writer *out, uint16_t id, uint32_t ssrc,
	const struct rtp_format *format, uint32_t n_slots, uint32_t slot_bytes, struct err_why *why)
{
	struct jitter_options j = { .rate_hz = format->clock_hz, .glitches = o->glitches, .latency_ns = o->latency_ns, .n_slots = n_slots,
		.slot_bytes = slot_bytes, .pass = !o->retime };
	enum err e;

	netflow_clear(f);
	f->o = o;
	f->out = out;
	f->id = id;
	f->ssrc = ssrc;
	f->format = *format;
	f->newest_seq = f->round_trip_ns = f->one_way_ns = -1;
	if (o->retime)
		j.block_frames = (uint32_t)units_from_ns(o->block_ns, format->clock_hz, 1) + VARIRATE_AHEAD_FRAMES + 1;
	if ((e = netflow_take_memory(&f->memory, &f->memory_bytes, jitter_bytes(&j), why)) || (e = jitter_init(&f->jitter, &j, f->memory, why)) || (e = describe(f, why)))
		return e;
	if (o->retime && (e = netflowsound_begin(f, why)))
		return e;
	f->track.id = id;
	f->used = true;
	return ERR_OK;
}

enum err netflow_begin(struct netflow *f, const struct netflow_options *o, struct writer *out, uint16_t id, uint32_t ssrc,
	const struct rtp_format *format, struct err_why *why)
{
	if (!format->channels || format->channels > NETFLOW_MAX_CHANNELS || (format->codec == RTP_CODEC_OPUS && format->channels > 2))
		return err_say(why, ERR_ARG, "sender", "%u channels", format->channels);
	return netflow_begin_sized(f, o, out, id, ssrc, format, o->n_slots, NETFLOW_MAX_PAYLOAD_BYTES, why);
}

void netflow_renumber(struct netflow *f)
{
	f->lost_before = netflow_lost(f);
	f->seq = (struct rtp_unwrap){ 0 };
	f->newest_seq = -1;
	f->reception = (struct reception){ 0 };
	f->monitor = (struct red_monitor){ 0 };
}

void netflow_succeed(struct netflow *f, uint32_t ssrc)
{
	netflow_renumber(f);
	f->ssrc = ssrc;
	f->pt = 0;
	f->source = (struct rtp_source){ 0 };
	f->ts = (struct rtp_unwrap){ 0 };
	f->round_trip_ns = f->one_way_ns = -1;
	f->has_sr = f->is_weir = f->ending = false;
	jitter_restart(&f->jitter, false);
}

void netflow_release(struct netflow *f)
{
	free(f->memory);
	free(f->assembly_memory);
	free(f->fifo);
	opusdec_free(f->decoder);
	conceal_release(&f->conceal);
	varirate_release(&f->rate);
	track_release(&f->coded);
	track_release(&f->track);
	memset(f, 0, sizeof(*f));
}

bool netflow_is_gone(const struct netflow *f, int64_t now_ns)
{
	int64_t last_ns = f->heard_ns > f->last_ns ? f->heard_ns : f->last_ns, limit_ns = NETFLOW_FORGET_NS;

	if (f->is_joint) /* as long as its parts */
		return false;
	if (f->is_weir && f->heard_ns) {
		limit_ns = f->rtcp_gap_ns ? 3 * f->rtcp_gap_ns : NETFLOW_SILENT_MOST_NS;
		limit_ns = limit_ns < NETFLOW_SILENT_LEAST_NS ? NETFLOW_SILENT_LEAST_NS : limit_ns > NETFLOW_SILENT_MOST_NS ? NETFLOW_SILENT_MOST_NS : limit_ns;
	}
	return now_ns - last_ns > limit_ns;
}

double netflow_depth_s(const struct netflow *f)
{
	double depth_s = jitter_depth_s(f->joint ? &f->joint->jitter : &f->jitter);

	return depth_s > 0 ? depth_s : 0;
}

uint64_t netflow_lost(const struct netflow *f)
{
	int64_t lost = f->reception.started ? reception_lost(&f->reception) : 0;
	return f->lost_before + (lost > 0 ? (uint64_t)lost : 0);
}

enum err netflow_end(struct netflow *f, enum packet_end_reason reason)
{
	enum err e = ERR_OK;

	if (f->announced && !f->ended && f->dropped_pos > f->end_pos)
		e = netflowtrack_add_gap(f, f->dropped_pos - f->end_pos, PACKET_GAP_DROPPED);
	if (!e && f->announced && !f->ended && !(e = netflowtrack_end_gap(f)))
		e = writer_end_track(f->out, f->id, reason);
	f->ended = true;
	f->used = false;
	return e;
}
