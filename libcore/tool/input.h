/*
 * A named input of a tool: a weir stream (file, FIFO, "-") or an audio file, told apart by content.  Both come as the
 * same packets; an audio file's are made here, in place, by the code capture uses (tool/feed.h).
 */
#ifndef TOOL_INPUT_H
#define TOOL_INPUT_H

#include "tool/feed.h"
#include "tool/oggfeed.h"
#include "wire/reader.h"

struct input {
	bool is_stream;
	int fd;
	bool owns_fd;
	char name[256];
	struct reader reader;     /* is_stream */
	struct feed feed;         /* not */
	bool is_unknown;          /* a stream is looked for behind its head, which was nothing that is known */
	struct oggfeed *ogg;      /* neither: Ogg Opus undecoded; owned, with its user pointer */
	void *ogg_user;
	struct err_why why;
};

struct input_options {
	struct reader_options reader;
	struct source_args source;
	bool streams_only;        /* an audio file is an error; opening it does not wait */
	bool undecoded;           /* Ogg Opus comes as its packets, any other audio file is an error that names capture */
	uint32_t block_frames;    /* of audio files; 0 the default */
	bool has_fd;              /* read fd (not owned) instead of opening the name, which is for messages and the track */
	int fd;
	const uint8_t *head;      /* streams_only: head_bytes ≤ SOURCE_HEAD_BYTES of it that were read already */
	size_t head_bytes;
};

/* Open `name` ("-" is stdin).  Returns: ERR_OK; ERR_SYS, ERR_FORMAT … with *why.  Role: io, may block on a FIFO. */
enum err input_open(struct input *in, const char *name, const struct input_options *o, struct err_why *why) WEIR_MUSTUSE;
/* As reader_next(), reader_fill(): same results, same life of packets. */
enum err input_next(struct input *in, struct packet *p) WEIR_MUSTUSE;
enum err input_fill(struct input *in) WEIR_MUSTUSE;
/* The announcement of a track that has come by, or NULL; and the stage's own pointer for it. */
struct track *input_track(struct input *in, uint16_t id);
void **input_user(struct input *in, uint16_t id);
/* Something was lost on the way in; said as one line. */
bool input_is_cut(const struct input *in);
void input_describe_loss(const struct input *in, char *out, size_t out_bytes);
/* What of an audio file does not come along; "" nothing.  Returns: out. */
const char *input_left_out(const struct input *in, char out[static 96]);
/* How its end was announced: PACKET_END_NORMAL, … */
enum packet_end_reason input_end_reason(const struct input *in);
void input_release(struct input *in);

#endif
