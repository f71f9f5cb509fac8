#!/bin/bash
# weir://: everything that a stream holds, to another machine; each message once, whatever happens to the connection.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

datatrack()
{
	"$PYTHON" "$TOP/tests/pipeline/datatrack.py" "$@"
}

# same_messages IN OUT: all of them, in order, to the byte
same_messages()
{
	datatrack messages "$1" >a.msgs
	datatrack messages "$2" >b.msgs
	[ -s a.msgs ] || fail "no messages in $1"
	same a.msgs b.msgs
	inspect --verify "$2" >report || fail "$(cat report)"
}

plain_and_sealed()
{
	datatrack make 5000 60 >in.weir
	keygen -o key
	local how
	for how in "" "--key-file key"; do
		hear $how weir://127.0.0.1:5004
		netsend $how weir://127.0.0.1:5004 in.weir 2>send.err
		stop
		same_messages in.weir out.weir
		empty send.err
	done
}

# Two connections' worth of tracks come under ids of their own; names stay.
two_senders()
{
	datatrack make 500 40 >in.weir
	hear weir://127.0.0.1:5004
	netsend weir://127.0.0.1:5004 in.weir &
	netsend weir://127.0.0.1:5004 in.weir
	wait $!
	stop
	is_whole
	contains report "2 tracks"
	datatrack messages in.weir | sort >a
	datatrack messages out.weir | sort | uniq -c | sed 's/^ *//' >b
	sed 's/^/2 /' a >c
	same b c
}

# A receiver that is begun after the sender; and one that is stopped and begun again misses what it missed, and says so by seq.
receiver_comes_late()
{
	datatrack make 300 40 >in.weir
	netsend weir://127.0.0.1:5004 in.weir 2>send.err &
	local sender=$!
	wait_for 10 test -s send.err
	hear weir://127.0.0.1:5004
	wait $sender
	stop
	same_messages in.weir out.weir
	contains send.err "nobody listens there"
}

# Sound is waited for, too, when it is no event of now: all of it arrives, beside the messages.
late_with_sound()
{
	capture -d 1s -f s16 gen:count >sound.weir
	seq 1 100 >lines
	mux --data lines,name=cues sound.weir >in.weir
	netsend weir://127.0.0.1:5004 in.weir 2>send.err &
	local sender=$!
	wait_for 10 test -s send.err
	hear --no-retime --latency 100ms weir://127.0.0.1:5004
	wait $sender
	wait_for 10 heard frames_out 48000
	stop
	is_whole
	contains report "48000 frames (every sample right)"
	demux -t cues out.weir >got
	same lines got
}

# Retimed, messages stand beside the sound that they stood beside.
beside_their_sound()
{
	capture -d 2s -f s16 -c 1 gen:count >sound.weir
	datatrack make 2000 40 >data.weir
	mux sound.weir data.weir >in.weir
	hear --retime --latency 60ms weir://127.0.0.1:5004
	netsend weir://127.0.0.1:5004 in.weir
	wait_for 10 heard frames_out 95000
	stop
	datatrack shift out.weir 40000 >shifts
	between "$(cut -d' ' -f3 shifts)" -30 30 "ms between a message and its sound ($(cat shifts))"
}

# tracks FILE: number, kind and name of each, a line a track.
tracks()
{
	inspect --json "$1" | "$PYTHON" -c '
import json, sys
seen = {}
for line in sys.stdin:
    d = json.loads(line)
    if d.get("type") == "TRACK":
        seen[d["track"]] = (d["kind"], d["name"])
print(*(f"{n} {k} {name}" for n, (k, name) in sorted(seen.items())), sep="\n")'
}

# Who is alone keeps the numbers that his tracks have; of others the names tell which is which.
numbers_stay()
{
	capture -d 1s -f s16 -n one gen:count >sound.weir
	datatrack make 50 40 >data.weir
	mux data.weir sound.weir data.weir >in.weir
	tracks in.weir >wanted
	eq "$(cut -d' ' -f1,2 wanted | tr '\n' ' ')" "1 data 2 audio 3 data "
	local how
	for how in --retime --no-retime; do
		hear $how --latency 60ms weir://127.0.0.1:5004
		netsend weir://127.0.0.1:5004 in.weir
		wait_for 10 heard frames_out 47000
		stop
		tracks out.weir >got
		same got wanted
	done
	hear weir://127.0.0.1:5004
	netsend weir://127.0.0.1:5004 data.weir
	netsend weir://127.0.0.1:5004 data.weir
	stop
	eq "$(tracks out.weir | tr '\n' ' ')" "1 data cues 3 data cues "
}

nobody_listens()
{
	datatrack make 3 40 >in.weir
	netsend weir://127.0.0.1:5004 in.weir 2>send.err &
	local sender=$!
	wait_for 10 test -s send.err
	kill -INT $sender
	expect_status 0 wait $sender
	one_line send.err "127.0.0.1:5004.*nobody listens there"
}

wrong_key()
{
	datatrack make 300 40 >in.weir
	keygen -o key
	keygen -o other
	hear --key-file key weir://127.0.0.1:5004
	local how
	for how in "" "--key-file other"; do
		netsend $how weir://127.0.0.1:5004 in.weir 2>send.err &
		local sender=$!
		wait_for 10 test -s send.err
		kill -INT $sender
		wait $sender || :
		contains send.err "127.0.0.1:5004"
	done
	stop
	is_whole
	contains report "0 tracks"
}

# A key of SDES form is for other programs.
foreign_key()
{
	keygen --sdes -o key
	datatrack make 3 40 >in.weir
	expect_status 2 netsend --key-file key weir://127.0.0.1:5004 in.weir 2>err
	one_line err "weir keygen"
}

# Real loss under TCP, and five connections torn down: 100,000 messages.
loss_and_breaks()
{
	datatrack make 100000 100 >in.weir
	keygen -o key
	"$PYTHON" "$TOP/tests/pipeline/lossy.py" 10 1 5 netrecv --key-file key weir://:5004 >out.weir 2>err &
	receiver=$!
	wait_for 10 grep -q ready err
	netsend --stats --stats-file stats --key-file key weir://10.9.0.2:5004 in.weir 2>send.err
	stop
	same_messages in.weir out.weir
	contains err "5 connections torn down"
	between "$(figure stats data_sent_again)" 1 1e9
	eq "$(figure stats data_lost)" 0
	command grep lossy: err >&2 || :
}

# Who has no key cannot use up the 65,535 numbers of tracks: 1024 at once, then one a second.  With a key they are his.
many_tracks()
{
	datatrack many 3000 >in.weir
	keygen -o key
	hear weir://127.0.0.1:5004
	netsend weir://127.0.0.1:5004 in.weir
	stop
	is_whole
	between "$(sed -n 's/.* \([0-9]*\) tracks.*/\1/p' report)" 1024 1060
	between "$(figure stats data_refused)" 1940 1976
	contains err "too many new ones lately"
	hear --key-file key weir://127.0.0.1:5004
	netsend --key-file key weir://127.0.0.1:5004 in.weir
	stop
	is_whole
	contains report "3000 tracks"
	eq "$(figure stats data_refused)" 0
}

# A name has two addresses, and the receiver is at the second: data and sound both go there.
other_address()
{
	printf '::1 studio.test\n127.0.0.1 studio.test\n' >hosts
	capture -d 1s -f s16 gen:count >sound.weir
	datatrack make 50 40 >data.weir
	mux sound.weir data.weir >in.weir
	hear --no-retime weir://127.0.0.1:5004
	unshare -m bash -c 'mount --bind hosts /etc/hosts; exec netsend weir://studio.test:5004 in.weir' 2>send.err
	wait_for 10 heard frames_out 48000
	stop
	is_whole
	contains report "50 messages"
	contains report "48000 frames"
}

# 64 KiB messages, 256 MiB: memory stays flat in both, and sound beside it loses nothing.
bulk_beside_sound()
{
	hear --max-senders 4 --no-retime --latency 100ms weir://127.0.0.1:5004
	capture --realtime -d 3s -f s24 gen:count | netsend weir://127.0.0.1:5004 &
	local sound=$!
	datatrack make 4096 65536 | netsend --stats=0.2 --stats-file sendstats weir://127.0.0.1:5004 -
	wait $sound
	wait_for 10 heard frames_out 144000
	cat "/proc/$receiver/status" >status
	stop
	is_whole
	contains report "4096 messages"
	contains report "144000 frames"
	between "$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' status)" 1 20000
	between "$(figure sendstats rss_kib)" 1 20000
	# The heap has no part in it, either.
	eq "$("$PYTHON" -c 'import json, sys; d = [json.loads(x) for x in open(sys.argv[1])]; d = [x["allocs"] for x in d if x["data_packets"] > 100]; print(len(set(d[:-1])) <= 1)' sendstats)" True
}

test_case "data goes over weir://, plain and sealed" plain_and_sealed
test_case "two senders have tracks of their own" two_senders
test_case "a receiver that comes late gets all" receiver_comes_late
test_case "sound beside messages waits for a late receiver" late_with_sound
test_case "retimed, messages stay beside their sound" beside_their_sound
test_case "tracks keep their numbers" numbers_stay
test_case "a sender whom nobody hears says so, and ends when asked to" nobody_listens
test_case "another key, or none, gets nothing in" wrong_key
test_case "a key for other programs is refused" foreign_key
if [ -e /etc/hosts ] && unshare -m true 2>/dev/null; then
	test_case "of the addresses of a name the one that answers is taken" other_address
else
	skip_case "the addresses of a name" "no mounts can be made here, or there is no /etc/hosts to mount over"
fi
test_case "tracks of strangers have a limit" many_tracks
if [ -c /dev/net/tun ]; then
	test_case "100,000 messages across 10 % loss and five torn connections: each once, in order" loss_and_breaks
else
	skip_case "100,000 messages across 10 % loss" "no /dev/net/tun here"
fi
test_case "256 MiB of data beside sound: flat memory, no sample lost" bulk_beside_sound
done_testing
