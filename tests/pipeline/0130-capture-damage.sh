# Sound files that are cut or damaged: what is left is kept in its place, what is lost is said, the status is 3.
. "$(dirname "$0")/../lib.sh"

pcm() # STREAM RAW
{
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" pcm "$1" 1 "$2" >/dev/null
}

# FILE REGEX: status 3 and one line, as a file and through a pipe, and a stream that says so itself
damaged()
{
	expect_status 3 capture "$1" >file.weir 2>log
	one_line log "$2"
	cat "$1" | expect_status 3 capture - >pipe.weir 2>log
	one_line log "$2"
	pcm file.weir file.raw
	pcm pipe.weir pipe.raw
	same file.raw pipe.raw "$1"
	expect_status 3 inspect --verify file.weir >/dev/null
}

wav_cut()
{
	make_wav a.wav 48000 2 s24 10000
	head -c 30001 a.wav >cut.wav
	damaged cut.wav "cut short: 29957 of 60000 bytes"
	same file.raw <(dd if=a.wav iflag=skip_bytes,count_bytes skip=44 count=29952 status=none)
}

# A file that says another size than it has, cut anywhere: never a crash, and either audio or words.
cut_anywhere()
{
	make_wav a.wav 48000 2 s16 300
	local n rc
	for n in $(seq 0 7 1244); do
		head -c "$n" a.wav >cut.wav
		status_of capture cut.wav >x.weir 2>log
		case $n in
		1244) eq $status 0 ;;
		*) [ $status = 1 ] || [ $status = 3 ] || fail "$n bytes: status $status" ;;
		esac
		[ "$n" = 1244 ] || one_line log
	done
}

flac_case()
{
	make_wav a.wav 44100 2 s16 100000
	flac -s -o a.flac a.wav
	"$PYTHON" - <<'PY'
b = open("a.flac", "rb").read()
n = len(b)
open("cut.flac", "wb").write(b[:n // 2])
d = bytearray(b)
for i in range(n // 2, n // 2 + 20):
    d[i] ^= 0x55
open("bad.flac", "wb").write(d)
open("less.flac", "wb").write(b[:n // 2] + b[n // 2 + 40000:])
PY
	damaged cut.flac "cut short: [0-9]+ of 100000 frames"
	for f in bad less; do
		damaged $f.flac "damaged: [0-9]+ frames lost"
		# all of it in its place, but for whole frames that are missing
		"$PYTHON" - <<'PY'
import numpy as np
got = np.fromfile("file.raw", "<i2").reshape(-1, 2)
want = np.frombuffer(open("a.wav", "rb").read()[44:], "<i2").reshape(-1, 2)
assert got.shape == want.shape, got.shape
wrong = np.flatnonzero((got != want).any(axis=1))
assert 0 < len(wrong) and wrong[-1] - wrong[0] < 30000, (len(wrong), wrong[0], wrong[-1])
assert not got[wrong].any()
PY
		inspect --json file.weir >x.json || :
		[ "$(json x.json 'd["summary"]["gaps"]')" -ge 1 ]
	done
	# behind the last frame nothing is damage: some programs put their tags there
	cp a.flac tail.flac
	head -c 128 /dev/zero | tr '\0' T >>tail.flac
	capture tail.flac 2>log | inspect --verify >/dev/null
	empty log
}

mp3_case()
{
	make_wav a.wav 44100 2 s16 100000
	lame --quiet a.wav a.mp3
	head -c $(($(bytes_of a.mp3) / 2)) a.mp3 >cut.mp3
	damaged cut.mp3 "cut short: [0-9]+ of 100000 frames"
}

vorbis_case()
{
	make_wav a.wav 44100 2 s16 200000
	oggenc -Q -o a.ogg a.wav
	"$PYTHON" - <<'PY'
b = open("a.ogg", "rb").read()
n = len(b)
open("cut.ogg", "wb").write(b[:n // 2])
d = bytearray(b)
d[n // 2] ^= 0x10
open("bad.ogg", "wb").write(d)
PY
	damaged cut.ogg "middle of a page"
	damaged bad.ogg "1 hole, [0-9]+ frames lost, from frame [0-9]+ \\([0-9.]+ s\\) on"
	# later audio stays in place
	eq "$({ inspect --json file.weir || :; } | json - 'd["summary"]["frames"]["1"] + d["summary"]["lost_frames"]')" 200000
}

opus_case()
{
	make_wav a.wav 48000 2 s16 100000
	opusenc --quiet --max-delay 100 a.wav a.opus
	"$PYTHON" - <<'PY'
b = bytearray(open("a.opus", "rb").read())
b[len(b) // 2] ^= 0x10
open("bad.opus", "wb").write(b)
PY
	damaged bad.opus "frames lost"
	# concealed: nothing is missing
	eq "$({ inspect --json file.weir || :; } | json - 'd["summary"]["frames"]["1"]')" 100000
	{ inspect --json file.weir || :; } | grep -q '"concealed"'
}

test_case "a WAV cut short" wav_cut
test_case "a WAV cut anywhere" cut_anywhere
if have flac; then
	test_case "FLAC cut, with wrong bytes, with bytes missing" flac_case
else
	skip_case "FLAC" "flac is not installed"
fi
if have lame; then
	test_case "MP3 cut" mp3_case
else
	skip_case "MP3" "lame is not installed"
fi
if have oggenc; then
	test_case "Ogg Vorbis cut and damaged" vorbis_case
else
	skip_case "Ogg Vorbis" "oggenc is not installed"
fi
if have opusenc; then
	test_case "Ogg Opus damaged: concealed" opus_case
else
	skip_case "Ogg Opus" "opusenc is not installed"
fi

# The formats that libsndfile reads here: it takes what is there for all there is, and says so in its log at most.
cut_by_libsndfile()
{
	local f size full
	have sox || skip "sox makes the files, and is not installed"
	sox -n -r 8000 -c 1 -b 16 plain.wav synth 2 sine 400 gain -6
	for f in ms-adpcm ima-adpcm gsm-full-rate; do
		sox plain.wav -e $f $f.wav
	done
	sox plain.wav voice.voc
	if have flac; then
		sox -n -r 8000 -c 1 -b 16 noise.wav synth 20 whitenoise gain -6 # more than a page
		flac -s --ogg -o lossless.oga noise.wav
	fi
	for f in *-*.wav voice.voc *.oga; do
		[ -e "$f" ] || continue
		capture "$f" >out 2>err
		empty err
		full=$(inspect --json out | json - 'd["summary"]["frames"]["1"]')
		size=$(stat -c %s "$f")
		head -c $((size * 7 / 10)) "$f" >cut
		expect_status 3 capture cut >out 2>err
		one_line err '^capture: cut: .*cut short'
		inspect --json out >lines || :
		between "$(json lines 'd["summary"]["frames"]["1"]')" $((full / 4)) $((full * 3 / 4)) "frames of $f"
		expect_status 3 inspect --verify out >verified
		contains verified "not whole"
		expect_status 3 capture - <cut >piped 2>err
		capture -d 0.05s cut >out 2>err
		empty err
	done
}
test_case "compressed WAV, VOC, Ogg FLAC that are cut exit 3 as all others" cut_by_libsndfile

done_testing
