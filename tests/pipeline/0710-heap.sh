# Nothing is allocated on the way: every tool's heap calls, the libraries' included, are the same after 50 packets and after
# 5000, and there were some to begin with.
. "$(dirname "$0")/../lib.sh"

case $SAN in ?*) skip_all "the sanitizer's allocator is not counted" ;; esac
data=$TMPDIR/data
mkdir "$data"
for n in 50 5000; do
	# Packets of 5 ms; the Opus ones of 2.5 ms, so that there are as many at half the length.
	capture -d $((n * 240))smp -r 48000 -c 2 -f s16 --block 240 gen:noise >"$data/pcm-$n.weir" || skip_all "capture makes no stream"
	capture -d $((n * 240))smp -r 48000 -c 2 -f s16 gen:noise | mux -q -o "$data/a-$n.wav" || skip_all "mux writes no file"
	capture -d $((n * 120))smp -r 48000 -c 1 -f s16 gen:noise | encode --complexity 0 --frame 2.5ms >"$data/opus-$n.weir" ||
		skip_all "encode makes no stream"
	mux -q -o "$data/a-$n.opus" <"$data/opus-$n.weir" || skip_all "mux writes no Opus file"
	for f in flac caf aiff w64; do
		mux -q -o "$data/a-$n.$f" <"$data/pcm-$n.weir" || skip_all "mux writes no .$f"
	done
done

# stands_still STDIN COMMAND…: %n in either is 50, then 5000.
stands_still()
{
	local stdin=$1 n few many few_packets many_packets
	shift
	for n in 50 5000; do
		mkdir $n
		(cd $n && "${@//%n/$n}" --stats=1000 --stats-file ../$n.json <"${stdin//%n/$n}" >/dev/null)
	done
	few=$(json 50.json 'd["allocs"]')
	many=$(json 5000.json 'd["allocs"]')
	few_packets=$(json 50.json 'max(d["packets_in"], d["packets_out"])')
	many_packets=$(json 5000.json 'max(d["packets_in"], d["packets_out"])')
	echo "$few heap calls at $few_packets packets, $many at $many_packets"
	[ "$few" -gt 0 ]
	[ "$few_packets" -ge 40 ] && [ "$few_packets" -le 120 ]
	[ "$many_packets" -ge 4000 ]
	eq "$many" "$few" "heap calls"
}

pcm="$data/pcm-%n.weir" opus="$data/opus-%n.weir"
for f in wav flac caf aiff w64; do
	test_case "capture .$f" stands_still /dev/null capture --block 240 "$data/a-%n.$f"
	test_case "capture .$f from a pipe" stands_still "$data/a-%n.$f" capture --block 240 -
	test_case "mux -o .$f" stands_still "$pcm" mux -q -o "x.$f"
done
test_case "capture Ogg Opus" stands_still /dev/null capture --block 120 "$data/a-%n.opus"
test_case "capture, converted" stands_still /dev/null capture --block 240 -f f32 -c 1 "$data/a-%n.wav"
test_case "encode" stands_still "$pcm" encode --complexity 0 --frame 5ms
test_case "encode on two threads" stands_still "$pcm" encode --complexity 0 --frame 5ms -j 2
test_case "decode" stands_still "$opus" decode
test_case "mux -o .opus" stands_still "$opus" mux -q -o x.opus
test_case "mux -o .weir" stands_still "$pcm" mux -q -o x.weir
test_case "mux --split-every" stands_still "$pcm" mux -q -o 'x-%i.wav' --split-every 1h
test_case "mux --start-above, in a take" stands_still "$pcm" mux -q -o x.wav --start-above -45dB --stop-below -50dB:1s
test_case "mux --start-above, waiting" stands_still "$pcm" mux -q -o x.wav --start-above 0dB
test_case "mux --start-above of Opus" stands_still "$opus" mux -q -o x.opus --start-above -45dB --stop-below -50dB:1s
test_case "mux --start-above of Opus, waiting" stands_still "$opus" mux -q -o x.opus --start-above 0dB
test_case "mux, joining" stands_still /dev/null mux "$pcm" "$opus"
test_case "demux Ogg Opus" stands_still /dev/null demux "$data/a-%n.opus"
test_case "demux a stream" stands_still "$pcm" demux
test_case "inspect" stands_still "$pcm" inspect --verify
test_case "inspect --json" stands_still "$pcm" inspect --json
if [ -x "$BIN/meter" ]; then
	test_case "meter" stands_still "$pcm" meter --json
	test_case "meter --through" stands_still "$pcm" meter --through --report r.txt
fi
[ ! -x "$BIN/mix" ] || test_case "mix" stands_still "$pcm" mix
done_testing
