/* RED payloads: what is taken apart lies inside, and put together again gives the same blocks. */
#include "fuzz.h"

#include "net/red.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct red_block blocks[RED_BLOCKS_MAX], again[RED_BLOCKS_MAX];
	struct err_why why = { 0 };
	uint8_t out[65536];
	unsigned n, n_again;

	if (red_parse(blocks, &n, 123456789, data, n_bytes, &why)) {
		must(*why.reason && n == 0);
	} else {
		must(n >= 1 && n <= RED_BLOCKS_MAX);
		for (unsigned i = 0; i < n; i++) {
			must(blocks[i].data >= data && blocks[i].data + blocks[i].n_bytes <= data + n_bytes);
			must(i + 1 == n || blocks[i].n_bytes > 0);
			must(123456789 - blocks[i].ts <= RED_OFFSET_MAX_TICKS);
			fuzz_touch(blocks[i].data, blocks[i].n_bytes);
		}
		size_t w = red_write(out, sizeof(out), blocks, n);
		must(w > 0 && w <= n_bytes); /* empty copies are left out */
		must(!red_parse(again, &n_again, 123456789, out, w, &why) && n_again == n);
		for (unsigned i = 0; i < n; i++)
			must(again[i].pt == blocks[i].pt && again[i].ts == blocks[i].ts && again[i].n_bytes == blocks[i].n_bytes &&
				!memcmp(again[i].data, blocks[i].data, blocks[i].n_bytes));
	}

	/* What a receiver says, true or not: the choice stays within its bounds. */
	struct red_control c;
	struct rtcp_app app = { .ssrc = 1, .subtype = RTCP_WEIR_LOSS, .name = { 'W', 'E', 'I', 'R' }, .data = data };
	red_control_init(&c, 0, 3, n_bytes ? 2500u + data[0] : 2500u);
	for (size_t at = 0; at + RTCP_LOSS_BYTES <= n_bytes; at += RTCP_LOSS_BYTES) {
		struct rtcp_loss loss;
		struct red_choice choice;
		app.data = data + at;
		app.data_bytes = RTCP_LOSS_BYTES;
		if (rtcpweir_loss_unpack(&app, &loss))
			continue;
		red_control_report(&c, &loss);
		red_control_choice(&c, &choice);
		must(choice.n_copies <= RED_COPIES_MAX);
		for (unsigned i = 0; i < choice.n_copies; i++)
			must(choice.distances[i] >= 1 && choice.distances[i] <= RED_DISTANCE_MAX && (!i || choice.distances[i] > choice.distances[i - 1]));
	}
	return 0;
}
