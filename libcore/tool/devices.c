#include "tool/devices.h"

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

void devices_print(bool json)
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
