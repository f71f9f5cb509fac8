/*
 * A track's messages as a file, a FIFO or stdout: text and JSON a line each, MIDI as on a cable, others with 4 bytes before each that say
 * its length, as mux --data takes them; of a whole file that came in chunks its bytes.
 *
 * Payloads are written from where they lie.  What is missing is counted: of reliable tracks any, of lossy ones what the numbers say.
 */
#ifndef STAGE_DATAOUT_H
#define STAGE_DATAOUT_H

#include "media/sinkfile.h"
#include "wire/packet.h"
#include "wire/track.h"

struct dataout {
	struct sinkfile file;
	bool is_open;
	uint16_t codec;
	bool is_reliable, is_file;
	/* a message that comes in fragments */
	bool in_message;
	uint32_t seq, have_bytes, object_bytes;
	bool has_seq;
	uint32_t expect_seq;
	/* of a file in chunks */
	bool has_trailer;
	uint64_t file_bytes, wanted_bytes;
	uint32_t crc, wanted_crc;
	/* counted */
	uint64_t n_messages, n_bytes, n_missing, n_short;
};

/* Is it a track of messages? */
static inline bool dataout_is_data(const struct track *t)
{
	return t->kind == TRACK_DATA || t->kind == TRACK_TEXT;
}

/* Is it a file in chunks? */
bool dataout_is_file(const struct track *t);
/* The ending of a file of such a track: "txt", "jsonl", "midi", "osc", "bin"; of a file in chunks that of the track's name, which is cut off *name then. */
const char *dataout_ending(const struct track *t, char name[static 128]);

/* *o must be zero.  Returns: as sinkfile_open().  Role: io, blocks. */
enum err dataout_open(struct dataout *o, const char *path, const struct track *t, const struct sinkfile_args *args, struct err_why *why) WEIR_MUSTUSE;

/* It is announced again.  Returns: ERR_FORMAT when its messages are of another kind now. */
enum err dataout_track(struct dataout *o, const struct track *t, struct err_why *why) WEIR_MUSTUSE;

/* DATA of the track.  The payload stays until dataout_flush().  Returns: ERR_OK, ERR_GONE, ERR_SYS; o->file.why. */
enum err dataout_packet(struct dataout *o, const struct packet *p) WEIR_MUSTUSE;
enum err dataout_flush(struct dataout *o) WEIR_MUSTUSE;

/* Close; complete: the file gets its name.  Returns: ERR_OK; ERR_CUT: something is missing that must not be; what failed. */
enum err dataout_close(struct dataout *o, bool complete, struct err_why *why) WEIR_MUSTUSE;

/* "12 messages, 3 missing": a line for people.  Returns: out. */
const char *dataout_describe(const struct dataout *o, char out[static 200]);

#endif
