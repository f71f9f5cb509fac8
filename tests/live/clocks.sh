#!/bin/bash
# Several devices at once: capture on one timeline, play to all.
. "$(dirname "$0")/live.sh"

# beside ARG…: one gen:count in four channels goes to two captures of two channels each, in one stream.
beside()
{
	have jackd && has_device jack || skip "no JACK"
	start_jack 128 2
	capture -c 2 jack:- jack:- "$@" --stats-file capture.json >got.weir 2>capture.err &
	local capture_pid=$! size
	# Sound comes when both are there; jackd may stand still when a third client asks it while they come.
	wait_for 20 grown got.weir 40000
	(wait_for 20 jack_lists weir-capture:in_2 && wait_for 20 jack_lists weir-capture-01:in_2) ||
		fail "capture has no ports ($(tail -n 5 jackd.log); $(jack_lsp | tr '\n' ' ')): $(cat capture.err)"
	capture -d 2s -c 4 gen:count | play jack:weir-capture,weir-capture-01
	size=$(bytes_of got.weir)
	wait_for 20 grown got.weir $((size + 100000))
	kill -INT "$capture_pid"
	ends "$capture_pid" 20
	stop_jack
	cat capture.err
	inspect --verify got.weir
	inspect --json got.weir >got.json
}

# apart FROM TO: by how many frames the second track lies behind the first, the same all the way.  Both are whole.
apart()
{
	"$PYTHON" - "$@" <<'PY'
import struct, sys
import numpy as np
low, high = int(sys.argv[1]), int(sys.argv[2])
data = open("got.weir", "rb").read()
tracks = {1: [], 2: []}
at = 0
while at < len(data):
    kind, n, track, hunits, pos = data[at + 5], *struct.unpack_from("<IHxBq", data, at + 8)
    if kind == 3:
        tracks[track].append((pos, np.frombuffer(data[at + 64 * hunits : at + 64 * hunits + n], "<f4").reshape(-1, 2)))
    at += 64 * hunits + (n + 63) // 64 * 64
begins = []
count = ((np.arange(4 * 96000) & 0xFFFFFF) * 2.0**-23 - 1).astype("<f4").reshape(-1, 4)
for t in (1, 2):
    end = max(p + len(x) for p, x in tracks[t])
    whole = np.zeros((end, 2), "<f4")
    for p, x in tracks[t]:
        whole[p : p + len(x)] = x
    want = count[:, 2 * t - 2 : 2 * t]
    places = np.nonzero((whole == want[1000]).all(axis=1))[0]
    assert len(places) == 1, (t, places)
    s = places[0] - 1000
    wrong = np.nonzero((whole[s : s + 96000] != want).any(axis=1))[0]
    assert not len(wrong), (t, len(wrong), wrong[:5])
    begins.append(s)
behind = begins[1] - begins[0]
print(f"the second begins {behind} frames behind the first")
assert low <= behind <= high, behind
PY
}

# Two clients of one server have one clock and one count of frames: copies, in the same places.
in_their_places()
{
	beside
	apart 0 0
	eq "$(json got.json '[l["reason"] for l in lines if l.get("type") == "GAP" and l["track"] == 2][:1]')" "[5]"
	eq "$(json capture.json 'd["ratio_e9"]')" 1000000000
}

# Each from its own beginning: without a gap, and so much apart as the second began later.
by_their_own_clocks()
{
	beside --no-sync
	apart -48000 -128
	eq "$(json got.json '[l for l in lines if l.get("type") == "GAP"]')" "[]"
}

# Of a file, two sinks play every frame, to the last.
two_sinks()
{
	have pulseaudio && have pactl && has_device pulse || skip "no PulseAudio"
	pulse_server
	null_sink 48000 2 float32le
	pactl load-module module-null-sink sink_name=other rate=48000 channels=2 format=float32le >/dev/null
	capture pulse:null.monitor >one.weir 2>one.err &
	local one=$! two size
	capture pulse:other.monitor >two.weir 2>two.err &
	two=$!
	wait_for 20 grown one.weir 4096
	wait_for 20 grown two.weir 4096
	{
		head -c $((24000 * 8)) /dev/zero
		capture -d 2s -c 2 gen:count | mux -q --format raw -o -
	} | capture -r 48000 -c 2 -f f32 raw:- >count.weir
	play count.weir pulse:null pulse:other --latency 500ms --stats-file play.json
	eq "$(json play.json 'd["underruns"]')" 0 "underruns"
	eq "$(json play.json 'd["frames_out"]')" 120000 "frames the slower sink was given"
	for file in one.weir two.weir; do
		size=$(bytes_of $file)
		wait_for 20 grown $file $((size + 8 * 24000))
	done
	kill -INT "$one" "$two"
	ends "$one" 20
	ends "$two" 20
	mux -q -o one.wav one.weir
	mux -q -o two.wav two.weir
	counted one.wav 2 96000
	counted two.wav 2 96000
	stop_pulse
}

# A JACK server and a PulseAudio server, in one play and in one capture.
two_systems()
{
	have jackd && has_device jack || skip "no JACK"
	have pulseaudio && have pactl && has_device pulse || skip "no PulseAudio"
	start_jack 256 2
	pulse_server
	null_sink 48000 2 float32le
	capture -d 6s -c 2 jack:- pulse:null.monitor --stats-file capture.json >got.weir 2>capture.err &
	local capture_pid=$!
	wait_for 20 jack_lists weir-capture:in_2
	wait_for 20 grown got.weir 100000
	capture -d 2s -c 2 gen:count | play jack:weir-capture pulse:null --latency 300ms --stats-file play.json
	ends "$capture_pid" 20
	eq "$(json play.json 'd["frames_out"]')" 96000
	inspect --json got.weir >got.json || :
	# Both tracks are as long, to what one block is.
	eq "$(json got.json 'sorted(d["summary"]["frames"])')" '["1", "2"]'
	"$PYTHON" - <<'PY'
import json
lines = [json.loads(l) for l in open("got.json")]
end = {}
for l in lines:
    if l.get("type") in ("DATA", "GAP"):
        assert l["pos"] == end.get(l["track"], 0), l
        end[l["track"]] = l["pos"] + l["dur"]
assert end == {1: 288000, 2: 288000}, end
PY
	stop_jack
	stop_pulse
}

test_case "two devices of one clock stand in the same places, bit for bit" in_their_places
test_case "--no-sync: each from its own beginning" by_their_own_clocks
test_case "two sinks play a file to its last frame" two_sinks
test_case "two sound systems at once" two_systems
done_testing
