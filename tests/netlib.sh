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

rtp()
{
	"$PYTHON" "$TOP/tests/pipeline/rtp.py" "$@"
}

# listen NAME ADDRESS PORT [OPTION…]: records datagrams to NAME.rec in the background, until BYE; ready when this returns.
listen()
{
	local name=$1
	rm -f "$name.ready"
	rtp record "$name.rec" "$name.ready" "${@:2}" &
	wait_for 10 test -e "$name.ready"
}

# udp_bound PORT: somebody has bound it.
udp_bound()
{
	local hex
	hex=$(printf '%04X' "$1")
	command grep -Eq "^ *[0-9]+: [0-9A-F]+:$hex " /proc/net/udp /proc/net/udp6
}
