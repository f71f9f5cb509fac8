/* net/sdp, net/sap, net/url: descriptions as other programs write them, ours read again, announcements, addresses. */
#include "check.h"

#include "net/sap.h"
#include "net/sdp.h"
#include "net/sdpwrite.h"
#include "net/url.h"

static struct sdp s, again;

/* As ffmpeg prints it, with what it prints around it. */
static const char of_ffmpeg[] =
	"SDP:\n"
	"v=0\n"
	"o=- 0 0 IN IP4 127.0.0.1\n"
	"s=No Name\n"
	"c=IN IP4 127.0.0.1\n"
	"t=0 0\n"
	"a=tool:libavformat 59.27.100\n"
	"m=audio 5004 RTP/AVP 97\n"
	"b=AC:96\n"
	"a=rtpmap:97 opus/48000/2\n"
	"a=fmtp:97 sprop-stereo=1\n";

static void test_of_ffmpeg(void)
{
	struct err_why why;
	char value[8];

	CHECK_OK(sdp_parse(&s, of_ffmpeg, strlen(of_ffmpeg), "x.sdp", &why));
	CHECK_STR(s.name, "No Name");
	CHECK_EQ(s.n_media, 1);
	const struct sdp_media *m = &s.media[0];
	CHECK(m->is_audio && m->is_rtp && !m->is_secure);
	CHECK_EQ(m->port, 5004);
	CHECK_EQ(m->rtcp_port, 5005);
	CHECK_STR(m->address.host, "127.0.0.1");
	CHECK_EQ(m->n_formats, 1);
	CHECK_EQ(m->formats[0].pt, 97);
	CHECK_EQ(m->formats[0].rtp.codec, RTP_CODEC_OPUS);
	CHECK_EQ(m->formats[0].rtp.channels, 2);
	CHECK_STR(sdp_fmtp(m->formats[0].fmtp, "SPROP-stereo", value, sizeof(value)), "1");
	CHECK(!sdp_fmtp(m->formats[0].fmtp, "stereo", value, sizeof(value)));
	CHECK(sdp_choose(m) == &m->formats[0]);
}

/* An AES67 device: two flows of a session, a source filter, clocks, a static payload type with no rtpmap; and what is not for us. */
static const char of_device[] =
	"v=0\r\n"
	"o=- 1311738121 1311738121 IN IP4 192.168.1.1\r\n"
	"s=Stage left\r\n"
	"i=eight inputs\r\n"
	"c=IN IP4 239.0.0.1/32\r\n"
	"t=0 0\r\n"
	"a=recvonly\r\n"
	"a=group:DUP primary secondary\r\n"
	"a=ts-refclk:ptp=IEEE1588-2008:39-A7-94-FF-FE-07-CB-D0:0\r\n"
	"m=audio 5004/2 RTP/AVP 96 0\r\n"
	"i=1-8\r\n"
	"a=rtpmap:96 L24/48000/8\r\n"
	"a=fmtp:96 channel-order=SMPTE2110.(71)\r\n"
	"a=source-filter: incl IN IP4 239.0.0.1 192.168.1.1 192.168.1.2\r\n"
	"a=ptime:0.125\r\n"
	"a=maxptime:1\r\n"
	"a=mediaclk:direct=963214424\r\n"
	"a=sync-time:0\r\n"
	"a=mid:primary\r\n"
	"m=video 0 RTP/AVP 31\r\n"
	"m=audio 6000 RTP/SAVPF 10 121\r\n"
	"c=IN IP6 ff15::1\r\n"
	"a=rtcp:7001\r\n"
	"a=rtpmap:121 red/48000/2\r\n"
	"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz|2^20|1:4 UNENCRYPTED_SRTCP\r\n"
	"a=ssrc:3735928559 cname:a@b\r\n"
	"a=mediaclk:sender\r\n"
	"a=sendonly\r\n"
	"m=application 9 UDP/BFCP *\r\n";

static void test_of_a_device(void)
{
	struct err_why why;

	CHECK_OK(sdp_parse(&s, of_device, strlen(of_device), "x", &why));
	CHECK_EQ(s.n_media, 4);
	CHECK_STR(s.info, "eight inputs");
	CHECK_EQ(s.n_groups, 1);
	CHECK_STR(s.groups[0], "DUP primary secondary");
	const struct sdp_media *m = &s.media[0];
	CHECK_STR(m->address.host, "239.0.0.1");
	CHECK_EQ(m->address.ttl, 32);
	CHECK_EQ(m->port, 5004);
	CHECK_EQ(m->n_formats, 2);
	CHECK_EQ(m->formats[0].rtp.codec, RTP_CODEC_L24);
	CHECK_EQ(m->formats[0].rtp.channels, 8);
	CHECK_EQ(m->formats[1].rtp.codec, RTP_CODEC_NONE);
	CHECK_STR(m->channel_order, "SMPTE2110.(71)");
	CHECK_STR(m->label, "1-8");
	CHECK(m->filter.is_set && !m->filter.excludes);
	CHECK_EQ(m->filter.n_sources, 2);
	CHECK_STR(m->filter.sources[1], "192.168.1.2");
	CHECK_NEAR(m->ptime_ms, 0.125, 1e-12);
	CHECK_NEAR(m->maxptime_ms, 1, 0);
	CHECK_STR(m->mediaclk, "direct=963214424");
	CHECK_STR(m->ts_refclk, "ptp=IEEE1588-2008:39-A7-94-FF-FE-07-CB-D0:0");
	CHECK_EQ(m->direction, SDP_RECVONLY);
	CHECK_STR(m->mid, "primary");
	CHECK(!s.media[1].is_audio);
	CHECK_EQ(s.media[1].port, 0);
	m = &s.media[2];
	CHECK(m->is_secure && m->address.is_ip6);
	CHECK_STR(m->address.host, "ff15::1");
	CHECK_EQ(m->rtcp_port, 7001);
	CHECK_EQ(m->formats[0].rtp.codec, RTP_CODEC_L16);
	CHECK_EQ(m->formats[0].rtp.clock_hz, 44100);
	CHECK_EQ(m->formats[1].rtp.codec, RTP_CODEC_RED);
	CHECK(sdp_choose(m) == &m->formats[0]);
	CHECK(sdp_by_pt(m, 121) == &m->formats[1]);
	CHECK(!sdp_by_pt(m, 5));
	CHECK_EQ(m->n_crypto, 1);
	CHECK_STR(m->crypto[0].suite, "AES_CM_128_HMAC_SHA1_80");
	CHECK_STR(m->crypto[0].key, "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz");
	CHECK(m->has_ssrc);
	CHECK_EQ(m->ssrc, 0xdeadbeefu);
	CHECK_STR(m->cname, "a@b");
	CHECK_EQ(m->direction, SDP_SENDONLY);
	CHECK(!s.media[3].is_rtp);
}

/* What is written is what was meant: everything that has a place. */
static void test_written_and_read(void)
{
	static char text[SDP_MAX_BYTES], text2[SDP_MAX_BYTES];
	struct err_why why;

	CHECK_OK(sdp_parse(&s, of_device, strlen(of_device), "x", &why));
	s.n_media = 3;
	memmove(&s.media[1], &s.media[2], sizeof(s.media[0]));
	s.n_media = 2;
	s.media[1].rtcp_mux = true;
	size_t n = sdpwrite_text(&s, text, sizeof(text));
	CHECK(n > 400);
	CHECK_OK(sdp_parse(&again, text, n, "again", &why));
	CHECK_EQ(again.n_media, 2);
	CHECK_EQ(again.media[1].rtcp_port, 6000);
	CHECK_STR(again.media[0].channel_order, "SMPTE2110.(71)");
	CHECK_STR(again.media[1].crypto[0].key, s.media[1].crypto[0].key);
	CHECK_EQ(sdpwrite_text(&again, text2, sizeof(text2)), n);
	CHECK_STR(text2, text);
	/* Where it does not fit, nothing is claimed. */
	for (size_t room = 0; room < n + 1; room++)
		CHECK_EQ(sdpwrite_text(&s, text2, room), 0);
	CHECK_EQ(sdpwrite_text(&s, text2, n + 1), n);
	/* SDP has decimals, and no exponents; what is shorter than a nanosecond is nothing. */
	static const struct {
		double ms;
		const char *line;
	} times[] = { { 2.5, "a=ptime:2.5\r\n" }, { 20, "a=ptime:20\r\n" }, { 1.2e-5, "a=ptime:0.000012\r\n" }, { 9999.999999, "a=ptime:9999.999999\r\n" },
		{ 1e-8, NULL } };
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		s.media[0].ptime_ms = times[i].ms;
		CHECK(sdpwrite_text(&s, text2, sizeof(text2)) > 0);
		CHECK(times[i].line ? strstr(text2, times[i].line) != NULL : !strstr(text2, "ptime:0"));
	}
}

static void test_mistakes_name_their_line(void)
{
	static const struct { const char *text, *reason; } bad[] = {
		{ "hello\n", "line 1: a session description begins with v=0" },
		{ "", "is not a session description: it has no v=0" },
		{ "v=1\n", "line 1: version '1' is not 0" },
		{ "v=0\nhello\n", "line 2: 'hello' is not TYPE=VALUE" },
		{ "v=0\nc=IN IP5 x\n", "line 2: an address is 'IN IP4 …' or 'IN IP6 …'" },
		{ "v=0\nc=IN IP4 1.2.3.4/300\n", "line 2: a time to live is 0 to 255" },
		{ "v=0\nm=audio x RTP/AVP 0\n", "line 2: m=audio has no port of 0 to 65535" },
		{ "v=0\nm=audio 99999 RTP/AVP 0\n", "line 2: m=audio has no port of 0 to 65535" },
		{ "v=0\nm=audio 5 RTP/AVP\n", "line 2: m=audio has no payload type" },
		{ "v=0\nm=audio 5 RTP/AVP 128\n", "line 2: payload type '128' is not 0 to 127" },
		{ "v=0\nm=audio 5 RTP/AVP 96\r\na=rtpmap:96 L16\r\n", "line 3: rtpmap: an encoding is 'NAME/CLOCK' or 'NAME/CLOCK/CHANNELS'" },
		{ "v=0\nm=audio 5 RTP/AVP 96\na=rtpmap:96 L16/0/2\n", "line 3: rtpmap: a clock is a number of Hz" },
		{ "v=0\nm=audio 5 RTP/AVP 96\na=rtpmap:96 L16/48000/0\n", "line 3: rtpmap: channels are 1 to 255" },
		{ "v=0\nm=audio 5 RTP/AVP 96\na=rtpmap:96 L16/48000/999\n", "line 3: rtpmap: 48000 Hz and 999 channels: 1000 to 768000 Hz and 1 to 255 channels are possible" },
		{ "v=0\nm=audio 5 RTP/AVP 96\na=ptime:x\n", "line 3: ptime is not 0 to 10000 ms" },
		{ "v=0\nm=audio 5 RTP/AVP 96\na=ptime:10000.5\n", "line 3: ptime is not 0 to 10000 ms" },
		{ "v=0\nm=audio 5 RTP/AVP 96\na=rtpmap:96 PCMU/8000/99999\n", "line 3: rtpmap: channels are 1 to 65535" },
		{ "v=0\nm=audio 5 RTP/AVP 96\na=rtpmap:96 L16/48000/99999\n", "line 3: rtpmap: channels are 1 to 255" },
		{ "v=0\nm=audio 5 RTP/AVP 96\na=rtcp:0\n", "line 3: rtcp: not a port of 1 to 65535" },
		{ "v=0\nm=audio 5 RTP/AVP 96\na=crypto:1 X inline:\n", "line 3: crypto: the key is not 'inline:…'" },
		{ "v=0\nm=audio 5 RTP/AVP 96\na=source-filter: incl IN IP4 *\n", "line 3: source-filter names no source" },
	};
	struct err_why why;

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		memset(&why, 0, sizeof(why));
		CHECK_EQ(sdp_parse(&s, bad[i].text, strlen(bad[i].text), "x.sdp", &why), ERR_FORMAT);
		CHECK_STR(why.thing, "x.sdp");
		CHECK_STR(why.reason, bad[i].reason);
	}
}

static void test_limits(void)
{
	static char text[SDP_MAX_BYTES + 2];
	struct err_why why;
	size_t n;

	memset(text, 'x', sizeof(text));
	memcpy(text, "v=0\ns=", 6);
	CHECK_EQ(sdp_parse(&s, text, SDP_MAX_BYTES + 1, "x", &why), ERR_LIMIT);
	CHECK_EQ(sdp_parse(&s, text, 6 + SDP_MAX_LINE_BYTES - 1, "x", &why), ERR_LIMIT);
	CHECK_OK(sdp_parse(&s, text, 6 + SDP_MAX_LINE_BYTES - 2, "x", &why));
	CHECK_EQ(strlen(s.name), SDP_TEXT_BYTES - 1);
	n = (size_t)snprintf(text, sizeof(text), "v=0\n");
	for (unsigned i = 0; i < SDP_MAX_MEDIA; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "m=audio %u RTP/AVP 0 1 2 3 4 5 6 7 8 9\n", 1000 + i);
	CHECK_OK(sdp_parse(&s, text, n, "x", &why));
	CHECK_EQ(s.media[0].n_formats, SDP_MAX_FORMATS);
	n += (size_t)snprintf(text + n, sizeof(text) - n, "m=audio 5 RTP/AVP 0\n");
	CHECK_EQ(sdp_parse(&s, text, n, "x", &why), ERR_LIMIT);
	CHECK_STR(why.reason, "line 162: more than 160 m= lines");
}

static void test_clean(void)
{
	char out[8];

	CHECK_STR(sdp_clean("a\nb\xc3\xa4\xff", out, sizeof(out)), "a_b\xc3\xa4_");
	CHECK_STR(sdp_clean("123456\xc3\xa4", out, sizeof(out)), "123456");
}

/* ---- SAP ---- */

/* By hand from RFC 2974 section 6. */
static const uint8_t announcement[] = {
	0x20, 0, 0x12, 0x34, 192, 0, 2, 7, 'a', 'p', 'p', 'l', 'i', 'c', 'a', 't', 'i', 'o', 'n', '/', 's', 'd', 'p', 0, 'v', '=', '0', '\r', '\n',
};

static void test_sap(void)
{
	uint8_t b[128], origin[16] = { 0x20, 1, 0x0d, 0xb8 };
	struct sap a, back;

	CHECK_OK(sap_unpack(&a, announcement, sizeof(announcement)));
	CHECK(!a.is_delete && !a.is_ip6);
	CHECK_EQ(a.hash, 0x1234);
	CHECK_EQ(a.origin[3], 7);
	CHECK_STR(a.type, "application/sdp");
	CHECK_EQ(a.payload_bytes, 5);
	CHECK_EQ(sap_pack(&a, b, sizeof(b)), sizeof(announcement));
	CHECK_MEM(b, announcement, sizeof(announcement));
	CHECK_EQ(sap_pack(&a, b, sizeof(announcement) - 1), 0);
	/* Cut before the payload it is none. */
	for (size_t n = 0; n < 24; n++)
		CHECK_EQ(sap_unpack(&back, announcement, n), ERR_FORMAT);
	/* IPv6, authentication of 8 bytes, no payload type. */
	memset(b, 0, sizeof(b));
	b[0] = 0x34;
	b[1] = 2;
	memcpy(b + 4, origin, 16);
	memcpy(b + 28, "v=0\r\n", 5);
	CHECK_OK(sap_unpack(&back, b, 33));
	CHECK(back.is_ip6 && back.is_delete);
	CHECK_EQ(back.origin[2], 0x0d);
	CHECK_EQ(back.payload_bytes, 5);
	CHECK_EQ(sap_unpack(&back, b, 27), ERR_FORMAT);
	b[0] |= 2;
	CHECK_EQ(sap_unpack(&back, b, 33), ERR_VERSION);
	b[0] = 0x40;
	CHECK_EQ(sap_unpack(&back, b, 33), ERR_FORMAT);
	CHECK(sap_hash("", 0) != 0);
	CHECK(sap_hash("v=0", 3) != sap_hash("v=1", 3));
	/* 300 s or what 4000 bit/s allow, a third off or on. */
	CHECK_NEAR((double)sap_interval_ns(1, 500, 0.5), 300e9, 1);
	CHECK_NEAR((double)sap_interval_ns(1, 500, 0), 200e9, 1);
	CHECK_NEAR((double)sap_interval_ns(1000, 500, 0.5), 1000e9, 1);
}

/* ---- URLs ---- */

static void test_urls(void)
{
	struct err_why why;
	struct url u;

	CHECK_OK(url_parse(&u, "rtp://192.0.2.7:5004", &why));
	CHECK_EQ(u.scheme, URL_RTP);
	CHECK_STR(u.host, "192.0.2.7");
	CHECK_EQ(u.port, 5004);
	CHECK(u.pt == -1 && u.ttl == -1 && u.codec == RTP_CODEC_NONE && !*u.iface && !u.rate_hz && !u.channels);
	CHECK_OK(url_parse(&u, "SRTP://[fe80::1%eth0]:65535/?pt=98&codec=L24&rate=96000&channels=8&iface=eth0&ttl=32", &why));
	CHECK_EQ(u.scheme, URL_SRTP);
	CHECK_STR(u.host, "fe80::1%eth0");
	CHECK_EQ(u.port, 65535);
	CHECK_EQ(u.pt, 98);
	CHECK_EQ(u.codec, RTP_CODEC_L24);
	CHECK_EQ(u.rate_hz, 96000);
	CHECK_EQ(u.channels, 8);
	CHECK_STR(u.iface, "eth0");
	CHECK_EQ(u.ttl, 32);
	CHECK_OK(url_parse(&u, "udp://:1", &why));
	CHECK_STR(u.host, "");
	CHECK_OK(url_parse(&u, "weir://studio.example:5000", &why));
	CHECK_EQ(u.scheme, URL_WEIR);
	CHECK(url_is_url("rtp://x") && url_is_url("http://") && !url_is_url("a.wav") && !url_is_url("://") && !url_is_url("dir/x://"));
}

static void test_wrong_urls(void)
{
	static const struct { const char *text, *reason; } bad[] = {
		{ "http://a:1", "'http' is not one of rtp:// srtp:// weir:// udp://" },
		{ "a.wav", "'a.wav' is not one of rtp:// srtp:// weir:// udp://" },
		{ "rtp://a", "has no port: rtp://HOST:PORT" },
		{ "rtp://", "has no port: rtp://HOST:PORT" },
		{ "rtp://a:", "port '' is not 1 to 65535" },
		{ "rtp://a:0", "port '0' is not 1 to 65535" },
		{ "rtp://a:65536", "port '65536' is not 1 to 65535" },
		{ "rtp://a:5004x", "port '5004x' is not 1 to 65535" },
		{ "rtp://a:1,rtp://b:2", "has a comma: each destination is an operand of its own" },
		{ "rtp://a:1,b:2", "has a comma: each destination is an operand of its own" },
		{ "rtp://a,b:2", "has a comma: each destination is an operand of its own" },
		{ "rtp://::1:5004", "an IPv6 address stands in brackets: rtp://[ADDRESS]:PORT" },
		{ "rtp://[::1:5004", "the '[' of an IPv6 address has no ']'" },
		{ "rtp://[::1]5004", "has no port: rtp://HOST:PORT" },
		{ "rtp://[host]:5004", "'host' in brackets is not an IPv6 address" },
		{ "rtp://a b:5004", "'a b' is not a host" },
		{ "rtp://a:1?", "'' is not one of pt= codec= rate= channels= iface= ttl=" },
		{ "rtp://a:1?x=1", "'x' is not one of pt= codec= rate= channels= iface= ttl=" },
		{ "rtp://a:1?pt", "pt has no value: pt=…" },
		{ "rtp://a:1?pt=", "pt '' is not 0 to 127" },
		{ "rtp://a:1?pt=1&pt=2", "pt= stands there twice" },
		{ "rtp://a:1?codec=mp3", "codec 'mp3' is not opus, l16 or l24" },
		{ "rtp://a:1?ttl=256", "ttl '256' is not 1 to 255" },
		{ "rtp://a:1?iface=abcdefghijklmnopq", "iface 'abcdefghijklmnopq' is not a name of 1 to 15 bytes" },
		{ "rtp://a:1?rate=99999999999999999999", "rate '99999999999999999999' is not 1000 to 768000" },
	};
	struct err_why why;
	struct url u;

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_EQ(url_parse(&u, bad[i].text, &why), ERR_ARG);
		CHECK_STR(why.thing, bad[i].text);
		CHECK_STR(why.reason, bad[i].reason);
	}
}

int main(void)
{
	CHECK_RUN(test_of_ffmpeg);
	CHECK_RUN(test_of_a_device);
	CHECK_RUN(test_written_and_read);
	CHECK_RUN(test_mistakes_name_their_line);
	CHECK_RUN(test_limits);
	CHECK_RUN(test_clean);
	CHECK_RUN(test_sap);
	CHECK_RUN(test_urls);
	CHECK_RUN(test_wrong_urls);
	return check_end();
}
