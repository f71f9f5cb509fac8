#!/bin/bash
# netrecv on recorded networks, in no time: wraps, order, loss, pauses, restarts, strangers; the same bytes every time.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"

# recv SCENARIO ARG…: out.weir, stats, err; report is inspect's.
recv()
{
	local scenario=$1
	shift
	"$PYTHON" "$TOP/tests/pipeline/rtpcap.py" "$scenario.pcap" "$scenario" ${SEED:-1} ${LENGTH:-2000}
	netrecv --stats=60 --stats-file stats --replay "$scenario.pcap" "$@" >out.weir 2>err
	status_of inspect --verify out.weir >report
}

stat()
{
	eq "$(figure stats "$1")" "$2" "$1"
}

# is_count FIRST: the samples at their positions are FIRST, FIRST + 1 …; zeros where there are holes.  Prints how many are zeros.
is_count()
{
	PYTHONPATH=$TOP/tests/pipeline "$PYTHON" - "$1" <<'PY'
import subprocess, sys, os
import numpy as np
first = int(sys.argv[1])
subprocess.run([sys.executable, os.environ["TOP"] + "/tests/pipeline/weirfile.py", "pcm", "out.weir", "1", "out.raw"], check=True, stdout=subprocess.DEVNULL)
x = np.fromfile("out.raw", "<u2")
want = (np.arange(len(x)) + first).astype("<u2")
hole = (x == 0) & (want != 0)
assert (x[~hole] == want[~hole]).all(), np.nonzero(x[~hole] != want[~hole])[0][:5]
print(int(hole.sum()))
PY
}

wrap()
{
	recv wrap --no-retime
	eq "$status" 0 "inspect --verify"
	stat received 400
	stat lost 0
	eq "$(is_count 0)" 0
	contains report "0 gaps"
}

reorder()
{
	recv reorder --no-retime --latency 40ms
	stat lost_frames 480 # the lost one, and the one that came too late
	stat late_packets 1
	stat duplicate 40
	stat gaps 2
	eq "$(is_count 0)" 480
	grep -q "network" <(inspect out.weir) || fail "no gap says network loss"
	recv reorder --no-retime --latency 100ms
	stat lost_frames 240
	stat late_packets 0
	eq "$(is_count 0)" 240
}

silence()
{
	recv silence --no-retime
	eq "$status" 0 "silence is no loss"
	stat lost 0
	stat lost_frames 0
	eq "$(is_count 0)" 47999 # one of the zeros would be one anyhow
	inspect out.weir | grep GAP | grep -q "24000 +48000" || fail "$(inspect out.weir | grep GAP)"
}

back()
{
	recv back --no-retime
	stat lost 0
	between "$(figure stats frames_out)" $((399 * 240)) $((400 * 240)) # the first that falls back may be taken for a stray
	recv back --retime --latency 30ms
	between "$(figure stats frames_out)" $((399 * 240)) $((400 * 240 + 1440))
	between "$(figure stats concealed_frames)" 0 1440
}

restart()
{
	recv restart --no-retime
	contains report "1 track"
	stat received 400
	eq "$(figure stats frames_out)" 96000
	inspect out.weir | grep -q "discont" || fail "nothing says that it does not follow"
	inspect out.weir | grep GAP | grep -q "pause" || fail "$(inspect out.weir | grep GAP)"
}

strangers()
{
	recv strangers --no-retime
	eq "$(is_count 0)" 0
	stat frames_out 96000
	contains report "1 track"
	between "$(figure stats strangers)" 3990 4010
	between "$(wc -l <err)" 0 3
}

crowd()
{
	recv crowd --no-retime --max-senders 10
	contains report "10 tracks"
	[ "$(grep -c max-senders err)" = 1 ] || fail "$(cat err)"
	recv crowd --no-retime --max-senders 64
	contains report "40 tracks"
}

# Played on the local clock: no frame too many or too few but for the drift, and the drift is found.
jitter()
{
	LENGTH=12000 recv jitter --retime --latency 30ms
	lost=$(figure stats lost)
	between "$lost" 80 160
	between "$(figure stats concealed_frames)" $((lost * 240)) $((lost * 240 + 480))
	near "$(figure stats frames_out)" $((2880000 - 2880000 * 80 / 1000000)) 60 # 60 s by the sender, less 80 ppm
	contains report "0 gaps"
	stat late_packets 0
	LENGTH=12000 recv jitter --no-retime
	between "$(figure stats lost_frames)" $((lost * 240)) $((lost * 240 + 4800)) # latency auto: some come too late
	eq "$(is_count 0)" "$(figure stats lost_frames)"
}

replays()
{
	for mode in --retime --no-retime; do
		recv jitter $mode
		mv out.weir one.weir
		recv jitter $mode
		same one.weir out.weir
		SEED=2 recv jitter $mode
		! cmp -s one.weir out.weir || fail "another network gives the same stream"
	done
}

# The same number of allocations for a hundred packets and for thousands.
heap()
{
	local mode
	for mode in --retime --no-retime; do
		LENGTH=100 recv jitter $mode
		a=$(figure stats allocs)
		LENGTH=5000 recv jitter $mode
		eq "$(figure stats allocs)" "$a" "allocations $mode"
	done
}

broken()
{
	"$PYTHON" "$TOP/tests/pipeline/rtpcap.py" x.pcap wrap
	head -c 5000 x.pcap >cut.pcap
	expect_status 1 netrecv --replay cut.pcap >o 2>e
	one_line e "cut.pcap: .*cut short"
	echo nothing >text
	status_of netrecv --replay text >o 2>e
	ne "$status" 0
	expect_status 1 netrecv --replay none.pcap >o 2>e
	one_line e "none.pcap"
}

# A recording of our own that is cut, or is something else.
cut_trace()
{
	timeout 10 netrecv -d 0.2 --record-trace t.weir rtp://127.0.0.1:47931 >o 2>e
	expect_status 2 timeout 10 netrecv -d 0.2 --record-trace t.weir rtp://127.0.0.1:47931 >o 2>e
	grep -q "t.weir: is there already" e || fail "$(cat e)"
	expect_status 0 timeout 10 netrecv -y -d 0.2 --record-trace t.weir rtp://127.0.0.1:47931 >o 2>e
	head -c 500 t.weir >cut.weir
	expect_status 3 netrecv --replay cut.weir >o 2>e
	one_line e "cut.weir: ended without end mark"
	capture -d 0.1s gen:sine >sound.weir
	expect_status 1 netrecv --replay sound.weir >o 2>e
	one_line e "sound.weir: is no recording of datagrams"
}

# A recording comes through a FIFO and on standard input as it does from a file; it is read once.
through_a_pipe()
{
	timeout 10 netrecv -q -d 0.3 --record-trace t.weir rtp://127.0.0.1:47933 >o 2>e &
	wait_for 10 udp_bound 47933
	capture -d 0.2s -f s16 gen:count | netsend -q rtp://127.0.0.1:47933
	wait $!
	"$PYTHON" "$TOP/tests/pipeline/rtpcap.py" x.pcap wrap
	local file
	for file in t.weir x.pcap; do
		netrecv -q --no-retime --replay $file >file.weir
		netrecv -q --no-retime --replay <(cat $file) >fifo.weir
		netrecv -q --no-retime --replay - >stdin.weir <$file
		head -c 10 $file >slowly
		netrecv -q --no-retime --replay - >slow.weir < <(cat slowly; usleep_a_little; tail -c +11 $file)
		status_of inspect --verify file.weir >report
		between "$(sed -n 's/.*track 1: \([0-9]*\) frames.*/\1/p' report)" 1000 1e9
		same file.weir fifo.weir
		same file.weir stdin.weir
		same file.weir slow.weir
	done
}

usleep_a_little()
{
	"$PYTHON" -c 'import time; time.sleep(0.05)'
}

# It stands as .part until it is complete, and is a recording all the time.
stands_as_part()
{
	netrecv -q --record-trace t.weir rtp://127.0.0.1:47934 >o 2>e &
	local receiver=$!
	wait_for 10 udp_bound 47934
	wait_for 10 test -e t.weir.part
	[ ! -e t.weir ] || fail "it has its name before it is complete"
	expect_status 1 timeout 10 netrecv -q -y -d 0.1 --record-trace t.weir rtp://127.0.0.1:47950 >o2 2>e
	contains e "t.weir.part: is being written by another program"
	kill -INT $receiver
	wait $receiver
	[ ! -e t.weir.part ] || fail "it is complete, and .part is still there"
	netrecv -q --replay t.weir >o
	# Killed: what there is stays, under that name.
	netrecv -q --record-trace killed.weir rtp://127.0.0.1:47934 >o 2>e &
	receiver=$!
	wait_for 10 udp_bound 47934
	wait_for 10 test -e killed.weir.part
	kill -KILL $receiver
	wait $receiver || :
	[ -e killed.weir.part ] && [ ! -e killed.weir ] || fail "$(ls)"
	expect_status 2 netrecv --record-trace - rtp://127.0.0.1:47934 >o 2>e
	contains e "name a file"
}

# Nobody reads any more: it ends, although nobody sends.
reader_leaves()
{
	expect_status 0 timeout 10 bash -c 'netrecv -q rtp://127.0.0.1:47932 | head -c 10 >/dev/null; [ "${PIPESTATUS[0]}" = 141 ]'
}

test_case "sequence numbers and timestamps wrap" wrap
test_case "order, duplicates, lateness, loss" reorder
test_case "a sender's silence is no loss" silence
test_case "timestamps that fall back do not stop it" back
test_case "a sender that begins anew goes on in its track" restart
test_case "strangers are neither heard nor loud" strangers
test_case "no more senders than --max-senders" crowd
test_case "jitter, loss and drift, played and passed" jitter
test_case "a recording gives the same bytes every time" replays
test_case "allocations stand still" heap
test_case "broken recordings are said" broken
test_case "a recording is not overwritten, and one that is cut is said" cut_trace
test_case "a recording is read once, through a FIFO too" through_a_pipe
test_case "a recording stands as .part until it is complete" stands_as_part
test_case "it ends when its reader does" reader_leaves
done_testing
