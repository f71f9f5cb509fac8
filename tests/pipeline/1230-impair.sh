#!/bin/bash
# impair on streams: which packets are lost is told by another program from the seed, holes are where they were, what is late is lost.
. "$(dirname "$0")/../lib.sh"

py()
{
	"$PYTHON" "$TOP/tests/pipeline/$1.py" "${@:2}"
}

# Ten seconds of something that is coded as speech: 20 ms packets that hold a copy of the one before.
speech()
{
	capture -c 1 gen:sweep:from=100,to=3000,level=-12dB -d 10 | encode --application voip -b 24k --fec --expect-loss 20% >a.weir
}

# TYPE pos of a list as packet numbers from 0: POS of an Opus packet of 960 frames that begins at −312.
gaps_as_packets()
{
	awk '$1 == "GAP" { for (p = $2; p < $2 + $3; p += 960) print (p + 312) / 960 }'
}

fate_by_seed()
{
	local loss burst seed n
	speech
	n=$(py weirfile list a.weir 1 | grep -c '^DATA')
	for seed in 0 1 7 4000000000; do
		for burst in 0 1.5 4; do
			loss=5
			[ $seed != 1 ] || loss=20
			impair --loss $loss% $([ $burst = 0 ] || echo --burst $burst) --seed $seed a.weir >b.weir
			py weirfile list b.weir 1 >l
			py impair lost $seed 1 "$(printf '0.%02d' $loss)" $burst "$n" >wanted
			[ "$(wc -l <wanted)" -gt 5 ]
			gaps_as_packets <l >got
			same got wanted "lost at seed $seed, burst $burst"
			# A hole is one however many packets it took, its reason is network loss, and what was not lost is all there.
			eq "$(grep -c '^GAP' l)" "$(awk 'NR == 1 || $1 != last + 1 { n++ } { last = $1 } END { print n }' wanted)"
			eq "$(awk '$1 == "GAP" { print $5 }' l | sort -u)" 2
			eq "$(grep -c '^DATA' l)" $((n - $(wc -l <wanted)))
		done
	done
	# Nothing asked for, nothing done.
	impair a.weir >b.weir
	inspect --json a.weir | grep '"DATA"' | sed 's/, "offset.*//' >x
	inspect --json b.weir | grep '"DATA"' | sed 's/, "offset.*//' >y
	same x y
}

same_bytes()
{
	local o
	speech
	for o in "--loss 5%" "--loss 10% --burst 60ms --jitter 20ms --deadline 15ms" "--raw --reorder 5% --duplicate 2% --jitter 30ms --overtake"; do
		impair $o --seed 7 a.weir >b
		impair $o --seed 7 <a.weir >c
		{ head -c 5000; sleep 0.1; cat; } <a.weir | impair $o --seed 7 >d
		same b c
		same b d
		impair $o --seed 8 a.weir >e
		! cmp -s b e || fail "another seed, the same fate"
	done
}

# The pipeline of the manual: what was lost is concealed or recovered, and the length is as it was.
decoded()
{
	local lost
	capture -c 1 gen:sweep:from=100,to=3000,level=-12dB -d 10 | mux -q -o talk.wav
	capture talk.wav | encode --application voip -b 24k --fec --expect-loss 20% >a.weir
	impair -v --loss 5% --seed 7 <a.weir >b.weir 2>err
	lost=$(sed -n 's/^impair: track 1: \([0-9]*\) of 501 packets lost.*/\1/p' err)
	between "$lost" 10 45
	expect_status 3 decode --stats --stats-file s <b.weir 2>err >c.weir
	meter --json <c.weir >m
	eq "$(json m 'd["tracks"][0]["frames"]')" 480000
	eq "$(json s 'd["concealed_frames"] + d["recovered_frames"]')" $((lost * 960))
	# Most are alone, and what follows them has a copy.
	between "$(json s 'd["recovered_frames"]')" $((lost * 480)) $((lost * 960))
	# The more is lost the worse it is.
	last=17
	capture talk.wav | encode -b 64k >a.weir
	for loss in 0 2 10 30; do
		impair --loss $loss% <a.weir | { decode 2>/dev/null || [ $? = 3 ]; } | meter --json --compare talk.wav >m
		between "$(json m 'd["tracks"][0]["compare"]["frames_missing"]')" 0 2
		snr=$(json m 'd["tracks"][0]["compare"]["snr_db"]')
		between "$snr" 0 "$last" "SNR at $loss %"
		last=$(awk -v x="$snr" 'BEGIN { print x - 1 }')
	done
}

every_nth()
{
	capture -c 1 gen:count -d 48000smp --block 480 >a.weir
	impair --lose-every 10 a.weir >b.weir
	eq "$(py weirfile list b.weir 1 | awk '$1 == "GAP" { print $2, $3 }' | head -3 | tr '\n' ,)" "4320 480,9120 480,13920 480,"
	expect_status 3 inspect --verify b.weir >out
	contains out "10 gaps, 4800 frames lost"
}

# 30 ms of deviation, a receiver that waits 30 ms: one in six is late.
deadline()
{
	local late
	capture -c 1 gen:count -d 100s -r 8k --block 80 >a.weir
	impair --jitter 30ms --overtake --deadline 30ms --stats --stats-file s a.weir >b.weir
	late=$(json s 'd["late_packets"]')
	between "$late" 1440 1740
	eq "$(json s 'd["lost_packets"]')" 0
	eq "$(py weirfile list b.weir 1 | awk '$1 == "GAP" { n += $3 } END { print n }')" $((late * 80))
	# The constant part of a delay is nobody's lateness.
	impair --delay 2s --deadline 1ms a.weir >c.weir
	inspect --verify c.weir >out
	# One that four others overtake is four packets late.
	impair --reorder 10% --reorder-by 4 --deadline 39ms --stats --stats-file s a.weir >c.weir
	eq "$(json s 'd["late_packets"]')" "$(json s 'd["reordered_packets"]')"
	impair --reorder 10% --reorder-by 4 --deadline 40ms --stats --stats-file s a.weir >c.weir
	eq "$(json s 'd["late_packets"]')" 0
	between "$(json s 'd["reordered_packets"]')" 880 1120
	inspect --verify c.weir >out
}

bandwidth()
{
	# 100 packets a second of 160 bytes and 40 around them: 160 kbit/s.  Half of it goes through 80 kbit/s.
	capture -c 1 -f s16 gen:noise -r 8k -d 60s --block 80 >a.weir
	impair --bandwidth 160k --stats --stats-file s a.weir >b.weir
	eq "$(json s 'd["lost_packets"]')" 0
	impair --bandwidth 80k --queue 4000 --stats --stats-file s a.weir >b.weir
	between "$(json s 'd["queue_lost_packets"]')" 2970 3000
	# A queue of 4000 bytes is 400 ms long.
	between "$(json s 'd["max_delay_us"]')" 390000 400000
}

raw_arrivals()
{
	local a b
	speech
	# In raw, packets are as many as came, and the reader has the last word.
	impair --raw --duplicate 10% --stats --stats-file s a.weir >b.weir
	a=$(py weirfile list a.weir 1 | grep -c '^DATA')
	b=$(py weirfile list b.weir 1 | grep -c '^DATA')
	eq "$b" $((a + $(json s 'd["duplicated_packets"]')))
	between $((b - a)) 25 80
	inspect --verify b.weir >out
	impair --raw --loss 10% a.weir >b.weir
	! py weirfile list b.weir 1 | grep '^GAP' || fail "raw has no marks"
	expect_status 3 inspect --verify b.weir >out
	# The very packets of the other way, without the holes.
	impair --loss 10% a.weir | { py weirfile list /dev/stdin 1; } | awk '$1 == "DATA" { print $2 }' >x
	py weirfile list b.weir 1 | awk '$1 == "DATA" { print $2 }' >y
	same x y
	# Reordered: each is there once, and one in twenty goes back behind the three that overtook it.
	impair --raw --reorder 5% --reorder-by 3 --stats --stats-file s a.weir >b.weir
	py weirfile list b.weir 1 | awk '$1 == "DATA" { print $2 }' >y
	sort -n y >z
	py weirfile list a.weir 1 | awk '$1 == "DATA" { print $2 }' >x
	same x z
	b=$(awk 'NR > 1 && $1 < last { n++ } { last = $1 } END { print n + 0 }' y)
	between "$b" 10 "$(json s 'd["reordered_packets"]')"
	# The ones that were held at the end come out, too, and the end is where it was.
	impair --raw --reorder 100% --reorder-by 1000 a.weir >b.weir
	eq "$(py weirfile list b.weir 1 | grep -c '^DATA')" "$a"
}

tracks()
{
	capture -c 1 gen:count gen:count -d 10s --block 480 >a.weir
	impair -t 2 --loss 10% a.weir >b.weir
	eq "$(py weirfile list b.weir 1 | grep -c GAP || :)" 0
	between "$(py weirfile list b.weir 2 | grep -c GAP)" 60 110
	# Each track has its own fate, whoever else is there.
	impair --loss 10% a.weir >c.weir
	py weirfile list b.weir 2 >x
	py weirfile list c.weir 2 >y
	same x y
	! cmp -s <(py weirfile list c.weir 1) y
	expect_status 1 impair -t 3 a.weir 2>err >d.weir
	one_line err "^impair: 3: no such track"
}

traces()
{
	speech
	printf '# two of three\n10ms\nlost\n0.02\n' >t
	impair --trace t -v --record-trace r a.weir >b.weir 2>err
	contains err "167 of 501 packets lost (33.33 %) in 167 bursts"
	contains err "delay 15.000 ms in the mean, 20.000 ms at most"
	eq "$(py weirfile list b.weir 1 | gaps_as_packets | awk '$1 % 3 != 1' | wc -l)" 0
	# What was recorded, given again, is the same; and what chance made is repeated without it.
	impair --trace r --record-trace r2 a.weir >c.weir
	same r r2
	impair --loss 5% --delay 20ms --jitter 5ms --record-trace r3 a.weir >b.weir
	impair --trace r3 --record-trace r4 a.weir >c.weir
	same r3 r4
	same <(py weirfile list b.weir 1) <(py weirfile list c.weir 1)
	expect_status 1 impair --record-trace r4 a.weir 2>err >c.weir
	one_line err "^impair: r4: exists"
	impair -y --record-trace r4 a.weir >c.weir
	[ ! -e r4.part ] || fail "it is complete, and .part is still there"
	mkfifo in
	impair --record-trace r5 in >c.weir &
	exec 3>in
	wait_for 10 test -e r5.part
	[ ! -e r5 ] || fail "it has its name before it is complete"
	cat a.weir >&3
	exec 3>&-
	wait $!
	[ -e r5 ] && [ ! -e r5.part ] || fail "$(ls)"
	for bad in '-1ms' '5 apples' 'nan' '3601' ''; do
		echo "$bad" >t
		expect_status 1 impair --trace t a.weir 2>err >c.weir
		one_line err "^impair: t: "
	done
	expect_status 1 impair --trace none a.weir 2>err >c.weir
	one_line err "^impair: none: No such file"
	expect_status 1 impair --record-trace /dev/full a.weir -y 2>err >c.weir
	one_line err "^impair: /dev/full: No space left"
}

# A pcap of raw IP: RTP of a 48 kHz clock each 20 ms, each a little later than it would be, every seventh missing; and what is none of it.
recordings()
{
	"$PYTHON" - <<'PY'
import struct
def udp(data):
    n = 28 + len(data)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, n, 0, 0, 64, 17, 0, bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2]))
    return ip + struct.pack(">HHHH", 4000, 5004, n - 20, 0) + data
def record(t_us, packet):
    return struct.pack("<IIII", 1000 + t_us // 1000000, t_us % 1000000, len(packet), len(packet)) + packet
with open("t.pcap", "wb") as f:
    f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
    with open("wanted", "w") as w:
        for i in range(500):
            if i % 7 == 3:
                w.write("lost\n")
                continue
            late_us = i * 37 % 5000
            rtp = struct.pack(">BBHII", 0x80, 111, (65500 + i) & 0xFFFF, (0xFFFFFF00 + 960 * i) & 0xFFFFFFFF, 77)
            f.write(record(20000 * i + late_us, udp(rtp + b"x" * 40)))
            f.write(record(20000 * i + late_us, udp(b"garbage")))
            w.write("%d.%03d000ms\n" % (late_us // 1000, late_us % 1000))
PY
	speech
	impair --overtake --trace t.pcap --record-trace r a.weir >b.weir
	same <(grep -v "^#" r | head -500) wanted
}

# The clock that stamps the packets is 1000 ppm fast: ten seconds of it take 9.99 s.
drift()
{
	capture -c 1 --realtime -r 8k --block 800 gen:silence -d 1s >a.weir
	inspect --json a.weir | grep -q '"utc_ns": [0-9]' || skip "the source stamps nothing"
	impair --drift 1000ppm a.weir >b.weir
	for f in a b; do
		inspect --json $f.weir | grep '"DATA"' | sed 's/.*"utc_ns": \([0-9]*\).*/\1/' >$f
	done
	near "$(paste a b | awk 'NR == 1 { x = $1 - $2 } END { print ($1 - $2 - x) / 1000 }')" 900 2 "microseconds in 0.9 s"
}

wrong_usage()
{
	local o
	while read -r o; do
		expect_status 2 eval "impair $o" </dev/null 2>err >out
		one_line err '^impair: '
		empty out
	done <<-'LIST'
		--loss 101%
		--loss x
		--loss 5% --burst 0
		--loss 5% --burst ms
		--loss 90% --burst 2
		--burst 4
		--drift 2%
		--drift 10001ppm
		--spikes 5%
		--spikes 5%,x
		--stalls 3s,25ms
		--deadline 5smp --record-trace out
		--delay 100smp
		--jitter-shape square
		--bandwidth 1
		--duration 3
		--direction back
		a b
		udp://:5000
		udp://:5000 rtp://localhost:5001
		udp://:5000 udp://:5001
		udp://:0 udp://localhost:5001
		--raw udp://:5000 udp://localhost:5001
		--deadline 3 udp://:5000 udp://localhost:5001
	LIST
}

heap()
{
	local a b
	capture -c 1 gen:noise -r 8k -d 10s --block 80 >a.weir
	capture -c 1 gen:noise -r 8k -d 200s --block 80 >b.weir
	for o in "--loss 5% --burst 3 --jitter 3ms --deadline 5ms" "--raw --reorder 5% --duplicate 5% --jitter 30ms --overtake"; do
		impair $o --stats --stats-file s a.weir >out
		a=$(json s 'd["allocs"]')
		impair $o --stats --stats-file s b.weir >out
		b=$(json s 'd["allocs"]')
		eq "$b" "$a" "allocations with $o"
		between "$(json s 'd["rss_kib"]')" 1 60000
	done
}

test_case "the packets that are lost are those another program tells from the seed; holes are whole and have their reason" fate_by_seed
test_case "the same seed gives the same bytes, however the input comes" same_bytes
test_case "through decode: concealed, recovered, in length, and worse the more is lost" decoded
test_case "every tenth" every_nth
test_case "what comes later than the receiver waits is lost" deadline
test_case "a line of a limited rate, with its queue" bandwidth
test_case "raw: as it arrives" raw_arrivals
test_case "tracks have networks of their own" tracks
test_case "recorded networks are read and written" traces
test_case "what a receiver or tcpdump recorded is a network too" recordings
test_case "a clock that drifts stamps otherwise" drift
test_case "wrong usage is one line" wrong_usage
test_case "memory stands still" heap
done_testing
