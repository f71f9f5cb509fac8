"""Makes Ogg Opus files with made-up packets, whole or bent the way files in the field are.

oggfile.py OUT [key=value ...]: packets=30 dur=960 preskip=312 trim=0 page=5 (packets on a page) serial=1 channels=2
title=T offset=0 (added to the granule positions) shift=0 (likewise, on audio pages but the last) damage=N (a byte of page N)
remove=N (page N) headers=1 (no audio) eos=0 (no end) empty_end=1 (an end page with an empty packet) bytes=80
Packet k is its first byte (TOC), then bytes of value k.
"""
import struct
import sys

TOC = {120: 28, 240: 29, 480: 30, 960: 31}


def make_table():
    table = []
    for i in range(256):
        r = i << 24
        for _ in range(8):
            r = (r << 1) ^ 0x04C11DB7 if r & 0x80000000 else r << 1
        table.append(r & 0xFFFFFFFF)
    return table


TABLE = make_table()


def crc(data):
    r = 0
    for b in data:
        r = (r << 8 & 0xFFFFFFFF) ^ TABLE[(r >> 24) ^ b]
    return r


def page(serial, number, granule, flags, packets):
    lacing = b"".join(b"\xff" * (len(p) // 255) + bytes([len(p) % 255]) for p in packets)
    head = b"OggS" + struct.pack("<BBqIII", 0, flags, granule, serial, number, 0) + bytes([len(lacing)]) + lacing
    whole = head + b"".join(packets)
    return whole[:22] + struct.pack("<I", crc(whole)) + whole[26:]


def make(**o):
    def get(key, default):
        return int(o.get(key, default))

    serial, channels, dur, preskip = get("serial", 1), get("channels", 2), get("dur", 960), get("preskip", 312)
    n, per_page, offset = get("packets", 30), get("page", 5), get("offset", 0)
    comments = [("TITLE=" + o.get("title", "T")).encode()]
    tags = b"OpusTags" + struct.pack("<I", 4) + b"test" + struct.pack("<I", len(comments))
    tags += b"".join(struct.pack("<I", len(c)) + c for c in comments)
    pages = [
        page(serial, 0, 0, 2, [b"OpusHead" + struct.pack("<BBHIhB", 1, channels, preskip, 44100, 0, 0)]),
        page(serial, 1, 0, 0, [tags]),
    ]
    packets = [bytes([TOC[dur] << 3 | (4 if channels == 2 else 0)]) + bytes([k % 256]) * (get("bytes", 80) + k % 7) for k in range(n)]
    groups = [packets[i : i + per_page] for i in range(0, n, per_page)]
    done = 0
    for i, group in enumerate(groups):
        last = i + 1 == len(groups)
        done += dur * len(group)
        granule = offset + (done - get("trim", 0) if last else done + get("shift", 0))
        ends = last and get("eos", 1) and not get("empty_end", 0)
        pages.append(page(serial, len(pages), granule, 4 if ends else 0, group))
    if get("empty_end", 0):
        pages.append(page(serial, len(pages), offset + done, 4, [b""]))
    if get("headers", 0):
        pages = pages[:2]
    if "damage" in o:
        k = get("damage", 0)
        pages[k] = pages[k][:60] + bytes([pages[k][60] ^ 1]) + pages[k][61:]
    if "remove" in o:
        del pages[get("remove", 0)]
    return b"".join(pages)


if __name__ == "__main__":
    with open(sys.argv[1], "wb") as f:
        f.write(make(**dict(a.split("=", 1) for a in sys.argv[2:])))
