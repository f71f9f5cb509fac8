# What capture's options do, what it refuses and in which words, and how it ends.
. "$(dirname "$0")/../lib.sh"

# No sound server answers here, whatever runs on this machine.
export PULSE_SERVER=unix:$TMPDIR/nowhere PIPEWIRE_REMOTE=$TMPDIR/nowhere JACK_DEFAULT_SERVER=weir-nowhere JACK_NO_START_SERVER=1

pcm() # STREAM TRACK RAW
{
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" pcm "$1" "$2" "$3" >/dev/null
}

# Some bytes of a file
slice() # FILE OFFSET BYTES
{
	dd if="$1" iflag=skip_bytes,count_bytes skip="$2" count="$3" status=none
}

frames() # STREAM [TRACK]
{
	{ inspect --json "$1" || :; } | json - "d[\"summary\"][\"frames\"][\"${2-1}\"]"
}

# refused STATUS REGEX ARG…: one line that matches, nothing on stdout
refused()
{
	local wanted=$1 regex=$2
	shift 2
	expect_status "$wanted" capture "$@" >out 2>log </dev/null
	empty out
	one_line log "$regex"
}

refusals()
{
	make_wav a.wav 48000 2 s16 100
	refused 2 "no source"
	refused 2 "-n: .*'\.wav'.*\./NAME" -n.wav
	refused 1 "nowhere\.wav: No such file" nowhere.wav
	refused 1 "Is a directory" .
	refused 2 "<stdin>: cannot be two" - -
	refused 2 "<stdin>: cannot be two" - raw:-
	: >empty.wav
	refused 1 "empty\.wav: is empty" empty.wav
	echo "no audio at all, this is" >text.wav
	refused 1 "no audio format known" text.wav
	capture a.wav >a.weir
	refused 1 "is a weir stream" a.weir
	for device in pulse: pipewire: jack:system alsa:hw:0; do
		refused 1 "no [A-Za-z]+ server answers|this build has no|cannot be opened" $device
	done
	refused 2 "raw samples need -r RATE -c CHANNELS -f FORMAT" raw:a.wav
	refused 2 "raw samples need -c CHANNELS" raw:a.wav -r 48k -f s16
	refused 2 "'s17'" raw:a.wav -r 48k -c 1 -f s17
	refused 2 "'alaw' is for raw" a.wav -f alaw
	refused 2 "-r: '0'" -r 0 a.wav
	refused 2 "-c: '1025'" -c 1025 a.wav
	refused 2 "--block: '0'" --block 0 a.wav
	refused 2 "-d: 'soon'" -d soon a.wav
	refused 2 "2 names for 1 source" -n a -n b a.wav
	refused 2 "sines" gen:sines
	"$PYTHON" -c '
b = bytearray(open("a.wav", "rb").read())
b[24:28] = bytes(4)
open("zero.wav", "wb").write(b)'
	refused 1 "sample rate 0" zero.wav
	if [ "$(id -u)" != 0 ]; then
		chmod 0 a.wav
		refused 1 "Permission denied" a.wav
	fi
}

# The second of two bad sources is found before anything of the first is written.
second_source_bad()
{
	make_wav a.wav 48000 2 s16 100000
	refused 1 "nowhere" a.wav nowhere.wav
}

odd_names()
{
	local odd=$'latin1-\xe9\xff.wav'
	make_wav ./-n.wav 48000 1 s16 480
	make_wav "$odd" 48000 1 s16 480
	capture ./-n.wav >a.weir
	eq "$(frames a.weir)" 480
	capture -- -n.wav >b.weir
	eq "$(frames b.weir)" 480
	capture "$odd" >c.weir
	eq "$(frames c.weir)" 480
	# the stream and the JSON are valid UTF-8
	inspect --json c.weir >c.json
	eq "$(json c.json '"ok"')" ok
	iconv -f utf-8 -t utf-8 c.json >/dev/null
	# and the message about one that is missing
	status_of capture $'gone-\xff.wav' >/dev/null 2>log
	iconv -f utf-8 -t utf-8 log >/dev/null
}

cut_to_length()
{
	make_wav a.wav 48000 2 s16 10000
	tail -c 40000 a.wav >all.raw
	capture -d 1234smp a.wav >a.weir
	pcm a.weir 1 got.raw
	same got.raw <(slice all.raw 0 4936)
	capture --start 1000smp a.wav >a.weir
	pcm a.weir 1 got.raw
	same got.raw <(tail -c +4001 all.raw)
	capture --start 50ms -d 100ms a.wav >a.weir
	pcm a.weir 1 got.raw
	same got.raw <(slice all.raw 9600 19200)
	# from a pipe too, and past the end nothing is left
	cat a.wav | capture --start 50ms -d 100ms - >b.weir
	pcm b.weir 1 got2.raw
	same got.raw got2.raw
	capture --start 1h a.wav >a.weir
	eq "$(frames a.weir)" 0
	capture -d 0 a.wav >a.weir
	eq "$(frames a.weir)" 0
}

# --start goes to the very sample in compressed formats, as reading and throwing away does
start_exact() # FILE FRAME-BYTES [near]
{
	local bytes=$2
	capture "$1" >a.weir
	pcm a.weir 1 all.raw
	capture --start 12345smp -d 3000smp "$1" >a.weir
	pcm a.weir 1 got.raw
	capture --start 12345smp -d 3000smp - < <(cat "$1") >b.weir
	pcm b.weir 1 pipe.raw
	same pipe.raw <(slice all.raw $((12345 * bytes)) $((3000 * bytes))) "$1 through a pipe"
	if [ "${3-exact}" = exact ]; then
		same got.raw pipe.raw "$1 as a file"
	else
		"$PYTHON" -c '
import numpy as np
a, b = np.fromfile("got.raw", "<f4"), np.fromfile("pipe.raw", "<f4")
assert len(a) == len(b), (len(a), len(b))
assert np.abs(a - b).max() < 1e-4, np.abs(a - b).max()'
	fi
}

start_case()
{
	make_wav a.wav 44100 2 s16 40001
	! have flac || { flac -s -o a.flac a.wav && start_exact a.flac 4; }
	! have sox || { sox a.wav a.aiff && start_exact a.aiff 4; }
	! have opusenc || { opusenc --quiet a.wav a.opus && start_exact a.opus 8; }
	# a decoder that begins in the middle needs a little to be where the other is
	! have lame || { lame --quiet a.wav a.mp3 && start_exact a.mp3 8 near; }
	! have oggenc || { oggenc -Q -o a.ogg a.wav && start_exact a.ogg 8 near; }
}

tracks_and_names()
{
	make_wav a.wav 48000 2 s16 1000 1
	make_wav b.wav 44100 1 s24 2000 2
	# the order given is the order of the tracks, also with stdin among them
	cat a.wav | capture -n first - b.wav >x.weir
	inspect --json x.weir >x.json
	eq "$(json x.json '[d["summary"]["frames"][k] for k in ("1", "2")]')" "[1000, 2000]"
	grep '"TRACK"' x.json >t.json
	eq "$(sed -n 1p t.json | json - 'd["name"]')" first
	eq "$(sed -n 2p t.json | json - 'd["name"]')" b
	cat a.wav | capture b.wav - >y.weir
	eq "$(inspect --json y.weir | json - '[d["summary"]["frames"][k] for k in ("1", "2")]')" "[2000, 1000]"
	pcm x.weir 2 b1.raw
	pcm y.weir 1 b2.raw
	same b1.raw b2.raw
	tail -c 6000 b.wav | same - b1.raw
}

# Tracks are interleaved by time: no track runs ahead by more than a block.
interleaved()
{
	capture -r 48000 -c 1 -f s16 -d 3s gen:count gen:ident >/dev/null
	capture -r 48000 -c 1 -f s16 -d 3s gen:count gen:ident gen:silence | "$PYTHON" "$TOP/tests/pipeline/weirfile.py" list /dev/stdin >/dev/null
	capture -r 48000 -c 1 -f s16 -d 3s gen:count gen:ident gen:silence | inspect --json >x.json
	"$PYTHON" - <<'PY'
import json
end = {}
for line in open("x.json"):
    p = json.loads(line)
    if p.get("type") == "DATA":
        end[p["track"]] = p["pos"] + p["dur"]
        if len(end) == 3:
            assert max(end.values()) - min(end.values()) <= 4096, end
assert set(end.values()) == {144000}, end
PY
}

raw_case()
{
	"$PYTHON" -c '
import numpy as np
x = np.arange(-500, 500, dtype="<i2") * 60
x.tofile("le.raw"); x.astype(">i2").tofile("be.raw")'
	capture -r 48000 -c 1 -f s16 raw:le.raw >a.weir
	capture -r 48000 -c 1 -f s16be raw:be.raw >b.weir
	pcm a.weir 1 a.raw
	pcm b.weir 1 b.raw
	same a.raw le.raw
	same b.raw le.raw
	cat be.raw | capture -r 48000 -c 1 -f s16be raw:- >c.weir
	pcm c.weir 1 c.raw
	same c.raw le.raw
	# half a frame at the end is damage, and said
	head -c 1999 le.raw >odd.raw
	expect_status 3 capture -r 48000 -c 1 -f s16 raw:odd.raw >d.weir 2>log
	one_line log "not whole"
	eq "$(frames d.weir)" 999
}

conversions()
{
	make_wav a.wav 48000 2 s16 48000
	capture -f f32 a.wav >f.weir
	pcm f.weir 1 f.raw
	capture -f s24 a.wav >s24.weir
	pcm s24.weir 1 s24.raw
	capture -c 1 -f f32 a.wav >m.weir
	pcm m.weir 1 m.raw
	capture -r 44.1k a.wav >r.weir
	eq "$(frames r.weir)" 44100
	capture -f s16 --no-dither f.wav >/dev/null 2>&1 || :
	"$PYTHON" - <<'PY'
import numpy as np
x = np.frombuffer(open("a.wav", "rb").read()[44:], "<i2").astype(float) / 32768
assert np.array_equal(np.fromfile("f.raw", "<f4"), x.astype("<f4"))
b = np.fromfile("s24.raw", np.uint8).reshape(-1, 3)
v = (b[:, 0].astype(int) | b[:, 1].astype(int) << 8 | b[:, 2].astype(np.int8).astype(int) << 16)
assert np.array_equal(v, (x * 8388608).astype(int))
m = np.fromfile("m.raw", "<f4")
assert np.abs(m - (x[0::2] + x[1::2]) / 2).max() < 1e-7
PY
}

# Near-silent floats to 16 bits: all zero without dither, at most two steps with it, never louder.
quiet_floats()
{
	capture -f f32 -c 1 -d 1s gen:noise:white,level=-106dB >q.weir
	pcm q.weir 1 q.raw
	"$PYTHON" - <<'PY'
import struct
d = open("q.raw", "rb").read()
open("q.wav", "wb").write(b"RIFF" + struct.pack("<I", 36 + len(d)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 3, 1, 48000, 192000, 4, 32) +
    b"data" + struct.pack("<I", len(d)) + d)
PY
	capture -f s16 --no-dither q.wav >a.weir
	capture -f s16 q.wav >b.weir
	capture -f s16 q.wav >c.weir
	same b.weir c.weir "dither is the same each time"
	pcm a.weir 1 a.raw
	pcm b.weir 1 b.raw
	"$PYTHON" - <<'PY'
import numpy as np
assert not np.fromfile("a.raw", "<i2").any()
b = np.fromfile("b.raw", "<i2")
assert 0 < np.abs(b).max() <= 2, np.abs(b).max()
PY
}

blocks()
{
	make_wav a.wav 48000 2 s16 10000
	capture --block 480 a.wav >a.weir
	capture a.wav >b.weir
	eq "$(inspect --json a.weir | grep -c '"DATA"')" 21
	eq "$(inspect --json b.weir | grep -c '"DATA"')" 3
	pcm a.weir 1 a.raw
	pcm b.weir 1 b.raw
	same a.raw b.raw
	# what does not fit a packet is made to fit
	capture -c 32 -f f32 -d 1s --block 65536 gen:count | inspect --verify
	capture -c 1024 -f f32 -d 100ms gen:count | inspect --verify
}

reproducible()
{
	make_wav a.wav 48000 2 s16 10000
	capture a.wav gen:noise:pink -d 100ms >a.weir
	capture a.wav gen:noise:pink -d 100ms >b.weir
	same a.weir b.weir
	capture a.wav gen:noise:pink -d 101ms >c.weir
	ne "$(head -c 128 a.weir | od -An -tx1)" "$(head -c 128 c.weir | od -An -tx1)" "the stream's id"
}

# At its own pace: never early, and the first block does not wait for the last.
realtime()
{
	local begin=${EPOCHREALTIME/./} took
	capture --realtime -d 500ms gen:silence >a.weir
	took=$((${EPOCHREALTIME/./} - begin))
	[ $took -ge 480000 ] || fail "half a second took $took us"
	eq "$(frames a.weir)" 24000
	# each packet says when it was captured, to the nanosecond of its position
	inspect --json a.weir | "$PYTHON" -c '
import json, sys, time
data = [p for p in map(json.loads, sys.stdin) if p.get("type") == "DATA"]
for p in data:
    assert p["utc_ns"] - data[0]["utc_ns"] == round(p["pos"] * 1e9 / 48000), p
assert len(data) == 25 and 0 <= time.time() - data[0]["utc_ns"] / 1e9 < 60'
	begin=${EPOCHREALTIME/./}
	capture --realtime -d 1h gen:silence 2>/dev/null | head -c 1000 >/dev/null || :
	took=$((${EPOCHREALTIME/./} - begin))
	[ $took -le 5000000 ] || fail "the first block took $took us"
}

# What a live pipe has given goes on, though more is to come.
prompt()
{
	make_wav a.wav 8000 1 s16 8000
	mkfifo in
	capture - <in >out.weir &
	exec 9>in
	head -c 9044 a.wav >&9
	wait_for 10 enough 8192
	exec 9>&-
	wait
	capture a.wav >/dev/null
}

enough() # BYTES of audio have come out
{
	[ "$(bytes_of out.weir)" -ge "$1" ]
}

stopped()
{
	capture --realtime gen:count >a.weir &
	wait_for 10 test -s a.weir
	kill -INT $!
	expect_status 0 wait $!
	inspect --verify a.weir >said || fail "$(cat said)"
	inspect --json a.weir >a.json
	eq "$(grep '"END"' a.json | tail -1 | json - 'd["reason"]')" 1 "interrupted"
	contains said "every sample right"
}

ways_to_fail()
{
	make_wav a.wav 48000 2 s16 100000
	expect_status 1 capture a.wav >/dev/full 2>log
	one_line log "No space left"
	expect_status 1 capture a.wav 2>log >&-
	one_line log
	set +o pipefail
	capture gen:silence 2>log | head -c 100 >/dev/null
	eq "${PIPESTATUS[0]}" 141
	empty log
}

listing()
{
	capture --list >list
	contains list FLAC
	contains list gen:count
	capture --list --json >list.json
	eq "$(json list.json '[x for x in d["devices"] if x["system"] != "alsa"]')" "[]"
	eq "$(json list.json '"gen:count" in d["generators"]')" true
}

stats_case()
{
	make_wav a.wav 48000 2 s16 100000
	capture --stats a.wav 2>s.json >/dev/null
	eq "$(json s.json 'd["frames_out"]')" 100000
	eq "$(json s.json 'd["tool"]')" capture
	eq "$(json s.json 'd["gaps"]')" 0
}

test_case "what cannot be captured is refused in one line" refusals
test_case "a bad second source stops it before the first is written" second_source_bad
test_case "names that begin with a dash or are not UTF-8" odd_names
test_case "-d and --start" cut_to_length
test_case "--start to the sample in compressed files" start_case
test_case "sources are tracks in the order given, with names" tracks_and_names
test_case "tracks are interleaved by time" interleaved
test_case "raw: in either byte order, files and pipes" raw_case
test_case "-f, -c and -r" conversions
test_case "quiet floats to 16 bits" quiet_floats
test_case "--block" blocks
test_case "the same command gives the same bytes" reproducible
test_case "--realtime" realtime
test_case "a live pipe is not held back" prompt
test_case "SIGINT ends it whole" stopped
test_case "full disk, closed stdout, reader gone" ways_to_fail
test_case "--list" listing
test_case "--stats" stats_case
done_testing
