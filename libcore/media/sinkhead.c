#include "media/sinkhead.h"

#include "base/bytes.h"

#include <stdlib.h>

void sinkhead_bytes(struct sinkhead *h, const void *bytes, size_t n_bytes)
{
	if (h->failed || n_bytes == 0)
		return;
	if (h->n_bytes + n_bytes > h->room_bytes) {
		size_t room_bytes = 2 * (h->n_bytes + n_bytes) + 256;
		uint8_t *more = realloc(h->bytes, room_bytes);
		if (!more) {
			h->failed = ERR_NOMEM;
			return;
		}
		h->bytes = more;
		h->room_bytes = room_bytes;
	}
	memcpy(h->bytes + h->n_bytes, bytes, n_bytes);
	h->n_bytes += n_bytes;
}

void sinkhead_le16(struct sinkhead *h, uint32_t v)
{
	uint8_t b[2];
	put_le16(b, (uint16_t)v);
	sinkhead_bytes(h, b, sizeof(b));
}

void sinkhead_le32(struct sinkhead *h, uint64_t v)
{
	uint8_t b[4];
	put_le32(b, v > UINT32_MAX ? UINT32_MAX : (uint32_t)v);
	sinkhead_bytes(h, b, sizeof(b));
}

void sinkhead_le64(struct sinkhead *h, uint64_t v)
{
	uint8_t b[8];
	put_le64(b, v);
	sinkhead_bytes(h, b, sizeof(b));
}

void sinkhead_be16(struct sinkhead *h, uint32_t v)
{
	uint8_t b[2];
	put_be16(b, (uint16_t)v);
	sinkhead_bytes(h, b, sizeof(b));
}

void sinkhead_be32(struct sinkhead *h, uint64_t v)
{
	uint8_t b[4];
	put_be32(b, v > UINT32_MAX ? UINT32_MAX : (uint32_t)v);
	sinkhead_bytes(h, b, sizeof(b));
}

void sinkhead_be64(struct sinkhead *h, uint64_t v)
{
	uint8_t b[8];
	put_be64(b, v);
	sinkhead_bytes(h, b, sizeof(b));
}

void sinkhead_release(struct sinkhead *h)
{
	free(h->bytes);
	h->bytes = NULL;
	h->n_bytes = h->room_bytes = 0;
}
