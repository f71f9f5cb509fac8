/* UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length of the well-formed sequence at s (n ≥ 1 bytes), 1…4; 0 if there is none. */
unsigned utf8_length(const uint8_t *s, size_t n);

#endif
