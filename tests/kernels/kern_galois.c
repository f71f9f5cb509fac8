/* Products in GF(256): the versions against each other, and the field against its laws. */
#include "kern.h"

#include <string.h>

#define MAX_BYTES 1500

static struct kern_buf in, out_c, out_v;
static struct galois g;

static void fill(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(kern_rand() >> 32);
}

static void check_same(void)
{
	bool add_ok = true, set_ok = true, place_ok = true;

	for (size_t n = 0; n <= 2 * KERN_MAX_LEN; n++)
		for (size_t offset = 0; offset < KERN_OFFSETS; offset++) {
			size_t to = (offset + n) % KERN_OFFSETS;
			const uint8_t *h = g.halves[(n + offset * 37) & 255];
			uint8_t *s = kern_place(&in, n, offset);
			uint8_t *c = kern_place(&out_c, n, to), *v = kern_place(&out_v, n, to);
			fill(s, n);
			kern_c.galois_set(c, s, n, h);
			kern_fast.galois_set(v, s, n, h);
			set_ok &= !memcmp(c, v, n) && kern_is_clean(&out_v, n, to);
			fill(c, n);
			memcpy(v, c, n);
			kern_c.galois_add(c, s, n, h);
			kern_fast.galois_add(v, s, n, h);
			add_ok &= !memcmp(c, v, n) && kern_is_clean(&out_v, n, to);
			kern_c.galois_set(c, s, n, h);
			memcpy(v, s, n);
			kern_fast.galois_set(v, v, n, h);
			place_ok &= !memcmp(c, v, n);
		}
	kern_ok(set_ok, "galois: set equal to c");
	kern_ok(add_ok, "galois: add equal to c");
	kern_ok(place_ok, "galois: set in place");
}

/* x·2 is a shift and a reduction; from that, and that products distribute over sums, all others follow. */
static void check_field(void)
{
	bool double_ok = true, distributes = true, commutes = true, inverse_ok = true, kernel_ok = true;
	uint8_t all[256], out[256];
	unsigned order = 0, x = 1;

	for (unsigned a = 0; a < 256; a++)
		all[a] = (uint8_t)a;
	for (unsigned a = 0; a < 256; a++) {
		double_ok &= galois_multiply(&g, (uint8_t)a, 2) == (uint8_t)(a << 1 ^ (a & 0x80 ? 0x1d : 0));
		inverse_ok &= !a || galois_multiply(&g, (uint8_t)a, g.inverse[a]) == 1;
		kern_fast.galois_set(out, all, sizeof(out), g.halves[a]);
		for (unsigned b = 0; b < 256; b++) {
			uint8_t ab = galois_multiply(&g, (uint8_t)a, (uint8_t)b);
			commutes &= ab == galois_multiply(&g, (uint8_t)b, (uint8_t)a);
			distributes &= galois_multiply(&g, (uint8_t)(a ^ 0x5a), (uint8_t)b) == (ab ^ galois_multiply(&g, 0x5a, (uint8_t)b));
			kernel_ok &= out[b] == ab;
		}
	}
	do {
		x = galois_multiply(&g, (uint8_t)x, 2);
		order++;
	} while (x != 1 && order < 1000);
	kern_ok(double_ok, "galois: twice x is a shift modulo 0x11d");
	kern_ok(commutes && distributes, "galois: products commute and distribute");
	kern_ok(inverse_ok, "galois: every number but 0 has its inverse");
	kern_ok(order == 255, "galois: 2 generates all 255 numbers, got %u", order);
	kern_ok(kernel_ok, "galois: all 65536 products of the kernel");
}

static uint8_t bench_in[4096], bench_out[4096];

static void call_add_335(void *arg)
{
	((struct dsp *)arg)->galois_add(bench_out, bench_in, 335, g.halves[0x53]);
}

static void call_add_1460(void *arg)
{
	((struct dsp *)arg)->galois_add(bench_out, bench_in, 1460, g.halves[0x53]);
}

/* A block of 8+4: 32 products of a packet. */
static void call_block(void *arg)
{
	for (unsigned i = 0; i < 32; i++)
		((struct dsp *)arg)->galois_add(bench_out + i % 4 * 352, bench_in + i / 4 * 352, 335, g.halves[1 + i * 7]);
}

void kern_galois(bool bench)
{
	galois_init(&g);
	if (bench) {
		fill(bench_in, sizeof(bench_in));
		kern_bench("galois add, 335 bytes", call_add_335, &kern_c, call_add_335, &kern_fast);
		kern_bench("galois add, 1460 bytes", call_add_1460, &kern_c, call_add_1460, &kern_fast);
		kern_bench("galois, 8+4 packets of 335 bytes", call_block, &kern_c, call_block, &kern_fast);
		return;
	}
	kern_buf_open(&in, MAX_BYTES);
	kern_buf_open(&out_c, MAX_BYTES);
	kern_buf_open(&out_v, MAX_BYTES);
	check_field();
	check_same();
}
