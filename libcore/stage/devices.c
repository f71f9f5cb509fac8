#include "stage/devices.h"

#include "media/live.h"
#include "tool/describe.h"
#include "tool/tool.h"

#include <stdio.h>
#include <string.h>

struct printing {
	bool json;
	unsigned n;
	const struct live_ops *ops;
};

static void print_json(const char *key, const char *text)
{
	printf("\"%s\": ", key);
	describe_json_string(stdout, text, strlen(text));
}

static void print_row(void *user, const struct live_row *r)
{
	struct printing *p = user;
	char name[sizeof(r->name) * 4], text[sizeof(r->text) * 4];

	if (!p->json) {
		printf("  %-40s %s%s%s", tool_printable(r->name, name, sizeof(name)), r->captures ? "captures" : "", r->captures && r->plays ? ", " : "",
			r->plays ? "plays" : "");
		if (r->channels)
			printf(", %u channels", r->channels);
		if (r->rate_hz)
			printf(", %u Hz", r->rate_hz);
		if (r->is_default)
			printf(", the default");
		printf("%s%s\n", r->text[0] ? "; " : "", tool_printable(r->text, text, sizeof(text)));
		p->n++;
		return;
	}
	printf("%s{", p->n++ ? ", " : "");
	print_json("name", r->name);
	printf(", ");
	print_json("description", r->text);
	printf(", ");
	print_json("system", p->ops->scheme);
	printf(", \"captures\": %s, \"plays\": %s, \"default\": %s, \"rate_hz\": ", r->captures ? "true" : "false", r->plays ? "true" : "false",
		r->is_default ? "true" : "false");
	if (r->rate_hz)
		printf("%u, \"channels\": ", r->rate_hz);
	else
		printf("null, \"channels\": ");
	if (r->channels)
		printf("%u}", r->channels);
	else
		printf("null}");
}

static void print_devices(bool json)
{
	struct printing p = { .json = json };
	const struct live_ops *ops;
	struct err_why why;

	printf(json ? "\"devices\": [" : "Devices:\n");
	for (unsigned i = 0; (ops = live_at(i)); i++) {
		p.ops = ops;
		memset(&why, 0, sizeof(why));
		if (ops->list(print_row, &p, &why) && !json)
			printf("  %s: %s\n", ops->title, why.reason);
	}
	if (json)
		printf("]");
	else if (live_missing()[0])
		printf("  this build has no support for: %s\n", live_missing());
}

static const char *const list_files[] = {
	"WAV (RIFF, RIFX, RF64, BW64)", "W64", "AIFF, AIFF-C", "CAF", "AU", "FLAC", "Ogg FLAC", "Ogg Opus", "Ogg Vorbis", "MP3 (and layers I, II)",
	"what else libsndfile reads",
};
static const char *const list_generators[] = {
	"gen:sine:freq=1000,level=-20dB", "gen:noise:white|pink,level=-20dB,seed=1", "gen:sweep:from=20,to=20000,time=10s,level=-20dB",
	"gen:impulse:every=1s,level=0dB", "gen:silence", "gen:ident:level=-20dB", "gen:count",
};

static void print_json_list(const char *key, const char *const *words, size_t n)
{
	printf("\"%s\": [", key);
	for (size_t i = 0; i < n; i++) {
		printf("%s", i ? ", " : "");
		describe_json_string(stdout, words[i], strlen(words[i]));
	}
	printf("]");
}

void devices_list(bool json)
{
	if (json) {
		printf("{");
		print_devices(true);
		printf(", ");
		print_json_list("files", list_files, ARRAY_LEN(list_files));
		printf(", ");
		print_json_list("generators", list_generators, ARRAY_LEN(list_generators));
		printf("}\n");
		return;
	}
	print_devices(false);
	printf("Files and pipes, known by their content:\n");
	for (size_t i = 0; i < ARRAY_LEN(list_files); i++)
		printf("  %s\n", list_files[i]);
	printf("Headerless samples, with -r, -c and -f:\n  raw:PATH, raw:-\nGenerators, with what is taken if it is left out:\n");
	for (size_t i = 0; i < ARRAY_LEN(list_generators); i++)
		printf("  %s\n", list_generators[i]);
}
