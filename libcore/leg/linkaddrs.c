#include "leg/linkaddrs.h"

#include "base/units.h"
#include "rt/thread.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_AGAIN_NS UNITS_NS_PER_S /* at most so often */

/* One question to the resolver: whoever of the two lets go last frees it. */
struct linkaddrs_lookup {
	atomic_uint n_owners;
	atomic_bool is_done;
	linkaddrs_resolve *resolve;
	char *host;
	uint16_t port;
	struct dgram_addr to[DGRAM_MAX_ADDRS];
	unsigned n;
};

static void let_go(struct linkaddrs_lookup *k)
{
	if (atomic_fetch_sub(&k->n_owners, 1) != 1)
		return;
	free(k->host);
	free(k);
}

static void *look(void *user)
{
	struct linkaddrs_lookup *k = user;
	struct err_why why;

	role_take(ROLE_IO);
	if (k->resolve(k->to, DGRAM_MAX_ADDRS, &k->n, k->host, k->port, AF_UNSPEC, &why))
		k->n = 0;
	atomic_store(&k->is_done, true);
	let_go(k);
	return NULL;
}

static void look_up(struct linkaddrs *a, int64_t now_ns)
{
	struct linkaddrs_lookup *k;
	struct err_why why;
	pthread_t thread;

	if (!a->is_name || a->lookup || (a->looked_ns && now_ns - a->looked_ns < LOOK_AGAIN_NS) || !(k = calloc(1, sizeof(*k))))
		return;
	a->looked_ns = now_ns;
	k->resolve = a->resolve;
	k->port = a->port;
	atomic_store(&k->n_owners, 2);
	if (!(k->host = strdup(a->host)) || thread_start(&thread, "resolver", look, k, &why)) {
		free(k->host);
		free(k);
		return; /* what is known is tried */
	}
	pthread_detach(thread);
	a->lookup = k;
}

static bool is_name(const char *host)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr any;

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(host, "%"), host);
	return inet_pton(AF_INET, text, &any) != 1 && inet_pton(AF_INET6, text, &any) != 1;
}

enum err linkaddrs_open(struct linkaddrs *a, const char *host, uint16_t port, linkaddrs_resolve *resolve, struct err_why *why)
{
	memset(a, 0, sizeof(*a));
	a->host = host;
	a->port = port;
	a->resolve = resolve ? resolve : dgram_resolve_all;
	a->is_name = is_name(host);
	return a->resolve(a->to, DGRAM_MAX_ADDRS, &a->n, host, port, AF_UNSPEC, why);
}

void linkaddrs_release(struct linkaddrs *a)
{
	if (a->lookup)
		let_go(a->lookup);
	a->lookup = NULL;
}

/* What the resolver says now; a place in the turn is kept where the address is still one of them. */
static void adopt(struct linkaddrs *a)
{
	struct linkaddrs_lookup *k = a->lookup;
	struct dgram_addr now = a->to[a->at];

	if (k->n) {
		memcpy(a->to, k->to, k->n * sizeof(*k->to));
		a->n = k->n;
		a->at = a->n_tried = 0;
		for (unsigned i = 0; i < a->n; i++)
			if (dgram_same(&a->to[i], &now))
				a->at = i;
	}
	let_go(k);
	a->lookup = NULL;
}

const struct dgram_addr *linkaddrs_now(struct linkaddrs *a)
{
	if (a->lookup && atomic_load(&a->lookup->is_done))
		adopt(a);
	return &a->to[a->at];
}

bool linkaddrs_failed(struct linkaddrs *a, int64_t now_ns)
{
	a->at = (a->at + 1) % a->n;
	if (++a->n_tried < a->n)
		return false;
	a->n_tried = 0;
	look_up(a, now_ns);
	return true;
}

void linkaddrs_lost(struct linkaddrs *a, int64_t now_ns)
{
	a->n_tried = 0;
	look_up(a, now_ns);
}
