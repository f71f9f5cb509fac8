#!/bin/bash
# netsend to netrecv over the loopback of a network namespace of our own: whole, and the same to the bit.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

# whole FORMAT CHANNELS ARGS-OF-NETSEND…
whole()
{
	local format=$1 channels=$2 frames=24000
	shift 2
	capture -d 0.5s -c "$channels" -f "$format" gen:noise:white,seed=5 >in.weir
	hear --no-retime rtp://127.0.0.1:5004
	netsend -q "$@" rtp://127.0.0.1:5004 in.weir
	wait_for 10 heard frames_out "$frames"
	stop
	is_whole
	contains report "$frames frames, 0 gaps"
	same_sound in.weir out.weir
}

# Sequence numbers and timestamps that wrap in the first half of it.
wraps()
{
	whole s16 2 --packet-time 2.5ms --seq 65500 --timestamp 4294960000
	eq "$(figure stats lost)" 0
	eq "$(figure stats received)" 200
}

retimed()
{
	capture -d 0.6s -c 2 -f s24 gen:noise:white,seed=6 >in.weir
	sends in rtp://127.0.0.1:5004 in.weir
	replay in --retime --latency 60ms
	is_whole
	same_sound in.weir out.weir
	eq "$(figure stats concealed_frames)" 0
}

opus()
{
	capture -d 0.5s -c 2 -f s16 gen:sweep | encode --frame 5ms >in.weir
	hear --no-retime rtp://127.0.0.1:5004
	netsend -q rtp://127.0.0.1:5004 in.weir
	wait_for 10 heard received 100
	stop
	decode in.weir >in.dec
	decode out.weir >out.dec
	same_sound in.dec out.dec
}

# Two senders and a second flow: tracks of their own, under the names they have there.
several()
{
	capture -d 0.4s -c 1 -n left -n right gen:sine:freq=500 gen:sine:freq=700 >two.weir
	capture -d 0.4s -c 1 -n third gen:sine:freq=900 >one.weir
	hear --no-retime rtp://127.0.0.1:5004
	netsend -q rtp://127.0.0.1:5004 two.weir &
	netsend -q rtp://127.0.0.1:5004 one.weir
	wait $!
	wait_for 10 heard frames_out 57600
	stop
	is_whole
	inspect out.weir | grep -o '"[a-z]*"' | sort | tr '\n' ' ' >names
	contains names '"left" "right" "third"'
}

# A cap on senders, and a limit on who may send.
limits()
{
	capture -d 0.6s -c 1 gen:sine:freq=500 >one.weir
	capture -d 0.2s -c 1 gen:sine:freq=500 >short.weir
	hear --no-retime --max-senders 1 --from 127.0.0.2/31 rtp://127.0.0.1:5004
	netsend -q rtp://127.0.0.1:5004 one.weir
	wait_for 10 heard strangers 20
	stop
	eq "$(figure stats received)" 0
	hear --no-retime --max-senders 1 --from 127.0.0.0/31 --from ::1 rtp://127.0.0.1:5004
	netsend -q rtp://127.0.0.1:5004 one.weir &
	wait_for 10 heard senders 1
	netsend -q rtp://127.0.0.1:5004 short.weir
	wait $!
	wait_for 10 heard frames_out 28800
	stop
	contains err "a sender more than --max-senders 1"
	is_whole
	contains report "1 track"
}

ip6()
{
	capture -d 0.3s -c 1 -f s16 gen:noise:white >in.weir
	hear --no-retime 'rtp://[::1]:5004'
	netsend -q 'rtp://[::1]:5004' in.weir
	wait_for 10 heard frames_out 14400
	stop
	same_sound in.weir out.weir
}

# Commands on join and leave find the track's facts, and their output is not in the stream.
commands()
{
	capture -d 0.3s -c 1 -n talk gen:sine >in.weir
	hear --no-retime --on-join 'echo "$WEIR_EVENT $WEIR_TRACK $WEIR_NAME $WEIR_CODEC $WEIR_RATE $WEIR_CHANNELS"; echo x >joined' \
		--on-leave 'echo "$WEIR_EVENT $WEIR_NAME" >left' rtp://127.0.0.1:5004
	netsend -q rtp://127.0.0.1:5004 in.weir
	wait_for 5 test -s left
	stop
	contains err "join 1 talk "
	contains err " 48000 1"
	eq "$(cat left)" "leave talk"
	is_whole
}

mistakes()
{
	expect_status 2 netrecv 2>e </dev/null
	one_line e 'URL: missing'
	expect_status 2 timeout 5 netrecv --latency never rtp://:5004 2>e </dev/null >o
	one_line e "latency.*'never'"
	expect_status 2 timeout 5 netrecv --from nobody rtp://:5004 2>e </dev/null >o
	one_line e "'nobody' is no address"
	expect_status 2 timeout 5 netrecv --from 10.0.0.0/33 rtp://:5004 2>e </dev/null >o
	one_line e '0…32 bits'
	expect_status 2 timeout 5 netrecv udp://:5004 2>e </dev/null >o
	hear rtp://127.0.0.1:5004
	contains err "anyone may send here"
	status_of timeout 5 netrecv rtp://127.0.0.1:5004 >o 2>e
	eq "$status" 1
	contains e "5004"
	stop
}

test_case "L16 through netsend | netrecv is whole and bit-identical" whole s16 2
test_case "L24 too, with four channels" whole s24 4
test_case "across the wrap of sequence numbers and timestamps" wraps
test_case "played on the local clock it is bit-identical as well" retimed
test_case "Opus passes undecoded" opus
test_case "several senders are tracks of their own" several
test_case "--max-senders and --from" limits
test_case "IPv6" ip6
test_case "--on-join and --on-leave" commands
test_case "mistakes are said in a line" mistakes
done_testing
