#include "stage/datacut.h"

#include "base/bytes.h"

#include <string.h>

size_t datacut_whole_bytes(const uint8_t *bytes, size_t n)
{
	size_t begin = n;

	/* The character that byte n continues, if it does, began at most three bytes before. */
	while (begin > 0 && n - begin < 3 && (bytes[begin] & 0xC0) == 0x80)
		begin--;
	return begin < n && bytes[begin] >= 0xC0 && begin > 0 ? begin : n;
}

static enum err next_line(struct datacut *c, const uint8_t *bytes, size_t n_bytes, bool is_end, struct datacut_part *part)
{
	const uint8_t *newline = n_bytes > c->looked_bytes ? memchr(bytes + c->looked_bytes, '\n', n_bytes - c->looked_bytes) : NULL;

	if (newline && newline - bytes <= (ptrdiff_t)DATACUT_MAX_BYTES) {
		part->n_bytes = (size_t)(newline - bytes);
		part->taken_bytes = part->n_bytes + 1;
	} else if (newline || n_bytes > DATACUT_MAX_BYTES) {
		part->n_bytes = part->taken_bytes = datacut_whole_bytes(bytes, DATACUT_MAX_BYTES);
		c->n_cut++;
	} else if (is_end && n_bytes) {
		part->n_bytes = part->taken_bytes = n_bytes;
	} else {
		c->looked_bytes = n_bytes;
		return ERR_AGAIN;
	}
	c->looked_bytes = 0;
	return ERR_OK;
}

static enum err next_prefixed(const struct datacut *c, const uint8_t *bytes, size_t n_bytes, bool is_end, struct datacut_part *part)
{
	if (n_bytes < DATACUT_PREFIX_BYTES)
		return is_end && n_bytes ? ERR_FORMAT : ERR_AGAIN;
	uint32_t length = c->form == DATACUT_LE32 ? get_le32(bytes) : get_be32(bytes);
	if (length > DATACUT_MAX_BYTES)
		return ERR_LIMIT;
	if (n_bytes - DATACUT_PREFIX_BYTES < length)
		return is_end ? ERR_FORMAT : ERR_AGAIN;
	part->at_bytes = DATACUT_PREFIX_BYTES;
	part->n_bytes = length;
	part->taken_bytes = DATACUT_PREFIX_BYTES + length;
	return ERR_OK;
}

/* Data bytes that follow a status byte (MIDI 1.0, table 1); system exclusive has as many as it likes. */
static unsigned data_bytes(uint8_t status)
{
	static const uint8_t of_voice[8] = { 2, 2, 2, 2, 1, 1, 2, 0 }, of_system[8] = { 0, 1, 2, 1, 0, 0, 0, 0 };

	return status >= 0xF8 ? 0 : status >= 0xF0 ? of_system[status & 7] : of_voice[status >> 4 & 7];
}

/* From its F0 to its F7, or to the next status byte that is not a clock's. */
static enum err next_exclusive(struct datacut *c, const uint8_t *bytes, size_t n_bytes, bool is_end, struct datacut_part *part)
{
	size_t i = c->looked_bytes > 1 ? c->looked_bytes : 1;

	while (i < n_bytes && i < DATACUT_MAX_BYTES && (bytes[i] < 0x80 || bytes[i] >= 0xF8))
		i++;
	if (i < n_bytes && bytes[i] == 0xF7)
		i++;
	else if (i == n_bytes && i < DATACUT_MAX_BYTES && !is_end) {
		c->looked_bytes = i;
		return ERR_AGAIN;
	}
	c->looked_bytes = 0;
	c->status = 0;
	c->n_cut += i == DATACUT_MAX_BYTES && bytes[i - 1] != 0xF7;
	part->n_bytes = part->taken_bytes = i;
	return ERR_OK;
}

static enum err next_midi(struct datacut *c, const uint8_t *bytes, size_t n_bytes, bool is_end, struct datacut_part *part)
{
	size_t skipped = 0;

	/* Data that nobody announced, as when we came in the middle. */
	while (skipped < n_bytes && bytes[skipped] < 0x80 && !c->status)
		skipped++;
	if (skipped == n_bytes) {
		part->taken_bytes = skipped;
		return ERR_AGAIN;
	}
	bytes += skipped;
	n_bytes -= skipped;
	enum err e = ERR_OK;
	if (bytes[0] == 0xF0) {
		e = next_exclusive(c, bytes, n_bytes, is_end, part);
	} else {
		uint8_t status = bytes[0] >= 0x80 ? bytes[0] : c->status;
		unsigned left = data_bytes(status);
		size_t i = bytes[0] >= 0x80;
		part->status = bytes[0] >= 0x80 ? 0 : status;
		/*
		 * A clock's byte may stand between the others, and stays there; another status byte ends what is not whole, and so do
		 * many clocks: who fell silent within a message is not waited for.
		 */
		for (; left && i < n_bytes && i < DATACUT_CLOCKED_BYTES && (bytes[i] < 0x80 || bytes[i] >= 0xF8); i++)
			left -= bytes[i] < 0x80;
		if (left && i == n_bytes && i < DATACUT_CLOCKED_BYTES)
			e = is_end ? ERR_FORMAT : ERR_AGAIN;
		part->n_bytes = part->taken_bytes = i;
		if (!e)
			c->status = left && i == DATACUT_CLOCKED_BYTES ? 0 : status < 0xF0 ? status : status < 0xF8 ? 0 : c->status;
	}
	part->at_bytes = skipped;
	part->taken_bytes = e ? 0 : part->taken_bytes + skipped;
	return e;
}

enum err datacut_next(struct datacut *c, const uint8_t *bytes, size_t n_bytes, bool is_end, struct datacut_part *part)
{
	*part = (struct datacut_part){ 0 };
	switch (c->form) {
	case DATACUT_LINES:
		return next_line(c, bytes, n_bytes, is_end, part);
	case DATACUT_LE32:
	case DATACUT_BE32:
		return next_prefixed(c, bytes, n_bytes, is_end, part);
	case DATACUT_MIDI:
		return next_midi(c, bytes, n_bytes, is_end, part);
	}
	return ERR_FORMAT;
}
