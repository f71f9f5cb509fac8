/*
 * What libsrtp2 computes with, by nettle: AES-128 in counter mode, AES-128-GCM and HMAC-SHA1 in the place of those it was
 * built with.  Some builds of it (NSS, so Debian's) take heap for every packet; these take theirs when a stream is set up,
 * none afterwards, and wipe it when it is given back.
 *
 * libsrtp tests each of them when it takes it: against published vectors, and against those of the one it had.
 */
#ifndef NET_SRTPCIPHER_H
#define NET_SRTPCIPHER_H

#include <stdbool.h>

/*
 * Starts libsrtp and gives it these ciphers; streams of before keep what they have.  Once in a process, however often and
 * from whichever thread it is called: the self-tests take some tens of milliseconds.  Role: control, io.
 * Returns: false if libsrtp does not start or does not take them.
 */
bool srtpcipher_begin(void);

#endif
