#include "base/utf8.h"

unsigned utf8_length(const uint8_t *s, size_t n)
{
	if (s[0] < 0x80)
		return 1;
	unsigned want = s[0] >= 0xC2 && s[0] <= 0xDF ? 2 : (s[0] & 0xF0) == 0xE0 ? 3 : s[0] >= 0xF0 && s[0] <= 0xF4 ? 4 : 0;
	if (!want || n < want)
		return 0;
	for (unsigned i = 1; i < want; i++)
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF0 && s[1] < 0x90) ||
		(s[0] == 0xF4 && s[1] > 0x8F))
		return 0;
	return want;
}
