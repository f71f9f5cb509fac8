/* Reed–Solomon: every loss of at most r packets is repaired to the byte, in every block small enough to try them all. */
#include "check.h"

#include "base/bytes.h"
#include "base/cpu.h"
#include "base/heap.h"
#include "net/rs.h"

#define MAX_PACKETS 512

static struct rs_encoder encoder;
static struct rs_decoder decoder;
static void *encoder_memory, *decoder_memory;

static uint8_t packets[RS_SOURCES_MAX][RS_PACKET_MAX_BYTES];
static size_t lengths[RS_SOURCES_MAX];
static uint8_t repairs[RS_REPAIRS_MAX][RS_REPAIR_MAX_BYTES];
static size_t repair_lengths[RS_REPAIRS_MAX];

static void begin(unsigned k, unsigned r)
{
	struct rs_shape shape = { k, r };
	free(encoder_memory);
	free(decoder_memory);
	encoder_memory = malloc(rs_encoder_bytes(shape, RS_PACKET_MAX_BYTES));
	decoder_memory = malloc(rs_decoder_bytes(256));
	rs_encoder_init(&encoder, shape, RS_PACKET_MAX_BYTES, encoder_memory, cpu_flags());
	rs_decoder_init(&decoder, 256, decoder_memory, cpu_flags());
}

static void make_packet(unsigned i, uint32_t ssrc, uint16_t seq, size_t n_bytes)
{
	lengths[i] = n_bytes;
	for (size_t b = 0; b < n_bytes; b++)
		packets[i][b] = (uint8_t)check_rand();
	packets[i][0] = 0x80;
	put_be16(packets[i] + 2, seq);
	put_be32(packets[i] + 8, ssrc);
}

/* A block of one flow, sizes from 12 bytes on. */
static void make_block(unsigned k, unsigned r, uint16_t seq, size_t max_bytes)
{
	for (unsigned i = 0; i < k; i++) {
		make_packet(i, 0x11223344, (uint16_t)(seq + i), 12 + check_rand_below(max_bytes - 11));
		CHECK_OK(rs_encoder_add(&encoder, packets[i], lengths[i]));
	}
	CHECK(rs_encoder_is_full(&encoder));
	for (unsigned j = 0; j < r; j++)
		CHECK(repair_lengths[j] = rs_encoder_repair(&encoder, j, repairs[j], sizeof(repairs[j])));
	rs_encoder_next(&encoder);
}

/* What the decoder gives back is counted as bits of the packets it equals. */
static uint64_t fetch(unsigned k)
{
	const uint8_t *rtp;
	size_t n_bytes;
	uint64_t got = 0;

	while (rs_decoder_next(&decoder, &rtp, &n_bytes)) {
		unsigned i = 0;
		while (i < k && !(n_bytes == lengths[i] && !memcmp(rtp, packets[i], n_bytes)))
			i++;
		if (i == k)
			CHECK_FAIL("a packet of %zu bytes that nobody sent", n_bytes);
		else
			got |= 1ull << i;
	}
	return got;
}

/* sent: bits of the sources and, above them, of the repairs that arrive. */
static uint64_t deliver(unsigned k, unsigned r, uint64_t arrives, bool repairs_first)
{
	uint64_t got = 0;

	for (unsigned pass = 0; pass < 2; pass++)
		if ((pass == 0) != repairs_first) {
			for (unsigned i = 0; i < k; i++)
				if (arrives >> i & 1) {
					rs_decoder_source(&decoder, packets[i], lengths[i]);
					got |= fetch(k);
				}
		} else {
			for (unsigned j = 0; j < r; j++)
				if (arrives >> (k + j) & 1) {
					CHECK_OK(rs_decoder_repair(&decoder, repairs[j], repair_lengths[j]));
					got |= fetch(k);
				}
		}
	return got;
}

/* Every pattern of arrivals of every block up to 6+4: repaired exactly when k of the k+r are there. */
static void test_every_pattern(void)
{
	unsigned n_patterns = 0;
	uint16_t seq = 65500;

	for (unsigned k = 1; k <= 6; k++)
		for (unsigned r = 1; r <= 4; r++) {
			begin(k, r);
			for (uint64_t arrives = 0; arrives < 1ull << (k + r); arrives++) {
				make_block(k, r, seq, 90);
				seq += (uint16_t)k;
				uint64_t missing = ~arrives & ((1ull << k) - 1);
				bool enough = (unsigned)__builtin_popcountll(arrives) >= k;
				/* Where the repairs come first, they also give what is still on its way. */
				bool repairs_first = arrives % 3 == 0;
				uint64_t got = deliver(k, r, arrives, repairs_first);
				if (!CHECK_EQ(repairs_first ? got & missing : got, enough ? missing : 0)) {
					printf("# %u+%u, arrivals %llx\n", k, r, (unsigned long long)arrives);
					return;
				}
				n_patterns++;
			}
		}
	printf("# %u patterns\n", n_patterns);
	CHECK_EQ(n_patterns, 126 * 30); /* (2 + … + 64) · (2 + 4 + 8 + 16) */
}

/* The shapes offered, and the largest: r packets lost at random places, of every length there is. */
static void test_large_blocks(void)
{
	static const struct rs_shape shapes[] = { { 8, 2 }, { 10, 5 }, { 8, 4 }, { 16, 8 }, { 64, 16 }, { 1, 16 } };
	uint16_t seq = 7;

	for (unsigned s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		unsigned k = shapes[s].n_sources, r = shapes[s].n_repairs;
		begin(k, r);
		for (int round = 0; round < 200; round++) {
			uint64_t lost = 0;
			make_block(k, r, seq, RS_PACKET_MAX_BYTES);
			seq += (uint16_t)k;
			while ((unsigned)__builtin_popcountll(lost) < (r < k ? r : k))
				lost |= 1ull << check_rand_below(k);
			uint64_t got = 0;
			for (unsigned i = 0; i < k; i++)
				if (!(lost >> i & 1))
					rs_decoder_source(&decoder, packets[i], lengths[i]);
			for (unsigned j = 0; j < r; j++) {
				CHECK_OK(rs_decoder_repair(&decoder, repairs[j], repair_lengths[j]));
				got |= fetch(k);
			}
			if (!CHECK_EQ(got, lost))
				return;
		}
		CHECK_EQ(decoder.counts.n_blocks_lost, 0);
		CHECK_EQ(decoder.counts.n_refused, 0);
	}
}

/* A tick of three tracks of different sizes shares a block; blocks are ended early; numbers and blocks wrap. */
static void test_several_flows(void)
{
	begin(12, 3);
	encoder.block = 65534;
	for (unsigned tick = 0; tick < 40; tick++) {
		unsigned n = 0;
		for (unsigned piece = 0; piece < 3; piece++)
			for (unsigned f = 0; f < 3; f++) {
				if (f == 2 && piece == 1)
					continue; /* a track with a packet less */
				uint16_t seq = (uint16_t)(65530 + tick * (f == 2 ? 2 : 3) + (f == 2 ? piece / 2 : piece));
				make_packet(n, 1000 + f, seq, 20 + 300 * f + check_rand_below(50));
				CHECK_OK(rs_encoder_add(&encoder, packets[n], lengths[n]));
				n++;
			}
		CHECK_EQ(n, 8);
		for (unsigned j = 0; j < 3; j++) {
			repair_lengths[j] = rs_encoder_repair(&encoder, j, repairs[j], sizeof(repairs[j]));
			size_t longest = 0;
			for (unsigned i = 0; i < n; i++)
				longest = lengths[i] > longest ? lengths[i] : longest;
			CHECK_EQ(repair_lengths[j], longest + rs_overhead_bytes(3, n));
			CHECK_EQ(rs_encoder_repair(&encoder, j, repairs[j], repair_lengths[j] - 1), 0);
			rs_encoder_repair(&encoder, j, repairs[j], repair_lengths[j]);
		}
		rs_encoder_next(&encoder);
		uint64_t lost = 1ull << check_rand_below(8) | 1ull << check_rand_below(8) | 1ull << check_rand_below(8);
		if (!CHECK_EQ(deliver(8, 3, ~lost, tick & 1) & lost, lost))
			return;
	}
}

static void test_what_does_not_fit(void)
{
	struct rs_shape shape = { 0 };
	struct err_why why = { 0 };

	begin(4, 2);
	make_packet(0, 1, 10, 100);
	CHECK_OK(rs_encoder_add(&encoder, packets[0], 100));
	make_packet(1, 1, 12, 100);
	CHECK_EQ(rs_encoder_add(&encoder, packets[1], 100), ERR_AGAIN); /* a number left out */
	CHECK_EQ(rs_encoder_add(&encoder, packets[1], 11), ERR_FORMAT);
	packets[1][0] = 0x40;
	CHECK_EQ(rs_encoder_add(&encoder, packets[1], 100), ERR_FORMAT);
	packets[1][0] = 0x80;
	CHECK_EQ(rs_encoder_add(&encoder, packets[1], RS_PACKET_MAX_BYTES + 1), ERR_LIMIT);
	CHECK_EQ(encoder.n_packets, 1);
	for (unsigned i = 0; i < 3; i++) {
		make_packet(i, 5 + i, 1, 50);
		CHECK_OK(rs_encoder_add(&encoder, packets[i], 50));
	}
	CHECK_EQ(rs_encoder_add(&encoder, packets[0], 50), ERR_AGAIN); /* full */
	CHECK_EQ(rs_encoder_repair(&encoder, 2, repairs[0], sizeof(repairs[0])), 0);

	CHECK_OK(rs_shape_parse(&shape, "10+5", &why));
	CHECK(shape.n_sources == 10 && shape.n_repairs == 5);
	CHECK_OK(rs_shape_parse(&shape, "64+16", &why));
	static const char *const bad[] = { "", "8", "8+", "8+0", "0+2", "65+2", "8+17", "8+2x", "-8+2", "8-2", "100+2" };
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_EQ(rs_shape_parse(&shape, bad[i], &why), ERR_ARG);
	CHECK_STR(why.reason, "is not K+R, K packets of sound and R of repair: 1…64 and 1…16, as in 8+2");
}

/* The bytes of a repair of two packets, worked out by hand from the header: c(0,i) = 1/(16+i), c(1,i) = 1/(1^(16+i)). */
static void test_layout(void)
{
	static const uint8_t a[] = { 0x80, 111, 0x00, 0x05, 0, 0, 0, 1, 0xaa, 0xbb, 0xcc, 0xdd, 0x11 };
	static const uint8_t b[] = { 0x80, 111, 0x00, 0x06, 0, 0, 0, 9, 0xaa, 0xbb, 0xcc, 0xdd };
	uint8_t want[8 + 6 + 3 + 13] = { 1, 2, 1, 0, 0, 0, 1, 0, 0xaa, 0xbb, 0xcc, 0xdd, 0x00, 0x05 };
	uint8_t units[2][16] = { { 0, 0, 13 }, { 0, 0, 12 } }, out[100];

	memcpy(units[0] + 3, a, sizeof(a));
	memcpy(units[1] + 3, b, sizeof(b));
	/* Products by shifting, inverses by trying: nothing of the library. */
	for (unsigned i = 0; i < 2; i++) {
		unsigned factor = 0;
		for (unsigned f = 1; f < 256; f++) {
			unsigned p = 0, s = f;
			for (unsigned m = 16 + i; m; m >>= 1, s = s << 1 ^ (s & 0x80 ? 0x11d : 0))
				p ^= m & 1 ? s : 0;
			if ((p & 0xff) == 1)
				factor = f;
		}
		for (unsigned x = 0; x < 16; x++) {
			unsigned p = 0, s = factor;
			for (unsigned m = units[i][x]; m; m >>= 1, s = s << 1 ^ (s & 0x80 ? 0x11d : 0))
				p ^= m & 1 ? s : 0;
			want[14 + x] ^= (uint8_t)p;
		}
	}
	begin(2, 1);
	CHECK_OK(rs_encoder_add(&encoder, a, sizeof(a)));
	CHECK_OK(rs_encoder_add(&encoder, b, sizeof(b)));
	CHECK_EQ(rs_encoder_repair(&encoder, 0, out, sizeof(out)), sizeof(want));
	CHECK_MEM(out, want, sizeof(want));
}

/* Damaged, repeated and stale repairs: refused or harmless, and never a packet that was not sent. */
static void test_hostile(void)
{
	uint16_t seq = 100;

	begin(8, 4);
	for (unsigned round = 0; round < 3000; round++) {
		make_block(8, 4, seq, 60);
		seq += 8;
		for (unsigned j = 0; j < 4; j++) {
			repairs[j][check_rand_below(repair_lengths[j])] ^= (uint8_t)(1 + check_rand_below(255));
			enum err e = rs_decoder_repair(&decoder, repairs[j], repair_lengths[j] - check_rand_below(20));
			CHECK(e == ERR_OK || e == ERR_FORMAT);
			e = rs_decoder_repair(&decoder, repairs[j], repair_lengths[j]);
			CHECK(e == ERR_OK || e == ERR_FORMAT);
		}
		const uint8_t *rtp;
		size_t n_bytes;
		for (unsigned i = 0; i < 8; i++)
			if (check_rand_below(4)) {
				rs_decoder_source(&decoder, packets[i], lengths[i]);
				while (rs_decoder_next(&decoder, &rtp, &n_bytes)) {
					CHECK(n_bytes >= 12 && n_bytes <= RS_PACKET_MAX_BYTES);
					CHECK_EQ(rtp[0] >> 6, 2);
				}
			}
	}
	CHECK(decoder.counts.n_refused > 1000);
}

/* A block whose packets never come does not stay in the way, and memory stands still. */
static void test_many_blocks(void)
{
	uint64_t allocs;

	begin(8, 4);
	make_block(8, 4, 0, 200);
	deliver(8, 4, 0xff0f, false);
	allocs = heap_allocs();
	for (unsigned n = 1; n < 20000; n++) {
		make_block(8, 4, (uint16_t)(n * 8), 200);
		uint64_t arrives = n % 5 == 0 ? 0x301 : 0xff0f; /* hopeless, or four lost */
		if (!CHECK_EQ(deliver(8, 4, arrives, false), n % 5 == 0 ? 0 : 0xf0))
			return;
	}
	CHECK_EQ(heap_allocs(), allocs);
	CHECK_EQ(decoder.counts.n_recovered, 4 * (1 + 19999 - 3999));
	CHECK(decoder.counts.n_blocks_lost >= 3990);
}

int main(void)
{
	check_seed(11);
	CHECK_RUN(test_layout);
	CHECK_RUN(test_every_pattern);
	CHECK_RUN(test_large_blocks);
	CHECK_RUN(test_several_flows);
	CHECK_RUN(test_what_does_not_fit);
	CHECK_RUN(test_hostile);
	CHECK_RUN(test_many_blocks);
	free(encoder_memory);
	free(decoder_memory);
	return check_end();
}
