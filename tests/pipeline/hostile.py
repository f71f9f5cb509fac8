"""Strangers, for tests/pipeline/1260-hostile.sh.

	hostile.py tap FILE PORT N              N datagrams that come to the port, as tests/hostile/flood.c reads them, and where from to
	                                        FILE.from; then it takes what comes, until it is killed
	hostile.py ask FILE PORT N SECONDS      the first N of them, from a port of its own; prints bytes sent and bytes that came back
	hostile.py links PORT SECONDS N         N connections at once from 127.0.0.9, kept full: silent, garbage, drips, half a packet
	hostile.py hold PORT N                  N connections from 127.0.0.9 that say nothing; then makes the file held, and waits
	hostile.py reports SSRC SOURCE          forged receiver reports to every UDP port of 127.0.0.1 but 5004 and 5005
"""
import os
import random
import select
import socket
import struct
import sys
import time


def tap(path, port, n):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", int(port)))
    out, i = b"", 0
    while True:
        data, source = s.recvfrom(2000)
        i += 1
        if i > int(n):
            continue
        out += struct.pack("=H", len(data)) + data
        if i == int(n):
            with open(path + ".from", "w") as f:
                f.write("%s:%d\n" % source)
            with open(path + ".new", "wb") as f:
                f.write(out)
            os.rename(path + ".new", path)


def datagrams(path):
    data, at, out = open(path, "rb").read(), 0, []
    while at < len(data):
        (n,) = struct.unpack_from("=H", data, at)
        out.append(data[at + 2 : at + 2 + n])
        at += 2 + n
    return out


def ask(path, port, n, seconds):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.9", 0))
    sent = back = 0
    for data in datagrams(path)[: int(n)]:
        sent += s.sendto(data, ("127.0.0.1", int(port)))
        time.sleep(0.002)
    end = time.monotonic() + float(seconds)
    while (left := end - time.monotonic()) > 0:
        if select.select([s], [], [], left)[0]:
            back += len(s.recv(2000))
    print(sent, back)


def links(port, seconds, n):
    r, end, open_, back = random.Random(1), time.monotonic() + float(seconds), [], 0
    n_all = 0
    while time.monotonic() < end:
        while len(open_) < int(n):
            s = socket.socket()
            s.bind(("127.0.0.9", 0))
            s.setblocking(False)
            s.connect_ex(("127.0.0.1", int(port)))
            open_.append((s, n_all % 4))
            n_all += 1
        for s, kind in list(open_):
            try:
                data = s.recv(65536)
                back += len(data)
                if not data:
                    raise ConnectionError
            except BlockingIOError:
                pass
            except OSError:
                s.close()
                open_.remove((s, kind))
                continue
            try:
                if kind == 1:
                    s.send(r.randbytes(3000))
                elif kind == 2:
                    s.send(r.randbytes(1))
                elif kind == 3:  # sync, and a header that never ends
                    s.send(b"WEIR"[: r.randrange(4)])
            except OSError:
                pass
        time.sleep(0.002)
    print(n_all, back)


def hold(port, n):
    all_ = []
    for _ in range(int(n)):
        s = socket.socket()
        s.bind(("127.0.0.9", 0))
        s.connect(("127.0.0.1", int(port)))
        all_.append(s)
    time.sleep(0.1)  # so that all of them are taken
    open("held", "w").close()
    time.sleep(20)


def reports(ssrc, source):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((source, 0))
    # All lost, and a jitter of seconds.
    rr = struct.pack(">BBHII", 0x81, 201, 7, 0xBAD, int(ssrc)) + struct.pack(">IIIII", 0xFF7FFFFF, 1, 0x7FFFFFFF, 0, 0)
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        for line in open(table).readlines()[1:]:
            port = int(line.split()[1].split(":")[1], 16)
            if port not in (5004, 5005):
                for _ in range(10):
                    s.sendto(rr, ("127.0.0.1", port))


if __name__ == "__main__":
    {"tap": tap, "ask": ask, "links": links, "hold": hold, "reports": reports}[sys.argv[1]](*sys.argv[2:])
