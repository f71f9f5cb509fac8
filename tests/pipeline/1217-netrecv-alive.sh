#!/bin/bash
# Each side knows within seconds that the other has gone, how far away it is, and is not put off by being held up.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

# A sender that is killed says no BYE: it is missed within seconds, although one that pauses is waited for for a minute.
sender_gone()
{
	capture -d 20s -f s16 gen:sine >in.weir
	hear --no-retime --on-leave 'echo >left' rtp://127.0.0.1:5004
	impair --delay 50ms udp://127.0.0.1:5003 udp://127.0.0.1:5004 2>impaired &
	wait_for 10 udp_bound 5003
	netsend -q rtp://127.0.0.1:5003 in.weir &
	local sender=$! begin
	wait_for 10 heard round_trip_us 1
	wait_for 10 heard one_way_us 1
	between "$(figure stats round_trip_us)" 100000 600000
	between "$(figure stats one_way_us)" 50000 300000
	wait_for 10 heard received 420
	kill -KILL "$sender"
	begin=${EPOCHREALTIME/./}
	wait "$sender" || :
	wait_for 20 test -e left
	# After three of the intervals in which a sender of ours says something, which are a second, and not before.
	between $(((${EPOCHREALTIME/./} - begin) / 1000)) 2000 15000 "ms until it was missed"
	stop
}

receiver_gone()
{
	capture -d 20s -f s16 gen:sine >in.weir
	hear --no-retime rtp://127.0.0.1:5004
	netsend --stats=0.1 --stats-file sent rtp://127.0.0.1:5004 in.weir 2>senderr &
	local sender=$!
	wait_for 10 reached sent receivers 1
	kill -KILL "$receiver"
	wait "$receiver" || :
	wait_for 20 reached sent receivers_gone 1
	eq "$(figures sent receivers receivers_gone)" "0 1"
	kill -INT "$sender"
	wait "$sender"
	eq "$(grep -c 'has not reported for 3 s' senderr)" 1
}

# Forty senders join at once, and the receiver is stopped for longer than packets wait: all came, so nothing is missing when it goes on, or
# no more than those were late for that came too late.  Which, a replay of what came says, which nobody holds up.
held_up()
{
	local name=() from=() i sender
	for i in $(seq 40); do
		name+=(-n "t$i")
		from+=("gen:sine:freq=$((200 + 10 * i))")
	done
	capture -d 1s -c 1 -f s16 "${name[@]}" "${from[@]}" | encode --complexity 0 >crowd.weir
	hear --retime --latency 200ms --max-senders 40 --record-trace trace.weir rtp://127.0.0.1:5004
	netsend -q rtp://127.0.0.1:5004 crowd.weir &
	sender=$!
	wait_for 10 heard received 400
	kill -STOP "$receiver"
	wait_for 10 is_behind 600
	kill -CONT "$receiver"
	wait "$sender"
	wait_for 20 all_left
	stop
	netrecv --replay trace.weir --retime --latency 200ms --max-senders 40 --stats=60 --stats-file replayed >replayed.weir
	eq "$(figures stats received lost late_packets concealed_frames)" "$(figures replayed received lost late_packets concealed_frames)"
	eq "$(figures stats received lost)" "2040 0"
	# What was due more than a quarter of a second ago is not written any more, and counted: not a frame more or less.
	eq $(($(figure stats frames_out) + $(figure stats dropped_frames))) $(($(figure replayed frames_out) + $(figure replayed dropped_frames)))
	[ "$(figure replayed concealed_frames)" != 0 ] || eq $(($(figure stats frames_out) + $(figure stats dropped_frames))) $((40 * 48000))
}

# is_behind DATAGRAMS: at least so many bytes as they have wait for whoever is stopped.
is_behind()
{
	local bytes=0 waiting
	# netrecv may have two sockets there.
	for waiting in $(awk '$2 ~ ":138C$" { split($5, q, ":"); print q[2] }' /proc/net/udp); do
		bytes=$((bytes + 16#$waiting))
	done
	[ $bytes -ge $((768 * $1)) ]
}

test_case "a killed sender is missed within seconds; round trip and one way are known" sender_gone
test_case "a killed receiver too, and it is said once" receiver_gone
test_case "many senders at once, and a receiver that is held up" held_up
done_testing
