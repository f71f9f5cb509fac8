/*
 * libsrtp with our ciphers against libsrtp as it was built: the same packets to the bit, each opened by the other, in both
 * profiles.  Its own ciphers are in the streams that were set up before the first session.  Then: nothing allocates on any
 * way a packet can go, and no key stays behind in memory that is given back.
 */
#include "check.h"

#include "base/bytes.h"
#include "base/heap.h"
#include "net/srtp.h"
#include "net/srtpcheck.h"

#include <malloc.h>
#include <srtp2/srtp.h>

#define ROOM 2048
#define N_SSRCS 12

/* The master key and salt of RFC 3711, appendix B.3. */
static const struct srtp_key keys[2] = {
	{ SRTP_SHA1, {
		0xe1, 0xf9, 0x7a, 0x0d, 0x3e, 0x01, 0x8b, 0xe0, 0xd6, 0x4f, 0xa3, 0x2c, 0x06, 0xde, 0x41, 0x39,
		0x0e, 0xc6, 0x75, 0xad, 0x49, 0x8a, 0xfe, 0xeb, 0xb6, 0x96, 0x0b, 0x3a, 0xab, 0xe6 } },
	{ SRTP_GCM, {
		0xe1, 0xf9, 0x7a, 0x0d, 0x3e, 0x01, 0x8b, 0xe0, 0xd6, 0x4f, 0xa3, 0x2c, 0x06, 0xde, 0x41, 0x39,
		0x0e, 0xc6, 0x75, 0xad, 0x49, 0x8a, 0xfe, 0xeb, 0xb6, 0x96, 0x0b, 0x3a } } };

/* ---- memory that is given back ---- */

static struct {
	bool on;
	unsigned n_blocks, n_keys;
} freed;

/*
 * What must not be in it: master keys and salts, and of what is derived the ciphers' keys and salts, which stand there as
 * they are.  Of the first profile they are published with the master key; of the second, the cipher's key is one block of
 * AES over the salt and four zeros, by openssl enc -aes-128-ecb.
 */
static const uint8_t secrets[][14] = {
	{ 0xe1, 0xf9, 0x7a, 0x0d, 0x3e, 0x01, 0x8b, 0xe0, 0xd6, 0x4f, 0xa3, 0x2c, 0x06, 0xde },
	{ 0x0e, 0xc6, 0x75, 0xad, 0x49, 0x8a, 0xfe, 0xeb, 0xb6, 0x96, 0x0b, 0x3a },
	{ 0xc6, 0x1e, 0x7a, 0x93, 0x74, 0x4f, 0x39, 0xee, 0x10, 0x73, 0x4a, 0xfe, 0x3f, 0xf7 },
	{ 0x30, 0xcb, 0xbc, 0x08, 0x86, 0x3d, 0x8c, 0x85, 0xd4, 0x9d, 0xb3, 0x4a, 0x9a, 0xe1 },
	{ 0x23, 0x8c, 0x88, 0x2f, 0x36, 0xf0, 0x00, 0x30, 0x15, 0x73, 0xe6, 0x93, 0x83, 0x50 } };
#define N_SECRETS (sizeof(secrets) / sizeof(secrets[0]))
#define SECRET_BYTES 12

#if !defined(WEIR_SANITIZED) && defined(__GLIBC__)
extern void __libc_free(void *);

void free(void *p)
{
	if (freed.on && p) {
		size_t n = malloc_usable_size(p);
		freed.n_blocks++;
		for (unsigned i = 0; i < N_SECRETS; i++)
			freed.n_keys += memmem(p, n, secrets[i], SECRET_BYTES) != NULL;
	}
	__libc_free(p);
}
#endif

/* ---- packets ---- */

static uint32_t ssrcs[N_SSRCS];

/* With sources, an extension and a payload of any length, none too. */
static size_t make_rtp(uint8_t *p, uint32_t ssrc, uint16_t seq)
{
	size_t n_sources = check_rand_below(3) ? 0 : check_rand_below(16);
	bool has_extension = check_rand_below(3) == 0;
	size_t n = 12 + 4 * n_sources;

	for (size_t i = 0; i < ROOM; i++)
		p[i] = (uint8_t)check_rand();
	p[0] = (uint8_t)(0x80 | has_extension << 4 | n_sources);
	put_be16(p + 2, seq);
	put_be32(p + 8, ssrc);
	if (has_extension) {
		size_t n_words = check_rand_below(20);
		put_be16(p + n + 2, (uint16_t)n_words);
		n += 4 + 4 * n_words;
	}
	return n + check_rand_below(check_rand_below(2) ? 40 : 1400);
}

/* Compound or not: it is the same to SRTP. */
static size_t make_rtcp(uint8_t *p, uint32_t ssrc)
{
	size_t n_words = 2 + check_rand_below(check_rand_below(2) ? 8 : 300);

	for (size_t i = 0; i < ROOM; i++)
		p[i] = (uint8_t)check_rand();
	p[0] = 0x81;
	p[1] = 200;
	put_be16(p + 2, (uint16_t)(n_words - 1));
	put_be32(p + 4, ssrc);
	return 4 * n_words;
}

/* ---- the same as libsrtp by itself ---- */

enum { SENDS, HEARS, PLAIN_RTCP, N_ROLES };
static srtp_t plain[2][N_ROLES];

static srtp_t open_plain(const struct srtp_key *key, srtp_ssrc_type_t type, srtp_sec_serv_t rtcp)
{
	uint8_t bytes[SRTP_KEY_MAX_BYTES];
	srtp_policy_t policy = { .ssrc = { type, 0 }, .key = bytes, .window_size = 1024 };
	srtp_t context = NULL;

	memcpy(bytes, key->bytes, sizeof(bytes));
	if (key->kind == SRTP_GCM) {
		srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp);
		srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp);
	} else {
		srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&policy.rtp);
		srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&policy.rtcp);
	}
	policy.rtcp.sec_serv = rtcp;
	CHECK_EQ(srtp_create(&context, &policy), srtp_err_status_ok);
	return context;
}

/* Before any session: what they have is libsrtp's own. */
static void test_untouched(void)
{
	CHECK_EQ(srtp_init(), srtp_err_status_ok);
	for (unsigned k = 0; k < 2; k++) {
		plain[k][SENDS] = open_plain(&keys[k], ssrc_any_outbound, sec_serv_conf_and_auth);
		plain[k][HEARS] = open_plain(&keys[k], ssrc_any_inbound, sec_serv_conf_and_auth);
		plain[k][PLAIN_RTCP] = open_plain(&keys[k], ssrc_any_outbound, sec_serv_auth);
	}
	/* Somebody started libsrtp before us: that is no error. */
	struct srtp_session s = { 0 };
	struct err_why why = { 0 };
	CHECK_OK(srtp_session_init(&s, &keys[0], 1, &why));
	srtp_session_release(&s);
}

typedef srtp_err_status_t plain_fn(srtp_t context, void *packet, int *n_bytes);
typedef enum err session_fn(struct srtp_session *s, uint8_t *packet, size_t *n_bytes);

/* One packet, in the clear: sealed by both, opened by both. */
static void check_one(unsigned k, struct srtp_session *sender, struct srtp_session *receiver, const uint8_t *packet, size_t n_clear, bool is_rtcp)
{
	plain_fn *seal = is_rtcp ? srtp_protect_rtcp : srtp_protect, *open = is_rtcp ? srtp_unprotect_rtcp : srtp_unprotect;
	session_fn *our_seal = is_rtcp ? srtp_session_protect_rtcp : srtp_session_protect;
	session_fn *our_open = is_rtcp ? srtp_session_unprotect_rtcp : srtp_session_unprotect;
	static _Alignas(8) uint8_t ours[ROOM + 64], theirs[ROOM + 64];
	size_t n = n_clear;
	int n_plain = (int)n_clear;

	memcpy(ours, packet, n_clear);
	memcpy(theirs, packet, n_clear);
	CHECK_OK(our_seal(sender, ours, &n));
	CHECK_EQ(seal(plain[k][SENDS], theirs, &n_plain), srtp_err_status_ok);
	CHECK_EQ(n, n_plain);
	CHECK_MEM(ours, theirs, n);
	/* And across, the first of an SSRC as well as those behind it. */
	CHECK_EQ(open(plain[k][HEARS], ours, &n_plain), srtp_err_status_ok);
	CHECK_OK(our_open(receiver, theirs, &n));
	CHECK_EQ(n, n_clear);
	CHECK_EQ(n_plain, n_clear);
	CHECK_MEM(ours, packet, n_clear);
	CHECK_MEM(theirs, packet, n_clear);
}

static void check_same(unsigned k)
{
	struct srtp_session sender = { 0 }, receiver = { 0 };
	struct err_why why = { 0 };
	uint8_t p[ROOM];
	uint32_t seqs[N_SSRCS] = { 0 };

	CHECK_OK(srtp_session_init(&sender, &keys[k], 1, &why));
	CHECK_OK(srtp_session_init(&receiver, &keys[k], N_SSRCS, &why));
	for (unsigned i = 0; i < N_SSRCS; i++) {
		ssrcs[i] = (uint32_t)check_rand();
		CHECK_OK(srtp_session_send(&sender, ssrcs[i], 0, &why));
	}
	for (unsigned i = 0; i < 1000; i++) {
		unsigned which = (unsigned)check_rand_below(N_SSRCS);
		bool is_rtcp = check_rand_below(4) == 0;
		/* Four times round, so that the roll-over counter is in it. */
		size_t n = is_rtcp ? make_rtcp(p, ssrcs[which]) : make_rtp(p, ssrcs[which], (uint16_t)(seqs[which] += 1 + (uint32_t)check_rand_below(10000)));
		check_one(k, &sender, &receiver, p, n, is_rtcp);
	}
	for (unsigned i = 0; i < N_SSRCS; i++) {
		CHECK(seqs[i] > 2 * 65536);
		CHECK_EQ(srtp_session_roc(&receiver, ssrcs[i]), seqs[i] >> 16);
	}
	srtp_session_release(&sender);
	srtp_session_release(&receiver);
}

static void test_same_sha1(void)
{
	check_same(0);
}

static void test_same_gcm(void)
{
	check_same(1);
}

/* SRTCP need not be encrypted.  Whether its SSRC is known makes no difference to what becomes of it. */
static void test_plain_rtcp(void)
{
	for (unsigned k = 0; k < 2; k++)
		for (unsigned known = 0; known < 2; known++) {
			struct srtp_session receiver = { 0 };
			struct err_why why = { 0 };
			_Alignas(8) uint8_t p[ROOM + 64], clear[ROOM];
			size_t n_clear = make_rtcp(clear, 4711 + known), n;
			int n_plain = (int)n_clear;

			memcpy(p, clear, n_clear);
			CHECK_EQ(srtp_protect_rtcp(plain[k][PLAIN_RTCP], p, &n_plain), srtp_err_status_ok);
			CHECK_MEM(p, clear, n_clear);
			n = (size_t)n_plain;
			CHECK_OK(srtp_session_init(&receiver, &keys[k], 4, &why));
			if (known)
				CHECK_OK(srtp_session_hear(&receiver, 4711 + known, 0, &why));
			if (keys[k].kind == SRTP_GCM) {
				p[20 % n_clear] ^= 1;
				CHECK_EQ(srtp_session_unprotect_rtcp(&receiver, p, &n), ERR_PEER);
				p[20 % n_clear] ^= 1;
			}
			CHECK_EQ(srtp_session_unprotect_rtcp(&receiver, p, &n), keys[k].kind == SRTP_GCM ? ERR_OK : ERR_PEER);
			srtp_session_release(&receiver);
		}
}

/* ---- nothing allocates ---- */

#define N_PACKETS 10000

/* Damage anywhere, or noise altogether. */
static void forge(uint8_t *p, size_t n)
{
	if (check_rand_below(4))
		p[check_rand_below(n)] ^= (uint8_t)(1 + check_rand_below(255));
	else
		for (size_t i = 0; i < n; i++)
			p[i] = (uint8_t)check_rand();
}

/* Each packet: forged, cut, whole, again; and one of a sender that has the key, and there is no place for. */
static void check_heap(unsigned k)
{
	struct srtp_session sender = { 0 }, receiver = { 0 };
	struct err_why why = { 0 };
	uint8_t p[ROOM + 64], bad[ROOM + 64], again[ROOM + 64];
	uint64_t before = 0;
	size_t n, n_bad, n_again;

	CHECK_OK(srtp_session_init(&sender, &keys[k], 1, &why));
	CHECK_OK(srtp_session_init(&receiver, &keys[k], 2, &why));
	for (unsigned i = 0; i < 3; i++)
		CHECK_OK(srtp_session_send(&sender, ssrcs[i], 0, &why));
	CHECK_OK(srtp_session_hear(&receiver, ssrcs[0], 0, &why));
	CHECK_OK(srtp_session_hear(&receiver, ssrcs[1], 0, &why));
	for (unsigned i = 0; i < N_PACKETS; i++) {
		unsigned which = (unsigned)check_rand_below(3);
		bool is_rtcp = check_rand_below(3) == 0;
		session_fn *seal = is_rtcp ? srtp_session_protect_rtcp : srtp_session_protect;
		session_fn *open = is_rtcp ? srtp_session_unprotect_rtcp : srtp_session_unprotect;

		if (i == 50)
			before = heap_allocs();
		n = is_rtcp ? make_rtcp(p, ssrcs[which]) : make_rtp(p, ssrcs[which], (uint16_t)i);
		CHECK_OK(seal(&sender, p, &n));
		memcpy(again, p, n_again = n);
		memcpy(bad, p, n_bad = n);
		forge(bad, n_bad);
		enum err e = open(&receiver, bad, &n_bad);
		CHECK(e == ERR_PEER || (e == ERR_AGAIN && which < 2)); /* a number that was there is not looked at further */
		memcpy(bad, p, n_bad = check_rand_below(n));
		CHECK(open(&receiver, bad, &n_bad) != ERR_OK);
		CHECK_EQ(open(&receiver, p, &n), which < 2 ? ERR_OK : ERR_LIMIT);
		CHECK_EQ(open(&receiver, again, &n_again), which < 2 ? ERR_AGAIN : ERR_LIMIT);
		(void)srtp_session_roc(&sender, ssrcs[which]);
		CHECK_OK(which < 2 ? srtp_session_hear(&receiver, ssrcs[which], 0, &why) : ERR_OK);
	}
	if (heap_is_counted())
		CHECK_EQ(heap_allocs() - before, 0);
	CHECK_EQ(receiver.counts.n_protected + sender.counts.n_protected, N_PACKETS);
	srtp_session_release(&sender);
	srtp_session_release(&receiver);
}

static void test_heap(void)
{
	check_heap(0);
	check_heap(1);
	if (!heap_is_counted())
		check_skip("allocations are not counted under sanitizers");
}

/* libsrtp's tests of itself are made once: a session takes no more heap than its own parts. */
static void test_once(void)
{
	if (!heap_is_counted()) {
		check_skip("allocations are not counted under sanitizers");
		return;
	}
	uint64_t before = heap_allocs();
	for (unsigned i = 0; i < 100; i++) {
		struct srtp_session s = { 0 };
		struct err_why why = { 0 };
		CHECK_OK(srtp_session_init(&s, &keys[i % 2], 4, &why));
		srtp_session_release(&s);
	}
	CHECK_EQ(heap_allocs() - before, 200);
}

/* ---- no key stays ---- */

static void test_wiped(void)
{
	if (!heap_is_counted()) {
		check_skip("the allocator is the sanitizer's");
		return;
	}
	/* The watch sees a key that stays. */
	void *volatile block = malloc(100);
	memcpy((uint8_t *)block + 40, secrets[N_SECRETS - 1], SECRET_BYTES);
	void (*volatile give_back)(void *) = free;
	freed.on = true;
	give_back(block);
	CHECK_EQ(freed.n_keys, 1);
	freed.n_keys = freed.n_blocks = 0;
	for (unsigned k = 0; k < 2; k++) {
		struct srtp_session s = { 0 };
		struct err_why why = { 0 };
		uint8_t p[ROOM];
		size_t n;
		CHECK_OK(srtp_session_init(&s, &keys[k], 4, &why));
		CHECK_OK(srtp_session_send(&s, 7, 0, &why));
		CHECK_OK(srtp_session_hear(&s, 8, 0, &why));
		n = make_rtp(p, 7, 1);
		CHECK_OK(srtp_session_protect(&s, p, &n));
		srtp_session_release(&s);
	}
	freed.on = false;
	CHECK(freed.n_blocks > 20);
	CHECK_EQ(freed.n_keys, 0);
}

int main(void)
{
	check_seed(5);
	CHECK_RUN(test_untouched);
	CHECK_RUN(test_same_sha1);
	CHECK_RUN(test_same_gcm);
	CHECK_RUN(test_plain_rtcp);
	CHECK_RUN(test_heap);
	CHECK_RUN(test_once);
	CHECK_RUN(test_wiped);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < N_ROLES; i++)
			srtp_dealloc(plain[k][i]);
	return check_end();
}
