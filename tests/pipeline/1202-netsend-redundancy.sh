#!/bin/bash
# netsend's redundancy over a path that loses 5 % by chance: repair packets for PCM, copies of Opus that follow the reports.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

# over_loss PORT STREAM [OPTION…]: STREAM by netsend, impair and netrecv; out.weir, ss, rs (statistics).
over_loss()
{
	local port=$1 stream=$2 r i
	netrecv --latency 100ms --no-retime --stats=0.3 rtp://:$((port + 1)) >out.weir 2>rs &
	r=$!
	wait_for 10 udp_bound $((port + 1))
	impair --loss 5% --seed 3 udp://127.0.0.1:$port udp://127.0.0.1:$((port + 1)) 2>is &
	i=$!
	wait_for 10 udp_bound $port
	netsend "${@:3}" --stats=1 rtp://127.0.0.1:$port "$stream" 2>ss
	# What the receiver holds back for 100 ms comes out; then it is asked to end.
	heard() { [ "$(json rs 'd["packets_out"]')" -ge 1 ] && [ "$(json rs 'len({l["received"] for l in lines[-2:]})')" = 1 ] && [ "$(json rs 'len(lines)')" -ge 4 ]; }
	wait_for 15 heard
	kill -INT $r
	wait $r
	kill -INT $i
	wait $i || :
}

lost_frames()
{
	inspect --json "$1" | tail -1 >j || :
	json j 'd["summary"]["lost_frames"]'
}

# At 5 % the table of 8+4 leaves 0.008 %: of 600 packets none but for bad luck; without repair 30 would be missing.
repair()
{
	capture --block 240 -f s16 gen:count -c 2 -r 48000 -d 3 >c.weir
	over_loss 5000 c.weir --redundancy 8+4
	between "$(json rs 'd["lost"]')" 10 80 "packets lost on the way"
	eq "$(json ss 'd["repair_datagrams"]')" 300
	between "$(lost_frames out.weir)" 0 240 "frames missing"
	status_of inspect --verify out.weir >said
	contains said "every sample right"
	echo "# lost $(json rs 'd["lost"]'), had again $(json rs 'd["recovered"]')"
}

fixed_copies()
{
	capture gen:sweep -c 2 -r 48000 -d 3 | encode --frame 5ms --application lowdelay >o.weir
	over_loss 5010 o.weir --redundancy 2
	eq "$(json ss 'd["redundancy_level"] in (0, 2)')" true
	between "$(json ss 'd["redundant_copies"]')" 1190 1202
	between "$(json rs 'd["lost"]')" 10 80 "packets lost on the way"
	between "$(lost_frames out.weir)" 0 240 "frames missing"
}

# Nobody has asked yet: plain packets; the reports of a quarter of a second raise it.
copies_follow_reports()
{
	capture gen:sweep -c 2 -r 48000 -d 4 | encode --frame 5ms --application lowdelay >o.weir
	over_loss 5020 o.weir
	between "$(json ss 'd["rtcp_in"]')" 8 60
	between "$(json ss 'd["redundancy_level"]')" 1 3
	between "$(json ss 'd["redundant_copies"]')" 300 2400
	between "$(json ss 'd["round_trip_us"]')" 1 300000
	between "$(json rs 'd["lost"]')" 15 100 "packets lost on the way"
	# Half of a second may pass before the first copies: 5 packets in that time, 40 in all without them.
	between "$(lost_frames out.weir)" 0 $((240 * 20)) "frames missing"
	echo "# lost $(json rs 'd["lost"]'), had again $(json rs 'd["recovered"]'), level $(json ss 'd["redundancy_level"]')"
}

# A receiver that knows nothing of repair packets hears the same sound as without them.
plain_receivers()
{
	make_wav a.wav 48000 2 s16 9600
	listen a 127.0.0.1 5004
	netsend --redundancy 8+2 --ssrc 3 rtp://127.0.0.1:5004 a.wav
	wait
	eq "$(rtp eval a.rec "sorted({(x.pt, x.ssrc == 3) for x in p})")" "[(96, True), (122, False)]"
	eq "$(rtp eval a.rec "(l16([x for x in p if x.pt == 96], 2) == wav('a.wav')).all()")" True
	eq "$(rtp eval a.rec "set(steps([x.seq for x in p if x.pt == 96], 16)), max(len(x) for _, _, x in d) <= 1472")" "({1}, True)"
}

test_case "repair packets: PCM comes through 5 % of loss" repair
test_case "two copies of Opus come through 5 % of loss" fixed_copies
test_case "copies of Opus follow what receivers report" copies_follow_reports
test_case "repair packets disturb nobody" plain_receivers
done_testing
