/*
 * A device beside another: its frames go to their places on the other's timeline, whatever its own clock does.
 *
 * The other's timeline is a straight line through its timestamps, so it says for any moment which frame was captured
 * then.  A frame of this device that was captured at the same moment belongs there.  How far it is off is what
 * drift.h calls slack: the loop there finds the ratio of the two clocks and keeps the slack at 0; varirate.h makes the
 * frames.  Until the two have drifted apart audibly, the ratio is 1 and frames are copied bit for bit.
 *
 * In the first moments timestamps may be bad, and the loop is slow: after a second, what is then off by more than 2 ms is put
 * right at once; later that happens only where 10 ms are missing for two seconds, which no clock does.
 *
 * Pure: time is an argument.  Nothing is allocated after livesync_init().
 */
#ifndef MEDIA_LIVESYNC_H
#define MEDIA_LIVESYNC_H

#include "base/err.h"
#include "base/units.h"
#include "dsp/varirate.h"
#include "net/drift.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVESYNC_SETTLE_NS UNITS_NS_PER_S
#define LIVESYNC_SETTLE_S 0.002
#define LIVESYNC_LOST_NS (2 * UNITS_NS_PER_S)
#define LIVESYNC_LOST_S 0.010

struct livesync {
	struct varirate v;
	struct drift drift;
	uint32_t rate_hz;
	bool started, settled;
	int64_t begin_ns;
	int64_t good_ns;          /* when it was last in its place, or nearly */
	int64_t base_frame;       /* the device's count of the first frame taken since the last beginning */
	int64_t taken_frames;     /* since then */
	int64_t next_pos;         /* of the next frame out */
	int64_t jump_frames;      /* to be made: see livesync_jump() */
};

/* Role: control, allocates.  Returns: ERR_OK, ERR_ARG, ERR_NOMEM.  Zero is safe to release. */
enum err livesync_init(struct livesync *s, uint32_t rate_hz, unsigned channels) WEIR_MUSTUSE;
void livesync_release(struct livesync *s);

/* The device's frame goes to pos, and those after it behind it; what was held is forgotten, the drift found is kept. */
WEIR_DEADLINE void livesync_begin(struct livesync *s, int64_t frame, int64_t pos, int64_t now_ns);

/* The device's frame belongs to want_pos (in its own rate): seen at now_ns, which never goes back. */
WEIR_DEADLINE void livesync_see(struct livesync *s, int64_t frame, double want_pos, int64_t now_ns);

/*
 * What is to be put right at once, 0 mostly: so many frames in are to be left out (livesync_skip()), or, negative, so many
 * frames out are to be a gap (livesync_gap()).  Asked once: it is forgotten then.
 */
WEIR_DEADLINE int64_t livesync_jump(struct livesync *s);
WEIR_DEADLINE void livesync_skip(struct livesync *s, int64_t n_frames);
WEIR_DEADLINE void livesync_gap(struct livesync *s, int64_t n_frames);

/* Frames in for n_out out: enough. */
WEIR_DEADLINE size_t livesync_need(const struct livesync *s, size_t n_out);
/* As varirate_run(); and as varirate_flush(). */
WEIR_DEADLINE size_t livesync_run(struct livesync *s, float *dst, size_t n_out, const float *src, size_t n_in, size_t *n_used);
WEIR_DEADLINE size_t livesync_flush(struct livesync *s, float *dst, size_t n_out);

/* Where the device's frame would lie as things are: between livesync_run()s. */
WEIR_DEADLINE double livesync_place(const struct livesync *s, int64_t frame);

#endif
