/* WAV and its relatives, CAF, AIFF and AU: our own parsers, from a pipe or (first byte) from a file. */
#include "fuzz.h"

#include "media/source.h"

#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static enum err (*const adapters[])(struct source *, struct source_bytes *, struct err_why *) = {
		wavread_open, cafread_open, aiffread_open, auread_open,
	};
	static _Alignas(64) uint8_t frames[1024 * 8 * 64];
	if (n_bytes < 1)
		return 0;
	bool through_pipe = !(data[0] & 1);
	int64_t seek_to = data[0] & 2 ? data[0] >> 2 : 0;
	data++;
	n_bytes--;

	int fd;
	struct fuzz_pipe pipe;
	if (through_pipe) {
		fuzz_pipe_open(&pipe, data, n_bytes < 60000 ? n_bytes : 60000, 60000);
		fuzz_pipe_feed(&pipe);
		fuzz_pipe_feed(&pipe);
		fd = pipe.fds[0];
	} else {
		fd = fuzz_file(data, n_bytes);
	}
	struct source_bytes in;
	struct source s = {.fd = fd, .n_frames = -1, .name = "fuzz"};
	struct err_why why = {0};
	enum err e = ERR_AGAIN;
	source_bytes_open(&in, fd, NULL);
	for (size_t i = 0; i < sizeof(adapters) / sizeof(*adapters) && e == ERR_AGAIN; i++)
		e = adapters[i](&s, &in, &why);
	if (e == ERR_OK) {
		uint64_t total = 0;
		struct source_block b;
		must(track_is_pcm(&s.track));
		must(s.track.channels >= 1 && s.track.channels <= TRACK_MAX_CHANNELS);
		must(s.track.frame_bytes && s.track.rate_num && s.track.rate_den == 1);
		size_t room = sizeof(frames) / s.track.frame_bytes;
		must(room > 0);
		if (seek_to)
			(void)!source_seek(&s, seek_to);
		for (;;) {
			memset(&b, 0, sizeof(b));
			e = source_read(&s, frames, room, &b);
			if (e)
				break;
			must(b.n_frames <= room);
			must(b.n_frames || b.gap_frames || b.track_changed);
			fuzz_touch(frames, b.n_frames * s.track.frame_bytes);
			total += b.n_frames;
			/* A frame of audio takes at least half a byte of the file. */
			must(total <= 2 * n_bytes + 2);
		}
		must(e == ERR_END || *s.why.reason);
		must(memchr(s.warning, 0, sizeof(s.warning)) && memchr(s.note, 0, sizeof(s.note)));
		if (!seek_to && e == ERR_END && s.n_frames >= 0 && !s.cut)
			must(total == (uint64_t)s.n_frames);
	} else {
		must(e == ERR_AGAIN || *why.reason);
	}
	source_release(&s);
	if (through_pipe)
		fuzz_pipe_close(&pipe);
	else
		close(fd);
	return 0;
}
