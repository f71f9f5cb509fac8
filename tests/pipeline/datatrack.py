"""Streams with a reliable data track, made apart from the library.

	datatrack.py make COUNT BYTES       a live stream on stdout: COUNT messages of BYTES each, that begin with their number
	datatrack.py many TRACKS            a stream of so many tracks, each with one message
	datatrack.py shift FILE SAMPLE      by how many ms message m is later than m ms, and sample n of gen:count (s16, mono) later than n
	                                    frames at 48 kHz, for n = SAMPLE < 65536
	datatrack.py messages FILE          number, length and CRC-32 of each message of the data tracks, a line each
"""
import struct
import sys
import zlib

from weirfile import crc32c, read

SID = 0x12345678


def packet(kind, track, payload, pos=0, dur=0, seq=0):
    head = bytearray(64)
    struct.pack_into("<IBBHIHBBqIIqIIIII", head, 0, 0xD2494557, 0x10, kind, 1, len(payload), track, 0, 1, pos, dur, seq,
                     -2**63, 0, len(payload), 0, SID, 0)
    head[60:] = struct.pack("<I", crc32c(head[:60]))
    return bytes(head) + payload + bytes(-len(payload) % 64)


def stream():
    return packet(1, 0, struct.pack("<I12xqIIIIHBBiQQ", SID, -2**63, 1, 65536, 0, 0, 1, 0, 0, 0, 0, 0))


def track(number):
    announcement = bytearray(128)
    struct.pack_into("<BBHII", announcement, 0, 3, 1, 0x20, 1000, 1)
    struct.pack_into("<I", announcement, 40, 65536)
    return packet(2, number, bytes(announcement) + struct.pack("<HHI8s", 1, 0, 4, b"cues"))


def many(tracks):
    out = sys.stdout.buffer
    out.write(stream())
    for i in range(tracks):
        out.write(track(i + 1) + packet(3, i + 1, b"%d" % i, i, 1))
    out.write(packet(6, 0, bytes(64)))


def make(count, size):
    out = sys.stdout.buffer
    out.write(stream() + track(3))
    for i in range(count):
        message = b"%d " % i
        out.write(packet(3, 3, message + bytes((i + k) & 255 for k in range(7)) + b"." * (size - len(message) - 7), i, 1, i))
    out.write(packet(6, 0, bytes(64)))


def messages(path):
    for p in read(path):
        if p.type == 3:
            print(p.payload.split(b" ")[0].decode("latin-1"), len(p.payload), zlib.crc32(p.payload))


def shift(path, sample):
    data = sound = None
    kinds = {}
    for p in read(path):
        if p.type == 2:
            kinds[p.track] = p.payload[0]
        if p.type != 3:
            continue
        if kinds[p.track] == 3:
            data = p.pos - int(p.payload.split(b" ")[0])
        elif sound is None:
            values = struct.unpack(f"<{len(p.payload) // 2}h", p.payload)
            if (sample + 32768) % 65536 - 32768 in values:
                sound = (p.pos + values.index((sample + 32768) % 65536 - 32768) - sample) / 48
    print(round(data), round(sound), round(data - sound))


if sys.argv[1] == "make":
    make(int(sys.argv[2]), int(sys.argv[3]))
elif sys.argv[1] == "many":
    many(int(sys.argv[2]))
elif sys.argv[1] == "shift":
    shift(sys.argv[2], int(sys.argv[3]))
else:
    messages(sys.argv[2])
