#!/bin/bash
# Each side knows within seconds that the other has gone, how far away it is, and is not put off by being held up.
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

said()
{
	[ -s stats ] && [ "$(tail -n 1 stats | json - "int(d.get('$1', 0) >= $2)" 2>/dev/null)" = 1 ]
}

# All have been heard, and have left.
gone()
{
	said received 6400 && [ "$(tail -n 1 stats | json - 'd["senders"]' 2>/dev/null)" = 0 ]
}

# A sender that is killed says no BYE: it is missed within seconds, although one that pauses is waited for for a minute.
sender_gone()
{
	capture -d 20s -f s16 gen:sine >in.weir
	netrecv --stats=0.1 --stats-file stats --no-retime --on-leave 'echo >left' rtp://127.0.0.1:5004 >out.weir 2>err &
	local receiver=$!
	wait_for 5 hears 5004
	netsend -q rtp://127.0.0.1:5004 in.weir &
	local sender=$!
	wait_for 5 said round_trip_us 1
	between "$(tail -n 1 stats | json - 'd["round_trip_us"]')" 1 200000
	between "$(tail -n 1 stats | json - 'd["one_way_us"]')" 0 200000
	wait_for 5 said received 420
	kill -KILL "$sender"
	wait "$sender" 2>/dev/null || :
	wait_for 6 test -e left
	kill -INT "$receiver"
	wait "$receiver"
}

receiver_gone()
{
	capture -d 20s -f s16 gen:sine >in.weir
	netrecv -q --no-retime rtp://127.0.0.1:5004 >out.weir 2>err &
	local receiver=$!
	wait_for 5 hears 5004
	netsend --stats=0.1 --stats-file stats rtp://127.0.0.1:5004 in.weir 2>senderr &
	local sender=$!
	wait_for 5 said receivers 1
	kill -KILL "$receiver"
	wait "$receiver" 2>/dev/null || :
	wait_for 7 said receivers_gone 1
	eq "$(tail -n 1 stats | json - 'd["receivers"]')" 0
	kill -INT "$sender"
	wait "$sender" || :
	eq "$(grep -c 'has not reported for 3 s' senderr)" 1
}

# Forty senders join at once, and the receiver is stopped for a while: all came, so nothing is missing when it goes on.
held_up()
{
	local name=() from=()
	for i in $(seq 40); do
		name+=(-n "t$i")
		from+=("gen:sine:freq=$((200 + 10 * i))")
	done
	capture -d 0.8s -c 1 -f s16 "${name[@]}" "${from[@]}" | encode --complexity 0 --frame 5ms >crowd.weir
	netrecv --stats=0.05 --stats-file stats --retime --latency 100ms --max-senders 40 --record-trace trace.weir rtp://127.0.0.1:5004 >out.weir 2>err &
	local receiver=$!
	wait_for 5 hears 5004
	netsend -q rtp://127.0.0.1:5004 crowd.weir &
	local sender=$!
	wait_for 5 said received 1500
	kill -STOP "$receiver"
	read -rt 0.1 <> <(:) || :
	kill -CONT "$receiver"
	wait "$sender"
	wait_for 8 gone
	kill -INT "$receiver"
	wait "$receiver"
	eq "$(json stats 'd["late_packets"], d["lost"], d["concealed_frames"]')" "[0, 0, 0]"
	# What was due more than a quarter of a second ago is not written any more, and counted.
	between "$(json stats 'd["frames_out"] + d["dropped_frames"]')" $((39 * 38400)) $((40 * 38400))
}

test_case "a killed sender is missed within seconds; round trip and one way are known" sender_gone
test_case "a killed receiver too, and it is said once" receiver_gone
test_case "many senders at once, and a receiver that is held up" held_up
done_testing
