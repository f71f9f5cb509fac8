/* Recordings: of datagrams (ours, and captures), and of delays.  Whatever the file, each datagram lies inside it. */
#include "fuzz.h"

#include "net/impairment.h"
#include "leg/arrivals.h"
#include "leg/tracefile.h"

#include <unistd.h>

static void datagrams(const char *path)
{
	struct arrivals_datagram d;
	struct arrivals_in in;
	struct err_why why;
	enum err e = arrivals_open(&in, path, &why);

	while (!e && !(e = arrivals_next(&in, &d, &why))) {
		must(d.n_bytes <= ARRIVALS_MAX_BYTES && d.arrival_ns <= ARRIVALS_MAX_NS && d.arrival_ns >= -ARRIVALS_MAX_NS);
		fuzz_touch(d.bytes, d.n_bytes);
	}
	must(e);
	arrivals_close(&in);
}

static void delays(const char *path)
{
	struct tracefile t;
	struct err_why why;

	if (tracefile_read(&t, path, &why))
		return;
	must(t.n && t.n <= TRACEFILE_MAX_PACKETS);
	for (size_t i = 0; i < t.n; i++)
		must(t.delays_ns[i] == IMPAIRMENT_LOST || (t.delays_ns[i] >= 0 && t.delays_ns[i] <= IMPAIRMENT_MAX_DELAY_NS));
	tracefile_release(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	char path[64];
	int fd = fuzz_file(data, n_bytes);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	datagrams(path);
	delays(path);
	close(fd);
	return 0;
}
