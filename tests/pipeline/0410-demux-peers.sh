#!/bin/bash
# demux and mux between other people's tools: what their encoders make comes out of mux sounding the same in their decoders.
. "$(dirname "$0")/../lib.sh"

# Frames that a player gets out of a file.
opusdec_frames()
{
	opusdec --quiet --rate 48000 "$1" decoded.wav 2>/dev/null
	"$PYTHON" -c '
import struct
d = open("decoded.wav", "rb").read()
print((len(d) - d.index(b"data") - 8) // struct.unpack_from("<H", d, 32)[0])'
}

ffmpeg_frames()
{
	ffmpeg -nostdin -v error -i "$1" -ac 1 -f s16le - 2>err.ffmpeg | wc -c | awk '{ print $1 / 2 }'
	if grep -v 'Output file is empty' err.ffmpeg >&2; then fail "ffmpeg complains about $1"; fi
}

# Is the file as a decoder, a checker and another decoder want it?  FILE FRAMES
sound_file()
{
	opusinfo "$1" >info 2>&1
	if grep -iE 'warning|error' info; then fail "opusinfo complains about $1"; fi
	eq "$(opusdec_frames "$1")" "$2" "opusdec, frames of $1"
	eq "$(ffmpeg_frames "$1")" "$2" "ffmpeg, frames of $1"
}

same_sound()
{
	opusdec --quiet --float "$1" one.wav 2>/dev/null
	opusdec --quiet --float "$2" two.wav 2>/dev/null
	same one.wav two.wav "decoded by opusdec"
}

opusenc_files()
{
	local n=0 args
	make_wav 2.wav 48000 2 s16 33333
	make_wav 1.wav 44100 1 s16 20000
	make_wav 6.wav 48000 6 s16 24001
	while read -r args; do
		n=$((n + 1))
		# shellcheck disable=SC2086
		opusenc --quiet $args "$n.opus" 2>/dev/null
		demux "$n.opus" | mux -q -o "$n-again.opus"
		same_sound "$n.opus" "$n-again.opus"
		sound_file "$n-again.opus" "$(opusdec_frames "$n.opus")"
	done <<-LIST
		--framesize 2.5 --title x 2.wav
		--framesize 5 2.wav
		--framesize 10 --hard-cbr 2.wav
		--framesize 20 2.wav
		--framesize 40 2.wav
		--framesize 60 --downmix-mono --bitrate 8 2.wav
		--bitrate 16 --max-delay 20 1.wav
		6.wav
		--max-delay 1000 --padding 4000 --artist somebody 2.wav
	LIST
	eq $n 9
}

ffmpeg_files()
{
	make_wav 2.wav 48000 2 s16 33333
	ffmpeg -nostdin -v error -i 2.wav -c:a libopus -b:a 64k -application lowdelay a.opus
	demux a.opus | mux -q -o b.opus
	same_sound a.opus b.opus
	sound_file b.opus "$(opusdec_frames a.opus)"
}

# A recording without its beginning, a lost page, a stretch without packets: the file is as long as time was.
holes_are_filled()
{
	local frames
	make_wav 2.wav 48000 2 s16 100000
	opusenc --quiet --max-delay 100 2.wav a.opus 2>/dev/null
	frames=$(opusdec_frames a.opus)
	"$PYTHON" - <<'PY'
data = bytearray(open("a.opus", "rb").read())
at, pages = 0, []
while (at := data.find(b"OggS", at)) >= 0:
    pages.append(at)
    at += 4
assert len(pages) > 10
data[pages[7] + 100] ^= 1
open("b.opus", "wb").write(data)
PY
	expect_status 3 demux b.opus >b.weir 2>err
	inspect --json b.weir | grep -q GAP || [ $? = 3 ]
	expect_status 3 mux -q -o c.opus <b.weir 2>err
	sound_file c.opus "$frames"
}

nothing_at_all()
{
	local n
	for n in 0 1; do
		capture -q gen:silence -r 48k -c 2 -d "${n}smp" | encode -q | mux -q -o "$n.opus"
		sound_file "$n.opus" "$n"
		demux "$n.opus" | mux -q -y -o again.opus
		sound_file again.opus "$n"
	done
}

for tool in opusenc opusdec opusinfo ffmpeg; do
	have $tool || skip_all "$tool is not installed"
done
test_case "files of opusenc, taken apart and put together, sound the same" opusenc_files
test_case "files of ffmpeg too" ffmpeg_files
test_case "holes are filled: players get the length that time had" holes_are_filled
test_case "no frame, one frame" nothing_at_all
done_testing
