/*
 * File names made from a pattern: %t the track's number, %n its name, %i the number of the piece, %% a percent sign, and every
 * conversion of strftime(3) but %t and %n, for the wall-clock time of the file's first frame, in local time.
 */
#ifndef STAGE_TAKENAME_H
#define STAGE_TAKENAME_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct takename {
	const char *pattern;      /* not owned */
	bool has_track;           /* %t */
	bool has_name;            /* %n */
	bool has_piece;           /* %i */
	bool has_time;            /* any of strftime's */
};

struct takename_values {
	unsigned track, n_tracks; /* the number is padded to as many digits as the count has */
	const char *name;         /* made safe: no '/', no leading dot or dash, no control characters */
	unsigned piece;           /* from 1; three digits */
	int64_t utc_ns;
	unsigned variant;         /* 0, or a number put before the ending to tell equal names apart: "-001" */
};

/* Look at a pattern.  Returns: ERR_OK; ERR_ARG (a conversion that does not exist). */
enum err takename_parse(struct takename *n, const char *pattern, struct err_why *why) WEIR_MUSTUSE;

/* The name, allocated: the caller frees it.  Returns: ERR_OK, ERR_NOMEM, ERR_LIMIT (longer than a path may be). */
enum err takename_make(const struct takename *n, const struct takename_values *v, char **path) WEIR_MUSTUSE;

#endif
