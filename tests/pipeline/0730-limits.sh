#!/bin/bash
# Limits that a shell or a service manager sets (ulimit): a file that may not grow is like a full disk, never a death by
# signal; and what is not about files (the tools' own buffers) does not come under it.
. "$(dirname "$0")/../lib.sh"

data=$TMPDIR/data
mkdir "$data"
capture -d 5s -r 48000 -c 2 -f s16 gen:noise:white >"$data/pcm.weir" || skip_all "capture makes no stream"
encode -b 512k --cbr --complexity 0 <"$data/pcm.weir" >"$data/opus.weir" || skip_all "encode makes no stream"

# Files of 120 KiB and no more; the signal that comes with it as it is by default.
limited()
{
	env --default-signal=XFSZ bash -c 'ulimit -c 0; ulimit -f 120; "$@"' limited "$@"
}

# TOOL COMMAND…: standard output is a file that may not grow.
to_stdout()
{
	local t=$1
	shift
	status_of limited "$@" >out 2>err
	eq "$status" 1 "status"
	one_line err "^$t: <stdout>: File too large"
	[ "$t" != inspect ] || return 0
	status_of inspect --json out >lines 2>err2
	eq "$status" 3 "status of inspect"
	[ "$(json lines 'd["summary"]["frames"]["1"]')" -gt 5000 ]
	eq "$(json lines 'd["summary"]["complete"]')" false
}
test_case "capture > a file that may not grow" to_stdout capture capture gen:noise
test_case "encode > a file that may not grow" to_stdout encode encode -b 512k --cbr --complexity 0 "$data/pcm.weir"
test_case "decode > a file that may not grow" to_stdout decode decode "$data/opus.weir"
test_case "mux > a file that may not grow" to_stdout mux mux "$data/pcm.weir"
test_case "demux > a file that may not grow" to_stdout demux demux "$data/pcm.weir"
test_case "inspect > a file that may not grow" to_stdout inspect bash -c "for i in 1 2 3 4 5 6; do cat $data/opus.weir; done | { exec inspect --json; }"
[ ! -x "$BIN/mix" ] || test_case "mix > a file that may not grow" to_stdout mix mix "$data/pcm.weir"
[ ! -x "$BIN/resample" ] || test_case "resample > a file that may not grow" to_stdout resample bash -c "exec resample -r 44100 <$data/pcm.weir"

# ENDING STREAM: mux writes a file that may not grow; what fits plays.
to_file()
{
	local ending=$1 frames
	status_of limited mux -o "x.$ending" "$data/$2" >out 2>err
	eq "$status" 1 "status"
	one_line err "^mux: x.$ending.*File too large"
	[ ! -e "x.$ending" ] || fail "x.$ending got its final name"
	status_of inspect --json "x.$ending.part" >lines 2>err2
	[ "$status" = 0 ] || [ "$status" = 3 ] || fail "what is there does not play: $(cat err2)"
	between "$(json lines 'd["summary"]["frames"]["1"]')" 4000 240000 "frames that play"
}
for ending in wav w64 rf64 flac caf aiff; do
	test_case "mux -o x.$ending that may not grow" to_file $ending pcm.weir
done
test_case "mux -o x.opus that may not grow" to_file opus opus.weir
test_case "mux -o x.weir that may not grow" to_file weir pcm.weir

# No file may be written at all: pipes are none, and neither are the tools' own buffers.
through_pipes()
{
	(
		ulimit -f 0
		capture -d 1s -c 1 -f s16 gen:count 2>&1 | mux 2>&1 | demux 2>&1 | inspect --verify 2>&1 |
			command grep -q 'every sample right.*: whole'
	)
}
test_case "pipes are not under the limit of files" through_pipes

# Samples of 3 bytes: what is left is a whole number of them and needs no pad byte, which would not fit.
odd_samples()
{
	local ending data_at size
	capture -d 5s -r 48000 -c 1 -f s24 gen:noise:white >odd.weir
	for ending in wav aiff; do
		status_of limited mux -o "x.$ending" odd.weir >out 2>err
		eq "$status" 1 "status"
		"$PYTHON" - "x.$ending.part" <<'PY'
import struct, sys
d = open(sys.argv[1], "rb").read()
big = d[:4] == b"FORM"
order = ">" if big else "<"
assert struct.unpack(order + "I", d[4:8])[0] == len(d) - 8, "size in the header"
at = d.index(b"SSND" if big else b"data")
n = struct.unpack(order + "I", d[at + 4 : at + 8])[0]
assert at + 8 + n == len(d) and n % 2 == 0 and n > 100000, (at, n, len(d))
n -= 8 if big else 0
assert n % 3 == 0, n
PY
	done
}
test_case "samples of 3 bytes in a file that may not grow" odd_samples

done_testing
