#!/bin/bash
# capture and play on PipeWire: a server of its own with a null sink, the session manager that links, and the server's own tools.
# It has a second try: what the server loses when its threads are late is not ours.
. "$(dirname "$0")/live.sh"

for tool in pipewire wireplumber pw-cli pw-cat dbus-daemon; do
	have $tool || skip_all "$tool is not installed"
done
has_device pipewire || skip_all "this build has no PipeWire support"

# signal FRAMES: a second of silence, then gen:count in f32, then a quarter of silence, as raw samples: streams are linked and unlinked
# while the graph runs, and nothing that counts stands near that.
signal()
{
	head -c $((48000 * 8)) /dev/zero
	capture -d "$1smp" -f f32 gen:count | mux -q --format raw -o -
	head -c $((12000 * 8)) /dev/zero
}

begin_capture()
{
	capture pipewire:loop "$@" >got.weir 2>capture.err &
	capture_pid=$!
	wait_for 20 grown got.weir 200000
}

end_capture()
{
	local size
	size=$(bytes_of got.weir)
	wait_for 20 grown got.weir $((size + 200000))
	kill -INT "$capture_pid"
	ends "$capture_pid" 20
	mux -q -o got.wav <got.weir || :
}

round_trip()
{
	start_pipewire 2 "FL FR"
	signal 48000 >count.raw
	begin_capture
	capture -r 48000 -c 2 -f f32 raw:count.raw | play pipewire:loop --latency 500ms --stats-file play.json
	eq "$(json play.json 'd["underruns"]')" 0 underruns
	end_capture
	counted got.wav 2 48000
	stop_pipewire
}

# The last frame of what is played is heard, too.
to_the_end()
{
	start_pipewire 2 "FL FR"
	begin_capture
	{ head -c $((48000 * 8)) /dev/zero; capture -d 10000smp -f f32 gen:count | mux -q --format raw -o -; } >count.raw
	capture -r 48000 -c 2 -f f32 raw:count.raw | play pipewire: --latency 500ms
	end_capture
	counted got.wav 2 10000
	stop_pipewire
}

peers()
{
	start_pipewire 2 "FL FR"
	signal 48000 >count.raw
	capture -r 48000 -c 2 -f f32 raw:count.raw | mux -q -o count.wav
	begin_capture
	pw-cat -p --target loop count.wav
	end_capture
	counted got.wav 2 48000

	pw-cat -r --target loop -P '{ stream.capture.sink=true }' --rate 48000 --channels 2 --format f32 theirs.wav >pwcat.log 2>&1 &
	local recorder=$! size
	wait_for 20 grown theirs.wav 200000
	play count.wav pipewire:loop --latency 500ms
	size=$(bytes_of theirs.wav)
	wait_for 20 grown theirs.wav $((size + 200000))
	kill -INT "$recorder"
	ends "$recorder" 20
	counted theirs.wav 2 48000
	stop_pipewire
}

order()
{
	start_pipewire 8 "FL FR FC LFE RL RR SL SR"
	begin_capture -c 8
	capture -d 2s -c 8 gen:ident | play pipewire:loop --latency 500ms
	end_capture
	"$PYTHON" - <<'PY'
import numpy as np
data = open("got.wav", "rb").read()
x = np.frombuffer(data[data.index(b"data") + 8 :], "<f4")
x = x[: len(x) // 8 * 8].reshape(-1, 8)
s = np.nonzero(np.abs(x).sum(axis=1))[0][0] + 24000
for k in range(8):
    f = np.abs(np.fft.rfft(x[s : s + 24000, k]))
    assert abs(np.argmax(f) * 2 - (200 + 100 * k)) <= 2, (k, np.argmax(f) * 2)
PY
	stop_pipewire
}

names()
{
	start_pipewire 2 "FL FR"
	capture --list --json >list.json
	eq "$(json list.json '[(x["captures"], x["plays"]) for x in d["devices"] if x["name"] == "pipewire:loop"]')" '[[true, true]]'
	expect_status 1 capture pipewire:nothing 2>err >out
	one_line err 'capture: pipewire:nothing: the server has no such node'
	stop_pipewire
}

server_killed()
{
	start_pipewire 2 "FL FR"
	capture pipewire:loop 2>capture.err | mux -q -o got.wav 2>mux.err &
	local pipeline=$!
	wait_for 20 grown got.wav.part 100000
	kill -KILL "$pipewire_pid"
	ends "$pipeline" 10
	eq "$status" 3 status
	grep -Eq '^capture: pipewire:loop: (the PipeWire server has ended|the device went away), after frame [0-9]+$' capture.err
	capture "$(ls got.wav*)" | inspect --verify
	kill -TERM "$wireplumber_pid" "$dbus_pid" 2>/dev/null || :
	wait "$wireplumber_pid" "$dbus_pid" "$pipewire_pid" || :
	rm -rf "$pipewire_run"
}

test_case "gen:count comes back to the sample" round_trip
test_case "the last frame is heard" to_the_end
test_case "pw-cat is heard to the sample, and hears" peers
test_case "8 channels keep their order" order
test_case "nodes have names" names
test_case "a server that is killed" server_killed
done_testing
