#!/bin/bash
# outages.sh: Opus of 128 kb/s in packets of 2.5 ms from netsend to netrecv through a proxy that drops packets at random or in
# outages of 10 ms, with and without copies; what was lost for good (copies begin when the first report says that they
# are needed), and how far that is from the same packets without loss.  The tools are in PATH; works in the folder it is
# called in, in a network namespace of its own.
[ -n "$WEIR_BENCH_NET" ] || WEIR_BENCH_NET=1 exec unshare -rn bash "$0" "$@"
ip link set lo up

capture -q -d 12s -c 2 -f s16 gen:noise:pink | encode -q -b 128k --frame 2.5ms --application lowdelay >sent.weir
decode -q sent.weir >whole.weir

run()
{
	local name=$1 mode=$2 loss=$3 burst=$4 port=$5 receiver proxy
	netrecv -q --no-retime --latency 40ms "rtp://127.0.0.1:$port" >"$name.weir" 2>/dev/null &
	receiver=$!
	impair -q --loss "$loss%" $burst --direction there "udp://127.0.0.1:$((port + 5))" "udp://127.0.0.1:$port" 2>/dev/null &
	proxy=$!
	until command grep -q ":$(printf %04X $((port + 5))) " /proc/net/udp && command grep -q ":$(printf %04X "$port") " /proc/net/udp; do sleep 0.02; done
	netsend -q --redundancy "$mode" "rtp://127.0.0.1:$((port + 5))" sent.weir
	kill -INT "$receiver" "$proxy"
	wait
}

# lost FILE FROM_FRAME: for good, in percent of what was sent from there on.
lost()
{
	inspect "$1" | awk -v from="$2" '($1 == "DATA" || $1 == "GAP") && $3 >= from { n += $4; if ($1 == "GAP") gone += $4 } END { printf "%.2f", 100 * gone / n }'
}

port=5000
for network in random outages; do
	for mode in off auto; do
		for loss in 0 1 5 10 20; do
			port=$((port + 10))
			run $network.$mode.$loss $mode $loss "$([ $loss = 0 ] || [ $network = random ] || echo --burst 10ms)" $port &
		done
		wait
	done
done
for network in random outages; do
	for mode in off auto; do
		for loss in 0 1 5 10 20; do
			name=$network.$mode.$loss
			decode -q $name.weir >heard.weir 2>/dev/null
			snr=$(meter -q --compare whole.weir heard.weir 2>/dev/null | command grep -m 1 '^ *compare ' | command grep -oE 'SNR [^,]*|identical|no error' || echo 'not compared')
			printf '%-7s  redundancy %-4s  %2d %% lost on the way, %6.2f %% for good (%s %% behind the first 2 s), %s\n' \
				$network $mode $loss "$(lost $name.weir 0)" "$(lost $name.weir 96000)" "$snr"
		done
	done
done
