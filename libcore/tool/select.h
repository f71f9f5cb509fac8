/*
 * Which tracks -t/--track asks for: by number ("1"), by name ("vocals") or by kind ("audio"); repeatable, and each value
 * may be a list with commas.  Without -t every track is asked for.
 */
#ifndef TOOL_SELECT_H
#define TOOL_SELECT_H

#include "tool/opt.h"
#include "wire/track.h"

#define SELECT_MAX_ITEMS 256u

/* Which items of a list have found a track so far; zero at first. */
struct select_hits {
	uint64_t bits[SELECT_MAX_ITEMS / 64];
};

/*
 * A usage check after parsing: no empty item, at most SELECT_MAX_ITEMS, numbers within 1…65534.
 * Returns: ERR_OK, ERR_ARG with *why.
 */
enum err select_check(const struct opt_list *list, struct err_why *why) WEIR_MUSTUSE;

/*
 * Is the track asked for?  True when the list is empty.  An item of digits is a number only; else it is the exact name,
 * or a kind.  A value that is a whole name with commas in it counts as that name too.  Allocates nothing.
 */
bool select_match(const struct opt_list *list, const struct track *t);

/* Note what the track answers, so that select_missing() can tell. */
void select_note(struct select_hits *h, const struct opt_list *list, const struct track *t);

/* The first item that no noted track answered, cut to fit, or NULL.  Returns: out. */
const char *select_missing(const struct select_hits *h, const struct opt_list *list, char out[static 128]);

#endif
