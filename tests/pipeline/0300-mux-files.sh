# mux -o: what the containers hold is what came, to the bit, and every peer reads it.
. "$(dirname "$0")/../lib.sh"

raw_noise() # FILE FORMAT SAMPLES: full-scale noise, extremes included
{
	"$PYTHON" - "$@" <<'PY'
import sys
import numpy as np
path, fmt, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
x = np.random.default_rng(3).uniform(-1, 1, n)
if n > 1:
    x[0], x[1] = -1, 1 - 2**-40
if fmt == "f32":
    raw = x.astype("<f4").tobytes()
else:
    bits = int(fmt[1:])
    v = np.clip(np.round(x * 2.0 ** (bits - 1)), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1).astype("<i8")
    raw = v.view(np.uint8).reshape(-1, 8)[:, : bits // 8].tobytes()
open(path, "wb").write(raw)
PY
}

# Frames, rates and channels are chosen so that odd sizes, padding and every kind of header come by.
exact()
{
	local fmt=$1 rate channels frames ext codec=pcm_$1le
	for rate in 8000 44100; do
		for channels in 1 2 6 9; do
			for frames in 0 1 4097; do
				raw_noise in.raw "$fmt" $((frames * channels))
				for ext in wav rf64 w64 caf aiff flac raw; do
					[ $ext != flac ] || { [ $channels -le 8 ] && [ "$fmt" != f32 ]; } || continue
					capture -r $rate -c $channels -f "$fmt" raw:in.raw | mux -q -y -o out.$ext
					[ ! -e out.$ext.part ]
					if [ $ext = raw ]; then
						same out.raw in.raw
						continue
					fi
					capture out.$ext | mux -o - --format raw >back.raw
					same back.raw in.raw "$fmt $rate $channels $frames $ext"
					# ffmpeg says an error about a file without frames, and 5.1 knows no 32-bit FLAC.
					if have ffmpeg && [ $frames != 0 ] && [ $ext$fmt != flacs32 ]; then
						ffmpeg -v error -i out.$ext -f "${codec#pcm_}" -c:a "$codec" - >peer.raw
						same peer.raw in.raw "ffmpeg: $fmt $rate $channels $frames $ext"
					fi
				done
			done
		done
	done
}
for fmt in s16 s24 s32 f32; do
	test_case "$fmt in every container is exact, here and by ffmpeg" exact $fmt
done

sox_reads()
{
	have sox || skip "sox is not here"
	local fmt ext
	for fmt in s16 s24 s32; do
		raw_noise in.raw $fmt 5000
		for ext in wav flac aiff; do
			capture -r 48000 -c 2 -f $fmt raw:in.raw | mux -q -y -o out.$ext
			sox out.$ext -t $fmt - >peer.raw
			same peer.raw in.raw "sox: $fmt $ext"
		done
	done
}
test_case "sox reads WAV, FLAC and AIFF of all integer formats" sox_reads

flac_is_sound()
{
	have flac || skip "flac is not here"
	local fmt frames
	for fmt in s16 s24 s32; do
		for frames in 0 1 4096 50000; do
			raw_noise in.raw $fmt $((2 * frames))
			capture -r 48000 -c 2 -f $fmt raw:in.raw | mux -q -y -o out.flac
			flac -s -t out.flac
		done
	done
	# Float becomes 24 bits, and the line that tells of the file says so; for stdout a line of its own does.
	capture -d 100smp -f f32 gen:sine | mux -y -o out.flac 2>err
	one_line err "^mux: out.flac: 0:00.002 flac s24 .of f32, dithered. 48000 Hz 2 ch, [0-9.]* kB$"
	capture -d 100smp -f f32 gen:sine | mux -o - --format flac 2>err | cat >x.flac
	one_line err "^mux: <stdout>: f32 becomes s24 with dither: FLAC holds no float$"
	capture -d 100smp -f s24 gen:sine | mux -y -o out.flac 2>err
	one_line err " flac s24 48000 Hz"
	flac -s -t out.flac
	eq "$(metaflac --show-bps out.flac)" 24
	expect_status 1 sh -c 'capture -d 10smp -c 9 gen:silence | mux -o nine.flac' 2>err
	one_line err "nine.flac: FLAC holds 1 to 8 channels, and track 1 has 9"
	[ ! -e nine.flac ] && [ ! -e nine.flac.part ]
}
test_case "FLAC passes its own test; float becomes 24 bits and nine channels are refused, in words" flac_is_sound

wav_header() # FILE: python sees d: riff, format, chunks by name
{
	"$PYTHON" - "$@" <<'PY'
import struct, sys
d = open(sys.argv[1], "rb").read()
at, out = 12, {}
while at + 8 <= len(d):
    n = struct.unpack_from("<I", d, at + 4)[0]
    out[d[at:at + 4].decode()] = d[at + 8:at + 8 + n]
    at += 8 + n + (n & 1)
print(eval(sys.argv[2], {"d": d, "c": out, "u": struct.unpack_from}))
PY
}

headers()
{
	local wav
	# A quad-side mask and 20 valid bits are kept; the usual is written plainly.
	"$PYTHON" - <<'PY'
import struct
def wav(path, ch, bits, valid, mask, n):
    block = ch * bits // 8
    fmt = struct.pack("<HHIIHHHHIH", 0xFFFE, ch, 48000, 48000 * block, block, bits, 22, valid, mask, 1) + bytes.fromhex("000000001000800000aa00389b71")
    data = bytes(range(1, 1 + block)) * n
    body = b"WAVE" + b"fmt " + struct.pack("<I", 40) + fmt + b"data" + struct.pack("<I", len(data)) + data
    open(path, "wb").write(b"RIFF" + struct.pack("<I", len(body)) + body)
wav("side.wav", 4, 16, 16, 0x603, 10)
wav("valid.wav", 1, 24, 20, 4, 10)
PY
	capture side.wav | mux -q -o side2.wav
	eq "$(wav_header side2.wav 'hex(u("<I", c["fmt "], 20)[0])')" 0x603 "mask"
	capture valid.wav | mux -q -o valid2.wav
	eq "$(wav_header valid2.wav 'u("<HH", c["fmt "], 14) + u("<H", c["fmt "], 18)')" "(24, 22, 20)" "bits, extra, valid bits"
	capture -d 5smp -c 2 -f s24 gen:noise:white | mux -q -o plain.wav
	eq "$(wav_header plain.wav 'u("<H", c["fmt "], 0)[0], len(c["fmt "]), len(c["data"])')" "(1, 16, 30)"
	# From FLAC and back, the mask goes along.
	capture side.wav | mux -q -o side.flac
	capture side.flac | mux -q -o side3.wav
	eq "$(wav_header side3.wav 'hex(u("<I", c["fmt "], 20)[0])')" 0x603 "mask by way of FLAC"
	capture side.wav | mux -q -o side.caf
	capture side.caf | mux -q -o side4.wav
	eq "$(wav_header side4.wav 'hex(u("<I", c["fmt "], 20)[0])')" 0x603 "mask by way of CAF"
}
test_case "channel masks and valid bits are kept, and a plain file has a plain header" headers

tags()
{
	capture -d 10smp -f s16 gen:silence | mux --tag TITLE="keep me" --tag ARTIST=Ä -q -o a.wav
	local ext
	for ext in wav flac caf aiff; do
		capture a.wav | mux --tag artist=other -q -y -o b.$ext
		capture b.$ext | inspect --json >b.json
		command grep -q 'keep me' b.json || fail "$ext: title is lost"
		! command grep -q 'Ä' b.json || fail "$ext: the old artist is still there"
		command grep -q 'other' b.json || fail "$ext: the new artist is not there"
		if have ffprobe; then
			eq "$(ffprobe -v error -show_entries format_tags=title -of csv=p=0 b.$ext)" "keep me" "ffprobe on $ext"
		fi
	done
	# A picture is said to be left out where it has no place.
	mux -y --tag METADATA_BLOCK_PICTURE=AAAA -o p.wav a.wav 2>err
	contains err "mux: p.wav: the picture has no place in WAV and is left out"
	mux -y --tag METADATA_BLOCK_PICTURE=AAAA -o p.flac a.wav 2>err
	one_line err "p.flac: 0:00"
	expect_status 2 mux --tag nonsense -o x.wav 2>err </dev/null
	one_line err "--tag: 'nonsense' is not KEY=VALUE"
}
test_case "tags go into WAV, FLAC, CAF and AIFF, and --tag replaces" tags

rf64()
{
	capture -d 300000smp -r 48000 -c 2 -f s16 gen:count >c.weir
	expect_status 2 mux -q --rf64-above 1M -o big.flac <c.weir 2>err
	one_line err "^mux: --rf64-above: is for WAV, not for flac"
	expect_status 2 mux -q --max-gap 1s <c.weir 2>err >out
	one_line err "^mux: --max-gap: "
	mux -q --rf64-above 1M -o big.wav <c.weir
	eq "$(head -c 4 big.wav)" RF64
	# ds64: RIFF size, data size, frames.
	eq "$("$PYTHON" -c 'import struct; d = open("big.wav", "rb").read(); print(struct.unpack_from("<QQQ", d, 20), len(d) - 8)')" \
		"($((1200080 - 8)), 1200000, 300000) $((1200080 - 8))"
	capture big.wav | inspect --verify >out
	contains out "300000 frames (every sample right)"
	mux -q --rf64-above 2M -o small.wav <c.weir
	eq "$(head -c 4 small.wav)" RIFF
	# To the byte: what stands in the RIFF size is $((1200080 - 8)).
	mux -q --rf64-above 1200072 -o fits.wav <c.weir
	eq "$(head -c 4 fits.wav)" RIFF "as long as may be"
	mux -q --rf64-above 1200071 -o beyond.wav <c.weir
	eq "$(head -c 4 beyond.wav)" RF64 "a byte more"
	if have ffmpeg; then
		mux -o - --format raw <c.weir >want.raw
		ffmpeg -v error -i big.wav -f s16le - >got.raw
		same got.raw want.raw
	fi
	if have soxi; then
		eq "$(soxi -s small.wav)" 300000
	fi
}
test_case "WAV beyond its limit becomes RF64 with true sizes" rf64

stdout()
{
	capture -d 5000smp -r 48000 -c 1 -f s16 gen:noise:white >n.weir
	mux -o - --format raw <n.weir >want.raw
	mux -o - --format wav <n.weir | cat >p.wav
	eq "$(head -c 8 p.wav | od -An -tx1 | tr -d ' ')" "52494646ffffffff" "size of a WAV on a pipe"
	eq "$(bytes_of p.wav)" 10044 "44 bytes and the samples"
	mux -o - --format flac <n.weir | capture - | mux -o - --format raw >got.raw
	same got.raw want.raw "FLAC on a pipe"
	mux -o - --format wav <n.weir | capture - | mux -o - --format raw >got.raw
	same got.raw want.raw "WAV on a pipe"
	mux -o - --format caf <n.weir | capture - | mux -o - --format raw >got.raw
	same got.raw want.raw "CAF on a pipe"
	if have ffmpeg; then
		mux -o - --format wav <n.weir | ffmpeg -v error -i - -f s16le - >got.raw
		same got.raw want.raw "WAV on a pipe, by ffmpeg"
	fi
	expect_status 2 mux -o - <n.weir 2>err
	one_line err "needs --format, one of: weir opus wav w64 rf64 flac caf aiff raw"
	local ext
	for ext in aiff w64 rf64; do
		expect_status 2 sh -c "(mux -o - --format $ext <n.weir; echo \$? >status) 2>err | cat >got; exit \$(cat status)"
		one_line err "<stdout>: ${ext^^} needs a file it can go back in, as its header holds the length; WAV, CAF and FLAC can go through a pipe"
		empty got
		mkfifo f
		cat f >got &
		expect_status 2 mux -o f --format $ext <n.weir 2>err
		wait $!
		contains err "${ext^^} needs a file"
		empty got
		rm f
	done
}
test_case "-o - writes WAV, CAF, FLAC and raw as a pipe can, and refuses what must go back" stdout

# stdout that is a file is one that can be gone back in, if it is ours from its beginning.
stdout_file()
{
	capture -d 5001smp -r 48000 -c 1 -f s24 gen:noise:white >n.weir
	mux -o - --format raw <n.weir >want.raw
	local ext
	for ext in wav w64 rf64 flac caf aiff; do
		mux -q -o f.$ext <n.weir
		mux -q -o - --format $ext <n.weir >o.$ext
		same o.$ext f.$ext "$ext on a stdout that is a file"
		# As it goes, too.
		mkfifo in
		mux -q -o - --format $ext <in >o.$ext &
		exec 7>in
		(capture -d 3s -r 48000 -c 1 -f s16 gen:count || :) >&7
		wait_for 20 eval '[ "$(capture -q o.'$ext' 2>/dev/null | inspect --json | json - '\''d["summary"]["frames"].get("1", 0)'\'')" -gt 48000 ]'
		kill -9 $!
		wait $! 2>/dev/null || :
		exec 7>&-
		capture o.$ext | inspect --verify >out
		contains out "every sample right"
		contains out ": whole"
		rm in
	done
	# Not ours: there is something in it, or it only grows.
	(echo before; mux -q -o - --format wav <n.weir) >o.wav
	tail -c +8 o.wav >p.wav
	mux -q -o - --format wav <n.weir | cat >want.wav
	same p.wav want.wav "behind something else"
	: >o.wav
	mux -q -o - --format wav <n.weir >>o.wav
	same o.wav want.wav "appended"
	cp f.wav o.wav
	mux -q -o - --format wav <n.weir 1<>o.wav
	eq "$(head -c 8 o.wav | od -An -tx1 | tr -d ' ')" "52494646ffffffff"
}
test_case "a stdout that is a file gets true sizes, as it goes and at the end" stdout_file

# What is louder than full scale is said, without -v.
clipping()
{
	capture -d 1s -r 48000 -c 1 -f f32 gen:sine:level=+6dB >loud.weir
	mux --stats=86400 -o x.flac loud.weir 2>err
	local n
	n=$(json err 'd["clipped_samples"]')
	[ "$n" -gt 10000 ]
	contains err "mux: x.flac: $n samples clipped"
	mux -o - --format flac <loud.weir 2>all | cat >y.flac
	command grep -v dither all >err
	one_line err "^mux: <stdout>: $n samples clipped$"
	mux -o x.wav loud.weir 2>err
	one_line err "x.wav: 0:01.000 wav f32"
	# Each piece has its own.
	mux -o p.flac --split-every 500ms loud.weir 2>err
	eq "$(command grep -c '^mux: p-00[12].flac: [0-9]* samples clipped$' err)" 2
}
test_case "clipping is said with its number" clipping

# Who wrote the samples: not the program that wrote the file they came from.
encoder()
{
	local ext
	capture -d 100smp -f s16 gen:sine | mux -q --tag ENCODER=Elsewhere --tag TITLE=kept -o in.wav
	command grep -aq Elsewhere in.wav || fail "--tag ENCODER is not kept"
	for ext in wav flac caf; do
		mux -q -y -o out.$ext in.wav
		! command grep -aq Elsewhere out.$ext || fail "$ext: still names the other program"
		command grep -aq "weir $(cat "$TOP/VERSION")" out.$ext || fail "$ext: does not name this one"
		command grep -aq kept out.$ext
	done
	capture in.wav | encode | mux -q -o out.opus
	! command grep -aq Elsewhere out.opus || fail "opus: still names the other program"
	eq "$(command grep -ao "ENCODER=weir $(cat "$TOP/VERSION")" out.opus | wc -l)" 1
	# What was not encoded here keeps its own; what had none gets none.
	capture -d 100smp -f s16 gen:sine | encode | mux -q --tag ENCODER=Elsewhere -o a.opus
	demux a.opus | mux -q -o b.opus
	command grep -aq ENCODER=Elsewhere b.opus
	capture -d 100smp -f s16 gen:sine | mux -q -o c.wav
	eq "$(bytes_of c.wav)" $((80 + 400))
}
test_case "ENCODER names the program that wrote the samples" encoder

names()
{
	capture -d 100smp -n "../a b/-x" gen:silence >1.weir
	capture -d 100smp -n .hidden gen:sine >2.weir
	capture -d 100smp -f s16 gen:sine >3.weir
	mux 1.weir 2.weir 3.weir | mux -q -o 'out-%t-%n.wav'
	eq "$(ls out-*)" "$(printf 'out-1-_._a b_-x.wav\nout-2-_hidden.wav\nout-3-sine.wav')" "names"
	[ ! -e ../a* ]
	# Equal names are told apart.
	mux 3.weir 3.weir 3.weir | mux -q -o 'same-%n.wav'
	eq "$(echo same-*)" "same-sine-001.wav same-sine-002.wav same-sine.wav"
	# As many digits as the count has.
	mux 1.weir 1.weir 1.weir 1.weir 1.weir 1.weir 1.weir 1.weir 1.weir 1.weir | mux -q -o 'n%t.wav'
	[ -e n01.wav ] && [ -e n10.wav ]
	expect_status 2 sh -c 'mux 1.weir 2.weir | mux -o one.wav' 2>err
	one_line err "one.wav: 2 tracks need 2 files: put %t .number. or %n .name. into the name"
	[ ! -e one.wav ] && [ ! -e one.wav.part ]
	expect_status 2 mux -o '100%.wav' <1.weir 2>err
	one_line err "%% a percent sign"
	mux -q -o '100%%.wav' <1.weir
	[ -e '100%.wav' ]
	TZ=UTC mux -q -o 'y%Y.wav' <1.weir
	[ -e "y$(date -u +%Y).wav" ] || [ -e "y$(($(date -u +%Y) - 1)).wav" ]
	# Names that begin with a dash, and bytes that are no UTF-8.
	mux -q -o ./-n.wav <1.weir
	mux -q -o "$(printf 'latin-\351\377.wav')" <1.weir
	[ -e -n.wav ] && [ -e "$(printf 'latin-\351\377.wav')" ]
	expect_status 2 mux -o x.mp3 <1.weir 2>err
	one_line err "x.mp3: its ending names no format; use one of: weir opus"
	mux -q -o x.mp3 --format wav <1.weir
	eq "$(head -c 4 x.mp3)" RIFF
}
test_case "names from patterns are safe, distinct and as wide as they should be" names

wrong_kind()
{
	capture -d 1s gen:sine | encode >o.weir
	expect_status 1 mux -o x.wav <o.weir 2>err
	one_line err "x.wav: WAV holds PCM, and track 1 is opus; decode first"
	expect_status 1 sh -c 'capture -d 1s gen:sine | mux -o x.opus' 2>err
	one_line err "x.opus: Ogg Opus holds Opus, and track 1 is PCM; encode first"
	[ ! -e x.wav ] && [ ! -e x.wav.part ] && [ ! -e x.opus ] && [ ! -e x.opus.part ]
	# Opus files are decoded where they come in.
	mux -q -o a.opus o.weir
	expect_status 1 mux -o b.opus a.opus 2>err
	one_line err "^mux: a.opus: is decoded here, and b.opus holds Opus; weir demux FILE . weir mux -o OUT keeps its packets$"
	demux a.opus | mux -q -o b.opus
	mux -q -o b.wav a.opus
	eq "$(head -c 4 b.wav)" RIFF
	# One track of two.
	capture -d 100smp gen:sine >p.weir
	mux o.weir p.weir | mux -q -t 2 -o x.wav
	for t in nobody 5; do
		expect_status 1 mux -t $t -o y.wav p.weir 2>err
		one_line err "^mux: $t: no such track in the input$"
		expect_status 1 mux -t $t p.weir 2>err >y.weir
		one_line err "^mux: $t: no such track in the input$"
	done
	[ ! -e y.wav ] && [ ! -e y.wav.part ]
}
test_case "tracks that a container cannot hold are refused before anything is written" wrong_kind

weir_file()
{
	capture -d 1s gen:count gen:sine >two.weir
	mux -q -o copy.weir <two.weir
	inspect --verify copy.weir >out
	contains out "2 tracks"
	contains out ": whole"
	[ ! -e copy.weir.part ]
	expect_status 1 mux -o copy.weir <two.weir 2>err
	one_line err "copy.weir: exists; -y overwrites it"
	mux -y -o copy.weir <two.weir
	expect_status 2 mux -o new.weir --split-every 1s <two.weir 2>err
	# The same input gives the same bytes.
	mux -q -o again.weir <two.weir
	same copy.weir again.weir
}
test_case ".weir files hold all tracks, byte for byte the same each time" weir_file

allocs()
{
	local ext few many
	for ext in wav flac aiff caf w64 raw; do
		capture -d 204800smp -r 48000 -c 2 -f s16 gen:noise:white | mux --stats=86400 -q -y -o few.$ext 2>few.json
		capture -d 20480000smp -r 48000 -c 2 -f s16 gen:silence | mux --stats=86400 -q -y -o many.$ext 2>many.json
		few=$(json few.json 'd["allocs"]')
		many=$(json many.json 'd["allocs"]')
		rm -f many.$ext
		[ "$few" -gt 0 ] || fail "allocs is $few: not counted"
		eq "$many" "$few" "$ext: allocs after 5000 packets against 50"
	done
}
if [ "${SAN-}" ]; then
	skip_case "no allocation once running, whatever the length" "the sanitizers have an allocator of their own"
else
	test_case "no allocation once running, whatever the length" allocs
fi

done_testing
