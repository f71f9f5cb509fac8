# mux -o x.opus: right to the sample for every length, in every decoder; tags; chained links.
. "$(dirname "$0")/../lib.sh"

# Decoded lengths by whoever is here; prints nothing when all agree.
check_length() # FILE FRAMES
{
	eq "$(demux "$1" | decode | inspect --json --verify | json - 'd["summary"]["frames"]["1"]')" "$2" "$1 decoded here"
	if have opusdec; then
		opusdec --quiet --float --rate 48000 "$1" dec.wav 2>err || fail "opusdec: $(cat err)"
		eq "$(capture dec.wav | inspect --json | json - 'd["summary"]["frames"]["1"]')" "$2" "$1 by opusdec"
	fi
	if have ffmpeg; then
		eq "$(($(ffmpeg -v error -i "$1" -f s16le -ac 1 - | wc -c) / 2))" "$2" "$1 by ffmpeg"
	fi
	if have opusinfo; then
		opusinfo "$1" >info
		! command grep -qi warning info || fail "opusinfo: $(cat info)"
	fi
}

lengths()
{
	local n frame
	for n in 0 1 119 120 648 960 47777; do
		for frame in 2.5ms 10ms 20ms 60ms; do
			capture -d ${n}smp -r 48000 -c 1 gen:noise:white | encode --frame $frame | mux -q -y -o x.opus
			check_length x.opus $n
		done
	done
	capture -d 30001smp -r 48000 gen:sine | encode --application lowdelay | mux -q -y -o x.opus
	check_length x.opus 30001
	capture -d 30001smp -r 44100 gen:sine | encode | mux -q -y -o x.opus
	check_length x.opus $(((30001 * 48000 + 22050) / 44100))
	capture -d 30001smp -c 6 gen:ident | encode | mux -q -y -o x.opus
	eq "$(demux x.opus | decode | inspect --json | json - 'd["summary"]["frames"]["1"]')" 30001
}
test_case "the file is as long as the source, to the sample, whatever the length and the frame size" lengths

aligned()
{
	capture -d 48000smp -r 48000 -c 1 -f f32 gen:noise:pink >in.weir
	encode -b 256k <in.weir | mux -q -o x.opus
	mux -o - --format raw <in.weir >in.raw
	demux x.opus | decode | mux -o - --format raw >out.raw
	"$PYTHON" - <<'PY'
import numpy as np
a, b = np.fromfile("in.raw", "<f4"), np.fromfile("out.raw", "<f4")
assert len(a) == len(b) == 48000, (len(a), len(b))
c = [float(np.dot(a[2000:40000], b[2000 + k:40000 + k])) for k in range(-500, 501)]
assert np.argmax(c) == 500, np.argmax(c) - 500
PY
}
test_case "what comes back lies where it was: lag 0" aligned

tags()
{
	capture -d 1s gen:sine | encode | mux -q --tag TITLE=Tone --tag COMMENT="a = b" -o x.opus
	capture x.opus | inspect --json >x.json
	contains x.json "TITLE=Tone"
	contains x.json "COMMENT=a = b"
	if have opusinfo; then
		opusinfo x.opus >info
		contains info "TITLE=Tone"
	fi
}
test_case "--tag goes into OpusTags" tags

chained()
{
	capture -d 9600smp gen:sine | encode | mux -q --tag TITLE=one -o a.opus
	capture -d 14401smp gen:sine:freq=500 | encode | mux -q --tag TITLE=two -o b.opus
	cat a.opus b.opus >ab.opus
	demux ab.opus | mux -q -o c.opus
	check_length c.opus 24001
	# Two links, each with its own beginning and tags: the very samples of the parts.
	command grep -aq TITLE=one c.opus
	command grep -aq TITLE=two c.opus
	demux a.opus | decode | mux -o - --format raw >want.raw
	demux b.opus | decode | mux -o - --format raw >>want.raw
	demux c.opus | decode | mux -o - --format raw >got.raw
	same got.raw want.raw "the joined decode"
	# Two streams one after the other are the same thing.
	demux a.opus >a.weir
	demux b.opus >b.weir
	cat a.weir b.weir | mux -q -o d.opus
	demux d.opus | decode | mux -o - --format raw >got.raw
	same got.raw want.raw "of concatenated streams"
}
test_case "links of a chained file, and concatenated streams, stay links" chained

holes()
{
	capture -d 2s -c 1 -f s16 gen:noise:white | encode --frame 20ms >in.weir
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" edit in.weir holed.weir drop:1:20-29
	expect_status 3 mux -q -o h.opus <holed.weir 2>err
	one_line err "h.opus|stdin"
	check_length h.opus 96000
	decode <in.weir | mux -o - --format raw >want.raw
	demux h.opus | decode | mux -o - --format raw >got.raw
	eq "$(bytes_of got.raw)" "$(bytes_of want.raw)"
	"$PYTHON" - <<'PY'
import numpy as np
a, b = np.fromfile("want.raw", "<f4"), np.fromfile("got.raw", "<f4")
assert (a[:18000] == b[:18000]).all(), "before the hole"
# Behind it the decoder needs a moment to be where it was.
d = a[50000:] - b[50000:]
assert np.sqrt((d * d).mean()) < 0.05 * np.sqrt((a[50000:] ** 2).mean()), "behind the hole"
PY
	# The same as a GAP that says DTX is no loss.
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" edit in.weir dtx.weir gap:1:20-29:4
	mux -q -o dtx.opus <dtx.weir
	check_length dtx.opus 96000
	# And where a GAP tells of loss, it is one.
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" edit in.weir lost.weir gap:1:20-29:2
	expect_status 3 mux -q -o lost.opus <lost.weir 2>err
	one_line err "lost.opus: 9600 frames were lost before they came here"
	check_length lost.opus 96000
}

test_case "a hole keeps its time: later packets are where they were, and the status is 3" holes

done_testing
