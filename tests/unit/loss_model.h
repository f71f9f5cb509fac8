/*
 * What is left of losses after RED and Reed–Solomon, in virtual time: the library's own encoders and decoders at both ends
 * of a channel that drops packets by a seeded generator.
 */
#ifndef LOSS_MODEL_H
#define LOSS_MODEL_H

#include "base/bytes.h"
#include "base/cpu.h"
#include "net/red.h"
#include "net/rs.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Random losses (mean_packets <= 1), or Gilbert's: a bad state of mean_packets on average, in which all is lost. */
struct loss_channel {
	uint64_t random;
	double loss, mean_packets;
	bool bad;
};

static double loss_uniform(struct loss_channel *c)
{
	uint64_t z = c->random += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static bool loss_next(struct loss_channel *c)
{
	double u = loss_uniform(c);
	if (c->mean_packets <= 1)
		return u < c->loss;
	c->bad = c->bad ? u >= 1 / c->mean_packets : u < c->loss / (c->mean_packets * (1 - c->loss));
	return c->bad;
}

struct loss_result {
	uint64_t n_packets, n_lost, n_left; /* sent; lost on the way; and never had */
};

#define LOSS_RING 256

/* A flow of small packets with the copies of *choice. */
__attribute__((unused)) static struct loss_result loss_red(struct loss_channel c, const struct red_choice *choice, uint64_t n_packets)
{
	struct loss_result r = { .n_packets = n_packets };
	struct red_history h;
	void *memory = malloc(red_history_bytes(RED_DISTANCE_MAX));
	static bool had[LOSS_RING];
	uint8_t payload[200];
	red_history_init(&h, memory, RED_DISTANCE_MAX, 111);
	memset(had, 0, sizeof(had));
	for (uint64_t i = 0; i < n_packets + LOSS_RING; i++) {
		uint8_t packet[8];
		struct red_block blocks[RED_BLOCKS_MAX];
		unsigned n_blocks = 0;
		/* What left the ring is judged. */
		if (i >= LOSS_RING)
			r.n_left += !had[i % LOSS_RING];
		had[i % LOSS_RING] = false;
		put_le64(packet, i);
		size_t n = red_history_pack(&h, choice, (uint32_t)i, packet, sizeof(packet), payload, sizeof(payload));
		bool lost = loss_next(&c);
		if (i < n_packets)
			r.n_lost += lost;
		if (lost)
			continue;
		if (!n) {
			had[i % LOSS_RING] = true;
			continue;
		}
		if (red_parse(blocks, &n_blocks, (uint32_t)i, payload, n, NULL))
			abort();
		for (unsigned b = 0; b < n_blocks; b++) {
			uint64_t which = get_le64(blocks[b].data);
			if ((uint32_t)which != blocks[b].ts)
				abort();
			had[which % LOSS_RING] = true;
		}
	}
	free(memory);
	return r;
}

/* Blocks of k+r of one flow, the repairs right behind. */
__attribute__((unused)) static struct loss_result loss_rs(struct loss_channel c, unsigned k, unsigned n_repairs, uint64_t n_packets)
{
	struct loss_result r = { 0 };
	struct rs_shape shape = { k, n_repairs };
	struct rs_encoder e;
	struct rs_decoder d;
	void *encoder_memory = malloc(rs_encoder_bytes(shape, 64)), *decoder_memory = malloc(rs_decoder_bytes(64));
	rs_encoder_init(&e, shape, 64, encoder_memory, cpu_flags());
	rs_decoder_init(&d, 64, decoder_memory, cpu_flags());
	for (uint16_t seq = 0; r.n_packets < n_packets;) {
		uint64_t n_left = 0;
		const uint8_t *rtp;
		size_t n_bytes;
		for (unsigned i = 0; i < k; i++, seq++) {
			uint8_t packet[20] = { 0x80, 98 };
			put_be16(packet + 2, seq);
			put_be32(packet + 8, 7);
			if (rs_encoder_add(&e, packet, sizeof(packet)))
				abort();
			if (loss_next(&c))
				n_left++;
			else
				rs_decoder_source(&d, packet, sizeof(packet));
		}
		r.n_packets += k;
		r.n_lost += n_left;
		for (unsigned j = 0; j < n_repairs; j++) {
			uint8_t payload[RS_REPAIR_MAX_BYTES];
			size_t n = rs_encoder_repair(&e, j, payload, sizeof(payload));
			if (loss_next(&c))
				continue;
			if (rs_decoder_repair(&d, payload, n))
				abort();
			while (rs_decoder_next(&d, &rtp, &n_bytes))
				n_left--;
		}
		rs_encoder_next(&e);
		r.n_left += n_left;
	}
	free(encoder_memory);
	free(decoder_memory);
	return r;
}

/* A row of the table: a scheme on a channel, and what is to be left, in percent, at 1, 5, 10 and 20 % of loss. */
struct loss_row {
	const char *scheme;
	double packet_ms, outage_ms; /* outage 0: random losses */
	struct red_choice red;
	struct rs_shape rs;          /* n_sources 0: RED, or nothing */
	double percent[4];           /* below 0: not to be measured */
};

static const double loss_rates[4] = { 0.01, 0.05, 0.10, 0.20 };

static const struct loss_row loss_rows[] = {
	{ "none", 2.5, 0, { 0 }, { 0 }, { 1.0, 5.0, 10, 20 } },
	{ "RED x1", 2.5, 0, { 1, { 1 } }, { 0 }, { 0.010, 0.25, 1.0, 4.0 } },
	{ "RED x2", 2.5, 0, { 2, { 1, 2 } }, { 0 }, { 0.0001, 0.0125, 0.10, 0.80 } },
	{ "RS 4+2", 2.5, 0, { 0 }, { 4, 2 }, { 0.0008, 0.11, 0.81, 5.2 } },
	{ "RS 8+2", 2.5, 0, { 0 }, { 8, 2 }, { 0.003, 0.36, 2.3, 11.3 } },
	{ "RS 8+4", 2.5, 0, { 0 }, { 8, 4 }, { -1, 0.008, 0.18, 3.2 } },
	{ "RS 16+8", 2.5, 0, { 0 }, { 16, 8 }, { -1, 0.0002, 0.012, 1.4 } },
	{ "none", 2.5, 10, { 0 }, { 0 }, { 1.0, 5.0, 10, 20 } },
	{ "RED x1 d=1", 2.5, 10, { 1, { 1 } }, { 0 }, { 0.75, 3.7, 7.5, 15 } },
	{ "RED x1 d=4", 2.5, 10, { 1, { 4 } }, { 0 }, { 0.32, 1.7, 3.4, 7.5 } },
	{ "RED x2 d=4,8", 2.5, 10, { 2, { 4, 8 } }, { 0 }, { 0.10, 0.55, 1.2, 2.9 } },
	{ "RS 8+4", 2.5, 10, { 0 }, { 8, 4 }, { 0.54, 2.8, 5.8, 12.8 } },
	{ "RED x2 d=2,4", 5, 10, { 2, { 2, 4 } }, { 0 }, { 0.065, 0.35, 0.76, 2.0 } },
	{ "RS 4+2", 5, 10, { 0 }, { 4, 2 }, { 0.41, 2.1, 4.6, 10.5 } },
	{ "RED x1 d=1", 10, 10, { 1, { 1 } }, { 0 }, { 0.011, 0.25, 1.0, 4.0 } },
	{ "RED x1 d=1", 20, 10, { 1, { 1 } }, { 0 }, { 0.009, 0.25, 1.0, 4.0 } },
	{ "RED x1 d=16", 2.5, 30, { 1, { 16 } }, { 0 }, { 0.24, 1.3, 2.9, 6.8 } },
	{ "RED x2 d=4,8", 5, 30, { 2, { 4, 8 } }, { 0 }, { 0.24, 1.2, 2.5, 5.3 } },
	{ "RED x2 d=2,4", 10, 30, { 2, { 2, 4 } }, { 0 }, { 0.20, 1.0, 2.1, 4.5 } },
	{ "RED x2 d=1,2", 20, 30, { 2, { 1, 2 } }, { 0 }, { 0.11, 0.55, 1.1, 2.2 } },
};

#define LOSS_N_ROWS (sizeof(loss_rows) / sizeof(loss_rows[0]))

/* Percent left of a row at a rate. */
__attribute__((unused)) static double loss_measure(const struct loss_row *row, unsigned rate, uint64_t n_packets, uint64_t seed)
{
	struct loss_channel c = { .random = seed, .loss = loss_rates[rate], .mean_packets = row->outage_ms / row->packet_ms };
	struct loss_result r = row->rs.n_sources ? loss_rs(c, row->rs.n_sources, row->rs.n_repairs, n_packets) : loss_red(c, &row->red, n_packets);
	return 100.0 * (double)r.n_left / (double)r.n_packets;
}

#endif
