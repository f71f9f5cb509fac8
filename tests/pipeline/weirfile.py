"""Weir streams for the tests, apart from the library: edits packets, takes samples out.

	weirfile.py edit IN OUT OP...      OPs count the DATA packets of a track from 0, as they are in IN:
		drop:TRACK:FIRST-LAST      leave packets out
		gap:TRACK:FIRST-LAST:REASON   make GAP packets of them
		dur:TRACK:INDEX:DUR        say another duration
		byte:TRACK:INDEX:OFFSET:VALUE   change a byte of the payload
		empty:TRACK:INDEX          no payload
		keep:TRACK:N               leave out what follows the first N packets, END too
	weirfile.py make OUT OP...         a stream by hand; positions and lengths are in frames
		track:TRACK:KIND:CODEC:RATE:CHANNELS:SAMPLE:FIRST   announce it, or anew (KIND 1 audio, 2 video, 3 data; CODEC 1 PCM)
		data:TRACK:POS:DUR:N[:FLAGS[:BYTES]]   N packets one behind the other, the first with FLAGS; of s16, all channels
			of frame p are 1 + p % 30000; BYTES: a payload of so many bytes 0x5A instead
		gap:TRACK:POS:DUR:REASON
		end:TRACK                  of the track; 0 of the stream, which is not there by itself
	weirfile.py pcm IN TRACK OUT       samples of a PCM track at their positions, zeros in holes; prints the first position
	weirfile.py list IN [TRACK]        TYPE pos dur flags reason, one packet a line
"""
import struct
import sys

TABLE = []
for i in range(256):
    c = i
    for _ in range(8):
        c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    TABLE.append(c)


def crc32c(data):
    c = 0xFFFFFFFF
    for b in data:
        c = c >> 8 ^ TABLE[(c ^ b) & 255]
    return c ^ 0xFFFFFFFF


class Packet:
    def __init__(self, head, payload):
        self.head, self.payload = bytearray(head), bytes(payload)
        self.type, self.flags = head[5], struct.unpack_from("<H", head, 6)[0]
        self.track = struct.unpack_from("<H", head, 12)[0]
        self.pos, self.dur = struct.unpack_from("<qI", head, 16)

    def pack(self):
        h = self.head
        h[5] = self.type
        n = len(self.payload)
        struct.pack_into("<HI", h, 6, self.flags, n)
        struct.pack_into("<qI", h, 16, self.pos, self.dur)
        struct.pack_into("<II", h, 40, 0, n)
        struct.pack_into("<I", h, 56, crc32c(self.payload) if self.flags & 0x20 else 0)
        struct.pack_into("<I", h, 60, crc32c(bytes(h[:60]) + bytes(h[64:])))
        return bytes(h) + self.payload + b"\0" * (-n % 64)


def read(path):
    data = open(path, "rb").read()
    at = 0
    while at < len(data):
        n, hunits = struct.unpack_from("<I", data, at + 8)[0], data[at + 15]
        head = at + 64 * hunits
        yield Packet(data[at:head], data[head : head + n])
        at = head + (n + 63) // 64 * 64


def edit(path, out, ops):
    counts = {}
    with open(out, "wb") as f:
        for p in read(path):
            place = None
            if p.type == 3:
                place = counts.get(p.track, 0)
                counts[p.track] = place + 1
            left_out = False
            for op in ops:
                name, track, *rest = op.split(":")
                if int(track) != p.track and name != "keep":
                    continue
                if name == "keep":
                    if counts.get(int(track), 0) > int(rest[0]) or (p.type == 6 and counts.get(int(track), 0) >= int(rest[0])):
                        left_out = True
                    continue
                if place is None:
                    continue
                first, _, last = rest[0].partition("-")
                if not int(first) <= place <= int(last or first):
                    continue
                if name == "drop":
                    left_out = True
                elif name == "gap":
                    p.type, p.flags = 4, p.flags & 0x20
                    p.payload = struct.pack("<HHIQqQ", int(rest[1]), 0, 1, 0, -(1 << 63), 0)
                elif name == "dur":
                    p.dur = int(rest[1])
                elif name == "byte":
                    b = bytearray(p.payload)
                    b[int(rest[1])] = int(rest[2])
                    p.payload = bytes(b)
                elif name == "empty":
                    p.payload = b""
                else:
                    sys.exit("unknown edit " + op)
            if not left_out:
                f.write(p.pack())


class Maker:
    """Packs what `make` is asked for."""

    UUID, NO_TIME = bytes(range(1, 17)), -(1 << 63)

    def __init__(self, f):
        self.f, self.n, self.seq, self.gen, self.channels = f, 0, {}, {}, {}
        self.put(1, 0, struct.pack("<16sqIIIIHBBiQQ", self.UUID, self.NO_TIME, 0, 65536, 0, 0, 0, 0, 0, 0, 0, 0))

    def put(self, kind, track, payload, pos=0, dur=0, flags=0, seq=0):
        h = bytearray(64)
        n = len(payload)
        struct.pack_into("<IBBHIHBBqIIqIIIII", h, 0, 0xD2494557, 0x10, kind, flags, n, track, self.gen.get(track, 0), 1, pos, dur,
                         seq, self.NO_TIME, 0, n, 0, int.from_bytes(self.UUID[:4], "little"), 0)
        struct.pack_into("<I", h, 60, crc32c(h[:60]))
        self.f.write(bytes(h) + payload + b"\0" * (-n % 64))
        self.n += 1

    def track(self, track, kind, codec, rate, channels, sample, first):
        self.gen[track] = (self.gen.get(track, -1) + 1) % 256
        self.channels[track] = channels
        frame_bytes = [0, 2, 3, 4, 4, 4, 8][sample] * channels
        common = struct.pack("<BBHIIIqqIIIIqHBBI", kind, 0, codec, rate, 1, 0, first, first, 0, 0, 0, 0, self.NO_TIME, 0,
                             self.gen[track], 0, 0)
        rest = struct.pack("<HBBHH", channels, sample, 0, frame_bytes, 0) if kind == 1 else b""
        self.put(2, track, common + rest + b"\0" * (64 - len(rest)))

    def data(self, track, pos, dur, n, flags=0, n_bytes=None):
        for i in range(n):
            at = pos + i * dur
            if n_bytes is None:
                payload = b"".join(struct.pack("<h", 1 + p % 30000) * self.channels[track] for p in range(at, at + dur))
            else:
                payload = b"\x5a" * n_bytes
            seq = self.seq.get(track, 0)
            self.seq[track] = seq + 1
            self.put(3, track, payload, at, dur, 1 | (flags if i == 0 else 0), seq)

    def gap(self, track, pos, dur, reason):
        self.put(4, track, struct.pack("<HHIQqQ", reason, 0, 1, 0, self.NO_TIME, 0), pos, dur)

    def end(self, track):
        self.put(6, track, struct.pack("<HHIQQqQ24x", 0, 0, 0, self.n, 0, 0, 0))


def make(out, ops):
    with open(out, "wb") as f:
        maker = Maker(f)
        for op in ops:
            name, *numbers = op.split(":")
            getattr(maker, name)(*(int(n, 0) for n in numbers))


def pcm(path, track, out):
    frame, pieces = 0, {}
    for p in read(path):
        if p.track != track:
            continue
        if p.type == 2:
            frame = struct.unpack_from("<H", p.payload, 68)[0]
        elif p.type == 3:
            assert len(p.payload) == p.dur * frame, (len(p.payload), p.dur, frame)
            assert p.pos not in pieces
            pieces[p.pos] = p.payload
    if not pieces:
        open(out, "wb").close()
        print(0)
        return
    first = min(pieces)
    end = max(pos + len(b) // frame for pos, b in pieces.items())
    all_bytes = bytearray((end - first) * frame)
    for pos, b in pieces.items():
        all_bytes[(pos - first) * frame : (pos - first) * frame + len(b)] = b
    open(out, "wb").write(all_bytes)
    print(first)


def show(path, track):
    names = {1: "STREAM", 2: "TRACK", 3: "DATA", 4: "GAP", 5: "CLOCK", 6: "END", 7: "SKIP"}
    for p in read(path):
        if track and p.track != track:
            continue
        reason = struct.unpack_from("<H", p.payload)[0] if p.type == 4 else 0
        print(names.get(p.type, p.type), p.pos, p.dur, "%04x" % (p.flags & ~0x20), reason)


if __name__ == "__main__":
    what, args = sys.argv[1], sys.argv[2:]
    if what == "edit":
        edit(args[0], args[1], args[2:])
    elif what == "make":
        make(args[0], args[1:])
    elif what == "pcm":
        pcm(args[0], int(args[1]), args[2])
    else:
        show(args[0], int(args[1]) if len(args) > 1 else 0)
