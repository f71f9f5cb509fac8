"""Two network namespaces with a wire between that loses packets: real loss, under TCP too.

	lossy.py PERCENT SEED RESETS COMMAND...    in a namespace of our own (unshare -rn): here is 10.9.0.1, and COMMAND runs at 10.9.0.2

RESETS times, every 1500 packets, the TCP connection that is in use is torn down on both sides (RFC 9293 section 3.5.2).
Says "ready" on standard error when the wire carries.  Ends with COMMAND, with its status; SIGINT and SIGTERM go to it.  The last line on standard error
says how many packets went and were lost.
"""
import array
import ctypes
import fcntl
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000


def tun(name, address):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    for words in (["addr", "add", address, "dev", name], ["link", "set", name, "up"], ["link", "set", "lo", "up"]):
        subprocess.run(["ip"] + words, check=True)
    return fd


def far_side(link, command):
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        sys.exit("lossy: no network namespace")
    fd = tun("far", "10.9.0.2/24")
    link.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    link.recv(1)
    os.execvp(command[0], command)


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def reset(source, target, source_port, target_port, seq):
    """An IPv4 packet with a TCP reset."""
    def tcp(check):
        return struct.pack(">HHIIBBHHH", source_port, target_port, seq, 0, 5 << 4, 4, 0, check, 0)

    def ip(check):
        return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40, 0, 0, 64, 6, check, source, target)

    pseudo = source + target + struct.pack(">BBH", 0, 6, 20)
    return ip(checksum(ip(0))) + tcp(checksum(pseudo + tcp(0)))


def tear_down(packet, sender_fd, other_fd):
    """Both sides of the connection that a packet with an acknowledgement belongs to.  Returns: it was one."""
    if packet[0] >> 4 != 4 or packet[9] != 6:
        return False
    head = (packet[0] & 15) * 4
    ports = struct.unpack_from(">HH", packet, head)
    seq, ack = struct.unpack_from(">II", packet, head + 4)
    if packet[head + 13] & 0x17 != 0x10:
        return False
    source, target = packet[12:16], packet[16:20]
    os.write(sender_fd, reset(target, source, ports[1], ports[0], ack))
    os.write(other_fd, reset(source, target, ports[0], ports[1], seq))
    return True


def main():
    share, seed, resets, command = float(sys.argv[1]) / 100, int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if not pid:
        ours.close()
        far_side(theirs, command)
    theirs.close()
    _, control, _, _ = ours.recvmsg(1, 64)
    far = array.array("i", control[0][2])[0]
    near = tun("near", "10.9.0.1/24")
    chance = random.Random(seed)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, _: os.kill(pid, n))
    ours.send(b"x")
    print("ready", file=sys.stderr, flush=True)
    sent = lost = torn = 0
    status = None
    while status is None:
        ready, _, _ = select.select([near, far], [], [], 0.05)
        for fd in ready:
            for _ in range(64):
                try:
                    packet = os.read(fd, 65536)
                except BlockingIOError:
                    break
                sent += 1
                other = far if fd == near else near
                if torn < resets and sent > 1500 * (torn + 1) and tear_down(packet, fd, other):
                    torn += 1
                    continue
                if chance.random() < share:
                    lost += 1
                    continue
                try:
                    os.write(other, packet)
                except OSError:
                    lost += 1
        done, how = os.waitpid(pid, os.WNOHANG)
        if done:
            status = os.waitstatus_to_exitcode(how)
    print(f"lossy: {sent} packets, {lost} lost, {torn} connections torn down", file=sys.stderr)
    sys.exit(status if status >= 0 else 128 - status)


main()
