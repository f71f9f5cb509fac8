/*
 * What meters have measured, as text: JSON for scripts, a table for people.  Makes text, prints nothing.
 */
#ifndef METER_REPORT_H
#define METER_REPORT_H

#include "meter/values.h"

#include <stdbool.h>
#include <stddef.h>

/* Text that grows; zero is empty.  Its memory is kept for the next report. */
struct report {
	char *text;               /* ends with a 0 byte */
	size_t n_bytes, room_bytes;
	bool failed;              /* out of memory: the text is not whole */
};

enum report_moment {
	REPORT_ONLY,              /* the one report of a run */
	REPORT_RUNNING,           /* one of several, what is known by now */
	REPORT_FINAL,             /* the last of several */
};

/*
 * One JSON object on a line, ending in a newline, of n meters; input is the name of what they have measured.  Values that do not exist are null; numbers have the
 * digits that give the same double back; names are UTF-8, what is not becomes U+FFFD.  A running report has no list
 * of silence.  Returns: ERR_OK, ERR_NOMEM.
 */
enum err report_json(struct report *r, const char *input, struct meter *const *meters, unsigned n_meters,
	enum report_moment moment) WEIR_MUSTUSE;

/* The same for people, two decimals: several lines a track; a running report has one a track.  input NULL: not named. */
enum err report_text(struct report *r, const char *input, struct meter *const *meters, unsigned n_meters,
	enum report_moment moment) WEIR_MUSTUSE;

void report_release(struct report *r);

/* A number as in JSON: shortest that gives the same double back, "null" for NAN and infinities.  Returns: out. */
const char *report_number(double value, char out[static 32]);

#endif
