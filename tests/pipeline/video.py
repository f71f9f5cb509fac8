#!/usr/bin/env python3
"""Frames that know their number, and a look at what became of them.

  video.py make FILE frames=N bytes=B [fps=F]   N frames of B bytes, each filled with its own number; with fps in real time
  video.py check FILE bytes=B                   prints one line: frames, whole ones, the numbers' first, last, and whether they rise
"""
import os
import sys
import time

import numpy as np


def frame(number, n_bytes):
    words = np.full((n_bytes + 3) // 4, number, "<u4")
    words[1::2] ^= np.arange(len(words[1::2]), dtype="<u4")
    return words.tobytes()[:n_bytes]


def number_of(data):
    number = int.from_bytes(data[:4], "little")
    return number if data == frame(number, len(data)) else None


def make(path, frames, n_bytes, fps):
    begin = time.monotonic()
    with open(path, "wb", buffering=0) as out:
        for i in range(frames):
            if fps:
                time.sleep(max(0.0, begin + i / fps - time.monotonic()))
            data = memoryview(frame(i, n_bytes))
            while data:
                data = data[os.write(out.fileno(), data):]


def check(path, n_bytes):
    numbers, broken = [], 0
    with open(path, "rb") as src:
        while data := src.read(n_bytes):
            n = number_of(data) if len(data) == n_bytes else None
            if n is None:
                broken += 1
            else:
                numbers.append(n)
    rising = all(a < b for a, b in zip(numbers, numbers[1:]))
    missing = numbers[-1] - numbers[0] + 1 - len(numbers) if numbers else 0
    print("frames %d broken %d first %s last %s missing %d %s" % (len(numbers), broken, numbers[0] if numbers else "-",
          numbers[-1] if numbers else "-", missing, "rising" if rising else "out of order"))


args = dict(a.split("=") for a in sys.argv[3:])
if sys.argv[1] == "make":
    make(sys.argv[2], int(args["frames"]), int(args["bytes"]), float(args.get("fps", 0)))
else:
    check(sys.argv[2], int(args["bytes"]))
