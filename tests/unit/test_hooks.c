/* leg/hooks: commands run, know what happened, leave nothing behind, and are never more than a machine can bear. */
#include "check.h"

#include "base/units.h"
#include "leg/hooks.h"
#include "rt/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-hooks-XXXXXX";
static char path[64];

/* What the file holds, once it holds something; "" if that never happens. */
static const char *read_line(char line[static 256])
{
	for (int64_t until_ns = clock_now_ns() + 5 * UNITS_NS_PER_S; clock_now_ns() < until_ns; usleep(2000)) {
		FILE *f = fopen(path, "re");
		bool got = f && fgets(line, 256, f) && strchr(line, '\n');

		if (f)
			fclose(f);
		if (got) {
			line[strcspn(line, "\n")] = '\0';
			return line;
		}
	}
	return "";
}

static off_t size_of(void)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_size;
}

static struct hooks_event event_of(const char *command, const char *fact)
{
	struct hooks_event e = { .command = command, .n_facts = 1 };

	snprintf(e.facts[0], sizeof(e.facts[0]), "%s", fact);
	return e;
}

/* What happened is what the command is told, also where the environment says something else. */
static void test_facts(void)
{
	struct hooks h = { 0 };
	struct err_why why = { 0 };
	char command[256], line[256];

	snprintf(command, sizeof(command), "printf '%%s\\n' \"$WEIR_NAME\" >%s", path);
	struct hooks_event e = event_of(command, "WEIR_NAME=$(reboot) `x`; \"'\\ *");
	setenv("WEIR_NAME", "of another time", 1);
	CHECK_OK(hooks_begin(&h, &why));
	hooks_run(&h, &e);
	CHECK_STR(read_line(line), "$(reboot) `x`; \"'\\ *");
	hooks_end(&h);
	unlink(path);
}

/* One that has ended is no zombie, though nothing else ever happens. */
static void test_no_zombies(void)
{
	struct hooks h = { 0 };
	struct err_why why = { 0 };
	char command[256], line[256];

	snprintf(command, sizeof(command), "echo $$ >%s", path);
	struct hooks_event e = event_of(command, "WEIR_EVENT=join");
	CHECK_OK(hooks_begin(&h, &why));
	hooks_run(&h, &e);
	pid_t pid = (pid_t)strtol(read_line(line), NULL, 10);
	if (CHECK(pid > 1)) {
		int64_t until_ns = clock_now_ns() + 3 * UNITS_NS_PER_S;
		while (!kill(pid, 0) && clock_now_ns() < until_ns)
			usleep(2000);
		CHECK(kill(pid, 0) && errno == ESRCH);
	}
	hooks_end(&h);
	unlink(path);
}

/* A storm: no more run at one time than HOOKS_MAX_RUNNING, the others wait their turn or are counted as lost. */
static void test_storm(void)
{
	struct hooks h = { 0 };
	struct err_why why = { 0 };
	char command[256], gate[64];
	unsigned n = 0;

	snprintf(gate, sizeof(gate), "%s/gate", folder);
	CHECK(!mkfifo(gate, 0600));
	/* Each says that it runs, and then waits for the gate. */
	snprintf(command, sizeof(command), "echo x >>%s; read line <%s", path, gate);
	struct hooks_event e = event_of(command, "WEIR_EVENT=join");
	CHECK_OK(hooks_begin(&h, &why));
	for (; n < 4 * HOOKS_MAX_RUNNING; n++) {
		hooks_run(&h, &e);
		usleep(500);
	}
	for (int64_t until_ns = clock_now_ns() + 10 * UNITS_NS_PER_S; size_of() < 2 * HOOKS_MAX_RUNNING && clock_now_ns() < until_ns; usleep(2000))
		;
	usleep(300000);
	CHECK_EQ(size_of(), 2 * HOOKS_MAX_RUNNING);
	CHECK(atomic_load(&h.n_lost) > 0);
	CHECK(atomic_load(&h.n_lost) < n - HOOKS_MAX_RUNNING);
	/* The gate opens for good: all that was not lost runs. */
	int fd = open(gate, O_RDWR | O_CLOEXEC);
	off_t all = 2 * (off_t)(n - atomic_load(&h.n_lost));
	for (int64_t until_ns = clock_now_ns() + 10 * UNITS_NS_PER_S; size_of() < all && clock_now_ns() < until_ns; usleep(2000))
		(void)!write(fd, "\n\n\n\n\n\n\n\n", 8);
	CHECK_EQ(size_of(), all);
	for (unsigned i = 0; i < n; i++)
		(void)!write(fd, "\n", 1);
	hooks_end(&h);
	close(fd);
	unlink(gate);
	unlink(path);
}

int main(void)
{
	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/said", folder);
	CHECK_RUN(test_facts);
	CHECK_RUN(test_no_zombies);
	CHECK_RUN(test_storm);
	rmdir(folder);
	return check_end();
}
