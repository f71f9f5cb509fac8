#!/bin/bash
# demux: packets out of Ogg Opus, undecoded, each in its place; tracks chosen and split.
. "$(dirname "$0")/../lib.sh"

ogg()
{
	"$PYTHON" "$TOP/tests/pipeline/oggfile.py" "$@"
}

# The packets of a stream, one a line: type pos dur bytes.
packets()
{
	{ inspect --json "$1" || [ $? = 3 ]; } | "$PYTHON" -c '
import json, sys
for line in sys.stdin:
    d = json.loads(line)
    if d.get("type") in ("DATA", "GAP"):
        print(d["type"], d["pos"], d["dur"], d["bytes"] if d["type"] == "DATA" else "-")'
}

# ---- Ogg Opus ----

packets_keep_their_places()
{
	local i
	ogg a.opus packets=30 trim=17
	demux a.opus >a.weir
	for i in $(seq 0 29); do
		echo "DATA $((i * 960 - 312)) $((i == 29 ? 943 : 960)) $((81 + i % 7))"
	done >wanted
	packets a.weir >got
	same got wanted "packets"
	inspect --verify a.weir >out
	grep -q 'track 1: 28471 frames, 0 gaps' out
	inspect a.weir >out
	grep -q '^TRACK .*opus.*"a"' out
	json <(inspect --json a.weir) '[l for l in lines if l.get("type") == "DATA"][-1]["flags"]' | grep -q trim
	json <(inspect --json a.weir) '[l["first_pos"] for l in lines if l.get("type") == "TRACK"][0]' | grep -qx 0
}

payloads_are_untouched()
{
	ogg a.opus packets=12 bytes=200
	demux a.opus >a.weir
	"$PYTHON" - a.weir <<'PY'
import struct, sys
data = open(sys.argv[1], "rb").read()
at = n = 0
while at < len(data):
    kind, plen, hunits = data[at + 5], struct.unpack_from("<I", data, at + 8)[0], data[at + 15]
    body = data[at + 64 * hunits : at + 64 * hunits + plen]
    if kind == 3:
        assert body == bytes([31 << 3 | 4]) + bytes([n]) * (200 + n % 7), n
        n += 1
    at += 64 * hunits + (plen + 63) // 64 * 64
assert n == 12, n
PY
}

file_and_pipe_are_alike()
{
	ogg a.opus packets=100 dur=120
	demux a.opus >file.weir
	cat a.opus | demux >pipe.weir
	demux - <a.opus >stdin.weir
	packets file.weir >file
	packets pipe.weir >pipe
	packets stdin.weir >stdin
	eq "$(wc -l <file)" 100
	same file pipe
	same file stdin
	# One byte at a time is the same stream too.
	"$PYTHON" -c '
import os
for b in open("a.opus", "rb").read(): os.write(1, bytes([b]))' | demux >bytes.weir
	same bytes.weir pipe.weir
}

joined_late()
{
	ogg a.opus packets=20 trim=17 offset=123456789
	demux a.opus >a.weir
	eq "$(packets a.weir | sed -n 1p)" "DATA 123456477 960 81"
	inspect --verify a.weir | grep -q 'track 1: 18871 frames, 0 gaps'
}

chained()
{
	ogg a.opus packets=20 trim=17 title=first
	local serial
	for serial in 1 2; do
		ogg b.opus packets=11 trim=5 title=second channels=1 offset=777777 serial=$serial
		cat a.opus b.opus | demux >c.weir
		inspect --verify c.weir | grep -q "track 1: $((20 * 960 - 17 - 312 + 11 * 960 - 5 - 312)) frames, 0 gaps.*whole"
		eq "$(packets c.weir | sed -n 21p)" "DATA $((20 * 960 - 17 - 312 - 312)) 960 81"
		inspect c.weir >out
		eq "$(grep -c ^TRACK out)" 2 "announcements"
		json <(inspect --json c.weir) '[l["channels"] for l in lines if l.get("type") == "TRACK"]' | grep -qx '\[2, 1\]'
	done
}

hole_keeps_its_time()
{
	ogg a.opus packets=50 trim=17 damage=5
	expect_status 3 demux a.opus >a.weir 2>err
	one_line err '^demux: a.opus: 1 hole, 4800 frames lost \(from frame 14088\), [0-9]+ damaged bytes$'
	packets a.weir >got
	grep -qx 'GAP 14088 4800 -' got
	grep -qx 'DATA 18888 960 87' got
	eq "$(tail -1 got)" "DATA $((49 * 960 - 312)) 943 81"
	expect_status 3 inspect --verify a.weir >out
	grep -q '1 gap, 4800 frames lost' out
	# The same page taken out whole.
	ogg b.opus packets=50 trim=17 remove=5
	expect_status 3 demux b.opus >b.weir 2>err
	packets b.weir >got_b
	same got got_b
}

odd_endings()
{
	ogg a.opus packets=20 empty_end=1
	demux a.opus >a.weir 2>err
	empty err
	inspect --verify a.weir | grep -q "track 1: $((20 * 960 - 312)) frames.*whole"

	ogg a.opus packets=1 trim=647
	demux a.opus | inspect --verify | grep -q 'track 1: 1 frame,.*whole'

	# A live recording that just stops is whole, one torn in the middle of a page is not.
	ogg a.opus packets=20 eos=0
	demux a.opus 2>err | inspect --verify | grep -q "track 1: $((20 * 960 - 312)) frames.*whole"
	empty err
	demux -v a.opus 2>&1 >/dev/null | grep -q 'without an end-of-stream page'
	head -c "$(($(bytes_of a.opus) - 7))" a.opus >torn.opus
	expect_status 3 demux torn.opus >torn.weir 2>err
	one_line err 'in the middle of a page'
	expect_status 3 inspect --verify torn.weir >out
	eq "$(packets torn.weir | wc -l)" 15
}

headers_only()
{
	ogg a.opus headers=1
	demux a.opus >a.weir 2>err
	one_line err '^demux: a.opus: no audio'
	inspect --verify a.weir | grep -q 'track 1: 0 frames.*whole'
}

impossible_granule()
{
	ogg a.opus packets=20 shift=-8
	expect_status 1 demux a.opus >a.weir 2>err
	one_line err 'granule'
}

other_audio_names_capture()
{
	make_wav a.wav 48000 2 s16 4800
	expect_status 1 demux a.wav >out 2>err
	one_line err '^demux: a.wav: .*capture'
	empty out
	expect_status 1 demux <a.wav >out 2>err
	one_line err 'capture'
	expect_status 1 demux nothing.opus >out 2>err
	one_line err '^demux: nothing.opus: No such file'
}

# What mux writes, demux reads back to the frame.
there_and_back()
{
	local n
	for n in 0 1 119 120 47777; do
		capture -q -n x gen:noise:pink -r 48k -c 2 -d "${n}smp" | encode -q >a.weir
		mux -q -o "$n.opus" <a.weir
		demux "$n.opus" >b.weir
		packets a.weir >a
		packets b.weir >b
		same a b "packets of $n frames"
		inspect --verify b.weir | grep -q "track 1: $n frames*,.*whole"
	done
}

allocates_nothing_underway()
{
	local n allocs=
	case $B in *san*) skip "the sanitizers' allocator is not counted" ;; esac
	for n in 50 5000; do
		ogg a.opus packets=$n
		demux --stats-file s.json --stats a.opus >a.weir
		eq "$(json s.json 'd["packets_in"]')" "$n"
		eq "$(json s.json 'd["frames_out"]')" $((n * 960 - 312))
		ne "$(json s.json 'd["allocs"]')" 0 "allocations counted"
		eq "$(json s.json 'd["allocs"]')" "${allocs:-$(json s.json 'd["allocs"]')}" "allocations after $n packets"
		allocs=$(json s.json 'd["allocs"]')
	done
}

# What has come is handed on while the source is silent.
live_input_is_passed_on()
{
	ogg a.opus packets=50
	mkfifo in
	demux <in >out.weir &
	exec 7>in
	head -c 2000 a.opus >&7
	wait_for 5 eval '[ "$(inspect --json out.weir 2>/dev/null | grep -c "\"DATA\"")" -ge 10 ]'
	kill -INT $!
	wait $! || fail "status $? after SIGINT"
	exec 7>&-
	# A stop is no damage: the page that was on its way is not missed.
	inspect --verify out.weir | grep -q 'whole'
	inspect --json out.weir | grep -q '"DATA"'
}

reader_gone_is_quiet()
{
	ogg a.opus packets=5000 dur=120
	local status=0
	{ demux a.opus 2>err || echo $? >status; } | head -c 1000 >/dev/null
	eq "$(cat status)" 141
	empty err
}

# ---- tracks of a stream ----

three_tracks()
{
	capture -q -r 48k -c 1 -f s16 -d 4800smp gen:count gen:noise:white gen:sine:freq=440 >m.weir
}

chooses_tracks()
{
	local spec wanted
	three_tracks
	while read -r spec wanted; do
		demux -t "$spec" m.weir >out.weir
		inspect --verify out.weir >out
		eq "$(grep -o 'track [0-9]*:' out | tr -dc '0-9\n' | tr '\n' ' ')" "${wanted//,/ } " "-t $spec"
		grep -q whole out
	done <<-LIST
		1 1
		3 3
		count 1
		noise 2
		audio 1,2,3
		sine,count 1,3
		2,sine 2,3
	LIST
	demux -t 1 -t sine m.weir | inspect --verify | grep -q 'track 1: 4800 frames (every sample right), track 3'
	demux m.weir | inspect --verify | grep -q 'track 1:.*track 2:.*track 3:.*whole'
}

names_what_is_missing()
{
	three_tracks
	expect_status 1 demux -t 1,vocals m.weir >out.weir 2>err
	one_line err '^demux: vocals: no such track'
	inspect --verify out.weir | grep -q whole
	expect_status 2 demux -t 0 m.weir 2>err
	one_line err 'range'
	expect_status 2 demux -t 70000 m.weir 2>err
	expect_status 2 demux -t 1,,2 m.weir 2>err
	expect_status 2 demux m.weir n.weir 2>err
	expect_status 2 demux --force m.weir 2>err
	expect_status 2 demux --frames y4m m.weir 2>err
	one_line err "^demux: --frames: "
}

# Packets are routed as they are: whatever the tool, the same samples with the same numbers.
routing_changes_nothing()
{
	capture -q -r 48k -c 2 -f f32 --block 8192 -d 200000smp gen:noise:white >a.weir
	demux a.weir | demux | demux >b.weir
	packets a.weir >a
	packets b.weir >b
	same a b
	"$PYTHON" - a.weir b.weir <<'PY'
import struct, sys
def payloads(path):
    data, at, out = open(path, "rb").read(), 0, []
    while at < len(data):
        plen = struct.unpack_from("<I", data, at + 8)[0]
        if data[at + 5] == 3:
            out.append((data[at + 28 : at + 32], data[at + 64 : at + 64 + plen]))
        at += 64 * data[at + 15] + (plen + 63) // 64 * 64
    return out
a, b = (payloads(p) for p in sys.argv[1:])
assert len(a) > 20 and a == b
PY
	eq "$(bytes_of a.weir)" "$(bytes_of b.weir)"
}

splits_into_files()
{
	three_tracks
	demux --split out m.weir >stdout
	empty stdout
	eq "$(ls out | tr '\n' ' ')" "01-count.weir 02-noise.weir 03-sine.weir "
	inspect --verify out/01-count.weir | grep -q 'track 1: 4800 frames (every sample right).*whole'
	inspect --verify out/03-sine.weir | grep -q 'track 3: 4800 frames.*whole'
	demux -t 2 m.weir >two.weir
	packets two.weir >a
	packets out/02-noise.weir >b
	same a b

	# Nothing is overwritten unasked, and nothing half-made is left beside it.
	sum=$(cksum out/*)
	expect_status 1 demux --split out m.weir 2>err
	one_line err '^demux: out/01-count.weir: '
	rm out/02-noise.weir out/01-count.weir
	expect_status 1 demux --split out m.weir 2>err
	eq "$(ls out | tr '\n' ' ')" "03-sine.weir "
	demux --split out --force m.weir
	eq "$(cksum out/*)" "$sum"
	demux --split out -y -t noise m.weir
	demux --split 'a % b' -t 1 <m.weir
	inspect --verify 'a % b/01-count.weir' | grep -q whole
}

split_names_are_safe()
{
	capture -q -n '../x/y' -r 48k -c 1 -d 100smp gen:count >a.weir
	demux --split out a.weir
	eq "$(find . -name '*.weir' | sort | tr '\n' ' ')" "./a.weir ./out/01-_._x_y.weir "
}

split_tells_the_truth()
{
	three_tracks
	head -c "$(($(bytes_of m.weir) - 3000))" m.weir >cut.weir
	expect_status 3 demux --split out cut.weir 2>err
	one_line err '^demux: cut.weir: '
	eq "$(ls out | tr '\n' ' ')" "01-count.weir 02-noise.weir 03-sine.weir "
	expect_status 3 inspect --verify out/03-sine.weir >out.txt
	ogg a.opus packets=50 damage=5
	expect_status 3 demux --split o a.opus 2>err
	expect_status 3 inspect --verify o/01-a.weir >out.txt
	grep -q '4800 frames lost' out.txt
}

split_is_valid_at_every_moment()
{
	mkfifo in
	demux --split out <in &
	exec 7>in
	capture -q -r 48k -c 2 -f f32 -d 20000smp gen:count >a.weir
	head -c "$(($(bytes_of a.weir) - 256))" a.weir >&7
	wait_for 5 eval '[ "$(bytes_of out/01-count.weir.part 2>/dev/null || echo 0)" -gt 100000 ]'
	eq "$(ls out)" 01-count.weir.part
	status_of inspect --verify out/01-count.weir.part >out.txt
	eq "$status" 3
	kill -INT $!
	wait $! || fail "status $? after SIGINT"
	exec 7>&-
	eq "$(ls out)" 01-count.weir
	inspect --verify out/01-count.weir >out.txt
	grep -q 'every sample right' out.txt
}

test_case "Ogg Opus packets come out undecoded, each in its place, the last one trimmed" packets_keep_their_places
test_case "payloads are the file's packets, byte for byte" payloads_are_untouched
test_case "a file, a pipe and stdin give the same packets" file_and_pipe_are_alike
test_case "a stream joined late begins where its granule positions say" joined_late
test_case "links of a chained file follow one another without a hole" chained
test_case "a damaged or missing page is a hole of its length in its place, exit 3" hole_keeps_its_time
test_case "an empty last packet, one frame, no end-of-stream page, a torn page" odd_endings
test_case "headers only: no packet, said, exit 0" headers_only
test_case "an impossible first granule position is refused" impossible_granule
test_case "other audio is refused with the name of the tool that reads it" other_audio_names_capture
test_case "what mux wrote is read back to the frame" there_and_back
test_case "nothing is allocated underway" allocates_nothing_underway
test_case "live input is handed on at once; SIGINT ends the stream well" live_input_is_passed_on
test_case "a reader that goes away is a quiet end" reader_gone_is_quiet
test_case "-t chooses tracks by number, name and kind" chooses_tracks
test_case "a track that is not there is named; wrong numbers are wrong usage" names_what_is_missing
test_case "three stages of routing change no payload and no number" routing_changes_nothing
test_case "--split writes a file a track, and overwrites only with --force" splits_into_files
test_case "names of tracks cannot leave the folder" split_names_are_safe
test_case "split files say that the input was cut" split_tells_the_truth
test_case "a file being split stands as .part, and gets its name on SIGINT" split_is_valid_at_every_moment
done_testing
