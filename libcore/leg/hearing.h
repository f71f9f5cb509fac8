/*
 * netrecv's work: sockets or a recording on one side, a receiver in the middle, a stream on the other, and one loop that
 * waits for all of them.
 */
#ifndef LEG_HEARING_H
#define LEG_HEARING_H

#include "leg/arrivals.h"
#include "leg/hooks.h"
#include "leg/keyfile.h"
#include "leg/linkjoin.h"
#include "leg/listener.h"
#include "tool/progress.h"
#include "leg/receiver.h"

struct hearing_options {
	int codec;
	int64_t pt, channels, max_senders;
	uint32_t rate_hz;
	struct opt_list from;
	const char *key_file, *latency;
	double glitches;
	int retime;                       /* −1: by what stdout is */
	struct opt_time block, duration;
	bool replace;                     /* what is there already */
	const char *record_path, *replay_path, *on_join, *on_leave;
};

#define HEARING_DEFAULTS { .codec = RTP_CODEC_NONE, .pt = -1, .max_senders = 16, .glitches = 6, .retime = -1 }

struct hearing {
	struct tool *tool;
	struct hearing_options o;
	struct stats stats;
	struct progress progress;
	struct writer out;
	struct listener listener;
	struct receiver receiver;
	struct srtp_session srtp;
	struct linkrecv link;             /* of weir:// */
	struct linkjoin joined;           /* what comes that way */
	struct url link_url;
	uint8_t psk[SEAL_PSK_BYTES];
	struct hearing_peer {
		struct dgram_addr from;
		int64_t joined_ns;
		bool has_sound;
	} *peers;                         /* of the link, max_senders */
	int64_t link_joined_ns;           /* its new tracks, counted against time */
	bool has_link, is_ending;
	struct receivernet from[RECEIVER_MAX_FROM];
	uint16_t port_numbers[RECEIVER_MAX_PORTS]; /* UDP ports by the receiver's number, for captures */
	struct arrivals_in replay;
	struct arrivals_out record;
	struct hooks hooks;
	struct sdp *sdp;
	struct tick tick;
	int out_fd;                       /* stdout by a description of its own, that does not block; −1 */
	bool is_secure, out_open, stalled, sources_changed;
	atomic_uint_fast64_t n_filtered, n_overflowed; /* datagrams that nobody read */
	uint64_t n_floods;
	int64_t start_ns, counted_ns;
	struct err_why why;
};

/* operand: a URL, a session description, or NULL with a recording.  *h is zero.  Returns: what went wrong, with h->why.  Role: control. */
enum err hearing_open(struct hearing *h, struct tool *t, const char *operand, const struct hearing_options *o) WEIR_MUSTUSE;
/* Until a stop, the duration, or the recording's end.  Role: io. */
enum err hearing_run(struct hearing *h) WEIR_MUSTUSE;
/* h->why stays. */
void hearing_release(struct hearing *h);

#endif
