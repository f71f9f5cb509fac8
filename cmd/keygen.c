/* keygen: a key for srtp:// and weir://, drawn at random or made of a passphrase, into a file that only its owner reads. */
#include "leg/keyfile.h"
#include "tool/tool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

struct keygen {
	struct tool tool;
	const char *output;
	const char *passphrase;  /* the file with it, "-": standard input; NULL: a random key */
	bool force, sdes;
	int kind;                /* enum srtp_kind */
	struct keyfile key;
	struct err_why why;
};

/* As the line `passphrase WORDS` of a key file is taken: blanks at either end are none of the words. */
static void trim(char *line)
{
	size_t begin = strspn(line, " \t\r\n"), n = strlen(line + begin);

	memmove(line, line + begin, n + 1);
	while (n && strchr(" \t\r\n", line[n - 1]))
		line[--n] = '\0';
}

/* One line of stdin or a file; a terminal does not show what is typed. */
static enum err read_line(struct keygen *self, FILE *f, char *line, size_t cap_bytes)
{
	struct termios before, silent;
	bool hidden = isatty(fileno(f)) && !tcgetattr(fileno(f), &before);
	const char *thing = strcmp(self->passphrase, "-") ? self->passphrase : "standard input";
	enum err e = ERR_OK;

	if (hidden) {
		silent = before;
		silent.c_lflag &= ~(tcflag_t)ECHO;
		fputs("passphrase: ", stderr);
		tcsetattr(fileno(f), TCSAFLUSH, &silent);
	}
	errno = 0;
	if (!fgets(line, (int)cap_bytes, f))
		e = ferror(f) ? err_sys(&self->why, thing) : err_say(&self->why, ERR_FORMAT, thing, "has no passphrase in it");
	if (hidden) {
		tcsetattr(fileno(f), TCSAFLUSH, &before);
		fputc('\n', stderr);
	}
	trim(line);
	return e;
}

static enum err from_passphrase(struct keygen *self)
{
	char line[SECRET_PASSPHRASE_MAX_BYTES + 2] = "";
	bool is_stdin = !strcmp(self->passphrase, "-");
	FILE *f = is_stdin ? stdin : fopen(self->passphrase, "re");
	enum err e;

	if (!f)
		return err_sys(&self->why, self->passphrase);
	/* Unbuffered, so that no copy of it stays behind. */
	setvbuf(f, NULL, _IONBF, 0);
	e = read_line(self, f, line, sizeof(line));
	if (!e)
		e = secret_from_passphrase(&self->key.secret, line, strlen(line), &self->why);
	secret_wipe(line, sizeof(line));
	if (!is_stdin)
		fclose(f);
	return e;
}

static enum err make_key(struct keygen *self)
{
	struct keyfile *k = &self->key;
	enum err e;

	e = self->passphrase ? from_passphrase(self) : secret_random(k->secret.bytes, sizeof(k->secret.bytes));
	if (!e)
		e = secret_srtp(&k->secret, self->kind, &k->srtp);
	k->kind = self->kind;
	k->has_secret = k->has_srtp = !e;
	return e;
}

static enum err write_key(struct keygen *self)
{
	char line[KEYFILE_LINE_BYTES];
	enum err e = ERR_OK;

	keyfile_format(&self->key, self->sdes, line);
	if (!strcmp(self->output, "-"))
		fputs(line, stdout); /* tool_end() sees whether it got there */
	else
		e = keyfile_write(self->output, line, self->force, &self->why);
	secret_wipe(line, sizeof(line));
	return e;
}

int main(int argc, char **argv)
{
	static struct keygen self = { .kind = SRTP_GCM };
	static const struct opt_choice profiles[] = { { "aead", SRTP_GCM }, { "sha1", SRTP_SHA1 }, { NULL, 0 } };
	enum err e;

	const struct opt options[] = {
		OPT_STRING('o', "output", "FILE", &self.output, "write the key to FILE, which only you may read (-: show it)"),
		OPT_FLAG('y', "force", &self.force, "replace FILE if it is there"),
		OPT_CHOICE(0, "profile", "PROFILE", &self.kind, profiles, "of SRTP: aead (AEAD_AES_128_GCM), sha1 (AES_CM_128_HMAC_SHA1_80) (aead)"),
		OPT_FLAG(0, "sdes", &self.sdes, "master key and salt as in SDES, for other programs; not for weir://"),
		OPT_STRING(0, "passphrase", "FILE", &self.passphrase, "make the key of the first line of FILE (-: standard input)"),
		OPT_END,
	};
	tool_begin(&self.tool, "keygen", "-o FILE [options]", "a key for srtp:// and weir://", options, &argc, &argv);
	if (argc > 1)
		tool_usage(&self.tool, argv[1], "no operands are taken");
	if (!self.output)
		tool_usage(&self.tool, "-o", "is needed: the file that the key is written to, or - to show it");

	e = make_key(&self);
	if (!e)
		e = write_key(&self);
	keyfile_wipe(&self.key);
	return tool_end(&self.tool, e, &self.why);
}
