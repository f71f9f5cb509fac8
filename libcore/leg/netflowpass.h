/*
 * A flow passed on as it came: undecoded, at the positions that its sender gave, with what is missing marked.
 */
#ifndef LEG_NETFLOWPASS_H
#define LEG_NETFLOWPASS_H

#include "leg/netflow.h"

/* Write what can be passed on by now_ns.  Returns: what the writer said. */
enum err netflowpass_run(struct netflow *f, int64_t now_ns) WEIR_MUSTUSE;

/* When that is worth calling again. */
int64_t netflowpass_due_ns(const struct netflow *f);

#endif
