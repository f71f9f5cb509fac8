/* capture: audio files, pipes, raw samples, generators and devices become PCM tracks of a stream. */
#include "stage/capturing.h"
#include "stage/devices.h"

#include <inttypes.h>
#include <string.h>

/* Formats that -f takes: the first four are the stream's own, the others are for raw: only. */
enum { FORMAT_S16, FORMAT_S24, FORMAT_S32, FORMAT_F32, N_STREAM_FORMATS };

static const struct opt_choice formats[] = {
	{ "s16", FORMAT_S16 }, { "s24", FORMAT_S24 }, { "s32", FORMAT_S32 }, { "f32", FORMAT_F32 }, { "s16be", 4 }, { "s24be", 5 },
	{ "s32be", 6 }, { "f32be", 7 }, { "f64", 8 }, { "f64be", 9 }, { "s8", 10 }, { "u8", 11 }, { "alaw", 12 }, { "ulaw", 13 }, { NULL, 0 }
};

static const enum sample samples[N_STREAM_FORMATS] = { SAMPLE_S16, SAMPLE_S24, SAMPLE_S32, SAMPLE_F32 };

static void check_usage(struct tool *t, const struct capturing_options *o, int format, char *const *specs, int n)
{
	bool stdin_used = false;

	if (n < 1 && o->names.n)
		tool_usage(t, "-n", "took '%s' as a name, and no source is left; a file whose name begins with - is written ./NAME, or after --",
			o->names.value[0]);
	if (n < 1)
		tool_usage(t, "no source", "give a file, -, raw:PATH, gen:NAME or a device; capture --help says more");
	if (n > (int)PACKET_MAX_TRACK)
		tool_usage(t, "sources", "%d are too many (1 to %u)", n, PACKET_MAX_TRACK);
	if (o->names.n > (unsigned)n)
		tool_usage(t, "-n", "%u names for %d sources", o->names.n, n);
	for (int i = 0; i < n; i++) {
		bool is_raw = capturing_has_prefix(specs[i], "raw:");

		if (!strcmp(specs[i], "-") || !strcmp(specs[i], "raw:-")) {
			if (stdin_used)
				tool_usage(t, "<stdin>", "cannot be two sources");
			stdin_used = true;
		}
		/* A rate nobody resamples to: 48 for 48k. */
		if (o->rate_hz && o->rate_hz < OPT_LEAST_RATE_HZ && !is_raw && !capturing_has_prefix(specs[i], "gen:"))
			tool_usage(t, "-r", "%u Hz is for raw: and gen: only, elsewhere %u Hz and more; is %uk meant?", o->rate_hz, OPT_LEAST_RATE_HZ, o->rate_hz);
		if (!is_raw && format >= (int)N_STREAM_FORMATS)
			tool_usage(t, "-f", "'%s' is for raw: sources only; for %s s16, s24, s32 or f32", formats[format].word, specs[i]);
	}
}

int main(int argc, char **argv)
{
	static struct capturing c = { .o = { .format = SAMPLE_CODED, .dither = true } };
	struct capturing_options *o = &c.o;
	struct tool tool = { .name = NULL };
	int format = -1;
	bool list = false, json = false;

	const struct opt options[] = {
		OPT_GROUP("What comes out (without these everything stays as the source has it):"),
		OPT_RATE('r', "rate", &o->rate_hz, TRACK_MIN_RATE_HZ, TRACK_MAX_RATE_HZ, "resample to this rate; of raw: and gen: their rate"),
		OPT_INT('c', "channels", "CHANNELS", &o->channels, 1, TRACK_MAX_CHANNELS, "make so many channels; of raw: and gen: their channels"),
		OPT_CHOICE('f', "format", "FORMAT", &format, formats, "sample format; of raw: the one it is in"),
		OPT_CLEAR(0, "no-dither", &o->dither, "round without dither where -f, -r or -c drops bits"),
		OPT_LIST('n', "name", "NAME", &o->names, "name of the track; again for each further source (its file name)"),
		OPT_GROUP("How much of it, and when:"),
		OPT_TIME('d', "duration", "TIME", &o->duration, 0, 1e9, "end after this much"),
		OPT_TIME(0, "start", "TIME", &o->start, 0, 1e9, "leave out what comes before"),
		OPT_FLAG(0, "realtime", &o->realtime, "at the pace of a live source, in blocks of 960 frames"),
		OPT_INT(0, "block", "FRAMES", &o->block_frames, 1, 65536, "frames a packet (4096, or as many as fit)"),
		OPT_GROUP("Devices:"),
		OPT_TIME(0, "ring", "TIME", &o->ring, 0.01, 3600, "keep so much when the reader of the stream pauses (2s)"),
		OPT_FLAG(0, "reconnect", &o->keep, "wait for a device that goes away, with a gap as long as it is absent"),
		OPT_FLAG(0, "no-sync", &o->own_clocks, "several devices: each by its own clock, not by the first's"),
		OPT_GROUP("Other:"),
		OPT_FLAG(0, "list", &list, "print what can be captured, and exit"),
		OPT_FLAG(0, "json", &json, "with --list: as JSON"),
		OPT_END
	};
	tool_begin(&tool, "capture", "[options] SOURCE...", "Audio files, pipes, raw samples, generators and devices become PCM tracks.",
		options, &argc, &argv);

	if (list) {
		devices_list(json);
		return tool_end(&tool, ERR_OK, &c.why);
	}
	check_usage(&tool, o, format, argv + 1, argc - 1);
	o->raw_format = format >= 0 ? formats[format].word : NULL;
	o->format = format >= 0 && format < N_STREAM_FORMATS ? samples[format] : SAMPLE_CODED;

	enum err e = capturing_open(&c, &tool, argv + 1, (unsigned)argc - 1);
	if (!e)
		e = capturing_run(&c);
	capturing_release(&c);
	return tool_end(&tool, e, &c.why);
}
