#!/bin/bash
# mux --video and demux -o, --video, --split: raw frames beside audio, and back.
. "$(dirname "$0")/../lib.sh"

frames()
{
	"$PYTHON" "$TOP/tests/pipeline/video.py" "$@"
}

# The headers of a stream, one JSON object a packet.
packets()
{
	{ inspect --json "$1" || [ $? = 3 ]; } | command grep -v summary
}

# ---- raw ----

raw_frames_come_back()
{
	local fps rate
	for fps in 60:60/1 60000/1001:60000/1001 29.97:30000/1001 12.5:25/2; do
		rate=${fps#*:}
		frames make in.raw frames=7 bytes=$((33 * 17 * 4))
		mux --video "in.raw,33x17,rgba,${fps%:*}" >v.weir
		rm -f out.rgba
		demux -o out.rgba v.weir 2>said
		same in.raw out.rgba "$fps"
		contains said "7 frames of 33x17 rgba at $rate a second"
		inspect --verify v.weir >out
		contains out "track 1: 7 frames, 0 gaps"
	done
}

large_frames_are_cut_into_fragments()
{
	local size=$((640 * 480 * 3))
	frames make in.raw frames=5 bytes=$size
	mux --video in.raw,640x480,bgr24,25 >v.weir
	packets v.weir >p
	json p 'max(l["bytes"] for l in lines if l["type"] == "DATA")' | grep -qx 65472
	eq "$(json p 'len([l for l in lines if l["type"] == "DATA"])')" $((5 * ((size + 65471) / 65472))) "fragments"
	json p 'sorted({l["pos"] for l in lines if l["type"] == "DATA"})' | grep -qx '\[0, 1, 2, 3, 4\]'
	json p 'sorted({l["seq"] for l in lines if l["type"] == "DATA"})' | grep -qx '\[0, 1, 2, 3, 4\]'
	# No sum over pictures, one over everything else.
	json p 'any("pcrc" in l["flags"] for l in lines if l["type"] == "DATA")' | grep -qx false
	demux -o - v.weir 2>said >out.raw
	same in.raw out.raw
}

every_layout_has_its_size()
{
	local f bytes
	# Sizes as ffmpeg counts them for 7x5 pixels.
	for f in rgba:140 bgr0:140 rgb24:105 yuyv422:80 gray:35 gray16le:70 yuv420p:59 yuv422p:75 yuv444p:105 yuv411p:55 yuv410p:43 \
		yuva420p:94 yuva444p:140 yuv420p10le:118 yuv444p12le:210 nv12:59 gbrp:105; do
		bytes=${f#*:}
		frames make in.raw frames=3 "bytes=$bytes"
		mux --video "in.raw,7x5,${f%:*},25" >v.weir
		demux --frames raw -yo out.raw v.weir 2>said
		same in.raw out.raw "$f"
		if have ffmpeg; then
			eq "$(ffmpeg -v error -f lavfi -i "color=s=14x10:r=25:d=0.04" -vf "format=gbrp,scale=7:5,format=${f%:*}" -f rawvideo - | wc -c)" "$bytes" "ffmpeg's ${f%:*}"
		fi
	done
}

through_pipes_and_descriptors()
{
	frames make in.raw frames=20 bytes=$((64 * 48 * 4))
	mkfifo v
	cat in.raw >v &
	mux --video v,64x48,rgba,30 </dev/null | demux -o - 2>said | cmp - in.raw
	mux --video -,64x48,rgba,30 <in.raw | demux -o - 2>said | cmp - in.raw
	mux --video 7,64x48,rgba,30,name=desk </dev/null 7<in.raw | inspect - >out
	contains out '"desk"'
	demux -o out.rgba <(mux --video in.raw,64x48,rgba,30 </dev/null) 2>said
	same in.raw out.rgba
	mkfifo w
	cat w >got &
	mux --video in.raw,64x48,rgba,30 | demux -o w 2>said
	wait
	same in.raw got
}

# ---- audio beside it ----

audio_is_untouched()
{
	frames make in.raw frames=90 bytes=$((160 * 120 * 4))
	capture gen:count -c 3 -r 48k -d 3 >a.weir
	mux --video in.raw,160x120,rgba,30 a.weir >av.weir
	inspect --verify av.weir >out
	contains out "track 1: 144000 frames (every sample right), 0 gaps"
	contains out "track 2: 90 frames"
	demux -t audio av.weir | mux -o a.wav 2>said
	capture a.wav | mux -o b.wav 2>said
	capture gen:count -c 3 -r 48k -d 3 | mux -o c.wav 2>said
	same b.wav c.wav
	demux --video out.rgba av.weir 2>said >rest.weir
	same in.raw out.rgba
	inspect --verify rest.weir >out
	contains out "track 1: 144000 frames (every sample right), 0 gaps"
	grep -q "track 2" out && fail "the video is in the rest too"
	# Each where its time is: audio no more than a block and a frame away from the picture.
	packets av.weir >p
	near "$(json p 'max(abs(a - v) for a, v in (lambda s: [(max([0] + [x["pos"] / 48000 for x in s[:i] if x["type"] == "DATA" and x["track"] == 1]), l["pos"] / 30)
		for i, l in enumerate(s) if l["type"] == "DATA" and l["track"] == 2])(lines))')" 0 0.12 "audio from video"
}

split_gives_a_file_a_track()
{
	frames make in.raw frames=10 bytes=$((32 * 32 * 3))
	mux --video in.raw,32x32,rgb24,25,name=cam <(capture gen:sine -d 1) >av.weir
	demux --split d av.weir 2>said
	eq "$(ls d | tr '\n' ' ')" "01-sine.weir 02-cam.rgb24 "
	same in.raw d/02-cam.rgb24
	contains said "10 frames of 32x32 rgb24 at 25/1 a second"
	demux --split e --frames weir av.weir
	eq "$(ls e | tr '\n' ' ')" "01-sine.weir 02-cam.weir "
	demux -o - e/02-cam.weir 2>said | cmp - in.raw
	expect_status 2 demux --split f -o x av.weir 2>said
	expect_status 1 demux -o d/02-cam.rgb24 av.weir 2>said
	one_line said "exists; -y"
}

# ---- y4m ----

y4m_comes_back()
{
	have ffmpeg || skip "ffmpeg is not installed"
	local s rate n=0
	for s in 322x241:30 17x9:24000/1001 64x64:50; do
		rate=${s#*:}
		ffmpeg -v error -f lavfi -i "testsrc=s=${s%:*}:r=$rate" -frames:v 12 -pix_fmt yuv420p -f yuv4mpegpipe ref.y4m -y
		mkfifo "v$n"
		cat ref.y4m >"v$n" &
		mux --video "v$n" <(capture gen:sine -d 0.3) >av.weir
		demux --split "d$n" av.weir 2>said
		same ref.y4m "d$n/02-v$n.y4m"
		contains said "12 frames of ${s%:*} yuv420p at"
		n=$((n + 1))
	done
}

ffmpeg_writes_and_reads()
{
	have ffmpeg || skip "ffmpeg is not installed"
	local f size
	for f in yuv420p yuv422p yuv444p gray yuv420p10le; do
		size=75:51
		# ffmpeg's y4m of odd widths loses a byte a row where a sample has two.
		[ $f != yuv420p10le ] || size=76:52
		ffmpeg -v error -f lavfi -i testsrc2=s=150x102:r=25 -vf format=gbrp,scale=$size -frames:v 10 -pix_fmt $f -strict -1 -f framemd5 wanted -y
		ffmpeg -v error -f lavfi -i testsrc2=s=150x102:r=25 -vf format=gbrp,scale=$size -frames:v 10 -pix_fmt $f -strict -1 -f yuv4mpegpipe - |
			mux --video -,y4m | demux -o - 2>said | ffmpeg -v error -f yuv4mpegpipe -i - -pix_fmt $f -f framemd5 got -y
		same <(command grep -v '^#' wanted) <(command grep -v '^#' got) $f
		ffmpeg -v error -f lavfi -i testsrc2=s=150x102:r=25 -vf format=gbrp,scale=$size -frames:v 10 -pix_fmt $f -f rawvideo - |
			mux --video -,${size/:/x},$f,25 | demux --frames y4m -o - 2>said | ffmpeg -v error -f yuv4mpegpipe -i - -pix_fmt $f -f framemd5 got -y
		same <(command grep -v '^#' wanted) <(command grep -v '^#' got) "$f raw"
	done
}

# ---- what goes wrong ----

killed_producer()
{
	local size=$((200 * 100 * 4))
	frames make in.raw frames=10 bytes=$size
	head -c $((size * 6 + 70000)) in.raw >cut.raw
	capture gen:count -d 1 >a.weir
	expect_status 3 mux --video cut.raw,200x100,rgba,25 a.weir >av.weir 2>said
	one_line said "cut.raw: ended in the middle of frame 6: 70000 of its 80000 bytes came"
	expect_status 3 demux -o out.rgba av.weir 2>said
	cmp -n $((size * 6)) out.rgba in.raw
	eq "$(bytes_of out.rgba)" $((size * 6)) "whole frames"
	contains said "6 frames of 200x100"
	# Into a pipe nothing can be taken back: the frame is filled up, so that what follows keeps its place.
	demux -o - av.weir 2>said >out2.rgba || [ $? = 3 ]
	eq $(($(bytes_of out2.rgba) % size)) 0 "the pipe's rest"
	inspect --json av.weir >p || [ $? = 3 ]
	json p 'lines[-1]["summary"]["frames"]["1"]' | grep -qx 48000
}

what_is_no_video_is_said()
{
	capture gen:silence -d 0.2 >a.weir
	printf 'YUV4MPEG2 W16 H16 F25:1 C420jpeg\nFRAME\n' >good.y4m
	head -c 384 /dev/zero >>good.y4m
	mux --video good.y4m a.weir >v.weir
	expect_status 3 mux --video good.y4m,16x18,y4m,25 a.weir 2>said >v.weir
	one_line said "its y4m header says 16x16, --video 16x18"
	expect_status 3 mux --video good.y4m,30 a.weir 2>said >v.weir
	one_line said "says 25/1 pictures a second, --video 30/1"
	expect_status 3 mux --video good.y4m,16x16,rgba,25 a.weir 2>said >v.weir
	one_line said "is y4m, --video says rgba"
	{ cat good.y4m; echo oops; head -c 400 /dev/zero; } >bad.y4m
	expect_status 3 mux --video bad.y4m a.weir 2>said >v.weir
	one_line said "no FRAME line where frame 1 must begin"
	head -c 20 good.y4m >short.y4m
	expect_status 3 mux --video short.y4m a.weir 2>said >v.weir
	one_line said "ended in the middle of a y4m header"
	: >nothing
	expect_status 3 mux --video nothing a.weir 2>said >v.weir
	one_line said "wrote nothing"
	inspect --json v.weir >p || [ $? = 3 ]
	json p 'lines[-1]["summary"]["frames"]["1"]' | grep -qx 9600
	head -c 4000 /dev/zero >noise
	expect_status 3 mux --video noise a.weir 2>said >v.weir
	one_line said "no y4m"
	printf 'YUV4MPEG2 W16 H16 C420jpeg\n' >norate.y4m
	expect_status 3 mux --video norate.y4m a.weir 2>said >v.weir
	one_line said "0:0 pictures a second"
	mux --video norate.y4m,25 a.weir >v.weir
}

usage_is_checked()
{
	local v
	for v in ,16x16,rgba,25 f,16x16,rgba f,16x16,25 f,rgba,25 f,16x0,rgba,25 f,99999x2,rgba,25 f,16x16,rgbx,25 f,16x16,rgba,0 f,16x16,rgba,2000 \
		f,16x16,rgba,25,30 f,16x16,16x16,rgba,25 f,16384x16384,rgba,25 f,16x16,rgba,25/0 f,name=; do
		expect_status 2 mux --video "$v" </dev/null 2>said
		one_line said "^mux: --video: "
	done
	expect_status 1 mux --video missing,16x16,rgba,25 </dev/null 2>said
	one_line said "missing: No such file"
	expect_status 2 mux --live </dev/null 2>said
	expect_status 2 mux --video f,16x16,rgba,25 -o x.wav </dev/null 2>said
}

# ---- live ----

# mux --live with a reader that stands still for a second.
stopped_reader_loses_whole_frames()
{
	local size=$((320 * 240 * 4)) n got dropped pid
	mkfifo v s
	frames make v frames=150 bytes=$size fps=60 &
	cat s >v.weir &
	pid=$!
	mux --live --video v,320x240,rgba,60 --stats --stats-file stats </dev/null >s &
	wait_for 5 test -s v.weir
	kill -STOP $pid
	sleep 1
	kill -CONT $pid
	wait
	expect_status 3 inspect --verify v.weir >out
	dropped=$(json stats 'd["video_dropped"]')
	between "$dropped" 30 70 "dropped"
	grep -Eq "[12] gaps?, [0-9]+ frames lost, 0 bytes damaged" out || fail "$(cat out)"
	demux -o - v.weir 2>said | cat >out.raw
	frames check out.raw bytes=$size >got
	contains got "frames $((150 - dropped)) broken 0 first 0 last 149 missing $dropped rising"
	packets v.weir >p
	# The gap is as long as the clock says: those that were dropped, and what their maker was late.
	between "$(json p 'sum(l["dur"] for l in lines if l["type"] == "GAP")')" "$dropped" $((dropped + 12)) "units in gaps"
	command grep GAP p | grep -q "dropped" || fail "$(command grep GAP p)"
	eq "$(json p 'max(l["dropped"] for l in lines)')" "$dropped" "dropped in the headers"
}

offline_loses_nothing_to_a_stopped_reader()
{
	local size=$((320 * 240 * 4)) pid
	mkfifo v s
	frames make v frames=90 bytes=$size fps=120 &
	cat s >v.weir &
	pid=$!
	mux --video v,320x240,rgba,60 </dev/null >s &
	wait_for 5 test -s v.weir
	kill -STOP $pid
	sleep 0.3
	kill -CONT $pid
	wait
	demux -o - v.weir 2>said | cat >out.raw
	frames check out.raw bytes=$size >got
	contains got "frames 90 broken 0 first 0 last 89 missing 0 rising"
}

live_frames_are_placed_by_the_clock()
{
	mkfifo v
	# Ten frames, half a second of nothing, ten more.
	{ frames make /dev/stdout frames=10 bytes=4096 fps=50; sleep 0.5; frames make /dev/stdout frames=10 bytes=4096 fps=50; } | cat >v &
	mux --live --video v,32x32,rgba,50 </dev/null >v.weir
	packets v.weir >p
	eq "$(json p 'len([l for l in lines if l["type"] == "DATA"])')" 20 "frames"
	# Python's own start is in the pause.
	between "$(json p 'sum(l["dur"] for l in lines if l["type"] == "GAP")')" 23 100 "units of pause"
	json p 'all(l["utc_ns"] for l in lines if l["type"] == "DATA")' | grep -qx true
	# utc and pos tell the same time: a frame is up to one and a half behind the line of the earliest so far, beside the half that the
	# first one's place was rounded by.  Both are of when it came, so a busy machine changes nothing.
	between "$(json p '(lambda t: max(x - min(t[:i + 1]) for i, x in enumerate(t)))([l["utc_ns"] / 1e9 - l["pos"] / 50 for l in lines if l["type"] == "DATA"])')" 0 0.0401
	inspect --verify v.weir >out
}

a_recording_is_not_live_any_more()
{
	local size=$((64 * 48 * 4))
	frames make in.raw frames=60 bytes=$size
	mkfifo v
	cat in.raw >v &
	mux --live --video v,64x48,rgba,30 </dev/null >live.weir
	json <(inspect --json live.weir) 'lines[0]["live"]' | grep -qx true
	# Beside it nothing is dropped or placed by the clock, however fast or slow it comes.
	mux --video in.raw,64x48,rgba,30,name=b live.weir | demux -t b -o out.raw 2>said
	same in.raw out.raw
	contains said "60 frames of 64x48 rgba at 30/1 a second"
	grep -q missing said && fail "$(cat said)"
	return 0
}

interrupted_mux_ends_whole()
{
	local size=$((320 * 240 * 4))
	mkfifo v
	frames make v frames=10000 bytes=$size fps=60 2>/dev/null &
	mux --live --video v,320x240,rgba,60 </dev/null >v.weir &
	wait_for 5 test -s v.weir
	sleep 0.2
	kill -INT $!
	wait $!
	inspect --verify v.weir >out || fail "$(cat out)"
	demux -o - v.weir 2>said | cat >out.raw
	frames check out.raw bytes=$size >got
	contains got "broken 0 first 0"
	contains got "missing 0 rising"
}

heap_stands_still()
{
	local n size=$((320 * 240 * 4))
	for n in 50 500; do
		frames make in.raw frames=$n bytes=$size
		mux --video in.raw,320x240,rgba,60 --stats --stats-file m.$n | demux -o /dev/null --stats --stats-file d.$n 2>said
	done
	eq "$(json m.500 'd["allocs"]')" "$(json m.50 'd["allocs"]')" "mux's allocations"
	eq "$(json d.500 'd["allocs"]')" "$(json d.50 'd["allocs"]')" "demux's allocations"
	[ -z "${SAN-}" ] || return 0 # sanitizers take memory of their own
	between "$(json m.500 'd["rss_kib"]')" 1 12288 "mux's memory"
	between "$(json d.500 'd["rss_kib"]')" 1 12288 "demux's memory"
}

test_case "raw frames come back byte for byte, at any rate" raw_frames_come_back
test_case "large frames are cut into fragments" large_frames_are_cut_into_fragments
test_case "every layout has the size ffmpeg gives it" every_layout_has_its_size
test_case "FIFOs, descriptors and stdin" through_pipes_and_descriptors
test_case "audio beside it is untouched" audio_is_untouched
test_case "demux --split gives a file a track" split_gives_a_file_a_track
test_case "y4m comes back byte for byte" y4m_comes_back
test_case "ffmpeg writes the frames and reads them" ffmpeg_writes_and_reads
test_case "a killed producer: whole frames stay, and it is said" killed_producer
test_case "what is no video is said" what_is_no_video_is_said
test_case "usage is checked" usage_is_checked
test_case "live, a reader that stands still loses whole frames, all counted" stopped_reader_loses_whole_frames
test_case "offline a reader that stands still loses nothing" offline_loses_nothing_to_a_stopped_reader
test_case "live frames are placed by the clock" live_frames_are_placed_by_the_clock
test_case "a recording is not live any more" a_recording_is_not_live_any_more
test_case "an interrupted mux ends whole" interrupted_mux_ends_whole
pictures_in_a_pipe_of_their_own()
{
	local size=$((640 * 480 * 4)) status
	frames make in.raw frames=40 bytes=$size
	mkfifo bulk
	capture gen:count -c 2 -d 1 | mux --video in.raw,640x480,rgba,40 --bulk-fd 5 5>bulk |
		demux --video out.raw --bulk-fd 6 6<bulk 2>said >a.weir
	same in.raw out.raw
	contains said "40 frames of 640x480 rgba at 40/1 a second"
	inspect --verify a.weir >out
	contains out "1 track, track 1: 48000 frames (every sample right), 0 gaps"
	# Both are whole streams, and one again when they are joined.
	mux --video in.raw,640x480,rgba,40 --bulk-fd 5 a.weir 5>b.weir >main.weir
	inspect --verify b.weir >out
	contains out "1 track, track 1: 40 frames, 0 gaps"
	mux main.weir b.weir | demux --split d 2>said
	same in.raw d/02-in.rgba
	# Its reader goes away: the audio does not notice.
	mux --video in.raw,640x480,rgba,40 --bulk-fd 5 a.weir 5> >(head -c 100000 >/dev/null) >main.weir
	inspect --verify main.weir >out
	# A producer that is killed is said here too.
	head -c $((size * 3 + 1000)) in.raw >cut.raw
	expect_status 3 mux --video cut.raw,640x480,rgba,40 --bulk-fd 5 a.weir 5>b.weir >main.weir 2>said
	one_line said "ended in the middle of frame 3"
	inspect --verify main.weir >out
	status=0
	demux -o out2.raw --bulk-fd 6 6<b.weir main.weir 2>said || status=$?
	eq "$status" 3
	eq "$(bytes_of out2.raw)" $((size * 3))
	expect_status 2 demux --bulk-fd 5 a.weir 2>said
	expect_status 2 mux --bulk-fd 5 a.weir 2>said
	expect_status 1 mux --video in.raw,640x480,rgba,40 --bulk-fd 77 a.weir 2>said >x
	one_line said "descriptor 77.*Bad file descriptor"
}

test_case "pictures in a pipe of their own" pictures_in_a_pipe_of_their_own

# Nobody is there for the sound any more: the pictures, which have no end, keep nobody waiting.
no_end_without_the_sound()
{
	local status
	mkfifo v
	{ while head -c 768 /dev/zero; do sleep 0.02; done >v 2>/dev/null; } &
	{
		status=0
		timeout 20 mux --video v,16x16,rgb24,30 --bulk-fd 5 --live 5>b.weir <&6 || status=$?
		echo $status >status
	} 6< <(capture -q --realtime gen:sine) | head -c 5000 >/dev/null
	eq "$(cat status)" 141
	inspect --verify b.weir >out
	# The same at the other end.
	mkfifo bulk
	{ capture -q -d 1s gen:sine | mux -q --video /dev/zero,16x16,rgb24,30 --bulk-fd 5 5>bulk >main.weir || :; } 2>/dev/null &
	expect_status 1 timeout 20 demux --video frames.raw --bulk-fd 6 6<bulk </dev/null 2>said >x
	contains said "demux: <stdin>: empty" # behind how many pictures there were, if there were any
	wait
	# Who writes it is there yet and has nothing to write: before the first byte, in a packet, behind one.
	local n
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" make wrong.weir track:1:1:1:8000:1:1:0 data:1:48000:80:1 data:1:0:80:1 end:0
	for n in 0 30 100 1280 5000; do
		exec 7<>bulk
		head -c $n b.weir >&7
		expect_status 1 timeout 10 demux -y --video frames.raw --bulk-fd 6 6<bulk wrong.weir 2>said >x 7<&-
		contains said "demux: wrong.weir: track 1 goes 48080 frames back" # behind how many pictures there were, if there were any
		exec 7<&-
	done
}
test_case "pictures do not outlive the sound" no_end_without_the_sound
test_case "the heap stands still" heap_stands_still
done_testing
