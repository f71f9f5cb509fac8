/*
 * One input of several that become one (join.h): from the moment its name is known, over its first byte, to the packet it is at.
 *
 * A FIFO, or stdin, that others are read beside is WAITING until something comes from it, because opening it as an input could wait.
 * Its tracks' announcements stand in a row, `own`, until they are handed out.
 */
#ifndef STAGE_JOINSOURCE_H
#define STAGE_JOINSOURCE_H

#include "tool/input.h"

enum joinsource_state {
	JOINSOURCE_WAITING, /* a FIFO or a pipe from which nothing came yet: not opened as an input */
	JOINSOURCE_HUNGRY,  /* to be read from */
	JOINSOURCE_READY,   /* has a packet */
	JOINSOURCE_ENDED,
};

struct joinsource {
	struct input in;
	const char *name;         /* as given */
	enum joinsource_state state;
	bool is_open;             /* `in` is */
	int probe_fd;             /* of WAITING; −1 */
	bool owns_probe;
	struct packet packet;     /* of READY */
	int64_t time_ns;          /* of it; of others where the next is expected */
	int64_t alive_ns;         /* monotonic: when something came last */
	bool shown;               /* its first tracks are known */
	uint16_t *ids;            /* new number by its own track number; 0: none */
	uint16_t *own;            /* its own numbers in order of appearance, for announcements */
	unsigned n_own, own_room;
	unsigned n_announced;     /* of those, handed out */
	unsigned n_tracks;        /* that have numbers */
	uint16_t kept_id;         /* a number kept for its first track; 0 none */
	uint8_t unwanted[65536 / 8]; /* a bit for each of its own numbers: as announced last it is not asked for */
};

/* Is this track wanted? */
typedef bool joinsource_wants_fn(void *user, const struct track *t);

/*
 * s->name is set, all else zero, which is safe to release.  is_alone: there is nothing else to wait for, so it is opened at once.
 * Returns: ERR_OK: it is WAITING or HUNGRY; ERR_SYS, ERR_NOMEM, what input_open() says, with *why.  Role: io.
 */
enum err joinsource_begin(struct joinsource *s, const struct input_options *o, bool is_alone, struct err_why *why) WEIR_MUSTUSE;
/* Something comes from one that was WAITING.  Returns: what input_open() says, with *why.  Role: io. */
enum err joinsource_open(struct joinsource *s, const struct input_options *o, struct err_why *why) WEIR_MUSTUSE;
void joinsource_release(struct joinsource *s);

/* Must it be read from before it can go on? */
bool joinsource_is_hungry(const struct joinsource *s);
/* To be polled for that; −1: it is always ready. */
int joinsource_fd(const struct joinsource *s);
bool joinsource_is_unwanted(const struct joinsource *s, uint16_t own);

/*
 * On to its next packet: READY, HUNGRY or ENDED.  Announcements get a place in the row if wants, NULL for all, says so; with `only_row`
 * they are gone past, else the source is READY with the packet that stands for them.  Does not block.
 * Returns: ERR_OK; ERR_NOMEM, what input_next() says, with *why.
 */
enum err joinsource_next(struct joinsource *s, joinsource_wants_fn *wants, void *user, bool only_row, struct err_why *why) WEIR_MUSTUSE;

/* Where its packet stands in time becomes time_ns, if it says so.  Returns: where the one behind it is expected, in nanoseconds. */
int64_t joinsource_place(struct joinsource *s);

#endif
