#!/bin/bash
# Messages and a whole file beside audio over weir://: each once, in order, whole, and not a sample of the audio is lost.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/netlib.sh"
net_begin "$@"

over_the_link()
{
	seq 1 20000 | sed 's/^/message /' >t
	head -c 3000000 /dev/urandom >big.bin
	capture -d 2s -c 2 -f s16 gen:count | mux --data t,name=cues --data file:big.bin >a.weir
	hear weir://127.0.0.1:5004
	netsend weir://127.0.0.1:5004 <a.weir
	stop
	is_whole
	contains report "96000 frames (every sample right)"
	same <(demux -t cues out.weir) t
	same <(demux -t big.bin out.weir) big.bin
}

test_case "over weir://: messages, a file, audio, all of it" over_the_link
done_testing
