#!/bin/bash
# netrecv with a key, with repair, by multicast, with many senders, and with a reader that does not read.
if [ -z "$WEIR_NETNS" ]; then
	unshare -rn true 2>/dev/null || { echo "1..0 # SKIP no network namespace can be made here"; exit 0; }
	WEIR_NETNS=1 exec unshare -rn bash "$0" "$@"
fi
. "$(dirname "$0")/../lib.sh"
ip link set lo up

hears()
{
	command grep -qi ":$(printf %04X "$1") " /proc/net/udp /proc/net/udp6
}

listen()
{
	netrecv --stats=0.05 --stats-file stats "$@" >out.weir 2>err &
	pid=$!
	wait_for 5 hears 5004
}

said()
{
	[ -s stats ] && [ "$(tail -n 1 stats | json - "int(d.get('$1', 0) >= $2)" 2>/dev/null)" = 1 ]
}

stop()
{
	kill -INT "$pid"
	wait "$pid"
	inspect --verify out.weir >report || fail "$(cat report)"
}

samples()
{
	mux -o x.wav -y "$1" 2>/dev/null
	"$PYTHON" -c 'import sys; d = open("x.wav", "rb").read(); sys.stdout.buffer.write(d[d.index(b"data") + 8:])'
}

pcm()
{
	capture -d 0.5s -c 2 -f s16 gen:noise:white,seed=5 >in.weir
	samples in.weir >a
}

srtp()
{
	pcm
	keygen -o key
	keygen -o other
	listen --no-retime --key-file key srtp://127.0.0.1:5004
	netsend -q --key-file key srtp://127.0.0.1:5004 in.weir
	wait_for 5 said frames_out 24000
	stop
	! grep -q "anyone may send" err || fail "$(cat err)"
	samples out.weir >b
	same a b
	listen --no-retime --key-file key srtp://127.0.0.1:5004
	netsend -q --key-file other srtp://127.0.0.1:5004 in.weir
	netsend -q rtp://127.0.0.1:5004 in.weir
	wait_for 5 said auth_failed 190
	stop
	eq "$(json stats 'd["received"]')" 0
	contains report "0 tracks"
	between "$(grep -c "not of this key" err)" 1 3
}

multicast()
{
	ip link set lo multicast on
	ip route add 239.0.0.0/8 dev lo 2>/dev/null || :
	pcm
	listen --no-retime 'rtp://239.1.2.3:5004?iface=lo'
	netsend -q --iface lo rtp://239.1.2.3:5004 in.weir
	wait_for 5 said frames_out 24000
	stop
	samples out.weir >b
	same a b
}

# lossy HOW FRAMES-OUT: in.weir through 4 % of loss, by netsend --redundancy HOW; nothing is missing behind it.
lossy()
{
	impair --loss 4% --seed 3 udp://127.0.0.1:5003 udp://127.0.0.1:5004 2>impaired &
	wait_for 5 hears 5003
	listen --no-retime --latency 100ms rtp://127.0.0.1:5004
	netsend -q --redundancy "$1" rtp://127.0.0.1:5003 in.weir
	wait_for 5 said frames_out "$2"
	stop
	ge "$(json stats 'd["lost"]')" 1
	eq "$(json stats 'd["lost_frames"]')" 0
	eq "$(json stats 'd["recovered"]')" "$(json stats 'd["lost"]')"
}

ge()
{
	between "$1" "$2" 1e9
}

repair()
{
	pcm
	lossy 8+4 24000
	samples out.weir >b
	same a b
}

red()
{
	capture -d 1s -c 2 -f s16 gen:noise:pink | encode --frame 5ms >in.weir
	lossy 3 48000
}

many()
{
	local i n=0
	capture -d 1s -c 1 -f s16 gen:sine >in.weir
	listen --no-retime --max-senders 40 rtp://127.0.0.1:5004
	for i in $(seq 40); do
		netsend -q --packet-time 10ms rtp://127.0.0.1:5004 in.weir &
	done
	wait_for 5 said senders 40
	wait_for 10 all_gone
	grep '"senders": 40' stats | tail -n +4 >full # the first of these tracks are still being announced
	ge "$(wc -l <full)" 3
	eq "$(tail -n 1 full | json - 'd["allocs"]')" "$(head -n 1 full | json - 'd["allocs"]')" "allocations with 40 senders"
	kill -INT "$pid"
	wait "$pid"
	inspect --verify out.weir >report || : # a machine with much else to do may lose some
	contains report "40 tracks"
	ge "$(json stats 'd["received"]')" 3900
}

all_gone()
{
	tail -n 1 stats | grep -q '"senders": 0,'
}

# Nobody reads for a second: everything is received all the same, and what was not taken is a gap that says so.
stalled()
{
	capture -d 1.6s -c 8 -f s24 gen:noise:white >in.weir
	mkfifo pipe
	netrecv --retime --latency 20ms --stats=0.05 --stats-file stats rtp://127.0.0.1:5004 >pipe 2>err &
	pid=$!
	exec 7<pipe
	wait_for 5 hears 5004
	netsend -q rtp://127.0.0.1:5004 in.weir &
	wait_for 5 said received 1
	wait $!
	cat <&7 >out.weir &
	exec 7<&-
	wait_for 5 said dropped_frames 4000
	kill -INT $pid
	wait $pid
	status_of inspect --verify out.weir >report
	eq "$status" 3
	inspect out.weir >list || :
	grep GAP list | grep -q dropped || fail "$(grep GAP list)"
	eq "$(json stats 'd["lost"]')" 0
}

test_case "srtp://: with the key whole, without it nothing" srtp
test_case "multicast" multicast
test_case "Reed-Solomon repairs PCM to the bit" repair
test_case "copies repair Opus" red
test_case "40 senders, and the heap stands still" many
test_case "a reader that does not read stops nothing" stalled
done_testing
