#!/bin/sh
# generate.sh BIN OUT: completions for bash, zsh and fish from the option tables of the tools in BIN, which print them
# with --dump-options: letter, name, argument, kind, min, max, choices, help, tab-separated.
set -eu
bin=$1 out=$2
export LC_ALL=C
tab=$(printf '\t')

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The tools with their summaries, as weir lists them; and all rows, each with its tool in front.
"$bin/weir" | sed -n '/^tools:/,/^$/s/^  \([a-z][a-z0-9]*\)  *\([^ ].*\)$/\1'"$tab"'\2/p' >"$scratch/tools"
for t in weir $(cut -f 1 "$scratch/tools"); do
	"$bin/$t" --dump-options | sed "s/^/$t$tab/"
done >"$scratch/rows"
names=$(cut -f 1 "$scratch/tools" | tr '\n' ' ' | sed 's/ $//')

note="made by \`make completions\` from the option tables of the tools"

# What the value of an option is: "file", "folder", "words …", "none" (a value that cannot be guessed), "flag".
value='
function value(arg, kind, choices) {
	if (kind == "flag") return "flag"
	if (kind == "optional") return "optional"
	if (choices != "") { gsub(/,/, " ", choices); return "words " choices }
	if (arg ~ /DIR|FOLDER/) return "folder"
	if (arg ~ /FILE|PATH/) return "file"
	return "none"
}
'

# ---- bash ----
{
	cat <<EOF2
# Completions of the weir tools for bash, $note.

# The options of a tool.
_weir_options()
{
	case \$1 in
EOF2
	awk -F '\t' '
	$1 != tool { if (tool != "") print line "\" ;;"; tool = $1; line = "\t" tool ") echo \"" ; sep = "" }
	{ if ($2 != "-") { line = line sep "-" $2; sep = " " } line = line sep "--" $3; sep = " " }
	END { print line "\" ;;" }' "$scratch/rows"
	cat <<'EOF2'
	esac
}

# The value of an option of a tool: words, or @file, @folder, @none; nothing if it takes no value.
_weir_value()
{
	case $1:$2 in
EOF2
	awk -F '\t' "$value"'
	{
		v = value($4, $5, $8)
		if (v == "flag" || v == "optional") next
		if (!sub(/^words /, "", v)) v = "@" v
		pattern = ($2 != "-" ? $1 ":-" $2 " | " : "") $1 ":--" $3
		print "\t" pattern ") echo \"" v "\" ;;"
	}' "$scratch/rows"
	cat <<EOF2
	esac
}

_weir_tools="$names"
EOF2
	cat <<'EOF2'

_weir()
{
	local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} tool=${COMP_WORDS[0]##*/} first=1 value
	COMPREPLY=()

	# "--option=value" comes in three words.
	if [[ $cur == "=" ]]; then
		cur=
	elif [[ $option == "=" ]]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	if [[ $tool == weir ]]; then
		if ((COMP_CWORD == 1)); then
			COMPREPLY=($(compgen -W "$_weir_tools help $(_weir_options weir)" -- "$cur"))
			return
		fi
		tool=${COMP_WORDS[1]}
		first=2
		if [[ $tool == help ]]; then
			((COMP_CWORD == 2)) && COMPREPLY=($(compgen -W "$_weir_tools stream conventions" -- "$cur"))
			return
		fi
	fi
	value=
	((COMP_CWORD > first)) && [[ $option == -* ]] && value=$(_weir_value "$tool" "$option")
	case $value in
	@none) ;;
	@folder)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		;;
	'' | @file)
		if [[ -z $value && $cur == -* ]]; then
			COMPREPLY=($(compgen -W "$(_weir_options "$tool")" -- "$cur"))
		else
			compopt -o filenames 2>/dev/null
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
		;;
	*) COMPREPLY=($(compgen -W "$value" -- "$cur")) ;;
	esac
}

complete -F _weir weir
# The short names, but for those that somebody else completes.
for _weir_name in $_weir_tools; do
	complete -p "$_weir_name" >/dev/null 2>&1 || complete -F _weir "$_weir_name"
done
unset _weir_name
EOF2
} >"$scratch/weir.bash"

# ---- zsh ----
{
	cat <<EOF2
#compdef weir $names
# Completions of the weir tools for zsh, $note.

EOF2
	awk -F '\t' "$value"'
	function quote(s) { gsub(/\047/, "\047\\\047\047", s); return s }
	function text(s) { gsub(/\\/, "\\\\", s); gsub(/\[/, "\\[", s); gsub(/\]/, "\\]", s); gsub(/:/, "\\:", s); return quote(s) }
	function finish() { if (tool != "" && tool != "weir") print "\t\t\047*:file:_files\047\n}\n"; else if (tool == "weir") print "\t\t\047*:tool: \047\n}\n" }
	$1 != tool { finish(); tool = $1; print "_weir_" tool "()\n{\n\t_arguments -s " (tool == "weir" ? "-C" : "-S") " : \\" }
	{
		v = value($4, $5, $8)
		many = $5 == "list" || $3 == "verbose"
		if (v == "flag") { short = ""; long = ""; action = "" }
		else if (v == "optional") { short = ""; long = "=-"; action = "::" $4 ": " }
		else {
			short = "+"; long = "="
			if (v == "file") action = ":" text($4) ":_files"
			else if (v == "folder") action = ":" text($4) ":_files -/"
			else if (sub(/^words /, "", v)) action = ":" text($4) ":(" quote(v) ")"
			else action = ":" text($4) ": "
		}
		both = $2 != "-" ? "-" $2 " --" $3 : "--" $3
		spec = many ? "\047*\047" : ($2 != "-" ? "\047(" both ")\047" : "")
		spec = spec ($2 != "-" ? "{-" $2 short ",--" $3 long "}" : "--" $3 long)
		print "\t\t" spec "\047[" text($9) "]" action "\047 \\"
	}
	END { finish() }' "$scratch/rows"
	cat <<'EOF2'
_weir_front()
{
	local curcontext=$curcontext name
	local -a tools

	tools=(
EOF2
	awk -F '\t' '{ s = $2; gsub(/\047/, "\047\\\047\047", s); gsub(/:/, "\\:", s); print "\t\t\047" $1 ":" s "\047" }' "$scratch/tools"
	cat <<'EOF2'
	)
	if (( CURRENT == 2 )); then
		if [[ $PREFIX == -* ]]; then
			_weir_weir
		else
			tools+=('help:open the manual page of a tool')
			_describe -t tools tool tools
		fi
		return
	fi
	# The words from the tool on, as if weir were not there.
	shift words
	(( CURRENT-- ))
	name=_weir_$words[1]
	if [[ $words[1] == help ]]; then
		tools+=('stream:the format of the stream' 'conventions:what the tools have in common')
		_describe -t tools page tools
	elif (( $+functions[$name] )); then
		curcontext="${curcontext%:*:*}:weir-$words[1]:"
		$name
	else
		_files
	fi
}

if [[ $service == weir ]]; then
	_weir_front
else
	_weir_$service
fi
EOF2
} >"$scratch/_weir"

# ---- fish ----
{
	cat <<EOF2
# Completions of the weir tools for fish, $note.

# True if the words before the cursor call this tool through weir.
function __weir_is
	set -l words (commandline -opc)
	test (count \$words) -ge 2; and test "\$words[2]" = \$argv[1]
end

function __weir_first
	test (count (commandline -opc)) -eq 1
end

complete -c weir -n __weir_first -f
complete -c weir -n '__weir_is help' -f -a '$names stream conventions'
complete -c weir -n __weir_first -a help -d 'open the manual page of a tool'
EOF2
	awk -F '\t' '
	function quote(s) { gsub(/\\/, "\\\\", s); gsub(/\047/, "\\\047", s); return "\047" s "\047" }
	{ print "complete -c weir -n __weir_first -a " $1 " -d " quote($2) }' "$scratch/tools"
	awk -F '\t' "$value"'
	function quote(s) { gsub(/\\/, "\\\\", s); gsub(/\047/, "\\\047", s); return "\047" s "\047" }
	{
		v = value($4, $5, $8)
		spec = ($2 != "-" ? " -s " $2 : "") " -l " $3
		if (v == "file") spec = spec " -r -F"
		else if (v == "folder") spec = spec " -x -a " quote("(__fish_complete_directories)")
		else if (v == "none") spec = spec " -x"
		else if (sub(/^words /, "", v)) spec = spec " -x -a " quote(v)
		spec = spec " -d " quote($9)
		if ($1 == "weir") print "complete -c weir -n __weir_first" spec
		else {
			print "complete -c weir -n " quote("__weir_is " $1) spec
			print "complete -c " $1 spec
		}
	}' "$scratch/rows"
} >"$scratch/weir.fish"

for f in weir.bash _weir weir.fish; do
	cmp -s "$scratch/$f" "$out/$f" || cp "$scratch/$f" "$out/$f"
	chmod 644 "$out/$f"
done
