/*
 * What weir:// senders bring beside their sound, on its way from the link's thread to the thread that writes.
 *
 * The link's thread copies each packet into a ring, once; the writing thread forwards it from where it lies there, under a
 * track of our own stream.  A full ring holds back the senders, never the sound.  Where a sender's data belongs in time is asked
 * before the first of it is taken into the ring: one that has to wait for that waits alone.
 */
#ifndef LEG_LINKJOIN_H
#define LEG_LINKJOIN_H

#include "rt/ring.h"
#include "leg/linkrecv.h"
#include "wire/track.h"
#include "wire/writer.h"

#define LINKJOIN_RING_BYTES ((size_t)1 << 20)
#define LINKJOIN_MAX_TRACKS 4096u /* of a sender */

/* Called by the writing thread. */
struct linkjoin_events {
	void *user;
	void (*join)(void *user, unsigned sender, const struct dgram_addr *from);
	/* A track of sound is announced, or announced again: its datagrams come elsewhere.  t->id is the sender's. */
	void (*sound)(void *user, unsigned sender, const struct track *t);
	void (*leave)(void *user, unsigned sender, bool whole);
	/* An id for a track of ours that the sender calls `theirs`; 0: none left. */
	uint16_t (*new_id)(void *user, uint16_t theirs);
	/*
	 * The sender's first position on a track, and what is to be added to all of its times: nanoseconds.  NULL: positions stay.
	 * Returns: false: that is not known yet, and the sender waits.
	 */
	bool (*shift)(void *user, unsigned sender, int64_t pos_ns, int64_t *shift_ns);
};

struct linkjoin_track {
	uint32_t next;                /* of the same sender, or of the free ones: place + 1 */
	uint16_t theirs, ours;        /* ours 0: sound, or not to be had */
	uint32_t rate_num, rate_den;
	bool is_sound, is_ended;
};

struct linkjoin_counts {
	uint64_t packets, bytes, tracks;
	atomic_uint_fast64_t refused; /* announcements and packets that a stream cannot have, or that were too many */
};

struct linkjoin {
	struct linkjoin_events events;
	struct linkjoin_counts counts;
	struct ring ring;
	int fd;                       /* readable when something lies in the ring */
	struct linkjoin_track *tracks;
	unsigned n_tracks, tracks_room;
	uint32_t free_tracks;         /* place + 1 */
	struct linkjoin_sender {
		/* the writing thread's */
		uint32_t tracks;      /* place + 1 of the first */
		unsigned n_tracks;
		bool has_shift, is_asked;
		int64_t shift_ns;
		uint16_t asked_track;
		int64_t asked_pos;
		uint32_t asked_session;
		/* the link's */
		uint32_t session;     /* of those that had this place: which one */
		bool has_asked;
		/* from one to the other: the session it is for, and what is answered */
		atomic_uint_fast64_t answer;
	} *senders;                   /* max_senders */
	unsigned n_asked;
	unsigned max_senders;
	struct err_why why;
};

/* Returns: ERR_OK, ERR_NOMEM, ERR_SYS.  Role: control. */
enum err linkjoin_init(struct linkjoin *l, unsigned max_senders, const struct linkjoin_events *events, struct err_why *why) WEIR_MUSTUSE;
void linkjoin_release(struct linkjoin *l);

/* What linkrecv is to call. */
struct linkrecv_events linkjoin_link_events(struct linkjoin *l);

/*
 * Hand on what lies there, and flush.  taken: something was, so the link may be woken.  Returns: what the writer said; ERR_NOMEM.
 * Role: io.
 */
enum err linkjoin_work(struct linkjoin *l, struct writer *out, bool *taken) WEIR_MUSTUSE;

/* END of every track that has none. */
enum err linkjoin_end(struct linkjoin *l, struct writer *out, enum packet_end_reason reason) WEIR_MUSTUSE;

#endif
