# Completions of the weir tools for bash, made by `make completions` from the option tables of the tools.

# The options of a tool.
_weir_options()
{
	case $1 in
	weir) echo "-h --help --version --exec-path" ;;
	capture) echo "-r --rate -c --channels -f --format --no-dither -n --name -d --duration --start --realtime --block --ring --reconnect --no-sync --list --json -q --quiet -v --verbose --stats --stats-file -h --help --version" ;;
	encode) echo "-b --bitrate --frame --application --complexity --vbr --cvbr --cbr --fec --expect-loss --dtx -t --track -j --jobs -q --quiet -v --verbose --stats --stats-file -h --help --version" ;;
	decode) echo "-f --format --no-dither -t --track -q --quiet -v --verbose --stats --stats-file -h --help --version" ;;
	resample) echo "-r --rate -q --quality --phase -f --format --no-dither -j --jobs -t --track --quiet -v --verbose --stats --stats-file -h --help --version" ;;
	mix) echo "-t --track -g --gain --pan --matrix --control --spool -r --rate -c --channels -f --format --no-dither -n --name --limiter --normalize --minus --self --live -q --quiet -v --verbose --stats --stats-file -h --help --version" ;;
	mux) echo "-o --output --format -y --force -t --track --tag --split-every --split-on-clock --video --data --flac --bulk-fd --live --sync --max-gap --start-above --stop-below --pre-roll --rf64-above -q --quiet -v --verbose --stats --stats-file -h --help --version" ;;
	demux) echo "-t --track --split -o --output --video --frames --messages --bulk-fd -y --force -q --quiet -v --verbose --stats --stats-file -h --help --version" ;;
	impair) echo "--loss --burst --lose-every --delay --jitter --jitter-shape --spikes --stalls --trace --record-trace --overtake --drift --reorder --reorder-by --duplicate --bandwidth --queue --seed -t --track --deadline --raw --direction -d --duration -y --force -q --quiet -v --verbose --stats --stats-file -h --help --version" ;;
	netsend) echo "-t --track -f --format --packet-time --sdp --sdp-key -y --force --redundancy --key-file --iface --ttl --rtcp --port-step --pt --seq --timestamp --ssrc --session --announce --fast -q --quiet -v --verbose --stats --stats-file -h --help --version" ;;
	netrecv) echo "--codec --pt -r --rate -c --channels --from --max-senders --key-file --latency --glitches --no-retime --retime --block -d --duration --browse --json --save -y --force --iface --record-trace --replay --on-join --on-leave -q --quiet -v --verbose --stats --stats-file -h --help --version" ;;
	meter) echo "--json --interval --report --plot -y --force --through -t --track --compare --fail-above --silence --dual-mono --levels-only -q --quiet -v --verbose --stats --stats-file -h --help --version" ;;
	play) echo "-t --track --volume --latency --reconnect --no-sync -q --quiet -v --verbose --stats --stats-file -h --help --version" ;;
	inspect) echo "--json --verify -q --quiet -v --verbose --stats --stats-file -h --help --version" ;;
	keygen) echo "-o --output -y --force --profile --sdes --passphrase -q --quiet -v --verbose --stats --stats-file -h --help --version" ;;
	top) echo "--interval --once --json -q --quiet -v --verbose --stats --stats-file -h --help --version" ;;
	esac
}

# The value of an option of a tool: words, or @file, @folder, @none; nothing if it takes no value.
_weir_value()
{
	case $1:$2 in
	capture:-r | capture:--rate) echo "@none" ;;
	capture:-c | capture:--channels) echo "@none" ;;
	capture:-f | capture:--format) echo "s16 s24 s32 f32 s16be s24be s32be f32be f64 f64be s8 u8 alaw ulaw" ;;
	capture:-n | capture:--name) echo "@none" ;;
	capture:-d | capture:--duration) echo "@none" ;;
	capture:--start) echo "@none" ;;
	capture:--block) echo "@none" ;;
	capture:--ring) echo "@none" ;;
	capture:--stats-file) echo "@file" ;;
	encode:-b | encode:--bitrate) echo "@none" ;;
	encode:--frame) echo "2.5ms 5ms 10ms 20ms 40ms 60ms" ;;
	encode:--application) echo "audio voip lowdelay" ;;
	encode:--complexity) echo "@none" ;;
	encode:--expect-loss) echo "@none" ;;
	encode:-t | encode:--track) echo "@none" ;;
	encode:-j | encode:--jobs) echo "@none" ;;
	encode:--stats-file) echo "@file" ;;
	decode:-f | decode:--format) echo "s16 s24 s32 f32" ;;
	decode:-t | decode:--track) echo "@none" ;;
	decode:--stats-file) echo "@file" ;;
	resample:-r | resample:--rate) echo "@none" ;;
	resample:-q | resample:--quality) echo "quick low medium high very-high" ;;
	resample:--phase) echo "linear intermediate minimum" ;;
	resample:-f | resample:--format) echo "s16 s24 s32 f32 f64" ;;
	resample:-j | resample:--jobs) echo "@none" ;;
	resample:-t | resample:--track) echo "@none" ;;
	resample:--stats-file) echo "@file" ;;
	mix:-t | mix:--track) echo "@none" ;;
	mix:-g | mix:--gain) echo "@none" ;;
	mix:--pan) echo "@none" ;;
	mix:--matrix) echo "@file" ;;
	mix:--control) echo "@file" ;;
	mix:--spool) echo "@none" ;;
	mix:-r | mix:--rate) echo "@none" ;;
	mix:-c | mix:--channels) echo "@none" ;;
	mix:-f | mix:--format) echo "s16 s24 s32 f32" ;;
	mix:-n | mix:--name) echo "@none" ;;
	mix:--normalize) echo "@none" ;;
	mix:--self) echo "@none" ;;
	mix:--stats-file) echo "@file" ;;
	mux:-o | mux:--output) echo "@file" ;;
	mux:--format) echo "weir opus wav w64 rf64 flac caf aiff raw mka" ;;
	mux:-t | mux:--track) echo "@none" ;;
	mux:--tag) echo "@none" ;;
	mux:--split-every) echo "@none" ;;
	mux:--video) echo "@none" ;;
	mux:--data) echo "@none" ;;
	mux:--bulk-fd) echo "@none" ;;
	mux:--max-gap) echo "@none" ;;
	mux:--start-above) echo "@none" ;;
	mux:--stop-below) echo "@none" ;;
	mux:--pre-roll) echo "@none" ;;
	mux:--rf64-above) echo "@none" ;;
	mux:--stats-file) echo "@file" ;;
	demux:-t | demux:--track) echo "@none" ;;
	demux:--split) echo "@folder" ;;
	demux:-o | demux:--output) echo "@file" ;;
	demux:--video) echo "@file" ;;
	demux:--frames) echo "auto raw y4m weir" ;;
	demux:--messages) echo "auto raw weir" ;;
	demux:--bulk-fd) echo "@none" ;;
	demux:--stats-file) echo "@file" ;;
	impair:--loss) echo "@none" ;;
	impair:--burst) echo "@none" ;;
	impair:--lose-every) echo "@none" ;;
	impair:--delay) echo "@none" ;;
	impair:--jitter) echo "@none" ;;
	impair:--jitter-shape) echo "normal exponential uniform" ;;
	impair:--spikes) echo "@none" ;;
	impair:--stalls) echo "@none" ;;
	impair:--trace) echo "@file" ;;
	impair:--record-trace) echo "@file" ;;
	impair:--drift) echo "@none" ;;
	impair:--reorder) echo "@none" ;;
	impair:--reorder-by) echo "@none" ;;
	impair:--duplicate) echo "@none" ;;
	impair:--bandwidth) echo "@none" ;;
	impair:--queue) echo "@none" ;;
	impair:--seed) echo "@none" ;;
	impair:-t | impair:--track) echo "@none" ;;
	impair:--deadline) echo "@none" ;;
	impair:--direction) echo "both there back" ;;
	impair:-d | impair:--duration) echo "@none" ;;
	impair:--stats-file) echo "@file" ;;
	netsend:-t | netsend:--track) echo "@none" ;;
	netsend:-f | netsend:--format) echo "auto s16 s24" ;;
	netsend:--packet-time) echo "@none" ;;
	netsend:--sdp) echo "@file" ;;
	netsend:--redundancy) echo "@none" ;;
	netsend:--key-file) echo "@file" ;;
	netsend:--iface) echo "@none" ;;
	netsend:--ttl) echo "@none" ;;
	netsend:--rtcp) echo "mux next-port off" ;;
	netsend:--port-step) echo "@none" ;;
	netsend:--pt) echo "@none" ;;
	netsend:--seq) echo "@none" ;;
	netsend:--timestamp) echo "@none" ;;
	netsend:--ssrc) echo "@none" ;;
	netsend:--session) echo "@none" ;;
	netsend:--stats-file) echo "@file" ;;
	netrecv:--codec) echo "opus l16 l24" ;;
	netrecv:--pt) echo "@none" ;;
	netrecv:-r | netrecv:--rate) echo "@none" ;;
	netrecv:-c | netrecv:--channels) echo "@none" ;;
	netrecv:--from) echo "@none" ;;
	netrecv:--max-senders) echo "@none" ;;
	netrecv:--key-file) echo "@file" ;;
	netrecv:--latency) echo "@none" ;;
	netrecv:--glitches) echo "@none" ;;
	netrecv:--block) echo "@none" ;;
	netrecv:-d | netrecv:--duration) echo "@none" ;;
	netrecv:--save) echo "@folder" ;;
	netrecv:--iface) echo "@none" ;;
	netrecv:--record-trace) echo "@file" ;;
	netrecv:--replay) echo "@file" ;;
	netrecv:--on-join) echo "@none" ;;
	netrecv:--on-leave) echo "@none" ;;
	netrecv:--stats-file) echo "@file" ;;
	meter:--interval) echo "@none" ;;
	meter:--report) echo "@file" ;;
	meter:--plot) echo "@file" ;;
	meter:-t | meter:--track) echo "@none" ;;
	meter:--compare) echo "@file" ;;
	meter:--fail-above) echo "@none" ;;
	meter:--silence) echo "@none" ;;
	meter:--stats-file) echo "@file" ;;
	play:-t | play:--track) echo "@none" ;;
	play:--volume) echo "@none" ;;
	play:--latency) echo "@none" ;;
	play:--stats-file) echo "@file" ;;
	inspect:--stats-file) echo "@file" ;;
	keygen:-o | keygen:--output) echo "@file" ;;
	keygen:--profile) echo "aead sha1" ;;
	keygen:--passphrase) echo "@file" ;;
	keygen:--stats-file) echo "@file" ;;
	top:--interval) echo "@none" ;;
	top:--stats-file) echo "@file" ;;
	esac
}

_weir_tools="capture encode decode resample mix mux demux impair netsend netrecv meter play inspect keygen top"

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
