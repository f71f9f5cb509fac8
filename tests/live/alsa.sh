#!/bin/bash
# capture and play on ALSA, without hardware: by ALSA's PCMs that write files and that speak to a PulseAudio server.
. "$(dirname "$0")/live.sh"

has_device alsa || skip_all "this build has no ALSA support"

# A PCM that writes down what it gets, without a clock: so all of it must be there before it begins.
to_file()
{
	cat >asound.conf <<-CONF
	pcm.none { type null }
	pcm.down { type file slave.pcm "none" file "$PWD/played.raw" format "raw" }
	CONF
	export ALSA_CONFIG_PATH=$PWD/asound.conf
	local f
	for f in f32 s24 s16; do
		rm -f played.raw
		capture -d 12345smp -f $f gen:count | play --latency 1s alsa:down
		capture -d 12345smp -f $f gen:count | mux -q --format raw -o wanted.raw -y
		"$PYTHON" - <<'PY'
played, wanted = open("played.raw", "rb").read(), open("wanted.raw", "rb").read()
at = played.find(wanted)
assert at >= 0, (len(played), len(wanted))
assert not any(played[:at]) and not any(played[at + len(wanted) :]), at
PY
	done
}

to_pulse()
{
	have pulseaudio && have pactl || skip "pulseaudio is not installed"
	ls /usr/lib/*/alsa-lib/libasound_module_pcm_pulse.so >/dev/null 2>&1 || skip "ALSA's plugin for PulseAudio is not installed"
	pulse_server
	null_sink 48000 2 float32le
	printf 'pcm.server { type pulse }\n' >asound.conf
	export ALSA_CONFIG_PATH=$PWD/asound.conf
	capture -f f32 alsa:server >got.weir 2>capture.err &
	local capture_pid=$! size
	wait_for 20 grown got.weir 40000
	{ head -c 384000 /dev/zero; capture -d 48000smp gen:count | mux -q --format raw -o -; } |
		capture -r 48000 -c 2 -f f32 raw:- | play alsa:server --latency 500ms
	size=$(bytes_of got.weir)
	wait_for 20 grown got.weir $((size + 200000))
	kill -INT "$capture_pid"
	ends "$capture_pid" 20
	mux -q -o got.wav <got.weir || :
	counted got.wav 2 48000
	stop_pulse
}

# What is no audio is not heard, and where a timeline begins anew there is no silence.
moved_and_other_kinds()
{
	cat >asound.conf <<-CONF
	pcm.none { type null }
	pcm.down { type file slave.pcm "none" file "$PWD/played.raw" format "raw" }
	CONF
	export ALSA_CONFIG_PATH=$PWD/asound.conf
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" make a.weir track:1:1:1:48000:1:1:0 data:1:0:480:10 data:1:480000:480:10:2 \
		track:1:3:32:48000:0:0:0 data:1:484800:100:1:0:300 end:0
	play --latency 1s alsa:down a.weir
	"$PYTHON" - <<'PY'
import struct
played = open("played.raw", "rb").read()
wanted = struct.pack("<4800h", *range(1, 4801)) * 2
at = played.find(wanted)
assert at >= 0, len(played)
assert not any(played[:at]) and not any(played[at + len(wanted) :]), at
PY
}

no_such()
{
	printf 'pcm.nothing { type null }\n' >asound.conf
	export ALSA_CONFIG_PATH=$PWD/asound.conf
	expect_status 1 capture alsa:elsewhere 2>err >out
	one_line err '^capture: alsa:elsewhere: cannot be opened: '
	empty out
}

test_case "f32, s24 and s16 are played to the bit and to the end" to_file
test_case "a timeline that is moved, and a track that becomes one of messages" moved_and_other_kinds
test_case "through a server and back to the sample" to_pulse
test_case "a PCM that is not there" no_such
done_testing
