/*
 * Thread roles.  control: sets up, takes signals, prints.  io: may block on pipes, files, sockets.
 * deadline: answers a device or the clock; allocates nothing, locks nothing, does no I/O, waits for nothing.
 *
 * A function that may block begins role_forbid(ROLE_DEADLINE): it aborts, in every build, with its own name.
 */
#ifndef BASE_ROLE_H
#define BASE_ROLE_H

/* On declarations and definitions of what the deadline role may call; checked by clang ≥ 20, documentation elsewhere. */
#if defined(__clang__) && __clang_major__ >= 20
#define WEIR_DEADLINE __attribute__((nonblocking))
#else
#define WEIR_DEADLINE
#endif

enum role { ROLE_CONTROL, ROLE_IO, ROLE_DEADLINE };

/* The calling thread takes this role.  A thread that says nothing is control. */
void role_take(enum role role);
enum role role_mine(void);

#define role_forbid(r) role_check((r), __func__)
void role_check(enum role forbidden, const char *function);

#endif
