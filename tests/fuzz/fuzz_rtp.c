/* RTP: whatever comes, all parts lie inside it; what was taken apart and written again is the same. */
#include "fuzz.h"

#include "net/rtp.h"

#include <string.h>

static void packet(const uint8_t *data, size_t n_bytes)
{
	uint8_t head[RTP_MAX_HEADER_BYTES];
	struct rtp r, again;

	if (rtp_unpack(&r, data, n_bytes))
		return;
	must(r.n_csrc <= RTP_MAX_CSRC && r.pt < 128);
	must(r.header_bytes + r.payload_bytes + r.padding_bytes == n_bytes);
	must(r.payload == data + r.header_bytes);
	fuzz_touch(r.payload, r.payload_bytes);
	if (r.has_extension)
		fuzz_touch(r.extension, r.extension_bytes);
	size_t n = rtp_pack(&r, head, sizeof(head));
	must(n == RTP_HEADER_BYTES + 4u * r.n_csrc);
	must(rtp_unpack(&again, head, n) == ERR_OK);
	must(again.seq == r.seq && again.ts == r.ts && again.ssrc == r.ssrc && again.marker == r.marker && again.pt == r.pt);
	must(!memcmp(again.csrc, r.csrc, sizeof(r.csrc)));
}

/* Numbers one after the other: what is unwrapped keeps its low bits, and the highest never goes back. */
static void numbers(const uint8_t *data, size_t n_bytes)
{
	struct rtp_unwrap seq = { 0 }, ts = { 0 };
	struct rtp_source source = { 0 };

	for (size_t at = 0; at + 4 <= n_bytes; at += 4) {
		uint32_t t;
		memcpy(&t, data + at, 4);
		int64_t before = seq.highest, ts_before = ts.highest;

		int64_t n = rtp_unwrap_seq(&seq, (uint16_t)t), m = rtp_unwrap_ts(&ts, t);
		must((uint16_t)n == (uint16_t)t && (uint32_t)m == t);
		must(seq.highest >= before && ts.highest >= ts_before && n <= seq.highest);
		must(rtp_source_judge(&source, (uint16_t)t) <= RTP_DROP);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	packet(data, n_bytes);
	numbers(data, n_bytes);
	return 0;
}
