#!/bin/bash
# Functions that nobody here calls, and what the library leaves to the tools.
. "$(dirname "$0")/../lib.sh"

# The sources without comments and strings, as FILE:LINE:TEXT.
code()
{
	"$PYTHON" - "$@" <<'PY'
import re, sys
for path in sys.argv[1:]:
    text = open(path, encoding="utf-8").read()
    keep = lambda m: "\n" * m.group(0).count("\n") if m.group(0).startswith("/") else '""'
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', keep, text, flags=re.S)
    for n, line in enumerate(text.split("\n"), 1):
        print(f"{path}:{n}:{line}")
PY
}

calls()
{
	! grep -E "(^|[^A-Za-z0-9_.>])($1) *\("
}

banned()
{
	local scratch=$PWD
	cd "$TOP"
	code libcore/*/*.[ch] cmd/*.c >"$scratch/all"
	cd "$scratch"
	[ "$(wc -l <all)" -gt 2000 ] || fail "hardly any code was read"
	# No bound, hidden state, or no way to see a bad number.
	calls 'strcpy|strcat|stpcpy|sprintf|vsprintf|gets|strtok|strncat|alloca' <all
	calls 'gmtime|localtime|asctime|ctime|tmpnam|mktemp|rand|srand|random|setlocale|putenv' <all
	calls 'atoi|atol|atoll|atof|scanf|fscanf' <all
	# Programs with threads do not fork, and nothing here needs a shell.
	calls 'system|popen|fork|vfork' <all
}

library()
{
	cd "$TOP"
	code $(ls libcore/*/*.[ch] | command grep -v -e '^libcore/\(tool\|leg\|stage\)/' -e '^libcore/base/role\.c') |
		calls 'printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|perror|errx|warnx|exit|_exit|abort|syslog'
}

finds()
{
	printf 'int main(void) { char a[4]; strcpy(a, "b"); return atoi(a); } /* sprintf(a) */\n' >bad.c
	code bad.c >all
	expect_status 1 calls strcpy <all
	expect_status 1 calls atoi <all
	calls sprintf <all
}

test_case "no banned function is called" banned
test_case "the library neither prints nor exits" library
test_case "the check sees a call and not a comment" finds
done_testing
