# Pipeline tests in bash, printed as TAP.  A test script begins
#
#	. "$(dirname "$0")/../lib.sh"
#
# and then says `test_case "what it proves" function` as often as it likes, and `done_testing` at the end.  The function
# runs with `set -e -o pipefail` in an empty scratch folder of its own; what it prints is shown if it fails.
#
#	$TOP   the source tree        $B     the build folder        $BIN   the tools, first in PATH
#	$DATA  tests/data             $PYTHON  a Python with numpy   $TMPDIR  removed at the end
#
# A script can be run by hand: `bash tests/pipeline/0100-capture.sh`; `-r PATTERN` runs the cases whose words match.

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
B=${B:-$TOP/build}
case $B in /*) ;; *) B=$TOP/$B ;; esac
BIN=$B/bin
DATA=$TOP/tests/data
PYTHON=${PYTHON:-/usr/bin/python3}
PATH=$BIN:$PATH
export TOP B BIN DATA PYTHON PATH
export LC_ALL=C.UTF-8
unset WEIR_CPU

lib_only=
[ "${1-}" = -r ] && lib_only=${2-}
lib_n=0
lib_failed=0
lib_scratch=$(mktemp -d "${TMPDIR:-/tmp}/weir-test.XXXXXX") || exit 1
export TMPDIR=$lib_scratch
trap 'rm -rf "$lib_scratch"' EXIT
trap 'exit 130' INT TERM HUP

# ---- the frame ----

# test_case "what it proves" function [ARG…]
test_case()
{
	local what=$1 dir rc
	shift
	[[ -z $lib_only || $what == *$lib_only* ]] || return 0
	lib_n=$((lib_n + 1))
	dir=$lib_scratch/$lib_n
	mkdir "$dir"
	# Not in a condition: there, bash would switch `set -e` off inside.
	(
		trap 'lib_kill_jobs' EXIT
		trap 'echo "line $LINENO: status $?: $BASH_COMMAND"' ERR
		set -eE -o pipefail
		cd "$dir"
		"$@"
	) >"$lib_scratch/log" 2>&1 </dev/null
	rc=$?
	if [ $rc = 0 ]; then
		echo "ok $lib_n - $what"
	elif [ $rc = 77 ] && [ -s "$dir/.skip" ]; then
		echo "ok $lib_n - $what # SKIP $(cat "$dir/.skip")"
	else
		lib_failed=$((lib_failed + 1))
		# At most 200 lines, none that could be taken for TAP.
		tail -n 200 "$lib_scratch/log" | sed 's/^/#   /'
		[ $rc = 1 ] || echo "#   (status $rc)"
		echo "not ok $lib_n - $what"
	fi
	chmod -R u+rwX "$dir" 2>/dev/null
	rm -rf "$dir"
}

# skip_case "what it proves" "reason": counted, never silent.
skip_case()
{
	[[ -z $lib_only || $1 == *$lib_only* ]] || return 0
	lib_n=$((lib_n + 1))
	echo "ok $lib_n - $1 # SKIP $2"
}

# skip "reason": from inside a test function that finds out late.
skip()
{
	echo "$1" >.skip
	exit 77
}

# skip_all "reason": nothing in this script can run here.
skip_all()
{
	echo "1..0 # SKIP $1"
	exit 0
}

done_testing()
{
	echo "1..$lib_n"
	[ $lib_failed = 0 ]
	exit
}

lib_kill_jobs()
{
	local p
	for p in $(jobs -p); do
		kill -9 "$p" 2>/dev/null || :
	done
	return 0
}

# ---- what must hold ----

fail()
{
	echo "$*" >&2
	exit 1
}

# eq GOT WANTED [MESSAGE]
eq()
{
	[ "$1" = "$2" ] || fail "${3:-value}: got '$1', wanted '$2'"
}

ne()
{
	[ "$1" != "$2" ] || fail "${3:-value}: got '$1', wanted anything else"
}

# near GOT WANTED TOLERANCE [MESSAGE]
near()
{
	awk -v a="$1" -v b="$2" -v t="$3" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a == a "" && d <= t) }' ||
		fail "${4:-value}: got '$1', wanted '$2' within $3"
}

# between GOT LOW HIGH [MESSAGE]
between()
{
	awk -v a="$1" -v lo="$2" -v hi="$3" 'BEGIN { exit !(a != "" && a + 0 >= lo && a + 0 <= hi) }' ||
		fail "${4:-value}: got '$1', wanted $2 to $3"
}

# status_of CMD…: runs it, prints nothing of its own; $status is its exit status.
status_of()
{
	status=0
	"$@" || status=$?
}

# expect_status N CMD…: it ends with exactly that status.  A crash is never what was expected.
expect_status()
{
	local wanted=$1 got=0
	shift
	"$@" || got=$?
	[ "$got" = "$wanted" ] || fail "$*: status $got, wanted $wanted"
}

# one_line FILE [REGEX]: FILE holds exactly one line (which matches the extended regular expression).
one_line()
{
	local n
	n=$(wc -l <"$1")
	[ "$n" = 1 ] || fail "$1: $n lines, wanted one: $(head -5 "$1")"
	[ -z "${2-}" ] || command grep -Eq -- "$2" "$1" || fail "$1: '$(cat "$1")' does not match '$2'"
}

empty()
{
	[ ! -s "$1" ] || fail "$1 is not empty: $(head -c 500 "$1")"
}

same()
{
	cmp "$1" "$2" || fail "$1 and $2 differ (${3:-byte for byte})"
}

# contains FILE TEXT: the text stands in it literally.
contains()
{
	command grep -Fq -- "$2" "$1" || fail "$1 does not contain '$2': $(head -c 2000 "$1")"
}

# wait_for SECONDS CMD…: asks every 10 ms until CMD succeeds; fails when the time is over.
wait_for()
{
	local limit=$1 end
	shift
	end=$(awk -v now="${EPOCHREALTIME/./}" -v limit="$limit" 'BEGIN { printf "%.0f", now + limit * 1e6 }')
	until "$@"; do
		[ "${EPOCHREALTIME/./}" -lt "$end" ] || fail "waited $limit s for: $*"
		sleep 0.01
	done
}

have()
{
	command -v "$1" >/dev/null 2>&1
}

# grep that reads its input to the end also with -q: else the writer in front of it dies of SIGPIPE now and then, and
# pipefail makes that a failure.
grep()
{
	local a quiet= out=()
	for a; do
		if [[ -z $quiet && $a =~ ^-([a-pr-zA-Z]*)q([a-zA-Z]*)$ ]]; then
			quiet=1
			a=-${BASH_REMATCH[1]}${BASH_REMATCH[2]}
			[ "$a" != - ] || continue
		fi
		out+=("$a")
	done
	if [ -z "$quiet" ]; then
		command grep "${out[@]}"
	else
		local pipe_status
		command grep "${out[@]}" | cat >/dev/null && pipe_status=0 || pipe_status=${PIPESTATUS[0]}
		return "$pipe_status"
	fi
}

# ---- what a tool says of itself ----

# figure FILE KEY: what the newest whole line of --stats-file has under KEY; nothing where there is none yet.
figure()
{
	sed -n 's/^{.*"'"$2"'": \([-0-9.]*\)[,}].*/\1/p' "$1" 2>/dev/null | tail -n 1
}

# figures FILE KEY…: several, a space between.
figures()
{
	local file=$1 key all=
	shift
	for key; do
		all="$all${all:+ }$(figure "$file" "$key")"
	done
	echo "$all"
}

# reached FILE KEY LEAST: it is that much by now.
reached()
{
	local n
	n=$(figure "$1" "$2")
	[ -n "$n" ] && [ "${n%.*}" -ge "$3" ]
}

# ---- data ----

# json FILE EXPRESSION: a Python expression over d, the last JSON object of FILE (- is stdin): json x.json 'd["tracks"][0]["name"]'
json()
{
	"$PYTHON" -c '
import json, sys
text = sys.stdin.read() if sys.argv[1] == "-" else open(sys.argv[1], encoding="utf-8").read()
try:
    d = json.loads(text)
    lines = [d]
except ValueError:
    lines = [json.loads(l) for l in text.splitlines() if l.startswith("{")]
    d = lines[-1]
v = eval(sys.argv[2])
print(v if isinstance(v, str) else json.dumps(v))
' "$1" "$2"
}

# make_wav FILE RATE CHANNELS s16|s24|s32|f32 FRAMES [SEED]: white noise at half scale, the same for the same seed.
make_wav()
{
	"$PYTHON" - "$@" <<'PY'
import struct, sys
import numpy as np
path, rate, ch, fmt, frames = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
seed = int(sys.argv[6]) if len(sys.argv) > 6 else 1
x = np.random.default_rng(seed).uniform(-0.5, 0.5, frames * ch)
bits = {"s16": 16, "s24": 24, "s32": 32, "f32": 32}[fmt]
if fmt == "f32":
    raw = x.astype("<f4").tobytes()
else:
    v = np.round(x * (1 << (bits - 1))).astype("<i8")
    raw = v.view(np.uint8).reshape(-1, 8)[:, : bits // 8].tobytes()
block = ch * bits // 8
head = struct.pack("<HHIIHH", 3 if fmt == "f32" else 1, ch, rate, rate * block, block, bits)
pad = len(raw) & 1
with open(path, "wb") as f:
    f.write(b"RIFF" + struct.pack("<I", 4 + 8 + len(head) + 8 + len(raw) + pad) + b"WAVE")
    f.write(b"fmt " + struct.pack("<I", len(head)) + head + b"data" + struct.pack("<I", len(raw)) + raw + b"\0" * pad)
PY
}

# bytes_of FILE
bytes_of()
{
	stat -c %s "$1"
}
