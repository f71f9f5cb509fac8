#include "media/livereturn.h"

#include "base/role.h"
#include "base/units.h"

#include <string.h>

#define FIRST_WAIT_NS (UNITS_NS_PER_S / 20)
#define LAST_WAIT_NS UNITS_NS_PER_S

static bool is_the_same(const struct live_format *a, const struct live_format *b)
{
	return a->rate_hz == b->rate_hz && a->channels == b->channels && a->sample == b->sample;
}

/* One try.  Returns: it is there, and flows. */
static bool try_to_open(struct livereturn *r)
{
	struct live_format format = { 0 };
	struct err_why why = { 0 };
	void *device = NULL;

	if (r->ops->open(&device, r->way, &r->args, &format, &why))
		return false;
	if (!is_the_same(&format, &r->format) || r->take(r->user, device, &why)) {
		r->ops->close(device);
		return false;
	}
	r->device = device;
	return true;
}

static void *wait_for_it(void *user)
{
	struct livereturn *r = user;
	int64_t wait_ns = FIRST_WAIT_NS;

	role_take(ROLE_IO);
	if (r->device)
		r->ops->close(r->device);
	r->device = NULL;
	while (!r->stop) {
		if (try_to_open(r)) {
			atomic_store_explicit(&r->is_back, true, memory_order_release);
			wake_post(&r->wake_reader);
			break;
		}
		wake_wait(&r->wake, wait_ns);
		wait_ns = 2 * wait_ns < LAST_WAIT_NS ? 2 * wait_ns : LAST_WAIT_NS;
	}
	return NULL;
}

enum err livereturn_begin(struct livereturn *r, const struct live_ops *ops, enum live_way way, const struct live_args *args, void *old,
	const struct live_format *format, livereturn_fn *take, void *user, struct err_why *why)
{
	memset(r, 0, sizeof(*r));
	r->ops = ops;
	r->way = way;
	r->args = *args;
	r->args.stop = &r->stop;
	r->format = *format;
	r->take = take;
	r->user = user;
	r->device = old;
	wake_init(&r->wake);
	wake_init(&r->wake_reader);
	int error = pthread_create(&r->thread, NULL, wait_for_it, r);
	if (error) {
		wake_release(&r->wake);
		wake_release(&r->wake_reader);
		return err_say(why, ERR_SYS, format->device, "no thread to wait for it: %s", strerror(error));
	}
	r->running = true;
	return ERR_OK;
}

static void join(struct livereturn *r)
{
	pthread_join(r->thread, NULL);
	wake_release(&r->wake);
	wake_release(&r->wake_reader);
	r->running = false;
}

bool livereturn_poll(struct livereturn *r, void **device)
{
	if (!r->running || !atomic_load_explicit(&r->is_back, memory_order_acquire))
		return false;
	join(r);
	*device = r->device;
	r->device = NULL;
	return true;
}

void livereturn_end(struct livereturn *r)
{
	if (!r->running)
		return;
	r->stop = 1;
	wake_post(&r->wake);
	join(r);
	if (r->device)
		r->ops->close(r->device);
	r->device = NULL;
}
