#!/bin/bash
# What a device's thread asks of the system: real-time scheduling and locked memory, had where the user may, said with -v where not.
. "$(dirname "$0")/live.sh"

has_device alsa || skip_all "this build has no ALSA support"
printf 'pcm.none { type null }\n' >"$lib_scratch/asound.conf"
export ALSA_CONFIG_PATH=$lib_scratch/asound.conf

# lowered CMD…: with limits of an ordinary user, also where the tests run as another.
lowered()
{
	(
		ulimit -r 0
		ulimit -l 64
		if [ "$(id -u)" = 0 ]; then
			exec setpriv --bounding-set=-sys_nice,-ipc_lock,-sys_resource "$@"
		else
			exec "$@"
		fi
	)
}

refused()
{
	[ "$(id -u)" != 0 ] || have setpriv || skip "setpriv is not installed"
	lowered capture -v -d 0.2s alsa:none 2>err >out.weir
	grep -Fq 'capture: alsa:none: its ring is not locked into memory: the limit of locked memory (RLIMIT_MEMLOCK, ulimit -l) is 64 KiB, and ' err
	grep -Fq 'capture: alsa:none: its thread runs without real-time scheduling: the limit of real-time priorities (RLIMIT_RTPRIO, ulimit -r) is 0, and 10 is needed' err
	eq "$(wc -l <err)" 2
	# Nobody who did not ask is told.
	lowered capture -d 0.2s alsa:none 2>err >out.weir
	empty err
	capture -d 0.5s gen:sine >in.weir
	lowered play -v in.weir alsa:none 2>err
	grep -Fq 'play: alsa:none: its ring is not locked into memory' err
	grep -Fq 'play: alsa:none: its thread runs without real-time scheduling' err
}

# policy PID NAME: the scheduling of a thread, field 41 of proc(5): 1 is SCHED_FIFO.
policy()
{
	local t
	for t in "/proc/$1/task"/*; do
		if [ "$(cat "$t/comm")" = "$2" ]; then
			sed 's/.*) //' "$t/stat" | awk '{ print $39 }'
		fi
	done
}

granted()
{
	[ "$(id -u)" = 0 ] || [ "$(ulimit -r)" = unlimited ] || [ "$(ulimit -r)" -ge 10 ] || skip "this user may not have real-time scheduling"
	capture -v alsa:none 2>err >/dev/null &
	local pid=$!
	runs()
	{
		[ -n "$(policy "$pid" alsa)" ]
	}
	wait_for 20 runs
	[ "$(policy "$pid" alsa)" = 1 ] || chrt -f 10 true 2>/dev/null || skip "this machine does not give real-time scheduling"
	eq "$(policy "$pid" alsa)" 1 "scheduling of the thread alsa"
	eq "$(policy "$pid" capture | sort -u)" 0 "scheduling of the others"
	[ "$(awk '/VmLck/ { print $2 }' "/proc/$pid/status")" -ge 512 ] || fail "nothing is locked: $(grep VmLck "/proc/$pid/status")"
	kill -INT "$pid"
	! grep -Eq 'real-time|locked' err
}

test_case "what is refused is said, with the limit that is in the way" refused
test_case "what is granted is had, by that thread alone" granted
done_testing
