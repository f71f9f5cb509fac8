#!/bin/bash
# impair between programs: datagrams go on and answers come back, with the losses the seed tells; nothing grows, nothing hurts.
. "$(dirname "$0")/../lib.sh"

py()
{
	"$PYTHON" "$TOP/tests/pipeline/impair.py" "$@"
}

# A port that was free a moment ago, of both families.
free_port()
{
	"$PYTHON" -c '
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
s.bind(("", 0))
print(s.getsockname()[1])'
}

is_bound()
{
	command grep -qi "$(printf ':%04X ' "$1")" /proc/net/udp /proc/net/udp6
}

# proxy HOST OPTION…: from $port to $target.
proxy()
{
	local host=$1
	shift
	port=$(free_port)
	target=$(free_port)
	env --default-signal=INT,TERM impair -v --stats --stats-file s "$@" "udp://:$port" "udp://$host:$target" >out 2>err &
	pid=$!
	wait_for 10 is_bound "$port"
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
	proxy 127.0.0.1 --bandwidth 4M --queue 20000 --direction there
	py talk 4 "$port" "$target" 400 972 >t
	stop_proxy
	between "$(json t 'd["there"]')" 205 240
	between "$(json t 'd["max_ms"]')" 36 60
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
test_case "ends by itself; a port in use and a host that is not there are said" ends_by_itself
done_testing
