# However a pipe is cut, the stream is the same, byte for byte; and it is that of the file.
. "$(dirname "$0")/../lib.sh"

# The samples of track 1 of a stream
pcm() # STREAM RAW
{
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" pcm "$1" 1 "$2" >/dev/null
}

# drip FILE BYTES: so many at a time
drip()
{
	"$PYTHON" -c '
import os, sys
data, step = open(sys.argv[1], "rb").read(), int(sys.argv[2])
for at in range(0, len(data), step):
    os.write(1, data[at:at + step])
' "$1" "$2"
}

all_cuts() # FILE
{
	local step
	capture -n x "$1" >want.weir
	pcm want.weir want.raw
	[ -s want.raw ]
	for step in 1 3 4096 65537; do
		drip "$1" $step | capture -n x - >$step.weir
		pcm $step.weir got.raw
		same got.raw want.raw "$1, $step bytes at a time"
		same $step.weir 1.weir "the stream of $1, $step bytes at a time"
	done
}

wav_case()
{
	make_wav a.wav 44100 2 s24 6001
	all_cuts a.wav
	# sizes nobody knew
	"$PYTHON" - <<'PY'
b = bytearray(open("a.wav", "rb").read())
b[4:8] = b[40:44] = b"\xff" * 4
open("b.wav", "wb").write(b)
PY
	all_cuts b.wav
}

made_case() # COMMAND…: makes x from a.wav
{
	make_wav a.wav 48000 2 s16 9001
	"$@" >/dev/null 2>&1
	all_cuts x.*
}

opus_case()
{
	make_wav a.wav 48000 2 s16 30001
	opusenc --quiet a.wav x.opus
	all_cuts x.opus
}

test_case "WAV" wav_case
if have flac; then
	test_case "FLAC" made_case flac -s -o x.flac a.wav
	test_case "Ogg FLAC" made_case flac -s --ogg -o x.oga a.wav
else
	skip_case "FLAC" "flac is not installed"
fi
if have sox; then
	test_case "CAF" made_case sox a.wav x.caf
	test_case "AIFF" made_case sox a.wav x.aiff
	test_case "AU" made_case sox a.wav x.au
	test_case "W64" made_case sox a.wav x.w64
	test_case "VOC, by libsndfile" made_case sox a.wav x.voc
else
	skip_case "CAF, AIFF, AU, W64, VOC" "sox is not installed"
fi
if have lame; then
	test_case "MP3" made_case lame --quiet a.wav x.mp3
else
	skip_case "MP3" "lame is not installed"
fi
if have oggenc; then
	test_case "Ogg Vorbis" made_case oggenc -Q -o x.ogg a.wav
else
	skip_case "Ogg Vorbis" "oggenc is not installed"
fi
if have opusenc; then
	test_case "Ogg Opus" opus_case
else
	skip_case "Ogg Opus" "opusenc is not installed"
fi
done_testing
