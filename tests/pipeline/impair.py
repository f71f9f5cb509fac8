"""What impair must do, told apart from it: the fate of packets by seed, and programs that talk through its proxy.

	impair.py lost SEED TRACK LOSS BURST N     the numbers of lost packets, one a line (BURST 0: each by itself)
	impair.py talk FAMILY PORT TARGET N [BYTES]   N numbered datagrams to PORT, echoed by a server on TARGET; prints a JSON object
"""
import json
import select
import socket
import struct
import sys
import time

MASK = (1 << 64) - 1


class Random:
    """xoshiro256** from splitmix64, the sequence `which` of a seed."""

    def __init__(self, seed, which):
        state = seed ^ which * 0xD1342543DE82EF95 & MASK
        self.s = []
        for _ in range(4):
            state = state + 0x9E3779B97F4A7C15 & MASK
            z = state
            z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
            z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
            self.s.append(z ^ z >> 31)

    def uniform(self):
        s = self.s
        x = s[1] * 5 & MASK
        result = ((x << 7 | x >> 57) & MASK) * 9 & MASK
        t = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = (s[3] << 45 | s[3] >> 19) & MASK
        return (result >> 11) / (1 << 53)


def lost(seed, track, loss, burst, n):
    r = Random(seed + track * 0x9E3779B97F4A7C15 & MASK, 1)
    bad = False
    for i in range(n):
        u = r.uniform()
        if not burst:
            bad = u < loss
        elif bad:
            bad = u >= 1 / burst
        else:
            bad = u < loss / (burst * (1 - loss))
        if bad:
            yield i


def talk(family, port, target, n, size):
    """Sends at 1 kHz from one socket, a server echoes; what came there and back, with when."""
    af = socket.AF_INET6 if family == "6" else socket.AF_INET
    host = "::1" if family == "6" else "127.0.0.1"
    server, client = socket.socket(af, socket.SOCK_DGRAM), socket.socket(af, socket.SOCK_DGRAM)
    for s in (server, client):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    server.bind((host, target))
    client.connect((host, port))
    sent, there, back, cut = {}, [], [], 0
    start, last = time.monotonic(), time.monotonic()
    pad = bytes(size - 4)
    while True:
        now = time.monotonic()
        if len(sent) < n and now >= start + len(sent) * 0.001:
            i = len(sent)
            sent[i] = now
            client.send(struct.pack("<I", i) + pad)
            last = now
        elif len(sent) == n and now - last > 0.3:
            break
        for s in select.select([server, client], [], [], 0.0005)[0]:
            data, addr = s.recvfrom(65536)
            now = last = time.monotonic()
            cut += len(data) != size
            i = struct.unpack_from("<I", data)[0]
            if s is server:
                there.append((i, now - sent[i]))
                server.sendto(data, addr)
            else:
                back.append((i, now - sent[i]))
    order = [i for i, _ in there]
    print(json.dumps({
        "sent": len(sent), "there": len(there), "back": len(back), "distinct": len(set(order)), "cut": cut,
        "lost": sorted(set(sent) - set(order)), "backwards": sum(b < a for a, b in zip(order, order[1:])),
        "min_ms": 1000 * min((t for _, t in there), default=0), "round_min_ms": 1000 * min((t for _, t in back), default=0),
        "median_ms": 1000 * sorted(t for _, t in there)[len(there) // 2] if there else 0,
        "max_ms": 1000 * max((t for _, t in there), default=0),
    }))


if sys.argv[1] == "lost":
    for i in lost(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6])):
        print(i)
else:
    talk(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6]) if len(sys.argv) > 6 else 100)
