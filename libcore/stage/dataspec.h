/*
 * mux --data's value: PLACE[,name=NAME][,reliable|lossy][,text|json|bytes|osc|midi][,queue=N][,ttl=TIME].
 *
 * PLACE is a FIFO or another file, a descriptor's number, "-" for stdin, unix:PATH for a socket of datagrams that is made there, or
 * file:PATH: one whole file, which goes as it is, in chunks.
 */
#ifndef STAGE_DATASPEC_H
#define STAGE_DATASPEC_H

#include "base/err.h"
#include "wire/track.h"

#include <stdbool.h>
#include <stdint.h>

#define DATASPEC_MAX_QUEUE 1024u
#define DATASPEC_LOSSY_QUEUE 64u
#define DATASPEC_LOSSY_TTL_MS 100u
#define DATASPEC_MAX_TTL_MS 3600000u

struct dataspec {
	char place[256];           /* a path, or the number as given */
	int fd;                    /* of a number, or "-"; −1 */
	bool is_socket;            /* unix: */
	bool is_file;              /* file: */
	char name[128];            /* of the track; by the place if not given */
	bool is_lossy;
	uint16_t codec;            /* enum track_codec */
	uint32_t queue;            /* messages, 1…1024 */
	uint32_t ttl_ms;           /* of lossy ones; 0: no limit */
};

/* Returns: ERR_OK; ERR_ARG with *why, thing being `option`. */
enum err dataspec_parse(struct dataspec *s, const char *option, const char *text, struct err_why *why) WEIR_MUSTUSE;

#endif
