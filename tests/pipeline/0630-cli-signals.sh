#!/bin/bash
# SIGINT, SIGTERM and SIGHUP: a tool stops taking input, writes its END and exits 0; a second signal ends it at once.
. "$(dirname "$0")/../lib.sh"

filters=$(ls "$BIN" | command grep -vx weir)

# start TOOL OUT: the tool on endless audio at its own pace, writing to OUT, with signals as a terminal gives them; its
# process is $pid.
start()
{
	local t=$1 out=$2
	# Nobody else holds the writing ends, so that the tools see the end of their input when it comes.
	case $t in
	capture)
		env --default-signal=INT,TERM,HUP capture --realtime gen:sine >"$out" 2>err &
		;;
	decode)
		mkfifo in
		{ capture --realtime gen:sine | encode --frame 2.5ms >in; } 2>/dev/null &
		env --default-signal=INT,TERM,HUP decode <in >"$out" 2>err &
		;;
	*)
		mkfifo in
		capture --realtime gen:sine >in 2>/dev/null &
		env --default-signal=INT,TERM,HUP "$t" <in >"$out" 2>err &
		;;
	esac
	pid=$!
}

longer_than()
{
	[ -e "$1" ] && [ "$(stat -c %s "$1")" -gt "$2" ]
}

one_signal()
{
	local t=$1 signal=$2 rc=0
	start "$t" out
	wait_for 20 longer_than out 3000
	kill -"$signal" $pid
	wait $pid || rc=$?
	eq "$rc" 0 "status"
	empty err
	if [ "$t" = inspect ]; then
		grep -q . out
		return
	fi
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

is_stuck()
{
	# Blocked in writing to a pipe that is full, and not running.
	grep -qE '^(pipe_write|pipe_wait|anon_pipe_write|0)$' "/proc/$pid/wchan" 2>/dev/null && grep -q '^State:.S' "/proc/$pid/status"
}

# A tool that cannot go on (nobody reads) stays after the first signal, since it owes its END, and goes at the second.
two_signals()
{
	local t=$1 signal=$2 number=$3 rc=0
	mkfifo out
	sleep 60 <out &
	case $t in
	capture) env --default-signal=INT,TERM capture -c 8 gen:noise >out 2>err & ;;
	*)
		mkfifo in
		if [ "$t" = decode ]; then
			{ capture -c 2 gen:noise | encode --complexity 0 >in; } 2>/dev/null &
		else
			capture -c 8 gen:noise >in 2>/dev/null &
		fi
		env --default-signal=INT,TERM "$t" <in >out 2>err &
		;;
	esac
	pid=$!
	wait_for 20 is_stuck
	kill -"$signal" $pid
	wait_for 10 was_delivered "$number"
	kill -0 $pid || fail "it did not wait for its reader"
	kill -"$signal" $pid
	wait $pid || rc=$?
	eq "$rc" $((128 + number))
}

# A whole pipeline is interrupted, as by Ctrl-C: each stream ends well, and the file plays.
pipeline()
{
	cat >run.sh <<'SH'
capture --realtime gen:sine | encode | mux -o out.opus
echo "${PIPESTATUS[@]}" >status
SH
	# A process group of its own, as a shell gives to a job.
	setsid env --default-signal=INT bash run.sh 2>err &
	local p=$!
	wait_for 20 longer_than out.opus.part 1000
	# The shell gets it, too; since its children end as if nothing had been, it goes on.
	kill -INT -- -$p
	wait_for 20 test -s status
	eq "$(cat status)" "0 0 0"
	empty err
	[ -e out.opus ] && [ ! -e out.opus.part ] || fail "$(ls)"
	demux out.opus | inspect --verify
}

for t in $filters; do
	test_case "$t: SIGINT ends it with END and status 0" one_signal "$t" INT
	test_case "$t: SIGTERM does the same" one_signal "$t" TERM
	test_case "$t: SIGHUP does the same" one_signal "$t" HUP
	test_case "$t: a second SIGINT ends it at once, 130" two_signals "$t" INT 2
	test_case "$t: a second SIGTERM ends it at once, 143" two_signals "$t" TERM 15
done
test_case "Ctrl-C on a pipeline: three times 0, and the file is whole" pipeline
done_testing
