"""RTP for the tests, apart from the library: records datagrams, and says what is in them.

	rtp.py record FILE READY ADDRESS PORT [--seconds S] [--idle S] [--iface NAME] [--byes N]
		until N BYEs came (1), nothing came for so long (after the first), or the time is over
	rtp.py eval FILE EXPRESSION...   Python, over: p (RTP packets), rtcp (RTCP packets by part), d (datagrams), and what is defined here;
		FILE is what record wrote, or NAME.sent: what vclock.c wrote down
	rtp.py pcap NAME.sent NAME.pcap [EXPRESSION]   as a capture, less the datagrams that the expression is true of, over: flow and n (of its RTP
		packets), both from 0 and −1 for RTCP, and bye (the number of what says BYE, from 1; 0: it does not)
"""
import os
import pickle
import socket
import struct
import sys
import time
from types import SimpleNamespace as NS


def parse_rtp(t, data):
    assert data[0] >> 6 == 2, "version"
    n = 12 + 4 * (data[0] & 15)
    assert len(data) >= n
    if data[0] & 0x10:
        n += 4 + 4 * struct.unpack_from(">H", data, n + 2)[0]
    end = len(data) - (data[-1] if data[0] & 0x20 else 0)
    seq, ts, ssrc = struct.unpack(">HII", data[2:12])
    return NS(t=t, marker=data[1] >> 7, pt=data[1] & 127, seq=seq, ts=ts, ssrc=ssrc, payload=data[n:end])


def parse_rtcp(t, data):
    out, at = [], 0
    assert data[1] in (200, 201), "a compound begins with SR or RR"
    while at < len(data):
        assert data[at] >> 6 == 2
        n = 4 * (struct.unpack_from(">H", data, at + 2)[0] + 1)
        part = data[at : at + n]
        assert len(part) == n
        p = NS(t=t, type=part[1], count=part[0] & 31, body=part[4:])
        if p.type == 200:
            p.ssrc, p.ntp, p.ts, p.packets, p.bytes = struct.unpack(">IQIII", part[4:28])
        elif p.type == 202:
            p.ssrc, kind, length = struct.unpack(">IBB", part[4:10])
            p.cname = part[10 : 10 + length].decode() if kind == 1 else None
        elif p.type == 203:
            p.ssrc = struct.unpack(">I", part[4:8])[0]
        elif p.type == 204:
            p.ssrc, p.name = struct.unpack(">I4s", part[4:12])
            b = part[12:]
            if p.name == b"WEIR" and p.count == 1:
                p.flow, p.track, p.gen, p.pt, p.codec, p.sample, p.channels, p.first, p.all, p.rate, p.ts0, p.pos0, p.roc, p.seq, n_name, p.first_pos, p.end_pos, p.utc = \
                    struct.unpack(">IHBBBBHHHIIqIHHqqq", b[:64])
                p.label = b[64 : 64 + n_name].decode()
        out.append(p)
        at += n
    assert at == len(data)
    return out


def is_rtcp(data):
    return 192 <= data[1] <= 223


def record(path, ready, address, port, *options):
    o = dict(zip(options[::2], options[1::2]))
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, int(port)))
    if family == socket.AF_INET and 224 <= int(address.split(".")[0]) < 240:
        s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(address) + socket.inet_aton("127.0.0.1"))
    if family == socket.AF_INET6 and address.lower().startswith("ff"):
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(family, address) + struct.pack("I", socket.if_nametoindex(o.get("--iface", "lo"))))
    end = time.monotonic() + float(o.get("--seconds", 20))
    idle, byes, got = float(o.get("--idle", 3)), int(o.get("--byes", 1)), []
    open(ready, "w").close()
    while byes and time.monotonic() < end:
        s.settimeout(idle if got else max(0.01, end - time.monotonic()))
        try:
            data, source = s.recvfrom(65536)
        except socket.timeout:
            break
        got.append((time.monotonic(), source, data))
        if is_rtcp(data) and "--encrypted" not in o:
            byes -= sum(x.type == 203 for x in parse_rtcp(0, data))
    with open(path + ".part", "wb") as f:
        pickle.dump(got, f)
    os.rename(path + ".part", path)


def read_sent(path):
    """Datagrams as (seconds, port, bytes): of vclock.c, where times are exact."""
    data = open(path, "rb").read()
    at, out = 0, []
    while at < len(data):
        t_ns, n, port = struct.unpack_from("<qIH", data, at)
        out.append((t_ns / 1e9, port, data[at + 14 : at + 14 + n]))
        at += 14 + n
    return out


def late_ns(packets, rate):
    """By how much each went later than its timestamp says, measured from the first."""
    a = packets[0]
    return [round(((x.t - a.t) - ((x.ts - a.ts) % (1 << 32)) / rate) * 1e9) for x in packets]


def pcap(sent, path, without="False"):
    flows, counts, byes = {}, {}, 0
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101))  # raw IP, nanoseconds
        for t, port, data in read_sent(sent):
            flow = n = -1
            bye = 0
            if is_rtcp(data):
                if any(x.type == 203 for x in parse_rtcp(t, data)):
                    bye = byes = byes + 1
            else:
                flow = flows.setdefault(data[8:12], len(flows))
                n = counts[flow] = counts.get(flow, -1) + 1
            if eval(without, {"flow": flow, "n": n, "bye": bye}):
                continue
            packet = struct.pack(">BBHHHBBHII", 0x45, 0, 28 + len(data), 0, 0, 64, 17, 0, 0xC0000201, 0xC0000202) + struct.pack(">HHHH", 40000, port, 8 + len(data), 0) + data
            t_ns = round(t * 1e9)
            f.write(struct.pack("<IIII", t_ns // 10**9, t_ns % 10**9, len(packet), len(packet)) + packet)


def steps(values, bits):
    """Differences of numbers that wrap."""
    return [(b - a) % (1 << bits) for a, b in zip(values, values[1:])]


def l16(packets, channels):
    import numpy as np
    return np.frombuffer(b"".join(x.payload for x in packets), ">i2").reshape(-1, channels).astype(int)


def l24(packets, channels):
    import numpy as np
    b = np.frombuffer(b"".join(x.payload for x in packets), np.uint8).reshape(-1, 3).astype(int)
    v = b[:, 0] << 16 | b[:, 1] << 8 | b[:, 2]
    return np.where(v & 0x800000, v - 0x1000000, v).reshape(-1, channels)


def wav(path):
    """Samples of a PCM WAV as integers."""
    import numpy as np
    data = open(path, "rb").read()
    at, bits, channels = 12, 0, 0
    while True:
        name, n = data[at : at + 4], struct.unpack_from("<I", data, at + 4)[0]
        if name == b"fmt ":
            channels, bits = struct.unpack_from("<H", data, at + 10)[0], struct.unpack_from("<H", data, at + 22)[0]
        if name == b"data":
            break
        at += 8 + n + (n & 1)
    raw = data[at + 8 : at + 8 + n]
    if bits == 16:
        return np.frombuffer(raw, "<i2").reshape(-1, channels).astype(int)
    b = np.frombuffer(raw, np.uint8).reshape(-1, 3).astype(int)
    v = b[:, 0] | b[:, 1] << 8 | b[:, 2] << 16
    return np.where(v & 0x800000, v - 0x1000000, v).reshape(-1, channels)


def main():
    if sys.argv[1] == "record":
        record(*sys.argv[2:])
        return
    if sys.argv[1] == "pcap":
        pcap(*sys.argv[2:])
        return
    if sys.argv[2].endswith(".sent"):
        d = read_sent(sys.argv[2])
    else:
        with open(sys.argv[2], "rb") as f:
            d = pickle.load(f)
    scope = dict(globals())
    scope["d"] = d
    scope["p"] = [parse_rtp(t, x) for t, _, x in d if not is_rtcp(x)]
    scope["rtcp"] = [y for t, _, x in d if is_rtcp(x) for y in parse_rtcp(t, x)]
    scope["sr"] = [x for x in scope["rtcp"] if x.type == 200]
    scope["app"] = [x for x in scope["rtcp"] if x.type == 204]
    scope["bye"] = [x for x in scope["rtcp"] if x.type == 203]
    for e in sys.argv[3:]:
        v = eval(e, scope)
        print(v)


main()
