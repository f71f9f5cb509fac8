#!/bin/bash
# srtp://: with the key all of it arrives, and without it nothing; both profiles, and what is on the wire is opened by an
# SRTP written from the RFCs alone (srtp.py).
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"
. "$TOP/tests/srtplib.sh"

ourselves()
{
	local profile=$1
	listen "$TMPDIR/$profile.key"
	netsend -q --key-file "$TMPDIR/$profile.key" srtp://127.0.0.1:5004 "$TMPDIR/a.wav"
	got
	is_whole
	eq "$(figures stats auth_failed replayed lost)" "0 0 0"
}

environment()
{
	listen "$TMPDIR/aead.key"
	# One line of a file, or its SDES form, is what the variable holds; children and /proc do not see it for long.
	WEIR_KEY=$(cat "$TMPDIR/aead.key") netsend -q srtp://127.0.0.1:5004 "$TMPDIR/a.wav"
	got
	expect_status 2 netsend -q srtp://127.0.0.1:5004 "$TMPDIR/a.wav" 2>err
	one_line err 'srtp://: needs a key: --key-file FILE, or WEIR_KEY in the environment'
	WEIR_KEY=nonsense expect_status 1 netsend -q srtp://127.0.0.1:5004 "$TMPDIR/a.wav" 2>err
	one_line err 'WEIR_KEY: is no key'
	! command grep -q nonsense err
	cp "$TMPDIR/aead.key" open.key
	chmod 644 open.key
	netsend --fast --key-file open.key srtp://127.0.0.1:5004 "$TMPDIR/a.wav" 2>err
	contains err "open.key: this key can be read by others (mode 644): chmod 600 it"
}

# The other key, the other profile, and no encryption at all: nothing comes out, nothing goes back, one line is said.
strangers()
{
	local sender
	listen "$TMPDIR/aead.key"
	netsend -q --key-file "$TMPDIR/aead-other.key" --stats=9 --stats-file a srtp://127.0.0.1:5004 "$TMPDIR/a.wav" &
	netsend -q --key-file "$TMPDIR/sha1.key" --stats=9 --stats-file b srtp://127.0.0.1:5004 "$TMPDIR/a.wav" &
	netsend -q --stats=9 --stats-file c rtp://127.0.0.1:5004 "$TMPDIR/a.wav" &
	wait_for 10 heard auth_failed 300
	stop
	wait
	for sender in a b c; do
		eq "$(figure $sender rtcp_in)" 0 "answers to stranger $sender"
	done
	inspect out.weir >list
	! grep -q '^TRACK\|^DATA' list
	one_line err 'netrecv: srtp: packets that are not of this key'
	eq "$(figures stats senders received)" "0 0"
}

# A relay that lets everything through, and adds what an attacker has: each datagram again, later again, changed, cut, and noise.
relay()
{
	"$PYTHON" - "$1" "$2" <<'PY' &
import os, random, socket, sys
random.seed(5)
a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
a.bind(("127.0.0.1", int(sys.argv[1])))
a.settimeout(10)
b = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
to = ("127.0.0.1", int(sys.argv[2]))
seen = []
try:
    while True:
        d = a.recv(2048)
        if d == b"end":
            break
        flipped = bytearray(d)
        flipped[random.randrange(len(d))] ^= 1 << random.randrange(8)
        # Changed ones first: they must not take the true one's place.
        b.sendto(bytes(flipped), to)
        b.sendto(d, to)
        b.sendto(d, to)
        b.sendto(d[:random.randrange(len(d))], to)
        b.sendto(os.urandom(random.randrange(1400)), to)
        seen.append(d)
        b.sendto(random.choice(seen), to)
except TimeoutError:
    pass
PY
	relay=$!
	wait_for 10 udp_bound "$1"
}

attacked()
{
	local profile=$1
	listen "$TMPDIR/$profile.key"
	relay 5003 5004
	netsend -q --key-file "$TMPDIR/$profile.key" srtp://127.0.0.1:5003 "$TMPDIR/a.wav"
	got
	echo -n end >/dev/udp/127.0.0.1/5003
	wait "$relay"
	is_whole
	# Each of a hundred packets came changed, cut and as noise, and twice again.
	between "$(figure stats auth_failed)" 200 1000
	between "$(figure stats replayed)" 200 1000
	between "$(wc -l <err)" 1 3
}

# One that joins after the sequence number wrapped, whose packets nobody can read who was not told how often it did.
joiner()
{
	local profile=$1
	capture --realtime -c 2 -f s16 gen:noise 2>/dev/null | netsend -q --packet-time 1ms --seq 65300 --key-file "$TMPDIR/$profile.key" \
		--stats=0.05 --stats-file sent srtp://127.0.0.1:5004 &
	local sender=$!
	wait_for 10 reached sent packets_out 400
	listen "$TMPDIR/$profile.key"
	wait_for 10 heard received 500
	stop
	kill "$sender"
	wait
	is_whole
	eq "$(figure stats lost)" 0
}

# Both ends: from the 300th packet on the count stands still.
steady()
{
	local profile=$1
	listen "$TMPDIR/$profile.key"
	capture --realtime -d 1500ms -c 2 -f s16 gen:noise 2>/dev/null |
		netsend -q --packet-time 1ms --key-file "$TMPDIR/$profile.key" --stats=0.1 --stats-file sent srtp://127.0.0.1:5004
	wait_for 10 heard received 1450
	stop
	"$PYTHON" - <<'PY'
import json
for name, count in (("sent", "packets_out"), ("stats", "received")):
    rows = [r for r in map(json.loads, open(name)) if 300 < r.get(count, 0) < 1450]
    assert len(rows) >= 4 and rows[-1][count] > 1200, (name, rows)
    assert rows[0]["allocs"] == rows[-1]["allocs"], (name, rows[0]["allocs"], rows[-1]["allocs"])
PY
}

# What is on the wire, opened by the RFCs alone: media, reports, and the roll-over counter across a wrap.
by_the_rfc()
{
	local profile=$1
	sdes "$profile" rfc.key >base64
	"$PYTHON" - "$profile" "$TOP/tests/pipeline" 5004 >opened <<'PY' &
import base64, socket, struct, sys
sys.path.insert(0, sys.argv[2])
import srtp
srtp.check()
key = base64.b64decode(open("base64").read())
s = srtp.Srtp(sys.argv[1], key)
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
sock.bind(("127.0.0.1", int(sys.argv[3])))
sock.settimeout(10)
media, reports = [], []
while len(media) < 30:
    d = sock.recv(2048)
    (reports if 192 <= d[1] < 224 else media).append(d)
roc, last, pcm = 0, None, b""
for d in media:
    seq = struct.unpack(">H", d[2:4])[0]
    roc += last == 65535
    last = seq
    plain = s.unprotect(d, roc)
    assert plain is not None, seq
    pcm += plain[12:]
assert roc == 1
import numpy as np
open("got.raw", "wb").write(np.frombuffer(pcm, ">i2").astype("<i2").tobytes())
# A report is encrypted too; inside it is a sender report, and what else weir says.
for d in reports[:2]:
    plain, index = s.unprotect_rtcp(d)
    assert plain[1] == 200 and b"WEIR" in plain and b"WEIR" not in d and index >= 1
assert s.unprotect_rtcp(reports[0][:-1] + b"!") is None
print("opened", len(media))
PY
	local reader=$!
	wait_for 10 udp_bound 5004
	netsend -q --seq 65520 --packet-time 1ms --key-file rfc.key srtp://127.0.0.1:5004 "$TMPDIR/a.wav"
	wait $reader
	head -c $((30 * 192)) "$TMPDIR/a.raw" >want.raw
	same want.raw got.raw
}

for profile in aead sha1; do
	test_case "$profile: the same to the bit" ourselves $profile
	test_case "$profile: as the RFCs have it, across a wrap" by_the_rfc $profile
	test_case "$profile: replayed, changed, cut and invented datagrams do nothing" attacked $profile
	test_case "$profile: who joins after the numbers wrapped hears at once" joiner $profile
	test_case "$profile: nothing allocates while it runs" steady $profile
done
test_case "the key comes from the environment" environment
test_case "without the key: nothing is heard, answered, or said twice" strangers
done_testing
