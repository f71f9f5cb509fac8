#!/bin/bash
# What is lost on the way and had again: copies in Opus packets (RED) that adapt to what the receiver reports, and
# Reed-Solomon repair packets for PCM, through a proxy that drops 5 % at random or in outages of 10 ms.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

# residual FILE FROM_SECONDS: packets sent from that position on and not there, of all, in percent; and how many were sent.
residual()
{
	inspect "$1" | "$PYTHON" -c '
import sys
start, step = float(sys.argv[1]) * 48000, 0
there = gone = 0
for line in sys.stdin:
    w = line.split()
    if len(w) > 3 and w[0] in ("DATA", "GAP") and w[3].startswith("+") and int(w[2]) >= start:
        if w[0] == "DATA":
            there += int(w[3][1:])
        else:
            gone += int(w[3][1:])
print("%.4f %d" % (100 * gone / (gone + there), gone + there))' "$2"
}

# through NAME PORT NETWORK SOURCE OPTION…: SOURCE goes from netsend by the proxy to netrecv: NAME.weir, NAME.send, NAME.recv.
through()
{
	local name=$1 port=$2 network=$3 source=$4
	shift 4
	netrecv --no-retime --latency 500ms --stats=0.1 --stats-file "$name.recv" "rtp://127.0.0.1:$port" >"$name.weir" 2>"$name.err" &
	local receiver=$!
	impair $network --direction there "udp://127.0.0.1:$((port + 5))" "udp://127.0.0.1:$port" 2>>"$name.err" &
	local proxy=$!
	wait_for 10 udp_bound "$port"
	wait_for 10 udp_bound "$((port + 5))"
	netsend "$@" --stats=0.1 --stats-file "$name.send" "rtp://127.0.0.1:$((port + 5))" "$source" 2>>"$name.err"
	echo "$(udp_dropped "$port") $(udp_dropped "$((port + 5))")" >"$name.dropped"
	# A signal is as good as the sender's BYE, which may be among what is lost: what is held still comes out.
	kill -INT "$receiver" "$proxy"
	wait "$receiver" "$proxy"
}

lossy()
{
	capture -d 5s -f s16 gen:sine:freq=300 gen:sine:freq=500 gen:sine:freq=700 gen:sine:freq=900 |
		encode -b 32k --frame 2.5ms --application lowdelay --complexity 0 >opus.weir
	capture -d 5s -c 2 -f s16 gen:noise:white >source.weir
	through random 5010 "--loss 5%" opus.weir --redundancy auto &
	through burst 5020 "--loss 5% --burst 10ms" opus.weir --redundancy auto &
	through off 5030 "--loss 5%" opus.weir --redundancy off &
	through pcm 5040 "--loss 5%" source.weir --redundancy 8+4 --packet-time 1ms &
	through clean 5050 "" opus.weir &
	wait
	eq "$(cat ./*.dropped | sort -u)" "0 0" "datagrams that the kernel dropped"
	cp ./*.weir ./*.send ./*.recv ./*.err "$TMPDIR"
}

# left NAME LOW HIGH SECONDS WORDS
left()
{
	set -- "$1" "$2" "$3" "$4" "$5" $(residual "$TMPDIR/$1.weir" "$4")
	echo "$5: $6 % left" >>"$TMPDIR/figures"
	[ "$7" -ge 100000 ] || fail "only $7 frames were sent"
	between "$6" "$2" "$3" "$5"
}

# Levels go up by reports each 250 ms, and half a second is on its way already.
red_random()
{
	left random 0 0.1 1.2 "RED adaptive, 5 % at random (expected 0.0125)"
	between "$(figure "$TMPDIR/random.send" redundancy_level)" 2 3
	between "$(json "$TMPDIR/random.recv" 'd["lost"] / d["received"]')" 0.035 0.065
}

red_burst()
{
	left burst 0 1.5 1.2 "RED adaptive, 5 % in outages of 10 ms (expected 0.55)"
	between "$(figure "$TMPDIR/burst.send" redundancy_level)" 2 3
	[ "$(figure "$TMPDIR/burst.recv" recovered)" -ge 100 ]
}

red_off()
{
	left off 3.5 6.5 0 "no redundancy, 5 % at random (expected 5)"
	eq "$(figure "$TMPDIR/off.recv" recovered)" 0
	eq "$(figure "$TMPDIR/off.send" redundant_copies)" 0
}

rs_random()
{
	left pcm 0 0.2 0 "RS 8+4, 5 % at random (expected 0.008)"
	# Four repairs for eight packets, and the last ones of a block that is not full.
	eq "$(figure "$TMPDIR/pcm.send" repair_datagrams)" 2500
	[ "$(figure "$TMPDIR/pcm.recv" recovered)" -ge 150 ]
	# What was recovered is the sound itself: the same samples at the same places.
	weirfile pcm "$TMPDIR/pcm.weir" 1 got.raw >/dev/null
	weirfile pcm "$TMPDIR/source.weir" 1 sent.raw >/dev/null
	"$PYTHON" - <<'PY'
import numpy as np
a, b = np.fromfile("sent.raw", "<i2").reshape(-1, 2), np.fromfile("got.raw", "<i2").reshape(-1, 2)
assert len(b) > 230000 and len(b) <= len(a)
hole = (b == 0).all(axis=1)
assert hole.sum() < len(b) // 400
assert (b[~hole] == a[:len(b)][~hole]).all()
PY
}

# Nothing is lost, so nothing is sent twice, and the packets are plain Opus for everybody.
clean()
{
	left clean 0 0 0 "no losses"
	eq "$(json "$TMPDIR/clean.send" 'd["redundant_copies"], d["redundancy_level"]')" "[0, 0]"
}

test_case "five connections through bad networks" lossy
test_case "RED adapts to random losses" red_random
test_case "RED adapts to outages" red_burst
test_case "without it the losses stay" red_off
test_case "Reed-Solomon repairs PCM" rs_random
test_case "where nothing is lost nothing is repeated" clean
sed 's/^/# /' "$TMPDIR/figures"
done_testing
