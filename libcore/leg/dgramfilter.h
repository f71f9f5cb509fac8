/*
 * A flood of strangers, thrown away before it costs anything: while one lasts, a receiving UDP socket carries a filter (SO_ATTACH_FILTER,
 * classic BPF, which needs no privilege) that the kernel runs before it queues a datagram.
 *
 * Who is heard, told by address and port, passes whole.  Of the others, those hosts pass whole whose bucket is quiet: hosts are counted in
 * 256 buckets by a hash with a secret seed, and one that sends more than DGRAMFILTER_HOT_HZ is hot.  Of what comes from hot buckets a
 * share passes, so large that about DGRAMFILTER_PASSED_HZ datagrams a second are read: of RTP in runs of four packets in sequence, because
 * two in sequence prove a sender; of RTCP each by itself.  So a newcomer is heard at once, or, if the flood comes from his own host or from
 * everywhere, after a while.
 *
 * Those who are known may have a socket of their own besides, on the same port (dgramfilter_steer()): then what strangers send can never fill the
 * buffer that the others need, not even in the moment before a flood is noticed.
 *
 * The kernel counts what a filter refused together with what found no room.  They are told apart by how full the buffer is
 * before each read: only reading empties it, so if it is not nearly full then, it was not in between.
 */
#ifndef LEG_DGRAMFILTER_H
#define LEG_DGRAMFILTER_H

#include "leg/dgram.h"

#include <linux/filter.h>

#define DGRAMFILTER_MAX_KNOWN 512u       /* more than these are strangers to it: they pass if their hosts' buckets are quiet */
#define DGRAMFILTER_N_BUCKETS 256u
#define DGRAMFILTER_HOT_HZ 1000          /* of strangers' datagrams from the hosts of one bucket */
#define DGRAMFILTER_PASSED_HZ 8000       /* of strangers' datagrams in all: while fewer come there is no filter */
#define DGRAMFILTER_PROGRAM (DGRAMFILTER_MAX_KNOWN + 128u)

/* Who passes whole: the same for all sockets of a receiver. */
struct dgramfilter_known {
	uint32_t factor;                 /* of the hash: odd, secret */
	unsigned n;                      /* of keys, sorted */
	uint32_t keys[DGRAMFILTER_MAX_KNOWN];
	unsigned n_next, n_told;         /* of a list that is being made, and the last one as it was told */
	uint32_t next[DGRAMFILTER_MAX_KNOWN], told[DGRAMFILTER_MAX_KNOWN];
	uint32_t version;                /* of keys */
	struct sock_filter program[DGRAMFILTER_PROGRAM]; /* the last one that was made of them */
};

/* One socket's. */
struct dgramfilter {
	struct dgramfilter_known *known;
	const struct dgram *d;
	uint32_t most_bytes;
	bool is_on;                      /* the kernel has it */
	uint64_t random;
	uint32_t hot[DGRAMFILTER_N_BUCKETS / 32]; /* a bit for each bucket */
	uint32_t share;                  /* of hot ones, in 2^−32 */
	uint32_t known_version;          /* that it was made with */
	/* since window_ns */
	int64_t window_ns, last_ns;      /* … until the last of them came */
	unsigned n_strangers;
	uint16_t counts[DGRAMFILTER_N_BUCKETS];
	uint64_t window_filtered;        /* n_filtered then */
	int64_t busy_ns;                 /* last when the flood still came */
	int64_t learned_ns;              /* the hot ones are found anew now and then */
	int64_t again_ns;                /* the kernel did not want it: not before then */
	uint32_t drops;                  /* as the kernel counts them */
	uint64_t n_filtered;             /* refused by the filter */
	uint64_t n_overflowed;           /* no room for it, or it may be: the buffer was nearly full; or its checksum was wrong */
	unsigned n_floods;
};

/* seed: secret, random.  Nobody is known.  Role: any, as all of these; nothing is allocated. */
void dgramfilter_known_init(struct dgramfilter_known *k, uint64_t seed);
/* Say who is known now: begin, add each (twice is once; none is nobody), end.  More than fit are left out. */
void dgramfilter_known_begin(struct dgramfilter_known *k);
void dgramfilter_known_add(struct dgramfilter_known *k, const struct dgram_addr *from);
void dgramfilter_known_end(struct dgramfilter_known *k);
bool dgramfilter_known_has(const struct dgramfilter_known *k, const struct dgram_addr *from);

/* Of the socket *d, which is fresh and outlives it.  Datagrams longer than most_bytes are of no use.  *known outlives it. */
void dgramfilter_init(struct dgramfilter *f, const struct dgram *d, struct dgramfilter_known *known, uint32_t most_bytes, uint64_t seed,
	int64_t now_ns);

/*
 * Of two sockets on one port, opened as twins, the first gets the unicast of those who are known, and the second that of all others.  Again after
 * known->version has changed.  Returns: the kernel does so.
 */
bool dgramfilter_steer(const struct dgram *first, struct dgramfilter_known *known);

/* Before every read while it is on, and else before the first of a turn: see what the kernel threw away. */
void dgramfilter_account(struct dgramfilter *f);
/* A datagram was read. */
void dgramfilter_note(struct dgramfilter *f, const struct dgram_in *in);
/* After reading, and now and then: filter, filter otherwise, or let all pass again.  Returns: a flood has begun. */
bool dgramfilter_run(struct dgramfilter *f, int64_t now_ns);

#endif
