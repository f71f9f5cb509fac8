# For tests that send datagrams, after lib.sh.  net_begin runs the script again in a network namespace of its own, so that
# ports may be fixed: nobody else is there.  It has lo, with IPv4, IPv6 and multicast, and nothing beyond.

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
	ip -6 route add ff00::/8 dev lo table local 2>/dev/null || :
	wait_for 5 eval 'ip -6 addr show dev lo | grep -q "::1/128"' || :
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
