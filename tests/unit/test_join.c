/* Inputs that become one: the numbers of tracks that come late. */
#include "check.h"
#include "stream_maker.h"

#include "stage/join.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-join-XXXXXX";

/* A FIFO both of whose ends are open, with what is in m. */
static int fifo_with(struct maker *m, char path[static 64], const char *name)
{
	snprintf(path, 64, "%s/%s", folder, name);
	CHECK_EQ(mkfifo(path, 0600), 0);
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	CHECK_EQ(write(fd, m->bytes, m->n_bytes), (ssize_t)m->n_bytes);
	m->n_bytes = 0;
	return fd;
}

/*
 * The numbers are given out without the second input, which has announced one track and shown no packet.  Another track of it comes while
 * nobody has asked for announcements yet, because the caller looks at something else first.
 */
static void test_track_before_the_first_is_handed_out(void)
{
	struct maker a = {0}, b = {0};
	struct join_options o = { .input.source = { .stdin_fd = -1, .duration_frames = -1 } };
	struct err_why why = {0};
	char paths[2][64], *names[] = { paths[0], paths[1] };
	unsigned n_tracks = 0, n_data = 0;
	bool seen[4] = { false };
	struct packet p;
	struct join j;
	enum err e;

	maker_stream(&a, 1);
	maker_mono(&a, 1, 0, 48000, 48000);
	maker_mono_data(&a, maker_mono_packet(1, 48000, 480, 0));
	maker_stream(&b, 2);
	maker_mono(&b, 1, 0, 48000, 0);
	int fd_a = fifo_with(&a, paths[0], "a"), fd_b = fifo_with(&b, paths[1], "b");
	CHECK_EQ(join_open(&j, names, 2, &o, &why), ERR_OK);
	while (!join_has_begun(&j))
		if (!CHECK(!join_fill(&j)))
			goto out;

	maker_mono(&b, 2, 0, 48000, 0);
	maker_mono_data(&b, maker_mono_packet(2, 0, 480, 0));
	CHECK_EQ(write(fd_b, b.bytes, b.n_bytes), (ssize_t)b.n_bytes);
	while (j.n_hungry)
		if (!CHECK(!join_fill(&j)))
			goto out;
	while ((e = join_next(&j, &p)) == ERR_OK) {
		const struct track *t = join_track(&j, p.track);
		if (p.type == PACKET_TRACK) {
			n_tracks++;
			CHECK(t && t->id == p.track && p.track >= 1 && p.track <= 3);
			if (t)
				seen[p.track] = true;
		} else if (p.type == PACKET_DATA) {
			n_data++;
			CHECK(seen[p.track & 3]);
			CHECK(p.track == 1 || p.track == 3);
		}
	}
	CHECK_EQ(e, ERR_AGAIN);
	CHECK_EQ(n_tracks, 3);
	CHECK_EQ(n_data, 2);
out:
	join_release(&j);
	close(fd_a);
	close(fd_b);
	unlink(paths[0]);
	unlink(paths[1]);
	maker_release(&a);
	maker_release(&b);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	CHECK_RUN(test_track_before_the_first_is_handed_out);
	rmdir(folder);
	return check_end();
}
