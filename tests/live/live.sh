# For tests of sound devices: servers of their own, started as an ordinary user would, each on sockets in the scratch
# folder, ended by their process ids.  Nothing here touches a server that runs already.
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

# Built with sanitizers, leaks that the servers' libraries leave at exit are not ours to find.
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}

has_device() # SYSTEM: is it in this build?
{
	local out
	out=$(capture "$1:" 2>&1 </dev/null >/dev/null) || :
	[[ $out != *"this build has no"* ]]
}

# ends PID SECONDS: waits for a child; $status is its exit status.
ends()
{
	local limit=$2 i
	for ((i = 0; i < limit * 50; i++)); do
		kill -0 "$1" 2>/dev/null || break
		[ "$(ps -o stat= -p "$1" 2>/dev/null | cut -c1)" != Z ] || break
		sleep 0.02
	done
	[ "$i" -lt $((limit * 50)) ] || fail "process $1 did not end in $limit s"
	status=0
	wait "$1" || status=$?
}

# grown FILE BYTES: it has that many.
grown()
{
	[ -e "$1" ] && [ "$(stat -c %s "$1")" -ge "$2" ]
}

# counted WAV CHANNELS FRAMES [FORMAT]: somewhere in the file stand the first FRAMES frames of gen:count, in a row and whole, and
# only silence is around them.
counted()
{
	"$PYTHON" - "$@" <<'PY'
import sys
import numpy as np
path, ch, frames = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
fmt = sys.argv[4] if len(sys.argv) > 4 else "f32"
data = open(path, "rb").read()
at = data.index(b"data")
width = {"f32": 4, "s16": 2, "s24": 3, "s32": 4}[fmt]
body = data[at + 8 : at + 8 + (len(data) - at - 8) // (ch * width) * ch * width]
i = np.arange(frames * ch, dtype=np.int64)
if fmt == "f32":
    want = ((i & 0xFFFFFF) * 2.0**-23 - 1).astype("<f4")
    got = np.frombuffer(body, "<f4")
elif fmt == "s16":
    want = (i & 0xFFFF).astype("<u2").view("<i2")
    got = np.frombuffer(body, "<i2")
elif fmt == "s24":
    b = np.frombuffer(body, np.uint8).reshape(-1, 3).astype(np.int64)
    got = b[:, 0] | b[:, 1] << 8 | b[:, 2] << 16
    want = i & 0xFFFFFF
else:
    want = (i & 0xFFFFFFFF).astype("<u4").view("<i4")
    got = np.frombuffer(body, "<i4")
want = want.reshape(-1, ch)
got = got.reshape(-1, ch)
# The first frame of the count may be all but silence: look for the second thousand.
probe = min(1000, frames - 1)
places = np.nonzero((got == want[probe]).all(axis=1))[0]
best = "the count does not begin anywhere"
for p in places:
    s = p - probe
    if s < 0 or s + frames > len(got):
        best = f"frame {probe} of the count stands at {p} of {len(got)}"
        continue
    wrong = np.nonzero((got[s : s + frames] != want).any(axis=1))[0]
    if len(wrong):
        best = f"the count begins at {s}; {len(wrong)} of its {frames} frames are wrong, the first {wrong[0]}"
        continue
    if got[:s].any() or got[s + frames :].any():
        best = f"the count stands at {s} of {len(got)}, whole, but something is around it"
        continue
    print(f"at {s} of {len(got)}")
    sys.exit(0)
sys.exit(f"{path}: {best}")
PY
}

# reader: writes what it reads to got.weir, and its process id to reader.pid, so that it can be stopped for a while.
reader()
{
	"$PYTHON" -c '
import os
out = os.open("got.weir", os.O_WRONLY | os.O_CREAT, 0o644)
open("reader.pid", "w").write(str(os.getpid()))
while True:
    b = os.read(0, 65536)
    if not b:
        break
    os.write(out, b)
'
}

# Do other programs leave the processors alone?  What takes a time is judged only then, and printed always: less than 15 % of a core, while
# half a second is looked at in which this test does nothing.
machine_is_quiet()
{
	"$PYTHON" - <<'PY'
import sys, time
def busy():
    t = [int(x) for x in open("/proc/stat").readline().split()[1:9]]
    return sum(t) - t[3] - t[4]
a = busy()
time.sleep(0.5)
sys.exit((busy() - a) * 2 >= 15)
PY
}

# judge_begin and judge_end around what takes a time: is $judged not empty then, nothing else wanted the processors before and after it.
judge_begin()
{
	judged=
	! machine_is_quiet || judged=1
}

judge_end()
{
	machine_is_quiet || judged=
}

# ---- JACK ----

# jack_begin [CLIENT]: skips all where there is no JACK; builds the client CLIENT.c, as $lib_scratch/CLIENT.
jack_begin()
{
	local flags
	have jackd && have jack_lsp || skip_all "jackd or jack_lsp is not installed"
	has_device jack || skip_all "this build has no JACK support"
	[ -n "${1-}" ] || return 0
	flags=$(pkg-config --cflags --libs jack 2>/dev/null) || skip_all "there is no jack.pc to build $1.c with"
	# shellcheck disable=SC2086
	"${CC:-cc}" -O2 -o "$lib_scratch/$1" "$TOP/tests/live/$1.c" $flags || skip_all "$1.c cannot be built"
}

# jack_plays_to PORT: play is connected to it.
jack_plays_to()
{
	jack_lsp -c "$1" 2>/dev/null | command grep -q weir-play
}

# jack_slot: one of four names for a server, nobody else's as long as this process lives.  JACK keeps a list of at most eight names,
# and takes one that belonged to a server that was killed only for a server of the same name.
jack_slot()
{
	local n
	for ((n = 0; ; n = (n + 1) % 4)); do
		exec {jack_lock}>"/tmp/weir-test-jack-$UID-$n.lock"
		flock -n "$jack_lock" && break
		exec {jack_lock}>&-
		[ $n != 3 ] || sleep 0.1
	done
	JACK_DEFAULT_SERVER=weir-test-$n
}

# start_jack PERIOD CHANNELS: a server without hardware, that waits for its clients (so a loaded machine loses nothing).  jack_way: how its
# threads are scheduled, as ordinary ones if not set.
start_jack()
{
	[ -n "${jack_lock-}" ] || jack_slot
	export JACK_DEFAULT_SERVER JACK_NO_AUDIO_RESERVATION=1 JACK_NO_START_SERVER=1
	local try
	# One that was killed keeps its name until somebody has waited for it.
	for try in 1 2 3 4 5; do
		jackd ${jack_way:--r} -S -t 30000 -n "$JACK_DEFAULT_SERVER" -d dummy -r 48000 -p "$1" -C "$2" -P "$2" >jackd.log 2>&1 {jack_lock}>&- &
		jack_pid=$!
		(wait_for 30 jack_is_up "$jack_pid") && return 0
		command grep -q 'already active' jackd.log || break
		sleep 0.5
	done
	fail "jackd does not start: $(tail -n 20 jackd.log)"
}

# It runs, or it has given up.
jack_is_up() # PID
{
	kill -0 "$1" 2>/dev/null || exit 1
	jack_lists system:capture_1 || return 1
	# One that finds another of its name ends soon, and the other is who answered.
	! command grep -q 'already active' jackd.log && kill -0 "$1" 2>/dev/null
}

# What a server that was killed leaves behind: its place in the list goes with the next one of its name.
clean_jack()
{
	wait "$jack_pid" || :
	start_jack 1024 2
	stop_jack
	rm -f /dev/shm/jack_sem.*_"$JACK_DEFAULT_SERVER"_*
}

jack_lists() # PORT
{
	jack_lsp 2>/dev/null | command grep -qx "$1"
}

# A server that does not end when asked (jackd waits for a client now and then that is gone) is killed.
stop_jack()
{
	kill -TERM "$jack_pid" 2>/dev/null || :
	(wait_for 5 is_over "$jack_pid") 2>/dev/null || kill -KILL "$jack_pid" 2>/dev/null || :
	wait "$jack_pid" || :
	jack_pid=
}

is_over() # PID
{
	! kill -0 "$1" 2>/dev/null || [ "$(ps -o stat= -p "$1" 2>/dev/null | cut -c1)" = Z ]
}

# ---- PulseAudio ----

# pulse_server: without devices, as $pulse_pid.
pulse_server()
{
	mkdir -p home
	# A path of more than 107 bytes is no socket.
	pulse_socket=$(mktemp -d /tmp/weir-pulse.XXXXXX)
	export HOME=$PWD/home XDG_RUNTIME_DIR=$pulse_socket PULSE_RUNTIME_PATH=$pulse_socket PULSE_STATE_PATH=$PWD/home PULSE_SERVER=unix:$pulse_socket/native
	echo "load-module module-native-protocol-unix auth-anonymous=1 socket=$pulse_socket/native" >pulse.pa
	pulseaudio -n -F "$PWD/pulse.pa" --daemonize=no --use-pid-file=no --exit-idle-time=-1 --disable-shm=yes --realtime=no --high-priority=no \
		--log-target=stderr >pulse.log 2>&1 &
	pulse_pid=$!
	(wait_for 20 pulse_answers) || fail "pulseaudio does not start: $(tail -n 20 pulse.log)"
}

pulse_answers()
{
	pactl info >/dev/null 2>&1
}

stop_pulse()
{
	kill -TERM "$pulse_pid" 2>/dev/null || :
	ends "$pulse_pid" 20
	rm -rf "$pulse_socket"
}

# share_pulse: one server for all cases of a script.
share_pulse()
{
	mkdir "$lib_scratch/server"
	cd "$lib_scratch/server" || exit 1
	pulse_server
	cd - >/dev/null || exit 1
	disown "$pulse_pid"
	trap 'kill -TERM "$pulse_pid"; rm -rf "$pulse_socket" "$lib_scratch"' EXIT
}

# null_sink RATE CHANNELS FORMAT: the server's only sink, "null".  Its channels are in the order of the WAVE mask.  (Where the server
# must put them into another order it computes in floats scaled by 2^31 - 1, which is not exact.)
null_sink()
{
	local map=
	[ "$2" != 6 ] || map=channel_map=front-left,front-right,front-center,lfe,rear-left,rear-right
	pactl unload-module module-null-sink 2>/dev/null || :
	pactl load-module module-null-sink sink_name=null rate="$1" channels="$2" format="$3" $map >/dev/null
	pactl set-default-sink null
	pactl set-default-source null.monitor
}

# ---- PipeWire ----

# start_pipewire CHANNELS POSITIONS: a server, a session manager, and a null sink "loop".  Long cycles: an ordinary user's threads are
# late now and then, and what the server loses is not ours to test.
start_pipewire()
{
	mkdir -p home/.config/pipewire/pipewire.conf.d
	# A path of more than 107 bytes is no socket.
	pipewire_run=$(mktemp -d /tmp/weir-pipewire.XXXXXX)
	export HOME=$PWD/home XDG_CONFIG_HOME=$PWD/home/.config XDG_STATE_HOME=$PWD/home/state XDG_RUNTIME_DIR=$pipewire_run
	export PIPEWIRE_RUNTIME_DIR=$pipewire_run DBUS_SESSION_BUS_ADDRESS=unix:path=$pipewire_run/bus
	unset PIPEWIRE_REMOTE
	cat >home/.config/pipewire/pipewire.conf.d/loop.conf <<CONF
context.properties = { default.clock.rate = 48000 default.clock.quantum = 4096 default.clock.min-quantum = 4096 default.clock.max-quantum = 8192 }
context.objects = [
    { factory = adapter
        args = { factory.name = support.null-audio-sink node.name = "loop" node.description = "Loop" media.class = Audio/Sink
            audio.rate = 48000 audio.channels = $1 audio.position = [ $2 ] }
    }
]
CONF
	dbus-daemon --session --nofork --nopidfile --address="$DBUS_SESSION_BUS_ADDRESS" >dbus.log 2>&1 &
	dbus_pid=$!
	wait_for 20 test -S "$pipewire_run/bus"
	pipewire >pipewire.log 2>&1 &
	pipewire_pid=$!
	wait_for 20 test -S "$pipewire_run/pipewire-0"
	wireplumber >wireplumber.log 2>&1 &
	wireplumber_pid=$!
	# It is there when the sink is the default.
	wait_for 20 pipewire_knows loop
	wait_for 20 links
}

pipewire_knows() # NODE
{
	pw-cli ls Node 2>/dev/null | command grep -q "node.name = \"$1\""
}

# The session manager links: a stream gets to run.
links()
{
	capture -d 1smp pipewire: >/dev/null 2>&1
}

stop_pipewire()
{
	local p
	for p in "$wireplumber_pid" "$pipewire_pid" "$dbus_pid"; do
		kill -TERM "$p" 2>/dev/null || :
		ends "$p" 20
	done
	rm -rf "$pipewire_run"
}
