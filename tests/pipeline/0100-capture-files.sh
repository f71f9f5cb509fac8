# capture reads sound files to the byte: what ffmpeg and sox write, by ffmpeg's own decoding; from files and from pipes.
. "$(dirname "$0")/../lib.sh"

# The samples of track 1 of the stream on stdin
pcm()
{
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" pcm /dev/stdin 1 pcm.tmp >/dev/null
	cat pcm.tmp
}

# noise RATE CHANNELS FRAMES: n.raw, f32
noise()
{
	capture -r "$1" -c "$2" -f f32 -d "$3smp" gen:noise:white,level=-12dB | pcm >n.raw
}

ff_make() # CODEC FILE [OPTIONS]
{
	ffmpeg -v error -nostdin -y -f f32le -ar "$rate" -ac "$channels" -i n.raw -c:a "$1" "${@:3}" "$2"
}

# FILE FORMAT: capture gives what ffmpeg decodes, whichever way it comes
matches()
{
	ffmpeg -v error -nostdin -y -i "$1" -f "$2" -c:a "pcm_$2" want.raw
	capture "$1" >file.weir
	pcm <file.weir >file.raw
	same file.raw want.raw "$1 as a file, $rate Hz, $channels channels"
	cat "$1" | capture - >pipe.weir
	pcm <pipe.weir >pipe.raw
	same pipe.raw want.raw "$1 through a pipe, $rate Hz, $channels channels"
}

ffmpeg_case() # NAME ENDING BYTE-ORDER [OPTIONS]
{
	local format rate channels
	# Every rate and every channel count, not all of both.
	for pair in "8000 1" "44100 32" "192000 6"; do
		set -- $pair "$@"
		rate=$1 channels=$2
		shift 2
		noise $rate $channels 1001
		for format in s16 s24 s32 f32; do
			ff_make "pcm_$format$2" "x.$1" "${@:3}"
			matches "x.$1" "${format}le"
		done
	done
}

flac_case()
{
	for pair in "8000 1" "44100 8" "192000 6"; do
		set -- $pair
		rate=$1 channels=$2
		noise $rate $channels 5001
		ff_make flac x.flac -sample_fmt s16
		matches x.flac s16le
		ff_make flac x.flac -sample_fmt s32
		matches x.flac s24le
	done
}

sox_case() # ENDING
{
	local args
	rate=48000
	for channels in 1 5; do
		noise $rate $channels 1001
		for args in "16 signed-integer s16le" "24 signed-integer s24le" "32 signed-integer s32le" "32 floating-point f32le"; do
			set -- "$1" $args
			# sox has no floats in AIFF
			[ "$1 $3" != "aiff floating-point" ] || continue
			sox -t f32 -r $rate -c $channels n.raw -b "$2" -e "$3" -D "x.$1" 2>/dev/null
			matches "x.$1" "$4"
			# as sox writes it when it cannot seek back
			if [ "$1" != w64 ] && [ "$1" != caf ]; then
				sox -t f32 -r $rate -c $channels n.raw -b "$2" -e "$3" -D -t "$1" - 2>/dev/null | cat >"p.$1"
				matches "p.$1" "$4"
			fi
		done
	done
}

# ffmpeg into a pipe: it cannot tell sizes; sox is asked for the truth where ffmpeg cannot read its own
ffmpeg_pipe_case()
{
	rate=48000 channels=2
	noise 48000 2 5001
	capture -f f32 raw:n.raw -r 48000 -c 2 | pcm >want.raw
	for c in "wav le" "w64 le" "caf le" "aiff be" "au be"; do
		set -- $c
		ff_make "pcm_f32$2" - -f "$1" | capture - | pcm >got.raw
		same got.raw want.raw "$1"
	done
	ff_make flac - -f flac -sample_fmt s16 >x.flac
	matches x.flac s16le
}

lossy_case() # FILE TOLERANCE
{
	ffmpeg -v error -nostdin -y -i "$1" -f f32le want.raw
	capture "$1" | pcm >file.raw
	cat "$1" | capture - | pcm >pipe.raw
	same file.raw pipe.raw "$1"
	"$PYTHON" - "$2" <<'PY'
import sys
import numpy as np
a, b = np.fromfile("file.raw", "<f4"), np.fromfile("want.raw", "<f4")
assert len(a) == len(b), (len(a), len(b))
assert np.abs(a - b).max() <= float(sys.argv[1]), np.abs(a - b).max()
PY
}

mp3_case()
{
	rate=44100 channels=2
	noise 44100 2 30001
	sox -t f32 -r 44100 -c 2 n.raw -b 16 -D n.wav 2>/dev/null
	lame --quiet -b 128 --tt "a title" n.wav n.mp3
	lossy_case n.mp3 1e-5
	eq "$(capture n.mp3 | inspect --json | json - 'd["summary"]["frames"]["1"]')" 30001 "gapless length"
	capture n.mp3 | inspect --json | grep -q '"TITLE=a title"'
}

vorbis_case()
{
	for channels in 1 2 6; do
		rate=44100
		noise 44100 $channels 30001
		sox -t f32 -r 44100 -c $channels n.raw -b 16 -D n.wav 2>/dev/null
		oggenc -Q -t "a title" -o n.ogg n.wav 2>/dev/null
		lossy_case n.ogg 1e-5
	done
	capture n.ogg | inspect --json | grep -qi '"title=a title"'
	# two links in a row: their tags change on the way
	oggenc -Q -s 77 -t "b title" -o m.ogg n.wav 2>/dev/null
	cat n.ogg m.ogg >chain.ogg
	eq "$(cat chain.ogg | capture - | inspect --json | json - 'd["summary"]["frames"]["1"]')" 60002
	eq "$(capture chain.ogg | inspect --json | grep -c '"TRACK"')" 2
}

libsndfile_case()
{
	rate=44100 channels=1
	noise 44100 1 20000
	for made in "ima-adpcm a.wav" "ms-adpcm b.wav" "signed-integer c.voc" "signed-integer d.sph" "signed-integer e.paf"; do
		set -- $made
		sox -t f32 -r 44100 -c 1 n.raw -e "$1" ${1/signed-integer/-b16} -D "$2" 2>/dev/null || sox -t f32 -r 44100 -c 1 n.raw -e "$1" -D "$2" 2>/dev/null
		sox "$2" -t raw -b 16 -e signed-integer -D want.raw 2>/dev/null
		capture "$2" | pcm >file.raw
		cat "$2" | capture - | pcm >pipe.raw
		same file.raw pipe.raw "$2"
		# ADPCM decoders agree to a step or two; the rest to the bit
		"$PYTHON" - <<'PY'
import numpy as np
a, b = np.fromfile("file.raw", "<i2").astype(int), np.fromfile("want.raw", "<i2").astype(int)
n = min(len(a), len(b))
assert n >= 19990 and abs(len(a) - len(b)) < 1100, (len(a), len(b))
assert np.abs(a[:n] - b[:n]).max() <= 2, np.abs(a[:n] - b[:n]).max()
PY
	done
	# a pipe is spooled, and -v says so
	cat c.voc | capture -v - 2>log >/dev/null
	contains log "temporary file"
}

if have ffmpeg; then
	test_case "WAV by ffmpeg" ffmpeg_case wav le
	test_case "W64 by ffmpeg" ffmpeg_case w64 le
	test_case "RF64 by ffmpeg" ffmpeg_case rf64.wav le -rf64 always
	test_case "CAF by ffmpeg" ffmpeg_case caf le
	test_case "AIFF by ffmpeg" ffmpeg_case aiff be
	test_case "AU by ffmpeg" ffmpeg_case au be
	test_case "FLAC by ffmpeg" flac_case
	test_case "what ffmpeg writes into a pipe" ffmpeg_pipe_case
	if have sox; then
		for ending in wav w64 caf aiff; do
			test_case "$ending by sox" sox_case $ending
		done
	else
		skip_case "files by sox" "sox is not installed"
	fi
	if have sox && have lame; then
		test_case "MP3: gapless, as ffmpeg decodes it" mp3_case
	else
		skip_case "MP3" "sox or lame is not installed"
	fi
	if have sox && have oggenc; then
		test_case "Ogg Vorbis, one link and two" vorbis_case
	else
		skip_case "Ogg Vorbis" "sox or oggenc is not installed"
	fi
else
	skip_case "files against ffmpeg" "ffmpeg is not installed"
fi
if have sox; then
	test_case "what only libsndfile knows, files and pipes" libsndfile_case
else
	skip_case "what only libsndfile knows" "sox is not installed"
fi
done_testing
