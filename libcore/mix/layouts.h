/*
 * From one channel layout to another: matrices of gains for a mix.
 *
 * A matrix has one row an output channel: coef[o * in_channels + i] is what input i gives to output o.  A layout is a
 * channel count and a WAVE mask (0: nobody knows what the channels are for).
 *
 * Down, by ITU-R BS.775-3 Annex 4 (tables 1 and 2) as far as it reaches: a centre gives 0.7071 to left and right, a
 * surround 0.7071 to its side, left and right give 0.7071 each to a mono output, where a centre gives 1 and a surround
 * 0.5.  LFE goes nowhere but to an LFE.  Channels the recommendation does not know go the same way: by constant power
 * to the two places they stand between, or with 0.7071 to the nearest.  Nothing is scaled down to make it fit.
 *
 * Up: a channel goes to the place it is for, and the others stay silent; only mono goes to both left and right of
 * stereo, at full level.
 */
#ifndef MIX_LAYOUTS_H
#define MIX_LAYOUTS_H

#include "base/err.h"
#include "wire/track.h"

/*
 * What the channels of t are for: its mask, or the usual one where it says nothing and has up to 8 channels; 0 where
 * nobody can tell.
 */
uint64_t layouts_mask(const struct track *t);

/*
 * Fill coef (out_channels * in_channels).  With no masks to go by, channel i goes to channel i.
 * Returns: ERR_OK; ERR_ARG if input channels would be lost that way.
 */
enum err layouts_matrix(double *coef, unsigned out_channels, uint64_t out_mask, unsigned in_channels, uint64_t in_mask) WEIR_MUSTUSE;

/*
 * The stereo matrix (2 rows) of one or two channels panned to pan, −1 left to +1 right, by constant power
 * (sin and cos; the equal-power law of the Web Audio API):
 *   mono: 0.7071 to both at the centre, 1 and 0 at the ends.
 *   stereo: unchanged at the centre; to the left the right channel moves over, 1·L + cos·R and sin·R.
 */
void layouts_pan(double *coef, unsigned in_channels, double pan);

#endif
