#!/bin/bash
# impair between programs: datagrams go on and answers come back, with the losses the seed tells; nothing grows, nothing hurts.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

py()
{
	"$PYTHON" "$TOP/tests/pipeline/impair.py" "$@"
}

# proxy HOST OPTION…: from $port to $target.
proxy()
{
	local host=$1
	shift
	port=5003 target=5004
	env --default-signal=INT,TERM impair -v --stats --stats-file s "$@" "udp://:$port" "udp://$host:$target" >out 2>err &
	pid=$!
	wait_for 10 udp_bound "$port"
}

stop_proxy()
{
	kill -INT $pid
	rc=0
	wait $pid || rc=$?
	eq "$rc" 0 "status of impair"
	empty out
}

perfect()
{
	proxy 127.0.0.1
	py talk 4 "$port" "$target" 500 >t
	stop_proxy
	eq "$(json t '[d["there"], d["back"], d["distinct"], d["backwards"], d["cut"]]')" "[500, 500, 500, 0, 0]"
	eq "$(json s '[d["packets_in"], d["packets_out"], d["lost_packets"], d["senders"], d["unsent_packets"]]')" "[1000, 1000, 0, 1, 0]"
	contains err "to 127.0.0.1:$target: 500 datagrams: 0 lost (0.00 %)"
	contains err "back from 127.0.0.1:$target: 500 datagrams: 0 lost (0.00 %)"
}

# Which are lost on the way there is told from the seed; the way back has a fate of its own.
lossy()
{
	proxy 127.0.0.1 --loss 10% --burst 3 --seed 7
	py talk 4 "$port" "$target" 1000 >t
	stop_proxy
	py lost 7 0 0.1 3 1000 >wanted
	json t '"\n".join(map(str, d["lost"]))' >got
	same got wanted
	between "$(json t 'd["there"] - d["back"]')" 30 200
	eq "$(json s 'd["packets_in"]')" $((1000 + $(json t 'd["there"]')))
	eq "$(json s 'd["lost_packets"]')" "$(json t '2 * 0 + 1000 - d["there"] + d["there"] - d["back"]')"
}

one_direction()
{
	proxy 127.0.0.1 --loss 50% --direction back
	py talk 4 "$port" "$target" 200 >t
	stop_proxy
	eq "$(json t 'd["there"]')" 200
	between "$(json t 'd["back"]')" 60 140
}

# Delay and order, as the programs see them.  Nothing comes early; late is what the machine makes of it.
delayed()
{
	proxy "[::1]" --delay 40ms --reorder 5% --reorder-by 2 --duplicate 5%
	py talk 6 "$port" "$target" 500 >t
	stop_proxy
	eq "$(json t '[d["distinct"], d["cut"]]')" "[500, 0]"
	between "$(json t 'd["min_ms"]')" 39.9 45
	between "$(json t 'd["round_min_ms"]')" 79.8 100
	eq "$(json s 'd["packets_in"] + d["duplicated_packets"]')" "$(json s 'd["packets_out"]')"
	between "$(json t 'd["there"]')" 507 550
	between "$(json t 'd["backwards"]')" 5 60
	eq "$(json s 'd["underway_packets"]')" 0
}

slow_line()
{
	# A datagram of 972 bytes and 28 around it takes 2 ms of 4 Mbit/s; they come each millisecond, and 20 wait at most.
	proxy 127.0.0.1 --bandwidth 4M --queue 20000 --direction there --record-trace r
	py talk 4 "$port" "$target" 400 972 >t
	stop_proxy
	between "$(json t 'd["there"]')" 205 240
	# 40 ms of what waits and 2 of its own: so it is recorded, and so it comes, but for those that a busy machine holds up.
	between "$(awk '$1 + 0 > most { most = $1 + 0 } END { print most }' r)" 38 42.01
	between "$(json t 'd["median_ms"]')" 36 60
	eq "$(json s 'd["queue_lost_packets"]')" "$(json t '400 - d["there"]')"
}

# Datagrams of every length, more than fit, from more senders than there are places, to nobody: counted, and memory flat.
hostile()
{
	proxy 127.0.0.1 --delay 200ms
	"$PYTHON" - "$port" "$target" <<'PY'
import os, socket, sys
port, target = int(sys.argv[1]), int(sys.argv[2])
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", target))
server.settimeout(5)
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
# Each length that could matter arrives as it was sent, the empty one too.
for n in (0, 1, 2047, 2048, 2049, 9000, 65506, 65507):
    data = os.urandom(n)
    one.sendto(data, ("127.0.0.1", port))
    assert server.recv(65536) == data, n
# A flood of large and small ones, and of senders.
many = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(100)]
for s in many:
    s.sendto(b"x", ("127.0.0.1", port))
for i in range(20000):
    one.sendto(os.urandom(9000 if i % 10 == 0 else i % 1400), ("127.0.0.1", port))
server.close()
for i in range(200):
    one.sendto(b"nobody is there", ("127.0.0.1", port))
PY
	wait_for 10 grep -q 'nobody listens there' err
	stop_proxy
	eq "$(json s 'd["senders"]')" 64
	eq "$(json s 'd["refused_packets"]')" 37
	between "$(json s 'd["rss_kib"]')" 1 90000
	eq "$(json s 'lines[-1]["allocs"] - lines[0]["allocs"]')" 0
	between "$(grep -c . err)" 3 80
}

# Whoever sends under many addresses keeps nobody else out: neither of a place, nor of memory; and gets nothing that he did not send.
crowds()
{
	proxy 127.0.0.1 --delay 250ms
	"$PYTHON" - "$port" "$target" $pid <<'PY'
import random, socket, sys, time
port, target, pid = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
server.bind(("127.0.0.1", target))
server.setblocking(False)
came = {}
def work():
    try:
        while True:
            data = server.recv(65536)
            came[data[:8]] = came.get(data[:8], 0) + 1
    except BlockingIOError:
        pass
def open_at(host):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((host, 0))
    s.setblocking(False)
    return s
def peak():
    return int(next(l for l in open("/proc/%s/status" % pid) if l.startswith("VmHWM")).split()[1])
def heard(name, besides, limit):
    one, end, n = open_at("127.0.0.1"), time.monotonic() + limit, 0
    while came.get(name, 0) < 20:
        assert time.monotonic() < end, (name, came.get(name, 0), n)
        besides()
        one.sendto(name, ("127.0.0.1", port))
        n += 1
        time.sleep(0.002)
        work()
# A hundred ports of one host, that go on and on.
many = [open_at("127.0.0.9") for _ in range(100)]
def ports():
    for s in many:
        s.sendto(b"the port", ("127.0.0.1", port))
for _ in range(20):
    ports()
    time.sleep(0.005)
heard(b"newcomer", ports, 2)
before = peak()
# A host of its own for each datagram.
r = random.Random(1)
def hosts():
    for _ in range(20):
        s = open_at("127.%d.%d.%d" % (r.randrange(1, 255), r.randrange(256), r.randrange(1, 255)))
        s.sendto(b"the host", ("127.0.0.1", port))
        s.close()
for _ in range(100):
    hosts()
heard(b"stranger", hosts, 4)
# More datagrams than there is room for (of long ones that is soon), and one who has few.
time.sleep(0.5)
work()
crowd, few, long = open_at("127.0.0.9"), open_at("127.0.0.2"), bytes(3000)
few.sendto(b"only few", ("127.0.0.1", port))
for i in range(3000):
    crowd.sendto(b"too many" + long, ("127.0.0.1", port))
    if i % 300 == 299:
        few.sendto(b"only few" + long, ("127.0.0.1", port))
    if i % 20 == 0:
        time.sleep(0.001)
        work()
end = time.monotonic() + 5
while came.get(b"only few", 0) < 11:
    assert time.monotonic() < end, came
    time.sleep(0.01)
    work()
assert came[b"too many"] < 2900, came
# Nobody answered, so nobody was answered.
for s in many + [crowd, few]:
    try:
        s.recv(1)
        assert False, "an answer came from nowhere"
    except BlockingIOError:
        pass
assert peak() - before < 40000, (before, peak())
PY
	stop_proxy
	eq "$(json s 'd["senders"]')" 64
	eq "$(json s 'lines[-1]["allocs"] - lines[0]["allocs"]')" 0
	between "$(grep -c . err)" 1 2000
}

ends_by_itself()
{
	proxy 127.0.0.1 -d 300ms
	wait $pid
	contains err "to 127.0.0.1:$target: 0 datagrams"
	proxy 127.0.0.1
	expect_status 1 impair "udp://:$port" udp://127.0.0.1:9 2>err2
	one_line err2 "^impair: .*$port: the port is in use"
	stop_proxy
	expect_status 1 impair "udp://:$port" udp://no.such.host.invalid:9 2>err2
	one_line err2 "^impair: no.such.host.invalid: "
}

test_case "a perfect network: everything there and back, in order" perfect
test_case "the seed tells what is lost" lossy
test_case "only the way back" one_direction
test_case "later, twice, in another order, over IPv6" delayed
test_case "a slow line with a queue" slow_line
test_case "any length, floods, more senders than places, nobody there: memory stands still" hostile
test_case "crowds take neither places nor room from others, and get no answers" crowds
test_case "ends by itself; a port in use and a host that is not there are said" ends_by_itself
done_testing
