/*
 * The two ends of a qualification run: pictures and sound that know their number and their time, made and looked at.
 *
 *   load frames-out PATH BYTES FPS SECONDS       frames into a FIFO, at the clock's pace
 *   load frames-in PATH BYTES                    frames out of one, each looked at; a report as JSON to stdout
 *   load audio-out CHANNELS RATE BLOCK SECONDS   raw f32 to stdout, a block at a time
 *   load audio-in CHANNELS RATE BLOCK            a weir stream on stdin, every sample looked at; the same
 *
 * A frame's first 32 bytes are its number, when it was due, and the sum of the rest; the rest is one of four pictures.  A sample is a
 * whole number that f32 holds exactly: channels 0 and 1 the frame's number, 2 to 5 the nanosecond at which its block was written, the
 * others a hash of the two.  When a writer was held up, the time is that at which the block was due: a wait is never left out.
 */
#include "rt/clock.h"
#include "wire/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define HEAD_BYTES 32u
#define N_PICTURES 4u
#define CHUNK_BYTES (128u << 10)
#define MAX_SECONDS 7200
#define BUCKET_NS 10000            /* of latencies: 10 µs, up to 2 s */
#define N_BUCKETS 200000u

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void sleep_until(int64_t ns)
{
	const struct timespec t = { .tv_sec = ns / UNITS_NS_PER_S, .tv_nsec = ns % UNITS_NS_PER_S };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* Returns: false when nobody reads any more. */
static bool write_all(int fd, const void *bytes, size_t n_bytes)
{
	const uint8_t *b = bytes;

	while (n_bytes) {
		ssize_t n = write(fd, b, n_bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EPIPE)
			return false;
		if (n < 0)
			die("write");
		b += n;
		n_bytes -= (size_t)n;
	}
	return true;
}

static uint64_t sum_of(const uint8_t *bytes, size_t n_bytes, uint64_t sum)
{
	uint64_t word;

	for (size_t i = 0; i + 8 <= n_bytes; i += 8) {
		memcpy(&word, bytes + i, 8);
		sum += word;
	}
	return sum;
}

/* ---- frames ---- */

static int frames_out(const char *path, uint32_t n_bytes, double fps, double seconds)
{
	uint8_t *pictures[N_PICTURES];
	uint64_t sums[N_PICTURES], x = 88172645463325252u;
	int fd = open(path, O_WRONLY);
	int64_t begin_ns, late_max_ns = 0;
	uint64_t n_late = 0, number = 0;

	if (fd < 0)
		die(path);
	(void)!fcntl(fd, F_SETPIPE_SZ, 1 << 20);
	for (unsigned k = 0; k < N_PICTURES; k++) {
		pictures[k] = malloc(n_bytes);
		if (!pictures[k])
			die("memory");
		for (uint32_t i = 0; i < n_bytes; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			pictures[k][i] = (uint8_t)x;
		}
		sums[k] = sum_of(pictures[k] + HEAD_BYTES, n_bytes - HEAD_BYTES, 0);
	}
	begin_ns = clock_now_ns();
	for (; (double)number < seconds * fps; number++) {
		int64_t due_ns = begin_ns + (int64_t)((double)number * 1e9 / fps);
		sleep_until(due_ns);
		uint8_t *p = pictures[number % N_PICTURES];
		uint64_t head[4] = { number, (uint64_t)due_ns, sums[number % N_PICTURES], 0 };
		memcpy(p, head, sizeof(head));
		if (!write_all(fd, p, n_bytes))
			break;
		int64_t late_ns = clock_now_ns() - due_ns - (int64_t)(1e9 / fps);
		n_late += late_ns > 0;
		late_max_ns = late_ns > late_max_ns ? late_ns : late_max_ns;
	}
	printf("{\"frames_sent\": %" PRIu64 ", \"writes_longer_than_a_frame\": %" PRIu64 ", \"longest_over_ms\": %.3f}\n", number, n_late, (double)late_max_ns / 1e6);
	return 0;
}

static int frames_in(const char *path, uint32_t n_bytes)
{
	static uint32_t in_second[MAX_SECONDS];
	int fd = open(path, O_RDONLY);
	uint8_t *chunk = aligned_alloc(4096, CHUNK_BYTES);
	uint64_t n_frames = 0, n_unique = 0, n_bad = 0, n_repeated = 0, last = 0, first = 0;
	int64_t first_ns = 0, last_ns = 0, latency_max_ns = 0;
	double latency_sum_ns = 0;
	long n_seconds = 0;

	if (fd < 0 || !chunk)
		die(path);
	(void)!fcntl(fd, F_SETPIPE_SZ, 1 << 20);
	for (;;) {
		uint64_t head[4] = { 0 }, sum = 0;
		uint32_t have = 0;
		while (have < n_bytes) {
			size_t wanted = n_bytes - have < CHUNK_BYTES ? n_bytes - have : CHUNK_BYTES;
			ssize_t n = read(fd, chunk, wanted);
			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				break;
			/* The sum is over whole words: what is left of one is asked for alone. */
			while (n % 8) {
				ssize_t more = read(fd, chunk + n, 8 - (size_t)n % 8);
				if (more <= 0)
					break;
				n += more;
			}
			size_t skip = 0;
			if (have == 0) {
				memcpy(head, chunk, sizeof(head));
				skip = HEAD_BYTES;
			}
			sum = sum_of(chunk + skip, (size_t)n - skip, sum);
			have += (uint32_t)n;
		}
		if (have < n_bytes) {
			n_bad += have > 0;
			break;
		}
		int64_t now = clock_now_ns();
		if (!n_frames++) {
			first = head[0];
			/* Half a frame before the first: a second's edge lies between frames. */
			first_ns = now;
		}
		last_ns = now;
		if (sum != head[2]) {
			n_bad++;
			continue;
		}
		int64_t latency_ns = now - (int64_t)head[1];
		latency_sum_ns += (double)latency_ns;
		latency_max_ns = latency_ns > latency_max_ns ? latency_ns : latency_max_ns;
		if (n_unique && head[0] <= last) {
			n_repeated++;
			continue;
		}
		n_unique++;
		last = head[0];
		long second = (now - first_ns + 8333333) / UNITS_NS_PER_S;
		if (second < MAX_SECONDS) {
			in_second[second]++;
			n_seconds = second;
		}
	}
	unsigned under_59 = 0, under_50 = 0, least = UINT32_MAX;
	/* The last second is not a whole one. */
	for (long s = 0; s < n_seconds; s++) {
		under_59 += in_second[s] < 59;
		under_50 += in_second[s] < 50;
		least = in_second[s] < least ? in_second[s] : least;
	}
	double span_s = (double)(last_ns - first_ns) / 1e9;
	printf("{\"frames\": %" PRIu64 ", \"unique_frames\": %" PRIu64 ", \"bad_frames\": %" PRIu64 ", \"repeated_frames\": %" PRIu64
		", \"missing_frames\": %" PRIu64 ", \"first_number\": %" PRIu64 ", \"span_s\": %.6f, \"unique_per_s\": %.4f, \"whole_seconds\": %ld, \"seconds_under_59\": %u"
		", \"seconds_under_50\": %u, \"least_in_a_second\": %u, \"latency_mean_ms\": %.3f, \"latency_max_ms\": %.3f}\n",
		n_frames, n_unique, n_bad, n_repeated, n_unique ? last - first + 1 - n_unique : 0, first, span_s,
		span_s > 0 ? (double)(n_unique - 1) / span_s : 0, n_seconds, under_59, under_50, n_seconds ? least : 0,
		n_frames ? latency_sum_ns / (double)n_frames / 1e6 : 0, (double)latency_max_ns / 1e6);
	return 0;
}

/* ---- audio ---- */

static float hash_of(uint64_t number, unsigned channel)
{
	uint64_t h = (number * 64 + channel + 1) * 0x9e3779b97f4a7c15u;
	return (float)((h >> 48) & 0xffff);
}

static void fill_frame(float *f, unsigned n_channels, uint64_t number, uint64_t stamp_ns)
{
	const float head[6] = {
		(float)(number & 0xffff), (float)((number >> 16) & 0xffffff), (float)(stamp_ns & 0xffff), (float)((stamp_ns >> 16) & 0xffff),
		(float)((stamp_ns >> 32) & 0xffff), (float)((stamp_ns >> 48) & 0xffff),
	};
	for (unsigned c = 0; c < n_channels; c++)
		f[c] = c < 6 ? head[c] : hash_of(number, c);
}

static int audio_out(unsigned n_channels, unsigned rate_hz, unsigned n_block, double seconds)
{
	float *block = calloc((size_t)n_block * n_channels, sizeof(float));
	uint64_t number = 0;
	int64_t begin_ns = clock_now_ns(), held_max_ns = 0;

	if (!block)
		die("memory");
	prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
	for (; (double)number < seconds * rate_hz; number += n_block) {
		int64_t due_ns = begin_ns + units_to_ns((int64_t)(number + n_block), rate_hz, 1);
		bool held = clock_now_ns() > due_ns;
		sleep_until(due_ns);
		int64_t now = clock_now_ns();
		if (held && now - due_ns > held_max_ns)
			held_max_ns = now - due_ns;
		for (unsigned i = 0; i < n_block; i++)
			fill_frame(block + (size_t)i * n_channels, n_channels, number + i, (uint64_t)(held ? due_ns : now));
		if (!write_all(1, block, (size_t)n_block * n_channels * sizeof(float)))
			break;
	}
	fprintf(stderr, "{\"frames_sent\": %" PRIu64 ", \"held_max_ms\": %.3f}\n", number, (double)held_max_ns / 1e6);
	return 0;
}

struct listener {
	unsigned n_channels, n_block;
	uint64_t n_frames, n_bad, n_breaks, n_gaps, gap_frames, next, first;
	bool has_begun;
	uint32_t *buckets;
	uint64_t n_waits;
	int64_t wait_max_ns;
};

static void listen_to(struct listener *l, const struct packet *p, int64_t now)
{
	const float *f = (const float *)(const void *)p->payload;

	for (uint32_t i = 0; i < p->dur; i++, f += l->n_channels) {
		uint64_t number = (uint64_t)f[0] | (uint64_t)f[1] << 16;
		uint64_t stamp_ns = (uint64_t)f[2] | (uint64_t)f[3] << 16 | (uint64_t)f[4] << 32 | (uint64_t)f[5] << 48;
		bool bad = false;
		for (unsigned c = 6; c < l->n_channels; c++)
			bad |= f[c] != hash_of(number, c);
		l->n_bad += bad;
		if (!l->has_begun)
			l->first = l->next = number;
		l->has_begun = true;
		l->n_breaks += number != l->next;
		l->next = number + 1;
		l->n_frames++;
		if (number % l->n_block)
			continue;
		int64_t wait_ns = now - (int64_t)stamp_ns;
		uint64_t k = wait_ns < 0 ? 0 : (uint64_t)wait_ns / BUCKET_NS;
		l->buckets[k < N_BUCKETS ? k : N_BUCKETS - 1]++;
		l->n_waits++;
		l->wait_max_ns = wait_ns > l->wait_max_ns ? wait_ns : l->wait_max_ns;
	}
}

static double percentile_ms(const struct listener *l, double share)
{
	uint64_t wanted = (uint64_t)(share * (double)l->n_waits), seen = 0;

	for (unsigned k = 0; k < N_BUCKETS; k++) {
		seen += l->buckets[k];
		if (seen > wanted)
			return (k + 0.5) * BUCKET_NS / 1e6;
	}
	return 0;
}

static int audio_in(unsigned n_channels, unsigned n_block)
{
	struct listener l = { .n_channels = n_channels, .n_block = n_block, .buckets = calloc(N_BUCKETS, sizeof(uint32_t)) };
	struct reader_options o = { 0 };
	struct reader r;
	struct packet p;
	struct err_why why;
	int64_t now = 0;
	enum err e;

	if (!l.buckets || reader_open(&r, 0, "<stdin>", &o, &why))
		die("reader");
	while ((e = reader_next(&r, &p)) != ERR_END) {
		if (e == ERR_AGAIN) {
			if (reader_fill(&r))
				break;
			now = clock_now_ns();
		} else if (e) {
			fprintf(stderr, "load: %s: %s\n", r.why.thing, r.why.reason);
			break;
		} else if (p.type == PACKET_GAP) {
			l.n_gaps++;
			l.gap_frames += p.dur;
		} else if (p.type == PACKET_DATA && track_is_pcm(&reader_track(&r, p.track)->track)) {
			listen_to(&l, &p, now);
		}
	}
	printf("{\"frames\": %" PRIu64 ", \"bad_frames\": %" PRIu64 ", \"discontinuities\": %" PRIu64 ", \"gaps\": %" PRIu64 ", \"gap_frames\": %" PRIu64
		", \"span_frames\": %" PRIu64 ", \"continuity\": %.9f, \"whole\": %s, \"waits\": %" PRIu64 ", \"wait_median_ms\": %.3f, \"wait_p95_ms\": %.3f"
		", \"wait_p99_ms\": %.3f, \"wait_p999_ms\": %.3f, \"wait_max_ms\": %.3f}\n",
		l.n_frames, l.n_bad, l.n_breaks, l.n_gaps, l.gap_frames, l.next - l.first, l.next > l.first ? (double)l.n_frames / (double)(l.next - l.first) : 0,
		reader_is_cut(&r) ? "false" : "true", l.n_waits, percentile_ms(&l, 0.5), percentile_ms(&l, 0.95), percentile_ms(&l, 0.99), percentile_ms(&l, 0.999),
		(double)l.wait_max_ns / 1e6);
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "frames-out") && argc == 6)
		return frames_out(argv[2], (uint32_t)atol(argv[3]), atof(argv[4]), atof(argv[5]));
	if (!strcmp(mode, "frames-in") && argc == 4)
		return frames_in(argv[2], (uint32_t)atol(argv[3]));
	if (!strcmp(mode, "audio-out") && argc == 6)
		return audio_out((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]), atof(argv[5]));
	if (!strcmp(mode, "audio-in") && argc == 5)
		return audio_in((unsigned)atoi(argv[2]), (unsigned)atoi(argv[4]));
	fprintf(stderr, "load: frames-out, frames-in, audio-out or audio-in\n");
	return 2;
}
