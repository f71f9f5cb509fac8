/*
 * Reads a weir stream from a descriptor: finds packets, survives damage, and hands out a stream that is regular.
 *
 * What a caller gets, in order: TRACK before any DATA of that track and generation; a GAP packet (made here when the
 * stream had none) before every hole; no frame twice; positions that go on across concatenated streams (`cat a.weir
 * b.weir`); whole objects of audio, even when they were cut into fragments.  So a stage never has to look for holes.
 *
 * The bytes lie in a doubly mapped ring, so every packet is contiguous and a payload is copied once: by read(2).
 * reader_next() never blocks and never reads: when it says ERR_AGAIN the caller flushes what it owes downstream and
 * calls reader_fill().  All packets handed out stay valid until that call.
 */
#ifndef WIRE_READER_H
#define WIRE_READER_H

#include "rt/ring.h"
#include "wire/packet.h"
#include "wire/track.h"

#include <signal.h>

#define READER_DEFAULT_RING_BYTES (1u << 20)

/* What the reader knows of a track. */
struct reader_track {
	struct track track;      /* as announced last; first_pos on the joined timeline */
	bool announced;          /* since the current STREAM */
	bool started;            /* expect_pos holds */
	bool have_seq;           /* expect_seq and last_dropped hold */
	bool has_data;           /* DATA came since the last announcement that was no REPEAT */
	uint8_t wire_gen;        /* generation on the wire of the last announcement */
	int64_t expect_pos;      /* end of what was handed out */
	int64_t base;            /* added to the positions of the current STREAM */
	uint32_t expect_seq;     /* on the wire */
	uint32_t seq_base;       /* added to the wire's seq, so that it goes on across concatenated streams */
	uint32_t last_dropped, dropped_base;
	uint64_t packets;        /* objects handed out */
	uint64_t frames;         /* units of the timeline covered by DATA */
	uint64_t gaps;           /* holes that are losses: all but DTX, not started, paused */
	uint64_t lost_frames;    /* units in them */
	uint64_t silent_frames;  /* units in the holes that are not */
	uint64_t dropped_frames; /* said to be dropped upstream (Δdropped) */
	uint64_t lost_objects;   /* by seq */
	uint64_t overlap_frames; /* came twice, the second time thrown away */
	/* an object that came in fragments */
	uint8_t *object;         /* taken when a track with such objects is announced */
	uint32_t object_room_bytes, object_have_bytes;
	struct packet object_head;
	void *user;              /* the stage's own, NULL at first */
};

struct reader_options {
	size_t ring_bytes;            /* 0: READER_DEFAULT_RING_BYTES */
	bool keep_fragments;          /* hand fragments out as they come (routing tools) */
	bool raw;                     /* hand everything out as it is on the wire: REPEAT, SKIP, unknown types too, no made-up GAPs */
	bool big_payloads;            /* accept max_payload_bytes up to 16 MiB */
	bool expand_silence;          /* a SILENT PCM packet without payload comes as packets of zeros */
	const volatile sig_atomic_t *stop; /* when it becomes non-zero, no more input is taken; NULL never */
};

struct reader {
	int fd;
	struct reader_options options;
	char name[256];               /* for messages */
	struct ring ring;
	struct packet_stream stream;  /* the current STREAM */
	uint32_t sid;
	bool have_sid, ended, eof, stopped;
	bool began_as_stream;         /* its first bytes were a sync word */
	uint32_t max_payload_bytes;
	/* finding packets */
	size_t used_bytes;            /* of the ring, handed out or passed over since the last fill */
	size_t back_bytes;            /* of those, how far a search after damage goes back */
	bool scanning;                /* looking for a header after damage */
	uint64_t offset_bytes;        /* of the ring's read end, in the input */
	uint64_t good_offset_bytes;   /* end of the last good packet, in the input */
	uint64_t alive_at_bytes;      /* where the current stream was last seen to go on, while scanning */
	uint64_t damaged_before_bytes; /* passed over since the last good packet */
	/* totals */
	uint64_t n_packets, n_bytes, n_streams, n_resyncs, n_orphans;
	uint64_t damaged_bytes;       /* that belonged to no sound packet */
	uint64_t unexplained_gaps;    /* holes that no GAP announced */
	bool headless;                /* it began without its STREAM */
	bool truncated;               /* an end without END, or a STREAM that follows no END */
	uint16_t end_reason;          /* of the last stream END */
	/* joining the next of several concatenated streams to the timeline */
	bool join_pending;
	bool have_shift;
	int64_t shift;                /* in units of shift_num/shift_den */
	uint32_t shift_num, shift_den;
	/* tracks: a list in order of appearance, and an index by id */
	struct reader_track **tracks;
	unsigned n_tracks, tracks_room;
	uint16_t *index;              /* 65536 entries, 0 = none, else place + 1; only pages in use are touched */
	/* made-up packets, valid until the next call */
	struct packet held;           /* waits behind a made-up GAP */
	bool have_held;
	_Alignas(64) uint8_t gap_bytes[2 * PACKET_UNIT_BYTES];
	uint8_t *zeros;               /* PACKET_MAX_PAYLOAD_BYTES, when expand_silence */
	struct packet silence;        /* what is left of a SILENT packet: dur frames */
	uint32_t silence_frame_bytes;
	struct err_why why;
	enum err failed;              /* latched */
};

/* Open on fd (not owned, not closed).  name is for messages.  Allocates the ring.  Role: io. */
enum err reader_open(struct reader *r, int fd, const char *name, const struct reader_options *options,
	struct err_why *why) WEIR_MUSTUSE;
void reader_release(struct reader *r);

/*
 * The next packet, from what has been read.  p->track has an entry in reader_track() unless it is 0.
 * Returns: ERR_OK; ERR_AGAIN: call reader_fill(); ERR_END: the input is over (look at r->truncated, r->damaged_bytes,
 * r->end_reason); ERR_FORMAT: not a weir stream at all; ERR_VERSION: a critical type or another major version;
 * ERR_LIMIT, ERR_NOMEM.  r->why says it in words.  Role: io; does not block.
 */
enum err reader_next(struct reader *r, struct packet *p) WEIR_MUSTUSE;

/* One read(2).  Ends the life of every packet handed out before.  Returns: ERR_OK (also at end of file), ERR_SYS.  Role: io, blocks. */
enum err reader_fill(struct reader *r) WEIR_MUSTUSE;

/* What is known of a track, or NULL. */
struct reader_track *reader_track(struct reader *r, uint16_t id);

/* True if something of the input was lost in silence, or its END says so: truncated, damaged, unexplained holes. */
bool reader_is_cut(const struct reader *r);

/* One line for people on what was lost: "ended without an end mark at byte 1234 (track 1: frame 480)". */
void reader_describe_loss(const struct reader *r, char *out, size_t out_bytes);

#endif
