#include "tool/describe.h"

#include "base/utf8.h"
#include "tool/tool.h"
#include "wire/video.h"

#include <inttypes.h>
#include <string.h>

static const struct {
	uint16_t flag;
	const char *name;
} flag_names[] = {
	{ PACKET_KEY, "key" }, { PACKET_DISCONT, "discont" }, { PACKET_REPEAT, "repeat" }, { PACKET_CONCEALED, "concealed" },
	{ PACKET_RECOVERED, "recovered" }, { PACKET_PCRC, "pcrc" }, { PACKET_SILENT, "silent" }, { PACKET_TRIM, "trim" },
};

void describe_json_string(FILE *out, const char *text, size_t n_bytes)
{
	const uint8_t *s = (const uint8_t *)text;

	putc('"', out);
	for (size_t i = 0; i < n_bytes;) {
		size_t length = utf8_length(s + i, n_bytes - i);
		if (!length) {
			fputs("\\ufffd", out);
			i++;
			continue;
		}
		if (s[i] == '"' || s[i] == '\\')
			fprintf(out, "\\%c", s[i]);
		else if (s[i] < 0x20 || s[i] == 0x7F)
			fprintf(out, "\\u%04x", s[i]);
		else
			fwrite(s + i, 1, length, out);
		i += length;
	}
	putc('"', out);
}

static void json_flags(FILE *out, uint16_t flags)
{
	const char *comma = "";

	fputs("[", out);
	for (size_t i = 0; i < ARRAY_LEN(flag_names); i++)
		if (flags & flag_names[i].flag) {
			fprintf(out, "%s\"%s\"", comma, flag_names[i].name);
			comma = ", ";
		}
	fputs("]", out);
}

static void json_time(FILE *out, const char *key, int64_t ns)
{
	if (ns == UNITS_UNKNOWN_NS)
		fprintf(out, ", \"%s\": null", key);
	else
		fprintf(out, ", \"%s\": %" PRId64, key, ns);
}

static void json_uuid(FILE *out, const char *key, const uint8_t uuid[16])
{
	fprintf(out, ", \"%s\": \"", key);
	for (int i = 0; i < 16; i++)
		fprintf(out, "%02x%s", uuid[i], i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
	fputs("\"", out);
}

static void json_stream(FILE *out, const struct packet *p)
{
	struct packet_stream s;

	if (packet_stream_unpack(&s, p->payload, p->payload_bytes))
		return;
	json_uuid(out, "uuid", s.uuid);
	json_time(out, "t0_utc_ns", s.t0_utc_ns);
	fprintf(out, ", \"live\": %s, \"max_payload_bytes\": %u, \"max_object_bytes\": %u, \"announce_ms\": %u, \"n_tracks\": %u",
		s.flags & PACKET_STREAM_LIVE ? "true" : "false", s.max_payload_bytes, s.max_object_bytes, s.announce_ms, s.n_tracks);
	fprintf(out, ", \"clock_quality\": %u, \"tai_utc_s\": %d, \"n_packets\": %" PRIu64, s.clock_quality, s.tai_utc_s, s.n_packets);
	fputs(", \"name\": ", out);
	describe_json_string(out, s.name, strlen(s.name));
	fputs(", \"tool\": ", out);
	describe_json_string(out, s.tool, strlen(s.tool));
}

static void json_audio(FILE *out, const struct track *t)
{
	char scratch[16];

	fprintf(out, ", \"channels\": %u, \"sample\": \"%s\", \"layout\": %u, \"frame_bytes\": %u, \"valid_bits\": %u, \"wave_mask\": %" PRIu64,
		t->channels, track_sample_name(t->sample), t->layout, t->frame_bytes, t->valid_bits, t->wave_mask);
	fputs(", \"channel_names\": [", out);
	for (unsigned i = 0; i < t->channels; i++) {
		const char *name = track_channel_name(t, i, scratch);
		fputs(i ? ", " : "", out);
		describe_json_string(out, name, strlen(name));
	}
	fprintf(out, "], \"original_rate_hz\": %u", t->original_rate_hz);
	if (t->codec == TRACK_OPUS)
		fprintf(out, ", \"opus_family\": %u, \"opus_streams\": %u, \"opus_coupled\": %u, \"preroll_frames\": %u, \"gain_q8\": %d", t->opus_family,
			t->opus_streams, t->opus_coupled, t->preroll_frames, t->gain_q8);
}

static void json_video(FILE *out, const struct track *t)
{
	const struct video_format *f;
	struct video v;

	if (video_of_track(&v, t))
		return;
	f = video_format_by_fourcc(v.fourcc);
	fprintf(out, ", \"width\": %u, \"height\": %u, \"fourcc\": %u, \"stride\": %u, \"frame_bytes\": %u, \"aspect_num\": %u, \"aspect_den\": %u",
		v.width_pixels, v.height_pixels, v.fourcc, v.stride_bytes, v.frame_bytes, v.aspect_num, v.aspect_den);
	fprintf(out, ", \"layout_name\": \"%s\"", f ? f->name : "");
}

static enum err json_track(FILE *out, const struct packet *p)
{
	struct track t = {0};
	char name[128], scratch[8];
	const char *tag;

	enum err e = track_unpack(&t, p->payload, p->payload_bytes, NULL);
	if (e)
		return e == ERR_NOMEM ? e : ERR_OK;
	track_name(&t, name);
	fprintf(out, ", \"kind\": \"%s\", \"policy\": %u, \"codec\": \"%s\"", track_kind_name(t.kind), t.policy,
		track_codec_name(t.codec, scratch));
	fputs(", \"name\": ", out);
	describe_json_string(out, name, strlen(name));
	fprintf(out, ", \"rate_num\": %u, \"rate_den\": %u, \"nominal_dur\": %u, \"first_pos\": %" PRId64 ", \"next_pos\": %" PRId64,
		t.rate_num, t.rate_den, t.nominal_dur, t.first_pos, t.next_pos);
	fprintf(out, ", \"next_seq\": %u, \"largest_object_bytes\": %u", t.next_seq, t.largest_object_bytes);
	if (t.kind == TRACK_AUDIO)
		json_audio(out, &t);
	if (t.kind == TRACK_VIDEO)
		json_video(out, &t);
	fputs(", \"tags\": [", out);
	for (unsigned i = 0; (tag = track_tag_at(&t, i)); i++) {
		fputs(i ? ", " : "", out);
		describe_json_string(out, tag, strlen(tag));
	}
	fputs("]", out);
	track_release(&t);
	return ERR_OK;
}

static void json_gap(FILE *out, const struct packet *p)
{
	struct packet_gap g;

	if (packet_gap_unpack(&g, p->payload, p->payload_bytes))
		return;
	fprintf(out, ", \"reason\": %u, \"reason_name\": \"%s\", \"n_objects\": %u, \"skipped_bytes\": %" PRIu64, g.reason,
		packet_gap_reason_name(g.reason), g.n_objects, g.skipped_bytes);
}

static void json_clock(FILE *out, const struct packet *p)
{
	struct packet_clock c;

	if (packet_clock_unpack(&c, p->payload, p->payload_bytes))
		return;
	fprintf(out, ", \"realtime_ns\": %" PRId64 ", \"monotonic_ns\": %" PRId64 ", \"media_ns\": %" PRId64 ", \"error_ppb\": %d, \"uncertainty_ns\": %u",
		c.realtime_ns, c.monotonic_ns, c.media_ns, c.error_ppb, c.uncertainty_ns);
	json_uuid(out, "boot_id", c.boot_id);
}

static void json_end(FILE *out, const struct packet *p)
{
	struct packet_end e;

	if (packet_end_unpack(&e, p->payload, p->payload_bytes))
		return;
	fprintf(out, ", \"reason\": %u, \"n_packets\": %" PRIu64 ", \"n_payload_bytes\": %" PRIu64 ", \"end_pos\": %" PRId64, e.reason, e.n_packets,
		e.n_payload_bytes, e.end_pos);
}

enum err describe_packet_json(FILE *out, const struct packet *p, const struct track *t)
{
	char scratch[8];
	enum err e = ERR_OK;

	(void)t;
	fprintf(out, "{\"type\": \"%s\", \"track\": %u, \"gen\": %u, \"pos\": %" PRId64 ", \"dur\": %u, \"seq\": %u, \"bytes\": %u",
		packet_type_name(p->type, scratch), p->track, p->gen, p->pos, p->dur, p->seq, p->payload_bytes);
	if (p->payload_bytes != p->object_bytes)
		fprintf(out, ", \"object_offset_bytes\": %u, \"object_bytes\": %u", p->object_offset_bytes, p->object_bytes);
	fputs(", \"flags\": ", out);
	json_flags(out, p->flags);
	json_time(out, "utc_ns", p->utc_ns);
	fprintf(out, ", \"dropped\": %u", p->dropped);
	switch (p->type) {
	case PACKET_STREAM: json_stream(out, p); break;
	case PACKET_TRACK: e = json_track(out, p); break;
	case PACKET_GAP: json_gap(out, p); break;
	case PACKET_CLOCK: json_clock(out, p); break;
	case PACKET_END: json_end(out, p); break;
	default: break;
	}
	fputs("}\n", out);
	return e;
}

/* ---- for people ---- */

static enum err text_track(FILE *out, const struct packet *p)
{
	struct track t = {0};
	char name[128], scratch[8], channel[16];

	enum err e = track_unpack(&t, p->payload, p->payload_bytes, NULL);
	if (e) {
		fputs(" (not sound)", out);
		return e == ERR_NOMEM ? e : ERR_OK;
	}
	fprintf(out, " %s %s", track_kind_name(t.kind), track_codec_name(t.codec, scratch));
	if (t.kind == TRACK_AUDIO) {
		if (t.codec == TRACK_PCM)
			fprintf(out, " %s", track_sample_name(t.sample));
		fprintf(out, " %u Hz %u ch", track_rate_hz(&t), t.channels);
		if (t.channels <= 16)
			for (unsigned i = 0; i < t.channels; i++)
				fprintf(out, "%s%s", i ? " " : " (", track_channel_name(&t, i, channel));
		fputs(t.channels <= 16 ? ")" : "", out);
	}
	struct video v;
	if (t.kind == TRACK_VIDEO && video_of_track(&v, &t) == ERR_OK) {
		const struct video_format *f = video_format_by_fourcc(v.fourcc);
		fprintf(out, " %ux%u %s %u/%u a second", v.width_pixels, v.height_pixels, f ? f->name : "of a layout not known", t.rate_num, t.rate_den);
	}
	if (*track_name(&t, name))
		fprintf(out, " \"%s\"", name);
	fprintf(out, " from %" PRId64, t.first_pos);
	const char *tag;
	for (unsigned i = 0; (tag = track_tag_at(&t, i)); i++) {
		char shown[120];
		fprintf(out, "\n                  %s", tool_printable(tag, shown, sizeof(shown)));
	}
	track_release(&t);
	return ERR_OK;
}

static enum err text_control(FILE *out, const struct packet *p)
{
	struct packet_stream s;
	struct packet_gap g;
	struct packet_end e;
	static const char *const end_reasons[] = { "normal", "interrupted", "truncated upstream", "error" };

	switch (p->type) {
	case PACKET_STREAM:
		if (packet_stream_unpack(&s, p->payload, p->payload_bytes) == ERR_OK) {
			char shown[160];
			fprintf(out, " %08x %s by %s", p->sid, s.flags & PACKET_STREAM_LIVE ? "live" : "offline", *s.tool ? tool_printable(s.tool, shown, sizeof(shown)) : "?");
		}
		break;
	case PACKET_TRACK:
		return text_track(out, p);
	case PACKET_GAP:
		if (packet_gap_unpack(&g, p->payload, p->payload_bytes) == ERR_OK)
			fprintf(out, " %s", packet_gap_reason_name(g.reason));
		break;
	case PACKET_END:
		if (packet_end_unpack(&e, p->payload, p->payload_bytes) == ERR_OK) {
			fprintf(out, " %s", e.reason < ARRAY_LEN(end_reasons) ? end_reasons[e.reason] : "unknown reason");
			if (p->track)
				fprintf(out, " at %" PRId64, e.end_pos);
		}
		break;
	default:
		break;
	}
	return ERR_OK;
}

enum err describe_packet(FILE *out, const struct packet *p, const struct track *t)
{
	char scratch[8];

	fprintf(out, "%-6s %5u", packet_type_name(p->type, scratch), p->track);
	if (p->type == PACKET_DATA || p->type == PACKET_GAP) {
		fprintf(out, " %12" PRId64 " +%-7u", p->pos, p->dur);
		if (t && t->rate_num)
			fprintf(out, " %11.6f s", units_to_s(p->pos, t->rate_num, t->rate_den));
	}
	if (p->type == PACKET_DATA)
		fprintf(out, " seq %u", p->seq);
	fprintf(out, " %u bytes", p->payload_bytes);
	for (size_t i = 0; i < ARRAY_LEN(flag_names); i++)
		if (p->flags & flag_names[i].flag && flag_names[i].flag != PACKET_KEY)
			fprintf(out, " %s", flag_names[i].name);
	if (p->dropped)
		fprintf(out, " dropped %u", p->dropped);
	enum err e = text_control(out, p);
	putc('\n', out);
	return e;
}
