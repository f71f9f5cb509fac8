/*
 * A device that went away and is wanted back: a thread closes it, then tries to open it again, more and more rarely, until
 * that works.  Whoever had it goes on meanwhile and asks now and then.
 */
#ifndef MEDIA_LIVERETURN_H
#define MEDIA_LIVERETURN_H

#include "media/live.h"
#include "rt/wake.h"

#include <pthread.h>
#include <stdatomic.h>

struct livereturn;
/* A device of the format wanted is there: take it, before anything flows.  On the thread.  Returns: an error: try again. */
typedef enum err livereturn_fn(void *user, void *device, struct err_why *why);

struct livereturn {
	const struct live_ops *ops;
	enum live_way way;
	struct live_args args;
	struct live_format format; /* as it was: another one will not do */
	livereturn_fn *take;
	void *user;
	/* the thread's */
	void *device;
	pthread_t thread;
	struct wake wake;         /* the thread waits here */
	struct wake wake_reader;  /* posted when it is back */
	volatile sig_atomic_t stop;
	atomic_bool is_back;
	bool running;
};

/*
 * Begin to wait: old is closed, args (what it points to stays) are used again.  Its caller's thread must not touch the device any
 * more.  Returns: ERR_OK, ERR_SYS.  Role: io.
 */
enum err livereturn_begin(struct livereturn *r, const struct live_ops *ops, enum live_way way, const struct live_args *args, void *old,
	const struct live_format *format, livereturn_fn *take, void *user, struct err_why *why) WEIR_MUSTUSE;
/* Is it back?  Then *device is the caller's, the thread has ended, and everything take() did is seen.  Role: io; never waits long. */
bool livereturn_poll(struct livereturn *r, void **device);
/* No more of it.  What came back meanwhile is closed.  Zero is safe.  Role: io; waits for a server that is just being asked. */
void livereturn_end(struct livereturn *r);

#endif
