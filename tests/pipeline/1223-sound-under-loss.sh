#!/bin/bash
# What is heard when packets are lost.  A network is recorded once, whole, for each number of copies and with repair packets; then
# datagrams of the recording are left out, and it is heard again in virtual time.  What comes back is the very packet, so where
# nothing is left missing the samples are those of the stream that was sent, to the bit; and all comes back that can.
# Where something is missing, the error is that of what is missing, and no more.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

weirfile()
{
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" "$@"
}

# is_whole TRACE: its packets of RTP are numbered without a gap, but for repairs, which another SSRC sends.
is_whole()
{
	"$PYTHON" - "$TOP/tests/pipeline" "$1" <<'PY'
import struct
import sys
sys.path.insert(0, sys.argv[1])
import weirfile
flows = {}
for p in weirfile.read(sys.argv[2]):
    if p.type == 3 and not 192 <= p.payload[33] <= 223:  # RTP and not RTCP: RFC 5761 section 4
        number, ts, ssrc = struct.unpack_from(">HII", p.payload, 34)
        flows.setdefault(ssrc, []).append(number)
sys.exit(any(n != f[0] + i & 0xFFFF for f in flows.values() for i, n in enumerate(f)))
PY
}

# record HOW PORT STREAM [OPTION…]: the stream goes from netsend to netrecv, and HOW.trace has all datagrams.  A machine that is busy with other
# things may lose some of its own accord: then again.
record()
{
	local try
	for try in 1 2 3 4 5; do
		record_once "$@"
		! is_whole "$1.trace" || return 0
		rm "$1.trace"
	done
	fail "the network of this machine loses datagrams"
}

record_once()
{
	netrecv -q --no-retime --latency 40ms --record-trace "$1.trace" "rtp://127.0.0.1:$2" >"$1.live" 2>"$1.err" &
	local receiver=$!
	wait_for 5 udp_bound "$2"
	netsend -q --redundancy "$1" "${@:4}" "rtp://127.0.0.1:$2" "$3"
	kill -INT "$receiver"
	wait "$receiver"
}

recordings()
{
	capture -d 1500ms -c 2 -f s16 gen:noise:pink | encode -b 128k --frame 2.5ms --application lowdelay >sent.weir
	decode sent.weir | weirfile pcm /dev/stdin 1 whole.raw >/dev/null
	capture -d 1500ms -c 1 -f s16 gen:noise:white >pcm.weir
	record off 5010 sent.weir &
	record 1 5020 sent.weir &
	record 2 5030 sent.weir &
	record 3 5040 sent.weir &
	record 8+4 5050 pcm.weir --packet-time 1ms &
	wait
	cp pcm.weir whole.raw ./*.trace "$TMPDIR"
}

# heard TRACE RETIME: its samples to heard.raw, what netrecv counted to heard.stats.
heard()
{
	netrecv -q --latency 40ms "$2" --stats=60 --stats-file heard.stats --replay "$1" >heard.weir
	case $2 in
	--retime) weirfile pcm heard.weir 1 heard.raw >/dev/null ;;
	*) decode heard.weir | weirfile pcm /dev/stdin 1 heard.raw >/dev/null ;;
	esac
}

# lose TRACE FIRST STEP RUN: to lossy.trace, without RUN packets of RTP in a row from FIRST on and every STEP later, but for the last
# four, which nothing would repeat; prints how many are gone.  Each arrives when its timestamp says: however busy this
# machine was, that network was quick.
lose()
{
	"$PYTHON" - "$TOP/tests/pipeline" "$@" <<'PY'
import struct
import sys
sys.path.insert(0, sys.argv[1])
import weirfile
first, step, run = map(int, sys.argv[3:])
packets = list(weirfile.read(sys.argv[2]))
rtp = [i for i, p in enumerate(packets) if p.type == 3 and not 192 <= p.payload[33] <= 223]  # RFC 5761 section 4
numbers = [struct.unpack_from(">H", packets[i].payload, 34)[0] for i in rtp]
assert [n - numbers[0] & 0xFFFF for n in numbers] == list(range(len(rtp)))
lost = {i for n, i in enumerate(rtp[:-4]) if n >= first and (n - first) % step < run}
with open("lossy.trace", "wb") as f:
    ts0, ns = struct.unpack_from(">I", packets[rtp[0]].payload, 36)[0], 0
    at = set(rtp)
    for i, p in enumerate(packets):
        if i in at:
            ns = (struct.unpack_from(">I", p.payload, 36)[0] - ts0 & 0xFFFFFFFF) * 1000000 // 48
        if p.type == 3:
            p.payload = struct.pack("<q", ns) + p.payload[8:]
        if i not in lost:
            f.write(p.pack())
print(len(lost))
PY
}

copies_are_exact()
{
	local copies step way lost
	for copies in off 1 2 3; do
		lose "$TMPDIR/$copies.trace" 0 1 0
		for way in --no-retime --retime; do
			heard lossy.trace $way
			same heard.raw "$TMPDIR/whole.raw" "$copies copies, nothing lost, $way"
		done
	done
	for copies in 1 2 3; do
		for step in 2 7; do
			lost=$(lose "$TMPDIR/$copies.trace" 4 $step 1)
			[ "$lost" -ge $((580 / step)) ]
			for way in --no-retime --retime; do
				heard lossy.trace $way
				eq "$(json heard.stats 'd["recovered"], d["lost_frames"], d["concealed_frames"]')" "[$lost, 0, 0]" "$copies copies, one of $step lost, $way"
				same heard.raw "$TMPDIR/whole.raw" "$copies copies, one of $step lost, $way"
			done
		done
	done
}

# Three in a row are what three copies bear, at the distances 1, 2 and 3; of four the first is gone.
copies_of_outages()
{
	local lost way
	lost=$(lose "$TMPDIR/3.trace" 100 97 3)
	eq "$lost" 18
	for way in --no-retime --retime; do
		heard lossy.trace $way
		eq "$(json heard.stats 'd["recovered"], d["lost_frames"]')" "[18, 0]"
		same heard.raw "$TMPDIR/whole.raw" "three in a row"
	done
	lost=$(lose "$TMPDIR/3.trace" 100 97 4)
	netrecv -q --latency 40ms --no-retime --stats=60 --stats-file heard.stats --replay lossy.trace >heard.weir
	eq "$(json heard.stats 'd["recovered"], d["lost_frames"]')" "[$((lost * 3 / 4)), $((lost / 4 * 120))]"
}

# lose_any PERCENT SEED: of the repaired recording, at random behind the first two packets; prints how many packets of sound are lost, and how
# many of those no receiver can have again: more of their block than repairs of it came.  Arrivals as above.
lose_any()
{
	"$PYTHON" - "$TOP/tests/pipeline" "$TMPDIR/8+4.trace" "$@" <<'PY'
import random
import struct
import sys
sys.path.insert(0, sys.argv[1])
import weirfile
percent, r = float(sys.argv[3]), random.Random(int(sys.argv[4]))
blocks, lost, seen, ts0, ns = {}, set(), 0, None, 0
with open("lossy.trace", "wb") as f:
    for p in weirfile.read(sys.argv[2]):
        rtp = p.payload[32:]
        is_rtp = p.type == 3 and not 192 <= rtp[1] <= 223
        if is_rtp:  # a repair has the timestamp of the last packet of its block
            ts = struct.unpack_from(">I", rtp, 4)[0]
            ts0 = ts if ts0 is None else ts0
            ns = (ts - ts0 & 0xFFFFFFFF) * 1000000 // 48
        if p.type == 3:
            p.payload = struct.pack("<q", ns) + p.payload[8:]
        if not is_rtp:
            f.write(p.pack())
            continue
        seen += 1
        gone = seen > 2 and r.random() < percent / 100
        if not gone:
            f.write(p.pack())
        if rtp[1] & 127 == 122:  # net/rs.h: u8 1, k, r, j, u16 block, u8 1, 0, u32 SSRC, u16 first number
            _, k, n, j, block, flows, _, ssrc, first = struct.unpack_from(">BBBBHBBIH", rtp, 12)
            assert n == 4 and flows == 1
            of = blocks.setdefault(block, [[first + i & 0xFFFF for i in range(k)], 0])
            of[1] += not gone
        elif gone:
            lost.add(struct.unpack_from(">H", rtp, 2)[0])
missing = [sum(s in lost for s in of) for of, n in blocks.values()]
assert len(blocks) == 188 and sum(missing) == len(lost)
print(len(lost), sum(m for m, (of, n) in zip(missing, blocks.values()) if m > n))
PY
}

repairs_do_all_they_can()
{
	local percent seed lost never all_lost=0 all_never=0
	weirfile pcm "$TMPDIR/pcm.weir" 1 sent.raw >/dev/null
	for percent in 5 5 5 10 20; do
		seed=$((${seed-0} + 1))
		read -r lost never <<<"$(lose_any $percent $seed)"
		[ "$lost" -ge 40 ]
		netrecv -q --latency 60ms --no-retime --stats=60 --stats-file heard.stats --replay lossy.trace >heard.weir
		eq "$(json heard.stats 'd["recovered"], d["lost_frames"]')" "[$((lost - never)), $((48 * never))]" "$percent % lost, seed $seed"
		all_lost=$((all_lost + lost)) all_never=$((all_never + never))
		weirfile pcm heard.weir 1 heard.raw >/dev/null
		"$PYTHON" - "$never" <<'PY'
import sys
import numpy as np
a, b = np.fromfile("sent.raw", "<i2"), np.fromfile("heard.raw", "<i2")
assert len(a) == len(b) == 72000
other = a != b
assert (b[other] == 0).all() and other.sum() <= 48 * int(sys.argv[1])
PY
	done
	[ $all_never -ge 10 ] && [ $all_lost -ge 500 ]
}

# error OPTION…: encode with them, lose 2 % at random; SNR against the same packets whole, and the largest error.
error()
{
	encode -b 128k "$@" music.weir >a.weir
	decode a.weir | weirfile pcm /dev/stdin 1 a.raw >/dev/null
	impair --loss 2% --seed 5 a.weir 2>/dev/null | { decode -q || [ $? = 3 ]; } | weirfile pcm /dev/stdin 1 b.raw >/dev/null
	"$PYTHON" - "$*" <<'PY' | tee -a "$TMPDIR/figures"
import sys
import numpy as np
a, b = np.fromfile("a.raw", "<f4").astype(float), np.fromfile("b.raw", "<f4").astype(float)
n = min(len(a), len(b))
d = b[:n] - a[:n]
print("%.2f %.3f dB under 2 %% loss: %s" % (10 * np.log10((a[:n] ** 2).sum() / (d ** 2).sum()), abs(d).max(), sys.argv[1]))
PY
}

# music: plucked strings and drums, in which levels change as they do in music.
music()
{
	"$PYTHON" - <<'PY'
import numpy as np
r, fs = np.random.default_rng(5), 48000
n = 10 * fs
x = np.zeros(n)
for i in range(30):
    at, f = int(r.uniform(0, 9) * fs), 110 * 2 ** (r.integers(0, 36) / 12)
    t = np.arange(min(2 * fs, n - at)) / fs
    x[at : at + len(t)] += sum(np.sin(2 * np.pi * f * k * t) * np.exp(-t * (2 + k)) / k for k in range(1, 12))
for i in range(20):
    t = np.arange(fs // 8) / fs
    x[i * fs // 2 : i * fs // 2 + len(t)] += 2 * r.standard_normal(len(t)) * np.exp(-40 * t)
np.repeat((x * 0.7 / abs(x).max()).astype("<f4"), 2).tofile("music.raw")
PY
	capture -r 48000 -c 2 -f f32 raw:music.raw >music.weir
}

# Two packets of a hundred, with errors as large as the sound or a little larger in the mean: 17 dB less 3 or so.
loss_costs_no_more_than_itself()
{
	local line
	music
	for options in "--frame 2.5ms --application lowdelay" "--frame 5ms --application lowdelay" "--frame 2.5ms"; do
		line=$(error $options)
		between "${line%% *}" 11 30 "$options"
		line=${line#* }
		between "${line%% *}" 0.01 1 "$options: largest error"
	done
	# Of one who expects no loss (other programs do not), what follows a loss is held down: without that it is 8 times full scale, and −6 dB.
	line=$(error --frame 2.5ms --application lowdelay --expect-loss 0)
	between "${line%% *}" 4 30 "for no loss"
	line=${line#* }
	between "${line%% *}" 0.01 2.5 "for no loss: largest error"
}

test_case "networks are recorded, with copies and repairs" recordings
test_case "what a copy brings back is the packet itself" copies_are_exact
test_case "as many in a row as there are copies" copies_of_outages
test_case "repair packets bring back all they can, from the first block on" repairs_do_all_they_can
test_case "short packets of Opus bear losses" loss_costs_no_more_than_itself
sed 's/^/# /' "$TMPDIR/figures" 2>/dev/null
done_testing
