#!/bin/bash
# inspect: what it prints, and what --verify proves.
. "$(dirname "$0")/../lib.sh"

# A stream of N packets of gen:count with a name.
count_stream()
{
	capture -q -n "$2" -r 48k -c 2 -f s16 --block 100 -d "$1smp" gen:count
}

prints_packets()
{
	count_stream 250 mic >a.weir
	inspect a.weir >out
	eq "$(grep -c ^DATA out)" 3 "DATA lines"
	grep -q '^STREAM' out
	grep -q '^TRACK  *1 .*audio pcm s16 48000 Hz 2 ch (ch1 ch2) "mic"' out
	grep -q '^DATA  *1  *200 +50 ' out
	grep -q '^END  *1 .* at 250$' out
	tail -1 out | grep -q 'track 1: 250 frames, 0 gaps, 0 frames lost, 0 bytes damaged: whole'
}

prints_json()
{
	count_stream 250 $'a "quoted"\tname' >a.weir
	inspect --json a.weir >out
	"$PYTHON" - out <<'PY'
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
types = [l.get("type") for l in lines]
assert types == ["STREAM", "TRACK", "DATA", "DATA", "DATA", "END", "END", None], types
data = [l for l in lines if l.get("type") == "DATA"]
assert [d["pos"] for d in data] == [0, 100, 200] and [d["dur"] for d in data] == [100, 100, 50]
assert [d["seq"] for d in data] == [0, 1, 2] and data[0]["bytes"] == 400 and data[0]["utc_ns"] is None
assert data[0]["dropped"] == 0 and "key" in data[0]["flags"] and data[0]["track"] == 1
track = lines[1]
assert track["channels"] == 2 and track["rate_num"] == 48000 and track["sample"] == "s16", track
assert track["channel_names"] == ["ch1", "ch2"] and track["name"].startswith('a "quoted"'), track
s = lines[-1]["summary"]
assert s["packets"] == 7 and s["tracks"] == 1 and s["frames"] == {"1": 250}, s
assert s["gaps"] == 0 and s["lost_frames"] == 0 and s["damaged_bytes"] == 0 and s["complete"] is True, s
PY
}

concatenated_is_whole()
{
	count_stream 1000 a >a.weir
	count_stream 777 a >b.weir
	cat a.weir b.weir | inspect --verify >out
	grep -q 'track 1: 1777 frames' out
	grep -q ': whole$' out
}

# Cut at every 37th byte, at every packet's edge and in the last bytes: never taken for whole, always said where.
cut_anywhere_exits_3()
{
	count_stream 1000 a >a.weir
	local size at
	size=$(bytes_of a.weir)
	for at in $(seq 64 37 "$((size - 1))") $((size - 1)) $((size - 63)) $((size - 128)); do
		head -c "$at" a.weir >cut.weir
		status_of inspect --verify cut.weir >out 2>err
		eq "$status" 3 "cut at $at"
		grep -q 'ended without end mark after byte [0-9]*' out || fail "cut at $at: $(cat out)"
		local said
		said=$(grep -o 'after byte [0-9]*' out | tr -dc 0-9)
		[ "$said" -le "$at" ] || fail "cut at $at: said $said"
	done
}

nothing_at_all()
{
	status_of inspect --verify /dev/null >out 2>err
	eq "$status" 1
	one_line err 'empty'
	printf 'RIFF....WAVE' >x
	head -c 300 /dev/zero >y
	status_of inspect --verify y >out 2>err
	ne "$status" 0
	one_line err
}

# A count that is not the right one is found, to the sample.
finds_a_wrong_sample()
{
	count_stream 1000 a >a.weir
	"$PYTHON" - <<'PY'
b = bytearray(open("a.weir", "rb").read())
i = -1
for _ in range(5):                       # the fifth DATA packet, positions 400 to 499
    i = b.index(b"WEI\xd2\x10\x03", i + 1)
b[i + 64 + 4 * 33 + 2] ^= 1              # frame 433, second channel
b[i + 6] &= ~0x20                        # without its payload's CRC …
def crc(data):
    c = 0xFFFFFFFF
    for x in data:
        c ^= x
        for _ in range(8):
            c = (c >> 1) ^ (0x82F63B78 if c & 1 else 0)
    return c ^ 0xFFFFFFFF
b[i + 56:i + 60] = bytes(4)
b[i + 60:i + 64] = crc(b[i:i + 60]).to_bytes(4, "little")  # … and with a right header's
open("b.weir", "wb").write(b)
PY
	inspect --verify a.weir | grep -q 'every sample right'
	status_of inspect --verify b.weir >out 2>err
	eq "$status" 3
	grep -q '1 wrong, the first at 433' out || fail "$(cat out)"
}

# A thousand flips, deletions and insertions in a file of 1500 packets; what is untouched must come out.
thousand_damages()
{
	capture -q -r 48k -c 1 -f s16 --block 60 -d 90000smp gen:count >a.weir
	"$PYTHON" - <<'PY'
import random
rnd = random.Random(7)
print("seed 7")
b = open("a.weir", "rb").read()
starts, i = [], b.find(b"WEI\xd2\x10\x03")
while i >= 0:
    starts.append(i)
    i = b.find(b"WEI\xd2\x10\x03", i + 1)
size = 64 + 128
keep = starts[0]
marks = sorted(rnd.sample(range(keep, len(b)), 1000))
out, last = bytearray(), 0
for m in marks:
    out += b[last:m]
    kind = rnd.randrange(3)
    if kind == 0:
        out.append(b[m] ^ (1 << rnd.randrange(8)))
        last = m + 1
    elif kind == 1:
        last = m + 1 + rnd.randrange(40)
    else:
        out += bytes(rnd.randrange(256) for _ in range(1 + rnd.randrange(40)))
        last = m
    last = min(last, len(b))
out += b[last:]
open("damaged.weir", "wb").write(out)
hit = set()
import bisect
spoilt = 0
# untouched: header and its 120 payload bytes stand unbroken in the damaged file
with open("wanted", "w") as f:
    for k, s in enumerate(starts):
        whole = b[s:s + 64 + 120]
        if whole in out:
            print(k * 60, file=f)
PY
	status_of inspect --json damaged.weir >out 2>err
	eq "$status" 3
	"$PYTHON" - <<'PY'
import json
got = [d["pos"] for d in map(json.loads, open("out")) if d.get("type") == "DATA"]
wanted = [int(x) for x in open("wanted")]
assert len(wanted) > 300, len(wanted)
assert got == wanted, (len(got), len(wanted), sorted(set(wanted) - set(got))[:5], sorted(set(got) - set(wanted))[:5])
PY
}

a_reader_that_goes_away()
{
	# More lines than a pipe takes before its reader is gone.
	capture -q -d 10s --block 64 gen:count >a.weir
	set +o pipefail
	inspect a.weir 2>err | head -1 >/dev/null
	eq "${PIPESTATUS[0]}" 141
	empty err
}

test_case "packets and announcements are printed" prints_packets
test_case "JSON has the documented keys and true values" prints_json
test_case "concatenated streams are whole and go on" concatenated_is_whole
test_case "a stream cut anywhere exits 3 and says where" cut_anywhere_exits_3
test_case "no stream at all is an error in one line" nothing_at_all
test_case "a wrong sample of gen:count is found and placed" finds_a_wrong_sample
test_case "1000 damages lose only what they touched" thousand_damages
test_case "a reader that goes away ends it quietly" a_reader_that_goes_away

# A signal ends the reading: of what was not read nothing is known.
interrupted()
{
	local how
	capture -d 2s gen:sine >whole.weir
	head -c 100000 whole.weir >part.weir
	for how in "--verify" "--verify --json" "--json"; do
		rm -f in
		mkfifo in
		env --default-signal=INT inspect $how --stats=0.05 --stats-file stats <in >out 2>err &
		local pid=$!
		exec 7>in
		cat part.weir >&7
		wait_for 20 grep -q '"packets_in": *[1-9]' stats
		kill -INT $pid
		status=0
		wait $pid || status=$?
		exec 7>&-
		rm stats
		case $how in
		*verify) contains out "not whole (interrupted)" ;;
		*) eq "$(json out 'd["summary"]["complete"]')" false ;;
		esac
		case $how in
		--verify*) eq "$status" 3 "status with $how" ;;
		*) eq "$status" 0 "status with $how" ;;
		esac
	done
}
# The others are shown; what could not be read is the status.
goes_on()
{
	capture -d 1s gen:sine >a.weir
	head -c 5000 a.weir >cut.weir
	printf 'no stream at all, but long enough' >text
	expect_status 1 inspect --verify a.weir missing.weir a.weir text a.weir >out 2>err
	eq "$(grep -c ': whole$' out)" 3
	eq "$(wc -l <out)" 3
	eq "$(wc -l <err)" 2
	contains err "inspect: missing.weir: No such file"
	contains err "inspect: text: "
	expect_status 1 inspect --json missing.weir a.weir >out 2>err
	eq "$(json out 'd["summary"]["complete"]')" true
	expect_status 1 inspect --verify cut.weir missing.weir >out 2>err
	expect_status 3 inspect --verify a.weir cut.weir a.weir >out 2>err
	eq "$(wc -l <out)" 3
	expect_status 1 inspect missing.weir >out 2>err
	one_line err "^inspect: missing.weir: No such file"
}
test_case "an input that cannot be read does not hide the others" goes_on

test_case "what was interrupted is not called whole" interrupted

done_testing
