#include "net/sdpattribute.h"

#include <string.h>
#include <strings.h>

#define MAX_CLOCK_HZ 768000u
#define MAX_CHANNELS 255u
#define MAX_PTIME_MS 10000.0

/* "111 …": the format of the media that a line is about.  Returns: false: the number is none.  *f is NULL if it is not listed. */
static bool format_of(struct sdptext *p, const char **at, struct sdp_format **f)
{
	unsigned long pt;

	*f = NULL;
	if (!sdptext_number(at, 127, &pt) || (**at != ' ' && **at != '\t'))
		return false;
	*at += strspn(*at, " \t");
	for (unsigned i = 0; i < p->media->n_formats && !*f; i++) {
		if (p->media->formats[i].pt == pt)
			*f = &p->media->formats[i];
	}
	return true;
}

static enum err take_rtpmap(struct sdptext *p, const char *at)
{
	struct sdp_format *f;
	unsigned long hz, channels = 1;

	if (!format_of(p, &at, &f))
		return sdptext_bad(p, "rtpmap: a payload type of 0 to 127 and an encoding are wanted");
	if (!f)
		return ERR_OK;
	size_t n = strcspn(at, "/ \t");
	if (n == 0 || n >= sizeof(f->encoding) || at[n] != '/')
		return sdptext_bad(p, "rtpmap: an encoding is 'NAME/CLOCK' or 'NAME/CLOCK/CHANNELS'");
	memcpy(f->encoding, at, n);
	f->encoding[n] = '\0';
	at += n + 1;
	if (!sdptext_number(&at, UINT32_MAX, &hz) || hz == 0)
		return sdptext_bad(p, "rtpmap: a clock is a number of Hz");
	enum rtp_codec codec = p->media->is_audio ? rtp_codec_by_name(f->encoding) : RTP_CODEC_NONE;
	if (*at == '/' && (at++, !sdptext_number(&at, UINT16_MAX, &channels) || channels == 0) && p->media->is_audio)
		return sdptext_bad(p, "rtpmap: channels are 1 to %u", codec == RTP_CODEC_NONE ? UINT16_MAX : MAX_CHANNELS);
	if (codec != RTP_CODEC_NONE && (hz < 1000 || hz > MAX_CLOCK_HZ || channels > MAX_CHANNELS))
		return sdptext_bad(p, "rtpmap: %lu Hz and %lu channels: 1000 to %u Hz and 1 to %u channels are possible", hz, channels, MAX_CLOCK_HZ, MAX_CHANNELS);
	f->rtp = (struct rtp_format){ codec, (uint32_t)hz, (uint16_t)channels };
	return ERR_OK;
}

static enum err take_fmtp(struct sdptext *p, const char *at)
{
	struct sdp_format *f;

	if (!format_of(p, &at, &f))
		return sdptext_bad(p, "fmtp: a payload type of 0 to 127 and parameters are wanted");
	if (!f)
		return ERR_OK;
	sdptext_keep(f->fmtp, sizeof(f->fmtp), at, strlen(at));
	sdp_fmtp(f->fmtp, "channel-order", p->media->channel_order, sizeof(p->media->channel_order));
	return ERR_OK;
}

/* "1 AEAD_AES_128_GCM inline:KEY|2^20|1:4 FLAGS" */
static enum err take_crypto(struct sdptext *p, const char *at)
{
	struct sdp_media *m = p->media;
	unsigned long tag;
	const char *key;

	if (m->n_crypto == SDP_MAX_CRYPTO)
		return ERR_OK;
	struct sdp_crypto *c = &m->crypto[m->n_crypto];
	if (!sdptext_number(&at, 999999999, &tag) || !sdptext_keep_word(&at, c->suite, sizeof(c->suite)))
		return sdptext_bad(p, "crypto: a tag, a suite and inline:KEY are wanted");
	size_t n = sdptext_word(&at, &key);
	if (n <= 7 || strncasecmp(key, "inline:", 7))
		return sdptext_bad(p, "crypto: the key is not 'inline:…'");
	n = strcspn(key + 7, "|; \t");
	if (n == 0 || n >= sizeof(c->key))
		return sdptext_bad(p, "crypto: a key of 1 to %zu characters is wanted", sizeof(c->key) - 1);
	c->tag = (unsigned)tag;
	memcpy(c->key, key + 7, n);
	c->key[n] = '\0';
	m->n_crypto++;
	return ERR_OK;
}

/* " incl IN IP4 239.1.2.3 192.0.2.7 …" */
static enum err take_filter(struct sdptext *p, const char *at, struct sdp_filter *f)
{
	char mode[8], skipped[SDP_TEXT_BYTES];
	const char *w;
	size_t n;

	*f = (struct sdp_filter){ 0 };
	if (!sdptext_keep_word(&at, mode, sizeof(mode)) || (strcmp(mode, "incl") && strcmp(mode, "excl")))
		return sdptext_bad(p, "source-filter is 'incl' or 'excl'");
	for (unsigned i = 0; i < 3; i++) {
		if (!sdptext_keep_word(&at, skipped, sizeof(skipped)))
			return sdptext_bad(p, "source-filter: a kind of address, a destination and sources are wanted");
	}
	while ((n = sdptext_word(&at, &w)) && f->n_sources < SDP_MAX_SOURCES) {
		if (n >= sizeof(f->sources[0]))
			return sdptext_bad(p, "source-filter: a source is longer than %zu characters", sizeof(f->sources[0]) - 1);
		memcpy(f->sources[f->n_sources], w, n);
		f->sources[f->n_sources++][n] = '\0';
	}
	if (f->n_sources == 0)
		return sdptext_bad(p, "source-filter names no source");
	f->is_set = true;
	f->excludes = mode[0] == 'e';
	return ERR_OK;
}

static enum err take_ssrc(struct sdptext *p, const char *at)
{
	struct sdp_media *m = p->media;
	unsigned long ssrc;

	if (!sdptext_number(&at, UINT32_MAX, &ssrc))
		return sdptext_bad(p, "ssrc: not a number of 32 bits");
	if (!m->has_ssrc) {
		m->has_ssrc = true;
		m->ssrc = (uint32_t)ssrc;
	}
	at += strspn(at, " \t");
	if (m->ssrc == ssrc && !strncmp(at, "cname:", 6))
		sdptext_keep(m->cname, sizeof(m->cname), at + 6, strlen(at + 6));
	return ERR_OK;
}

static bool direction_of(const char *name, enum sdp_direction *d)
{
	static const char *const names[] = { "sendrecv", "sendonly", "recvonly", "inactive" };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		if (!strcmp(name, names[i])) {
			*d = i;
			return true;
		}
	}
	return false;
}

/* Attributes that either the session or a media has. */
static enum err take_common(struct sdptext *p, const char *name, const char *value)
{
	struct sdp_media *m = p->media;

	if (direction_of(name, m ? &m->direction : &p->direction))
		return ERR_OK;
	if (!strcmp(name, "source-filter"))
		return take_filter(p, value, m ? &m->filter : &p->filter);
	if (!strcmp(name, "ts-refclk"))
		sdptext_keep(m ? m->ts_refclk : p->ts_refclk, SDP_TEXT_BYTES, value, strlen(value));
	else if (!strcmp(name, "mediaclk"))
		sdptext_keep(m ? m->mediaclk : p->mediaclk, SDP_TEXT_BYTES, value, strlen(value));
	else if (!strcmp(name, "rtcp-mux"))
		*(m ? &m->rtcp_mux : &p->rtcp_mux) = true;
	else if (!strcmp(name, "tool") && !m)
		sdptext_keep(p->sdp->tool, sizeof(p->sdp->tool), value, strlen(value));
	else if (!strcmp(name, "group") && !m && p->sdp->n_groups < ARRAY_LEN(p->sdp->groups))
		sdptext_keep(p->sdp->groups[p->sdp->n_groups++], SDP_TEXT_BYTES, value, strlen(value));
	return ERR_OK;
}

enum err sdpattribute_take(struct sdptext *p, char *text)
{
	struct sdp_media *m = p->media;
	char *colon = strchr(text, ':');
	const char *value = colon ? colon + 1 : "";
	unsigned long v;

	if (colon)
		*colon = '\0';
	if (!m)
		return take_common(p, text, value);
	if (!strcmp(text, "rtpmap"))
		return take_rtpmap(p, value);
	if (!strcmp(text, "fmtp"))
		return take_fmtp(p, value);
	if (!strcmp(text, "crypto"))
		return take_crypto(p, value);
	if (!strcmp(text, "ssrc"))
		return take_ssrc(p, value);
	if (!strcmp(text, "ptime"))
		return sdptext_decimal(value, MAX_PTIME_MS, &m->ptime_ms) ? ERR_OK : sdptext_bad(p, "ptime is not 0 to %.0f ms", MAX_PTIME_MS);
	if (!strcmp(text, "maxptime"))
		return sdptext_decimal(value, MAX_PTIME_MS, &m->maxptime_ms) ? ERR_OK : sdptext_bad(p, "maxptime is not 0 to %.0f ms", MAX_PTIME_MS);
	if (!strcmp(text, "mid"))
		sdptext_keep(m->mid, sizeof(m->mid), value, strlen(value));
	if (!strcmp(text, "rtcp")) {
		if (!sdptext_number(&value, 65535, &v) || v == 0)
			return sdptext_bad(p, "rtcp: not a port of 1 to 65535");
		m->rtcp_port = (uint16_t)v;
	}
	return take_common(p, text, value);
}
