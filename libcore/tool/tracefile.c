#include "tool/tracefile.h"

#include "base/role.h"
#include "base/units.h"
#include "net/impairment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 256
#define FIRST_ROOM 4096u

static enum err add(struct tracefile *t, size_t *room, int64_t delay_ns)
{
	if (t->n == *room) {
		size_t more = *room ? 2 * *room : FIRST_ROOM;
		int64_t *grown = realloc(t->delays_ns, more * sizeof(*grown));
		if (!grown)
			return ERR_NOMEM;
		t->delays_ns = grown;
		*room = more;
	}
	t->delays_ns[t->n++] = delay_ns;
	return ERR_OK;
}

static enum err read_lines(struct tracefile *t, FILE *f, const char *path, struct err_why *why)
{
	char line[LINE_BYTES];
	size_t room = 0, number = 0;
	int64_t delay_ns;
	enum err e;

	while (fgets(line, sizeof(line), f)) {
		number++;
		if (!strchr(line, '\n') && !feof(f))
			return err_say(why, ERR_FORMAT, path, "line %zu is longer than %d characters", number, LINE_BYTES - 2);
		e = impairment_trace_line(line, &delay_ns);
		if (e == ERR_AGAIN)
			continue;
		line[strcspn(line, "\r\n")] = 0;
		if (e)
			return err_say(why, ERR_FORMAT, path, "line %zu, '%.60s', is not a time from 0 to 3600 s, as 12.5ms, nor 'lost'", number, line);
		if (t->n >= TRACEFILE_MAX_PACKETS)
			return err_say(why, ERR_LIMIT, path, "holds more than %u packets", TRACEFILE_MAX_PACKETS);
		if ((e = add(t, &room, delay_ns)))
			return err_say(why, e, path, "%s", err_text(e));
	}
	if (ferror(f))
		return err_sys(why, path);
	return t->n ? ERR_OK : err_say(why, ERR_FORMAT, path, "holds no packet (1 to %u)", TRACEFILE_MAX_PACKETS);
}

enum err tracefile_read(struct tracefile *t, const char *path, struct err_why *why)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *f = is_stdin ? stdin : fopen(path, "re");
	enum err e;

	role_forbid(ROLE_DEADLINE);
	*t = (struct tracefile){ 0 };
	if (!f)
		return err_sys(why, path);
	e = read_lines(t, f, is_stdin ? "<stdin>" : path, why);
	if (!is_stdin)
		fclose(f);
	if (e)
		tracefile_release(t);
	return e;
}

void tracefile_release(struct tracefile *t)
{
	free(t->delays_ns);
	*t = (struct tracefile){ 0 };
}

enum err tracefile_create(FILE **f, const char *path, bool force, struct err_why *why)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL), 0666);

	*f = NULL;
	if (fd < 0 && errno == EEXIST)
		return err_say(why, ERR_SYS, path, "exists; -y overwrites it");
	if (fd < 0)
		return err_sys(why, path);
	*f = fdopen(fd, "w");
	if (!*f) {
		close(fd);
		return err_sys(why, path);
	}
	fputs("# the delay of each packet, in the order they set out; made by weir impair\n", *f);
	return ERR_OK;
}

void tracefile_write(FILE *f, int64_t delay_ns)
{
	if (delay_ns == IMPAIRMENT_LOST) {
		fputs("lost\n", f);
		return;
	}
	if (delay_ns < 0)
		delay_ns = 0;
	fprintf(f, "%" PRId64 ".%06" PRId64 "ms\n", delay_ns / 1000000, delay_ns % 1000000);
}

enum err tracefile_close(FILE *f, const char *path, struct err_why *why)
{
	bool failed = fflush(f) || ferror(f);
	int saved = errno;

	if (fclose(f) && !failed) {
		failed = true;
		saved = errno;
	}
	if (!failed)
		return ERR_OK;
	errno = saved;
	return err_sys(why, path);
}
