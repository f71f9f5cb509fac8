#!/bin/bash
# capture and play on JACK: a server with the dummy driver, clients of JACK and of weir on both sides.
. "$(dirname "$0")/live.sh"

jack_begin

# begin_capture CHANNELS [ARG…]: capture without connections, for whoever connects to it.
begin_capture()
{
	local channels=$1
	shift
	capture -c "$channels" jack:- "$@" >got.weir 2>capture.err &
	capture_pid=$!
	wait_for 20 jack_lists "weir-capture:in_$channels"
	wait_for 20 grown got.weir 4096
}

end_capture()
{
	kill -INT "$capture_pid"
	ends "$capture_pid" 20
}

round_trip() # PERIOD CHANNELS FORMAT
{
	start_jack "$1" "$2"
	begin_capture "$2"
	capture -d 48000smp -c "$2" -f "$3" gen:count | play jack:weir-capture --stats-file play.json
	# The last frame was heard when play ended: what is written now holds it.
	end_capture
	eq "$status" 0 "status of capture"
	eq "$(json play.json 'd["frames_out"]')" 48000 "frames played"
	inspect --verify got.weir
	mux -q -o got.wav <got.weir
	stop_jack
}

f32()
{
	round_trip "$1" "$2" f32
	counted got.wav "$2" 48000
}

# Integers of 24 bits go through f32 and come back the same.
s24()
{
	round_trip 256 2 s24
	capture -f s24 --no-dither got.wav | mux -q -o int.wav
	counted int.wav 2 48000 s24
}

# Each channel has a tone of its own: 200 + 100 k Hz.
order()
{
	start_jack 128 32
	begin_capture 32
	capture -d 1s -c 32 gen:ident | play jack:weir-capture
	end_capture
	eq "$status" 0
	mux -q -o got.wav <got.weir
	"$PYTHON" - <<'PY'
import numpy as np
data = open("got.wav", "rb").read()
x = np.frombuffer(data[data.index(b"data") + 8 :], "<f4")
x = x[: len(x) // 32 * 32].reshape(-1, 32)
s = np.nonzero(np.abs(x).sum(axis=1))[0][0]
for k in range(32):
    f = np.abs(np.fft.rfft(x[s : s + 24000, k]))
    assert abs(np.argmax(f) * 2 - (200 + 100 * k)) <= 2, (k, np.argmax(f) * 2)
PY
	stop_jack
}

# From the physical ports, as many as there are; each packet has a time, and those times go forward.
physical()
{
	start_jack 64 8
	capture --list --json >list.json
	eq "$(json list.json '[x["channels"] for x in d["devices"] if x["name"] == "jack:system"]')" "[8]"
	local begin end
	begin=$(date +%s)
	capture -d 0.5s jack: >got.weir
	end=$(date +%s)
	inspect --verify got.weir
	inspect --json got.weir >got.json
	"$PYTHON" - "$begin" "$end" <<'PY'
import json, sys
begin, end = int(sys.argv[1]), int(sys.argv[2]) + 1
lines = [json.loads(l) for l in open("got.json")]
track = next(l for l in lines if l.get("type") == "TRACK")
assert track["channels"] == 8, track
data = [l for l in lines if l.get("type") == "DATA"]
assert sum(l["dur"] for l in data) == 24000
last = None
for l in data:
    assert begin - 1 <= l["utc_ns"] / 1e9 <= end, l["utc_ns"]
    if last is not None:
        assert l["utc_ns"] > last, (last, l["utc_ns"])
    last = l["utc_ns"]
PY
	stop_jack
}

# stalled FRAMES TIME: a counted signal of TIME, and the reader of the stream stops in the middle of it, until so many frames more
# have been played.  (By the server's time: on a loaded machine it is slower than the clock.)
stalled()
{
	start_jack 128 2
	capture -c 2 jack:- --ring 2s --stats-file capture.json 2>capture.err | reader &
	local pipeline=$! reader player
	wait_for 20 jack_lists weir-capture:in_2
	wait_for 20 grown got.weir 4096
	reader=$(cat reader.pid)
	capture -d "$2" -c 2 gen:count | play jack:weir-capture --stats=0.05 --stats-file play.json &
	player=$!
	wait_for 30 reached play.json frames_out 12000
	kill -STOP "$reader"
	wait_for 60 reached play.json frames_out $((12000 + $1))
	kill -CONT "$reader"
	ends "$player" 60
	eq "$status" 0 "status of play"
	stop_jack
	ends "$pipeline" 20
}

short_stall()
{
	stalled 72000 2.5s
	# The server ended in the end, which is said; nothing else was lost.
	inspect --json got.weir >got.json || :
	eq "$(json got.json 'd["summary"]["lost_frames"]')" 0 "frames lost"
	eq "$(json capture.json 'd["dropped_frames"]')" 0 "frames dropped"
	mux -q -o got.wav <got.weir || :
	counted got.wav 2 120000
}

long_stall()
{
	stalled 240000 6s
	inspect --json got.weir >got.json || :
	local dropped
	dropped=$(json capture.json 'd["dropped_frames"]')
	between "$dropped" 48000 200000 "frames dropped in a pause of 240000 frames with a ring of 96000"
	eq "$(json got.json 'd["summary"]["lost_frames"]')" "$dropped" "holes in the stream"
	grep -q "$dropped frames dropped in 1 place" capture.err
	expect_status 3 inspect --verify got.weir >verify
	grep -q "$dropped" verify
	"$PYTHON" - "$dropped" <<'PY'
import json, sys
lines = [json.loads(l) for l in open("got.json")]
gaps = [l for l in lines if l.get("type") == "GAP"]
assert len(gaps) == 1 and gaps[0]["dur"] == int(sys.argv[1]), gaps
assert gaps[0]["dur"] % 128 == 0
after = [l for l in lines if l.get("type") == "DATA" and l["pos"] > gaps[0]["pos"]]
assert after and all(l["dropped"] == int(sys.argv[1]) for l in after)
PY
	# As silence in the place of the hole, the rest of the count is where it belongs.
	mux -q -o got.wav <got.weir || :
	"$PYTHON" - "$dropped" <<'PY'
import sys
import numpy as np
dropped = int(sys.argv[1])
data = open("got.wav", "rb").read()
x = np.frombuffer(data[data.index(b"data") + 8 :], "<f4")
x = x[: len(x) // 2 * 2].reshape(-1, 2)
n = 288000
want = ((np.arange(2 * n) & 0xFFFFFF) * 2.0**-23 - 1).astype("<f4").reshape(-1, 2)
s = np.nonzero((x == want[1000]).all(axis=1))[0][0] - 1000
wrong = np.nonzero((x[s : s + n] != want).any(axis=1))[0]
assert len(wrong) == dropped, (len(wrong), dropped)
assert wrong[-1] - wrong[0] + 1 == dropped
assert not x[s + wrong].any()
PY
}

# The server is killed: one line says so within a second, the file is whole up to there, the status is 3.
server_killed()
{
	start_jack 128 2
	capture jack: 2>capture.err | mux -q -o got.wav 2>mux.err &
	local pipeline=$! begin
	wait_for 20 grown got.wav.part 40000
	begin=${EPOCHREALTIME/./}
	kill -KILL "$jack_pid"
	ends "$pipeline" 10
	between $((${EPOCHREALTIME/./} - begin)) 0 5000000 "µs until it was over"
	eq "$status" 3 "status"
	grep -Eq '^capture: jack: the JACK server has ended, after frame [0-9]+$' capture.err
	[ -e got.wav ] || [ -e got.wav.part ]
	capture "$(ls got.wav*)" | inspect --verify >verify.txt
	clean_jack
}

play_server_killed()
{
	start_jack 128 2
	capture gen:silence -c 2 | play jack: 2>play.err &
	local pipeline=$!
	wait_for 20 jack_plays_to system:playback_2
	kill -KILL "$jack_pid"
	ends "$pipeline" 10
	one_line play.err 'play: jack: the JACK server has ended'
	clean_jack
}

no_server()
{
	export JACK_DEFAULT_SERVER=weir-test-none-$$ JACK_NO_START_SERVER=1
	expect_status 1 capture jack: 2>err >out
	one_line err 'capture: jack: no JACK server answers'
	empty out
	capture -d 10ms gen:silence >silence.weir
	expect_status 1 play jack: <silence.weir 2>err
	one_line err 'play: jack: no JACK server answers'
}

wrong_names()
{
	start_jack 128 2
	expect_status 1 capture jack:nobody 2>err >out
	one_line err "no output port or client 'nobody'"
	capture -r 44100 -d 10ms gen:silence >silence.weir
	expect_status 1 play jack: <silence.weir 2>err
	one_line err 'runs at 48000 Hz and the stream at 44100'
	stop_jack
}

# As many heap calls after 500 blocks as after 50, JACK's library included.
heap()
{
	[ -z "${SAN-}" ] || skip "with sanitizers the heap is theirs and is not counted"
	start_jack 64 2
	capture -d 3200smp jack: --stats-file few.json >/dev/null
	capture -d 64000smp jack: --stats-file many.json >/dev/null
	eq "$(json many.json 'd["allocs"]')" "$(json few.json 'd["allocs"]')" "heap calls for 1000 blocks and for 50"
	stop_jack
}

# The period changes while it runs: nothing is lost beyond the switch.
period_changes()
{
	have jack_bufsize || skip "jack_bufsize is not installed"
	start_jack 64 2
	capture jack: >got.weir 2>capture.err &
	local capture_pid=$! size
	wait_for 20 grown got.weir 40000
	jack_bufsize 256 >/dev/null
	size=$(bytes_of got.weir)
	wait_for 20 grown got.weir $((size + 40000))
	kill -INT "$capture_pid"
	ends "$capture_pid" 20
	inspect --json got.weir >got.json || :
	jack_bufsize | grep -q 256
	# What JACK itself lost in the switch is a gap with that length; every frame is in a packet or in a gap.
	"$PYTHON" - <<'PY'
import json
lines = [json.loads(l) for l in open("got.json")]
at = 0
for l in lines:
    if l.get("type") in ("DATA", "GAP"):
        assert l["pos"] == at, l
        at += l["dur"]
PY
	stop_jack
}

peers()
{
	have jack_rec || skip "jack_rec is not installed"
	start_jack 256 2
	# play → their recorder
	capture -d 30s -c 2 gen:ident | play jack:- &
	local player=$!
	wait_for 20 jack_lists weir-play:out_2
	jack_rec -f theirs.wav -d 1 -b 32 weir-play:out_1 weir-play:out_2 >rec.log 2>&1
	kill -INT "$player" 2>/dev/null || :
	wait "$player" || :
	meter --json theirs.wav >theirs.json
	near "$(json theirs.json 'd["tracks"][0]["per_channel"][0]["sample_peak_dbfs"]')" -20 0.1 "peak of what they recorded"
	stop_jack
}

test_case "gen:count comes back to the sample: 128 frames, 2 channels" f32 128 2
test_case "gen:count comes back to the sample: 32 frames, 32 channels" f32 32 32
test_case "s24 comes back to the bit" s24
test_case "32 channels keep their order" order
test_case "the physical ports are the default, and packets have times" physical
test_case "a reader that stops for 1.5 s loses nothing with a ring of 2 s" short_stall
test_case "a reader that stops for 5 s loses exactly what is said" long_stall
test_case "a server that is killed: message, status, whole file" server_killed
test_case "a server that is killed while play runs" play_server_killed
test_case "without a server that is said" no_server
test_case "wrong ports and rates are told" wrong_names
test_case "the heap stands still" heap
test_case "the period may change" period_changes
test_case "JACK's own recorder hears what is played" peers
done_testing
