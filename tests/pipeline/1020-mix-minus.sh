#!/bin/bash
# Mix-minus: everybody but oneself.
. "$(dirname "$0")/../lib.sh"
. "$TOP/tests/mixlib.sh"

# Three participants with a tone each: the own one is gone, the others are at unity.
tones()
{
	tone anna.wav 48000 f32 '0.2*sin(400, 48000)'
	tone bert.wav 48000 f32 '0.2*sin(600, 48000)'
	tone cleo.wav 48000 f32 '0.2*sin(800, 48000)'
	mix --minus anna.wav bert.wav cleo.wav >out.weir
	holds out.weir "len(a) == 3 and all(t.shape == (48000, 1) for t in a)"
	holds out.weir "all(level(a[i][:, 0], 400 + 200 * i) < 0.2e-3 for i in range(3)) and all(abs(level(a[i][:, 0], 400 + 200 * j) - 0.2) < 1e-4 for i in range(3) for j in range(3) if i != j)"
	inspect --json out.weir | grep '"TRACK"' >tracks
	eq "$("$PYTHON" -c 'import json; print([json.loads(l)["name"] for l in open("tracks")])')" "['anna', 'bert', 'cleo']"
	inspect --verify out.weir
	# From a stream, with oneself 12 dB down.
	capture anna.wav bert.wav cleo.wav | mix --minus --self -12dB >out.weir
	holds out.weir "all(abs(level(a[i][:, 0], 400 + 200 * i) - 0.2 * 10 ** -0.6) < 1e-4 for i in range(3))"
	# Not at all is what it is without.
	mix --minus anna.wav bert.wav cleo.wav >plain.weir
	mix --minus --self -inf anna.wav bert.wav cleo.wav >none.weir
	holds plain.weir none.weir 'np.array_equal(a[0], a[3]) and np.array_equal(a[2], a[5])'
	expect_status 2 mix --self 0.5 anna.wav 2>err >out.weir
	one_line err 'for --minus'
}

# Each of 40 mixes equals the sum of the 39 others within 2^-23 · N; gains, places and silent participants as well.
exact()
{
	local i args=() files=()
	for i in $(seq 40); do
		tone p$i.wav 48000 f32 "0.99*noise($((4000 + 100 * i)), 1, $i)"
		args+=(-g "$i=-$((i % 7))""dB")
		files+=(p$i.wav)
	done
	mix --minus --pan 1=-1 "${args[@]}" -g 5=0 "${files[@]}" >out.weir
	cat >check.py <<'PY'
N = 40
parts = []
for i in range(1, N + 1):
    x = np.pad(read(f"p{i}.wav")[:, 0], (0, 8000))[:8000] * (0 if i == 5 else 10 ** (-(i % 7) / 20))
    parts.append(np.stack([x, 0 * x if i == 1 else x], 1))
total = sum(parts)
worst = max(np.max(np.abs(a[i] - (total - parts[i]))) for i in range(N))
shared = np.array_equal(a[4][4000:], a[0][4100:][:0]) if 0 else np.array_equal(a[4], total.astype("<f4"))
PY
	holds out.weir "exec(open('check.py').read()) is None and worst <= 40 * 2.0 ** -23 and shared"
}

# Who has nothing shares the mix: 100 listeners cost little more than 10.
listeners()
{
	local n args
	capture -q -d 60s -c 2 gen:noise >talk.weir
	tone quiet.wav 48000 f32 'np.zeros((10, 2))'
	for n in 10 100; do
		args=()
		for _ in $(seq $n); do args+=(quiet.wav); done
		mix --minus --stats --stats-file $n.json talk.weir "${args[@]}" >/dev/null
	done
	# 10 times the packets, and less than 6 times the time of the first.
	"$PYTHON" -c '
import json
a, b = (json.load(open(f"{n}.json"))["threads"]["mix"] for n in (10, 100))
print(a, b)
assert b < 6 * max(a, 30)'
	mix --minus talk.weir quiet.wav quiet.wav >out.weir
	mix talk.weir >all.weir
	holds out.weir all.weir 'a[0] == 0 and np.array_equal(a[1], a[3]) and np.array_equal(a[2], a[3])'
}

formats()
{
	tone a.wav 48000 s16 '0.4*noise(9000, 2, 1)'
	tone b.wav 48000 s16 '0.4*noise(7000, 2, 2)'
	mix --minus -f s16 a.wav b.wav >out.weir
	holds out.weir "np.array_equal(a[0][:7000], read('b.wav') * 32768) and a[0][7000:] == 0 and np.array_equal(a[1], read('a.wav') * 32768)"
	tone loud.wav 48000 f32 '3*noise(9000, 2, 3)'
	mix --minus --limiter=-3 a.wav loud.wav >out.weir
	holds out.weir "np.max(np.abs(a[0])) <= 10 ** (-3 / 20) and np.array_equal(a[1], read('a.wav').astype('<f4'))"
}

test_case "the own tone is gone, the others are at unity" tones
test_case "each mix is the sum of the others, 40 of them" exact
test_case "those with nothing share a mix" listeners
test_case "whole numbers stay whole; each mix has its limiter" formats
done_testing
