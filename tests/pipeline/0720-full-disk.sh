# A disk that fills up under every tool: status 1, one line that says why, and what was written so far is of use.
. "$(dirname "$0")/../lib.sh"

data=$TMPDIR/data
mkdir "$data"
capture -d 20s -r 48000 -c 2 -f s16 gen:noise:white >"$data/pcm.weir" || skip_all "capture makes no stream"
capture -d 20s -r 48000 -c 1 -f s16 gen:noise:white | encode -b 256k --cbr --complexity 0 >"$data/opus.weir" ||
	skip_all "encode makes no stream"

# In the folder disk of the case there are SIZE, and no more.
small_disk()
{
	mkdir disk
	mount -t tmpfs -o size="$1" tmpfs disk 2>/dev/null || skip "mounting a tmpfs is not allowed here"
	trap 'umount "$PWD/disk"; lib_kill_jobs' EXIT
}

# TOOL COMMAND…: its standard output is a file on the disk.
to_stdout()
{
	local t=$1
	shift
	small_disk 300k
	status_of "$@" >disk/out 2>err
	eq "$status" 1
	one_line err "^$t: .*No space left on device"
	[ "$t" != inspect ] || return 0
	# The beginning of a stream: cut, and said to be; all of it sound.
	status_of inspect --json disk/out >lines 2>err2
	eq "$status" 3
	[ "$(json lines 'd["summary"]["frames"]["1"]')" -gt 5000 ]
	eq "$(json lines 'd["summary"]["complete"]')" false
	eq "$(json lines 'd["summary"]["gaps"]')" 0
}
test_case "capture > full disk" to_stdout capture capture gen:noise
test_case "encode > full disk" to_stdout encode bash -c "exec encode -b 256k --cbr --complexity 0 <$data/pcm.weir"
test_case "decode > full disk" to_stdout decode bash -c "exec decode <$data/opus.weir"
test_case "mux > full disk" to_stdout mux mux "$data/pcm.weir" "$data/opus.weir"
test_case "demux > full disk" to_stdout demux demux "$data/pcm.weir"
test_case "inspect > full disk" to_stdout inspect bash -c "for i in 1 2 3 4 5 6 7 8; do cat $data/opus.weir; done | { exec inspect --json; }"
[ ! -x "$BIN/meter" ] || test_case "meter --through > full disk" to_stdout meter bash -c "exec meter --through --report /dev/null <$data/pcm.weir"
[ ! -x "$BIN/mix" ] || test_case "mix > full disk" to_stdout mix mix "$data/pcm.weir"
[ ! -x "$BIN/resample" ] || test_case "resample > full disk" to_stdout resample bash -c "exec resample -r 44100 <$data/pcm.weir"

# Files of streams: a part that is cut, under no final name.
split()
{
	small_disk 300k
	expect_status 1 demux --split disk/o "$data/pcm.weir" >out 2>err
	empty out
	one_line err "^demux: .*No space left on device"
	find disk/o -type f ! -name '*.part' >names
	empty names
}
test_case "demux --split on a full disk" split

# A file that is complete but for its last header: the room is taken away between the audio and the end.
full_at_the_end()
{
	small_disk 4m
	mkfifo in
	mux -q -o disk/x.wav <in 2>err &
	local pid=$! size=0 status=0
	exec 7>in
	capture -d 5s -r 48000 -c 2 -f s16 gen:noise:white >five.weir
	# All but its end, which is three blocks of 128 bytes at most.
	head -c $(($(bytes_of five.weir) - 384)) five.weir >&7
	wait_for 20 longer_than disk/x.wav.part 700000
	head -c 100m /dev/zero >disk/filler 2>/dev/null || :
	tail -c 384 five.weir >&7
	exec 7>&-
	wait $pid || status=$?
	if [ "$status" = 0 ]; then
		capture disk/x.wav | inspect --verify >report
	else
		one_line err "No space left on device"
		[ ! -e disk/x.wav ]
		capture disk/x.wav.part | inspect --verify >report
	fi
	contains report ": whole"
}
longer_than()
{
	[ -e "$1" ] && [ "$(bytes_of "$1")" -gt "$2" ]
}
test_case "a disk that fills up just before the end leaves a file that plays" full_at_the_end

done_testing
