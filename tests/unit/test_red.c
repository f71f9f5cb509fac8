/*
 * RED: payloads byte by byte as RFC 2198 has them, the choice of copies from what a receiver reports, and how much is left of
 * losses, against the table that the choice was made from.
 */
#include "check.h"
#include "loss_model.h"

#include "base/heap.h"

/* RFC 2198 section 4, by hand: a copy of pt 7, 5000 ticks older, 3 bytes; a copy of pt 5, 160 older, 2; the own block pt 5. */
static void test_layout(void)
{
	static const uint8_t want[] = {
		0x87, 0x4e, 0x20, 0x03, /* 1 | 0000111 | 01001110001000 | 0000000011 */
		0x85, 0x02, 0x80, 0x02, /* 1 | 0000101 | 00000010100000 | 0000000010 */
		0x05,                   /* 0 | 0000101 */
		'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i',
	};
	struct red_block blocks[RED_BLOCKS_MAX] = {
		{ 7, 100000 - 5000, (const uint8_t *)"abc", 3 }, { 5, 100000 - 160, (const uint8_t *)"de", 2 }, { 5, 100000, (const uint8_t *)"fghi", 4 },
	};
	uint8_t out[100];
	unsigned n = 0;

	CHECK_EQ(red_write(out, sizeof(out), blocks, 3), sizeof(want));
	CHECK_MEM(out, want, sizeof(want));
	CHECK_EQ(red_write(out, sizeof(want) - 1, blocks, 3), 0);

	memset(blocks, 0, sizeof(blocks));
	CHECK_OK(red_parse(blocks, &n, 100000, want, sizeof(want), NULL));
	CHECK_EQ(n, 3);
	CHECK(blocks[0].pt == 7 && blocks[0].ts == 95000 && blocks[0].n_bytes == 3 && !memcmp(blocks[0].data, "abc", 3));
	CHECK(blocks[1].pt == 5 && blocks[1].ts == 99840 && blocks[1].n_bytes == 2 && !memcmp(blocks[1].data, "de", 2));
	CHECK(blocks[2].pt == 5 && blocks[2].ts == 100000 && blocks[2].n_bytes == 4 && !memcmp(blocks[2].data, "fghi", 4));

	/* Timestamps wrap. */
	CHECK_OK(red_parse(blocks, &n, 1000, want, sizeof(want), NULL));
	CHECK_EQ(blocks[0].ts, 1000u - 5000u);
}

/* The greatest of each field, and one more. */
static void test_limits(void)
{
	static uint8_t big[2000], out[3000];
	struct red_block blocks[RED_BLOCKS_MAX] = { { 127, 0, big, 1023 }, { 111, 16383, big, 1500 } };
	unsigned n = 0;

	memset(big, 'x', sizeof(big));
	CHECK_EQ(red_write(out, sizeof(out), blocks, 2), 4 + 1 + 1023 + 1500);
	CHECK_MEM(out, "\xff\xff\xff\xff\x6f", 5);
	CHECK_OK(red_parse(blocks, &n, 16383, out, 4 + 1 + 1023 + 1500, NULL));
	CHECK(n == 2 && blocks[0].ts == 0 && blocks[0].n_bytes == 1023 && blocks[1].n_bytes == 1500);
	blocks[1].ts = 16384;
	CHECK_EQ(red_write(out, sizeof(out), blocks, 2), 0);
	blocks[1].ts = 16383;
	blocks[0].n_bytes = 1024;
	CHECK_EQ(red_write(out, sizeof(out), blocks, 2), 0);
	blocks[0].n_bytes = 10;
	blocks[0].ts = 16384; /* newer than the packet it travels in */
	CHECK_EQ(red_write(out, sizeof(out), blocks, 2), 0);
}

static void test_malformed(void)
{
	struct red_block blocks[RED_BLOCKS_MAX];
	struct err_why why = { 0 };
	uint8_t p[64] = { 0x85, 0x02, 0x80, 0x02, 0x05, 'a', 'b', 'c' };
	unsigned n;

	for (size_t cut = 0; cut < 7; cut++)
		CHECK_EQ(red_parse(blocks, &n, 0, p, cut, &why), ERR_FORMAT);
	CHECK_OK(red_parse(blocks, &n, 0, p, 7, &why)); /* an own block of nothing is a block */
	CHECK(n == 2 && blocks[1].n_bytes == 0);
	/* A copy of no bytes is left out: that is how one says that there was nothing (section 3). */
	uint8_t empty[] = { 0x85, 0x02, 0x80, 0x00, 0x05, 'a' };
	CHECK_OK(red_parse(blocks, &n, 0, empty, sizeof(empty), &why));
	CHECK(n == 1 && blocks[0].n_bytes == 1);
	/* Headers without end, and more blocks than anybody needs. */
	memset(p, 0x80, sizeof(p));
	CHECK_EQ(red_parse(blocks, &n, 0, p, sizeof(p), &why), ERR_LIMIT);
	CHECK_STR(why.reason, "has more than 8 blocks");
	CHECK_EQ(n, 0);
}

static void test_history(void)
{
	static uint8_t packet[1600], out[1600];
	void *memory = malloc(red_history_bytes(8));
	struct red_history h;
	struct red_choice choice = { 2, { 1, 4 } };
	struct red_block blocks[RED_BLOCKS_MAX];
	unsigned n;
	uint64_t allocs = heap_allocs();

	red_history_init(&h, memory, 8, 111);
	for (uint32_t i = 0; i < 300; i++) {
		memset(packet, (int)i, 40);
		size_t bytes = red_history_pack(&h, &choice, i * 120, packet, 40, out, sizeof(out));
		unsigned copies = i == 0 ? 0 : i < 4 ? 1 : 2;
		CHECK_EQ(bytes, copies ? copies * 44 + 41 : 0);
		if (!bytes)
			continue;
		CHECK_OK(red_parse(blocks, &n, i * 120, out, bytes, NULL));
		CHECK_EQ(n, copies + 1);
		if (i >= 4)
			CHECK(blocks[0].ts == (i - 4) * 120 && blocks[0].data[0] == (uint8_t)(i - 4)); /* oldest first */
		CHECK(blocks[n - 2].ts == (i - 1) * 120 && blocks[n - 2].data[39] == (uint8_t)(i - 1));
		CHECK(blocks[n - 1].data[0] == (uint8_t)i && blocks[n - 1].pt == 111);
	}
	CHECK_EQ(heap_allocs(), allocs);
	/* Room for one copy only: the farther goes, for that is what helps against bursts. */
	size_t bytes = red_history_pack(&h, &choice, 300 * 120, packet, 40, out, 85);
	CHECK_EQ(bytes, 85);
	CHECK_OK(red_parse(blocks, &n, 300 * 120, out, bytes, NULL));
	CHECK(n == 2 && blocks[0].ts == 296 * 120);
	CHECK_EQ(red_history_pack(&h, &choice, 301 * 120, packet, 40, out, 84), 0);
	CHECK_EQ(h.n_copies_left_out, 3);
	/* Too long to be copied, too old after a pause, and after a break nothing of before. */
	red_history_pack(&h, &choice, 302 * 120, packet, 1024, out, sizeof(out));
	choice = (struct red_choice){ 1, { 1 } };
	CHECK_EQ(red_history_pack(&h, &choice, 303 * 120, packet, 40, out, sizeof(out)), 0);
	CHECK_EQ(red_history_pack(&h, &choice, 303 * 120 + 16384, packet, 40, out, sizeof(out)), 0);
	CHECK_EQ(red_history_pack(&h, &choice, 303 * 120 + 16384 + 120, packet, 40, out, sizeof(out)), 85);
	red_history_clear(&h);
	CHECK_EQ(red_history_pack(&h, &choice, 303 * 120 + 16384 + 240, packet, 40, out, sizeof(out)), 0);
	free(memory);
}

static void check_choice(unsigned level, unsigned burst, unsigned farthest, unsigned n, unsigned a, unsigned b, unsigned c)
{
	struct red_choice choice;
	unsigned want[3] = { a, b, c };
	red_choice_of(&choice, level, burst, farthest);
	CHECK_EQ(choice.n_copies, n);
	for (unsigned i = 0; i < n; i++)
		if (!CHECK_EQ(choice.distances[i], want[i]))
			printf("# level %u, bursts of %u, at most %u\n", level, burst, farthest);
}

static void test_choices(void)
{
	check_choice(0, 8, 100, 0, 0, 0, 0);
	check_choice(1, 1, 100, 1, 1, 0, 0);
	check_choice(1, 8, 100, 1, 8, 0, 0);
	check_choice(2, 8, 100, 2, 4, 8, 0);
	check_choice(2, 7, 100, 2, 4, 7, 0);
	check_choice(2, 1, 100, 2, 1, 2, 0);
	check_choice(3, 8, 100, 3, 1, 4, 8);
	check_choice(3, 1, 100, 3, 1, 2, 3);
	check_choice(3, 2, 100, 3, 1, 2, 3);
	/* Never farther than the receiver waits, or the history reaches. */
	check_choice(1, 8, 5, 1, 5, 0, 0);
	check_choice(2, 8, 5, 2, 3, 5, 0);
	check_choice(3, 8, 2, 2, 1, 2, 0);
	check_choice(3, 8, 0, 0, 0, 0, 0);
	check_choice(1, 100, 200, 1, RED_DISTANCE_MAX, 0, 0);

	struct red_choice a = { 1, { 8 } }, b = { 2, { 1, 2 } }, c = { 2, { 4, 8 } };
	red_choice_join(&a, &b);
	CHECK(a.n_copies == 2 && a.distances[1] == 2);
	red_choice_join(&a, &c);
	CHECK_EQ(a.distances[1], 8);
	red_choice_join(&a, &b);
	CHECK_EQ(a.distances[1], 8);
}

#define MS 1000000ll

/* Losses put in by hand come out in bins and bursts; late ones within the patience are none; duplicates count once. */
static void test_monitor(void)
{
	struct red_monitor m = { 0 };
	struct rtcp_loss loss = { 0 };
	int64_t t = 5000 * MS, seq = 70000;

	red_monitor_report(&m, &loss, t);
	CHECK(loss.expected == 0 && loss.interval_ms == 0);
	/* 2.5 ms packets for 400 ms: 160, of which 10 alone, 20–23 and 100–115 are lost; 50 comes 20 ms late, 60 twice. */
	for (int i = 0; i < 160; i++) {
		int64_t now = t + i * 25 * MS / 10;
		bool lost = i == 10 || (i >= 20 && i < 24) || (i >= 100 && i < 116);
		if (!lost && i != 50)
			red_monitor_packet(&m, seq + i, now);
		if (i == 60)
			red_monitor_packet(&m, seq + 60, now);
		if (i == 58)
			red_monitor_packet(&m, seq + 50, now);
	}
	red_monitor_packet(&m, seq + 160, t + 400 * MS);
	red_monitor_packet(&m, seq + 161, t + 500 * MS);
	red_monitor_report(&m, &loss, t + 500 * MS);
	CHECK_EQ(loss.expected, 162);
	CHECK_EQ(loss.lost, 21);
	CHECK_EQ(loss.interval_ms, 500);
	CHECK_EQ(loss.bursts[rtcpweir_burst_bin(1)], 1);
	CHECK_EQ(loss.bursts[rtcpweir_burst_bin(4)], 1);
	CHECK_EQ(loss.bursts[rtcpweir_burst_bin(16)], 1);
	unsigned binned = 0, bursts = 0;
	for (unsigned i = 0; i < RTCP_N_BINS; i++)
		binned += loss.bins[i];
	for (unsigned i = 0; i < RTCP_N_BURSTS; i++)
		bursts += loss.bursts[i];
	CHECK_EQ(bursts, 3);
	CHECK_EQ(binned, 16); /* of the last 400 ms; the first five are older */

	/* The next report begins at nothing; a long silence and a new start of the numbers are no losses. */
	red_monitor_report(&m, &loss, t + 750 * MS);
	CHECK(loss.expected == 0 && loss.lost == 0 && loss.interval_ms == 250);
	red_monitor_packet(&m, seq + 90000, t + 90000 * MS);
	red_monitor_packet(&m, seq + 90001, t + 90001 * MS);
	red_monitor_report(&m, &loss, t + 90002 * MS);
	CHECK_EQ(loss.expected, 2);
	CHECK_EQ(loss.lost, 0);

	/* An outage longer than the window. */
	red_monitor_packet(&m, seq + 90001 + 1000, t + 90100 * MS);
	red_monitor_packet(&m, seq + 90002 + 1000, t + 90300 * MS);
	red_monitor_packet(&m, seq + 90003 + 1000, t + 90400 * MS);
	red_monitor_report(&m, &loss, t + 90500 * MS);
	CHECK_EQ(loss.lost, 999);
	CHECK_EQ(loss.expected, 1002);
	CHECK_EQ(loss.bursts[RTCP_N_BURSTS - 1], 1);
}

/* Packets of 2.5 ms over a channel, reported every 250 ms.  Returns: percent left of those after the first 5 s. */
static double adapt(struct red_control *control, struct loss_channel *c, double seconds, uint32_t depth_us)
{
	struct red_monitor m = { 0 };
	struct red_history h;
	struct red_choice choice;
	struct red_block blocks[RED_BLOCKS_MAX];
	void *memory = malloc(red_history_bytes(RED_DISTANCE_MAX));
	static bool had[1 << 20];
	uint64_t n = (uint64_t)(seconds * 400), left = 0;
	uint8_t out[400], packet[8] = { 0 };
	unsigned n_blocks;

	red_history_init(&h, memory, RED_DISTANCE_MAX, 111);
	memset(had, 0, sizeof(had));
	for (uint64_t i = 0; i < n; i++) {
		int64_t now = (int64_t)i * 25 * MS / 10;
		red_control_choice(control, &choice);
		put_le64(packet, i);
		size_t bytes = red_history_pack(&h, &choice, (uint32_t)i * 120, packet, sizeof(packet), out, sizeof(out));
		if (!loss_next(c)) {
			red_monitor_packet(&m, (int64_t)i, now);
			had[i] = true;
			if (bytes && !red_parse(blocks, &n_blocks, (uint32_t)i * 120, out, bytes, NULL))
				for (unsigned b = 0; b < n_blocks; b++)
					had[get_le64(blocks[b].data)] = true;
		}
		if (i % 100 == 99) {
			struct rtcp_loss loss = { .depth_us = depth_us };
			red_monitor_report(&m, &loss, now);
			red_control_report(control, &loss);
		}
	}
	for (uint64_t i = 2000; i + 100 < n; i++)
		left += !had[i];
	free(memory);
	return 100.0 * (double)left / (double)(n - 2100);
}

static void test_adapts(void)
{
	struct red_control control;
	struct red_choice choice;
	double left;

	/* No loss: nothing is sent twice. */
	red_control_init(&control, 0, 3, 2500);
	struct loss_channel clean = { 1, 0, 1, false };
	CHECK_EQ(adapt(&control, &clean, 30, 0), 0);
	CHECK_EQ(control.level, 0);

	/* 5 % at random: two copies near by, and 0.0125 % left. */
	struct loss_channel random5 = { 2, 0.05, 1, false };
	left = adapt(&control, &random5, 600, 0);
	red_control_choice(&control, &choice);
	printf("# 5 %% at random: level %u, distances %u %u, %.4f %% left (0.0125 expected)\n", control.level, choice.distances[0], choice.distances[1], left);
	CHECK_EQ(control.level, 2);
	CHECK(choice.n_copies == 2 && choice.distances[0] == 1 && choice.distances[1] == 2);
	CHECK(left < 0.02);

	/* Then nothing is lost any more: down, one step after the other. */
	CHECK_EQ(adapt(&control, &clean, 60, 0), 0);
	CHECK_EQ(control.level, 0);

	/* 5 % in outages of 10 ms: as far as the bursts are long. */
	struct loss_channel burst5 = { 3, 0.05, 4, false };
	left = adapt(&control, &burst5, 600, 0);
	red_control_choice(&control, &choice);
	printf("# 5 %% in outages of 10 ms: level %u, distances %u %u %u, %.4f %% left (0.55 expected of {4,8})\n", control.level, choice.distances[0], choice.distances[1], choice.distances[2], left);
	CHECK(control.level >= 2);
	CHECK(control.burst_packets >= 7 && control.burst_packets <= 12);
	CHECK(left < 0.55 * 1.2);

	/* A receiver that waits 10 ms only has no use for more than 4 packets. */
	red_control_init(&control, 0, 3, 2500);
	adapt(&control, &burst5, 60, 10000);
	red_control_choice(&control, &choice);
	CHECK_EQ(choice.distances[choice.n_copies - 1], 4);

	/* 0.1 %: not worth a copy.  A level that is fixed stays. */
	red_control_init(&control, 0, 3, 2500);
	struct loss_channel little = { 4, 0.0005, 1, false };
	adapt(&control, &little, 120, 0);
	CHECK_EQ(control.level, 0);
	red_control_init(&control, 1, 1, 2500);
	adapt(&control, &burst5, 60, 0);
	CHECK_EQ(control.level, 1);
}

/* The level does not swing where the loss stands at a threshold: random 1.5 %, ten minutes. */
static void test_hysteresis(void)
{
	struct red_control control;
	struct loss_channel edge = { 9, 0.015, 1, false };
	struct rtcp_loss loss = { .interval_ms = 250, .expected = 100 };
	unsigned n_changes = 0;

	red_control_init(&control, 0, 3, 2500);
	for (unsigned i = 0; i < 2400; i++) {
		unsigned before = control.level;
		loss.lost = 0;
		memset(loss.bursts, 0, sizeof(loss.bursts));
		for (unsigned p = 0; p < 100; p++)
			loss.lost += loss_next(&edge);
		loss.bursts[0] = (uint16_t)loss.lost;
		red_control_report(&control, &loss);
		n_changes += control.level != before;
	}
	printf("# %u changes in ten minutes at the threshold\n", n_changes);
	CHECK_EQ(control.level, 2);
	CHECK(n_changes <= 4);
}

/* The table, where enough packets are left for a figure: within 20 % of what was worked out. */
static void test_table(void)
{
	unsigned n_cells = 0;
#ifdef WEIR_SANITIZED
	uint64_t n_packets = 100000;
#else
	uint64_t n_packets = 400000;
#endif

	for (unsigned i = 0; i < LOSS_N_ROWS; i++)
		for (unsigned rate = 0; rate < 4; rate++) {
			double want = loss_rows[i].percent[rate];
			if (want / 100 * (double)n_packets < 1000)
				continue;
			double left = loss_measure(&loss_rows[i], rate, n_packets, 1 + rate);
			n_cells++;
			if (!CHECK_NEAR(left / want, 1, 0.2))
				printf("# %s, %g ms, %g ms, %g %%\n", loss_rows[i].scheme, loss_rows[i].packet_ms, loss_rows[i].outage_ms, 100 * loss_rates[rate]);
		}
	printf("# %u cells\n", n_cells);
	CHECK(n_cells > 30);
}

int main(void)
{
	CHECK_RUN(test_layout);
	CHECK_RUN(test_limits);
	CHECK_RUN(test_malformed);
	CHECK_RUN(test_history);
	CHECK_RUN(test_choices);
	CHECK_RUN(test_monitor);
	CHECK_RUN(test_adapts);
	CHECK_RUN(test_hysteresis);
	CHECK_RUN(test_table);
	return check_end();
}
