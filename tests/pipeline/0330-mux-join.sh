# mux INPUT…: many inputs become one stream, whole and in order, and none can stall the others.
. "$(dirname "$0")/../lib.sh"

joined()
{
	capture -d 3s -r 48000 -c 2 -f s16 gen:count >a.weir
	capture -d 2s -r 44100 -c 1 -f s24 gen:count gen:sine >b.weir
	capture -d 1s -r 8000 -c 1 -f s16 gen:count | mux -q -o c.wav
	mux a.weir b.weir c.wav >all.weir
	inspect --verify all.weir >out
	contains out "track 1: 144000 frames (every sample right)"
	contains out "track 2: 88200 frames (every sample right)"
	contains out "track 3: 88200 frames"
	contains out "track 4: 8000 frames (every sample right)"
	contains out ": whole"
	# In order of time.
	inspect --json all.weir | "$PYTHON" -c '
import json, sys
rate, last = {}, -1
for line in sys.stdin:
    p = json.loads(line)
    if p.get("type") == "TRACK":
        rate[p["track"]] = p["rate_num"] / p["rate_den"]
    if p.get("type") == "DATA":
        t = p["pos"] / rate[p["track"]]
        assert t >= last, (t, last)
        last = t
assert len(rate) == 4
'
	# The same inputs, the same bytes; and stdin among them.
	mux a.weir b.weir c.wav >again.weir
	same again.weir all.weir
	mux - b.weir c.wav <a.weir >again.weir
	inspect --verify again.weir >out
	contains out "track 1: 144000 frames (every sample right)"
	contains out ": whole"
	expect_status 2 mux - a.weir - <b.weir 2>err >/dev/null
	one_line err "<stdin>: can be one input only"
	expect_status 1 mux a.weir nothing.weir 2>err >/dev/null
	one_line err "nothing.weir: No such file"
	mux -t 2 a.weir b.weir >one.weir
	inspect --verify one.weir >out
	contains out "1 track,"
}
test_case "streams and audio files join into one stream, tracks numbered in order" joined

fifos()
{
	mkfifo f g
	capture -d 60s -r 48000 -c 2 -f s16 gen:count >a.weir
	local order
	for order in "f g" "g f"; do
		(set -- $order; cat a.weir >$1; cat a.weir >$2) &
		timeout 60 mux f g >all.weir
		wait $!
		inspect --verify all.weir >out
		contains out "track 1: 2880000 frames (every sample right)"
		contains out "track 2: 2880000 frames (every sample right)"
		contains out ": whole"
	done
}
test_case "two FIFOs fed one after the other, in either order, do not stall" fifos

slow()
{
	# One input that never says anything holds the other up for no more than a moment; and a stop ends both.
	mkfifo quiet
	exec 7<>quiet
	capture -d 10s -r 48000 gen:count >a.weir
	mux a.weir quiet >out.weir &
	local pid=$!
	wait_for 10 eval '[ "$(bytes_of out.weir)" -gt 3840000 ]'
	kill -TERM $pid
	expect_status 0 wait $pid
	inspect --verify out.weir >out || :
	contains out "track 1: 480000 frames (every sample right)"
}
test_case "an input without data does not hold the others" slow

many()
{
	local i list=
	for i in $(seq 60); do
		capture -d 4800smp -r 48000 -c 1 -f s16 gen:count >$i.weir
		list="$list $i.weir"
	done
	mux $list >all.weir
	inspect --json all.weir >j
	eq "$(json j 'sorted(set(d["summary"]["frames"].values())), len(d["summary"]["frames"]), d["summary"]["complete"]')" "[[4800], 60, true]"
	mux -q -o 'w%t.wav' <all.weir
	for i in 01 30 60; do
		capture w$i.wav | inspect --verify >out
		contains out "4800 frames (every sample right)"
	done
}
test_case "sixty inputs" many

cut()
{
	capture -d 3s -r 48000 gen:count >a.weir
	head -c 300000 a.weir >cut.weir
	expect_status 3 mux a.weir cut.weir >out.weir 2>err
	one_line err "cut.weir: ended without"
	expect_status 3 inspect --verify out.weir >out
	expect_status 3 mux -q -o x.wav <cut.weir 2>err
	one_line err "stdin.*ended without"
	[ -e x.wav ] && [ ! -e x.wav.part ]
	capture x.wav | inspect --verify >out
	contains out "every sample right"
	expect_status 1 mux -o y.wav </dev/null 2>err
	one_line err "empty"
	[ ! -e y.wav ] && [ ! -e y.wav.part ]
}
test_case "a cut input is said, and the truth goes on" cut

tags()
{
	capture -d 100smp gen:sine | mux --tag TITLE=x >t.weir
	inspect --json t.weir >j
	contains j "TITLE=x"
}
test_case "--tag on a stream" tags

# A track that becomes one of another kind is not what was asked for any more.
other_kinds()
{
	local bytes
	for bytes in 10 960; do
		"$PYTHON" "$TOP/tests/pipeline/weirfile.py" make a.weir track:1:1:1:48000:1:1:0 data:1:0:480:10 track:1:3:32:48000:0:0:0 \
			data:1:4800:480:5:0:$bytes track:1:1:1:48000:1:1:7200 data:1:7200:480:10 end:0
		mux -t audio a.weir >b.weir
		"$PYTHON" "$TOP/tests/pipeline/weirfile.py" list b.weir | awk '$1 == "DATA" { print $2 }' >got
		{ seq 0 480 4320; seq 7200 480 11520; } >want
		same got want
		expect_status 3 mux -y -o a.raw -t audio a.weir 2>err
		contains err "2400 frames were lost before they came here, and are silence now"
		eq "$(bytes_of a.raw)" 24000
	done
}
test_case "a track that becomes one of messages, and audio again" other_kinds
done_testing
