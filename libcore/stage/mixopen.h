/* Inside of mixin: its inputs are opened, and read up to their first frames. */
#ifndef STAGE_MIXOPEN_H
#define STAGE_MIXOPEN_H

#include "stage/mixin.h"

/* All inputs, in order; several pipes through the feeder.  Returns: as mixin_open(), with m->why.  Role: io, blocks. */
enum err mixopen_all(struct mixin *m) WEIR_MUSTUSE;

/* Where the mix begins, in which steps, and what kind of stream it is. */
void mixopen_settle(struct mixin *m);

#endif
