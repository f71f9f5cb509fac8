#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum err err_say(struct err_why *why, enum err e, const char *thing, const char *fmt, ...)
{
	if (!why)
		return e;
	va_list ap;
	va_start(ap, fmt);
	why->err = e;
	why->sys_errno = 0;
	snprintf(why->thing, sizeof(why->thing), "%s", thing);
	vsnprintf(why->reason, sizeof(why->reason), fmt, ap);
	va_end(ap);
	return e;
}

enum err err_sys(struct err_why *why, const char *thing)
{
	int saved = errno;
	enum err e = saved == ENOMEM ? ERR_NOMEM : saved == EPIPE ? ERR_GONE : ERR_SYS;

	err_say(why, e, thing, "%s", strerror(saved));
	if (why)
		why->sys_errno = saved;
	errno = saved;
	return e;
}

const char *err_text(enum err e)
{
	static const char *const text[] = {
		[ERR_OK] = "no error",
		[ERR_END] = "end of input",
		[ERR_AGAIN] = "nothing yet",
		[ERR_NOMEM] = "out of memory",
		[ERR_SYS] = "a system call failed",
		[ERR_ARG] = "wrong argument",
		[ERR_FORMAT] = "not in the expected format",
		[ERR_VERSION] = "a version that is not known here",
		[ERR_LIMIT] = "beyond a limit",
		[ERR_DEVICE] = "audio device failed",
		[ERR_CODEC] = "codec failed",
		[ERR_PEER] = "the other side failed",
		[ERR_XRUN] = "a deadline was missed",
		[ERR_CUT] = "the input was cut short or damaged",
		[ERR_GONE] = "the reader went away",
	};
	return (unsigned)e < ARRAY_LEN(text) && text[e] ? text[e] : "unknown error";
}
