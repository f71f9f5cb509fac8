# Nothing is allocated per packet, the libraries included: as many heap calls for 5000 packets as for 50.
. "$(dirname "$0")/../lib.sh"

[ -z "${SAN-}" ] || skip_all "with sanitizers the heap is theirs and is not counted"

allocs() # ARG…
{
	capture --stats "$@" 2>stats.json >/dev/null
	json stats.json 'd["allocs"]'
}

packets()
{
	json stats.json 'd["packets_out"]'
}

steady() # ARG…: a source of 20 s at 48 kHz or more
{
	local few many
	few=$(allocs --block 128 -d 6400smp "$@")
	[ "$(packets)" -ge 50 ]
	many=$(allocs --block 128 -d 640000smp "$@")
	[ "$(packets)" -ge 5000 ] || fail "only $(packets) packets"
	[ "$few" -gt 0 ]
	eq "$many" "$few" "heap calls of capture $*"
}

files()
{
	make_wav a.wav 48000 2 s16 700000
	steady a.wav
	steady -f f32 a.wav
	steady -c 1 -f s24 a.wav
	# libsoxr takes the last of its memory in its first blocks, of the default size
	eq "$(allocs -r 44100 -d 14s a.wav)" "$(allocs -r 44100 -d 4s a.wav)" "heap calls of capture -r 44100"
	steady gen:noise:pink
	steady gen:count
	steady a.wav gen:ident
	! have flac || { flac -s -o a.flac a.wav && steady a.flac; }
	! have sox || { sox a.wav a.aiff && steady a.aiff; sox a.wav a.caf && steady a.caf; sox a.wav -e ima-adpcm b.wav && steady b.wav; }
	! have lame || { lame --quiet a.wav a.mp3 && steady a.mp3; }
	# packets of these are as long as the codec's, where that is longer than a block
	! have opusenc || { opusenc --quiet a.wav a.opus && steady a.opus; }
	! have oggenc || { oggenc -Q -o a.ogg a.wav && steady a.ogg; }
}

pipe_of() # FILE
{
	local few many
	few=$(allocs --block 128 -d 6400smp - < <(cat "$1"))
	many=$(allocs --block 128 -d 640000smp - < <(cat "$1"))
	eq "$many" "$few" "heap calls of capture - < $1"
}

all_pipes()
{
	make_wav a.wav 48000 2 s16 700000
	pipe_of a.wav
	! have flac || { flac -s -o a.flac a.wav && pipe_of a.flac; }
	! have lame || { lame --quiet a.wav a.mp3 && pipe_of a.mp3; }
	! have opusenc || { opusenc --quiet a.wav a.opus && pipe_of a.opus; }
	! have oggenc || { oggenc -Q -o a.ogg a.wav && pipe_of a.ogg; }
}

test_case "files and generators" files
test_case "pipes" all_pipes
done_testing
