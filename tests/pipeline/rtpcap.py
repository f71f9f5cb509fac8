"""Captures of RTP for the tests, made packet by packet: L16, one channel, 48 kHz, payload type 96; sample n is n mod 65536.

	rtpcap.py OUT.pcap SCENARIO [SEED]
"""
import random
import struct
import sys

DUR = 240  # 5 ms
NS = 1_000_000_000


def rtp(seq, ts, payload, ssrc=0x11111111, pt=96, marker=0):
    return struct.pack(">BBHII", 0x80, marker << 7 | pt, seq & 0xFFFF, ts & 0xFFFFFFFF, ssrc) + payload


def sound(n, dur=DUR):
    return b"".join(struct.pack(">H", (n + i) & 0xFFFF) for i in range(dur))


def frame(data, source=(192, 0, 2, 1), port=40000, to=5004):
    udp = struct.pack(">HHHH", port, to, 8 + len(data), 0) + data
    ip = struct.pack(">BBHHHBBH4B4B", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, *source, 192, 0, 2, 2)
    return ip + udp


def write(path, arrivals):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101))  # raw IP, nanoseconds
        for t, data in sorted(arrivals, key=lambda a: a[0]):
            t += 1000 * NS
            f.write(struct.pack("<IIII", t // NS, t % NS, len(data), len(data)) + data)


def packets(n, first=0, seq0=1000, ts0=5000, start=0, ssrc=0x11111111, sound0=0):
    """(arrival, seq, ts, frame number) of n packets at their pace."""
    return [(start + i * 5_000_000, seq0 + i, ts0 + i * DUR, sound0 + i * DUR, ssrc) for i in range(first, n)]


def plain(list_):
    return [(t, frame(rtp(s, ts, sound(n), ssrc))) for t, s, ts, n, ssrc in list_]


def scenario(name, seed):
    r = random.Random(seed)
    if name == "wrap":
        return plain(packets(400, seq0=65400, ts0=2**32 - 100 * DUR))
    if name == "reorder":  # neighbours swapped, every tenth packet twice, one 60 ms late, one lost
        out = []
        for i, p in enumerate(packets(400)):
            t = p[0] + (7_000_000 if i % 4 == 1 and i > 9 else 0)
            if i == 200:
                continue
            t += 60_000_000 if i == 100 else 0
            out += plain([(t, *p[1:])])
            if i % 10 == 5:
                out += plain([(t + 1_000_000, *p[1:])])
        return out
    if name == "silence":  # timestamps go on, numbers do not
        a = packets(100)
        return plain(a + [(t + NS, s, ts + 48000, n + 48000, x) for t, s, ts, n, x in packets(200, first=100)])
    if name == "back":  # timestamps fall back
        return plain(packets(200) + [(t, s, ts - 3_000_000_000, n, x) for t, s, ts, n, x in packets(400, first=200)])
    if name == "restart":  # another SSRC after half a second
        return plain(packets(200) + packets(200, start=1_500_000_000, ssrc=0x22222222, seq0=7, ts0=99, sound0=48000))
    if name == "strangers":  # noise, other payload types, cut packets, another address with the same SSRC
        out = plain(packets(400))
        for i in range(4000):
            t = r.randrange(2 * NS)
            kind = r.randrange(5)
            if kind == 0:
                out.append((t, frame(r.randbytes(r.randrange(0, 200)), (192, 0, 2, r.randrange(1, 250)))))
            elif kind == 1:
                out.append((t, frame(rtp(r.randrange(65536), r.randrange(2**32), r.randbytes(80), r.randrange(2**32), 8), (192, 0, 2, 9))))
            elif kind == 2:
                out.append((t, frame(rtp(1000 + t // 5_000_000, 5000, r.randbytes(480)), (198, 51, 100, 1))))
            elif kind == 3:
                out.append((t, frame(rtp(1, 2, b"")[: r.randrange(12)])))
            else:
                out.append((t, frame(b"\x80\xc8" + r.randbytes(r.randrange(60)), (192, 0, 2, 1))))
        return out
    if name == "jitter":  # exponential delays, 1 % loss, a sender 80 ppm fast
        out = []
        for t, s, ts, n, x in packets(int(seed_length)):
            if r.random() < 0.01:
                continue
            out += plain([(int(t / 1.00008 + r.expovariate(1 / 2e6)), s, ts, n, x)])
        return out
    if name == "crowd":  # 40 senders
        out = []
        for k in range(40):
            out += plain(packets(100, ssrc=1000 + k, start=k * 100_000))
        return out
    raise SystemExit("no such scenario: " + name)


seed_length = sys.argv[4] if len(sys.argv) > 4 else 2000
write(sys.argv[1], scenario(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1))
