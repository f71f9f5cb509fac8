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
	wait_for 5 udp_bound 9875
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
	wait_for 5 udp_bound 9875
	capture --realtime -d 10s gen:sine | encode >in.fifo &
	announces rtp://239.1.2.3:5004 in.fifo
	wait_for 8 eval '[ "$(wc -l <packets)" -ge 3 ]'
	kill -INT $sender
	wait $listener || fail "$(cat py.err)"
	eq "$(sed 's/ .*//' packets | sort | uniq -c | tr -s ' \n' ' ')" " 3 announce 1 delete "
	eq "$(sed 's/.* //' packets | sort -u | wc -l)" 1 "one hash"
	ne "$(sed -n 's/announce //p' packets | head -n 1)" 0 "the hash"
}

# What strangers call their sessions does not reach the terminal as it is; what is no SAP is passed over.
hostile_names()
{
	netrecv --browse -d 20s >found 2>err &
	local browser=$!
	wait_for 5 udp_bound 9875
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
	wait_for 5 grep -q "x_\[2Jy" found
	kill -INT $browser
	wait $browser
	command grep -q $'\x1b' found && fail "a control character came through"
	return 0
}

in_fifo()
{
	mkfifo in.fifo
	"$@"
}

test_case "a session is found by SAP" in_fifo found_by_sap
test_case "announcements and their deletion on the wire" in_fifo packets_on_the_wire
test_case "hostile announcements do no harm" hostile_names
done_testing
