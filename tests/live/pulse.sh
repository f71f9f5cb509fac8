#!/bin/bash
# capture and play on PulseAudio: a server with a null sink, whose monitor hears what is played.
. "$(dirname "$0")/live.sh"

for tool in pulseaudio pactl paplay parec; do
	have $tool || skip_all "$tool is not installed"
done
has_device pulse || skip_all "this build has no PulseAudio support"
share_pulse

# signal FRAMES CHANNELS FORMAT: half a second of silence, then gen:count, as raw samples.  A stream that begins takes back what
# a null sink has rendered ahead, and what its monitor handed out already was silence: so nothing that counts stands there.
signal()
{
	local width
	case $3 in s16) width=2 ;; s24) width=3 ;; *) width=4 ;; esac
	head -c $((24000 * $2 * width)) /dev/zero
	capture -d "$1smp" -c "$2" -f "$3" gen:count | mux -q --format raw -o -
}

begin_capture() # [ARG…]
{
	capture pulse:null.monitor "$@" >got.weir 2>capture.err &
	capture_pid=$!
	wait_for 20 grown got.weir 4096
}

# What was played when this is called stands in got.weir then.
end_capture()
{
	local size
	size=$(bytes_of got.weir)
	# The monitor hands out what was heard up to now with a delay: half a second more of it.
	wait_for 20 grown got.weir $((size + $1 * 24000))
	kill -INT "$capture_pid"
	ends "$capture_pid" 20
}

round_trip() # FORMAT THEIRS CHANNELS BYTES
{
	null_sink 48000 "$3" "$2"
	begin_capture
	signal 48000 "$3" "$1" | capture -r 48000 -c "$3" -f "$1" raw:- | play pulse:null --latency 500ms --stats-file play.json
	eq "$(json play.json 'd["underruns"]')" 0 "underruns"
	end_capture $(($3 * $4))
	eq "$status" 0 "status of capture"
	inspect --verify got.weir
	mux -q -o got.wav <got.weir
	counted got.wav "$3" 48000 "$1"
}

names()
{
	null_sink 44100 2 s16le
	capture --list --json >list.json
	eq "$(json list.json '[(x["captures"], x["plays"], x["rate_hz"], x["channels"], x["default"]) for x in d["devices"] if x["name"] == "pulse:null"]')" \
		'[[false, true, 44100, 2, true]]'
	eq "$(json list.json '[(x["captures"], x["rate_hz"]) for x in d["devices"] if x["name"] == "pulse:null.monitor"]')" '[[true, 44100]]'
	capture --list | grep -q 'pulse:null.monitor .*captures, 2 channels, 44100 Hz'
	# The default, in its own format, and in another.
	capture -d 100ms pulse: >a.weir
	inspect --json a.weir >a.json
	eq "$(json a.json '[(l["channels"], l["sample"]) for l in lines if l.get("type") == "TRACK"]')" '[[2, "s16"]]'
	eq "$(json a.json 'd["summary"]["frames"]["1"]')" 4410
	capture -d 100ms -r 48000 -f f32 pulse: | inspect --json >a.json
	eq "$(json a.json 'd["summary"]["frames"]["1"]')" 4800
	expect_status 1 capture pulse:nothing 2>err >out
	one_line err 'capture: pulse:nothing: the server has no such source'
}

# Theirs to ours and ours to theirs.
peers()
{
	null_sink 48000 2 float32le
	signal 48000 2 f32 >count.raw
	begin_capture
	paplay -d null --latency-msec=500 --raw --format=float32le --rate=48000 --channels=2 count.raw
	end_capture 8
	mux -q -o got.wav <got.weir
	counted got.wav 2 48000

	parec -d null.monitor --format=float32le --rate=48000 --channels=2 --file-format=wav theirs.wav &
	local recorder=$! size
	wait_for 20 grown theirs.wav 40000
	capture -r 48000 -c 2 -f f32 raw:count.raw | play pulse:null --latency 500ms
	size=$(bytes_of theirs.wav)
	wait_for 20 grown theirs.wav $((size + 200000))
	kill -INT "$recorder"
	ends "$recorder" 20
	counted theirs.wav 2 48000
}

volume()
{
	null_sink 48000 1 float32le
	begin_capture
	capture -d 1s -c 1 gen:sine:freq=1000,level=-6dB | play --volume -14dB pulse:
	end_capture 4
	meter --json got.weir >got.json
	near "$(json got.json 'd["tracks"][0]["per_channel"][0]["sample_peak_dbfs"]')" -20 0.05 "peak"
}

# A short pause of the reader costs nothing.
stalled()
{
	null_sink 48000 2 float32le
	capture pulse:null.monitor --ring 2s --stats-file capture.json 2>capture.err | reader &
	local pipeline=$! reader played
	wait_for 20 grown got.weir 4096
	reader=$(cat reader.pid)
	signal 120000 2 f32 | capture -r 48000 -c 2 -f f32 raw:- | play pulse:null --latency 500ms &
	played=$!
	sleep 0.2
	kill -STOP "$reader"
	sleep 1.5
	kill -CONT "$reader"
	ends "$played" 20
	local size
	size=$(bytes_of got.weir)
	wait_for 20 grown got.weir $((size + 200000))
	pactl unload-module module-null-sink
	ends "$pipeline" 20
	inspect --json got.weir >got.json || :
	eq "$(json got.json 'd["summary"]["lost_frames"]')" 0 "frames lost"
	eq "$(json capture.json 'd["dropped_frames"]')" 0 "frames dropped"
	mux -q -o got.wav <got.weir || :
	counted got.wav 2 120000
}

# The device goes: one line that names it, at once; the file is whole up to there.
device_gone()
{
	null_sink 48000 2 float32le
	local module pipeline begin
	module=$(pactl load-module module-null-sink sink_name=second rate=48000 channels=2)
	capture pulse:second.monitor 2>capture.err | mux -q -o got.wav 2>mux.err &
	pipeline=$!
	wait_for 20 grown got.wav.part 40000
	begin=${EPOCHREALTIME/./}
	pactl unload-module "$module"
	ends "$pipeline" 10
	between $((${EPOCHREALTIME/./} - begin)) 0 5000000 "µs until it was over"
	eq "$status" 3 "status"
	one_line capture.err '^capture: pulse:second.monitor: the device went away, after frame [0-9]+$'
	capture "$(ls got.wav*)" | inspect --verify
}

server_killed()
{
	pulse_server
	null_sink 48000 2 float32le
	capture pulse: 2>capture.err | mux -q -o got.wav 2>mux.err &
	local pipeline=$!
	capture gen:silence | play pulse: 2>play.err &
	local player=$!
	wait_for 20 grown got.wav.part 40000
	wait_for 20 plays
	kill -KILL "$pulse_pid"
	ends "$pipeline" 10
	eq "$status" 3 "status"
	one_line capture.err '^capture: pulse:null.monitor: the PulseAudio server has ended, after frame [0-9]+$'
	capture "$(ls got.wav*)" | inspect --verify
	ends "$player" 10
	one_line play.err '^play: pulse:null: the PulseAudio server has ended$'
	wait "$pulse_pid" || :
	rm -rf "$pulse_socket"
}

plays()
{
	pactl list short sink-inputs | command grep -q .
}

no_server()
{
	export PULSE_SERVER=unix:$PWD/nowhere HOME=$PWD XDG_RUNTIME_DIR=$PWD
	expect_status 1 capture pulse: 2>err >out
	one_line err 'capture: pulse: no PulseAudio server answers'
	empty out
}

heap()
{
	[ -z "${SAN-}" ] || skip "with sanitizers the heap is theirs and is not counted"
	null_sink 48000 2 float32le
	capture -d 6s pulse: --stats=0.5 --stats-file s.json >/dev/null
	# Once it runs nothing is allocated, by the library neither: its watch of the socket is kept.
	"$PYTHON" - <<'PY'
import json
a = [(d["rss_kib"], d["allocs"], d["packets_out"]) for d in map(json.loads, open("s.json"))]
a = [x for x in a if x[2] >= 10]
assert a[-2][2] - a[0][2] >= 50, a
assert a[-2][0] - a[0][0] <= 256, a
assert a[-2][1] - a[0][1] <= 4, a
PY
}

too_many()
{
	pulse_server
	null_sink 48000 2 s16le
	capture -q -d 100ms -c 1000 gen:ident >many.weir
	expect_status 1 play pulse: many.weir 2>err
	one_line err "^play: pulse:null: 1000 channels at 48000 Hz: PulseAudio takes at most 32 at "
	expect_status 1 capture -c 200 pulse: 2>err >out
	one_line err "^capture: pulse:null.monitor: 200 channels at .*: PulseAudio takes at most 32 at "
	stop_pulse
}

test_case "gen:count comes back to the sample: f32, 2 channels" round_trip f32 float32le 2 4
test_case "gen:count comes back to the sample: s24, 6 channels" round_trip s24 s24le 6 3
test_case "gen:count comes back to the sample: s16, 1 channel" round_trip s16 s16le 1 2
test_case "devices have names, a default, and a format of their own" names
test_case "paplay is heard to the sample, and parec hears" peers
test_case "more channels than the server has" too_many
test_case "the volume is what was asked for" volume
test_case "a reader that stops for 1.5 s loses nothing" stalled
test_case "a device that goes away" device_gone
test_case "a server that is killed" server_killed
test_case "without a server that is said" no_server
test_case "memory stands still" heap
done_testing
