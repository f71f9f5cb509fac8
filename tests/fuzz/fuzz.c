#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void fuzz_pipe_open(struct fuzz_pipe *p, const uint8_t *bytes, size_t n_bytes, size_t piece_bytes)
{
	*p = (struct fuzz_pipe){.bytes = bytes, .n_bytes = n_bytes, .piece_bytes = piece_bytes ? piece_bytes : 1};
	/* What fits a pipe: a piece is written in one go. */
	if (p->piece_bytes > 60000)
		p->piece_bytes = 60000;
	must(pipe2(p->fds, O_CLOEXEC) == 0);
}

void fuzz_pipe_feed(struct fuzz_pipe *p)
{
	size_t n = p->n_bytes - p->at_bytes;
	if (p->fds[1] < 0)
		return;
	if (n > p->piece_bytes)
		n = p->piece_bytes;
	if (n == 0) {
		close(p->fds[1]);
		p->fds[1] = -1;
		return;
	}
	must(write(p->fds[1], p->bytes + p->at_bytes, n) == (ssize_t)n);
	p->at_bytes += n;
}

void fuzz_pipe_close(struct fuzz_pipe *p)
{
	if (p->fds[1] >= 0)
		close(p->fds[1]);
	close(p->fds[0]);
}

int fuzz_file(const uint8_t *bytes, size_t n_bytes)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	must(fd >= 0);
	must(write(fd, bytes, n_bytes) == (ssize_t)n_bytes);
	must(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

void fuzz_touch(const void *p, size_t n_bytes)
{
	static uint8_t sink[65536];
	for (size_t at = 0; at < n_bytes; at += sizeof(sink))
		memcpy(sink, (const uint8_t *)p + at, n_bytes - at < sizeof(sink) ? n_bytes - at : sizeof(sink));
	__asm__ volatile("" : : "r"(sink) : "memory");
}
