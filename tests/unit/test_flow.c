/* leg/flow: what receivers report decides what goes along, whatever number they go by. */
#include "check.h"

#include "leg/flow.h"

static struct flow flow;

static void begin(unsigned level_max)
{
	struct track t = { .id = 1, .kind = TRACK_AUDIO, .codec = TRACK_OPUS, .rate_num = 48000, .rate_den = 1, .nominal_dur = 480, .channels = 2 };
	struct packer_options o = { .codec = RTP_CODEC_OPUS, .pt = 111, .red_pt = 121, .ssrc = 7, .channels = 2, .max_payload_bytes = 1440 };
	struct err_why why = { 0 };

	CHECK_OK(flow_init(&flow, &t, &o, 0, level_max, &why));
	track_release(&t);
}

static const struct rtcp_loss much = { .ssrc = 7, .interval_ms = 250, .expected = 25, .lost = 25, .depth_us = 60000, .bursts = { 5 } };

/* RFC 3550 draws SSRCs at random: 0 is one of them, and anybody may choose it. */
static void test_every_number(void)
{
	static const uint32_t ssrcs[] = { 0, 1, 0x80000000u, UINT32_MAX };

	for (size_t i = 0; i < ARRAY_LEN(ssrcs); i++) {
		begin(3);
		bool changed = false;
		for (int k = 0; k < 40; k++)
			changed |= flow_report(&flow, ssrcs[i], &much, k * 250000000ll);
		CHECK(changed);
		CHECK_EQ(flow_level(&flow), 3);
		CHECK(flow.choice.n_copies > 0);
		flow_release(&flow);
	}
}

/* A reporter that fell silent no longer counts: another's place is its own. */
static void test_who_falls_silent(void)
{
	const struct rtcp_loss none = { .ssrc = 7, .interval_ms = 250, .expected = 25, .depth_us = 60000 };

	begin(3);
	for (int k = 0; k < 40; k++)
		(void)flow_report(&flow, 0, &much, k * 250000000ll);
	CHECK_EQ(flow_level(&flow), 3);
	(void)flow_report(&flow, 5, &none, 10000000000ll);
	CHECK_EQ(flow_level(&flow), 3);
	(void)flow_report(&flow, 5, &none, 16000000000ll);
	CHECK_EQ(flow_level(&flow), 0);
	CHECK_EQ(flow.choice.n_copies, 0);
	flow_release(&flow);
}

/* More than are kept: the others go unheard, and nothing else happens. */
static void test_a_crowd(void)
{
	begin(3);
	for (uint32_t k = 0; k < 1000; k++)
		(void)flow_report(&flow, k, &much, 0);
	CHECK(flow_level(&flow) <= 3);
	flow_release(&flow);
}

int main(void)
{
	CHECK_RUN(test_every_number);
	CHECK_RUN(test_who_falls_silent);
	CHECK_RUN(test_a_crowd);
	return check_end();
}
