/*
 * Where a tool's key comes from: a file, or the environment variable WEIR_KEY.  Never the command line, which every
 * user of the machine can read.
 *
 * A key is one line, the first that is neither empty nor begins with '#':
 *    weir-key aead BASE64         32 random bytes; SRTP with AEAD_AES_128_GCM, and weir://
 *    weir-key sha1 BASE64         the same; SRTP with AES_CM_128_HMAC_SHA1_80
 *    passphrase WORDS             the same made from words (slow: see net/secret.h), for aead
 *    AEAD_AES_128_GCM inline:BASE64           SRTP master key and salt as in SDES (RFC 4568, RFC 7714), for other
 *    AES_CM_128_HMAC_SHA1_80 inline:BASE64    programs: 28 and 30 bytes; no weir://
 */
#ifndef LEG_KEYFILE_H
#define LEG_KEYFILE_H

#include "base/err.h"
#include "net/secret.h"
#include "net/srtp.h"
#include "tool/tool.h"

#include <stdbool.h>

#define KEYFILE_MAX_BYTES 4096
#define KEYFILE_ENVIRONMENT "WEIR_KEY"

/* A key.  Zero is none.  keyfile_wipe() when it is no longer needed. */
struct keyfile {
	bool has_secret;      /* secret is valid: keys of every kind can be made from it */
	bool has_srtp;        /* srtp is valid: always, once loaded */
	enum srtp_kind kind;
	struct secret secret;
	struct srtp_key srtp;
};

/*
 * Load from path, or if that is NULL from the environment, which is then emptied of it.  Warns (t may be NULL: not)
 * when others may read the file.  Role: control.
 * Returns: ERR_OK; ERR_END if path is NULL and the variable is not set; ERR_FORMAT, ERR_SYS with *why, which never
 * quotes what is secret.
 */
WEIR_MUSTUSE enum err keyfile_load(struct keyfile *k, const char *path, struct tool *t, struct err_why *why);

/* A key from its line (not terminated), as in a file. */
WEIR_MUSTUSE enum err keyfile_parse(struct keyfile *k, const char *line, size_t n_bytes, const char *thing, struct err_why *why);

#define KEYFILE_LINE_BYTES 128
/* The line of a key with its end of line; SDES form if asked or if the key has no secret.  Wipe it after use. */
void keyfile_format(const struct keyfile *k, bool sdes, char line[KEYFILE_LINE_BYTES]);

/*
 * Write text to a new file that only its owner may read (0600), whole or not at all.  An existing one is refused unless
 * replace is set.
 */
WEIR_MUSTUSE enum err keyfile_write(const char *path, const char *text, bool replace, struct err_why *why);

void keyfile_wipe(struct keyfile *k);

#endif
