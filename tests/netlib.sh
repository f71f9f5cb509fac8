# For tests that send datagrams, after lib.sh.  net_begin runs the script again in a network namespace of its own, so that
# ports may be fixed: nobody else is there.  It has lo, with IPv4, IPv6 and IPv4 multicast, and mc0 for IPv6 multicast.

net_begin()
{
	if [ -z "${WEIR_TEST_NET-}" ]; then
		have unshare && have ip || skip_all "unshare or ip is not installed"
		unshare -rn true 2>/dev/null || skip_all "no network namespace can be made here"
		rm -rf "$lib_scratch"
		# The mount of TMPDIR is the parent's; the scratch folder is made anew.
		TMPDIR=${WEIR_TEST_TMPDIR:-/tmp} WEIR_TEST_NET=1 exec unshare -rn bash "$0" "$@"
	fi
	ip link set lo up multicast on || skip_all "lo cannot be set up in the namespace"
	ip route add 224.0.0.0/4 dev lo
	# lo does not carry IPv6 multicast; this does, as mc0.
	ip link add mc0 type veth peer name mc1 2>/dev/null && ip link set mc0 up && ip link set mc1 up && ip -6 addr add fd00::7/64 dev mc0 nodad || :
}

# ---- who listens ----

# udp_bound PORT: somebody has bound it.
udp_bound()
{
	local hex
	hex=$(printf '%04X' "$1")
	command grep -Eq "^ *[0-9]+: [0-9A-F]+:$hex " /proc/net/udp /proc/net/udp6
}

# tcp_listens PORT: somebody accepts connections there.
tcp_listens()
{
	local hex
	hex=$(printf '%04X' "$1")
	command grep -Eq "^ *[0-9]+: [0-9A-F]+:$hex [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6
}

# udp_dropped PORT: datagrams for which the kernel had no room in the sockets of that port, which happens when their reader does not get a
# processor for longer than the room lasts.
udp_dropped()
{
	awk -v port=":$(printf '%04X' "$1")" '$2 ~ port "$" { n += $NF } END { print n + 0 }' /proc/net/udp /proc/net/udp6
}

# ---- netrecv ----

# hear OPTION… [URL]: netrecv in the background as $receiver: out.weir, err, stats.  It listens on port 5004 when this returns, whatever
# the URL or the description says beside that.
hear()
{
	local listens=udp_bound
	case ${!#} in weir://*) listens=tcp_listens ;; esac
	netrecv --stats=0.05 --stats-file stats "$@" >out.weir 2>err &
	receiver=$!
	wait_for 10 eval "$listens 5004 || { kill -0 $receiver 2>/dev/null || fail \"netrecv has ended: \$(cat err)\"; false; }"
}

# heard KEY LEAST
heard()
{
	reached stats "$@"
}

# all_left: somebody was heard, and nobody is there any more.
all_left()
{
	heard received 1 && [ "$(figure stats senders)" = 0 ]
}

# stop: asks it to end, and looks at how it did.
stop()
{
	kill -INT "$receiver"
	wait "$receiver"
}

# is_whole: what it wrote is a stream without a fault or a hole; report is what inspect says.
is_whole()
{
	inspect --verify out.weir >report || fail "$(cat report)"
}

# ---- sound ----

weirfile()
{
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" "$@"
}

# samples FILE: of its one track, without a header.
samples()
{
	mux -q --format raw -o - "$1"
}

# same_sound A B: to the bit.
same_sound()
{
	samples "$1" >a.raw
	samples "$2" >b.raw
	[ -s a.raw ] || fail "$1 has no sound"
	same a.raw b.raw "the samples of $1 and $2"
}

# ---- what is on the wire ----

rtp()
{
	"$PYTHON" "$TOP/tests/pipeline/rtp.py" "$@"
}

# record NAME ADDRESS PORT [OPTION…]: writes datagrams down in NAME.rec in the background, until BYE; ready when this returns.
record()
{
	local name=$1
	rm -f "$name.ready"
	rtp record "$name.rec" "$name.ready" "${@:2}" &
	wait_for 10 test -e "$name.ready"
}

# sends NAME ARG…: netsend on a clock that goes only while it waits: at once, and NAME.sent has each datagram at its exact time (vclock.c).
sends()
{
	[ -e "$lib_scratch/vclock.so" ] || "${CC:-cc}" -O2 -shared -fPIC -o "$lib_scratch/vclock.so" "$TOP/tests/pipeline/vclock.c"
	VCLOCK_OUT=$1.sent ASAN_OPTIONS=verify_asan_link_order=0${ASAN_OPTIONS:+:$ASAN_OPTIONS} LD_PRELOAD=$lib_scratch/vclock.so \
		timeout 60 netsend "${@:2}"
}

# replay NAME OPTION…: netrecv hears what `sends NAME` sent, in no time: out.weir, err, stats.  less='EXPRESSION': without some of it (rtp.py).
replay()
{
	rtp pcap "$1.sent" "$1.pcap" "${less-False}"
	netrecv --stats=60 --stats-file stats --replay "$1.pcap" "${@:2}" >out.weir 2>err || fail "$(cat err)"
}

# says FILE EXPRESSION VALUE: of what was recorded or sent, by rtp.py.
says()
{
	eq "$(rtp eval "$1" "$2")" "$3" "$2"
}
