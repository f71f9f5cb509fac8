#!/bin/bash
# The dispatcher: finds its tools from anywhere, becomes them, lists them, and helps.
. "$(dirname "$0")/../lib.sh"

from_anywhere()
{
	mkdir 'a b' links
	ln -s "$BIN/weir" links/w
	ln -s w links/w2
	cd 'a b'
	eq "$(../links/w2 --exec-path)" "$BIN"
	eq "$(../links/w inspect --version)" "$("$BIN/inspect" --version)"
	cd "$BIN"
	eq "$(./weir --exec-path)" "$BIN"
	eq "$(PATH=$BIN weir --exec-path)" "$BIN"
	cd /
	eq "$(PATH=$BIN weir --exec-path)" "$BIN"
}

becomes_the_tool()
{
	local folder=$PWD/bin
	mkdir bin
	cp "$BIN/weir" bin/weir
	printf '#!/bin/sh\necho "$0:$#:$1:$2:$3"\nexit 7\n' >bin/inspect
	chmod +x bin/inspect
	# Every word reaches the tool as it was, options included, and its status comes back.
	status_of bin/weir inspect --help '' 'a  b' >out
	eq "$status" 7
	eq "$(cat out)" "$folder/inspect:3:--help::a  b"
	# It is the same process: no shell, no child.
	printf '#!/bin/sh\necho $$\n' >bin/inspect
	bin/weir inspect >out &
	wait $!
	eq "$(cat out)" "$!"
}

finds_installed()
{
	# A moved or staged installation: ../libexec/weir wins over whatever lies in the bindir.
	mkdir -p p/bin p/libexec/weir
	cp "$BIN/weir" p/bin/weir
	printf '#!/bin/sh\necho ours\n' >p/libexec/weir/inspect
	printf '#!/bin/sh\necho theirs\n' >p/bin/inspect
	chmod +x p/libexec/weir/inspect p/bin/inspect
	eq "$(p/bin/weir --exec-path)" "$PWD/p/libexec/weir"
	eq "$(p/bin/weir inspect)" ours
	# Alone in a folder of programs it takes none of them for its own.
	mkdir q
	cp "$BIN/weir" q/weir
	cp p/bin/inspect q/play
	status_of q/weir play 2>err
	eq "$status" 2
}

lists()
{
	weir >alone
	weir --help >help
	weir -h >short
	same alone help
	same alone short
	local t
	for t in "$BIN"/*; do
		t=$(basename "$t")
		[ "$t" = weir ] || grep -qE "^  $t +[a-zA-Z]" help || fail "$t is not listed"
	done
	eq "$(weir --version)" "weir $(cat "$TOP/VERSION")"
}

near_miss()
{
	expect_status 2 weir inpsect 2>err
	one_line err "^weir: 'inpsect': .*did you mean 'inspect'"
	expect_status 2 weir insp 2>err
	one_line err "did you mean 'inspect'"
	expect_status 2 weir xyzzy 2>err
	one_line err "^weir: 'xyzzy': there is no such tool"
	! grep -q 'did you mean' err
	expect_status 2 weir ../bin/inspect 2>err
	one_line err
	expect_status 2 weir weir 2>err
	one_line err
	expect_status 2 weir '' 2>err
	one_line err
	expect_status 2 weir $'a\nb\e[1m' 2>err
	one_line err
	! grep -q $'\e' err
	expect_status 2 weir --exec-pth 2>err
	one_line err -- '--exec-pth'
	expect_status 2 weir help xyzzy 2>err
	one_line err xyzzy
}

helps()
{
	local t
	for t in "$BIN"/*; do
		t=$(basename "$t")
		MANPAGER=cat PAGER=cat weir help "$t" >out 2>err || fail "weir help $t: $(cat err)"
		[ "$(wc -c <out)" -gt 300 ] || fail "weir help $t printed next to nothing"
	done
	weir help >out
	[ "$(wc -c <out)" -gt 300 ]
	weir help stream >out
	[ "$(wc -c <out)" -gt 300 ]
	weir help conventions >out
	[ "$(wc -c <out)" -gt 300 ]
}

# Without man and mandoc the programs' own words are shown.
helps_bare()
{
	mkdir empty
	eq "$(PATH=$PWD/empty "$BIN/weir" help inspect)" "$("$BIN/inspect" --help)"
	PATH=$PWD/empty "$BIN/weir" help >out
	contains out inspect
}

full_disk()
{
	local a
	for a in --help --version --exec-path; do
		expect_status 1 weir $a 2>err >/dev/full
		one_line err 'No space left on device'
		expect_status 1 weir $a 2>err >&-
		one_line err
	done
}

installs()
{
	local p=$PWD/root/usr
	[ -e "$TOP/Makefile" ] || skip "no Makefile: only the tests are here"
	# What is built already is built: only the dispatcher knows other folders.
	mkdir b
	cp -a "$B"/{bin,cmd,libcore,libcore.a} b/
	unset MAKEFLAGS MAKELEVEL MFLAGS
	make -s -C "$TOP" install DESTDIR="$PWD/root" prefix=/usr B="$PWD/b" >log 2>&1 || { tail -5 log; exit 1; }
	eq "$("$p/bin/weir" --exec-path)" "$p/libexec/weir"
	"$p/bin/weir" inspect --version >out
	for f in share/man/man1/weir.1 share/man/man5/weir-stream.5 share/man/man7/weir.7 share/zsh/site-functions/_weir \
		share/bash-completion/completions/weir share/fish/vendor_completions.d/weir.fish share/doc/weir/LICENSE; do
		[ -s "$p/$f" ] || fail "$f was not installed"
	done
	eq "$(ls "$p/bin")" weir
	make -s -C "$TOP" uninstall DESTDIR="$PWD/root" prefix=/usr B="$PWD/b" >log 2>&1
	eq "$(find root -type f)" ""
}

test_case "found through links, from any folder" from_anywhere
test_case "the tool takes the dispatcher's place, with its words and its status" becomes_the_tool
test_case "an installation that was moved, and a folder with strangers" finds_installed
test_case "weir alone and --help list the tools" lists
test_case "an unknown tool: status 2, one line, the nearest name" near_miss
test_case "help opens pages" helps
test_case "help without man" helps_bare
test_case "a full disk and a closed stdout are said" full_disk
test_case "install, and uninstall leaves nothing" installs
done_testing
