#!/bin/sh
# The main job, shown: audio goes through capture, encode and mux into an Ogg Opus file, and back, and not a frame is
# lost.  BIN: the tools; OUT: where the files go; SONG: an audio file (else a tune is made); CC: a C compiler.
set -eu

weir=$BIN/weir
mkdir -p "$OUT"
say() { printf '%s\n' "$*"; }
# The frames of track 1 in the stream on stdin.
frames() { "$weir" inspect --json | sed -n '$s/.*"frames": *{"1": *\([0-9]*\).*/\1/p'; }

if [ -z "${SONG:-}" ]; then
	${CC:-cc} -O2 -o "$OUT/tune" "$(dirname "$0")/tune.c" -lm
	"$OUT/tune" >"$OUT/tune.wav"
	SONG=$OUT/tune.wav
	say "made      $SONG, a tune on plucked strings, $(wc -c <"$SONG") bytes"
fi

say "running   weir capture $SONG | weir encode -b 96k | weir mux -y -o $OUT/demo.opus"
"$weir" capture "$SONG" >"$OUT/captured.weir"
"$weir" encode -b 96k <"$OUT/captured.weir" | "$weir" mux -y -o "$OUT/demo.opus"
say "wrote     $OUT/demo.opus, Ogg Opus, $(wc -c <"$OUT/demo.opus") bytes: any player plays it"

say "checking  weir capture $OUT/demo.opus | weir mux -y -o $OUT/back.wav"
"$weir" capture "$OUT/demo.opus" | "$weir" mux -y -o "$OUT/back.wav"

rate=$("$weir" inspect --json <"$OUT/captured.weir" | sed -n 's/.*"type": *"TRACK".*"rate_num": *\([0-9]*\).*/\1/p' | head -n 1)
before=$(frames <"$OUT/captured.weir")
after=$("$weir" capture "$OUT/back.wav" | frames)
# An Opus track counts at 48000 frames a second, whatever the source did.
wanted=$(((before * 48000 + rate / 2) / rate))
say "frames    $before at $rate Hz in the source, $after at 48000 Hz in the Opus file"
if [ "$after" != "$wanted" ]; then
	say "demo: $OUT/demo.opus: $after frames, $wanted were expected" >&2
	exit 1
fi
say "done      the Opus file is as long as its source, to the sample"
