/*
 * The session description of what a sender sends, and its file: there is always a whole one under its name.
 */
#ifndef LEG_SESSIONFILE_H
#define LEG_SESSIONFILE_H

#include "net/sdp.h"
#include "leg/sender.h"

struct sessionfile {
	const char *path;        /* "-" is standard output */
	unsigned to;             /* of which destination */
	bool with_key;           /* a=crypto with the key in it (RFC 4568), readable for its owner only */
	bool replace;            /* what is there already */
	bool is_written;
	uint32_t id, version;
};

/* What receivers of destination `to` need to know. */
void sessionfile_describe(const struct sender *s, const struct sessionfile *f, struct sdp *out);

/*
 * Write it, or write it anew.  Allocates.  Returns: ERR_OK; ERR_SYS with *why; ERR_ARG: the file is there and not to be replaced.
 * Role: io.
 */
enum err sessionfile_write(struct sessionfile *f, const struct sender *s, struct err_why *why) WEIR_MUSTUSE;

#endif
