/*
 * The receiver as a whole, in virtual time: datagrams of strangers and of senders, damaged and played again, from several
 * hosts, with a key and without.  It ends in order, holds its limits, and its answers are no larger than what asked for them.
 *
 * Input: u8 flags (1 retime, 2 srtp, 4 RED and Opus known, 8 srtp with SHA-1) · then datagrams: u8 host and port (bits 0…1 host, bit 2 RTCP, bit 3
 * protected by the key, bit 4 the one before again, bit 5 time goes on by a second rather than milliseconds) · u8 ms · u8 length/8 · bytes.
 */
#include "fuzz.h"

#include "dsp/varirate.h"
#include "net/srtp.h"
#include "leg/receiver.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MAX_SENDERS 3u
#define N_HOSTS 4u
#define MAX_JUMPS 12u           /* of a second; the rest is milliseconds, so that an input takes some */

/* The interpolator's table takes longer than most inputs, and is always the same: one for all (fuzz.mk wraps the function). */
enum err __real_varirate_init(struct varirate *v, unsigned channels);
enum err __wrap_varirate_init(struct varirate *v, unsigned channels);
enum err __wrap_varirate_init(struct varirate *v, unsigned channels)
{
	static struct varirate first;

	if (!first.memory)
		must(__real_varirate_init(&first, 1) == ERR_OK);
	return varirate_beside_init(v, channels, &first);
}

static struct {
	uint64_t asked_bytes[N_HOSTS], answered_bytes[N_HOSTS];
} seen;

static void on_send(void *user, unsigned port, const struct dgram_addr *to, const uint8_t *bytes, size_t n_bytes)
{
	unsigned host = (ntohl(to->ip4.sin_addr.s_addr) & 0xFF) % N_HOSTS;

	(void)user;
	(void)port;
	fuzz_touch(bytes, n_bytes);
	seen.answered_bytes[host] += n_bytes;
	must(seen.answered_bytes[host] <= seen.asked_bytes[host]);
}

static void run(struct receiver *r, int64_t now_ns)
{
	for (int64_t next; (next = receiver_next_ns(r)) <= now_ns;)
		must(receiver_run(r, next, true) == ERR_OK);
	must(receiver_run(r, now_ns, true) == ERR_OK);
	unsigned n_senders = 0, n_joint = 0;
	for (unsigned i = 0; i < r->n_flows; i++) {
		n_senders += r->flows[i].used && !r->flows[i].is_joint;
		n_joint += r->flows[i].used && r->flows[i].is_joint;
	}
	must(n_senders <= MAX_SENDERS && n_joint <= (MAX_SENDERS + 1) / 2);
}

static void feed(struct receiver *r, struct srtp_session *theirs, const uint8_t *data, size_t n_bytes)
{
	uint8_t bytes[2048 + 64], before[2048 + 64];
	size_t n_before = 0;
	unsigned n_jumps = 0;
	int64_t now_ns = UNITS_NS_PER_S;
	struct stats stats = { .tool = NULL };

	while (n_bytes >= 3) {
		unsigned how = data[0];
		size_t n = 8u * data[2] + data[1] % 8;
		struct dgram_addr from = { .ip4 = { .sin_family = AF_INET, .sin_port = htons(1000), .sin_addr.s_addr = htonl(0x7F000000u + how % N_HOSTS) },
			.n_bytes = sizeof(struct sockaddr_in) };

		now_ns += how & 32 && n_jumps++ < MAX_JUMPS ? UNITS_NS_PER_S : (int64_t)(data[1] % 32) * 1000000;
		data += 3;
		n_bytes -= 3;
		n = n < n_bytes ? n : n_bytes;
		memcpy(bytes, data, n);
		data += n;
		n_bytes -= n;
		if (how & 16 && n_before) {
			n = n_before;
			memcpy(bytes, before, n);
		}
		n_before = n;
		memcpy(before, bytes, n);
		if (theirs && how & 8 && n >= 12) {
			struct err_why why;
			bool is_rtcp = rtcp_is_rtcp(bytes, n);
			uint32_t ssrc = 0;
			for (unsigned i = 0; i < 4; i++)
				ssrc = ssrc << 8 | bytes[(is_rtcp ? 4 : 8) + i];
			(void)!srtp_session_send(theirs, ssrc, 0, &why);
			(void)!(is_rtcp ? srtp_session_protect_rtcp(theirs, bytes, &n) : srtp_session_protect(theirs, bytes, &n));
		}
		seen.asked_bytes[how % N_HOSTS] += n;
		receiver_datagram(r, 0, how & 4, &from, bytes, n, now_ns);
		run(r, now_ns);
	}
	receiver_stop(r);
	for (unsigned i = 0; i < 200 && !receiver_idle(r); i++)
		run(r, now_ns += UNITS_NS_PER_S / 10);
	must(receiver_end(r, PACKET_END_NORMAL) == ERR_OK);
	receivercount_show(r, &stats);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static struct receiver r;
	static struct writer out;
	struct srtp_key key = { .kind = SRTP_GCM, .bytes = "some bytes that are a key...." };
	struct srtp_session ours = { 0 }, theirs = { 0 };
	struct tool tool = { .name = "fuzz", .quiet = true };
	struct err_why why;
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (!n_bytes)
		return 0;
	bool secure = data[0] & 2;
	key.kind = data[0] & 8 ? SRTP_SHA1 : SRTP_GCM;
	struct receiver_options o = { .max_senders = MAX_SENDERS, .srtp = secure ? &ours : NULL, .seed = 1,
		.flow = { .retime = data[0] & 1, .block_ns = 2500000, .latency_ns = 20000000, .glitches = 6, .n_slots = 64 } };

	memset(&r, 0, sizeof(r));
	memset(&out, 0, sizeof(out));
	memset(&seen, 0, sizeof(seen));
	must(writer_open(&out, fd, "fuzz", "fuzz", &why) == ERR_OK && writer_begin(&out) == ERR_OK);
	must(!secure || (!srtp_session_init(&ours, &key, 16, &why) && !srtp_session_init(&theirs, &key, 16, &why)));
	r.n_ports = 1;
	if (data[0] & 4) {
		r.ports[0].formats[111] = (struct rtp_format){ RTP_CODEC_OPUS, 48000, 2 };
		r.ports[0].formats[121] = (struct rtp_format){ RTP_CODEC_RED, 48000, 2 };
	}
	must(receiver_init(&r, &tool, &out, &o, UNITS_NS_PER_S, &why) == ERR_OK);
	r.send = on_send;
	feed(&r, secure ? &theirs : NULL, data + 1, n_bytes - 1);
	receiver_release(&r);
	srtp_session_release(&ours);
	srtp_session_release(&theirs);
	writer_release(&out);
	close(fd);
	return 0;
}
