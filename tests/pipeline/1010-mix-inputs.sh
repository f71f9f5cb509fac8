#!/bin/bash
# Many inputs at once: FIFOs in any order, slow writers, writers one after the other, inputs that are killed.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/mixlib.sh"

# One program writes to two FIFOs, first all of one, then all of the other; mix names them in both orders.
one_writer()
{
	local order
	make_wav a.wav 48000 2 s16 400000 1
	make_wav b.wav 48000 2 s16 300000 2
	mix a.wav b.wav >want.weir
	mkfifo a b
	for order in "a b" "b a"; do
		(cat a.wav >a; cat b.wav >b) &
		# shellcheck disable=SC2086
		timeout 20 mix $order >got.weir 2>err
		wait $!
		empty err
		holds want.weir got.weir 'np.array_equal(a[0], a[1])'
	done
	# The same with streams.
	capture a.wav >a.weir
	capture b.wav >b.weir
	for order in "a b" "b a"; do
		(cat a.weir >a; cat b.weir >b) &
		# shellcheck disable=SC2086
		timeout 20 mix $order >got.weir
		wait $!
		holds want.weir got.weir 'np.array_equal(a[0], a[1])'
	done
}

# As above with more than the memory holds: a temporary file takes it, and that is said, once.
spools()
{
	capture -q -d 125s -c 4 gen:sine >long.weir
	capture -q -d 1s gen:silence >short.weir
	[ "$(bytes_of long.weir)" -gt 90000000 ] || fail "too little to fill the memory"
	mkfifo a b
	(cat long.weir >a; cat short.weir >b) &
	timeout 100 mix --stats --stats-file s.json b a >got.weir 2>err
	wait $!
	eq "$(grep -c '^mix: b: is waited for; what a sends is kept in a temporary file$' err)" 1
	[ "$(json s.json 'd["spooled_bytes"]')" -gt 10000000 ] || fail "nothing was spooled"
	mix long.weir >want.weir
	rm long.weir
	holds want.weir got.weir 'len(a[0]) == 6000000 and np.array_equal(a[0], a[1])'
}

# No room at all: it does not hang, it names the input that it waits for.
no_room()
{
	capture -q -d 125s -c 4 gen:sine >long.weir
	capture -q -d 1s gen:silence >short.weir
	mkfifo a b
	(cat long.weir >a; cat short.weir >b) 2>/dev/null &
	expect_status 1 timeout 60 mix --spool 1M b a >got.weir 2>err
	kill $! 2>/dev/null || :
	contains err "mix: b: nothing comes, and what came from a meanwhile fills the spool"
}

# 64 writers, opened and closed in no order at all.
many()
{
	local i args=()
	for i in {1..64}; do
		capture -c 2 -f s16 -d $((20000 + 500 * i))smp "gen:noise:white,seed=$i" >$i.weir
		mkfifo f$i
		args+=(f$i)
	done
	mix {1..64}.weir >want.weir
	for i in $(shuf -i 1-64 --random-source=<(yes)); do
		(cat $i.weir >f$i) &
	done
	timeout 60 mix "${args[@]}" >got.weir
	holds want.weir got.weir 'len(a[0]) == 52000 and np.array_equal(a[0], a[1])'
	# All by one writer, from the last to the first.
	(for i in {64..1}; do cat $i.weir >f$i; done) &
	timeout 60 mix "${args[@]}" >got.weir
	wait $!
	holds want.weir got.weir 'np.array_equal(a[0], a[1])'
}

# A live writer holds a fast one back; what the fast one sends does not pile up.
slow_writer()
{
	mkfifo slow fast
	capture -q --realtime -d 2s gen:sine >slow &
	capture -q gen:sine -d 1000s >fast 2>/dev/null &
	local fast=$!
	timeout 60 mix --stats=0.2 --stats-file s.json slow fast 2>err | head -c 3000000 >got.weir || :
	wait $fast || :
	[ "$(json s.json 'd["spooled_bytes"]')" = 0 ] || fail "a slow writer made it spool"
	[ "$(json s.json 'max(l["rss_kib"] for l in lines)')" -lt 120000 ] || fail "memory: $(json s.json 'd["rss_kib"]')"
}

# An input that is killed half way: the others go on to the bit, and the exit status tells.
killed()
{
	local rc=0
	make_wav a.wav 48000 2 s16 200000 1
	make_wav b.wav 48000 2 s16 200000 2
	make_wav c.wav 48000 2 s16 200000 3
	capture b.wav >b.weir
	head -c 300000 b.weir >cut.weir
	mix a.wav c.wav >without.weir
	mix a.wav b.wav c.wav >with.weir
	mix a.wav cut.weir c.wav >got.weir 2>err || rc=$?
	eq $rc 3
	one_line err '^mix: cut.weir: ended without end mark after byte 300000'
	expect_status 3 inspect --json got.weir >lines
	tail -n 1 lines >sum.json
	eq "$(json sum.json 'd["summary"]["complete"]')" false
	expect_status 3 inspect --json cut.weir >lines
	frames=$(tail -n 1 lines | json - 'd["summary"]["frames"]["1"]')
	[ "$frames" -gt 60000 ] && [ "$frames" -lt 80000 ]
	holds got.weir with.weir without.weir "np.array_equal(a[0][:$frames], a[1][:$frames]) and np.array_equal(a[0][$frames:], a[2][$frames:])"
	# A writer that dies, through a FIFO.
	mkfifo f g
	(head -c 300000 b.weir >f) &
	(capture c.wav >g) &
	rc=0
	timeout 20 mix a.wav f g >got2.weir 2>err || rc=$?
	eq $rc 3
	holds got.weir got2.weir 'np.array_equal(a[0], a[1])'
	# A file that is shorter than it says.
	head -c 300000 b.wav >cut.wav
	expect_status 3 mix a.wav cut.wav c.wav >got.weir 2>err
	one_line err '^mix: cut.wav: cut short'
	holds got.weir with.weir without.weir "np.array_equal(a[0][:74989], a[1][:74989]) and np.array_equal(a[0][74989:], a[2][74989:])"
}

# Nobody writes: it says so, and a signal ends it well.
nobody()
{
	mkfifo f g
	tone a.wav 48000 f32 'np.full(1000, 0.5)'
	env --default-signal=INT,TERM mix a.wav f g >got.weir 2>err &
	local pid=$! rc=0
	wait_for 20 grep -q 'f: is waited for' err
	kill -TERM $pid
	wait $pid || rc=$?
	[ $rc -lt 2 ] || fail "status $rc"
}

# Tracks of one stream far apart: what comes early waits.
far_apart()
{
	make_wav a.wav 48000 1 s16 100000 1
	make_wav b.wav 48000 1 s16 100000 2
	capture a.wav b.wav >ab.weir
	"$PYTHON" - <<'PY'
import struct
d = open("ab.weir", "rb").read()
head, one, two, end, at = b"", b"", b"", b"", 0
while at < len(d):
    n = 64 * d[at + 15] + (struct.unpack_from("<I", d, at + 8)[0] + 63) // 64 * 64
    kind, track = d[at + 5], struct.unpack_from("<H", d, at + 12)[0]
    p = d[at : at + n]
    if kind in (1, 2):
        head += p
    elif track == 1:
        one += p
    elif track == 2:
        two += p
    else:
        end += p
    at += n
open("apart.weir", "wb").write(head + two + one + end)
PY
	mix ab.weir >want.weir
	mix <apart.weir >got.weir
	holds want.weir got.weir 'np.array_equal(a[0], a[1])'
	mix a.wav b.wav >got.weir
	holds want.weir got.weir 'np.array_equal(a[0], a[1])'
}

# Streams one behind the other are one input that goes on.
joined()
{
	tone a.wav 48000 f32 'np.full(1000, 0.5)'
	tone b.wav 48000 f32 'np.full(3000, 0.25)'
	capture a.wav >a.weir
	cat a.weir a.weir a.weir | mix - b.wav >got.weir
	holds got.weir 'len(a[0]) == 3000 and a[0] == 0.75'
	# The second in another format, with another number of channels.
	tone c.wav 44100 s16 'np.tile([0.125, 0.25], (2000, 1))'
	capture c.wav >c.weir
	cat a.weir c.weir | mix -c 2 - b.wav >got.weir
	holds got.weir 'np.abs(a[0][:980] - 0.75) < 1e-6 and np.abs(a[0][1100:2900] - [0.375, 0.5]) < 1e-3'
}

test_case "two FIFOs of one writer, in both orders" one_writer
test_case "more than the memory holds goes to a temporary file" spools
test_case "no room to wait: a line and an end" no_room
test_case "64 FIFOs, opened in any order" many
test_case "a slow writer holds back a fast one" slow_writer
test_case "an input that is killed leaves the others alone, exit 3" killed
test_case "FIFOs that nobody writes to" nobody
test_case "tracks of a stream that lie far apart" far_apart
test_case "streams one behind the other" joined

make()
{
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" make "$@"
}

# A track becomes one of messages, whose packets have fewer bytes than frames of its old format would, and is audio again.
other_kinds()
{
	make a.weir track:1:1:1:48000:1:1:0 data:1:0:480:10 track:1:3:32:48000:0:0:0 data:1:4800:1073741824:1:0:10 end:0
	mix -f s16 --no-dither a.weir >mixed.weir
	holds mixed.weir 'np.array_equal(a[0][:, 0], 1 + np.arange(4800))'
	mix -r 96000 a.weir >mixed.weir
	holds mixed.weir 'len(a[0]) == 9600'
	make b.weir track:1:1:1:48000:1:1:0 data:1:0:480:10 track:1:2:16:48000:0:0:4800 data:1:4800:480:1:0:10 track:1:1:1:48000:1:1:5280 \
		data:1:5280:480:10 end:0
	mix -f s16 --no-dither b.weir >mixed.weir
	holds mixed.weir 'np.array_equal(a[0][:, 0], np.concatenate([1 + np.arange(4800), np.zeros(480), 5281 + np.arange(4800)]))'
}
test_case "a track that becomes one of another kind, and audio again" other_kinds

# Nothing is missing where a timeline begins anew: what comes stands behind what came, and what follows it too.
moved()
{
	local to
	for to in 0 480000; do
		make a.weir track:1:1:1:48000:1:1:0 data:1:0:480:10 data:1:$to:480:10:2 gap:1:$((to + 4800)):480:4 data:1:$((to + 5280)):480:1 end:0
		mix -f s16 --no-dither a.weir >mixed.weir
		holds mixed.weir 'np.array_equal(a[0][:, 0], np.concatenate([1 + np.arange(4800), 1 + np.arange(4800), np.zeros(480), 5281 + np.arange(480)]))'
		mix -r 96000 a.weir >mixed.weir
		holds mixed.weir 'len(a[0]) == 21120'
	done
}
test_case "a timeline that is moved, forwards and backwards" moved

# What a resampler holds when a track changes its format is heard.
changed()
{
	make a.weir track:1:1:1:44100:1:1:0 data:1:0:441:50:0:882 track:1:1:1:44100:1:2:22050 data:1:22050:441:50:0:1323 end:0
	mix -r 48000 a.weir >mixed.weir
	holds mixed.weir 'np.abs(a[0][1000:-1000] - 0x5A5A / 32768).max() < 0.1'
}
test_case "another format on the way, resampled" changed
done_testing
