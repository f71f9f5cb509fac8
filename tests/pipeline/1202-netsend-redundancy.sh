#!/bin/bash
# netsend's redundancy over a path that loses 5 % by chance: repair packets for PCM, copies of Opus that follow the reports.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

# over_loss STREAM [OPTION…]: STREAM by netsend, impair and netrecv; out.weir, sent and stats (statistics).  What it waits for lost packets
# is no part of this, and so long that no machine is late.
over_loss()
{
	local proxy
	hear --latency 500ms --no-retime rtp://:5004
	impair --loss 5% --seed 3 udp://127.0.0.1:5003 udp://127.0.0.1:5004 2>impaired &
	proxy=$!
	wait_for 10 udp_bound 5003
	netsend "${@:2}" --stats=1 --stats-file sent rtp://127.0.0.1:5003 "$1"
	wait_for 15 all_left
	eq "$(udp_dropped 5003) $(udp_dropped 5004)" "0 0" "datagrams that the kernel dropped"
	stop
	kill -INT $proxy
	wait $proxy
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
	over_loss c.weir --redundancy 8+4
	between "$(figure stats lost)" 10 80 "packets lost on the way"
	eq "$(figure sent repair_datagrams)" 300
	between "$(lost_frames out.weir)" 0 240 "frames missing"
	status_of inspect --verify out.weir >said
	contains said "every sample right"
	echo "# lost $(figure stats lost), had again $(figure stats recovered)"
}

fixed_copies()
{
	capture gen:sweep -c 2 -r 48000 -d 3 | encode --frame 5ms --application lowdelay >o.weir
	over_loss o.weir --redundancy 2
	between "$(figure sent redundant_copies)" 1190 1202
	between "$(figure stats lost)" 10 80 "packets lost on the way"
	between "$(lost_frames out.weir)" 0 240 "frames missing"
}

# Nobody has asked yet: plain packets; the reports of a quarter of a second raise it.
copies_follow_reports()
{
	capture gen:sweep -c 2 -r 48000 -d 4 | encode --frame 5ms --application lowdelay >o.weir
	over_loss o.weir
	between "$(figure sent rtcp_in)" 8 60
	between "$(figure sent redundancy_level)" 1 3
	between "$(figure sent redundant_copies)" 300 2400
	between "$(figure sent round_trip_us)" 1 300000
	between "$(figure stats lost)" 15 100 "packets lost on the way"
	# Half of a second may pass before the first copies: 5 packets in that time, 40 in all without them.
	between "$(lost_frames out.weir)" 0 $((240 * 20)) "frames missing"
	echo "# lost $(figure stats lost), had again $(figure stats recovered), level $(figure sent redundancy_level)"
}

# A receiver that knows nothing of repair packets hears the same sound as without them.
plain_receivers()
{
	make_wav a.wav 48000 2 s16 9600
	sends a --redundancy 8+2 --ssrc 3 rtp://127.0.0.1:5004 a.wav
	says a.sent "sorted({(x.pt, x.ssrc == 3) for x in p})" "[(96, True), (122, False)]"
	says a.sent "(l16([x for x in p if x.pt == 96], 2) == wav('a.wav')).all()" True
	says a.sent "set(steps([x.seq for x in p if x.pt == 96], 16)), max(len(x) for _, _, x in d) <= 1472" "({1}, True)"
	# Two follow each eight.
	says a.sent "''.join('s' if x.pt == 96 else 'r' for x in p)" ssssssssrrssssssssrrssssssssrrssssssssrrssssssssrr
}

test_case "repair packets: PCM comes through 5 % of loss" repair
test_case "two copies of Opus come through 5 % of loss" fixed_copies
test_case "copies of Opus follow what receivers report" copies_follow_reports
test_case "repair packets disturb nobody" plain_receivers
done_testing
