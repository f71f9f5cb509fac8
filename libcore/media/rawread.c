/* Headerless samples: the format is what the user says, all of it, because nobody can know it from the bytes. */
#include "media/chanmap.h"
#include "media/pcmread.h"

#include <stdio.h>
#include <string.h>

struct raw_format {
	const char *name;
	enum pcmread_code code;
	uint8_t container_bytes;
	bool is_big_endian;
};

#define RAW_NAMES "s8 u8 s16 s16be s24 s24be s32 s32be f32 f32be f64 f64be alaw ulaw"

static const struct raw_format raw_formats[] = {
	{ "s8", PCMREAD_SIGNED, 1, false },     { "u8", PCMREAD_UNSIGNED, 1, false },  { "s16", PCMREAD_SIGNED, 2, false },
	{ "s16le", PCMREAD_SIGNED, 2, false },  { "s16be", PCMREAD_SIGNED, 2, true },  { "s24", PCMREAD_SIGNED, 3, false },
	{ "s24le", PCMREAD_SIGNED, 3, false },  { "s24be", PCMREAD_SIGNED, 3, true },  { "s32", PCMREAD_SIGNED, 4, false },
	{ "s32le", PCMREAD_SIGNED, 4, false },  { "s32be", PCMREAD_SIGNED, 4, true },  { "f32", PCMREAD_FLOAT, 4, false },
	{ "f32le", PCMREAD_FLOAT, 4, false },   { "f32be", PCMREAD_FLOAT, 4, true },   { "f64", PCMREAD_FLOAT, 8, false },
	{ "f64le", PCMREAD_FLOAT, 8, false },   { "f64be", PCMREAD_FLOAT, 8, true },   { "alaw", PCMREAD_ALAW, 1, false },
	{ "ulaw", PCMREAD_ULAW, 1, false },
};

enum err rawread_open(struct source *s, struct source_bytes *in, const struct source_args *args, struct err_why *why)
{
	const struct raw_format *raw = NULL;

	if (!args->rate_hz || !args->channels || !args->format)
		return err_say(why, ERR_ARG, s->name, "raw samples need%s%s%s", args->rate_hz ? "" : " -r RATE",
			args->channels ? "" : " -c CHANNELS", args->format ? "" : " -f FORMAT");
	for (size_t i = 0; i < ARRAY_LEN(raw_formats); i++) {
		if (!strcmp(args->format, raw_formats[i].name))
			raw = &raw_formats[i];
	}
	if (!raw)
		return err_say(why, ERR_ARG, "-f", "'%.40s' is not a raw format (%s)", args->format, RAW_NAMES);

	struct pcmread_format f = {
		.code = raw->code, .container_bytes = raw->container_bytes, .is_big_endian = raw->is_big_endian,
		.rate_hz = args->rate_hz, .channels = args->channels,
	};
	struct pcmread_extent x = { .to_end = true };
	enum err e = pcmread_open(s, in, &f, &x, NULL, why);
	if (!e)
		(void)chanmap_guess(&s->track);
	return e;
}
