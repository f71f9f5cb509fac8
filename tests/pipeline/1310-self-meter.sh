#!/bin/bash
# What the self-meter costs: less than a thousandth of a core when it is on, a look at a flag when it is off.
. "$(dirname "$0")/../lib.sh"

# per_call FUNCTION: instructions of each call of it, its own calls included, by callgrind's count.  Exact: the same every time.
per_call()
{
	callgrind_annotate --threshold=100 --auto=yes cg.out | tr -d , |
		sed -n "s/^ *\([0-9]*\) .*=> [^ ]*:$1 (\([0-9]*\)x).*/\1 \2/p" | awk 'NR == 1 { printf "%.1f\n", $1 / $2; exit }'
}

counted() # ARG…: 1500 ticks, as a device with blocks of 32 frames has in a second
{
	valgrind -q --tool=callgrind --callgrind-out-file=cg.out capture -q --realtime -d 1s -c 2 --block 32 "$@" gen:silence >out.weir
	inspect -q --verify out.weir >/dev/null
}

instructions()
{
	have valgrind && have callgrind_annotate || skip "valgrind is not installed"
	[ -z "${SAN-}" ] || skip "valgrind and sanitizers do not go together"
	counted --stats=100 --stats-file s.json
	eq "$(json s.json 'd["ticks"]')" 1500
	echo "on: $(per_call tick_begin_at) and $(per_call tick_end) instructions a tick"
	# 1500 ticks a second of 200 instructions are 0.01 % of a core with 3 · 10^9 a second.
	between "$(per_call tick_begin_at)" 1 50 "instructions, on"
	between "$(per_call tick_end)" 1 150 "instructions, on"
	counted
	echo "off: $(per_call tick_begin_at) and $(per_call tick_end) instructions a tick, $(per_call stats_begin) at the start"
	between "$(per_call tick_begin_at)" 1 12 "instructions, off"
	between "$(per_call tick_end)" 1 12 "instructions, off"
	between "$(per_call stats_begin)" 1 5000 "instructions at the start, off"
}

# The kernel's account of the thread that prints, in nanoseconds.  A line a second is what --stats prints when nothing is said.
processor_time()
{
	capture -q --realtime -d 3s -c 2 --block 32 gen:silence --stats=0.02 --stats-file s.json >/dev/null
	"$PYTHON" - <<'PY'
import json
lines = [json.loads(l) for l in open("s.json")]
cost_ms = lines[-2]["threads"]["stats"] / (len(lines) - 1)
print("a line costs %.3f ms, so a line a second %.4f %% of a core" % (cost_ms, cost_ms / 10))
assert len(lines) >= 30, len(lines)
assert cost_ms < 1.0, cost_ms
assert len({l["allocs"] for l in lines}) == 1, [l["allocs"] for l in lines]
PY
}

# Off there is no thread for it, and no page.
nothing()
{
	capture -q --realtime -d 30s -c 2 gen:silence >out.weir &
	local pid=$!
	wait_for 20 test -s out.weir
	eq "$(ls "/proc/$pid/task" | wc -l)" 1 "threads"
	ls -l "/proc/$pid/fd" >fds
	! grep -q memfd fds
	kill "$pid"
}

test_case "instructions a tick, on and off" instructions
test_case "a line of statistics costs less than a thousandth of a second" processor_time
test_case "off there is no thread and no page" nothing
done_testing
