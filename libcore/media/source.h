/*
 * Audio that does not come as a weir stream: files by content, audio on a pipe, raw samples, generators.
 * One shape for all of them, so that capture, mix, meter and the rest read the very same way.
 *
 * source_open() looks at the first bytes (never at the name) and picks an adapter:
 *   wavread cafread aiffread auread   WAV, RIFX, RF64, BW64, W64; CAF; AIFF and AIFF-C; AU, with samples that are
 *               not compressed: own parsers over pcmread, files and pipes alike
 *   opusread    Ogg Opus: packets by oggread, decoded by opusdec (chained links, holes, trims)
 *   flacread    FLAC and Ogg FLAC by libFLAC;  vorbisread  Ogg Vorbis by libvorbisfile;  mp3read  MP3 by libmpg123
 *   sndread     what else libsndfile knows (VOC, WAV with ADPCM, ALAC in CAF …); it must seek, so pipes are spooled
 *   rawread     "raw:PATH" with rate, channels and format given;   genread  "gen:…"
 *   livesource  a device: "pulse:…", "pipewire:…", "jack:…", "alsa:…"
 *
 * A source may be moved (copied byte by byte, the old one forgotten): no adapter keeps a pointer to it.
 */
#ifndef MEDIA_SOURCE_H
#define MEDIA_SOURCE_H

#include "wire/packet.h"
#include "wire/track.h"

#include <signal.h>

/* What was asked for on the command line; zero = the source's own. */
struct source_args {
	uint32_t rate_hz;         /* for raw: and gen: the rate to make; elsewhere not looked at (resampling is the caller's) */
	uint16_t channels;        /* likewise for raw: and gen:; of a device so many */
	const char *format;       /* for raw: "s16" "s16be" "s24" … "u8" "alaw" "ulaw"; for gen: and devices "s16"… "f32"; NULL */
	int64_t duration_frames;  /* gen: to end after this many; −1 endless */
	int stdin_fd;             /* what "-" means */
	int64_t ring_ns;          /* devices: how long the reader may pause; 0 is 2 s */
	uint32_t block_frames;    /* devices: frames a block; 0 the device's own */
	const volatile sig_atomic_t *stop;
};

/* One run of frames, or a hole, or news. */
struct source_block {
	int64_t pos;              /* of the first frame, in the track's rate */
	size_t n_frames;          /* frames at dst; 0 with a gap or news */
	uint64_t gap_frames;      /* a hole of this length begins at pos (then n_frames is 0) */
	uint16_t gap_reason;      /* enum packet_gap_reason */
	uint16_t flags;           /* PACKET_CONCEALED, PACKET_DISCONT … for the packet */
	int64_t utc_ns;           /* wall clock of pos; UNITS_UNKNOWN_NS */
	bool track_changed;       /* source->track has new tags or layout (a chained link): announce it again */
};

struct source;
struct source_bytes;

struct source_ops {
	const char *name;         /* "wavread" */
	/*
	 * Up to max_frames frames of source->track's format to dst (64-byte aligned, max_frames·frame_bytes of room).
	 * Returns: ERR_OK with *b filled; ERR_END; ERR_SYS, ERR_FORMAT, ERR_CODEC with source->why.
	 * No allocation once running.  Role: io.
	 */
	enum err (*read)(struct source *s, uint8_t *dst, size_t max_frames, struct source_block *b);
	/* Move to frame pos, exactly, before the first read.  NULL: the caller reads and throws away. */
	enum err (*seek)(struct source *s, int64_t pos);
	void (*release)(struct source *s);
	/* Would reading so many frames wait for input?  NULL: never. */
	bool (*would_block)(const struct source *s, size_t n_frames);
};

struct source {
	const struct source_ops *ops;
	void *state;              /* the adapter's */
	int fd;                   /* −1 for generators; owned unless it is stdin */
	bool owns_fd;
	char name[256];           /* for messages */
	struct track track;       /* format, layout, tags; id 0; first_pos = where it starts */
	int64_t n_frames;         /* in all, −1 unknown */
	int64_t shift_frames;     /* added to the adapter's positions: see source_trim() */
	const volatile sig_atomic_t *stop;
	/* told at the end, or as it happens */
	bool cut;                 /* something was lost: shorter than promised, damaged, a hole */
	uint64_t damaged_bytes;
	uint64_t lost_frames;
	uint64_t clipped_samples; /* by a change of the sample format on the way, see reshape.h */
	unsigned n_pictures;      /* that stand beside its tags, and do not come along */
	char note[256];           /* worth saying with -v: "the sizes in the header are unknown, read to the end"; "" none */
	char warning[256];        /* worth saying always, once: what was lost and where; "" none */
	struct err_why why;
};

/*
 * Open what `spec` names: "-", "raw:PATH" or "raw:-", "gen:…", a device, or a path.
 * Returns: ERR_OK; ERR_FORMAT (nothing here knows it), ERR_SYS (cannot be opened), ERR_ARG, ERR_LIMIT (an impossible
 * rate or channel count), with *why.  Allocates.  Role: io, may block on a FIFO.
 */
enum err source_open(struct source *s, const char *spec, const struct source_args *args, struct err_why *why) WEIR_MUSTUSE;
/* The same, of a descriptor that was opened and looked at already; s takes the descriptor over where owns_fd.  ERR_AGAIN: nothing here knows it. */
enum err source_open_bytes(struct source *s, const char *name, struct source_bytes *in, bool owns_fd, const struct source_args *args,
	struct err_why *why) WEIR_MUSTUSE;
enum err source_read(struct source *s, uint8_t *dst, size_t max_frames, struct source_block *b) WEIR_MUSTUSE;
/* By ops->seek, or by reading; frames before it are not handed out.  Past the end: the next read is ERR_END. */
enum err source_seek(struct source *s, int64_t pos) WEIR_MUSTUSE;
/* Leave out the first n_frames: what follows is the new beginning, at position 0. */
enum err source_trim(struct source *s, int64_t n_frames) WEIR_MUSTUSE;
void source_release(struct source *s);

/* What does not come along, worth saying always where the audio goes on into a file or stream; "" if all does.  Returns: out. */
const char *source_left_out(const struct source *s, char out[static 96]);

/* The words for an input that nothing here knows, which ERR_AGAIN leaves to the caller.  Returns: ERR_FORMAT. */
enum err source_unknown(struct err_why *why, const char *name);

/*
 * Does fd hold a weir stream?  Looks at the first bytes without taking them where that can be (regular files: pread),
 * else puts what it took into head (up to 64 bytes).  Used by tools that take streams and audio files alike.
 */
bool source_is_stream(const uint8_t *head, size_t n_bytes);

/* ---- for adapters ---- */

/*
 * Bytes of the input with the first ones looked at already: what was sniffed comes first, then read(2).
 * Every sequential adapter reads through this, so files and pipes are one case.  Offsets count from where the
 * descriptor stood when it was opened.
 */
#define SOURCE_HEAD_BYTES 4096u
#define SOURCE_SNIFF_BYTES 64u
#define SOURCE_SIZE_UNKNOWN UINT64_MAX
struct source_bytes {
	int fd;
	const volatile sig_atomic_t *stop;
	uint8_t head[SOURCE_HEAD_BYTES];
	size_t head_bytes, head_used_bytes;
	uint64_t offset_bytes;    /* of the next byte handed out */
	bool is_regular;          /* can be sought in; size_bytes holds */
	int64_t base_bytes;       /* regular: where the descriptor stood */
	uint64_t size_bytes;      /* regular: from there to the end of the file when it was opened; else SOURCE_SIZE_UNKNOWN */
	bool eof;
	bool stopped;             /* *stop was raised: what follows looks like an end, but is not the input's fault */
	int sys_errno;            /* of a failed read, else 0 */
};

/* Begin: the head holds SOURCE_SNIFF_BYTES or more, less only at the end of the input.  Role: io. */
void source_bytes_open(struct source_bytes *in, int fd, const volatile sig_atomic_t *stop);
/* Bring the head to n_bytes (at most SOURCE_HEAD_BYTES), before anything was taken.  Returns: bytes there, fewer at the end. */
size_t source_bytes_want(struct source_bytes *in, size_t n_bytes);
/* Exactly n_bytes unless the input ends or fails.  Returns: bytes got.  Role: io. */
size_t source_bytes_read(struct source_bytes *in, void *dst, size_t n_bytes);
/* What one read(2) gives, at most n_bytes: does not wait for more than is there.  Returns: bytes got, 0 at the end. */
size_t source_bytes_some(struct source_bytes *in, void *dst, size_t n_bytes);
/* Step over n_bytes, by lseek where that can be.  Returns: bytes stepped over. */
uint64_t source_bytes_skip(struct source_bytes *in, uint64_t n_bytes);
/* Regular files: go to an offset.  Returns: false if that failed. */
bool source_bytes_seek(struct source_bytes *in, uint64_t offset_bytes);
/* Would reading n_bytes wait for them?  False where that cannot be known. */
bool source_bytes_would_block(const struct source_bytes *in, size_t n_bytes);
/* What decoders ask for, who do not know how much the next frame takes. */
#define SOURCE_ENOUGH_BYTES 4096u

/* Add to s->note ("; " between), so much of it as fits. */
void source_note(struct source *s, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* Say what was lost, once: the first warning stays.  Sets s->cut. */
void source_warn(struct source *s, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* Add a tag; a value that is not UTF-8 is taken as Latin-1.  Empty, malformed and too large ones are left out. */
void source_tag(struct source *s, const char *key, const char *value, size_t value_bytes);
/* Set s->track's format; tags added before stay. */
void source_set_pcm(struct source *s, uint32_t rate_hz, uint16_t channels, enum sample sample);
/* Check a rate and a channel count against the limits of track.h.  Returns: ERR_OK, ERR_LIMIT with *why. */
enum err source_check(const struct source *s, uint64_t rate_hz, uint64_t channels, struct err_why *why) WEIR_MUSTUSE;
/* The error of a read that came short because of the system: s->why from in->sys_errno. */
enum err source_failed(struct source *s, const struct source_bytes *in);

/* Would source_read() of so many frames wait for more input?  So that a tool can flush first.  Never true for files and generators. */
bool source_would_block(const struct source *s, size_t n_frames);

/* Each adapter: looks at in->head; ERR_AGAIN = not mine.  On ERR_OK s->ops and s->state are set and *in was taken over (copied). */
enum err wavread_open(struct source *s, struct source_bytes *in, struct err_why *why) WEIR_MUSTUSE;
enum err cafread_open(struct source *s, struct source_bytes *in, struct err_why *why) WEIR_MUSTUSE;
enum err aiffread_open(struct source *s, struct source_bytes *in, struct err_why *why) WEIR_MUSTUSE;
enum err auread_open(struct source *s, struct source_bytes *in, struct err_why *why) WEIR_MUSTUSE;
enum err opusread_open(struct source *s, struct source_bytes *in, struct err_why *why) WEIR_MUSTUSE;
enum err flacread_open(struct source *s, struct source_bytes *in, struct err_why *why) WEIR_MUSTUSE;
enum err vorbisread_open(struct source *s, struct source_bytes *in, struct err_why *why) WEIR_MUSTUSE;
enum err mp3read_open(struct source *s, struct source_bytes *in, struct err_why *why) WEIR_MUSTUSE;
enum err sndread_open(struct source *s, struct source_bytes *in, struct err_why *why) WEIR_MUSTUSE;
enum err rawread_open(struct source *s, struct source_bytes *in, const struct source_args *args, struct err_why *why) WEIR_MUSTUSE;
enum err genread_open(struct source *s, const char *spec, const struct source_args *args, struct err_why *why) WEIR_MUSTUSE;

#endif
