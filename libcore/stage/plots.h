/*
 * --plot of meter: a picture of each track that was measured, in a file of its own, under a name made from a pattern.
 */
#ifndef STAGE_PLOTS_H
#define STAGE_PLOTS_H

#include "media/canvas.h"
#include "media/sinkfile.h"
#include "meter/meter.h"
#include "stage/takename.h"

#include <stdbool.h>

struct plots {
	bool on;
	struct takename name;
	bool force;
	const volatile sig_atomic_t *stop;
	struct canvas canvas;
	struct sinkfile file;     /* of the first picture, open from the start where its name is known then */
	unsigned n_inputs;        /* that pictures were made of */
	unsigned n_used, used_room;
	char **used;              /* names of this run: no two are the same */
};

/*
 * Be ready to make pictures under this pattern ("-": standard output; conversions as in takename.h, %i being the number of
 * the input).  A name without conversions is opened now, so that what is wrong with it is known before anything is
 * measured.  *s must be zero.  Returns: ERR_OK; ERR_CODEC without the library that draws; ERR_ARG for a bad pattern; what
 * sinkfile_open() says.  Role: io.
 */
enum err plots_open(struct plots *s, const char *pattern, bool force, const volatile sig_atomic_t *stop, struct err_why *why) WEIR_MUSTUSE;

/*
 * A picture for each of these meters, which have ended: those of one input.  A name that was used before gets "-001" and
 * so on before its ending.  Returns: ERR_OK, ERR_ARG where there is no meter, what drawing and writing said.  Role: io.
 */
enum err plots_make(struct plots *s, const char *input, struct meter *const *meters, unsigned n_meters, struct err_why *why) WEIR_MUSTUSE;

void plots_release(struct plots *s);

#endif
