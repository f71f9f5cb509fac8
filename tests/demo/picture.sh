#!/bin/sh
# The picture in the README: meter --plot of the demo's tune, in at most 256 colours so that it stays small.
# BIN: the tools; OUT: a folder to work in; CC: a C compiler.  usage: picture.sh FILE.png
set -eu

mkdir -p "$OUT"
${CC:-cc} -O2 -o "$OUT/tune" "$(dirname "$0")/tune.c" -lm
"$OUT/tune" >"$OUT/tune.wav"
"$BIN/meter" -q -y --plot "$OUT/tune.png" "$OUT/tune.wav" >/dev/null
ffmpeg -v error -y -i "$OUT/tune.png" -vf 'split[a][b];[a]palettegen=max_colors=240[p];[b][p]paletteuse=dither=none' -frames:v 1 "$1"
printf '%s, %s bytes\n' "$1" "$(wc -c <"$1")"
