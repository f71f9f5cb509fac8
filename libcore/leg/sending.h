/*
 * netsend's work: a stream or a file on one side, a sender and links on the other, and one loop that waits for both.
 */
#ifndef LEG_SENDING_H
#define LEG_SENDING_H

#include "leg/announce.h"
#include "leg/keyfile.h"
#include "leg/linkout.h"
#include "leg/sender.h"
#include "leg/sessionfile.h"
#include "tool/input.h"
#include "tool/progress.h"
#include "tool/select.h"

struct sending_options {
	struct sender_options sender;              /* the destinations, and how they are sent to */
	struct url weir[SENDER_MAX_URLS];          /* those of the destinations that are weir:// */
	unsigned weir_to[SENDER_MAX_URLS];         /* which of the destinations each is */
	unsigned n_weir;
	struct opt_list wanted;                    /* tracks; none named: all */
	struct sessionfile files[SENDER_MAX_URLS]; /* session descriptions to write */
	unsigned n_files;
	struct keyfile key;                        /* of srtp://; sender.key points to it if there is one */
	uint8_t psk[SEAL_PSK_BYTES];               /* of weir://, if key has a secret */
	bool announce;
};

struct sending {
	struct tool *tool;
	struct sending_options o;
	struct input in;
	struct stats stats;
	struct progress progress;
	struct sender sender;
	struct linkout links;     /* to those of the destinations that are weir:// */
	struct announce announce;
	struct select_hits hits;
	bool from_file;           /* a recording has its own time still, however live it was */
	bool told;                /* the session was described */
	bool waits;               /* the input has nothing in memory */
	bool over, has_held, waits_for_link;
	struct packet held;       /* waits for room */
	unsigned n_passed_over;   /* tracks */
	unsigned n_carried;       /* tracks that go over weir:// alone */
	struct err_why why;
};

/* input: a file, or "-".  *s is zero but for s->o, which stands still from here on.  Role: control.  Returns: what went wrong, with s->why. */
enum err sending_open(struct sending *s, struct tool *t, const char *input) WEIR_MUSTUSE;
/* Until the input is over and all is sent, or a stop.  Role: io.  Returns: likewise; ERR_CUT: the input was. */
enum err sending_run(struct sending *s) WEIR_MUSTUSE;
/* The last statistics are written, all is freed, keys are wiped. */
void sending_release(struct sending *s);

#endif
