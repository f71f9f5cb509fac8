#!/bin/bash
# Messages and a whole file beside audio over weir://: each once, in order, whole, and not a sample of the audio is lost.
. "$(dirname "$0")/../lib.sh"

free_port()
{
	"$PYTHON" -c '
import socket
s, u = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
u.bind(("127.0.0.1", s.getsockname()[1]))
print(s.getsockname()[1])'
}

is_listening()
{
	command grep -qi "$(printf ':%04X .* 0A ' "$1")" /proc/net/tcp /proc/net/tcp6
}

over_the_link()
{
	local port id
	port=$(free_port)
	seq 1 20000 | sed 's/^/message /' >t
	head -c 3000000 /dev/urandom >big.bin
	capture -d 2s -c 2 -f s16 gen:count | mux --data t,name=cues --data file:big.bin >a.weir
	env --default-signal=INT netrecv "weir://127.0.0.1:$port" >b.weir 2>err &
	id=$!
	wait_for 10 is_listening "$port"
	netsend "weir://127.0.0.1:$port" <a.weir
	kill -INT $id
	wait $id
	inspect --verify b.weir >out
	contains out "every sample right"
	same <(demux -t cues b.weir) t
	same <(demux -t big.bin b.weir) big.bin
}

test_case "over weir://: messages, a file, audio, all of it" over_the_link
done_testing
