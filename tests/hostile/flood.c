/*
 * Sends bad datagrams as fast as the system takes them.
 *
 *	flood KIND SOURCE HOST PORT SECONDS [SSRC [FILE]]
 *
 *	random    bytes, 0…1400 of them
 *	short     the first 1…11 bytes of an RTP packet
 *	ssrc      sound RTP packets, each of another SSRC
 *	spoof     sound RTP packets of SSRC, numbers running on
 *	rtcp      SR, BYE and APP compounds about SSRC
 *	replay    the datagrams of FILE (u16 length in our byte order, bytes), round and round
 *	flipped   those with one bit changed
 *	cut       those without their end
 *
 * SOURCE is the IPv4 address that they come from; "many" for 64 addresses of 127.0.1.0/24 in turn; "ADDRESS:PORT" for a source that is another
 * program's, which takes the right to make whole IP packets.  Prints how many went, and in how many seconds.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH 64
#define MAX_BYTES 1472
#define MAX_FILE (8u << 20)
#define N_SOURCES 64

static uint64_t state = 0x5EED;

static uint32_t roll(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

static void put32(uint8_t *p, uint32_t v)
{
	v = htonl(v);
	memcpy(p, &v, 4);
}

static void noise(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i += 4) {
		uint32_t v = roll();
		memcpy(p + i, &v, n - i < 4 ? n - i : 4);
	}
}

static uint8_t *file;
static size_t file_bytes, file_at;

static void read_file(const char *path)
{
	FILE *f = path ? fopen(path, "rb") : NULL;

	file = malloc(MAX_FILE);
	if (!f || !file || (file_bytes = fread(file, 1, MAX_FILE, f)) < 3) {
		fprintf(stderr, "flood: %s: cannot be read\n", path ? path : "no file");
		exit(1);
	}
	fclose(f);
}

static size_t next_of_file(uint8_t *to)
{
	uint16_t n;

	if (file_at + 2 > file_bytes)
		file_at = 0;
	memcpy(&n, file + file_at, 2);
	if (n > MAX_BYTES || file_at + 2 + n > file_bytes)
		exit(1);
	memcpy(to, file + file_at + 2, n);
	file_at += 2u + n;
	return n;
}

static size_t rtp(uint8_t *to, uint32_t ssrc, uint16_t seq)
{
	size_t n = 12 + 240;

	noise(to, n);
	to[0] = 0x80;
	to[1] = 96 + roll() % 31;
	to[2] = (uint8_t)(seq >> 8);
	to[3] = (uint8_t)seq;
	put32(to + 8, ssrc);
	return n;
}

static size_t rtcp(uint8_t *to, uint32_t ssrc)
{
	/* RR, then BYE of the SSRC; or RR, then a binding of it as weir has them. */
	put32(to, 0x80C90001);
	put32(to + 4, roll());
	if (roll() & 1) {
		put32(to + 8, 0x81CB0001);
		put32(to + 12, ssrc);
		return 16;
	}
	put32(to + 8, 0x81CC0012);
	put32(to + 12, ssrc);
	memcpy(to + 16, "WEIR", 4);
	noise(to + 20, 64);
	put32(to + 20, ssrc);
	return 84;
}

static size_t make(const char *kind, uint8_t *to, uint32_t ssrc, uint16_t seq)
{
	size_t n;

	switch (kind[0] == 'r' ? kind[1] == 'a' ? 'n' : kind[1] == 't' ? 't' : 'r' : kind[0] == 's' ? kind[1] : kind[0]) {
	case 'n':
		n = roll() % 1400;
		noise(to, n);
		return n;
	case 'h':
		rtp(to, roll(), seq);
		return 1 + roll() % 11;
	case 's':
		return rtp(to, roll(), (uint16_t)roll());
	case 'p':
		return rtp(to, ssrc, seq);
	case 't':
		return rtcp(to, ssrc);
	case 'r':
		return next_of_file(to);
	case 'f':
		n = next_of_file(to);
		to[roll() % n] ^= (uint8_t)(1u << roll() % 8);
		return n;
	default:
		n = next_of_file(to);
		return roll() % n;
	}
}

#define IP_UDP_BYTES 28u

static uint8_t forged[BATCH][IP_UDP_BYTES];

static void put16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* The headers of packets of `from` to `to`, but for their lengths.  No checksums: of IP the system makes it, and UDP may do without. */
static int forge(const char *source, const struct sockaddr_in *to)
{
	static const uint8_t head[IP_UDP_BYTES] = { 0x45, [8] = 64, [9] = IPPROTO_UDP };
	char address[32] = "";
	struct in_addr from;
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);

	snprintf(address, sizeof(address), "%.*s", (int)(strchr(source, ':') - source), source);
	if (fd < 0 || inet_pton(AF_INET, address, &from) != 1) {
		perror("flood");
		exit(1);
	}
	for (unsigned i = 0; i < BATCH; i++) {
		memcpy(forged[i], head, sizeof(head));
		memcpy(forged[i] + 12, &from, 4);
		memcpy(forged[i] + 16, &to->sin_addr, 4);
		put16(forged[i] + 20, strtoul(strchr(source, ':') + 1, NULL, 10));
		memcpy(forged[i] + 22, &to->sin_port, 2);
	}
	return fd;
}

static int open_socket(const char *source, unsigned i)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	char text[32];
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(text, sizeof(text), "127.0.1.%u", 1 + i);
	inet_pton(AF_INET, strcmp(source, "many") ? source : text, &a.sin_addr);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a))) {
		perror("flood");
		exit(1);
	}
	return fd;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static uint8_t bytes[BATCH][MAX_BYTES];
	static struct iovec iov[BATCH][2];
	static struct mmsghdr heads[BATCH];
	struct sockaddr_in to = { .sin_family = AF_INET };
	int fds[N_SOURCES];
	unsigned long long sent = 0;

	if (argc < 6) {
		fprintf(stderr, "flood: KIND SOURCE HOST PORT SECONDS [SSRC [FILE]]\n");
		return 2;
	}
	unsigned n_sources = strcmp(argv[2], "many") ? 1 : N_SOURCES;
	uint32_t ssrc = argc > 6 ? (uint32_t)strtoul(argv[6], NULL, 0) : 1;
	bool needs_file = !strcmp(argv[1], "replay") || !strcmp(argv[1], "flipped") || !strcmp(argv[1], "cut");
	if (needs_file)
		read_file(argc > 7 ? argv[7] : NULL);
	inet_pton(AF_INET, argv[3], &to.sin_addr);
	to.sin_port = htons((uint16_t)atoi(argv[4]));
	bool forges = strchr(argv[2], ':') != NULL;
	for (unsigned i = 0; i < n_sources; i++)
		fds[i] = forges ? forge(argv[2], &to) : open_socket(argv[2], i);
	double begin = now(), end = begin + atof(argv[5]);
	for (unsigned round = 0; round % 16 || now() < end; round++) {
		for (unsigned i = 0; i < BATCH; i++) {
			size_t bytes_out = make(argv[1], bytes[i], ssrc, (uint16_t)(round * BATCH + i));
			iov[i][0] = (struct iovec){ forged[i], IP_UDP_BYTES };
			iov[i][1] = (struct iovec){ bytes[i], bytes_out };
			put16(forged[i] + 2, IP_UDP_BYTES + bytes_out);
			put16(forged[i] + 24, 8 + bytes_out);
			heads[i].msg_hdr = (struct msghdr){ .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = forges ? iov[i] : iov[i] + 1, .msg_iovlen = forges ? 2 : 1 };
		}
		int n = sendmmsg(fds[round % n_sources], heads, BATCH, 0);
		if (n > 0)
			sent += (unsigned)n;
	}
	printf("%llu %.3f\n", sent, now() - begin);
	return 0;
}
