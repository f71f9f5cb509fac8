/*
 * The meters of one input: a meter for each PCM track that is asked for, fed with the input's packets; where a reference
 * is named, each compared with its track of it; and a call whenever a report is due.
 */
#ifndef STAGE_METERSET_H
#define STAGE_METERSET_H

#include "meter/meter.h"
#include "stage/reference.h"
#include "tool/select.h"
#include "tool/tool.h"

struct meterset_options {
	struct meter_options measure;
	struct opt_list tracks;       /* -t; empty: all */
	const char *compare_path;     /* NULL: none */
	struct opt_time interval;     /* not set: none */
};

struct meterset_entry {
	struct meter meter;
	struct reference reference;
	bool over;                    /* its END has come */
};

struct meterset {
	const struct meterset_options *options;
	struct tool *tool;            /* says which tracks are not measured */
	enum err (*due)(void *arg);   /* a report is due: called on the frame, on the first running track's time */
	void *arg;
	struct meterset_entry **entries; /* in order of appearance */
	struct meter **meters;        /* the same, for reports */
	unsigned n_meters;
	unsigned n_coded;             /* tracks that were asked for and are no PCM */
	unsigned coded_id;            /* the first of them */
	int64_t n_intervals;          /* that have passed */
	struct select_hits hits;      /* of all inputs */
	struct err_why why;
};

/* options and tool stay the caller's.  Allocates nothing. */
void meterset_init(struct meterset *s, const struct meterset_options *options, struct tool *tool, enum err (*due)(void *arg),
	void *arg);
void meterset_release(struct meterset *s);

/*
 * A packet of `in`, of any type; keeps its own pointer there (input_user()).  Allocates when a track is announced.
 * Returns: ERR_OK; what went wrong with the reference, with s->why; what `due` returned.  Role: io.
 */
enum err meterset_packet(struct meterset *s, struct input *in, const struct packet *p) WEIR_MUSTUSE;

/* The input is over. */
enum err meterset_end(struct meterset *s) WEIR_MUSTUSE;

#endif
