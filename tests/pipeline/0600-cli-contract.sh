#!/bin/bash
# What every tool promises on its command line, tool by tool: help, version, wrong options and values, standard output
# that is a terminal, closed, full or gone, and statistics.
. "$(dirname "$0")/../lib.sh"

data=$TMPDIR/data
mkdir "$data"
capture -d 1s -c 2 gen:noise >"$data/pcm.weir" || skip_all "capture cannot make a stream"
encode <"$data/pcm.weir" >"$data/opus.weir" || skip_all "encode cannot make a stream"
tools=$(ls "$BIN")
# play writes nothing and needs a device: tests/live; top reads nothing: 1300; keygen neither: 1225; netrecv reads a network, netsend writes to one: 1210, 1200.
filters=$(ls "$BIN" | command grep -vx -e netrecv -e netsend -e weir -e play -e top -e keygen)

# What a tool cannot do without.
needed()
{
	case $1 in resample) echo -r 96k ;; esac
}

# run TOOL [OPTION…]: on a second of audio, to standard output.
run()
{
	local t=$1
	shift
	case $t in
	capture) capture "$@" -d 1s -c 2 gen:noise ;;
	decode) decode "$@" <"$data/opus.weir" ;;
	*) "$t" $(needed "$t") "$@" <"$data/pcm.weir" ;;
	esac
}

# without end, as fast as it can: for readers that go away
run_on()
{
	local t=$1
	shift
	case $t in
	capture) exec capture "$@" -c 2 gen:noise ;;
	decode) capture -c 2 gen:noise 2>/dev/null | encode --complexity 0 2>/dev/null | { exec decode "$@"; } ;;
	*) capture -c 2 gen:noise 2>/dev/null | { exec "$t" $(needed "$t") "$@"; } ;;
	esac
}

# Not one that prints a report.
writes_stream()
{
	case $1 in inspect | meter) return 1 ;; esac
}

help()
{
	local t=$1 name
	"$t" --help >long 2>err
	empty err
	"$t" -h >short
	same long short
	grep -q "^usage: $t " long
	for name in $("$t" --dump-options | cut -f 2); do
		grep -qE -- "--$name( |=|\[|$)" long || fail "--$name is not in --help"
	done
	awk 'length > 100 { print; bad = 1 } END { exit bad }' long
	# Help wins over what else stands there.
	"$t" --help nonsense >again
	same long again
	expect_status 1 "$t" --help >/dev/full 2>err
	one_line err "^$t: .*No space left on device"
}

version()
{
	local t=$1 want="$1 (weir) $(cat "$TOP/VERSION")"
	[ "$t" != weir ] || want="weir $(cat "$TOP/VERSION")"
	"$t" --version >out 2>err
	empty err
	eq "$(cat out)" "$want"
	expect_status 1 "$t" --version >/dev/full 2>err
	one_line err
}

unknown_option()
{
	local t=$1
	expect_status 2 "$t" --no-such-option >out 2>err
	empty out
	one_line err "^$t: .*--no-such-option"
	expect_status 2 "$t" --no-such-option=5 >out 2>err
	one_line err "^$t: .*--no-such-option"
	expect_status 2 "$t" -@ >out 2>err
	one_line err "^$t: .*-@"
	expect_status 2 "$t" --version=yes >out 2>err
	one_line err "^$t: --version.*'yes'"
}

# Each option with a value that is wrong for its kind, one that is too large, one that is too small, and none.
bad_values()
{
	local t=$1 letter name arg kind min max choices help v w
	while IFS=$'\x1f' read -r letter name arg kind min max choices help; do
		case $kind in
		flag)
			expect_status 2 "$t" "--$name=x" </dev/null >out 2>err
			one_line err "^$t: --$name: .*'x'"
			continue
			;;
		optional) ;;
		*)
			expect_status 2 "$t" "--$name" </dev/null >out 2>err
			one_line err "^$t: --$name: .*$arg"
			if [ "$letter" != - ]; then
				expect_status 2 "$t" "-$letter" </dev/null >out 2>err
				one_line err "^$t: -$letter: .*$arg"
			fi
			;;
		esac
		case $kind in
		string | list) continue ;;
		choice)
			expect_status 2 "$t" "--$name=@no" </dev/null >out 2>err
			one_line err "^$t: --$name: .*'@no'"
			for w in ${choices//,/ }; do
				contains err "$w"
			done
			;;
		*)
			for v in @no '' 1,5 5x 1e3 0x10 nan inf ' 1' 1.2.3; do
				expect_status 2 "$t" "--$name=$v" </dev/null >out 2>err
				one_line err "^$t: --$name: "
				grep -qF -- "'$v'" err
			done
			[ -n "$max" ] || continue
			contains err "$min"
			contains err "$max"
			# Twice the largest, and a millionth below the smallest where that is not negative.
			for v in $(awk -v OFMT=%.0f -v CONVFMT=%.0f -v lo="$min" -v hi="$max" -v kind="$kind" 'BEGIN {
				unit = kind == "db" ? "dB" : ""
				print (hi > 0 ? hi * 2 + 1 : 1) unit
				if (lo == "-inf") exit # down to silence: nothing is below
				if (lo > 0) print 0 unit; else if (kind != "time") print lo - 1 unit }'); do
				expect_status 2 "$t" "--$name=$v" </dev/null >out 2>err
				one_line err "^$t: --$name: .*'$v'"
				contains err "$min"
				contains err "$max"
			done
			;;
		esac
	done < <("$t" --dump-options | tr '\t' '\037')
}

terminal()
{
	local t=$1
	have script || skip "script (util-linux) is not installed"
	case $t in
	capture) set -- capture -d 1s gen:sine ;;
	decode) set -- decode "<$data/opus.weir" ;;
	*) set -- "$t" "$(needed "$t")" "<$data/pcm.weir" ;;
	esac
	status_of script -qec "$*" /dev/null >out 2>&1 </dev/null
	eq "$status" 2
	tr -d '\r' <out >text
	one_line text "^$t: .*terminal"
}

full_disk()
{
	local t=$1
	status_of run "$t" >/dev/full 2>err
	eq "$status" 1
	one_line err "^$t: .*No space left on device"
}

closed_stdout()
{
	local t=$1
	status_of run "$t" >&- 2>err
	eq "$status" 1
	one_line err "^$t: "
}

closed_stdin()
{
	local t=$1
	set -- "$t" $(needed "$t")
	[ "$t" != capture ] || set -- capture -
	status_of "$@" <&- >out 2>err
	[ "$status" = 1 ] || [ "$status" = 2 ] || fail "status $status"
	one_line err "^$t: "
}

# A folder instead of a stream, and bytes that are none.
not_a_stream()
{
	local t=$1
	set -- "$t" $(needed "$t")
	[ "$t" != capture ] || set -- capture -
	status_of "$@" </ >out 2>err
	eq "$status" 1
	one_line err "^$t: .*"
	head -c 5000 /dev/zero | tr '\0' 'x' >x
	status_of "$@" <x >out 2>err
	[ "$status" = 1 ] || [ "$status" = 3 ] || fail "status $status"
	one_line err "^$t: "
}

gone()
{
	local t=$1
	mkfifo pipe
	# The reader takes the first bytes and goes.
	head -c 100 pipe >/dev/null &
	status_of timeout 30 bash -c "$(declare -f run_on needed); run_on $t" >pipe 2>err
	eq "$status" 141
	empty err
}

stats()
{
	local t=$1 k
	run "$t" --stats >out 2>err
	"$PYTHON" - "$t" err <<'PY'
import json, sys
tool, path = sys.argv[1:]
lines = [json.loads(l) for l in open(path)]
assert lines, "no line"
keys = """tool t_s packets_in packets_out frames_in frames_out gaps lost_frames dropped_frames damaged_bytes cpu_pct rss_kib
allocs alloc_bytes late max_late_us threads""".split()
for d in lines:
    for k in keys:
        assert k in d, f"{k} is missing"
    assert d["tool"] == tool
    assert isinstance(d["threads"], dict) and d["threads"], d["threads"]
    assert all(isinstance(v, (int, float)) for v in d["threads"].values())
    assert all(isinstance(d[k], (int, float)) for k in keys if k not in ("tool", "threads"))
d = lines[-1]
assert d["gaps"] == d["lost_frames"] == d["damaged_bytes"] == 0, d
if tool != "capture":
    assert d["packets_in"] > 0 and d["frames_in"] == 48000, d
if tool not in ("inspect", "meter"):
    assert d["packets_out"] > 0 and d["frames_out"] >= 48000, d
assert 100 < d["rss_kib"] < 200000, d
PY
	# To a file; standard error stays free, and the output is the same.
	run "$t" --stats-file s.jsonl >out2 2>err
	empty err
	same out out2
	eq "$(json s.jsonl 'd["tool"]')" "$t"
	run "$t" >out3 2>err
	empty err
	same out out3
	# Often: lines come while it runs, and no later than that.
	if writes_stream "$t"; then
		mkfifo endless
		(run_on "$t" --stats=0.02) >endless 2>s.jsonl &
		(wait_for 60 has_lines s.jsonl 3; head -c 100 >/dev/null) <endless
		wait $! || :
	fi
	expect_status 1 run "$t" --stats-file /nowhere/s.jsonl >out 2>err
	one_line err "^$t: .*/nowhere/s.jsonl"
}

has_lines()
{
	[ "$(wc -l <"$1")" -ge "$2" ]
}

quiet()
{
	local t=$1 q=-q
	# There it is the quality.
	[ "$t" != resample ] || q=--quiet
	run "$t" $q >out 2>err
	empty err
	run "$t" -v >out2 2>err
	same out out2
	run "$t" -vv --quiet >out3
	same out out3
}

# A stream that is cut: what came is kept, the loss is said, and the END of the output says so as well.
cut_input()
{
	local t=$1 n
	case $t in
	capture) return 0 ;;
	decode) cp "$data/opus.weir" in.weir ;;
	*) cp "$data/pcm.weir" in.weir ;;
	esac
	n=$(($(bytes_of in.weir) / 2))
	status_of "$t" $(needed "$t") < <(head -c $n in.weir) >out.weir 2>err
	eq "$status" 3
	if [ "$t" = inspect ]; then
		grep -q 'not whole (.*)$' out.weir
	else
		one_line err "^$t: "
	fi
	if writes_stream "$t"; then
		status_of inspect --json out.weir >lines
		eq "$status" 3
		grep '"END"' lines >end.json
		eq "$(json end.json 'd["reason"] in (2, "truncated", "upstream truncated")')" true
		[ "$(json lines 'd["summary"]["frames"]["1"]')" -gt 10000 ]
	fi
}

each()
{
	local what=$1 f=$2 t
	shift 2
	for t; do
		test_case "$t: $what" "$f" "$t"
	done
}

# A file of statistics is for the next run, too; any other file is not touched.
stats_files()
{
	local was
	capture -q -d 10ms gen:sine --stats-file s >in.weir
	inspect --verify --stats-file s in.weir >said
	eq "$(cut -d , -f 1 s | uniq)" '{"tool": "inspect"'
	: >s
	inspect --verify --stats-file s in.weir >said
	[ -s s ] || fail "an empty file was left empty"
	was=$(cksum <in.weir)
	expect_status 1 inspect --verify --stats-file in.weir in.weir 2>err >said
	one_line err "^inspect: in.weir: exists, and holds something else than statistics: name another file$"
	eq "$(cksum <in.weir)" "$was" "the stream"
	chmod 200 s
	inspect --verify --stats-file s in.weir >said 2>err || [ "$(id -u)" != 0 ]
	inspect --verify --stats-file /dev/null in.weir >said
	mkfifo f
	cat f >lines &
	inspect --verify --stats-file f in.weir >said
	wait $!
	eq "$(tail -n 1 lines | json /dev/stdin 'd["final"]')" true
	# What stands in the place that messages go to stays.
	echo before >err
	inspect --verify --stats-file /dev/stderr in.weir 2>>err >said
	eq "$(head -n 1 err)" before
	eq "$(tail -n 1 err | json /dev/stdin 'd["final"]')" true
}

nothing_to_overwrite()
{
	local t
	for t in mux demux meter impair "netsend rtp://127.0.0.1:5004" "netrecv rtp://127.0.0.1:5004" "netrecv --browse"; do
		# shellcheck disable=SC2086
		expect_status 2 timeout 10 $t -y </dev/null >said 2>err
		one_line err "^${t%% *}: --force: nothing is overwritten without -"
	done
}

locale_numbers()
{
	have localedef || skip "localedef is not installed"
	localedef -i de_DE -f UTF-8 "$PWD/de_DE.UTF-8" >/dev/null 2>&1 || skip "the definitions of locales are not installed"
	# Not for this shell: it need not know the folder.
	comma() { env LOCPATH="$PWD" LC_ALL=de_DE.UTF-8 "$@"; }
	eq "$(comma printf '%.1f' 0,5)" 0,5 "this locale's comma"
	comma capture -d 0.5s gen:sine:freq=440.5,level=-12.5dB --stats >out.weir 2>err
	eq "$(json err 'd["frames_out"]')" 24000
	expect_status 2 comma capture -d 0,5s gen:sine 2>err
	one_line err "'0,5s'"
	comma inspect --json out.weir >lines
	eq "$(json lines 'd["summary"]["frames"]["1"]')" 24000
	expect_status 0 comma inspect --verify out.weir
}

each "--help" help $filters play top
each "--version" version $tools
each "an unknown option is named, status 2" unknown_option $tools
each "a bad value is quoted with what would be right" bad_values $filters play top
for t in $filters; do
	writes_stream "$t" && test_case "$t: refuses to write to a terminal" terminal "$t"
done
each "a full disk is said, status 1" full_disk $filters
each "a closed standard output is said, status 1" closed_stdout $filters
each "a closed standard input is said" closed_stdin $filters
each "what is no stream is said" not_a_stream $filters
for t in $filters; do
	# A report may come only at the end.
	[ "$t" = meter ] || test_case "$t: a reader that goes away ends it quietly, 141" gone "$t"
done
each "--stats and --stats-file" stats $filters
each "-q and -v change nothing that is written" quiet $filters
each "a cut input: status 3, one line, END says so" cut_input $filters
test_case "--stats-file overwrites statistics, and nothing else" stats_files
test_case "-y without anything to overwrite" nothing_to_overwrite
test_case "a point is a point where people write a comma" locale_numbers
done_testing
