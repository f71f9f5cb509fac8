#!/bin/bash
# What a mix is: sums, gains, places, layouts, rates, formats.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/mixlib.sh"

# One input ends and the other goes on as if nothing had been.
ends()
{
	tone a.wav 8000 s16 'np.full(4000, 0.25)'
	tone b.wav 8000 s16 'np.full(2000, 0.25)'
	mix a.wav b.wav >out.weir
	holds out.weir 'len(a[0]) == 4000 and (a[0][:2000] == 0.5) and (a[0][2000:] == 0.25)'
	mix -f s16 a.wav b.wav >out.weir
	holds out.weir 'len(a[0]) == 4000 and (a[0][:2000] == 16384) and (a[0][2000:] == 8192)'
	inspect --verify out.weir
}

# 20 tracks of noise, with gains, of all formats: within 2^-23 · N of the sum in double.
sums()
{
	local i args=() expected='0'
	for i in $(seq 20); do
		tone $i.wav 48000 "$([ $((i % 3)) = 0 ] && echo s24 || { [ $((i % 3)) = 1 ] && echo s16 || echo f32; })" "0.9*noise($((9000 + 777 * i % 5000)), 2, $i)"
		args+=(-g "$i=-$i""dB")
		expected+=" + np.pad(read('$i.wav'), ((0, 14000 - len(read('$i.wav'))), (0, 0))) * 10 ** (-$i / 20)"
	done
	mix "${args[@]}" {1..20}.wav >files.weir
	holds files.weir "np.max(np.abs(np.pad(a[0], ((0, 14000 - len(a[0])), (0, 0))) - ($expected))) <= 20 * 2.0 ** -23"
	# The same as tracks of one stream, and as streams.
	capture {1..20}.wav | mix "${args[@]}" >stream.weir
	holds files.weir stream.weir 'np.array_equal(a[0], a[1])'
	for i in {1..20}; do
		capture --block $((100 + i * 37)) $i.wav >$i.weir
	done
	mix "${args[@]}" {1..20}.weir >streams.weir
	holds files.weir streams.weir 'np.array_equal(a[0], a[1])'
	# The C version makes the same bits.
	WEIR_CPU=c mix "${args[@]}" {1..20}.wav >c.weir
	holds files.weir c.weir 'np.array_equal(a[0], a[1])'
}

# By number, by name, for all; the last that is said holds.
gains()
{
	tone voice.wav 48000 f32 'np.full(1000, 0.5)'
	tone music.wav 48000 f32 'np.full(1000, 0.25)'
	mix -g 0.5 -g voice=-6dB -g 2=2 voice.wav music.wav >out.weir
	holds out.weir 'np.abs(a[0] - (0.5 * 10 ** -0.3 + 0.5)) < 1e-7'
	mix -g 2=0 voice.wav music.wav >out.weir
	holds out.weir 'a[0] == 0.5'
	# No level at all, in each way to write it.
	local nothing
	for nothing in 0 -inf -infdB; do
		mix -g 2=$nothing voice.wav music.wav >out.weir
		holds out.weir 'a[0] == 0.5'
	done
	mix -g -inf -g voice=1 voice.wav music.wav >out.weir
	holds out.weir 'a[0] == 0.5'
	# A name that two have is both.
	mix -g voice=0.5 voice.wav music.wav voice.wav >out.weir
	holds out.weir 'a[0] == 0.75'
	mix -g voice=0.5 -g 3=0 voice.wav music.wav voice.wav >out.weir
	holds out.weir 'a[0] == 0.5'
	expect_status 2 mix -g 2=inf voice.wav music.wav >out.weir 2>err
	one_line err "'inf' is not a level"
	expect_status 2 mix -g 3=1 voice.wav music.wav >out.weir 2>err
	one_line err "-g: '3=1': no track is called 3.* 1 to 2"
	expect_status 2 mix -g voice=loud voice.wav >out.weir 2>err
	one_line err "'loud' is not a level"
}

places()
{
	tone mono.wav 48000 f32 'np.full(1000, 0.5)'
	tone stereo.wav 48000 f32 'np.tile([0.5, 0.25], (1000, 1))'
	mix -c 2 mono.wav >out.weir
	holds out.weir 'a[0] == 0.5'
	mix --pan 1=0 mono.wav >out.weir
	holds out.weir 'a[0].shape[1] == 2 and np.abs(a[0] - 0.5 * np.sqrt(0.5)) < 1e-7'
	mix --pan mono=-1 mono.wav >out.weir
	holds out.weir 'np.array_equal(a[0][0], [0.5, 0])'
	mix --pan 0.5 mono.wav >out.weir
	holds out.weir 'np.abs(a[0][:, 0] - 0.5 * np.cos(1.5 * np.pi / 4)) < 1e-7 and np.abs(a[0][:, 1] - 0.5 * np.sin(1.5 * np.pi / 4)) < 1e-7'
	mix --pan 0 stereo.wav >out.weir
	holds out.weir 'np.array_equal(a[0][0], [0.5, 0.25])'
	mix --pan 1 stereo.wav >out.weir
	holds out.weir 'np.array_equal(a[0][0], [0, 0.75])'
	mix --pan 1=-0.5 stereo.wav mono.wav >out.weir
	holds out.weir 'np.abs(a[0] - [0.5 + 0.25 * np.sqrt(0.5) + 0.5, 0.25 * np.sqrt(0.5) + 0.5]) < 1e-7'
	expect_status 2 mix -c 1 --pan 0 mono.wav >out.weir 2>err
	one_line err 'cannot be panned in a mix of 1 channels'
	expect_status 2 mix --pan 1.5 mono.wav 2>err >out.weir
	one_line err "from -1 to 1"
}

layouts()
{
	tone five.wav 48000 f32 'np.tile([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], (1000, 1))'
	tone stereo.wav 48000 f32 'np.tile([0.5, 0.25], (1000, 1))'
	mix -c 2 five.wav >out.weir
	holds out.weir 'np.abs(a[0] - [0.1 + np.sqrt(.5) * (.3 + .5), .2 + np.sqrt(.5) * (.3 + .6)]) < 1e-6'
	mix -c 1 five.wav >out.weir
	holds out.weir 'np.abs(a[0] - [np.sqrt(.5) * .3 + .3 + .5 * 1.1]) < 1e-6'
	# The widest decides.
	mix stereo.wav five.wav >out.weir
	holds out.weir 'np.abs(a[0] - [.6, .45, .3, .4, .5, .6]) < 1e-6'
	inspect --json out.weir >lines
	eq "$(grep -m1 '"TRACK"' lines | json - 'd["channels"]')" 6
	mix -c 1 stereo.wav >out.weir
	holds out.weir 'np.abs(a[0] - 0.75 * np.sqrt(0.5)) < 1e-7'
}

matrices()
{
	tone mono.wav 48000 f32 'np.full(1000, 0.5)'
	tone stereo.wav 48000 f32 'np.tile([0.5, 0.25], (1000, 1))'
	printf '# mid and side, and the mono track\n0.5 0.5  1\n0.5, -0.5, -6dB\n\n' >m.txt
	mix --matrix m.txt stereo.wav mono.wav >out.weir
	holds out.weir 'np.abs(a[0] - [0.875, 0.125 + 0.5 * 10 ** -0.3]) < 1e-7'
	# Columns of one track: the same for each.
	printf '0 1\n1 0\n' >swap.txt
	mix --matrix swap.txt stereo.wav stereo.wav >out.weir
	holds out.weir 'np.array_equal(a[0][0], [0.5, 1])'
	printf '1 2\n1 2 3\n' >bad.txt
	expect_status 1 mix --matrix bad.txt stereo.wav >out.weir 2>err
	one_line err 'bad.txt: line 2 has 3 numbers, the lines before have 2'
	printf '1 2 3 4\n' >bad.txt
	expect_status 1 mix --matrix bad.txt stereo.wav >out.weir 2>err
	one_line err 'bad.txt: 4 columns: the tracks have 2 channels together'
	expect_status 2 mix -c 3 --matrix swap.txt stereo.wav >out.weir 2>err
	one_line err '2 rows, but -c asks for 3'
}

# Tracks of other rates are resampled, and stay where they are.
rates()
{
	tone a.wav 48000 f32 '0.25*sin(997, 48000)'
	tone b.wav 44100 f32 '0.25*sin(997, 44100)'
	tone c.wav 96000 s24 '0.25*sin(997, 95999)'
	mix a.wav b.wav c.wav >out.weir
	holds out.weir 'len(a[0]) == 48000 and np.max(np.abs(a[0][500:-500, 0] - 0.75 * np.sin(2 * np.pi * 997 * np.arange(500, 47500) / 48000))) < 1e-5'
	mix -r 44.1k a.wav b.wav >out.weir
	holds out.weir 'len(a[0]) == 44100 and np.max(np.abs(a[0][500:-500, 0] - 0.5 * np.sin(2 * np.pi * 997 * np.arange(500, 43600) / 44100))) < 1e-5'
	# As streams, with what comes in odd pieces.
	mix <(capture --block 777 a.wav) <(capture --block 100 b.wav) <(capture c.wav) >pipes.weir
	mix a.wav b.wav c.wav >files.weir
	holds files.weir pipes.weir 'np.array_equal(a[0], a[1])'
}

# A hole is silence there, and nothing moves; a resampled one, too.
gaps()
{
	tone a.wav 48000 f32 'np.full(48000, 0.5)'
	tone b.wav 48000 f32 'np.full(48000, 0.25)'
	capture --block 480 a.wav >a.weir
	"$PYTHON" - <<'PY'
import struct
d = open("a.weir", "rb").read()
out, at = b"", 0
while at < len(d):
    n = 64 * d[at + 15] + (struct.unpack_from("<I", d, at + 8)[0] + 63) // 64 * 64
    pos = struct.unpack_from("<q", d, at + 16)[0]
    if not (d[at + 5] == 3 and 9600 <= pos < 14400):
        out += d[at : at + n]
    at += n
open("hole.weir", "wb").write(out)
PY
	# A hole that nobody announced is a loss.
	expect_status 3 mix hole.weir b.wav >out.weir 2>err
	holds out.weir '(a[0][:9600] == 0.75) and (a[0][9600:14400] == 0.25) and (a[0][14400:] == 0.75)'
	one_line err 'hole.weir: '
	expect_status 3 mix -r 24k hole.weir b.wav >out.weir 2>err
	holds out.weir 'len(a[0]) == 24000 and np.abs(a[0][5000:7000] - 0.25) < 1e-4 and np.abs(a[0][7500:-300] - 0.75) < 1e-4 and np.abs(a[0][500:4500] - 0.75) < 1e-4'
}

formats()
{
	tone a.wav 48000 f32 '0.7*noise(20000, 2)'
	local f
	mix a.wav a.wav >f32.weir
	for f in s16 s24 s32; do
		mix --no-dither -f $f --stats --stats-file $f.json a.wav a.wav >$f.weir 2>err
		local full
		full=$(case $f in s16) echo 32768 ;; s24) echo 8388608 ;; s32) echo 2147483648 ;; esac)
		holds f32.weir $f.weir "np.array_equal(np.clip(np.rint(a[0].astype(float) * $full), -$full, $full - 1), a[1])"
		n=$(json $f.json 'd["clipped_samples"]')
		[ "$n" -gt 5000 ] || fail "only $n samples clipped in $f"
		one_line err "$n samples clipped"
	done
	mix -q -f s16 a.wav a.wav >s16.weir 2>err
	empty err
	# Dither only where something is reduced: whole numbers of 16 bits stay what they are.
	tone b.wav 48000 s16 '0.2*noise(20000, 2)'
	mix -f s16 b.wav b.wav >sum.weir
	holds sum.weir "np.array_equal(a[0], 2 * np.rint(read('b.wav') * 32768))"
	mix -f s16 -g 0.3 b.wav >sum.weir
	mix --no-dither -f s16 -g 0.3 b.wav >plain.weir
	holds sum.weir plain.weir "not np.array_equal(a[0], a[1]) and np.max(np.abs(a[0].astype(int) - a[1])) <= 2 and np.abs(np.mean(a[0] - 0.3 * np.rint(read('b.wav') * 32768))) < 0.02"
}

# NaN in one input is silence of that one, and counted.
not_numbers()
{
	tone a.wav 48000 f32 'np.where(k(1000) % 10 == 3, np.nan, 0.25)'
	tone b.wav 48000 f32 'np.full(1000, 0.5)'
	mix --stats --stats-file s.json a.wav b.wav >out.weir 2>err
	holds out.weir 'np.array_equal(a[0][:, 0], np.where(np.arange(1000) % 10 == 3, 0.5, 0.75))'
	eq "$(json s.json 'd["nonfinite_samples"]')" 100
	one_line err '100 samples were NaN or infinite'
}

# Codings of every kind are read as capture reads them; Opus in a stream is not PCM.
opus()
{
	tone a.wav 48000 f32 '0.25*sin(1000, 48000)'
	capture a.wav | encode -b 128k >a.weir
	mux -q -o a.opus <a.weir
	mix a.opus a.wav >out.weir
	holds out.weir 'len(a[0]) == 48000 and abs(level(a[0][4800:43200, 0], 1000) - 0.5) < 0.01'
	expect_status 1 mix a.weir >out.weir 2>err
	one_line err 'track 1: is Opus: decode first'
}

selection()
{
	tone a.wav 48000 f32 'np.full(1000, 0.5)'
	tone b.wav 48000 f32 'np.full(1000, 0.25)'
	tone c.wav 48000 f32 'np.full(1000, 0.125)'
	capture a.wav b.wav c.wav | mix -t a -t c >out.weir
	holds out.weir 'a[0] == 0.625'
	capture a.wav b.wav | mix -t b -n bass - c.wav -t audio >out.weir
	holds out.weir 'a[0] == 0.875'
	inspect --json out.weir >lines
	eq "$(grep -m1 '"TRACK"' lines | json - 'd["name"]')" bass
	expect_status 1 mix -t nobody a.wav >out.weir 2>err
	one_line err 'no track to mix'
	# What there is is mixed; who is missing is said.
	expect_status 1 mix -t a,nobody a.wav b.wav >out.weir 2>err
	one_line err '^mix: nobody: no such track in the input'
	inspect --verify out.weir >lines
	contains lines "1000 frames"
}

standard_input()
{
	tone a.wav 48000 f32 'np.full(1000, 0.5)'
	tone b.wav 48000 f32 'np.tile([0.25, 0.125], (2000, 1))'
	cat a.wav | mix - b.wav >one.weir
	cat a.wav | mix b.wav - >two.weir
	cat b.wav | mix a.wav - >three.weir
	holds one.weir two.weir three.weir 'all(np.array_equal(a[0], x) for x in a) and np.array_equal(a[0][0], [0.75, 0.625]) and np.array_equal(a[0][1500], [0.25, 0.125])'
	expect_status 2 mix - - <a.wav >out.weir 2>err
	one_line err '<stdin>: cannot be two inputs'
	empty out.weir
	expect_status 1 mix a.wav missing.wav >out.weir 2>err
	one_line err 'missing.wav: No such file'
	cat a.wav | mix | holds /dev/stdin 'a[0] == 0.5'
}

# The same input gives the same bytes, however it comes.
repeats()
{
	local i
	tone a.wav 48000 s16 '0.3*noise(30000, 2)'
	capture a.wav gen:sine -d 1s >s.weir
	mix -g 1=0.3 -f s16 s.weir >one.weir
	for i in 1 64 4095 65537; do
		"$PYTHON" -c '
import os, sys
d = open("s.weir", "rb").read()
n = int(sys.argv[1])
d = d if n > 1 else d
for i in range(0, len(d), n if n > 1 else 997):
    os.write(1, d[i : i + (n if n > 1 else 997)])
' $i | mix -g 1=0.3 -f s16 >two.weir
		holds one.weir two.weir 'np.array_equal(a[0], a[1])'
	done
	mix -g 1=0.3 -f s16 s.weir >two.weir
	same one.weir two.weir
}

# The heap stands still: as many allocations for 5000 packets as for 50, of files, streams, and 16 channels of 1024 frames.
allocations()
{
	case $B in *asan* | *ubsan* | *tsan*) skip "a sanitizer's allocator is not counted" ;; esac
	local n c
	for c in 2 16; do
		for n in 50 5000; do
			capture -q -d $((n * 1024))smp -c $c --block 1024 gen:noise gen:ident >s$n.weir
			mix --stats --stats-file $n.json s$n.weir >/dev/null
			mix --minus -g 1=0.5 --stats --stats-file m$n.json s$n.weir >/dev/null
		done
		eq "$(json 50.json 'd["packets_in"] > 100 and d["allocs"]')" "$(json 5000.json 'd["packets_in"] > 10000 and d["allocs"]')" "$c channels"
		eq "$(json m50.json 'd["allocs"]')" "$(json m5000.json 'd["allocs"]')" "minus, $c channels"
	done
	for n in 50 5000; do
		make_wav $n.wav 48000 2 s16 $((n * 1024))
		mix --limiter --stats --stats-file $n.json $n.wav $n.wav >/dev/null
	done
	eq "$(json 50.json 'd["allocs"]')" "$(json 5000.json 'd["allocs"]')" "files"
}

test_case "an input that ends changes no bit of the others" ends
test_case "20 tracks are within 2^-23 N of the exact sum, as files, tracks and streams" sums
test_case "gains by number, name and for all" gains
test_case "mono to both, pan by constant power, stereo pan" places
test_case "5.1 down by ITU-R BS.775, and up" layouts
test_case "matrices from a file" matrices
test_case "other rates are resampled and aligned" rates
test_case "a hole is silence in its place" gaps
test_case "integer formats: rounded, clipped with a count, dithered only where it is due" formats
test_case "NaN silences nobody else" not_numbers
test_case "an Opus file is read, an Opus track is refused" opus
test_case "-t and -n" selection
test_case "stdin among files, in any order, once" standard_input
test_case "the same input gives the same bytes" repeats
test_case "allocates nothing while it runs" allocations
done_testing
