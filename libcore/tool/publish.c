#include "tool/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The note that tells a program of this toolkit from any other: elf(5), an Nhdr, its name, and the version. */
struct publish_note {
	uint32_t name_bytes, value_bytes, type;
	char name[8];
	uint32_t version;
};
static const struct publish_note publish_this_is_weir __attribute__((used, section(".note.weir"), aligned(4))) = {
	.name_bytes = sizeof(PUBLISH_NOTE_NAME), .value_bytes = 4, .type = PUBLISH_NOTE_TYPE, .name = PUBLISH_NOTE_NAME, .version = PUBLISH_VERSION,
};

/* Whom the signal means.  A handler has no other way to know. */
static _Atomic(struct publish *) publish_current;

static void on_ask(int signal_number)
{
	int kept = errno;
	struct publish *p = atomic_load(&publish_current);

	(void)signal_number;
	if (p)
		p->asked(p->user);
	errno = kept;
}

void publish_begin(struct publish *p, publish_asked *asked, void *user)
{
	struct sigaction ask = { .sa_handler = on_ask, .sa_flags = SA_RESTART };

	*p = (struct publish){ .asked = asked, .user = user, .begun = true };
	atomic_store(&publish_current, p);
	sigaction(SIGUSR1, &ask, NULL);
}

bool publish_make(struct publish *p)
{
	if (p->page)
		return true;
	int fd = memfd_create(PUBLISH_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return false;
	/* Sealed: a reader that maps it can rely on its being there. */
	void *page = ftruncate(fd, sizeof(struct publish_page)) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) ? MAP_FAILED :
		mmap(NULL, sizeof(struct publish_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		close(fd);
		return false;
	}
	p->fd = fd;
	p->page = page;
	p->page->version = PUBLISH_VERSION;
	p->page->magic = PUBLISH_MAGIC;
	return true;
}

void publish_write(struct publish *p, const struct publish_counters *c)
{
	struct publish_page *page = p->page;
	uint64_t words[ARRAY_LEN(page->words)];
	unsigned seq;

	if (!page)
		return;
	memcpy(words, c, sizeof(words));
	seq = atomic_load_explicit(&page->seq, memory_order_relaxed);
	atomic_store_explicit(&page->seq, seq + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		atomic_store_explicit(&page->words[i], words[i], memory_order_relaxed);
	atomic_store_explicit(&page->seq, seq + 2, memory_order_release);
}

void publish_end(struct publish *p)
{
	if (!p->begun)
		return;
	struct publish *mine = p;
	atomic_compare_exchange_strong(&publish_current, &mine, NULL);
	if (p->page) {
		munmap(p->page, sizeof(*p->page));
		close(p->fd);
	}
	*p = (struct publish){ 0 };
}

bool publish_read(const struct publish_page *page, struct publish_counters *c)
{
	uint64_t words[ARRAY_LEN(page->words)];

	if (page->magic != PUBLISH_MAGIC || page->version != PUBLISH_VERSION)
		return false;
	for (int tries = 0; tries < 100; tries++) {
		unsigned seq = atomic_load_explicit(&page->seq, memory_order_acquire);

		if (seq & 1)
			continue;
		for (size_t i = 0; i < ARRAY_LEN(words); i++)
			words[i] = atomic_load_explicit(&page->words[i], memory_order_relaxed);
		atomic_thread_fence(memory_order_acquire);
		if (seq && atomic_load_explicit(&page->seq, memory_order_relaxed) == seq) {
			memcpy(c, words, sizeof(*c));
			c->tool[sizeof(c->tool) - 1] = '\0';
			return true;
		}
	}
	return false;
}
