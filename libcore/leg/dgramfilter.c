#include "leg/dgramfilter.h"

#include "base/bytes.h"
#include "base/units.h"

#include <string.h>

#define WINDOW_NS (UNITS_NS_PER_S / 10)
#define WINDOW_STRANGERS 256u            /* so many at once end a window early */
#define READ_PACKETS 64u                 /* at once */
#define DATAGRAM_MEMORY_BYTES 4352u      /* that the kernel counts for one of 2 KiB: a page, and what describes it */
#define SHORTEST_NS 50000                /* that rates are told from */
#define QUIET_NS UNITS_NS_PER_S          /* after so long without a flood everything passes */
#define LEARN_NS (10 * UNITS_NS_PER_S)
#define AGAIN_NS UNITS_NS_PER_S          /* the kernel is asked again */
#define HOT_LEAST 4u                     /* datagrams in a window, however short */
#define LEAST_SHARE (1u << 20)           /* 1 of 4096 */
#define WHOLE UINT32_MAX
#define BUCKET_FACTOR 0x9E3779B1u        /* 2^32 over the golden ratio: Fibonacci hashing, of what is a secret's multiple already */
#define IP6_HEADER_NIBBLE 0x60
#define IP4_HEADER_BYTES 20u
#define IP6_HEADER_BYTES 40u
#define UDP_HEADER_BYTES 8u

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9E3779B97F4A7C15u);

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

/* ---- numbers for hosts and sources: the same as the program works them out ---- */

static uint32_t host_number(uint32_t factor, const struct dgram_addr *a)
{
	uint32_t x = 0;

	if (a->any.sa_family == AF_INET)
		return ntohl(a->ip4.sin_addr.s_addr) * factor;
	if (IN6_IS_ADDR_V4MAPPED(&a->ip6.sin6_addr))
		return get_be32(a->ip6.sin6_addr.s6_addr + 12) * factor;
	for (unsigned i = 0; i < 16; i += 4)
		x = (x ^ get_be32(a->ip6.sin6_addr.s6_addr + i)) * factor;
	return x;
}

/* 31 bits: a comparison with more takes the kernel two steps. */
static uint32_t source_key(uint32_t factor, const struct dgram_addr *a)
{
	return (host_number(factor, a) ^ dgram_port(a)) * factor >> 1;
}

static unsigned bucket_of(uint32_t factor, const struct dgram_addr *a)
{
	return host_number(factor, a) * BUCKET_FACTOR >> 24;
}

/* ---- who is known ---- */

void dgramfilter_known_init(struct dgramfilter_known *k, uint64_t seed)
{
	*k = (struct dgramfilter_known){ .factor = (uint32_t)next_random(&seed) | 1 };
}

void dgramfilter_known_begin(struct dgramfilter_known *k)
{
	k->n_next = 0;
}

void dgramfilter_known_add(struct dgramfilter_known *k, const struct dgram_addr *from)
{
	if (from->n_bytes && k->n_next < DGRAMFILTER_MAX_KNOWN)
		k->next[k->n_next++] = source_key(k->factor, from);
}

/* Few, and seldom: and what the library has for it allocates. */
static void sort(uint32_t *v, unsigned n)
{
	for (unsigned i = 1; i < n; i++) {
		uint32_t x = v[i];
		unsigned at = i;

		for (; at && v[at - 1] > x; at--)
			v[at] = v[at - 1];
		v[at] = x;
	}
}

void dgramfilter_known_end(struct dgramfilter_known *k)
{
	size_t n_bytes = k->n_next * sizeof(k->next[0]);

	if (k->n_next == k->n_told && !memcmp(k->told, k->next, n_bytes))
		return;
	memcpy(k->told, k->next, n_bytes);
	k->n_told = k->n_next;
	sort(k->next, k->n_next);
	k->n = 0;
	for (unsigned i = 0; i < k->n_next; i++)
		if (!k->n || k->next[i] != k->keys[k->n - 1])
			k->keys[k->n++] = k->next[i];
	k->version++;
}

bool dgramfilter_known_has(const struct dgramfilter_known *k, const struct dgram_addr *from)
{
	uint32_t key = source_key(k->factor, from);
	unsigned low = 0, high = k->n;

	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (k->keys[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low < k->n && k->keys[low] == key;
}

/* ---- the program ---- */

struct assembler {
	struct sock_filter *at;
	unsigned n;
};

static void put(struct assembler *a, unsigned code, uint32_t k)
{
	a->at[a->n++] = (struct sock_filter){ .code = (uint16_t)code, .k = k };
}

/* A jump over so many if the accumulator compares so, over so many if not. */
static void put_jump(struct assembler *a, unsigned how, uint32_t k, unsigned if_true, unsigned if_false)
{
	a->at[a->n++] = (struct sock_filter){ .code = (uint16_t)(BPF_JMP | how | BPF_K), .jt = (uint8_t)if_true, .jf = (uint8_t)if_false, .k = k };
}

#define NET(offset) ((uint32_t)SKF_NET_OFF + (offset))
#define PASS UINT32_MAX                  /* so many bytes of it: all */
#define REFUSE 0

/* Who sent it: the host's number in M[0], the UDP port in M[1].  One who sends IP options or extension headers is not known. */
static void put_source(struct assembler *a, uint32_t factor)
{
	put(a, BPF_LD | BPF_B | BPF_ABS, NET(0));
	put(a, BPF_ALU | BPF_AND | BPF_K, 0xF0);
	put_jump(a, BPF_JEQ, IP6_HEADER_NIBBLE, 5, 0);
	put(a, BPF_LD | BPF_H | BPF_ABS, NET(IP4_HEADER_BYTES));
	put(a, BPF_ST, 1);
	put(a, BPF_LD | BPF_W | BPF_ABS, NET(12));
	put(a, BPF_ALU | BPF_MUL | BPF_K, factor);
	put(a, BPF_JMP | BPF_JA, 4 + 4 * 3);
	put(a, BPF_LD | BPF_H | BPF_ABS, NET(IP6_HEADER_BYTES));
	put(a, BPF_ST, 1);
	put(a, BPF_LD | BPF_W | BPF_ABS, NET(8));
	put(a, BPF_ALU | BPF_MUL | BPF_K, factor);
	for (uint32_t i = 12; i < 24; i += 4) {
		put(a, BPF_MISC | BPF_TAX, 0);
		put(a, BPF_LD | BPF_W | BPF_ABS, NET(i));
		put(a, BPF_ALU | BPF_XOR | BPF_X, 0);
		put(a, BPF_ALU | BPF_MUL | BPF_K, factor);
	}
	put(a, BPF_ST, 0);
}

/* Those who are known: the program ends with `what`.  Jumps reach 255 instructions far, so there are several ends. */
static void put_known(struct assembler *a, const struct dgramfilter_known *k, uint32_t what)
{
	put(a, BPF_LDX | BPF_MEM, 0);
	put(a, BPF_LD | BPF_MEM, 1);
	put(a, BPF_ALU | BPF_XOR | BPF_X, 0);
	put(a, BPF_ALU | BPF_MUL | BPF_K, k->factor);
	put(a, BPF_ALU | BPF_RSH | BPF_K, 1);
	for (unsigned i = 0, n; i < k->n; i += n) {
		n = k->n - i < 200 ? k->n - i : 200;
		for (unsigned j = 0; j < n; j++)
			put_jump(a, BPF_JEQ, k->keys[i + j], n - 1 - j, j + 1 == n);
		put(a, BPF_RET | BPF_K, what);
	}
}

/* Those of quiet buckets pass: the bucket's bit of the right word of eight. */
static void put_buckets(struct assembler *a, const uint32_t *hot)
{
	enum { N_WORDS = DGRAMFILTER_N_BUCKETS / 32 };

	put(a, BPF_LD | BPF_MEM, 0);
	put(a, BPF_ALU | BPF_MUL | BPF_K, BUCKET_FACTOR);
	put(a, BPF_ALU | BPF_RSH | BPF_K, 24);
	put(a, BPF_ST, 1);
	put(a, BPF_ALU | BPF_AND | BPF_K, 31);
	put(a, BPF_MISC | BPF_TAX, 0);
	put(a, BPF_LD | BPF_MEM, 1);
	put(a, BPF_ALU | BPF_RSH | BPF_K, 5);
	for (unsigned i = 0; i < N_WORDS; i++) {
		if (i + 1 < N_WORDS)
			put_jump(a, BPF_JEQ, i, 0, 2);
		put(a, BPF_LD | BPF_IMM, hot[i]);
		if (i + 1 < N_WORDS)
			put(a, BPF_JMP | BPF_JA, 1 + 3 * (N_WORDS - 2 - i));
	}
	put(a, BPF_ALU | BPF_RSH | BPF_X, 0);
	put_jump(a, BPF_JSET, 1, 1, 0);
	put(a, BPF_RET | BPF_K, PASS);
}

/* Of the hot ones a share: of RTCP by chance, of RTP by what a run of four packets of an SSRC has in common. */
static void put_share(struct assembler *a, uint32_t share, uint32_t seed)
{
	put(a, BPF_LD | BPF_B | BPF_ABS, UDP_HEADER_BYTES + 1);
	put(a, BPF_ALU | BPF_AND | BPF_K, 0xE0);
	put_jump(a, BPF_JEQ, 0xC0, 0, 2);
	put(a, BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_AD_OFF + SKF_AD_RANDOM);
	put(a, BPF_JMP | BPF_JA, 7);
	put(a, BPF_LD | BPF_H | BPF_ABS, UDP_HEADER_BYTES + 2);
	put(a, BPF_ALU | BPF_RSH | BPF_K, 2);
	put(a, BPF_ALU | BPF_MUL | BPF_K, seed | 1);
	put(a, BPF_MISC | BPF_TAX, 0);
	put(a, BPF_LD | BPF_W | BPF_ABS, UDP_HEADER_BYTES + 8);
	put(a, BPF_ALU | BPF_XOR | BPF_X, 0);
	put(a, BPF_ALU | BPF_MUL | BPF_K, (seed >> 7) * BUCKET_FACTOR | 1);
	put_jump(a, BPF_JGT, share, 0, 1);
	put(a, BPF_RET | BPF_K, REFUSE);
	put(a, BPF_RET | BPF_K, PASS);
}

static unsigned assemble(struct dgramfilter *f)
{
	struct assembler a = { .at = f->known->program };

	/* Not RTP nor RTCP of version 2: of no use to anybody.  One too short to be looked at is refused by the kernel itself. */
	put(&a, BPF_LD | BPF_B | BPF_ABS, UDP_HEADER_BYTES);
	put(&a, BPF_ALU | BPF_AND | BPF_K, 0xC0);
	put_jump(&a, BPF_JEQ, 0x80, 1, 0);
	put(&a, BPF_RET | BPF_K, REFUSE);
	put(&a, BPF_LD | BPF_LEN, 0);
	put_jump(&a, BPF_JGT, UDP_HEADER_BYTES + f->most_bytes, 0, 1);
	put(&a, BPF_RET | BPF_K, REFUSE);
	put_source(&a, f->known->factor);
	put_known(&a, f->known, PASS);
	put_buckets(&a, f->hot);
	put_share(&a, f->share, (uint32_t)next_random(&f->random));
	return a.n;
}

bool dgramfilter_steer(const struct dgram *first, struct dgramfilter_known *known)
{
	struct assembler a = { .at = known->program };

	put_source(&a, known->factor);
	put_known(&a, known, 0);
	put(&a, BPF_RET | BPF_K, 1);
	const struct sock_fprog program = { .len = (unsigned short)a.n, .filter = known->program };
	return !setsockopt(first->fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program));
}

/* ---- on and off ---- */

static void detach(struct dgramfilter *f)
{
	int ignored = 0;

	(void)setsockopt(f->d->fd, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof(ignored));
	f->is_on = false;
}

static void turn_on(struct dgramfilter *f, int64_t now_ns)
{
	struct sock_fprog program = { .filter = f->known->program };

	dgramfilter_account(f);
	program.len = (unsigned short)assemble(f);
	if (setsockopt(f->d->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program))) {
		/* The kernel has no memory for it, or does not allow it.  One that was there before knows too few. */
		f->again_ns = now_ns + AGAIN_NS;
		if (f->is_on)
			detach(f);
		return;
	}
	f->n_floods += !f->is_on;
	f->is_on = true;
	f->known_version = f->known->version;
}

static void turn_off(struct dgramfilter *f)
{
	dgramfilter_account(f);
	detach(f);
	memset(f->hot, 0, sizeof(f->hot));
}

void dgramfilter_init(struct dgramfilter *f, const struct dgram *d, struct dgramfilter_known *known, uint32_t most_bytes, uint64_t seed,
	int64_t now_ns)
{
	*f = (struct dgramfilter){ .known = known, .d = d, .most_bytes = most_bytes, .random = seed, .share = WHOLE, .window_ns = now_ns, .last_ns = now_ns };
}

void dgramfilter_account(struct dgramfilter *f)
{
	struct dgram_memory m;

	if (!dgram_memory(f->d, &m))
		return;
	uint32_t n = m.n_dropped - f->drops, room = m.room_bytes, read = room / 4 + READ_PACKETS * DATAGRAM_MEMORY_BYTES;
	f->drops = m.n_dropped;
	/* One read gives back no more than this (a quarter of the room may have been owed from before): so if it was full, it still holds the rest. */
	uint32_t least = room > read + room / 16 ? room - read : room / 16;
	if (f->is_on && m.used_bytes < least)
		f->n_filtered += n;
	else
		f->n_overflowed += n;
}

void dgramfilter_note(struct dgramfilter *f, const struct dgram_in *in)
{
	if (dgramfilter_known_has(f->known, &in->from))
		return;
	f->n_strangers++;
	f->last_ns = in->arrival_ns;
	uint16_t *count = &f->counts[bucket_of(f->known->factor, &in->from)];
	if (*count < UINT16_MAX)
		++*count;
}

/* ---- the rule ---- */

static int64_t rate_hz(uint64_t n, int64_t ns)
{
	return (int64_t)n * UNITS_NS_PER_S / ns;
}

/* Which buckets have become hot in so long.  Returns: one has. */
static bool find_hot(struct dgramfilter *f, int64_t ns)
{
	bool any = false;

	for (unsigned i = 0; i < DGRAMFILTER_N_BUCKETS; i++) {
		uint32_t bit = 1u << i % 32;

		if (f->counts[i] < HOT_LEAST || f->hot[i / 32] & bit || rate_hz(f->counts[i], ns) < DGRAMFILTER_HOT_HZ)
			continue;
		f->hot[i / 32] |= bit;
		any = true;
	}
	return any;
}

/* That lets enough pass of what came. */
static uint32_t share_of(int64_t came_hz)
{
	if (came_hz <= DGRAMFILTER_PASSED_HZ)
		return WHOLE;
	uint64_t share = ((uint64_t)DGRAMFILTER_PASSED_HZ << 32) / (uint64_t)came_hz;
	return share < LEAST_SHARE ? LEAST_SHARE : (uint32_t)share;
}

/* What came in so long was a flood: the filter that it wants, if it is another than there is. */
static void oppose(struct dgramfilter *f, int64_t came_hz, int64_t ns, int64_t now_ns)
{
	uint32_t share = share_of(came_hz);

	f->busy_ns = now_ns;
	/* The hosts of a flood change. */
	if (now_ns - f->learned_ns > LEARN_NS) {
		memset(f->hot, 0, sizeof(f->hot));
		f->learned_ns = now_ns;
	}
	/* When more passes than should, by luck, other lots are drawn. */
	bool is_other = find_hot(f, ns) || rate_hz(f->n_strangers, ns) > 3 * DGRAMFILTER_PASSED_HZ;
	if (f->is_on && !is_other && share / 2 <= f->share && share >= f->share / 2)
		return;
	f->share = share;
	turn_on(f, now_ns);
}

bool dgramfilter_run(struct dgramfilter *f, int64_t now_ns)
{
	bool was_on = f->is_on, is_full = f->n_strangers >= WINDOW_STRANGERS;

	if (f->is_on && f->known_version != f->known->version)
		turn_on(f, now_ns);
	if (!is_full && now_ns - f->window_ns < WINDOW_NS)
		return false;
	/* After we were held up they were read faster than they came. */
	int64_t end_ns = is_full && f->last_ns > f->window_ns ? f->last_ns : now_ns, ns = end_ns - f->window_ns;
	ns = ns < SHORTEST_NS ? SHORTEST_NS : ns;
	int64_t came_hz = rate_hz(f->n_strangers + f->n_filtered - f->window_filtered, ns);
	if (came_hz > (f->is_on ? DGRAMFILTER_PASSED_HZ / 2 : DGRAMFILTER_PASSED_HZ)) {
		if (now_ns >= f->again_ns)
			oppose(f, came_hz, ns, now_ns);
	} else if (f->is_on && now_ns - f->busy_ns > QUIET_NS) {
		turn_off(f);
	}
	if (f->n_strangers)
		memset(f->counts, 0, sizeof(f->counts));
	f->n_strangers = 0;
	f->window_ns = end_ns;
	f->window_filtered = f->n_filtered;
	return f->is_on && !was_on;
}
