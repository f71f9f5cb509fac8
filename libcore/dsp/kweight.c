#include "dsp/kweight.h"

#include "base/cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * The table at 48 kHz, and the analogue filters under it.  With t = tan(pi f / rate) the bilinear transform of
 *   (Vh s² + Vb s / Q + 1) / (s² + s / Q + 1)
 * has a denominator of 1 + t/Q + t², 2 (t² - 1), 1 - t/Q + t² over the first of the three, from which t and Q of the
 * table follow; its numerator is linear in Vh and Vb.
 */
static const double table_shelf_b[3] = {1.53512485958697, -2.69169618940638, 1.19839281085285};
static const double table_shelf_a[2] = {-1.69065929318241, 0.73248077421585};
static const double table_pass_a[2] = {-1.99004745483398, 0.99007225036621};
#define TABLE_RATE_HZ 48000.0

struct analogue {
	double hz, q;
	double v_high, v_band, v_low; /* the numerator: s², s / Q, 1 */
};

static struct analogue undo(const double b[3], const double a[2])
{
	/* a1 n = 2 (t² - 1), a2 n = 1 - t/Q + t², n = 1 + t/Q + t²; so n (1 + a2) = 2 (1 + t²), n (1 - a2) = 2 t/Q. */
	double n = 4.0 / (1.0 + a[1] - a[0]);
	double t2 = n * (1.0 + a[1] + a[0]) / 4.0;
	double t = sqrt(t2), t_over_q = n * (1.0 - a[1]) / 2.0;
	return (struct analogue){
		.hz = atan(t) / M_PI * TABLE_RATE_HZ,
		.q = t / t_over_q,
		.v_high = n * (b[0] - b[1] + b[2]) / 4.0,
		.v_band = n * (b[0] - b[2]) / 2.0 / t_over_q,
		.v_low = n * (b[0] + b[1] + b[2]) / 4.0 / t2,
	};
}

static void redo(const struct analogue *f, double rate_hz, double b[3], double a[2])
{
	double t = tan(M_PI * f->hz / rate_hz), t2 = t * t, t_over_q = t / f->q;
	double n = 1.0 + t_over_q + t2;
	b[0] = (f->v_high + f->v_band * t_over_q + f->v_low * t2) / n;
	b[1] = 2.0 * (f->v_low * t2 - f->v_high) / n;
	b[2] = (f->v_high - f->v_band * t_over_q + f->v_low * t2) / n;
	a[0] = 2.0 * (t2 - 1.0) / n;
	a[1] = (1.0 - t_over_q + t2) / n;
}

void kweight_filter_init(struct kweight_filter *filter, uint32_t rate_hz)
{
	/* The table gives the high pass a numerator of exactly 1, -2, 1 at its rate, and so it is kept at every rate. */
	static const double pass_b[3] = {1.0, -2.0, 1.0};
	struct analogue shelf = undo(table_shelf_b, table_shelf_a);
	struct analogue pass = undo(pass_b, table_pass_a);
	double unused[3];
	redo(&shelf, rate_hz, filter->shelf_b, filter->shelf_a);
	redo(&pass, rate_hz, unused, filter->pass_a);
	memcpy(filter->pass_b, pass_b, sizeof(pass_b));
}

enum err kweight_init(struct kweight *k, uint32_t rate_hz, unsigned channels)
{
	*k = (struct kweight){.channels = channels};
	if (!channels || rate_hz < KWEIGHT_MIN_RATE_HZ)
		return ERR_ARG;
	kweight_filter_init(&k->filter, rate_hz);
	k->energy_fn = kweight_c_energy;
#if defined(__x86_64__)
	if (cpu_has(CPU_AVX2))
		k->energy_fn = kweight_avx2_energy;
#endif
	k->state = calloc(channels, sizeof(*k->state));
	return k->state ? ERR_OK : ERR_NOMEM;
}

void kweight_release(struct kweight *k)
{
	free(k->state);
	*k = (struct kweight){0};
}

void kweight_reset(struct kweight *k)
{
	memset(k->state, 0, k->channels * sizeof(*k->state));
}
