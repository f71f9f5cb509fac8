/*
 * A recorded network: a text file with the delay of each packet on a line, as net/impairment.h reads them; or what a receiver
 * recorded (leg/arrivals.h), of whose first RTP source the delays are worked out: each packet's is how much later it came
 * than the fastest, by its timestamp.
 */
#ifndef LEG_TRACEFILE_H
#define LEG_TRACEFILE_H

#include "media/sinkfile.h"

#include <stdio.h>

#define TRACEFILE_MAX_PACKETS 10000000u

struct tracefile {
	int64_t *delays_ns;      /* or IMPAIRMENT_LOST */
	size_t n;
};

/*
 * Read the whole of it ("-" is stdin, which is text).  Returns: ERR_OK; ERR_SYS; ERR_FORMAT: a line that is none, or no packet at
 * all; ERR_LIMIT.  Role: io.
 */
enum err tracefile_read(struct tracefile *t, const char *path, struct err_why *why) WEIR_MUSTUSE;
void tracefile_release(struct tracefile *t);

/*
 * Open one to write, with its first lines; it stands as PATH.part until tracefile_close().  Refuses a file that is there unless force.
 * *file is zero.  Returns: ERR_OK, ERR_SYS, ERR_ARG.
 */
enum err tracefile_create(FILE **f, struct sinkfile *file, const char *path, bool force, struct err_why *why) WEIR_MUSTUSE;
/* A line of it: a delay, or IMPAIRMENT_LOST. */
void tracefile_write(FILE *f, int64_t delay_ns);
/* Everything has been written?  Closes it, and gives it its name.  Returns: ERR_OK, ERR_SYS: PATH.part stays. */
enum err tracefile_close(FILE *f, struct sinkfile *file, struct err_why *why) WEIR_MUSTUSE;

#endif
