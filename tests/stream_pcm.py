#!/usr/bin/python3
"""The PCM of one track of a weir stream on stdin, as raw samples on stdout; holes become zeros.

	stream_pcm.py [TRACK]

A second reader of the format, written from weir-stream(5) alone, so that the tests do not trust the tools they test.
"""
import struct
import sys


def main():
    want = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    data = sys.stdin.buffer.read()
    out = sys.stdout.buffer
    at, expect, frame_bytes = 0, None, 0
    while at < len(data):
        sync, _version, kind, _flags, n_bytes, track, _gen, hunits = struct.unpack_from("<IBBHIHBB", data, at)
        if sync != 0xD2494557:
            sys.exit(f"no packet at byte {at}")
        pos, dur = struct.unpack_from("<qI", data, at + 16)
        body = data[at + 64 * hunits:at + 64 * hunits + n_bytes]
        at += 64 * hunits + (n_bytes + 63) // 64 * 64
        if track != want:
            continue
        if kind == 2:
            frame_bytes = struct.unpack_from("<H", body, 68)[0]
            if expect is None:
                expect = struct.unpack_from("<q", body, 16)[0]
        elif kind == 3:
            if pos < expect or len(body) != dur * frame_bytes:
                sys.exit(f"a packet of {len(body)} bytes at {pos}, {dur} frames; {expect} was next")
            out.write(bytes((pos - expect) * frame_bytes))
            out.write(body)
            expect = pos + dur


main()
