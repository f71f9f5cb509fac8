#!/bin/bash
# SIGINT, SIGTERM and SIGHUP: a tool stops taking input, writes its END and exits 0; a second signal ends it at once.
. "$(dirname "$0")/../lib.sh"

# play writes no stream, and needs a device to get as far as a signal: tests/live; top and keygen write none either: 1300, 1225; netrecv reads a network, netsend writes to one: 1210, 1200.
filters=$(ls "$BIN" | command grep -vx -e netrecv -e netsend -e weir -e play -e top -e keygen)

# What a tool cannot do without.
needed()
{
	case $1 in resample) echo -r 96k ;; esac
}

# start TOOL OUT: the tool on endless audio at its own pace, writing to OUT, with signals as a terminal gives them; its
# process is $pid.
start()
{
	local t=$1 out=$2
	# Nobody else holds the writing ends, so that the tools see the end of their input when it comes.
	case $t in
	capture)
		env --default-signal=INT,TERM,HUP capture --stats=0.1 --stats-file stats --realtime gen:sine >"$out" 2>err &
		;;
	decode)
		mkfifo in
		{ capture --realtime gen:sine | encode --frame 2.5ms >in; } 2>/dev/null &
		env --default-signal=INT,TERM,HUP decode --stats=0.1 --stats-file stats <in >"$out" 2>err &
		;;
	*)
		mkfifo in
		capture --realtime gen:sine >in 2>/dev/null &
		env --default-signal=INT,TERM,HUP "$t" $(needed "$t") --stats=0.1 --stats-file stats <in >"$out" 2>err &
		;;
	esac
	pid=$!
}

has_lines()
{
	[ -e "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}

longer_than()
{
	[ -e "$1" ] && [ "$(stat -c %s "$1")" -gt "$2" ]
}

one_signal()
{
	local t=$1 signal=$2 rc=0
	start "$t" out
	wait_for 60 has_lines stats 3
	kill -"$signal" $pid
	wait $pid || rc=$?
	eq "$rc" 0 "status"
	empty err
	case $t in inspect | meter)
		grep -q . out
		return
		;;
	esac
	expect_status 0 inspect --verify out
	inspect --json out >lines
	grep '"END"' lines | tail -n 1 >end.json
	eq "$(json end.json 'd["reason"] in (1, "interrupted")')" true "END is interrupted"
	[ "$(json lines 'd["summary"]["frames"]["1"]')" -gt 100 ]
}

# No bit of the signal is pending: it was delivered.
was_delivered()
{
	local pending
	pending=$(awk '/^(SigPnd|ShdPnd)/ { print $2 }' "/proc/$pid/status")
	for p in $pending; do
		(((0x$p >> ($1 - 1)) & 1)) && return 1
	done
	return 0
}

# hold FIFO FILE: keeps it open for reading, takes nothing out, and writes into FILE how many bytes wait in it, once they
# have not changed for a second: its writer is stuck.
hold()
{
	"$PYTHON" - "$@" <<'PY' &
import fcntl, os, struct, sys, termios, time
fd = os.open(sys.argv[1], os.O_RDONLY)
last = same = 0
while True:
    n = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0]
    same = same + 1 if n == last and n > 4000 else 0
    last = n
    if same == 50:
        with open(sys.argv[2] + ".new", "w") as f:
            f.write(str(n))
        os.rename(sys.argv[2] + ".new", sys.argv[2])
    time.sleep(0.02)
PY
}

# A tool that cannot go on (nobody reads) stays after the first signal, since it owes its END, and goes at the second.
two_signals()
{
	local t=$1 signal=$2 number=$3 rc=0
	mkfifo out
	hold out stuck
	case $t in
	capture) env --default-signal=INT,TERM capture -c 8 gen:noise >out 2>err & ;;
	*)
		mkfifo in
		if [ "$t" = decode ]; then
			{ capture -c 2 gen:noise | encode --complexity 0 >in; } 2>/dev/null &
		else
			capture -c 8 gen:noise >in 2>/dev/null &
		fi
		env --default-signal=INT,TERM "$t" $(needed "$t") <in >out 2>err &
		;;
	esac
	pid=$!
	wait_for 60 test -s stuck
	kill -"$signal" $pid
	wait_for 10 was_delivered "$number"
	kill -0 $pid || fail "it did not wait for its reader"
	kill -"$signal" $pid
	wait $pid || rc=$?
	eq "$rc" $((128 + number))
}

# A report that cannot be written is not waited for: the first signal is enough.
stuck_report()
{
	local t=$1 rc=0
	mkfifo out in
	hold out stuck
	capture gen:noise --block 1 >in 2>/dev/null &
	env --default-signal=INT "$t" <in >out 2>err &
	pid=$!
	wait_for 60 test -s stuck
	kill -INT $pid
	wait $pid || rc=$?
	[ "$rc" -le 1 ] || fail "status $rc"
}

# A whole pipeline is interrupted, as by Ctrl-C: each stream ends well, and the file plays.
pipeline()
{
	cat >run.sh <<'SH'
capture --realtime gen:sine | encode | mux -q -o out.opus
echo "${PIPESTATUS[@]}" >status
SH
	# A process group of its own, as a shell gives to a job.
	setsid env --default-signal=INT bash run.sh 2>err &
	local p=$!
	wait_for 20 longer_than out.opus.part 1000
	# The shell gets it, too; since its children end as if nothing had been, it goes on.
	kill -INT -- -$p
	wait_for 20 test -s status
	# Those before the last may have found their reader gone while they wrote their END: a good end as well.
	eq "$(cat status)" "0 0 0"
	empty err
	[ -e out.opus ] && [ ! -e out.opus.part ] || fail "$(ls)"
	demux out.opus | inspect --verify
}

for t in $filters; do
	test_case "$t: SIGINT ends it with END and status 0" one_signal "$t" INT
	test_case "$t: SIGTERM does the same" one_signal "$t" TERM
	test_case "$t: SIGHUP does the same" one_signal "$t" HUP
	case $t in
	inspect) test_case "$t: a report that nobody reads does not hold it up" stuck_report "$t"; continue ;;
	meter) continue ;;
	esac
	test_case "$t: a second SIGINT ends it at once, 130" two_signals "$t" INT 2
	test_case "$t: a second SIGTERM ends it at once, 143" two_signals "$t" TERM 15
done
test_case "Ctrl-C on a pipeline: the file is whole, its writer exits 0" pipeline
done_testing
