/*
 * What a bad network does to packets: for each one that sets out, whether it arrives, when, how often, and in which place.
 *
 * Time is an argument, and every chance comes from a seed, so the same packets at the same times meet the same fate on every machine: only
 * integers and the IEEE operations + − × ÷ and square root are used, no function of the mathematical library.  Each effect
 * draws from a sequence of its own: turning jitter on does not change which packets are lost.
 *
 * In this order: chance of loss, rate limit with its queue, delay with jitter, spikes and a recorded trace, stalls, drift of the
 * clocks, and the order in which packets come out.
 */
#ifndef NET_IMPAIRMENT_H
#define NET_IMPAIRMENT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMPAIRMENT_LOST INT64_MIN          /* in a trace: this one did not arrive */
#define IMPAIRMENT_MAX_DRIFT_PPB 10000000  /* ±1 % */
#define IMPAIRMENT_MAX_DELAY_NS 3600000000000LL /* of each part: an hour */

enum impairment_shape {
	IMPAIRMENT_NORMAL,       /* around the delay; jitter_ns is the standard deviation; never below no delay */
	IMPAIRMENT_EXPONENTIAL,  /* on top of the delay; jitter_ns is the mean */
	IMPAIRMENT_UNIFORM,      /* delay ± jitter_ns; never below no delay */
};

/* Zero of everything is a perfect network. */
struct impairment_config {
	uint64_t seed;
	double loss;             /* share of packets, 0…1 */
	double burst_packets;    /* mean length of a loss in packets (Gilbert), ≥ 1; 0: each packet by itself */
	int64_t burst_ns;        /* mean time of an outage instead; 0: not by time */
	uint32_t lose_every;     /* the Nth, 2Nth…; 0 none */
	int64_t delay_ns;        /* of every packet */
	int64_t jitter_ns;
	enum impairment_shape shape;
	double spikes;           /* share of packets that come later by */
	int64_t spike_ns;        /* so much in the mean (exponential) */
	int64_t stall_ns;        /* nothing comes out for so long, */
	int64_t stall_every_ns;  /* about every so often (exponential); all of it comes out at the end */
	double reorder;          /* share of packets that are held back until */
	unsigned reorder_by;     /* so many later ones have passed, ≥ 1 */
	double duplicate;        /* share of packets that come twice */
	uint64_t rate_bps;       /* 0 no limit */
	uint64_t queue_bytes;    /* that may wait for the rate; what does not fit is lost */
	uint32_t overhead_bytes; /* of a packet on the line, counted by the rate */
	int32_t drift_ppb;       /* the sender's clock is faster than the receiver's by so much */
	bool is_virtual;         /* times are the sender's; a packet may come out before it was sent, by the receiver's clock */
	bool may_overtake;       /* jitter changes the order; else a packet waits for the one before, as in a queue */
	const int64_t *trace;    /* delays in ns, or IMPAIRMENT_LOST, packet by packet, again from the start when over; NULL none; not owned */
	size_t n_trace;
};

enum impairment_cause { IMPAIRMENT_ARRIVES, IMPAIRMENT_BY_CHANCE, IMPAIRMENT_BY_QUEUE, IMPAIRMENT_BY_TRACE };

/* What becomes of one packet. */
struct impairment_fate {
	enum impairment_cause cause; /* IMPAIRMENT_ARRIVES, or why it is lost: then nothing below holds */
	int64_t out_ns;          /* comes out then */
	int64_t late_ns;         /* of that, what is beyond delay_ns and not drift: how much later than the fastest; may be negative */
	bool is_doubled;         /* and a second time at */
	int64_t copy_ns;
	unsigned behind;         /* but first so many later ones pass; 0 in order */
};

struct impairment_random {
	uint64_t s[4];           /* xoshiro256** */
	bool has_spare;          /* normal: they come in pairs */
	double spare;
};

struct impairment_counts {
	uint64_t packets, lost, queue_lost, bursts, delayed, reordered, duplicated;
	int64_t max_delay_ns;
	int64_t sum_delay_us;    /* of those that arrive */
};

struct impairment {
	struct impairment_config config;
	struct impairment_random on_loss, on_jitter, on_spike, on_stall, on_reorder, on_duplicate;
	bool begun;
	int64_t start_ns;        /* time of the first packet: from there clocks drift */
	int64_t now_ns;          /* time of the last one */
	bool is_bad;             /* Gilbert's state, by packets or by time */
	int64_t turn_ns;         /* by time: it changes then */
	bool lost_last;
	uint64_t n_seen;
	size_t trace_at;
	int64_t busy_until_ns;   /* the line, at the limited rate */
	int64_t stall_from_ns, stall_to_ns;
	int64_t last_out_ns;
	struct impairment_counts counts;
};

/* Returns: ERR_OK; ERR_ARG with *why: a share outside 0…1, bursts that cannot make that loss, a negative time… */
enum err impairment_init(struct impairment *m, const struct impairment_config *c, struct err_why *why) WEIR_MUSTUSE;

/* Does this config do anything at all? */
bool impairment_is_nothing(const struct impairment_config *c);

/*
 * The fate of a packet of n_bytes that sets out at now_ns.  Times may not go back (they are taken as no earlier than the last).
 * Role: any; takes no memory.  Sources: Gilbert's two-state model of bursts (Bell System Technical Journal 39, 1960).
 */
void impairment_send(struct impairment *m, int64_t now_ns, uint32_t n_bytes, struct impairment_fate *fate);

/* By how much the receiver's clock and the sender's lie apart so long after the start: to be added to the sender's time. */
int64_t impairment_drift_ns(const struct impairment *m, int64_t now_ns);

/* ---- chances, for tests and others who need the same everywhere ---- */

/* A sequence that is told from the others by `which`. */
void impairment_seed(struct impairment_random *r, uint64_t seed, uint64_t which);
uint64_t impairment_random(struct impairment_random *r);
/* [0, 1) in steps of 2^−53. */
double impairment_uniform(struct impairment_random *r);
/* Mean 0, deviation 1 (Marsaglia's polar method); mean 1. */
double impairment_normal(struct impairment_random *r);
double impairment_exponential(struct impairment_random *r);
/* Natural logarithm of x > 0, within 2 units in the last place, the same bits everywhere. */
double impairment_log(double x);

/* ---- a line of a trace: "1.25ms" (as all times; bare: seconds), "lost", a comment (#) or nothing ---- */

/* Returns: ERR_OK with the delay (or IMPAIRMENT_LOST); ERR_AGAIN: nothing in this line; ERR_FORMAT. */
enum err impairment_trace_line(const char *line, int64_t *delay_ns) WEIR_MUSTUSE;

#endif
