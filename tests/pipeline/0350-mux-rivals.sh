#!/bin/bash
# Two recordings under one name, and a recording whose file is taken away: nobody's audio gets another's name, and nobody
# says that all is well when it is not.
. "$(dirname "$0")/../lib.sh"

exists()
{
	[ -e "$1" ]
}

# A mux that has begun to write x.wav and goes on until descriptor 7 is closed; its process is $pid.
begin_recording()
{
	mkfifo in
	capture -d 1s -r 48000 -c 1 -f s16 gen:count >count.weir
	mux "$@" -o x.wav <in >out 2>err &
	pid=$!
	exec 7>in
	head -c 50000 count.weir >&7
	wait_for 20 exists x.wav.part
}

end_recording()
{
	tail -c +50001 count.weir >&7
	exec 7>&-
	status=0
	wait $pid || status=$?
}

rival_with_force()
{
	begin_recording -y
	expect_status 1 mux -y -o x.wav <count.weir 2>rival
	one_line rival '^mux: x.wav.part: is being written by another program$'
	# Without -y nobody is told to take it, and what does not write a stream of audio is no other.
	expect_status 1 mux -o x.wav <count.weir 2>rival
	one_line rival '^mux: x.wav.part: is being written by another program$'
	expect_status 1 mux -y -o x.wav --format weir <count.weir 2>rival
	one_line rival '^mux: x.wav.part: is being written by another program$'
	end_recording
	eq "$status" 0 "status of the first: $(cat err)"
	capture x.wav | inspect --verify >verified
	contains verified "48000 frames (every sample right)"
}
test_case "-y does not take the .part of a recording in progress" rival_with_force

# What a crash has left is no recording in progress.
left_by_a_crash()
{
	begin_recording
	kill -9 $pid
	wait $pid 2>/dev/null || :
	exec 7>&-
	expect_status 1 mux -o x.wav <count.weir 2>refused
	one_line refused 'x.wav.part: exists: a recording that was not finished; it plays: rename it to keep it, or -y overwrites it$'
	mux -q -y -o x.wav <count.weir
	capture x.wav | inspect --verify >verified
	contains verified "48000 frames (every sample right)"
}
test_case "-y takes the .part that a crash has left" left_by_a_crash

# A later piece steps aside for it, as it does for a file that is there.
piece_of_a_rival()
{
	mkfifo in
	capture -d 3s -r 8000 -c 1 -f s16 gen:count >count.weir
	mux -q -o x-002.wav <in &
	pid=$!
	exec 7>in
	head -c 30000 count.weir >&7
	wait_for 20 exists x-002.wav.part
	mux -q -y -o x.wav --split-every 1s <count.weir
	eq "$(echo x-*)" "x-001.wav x-002.wav.part x-003.wav x-004.wav"
	tail -c +30001 count.weir >&7
	exec 7>&-
	wait $pid
	capture x-002.wav | inspect --verify >verified
	contains verified "24000 frames (every sample right)"
}
test_case "-y with --split-every steps aside for a recording in progress" piece_of_a_rival

# Many that begin at one moment with -y: each is told that it is not alone, or has its file whole; none is lost silently.
crowd()
{
	local i round pids status
	capture -d 1000smp -r 48000 -c 1 -f s16 gen:count >count.weir
	for round in 1 2 3 4 5; do
		pids=
		for i in 1 2 3 4 5 6; do
			mux -q -y -o c.wav <count.weir 2>err$i &
			pids="$pids $!"
		done
		i=0
		for pid in $pids; do
			i=$((i + 1))
			status=0
			wait $pid || status=$?
			[ $status = 0 ] || one_line err$i '^mux: c.wav.part: is being written by another program$'
		done
		capture c.wav | inspect --verify >verified
		contains verified "1000 frames (every sample right)"
		[ ! -e c.wav.part ]
	done
}
test_case "a crowd of writers with one name: one has it, the others are told" crowd

replaced()
{
	begin_recording
	rm x.wav.part
	echo "of somebody else" >x.wav.part
	end_recording
	eq "$status" 1 status
	one_line err '^mux: x.wav.part: was removed or replaced while it was written'
	[ ! -e x.wav ] || fail "somebody else's file was renamed"
	eq "$(cat x.wav.part)" "of somebody else"
}
test_case "a .part that somebody put in place of ours is not given the name" replaced

removed()
{
	begin_recording
	rm x.wav.part
	end_recording
	eq "$status" 1 status
	one_line err '^mux: x.wav.part: was removed or replaced while it was written'
	[ ! -e x.wav ] || fail "x.wav exists"
}
test_case "a .part that was removed is missed" removed

# A recording that fails before its first byte leaves nothing, but never takes away what is not its own.
replaced_before_the_first_byte()
{
	mkfifo in
	mux -o x.weir <in >out 2>err &
	pid=$!
	exec 7>in
	wait_for 20 exists x.weir.part
	rm x.weir.part
	echo "of somebody else" >x.weir.part
	echo "this is no stream, and no audio file" >&7
	exec 7>&-
	status=0
	wait $pid || status=$?
	eq "$status" 1 status
	eq "$(cat x.weir.part)" "of somebody else"
}
test_case "what is taken away is our own" replaced_before_the_first_byte

# ---- names of streams ----

stream_names()
{
	capture -d 10smp gen:silence >s.weir
	TZ=UTC0 mux -o 'x-%Y-%%-%i.weir' s.weir
	[ -e "$(date -u +x-%Y-%%-001.weir)" ] || fail "made: $(ls)"
	for c in %t %n; do
		expect_status 2 mux -o "x-$c.weir" s.weir 2>err
		one_line err "^mux: x-$c.weir: .*all tracks"
	done
	expect_status 2 mux -o 'x-%q.weir' s.weir 2>err
	one_line err "no conversion"
	[ -z "$(compgen -G '*%[tnq]*')" ] || fail "made: $(ls)"
}
test_case "a stream's name can hold the time, as every file's can" stream_names

done_testing
