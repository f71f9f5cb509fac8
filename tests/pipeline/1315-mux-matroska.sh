#!/bin/bash
# mux -o x.mka, x.mkv: Matroska by libavformat, read back with ffmpeg and looked at with mkvtoolnix.
. "$(dirname "$0")/../lib.sh"

have ffmpeg || skip_all "ffmpeg is not installed"
capture gen:silence -d 0.1 | mux -o "$TMPDIR/try.mka" >/dev/null 2>"$TMPDIR/said" ||
	{ command grep -q 'libavformat' "$TMPDIR/said" && skip_all "$(cat "$TMPDIR/said")"; }

# What a file holds, as samples.
samples()
{
	ffmpeg -v error -i "$1" -map "0:${3:-a}" -f "$2" -
}

pcm_comes_back()
{
	local f
	for f in s16:s16le s24:s24le s32:s32le f32:f32le; do
		make_wav in.wav 44100 3 ${f%:*} 100001
		mux -o ${f%:*}.mka in.wav 2>said
		one_line said "0:02.268 matroska, 1 track"
		samples ${f%:*}.mka ${f#*:} >got
		mux -o - --format raw in.wav >wanted
		same got wanted "$f"
	done
}

opus_to_the_sample()
{
	local n
	for n in 144005 960 700 48000; do
		capture gen:noise:pink -c 2 -d ${n}smp | encode -b 64k >o.weir
		mux -yo o.mka o.weir 2>said
		mux -yo o.opus o.weir 2>said
		samples o.mka f32le >got
		samples o.opus f32le >wanted
		same got wanted "$n frames"
		eq "$(bytes_of got)" $((n * 8)) "length"
	done
	if have mkvinfo; then
		mkvinfo o.mka >info
		contains info "Codec-inherent delay: 00:00:00.006500000"
		contains info "Seek pre-roll: 00:00:00.080000000"
	fi
}

flac_is_exact()
{
	local f
	for f in s16:s16le:flac s24:s24le:flac f32:f32le:pcm_f32le; do
		make_wav in.wav 48000 2 ${f%%:*} 50001
		mux --flac -yo f.mka in.wav 2>said
		eq "$(ffprobe -v error -show_entries stream=codec_name -of csv=p=0 f.mka)" "${f##*:}"
		f=${f%:*}
		samples f.mka ${f#*:} >got
		mux -o - --format raw in.wav >wanted
		same got wanted "$f"
	done
}

several_tracks_with_pictures()
{
	local f
	ffmpeg -v error -f lavfi -i testsrc=s=96x64:r=30 -frames:v 45 -pix_fmt yuv420p -f yuv4mpegpipe pictures
	capture gen:count -c 2 -d 1.5 >a.weir
	capture gen:sine -d 1.2 | encode >b.weir
	mkfifo v
	cat pictures >v &
	mux --video v -o av.mkv a.weir b.weir 2>said
	contains said "3 tracks"
	contains said "45 pictures"
	eq "$(ffprobe -v error -show_entries stream=codec_name -of csv=p=0 av.mkv | sort | tr '\n' ' ')" "opus pcm_f32le rawvideo "
	same <(ffmpeg -v error -i av.mkv -map 0:v -f framemd5 - | sed 's/.*,//') <(ffmpeg -v error -i pictures -f framemd5 - | sed 's/.*,//') "pictures"
	samples av.mkv f32le a:0 >got
	capture gen:count -c 2 -d 1.5 | mux -o - --format raw >wanted
	same got wanted "audio"
	# Times: the last picture is at 44/30 s.
	near "$(ffprobe -v error -select_streams v -show_entries packet=pts_time -of csv=p=0 av.mkv | tail -1)" 1.467 0.001
	for f in rgba gray yuyv422 uyvy422 yuv422p yuv411p yuv410p nv12 nv21; do
		ffmpeg -v error -f lavfi -i testsrc=s=64x48:r=25 -frames:v 5 -pix_fmt $f -f rawvideo -y raw
		mux --video raw,64x48,$f,25 -yo one.mkv </dev/null 2>said || fail "$f: $(cat said)"
		ffmpeg -v error -i one.mkv -f rawvideo - | cmp - raw || fail "$f"
	done
	# A layout that Matroska cannot name would come back as another.
	expect_status 1 mux --video raw,64x24,bgra,25 -yo two.mkv </dev/null 2>said
	one_line said "no name for pictures of bgra"
	[ ! -e two.mkv ] && [ ! -e two.mkv.part ]
	if have mkvmerge; then
		mkvmerge -i av.mkv >out
		contains out "Track ID 0: video (V_UNCOMPRESSED)"
	fi
}

a_kill_loses_less_than_a_second()
{
	local pid
	mkfifo hold
	{ capture gen:count -c 2 -d 5; sleep 30; } >hold &
	mux -o k.mka hold &
	pid=$!
	wait_for 10 eval '[ -e k.mka.part ] && [ "$(bytes_of k.mka.part)" -gt $((4 * 48000 * 8)) ]'
	kill -KILL $pid
	wait $pid || :
	samples k.mka.part f32le >got 2>said || :
	between $(($(bytes_of got) / 8)) 192000 240000 "frames in a killed file"
	capture gen:count -c 2 -d 5 | mux -o - --format raw >wanted
	cmp -n $(($(bytes_of got))) got wanted
}

tags_and_names()
{
	capture gen:sine -d 0.2 -n "erste Spur" | mux --tag TITLE="Über dem See" --tag ARTIST=Ich -o t.mka 2>said
	ffprobe -v error -show_entries stream_tags:format_tags -of json t.mka >tags
	eq "$(json tags 'd["format"]["tags"]["title"]')" "Über dem See"
	eq "$(json tags 'd["streams"][0]["tags"]["title"]')" "erste Spur"
	eq "$(json tags 'd["streams"][0]["tags"]["ARTIST"]')" "Ich"
}

holes_keep_their_places()
{
	# A hole of 4800 frames, of 4 bytes each, in the middle of 48000.
	capture gen:count -c 1 -d 1 --block 480 >whole.weir
	"$PYTHON" - whole.weir >holed.weir <<'PY'
import struct, sys
data = open(sys.argv[1], "rb").read()
at = 0
while at < len(data):
    kind, plen, hunits = data[at + 5], struct.unpack_from("<I", data, at + 8)[0], data[at + 15]
    pos, = struct.unpack_from("<q", data, at + 16)
    n = 64 * hunits + (plen + 63) // 64 * 64
    if not (kind == 3 and 24000 <= pos < 28800):
        sys.stdout.buffer.write(data[at:at + n])
    at += n
PY
	expect_status 3 mux -o h.mka holed.weir 2>said
	samples h.mka f32le >got
	mux -o - --format raw whole.weir >wanted
	eq "$(bytes_of got)" "$(bytes_of wanted)" "length"
	cmp -n 96000 got wanted
	cmp -i 115200 got wanted
	cmp <(head -c 19200 /dev/zero) <(head -c 115200 got | tail -c 19200)
}

pipes_and_the_same_bytes()
{
	make_wav in.wav 48000 2 s16 30000
	mux --format mka -o - in.wav | ffmpeg -v error -i - -f s16le - | cmp - <(mux -o - --format raw in.wav)
	mux -o one.mka in.wav 2>said
	mux -o two.mka in.wav 2>said
	same one.mka two.mka
	expect_status 1 mux -o one.mka in.wav 2>said
	one_line said "exists"
	expect_status 1 mux --format mka -yo /dev/full in.wav 2>said
	one_line said "No space left"
}

what_has_no_place()
{
	make_wav in.wav 48000 2 s16 3000
	expect_status 2 mux -o x.mka --split-every 1 in.wav 2>said
	expect_status 2 mux -o x.mka --sync in.wav 2>said
	expect_status 2 mux -o x.wav --flac in.wav 2>said
	expect_status 2 mux -o x.mka --start-above -40dB in.wav 2>said
	expect_status 2 mux -o '%t.mka' in.wav 2>said
	expect_status 2 mux -o x.mka --max-gap 1s in.wav 2>said
	one_line said "^mux: --max-gap: "
	[ ! -e x.mka ] && [ ! -e x.mka.part ]
}

# The timeline leaps: silence up to an hour, a gap in time beyond; and back, where Matroska cannot go.
leaps_of_the_timeline()
{
	local option
	for option in "" --flac; do
		"$PYTHON" "$TOP/tests/pipeline/weirfile.py" make far.weir track:1:1:1:48000:1:1:0 data:1:0:480:10 data:1:$((1 << 40)):480:10:2 end:1 end:0
		# shellcheck disable=SC2086
		(ulimit -f 4096; mux -y -o far.mka $option far.weir 2>said)
		grep -q "^mux: far.mka: track 1 leaps 6362:54:52\.145 ahead, more than an hour: no silence, only a gap in time$" said ||
			fail "said: $(cat said)"
		[ "$(bytes_of far.mka)" -lt 100000 ] || fail "$option: $(bytes_of far.mka) bytes"
		samples far.mka s16le >got.raw
		mux -y -o want.raw far.weir 2>said
		same got.raw want.raw
		ffprobe -v error -show_entries packet=pts_time -of csv=p=0 far.mka | cut -d . -f 1 | uniq >times
		eq "$(tail -n 1 times)" $(((1 << 40) / 48000)) "$option: the last packet's second"

		# An hour is silence yet; of 8 frames a second, so that it is little.
		"$PYTHON" "$TOP/tests/pipeline/weirfile.py" make hour.weir track:1:1:1:100:1:1:0 data:1:0:50:2 data:1:360100:50:2:2 end:1 end:0
		# shellcheck disable=SC2086
		mux -y -o hour.mka $option hour.weir 2>said
		eq "$(samples hour.mka s16le | wc -c)" $((2 * (100 + 360000 + 100))) "$option: with an hour of silence"

		"$PYTHON" "$TOP/tests/pipeline/weirfile.py" make back.weir track:1:1:1:48000:1:1:0 data:1:0:480:300 data:1:48000:480:10:2 \
			gap:1:52800:480:1 data:1:53280:480:10 end:1 end:0
		# shellcheck disable=SC2086
		expect_status 3 mux -y -o back.mka $option back.weir 2>said
		grep -q "^mux: back.mka: track 1 leaps 0:02.000 back, where Matroska cannot go: it goes on behind what came$" said ||
			fail "said: $(cat said)"
		samples back.mka s16le >got.raw
		expect_status 3 mux -y -o want.raw back.weir 2>said
		same got.raw want.raw
	done
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" make back.weir track:1:1:1:48000:1:1:0 data:1:0:480:300 data:1:48000:480:10:2 end:1 end:0
	encode back.weir | mux -y -o back.mka 2>said
	grep -q "^mux: back.mka: track 1 leaps 0:02.007 back, where Matroska cannot go: it goes on behind what came$" said || fail "said: $(cat said)"
	ffprobe -v error -show_entries packet=pts_time -of csv=p=0 back.mka | grep . >times
	eq "$(sort -n times | uniq -d | wc -l)" 0 "packets that share a time"
}
test_case "leaps of the timeline" leaps_of_the_timeline

# A track that has ended, and comes again.
ends_and_comes_again()
{
	local option
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" make a.weir track:1:1:1:48000:1:1:0 data:1:0:480:10 end:1 track:1:1:1:48000:1:1:4800 \
		data:1:4800:480:10 end:1 end:0
	mux -o want.raw a.weir 2>said
	for option in "" --flac; do
		# shellcheck disable=SC2086
		mux -y -o a.mka $option a.weir 2>said
		samples a.mka s16le >got.raw
		same got.raw want.raw
	done
}
test_case "a track that ends and comes again" ends_and_comes_again

test_case "PCM comes back to the sample, in every format" pcm_comes_back
test_case "Opus decodes to what Ogg Opus decodes to, at any length" opus_to_the_sample
test_case "FLAC is exact, and float stays what it is" flac_is_exact
test_case "several tracks, with pictures" several_tracks_with_pictures
test_case "a kill loses less than a second" a_kill_loses_less_than_a_second
test_case "tags and names" tags_and_names
test_case "holes keep their places" holes_keep_their_places
# What mux makes of sound and pictures knows all its tracks before the first packet, so that mux makes Matroska of it.
from_a_stream()
{
	ffmpeg -v error -f lavfi -i testsrc=s=96x64:r=25:d=1 -pix_fmt yuv420p film.y4m
	capture -d 1s gen:sine | mux --video film.y4m >f.weir
	mux -o f.mkv f.weir 2>err
	eq "$(ffprobe -v error -show_entries stream=codec_type -of csv=p=0 f.mkv | sort | tr '\n' ' ')" "audio video "
}

test_case "a stream of sound and pictures becomes Matroska" from_a_stream
test_case "pipes, and the same bytes each time" pipes_and_the_same_bytes
test_case "what has no place is said" what_has_no_place
done_testing
