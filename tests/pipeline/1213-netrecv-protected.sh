#!/bin/bash
# netrecv with a key, with repair, by multicast, with many senders, and with a reader that does not read.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

pcm()
{
	capture -d 0.5s -c 2 -f s16 gen:noise:white,seed=5 >in.weir
}

srtp()
{
	pcm
	keygen -o key
	keygen -o other
	hear --no-retime --key-file key srtp://127.0.0.1:5004
	netsend -q --key-file key srtp://127.0.0.1:5004 in.weir
	wait_for 10 heard frames_out 24000
	stop
	is_whole
	! grep -q "anyone may send" err || fail "$(cat err)"
	same_sound in.weir out.weir
	hear --no-retime --key-file key srtp://127.0.0.1:5004
	netsend -q --key-file other srtp://127.0.0.1:5004 in.weir
	netsend -q rtp://127.0.0.1:5004 in.weir
	wait_for 10 heard auth_failed 190
	stop
	is_whole
	eq "$(figure stats received)" 0
	contains report "0 tracks"
	between "$(grep -c "not of this key" err)" 1 3
}

multicast()
{
	pcm
	hear --no-retime 'rtp://239.1.2.3:5004?iface=lo'
	netsend -q --iface lo rtp://239.1.2.3:5004 in.weir
	wait_for 10 heard frames_out 24000
	stop
	is_whole
	same_sound in.weir out.weir
}

# lossy HOW FRAMES-OUT: in.weir through 4 % of loss, by netsend --redundancy HOW; nothing is missing behind it.
lossy()
{
	impair --loss 4% --seed 3 udp://127.0.0.1:5003 udp://127.0.0.1:5004 2>impaired &
	wait_for 10 udp_bound 5003
	hear --no-retime --latency 500ms rtp://127.0.0.1:5004
	netsend -q --redundancy "$1" rtp://127.0.0.1:5003 in.weir
	wait_for 10 heard frames_out "$2"
	stop
	is_whole
	between "$(figure stats lost)" 1 1e9
	eq "$(figure stats lost_frames)" 0
	eq "$(figure stats recovered)" "$(figure stats lost)"
}

repair()
{
	pcm
	lossy 8+4 24000
	same_sound in.weir out.weir
}

red()
{
	capture -d 1s -c 2 -f s16 gen:noise:pink | encode --frame 5ms >in.weir
	lossy 3 48000
}

# Of 4000 packets each came, or the kernel had no room for it and counted it.
many()
{
	local i dropped
	capture -d 1s -c 1 -f s16 gen:sine >in.weir
	hear --no-retime --max-senders 40 rtp://127.0.0.1:5004
	for i in $(seq 40); do
		netsend -q --packet-time 10ms rtp://127.0.0.1:5004 in.weir &
	done
	wait_for 10 heard senders 40
	wait_for 10 all_left
	dropped=$(udp_dropped 5004)
	stop
	between "$((4000 - $(figure stats received)))" 0 "$dropped" "packets that did not come, though the kernel had room"
	inspect --verify out.weir >report || [ "$dropped" != 0 ] || fail "$(cat report)"
	contains report "40 tracks"
	grep '"senders": 40' stats | tail -n +4 >full # the first of these tracks are still being announced
	between "$(wc -l <full)" 3 1e9
	eq "$(tail -n 1 full | json - 'd["allocs"]')" "$(head -n 1 full | json - 'd["allocs"]')" "allocations with 40 senders"
}

# Nobody reads for a while: everything is received all the same, and what was not taken is a gap that says so.
stalled()
{
	capture -d 1.6s -c 8 -f s24 gen:noise:white >in.weir
	mkfifo pipe
	netrecv --retime --latency 20ms --stats=0.05 --stats-file stats rtp://127.0.0.1:5004 >pipe 2>err &
	receiver=$!
	exec 7<pipe
	wait_for 10 udp_bound 5004
	netsend -q --stats=0.05 --stats-file sent rtp://127.0.0.1:5004 in.weir &
	wait_for 10 reached sent packets_out 800
	cat <&7 >out.weir &
	exec 7<&-
	wait_for 10 heard dropped_frames 4000
	wait_for 10 all_left
	eq "$(udp_dropped 5004)" 0 "datagrams that the kernel dropped"
	stop
	wait
	status_of inspect --verify out.weir >report
	eq "$status" 3
	inspect out.weir >list || :
	grep GAP list | head -n 1 | grep -q dropped || fail "$(grep GAP list)"
	# And it goes on behind it.
	sed '1,/GAP.*dropped/d' list | grep -q DATA || fail "$(tail -n 3 list)"
	eq "$(figures stats received lost)" "1600 0"
}

test_case "srtp://: with the key whole, without it nothing" srtp
test_case "multicast" multicast
test_case "Reed-Solomon repairs PCM to the bit" repair
test_case "copies repair Opus" red
test_case "40 senders, and the heap stands still" many
test_case "a reader that does not read stops nothing" stalled
done_testing
