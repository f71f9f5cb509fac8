#!/bin/bash
# Strangers: floods of bad datagrams at full speed, and crowds of bad connections, while a stream plays.  It does not notice.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

SSRC=12345
LATENCY_MS=100

hostile()
{
	"$PYTHON" "$TOP/tests/pipeline/hostile.py" "$@"
}

# The same in the background, by itself, so that it ends with the case.
beside()
{
	exec "$PYTHON" "$TOP/tests/pipeline/hostile.py" "$@"
}

tcp_bound()
{
	command grep -qi ":$(printf %04X "$1") .* 0A " /proc/net/tcp /proc/net/tcp6
}

# hear ARG…: netrecv in the background, $pid; into out.weir by a pipe, so that it plays.
hear()
{
	rm -f stats # what the last one said is not what this one says
	mkfifo -m 600 pipe 2>/dev/null || :
	cat pipe >out.weir &
	netrecv --retime --latency ${LATENCY_MS}ms --stats=0.05 --stats-file stats "$@" >pipe 2>err &
	pid=$!
	wait_for 5 test -s stats
}

stop()
{
	kill -INT "$pid"
	wait "$pid"
	inspect --verify out.weir >report || fail "$(cat report)"
}

said()
{
	[ "$(tail -n 1 stats | json - "int(d['$1'] >= $2)" 2>/dev/null)" = 1 ]
}

now()
{
	tail -n 1 stats | json - "d['$1']"
}

cpu_ms()
{
	awk '{ print ($14 + $15) * 10 }' "/proc/$pid/stat"
}

peak_kib()
{
	awk '/VmHWM/ { print $2 }' "/proc/$pid/status"
}

# ran PID: µs that it had a processor, and µs that it could have used one and had none.
ran()
{
	awk '{ print int($1 / 1000), int($2 / 1000) }' "/proc/$1/schedstat" 2>/dev/null || echo 0 0
}

# Statistics that were written after now.
fresh()
{
	local n=$(wc -l <stats)
	wait_for 5 newer $((n + 2))
}

newer()
{
	[ "$(wc -l <stats)" -ge "$1" ]
}

counts()
{
	fresh
	tail -n 1 stats | json - '" ".join(map(str, (d["lost"], d["filtered"], d["kernel_dropped"], d["late_packets"] + d["concealed_frames"] + d["dropped_frames"])))'
}

# flood KIND SOURCE SECONDS: at full speed, against all that others do here; what each datagram cost, and what became of the stream.
# Who had no processor for longer than the stream waits cannot play on: that is counted (the sender's time as well as netrecv's), shown, and
# only then glitches are let pass.  No packet is lost, and none of the stream's finds no room; but where the flood comes under the stream's own
# address and port the buffer may overflow for want of a processor.
flood()
{
	local cpu sent_waited n seconds lost filtered dropped glitches a b
	read -r lost filtered dropped glitches <<<"$(counts)"
	read -r cpu waited <<<"$(ran $pid)"
	read -r a sent_waited <<<"$(ran $sender)"
	read -r n seconds <<<"$("$B/tests/hostile/flood" "$1" "$2" 127.0.0.1 5004 "$3" $SSRC own.rec)"
	[ "$n" -gt 0 ] || fail "only $n datagrams were sent"
	read -r a b <<<"$(ran $pid)"
	cpu=$((a - cpu)) waited=$((b - waited))
	read -r a b <<<"$(ran $sender)"
	sent_waited=$((b - sent_waited))
	read -r a b n_dropped n_glitches <<<"$(counts)"
	n_lost=$((a - lost)) n_filtered=$((b - filtered)) n_dropped=$((n_dropped - dropped)) n_glitches=$((n_glitches - glitches))
	starved=$((waited + sent_waited))
	echo "# $what, $1 from $2: $n in $seconds s, $(awk "BEGIN { printf \"%.0f a ms, %.2f µs of CPU each\", $n / $seconds / 1e3, ($cpu - $seconds * $usual) / $n }")," \
		"$n_filtered filtered, $n_dropped found no room; $n_lost lost, $n_glitches late or concealed; without a processor: netrecv $((waited / 1000)) ms, netsend $((sent_waited / 1000)) ms" >&3
	eq "$(now senders)" 1 "senders in a flood of $1 from $2"
}

# where SOURCE: "own" is the stream's own, address and port.
where()
{
	[ "$1" = own ] && cat own.rec.from || echo "$1"
}

gone()
{
	[ "$(now senders)" = 0 ]
}

# The stream played on as if nobody had been there.
unharmed()
{
	local overflowed=0
	case $1 in
	*@own) [ "$n_dropped" = 0 ] || [ "$waited" -lt 5000 ] || overflowed=1 ;;
	*) eq "$n_dropped" 0 "datagrams that found no room, $1" ;;
	esac
	[ $overflowed = 1 ] || eq "$n_lost" 0 "packets lost, $1"
	[ "$n_glitches" = 0 ] || [ $overflowed = 1 ] || [ $starved -gt $((LATENCY_MS * 1000)) ] || fail "$1: $n_glitches packets and frames late, concealed or dropped"
}

# flooded FLOODS URL NETSEND-AND-NETRECV-ARG…: the stream, and the floods beside it
flooded()
{
	local floods=$1 one url=$2 cpu n=0
	shift 2
	for one in $floods; do
		n=$((n + 1))
	done
	capture -d $((2000 + 700 * n))ms -c 2 -f s16 gen:noise:white,seed=5 >in.weir
	beside tap own.rec 5006 60 &
	wait_for 5 udp_bound 5006
	hear "$@" "$url"
	netsend -q "$@" --ssrc $SSRC ${url} ${url%5004}5006 in.weir &
	sender=$!
	wait_for 5 test -e own.rec
	wait_for 5 said received 100
	fresh
	# What it costs without a flood.
	local peak=$(peak_kib) allocs=$(now allocs)
	read -r cpu one <<<"$(ran $pid)"
	sleep 0.3
	read -r usual one <<<"$(ran $pid)"
	usual=$(((usual - cpu) * 10 / 3)) # µs a second
	for one in $floods; do
		flood ${one%@*} $(where ${one#*@}) 0.3
		unharmed "$one"
	done
	between "$(peak_kib)" 1 $((peak + 300)) "memory at its peak, KiB"
	eq "$(now allocs)" "$allocs" "allocations"
	wait $sender
	wait_for 8 gone
	stop
	contains report "1 track"
	eq "$(json stats 'd["received"] + d["lost"]')" $((400 + 140 * n)) "packets of the stream"
	between "$(wc -l <err)" 0 5 "lines said in ten seconds"
}

plain()
{
	what="rtp://"
	flooded "random@127.0.0.9 random@127.0.0.1 short@127.0.0.9 ssrc@127.0.0.9 ssrc@many spoof@127.0.0.9 rtcp@127.0.0.9 replay@127.0.0.9 cut@127.0.0.9" rtp://127.0.0.1:5004
	[ "$(json stats 'd["filtered"]')" -gt 10000 ]
}

# With a key, not even who speaks from the sender's own address does anything.
protected()
{
	what="srtp://"
	keygen -o key
	flooded "random@127.0.0.1 ssrc@127.0.0.1 ssrc@many spoof@127.0.0.1 rtcp@127.0.0.1 replay@127.0.0.1 flipped@127.0.0.1 cut@127.0.0.1" srtp://127.0.0.1:5004 --key-file key
	[ "$(json stats 'd["filtered"]')" -gt 10000 ]
}

# Nor from his port: what the system cannot tell apart is refused one by one.
disguised()
{
	what="srtp://"
	keygen -o key
	flooded "replay@own flipped@own spoof@own rtcp@own cut@own random@own" srtp://127.0.0.1:5004 --key-file key
	between "$(json stats 'd["auth_failed"]')" 1000 1e9
	between "$(json stats 'd["replayed"]')" 1000 1e9
}

# Somebody who is new is heard in the middle of a flood of others who seem new; no more than --max-senders.
newcomer()
{
	capture -d 2s -c 1 -f s16 gen:sine >in.weir
	hear --max-senders 2 rtp://127.0.0.1:5004
	"$B/tests/hostile/flood" ssrc 127.0.0.9 127.0.0.1 5004 2.5 >/dev/null &
	wait_for 5 said strangers 2000
	# Without RTCP, which would say at once what it is: two packets in sequence must.
	netsend -q --rtcp off rtp://127.0.0.1:5004 in.weir &
	wait_for 2 said received 50
	netsend -q rtp://127.0.0.1:5004 in.weir &
	wait_for 2 said senders 2
	capture -d 0.3s -c 1 -f s16 gen:sine | netsend -q rtp://127.0.0.1:5004
	stop
	contains report "2 tracks"
	eq "$(grep -c max-senders err)" 1
}

# Also from the address of the flood, and while it comes from everywhere: not at once, but before long.
newcomer_there()
{
	local source
	capture -d 9s -c 1 -f s16 gen:sine >in.weir
	for source in 127.0.0.1 many; do
		hear rtp://127.0.0.1:5004
		"$B/tests/hostile/flood" ssrc $source 127.0.0.1 5004 9 >/dev/null &
		local flood=$!
		wait_for 5 said filtered 10000
		netsend -q --rtcp off rtp://127.0.0.1:5004 in.weir &
		local start=$(date +%s%N)
		wait_for 8 said received 20
		echo "# heard after $((($(date +%s%N) - start) / 1000000)) ms in a flood from $source" >&3
		kill $flood $!
		wait $flood $! || :
		stop
		contains report "1 track"
	done
}

# Whatever a stranger asks, less comes back than was sent.
answers()
{
	capture -d 1s -c 1 -f s16 gen:noise:white,seed=5 >in.weir
	beside tap own.rec 5006 100 &
	wait_for 5 udp_bound 5006
	netsend -q --packet-time 1ms rtp://127.0.0.1:5006 in.weir
	hear rtp://127.0.0.1:5004
	hostile ask own.rec 5004 4 2 >asked
	stop
	contains report "1 track"
	read -r sent back <asked
	[ "$sent" -gt 200 ] && [ "$back" -lt "$sent" ] || fail "$sent bytes sent, $back came back"
	# And one who goes on sending has his reports.
	hear rtp://127.0.0.1:5004
	hostile ask own.rec 5004 100 1 >asked
	stop
	read -r sent back <asked
	[ "$back" -gt 0 ] && [ "$back" -lt "$sent" ] || fail "$sent bytes sent, $back came back"
}

# Whoever has another key, or none, or all datagrams of somebody with another: nothing of it is heard, no command runs, not a byte goes
# back, and what is said is the same line for all.
wrong_key()
{
	local how
	capture -d 1s -c 1 -f s16 gen:noise:white,seed=5 >in.weir
	keygen -o key
	keygen -o other
	for how in srtp rtp; do
		rm -f own.rec* joined
		beside tap own.rec 5006 100 &
		local tap=$!
		wait_for 5 udp_bound 5006
		WEIR_KEY=$(cat other) netsend -q --packet-time 1ms $how://127.0.0.1:5006 in.weir
		kill $tap
		wait $tap || :
		hear --key-file key --on-join "touch joined" srtp://127.0.0.1:5004
		hostile ask own.rec 5004 100 1 >asked
		stop
		read -r sent back <asked
		[ "$sent" -gt 5000 ] || fail "only $sent bytes were sent"
		eq "$back" 0 "bytes that came back"
		eq "$(json stats 'd["received"], d["senders"], d["frames_out"], d["auth_failed"]')" "[0, 0, 0, 100]"
		contains report "0 tracks"
		[ ! -e joined ]
		one_line err 'netrecv: srtp: packets that are not of this key: another key, damage, or a stranger; dropped'
	done
}

# Two hundred connections at once, of those who say nothing, or nonsense; a sender beside them, and one who comes later.
connections()
{
	local how
	capture -d 3s -c 1 -f s16 gen:sine >sound.weir
	"$PYTHON" "$TOP/tests/pipeline/datatrack.py" make 2000 60 >in.weir
	keygen -o key
	for how in "" "--key-file key"; do
		hear $how weir://127.0.0.1:5004
		wait_for 5 tcp_bound 5004
		beside links 5004 3 200 >asked &
		local crowd=$!
		sleep 0.3
		local peak=$(peak_kib) before=$(cpu_ms)
		netsend -q $how weir://127.0.0.1:5004 in.weir
		netsend -q $how weir://127.0.0.1:5004 in.weir
		wait $crowd
		echo "# weir:// ${how:-plain}: $(cut -d' ' -f1 asked) bad connections in 3 s cost $(($(cpu_ms) - before)) ms of CPU" >&3
		between "$(peak_kib)" 1 $((peak + 20000)) "memory at its peak, KiB"
		stop
		contains report "2 tracks"
		"$PYTHON" "$TOP/tests/pipeline/datatrack.py" messages in.weir | sort | sed 's/^/2 /' >a
		"$PYTHON" "$TOP/tests/pipeline/datatrack.py" messages out.weir | sort | uniq -c | sed 's/^ *//' >b
		same a b
		between "$(wc -l <err)" 0 3
		[ -z "$how" ] || eq "$(cut -d' ' -f2 asked)" 0 "bytes told to those without the key"
	done
}

# Those who connect and say nothing fill all places, from one address: somebody from another has one all the same, at once.
crowd()
{
	"$PYTHON" "$TOP/tests/pipeline/datatrack.py" make 20 60 >in.weir
	hear --max-senders 2 weir://127.0.0.1:5004
	wait_for 5 tcp_bound 5004
	beside hold 5004 40 &
	wait_for 10 test -e held
	local start=$(date +%s%N)
	netsend -q weir://127.0.0.1:5004 in.weir
	between $((($(date +%s%N) - start) / 1000000)) 0 3000 "milliseconds until a sender had a place and was done"
	stop
	contains report "1 track"
}

# Who is not where the sound goes to has no say about it.
reports()
{
	capture -d 2s -c 1 -f s16 gen:sine >in.weir
	netsend -q --ssrc $SSRC --stats=0.05 --stats-file stats rtp://127.0.0.1:5004 in.weir &
	local sender=$!
	wait_for 5 test -s stats
	hostile reports $SSRC 127.0.0.9
	hostile reports $SSRC 127.0.0.1
	wait_for 2 said rtcp_in 10
	wait $sender
	eq "$(json stats 'd["rtcp_in"]')" 10 "reports believed"
}

# A recording may come from anywhere: one whose clock jumps a century ends, with words.
recordings()
{
	"$PYTHON" - <<'PY'
import struct
udp = struct.pack(">HHHH", 4000, 5004, 8 + 100, 0) + bytes([0x80, 11]) + bytes(98)
ip = struct.pack(">BBHHHBBH4B4B", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, 192, 0, 2, 1, 192, 0, 2, 2) + udp
with open("x.pcap", "wb") as f:
    f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
    for s in (0, 4000000000):
        f.write(struct.pack("<IIII", s, 0, len(ip), len(ip)) + ip)
PY
	"$PYTHON" "$TOP/tests/pipeline/datatrack.py" make 3 60 >x.weir # each packet's first bytes are some time or other
	expect_status 1 timeout 10 netrecv --replay x.pcap rtp://:5004 >out.weir 2>err
	one_line err "x.pcap.*31 days"
	status_of timeout 10 netrecv --replay x.weir >out.weir 2>err
	ne "$status" 124
}

exec 3>&1
test_case "rtp:// plays on through floods of bad datagrams" plain
test_case "srtp:// plays on through floods, even from the sender's address" protected
test_case "srtp:// plays on through floods from the sender's address and port" disguised
test_case "a flood of new SSRCs keeps no newcomer out" newcomer
test_case "a flood from his own address, or from everywhere, keeps no newcomer out for long" newcomer_there
test_case "no answer is larger than what asked for it" answers
test_case "a wrong key hears and learns nothing" wrong_key
test_case "weir:// goes on through two hundred bad connections" connections
test_case "a crowd that says nothing keeps nobody out of weir://" crowd
test_case "a recording whose clock jumps a century ends" recordings
test_case "netsend believes no report from elsewhere" reports
done_testing
