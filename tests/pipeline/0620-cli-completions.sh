#!/bin/bash
# The completions complete: names of tools, options, values that are known, and files, as `weir TOOL` and by short name.
. "$(dirname "$0")/../lib.sh"

files=$TOP/completions

# bash_complete WORD…: what bash offers for the last word, sorted, in one line.
bash_complete()
{
	bash --norc --noprofile -c '
		source "$0/weir.bash"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
		[ "$(complete -p "$1")" = "complete -F _weir $1" ] || echo "$1 is not completed"
		_weir
		printf "%s\n" "${COMPREPLY[@]}" | sort | tr "\n" " "' "$files" "$@" | sed 's/ $//'
}

in_bash()
{
	touch song.flac other
	mkdir folder
	eq "$(bash_complete weir enc)" encode
	eq "$(bash_complete weir --e)" --exec-path
	eq "$(bash_complete weir help str)" stream
	eq "$(bash_complete weir help mu)" mux
	eq "$(bash_complete weir encode --bit)" --bitrate
	eq "$(bash_complete encode --bit)" --bitrate
	eq "$(bash_complete weir decode -f '')" "f32 s16 s24 s32"
	eq "$(bash_complete weir decode --format = s2)" s24
	eq "$(bash_complete weir decode --format =)" "f32 s16 s24 s32"
	eq "$(bash_complete weir capture -r '')" ""
	eq "$(bash_complete weir capture so)" song.flac
	eq "$(bash_complete weir mux -o so)" song.flac
	eq "$(bash_complete capture --realtime o)" other
	# Every option of every tool is offered.
	local t want
	for t in "$BIN"/*; do
		t=$(basename "$t")
		want=$("$t" --dump-options | cut -f 2 | sed 's/^/--/' | sort | tr '\n' ' ' | sed 's/ $//')
		if [ "$t" = weir ]; then
			eq "$(bash_complete weir --)" "$want"
		else
			eq "$(bash_complete weir "$t" --)" "$want" "$t"
			eq "$(bash_complete "$t" --)" "$want" "$t"
		fi
	done
}

# Somebody else's completion of a short name stays.
bash_stays()
{
	eq "$(bash --norc --noprofile -c 'complete -W "a b" capture; source "$0/weir.bash"; complete -p capture' "$files")" \
		"complete -W 'a b' capture"
}

fish_complete()
{
	HOME=$PWD XDG_CONFIG_HOME=$PWD/c XDG_DATA_HOME=$PWD/d fish --no-config \
		-c "source $files/weir.fish; complete -C '$1'" | cut -f 1 | sort | tr '\n' ' ' | sed 's/ $//'
}

in_fish()
{
	touch song.flac
	eq "$(fish_complete 'weir enc')" encode
	eq "$(fish_complete 'weir help str')" stream
	eq "$(fish_complete 'weir encode --bit')" --bitrate
	eq "$(fish_complete 'encode --bit')" --bitrate
	eq "$(fish_complete 'weir decode --format s')" "s16 s24 s32"
	eq "$(fish_complete 'weir decode -f s2')" s24
	eq "$(fish_complete 'weir mux -o so')" song.flac
	local t want
	for t in "$BIN"/*; do
		t=$(basename "$t")
		[ "$t" != weir ] || continue
		want=$("$t" --dump-options | cut -f 2 | sed 's/^/--/' | sort | tr '\n' ' ' | sed 's/ $//')
		eq "$(fish_complete "weir $t --")" "$want" "$t"
	done
}

# zsh_complete LINE: what zsh lists after a tab, as text.
zsh_complete()
{
	cat >zpty.zsh <<'ZSH'
zmodload zsh/zpty
zpty z 'env -i TERM=dumb HOME=$PWD PATH=$PATH zsh -f -i'
say() { zpty -w z "$1" }
# Wait until the shell prints a pattern; at most some 10 s.
until_seen()
{
	local text= part i
	for ((i = 0; i < 1000; i++)); do
		while zpty -r -t z part; do text+=$part; done
		[[ $text == *$~1* ]] && { print -r -- "$text"; return 0 }
		sleep 0.01
	done
	print -r -- "not seen: $1 in: $text"
	return 1
}
say "LISTMAX=100000 LINES=500 COLUMNS=200; PS1=; PROMPT=; setopt no_beep; zstyle ':completion:*' list-colors ''; zstyle ':completion:*' verbose no"
say "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; bindkey '^I' list-choices; bindkey '^X' kill-whole-line"
say "print rea''dy"
until_seen 'ready' >/dev/null || exit 1
zpty -w -n z "$2"$'\t'
zpty -w -n z $'\x18'"print do''ne"$'\n'
until_seen 'done'
ZSH
	zsh -f zpty.zsh "$files" "$1" | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g' | tr -d '\r'
}

in_zsh()
{
	touch song.flac
	zsh_complete 'weir ' >out
	local w
	for w in capture encode decode mux demux inspect help; do
		grep -qw -- "$w" out || { cat out; fail "weir: $w is not offered"; }
	done
	zsh_complete 'weir capture --' >out
	for w in $(capture --dump-options | cut -f 2); do
		grep -q -- "--$w" out || { cat out; fail "capture: --$w is not offered"; }
	done
	zsh_complete 'encode --' >out
	for w in $(encode --dump-options | cut -f 2); do
		grep -q -- "--$w" out || { cat out; fail "encode: --$w is not offered"; }
	done
	zsh_complete 'weir capture -f ' >out
	for w in s16 s24 s32 f32; do
		grep -qw "$w" out || { cat out; fail "capture -f: $w is not offered"; }
	done
}

test_case "bash completes" in_bash
test_case "bash: what others complete stays theirs" bash_stays
if have fish; then
	test_case "fish completes" in_fish
else
	skip_case "fish completes" "fish is not installed"
fi
if have zsh; then
	test_case "zsh completes" in_zsh
else
	skip_case "zsh completes" "zsh is not installed"
fi
done_testing
