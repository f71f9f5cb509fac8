#!/bin/bash
# A mix that does not wait, and one that is worked while it runs.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/mixlib.sh"

# One input stops for a while: the mix goes on at its pace, has silence there, and counts it.
stalls()
{
	mkfifo a b
	capture -q --realtime -d 4s -c 1 gen:sine:freq=400 >a &
	capture -q --realtime -d 4s -c 1 gen:sine:freq=800 >b &
	local b=$!
	mix --live=0.5 --stats=0.1 --stats-file s.json a b >out.weir 2>err &
	local mix=$!
	wait_for 20 longer_than out.weir 100000
	kill -STOP $b
	local at
	at=$(bytes_of out.weir)
	wait_for 20 longer_than out.weir $((at + 250000))
	kill -CONT $b
	wait $mix
	[ "$(json s.json 'd["late"]')" -gt 5 ] || fail "late: $(json s.json 'd["late"]')"
	[ "$(json s.json 'd["late_frames"]')" -gt 4800 ] || fail "late frames: $(json s.json 'd["late_frames"]')"
	# a is whole; b is missing for a part.
	holds out.weir 'len(a[0]) == 192000 and abs(level(a[0][:, 0], 400) - 0.1) < 0.002 and level(a[0][:, 0], 800) < 0.095'
}

longer_than()
{
	[ -e "$1" ] && [ "$(stat -c %s "$1")" -gt "$2" ]
}

# Files beside something live do not run ahead of it; the mix is marked live.
pace()
{
	local begin=${EPOCHREALTIME/./}
	tone long.wav 48000 f32 'np.full(48000, 0.5)'
	capture -q --realtime -d 0.3s -c 1 gen:silence | mix --live - long.wav >out.weir
	local took=$((${EPOCHREALTIME/./} - begin))
	[ $took -gt 900000 ] || fail "a second took $took us"
	holds out.weir 'len(a[0]) == 48000 and a[0] == 0.5'
	inspect --json out.weir >lines
	eq "$(head -n 1 lines | json - 'd["live"]')" true
}

# talk SOCKET COMMAND…: each with its answer.
talk()
{
	"$PYTHON" - "$@" <<'PY'
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
f = s.makefile("rw")
for line in sys.argv[2:]:
    f.write(line + "\n")
    f.flush()
    for _ in range(2 if line == "list" else 1):
        print(f.readline(), end="")
PY
}

is_socket()
{
	[ -S "$1" ]
}

# The wave of tone 400 changes without a click and is where it should be.
socket()
{
	mkfifo a b
	capture -q --realtime -d 20s -c 1 gen:sine:freq=400 >a &
	capture -q --realtime -d 20s -c 1 gen:sine:freq=800 >b &
	mix --control ctl a b >out.weir 2>err &
	local mix=$! at
	wait_for 20 is_socket ctl
	wait_for 20 longer_than out.weir 40000
	talk ctl 'gain 1 -20dB' 'mute 2' 'list' 'pan 7 0' 'loud' 'gain 1 x' >answers
	cat >want <<'E'
ok
ok
1	sine	gain -20.00dB
2	sine	gain 0.00dB	mute
error: no track 7 (1 to 2, or a name)
error: 'loud' is not one of gain, pan, mute, unmute, solo, unsolo, list
error: 'x' is not a level, as -6dB or a factor, from -inf to 120 dB
E
	same answers want
	at=$(bytes_of out.weir)
	wait_for 20 longer_than out.weir $((at + 80000))
	talk ctl 'unmute' 'solo 2' >answers
	at=$(bytes_of out.weir)
	wait_for 20 longer_than out.weir $((at + 80000))
	# The mix goes first: a writer that ends is a tone that breaks off.
	kill -TERM $mix
	wait $mix
	[ ! -e ctl ] || fail "the socket is still there"
	# First both, then the first alone at a tenth, at last the second alone; no jump larger than the tones make themselves.
	holds out.weir 'abs(level(a[0][:4800, 0], 400) - 0.1) < 0.01 and abs(level(a[0][:4800, 0], 800) - 0.1) < 0.01 and abs(level(a[0][-4800:, 0], 800) - 0.1) < 0.01 and level(a[0][-4800:, 0], 400) < 0.001 and np.max(np.abs(np.diff(a[0][:, 0], 2))) < 0.1 * (2 * np.pi * 800 / 48000) ** 2 * 1.5 + 0.1 * (2 * np.pi * 400 / 48000) ** 2 + 0.002'
	holds out.weir 'min(level(a[0][i : i + 2400, 0], 800) for i in range(0, len(a[0]) - 2400, 1200)) < 0.001'
}

# Through a FIFO, from a shell.
fifo()
{
	mkfifo a ctl
	capture -q --realtime -d 20s -c 1 gen:sine:freq=400 >a &
	mix --control ctl a >out.weir 2>err &
	local mix=$!
	wait_for 20 longer_than out.weir 20000
	echo 'gain 0.5' >ctl
	echo list >ctl
	wait_for 20 grep -q 'mix: control: 1.*gain -6.02dB' err
	local at
	at=$(bytes_of out.weir)
	wait_for 20 longer_than out.weir $((at + 60000))
	kill -TERM $mix
	wait $mix || :
	holds out.weir 'abs(level(a[0][-4800:, 0], 400) - 0.05) < 0.002'
	[ -p ctl ] || fail "the FIFO is gone"
}

paths()
{
	tone a.wav 48000 f32 'np.full(1000, 0.5)'
	echo text >file
	expect_status 2 mix --control file a.wav >out.weir 2>err
	one_line err 'neither a FIFO nor a socket'
	eq "$(cat file)" text
	expect_status 1 mix --control nowhere/socket a.wav >out.weir 2>err
	one_line err '^mix: nowhere/socket: No such file or directory$'
	# What a killed mix left behind is replaced; one that is in use is not.
	"$PYTHON" -c 'import socket; socket.socket(socket.AF_UNIX).bind("left")'
	mix --control left a.wav >out.weir
	[ ! -e left ]
	mkfifo live
	capture -q --realtime -d 20s gen:sine >live &
	mix --control busy live >first.weir &
	local first=$!
	wait_for 20 is_socket busy
	expect_status 1 mix --control busy a.wav >out.weir 2>err
	one_line err 'busy: is in use by another process'
	eq "$(talk busy 'gain 0.5')" ok "the first one still answers"
	kill -TERM $first
	wait $first
	[ ! -e busy ]
}

test_case "an input that stalls is silent, counted, and not waited for" stalls
test_case "files keep the pace of what is live" pace
test_case "--control through a socket, without clicks" socket
test_case "--control through a FIFO" fifo
test_case "paths that --control takes and does not take" paths
done_testing
