/*
 * One PCM track of a named input as frames in double: what meter --compare compares with.
 */
#ifndef STAGE_REFERENCE_H
#define STAGE_REFERENCE_H

#include "dsp/convert.h"
#include "tool/input.h"

struct reference {
	struct input in;
	uint16_t id;               /* of the track */
	struct track *track;       /* as announced; belongs to the input */
	struct convert to_f64;
	struct packet packet;      /* at work: DATA or GAP */
	uint32_t done_frames;      /* of it */
	bool has_packet, ended;
	struct err_why why;        /* when reference_read() failed */
};

/*
 * Open `name` (a stream or an audio file, not "-") and find its nth PCM track, counted from 0; where it has only one,
 * that one.  *r must be zero.  Returns: ERR_OK; what input_open() says; ERR_FORMAT if there is none.  Role: io.
 */
enum err reference_open(struct reference *r, const char *name, unsigned nth, const volatile sig_atomic_t *stop,
	struct err_why *why) WEIR_MUSTUSE;

/* A compare_read_fn; `from` is the reference.  Holes come as zeros. */
enum err reference_read(void *from, double *dst, size_t max_frames, size_t *n_frames);

void reference_release(struct reference *r);

#endif
