#!/bin/bash
# Sessions that are announced are found by SAP, and taken apart by a reader of its own.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

announces()
{
	netsend --announce --session "Band room" --ttl 1 "$@" 2>send.err &
	sender=$!
}

found_by_sap()
{
	netrecv --browse -d 20s --json --save found >found.json 2>err &
	local browser=$!
	wait_for 10 udp_bound 9875
	capture --realtime -d 15s gen:sine:freq=440 -c 2 | encode --frame 10ms >in.fifo &
	announces rtp://239.1.2.3:5004 in.fifo
	wait_for 10 test -s found.json
	kill -INT $sender
	wait $sender || :
	kill -INT $browser
	wait $browser
	eq "$(json found.json 'd["name"], d["url"], d["via"], d["codec"], d["channels"]')" \
		'["Band room", "rtp://239.1.2.3:5004?pt=111&codec=opus&rate=48000&channels=2", "SAP", "opus", 2]'
	contains found/Band_room.sdp "m=audio 5004 RTP/AVP 111"
	# What was found is what netrecv hears.
	expect_status 0 netrecv -d 0.1 found/Band_room.sdp >heard.weir 2>err
}

# RFC 2974 section 6, taken apart by hand; three in the first seconds, and a deletion when it ends.
packets_on_the_wire()
{
	"$PYTHON" - >packets 2>py.err <<'PY' &
import socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("239.255.255.255", 9875))
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.255.255.255") + socket.inet_aton("127.0.0.1"))
s.settimeout(10)
while True:
    b = s.recv(65536)
    assert b[0] >> 5 == 1 and not b[0] & 0x13, b[0]
    kind, sdp = b[8 + 4 * b[1]:].split(b"\0", 1)
    assert kind == b"application/sdp" and sdp.startswith(b"v=0\r\n"), b
    print("delete" if b[0] & 4 else "announce", struct.unpack_from(">H", b, 2)[0], flush=True)
    if b[0] & 4:
        break
PY
	local listener=$!
	wait_for 10 udp_bound 9875
	capture --realtime -d 10s gen:sine | encode >in.fifo &
	announces rtp://239.1.2.3:5004 in.fifo
	wait_for 10 eval '[ "$(wc -l <packets)" -ge 3 ]'
	kill -INT $sender
	wait $listener || fail "$(cat py.err)"
	eq "$(sed 's/ .*//' packets | sort | uniq -c | tr -s ' \n' ' ')" " 3 announce 1 delete "
	eq "$(sed 's/.* //' packets | sort -u | wc -l)" 1 "one hash"
	ne "$(sed -n 's/announce //p' packets | head -n 1)" 0 "the hash"
}

# Sessions that change: each description is newer than the one before, and speaks of nothing that it does not have.
changes_are_newer()
{
	"$PYTHON" - >versions 2>py.err <<'PY' &
import re, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("239.255.255.255", 9875))
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.255.255.255") + socket.inet_aton("127.0.0.1"))
s.settimeout(10)
seen = []
while len(seen) < 3:
    sdp = s.recv(65536).split(b"\0")[-1].decode()
    if sdp in seen:
        continue
    seen.append(sdp)
    mids = re.findall("a=mid:(\\S+)", sdp)
    for group in re.findall("a=group:\\S+ (.*?)\r", sdp):
        assert set(group.split()) <= set(mids), sdp
    print(re.search("o=\\S+ \\S+ (\\d+)", sdp)[1], flush=True)
PY
	local listener=$!
	wait_for 5 udp_bound 9875
	{
		capture --realtime -d 1.5s -c 1 -f s16 gen:sine
		capture --realtime -d 1.5s -c 2 -f s16 gen:sine
		capture --realtime -d 1.5s -c 1 -f s24 gen:sine
	} >in.fifo &
	announces rtp://239.1.2.3:5004 in.fifo
	wait $sender || fail "$(cat send.err)"
	wait $listener || fail "$(cat py.err)"
	eq "$(tr '\n' ' ' <versions)" "1 2 3 "
}

# What strangers call their sessions does not reach the terminal as it is; what is no SAP is passed over.
hostile_names()
{
	netrecv --browse -d 20s >found 2>err &
	local browser=$!
	wait_for 10 udp_bound 9875
	"$PYTHON" - <<'PY'
import random, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
to = ("239.255.255.255", 9875)
r = random.Random(1)
head = bytes([0x20, 0, 0x12, 0x34, 127, 0, 0, 1]) + b"application/sdp\0"
sdp = b"v=0\r\no=a 1 1 IN IP4 127.0.0.1\r\ns=x\x1b[2Jy\r\nc=IN IP4 239.1.1.1\r\nt=0 0\r\nm=audio 5004 RTP/AVP 10\r\n"
for n in range(2000):
    b = bytearray(head + sdp)
    for _ in range(r.randrange(1, 8)):
        b[r.randrange(len(b))] = r.randrange(256)
    s.sendto(bytes(b[:r.randrange(len(b) + 1)]), to)
head = head.replace(b"\x12\x34", b"\x43\x21")
while "x_[2Jy" not in open("found").read():
    s.sendto(head + sdp, to)
    time.sleep(0.01)
PY
	wait_for 10 grep -q "x_\[2Jy" found
	kill -INT $browser
	wait $browser
	command grep -q $'\x1b' found && fail "a control character came through"
	return 0
}

# A host that announces no end of sessions does not keep those of others from being shown; garbage takes no places; nothing grows.
crowds()
{
	netrecv --browse -d 20s -v >found 2>err &
	local browser=$!
	wait_for 10 udp_bound 9875
	"$PYTHON" - $browser <<'PY'
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
s.bind(("127.0.0.9", 0))
other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
to = ("239.255.255.255", 9875)
def say(s, n, name, media=b"m=audio 5004 RTP/AVP 10\r\n"):
    s.sendto(bytes([0x20, 0]) + n.to_bytes(2, "big") + bytes([127, 0, 0, 1]) + b"application/sdp\0v=0\r\no=a 1 1 IN IP4 127.0.0.1\r\ns=" + name +
             b"\r\nc=IN IP4 239.1.1.1\r\nt=0 0\r\n" + media, to)
def peak():
    return int(next(l for l in open("/proc/%s/status" % sys.argv[1]) if l.startswith("VmHWM")).split()[1])
def until(done, what, *again):
    end = time.monotonic() + 5
    while not done():
        assert time.monotonic() < end, what
        for one in again:
            say(*one)
        time.sleep(0.002)
def shown(name):
    return open("found").read().count(name)
say(s, 1, b"crowd")
until(lambda: shown("first"), "the first", (other, 60000, b"first"))
before = peak()
for n in range(3000):
    say(s, 1 + n % 500, b"garbage", b"m=video 1 RTP/AVP 96\r\n")
    if n % 20 == 0:
        time.sleep(0.001)
for n in range(600):
    until(lambda: shown("crowd") > min(n, 255), "the crowd", (s, 1 + n, b"crowd"))
until(lambda: shown("a quiet host's"), "the quiet one", (s, 9999, b"crowd"), (other, 60001, b"a quiet host's"))
assert peak() - before < 300, (before, peak())
PY
	kill -INT $browser
	wait $browser
	eq "$(grep -c crowd found)" 256 "sessions of one host"
	eq "$(grep -c "the others are not shown" err)" 1
	eq "$(grep -c garbage found || :)" 0
}

# say_sessions NAME…: by SAP, again and again, until the file `enough` is there, or 8 s have passed.
say_sessions()
{
	"$PYTHON" - "$@" <<'PY' &
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
until = time.monotonic() + 8
while time.monotonic() < until and not os.path.exists("enough"):
    for n, name in enumerate(sys.argv[1:]):
        sdp = "v=0\r\no=a %d 1 IN IP4 127.0.0.1\r\ns=%s\r\nc=IN IP4 239.1.1.1\r\nt=0 0\r\nm=audio 5004 RTP/AVP 10\r\n" % (n, name)
        s.sendto(bytes([0x20, 0, 1, n + 1, 127, 0, 0, 1]) + b"application/sdp\0" + sdp.encode(), ("239.255.255.255", 9875))
    time.sleep(0.02)
PY
	speaker=$!
}

# Where there is no network that could tell anything, that is said at once.
nothing_to_hear()
{
	DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nonexistent expect_status 1 timeout 5 unshare -n "$BIN/netrecv" --browse -d 20s 2>err
	one_line err "netrecv: --browse: .*no interface"
}

# head has seen enough: then it ends, long before its time.
reader_goes_away()
{
	say_sessions one two three
	{ netrecv --browse -d 30s 2>err || echo $? >status; } | head -n 1 >found
	: >enough
	wait $speaker
	eq "$(cat status)" 141 "the status"
	eq "$(wc -l <found)" 1 "lines"
	empty err
}

# What cannot be written is said, leaves no half behind, and is no success.
nowhere_to_save()
{
	say_sessions one two
	bash -c '(ulimit -f 0; exec netrecv --browse -d 1s --save folder 2>&1 >&3) | cat >err; exit ${PIPESTATUS[0]}' 3> >(cat >found) && fail "it succeeded" || eq $? 1
	wait_for 10 test -s found
	: >enough
	wait $speaker
	contains err "folder/one.sdp"
	eq "$(ls folder | wc -l)" 0 "files that are left"
	eq "$(wc -l <found)" 1 "sessions found"
}

in_fifo()
{
	mkfifo in.fifo
	"$@"
}

test_case "a session is found by SAP" in_fifo found_by_sap
test_case "announcements and their deletion on the wire" in_fifo packets_on_the_wire
test_case "a session that changes" in_fifo changes_are_newer
test_case "hostile announcements do no harm" hostile_names
test_case "a host that announces no end of sessions leaves room for others" crowds
test_case "--browse where there is no network" nothing_to_hear
test_case "--browse into a pipe whose reader goes away" reader_goes_away
test_case "--browse --save where nothing can be written" nowhere_to_save
done_testing
