#include "stage/dataout.h"

#include "base/bytes.h"
#include "stage/datafeed.h"
#include "wire/crc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_schema(const struct track *t, const char *schema)
{
	uint32_t n = 0;
	const uint8_t *value = track_tlv(t, TRACK_TLV_SCHEMA, &n);

	return value && n == strlen(schema) && !memcmp(value, schema, n);
}

bool dataout_is_file(const struct track *t)
{
	return dataout_is_data(t) && t->codec == TRACK_BYTES && has_schema(t, DATAFEED_SCHEMA);
}

const char *dataout_ending(const struct track *t, char name[static 128])
{
	track_name(t, name);
	if (dataout_is_file(t)) {
		char *dot = strrchr(name, '.');
		if (!dot || dot == name || !dot[1])
			return "bin";
		*dot = 0;
		return dot + 1;
	}
	switch (t->codec) {
	case TRACK_UTF8:
		return "txt";
	case TRACK_JSON:
		return "jsonl";
	case TRACK_MIDI1:
		return "midi";
	case TRACK_OSC:
		return "osc";
	}
	return "bin";
}

static bool is_lines(const struct dataout *o)
{
	return o->codec == TRACK_UTF8 || o->codec == TRACK_JSON;
}

enum err dataout_open(struct dataout *o, const char *path, const struct track *t, const struct sinkfile_args *args, struct err_why *why)
{
	struct sinkfile_args a = *args;

	o->codec = t->codec;
	o->is_reliable = t->policy == TRACK_RELIABLE;
	o->is_file = dataout_is_file(t);
	a.is_text = is_lines(o);
	enum err e = sinkfile_open(&o->file, path, &a, why);
	o->is_open = e == ERR_OK;
	return e;
}

enum err dataout_track(struct dataout *o, const struct track *t, struct err_why *why)
{
	char was[8], is[8];

	if (t->codec == o->codec && dataout_is_file(t) == o->is_file)
		return ERR_OK;
	return err_say(why, ERR_FORMAT, sinkfile_place(&o->file), "the messages of track %u change from %s to %s, which no file can say", t->id,
		track_codec_name(o->codec, was), track_codec_name(t->codec, is));
}

/* ---- a file in chunks ---- */

/* The number behind "key": in what we wrote ourselves; 0 if there is none. */
static uint64_t json_number(const uint8_t *text, size_t n_bytes, const char *key, int base)
{
	char copy[256];

	if (n_bytes >= sizeof(copy))
		return 0;
	memcpy(copy, text, n_bytes);
	copy[n_bytes] = 0;
	const char *found = strstr(copy, key);
	return found ? strtoull(found + strlen(key), NULL, base) : 0;
}

static enum err put_chunk(struct dataout *o, const struct packet *p)
{
	const uint8_t *body = p->payload + DATAFEED_HEAD_BYTES;

	/* Chunks are whole objects: mux makes none that is longer than a packet. */
	if (p->payload_bytes < DATAFEED_HEAD_BYTES || p->payload_bytes != p->object_bytes) {
		o->n_short++;
		return ERR_OK;
	}
	size_t n_bytes = p->payload_bytes - DATAFEED_HEAD_BYTES;
	uint64_t offset = get_le64(p->payload + 8);
	if (p->payload[0] == DATAFEED_TRAILER) {
		o->has_trailer = true;
		o->wanted_bytes = offset;
		o->wanted_crc = (uint32_t)json_number(body, n_bytes, "\"crc32c\": \"", 16);
	}
	if (p->payload[0] != DATAFEED_BODY)
		return ERR_OK;
	if (offset != o->file_bytes)
		o->n_short++;
	o->file_bytes = offset + n_bytes;
	o->crc = crc_32c(o->crc, body, n_bytes);
	return sinkfile_put(&o->file, body, n_bytes);
}

static bool file_is_whole(const struct dataout *o)
{
	return o->has_trailer && !o->n_short && o->file_bytes == o->wanted_bytes && o->crc == o->wanted_crc;
}

/* ---- messages ---- */

/* Fragments of the one before that never came: what is there of a line ends here. */
static enum err end_short(struct dataout *o)
{
	if (!o->in_message)
		return ERR_OK;
	o->in_message = false;
	o->n_short++;
	return is_lines(o) ? sinkfile_put(&o->file, "\n", 1) : ERR_OK;
}

static enum err begin_message(struct dataout *o, const struct packet *p)
{
	uint8_t prefix[4];

	if (o->has_seq && p->seq - o->expect_seq < 0x80000000u)
		o->n_missing += p->seq - o->expect_seq;
	o->has_seq = true;
	o->expect_seq = p->seq + 1;
	o->in_message = true;
	o->seq = p->seq;
	o->have_bytes = 0;
	o->object_bytes = p->object_bytes;
	if (is_lines(o) || o->is_file || o->codec == TRACK_MIDI1)
		return ERR_OK;
	if (o->codec == TRACK_OSC)
		put_be32(prefix, p->object_bytes);
	else
		put_le32(prefix, p->object_bytes);
	return sinkfile_put_copy(&o->file, prefix, sizeof(prefix));
}

enum err dataout_packet(struct dataout *o, const struct packet *p)
{
	enum err e;

	if (p->type != PACKET_DATA)
		return ERR_OK;
	if (p->object_offset_bytes == 0) {
		if ((e = end_short(o)) || (e = begin_message(o, p)))
			return e;
	} else if (!o->in_message || p->seq != o->seq || p->object_offset_bytes != o->have_bytes || p->object_bytes != o->object_bytes) {
		return end_short(o);
	}
	e = o->is_file ? put_chunk(o, p) : p->payload_bytes ? sinkfile_put(&o->file, p->payload, p->payload_bytes) : ERR_OK;
	o->have_bytes += p->payload_bytes;
	o->n_bytes += p->payload_bytes;
	if (e || o->have_bytes < o->object_bytes)
		return e;
	o->in_message = false;
	o->n_messages++;
	return is_lines(o) ? sinkfile_put(&o->file, "\n", 1) : ERR_OK;
}

enum err dataout_flush(struct dataout *o)
{
	return sinkfile_settle(&o->file);
}

enum err dataout_close(struct dataout *o, bool complete, struct err_why *why)
{
	char text[200];
	enum err e;

	if (!o->is_open)
		return ERR_OK;
	o->is_open = false;
	if ((e = end_short(o)) || (e = sinkfile_flush(&o->file)))
		*why = o->file.why;
	bool is_whole = o->is_file ? file_is_whole(o) : !o->n_short && !(o->is_reliable && o->n_missing);
	/* What a whole file lacks must not look like one. */
	bool named = complete && !e && (is_whole || !o->is_file);
	if (!e && complete && !is_whole)
		e = err_say(why, ERR_CUT, sinkfile_place(&o->file), "%s", dataout_describe(o, text));
	enum err closed = sinkfile_close(&o->file, named, e ? NULL : why);
	return e ? e : closed;
}

const char *dataout_describe(const struct dataout *o, char out[static 200])
{
	if (o->is_file && file_is_whole(o))
		snprintf(out, 200, "%" PRIu64 " bytes, and the checksum is right", o->file_bytes);
	else if (o->is_file)
		snprintf(out, 200, "is not whole: %s", !o->has_trailer ? "its end is missing" : "chunks are missing, or wrong by the checksum");
	else if (o->n_missing || o->n_short)
		snprintf(out, 200, "%" PRIu64 " messages, %" PRIu64 " missing, %" PRIu64 " cut short", o->n_messages, o->n_missing, o->n_short);
	else
		snprintf(out, 200, "%" PRIu64 " messages", o->n_messages);
	return out;
}
