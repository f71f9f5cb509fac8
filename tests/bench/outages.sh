#!/bin/bash
# outages.sh: Opus of 128 kb/s in packets of 2.5 ms from netsend to netrecv through a proxy that drops packets in outages of
# 10 ms, with and without copies; what was lost for good, and how far that is from the same packets without loss.  The
# tools are in PATH; works in the folder it is called in, in a network namespace of its own.
[ -n "$WEIR_BENCH_NET" ] || WEIR_BENCH_NET=1 exec unshare -rn bash "$0" "$@"
ip link set lo up

capture -q -d 12s -c 2 -f s16 gen:noise:pink | encode -q -b 128k --frame 2.5ms --application lowdelay >sent.weir
decode -q sent.weir >whole.weir

run()
{
	local mode=$1 loss=$2 port=$3 receiver proxy
	netrecv -q --no-retime --latency 40ms "rtp://127.0.0.1:$port" >"$mode$loss.weir" 2>/dev/null &
	receiver=$!
	impair -q --loss "$loss%" $([ "$loss" = 0 ] || echo --burst 10ms) --direction there "udp://127.0.0.1:$((port + 5))" "udp://127.0.0.1:$port" 2>/dev/null &
	proxy=$!
	until command grep -q ":$(printf %04X $((port + 5))) " /proc/net/udp && command grep -q ":$(printf %04X "$port") " /proc/net/udp; do sleep 0.02; done
	netsend -q --redundancy "$mode" "rtp://127.0.0.1:$((port + 5))" sent.weir
	kill -INT "$receiver" "$proxy"
	wait
}

port=5000
for mode in off auto; do
	for loss in 0 1 5 10 20; do
		port=$((port + 10))
		run $mode $loss $port &
	done
	wait
done
for mode in off auto; do
	for loss in 0 1 5 10 20; do
		decode -q "$mode$loss.weir" >heard.weir 2>/dev/null
		frames=$(inspect "$mode$loss.weir" | sed -n 's/.* \([0-9]*\) frames lost.*/\1/p' | tail -n 1)
		snr=$(meter -q --compare whole.weir heard.weir 2>/dev/null | command grep -m 1 '^ *compare ' | command grep -oE 'SNR [^,]*|identical|no error' || echo 'not compared')
		awk -v m=$mode -v l=$loss -v f="$frames" -v s="$snr" 'BEGIN { printf "redundancy %-4s  %2d %% lost on the way, %6.2f %% for good, %s\n", m, l, 100 * f / 576000, s }'
	done
done
