#include "leg/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void keyfile_wipe(struct keyfile *k)
{
	secret_wipe(k, sizeof(*k));
}

/* ---- a line ---- */

struct text {
	const char *p;
	size_t n;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct text trim(struct text t)
{
	while (t.n && is_blank(t.p[0]))
		t.p++, t.n--;
	while (t.n && is_blank(t.p[t.n - 1]))
		t.n--;
	return t;
}

/* The first word, taken off the front. */
static struct text word(struct text *t)
{
	struct text w = { t->p, 0 };

	while (w.n < t->n && !is_blank(w.p[w.n]))
		w.n++;
	*t = trim((struct text){ t->p + w.n, t->n - w.n });
	return w;
}

static bool is_word(struct text t, const char *w)
{
	return t.n == strlen(w) && !memcmp(t.p, w, t.n);
}

static enum err parse_own(struct keyfile *k, struct text rest, const char *thing, struct err_why *why)
{
	struct text kind = word(&rest);

	if (is_word(kind, "aead"))
		k->kind = SRTP_GCM;
	else if (is_word(kind, "sha1"))
		k->kind = SRTP_SHA1;
	else
		return err_say(why, ERR_FORMAT, thing, "the word after weir-key is neither aead nor sha1");
	if (secret_decode(k->secret.bytes, SECRET_BYTES, rest.p, rest.n) != SECRET_BYTES)
		return err_say(why, ERR_FORMAT, thing, "the key is not %d bytes of base64", SECRET_BYTES);
	k->has_secret = true;
	return ERR_OK;
}

static enum err parse_sdes(struct keyfile *k, enum srtp_kind kind, struct text rest, const char *thing, struct err_why *why)
{
	static const char inline_[] = "inline:";
	size_t n_prefix = sizeof(inline_) - 1, n_key = 0;

	k->kind = k->srtp.kind = kind;
	if (rest.n > n_prefix && !memcmp(rest.p, inline_, n_prefix)) {
		rest = (struct text){ rest.p + n_prefix, rest.n - n_prefix };
		/* SDES may have a lifetime and an index behind bars; they say nothing that is wanted here. */
		const char *bar = memchr(rest.p, '|', rest.n);
		n_key = secret_decode(k->srtp.bytes, sizeof(k->srtp.bytes), rest.p, bar ? (size_t)(bar - rest.p) : rest.n);
	}
	if (n_key != srtp_key_bytes(kind))
		return err_say(why, ERR_FORMAT, thing, "what follows %s is not inline: and %zu bytes of base64", srtp_kind_name(kind), srtp_key_bytes(kind));
	k->has_srtp = true;
	return ERR_OK;
}

static enum err parse(struct keyfile *k, struct text line, const char *thing, struct err_why *why)
{
	struct text first = word(&line);

	if (is_word(first, "weir-key"))
		return parse_own(k, line, thing, why);
	if (is_word(first, srtp_kind_name(SRTP_GCM)))
		return parse_sdes(k, SRTP_GCM, line, thing, why);
	if (is_word(first, srtp_kind_name(SRTP_SHA1)))
		return parse_sdes(k, SRTP_SHA1, line, thing, why);
	if (is_word(first, "passphrase")) {
		enum err e = secret_from_passphrase(&k->secret, line.p, line.n, why);
		if (e && why)
			snprintf(why->thing, sizeof(why->thing), "%s", thing);
		k->has_secret = !e;
		return e;
	}
	return err_say(why, ERR_FORMAT, thing, "is no key: the first word is neither weir-key, passphrase, %s nor %s",
		srtp_kind_name(SRTP_GCM), srtp_kind_name(SRTP_SHA1));
}

enum err keyfile_parse(struct keyfile *k, const char *line, size_t n_bytes, const char *thing, struct err_why *why)
{
	enum err e;

	*k = (struct keyfile){ 0 };
	e = parse(k, trim((struct text){ line, n_bytes }), thing, why);
	if (!e && k->has_secret) {
		e = secret_srtp(&k->secret, k->kind, &k->srtp);
		k->has_srtp = !e;
	}
	if (e)
		keyfile_wipe(k);
	return e;
}

void keyfile_format(const struct keyfile *k, bool sdes, char line[KEYFILE_LINE_BYTES])
{
	char text[64];

	if (k->has_secret && !sdes) {
		secret_encode(text, sizeof(text), k->secret.bytes, SECRET_BYTES);
		snprintf(line, KEYFILE_LINE_BYTES, "weir-key %s %s\n", k->kind == SRTP_GCM ? "aead" : "sha1", text);
	} else {
		secret_encode(text, sizeof(text), k->srtp.bytes, srtp_key_bytes(k->kind));
		snprintf(line, KEYFILE_LINE_BYTES, "%s inline:%s\n", srtp_kind_name(k->kind), text);
	}
	secret_wipe(text, sizeof(text));
}

/* ---- where it comes from ---- */

/* The first line that says something. */
static enum err parse_text(struct keyfile *k, const char *text, size_t n_bytes, const char *thing, struct err_why *why)
{
	while (n_bytes) {
		const char *end = memchr(text, '\n', n_bytes);
		size_t n_line = end ? (size_t)(end - text) : n_bytes;
		struct text line = trim((struct text){ text, n_line });

		if (line.n && line.p[0] != '#')
			return keyfile_parse(k, line.p, line.n, thing, why);
		n_line += end != NULL;
		text += n_line;
		n_bytes -= n_line;
	}
	return err_say(why, ERR_FORMAT, thing, "has no key in it");
}

static enum err load_environment(struct keyfile *k, struct err_why *why)
{
	char *text = getenv(KEYFILE_ENVIRONMENT);
	enum err e;

	if (!text)
		return ERR_END;
	e = parse_text(k, text, strlen(text), KEYFILE_ENVIRONMENT, why);
	/* What we start, and who looks into /proc from now on, is not to find it. */
	secret_wipe(text, strlen(text));
	unsetenv(KEYFILE_ENVIRONMENT);
	return e;
}

static enum err read_all(int fd, char *buffer, size_t cap_bytes, size_t *n_bytes)
{
	*n_bytes = 0;
	while (*n_bytes < cap_bytes) {
		ssize_t r = read(fd, buffer + *n_bytes, cap_bytes - *n_bytes);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return ERR_SYS;
		if (r == 0)
			return ERR_OK;
		*n_bytes += (size_t)r;
	}
	return ERR_LIMIT;
}

enum err keyfile_load(struct keyfile *k, const char *path, struct tool *t, struct err_why *why)
{
	char buffer[KEYFILE_MAX_BYTES + 1];
	size_t n_bytes = 0;
	struct stat st;
	enum err e;

	*k = (struct keyfile){ 0 };
	if (!path)
		return load_environment(k, why);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(why, path);
	if (t && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_mode & (S_IRGRP | S_IROTH))
		tool_warn(t, path, "this key can be read by others (mode %03o): chmod 600 it", st.st_mode & 0777u);
	e = read_all(fd, buffer, sizeof(buffer), &n_bytes);
	if (e == ERR_SYS)
		e = err_sys(why, path);
	else if (e)
		e = err_say(why, ERR_LIMIT, path, "is longer than a key file may be, %d bytes", KEYFILE_MAX_BYTES);
	else
		e = parse_text(k, buffer, n_bytes, path, why);
	close(fd);
	secret_wipe(buffer, sizeof(buffer));
	return e;
}

static enum err write_all(int fd, const char *text, size_t n_bytes)
{
	while (n_bytes) {
		ssize_t w = write(fd, text, n_bytes);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return ERR_SYS;
		text += w;
		n_bytes -= (size_t)w;
	}
	return fsync(fd) ? ERR_SYS : ERR_OK;
}

enum err keyfile_write(const char *path, const char *text, bool replace, struct err_why *why)
{
	char temporary[4096];
	enum err e;

	if ((size_t)snprintf(temporary, sizeof(temporary), "%s.%ld", path, (long)getpid()) >= sizeof(temporary))
		return err_say(why, ERR_ARG, path, "is too long a name");
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(why, path);
	e = write_all(fd, text, strlen(text));
	if (close(fd))
		e = ERR_SYS;
	/* link() refuses a name that is taken, rename() replaces it; neither ever shows half a key. */
	if (!e && (replace ? rename(temporary, path) : link(temporary, path)))
		e = ERR_SYS;
	if (e) {
		int saved = errno;
		unlink(temporary);
		errno = saved;
		if (saved == EEXIST)
			return err_say(why, ERR_ARG, path, "exists: -y replaces it, and what was encrypted with it needs the old one");
		return err_sys(why, path);
	}
	if (!replace)
		unlink(temporary);
	return ERR_OK;
}
