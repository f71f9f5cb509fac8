/*
 * Messages out of bytes: the parts lie within what was given, follow each other without overlap, and are the same
 * whether the bytes come all at once or in pieces.
 *
 * Input: u8 form (2 bits) · u8 bytes in a piece · bytes.
 */
#include "fuzz.h"

#include "stage/datacut.h"

struct cut {
	uint64_t hash;
	size_t n_messages, n_message_bytes;
	enum err end;
};

static void mix(struct cut *cut, const void *p, size_t n_bytes)
{
	for (const uint8_t *b = p; n_bytes--; b++)
		cut->hash = (cut->hash ^ *b) * 0x100000001b3u;
}

static void take(struct cut *cut, const uint8_t *bytes, size_t n_bytes, const struct datacut_part *part)
{
	must(part->at_bytes + part->n_bytes <= part->taken_bytes && part->taken_bytes <= n_bytes);
	must(part->taken_bytes > 0 && part->n_bytes <= DATACUT_MAX_BYTES && (!part->status || part->status >= 0x80));
	mix(cut, &part->n_bytes, sizeof(part->n_bytes));
	mix(cut, &part->status, 1);
	mix(cut, bytes + part->at_bytes, part->n_bytes);
	cut->n_messages++;
	cut->n_message_bytes += part->n_bytes;
}

static struct cut all(enum datacut_form form, const uint8_t *bytes, size_t n_bytes, size_t piece_bytes)
{
	struct datacut c = { .form = form };
	struct cut cut = { .hash = 0xcbf29ce484222325u };
	struct datacut_part part;
	size_t at = 0, there = 0;

	for (;;) {
		there = n_bytes - there < piece_bytes ? n_bytes : there + piece_bytes;
		while (!(cut.end = datacut_next(&c, bytes + at, there - at, there == n_bytes, &part))) {
			take(&cut, bytes + at, there - at, &part);
			at += part.taken_bytes;
		}
		must(part.taken_bytes <= there - at);
		at += part.taken_bytes;
		if (cut.end != ERR_AGAIN || there == n_bytes)
			break;
	}
	must(cut.n_message_bytes <= n_bytes);
	return cut;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	if (n_bytes < 2)
		return 0;
	enum datacut_form form = (enum datacut_form)(data[0] & 3);
	struct cut whole = all(form, data + 2, n_bytes - 2, n_bytes), pieces = all(form, data + 2, n_bytes - 2, data[1] ? data[1] : 1);

	must(whole.hash == pieces.hash && whole.n_messages == pieces.n_messages && whole.end == pieces.end);
	return 0;
}
