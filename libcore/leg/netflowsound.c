#include "leg/netflowsound.h"

#include "leg/netflowtrack.h"

#include <stdlib.h>
#include <string.h>

#define FIFO_EXTRA_FRAMES (OPUSDEC_MAX_FRAMES + NETFLOW_MAX_BLOCK_FRAMES)

enum err netflowsound_begin(struct netflow *f, struct err_why *why)
{
	unsigned channels = f->format.channels;
	enum err e;

	conceal_release(&f->conceal);
	varirate_release(&f->rate);
	free(f->fifo);
	f->fifo_room = FIFO_EXTRA_FRAMES + 4 * VARIRATE_TAPS;
	f->fifo = calloc((size_t)(f->fifo_room + NETFLOW_MAX_BLOCK_FRAMES) * channels, sizeof(float));
	if (!f->fifo)
		return err_say(why, ERR_NOMEM, "sender", "%s", err_text(ERR_NOMEM));
	f->made = f->fifo + (size_t)f->fifo_room * channels;
	if ((e = conceal_init(&f->conceal, f->format.clock_hz, channels)) || (e = varirate_beside_init(&f->rate, channels, f->o->model)))
		return err_say(why, e, "sender", "%s", err_text(e));
	if ((e = convert_init(&f->to_f32, f->sample_bytes == 2 ? SAMPLE_S16 : f->sample_bytes == 3 ? SAMPLE_S24 : SAMPLE_F32, SAMPLE_F32, false, 0)) ||
		(e = convert_init(&f->from_f32, SAMPLE_F32, f->sample_bytes == 2 ? SAMPLE_S16 : f->sample_bytes == 3 ? SAMPLE_S24 : SAMPLE_F32, false, 0)))
		return err_say(why, e, "sender", "%s", err_text(e));
	return ERR_OK;
}

float *netflowsound_room(struct netflow *f, uint32_t n_frames)
{
	return f->fifo_frames + n_frames <= f->fifo_room ? f->fifo + (size_t)f->fifo_frames * f->format.channels : NULL;
}

/*
 * Frames of a part that are heard, from *first on: those before the track's first position only start the decoder, those behind
 * its end are the rest of a packet.
 */
static uint32_t heard_of(const struct netflow *f, const struct jitter_part *part, uint32_t *first)
{
	int64_t base, begin = part->pos + part->skip_frames, end = begin + part->frames;

	*first = 0;
	if (f->format.codec != RTP_CODEC_OPUS || !netflowtrack_base(f, &base))
		return part->frames;
	int64_t first_pos = f->binding.first_pos - base;
	if (!f->playing && first_pos > begin && first_pos - begin <= OPUSDEC_MAX_FRAMES)
		*first = first_pos < end ? (uint32_t)(first_pos - begin) : part->frames;
	if (f->ending && f->binding.end_pos != RTCP_UNKNOWN_POS && f->binding.end_pos - base < end)
		end = f->binding.end_pos - base > begin + *first ? f->binding.end_pos - base : begin + *first;
	return (uint32_t)(end - begin) - *first;
}

void netflowsound_packet(struct netflow *f, const struct jitter_part *part)
{
	unsigned channels = f->format.channels;
	uint32_t frames = part->frames + part->skip_frames;
	float *to = netflowsound_room(f, frames);

	if (!to)
		return;
	if (part->jumped && f->playing)
		conceal_make(&f->conceal, NULL, 0); /* so that it is faded over */
	if (f->decoder) {
		struct packet p = packet_data(f->coded.id, f->decoder_pos, frames, part->n_bytes);
		struct opusdec_block b = { .n_frames = 0 };
		p.payload = part->bytes;
		enum err e = opusdec_packet(f->decoder, &p, &b);
		if (b.n_frames > frames)
			b.n_frames = frames;
		if (b.n_frames)
			memcpy(to, b.frames, b.n_frames * channels * sizeof(float));
		memset(to + b.n_frames * channels, 0, (frames - b.n_frames) * channels * sizeof(float));
		f->decoder_pos += frames;
		if (e)
			f->counts.refused++;
	} else {
		if (!f->is_joint)
			convert_swap(f->scratch, part->bytes, (size_t)frames * channels, f->sample_bytes);
		convert_run(&f->to_f32, to, f->is_joint ? part->bytes : f->scratch, (size_t)frames * channels);
	}
	if (part->skip_frames)
		memmove(to, to + (size_t)part->skip_frames * channels, (size_t)part->frames * channels * sizeof(float));
	f->play_media_pos = part->pos + frames;
	uint32_t first, heard = heard_of(f, part, &first);
	if (first)
		memmove(to, to + (size_t)first * channels, (size_t)heard * channels * sizeof(float));
	f->lead_frames += first;
	conceal_play(&f->conceal, to, heard);
	f->fifo_frames += heard;
	f->playing = f->playing || heard;
	if (netflowtrack_flags(f, part) == PACKET_CONCEALED)
		f->marked_frames = f->fifo_frames + VARIRATE_AHEAD_FRAMES + 1;
}

void netflowsound_hole(struct netflow *f, uint32_t frames, const struct jitter_part *part)
{
	unsigned channels = f->format.channels;
	float *to = netflowsound_room(f, frames);
	uint32_t done = 0;

	if (!to)
		return;
	if (part->what == JITTER_MISSING && part->silent) {
		memset(to, 0, (size_t)frames * channels * sizeof(float));
		done = frames;
	}
	while (f->decoder && done < frames) {
		const uint8_t *bytes = NULL;
		const struct jitter_slot *next = part->what == JITTER_MISSING ? jitter_peek(&f->jitter, part->pos + frames, &bytes) : NULL;
		struct packet p = packet_data(f->coded.id, f->decoder_pos + (frames - done), next ? next->dur_frames : 0, next ? next->n_bytes : 0);
		struct opusdec_block b = { .n_frames = 0 };
		p.payload = bytes;
		if (opusdec_conceal(f->decoder, f->decoder_pos, frames - done, next ? &p : NULL, &b) || !b.n_frames)
			break;
		if (b.n_frames > frames - done)
			b.n_frames = frames - done;
		memcpy(to + (size_t)done * channels, b.frames, b.n_frames * channels * sizeof(float));
		if (b.flags & PACKET_RECOVERED)
			f->counts.recovered++;
		done += (uint32_t)b.n_frames;
		f->decoder_pos += (int64_t)b.n_frames;
	}
	if (done < frames && !f->decoder)
		conceal_make(&f->conceal, to, frames);
	else if (done < frames)
		memset(to + (size_t)done * channels, 0, (size_t)(frames - done) * channels * sizeof(float));
	if (f->decoder)
		conceal_play(&f->conceal, to, frames);
	f->fifo_frames += frames;
	if (part->what == JITTER_MISSING)
		f->play_media_pos = part->pos + frames;
	if (part->what == JITTER_MISSING && part->silent) {
		f->counts.unsent_frames += frames;
		return;
	}
	if (part->what == JITTER_MISSING && !f->jitter.n_held) {
		f->open_frames += frames;
	} else {
		f->counts.concealed_frames += frames;
		f->counts.lost_frames += part->what == JITTER_MISSING ? frames : 0;
	}
	f->marked_frames = f->fifo_frames + VARIRATE_AHEAD_FRAMES + 1;
}

void netflowsound_settle(struct netflow *f, int64_t unsent_frames)
{
	int64_t unsent = unsent_frames < 0 ? 0 : unsent_frames < f->open_frames ? unsent_frames : f->open_frames;

	f->counts.unsent_frames += (uint64_t)unsent;
	f->counts.concealed_frames += f->open_frames - (uint64_t)unsent;
	f->counts.lost_frames += f->open_frames - (uint64_t)unsent;
	f->open_frames = 0;
}
