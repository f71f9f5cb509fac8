/*
 * What went wrong: a small status for code to act on, and one line for a person to read.
 *
 * A function that can fail returns enum err.  Where the status alone would leave the user guessing, it also
 * fills a struct err_why with the thing, the reason and, where there is one, the range.  The library never
 * prints: the tool writes that line once, as "tool: thing: reason".
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#define WEIR_MUSTUSE __attribute__((warn_unused_result))
#define WEIR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum err {
	ERR_OK,      /* done */
	ERR_END,     /* nothing more will come: an ordinary end */
	ERR_AGAIN,   /* nothing now, ask again after more input */
	ERR_NOMEM,   /* no memory */
	ERR_SYS,     /* a system call failed; errno is kept in the err_why */
	ERR_ARG,     /* the caller or the user asked for something impossible: usage, exit 2 */
	ERR_FORMAT,  /* bytes that are not what they should be */
	ERR_VERSION, /* a version or a critical type that is not known */
	ERR_LIMIT,   /* beyond a stated limit */
	ERR_DEVICE,  /* an audio device or server */
	ERR_CODEC,   /* a codec refused */
	ERR_PEER,    /* the other side of a network leg */
	ERR_XRUN,    /* a deadline was missed */
	ERR_CUT,     /* done, but the input was cut short or damaged: exit 3 */
	ERR_GONE,    /* the reader of our output went away: a quiet end, as by SIGPIPE */
};

/* The line for a person.  Zero is "nothing to say"; no resource is held. */
struct err_why {
	enum err err;     /* what was returned */
	int sys_errno;    /* errno with ERR_SYS, else 0 */
	char thing[256];  /* the file, option, track… it is about; may be cut */
	char reason[256]; /* what is wrong, and the range that would be right */
};

/* Fill *why (NULL is allowed) with thing and a formatted reason.  Returns: e, so that it can be returned on. */
enum err err_say(struct err_why *why, enum err e, const char *thing, const char *fmt, ...) WEIR_PRINTF(4, 5);

/* Fill *why from errno.  Returns: ERR_NOMEM for ENOMEM, ERR_GONE for EPIPE, else ERR_SYS. */
enum err err_sys(struct err_why *why, const char *thing);

/* A sentence fragment for a status: "out of memory".  Static storage. */
const char *err_text(enum err e);

#endif
