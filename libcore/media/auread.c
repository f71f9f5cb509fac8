/*
 * AU, the sound file of Sun and NeXT: big-endian, 24 bytes and a remark.  Its size of all ones is the one way to say
 * "unknown" that everybody knows; so it is what people pipe.
 */
#include "base/bytes.h"
#include "media/chanmap.h"
#include "media/pcmread.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AU_HEADER_BYTES 24u
#define AU_MAX_REMARK_BYTES 65536u

/* Encodings of the header; those left out are compressed. */
static bool parse_encoding(struct pcmread_format *f, uint32_t encoding)
{
	static const struct {
		uint8_t encoding, container_bytes;
		enum pcmread_code code;
	} known[] = {
		{ 1, 1, PCMREAD_ULAW }, { 2, 1, PCMREAD_SIGNED }, { 3, 2, PCMREAD_SIGNED }, { 4, 3, PCMREAD_SIGNED }, { 5, 4, PCMREAD_SIGNED },
		{ 6, 4, PCMREAD_FLOAT }, { 7, 8, PCMREAD_FLOAT }, { 27, 1, PCMREAD_ALAW },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (known[i].encoding == encoding) {
			f->code = known[i].code;
			f->container_bytes = known[i].container_bytes;
			return true;
		}
	}
	return false;
}

enum err auread_open(struct source *s, struct source_bytes *in, struct err_why *why)
{
	struct pcmread_format f = { 0 };
	const uint8_t *h = in->head;

	if (in->head_bytes < AU_HEADER_BYTES || (memcmp(h, ".snd", 4) && memcmp(h, "dns.", 4)))
		return ERR_AGAIN;
	f.is_big_endian = h[0] == '.';
	uint32_t (*get)(const uint8_t *) = f.is_big_endian ? get_be32 : get_le32;
	uint32_t header_bytes = get(h + 4), data_bytes = get(h + 8), channels = get(h + 20);
	uint8_t *remark = NULL;

	if (!parse_encoding(&f, get(h + 12)))
		return ERR_AGAIN;
	f.rate_hz = get(h + 16);
	f.channels = channels <= UINT16_MAX ? (uint16_t)channels : UINT16_MAX;
	enum err e = source_check(s, f.rate_hz, channels, why);
	if (e)
		return e;
	if (header_bytes < AU_HEADER_BYTES)
		return err_say(why, ERR_FORMAT, s->name, "a header of %" PRIu32 " bytes (%u at least)", header_bytes, AU_HEADER_BYTES);

	(void)source_bytes_skip(in, AU_HEADER_BYTES);
	uint32_t left = header_bytes - AU_HEADER_BYTES;
	size_t n = left < AU_MAX_REMARK_BYTES ? left : AU_MAX_REMARK_BYTES;
	if (n && (remark = malloc(n))) {
		n = source_bytes_read(in, remark, n);
		source_tag(s, "COMMENT", (const char *)remark, n);
		left -= (uint32_t)n;
	}
	free(remark);
	if (source_bytes_skip(in, left) < left)
		return err_say(why, ERR_FORMAT, s->name, "ends (at byte %" PRIu64 ") before its audio begins", in->offset_bytes);

	struct pcmread_extent x = pcmread_extent_of(s, in, data_bytes);
	if (!data_bytes && (!in->is_regular || in->size_bytes > in->offset_bytes)) {
		source_note(s, "its header says 0 bytes of audio: read to the end");
		x.to_end = true;
	}
	if ((e = pcmread_open(s, in, &f, &x, NULL, why)))
		return e;
	if (chanmap_guess(&s->track))
		source_note(s, "no channel layout: %u channels are taken in the usual order", f.channels);
	return ERR_OK;
}
