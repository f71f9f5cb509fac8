# A recording that is killed plays, up to its last second: 20 of each container, killed with SIGKILL at random moments.
. "$(dirname "$0")/../lib.sh"

data=$TMPDIR/data
mkdir "$data"
capture -d 4s -r 48000 -c 1 -f s16 --block 480 gen:noise:white >"$data/pcm.weir" || skip_all "capture makes no stream"
encode --frame 20ms <"$data/pcm.weir" >"$data/opus.weir" || skip_all "encode makes no stream"

killed()
{
	local stream=pcm
	[ "$1" != opus ] || stream=opus
	"$PYTHON" "$TOP/tests/pipeline/killed.py" "$1" "$data/$stream.weir" 20
}

for format in wav w64 rf64 flac caf aiff raw weir opus; do
	test_case "20 .$format recordings killed at random moments play up to the last second" killed $format
done
done_testing
