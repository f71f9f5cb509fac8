/* Opus: every packet size, application, rate and layout comes back at its place and with its length; holes, DTX, FEC. */
#include "check.h"

#include "base/bytes.h"
#include "base/heap.h"
#include "media/opusdec.h"
#include "media/opusenc.h"
#include "media/opushead.h"
#include "media/opusmap.h"

#include <opus/opus.h>

#define MAX_PACKETS 4096u

/* What came out of an encoder. */
struct sent {
	unsigned n;
	struct packet packets[MAX_PACKETS];
	uint8_t *payloads[MAX_PACKETS];
};

static enum err collect(void *user, const struct packet *p)
{
	struct sent *s = user;
	if (!CHECK(s->n < MAX_PACKETS))
		return ERR_LIMIT;
	s->payloads[s->n] = malloc(p->payload_bytes + 1);
	memcpy(s->payloads[s->n], p->payload, p->payload_bytes);
	s->packets[s->n] = *p;
	s->packets[s->n].payload = s->payloads[s->n];
	s->n++;
	return ERR_OK;
}

static void forget(struct sent *s)
{
	for (unsigned i = 0; i < s->n; i++)
		free(s->payloads[i]);
	s->n = 0;
}

static struct opusenc_options usual(void)
{
	return (struct opusenc_options){
		.frame_us = 20000, .application = OPUS_APPLICATION_AUDIO, .complexity = 5, .mode = OPUSENC_VBR, .family = -1,
	};
}

/* Tones that differ from channel to channel and a burst of noise, so that a shift shows.  f32, interleaved. */
static float *tune(size_t n_frames, unsigned channels, uint32_t rate_hz)
{
	float *p = calloc(n_frames * channels + 1, sizeof(*p));
	float low = 0;
	for (size_t i = 0; i < n_frames; i++) {
		double t = (double)i / rate_hz;
		low += 0.3f * ((float)(check_rand() >> 40) / (1 << 24) - 0.5f - low);
		for (unsigned c = 0; c < channels; c++)
			p[i * channels + c] = (float)(0.2 * sin(2 * M_PI * (300 + 170 * c) * t)) + (i / 3000 % 3 == 1 ? low : 0.1f * low);
	}
	return p;
}

struct heard {
	float *frames;
	int64_t first_pos, next_pos;
	size_t n_frames;
	uint64_t concealed, recovered;
	struct track track;
};

static void append(struct heard *h, const struct opusdec_block *b, unsigned channels)
{
	if (!b->n_frames)
		return;
	if (!h->n_frames)
		h->first_pos = h->next_pos = b->pos;
	CHECK_EQ(b->pos, h->next_pos);
	h->frames = realloc(h->frames, (h->n_frames + b->n_frames) * channels * sizeof(float));
	memcpy(h->frames + h->n_frames * channels, b->frames, b->n_frames * channels * sizeof(float));
	h->n_frames += b->n_frames;
	h->next_pos = b->pos + (int64_t)b->n_frames;
	if (b->flags & PACKET_CONCEALED)
		h->concealed += b->n_frames;
	if (b->flags & PACKET_RECOVERED)
		h->recovered += b->n_frames;
}

/* Decode what was sent, concealing every GAP. */
static void listen(const struct track *coded, const struct sent *s, struct heard *h)
{
	struct opusdec *d = NULL;
	struct opusdec_block b;
	struct err_why why = { 0 };

	*h = (struct heard){ 0 };
	if (!CHECK_OK(opusdec_new(&d, coded, false, &h->track, &why)))
		return;
	for (unsigned i = 0; i < s->n; i++) {
		const struct packet *p = &s->packets[i];
		if (p->type == PACKET_DATA) {
			CHECK_OK(opusdec_packet(d, p, &b));
			append(h, &b, h->track.channels);
			continue;
		}
		const struct packet *next = i + 1 < s->n && s->packets[i + 1].type == PACKET_DATA ? &s->packets[i + 1] : NULL;
		for (int64_t end = p->pos + p->dur, pos = p->pos; pos < end; pos = b.pos + (int64_t)b.n_frames) {
			if (!CHECK_OK(opusdec_conceal(d, pos, (uint64_t)(end - pos), next, &b)) || !CHECK(b.n_frames > 0))
				break;
			append(h, &b, h->track.channels);
		}
	}
	opusdec_free(d);
}

static void unhear(struct heard *h)
{
	free(h->frames);
	track_release(&h->track);
	*h = (struct heard){ 0 };
}

/* Write all of it in blocks of odd lengths. */
static void encode_all(struct opusenc *e, const struct track *t, const void *frames, size_t n_frames, struct sent *s)
{
	static const size_t blocks[] = { 1, 64, 4096, 961, 5000, 120 };
	const uint8_t *at = frames;
	int64_t pos = t->first_pos;

	for (unsigned i = 0; n_frames; i++) {
		size_t n = blocks[i % ARRAY_LEN(blocks)];
		n = n < n_frames ? n : n_frames;
		CHECK_OK(opusenc_write(e, pos, at, n, collect, s));
		at += n * t->frame_bytes;
		pos += (int64_t)n;
		n_frames -= n;
	}
	CHECK_OK(opusenc_finish(e, collect, s));
}

/*
 * Positions must be one unbroken row from first_pos − delay; the end is where it must be.  A track that is shorter than what is
 * left of the packet in which the delay ends begins where a packet ends with the delay.
 */
static void check_row(const struct sent *s, const struct track *coded, int64_t end)
{
	int64_t pos = coded->first_pos - coded->codec_delay_frames;
	int64_t early = coded->nominal_dur - coded->codec_delay_frames % coded->nominal_dur;
	if (coded->codec_delay_frames > coded->nominal_dur && end - coded->first_pos <= early)
		pos -= early;
	for (unsigned i = 0; i < s->n; i++) {
		CHECK_EQ(s->packets[i].pos, pos);
		bool last = i + 1 == s->n;
		CHECK(last || !(s->packets[i].flags & PACKET_TRIM));
		CHECK(last || s->packets[i].dur == coded->nominal_dur);
		CHECK_EQ((s->packets[i].flags & PACKET_TRIM) != 0, s->packets[i].dur < coded->nominal_dur);
		pos += s->packets[i].dur;
	}
	CHECK_EQ(pos, end);
}

/* The shift of b against a, in frames, where they agree best; and how well, 0…1. */
static int best_lag(const float *a, const float *b, size_t n, unsigned stride, int reach, double *agreement)
{
	int best = 0;
	*agreement = -1;
	for (int lag = -reach; lag <= reach; lag++) {
		double ab = 0, aa = 0, bb = 0;
		for (size_t i = (size_t)reach; i + (size_t)reach < n; i++) {
			double x = a[i * stride], y = b[((ptrdiff_t)i + lag) * (ptrdiff_t)stride];
			ab += x * y;
			aa += x * x;
			bb += y * y;
		}
		double c = aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
		if (c > *agreement) {
			*agreement = c;
			best = lag;
		}
	}
	return best;
}

static const uint32_t packet_us[] = { 2500, 5000, 10000, 20000, 40000, 60000 };
static const int applications[] = { OPUS_APPLICATION_AUDIO, OPUS_APPLICATION_VOIP, OPUS_APPLICATION_RESTRICTED_LOWDELAY };

static void test_lengths_and_places(void)
{
	/* 48 and 168 are what is left of a packet of 2.5 and 5 ms in which the delay ends. */
	static const size_t lengths[] = { 0, 1, 48, 49, 119, 120, 168, 169, 959, 960, 47777 };
	struct track pcm = track_pcm(48000, 1, SAMPLE_F32), coded = { 0 };
	float *in = tune(47777, 1, 48000);
	struct sent s = { 0 };
	struct heard h;

	for (size_t f = 0; f < ARRAY_LEN(packet_us); f++)
		for (size_t a = 0; a < ARRAY_LEN(applications); a++)
			for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
				struct opusenc_options o = usual();
				struct opusenc *e = NULL;
				o.frame_us = packet_us[f];
				o.application = applications[a];
				o.bitrate_bps = 96000;
				if (!CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL)))
					return;
				CHECK_EQ(coded.codec_delay_frames, a == 2 ? 120 : 312);
				encode_all(e, &pcm, in, lengths[k], &s);
				check_row(&s, &coded, (int64_t)lengths[k]);
				listen(&coded, &s, &h);
				CHECK_EQ(h.n_frames, lengths[k]);
				CHECK_EQ(h.concealed, 0);
				if (lengths[k] == 47777) {
					double agreement;
					CHECK_EQ(best_lag(in, h.frames, h.n_frames, 1, 40, &agreement), 0);
					CHECK(agreement > 0.9);
				}
				unhear(&h);
				forget(&s);
				opusenc_free(e);
				track_release(&coded);
			}
	free(in);
}

static void test_other_rates(void)
{
	static const uint32_t rates[] = { 8000, 12000, 16000, 24000, 44100, 22050, 96000, 11025, 32000 };

	for (size_t r = 0; r < ARRAY_LEN(rates); r++) {
		struct track pcm = track_pcm(rates[r], 2, SAMPLE_F32), coded = { 0 };
		size_t n = rates[r] + 77;
		float *in = tune(n, 2, rates[r]);
		struct opusenc_options o = usual();
		struct opusenc *e = NULL;
		struct sent s = { 0 };
		struct heard h;

		pcm.first_pos = 5000;
		if (!CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL)))
			return;
		CHECK_EQ(coded.rate_num, 48000);
		CHECK_EQ(coded.original_rate_hz, rates[r]);
		CHECK_EQ(coded.first_pos, llround(5000.0 * 48000 / rates[r]));
		CHECK_EQ(coded.codec_delay_frames, 312);
		encode_all(e, &pcm, in, n, &s);
		check_row(&s, &coded, coded.first_pos + llround((double)n * 48000 / rates[r]));
		listen(&coded, &s, &h);
		CHECK_EQ(h.first_pos, coded.first_pos);
		CHECK_EQ(h.n_frames, llround((double)n * 48000 / rates[r]));

		/* Aligned: against the input, at the output's instants, by straight lines between its frames. */
		float *want = calloc(h.n_frames, sizeof(float)), *got = calloc(h.n_frames, sizeof(float));
		for (size_t i = 0; i < h.n_frames; i++) {
			double at = (double)i * rates[r] / 48000;
			size_t k = (size_t)at;
			double part = at - (double)k, next = k + 1 < n ? in[2 * (k + 1)] : 0;
			want[i] = k < n ? (float)((1 - part) * in[2 * k] + part * next) : 0;
			got[i] = h.frames[2 * i];
		}
		double agreement;
		CHECK_EQ(best_lag(want, got, h.n_frames, 1, 40, &agreement), 0);
		CHECK(agreement > 0.9);
		free(want);
		free(got);
		free(in);
		unhear(&h);
		forget(&s);
		opusenc_free(e);
		track_release(&coded);
	}
}

/* s16, s24 … of the same numbers give the same packets as f32 where they hold the same bits. */
static void test_sample_formats(void)
{
	size_t n = 9600;
	float *in = tune(n, 2, 48000);
	int16_t *s16 = calloc(2 * n, 2);
	int32_t *s32 = calloc(2 * n, 4);
	uint8_t *s24 = calloc(2 * n, 3);
	double *f64 = calloc(2 * n, 8);
	for (size_t i = 0; i < 2 * n; i++) {
		int32_t v = (int32_t)lrintf(in[i] * 8388608.0f);
		in[i] = (float)v / 8388608.0f;
		f64[i] = in[i];
		s32[i] = v * 256;
		put_le24(s24 + 3 * i, (uint32_t)v & 0xFFFFFF);
		s16[i] = (int16_t)(v >> 8);
	}
	const struct {
		enum sample sample;
		const void *frames;
	} forms[] = { { SAMPLE_F32, in }, { SAMPLE_S24, s24 }, { SAMPLE_S24_32, s32 }, { SAMPLE_S32, s32 }, { SAMPLE_F64, f64 } };
	struct sent first = { 0 }, s = { 0 };
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		struct track pcm = track_pcm(48000, 2, forms[i].sample), coded = { 0 };
		struct opusenc_options o = usual();
		struct opusenc *e = NULL;
		if (!CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL)))
			return;
		encode_all(e, &pcm, forms[i].frames, n, i ? &s : &first);
		if (i && CHECK_EQ(s.n, first.n))
			for (unsigned k = 0; k < s.n; k++)
				if (CHECK_EQ(s.packets[k].payload_bytes, first.packets[k].payload_bytes))
					CHECK_MEM(s.payloads[k], first.payloads[k], s.packets[k].payload_bytes);
		forget(&s);
		opusenc_free(e);
		track_release(&coded);
	}
	struct track pcm = track_pcm(48000, 2, SAMPLE_S16), coded = { 0 };
	struct opusenc_options o = usual();
	struct opusenc *e = NULL;
	struct heard h;
	CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL));
	encode_all(e, &pcm, s16, n, &s);

	/* The plain loop over libopus gives the same bytes. */
	int error;
	OpusEncoder *plain = opus_encoder_create(48000, 2, OPUS_APPLICATION_AUDIO, &error);
	opus_encoder_ctl(plain, OPUS_SET_COMPLEXITY(5));
	opus_encoder_ctl(plain, OPUS_SET_VBR_CONSTRAINT(0));
	opus_encoder_ctl(plain, OPUS_SET_BITRATE(OPUS_AUTO));
	for (unsigned k = 0; k < n / 960; k++) {
		uint8_t bytes[1500];
		int n_bytes = opus_encode(plain, s16 + k * 1920, 960, bytes, (opus_int32)sizeof(bytes));
		if (CHECK_EQ(n_bytes, s.packets[k].payload_bytes))
			CHECK_MEM(bytes, s.payloads[k], (size_t)n_bytes);
	}
	opus_encoder_destroy(plain);
	listen(&coded, &s, &h);
	CHECK_EQ(h.n_frames, n);
	unhear(&h);
	forget(&s);
	forget(&first);
	opusenc_free(e);
	track_release(&coded);
	free(in);
	free(s16);
	free(s32);
	free(s24);
	free(f64);
}

static double level(const float *p, size_t n_frames, unsigned stride)
{
	double sum = 0;
	for (size_t i = 0; i < n_frames; i++)
		sum += (double)p[i * stride] * p[i * stride];
	return sqrt(sum / (double)n_frames);
}

/* Each channel has a tone of its own; it must be on the same channel afterwards. */
static void test_layouts(void)
{
	static const struct {
		unsigned channels;
		uint64_t mask;
		int family;
		unsigned lfe; /* channel that is low-passed: skip it */
	} layouts[] = {
		{ 1, 0x4, 0, 99 }, { 2, 0x3, 0, 99 }, { 3, 0x7, 1, 99 }, { 4, 0x33, 1, 99 }, { 4, 0x603, 1, 99 }, { 5, 0x37, 1, 99 },
		{ 6, 0x3F, 1, 3 }, { 6, 0x60F, 1, 3 }, { 7, 0x70F, 1, 3 }, { 7, 0x13F, 1, 3 }, { 8, 0x63F, 1, 3 }, { 8, 0xFF, 255, 99 },
		{ 6, 0, 255, 99 }, { 3, 0, 255, 99 }, { 9, 0, 255, 99 }, { 32, 0, 255, 99 }, { 255, 0, 255, 99 },
	};
	for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
		unsigned ch = layouts[i].channels;
		size_t n = ch > 32 ? 2880 : 9600;
		struct track pcm = track_pcm(48000, (uint16_t)ch, SAMPLE_F32), coded = { 0 };
		struct opusenc_options o = usual();
		struct opusenc *e = NULL;
		struct sent s = { 0 };
		struct heard h;
		float *in = calloc(n * ch, sizeof(float));
		for (size_t k = 0; k < n; k++)
			for (unsigned c = 0; c < ch; c++)
				in[k * ch + c] = 0.4f * (float)sin(2 * M_PI * (200 + 37.0 * c) * (double)k / 48000);
		pcm.layout = layouts[i].mask ? TRACK_LAYOUT_WAVE : TRACK_LAYOUT_DISCRETE;
		pcm.wave_mask = layouts[i].mask;
		o.complexity = 1;
		o.bitrate_bps = (int32_t)(64000 * ch);
		if (!CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL)))
			return;
		CHECK_EQ(coded.opus_family, layouts[i].family);
		encode_all(e, &pcm, in, n, &s);
		check_row(&s, &coded, (int64_t)n);
		listen(&coded, &s, &h);
		CHECK_EQ(h.n_frames, n);
		CHECK_EQ(h.track.layout, pcm.layout);
		CHECK_EQ(h.track.wave_mask, pcm.wave_mask);
		for (unsigned c = 0; c < ch && h.n_frames == n; c++) {
			if (c == layouts[i].lfe)
				continue;
			/* What is left after the right tone was taken out is small. */
			double all = level(in + c, n, ch);
			float *rest = calloc(n, sizeof(float));
			for (size_t k = 0; k < n; k++)
				rest[k] = h.frames[k * ch + c] - in[k * ch + c];
			if (!CHECK(level(rest, n, 1) < 0.5 * all))
				CHECK_FAIL("layout %zu channel %u: %g of %g", i, c, level(rest, n, 1), all);
			free(rest);
		}
		free(in);
		unhear(&h);
		forget(&s);
		opusenc_free(e);
		track_release(&coded);
	}
}

static void test_ambisonics(void)
{
	struct track pcm = track_pcm(48000, 4, SAMPLE_F32), coded = { 0 };
	struct opusenc_options o = usual();
	struct opusenc *e = NULL;
	struct sent s = { 0 };
	struct heard h;
	float *in = tune(9600, 4, 48000);

	pcm.layout = TRACK_LAYOUT_AMBISONIC;
	if (!CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL)))
		return;
	CHECK_EQ(coded.opus_family, 2);
	encode_all(e, &pcm, in, 9600, &s);
	listen(&coded, &s, &h);
	CHECK_EQ(h.n_frames, 9600);
	CHECK_EQ(h.track.layout, TRACK_LAYOUT_AMBISONIC);
	unhear(&h);
	forget(&s);
	opusenc_free(e);
	track_release(&coded);
	free(in);
}

static void test_opushead(void)
{
	struct track pcm = track_pcm(44100, 6, SAMPLE_S16), coded = { 0 };
	struct opusenc_options o = usual();
	struct opusenc *e = NULL;
	uint32_t n_bytes = 0;
	static const uint8_t want[] = { 'O', 'p', 'u', 's', 'H', 'e', 'a', 'd', 1, 6, 0x38, 0x01, 0x44, 0xAC, 0, 0, 0, 0, 1, 4, 2,
		0, 4, 1, 2, 3, 5 };

	pcm.layout = TRACK_LAYOUT_WAVE;
	pcm.wave_mask = 0x3F;
	CHECK_OK(track_set_name(&pcm, "hall"));
	CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL));
	const uint8_t *head = track_tlv(&coded, TRACK_TLV_CODEC_PRIVATE, &n_bytes);
	if (CHECK_EQ(n_bytes, sizeof(want)))
		CHECK_MEM(head, want, sizeof(want));
	char name[128];
	CHECK_STR(track_name(&coded, name), "hall");
	CHECK_EQ(coded.preroll_frames, 3840);
	CHECK_EQ(coded.sample, SAMPLE_CODED);
	CHECK_EQ(coded.nominal_dur, 960);
	opusenc_free(e);
	track_release(&coded);
	track_release(&pcm);
}

/* A hole: a GAP in its place, everything behind it in its place, and whole steps of 2.5 ms between the segments. */
static void test_hole(void)
{
	static const uint32_t rates[] = { 48000, 44100, 8000 };
	static const unsigned holes[] = { 1, 100, 5000, 12345 };

	for (size_t r = 0; r < ARRAY_LEN(rates); r++)
		for (size_t k = 0; k < ARRAY_LEN(holes); k++) {
			struct track pcm = track_pcm(rates[r], 1, SAMPLE_F32), coded = { 0 };
			size_t n = 20001, gap = holes[k];
			float *in = tune(2 * n + gap, 1, rates[r]);
			struct opusenc_options o = usual();
			struct opusenc *e = NULL;
			struct sent s = { 0 };
			struct heard h;
			struct packet_gap reason = { .reason = PACKET_GAP_XRUN, .utc_ns = 77 }, got;

			if (!CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL)))
				return;
			CHECK_OK(opusenc_write(e, 0, in, n, collect, &s));
			CHECK_OK(opusenc_gap(e, (int64_t)n, gap, &reason, collect, &s));
			CHECK_OK(opusenc_write(e, (int64_t)(n + gap), in + n + gap, n, collect, &s));
			CHECK_OK(opusenc_finish(e, collect, &s));

			double step = 48000.0 / rates[r];
			int64_t hole_pos = 0, hole_end = 0;
			unsigned at = 0;
			for (unsigned i = 0; i < s.n; i++)
				if (s.packets[i].type == PACKET_GAP) {
					at = i;
					hole_pos = s.packets[i].pos;
					hole_end = hole_pos + s.packets[i].dur;
					CHECK_OK(packet_gap_unpack(&got, s.packets[i].payload, s.packets[i].payload_bytes));
					CHECK_EQ(got.reason, PACKET_GAP_XRUN);
					CHECK_EQ(got.utc_ns, 77);
				}
			CHECK_EQ(hole_pos, llround((double)n * step));
			CHECK_EQ(hole_end, llround((double)(n + gap) * step));
			if (CHECK(at > 0 && at + 1 < s.n)) {
				CHECK(s.packets[at + 1].flags & PACKET_DISCONT);
				int64_t early = hole_end - s.packets[at + 1].pos;
				CHECK(early >= 312 && early < 312 + 120);
				CHECK_EQ((s.packets[at + 1].pos - (s.packets[at - 1].pos + 960)) % 120, 0);
			}
			listen(&coded, &s, &h);
			CHECK_EQ(h.first_pos, 0);
			CHECK_EQ(h.n_frames, llround((double)(2 * n + gap) * step));
			CHECK_EQ(h.concealed, hole_end - hole_pos);
			if (rates[r] == 48000 && h.n_frames == 2 * n + gap) {
				double agreement;
				CHECK_EQ(best_lag(in, h.frames, n, 1, 40, &agreement), 0);
				CHECK(agreement > 0.9);
				CHECK_EQ(best_lag(in + n + gap, h.frames + n + gap, n, 1, 40, &agreement), 0);
				CHECK(agreement > 0.9);
				/* The first frames behind the hole are there, not faded in. */
				double was = level(in + n + gap, 240, 1), is = level(h.frames + n + gap, 240, 1);
				CHECK(is > 0.5 * was);
			}
			free(in);
			unhear(&h);
			forget(&s);
			opusenc_free(e);
			track_release(&coded);
		}
}

static void test_gap_before_anything(void)
{
	struct track pcm = track_pcm(48000, 1, SAMPLE_F32), coded = { 0 };
	struct opusenc_options o = usual();
	struct opusenc *e = NULL;
	struct sent s = { 0 };
	struct packet_gap reason = { .reason = PACKET_GAP_NOT_STARTED, .utc_ns = UNITS_UNKNOWN_NS };
	float *in = tune(2000, 1, 48000);

	CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL));
	CHECK_OK(opusenc_gap(e, 0, 7000, &reason, collect, &s));
	CHECK_OK(opusenc_write(e, 7000, in, 2000, collect, &s));
	CHECK_OK(opusenc_finish(e, collect, &s));
	CHECK_EQ(s.packets[0].type, PACKET_GAP);
	CHECK_EQ(s.packets[0].pos, 0);
	CHECK_EQ(s.packets[0].dur, 7000);
	CHECK_EQ(s.packets[1].pos, 7000 - 312);
	CHECK(!(s.packets[1].flags & PACKET_DISCONT));
	CHECK_EQ(s.packets[s.n - 1].pos + s.packets[s.n - 1].dur, 9000);

	/* Passed on as a hole: what lies before its end is not handed out. */
	struct opusdec *d = NULL;
	struct track out = { 0 };
	struct opusdec_block b;
	int64_t pos = 7000;
	CHECK_OK(opusdec_new(&d, &coded, false, &out, NULL));
	opusdec_skip(d, 7000);
	for (unsigned i = 1; i < s.n; i++) {
		CHECK_OK(opusdec_packet(d, &s.packets[i], &b));
		CHECK_EQ(b.pos, pos);
		pos += (int64_t)b.n_frames;
	}
	CHECK_EQ(pos, 9000);
	opusdec_free(d);
	track_release(&out);
	forget(&s);
	opusenc_free(e);
	track_release(&coded);
	free(in);
}

/* n frames, most of them silent: DTX leaves holes, but the last packet is one, and says where the end is. */
static void dtx_of(size_t n)
{
	struct track pcm = track_pcm(48000, 1, SAMPLE_F32), coded = { 0 };
	float *in = calloc(n, sizeof(float));
	struct opusenc_options o = usual();
	struct opusenc *e = NULL;
	struct sent s = { 0 };
	struct heard h;

	o.application = OPUS_APPLICATION_VOIP;
	o.bitrate_bps = 24000;
	o.dtx = true;
	for (size_t i = 0; i < 48000; i++)
		in[i] = 0.3f * (float)sin(2 * M_PI * 300 * (double)i / 48000);
	CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL));
	encode_all(e, &pcm, in, n, &s);
	unsigned n_gaps = 0;
	for (unsigned i = 0; i < s.n; i++) {
		struct packet_gap g;
		if (s.packets[i].type != PACKET_GAP) {
			CHECK(s.packets[i].payload_bytes > 2 || i + 1 == s.n);
			continue;
		}
		n_gaps++;
		CHECK_OK(packet_gap_unpack(&g, s.packets[i].payload, s.packets[i].payload_bytes));
		CHECK_EQ(g.reason, PACKET_GAP_DTX);
	}
	CHECK(n_gaps > 100);
	CHECK_EQ(s.packets[s.n - 1].type, PACKET_DATA);
	check_row(&s, &coded, (int64_t)n);
	listen(&coded, &s, &h);
	CHECK_EQ(h.n_frames, n);
	unhear(&h);
	forget(&s);
	opusenc_free(e);
	track_release(&coded);
	free(in);
}

static void test_dtx(void)
{
	dtx_of(5 * 48000);
	/* Ends where a packet ends, and that packet would be a hole: not all are, a decoder is kept up to date now and then. */
	for (size_t n = 244; n <= 250; n++)
		dtx_of(n * 960 - 312);
}

/* Of a voice-like signal with FEC, a lost packet comes back from the next one, and is nearer than a guess. */
static void test_fec(void)
{
	struct track pcm = track_pcm(48000, 1, SAMPLE_F32), coded = { 0 };
	size_t n = 96000;
	float *in = tune(n, 1, 48000);
	struct opusenc_options o = usual();
	struct opusenc *e = NULL;
	struct sent s = { 0 };
	struct heard with, without, whole;

	o.application = OPUS_APPLICATION_VOIP;
	o.bitrate_bps = 32000;
	o.fec = true;
	o.expect_loss_pct = 20;
	CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL));
	encode_all(e, &pcm, in, n, &s);
	listen(&coded, &s, &whole);
	for (unsigned i = 10; i + 1 < s.n; i += 7)
		s.packets[i].type = PACKET_GAP;
	listen(&coded, &s, &with);
	CHECK_EQ(with.n_frames, n);
	CHECK(with.recovered > 960 * 5);

	struct opusdec *d = NULL;
	struct opusdec_block b;
	without = (struct heard){ 0 };
	CHECK_OK(opusdec_new(&d, &coded, false, &without.track, NULL));
	for (unsigned i = 0; i < s.n; i++) {
		const struct packet *p = &s.packets[i];
		if (p->type == PACKET_DATA)
			CHECK_OK(opusdec_packet(d, p, &b));
		else
			CHECK_OK(opusdec_conceal(d, p->pos, p->dur, NULL, &b));
		append(&without, &b, 1);
	}
	CHECK_EQ(without.n_frames, n);
	CHECK_EQ(without.recovered, 0);
	double worse = 0, better = 0;
	for (size_t i = 0; i < n && with.n_frames == n && without.n_frames == n; i++) {
		worse += pow(without.frames[i] - whole.frames[i], 2);
		better += pow(with.frames[i] - whole.frames[i], 2);
	}
	CHECK(better < 0.5 * worse);
	opusdec_free(d);
	unhear(&whole);
	unhear(&with);
	unhear(&without);
	forget(&s);
	opusenc_free(e);
	track_release(&coded);
	free(in);
}

/* The packet behind a hole carries the frames just before it: of a hole shorter than that, the last ones. */
static void test_fec_of_a_part(void)
{
	struct track pcm = track_pcm(48000, 1, SAMPLE_F32), coded = { 0 }, out = { 0 };
	size_t n = 48000;
	float *in = tune(n, 1, 48000), whole[960];
	struct opusenc_options o = usual();
	struct opusenc *e = NULL;
	struct opusdec *d = NULL;
	struct opusdec_block b;
	struct sent s = { 0 };

	o.application = OPUS_APPLICATION_VOIP;
	o.bitrate_bps = 32000;
	o.fec = true;
	o.expect_loss_pct = 20;
	CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL));
	encode_all(e, &pcm, in, n, &s);
	for (unsigned part = 960; part >= 120; part /= 2) {
		CHECK_OK(opusdec_new(&d, &coded, false, &out, NULL));
		for (unsigned i = 0; i < 20; i++)
			CHECK_OK(opusdec_packet(d, &s.packets[i], &b));
		CHECK_OK(opusdec_conceal(d, s.packets[21].pos - part, part, &s.packets[21], &b));
		CHECK_EQ(b.flags, PACKET_RECOVERED);
		CHECK_EQ(b.n_frames, part);
		CHECK_EQ(b.pos, s.packets[21].pos - part);
		if (part == 960)
			memcpy(whole, b.frames, sizeof(whole));
		CHECK(!memcmp(b.frames, whole + 960 - part, part * sizeof(float)));
		opusdec_free(d);
		track_release(&out);
	}
	forget(&s);
	opusenc_free(e);
	track_release(&coded);
	free(in);
}

static void test_refused_packet(void)
{
	struct track pcm = track_pcm(48000, 2, SAMPLE_F32), coded = { 0 }, out = { 0 };
	struct opusenc_options o = usual();
	struct opusenc *e = NULL;
	struct opusdec *d = NULL;
	struct opusdec_block b;
	struct sent s = { 0 };
	float *in = tune(9600, 2, 48000), dst[2 * 960];

	CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL));
	encode_all(e, &pcm, in, 9600, &s);
	CHECK_OK(opusdec_new(&d, &coded, false, &out, NULL));
	CHECK_OK(opusdec_packet_into(d, &s.packets[0], dst, 960, &b));
	CHECK_EQ(b.n_frames, 960 - 312);
	CHECK(b.frames < (const void *)dst || b.frames >= (const void *)(dst + 2 * 960));
	CHECK_OK(opusdec_packet_into(d, &s.packets[1], dst, 960, &b));
	CHECK(b.frames == dst);
	CHECK_EQ(b.n_frames, 960);
	CHECK_OK(opusdec_packet_into(d, &s.packets[2], dst, 100, &b));
	CHECK(b.frames != dst);
	CHECK_EQ(b.n_frames, 960);
	s.payloads[3][0] |= 3; /* code 3: a frame count follows, */
	s.payloads[3][1] = 0;  /* which may not be 0 */
	CHECK_EQ(opusdec_packet_into(d, &s.packets[3], dst, 960, &b), ERR_CODEC);
	CHECK_EQ(b.n_frames, 960);
	CHECK_EQ(b.pos, s.packets[3].pos);
	CHECK(b.flags & PACKET_CONCEALED);
	s.packets[4].payload_bytes = 0;
	CHECK_EQ(opusdec_packet(d, &s.packets[4], &b), ERR_CODEC);
	CHECK_EQ(b.n_frames, 960);
	CHECK_EQ(opusdec_pos(d), 960 * 5 - 312);
	opusdec_free(d);
	opusenc_free(e);
	forget(&s);
	track_release(&out);
	track_release(&coded);
	free(in);
}

static void test_s16_straight(void)
{
	struct track pcm = track_pcm(48000, 2, SAMPLE_F32), coded = { 0 }, out = { 0 };
	struct opusenc_options o = usual();
	struct opusenc *e = NULL;
	struct opusdec *d = NULL;
	struct opusdec_block b;
	struct sent s = { 0 };
	struct heard h;
	float *in = tune(9600, 2, 48000);
	size_t at = 0;

	CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL));
	encode_all(e, &pcm, in, 9600, &s);
	listen(&coded, &s, &h);
	CHECK_OK(opusdec_new(&d, &coded, true, &out, NULL));
	CHECK_EQ(out.sample, SAMPLE_S16);
	CHECK_EQ(out.frame_bytes, 4);
	for (unsigned i = 0; i < s.n; i++) {
		CHECK_OK(opusdec_packet(d, &s.packets[i], &b));
		for (size_t k = 0; k < 2 * b.n_frames; k++)
			CHECK_NEAR(((const int16_t *)b.frames)[k], h.frames[2 * at + k] * 32768.0, 0.51);
		at += b.n_frames;
	}
	CHECK_EQ(at, 9600);
	opusdec_free(d);
	opusenc_free(e);
	unhear(&h);
	forget(&s);
	track_release(&out);
	track_release(&coded);
	free(in);
}

static void test_gain(void)
{
	struct track pcm = track_pcm(48000, 1, SAMPLE_F32), coded = { 0 };
	struct opusenc_options o = usual();
	struct opusenc *e = NULL;
	struct sent s = { 0 };
	struct heard plain, loud;
	float *in = tune(9600, 1, 48000);

	CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL));
	encode_all(e, &pcm, in, 9600, &s);
	listen(&coded, &s, &plain);
	coded.gain_q8 = -6 * 256;
	listen(&coded, &s, &loud);
	CHECK_NEAR(level(loud.frames, 9600, 1) / level(plain.frames, 9600, 1), pow(10, -6 / 20.0), 1e-3);
	CHECK_EQ(loud.track.gain_q8, 0);
	unhear(&plain);
	unhear(&loud);
	forget(&s);
	opusenc_free(e);
	track_release(&coded);
	free(in);
}

/* A tone cut off in the middle of a swing: its last frames are as good as the others. */
static void test_no_step_at_the_end(void)
{
	/* From 5 ms on: in shorter packets the codec's own error is larger than what this looks for. */
	for (size_t f = 1; f < ARRAY_LEN(packet_us); f++)
		for (unsigned s16 = 0; s16 < 2; s16++) {
			struct track pcm = track_pcm(48000, 1, s16 ? SAMPLE_S16 : SAMPLE_F32), coded = { 0 };
			size_t n = 9600 + 481;
			float *in = calloc(n, sizeof(float));
			int16_t *in16 = calloc(n, sizeof(int16_t));
			struct opusenc_options o = usual();
			struct opusenc *e = NULL;
			struct sent s = { 0 };
			struct heard h;

			for (size_t i = 0; i < n; i++) {
				in[i] = 0.5f * (float)sin(2 * M_PI * 997 * (double)i / 48000 + 1.1);
				in16[i] = (int16_t)lrintf(in[i] * 32768);
			}
			o.frame_us = packet_us[f];
			o.application = OPUS_APPLICATION_RESTRICTED_LOWDELAY;
			o.bitrate_bps = 96000;
			CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL));
			encode_all(e, &pcm, s16 ? (void *)in16 : in, n, &s);
			listen(&coded, &s, &h);
			if (CHECK_EQ(h.n_frames, n)) {
				double worst = 0;
				for (size_t i = n - 200; i < n; i++)
					worst = fmax(worst, fabs((double)h.frames[i] - in[i]));
				CHECK_NEAR(worst, 0, 0.012);
			}
			free(in);
			free(in16);
			unhear(&h);
			forget(&s);
			opusenc_free(e);
			track_release(&coded);
		}
}

static void test_ranges(void)
{
	struct track coded = { 0 };
	struct opusenc_options o = usual();
	struct opusenc *e = NULL;
	struct err_why why = { 0 };
	struct track mono = track_pcm(48000, 1, SAMPLE_S16), wide = track_pcm(48000, 256, SAMPLE_S16);

	CHECK_EQ(opusenc_new(&e, &wide, &o, &coded, &why), ERR_LIMIT);
	CHECK(strstr(why.reason, "1 to 255"));
	o.bitrate_bps = 512001;
	CHECK_EQ(opusenc_new(&e, &mono, &o, &coded, &why), ERR_ARG);
	CHECK(strstr(why.reason, "500 to 512000"));
	o.bitrate_bps = 499;
	CHECK_EQ(opusenc_new(&e, &mono, &o, &coded, &why), ERR_ARG);
	o.bitrate_bps = 0;
	o.frame_us = 7000;
	CHECK_EQ(opusenc_new(&e, &mono, &o, &coded, &why), ERR_ARG);
	o = usual();
	o.family = 1;
	wide.channels = 9;
	CHECK(opusenc_new(&e, &wide, &o, &coded, &why) == ERR_ARG);
	CHECK(!e);
	for (int bps = 500; bps <= 512000; bps += 511500) {
		o = usual();
		o.bitrate_bps = bps;
		CHECK_OK(opusenc_new(&e, &mono, &o, &coded, &why));
		opusenc_free(e);
		track_release(&coded);
	}
	opusenc_free(NULL);
	opusdec_free(NULL);
}

static enum err drop(void *user, const struct packet *p)
{
	*(uint64_t *)user += p->dur;
	return ERR_OK;
}

static void test_no_allocation_per_packet(void)
{
	if (!heap_is_counted()) {
		check_skip("allocations are not counted in this build");
		return;
	}
	struct track pcm = track_pcm(48000, 2, SAMPLE_S24), coded = { 0 };
	struct opusenc_options o = usual();
	struct opusenc *e = NULL;
	uint8_t block[6 * 64] = { 0 };
	uint64_t coded_frames = 0, before = 0;

	o.frame_us = 2500;
	o.complexity = 0;
	CHECK_OK(opusenc_new(&e, &pcm, &o, &coded, NULL));
	for (unsigned i = 0; i < 5000; i++) {
		if (i == 50)
			before = heap_allocs();
		CHECK_OK(opusenc_write(e, i * 64, block, 64, drop, &coded_frames));
	}
	CHECK(before > 0);
	CHECK_EQ(heap_allocs(), before);
	CHECK_EQ(coded_frames, 5000 * 64 / 120 * 120);
	opusenc_free(e);
	track_release(&coded);
}

int main(void)
{
	check_seed(7);
	CHECK_RUN(test_lengths_and_places);
	CHECK_RUN(test_other_rates);
	CHECK_RUN(test_sample_formats);
	CHECK_RUN(test_layouts);
	CHECK_RUN(test_ambisonics);
	CHECK_RUN(test_opushead);
	CHECK_RUN(test_hole);
	CHECK_RUN(test_gap_before_anything);
	CHECK_RUN(test_dtx);
	CHECK_RUN(test_fec);
	CHECK_RUN(test_fec_of_a_part);
	CHECK_RUN(test_refused_packet);
	CHECK_RUN(test_s16_straight);
	CHECK_RUN(test_gain);
	CHECK_RUN(test_no_step_at_the_end);
	CHECK_RUN(test_ranges);
	CHECK_RUN(test_no_allocation_per_packet);
	return check_end();
}
