#include "tool/select.h"

#include "wire/packet.h"

#include <stdio.h>
#include <string.h>

/* One item, not terminated. */
struct item {
	const char *text;
	size_t n_bytes;
};

/* The next item of a value at *at, which moves behind the comma; false at the end. */
static bool item_next(const char **at, struct item *item)
{
	if (!*at)
		return false;
	const char *comma = strchr(*at, ',');
	item->text = *at;
	item->n_bytes = comma ? (size_t)(comma - *at) : strlen(*at);
	*at = comma ? comma + 1 : NULL;
	return true;
}

static bool item_is_number(struct item item, uint32_t *number)
{
	uint64_t n = 0;
	for (size_t i = 0; i < item.n_bytes; i++) {
		if (item.text[i] < '0' || item.text[i] > '9')
			return false;
		if (n < UINT32_MAX)
			n = n * 10 + (uint64_t)(item.text[i] - '0');
	}
	*number = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
	return item.n_bytes > 0;
}

static bool item_is(struct item item, const char *text)
{
	return strlen(text) == item.n_bytes && memcmp(item.text, text, item.n_bytes) == 0;
}

static bool item_match(struct item item, const struct track *t, const char *name)
{
	uint32_t number;
	if (item_is_number(item, &number))
		return number == t->id;
	return (*name && item_is(item, name)) || item_is(item, track_kind_name(t->kind));
}

enum err select_check(const struct opt_list *list, struct err_why *why)
{
	unsigned n_items = 0;
	for (unsigned i = 0; i < list->n; i++) {
		const char *at = list->value[i];
		struct item item;
		while (item_next(&at, &item)) {
			uint32_t number;
			if (!item.n_bytes)
				return err_say(why, ERR_ARG, "--track", "'%s' has an empty item: give numbers, names or kinds", list->value[i]);
			if (item_is_number(item, &number) && (number < 1 || number > PACKET_MAX_TRACK))
				return err_say(why, ERR_ARG, "--track", "'%.*s' is out of range: 1 to %u", (int)item.n_bytes, item.text,
					PACKET_MAX_TRACK);
			if (++n_items > SELECT_MAX_ITEMS)
				return err_say(why, ERR_ARG, "--track", "more than %u items", SELECT_MAX_ITEMS);
		}
	}
	return ERR_OK;
}

/* True when a track answers; marks the items that it answers when h is not NULL. */
static bool list_match(struct select_hits *h, const struct opt_list *list, const struct track *t)
{
	char name[128];
	track_name(t, name);
	bool matched = list->n == 0;
	unsigned n = 0;

	for (unsigned i = 0; i < list->n; i++) {
		const char *at = list->value[i];
		struct item item;
		bool whole = strchr(name, ',') && strcmp(list->value[i], name) == 0;
		while (item_next(&at, &item)) {
			if (whole || item_match(item, t, name)) {
				matched = true;
				if (h && n < SELECT_MAX_ITEMS)
					h->bits[n / 64] |= 1ULL << (n % 64);
			}
			n++;
		}
	}
	return matched;
}

bool select_match(const struct opt_list *list, const struct track *t)
{
	return list_match(NULL, list, t);
}

void select_note(struct select_hits *h, const struct opt_list *list, const struct track *t)
{
	list_match(h, list, t);
}

const char *select_missing(const struct select_hits *h, const struct opt_list *list, char out[static 128])
{
	unsigned n = 0;
	for (unsigned i = 0; i < list->n; i++) {
		const char *at = list->value[i];
		struct item item;
		while (item_next(&at, &item)) {
			if (n < SELECT_MAX_ITEMS && !(h->bits[n / 64] >> (n % 64) & 1)) {
				snprintf(out, 128, "%.*s", (int)(item.n_bytes < 127 ? item.n_bytes : 127), item.text);
				return out;
			}
			n++;
		}
	}
	return NULL;
}
