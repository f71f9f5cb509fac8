/* Keys as text: every form, every way to be wrong, and no secret in any message. */
#include "check.h"

#include "leg/keyfile.h"

#include <sys/stat.h>
#include <unistd.h>

static struct keyfile key;
static struct err_why why;

static enum err parse(const char *line)
{
	memset(&why, 0, sizeof(why));
	return keyfile_parse(&key, line, strlen(line), "a.key", &why);
}

static void test_forms(void)
{
	char line[KEYFILE_LINE_BYTES];
	static const char secret[] = "weir-key aead AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

	CHECK_OK(parse(secret));
	CHECK(key.has_secret && key.has_srtp && key.kind == SRTP_GCM && key.srtp.kind == SRTP_GCM);
	for (unsigned i = 0; i < 32; i++)
		CHECK_EQ(key.secret.bytes[i], i);
	keyfile_format(&key, false, line);
	line[strcspn(line, "\n")] = 0;
	CHECK_STR(line, secret);
	/* The same key, from its SDES form: what goes out is the same. */
	struct srtp_key srtp = key.srtp;
	keyfile_format(&key, true, line);
	line[strcspn(line, "\n")] = 0;
	CHECK_OK(parse(line));
	CHECK(!key.has_secret && key.has_srtp);
	CHECK_MEM(key.srtp.bytes, srtp.bytes, SRTP_GCM_KEY_BYTES);

	CHECK_OK(parse("  weir-key\tsha1  AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8= \r"));
	CHECK(key.kind == SRTP_SHA1 && key.srtp.kind == SRTP_SHA1);
	/* RFC 4568 section 9.1's example, with lifetime and MKI behind it. */
	CHECK_OK(parse("AES_CM_128_HMAC_SHA1_80 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj|2^20|1:32"));
	CHECK_MEM(key.srtp.bytes, "wDfvg&T+)xG7@fb5jU,RaA}\\|p0%*#", 30);
	CHECK_OK(parse("AEAD_AES_128_GCM inline:AAECAwQFBgcICQoLDA0OD6ChoqOkpaanqKmqqw=="));
	CHECK_EQ(key.srtp.bytes[16], 0xa0);
}

static void refused(const char *line, const char *reason)
{
	CHECK(parse(line) != ERR_OK);
	CHECK_STR(why.thing, "a.key");
	CHECK_STR(why.reason, reason);
	CHECK(!strstr(why.reason, "SECRET") && !strstr(why.thing, "SECRET"));
	static const struct keyfile none;
	CHECK_MEM(&key, &none, sizeof(key));
}

static void test_wrong(void)
{
	refused("weir-key", "the word after weir-key is neither aead nor sha1");
	refused("weir-key SECRET", "the word after weir-key is neither aead nor sha1");
	refused("weir-key aead", "the key is not 32 bytes of base64");
	refused("weir-key aead SECRET", "the key is not 32 bytes of base64");
	refused("weir-key aead AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", "the key is not 32 bytes of base64");
	refused("weir-key aead AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8= x", "the key is not 32 bytes of base64");
	refused("AEAD_AES_128_GCM SECRET", "what follows AEAD_AES_128_GCM is not inline: and 28 bytes of base64");
	refused("AEAD_AES_128_GCM inline:", "what follows AEAD_AES_128_GCM is not inline: and 28 bytes of base64");
	/* 28 bytes where 30 are needed. */
	refused("AES_CM_128_HMAC_SHA1_80 inline:AAECAwQFBgcICQoLDA0OD6ChoqOkpaanqKmqqw==",
		"what follows AES_CM_128_HMAC_SHA1_80 is not inline: and 30 bytes of base64");
	refused("SECRET", "is no key: the first word is neither weir-key, passphrase, AEAD_AES_128_GCM nor AES_CM_128_HMAC_SHA1_80");
	refused("", "is no key: the first word is neither weir-key, passphrase, AEAD_AES_128_GCM nor AES_CM_128_HMAC_SHA1_80");
	refused("passphrase SECRET", "has 6 bytes: 8 to 1024");
}

static void write_text(const char *path, const char *text, size_t n_bytes)
{
	FILE *f = fopen(path, "w");
	CHECK(f && fwrite(text, 1, n_bytes, f) == n_bytes);
	if (f)
		fclose(f);
}

static void test_files(void)
{
	char path[64], big[KEYFILE_MAX_BYTES + 10];
	struct stat st;
	static const char text[] = "# studio to hall\n\n   \nweir-key aead AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\nwhatever follows\n";

	snprintf(path, sizeof(path), "/tmp/weir-keyfile.%ld", (long)getpid());
	write_text(path, text, strlen(text));
	CHECK_OK(keyfile_load(&key, path, NULL, &why));
	CHECK_EQ(key.secret.bytes[31], 31);
	write_text(path, "# nothing\n", 10);
	CHECK_EQ(keyfile_load(&key, path, NULL, &why), ERR_FORMAT);
	CHECK_STR(why.reason, "has no key in it");
	memset(big, '\n', sizeof(big));
	write_text(path, big, sizeof(big));
	CHECK_EQ(keyfile_load(&key, path, NULL, &why), ERR_LIMIT);

	CHECK_EQ(keyfile_write(path, "new\n", false, &why), ERR_ARG);
	CHECK_OK(keyfile_write(path, "new\n", true, &why));
	CHECK(!stat(path, &st) && (st.st_mode & 0777) == 0600 && st.st_size == 4);
	unlink(path);
	CHECK_EQ(keyfile_load(&key, path, NULL, &why), ERR_SYS);
	CHECK_OK(keyfile_write(path, "new\n", false, &why));
	unlink(path);
}

static void test_environment(void)
{
	unsetenv(KEYFILE_ENVIRONMENT);
	CHECK_EQ(keyfile_load(&key, NULL, NULL, &why), ERR_END);
	setenv(KEYFILE_ENVIRONMENT, "weir-key sha1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", 1);
	CHECK_OK(keyfile_load(&key, NULL, NULL, &why));
	CHECK_EQ(key.kind, SRTP_SHA1);
	/* It is read once, and gone. */
	CHECK(!getenv(KEYFILE_ENVIRONMENT));
	keyfile_wipe(&key);
	CHECK(!key.has_srtp && !key.secret.bytes[31]);
}

int main(void)
{
	CHECK_RUN(test_forms);
	CHECK_RUN(test_wrong);
	CHECK_RUN(test_files);
	CHECK_RUN(test_environment);
	return check_end();
}
