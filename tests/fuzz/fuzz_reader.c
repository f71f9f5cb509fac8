/*
 * The whole reader.  The first byte chooses options and the sizes of reads; the rest is the stream.  Header CRCs are put
 * right first (unless the first byte says no), so that what lies behind them is reached.
 */
#include "fuzz.h"

#include "base/bytes.h"
#include "wire/crc.h"
#include "wire/reader.h"

#include <string.h>

static void mend(uint8_t *bytes, size_t n_bytes)
{
	for (size_t i = 0; i + 64 <= n_bytes; i++) {
		uint8_t *h = bytes + i;
		if (get_le32(h) != PACKET_SYNC)
			continue;
		size_t head_bytes = h[15] * 64u;
		if (head_bytes < 64 || head_bytes > 1024 || i + head_bytes > n_bytes)
			continue;
		/* A payload CRC is put right, too, where bit 7 of its old value says so. */
		uint32_t payload_bytes = get_le32(h + 8);
		if (get_le16(h + 6) & PACKET_PCRC && h[56] & 0x80 && payload_bytes <= n_bytes - i - head_bytes)
			put_le32(h + 56, crc_32c(0, h + head_bytes, payload_bytes));
		uint32_t crc = crc_32c(0, h, 60);
		if (h[15] > 1)
			crc = crc_32c(crc, h + 64, head_bytes - 64);
		put_le32(h + 60, crc);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static const size_t pieces[] = {1, 7, 64, 100, 1000, 4096, 20000, 60000};
	if (n_bytes < 1)
		return 0;
	unsigned how = data[0];
	struct reader_options o = {
		.keep_fragments = how & 8, .raw = (how & 0x30) == 0x10, .expand_silence = (how & 0x30) == 0x20, .big_payloads = how & 0x40,
	};
	uint8_t *stream = malloc(n_bytes);
	must(stream);
	memcpy(stream, data + 1, n_bytes - 1);
	if (!(how & 0x80))
		mend(stream, n_bytes - 1);

	struct fuzz_pipe pipe;
	struct reader r;
	struct err_why why = {0};
	struct packet p;
	enum err e;
	int64_t end[4];        /* of the first PCM tracks, as handed out */
	bool begun[4] = {0};
	uint64_t n_packets = 0;

	/* Small pieces of large inputs would be all system calls. */
	size_t piece_bytes = pieces[how & 7] > n_bytes / 200 ? pieces[how & 7] : n_bytes / 200;
	fuzz_pipe_open(&pipe, stream, n_bytes - 1, piece_bytes);
	must(!reader_open(&r, pipe.fds[0], "fuzz", &o, &why));
	for (;;) {
		e = reader_next(&r, &p);
		if (e == ERR_AGAIN) {
			must(!(r.eof || r.stopped));
			fuzz_pipe_feed(&pipe);
			if ((e = reader_fill(&r)))
				break;
			continue;
		}
		if (e)
			break;
		/* A made-up packet stands for bytes that were there, or for silence announced in 64 bytes. */
		if (!o.expand_silence)
			must(++n_packets < n_bytes / 16 + 100);
		else if (++n_packets > 300)
			break;
		fuzz_touch(p.payload, p.payload_bytes);
		if (p.head)
			fuzz_touch(p.head, p.hunits * 64u);
		if (o.raw)
			continue;
		must(p.type != PACKET_STREAM && p.type != PACKET_SKIP);
		struct reader_track *rt = reader_track(&r, p.track);
		if (p.type == PACKET_DATA || p.type == PACKET_GAP || p.type == PACKET_TRACK)
			must(rt && rt->track.id == p.track);
		/* Audio is regular: no hole that no GAP fills, no frame twice, sizes as announced. */
		if (p.type == PACKET_DATA && track_is_pcm(&rt->track) && !o.keep_fragments) {
			must(p.object_offset_bytes == 0);
			must((p.flags & PACKET_SILENT && !p.payload_bytes) || (uint64_t)p.dur * rt->track.frame_bytes == p.payload_bytes);
		}
		if (rt && p.track < 4 && track_is_pcm(&rt->track) && (p.type == PACKET_DATA || p.type == PACKET_GAP) &&
			!o.keep_fragments) {
			must(p.pos <= INT64_MAX - p.dur);
			if (begun[p.track] && p.type == PACKET_DATA && !(p.flags & PACKET_DISCONT))
				must(p.pos == end[p.track]);
			end[p.track] = p.pos + p.dur;
			begun[p.track] = true;
		}
		if (p.type == PACKET_TRACK && p.track < 4)
			begun[p.track] = false; /* another rate, or another stream: counted anew */
	}
	must(e == ERR_END || e == ERR_FORMAT || e == ERR_VERSION || e == ERR_LIMIT || e == ERR_OK);
	if (e == ERR_END)
		must(r.damaged_bytes <= r.n_bytes + 65536);
	else if (e)
		must(*r.why.reason);
	char words[200];
	reader_describe_loss(&r, words, sizeof(words));
	must(memchr(words, 0, sizeof(words)));
	if (e)
		must(reader_next(&r, &p) == e);
	reader_release(&r);
	fuzz_pipe_close(&pipe);
	free(stream);
	return 0;
}
