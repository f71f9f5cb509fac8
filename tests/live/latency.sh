#!/bin/bash
# Click in to click out on JACK at 64 frames: what capture | meter --through | play adds to a wire.  It runs alone, and has a second try.
. "$(dirname "$0")/live.sh"

jack_begin click

# Where it is allowed the tools run before ordinary programs, as those who play would have it.
first=
if chrt -f 20 true 2>/dev/null; then
	first="chrt -f 20"
	jack_way="-R -P 30"
fi

# clicks LATENCY EVERY_FRAMES: 60 of them, as delays.json.  LATENCY "": what play chooses.
clicks()
{
	local clicker capture player
	rm -f a b
	mkfifo a b
	"$lib_scratch/click" 60 "$2" >clicks &
	clicker=$!
	wait_for 20 jack_lists click:out
	$first meter -q --through <a >b 2>meter.err &
	$first play ${1:+--latency "$1"} jack:click --stats-file play.json <b 2>play.err &
	player=$!
	$first capture -q jack:click --stats-file capture.json >a &
	capture=$!
	ends "$clicker" 120
	kill -INT "$capture"
	ends "$player" 20
	"$PYTHON" - <<'PY'
import json
lines = open("clicks").read().split()
d = sorted(int(l) for l in lines if l != "lost")
play, capture = ([json.loads(l) for l in open(name + ".json")][-1] for name in ("play", "capture"))
json.dump({"lost": lines.count("lost"), "median": d[len(d) // 2] if d else 10**9, "least": d[0] if d else 10**9, "most": d[-1] if d else 10**9,
    "underruns": play["underruns"], "skipped": play["skipped_frames"], "late_cycles": play["late"] + capture["late"]}, open("delays.json", "w"))
PY
}

wire()
{
	local try
	judge_begin
	start_jack 64 2
	# The machine is shared: a second and a third chance to find it quiet enough for ordinary threads at 1.3 ms.
	for try in 1 2 3; do
		clicks 128smp 4800
		echo "128smp, try $try: $(cat delays.json)" >>"$lib_scratch/summary"
		[ "$(json delays.json 'd["median"]')" -gt 176 ] || break
	done
	stop_jack
	judge_end
	# Two blocks and a millisecond; but what a server that is late piles up takes an eighth of a second to be gone.
	if [ -n "$judged" ] && [ "$(json delays.json 'd["late_cycles"]')" = 0 ]; then
		between "$(json delays.json 'd["median"]')" 64 $((2 * 64 + 48)) "frames from click to click"
	else
		echo "other programs were busy, or the server was late: the median is not judged" >>"$lib_scratch/summary"
	fi
	[ -z "$judged$first" ] || between "$(json delays.json 'd["least"]')" 64 $((2 * 64 + 48)) "frames from click to click, the least"
	between "$(json delays.json 'd["lost"]')" 0 10 "clicks that were lost"
}

# What piled up while the device began is skipped, or it would stay for good: 100 ms are 100 ms, not more.
default_latency()
{
	judge_begin
	start_jack 256 2
	clicks 100ms 7200
	echo "100ms: $(cat delays.json)" >>"$lib_scratch/summary"
	stop_jack
	judge_end
	[ -z "$judged" ] || between "$(json delays.json 'd["median"]')" 4800 $((4800 + 256 + 96)) "frames from click to click"
	eq "$(json delays.json 'd["lost"]')" 0 "clicks that were lost"
}

# Of what is live 20 ms are kept, what comes at once, and a block that the device takes; and 10 ms more each time that this was too little.
chosen_latency()
{
	local dry
	judge_begin
	start_jack 128 2
	clicks "" 7200
	echo "chosen: $(cat delays.json)" >>"$lib_scratch/summary"
	stop_jack
	judge_end
	dry=$(json delays.json 'min(d["underruns"], 8)')
	between "$(json delays.json 'd["median"]')" $((960 - 96)) $((960 + 3 * 128 + 96 + 480 * dry)) "frames from click to click"
	[ -z "$judged" ] || eq "$dry" 0 "times that play had nothing"
	between "$(json delays.json 'd["lost"]')" 0 $((4 * dry)) "clicks that were lost"
}

test_case "at 64 frames: at most 2 blocks and 1 ms" wire
test_case "the latency that was asked for is what there is" default_latency
test_case "what is live is not kept for longer than is needed" chosen_latency
sed 's/^/# /' "$lib_scratch/summary" 2>/dev/null
done_testing
