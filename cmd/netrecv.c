/* netrecv: RTP from a network becomes tracks of a stream, in order, in time, and honest about what is missing. */
#include "base/units.h"
#include "rt/clock.h"
#include "leg/browse.h"
#include "leg/hearing.h"
#include "tool/progress.h"
#include "tool/tool.h"

#include <stdio.h>

int main(int argc, char **argv)
{
	static struct hearing hearing;
	struct hearing_options o = HEARING_DEFAULTS;
	struct tool tool = { .name = NULL };
	struct browse_options found = { .limit_ns = 40 * UNITS_NS_PER_S };
	bool browse = false;
	static const struct opt_choice codecs[] = { { "opus", RTP_CODEC_OPUS }, { "l16", RTP_CODEC_L16 }, { "l24", RTP_CODEC_L24 }, { NULL, 0 } };
	const struct opt options[] = {
		OPT_GROUP("What comes"),
		OPT_CHOICE(0, "codec", "CODEC", &o.codec, codecs, "what senders send whose payload type says nothing"),
		OPT_INT(0, "pt", "N", &o.pt, 0, 127, "the payload type that --codec, -r and -c are about (default any of 96-127)"),
		OPT_RATE('r', "rate", &o.rate_hz, 1000, 384000, "of L16 and L24"),
		OPT_INT('c', "channels", "N", &o.channels, 1, 64, "of the codec given"),
		OPT_LIST(0, "from", "ADDR", &o.from, "hear only this address or network (192.0.2.0/24); repeatable"),
		OPT_INT(0, "max-senders", "N", &o.max_senders, 1, RECEIVER_MAX_SENDERS, "heard at one time (default 16)"),
		OPT_STRING(0, "key-file", "FILE", &o.key_file, "of srtp://; without it the key is taken from WEIR_KEY"),
		OPT_GROUP("Waiting"),
		OPT_STRING(0, "latency", "TIME", &o.latency, "how long a packet waits: auto, or a time (default auto)"),
		OPT_REAL(0, "glitches", "N", &o.glitches, 0.1, 60, "that latency auto may cost, a minute (default 6)"),
		OPT_SET(0, "no-retime", &o.retime, 0, "pass packets on undecoded, with gaps marked; the default into a file"),
		OPT_SET(0, "retime", &o.retime, 1, "play on the local clock: decode, conceal, correct drift; the default into a pipe"),
		OPT_TIME(0, "block", "TIME", &o.block, 0.0001, 0.1, "that is written at once with --retime (default a quarter of --latency, 0.5ms to 2.5ms)"),
		OPT_TIME('d', "duration", "TIME", &o.duration, 0, 1e9, "end after so long"),
		OPT_GROUP("Finding senders"),
		OPT_FLAG(0, "browse", &browse, "print the sessions that are announced, for --duration (default 40s)"),
		OPT_FLAG(0, "json", &found.json, "as JSON Lines, with their descriptions"),
		OPT_STRING(0, "save", "DIR", &found.folder, "write the descriptions found there, NAME.sdp"),
		OPT_FLAG('y', "force", &o.replace, "replace existing files"),
		OPT_STRING(0, "iface", "NAME", &found.iface, "look on this network interface"),
		OPT_GROUP("Recorded networks, and commands"),
		OPT_STRING(0, "record-trace", "FILE", &o.record_path, "write every datagram with its arrival here"),
		OPT_STRING(0, "replay", "FILE", &o.replay_path, "hear a recording, or a pcap, instead of the network"),
		OPT_STRING(0, "on-join", "CMD", &o.on_join, "run when a sender is new, with WEIR_TRACK, WEIR_ADDRESS … set"),
		OPT_STRING(0, "on-leave", "CMD", &o.on_leave, "run when one has gone"),
		OPT_END
	};

	tool_begin(&tool, "netrecv", "[options] URL|FILE.sdp|--browse", "hear a network, and write its senders as tracks of a stream", options, &argc, &argv);
	if (o.replace && !(browse ? found.folder : o.record_path))
		tool_usage(&tool, "--force", "nothing is overwritten without %s", browse ? "--save" : "--record-trace");
	if (browse) {
		struct err_why why = { 0 };

		if (argc > 1)
			tool_usage(&tool, argv[1], "is not needed to find out what there is");
		if (o.duration.is_set)
			found.limit_ns = o.duration.is_frames ? units_to_ns(o.duration.value, 48000, 1) : o.duration.value;
		found.replace = o.replace;
		return tool_end(&tool, browse_run(&tool, &found, &why), &why);
	}
	if (found.json || found.folder || found.iface)
		tool_usage(&tool, found.json ? "--json" : found.folder ? "--save" : "--iface", found.iface ? "is for --browse; a URL takes ?iface=NAME" : "is for --browse");
	if (argc < 2 && !o.replay_path)
		tool_usage(&tool, "URL", "missing: what shall be heard? rtp://:5004 is any sender to port 5004, FILE.sdp a described session");
	if (argc > 2)
		tool_usage(&tool, argv[2], "one URL or session description only");

	enum err e = hearing_open(&hearing, &tool, argc > 1 ? argv[1] : NULL, &o);
	if (!e)
		e = hearing_run(&hearing);
	hearing_release(&hearing);
	return tool_end(&tool, e, &hearing.why);
}
