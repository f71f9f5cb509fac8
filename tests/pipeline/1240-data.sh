#!/bin/bash
# Messages beside audio: mux --data and demux, every kind, both policies, whole files; nothing lost that must not be, audio untouched.
. "$(dirname "$0")/../lib.sh"

py()
{
	"$PYTHON" "$TOP/tests/pipeline/$1.py" "${@:2}"
}

# TYPE POS SEQ BYTES DROPPED of a track
packets()
{
	inspect --json "$1" | "$PYTHON" -c '
import json, sys
for line in sys.stdin:
    d = json.loads(line)
    if d.get("track") == int(sys.argv[1]):
        print(d["type"], d["pos"], d["seq"], d["bytes"], d["dropped"])' "$2"
}

lines()
{
	capture -d 2s -c 2 -f s16 gen:noise >a.weir
	printf 'one\n\nzwölf €\n  four  \nlast without an end' >t
	mkfifo cues
	cat t >cues &
	mux --data cues,name=words a.weir >b.weir
	wait
	inspect --verify b.weir >out
	eq "$(inspect --json b.weir | grep '"TRACK", "track": 2' | sed 's/.*"kind": "\([a-z]*\)", "policy": \([0-9]\), "codec": "\([a-z0-9]*\)", "name": "\([a-z]*\)".*/\1 \2 \3 \4/')" "text 1 utf8 words"
	demux -t words b.weir >u
	same <(cat t; echo) u
	# The audio is what it was.
	demux -t 1 b.weir | mux -q -o b.wav
	mux -q -o a.wav a.weir
	same a.wav b.wav
	# Each message stands where the audio was.
	packets b.weir 2 | awk '$1 == "DATA" && ($2 < 0 || $2 > 2000000) { exit 1 }'
	# Three ways more out of it.
	demux -t words -o w.txt b.weir
	same w.txt u
	demux -q --split d b.weir
	same d/02-words.txt u
	[ -s d/01-noise.weir ] || [ "$(ls d | wc -l)" = 2 ]
	demux -t words --messages weir b.weir | inspect --verify - >out
	demux --messages weir --split e b.weir
	inspect --verify e/02-words.weir >out
	# Through a filter and a file it stays what it is.
	encode <b.weir | mux -q -o f.weir
	same <(demux -t text f.weir) u
	# On a terminal a person can read it.
	script -qec "demux -t words b.weir" /dev/null </dev/null | tr -d '\r' >v
	same u v
}

writers_come_and_go()
{
	mkfifo cues
	capture --realtime -c 1 -r 8k --block 80 -d 1500ms gen:sine 2>/dev/null | mux --data cues >b.weir &
	pid=$!
	for i in 1 2 3 4 5; do
		echo "cue $i" >cues
		sleep 0.1
	done
	wait $pid
	seq 1 5 | sed 's/^/cue /' >t
	same <(demux -t cues b.weir) t
	# 100 ms apart, and that is where they stand.
	packets b.weir 2 | awk '$1 == "DATA" { if (n++ && ($2 - last < 50000 || $2 - last > 400000)) { print; bad = 1 } last = $2 } END { exit bad }'
}

# Every kind, in pieces of every size: what comes out is what went in.
kinds()
{
	"$PYTHON" - <<'PY'
import random, struct
r = random.Random(5)
messages = [bytes(r.randrange(256) for _ in range(n)) for n in (0, 1, 63, 64, 65, 4096, 4097, 65536, 65537, 200000, 1 << 20)]
open("bytes", "wb").write(b"".join(struct.pack("<I", len(m)) + m for m in messages))
open("osc", "wb").write(b"".join(struct.pack(">I", len(m)) + m for m in messages[:7]))
open("json", "w").write('{"a": 1}\n["\u20ac"]\n')
open("midi", "wb").write(bytes([0x90, 60, 100, 61, 100, 0xF8, 60, 0, 62, 0xF8, 0xF8, 0xF8, 9, 0xF0, 1, 2, 3, 0xF7, 0xC0, 5]))
open("midi.wanted", "wb").write(bytes([0x90, 60, 100, 0x90, 61, 100, 0xF8, 0x90, 60, 0, 0x90, 62, 0xF8, 0xF8, 0xF8, 9, 0xF0, 1, 2, 3, 0xF7, 0xC0, 5]))
PY
	mux --data bytes,bytes --data osc,osc --data json,json --data midi,midi </dev/null >a.weir
	inspect --verify a.weir >out
	for kind in bytes osc json midi; do
		demux -t $kind a.weir >out
		[ $kind != midi ] || mv midi.wanted midi
		same out $kind
		mkfifo p
		"$PYTHON" -c '
import os, sys, time
data = open(sys.argv[1], "rb").read()
fd = os.open("p", os.O_WRONLY)
at = 0
while at < len(data):
    n = 1 + at * 7919 % 9973
    os.write(fd, data[at : at + n])
    at += n' $kind &
		mux --data p,$kind,name=p </dev/null | demux -t p >out
		wait
		same out $kind
		rm p
	done
	demux -q --split d a.weir
	eq "$(ls d | tr '\n' ' ')" "01-bytes.bin 02-osc.osc 03-json.jsonl 04-midi.midi "
}

# A place that is taken stays what it is: a file, or the socket of another mux.
place_taken()
{
	capture -q -d 10ms gen:silence >a.weir
	echo precious >file
	expect_status 1 mux --data unix:file a.weir 2>err >out
	one_line err "^mux: file: Address already in use"
	eq "$(cat file)" precious
	mux --data unix:s --live </dev/null >b.weir 2>said &
	pid=$!
	wait_for 10 test -S s
	expect_status 1 mux --data unix:s a.weir 2>err >out
	test -S s || fail "the socket of the other one is gone"
	kill -INT $pid
	wait $pid
	[ ! -e s ] || fail "the socket is still there"
}
test_case "a socket's place that is taken" place_taken

datagrams()
{
	mux --data unix:s,bytes --live </dev/null >a.weir 2>err &
	pid=$!
	wait_for 10 test -S s
	"$PYTHON" -c '
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for n in (1, 100, 5000, 60000):
    s.sendto(bytes([n % 251]) * n, "s")'
	wait_for 10 eval '[ "$(stat -c %s a.weir)" -gt 65000 ]'
	kill -INT $pid
	wait $pid
	[ ! -e s ] || fail "the socket is still there"
	inspect --verify a.weir >out
	eq "$(packets a.weir 1 | awk '$1 == "DATA" { n[$3] += $4 } END { print n[0], n[1], n[2], n[3] }')" "1 100 5000 60000"
}

long_lines()
{
	"$PYTHON" -c '
open("t", "w").write("\u20ac" * 1000000 + "\nshort\n" + "x" * 1048576 + "\n")'
	mux --data t </dev/null >a.weir
	demux -t t a.weir >u
	# 3,000,000 bytes are three messages, none of which ends within a character; one of exactly a mebibyte is whole.
	eq "$(wc -l <u)" 5
	"$PYTHON" -c '
parts = open("u", "rb").read().split(b"\n")
[p.decode() for p in parts]
assert b"".join(parts[:3]) == ("\u20ac" * 1000000).encode(), [len(p) for p in parts]
assert [len(p) for p in parts] == [1048575, 1048575, 902850, 5, 1048576, 0], [len(p) for p in parts]'
}

# A file of 64 MiB and one of 16: four times the time, the same memory; damage is found.
whole_files()
{
	head -c 16M /dev/urandom >16.bin
	cat 16.bin 16.bin 16.bin 16.bin >64.bin
	for n in 16 64; do
		t0=${EPOCHREALTIME/./}
		mux --stats --stats-file m-$n --data file:$n.bin </dev/null | demux --stats --stats-file d-$n -t $n.bin >out
		t1=${EPOCHREALTIME/./}
		echo $((t1 - t0)) >us-$n
		same out $n.bin
		for f in m d; do
			between "$(json $f-$n 'd["rss_kib"]')" 1 20000
		done
	done
	eq "$(json m-16 'd["allocs"]')" "$(json m-64 'd["allocs"]')"
	eq "$(json d-16 'd["allocs"]')" "$(json d-64 'd["allocs"]')"
	# Memory stays; time grows with the length and no faster, roughly, on a busy machine.
	near "$(json m-64 'd["rss_kib"]')" "$(json m-16 'd["rss_kib"]')" 2000
	between "$(awk -v a="$(cat us-64)" -v b="$(cat us-16)" 'BEGIN { print a / b }')" 0 16
	head -c 1500000 16.bin >1.bin
	mux --data file:1.bin </dev/null >a.weir
	demux -q --split d a.weir
	same d/01-1.bin 1.bin
	# A chunk that is lost, and an end that is.
	py weirfile edit a.weir b.weir drop:1:10-10
	expect_status 3 demux -q --split e b.weir 2>err
	one_line err 'is not whole'
	[ ! -e e/01-1.bin ] && [ -e e/01-1.bin.part ]
	head -c 800000 a.weir >c.weir
	expect_status 3 demux -t 1.bin c.weir 2>err >out
	cmp out <(head -c "$(stat -c %s out)" 1.bin)
	: >empty
	mux --data file:empty </dev/null | demux -t empty >out
	empty out
}

# A reader that stops: a reliable producer waits, and not one message is lost.
reliable_waits()
{
	mkfifo p out
	seq 1 30000 | sed 's/$/ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/' >t
	cat t >p &
	producer=$!
	mux -v --live --stats=60 --stats-file s --data p,name=p </dev/null >out 2>err &
	pid=$!
	exec 4<out
	wait_for 10 grep -q 'the queue is full: its producer waits' err
	kill -0 $producer || fail "the producer did not wait"
	eq "$(json s 'lines[0]["data_full"]')" 1 "said at once in the statistics"
	cat <&4 >b.weir &
	wait $producer
	wait_for 10 grep -q 'the queue has room again' err
	kill -INT $pid
	wait $pid
	exec 4<&-
	wait
	same <(demux -t p b.weir) t
	eq "$(json s 'd["data_dropped"]')" 0
	eq "$(json s 'd["data_messages"]')" 30000
	between "$(json s 'd["data_full_times"]')" 1 200
	between "$(json s 'd["rss_kib"]')" 1 20000
}

# The same with a lossy one: it never waits, the oldest go, the newest come, and the numbers tell how many.
lossy_drops()
{
	mkfifo p out
	mux -v --live --stats=60 --stats-file s --data p,name=p,lossy,queue=16,ttl=0 </dev/null >out 2>err &
	pid=$!
	exec 4<out
	"$PYTHON" - >longest <<'PY'
import os, time
fd = os.open("p", os.O_WRONLY)
worst = 0
for i in range(20000):
    t = time.monotonic()
    os.write(fd, b"%d %s\n" % (i, b"x" * 150))
    worst = max(worst, time.monotonic() - t)
    if i % 20 == 0:
        time.sleep(0.001)
print(worst)
PY
	# Nobody has read yet.
	contains err 'the queue is full: the oldest messages are dropped'
	between "$(cat longest)" 0 0.4 "seconds that a write took"
	cat <&4 >b.weir &
	sleep 0.2
	kill -INT $pid
	wait $pid
	exec 4<&-
	wait
	inspect --verify b.weir >out2
	demux -t p b.weir >u
	eq "$(tail -n 1 u | cut -d' ' -f1)" 19999 "the newest"
	n=$(wc -l <u)
	eq "$((n + $(json s 'd["data_dropped"]')))" 20000
	between "$n" 500 15000
	# In order; each number is that of the message; dropped is what is missing.
	packets b.weir 1 | awk '$1 == "DATA" { if ($3 - n++ != $5) { print; exit 1 } }'
	cut -d' ' -f1 u | sort -nc
	paste <(cut -d' ' -f1 u) <(packets b.weir 1 | awk '$1 == "DATA" { print $3 }') | awk '$1 != $2 { print; exit 1 }'
	between "$(json s 'd["rss_kib"]')" 1 20000
}

# What is older than its time is dropped.
too_old()
{
	mkfifo p out
	mux --live --stats --stats-file s --data p,name=p,lossy,queue=1000,ttl=50ms </dev/null >out &
	pid=$!
	exec 4<out
	exec 5>p
	# The pipe is filled, and 100 more wait for half a second behind it.
	"$PYTHON" -c 'for i in range(40): print(i, "x" * 60000)' >&5
	seq 1000 1099 >&5
	sleep 0.5
	echo young >&5
	sleep 0.02
	cat <&4 >b.weir &
	exec 5>&-
	sleep 0.2
	kill -INT $pid
	wait $pid
	exec 4<&-
	wait
	demux -t p b.weir | cut -d' ' -f1 >u
	eq "$(tail -n 1 u)" young
	! grep -qx 1050 u || fail "an old message came"
	between "$(json s 'd["data_dropped"]')" 100 140
}

# Audio that is there goes before each 64 KiB of messages, whatever floods; reliable data before text, text before lossy data.
priorities()
{
	mkfifo p
	capture -c 1 -f s16 -d 60s gen:count | mux -q -o a.wav
	yes "a line of a flood that is as long as this one is, and as the next one will be, and so on without an end" | head -c 4000000 >p 2>/dev/null &
	mux --data p,name=p a.wav >a.weir
	wait
	inspect --verify a.weir >out
	inspect --json a.weir | "$PYTHON" -c '
import json, sys
run = worst = audio = between = 0
for line in sys.stdin:
    d = json.loads(line)
    if d.get("type") != "DATA":
        continue
    if d["track"] == 1:
        audio += d["dur"]
        worst = max(worst, run)
        run = 0
    else:
        run += 64 + d["bytes"]
        between += 0 < audio < 60 * 48000
assert audio == 60 * 48000 and between > 1000, (audio, between)
assert 30000 < worst <= 65536 + 200, worst'
	for k in bytes text lossy; do
		for i in 1 2 3; do printf '\4\0\0\0%s' "$k" | head -c 8; done >$k
	done
	printf 'text\ntext\n' >text
	mux --data lossy,lossy,bytes --data text --data bytes,bytes </dev/null >b.weir
	inspect --json b.weir | grep '"DATA"' | sed 's/.*"track": \([0-9]*\).*/\1/' | uniq | tr '\n' ' ' >order
	eq "$(cat order)" "3 2 1 "
}

heap()
{
	seq 1 1000 >a
	seq 1 200000 >b
	for f in a b; do
		mux --data $f --stats --stats-file m-$f </dev/null | demux -t $f --stats --stats-file d-$f >out
		same out $f
	done
	eq "$(json m-a 'd["allocs"]')" "$(json m-b 'd["allocs"]')"
	eq "$(json d-a 'd["allocs"]')" "$(json d-b 'd["allocs"]')"
}

# Producers that say nonsense end their own track; the others and the audio go on, and the end says so.
hostile()
{
	printf '\5\0\0\0hello\377\377\377\377' >huge
	printf '\5\0\0\0hello\5\0' >short
	head -c 30000 /dev/urandom >noise
	capture -d 1s gen:count >a.weir
	for f in huge short; do
		expect_status 3 mux --data $f,bytes --data noise --data noise,midi,name=m a.weir 2>err >b.weir
		one_line err "^mux: $f: "
		expect_status 3 demux -t $f b.weir >out 2>err
		eq "$(tail -c 5 out)" hello
		expect_status 3 inspect --verify b.weir >out
		eq "$({ inspect --json b.weir || :; } | json - 'd["summary"]["frames"]["1"], d["summary"]["wrong_frames"]')" "[48000, 0]"
	done
}

# On a bad network: reliable messages that are missing are said, lossy ones are counted.
impaired()
{
	seq 1 1000 >t
	mux --data t --data t,lossy,name=l </dev/null >a.weir
	impair --loss 10% --stats --stats-file s a.weir >b.weir
	lost=$(json s 'd["lost_packets"]')
	between "$lost" 60 140
	same <(demux -t t b.weir) t
	eq "$(demux -t l b.weir | wc -l)" $((1000 - lost))
	impair --loss 10% -t t a.weir >b.weir
	expect_status 3 demux -t t b.weir 2>err >out
	one_line err "messages, [0-9]* missing"
}

ends()
{
	mkfifo p q
	# Nobody ever writes: live, the messages end with the audio; with nothing else a signal ends it.
	capture -d 100ms gen:sine 2>/dev/null | timeout 10 mux --live --data p >a.weir
	inspect --verify a.weir >out
	env --default-signal=INT mux --data p --data q </dev/null >b.weir &
	pid=$!
	exec 5>p
	echo hello >&5
	wait_for 10 eval '[ "$(stat -c %s b.weir)" -gt 700 ]'
	kill -INT $pid
	wait $pid
	exec 5>&-
	inspect --verify b.weir >out
	eq "$(demux -t p b.weir)" hello
	# A reader that goes away ends it quietly.
	{ yes || :; } 2>/dev/null | { rc=0; mux --data - 2>err || rc=$?; echo $rc >rc; } | head -c 1000 >out
	eq "$(cat rc)" 141
	empty err
}

wrong_usage()
{
	mkfifo p
	while read -r o; do
		expect_status 2 eval "mux $o" </dev/null 2>err >out
		one_line err '^mux: '
		empty out
	done <<-'LIST'
		--data ''
		--data p,nonsense
		--data p,queue=0
		--data p,ttl=1s
		--data file:p,lossy
		--data p -o x.wav
	LIST
	expect_status 1 mux --data none </dev/null 2>err >out
	one_line err '^mux: none: No such file'
	expect_status 2 mux --data . </dev/null 2>err >out
	one_line err '^mux: .: is a folder'
	expect_status 2 demux --messages nonsense </dev/null 2>err
	one_line err '^demux: '
}

test_case "lines: in and out, beside audio that stays what it was" lines
test_case "writers of a FIFO come and go" writers_come_and_go
test_case "bytes, OSC, JSON and MIDI, in pieces of any size" kinds
test_case "datagrams of a socket" datagrams
test_case "lines beyond a mebibyte are cut between characters" long_lines
test_case "whole files: linear time, flat memory, damage is found" whole_files
test_case "reliable: the producer waits, nothing is lost, both are said at once" reliable_waits
test_case "lossy: the producer never waits, the newest win, what is missing is counted" lossy_drops
test_case "lossy: what is too old is dropped" too_old
test_case "audio first, then reliable data, text, lossy data" priorities
test_case "no allocation a message" heap
test_case "nonsense ends its own track" hostile
test_case "on a bad network" impaired
test_case "ends: live, by a signal, with its reader" ends
test_case "wrong usage is one line" wrong_usage
done_testing
