/* RTCP: a compound packet is read to its end whatever it holds, each part within its bounds; our own parts survive being written again. */
#include "fuzz.h"

#include "net/reception.h"
#include "net/rtcp.h"
#include "net/rtcptimer.h"
#include "net/rtcpweir.h"

#include <math.h>
#include <string.h>

static void sdes(const struct rtcp_packet *p)
{
	struct rtcp_sdes_at at = { 0 };
	struct rtcp_item item;
	unsigned n = 0;

	while (rtcp_sdes_next(p, &at, &item) == ERR_OK) {
		must(item.text >= p->body && item.text + item.n_bytes <= p->body + p->body_bytes);
		fuzz_touch(item.text, item.n_bytes);
		must(++n <= p->body_bytes);
	}
}

static void app(const struct rtcp_packet *p)
{
	struct rtcp_binding b, b2;
	struct rtcp_loss l, l2;
	struct rtcp_ping ping;
	struct rtcp_app a;
	uint8_t data[RTCP_MAX_BINDING_BYTES], data2[RTCP_LOSS_BYTES];

	if (rtcp_app_unpack(p, &a))
		return;
	must(a.subtype < 32);
	fuzz_touch(a.data, a.data_bytes);
	if (!rtcpweir_binding_unpack(&a, &b)) {
		must(memchr(b.name, 0, sizeof(b.name)) && b.channels >= 1 && b.first_channel + b.channels <= b.all_channels);
		size_t n = rtcpweir_binding_pack(&b, data);
		must(n <= sizeof(data) && n % 4 == 0);
		a.data = data;
		a.data_bytes = n;
		must(!rtcpweir_binding_unpack(&a, &b2) && !strcmp(b.name, b2.name) && b.pos0 == b2.pos0 && b.ts0 == b2.ts0);
	}
	if (!rtcpweir_loss_unpack(&a, &l)) {
		rtcpweir_loss_pack(&l, data);
		a.data = data;
		a.data_bytes = RTCP_LOSS_BYTES;
		must(!rtcpweir_loss_unpack(&a, &l2));
		rtcpweir_loss_pack(&l2, data2);
		must(!memcmp(data, data2, sizeof(data2)));
	}
	if (!rtcpweir_ping_unpack(&a, a.subtype, &ping)) {
		rtcpweir_ping_pack(&ping, data);
		must(a.data_bytes >= RTCP_PING_BYTES && !memcmp(data, a.data, RTCP_PING_BYTES));
	}
}

static void read_all(const uint8_t *data, size_t n_bytes)
{
	struct rtcp_packet p;
	struct rtcp_report r;
	struct rtcp_sr sr;
	const uint8_t *text;
	uint32_t ssrc;
	uint8_t n;
	size_t at = 0, n_packets = 0;

	bool sound = !rtcp_check(data, n_bytes, true);
	enum err e;
	while ((e = rtcp_next(data, n_bytes, &at, &p)) == ERR_OK) {
		must(p.body >= data && p.body + p.body_bytes <= data + n_bytes && ++n_packets <= n_bytes / 4);
		fuzz_touch(p.body, p.body_bytes);
		(void)!rtcp_sr_unpack(&p, &sr);
		(void)!rtcp_rr_unpack(&p, &ssrc);
		for (unsigned i = 0; rtcp_report_unpack(&p, i, &r) == ERR_OK; i++)
			must(i < RTCP_MAX_REPORTS && r.lost >= -(1 << 23) && r.lost < 1 << 23);
		sdes(&p);
		for (unsigned i = 0; rtcp_bye_unpack(&p, i, &ssrc) == ERR_OK; i++)
			must(i < 31);
		if (!rtcp_bye_reason(&p, &text, &n) && n)
			fuzz_touch(text, n);
		app(&p);
	}
	/* What was checked is read to its end. */
	must(!sound || e == ERR_END);
}

/* Figures of a receiver from any numbers are within their fields, times are times. */
static void figures(const uint8_t *data, size_t n_bytes)
{
	struct reception r = { 0 };
	struct rtcptimer t;
	int64_t now_ns = 0;

	rtcptimer_init(&t, 64000, true, 100, 0, 0.5);
	for (size_t at = 0; at + 8 <= n_bytes; at += 8) {
		uint32_t ts, step;
		memcpy(&ts, data + at, 4);
		memcpy(&step, data + at + 4, 4);
		now_ns += step;
		reception_take(&r, (uint16_t)ts, ts, now_ns, 48000);
		must(isfinite(r.jitter) && r.jitter >= 0);
		struct rtcp_report report = reception_report(&r, 1, now_ns);
		must(report.lost >= -(1 << 23) && report.lost < 1 << 23);
		rtcptimer_members(&t, ts & 0xffff, ts >> 20, now_ns);
		must(rtcptimer_interval_ns(&t, (ts & 0xff) / 256.0) > 0);
		if (rtcptimer_due(&t, now_ns, 0.3))
			rtcptimer_sent(&t, step & 0xffff, now_ns, 0.3);
		int64_t rtt_ns = rtcp_round_trip_ns(rtcp_ntp(now_ns), ts, step);
		must(rtt_ns >= -1 && rtt_ns <= 60000000000LL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	read_all(data, n_bytes);
	figures(data, n_bytes);
	return 0;
}
