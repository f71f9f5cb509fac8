#!/bin/bash
# A session that is announced is found by mDNS, through a real Avahi daemon on a bus of its own.
if [ -z "${WEIR_TEST_MDNS-}" ] && [ "$(id -u)" = 0 ] && unshare -nm true 2>/dev/null; then
	# A network, and a /run, that nobody else sees.
	WEIR_TEST_MDNS=1 exec unshare -nm --propagation private bash "$0" "$@"
fi
. "$(dirname "$0")/../lib.sh"

found_by_mdns()
{
	cat >bus.conf <<'X'
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=/run/dbus/system_bus_socket</listen><policy context="default"><allow user="*"/><allow own="*"/>
<allow send_destination="*"/><allow receive_type="method_call"/><allow receive_type="signal"/><allow receive_type="method_return"/>
<allow receive_type="error"/></policy></busconfig>
X
	dbus-daemon --config-file="$PWD/bus.conf" --nofork --nopidfile 2>/dev/null &
	local bus=$!
	wait_for 5 test -S /run/dbus/system_bus_socket
	printf '[server]\nuse-ipv6=no\n' >avahi.conf
	avahi-daemon --no-drop-root --no-chroot --no-rlimits -f "$PWD/avahi.conf" >avahi.log 2>&1 &
	local daemon=$!
	wait_for 10 grep -q "Server startup complete" avahi.log
	mkfifo in.fifo
	netrecv --browse -d 20s --json >found.json 2>err &
	local browser=$!
	capture --realtime -d 15s gen:sine -c 2 | encode >in.fifo &
	netsend --announce --session "Band room" rtp://239.1.2.3:5004 in.fifo 2>send.err &
	local sender=$!
	wait_for 10 grep -q mDNS found.json
	kill -INT $sender $browser
	wait $sender $browser || :
	kill $daemon $bus
	wait $daemon $bus || :
	grep mDNS found.json >found.mdns
	eq "$(json found.mdns 'd["name"], d["url"], d["codec"], d["rate_hz"], d["channels"]')" \
		'["Band room", "rtp://239.1.2.3:5004?pt=111&codec=opus&rate=48000&channels=2", "opus", 48000, 2]'
}

[ -n "${WEIR_TEST_MDNS-}" ] || skip_all "the daemon needs root, and a network namespace"
have avahi-daemon && have dbus-daemon || skip_all "avahi-daemon or dbus-daemon is not installed"
mount -t tmpfs none /run && mkdir -p /run/avahi-daemon /run/dbus
ip link set lo up multicast on
ip link add mc0 type veth peer name mc1 && ip link set mc0 up && ip link set mc1 up && ip addr add 10.7.0.1/24 dev mc0
ip route add 224.0.0.0/4 dev mc0
test_case "a session is found by mDNS" found_by_mdns
done_testing
