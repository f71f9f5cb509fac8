/*
 * losses [PACKETS]: what is left of random losses and of outages after RED and Reed–Solomon, beside what was worked out
 * when they were chosen; and what redundancy and encryption cost.  PACKETS in each cell, 4000000 if left out.
 */
#include "../unit/loss_model.h"

#include "base/heap.h"
#include "net/seal.h"
#include "net/srtp.h"

#include <stdio.h>
#include <time.h>

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

#define ROUNDS 20000

static void make(uint8_t *p, uint32_t ssrc, unsigned seq)
{
	p[0] = 0x80;
	put_be16(p + 2, (uint16_t)seq);
	put_be32(p + 8, ssrc);
}

static void cost_srtp(enum srtp_kind kind)
{
	static const size_t sizes[] = { 52, 332, 1212 };
	struct srtp_key key = { .kind = kind, .bytes = { 1, 2, 3 } };
	struct srtp_session a = { 0 }, b = { 0 };
	static uint8_t packets[ROUNDS][1280];

	printf("%-24s", srtp_kind_name(kind));
	for (unsigned i = 0; i < 3; i++) {
		size_t n = 0;
		if (srtp_session_init(&a, &key, 4, NULL) || srtp_session_init(&b, &key, 4, NULL) || srtp_session_send(&a, 7, 0, NULL))
			abort();
		double start = now_us();
		for (unsigned r = 0; r < ROUNDS; r++) {
			make(packets[r], 7, r);
			n = sizes[i];
			if (srtp_session_protect(&a, packets[r], &n))
				abort();
		}
		double middle = now_us();
		uint64_t allocs = heap_allocs();
		for (unsigned r = 0; r < ROUNDS; r++) {
			size_t m = n;
			if (srtp_session_unprotect(&b, packets[r], &m))
				abort();
		}
		printf("  %4zu bytes %5.2f + %5.2f us, %.1f heap calls", sizes[i], (middle - start) / ROUNDS, (now_us() - middle) / ROUNDS,
			(double)(heap_allocs() - allocs) / ROUNDS);
		srtp_session_release(&a);
		srtp_session_release(&b);
	}
	printf("\n");
}

/* A datagram of a stranger: a new SSRC each time, nothing right about it. */
static void cost_stranger(enum srtp_kind kind)
{
	struct srtp_key key = { .kind = kind, .bytes = { 1, 2, 3 } };
	struct srtp_session b = { 0 };
	uint8_t packet[400] = { 0 };

	if (srtp_session_init(&b, &key, 4, NULL))
		abort();
	double start = now_us();
	for (unsigned r = 0; r < ROUNDS; r++) {
		size_t n = 332;
		make(packet, r * 2654435761u, r);
		if (srtp_session_unprotect(&b, packet, &n) != ERR_PEER)
			abort();
	}
	printf("%-24s  a stranger's 332 bytes refused in %.2f us\n", srtp_kind_name(kind), (now_us() - start) / ROUNDS);
	srtp_session_release(&b);
}

static void cost_rs(unsigned cpu)
{
	struct rs_shape shape = { 8, 4 };
	struct rs_encoder e;
	struct rs_decoder d;
	void *em = malloc(rs_encoder_bytes(shape, 400)), *dm = malloc(rs_decoder_bytes(256));
	uint8_t packet[400] = { 0 }, repair[4][RS_REPAIR_MAX_BYTES];
	size_t n_repair = 0, n;
	const uint8_t *rtp;
	double encode = 0, decode = 0;

	rs_encoder_init(&e, shape, 400, em, cpu);
	rs_decoder_init(&d, 256, dm, cpu);
	for (unsigned r = 0, seq = 0; r < ROUNDS / 4; r++) {
		double start = now_us();
		for (unsigned i = 0; i < 8; i++, seq++) {
			make(packet, 7, seq);
			if (rs_encoder_add(&e, packet, 335))
				abort();
		}
		for (unsigned j = 0; j < 4; j++)
			n_repair = rs_encoder_repair(&e, j, repair[j], sizeof(repair[j]));
		rs_encoder_next(&e);
		double middle = now_us();
		/* Four of the eight are lost. */
		for (unsigned i = 4; i < 8; i++) {
			make(packet, 7, seq - 8 + i);
			rs_decoder_source(&d, packet, 335);
		}
		for (unsigned j = 0; j < 4; j++)
			if (rs_decoder_repair(&d, repair[j], n_repair))
				abort();
		while (rs_decoder_next(&d, &rtp, &n))
			;
		encode += middle - start;
		decode += now_us() - middle;
	}
	if (d.counts.n_recovered != ROUNDS)
		abort();
	printf("RS 8+4, 335 bytes, %-5s  a block made in %.2f us, four packets recovered in %.2f us\n", cpu ? "here" : "c", encode / (ROUNDS / 4), decode / (ROUNDS / 4));
	free(em);
	free(dm);
}

static void cost_red(void)
{
	struct red_history h;
	struct red_choice choice = { 2, { 4, 8 } };
	struct red_block blocks[RED_BLOCKS_MAX];
	void *memory = malloc(red_history_bytes(8));
	uint8_t packet[40] = { 0 }, out[200];
	unsigned n;

	red_history_init(&h, memory, 8, 111);
	double start = now_us();
	for (unsigned r = 0; r < 50 * ROUNDS; r++) {
		size_t bytes = red_history_pack(&h, &choice, r * 120, packet, sizeof(packet), out, sizeof(out));
		if (bytes && red_parse(blocks, &n, r * 120, out, bytes, NULL))
			abort();
	}
	printf("RED x2, 40 bytes          packed and taken apart in %.3f us\n", (now_us() - start) / (50 * ROUNDS));
	free(memory);
}

static void cost_seal(void)
{
	uint8_t psk[32] = { 1 }, random[2][32] = { { 1 }, { 2 } }, wire[2][SEAL_HELLO_BYTES];
	static uint8_t data[SEAL_DATA_MAX_BYTES], record[SEAL_RECORD_MAX_BYTES];
	struct seal ends[2];
	enum err e[2] = { ERR_AGAIN, ERR_AGAIN };
	size_t n_wire = 0, n_used, n_out, sizes[] = { 100, 1000, SEAL_DATA_MAX_BYTES };

	double start = now_us();
	if (seal_init(&ends[0], SEAL_CLIENT, psk, random[0]) || seal_init(&ends[1], SEAL_SERVER, psk, random[1]))
		abort();
	for (unsigned turn = 0; e[0] || e[1]; turn++) {
		e[turn % 2] = seal_handshake(&ends[turn % 2], wire[1 - turn % 2], n_wire, &n_used, wire[turn % 2], SEAL_HELLO_BYTES, &n_out);
		n_wire = n_out;
	}
	printf("sealed stream             handshake, both sides, %.0f us", now_us() - start);
	for (unsigned i = 0; i < 3; i++) {
		unsigned rounds = i < 2 ? ROUNDS : 500;
		start = now_us();
		for (unsigned r = 0; r < rounds; r++)
			if (seal_write(&ends[0], data, sizes[i], false, record, &n_out) || seal_read(&ends[1], record, n_out, &n_used, data, &n_out))
				abort();
		printf("; %zu bytes written and read %.2f us", sizes[i], (now_us() - start) / rounds);
	}
	printf("\n");
}

static void costs(void)
{
	printf("\nwhat it costs, of one core: protect + unprotect\n");
	for (unsigned kind = 0; kind < 2; kind++) {
		cost_srtp(kind);
		cost_stranger(kind);
	}
	cost_rs(0);
	cost_rs(cpu_flags());
	cost_red();
	cost_seal();
}

int main(int argc, char **argv)
{
	uint64_t n_packets = argc > 1 ? strtoull(argv[1], NULL, 10) : 4000000;
	double worst = 0;

	printf("left after repair, %% of packets, measured (expected), %llu packets a cell\n", (unsigned long long)n_packets);
	printf("%-8s %-8s %-14s %18s %18s %18s %18s\n", "outages", "packets", "scheme", "1 % lost", "5 %", "10 %", "20 %");
	for (const struct loss_row *row = loss_rows; row < loss_rows + LOSS_N_ROWS; row++) {
		char outage[16] = "random";
		if (row->outage_ms > 0)
			snprintf(outage, sizeof(outage), "%g ms", row->outage_ms);
		printf("%-8s %4g ms  %-14s", outage, row->packet_ms, row->scheme);
		for (unsigned rate = 0; rate < 4; rate++) {
			double left = loss_measure(row, rate, n_packets, 1 + rate), want = row->percent[rate];
			printf("  %8.4f (%6.4g)", left, want < 0 ? 0 : want);
			/* Where a few hundred packets are left, the figure means something. */
			double off = want > 0 ? left / want - 1 : 0;
			if (want / 100 * (double)n_packets >= 1000 && (off < 0 ? -off : off) > worst)
				worst = off < 0 ? -off : off;
			fflush(stdout);
		}
		printf("\n");
	}
	printf("worst deviation of a cell with 1000 packets left or more: %.1f %%\n", 100 * worst);
	costs();
	return worst > 0.2;
}
