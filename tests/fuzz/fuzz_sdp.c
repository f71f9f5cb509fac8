/* Session descriptions and URLs: every text is taken or refused with words; what was taken and written is taken again, the same. */
#include "fuzz.h"

#include "net/sdp.h"
#include "net/sdpwrite.h"
#include "net/url.h"

#include <string.h>

static struct sdp first, second;
static char text[SDP_MAX_BYTES], text2[SDP_MAX_BYTES];

#define terminated(a) must(memchr((a), 0, sizeof(a)))

static void look(const struct sdp *s)
{
	must(s->n_media <= SDP_MAX_MEDIA && s->n_groups <= 4);
	terminated(s->name);
	terminated(s->info);
	terminated(s->user);
	terminated(s->tool);
	for (unsigned i = 0; i < s->n_media; i++) {
		const struct sdp_media *m = &s->media[i];
		char value[16];

		must(m->n_formats <= SDP_MAX_FORMATS && m->n_crypto <= SDP_MAX_CRYPTO && m->filter.n_sources <= SDP_MAX_SOURCES);
		must(m->ptime_ms >= 0 && m->ptime_ms <= 10001);
		terminated(m->label);
		terminated(m->address.host);
		terminated(m->channel_order);
		for (unsigned k = 0; k < m->n_formats; k++) {
			const struct sdp_format *f = &m->formats[k];
			terminated(f->fmtp);
			terminated(f->encoding);
			must(f->pt < 128);
			if (f->rtp.codec != RTP_CODEC_NONE)
				must(f->rtp.clock_hz >= 1000 && f->rtp.clock_hz <= 768000 && f->rtp.channels >= 1 && f->rtp.channels <= 255);
			const char *v = sdp_fmtp(f->fmtp, "stereo", value, sizeof(value));
			must(!v || strlen(v) < sizeof(value));
		}
		const struct sdp_format *chosen = sdp_choose(m);
		must(!chosen || sdp_by_pt(m, chosen->pt));
	}
}

static void url(const uint8_t *data, size_t n_bytes)
{
	struct err_why why = { 0 };
	struct url u;
	char one[512];
	size_t n = n_bytes < sizeof(one) - 1 ? n_bytes : sizeof(one) - 1;

	memcpy(one, data, n);
	one[n] = '\0';
	if (url_parse(&u, one, &why)) {
		must(*why.reason);
		return;
	}
	terminated(u.host);
	terminated(u.iface);
	must(url_is_url(one) && u.port > 0 && u.pt < 128 && u.ttl < 256 && u.channels < 256);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct err_why why = { 0 };

	url(data, n_bytes);
	if (sdp_parse(&first, (const char *)data, n_bytes, "fuzz", &why)) {
		must(*why.reason);
		return 0;
	}
	look(&first);
	size_t n = sdpwrite_text(&first, text, sizeof(text));
	if (n == 0)
		return 0;
	must(sdp_parse(&second, text, n, "again", &why) == ERR_OK);
	look(&second);
	must(second.n_media == first.n_media);
	/* From then on nothing changes any more. */
	size_t n2 = sdpwrite_text(&second, text2, sizeof(text2));
	must(n2 && sdp_parse(&first, text2, n2, "again", &why) == ERR_OK);
	must(sdpwrite_text(&first, text, sizeof(text)) == n2 && !memcmp(text, text2, n2));
	return 0;
}
