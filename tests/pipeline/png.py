"""Reads PNGs; fails where one is not valid.  read(PATH) gives the pixels, rows × columns × 3.

	png.py size PATH...     width and height of each, the pixels only counted
	png.py look PATH        width, height and number of colours
"""
import struct, sys, zlib
import numpy as np


def chunks(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    at = 8
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + n]
        assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + n : at + 12 + n])[0], kind
        yield kind, body
        at += 12 + n
    assert at == len(data) and kind == b"IEND"


def paeth(row, above, step):
    out = bytearray(row)
    above = bytes(above)
    for i in range(len(out)):
        a = out[i - step] if i >= step else 0
        b = above[i]
        c = above[i - step] if i >= step else 0
        pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
        out[i] = (out[i] + (a if pa <= pb and pa <= pc else b if pb <= pc else c)) & 255
    return out


def average(row, above, step):
    out = bytearray(row)
    for i in range(len(out)):
        out[i] = (out[i] + ((out[i - step] if i >= step else 0) + int(above[i])) // 2) & 255
    return out


def unpack(path):
    """The header and the filtered rows, whose length is right."""
    body, header = b"", None
    for kind, part in chunks(open(path, "rb").read()):
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", part)
        elif kind == b"IDAT":
            body += part
    width, height, depth, colour, compression, filters, interlace = header
    assert (depth, compression, filters, interlace) == (8, 0, 0, 0) and colour in (2, 6), header
    step = 3 if colour == 2 else 4
    return width, height, step, np.frombuffer(zlib.decompress(body), np.uint8).reshape(height, 1 + width * step)


def read(path):
    width, height, step, raw = unpack(path)
    rows = np.zeros((height + 1, width * step), np.uint8)
    for y in range(height):
        kind, row, above = raw[y, 0], raw[y, 1:], rows[y]
        if kind == 1:
            row = np.cumsum(row.reshape(-1, step), axis=0, dtype=np.uint64).astype(np.uint8).reshape(-1)
        elif kind == 2:
            row = row + above
        elif kind == 3:
            row = np.frombuffer(average(row, above, step), np.uint8)
        elif kind == 4:
            row = np.frombuffer(paeth(row, above, step), np.uint8)
        else:
            assert kind == 0, kind
        rows[y + 1] = row
    return rows[1:].reshape(height, width, step)[:, :, :3].astype(int)


if __name__ == "__main__":
    if sys.argv[1] == "size":
        print(*("%d %d" % unpack(path)[:2] for path in sys.argv[2:]))
    else:
        picture = read(sys.argv[2])
        print(picture.shape[1], picture.shape[0], len(np.unique(picture.reshape(-1, 3), axis=0)))
