/*
 * Generators: audio made of nothing but its position.  Sample n is the same whatever block it is asked for in.
 *
 *   gen:sine:freq=1000,level=-20dB         a tone in every channel; level is its peak
 *   gen:noise:white|pink,level=-20dB,seed=1    independent noise in each channel; level is its RMS
 *   gen:sweep:from=20,to=20000,time=10s,level=-20dB    one exponential sweep, then the end
 *   gen:impulse:every=1s,level=0dB         one sample in every channel, from frame 0 on
 *   gen:silence
 *   gen:ident:level=-20dB                  channel c (from 0) has a tone of 200 + 100·c Hz; the steps are smaller where
 *                                          the highest would pass 0.45 of the rate
 *   gen:count                              every sample is its own number, see below
 *
 * Without -r, -c, -f: 48 kHz, 2 channels, f32.  Endless, but for the sweep, unless a duration is given.
 *
 * gen:count: sample i = frame · channels + channel, counted from position 0 of the track, modulo the format's width:
 *   s16  the low 16 bits of i, read as signed;  s24  the low 24 bits, read as signed;  s32  the low 32 bits
 *   f32  (i mod 2^24) · 2^-23 − 1, which is exact
 * So a sample tells its place to within 65536, 2^24 or 2^32 samples, and one that is lost, repeated, moved or changed shows.
 */
#ifndef MEDIA_GENREAD_H
#define MEDIA_GENREAD_H

#include "wire/track.h"

#include <stddef.h>
#include <stdint.h>

#define GENREAD_RATE_HZ 48000u
#define GENREAD_CHANNELS 2u

/* Write gen:count's sample i in a format (s16 s24 s32 f32) to p, as many bytes as a sample has. */
void genread_count_value(enum sample format, uint64_t i, uint8_t *p);

/* Write n_frames frames of gen:count from position pos. */
void genread_count_fill(enum sample format, uint16_t channels, int64_t pos, uint8_t *frames, size_t n_frames);

/*
 * Compare n_frames frames at position pos with what gen:count makes.  Returns: how many frames are wrong; *first_wrong
 * becomes the position of the first of them.  False alarms are impossible, and so are formats it does not know: all wrong.
 */
size_t genread_check_count(enum sample format, uint16_t channels, int64_t pos, const uint8_t *frames, size_t n_frames, int64_t *first_wrong);

#endif
