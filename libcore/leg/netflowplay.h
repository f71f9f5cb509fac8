/*
 * A flow played on the local clock: blocks of it, its drift taken out.
 */
#ifndef LEG_NETFLOWPLAY_H
#define LEG_NETFLOWPLAY_H

#include "leg/netflow.h"

/*
 * Play a block that begins at now_ns and is the frames [pos, pos + n_frames) of the local timeline.  out false: it is played
 * and thrown away, because nobody takes it.  Returns: what the writer said.
 */
enum err netflowplay_block(struct netflow *f, int64_t now_ns, int64_t pos, uint32_t n_frames, bool out) WEIR_MUSTUSE;

/*
 * By how much its media is later on our timeline than on its sender's, in ns.  Returns: false: it is not heard yet, or the
 * sender did not say where its media belongs.
 */
bool netflowplay_shift(const struct netflow *f, int64_t *shift_ns);

#endif
