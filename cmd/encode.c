/* encode: PCM audio tracks become Opus; everything else passes. */
#include "stage/encoder.h"

#include <stdio.h>
#include <unistd.h>

#define MAX_BITRATE_BPS (512000 * 255)
#define FEC_LEAST_FRAME_US 10000
#define FEC_LOSS_PCT 5 /* speech gets its redundancy, music is left in CELT (libopus 1.3) */
/*
 * A short frame of CELT takes its energies from the one before, nearly whole (RFC 6716 section 4.3.2.1: 0.9 of them at 2.5 ms), and
 * libopus 1.3 does without new ones for as long as it expects no loss: then what follows a lost packet comes out up to 30 dB too loud.
 * With 1 % it takes fresh ones where they cost little; what is heard without loss is as good.
 */
#define SHORT_FRAME_US 10000
#define SHORT_LOSS_PCT 1

struct encode {
	struct tool tool;
	struct encoder encoder;
};

static void check_usage(struct encode *self, int frame, int argc, char **argv)
{
	filter_check_usage(&self->encoder.filter, &self->tool, argc, argv);
	self->encoder.options.frame_us = (uint32_t)frame;
	if (self->encoder.options.fec && frame < FEC_LEAST_FRAME_US)
		tool_usage(&self->tool, "--fec", "needs packets of 10ms or more, --frame is %gms", frame / 1000.0);
	if (self->encoder.jobs == 0) {
		long n = sysconf(_SC_NPROCESSORS_ONLN);
		self->encoder.jobs = n < 1 ? 1 : n > ENCODER_MAX_JOBS ? ENCODER_MAX_JOBS : n;
	}
}

int main(int argc, char **argv)
{
	static struct encode self = { .encoder.options = { .application = OPUSENC_AUDIO, .complexity = 10, .family = -1 } };
	struct opusenc_options *o = &self.encoder.options;
	static const struct opt_choice frames[] = {
		{ "2.5ms", 2500 }, { "5ms", 5000 }, { "10ms", 10000 }, { "20ms", 20000 }, { "40ms", 40000 }, { "60ms", 60000 }, { NULL, 0 },
	};
	static const struct opt_choice applications[] = {
		{ "audio", OPUSENC_AUDIO }, { "voip", OPUSENC_VOIP },
		{ "lowdelay", OPUSENC_LOWDELAY }, { NULL, 0 },
	};
	int frame = 20000, mode = OPUSENC_VBR;
	int64_t complexity = 10;
	double loss_pct = -1;
	enum err e;

	const struct opt options[] = {
		OPT_BITRATE('b', "bitrate", &o->bitrate_bps, 500, MAX_BITRATE_BPS,
			"bits a second of a whole track, up to 512k a channel; left out, libopus chooses (64k to 128k in stereo)"),
		OPT_CHOICE(0, "frame", "TIME", &frame, frames, "time in a packet (20ms)"),
		OPT_CHOICE(0, "application", "KIND", &o->application, applications,
			"audio, voip (speech) or lowdelay (2.5 ms of look-ahead instead of 6.5) (audio)"),
		OPT_INT(0, "complexity", "N", &complexity, 0, 10, "more is better and slower (10)"),
		OPT_SET(0, "vbr", &mode, OPUSENC_VBR, "variable bit rate (the default)"),
		OPT_SET(0, "cvbr", &mode, OPUSENC_CVBR, "variable, but never far from the bit rate"),
		OPT_SET(0, "cbr", &mode, OPUSENC_CBR, "every packet of the same size"),
		OPT_FLAG(0, "fec", &o->fec, "in speech, carry a small copy of the packet before (10ms and longer)"),
		OPT_PERCENT(0, "expect-loss", &loss_pct, 0, 100, "make packets that bear this much loss (0%; 1% below 10ms; 5% with --fec)"),
		OPT_FLAG(0, "dtx", &o->dtx, "send nothing in silence"),
		OPT_LIST('t', "track", "TRACK", &self.encoder.filter.wanted, "encode only these tracks: number, name or kind; the others pass"),
		OPT_INT('j', "jobs", "JOBS", &self.encoder.jobs, 1, ENCODER_MAX_JOBS, "encode so many tracks at a time (as many as there are processors)"),
		OPT_END
	};
	tool_begin(&self.tool, "encode", "[options] [INPUT]", "Encode PCM audio tracks to Opus; other tracks pass.", options, &argc, &argv);
	o->complexity = (int)complexity;
	o->mode = (enum opusenc_mode)mode;
	o->expect_loss_pct = loss_pct >= 0 ? (int)(loss_pct + 0.5) : o->fec ? FEC_LOSS_PCT : frame < SHORT_FRAME_US ? SHORT_LOSS_PCT : 0;
	check_usage(&self, frame, argc, argv);

	e = encoder_open(&self.encoder, &self.tool, argc, argv);
	if (!e)
		e = encoder_run(&self.encoder);
	encoder_release(&self.encoder);
	return tool_end(&self.tool, e, &self.encoder.filter.pump.why);
}
