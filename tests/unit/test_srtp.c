/*
 * SRTP: bytes as RFC 3711 and RFC 7714 have them, roll-over counters for those who join late, replays, other keys.
 * The packets under published keys come from tests/pipeline/srtp.py, which is written from the RFCs and checks itself
 * against their vectors.
 */
#include "check.h"

#include "base/bytes.h"
#include "base/heap.h"
#include "net/srtp.h"

static const struct srtp_key sha1_key = { SRTP_SHA1, {
	0xe1, 0xf9, 0x7a, 0x0d, 0x3e, 0x01, 0x8b, 0xe0, 0xd6, 0x4f, 0xa3, 0x2c, 0x06, 0xde, 0x41, 0x39,
	0x0e, 0xc6, 0x75, 0xad, 0x49, 0x8a, 0xfe, 0xeb, 0xb6, 0x96, 0x0b, 0x3a, 0xab, 0xe6 } };
static const struct srtp_key gcm_key = { SRTP_GCM, {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
	0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab } };

#define SSRC 0xcafebabeu

static struct srtp_session sender, receiver;

static void open_both(const struct srtp_key *key, unsigned n_senders)
{
	struct err_why why = { 0 };
	srtp_session_release(&sender);
	srtp_session_release(&receiver);
	CHECK_OK(srtp_session_init(&sender, key, 4, &why));
	CHECK_OK(srtp_session_init(&receiver, key, n_senders, &why));
}

static size_t make(uint8_t *p, uint32_t ssrc, uint16_t seq, size_t n_payload)
{
	memset(p, 0xab, 12 + n_payload);
	p[0] = 0x80;
	p[1] = 0x0f;
	put_be16(p + 2, seq);
	put_be32(p + 4, 0xdecafbad);
	put_be32(p + 8, ssrc);
	return 12 + n_payload;
}

static size_t make_rtcp(uint8_t *p, uint32_t ssrc)
{
	memset(p, 0xab, 48);
	p[0] = 0x81;
	p[1] = 200;
	put_be16(p + 2, 11);
	put_be32(p + 4, ssrc);
	return 48;
}

static size_t from_hex(uint8_t *out, const char *hex)
{
	size_t n = strlen(hex) / 2;
	for (size_t i = 0; i < n; i++) {
		char two[3] = { hex[2 * i], hex[2 * i + 1], 0 };
		out[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return n;
}

static void check_vectors(const struct srtp_key *key, const char *rtp_hex, const char *roc5_hex, const char *rtcp_hex)
{
	uint8_t p[256], want[256], plain[256];
	struct err_why why = { 0 };
	size_t n, n_want, n_plain = make(plain, SSRC, 0x1234, 16);

	open_both(key, 4);
	CHECK_OK(srtp_session_send(&sender, SSRC, 0, &why));
	n = make(p, SSRC, 0x1234, 16);
	CHECK_OK(srtp_session_protect(&sender, p, &n));
	n_want = from_hex(want, rtp_hex);
	CHECK_EQ(n, n_want);
	CHECK_EQ(n, n_plain + srtp_tail_bytes(key->kind));
	CHECK_MEM(p, want, n_want);
	CHECK_OK(srtp_session_unprotect(&receiver, p, &n));
	CHECK_EQ(n, n_plain);
	CHECK_MEM(p, plain, n_plain);

	n = make_rtcp(p, SSRC);
	CHECK_OK(srtp_session_protect_rtcp(&sender, p, &n));
	n_want = from_hex(want, rtcp_hex);
	CHECK_EQ(n, n_want);
	CHECK_MEM(p, want, n_want);
	make_rtcp(plain, SSRC);
	CHECK_OK(srtp_session_unprotect_rtcp(&receiver, p, &n));
	CHECK_EQ(n, 48);
	CHECK_MEM(p, plain, 48);

	/* A stream that is continued at roll-over 5. */
	open_both(key, 4);
	CHECK_OK(srtp_session_send(&sender, SSRC, 5, &why));
	n = make(p, SSRC, 0x1234, 16);
	CHECK_OK(srtp_session_protect(&sender, p, &n));
	n_want = from_hex(want, roc5_hex);
	CHECK_MEM(p, want, n_want);
	CHECK_EQ(srtp_session_roc(&sender, SSRC), 5);
}

static void test_vectors_sha1(void)
{
	check_vectors(&sha1_key, "800f1234decafbadcafebabe4e55dc4ce79978d88ca4d215949d2402b78d6acc99ea179b8dbb",
		"800f1234decafbadcafebabe4282814d07ed717d5ed12db112eb2c1d4c94e2c47a986b0175d5",
		"81c8000bcafebabe7128035be487b9bdbef89041f977a5a8d5efb8816abf868c340e5082be1e90ca6bdd31954a81a47d"
		"8000000163a50d16b51439563031");
}

static void test_vectors_gcm(void)
{
	check_vectors(&gcm_key, "800f1234decafbadcafebabec5002ede04cfdd2eb91159e0880aa06ed2976826f796b201df3131a127e8a392",
		"800f1234decafbadcafebabed14cea143800811ed88c41b86f4485bf67fd4fa6b60a1de69e26eb1ea4334217",
		"81c8000bcafebabec98b8b5df0392a55852b6c21ac8e702562c5a74381e97652b45899c500b1e33046789c4c81d0c115"
		"399aa88b0613e9a2d626d98d90d4a44280000001");
}

#define STEP 61 /* numbers left out, so that the wraps come soon */

/* Packets go from one to the other; the numbers count on.  Returns: how many were understood. */
static unsigned send_some(uint32_t ssrc, uint32_t *seq, unsigned n_packets)
{
	uint8_t p[256];
	unsigned n_ok = 0;
	for (unsigned i = 0; i < n_packets; i++) {
		size_t n = make(p, ssrc, (uint16_t)(*seq += STEP), 40);
		CHECK_OK(srtp_session_protect(&sender, p, &n));
		n_ok += !srtp_session_unprotect(&receiver, p, &n);
	}
	return n_ok;
}

static void check_joiner(const struct srtp_key *key)
{
	uint32_t seq = 65400;
	struct err_why why = { 0 };
	uint8_t p[256];
	size_t n;

	open_both(key, 4);
	CHECK_OK(srtp_session_send(&sender, SSRC, 0, &why));
	/* One that was there from the start follows the wraps by itself. */
	CHECK_EQ(send_some(SSRC, &seq, 3 * 65536 / STEP), 3 * 65536 / STEP);
	CHECK_EQ(srtp_session_roc(&sender, SSRC), 3);

	/* A joiner that does not know the counter understands nothing, and takes no place for it. */
	srtp_session_release(&receiver);
	CHECK_OK(srtp_session_init(&receiver, key, 4, &why));
	CHECK_EQ(send_some(SSRC, &seq, 100), 0);
	CHECK_EQ(receiver.counts.n_forged, 100);
	CHECK(!srtp_session_has(&receiver, SSRC));
	/* RTCP carries its own index: that is how the counter comes. */
	n = make_rtcp(p, SSRC);
	CHECK_OK(srtp_session_protect_rtcp(&sender, p, &n));
	CHECK_OK(srtp_session_unprotect_rtcp(&receiver, p, &n));
	CHECK_OK(srtp_session_hear(&receiver, SSRC, srtp_session_roc(&sender, SSRC), &why));
	CHECK_EQ(send_some(SSRC, &seq, 70000 / STEP), 70000 / STEP);

	/* Told a counter of before, or one ahead, while packets come: nothing changes. */
	CHECK_OK(srtp_session_hear(&receiver, SSRC, 0, &why));
	CHECK_OK(srtp_session_hear(&receiver, SSRC, 9, &why));
	CHECK_EQ(send_some(SSRC, &seq, 100), 100);

	/* Away for more than two wraps: lost, until told again. */
	for (unsigned i = 0; i < 150000 / STEP; i++) {
		n = make(p, SSRC, (uint16_t)(seq += STEP), 10);
		CHECK_OK(srtp_session_protect(&sender, p, &n));
	}
	CHECK_EQ(send_some(SSRC, &seq, 50), 0);
	CHECK_OK(srtp_session_hear(&receiver, SSRC, 1, &why)); /* never back */
	CHECK_EQ(send_some(SSRC, &seq, 50), 0);
	CHECK_OK(srtp_session_hear(&receiver, SSRC, srtp_session_roc(&sender, SSRC), &why));
	CHECK_EQ(send_some(SSRC, &seq, 50), 50);
}

static void test_joiner_gcm(void)
{
	check_joiner(&gcm_key);
}

static void test_joiner_sha1(void)
{
	check_joiner(&sha1_key);
}

static void check_replay(const struct srtp_key *key)
{
	static uint8_t sent[200][256];
	size_t lengths[200], n;
	uint8_t p[256];
	struct err_why why = { 0 };
	unsigned order[200];

	open_both(key, 4);
	CHECK_OK(srtp_session_send(&sender, SSRC, 0, &why));
	for (unsigned i = 0; i < 200; i++) {
		lengths[i] = make(sent[i], SSRC, (uint16_t)(65436 + i), 40);
		CHECK_OK(srtp_session_protect(&sender, sent[i], &lengths[i]));
		order[i] = i;
	}
	/* In any order within 50, across the wrap: each once. */
	for (unsigned i = 0; i + 50 < 200; i += 50)
		for (unsigned a = i; a < i + 50; a++) {
			unsigned b = i + (unsigned)check_rand_below(50), t = order[a];
			order[a] = order[b];
			order[b] = t;
		}
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 200; i++) {
			memcpy(p, sent[order[i]], n = lengths[order[i]]);
			CHECK_EQ(srtp_session_unprotect(&receiver, p, &n), round ? ERR_AGAIN : ERR_OK);
		}
	CHECK_EQ(receiver.counts.n_replayed, 200);

	/* RTCP too. */
	n = make_rtcp(p, SSRC);
	CHECK_OK(srtp_session_protect_rtcp(&sender, p, &n));
	uint8_t again[256];
	size_t n_again = n;
	memcpy(again, p, n);
	CHECK_OK(srtp_session_unprotect_rtcp(&receiver, p, &n));
	CHECK_EQ(srtp_session_unprotect_rtcp(&receiver, again, &n_again), ERR_AGAIN);

	/* The very first packet of a sender is not heard twice either. */
	struct srtp_session late = { 0 };
	CHECK_OK(srtp_session_init(&late, key, 1, &why));
	memcpy(p, sent[0], n = lengths[0]);
	CHECK_OK(srtp_session_unprotect(&late, p, &n));
	memcpy(p, sent[0], n = lengths[0]);
	CHECK_EQ(srtp_session_unprotect(&late, p, &n), ERR_AGAIN);
	srtp_session_release(&late);
}

static void test_replay(void)
{
	check_replay(&gcm_key);
	check_replay(&sha1_key);
}

/* Every bit of a packet counts; what is refused is not counted as heard. */
static void check_bits(const struct srtp_key *key)
{
	uint8_t good[64], p[64];
	struct err_why why = { 0 };
	size_t n_good = make(good, SSRC, 7, 20), n;

	open_both(key, 4);
	CHECK_OK(srtp_session_send(&sender, SSRC, 0, &why));
	CHECK_OK(srtp_session_protect(&sender, good, &n_good));
	for (unsigned known = 0; known < 2; known++) {
		for (size_t bit = 0; bit < 8 * n_good; bit++) {
			memcpy(p, good, n = n_good);
			p[bit / 8] ^= (uint8_t)(1 << bit % 8);
			CHECK_EQ(srtp_session_unprotect(&receiver, p, &n), ERR_PEER);
		}
		for (n = 0; n < n_good; n++) {
			size_t cut = n;
			memcpy(p, good, cut);
			CHECK(srtp_session_unprotect(&receiver, p, &cut) == (n < 12 + srtp_tail_bytes(key->kind) ? ERR_FORMAT : ERR_PEER));
		}
		CHECK_OK(known ? ERR_OK : srtp_session_hear(&receiver, SSRC, 0, &why));
	}
	memcpy(p, good, n = n_good);
	CHECK_OK(srtp_session_unprotect(&receiver, p, &n));
	CHECK_EQ(receiver.counts.n_unprotected, 1);
}

static void test_bits(void)
{
	check_bits(&gcm_key);
	check_bits(&sha1_key);
}

static void test_wrong_key(void)
{
	struct srtp_key other = gcm_key;
	struct err_why why = { 0 };
	uint32_t seq = 5;

	open_both(&gcm_key, 4);
	other.bytes[27] ^= 1;
	srtp_session_release(&receiver);
	CHECK_OK(srtp_session_init(&receiver, &other, 4, &why));
	CHECK_OK(srtp_session_send(&sender, SSRC, 0, &why));
	CHECK_EQ(send_some(SSRC, &seq, 100), 0);
	CHECK_EQ(receiver.counts.n_forged, 100);
	CHECK(!srtp_session_has(&receiver, SSRC));
}

/* Places: as many as were given, for those who have the key; strangers take none. */
static void test_places(void)
{
	struct err_why why = { 0 };
	uint8_t p[256], first[256];
	uint32_t ssrcs[300];
	size_t n, n_first = 0;

	open_both(&gcm_key, 100);
	for (unsigned i = 0; i < 300; i++) {
		ssrcs[i] = (uint32_t)check_rand();
		CHECK_OK(srtp_session_send(&sender, ssrcs[i], 0, &why));
		CHECK_EQ(srtp_session_send(&sender, ssrcs[i], 0, &why), ERR_ARG);
		for (unsigned noise = 0; noise < 5; noise++) {
			n = make(p, (uint32_t)check_rand(), 1, 60);
			CHECK_EQ(srtp_session_unprotect(&receiver, p, &n), ERR_PEER);
		}
		n = make(p, ssrcs[i], 1, 60);
		CHECK_OK(srtp_session_protect(&sender, p, &n));
		if (i == 0)
			memcpy(first, p, n_first = n);
		CHECK_EQ(srtp_session_unprotect(&receiver, p, &n), i < 100 ? ERR_OK : ERR_LIMIT);
	}
	/* Every other one leaves.  What it said before cannot be played again; what it says anew is heard. */
	for (unsigned i = 0; i < 100; i += 2)
		srtp_session_forget(&receiver, ssrcs[i]);
	for (unsigned i = 0; i < 100; i++)
		CHECK_EQ(srtp_session_has(&receiver, ssrcs[i]), i % 2);
	memcpy(p, first, n = n_first);
	CHECK_EQ(srtp_session_unprotect(&receiver, p, &n), ERR_AGAIN);
	n = make(p, ssrcs[0], 2, 60);
	CHECK_OK(srtp_session_protect(&sender, p, &n));
	CHECK_OK(srtp_session_unprotect(&receiver, p, &n));
	CHECK(srtp_session_has(&receiver, ssrcs[0]));
	/* The places of the other 49 are there for others, as many as there are. */
	for (unsigned i = 100; i < 200; i++) {
		n = make(p, ssrcs[i], 3, 60);
		CHECK_OK(srtp_session_protect(&sender, p, &n));
		CHECK_EQ(srtp_session_unprotect(&receiver, p, &n), i < 149 ? ERR_OK : ERR_LIMIT);
	}
	for (unsigned i = 0; i < 200; i++) {
		CHECK_EQ(srtp_session_has(&receiver, ssrcs[i]), i == 0 || (i < 100 ? i % 2 : i < 149));
		n = make(p, ssrcs[i], 4, 60);
		CHECK_OK(srtp_session_protect(&sender, p, &n));
		CHECK_EQ(srtp_session_unprotect(&receiver, p, &n), i == 0 || (i < 100 ? i % 2 : i < 149) ? ERR_OK : ERR_LIMIT);
	}
	/* Our own packets that come back are not somebody else's. */
	n = make(p, ssrcs[0], 5, 60);
	CHECK_OK(srtp_session_protect(&sender, p, &n));
	CHECK_EQ(srtp_session_unprotect(&sender, p, &n), ERR_AGAIN);
	n = make(p, 0x01020304, 5, 60);
	CHECK_EQ(srtp_session_protect(&sender, p, &n), ERR_ARG);
}

/* test_srtpcipher has the rest of it. */
static void check_heap(const struct srtp_key *key)
{
	struct err_why why = { 0 };
	uint32_t seq = 5;
	uint8_t p[256];
	uint64_t before;

	open_both(key, 4);
	CHECK_OK(srtp_session_send(&sender, SSRC, 0, &why));
	send_some(SSRC, &seq, 50);
	before = heap_allocs();
	CHECK_EQ(send_some(SSRC, &seq, 5000), 5000);
	for (unsigned i = 0; i < 5000; i++) {
		size_t n = make(p, (uint32_t)check_rand(), (uint16_t)i, 60);
		CHECK_EQ(srtp_session_unprotect(&receiver, p, &n), ERR_PEER);
	}
	CHECK_EQ(heap_allocs() - before, 0);
}

static void test_heap(void)
{
	if (!heap_is_counted()) {
		check_skip("allocations are not counted under sanitizers");
		return;
	}
	check_heap(&sha1_key);
	check_heap(&gcm_key);
}

int main(void)
{
	check_seed(3);
	CHECK_RUN(test_vectors_sha1);
	CHECK_RUN(test_vectors_gcm);
	CHECK_RUN(test_joiner_gcm);
	CHECK_RUN(test_joiner_sha1);
	CHECK_RUN(test_replay);
	CHECK_RUN(test_bits);
	CHECK_RUN(test_wrong_key);
	CHECK_RUN(test_places);
	CHECK_RUN(test_heap);
	srtp_session_release(&sender);
	srtp_session_release(&receiver);
	return check_end();
}
