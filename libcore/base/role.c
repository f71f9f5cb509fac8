#include "base/role.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Thread_local enum role role_current = ROLE_CONTROL;

void role_take(enum role role)
{
	role_current = role;
}

enum role role_mine(void)
{
	return role_current;
}

void role_check(enum role forbidden, const char *function)
{
	if (__builtin_expect(role_current != forbidden, 1))
		return;
	static const char text[] = ": a function that may block was called on a deadline thread\n";
	if (write(STDERR_FILENO, function, strlen(function)) >= 0 && write(STDERR_FILENO, text, sizeof(text) - 1) >= 0)
		abort();
	abort();
}
