#!/bin/bash
# --reconnect: a server that is killed while capture or play runs, and started again.  It has a second try: positions are held against the
# wall's clock, and a server without hardware falls behind that where it does not get a processor.
. "$(dirname "$0")/live.sh"

# gap_is_the_absence JSON FROM TO: every frame is in a packet or a gap; the gaps in the middle are one absence, of a length in
# seconds between these; times and clocks go on through it.
gap_is_the_absence()
{
	"$PYTHON" - "$@" <<'PY'
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
low, high = float(sys.argv[2]), float(sys.argv[3])
rate = next(l for l in lines if l.get("type") == "TRACK")["rate_num"]
at, absent, last = 0, 0, None
for l in lines:
    if l.get("type") not in ("DATA", "GAP"):
        continue
    assert l["pos"] == at, (l, at)
    at += l["dur"]
    if l["type"] == "GAP":
        if l["reason"] == 7:
            absent += l["dur"]
        continue
    # What lies between two packets by the wall clock lies between their positions.
    if last:
        by_clock = (l["utc_ns"] - last["utc_ns"]) / 1e9
        by_pos = (l["pos"] - last["pos"]) / rate
        assert abs(by_clock - by_pos) < 0.1, (last, l)
    last = l
assert low <= absent / rate <= high, (absent / rate, low, high)
clocks = [l for l in lines if l.get("type") == "CLOCK"]
assert len(clocks) >= 2, clocks
for a, b in zip(clocks, clocks[1:]):
    passed = b["monotonic_ns"] - a["monotonic_ns"]
    assert passed > 0 and abs(b["media_ns"] - a["media_ns"] - passed) < 1e8, (a, b)
    assert a["boot_id"] == b["boot_id"]
print(f"absent for {absent / rate:.3f} s, {len(clocks)} CLOCK packets")
PY
}

begin_absence()
{
	gone_us=${EPOCHREALTIME/./}
}

# end_absence: seconds since, as $absence.
end_absence()
{
	absence=$("$PYTHON" -c "print((${EPOCHREALTIME/./} - $gone_us) / 1e6)")
}

jack_capture()
{
	have jackd && has_device jack || skip "no JACK"
	start_jack 128 2
	capture --reconnect jack: >got.weir 2>capture.err &
	local capture_pid=$! size
	wait_for 20 grown got.weir 400000
	kill -KILL "$jack_pid"
	begin_absence
	wait "$jack_pid" || :
	wait_for 10 command grep -q 'waited for' capture.err
	start_jack 128 2
	wait_for 20 command grep -q 'is back' capture.err
	end_absence
	size=$(bytes_of got.weir)
	wait_for 20 grown got.weir $((size + 400000))
	kill -INT "$capture_pid"
	ends "$capture_pid" 20
	eq "$status" 3 "status: something is missing"
	inspect --json got.weir >got.json || :
	gap_is_the_absence got.json 0.05 "$("$PYTHON" -c "print($absence + 1)")"
	grep -Eq '^capture: jack: the JACK server has ended, after frame [0-9]+; it is waited for$' capture.err
	grep -Eq '^capture: jack: is back after [0-9.]+ s: a gap of [0-9]+ frames$' capture.err
	stop_jack
}

pulse_capture()
{
	have pulseaudio && have pactl && has_device pulse || skip "no PulseAudio"
	pulse_server
	null_sink 48000 2 float32le
	capture --reconnect pulse:null.monitor >got.weir 2>capture.err &
	local capture_pid=$! size
	wait_for 20 grown got.weir 400000
	kill -KILL "$pulse_pid"
	begin_absence
	wait "$pulse_pid" || :
	rm -rf "$pulse_socket"
	wait_for 10 command grep -q 'waited for' capture.err
	restart_pulse
	wait_for 20 command grep -q 'is back' capture.err
	end_absence
	size=$(bytes_of got.weir)
	wait_for 20 grown got.weir $((size + 400000))
	kill -INT "$capture_pid"
	ends "$capture_pid" 20
	eq "$status" 3 "status: something is missing"
	inspect --json got.weir >got.json || :
	gap_is_the_absence got.json 0.05 "$("$PYTHON" -c "print($absence + 1)")"
	grep -q '^capture: pulse:null.monitor: the PulseAudio server has ended' capture.err
	stop_pulse
}

# The same server on the same socket, with the sink that was there.
restart_pulse()
{
	mkdir -p "$pulse_socket"
	chmod 700 "$pulse_socket"
	echo "load-module module-null-sink sink_name=null rate=48000 channels=2 format=float32le" >>pulse.pa
	pulseaudio -n -F "$PWD/pulse.pa" --daemonize=no --use-pid-file=no --exit-idle-time=-1 --disable-shm=yes --realtime=no --high-priority=no \
		--log-target=stderr >pulse2.log 2>&1 &
	pulse_pid=$!
	(wait_for 20 pulse_answers) || fail "pulseaudio does not start again: $(tail -n 20 pulse2.log)"
}

# Without the option it ends, as it always did: see jack.sh.  With it, a stop is obeyed while nobody answers.
stop_while_away()
{
	have jackd && has_device jack || skip "no JACK"
	start_jack 128 2
	capture --reconnect jack: >got.weir 2>capture.err &
	local capture_pid=$! begin
	wait_for 20 grown got.weir 40000
	kill -KILL "$jack_pid"
	wait_for 10 command grep -q 'waited for' capture.err
	begin=${EPOCHREALTIME/./}
	kill -INT "$capture_pid"
	ends "$capture_pid" 20
	between $((${EPOCHREALTIME/./} - begin)) 0 3000000 "µs until it had stopped"
	inspect --json got.weir >got.json || :
	eq "$(json got.json '[l["reason"] for l in lines if l.get("type") == "END" and l["track"] == 0]')" "[1]"
	clean_jack
}

# jack_play WORD ARG…: what makes the stream.  With "goes" it is live and goes on meanwhile, with "waits" it stands still.
jack_play()
{
	local how=$1 player maker before
	shift
	have jackd && has_device jack || skip "no JACK"
	start_jack 1024 2
	mkfifo stream
	"$@" >stream &
	maker=$!
	play --reconnect jack: --stats=0.1 --stats-file play.json <stream 2>play.err &
	player=$!
	wait_for 20 jack_plays_to system:playback_2
	kill -KILL "$jack_pid"
	wait "$jack_pid" || :
	wait_for 10 command grep -q 'waited for' play.err
	start_jack 1024 2
	wait_for 20 command grep -q 'is back' play.err
	wait_for 20 jack_plays_to system:playback_2
	before=$(json play.json 'd["frames_out"]')
	wait_for 20 reached play.json frames_out $((before + 24000))
	kill -INT "$player"
	ends "$player" 20
	kill -INT "$maker" 2>/dev/null || :
	grep -q '^play: jack: the JACK server has ended; it is waited for$' play.err
	grep -Eq '^play: jack: is back after [0-9.]+ s$' play.err
	eq "$(json play.json 'd["absences"]')" 1
	case $how in
	goes) [ "$(json play.json 'd["absent_frames"]')" -gt 0 ] ;;
	waits) eq "$(json play.json 'd["absent_frames"]')" 0 ;;
	esac
	stop_jack
}

plays_on()
{
	jack_play waits capture -c 2 gen:sine
}

# What is live: says so in its STREAM, whose flag a capture of a device sets.  That of a generator is marked here.
live_stream()
{
	capture --realtime --block 480 -c 2 gen:sine | "$PYTHON" -c '
import os, struct, sys
table = []
for i in range(256):
    for _ in range(8):
        i = i >> 1 ^ (0x82F63B78 if i & 1 else 0)
    table.append(i)
def crc(b):
    c = 0xFFFFFFFF
    for x in b:
        c = c >> 8 ^ table[(c ^ x) & 255]
    return c ^ 0xFFFFFFFF
head = bytearray(os.read(0, 128))
assert head[5] == 1
flags = struct.unpack_from("<I", head, 64 + 24)[0]
struct.pack_into("<I", head, 64 + 24, flags | 1)
os.write(1, head)
while True:
    b = os.read(0, 65536)
    if not b:
        break
    os.write(1, b)
'
}

plays_on_live()
{
	jack_play goes live_stream
}

test_case "capture: a JACK server that comes back: a gap as long as the absence" jack_capture
test_case "capture: a PulseAudio server that comes back" pulse_capture
test_case "capture: a stop is obeyed while it waits" stop_while_away
test_case "play: a server that comes back: a stream that waits goes on where it was" plays_on
test_case "play: a server that comes back: a live stream goes on where it is by then" plays_on_live
done_testing
