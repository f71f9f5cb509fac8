/*
 * netrecv --browse: the sessions that are announced on the network, by SAP and by mDNS, a line each as they are found.
 */
#ifndef LEG_BROWSE_H
#define LEG_BROWSE_H

#include "tool/opt.h"
#include "tool/tool.h"

struct browse_options {
	int64_t limit_ns;             /* how long to listen */
	bool json;                    /* JSON Lines */
	const char *iface;            /* NULL: the system's choice */
	const char *folder;           /* write each description there as NAME.sdp; NULL not */
	bool replace;
};

/* Until the limit, or a stop.  Returns: ERR_OK; ERR_SYS, ERR_NOMEM with *why.  Role: io; prints to stdout. */
enum err browse_run(struct tool *t, const struct browse_options *o, struct err_why *why) WEIR_MUSTUSE;

#endif
