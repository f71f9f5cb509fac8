/*
 * Ogg Opus.  The first byte: from a file or a pipe, and whether page CRCs are left as they are; else they are put right
 * first, so that what lies behind them is reached.
 */
#include "fuzz.h"

#include "base/bytes.h"
#include "media/oggread.h"

#include <string.h>
#include <unistd.h>

/* CRC of Ogg pages: polynomial 0x04c11db7, not reflected, from 0 (RFC 3533). */
static uint32_t page_crc(const uint8_t *p, size_t n)
{
	uint32_t crc = 0;
	for (size_t i = 0; i < n; i++) {
		crc ^= (uint32_t)p[i] << 24;
		for (int k = 0; k < 8; k++)
			crc = crc << 1 ^ (0x04c11db7u & (0u - (crc >> 31)));
	}
	return crc;
}

static void mend(uint8_t *bytes, size_t n_bytes)
{
	for (size_t i = 0; i + 27 <= n_bytes; i++) {
		uint8_t *h = bytes + i;
		if (memcmp(h, "OggS", 4))
			continue;
		size_t page_bytes = 27u + h[26];
		if (i + page_bytes > n_bytes)
			continue;
		for (unsigned k = 0; k < h[26]; k++)
			page_bytes += h[27 + k];
		if (i + page_bytes > n_bytes)
			continue;
		put_le32(h + 22, 0);
		put_le32(h + 22, page_crc(h, page_bytes));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	if (n_bytes < 1)
		return 0;
	unsigned how = data[0];
	uint8_t *bytes = malloc(n_bytes);
	must(bytes);
	memcpy(bytes, data + 1, n_bytes - 1);
	if (!(how & 1))
		mend(bytes, n_bytes - 1);

	int fd = -1;
	struct fuzz_pipe pipe = {{-1, -1}, 0, 0, 0, 0};
	bool through_pipe = how & 2;
	if (through_pipe) {
		fuzz_pipe_open(&pipe, bytes, n_bytes - 1 < 60000 ? n_bytes - 1 : 60000, 60000);
		fuzz_pipe_feed(&pipe);
		fuzz_pipe_feed(&pipe);
		fd = pipe.fds[0];
	} else {
		fd = fuzz_file(bytes, n_bytes - 1);
	}

	static struct oggread r;
	struct source_bytes in;
	struct err_why why = {0};
	source_bytes_open(&in, fd, NULL);
	memset(&r, 0, sizeof(r));
	enum err e = oggread_open(&r, &in, !through_pipe, &why);
	if (e == ERR_OK) {
		struct oggread_packet p;
		size_t n_packets = 0;
		int64_t end = INT64_MIN;
		must(track_is_opus(&r.track) && r.track.channels >= 1 && r.track.channels <= 255);
		while ((e = oggread_next(&r, &p)) == ERR_OK) {
			/* Every packet takes at least a byte of a segment table. */
			must(++n_packets <= n_bytes);
			fuzz_touch(p.data, p.n_bytes);
			must(p.n_bytes <= OGGREAD_MAX_PACKET_BYTES);
			must(p.dur <= 5760);
			must(p.gap_frames <= (uint64_t)OGGREAD_MAX_HOLE_FRAMES);
			/* A new link begins its pre-skip before the end of the last one. */
			if (end != INT64_MIN && !p.new_link)
				must(p.pos >= end);
			end = p.pos;
		}
		must(e == ERR_END || e == ERR_FORMAT || e == ERR_LIMIT || e == ERR_CODEC || e == ERR_VERSION);
		if (e != ERR_END)
			must(*r.why.reason);
		must(oggread_next(&r, &p) == e);
		oggread_release(&r);
	} else {
		must(e == ERR_AGAIN || *why.reason);
		oggread_release(&r);
	}
	if (through_pipe)
		fuzz_pipe_close(&pipe);
	else
		close(fd);
	free(bytes);
	return 0;
}
