#!/bin/bash
# keygen: keys that only their owner reads, never replaced by accident, the same for SRTP as the RFCs have it.
. "$(dirname "$0")/../lib.sh"

writes()
{
	umask 022
	keygen -o a.key >out 2>err
	empty out
	empty err
	eq "$(stat -c %a a.key)" 600
	eq "$(wc -l <a.key)" 1
	grep -qE '^weir-key aead [A-Za-z0-9+/]{43}=$' a.key
	eq "$(cut -d ' ' -f 3 a.key | base64 -d | wc -c)" 32
	keygen -o b.key --profile sha1
	grep -qE '^weir-key sha1 [A-Za-z0-9+/]{43}=$' b.key
	# Another one each time.
	keygen -o c.key
	! cmp -s a.key c.key
	eq "$(ls)" "$(printf '%s\n' a.key b.key c.key err out)" "nothing else is left"
}

keeps()
{
	keygen -o a.key
	cp a.key before
	expect_status 2 keygen -o a.key 2>err
	one_line err '^keygen: a.key: exists'
	same a.key before
	chmod 644 a.key
	keygen -y -o a.key
	! cmp -s a.key before
	eq "$(stat -c %a a.key)" 600
	eq "$(ls)" "$(printf '%s\n' a.key before err)"
	expect_status 1 keygen -o none/a.key 2>err
	one_line err '^keygen: none/a.key: No such file or directory'
}

shows()
{
	keygen -o - >out
	grep -qE '^weir-key aead [A-Za-z0-9+/]{43}=$' out
	expect_status 2 keygen 2>err
	one_line err '^keygen: -o: is needed'
	expect_status 2 keygen -o x extra 2>err
	one_line err '^keygen: extra: no operands are taken'
	expect_status 1 keygen -o - >/dev/full 2>err
	one_line err '^keygen: .*No space left on device'
}

# The same words are the same key everywhere; what is derived from it is worked out again by Python.
passphrase()
{
	echo 'otter lamp seven granite' >words
	keygen --passphrase words -o a.key
	printf 'otter lamp seven granite\r\n' | keygen --passphrase - -o b.key
	same a.key b.key
	keygen --passphrase words --sdes -o aead.key
	keygen --passphrase words --sdes --profile sha1 -o sha1.key
	"$PYTHON" - <<'PY'
import base64, hashlib
key = base64.b64decode(open("a.key").read().split()[2])
def subkey(n, number):  # libsodium's crypto_kdf: the number as salt, the context as personal
    return hashlib.blake2b(b"", digest_size=n, key=key, salt=number.to_bytes(8, "little") + bytes(8),
                           person=b"weir key" + bytes(8)).digest()
assert open("aead.key").read() == "AEAD_AES_128_GCM inline:%s\n" % base64.b64encode(subkey(28, 1)).decode()
assert open("sha1.key").read() == "AES_CM_128_HMAC_SHA1_80 inline:%s\n" % base64.b64encode(subkey(30, 2)).decode()
PY
	# What a fixed salt and fixed costs must give for ever: keys that people have depend on it.
	eq "$(cat a.key)" "weir-key aead XL/kv2gpIiY7Ug1nz8oIB79wyLVHMectdxZn8dSM38o="
	# Nor does it depend on blanks that nobody sees.
	printf ' \t%s \r\n' "$(cat words)" >blanks
	keygen --passphrase blanks -o blanks.key
	same blanks.key a.key
	echo short >words
	expect_status 1 keygen --passphrase words -o c.key 2>err
	one_line err '^keygen: passphrase: has 5 bytes: 8 to 1024'
	: >words
	expect_status 1 keygen --passphrase words -o c.key 2>err
	one_line err '^keygen: words: has no passphrase in it'
	[ ! -e c.key ]
}

test_case "a random key, mode 0600, in one line" writes
test_case "a key that is there stays" keeps
test_case "it is shown when asked for, and only then" shows
test_case "a passphrase is the same key everywhere, and what is derived from it" passphrase
done_testing
