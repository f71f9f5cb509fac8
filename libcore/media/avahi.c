#include "media/avahi.h"

#include "media/live.h"

#include <avahi-client/client.h>
#include <avahi-client/lookup.h>
#include <avahi-client/publish.h>
#include <avahi-common/alternative.h>
#include <avahi-common/error.h>
#include <avahi-common/malloc.h>
#include <avahi-common/thread-watch.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The functions of two libraries. */
struct table {
	AvahiThreadedPoll *(*threaded_poll_new)(void);
	void (*threaded_poll_free)(AvahiThreadedPoll *);
	const AvahiPoll *(*threaded_poll_get)(AvahiThreadedPoll *);
	int (*threaded_poll_start)(AvahiThreadedPoll *);
	int (*threaded_poll_stop)(AvahiThreadedPoll *);
	char *(*alternative_service_name)(const char *);
	const char *(*strerror)(int);
	void (*free)(void *);
	char *(*address_snprint)(char *, size_t, const AvahiAddress *);
	AvahiStringList *(*string_list_add)(AvahiStringList *, const char *);
	void (*string_list_free)(AvahiStringList *);
	AvahiClient *(*client_new)(const AvahiPoll *, AvahiClientFlags, AvahiClientCallback, void *, int *);
	void (*client_free)(AvahiClient *);
	int (*client_errno)(AvahiClient *);
	AvahiEntryGroup *(*entry_group_new)(AvahiClient *, AvahiEntryGroupCallback, void *);
	int (*entry_group_commit)(AvahiEntryGroup *);
	int (*entry_group_reset)(AvahiEntryGroup *);
	int (*entry_group_add_service_strlst)(AvahiEntryGroup *, AvahiIfIndex, AvahiProtocol, AvahiPublishFlags, const char *, const char *, const char *, const char *,
		uint16_t, AvahiStringList *);
	AvahiServiceBrowser *(*service_browser_new)(AvahiClient *, AvahiIfIndex, AvahiProtocol, const char *, const char *, AvahiLookupFlags,
		AvahiServiceBrowserCallback, void *);
	AvahiServiceResolver *(*service_resolver_new)(AvahiClient *, AvahiIfIndex, AvahiProtocol, const char *, const char *, const char *, AvahiProtocol,
		AvahiLookupFlags, AvahiServiceResolverCallback, void *);
	int (*service_resolver_free)(AvahiServiceResolver *);
};

struct avahi {
	struct table f;
	AvahiThreadedPoll *poll;
	AvahiClient *client;
	AvahiEntryGroup *group;
	char type[64];
	struct avahi_service service;
	avahi_found_fn *found;
	void *user;
};

static enum err load(struct table *f, struct err_why *why)
{
	const struct live_symbol common[] = {
		{ "avahi_threaded_poll_new", &f->threaded_poll_new }, { "avahi_threaded_poll_free", &f->threaded_poll_free },
		{ "avahi_threaded_poll_get", &f->threaded_poll_get }, { "avahi_threaded_poll_start", &f->threaded_poll_start },
		{ "avahi_threaded_poll_stop", &f->threaded_poll_stop }, { "avahi_alternative_service_name", &f->alternative_service_name },
		{ "avahi_strerror", &f->strerror }, { "avahi_free", &f->free }, { "avahi_address_snprint", &f->address_snprint },
		{ "avahi_string_list_add", &f->string_list_add }, { "avahi_string_list_free", &f->string_list_free },
	};
	const struct live_symbol client[] = {
		{ "avahi_client_new", &f->client_new }, { "avahi_client_free", &f->client_free }, { "avahi_client_errno", &f->client_errno },
		{ "avahi_entry_group_new", &f->entry_group_new }, { "avahi_entry_group_commit", &f->entry_group_commit },
		{ "avahi_entry_group_reset", &f->entry_group_reset }, { "avahi_entry_group_add_service_strlst", &f->entry_group_add_service_strlst },
		{ "avahi_service_browser_new", &f->service_browser_new }, { "avahi_service_resolver_new", &f->service_resolver_new },
		{ "avahi_service_resolver_free", &f->service_resolver_free },
	};
	enum err e = live_load("libavahi-common.so.3", "libavahi-common3", common, ARRAY_LEN(common), why);

	return e ? e : live_load("libavahi-client.so.3", "libavahi-client3", client, ARRAY_LEN(client), why);
}

/* ---- publishing ---- */

static void add_service(struct avahi *a);

static void group_changed(AvahiEntryGroup *g, AvahiEntryGroupState state, void *user)
{
	struct avahi *a = user;

	if (state != AVAHI_ENTRY_GROUP_COLLISION)
		return;
	/* Somebody else has the name: ours gets a number. */
	char *other = a->f.alternative_service_name(a->service.name);
	if (other) {
		snprintf(a->service.name, sizeof(a->service.name), "%s", other);
		a->f.free(other);
	}
	a->f.entry_group_reset(g);
	add_service(a);
}

static void add_service(struct avahi *a)
{
	AvahiStringList *texts = NULL;

	if (!a->group && !(a->group = a->f.entry_group_new(a->client, group_changed, a)))
		return;
	for (unsigned i = a->service.n_texts; i-- > 0;)
		texts = a->f.string_list_add(texts, a->service.texts[i]);
	if (!a->f.entry_group_add_service_strlst(a->group, AVAHI_IF_UNSPEC, AVAHI_PROTO_UNSPEC, 0, a->service.name, a->type, NULL, NULL, a->service.port, texts))
		a->f.entry_group_commit(a->group);
	a->f.string_list_free(texts);
}

/* ---- browsing ---- */

static void resolved(AvahiServiceResolver *r, AvahiIfIndex iface, AvahiProtocol protocol, AvahiResolverEvent event, const char *name, const char *type,
	const char *domain, const char *host, const AvahiAddress *address, uint16_t port, AvahiStringList *txt, AvahiLookupResultFlags flags, void *user)
{
	struct avahi *a = user;
	struct avahi_service s = { .port = port };

	(void)iface;
	(void)protocol;
	(void)type;
	(void)domain;
	(void)host;
	(void)flags;
	if (event == AVAHI_RESOLVER_FOUND) {
		snprintf(s.name, sizeof(s.name), "%s", name);
		a->f.address_snprint(s.host, sizeof(s.host), address);
		for (; txt && s.n_texts < AVAHI_MAX_TEXTS; txt = txt->next) {
			if (txt->size < AVAHI_TEXT_BYTES)
				memcpy(s.texts[s.n_texts++], txt->text, txt->size);
		}
		a->found(a->user, &s, false);
	}
	a->f.service_resolver_free(r);
}

static void browsed(AvahiServiceBrowser *b, AvahiIfIndex iface, AvahiProtocol protocol, AvahiBrowserEvent event, const char *name, const char *type,
	const char *domain, AvahiLookupResultFlags flags, void *user)
{
	struct avahi *a = user;
	struct avahi_service s = { .port = 0 };

	(void)b;
	(void)flags;
	if (event == AVAHI_BROWSER_NEW)
		(void)a->f.service_resolver_new(a->client, iface, protocol, name, type, domain, AVAHI_PROTO_UNSPEC, 0, resolved, a);
	if (event != AVAHI_BROWSER_REMOVE)
		return;
	snprintf(s.name, sizeof(s.name), "%s", name);
	a->found(a->user, &s, true);
}

/* ---- both ---- */

static void client_changed(AvahiClient *c, AvahiClientState state, void *user)
{
	struct avahi *a = user;

	a->client = c;
	if (state == AVAHI_CLIENT_S_RUNNING && !a->found)
		add_service(a);
	else if ((state == AVAHI_CLIENT_S_COLLISION || state == AVAHI_CLIENT_S_REGISTERING) && a->group)
		a->f.entry_group_reset(a->group);
}

void avahi_close(struct avahi *a)
{
	if (!a)
		return;
	if (a->poll && a->client)
		a->f.threaded_poll_stop(a->poll);
	if (a->client)
		a->f.client_free(a->client);
	if (a->poll)
		a->f.threaded_poll_free(a->poll);
	free(a);
}

static enum err begin(struct avahi *a, struct err_why *why)
{
	int error = 0;
	enum err e = load(&a->f, why);

	if (e)
		return e;
	a->poll = a->f.threaded_poll_new();
	if (!a->poll)
		return err_say(why, ERR_NOMEM, "avahi", "%s", err_text(ERR_NOMEM));
	/* The state is told during the call: the client is kept before the thread runs. */
	a->client = a->f.client_new(a->f.threaded_poll_get(a->poll), 0, client_changed, a, &error);
	if (!a->client)
		return err_say(why, ERR_DEVICE, "avahi", "%s", a->f.strerror(error));
	if (a->found && !a->f.service_browser_new(a->client, AVAHI_IF_UNSPEC, AVAHI_PROTO_UNSPEC, a->type, NULL, 0, browsed, a))
		return err_say(why, ERR_DEVICE, "avahi", "%s", a->f.strerror(a->f.client_errno(a->client)));
	if (a->f.threaded_poll_start(a->poll) < 0)
		return err_say(why, ERR_DEVICE, "avahi", "its thread cannot start");
	return ERR_OK;
}

static enum err open_it(struct avahi **out, const char *type, const struct avahi_service *s, avahi_found_fn *found, void *user, struct err_why *why)
{
	struct avahi *a = calloc(1, sizeof(*a));
	enum err e = ERR_NOMEM;

	if (!a)
		return err_say(why, e, "avahi", "%s", err_text(e));
	snprintf(a->type, sizeof(a->type), "%s", type);
	if (s)
		a->service = *s;
	a->found = found;
	a->user = user;
	if ((e = begin(a, why))) {
		avahi_close(a);
		return e;
	}
	*out = a;
	return ERR_OK;
}

enum err avahi_publish(struct avahi **a, const char *type, const struct avahi_service *s, struct err_why *why)
{
	return open_it(a, type, s, NULL, NULL, why);
}

enum err avahi_browse(struct avahi **a, const char *type, avahi_found_fn *found, void *user, struct err_why *why)
{
	return open_it(a, type, NULL, found, user, why);
}
