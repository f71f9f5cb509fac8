/*
 * Going on with a signal as linear prediction says: so that what ends in the middle of a block does not end with a step.
 */
#ifndef DSP_PREDICT_H
#define DSP_PREDICT_H

#include <stddef.h>

#define PREDICT_MAX_PAST 1024u

/*
 * Continue past[0 … n_past) (at most the last PREDICT_MAX_PAST are looked at) into next[0 … n_next).  Burg's method, which
 * never gives an unstable filter.  A past that is too short or silent is followed by zeros.  Role: any; 20 KiB of stack.
 */
void predict_extend(const float *past, size_t n_past, float *next, size_t n_next);

#endif
