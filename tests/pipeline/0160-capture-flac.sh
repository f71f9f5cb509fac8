#!/bin/bash
# FLAC as other programs write it: the MD5 sum over all samples, and pictures beside the tags, which MP3 has too.
. "$(dirname "$0")/../lib.sh"

# A second FLAC file whose frames are sound and whose sum is of other samples.
wrong_sum() # IN OUT
{
	"$PYTHON" -c '
import sys
b = bytearray(open(sys.argv[1], "rb").read())
assert b[:4] == b"fLaC" and b[4] & 127 == 0
b[8 + 18] ^= 1     # STREAMINFO: 18 bytes, then the sum
open(sys.argv[2], "wb").write(b)' "$1" "$2"
}

sum()
{
	capture -d 2s -r 44100 -c 2 -f s16 gen:noise:pink >s.weir
	mux -q -o a.flac <s.weir
	wrong_sum a.flac bad.flac
	! metaflac --version >/dev/null 2>&1 || ne "$(metaflac --show-md5sum a.flac)" "$(metaflac --show-md5sum bad.flac)"
	capture a.flac >good.weir
	for way in bad.flac -; do
		expect_status 3 capture $way <bad.flac >bad.weir 2>err
		one_line err "its samples are not those that were encoded: their MD5 sum is another"
		mux -o - --format raw <bad.weir >got.raw || [ $? = 3 ]
		mux -o - --format raw <s.weir | cmp - got.raw
	done
	# Not all was decoded, or there is no sum: nothing can be said.
	capture -d 1s bad.flac >/dev/null 2>err
	capture --start 1s bad.flac >/dev/null 2>>err
	empty err
	"$PYTHON" -c '
b = bytearray(open("a.flac", "rb").read())
b[26:42] = bytes(16)
open("none.flac", "wb").write(b)'
	capture none.flac >/dev/null 2>err
	empty err
	# What is damaged says so, and not this as well.
	"$PYTHON" -c '
b = bytearray(open("a.flac", "rb").read())
b[len(b) // 2] ^= 255
open("hole.flac", "wb").write(b)'
	expect_status 3 capture hole.flac >/dev/null 2>err
	one_line err "damaged: [0-9]+ frames lost"
}
test_case "the MD5 sum of a FLAC file is checked when all of it was decoded" sum

picture()
{
	"$PYTHON" -c '
import struct
def block(kind, body, last=0):
    return bytes([kind | last << 7]) + struct.pack(">I", len(body))[1:] + body
b = open("a.flac", "rb").read()
n = 4 + 4 + int.from_bytes(b[5:8], "big")
mime, data = b"image/png", b"\x89PNG no more than that"
pic = struct.pack(">II", 3, len(mime)) + mime + struct.pack(">I", 0) + struct.pack(">IIIII", 1, 1, 24, 0, len(data)) + data
open("one.flac", "wb").write(b[:n] + block(6, pic) + b[n:])
open("two.flac", "wb").write(b[:n] + block(6, pic) * 2 + b[n:])'
}

pictures()
{
	capture -d 100ms -r 44100 -c 2 -f s16 gen:noise:pink | mux -q -o a.flac
	picture
	capture one.flac 2>err | mux -o - --format raw >got.raw
	one_line err "^capture: one.flac: its picture does not come along$"
	capture a.flac | mux -o - --format raw | cmp - got.raw
	mux -o x.wav two.flac 2>err
	contains err "mux: two.flac: its 2 pictures do not come along"
	encode one.flac 2>err >/dev/null
	contains err "encode: one.flac: its picture does not come along"
	capture -q one.flac 2>err >/dev/null
	empty err
	capture a.flac 2>err >/dev/null
	empty err
}
test_case "a picture that does not come along is told" pictures

pictures_of_mp3()
{
	have ffmpeg || skip "no ffmpeg to make an MP3 file"
	ffmpeg -v error -f lavfi -i sine=d=1 -f lavfi -i color=red:s=16x16:d=1 -map 0 -map 1 -frames:v 1 -c:v png -disposition:v attached_pic \
		-id3v2_version 3 a.mp3 || skip "this ffmpeg writes no MP3"
	capture a.mp3 2>err >/dev/null
	one_line err "^capture: a.mp3: its picture does not come along$"
}
test_case "MP3: likewise" pictures_of_mp3

done_testing
