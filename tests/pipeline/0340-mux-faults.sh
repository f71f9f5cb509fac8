# mux and what goes wrong around it: full disks, FIFOs, signals, kills.
. "$(dirname "$0")/../lib.sh"

formats="wav w64 rf64 flac caf aiff raw"

dev_full()
{
	local ext
	capture -d 240000smp -r 48000 -c 1 -f s16 gen:noise:white >r.weir
	encode <r.weir >o.weir
	for ext in wav flac caf raw weir; do
		expect_status 1 mux -q -o /dev/full --format $ext <r.weir 2>err
		one_line err "^mux: /dev/full: No space left on device$"
		expect_status 1 sh -c "mux -q -o - --format $ext <r.weir >/dev/full" 2>err
		one_line err "stdout.*: No space left on device"
	done
	expect_status 1 mux -q -o /dev/full --format opus <o.weir 2>err
	one_line err "^mux: /dev/full: No space left on device$"
	expect_status 1 sh -c "mux r.weir >/dev/full" 2>err
	one_line err "No space left on device"
	expect_status 1 sh -c 'mux -q -o - --format wav <r.weir >&-' 2>err
	one_line err "stdout"
}
test_case "/dev/full and a closed stdout: status 1, and the reason" dev_full

# What fitted on a small file system is a valid file of that many frames.
full_disk()
{
	mkdir disk
	mount -t tmpfs -o size=200k tmpfs disk 2>/dev/null || skip "mounting a tmpfs is not allowed here"
	trap 'umount "$PWD/disk"' EXIT
	capture -d 240000smp -r 48000 -c 1 -f s16 gen:count >r.weir
	capture -d 240000smp -r 48000 -c 1 -f s16 gen:noise:white >n.weir
	capture -d 60s -r 48000 -c 1 gen:noise:white | encode >o.weir
	local ext frames
	for ext in $formats; do
		rm -f disk/*
		# What FLAC makes of counting would fit.
		expect_status 1 mux -q -o disk/x.$ext <$([ $ext = flac ] && echo n || echo r).weir 2>err
		one_line err "disk/x.$ext.part: No space left on device"
		[ ! -e disk/x.$ext ]
		if [ $ext = raw ]; then
			capture -r 48000 -c 1 -f s16 raw:disk/x.raw.part | inspect --verify >out
		else
			capture disk/x.$ext.part | inspect --verify >out
		fi
		frames=$(sed 's/.*track 1: \([0-9]*\) frames.*/\1/' out)
		[ $ext = flac ] || contains out "every sample right"
		contains out ": whole"
		between "$frames" 70000 110000 "$ext: frames on the disk"
		if have ffmpeg && [ $ext != raw ]; then
			eq "$(($(ffmpeg -v error -i disk/x.$ext.part -f s16le - | wc -c) / 2))" "$frames" "$ext by ffmpeg"
		fi
	done
	rm -f disk/*
	expect_status 1 mux -q -o disk/x.opus <o.weir 2>err
	one_line err "disk/x.opus.part: No space left on device"
	cp disk/x.opus.part y.opus
	demux y.opus | decode | inspect --verify >out
	contains out ": whole"
	if have opusinfo; then
		opusinfo y.opus >info
		! command grep -qi warning info || fail "opusinfo: $(cat info)"
	fi
}
test_case "a full disk leaves NAME.part with true sizes" full_disk

fifo()
{
	mkfifo f
	capture -d 1s gen:sine >c.weir
	mux -o f --format wav <c.weir 2>err &
	local pid=$!
	wait_for 1 grep -q "waiting for a reader" err
	local start=${EPOCHREALTIME/./}
	kill -TERM $pid
	expect_status 0 wait $pid
	[ $((${EPOCHREALTIME/./} - start)) -lt 500000 ] || fail "took long to stop"
	one_line err "mux: f: waiting for a reader"
	# With a reader it all arrives, under the FIFO's own name.
	cat f >got.wav &
	mux -q -o f --format wav <c.weir
	wait $!
	mux -o - --format wav <c.weir | cat >want.wav
	same got.wav want.wav
	[ -p f ] && [ ! -e f.part ]
}
test_case "a FIFO without a reader is said within a second, and a stop ends the wait at once" fifo

reader_gone()
{
	capture -d 20s gen:noise:white >c.weir
	mux -o - --format wav <c.weir 2>err | head -c 100 >/dev/null || :
	empty err
	set +e
	mux -o - --format wav <c.weir 2>err | head -c 100 >/dev/null
	local status=${PIPESTATUS[0]}
	set -e
	eq "$status" 141
}
test_case "a reader that goes away ends it quietly" reader_gone

signals()
{
	local sig ext pid
	for ext in wav flac w64 caf aiff; do
		for sig in INT TERM HUP; do
			rm -f s.*
			(exec capture --realtime --block 480 -r 48000 -c 1 -f s16 gen:count) | (trap - INT HUP; exec mux -q -o s.$ext) 2>err &
			wait_for 10 eval '[ "$(stat -c %s s.'$ext'.part 2>/dev/null || echo 0)" -gt 20000 ]'
			pid=$(pid_of_mux s.$ext)
			kill -$sig $pid
			wait_for 5 test -e s.$ext
			wait || :
			empty err
			capture s.$ext | inspect --verify >out
			contains out "every sample right"
			contains out ": whole"
		done
	done
}

# The mux of this test that writes NAME: by its command line, among our own children's children.
pid_of_mux()
{
	local p
	for p in $(ls /proc | command grep -E '^[0-9]+$'); do
		[ "$(readlink /proc/$p/cwd 2>/dev/null)" = "$PWD" ] || continue
		case $(tr '\0' ' ' </proc/$p/cmdline 2>/dev/null) in
		*mux\ -q\ -o\ $1\ ) echo $p; return 0 ;;
		esac
	done
	return 1
}
test_case "SIGINT, SIGTERM and SIGHUP leave a whole file under its name" signals

# A live recording is killed at a random moment: what is there plays, up to a second before.
killed()
{
	local ext=$1 round pid begun now size lost
	for round in 1 2 3; do
		rm -f k.*
		if [ $ext = opus ]; then
			(exec capture --realtime --block 480 -r 48000 -c 1 -f s16 gen:noise:white) | (exec encode) | (exec mux -q -o k.$ext) 2>/dev/null &
		else
			(exec capture --realtime --block 480 -r 48000 -c 1 -f s16 gen:count) | (exec mux -q -o k.$ext) 2>/dev/null &
		fi
		wait_for 10 test -e k.$ext.part
		pid=$(pid_of_mux k.$ext)
		begun=${EPOCHREALTIME/./}
		sleep 1.$((RANDOM % 10))$((RANDOM % 10))
		now=${EPOCHREALTIME/./}
		kill -9 $pid
		wait || :
		[ ! -e k.$ext ]
		case $ext in
		opus)
			# A stream without its last page: here it is said (3), elsewhere it is played.
			demux k.opus.part 2>/dev/null | decode 2>/dev/null | inspect --json >out.json || :
			size=$(json out.json 'd["summary"]["frames"]["1"]')
			! have opusdec || opusdec --quiet k.opus.part k.wav 2>/dev/null
			! have ffmpeg || eq "$(($(ffmpeg -v error -i k.opus.part -f s16le - 2>/dev/null | wc -c) / 2))" "$size" "ffmpeg on $ext"
			;;
		raw) size=$(($(bytes_of k.raw.part) / 2)) ;;
		*)
			capture k.$ext.part 2>/dev/null | inspect --verify >out || :
			contains out "every sample right"
			size=$(sed 's/.*track 1: \([0-9]*\) frames.*/\1/' out)
			! have ffmpeg || eq "$(($(ffmpeg -v error -i k.$ext.part -f s16le - | wc -c) / 2))" "$size" "ffmpeg on $ext"
			;;
		esac
		lost=$(((now - begun) * 48 / 1000 - size))
		[ $lost -le 48000 ] || fail "$ext: $lost frames are missing after $((now - begun)) us"
	done
}
for ext in $formats opus; do
	test_case "kill -9: a .$ext recording plays, and lacks less than a second" killed $ext
done

taken()
{
	capture -d 1s -f s16 gen:sine >c.weir
	echo mine >x.wav
	expect_status 1 mux -o x.wav <c.weir 2>err
	one_line err "x.wav: exists; -y overwrites it"
	eq "$(cat x.wav)" mine
	# Before any work: stdin is not even read.
	mkfifo never
	exec 7<>never
	expect_status 1 mux -o x.wav <never 2>err
	mux -q -y -o x.wav <c.weir
	eq "$(head -c 4 x.wav)" RIFF
	# An unfinished recording is not taken away either.
	echo part >z.wav.part
	expect_status 1 mux -o z.wav <c.weir 2>err
	one_line err "z.wav.part: exists: a recording that was not finished; it plays: rename it to keep it, or -y overwrites it"
	expect_status 1 mux -o . --format wav <c.weir 2>err
	one_line err "folder"
	expect_status 1 mux -o no/x.wav <c.weir 2>err
	one_line err "no/x.wav.part: No such file or directory"
	ln -s nowhere.wav link.wav
	expect_status 1 mux -o link.wav <c.weir 2>err
	one_line err "symbolic link"
}
test_case "existing files, unfinished recordings, folders and links to nothing are left alone" taken

terminal()
{
	have script || skip "script is not here"
	capture -d 1s gen:sine >c.weir
	script -qec 'mux c.weir' log >/dev/null </dev/null && fail "wrote to a terminal"
	command grep -aq "terminal" log
	script -qec 'mux -o - --format wav c.weir' log >/dev/null </dev/null && fail "wrote to a terminal"
	command grep -aq "terminal" log
	! command grep -aq RIFF log
}
test_case "nothing binary goes to a terminal" terminal

small_pipes()
{
	capture -d 3s -r 48000 -c 2 -f s16 gen:count >c.weir
	local bytes
	for bytes in 1 3 4096 65537; do
		"$PYTHON" -c '
import os, sys
d, n = open("c.weir", "rb").read(), int(sys.argv[1])
at = 0
while at < len(d):
    at += os.write(1, d[at:at + (n if at < 20000 else 65537)])
' $bytes | mux -q -y -o x$bytes.wav
		same x$bytes.wav x1.wav
	done
}
test_case "however a pipe cuts its input, the file is the same" small_pipes

done_testing
