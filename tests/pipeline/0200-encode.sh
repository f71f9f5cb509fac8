#!/bin/bash
# encode: exact lengths and places, options, several tracks, what is refused.
. "$(dirname "$0")/../lib.sh"

weirfile()
{
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" "$@"
}

# first position, end, and number of packets of a track
span()
{
	weirfile list "$1" "${2-1}" | awk '$1 == "DATA" || $1 == "GAP" { if (!n++) first = $2; end = $2 + $3 } END { print first, end, n }'
}

# ---- lengths ----

lengths_are_exact()
{
	local n frame app
	for n in 0 1 119 120 47777; do
		make_wav in.wav 48000 2 s16 $n
		capture in.wav >in.weir
		for frame in 2.5 5 10 20 40 60; do
			for app in audio voip lowdelay; do
				encode --complexity 0 --frame ${frame}ms --application $app in.weir >out.weir
				inspect --verify out.weir >said
				grep -q "track 1: $n frames*, 0 gaps" said || fail "$n frames, $frame ms, $app: $(cat said)"
				decode out.weir | inspect --verify - >said
				grep -q "track 1: $n frames*, 0 gaps" said || fail "decoded: $n frames, $frame ms, $app: $(cat said)"
			done
		done
	done
}

positions_are_compensated()
{
	make_wav in.wav 48000 1 s16 10000
	capture in.wav | encode >a.weir
	eq "$(span a.weir)" "-312 10000 11"
	capture in.wav | encode --application lowdelay --frame 2.5ms >a.weir
	eq "$(span a.weir)" "-120 10000 85"
	weirfile list a.weir 1 | awk '$1 == "DATA"' | tail -1 >last
	eq "$(cat last)" "DATA 9960 40 0081 0" "the last packet is trimmed"
}

rates_become_48k()
{
	local rate
	for rate in 8000 12000 16000 24000 44100 96000 22050; do
		make_wav in.wav $rate 1 s16 $rate
		capture in.wav | encode --complexity 0 >a.weir
		eq "$(span a.weir | cut -d' ' -f1-2)" "-312 48000" "$rate Hz"
		inspect --json a.weir >j
		eq "$(json j '[l for l in lines if l.get("type") == "TRACK"][0]["original_rate_hz"]')" $rate
	done
}

the_start_is_kept()
{
	make_wav in.wav 44100 1 s16 20000
	capture --start 5000smp in.wav >a.weir
	first=$(weirfile list a.weir 1 | awk '$1 == "DATA" { print $2; exit }')
	encode a.weir >b.weir
	eq "$(span b.weir | cut -d' ' -f1)" "$(((first * 480 + 220) / 441 - 312))"
}

# ---- what comes out is what went in, in its place ----

sound_is_in_place()
{
	local fmt
	for fmt in s16 s24 s32 f32; do
		capture -f $fmt gen:sweep:level=-10dB -d 1 >a.weir
		encode -b 256k a.weir | decode >b.weir
		weirfile pcm a.weir 1 a.raw >/dev/null
		eq "$(weirfile pcm b.weir 1 b.raw)" 0
		"$PYTHON" - $fmt <<'PY'
import sys
import numpy as np
fmt = sys.argv[1]
raw = open("a.raw", "rb").read()
if fmt == "f32":
    a = np.frombuffer(raw, "<f4").astype(float)
elif fmt == "s24":
    u = np.frombuffer(raw, np.uint8).reshape(-1, 3)
    a = np.concatenate([np.zeros((len(u), 1), np.uint8), u], 1).copy().view("<i4")[:, 0] / 2.0**31
else:
    a = np.frombuffer(raw, {"s16": "<i2", "s32": "<i4"}[fmt]) / {"s16": 2.0**15, "s32": 2.0**31}[fmt]
b = np.frombuffer(open("b.raw", "rb").read(), "<f4").astype(float)
assert len(a) == len(b), (len(a), len(b))
def agree(lag):
    x, y = a[200:-200], b[200 + lag : len(b) - 200 + lag]
    return np.dot(x, y) / np.sqrt(np.dot(x, x) * np.dot(y, y))
c = agree(0)
assert c > 0.99, c
PY
	done
}

# ---- tracks ----

jobs_change_nothing()
{
	local j
	capture gen:noise gen:sweep gen:sine -d 3 >in.weir
	encode -j 1 in.weir >one.weir
	for j in 2 5; do
		encode -j $j in.weir >more.weir
		same one.weir more.weir "-j $j"
		cat in.weir | encode -j $j >more.weir
		same one.weir more.weir "-j $j from a pipe"
	done
	encode one.weir >again.weir
	inspect --verify again.weir >said
	grep -q 'track 3: 144000 frames' said
}

others_pass()
{
	capture gen:noise gen:sweep -d 1 >in.weir
	encode -t 2 in.weir >a.weir
	inspect a.weir >said
	grep -q '^TRACK  *1 .* pcm ' said
	grep -q '^TRACK  *2 .* opus ' said
	weirfile pcm in.weir 1 a.raw >/dev/null
	weirfile pcm a.weir 1 b.raw >/dev/null
	same a.raw b.raw "a track that passes"
	# Opus passes a second time as it is
	encode a.weir | inspect --verify - >said
	grep -q 'track 2: 48000 frames' said
	status=0
	encode -t 7 in.weir >b.weir 2>err || status=$?
	eq "$status" 1
	one_line err '^encode: 7: '
}

concatenated()
{
	make_wav in.wav 48000 1 s16 5000
	capture in.wav >a.weir
	cat a.weir a.weir | encode >b.weir
	inspect --verify b.weir >said
	grep -q 'track 1: 10000 frames, 0 gaps' said
	decode b.weir | inspect --verify - >said
	grep -q 'track 1: 10000 frames, 0 gaps' said
}

layouts()
{
	make_wav in.wav 48000 8 s16 4800
	capture in.wav | encode -b 512k >a.weir
	inspect --json a.weir >j
	track='[l for l in lines if l.get("type") == "TRACK"][0]'
	eq "$(json j "$track[\"channels\"]")" 8
	make_wav in.wav 48000 32 s16 4800
	capture in.wav | encode --complexity 0 -b 1M >a.weir
	decode a.weir | inspect --verify - >said
	grep -q 'track 1: 4800 frames, 0 gaps' said
}

# ---- options ----

packets_of_one_size()
{
	capture gen:noise -d 1 | encode --cbr -b 64k | inspect - | awk '$1 == "DATA" { print $9 }' | sort | uniq -c >sizes
	eq "$(wc -l <sizes)" 1 "sizes with --cbr"
	eq "$(awk '{ print $2 }' sizes)" 160
}

bit_rates()
{
	local rate bytes
	for rate in 16k 64k 256k; do
		capture gen:noise -d 2 | encode -b $rate >a.weir
		bytes=$(inspect a.weir | awk '$1 == "DATA" { n += $9 } END { print n }')
		between "$bytes" $((${rate%k} * 190)) $((${rate%k} * 310)) "bytes at $rate"
	done
}

silence_is_not_sent()
{
	{ capture gen:sine -d 1 && capture gen:silence -d 4; } | encode --dtx --application voip -b 24k >a.weir
	weirfile list a.weir 1 | awk '$1 == "GAP" { if ($5 != 4) exit 1; n++ } END { exit n < 100 }'
	inspect --verify a.weir >said
	grep -q '0 gaps' said
	decode a.weir >b.weir
	inspect --verify b.weir >said
	grep -q 'track 1: 240000 frames, 0 gaps' said
}

refusals()
{
	local o
	capture gen:sine -d 0.1 >in.weir
	for o in "-b 100" "-b 200M" "--frame 7ms" "--complexity 11" "--application music" "--expect-loss 101%" "-j 0"; do
		expect_status 2 encode $o in.weir >out 2>err
		empty out
		one_line err '^encode: '
	done
	expect_status 2 encode -b 1100k in.weir >out 2>err
	one_line err '500 to 1024000'
	make_wav in.wav 8000 256 s16 10
	status_of encode in.wav >out 2>err
	eq "$status" 1
	one_line err '256 channels: 1 to 255'
}

a_cut_input_says_so()
{
	capture gen:sine -d 2 >in.weir
	head -c 300000 in.weir >cut.weir
	want=$(weirfile list cut.weir 1 2>/dev/null | awk '$1 == "DATA" { e = $2; d = $3 } END { print e }')
	expect_status 3 encode cut.weir >out.weir 2>err
	one_line err '^encode: '
	expect_status 3 inspect --verify out.weir >said
	frames=$(weirfile list out.weir 1 | awk '$1 == "DATA" { e = $2 + $3 } END { print e }')
	eq "$frames" "$want" "frames before the cut"
}

nothing_is_allocated_per_packet()
{
	local short long opts
	for opts in "" "--frame 2.5ms" "-j 2"; do
		capture gen:noise gen:sweep -d 1 >s.weir
		capture gen:noise gen:sweep -d 20 >l.weir
		encode $opts --complexity 0 --stats=60 s.weir 2>s >/dev/null
		encode $opts --complexity 0 --stats=60 l.weir 2>l >/dev/null
		short=$(json s 'd["allocs"]') long=$(json l 'd["allocs"]')
		[ "$short" != 0 ] || skip "allocations are not counted in this build"
		eq "$long" "$short" "allocations with $opts"
	done
	make_wav s.wav 44100 2 s16 66150
	make_wav l.wav 44100 2 s16 661500
	encode --complexity 0 --stats=60 s.wav 2>s >/dev/null
	encode --complexity 0 --stats=60 l.wav 2>l >/dev/null
	eq "$(json l 'd["allocs"]')" "$(json s 'd["allocs"]')" "allocations when resampling"
}

# ---- holes ----

holes_keep_their_place()
{
	capture -c 1 --block 1000 gen:sweep:from=400,to=6000,level=-10dB -d 2 >a.weir
	weirfile edit a.weir b.weir drop:1:20-33
	expect_status 3 encode -b 96k b.weir >c.weir 2>err
	weirfile list c.weir 1 >l
	grep -q '^GAP 20000 14000 ' l
	# behind it: the first packet is DISCONT, begins with the look-ahead, whole 2.5 ms from the one before
	awk '$1 == "GAP" { g = 1; next } $1 == "DATA" && g { print; exit }' l >first
	eq "$(awk '{ print $4 }' first)" 0003
	eq "$(tail -n +1 l | awk '$1 == "DATA" && $2 < 20000 { e = $2 } END { print e }')" "$((-312 + 960 * 21))"
	pos=$(awk '{ print $2 }' first)
	between $pos $((34000 - 312 - 119)) $((34000 - 312))
	eq $(((pos + 312) % 120)) 0
	expect_status 3 decode c.weir >d.weir 2>err
	weirfile pcm a.weir 1 a.raw >/dev/null
	weirfile pcm d.weir 1 d.raw >/dev/null
	eq "$(bytes_of d.raw)" $((96000 * 4))
	"$PYTHON" - <<'PY'
import numpy as np
a, d = (np.frombuffer(open(f, "rb").read(), "<f4").astype(float) for f in ("a.raw", "d.raw"))
for start, end in (0, 19900), (34000, 95000):
    def agree(lag):
        x, y = a[start + 40 : end], d[start + 40 + lag : end + lag]
        return np.dot(x, y) / np.sqrt(np.dot(x, x) * np.dot(y, y))
    lags = [agree(k) for k in range(-40, 41)]
    assert np.argmax(lags) == 40 and lags[40] > 0.98, (start, np.argmax(lags) - 40, max(lags))
PY
}

test_case "every length comes back, at every packet size and application" lengths_are_exact
test_case "positions are compensated for the look-ahead" positions_are_compensated
test_case "rates that Opus does not have, and those that it has, become 48 kHz" rates_become_48k
test_case "a track that starts later still does" the_start_is_kept
test_case "sound is in its place, from every sample format" sound_is_in_place
test_case "-j changes no byte" jobs_change_nothing
test_case "-t chooses; what is not chosen, and what is Opus, passes" others_pass
test_case "concatenated streams go on" concatenated
test_case "8 and 32 channels" layouts
test_case "--cbr: packets of one size" packets_of_one_size
test_case "-b is kept" bit_rates
test_case "--dtx: silence is a GAP and comes back" silence_is_not_sent
test_case "what cannot be is refused, with the range" refusals
test_case "a cut input: exit 3, and the output says so" a_cut_input_says_so
test_case "no allocation per packet" nothing_is_allocated_per_packet
test_case "a hole keeps its place, and what follows it" holes_keep_their_place
done_testing
