# The deadline path allocates nothing, locks nothing, does no I/O and waits for nothing: every symbol that the objects of rt/ and
# dsp/, and those named *_dl, take from outside must be another such object's or stand in `allow`.  What only sets up and clears
# away is excepted: objects named *_init and those of rt/ that have a part for other threads
# (ring.o, wake.o, thread.o), and functions named *_init and *_release.
. "$(dirname "$0")/../lib.sh"

allow=$TOP/tests/deadline/allow
case $SAN in ?*) skip_all "sanitizers put calls of their own into every object" ;; esac

deadline_objects()
{
	local o
	for o in "$B"/libcore/rt/*.o "$B"/libcore/dsp/*.o "$B"/libcore/*/*_dl.o; do
		# Objects whose source is gone are left over from an older tree.
		case ${o##*/} in *_init.o | ring.o | wake.o | thread.o | \**) continue ;; esac
		[ -e "$TOP/${o#"$B"/}" ] || [ -e "$TOP/$(echo "${o#"$B"/}" | sed 's/o$/c/')" ] && echo "$o"
	done | sort -u
}

# calls OBJECT: "function symbol" for every reference from a function to something the object does not define.
calls()
{
	{ nm -u "$1" | awk '{ print "U", $NF }'; objdump -dr --no-show-raw-insn "$1"; } | awk '
	$1 == "U" { outside[$2] = 1; next }
	/^[0-9a-f]+ <.*>:$/ { f = $2; gsub(/[<>:]/, "", f); sub(/\..*/, "", f); next }
	/R_[A-Z0-9_]+/ {
		for (i = 1; i <= NF; i++)
			if ($i ~ /^R_[A-Z]/) { s = $(i + 1); break }
		sub(/[-+]0x[0-9a-f]+$/, "", s)
		if (s in outside) print f, s
	}' | sort -u
}

check_symbols()
{
	local o bad
	deadline_objects >objects
	[ "$(wc -l <objects)" -ge 5 ] || fail "only these objects were found: $(cat objects)"
	xargs nm --defined-only <objects | awk 'NF == 3 { print $3 }' | sort -u >own
	sed '/^#/d' "$allow" | sort -u >allowed
	while read -r o; do
		calls "$o" | awk -v o="${o#"$B"/}" '
		BEGIN { while ((getline s < "own") > 0) ok[s]; while ((getline s < "allowed") > 0) ok[s] }
		$1 ~ /_(init|release)$/ { next }
		!($2 in ok) { print o ": " $1 " calls " $2 }'
	done <objects >bad
	bad=$(cat bad)
	[ -z "$bad" ] || fail "$bad"
}

# The check itself must see a call when there is one.
check_of_the_check()
{
	cat >bad.c <<'C'
	#include <stdio.h>
	#include <stdlib.h>
	void *bad_run(int n);
	void *bad_init(int n);
	void *bad_run(int n) { if (n) fputs("late\n", stderr); return 0; }
	void *bad_init(int n) { return malloc((size_t)n); }
C
	"${CC:-cc}" -O2 -c bad.c -o bad.o
	calls bad.o >found
	contains found "bad_init malloc"
	grep -Eq '^bad_run (fputs|fwrite)$' found || fail "did not see the call: $(cat found)"
}

test_case "deadline objects call nothing that may block" check_symbols
test_case "a call that may block would be seen" check_of_the_check
done_testing
