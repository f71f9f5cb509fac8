# play, and devices in general, where there is no sound system: what is said, and with which status.  tests/live has the others.
. "$(dirname "$0")/../lib.sh"

# Nobody's servers are asked, and none is started.
export PULSE_SERVER=unix:$TMPDIR/nowhere PIPEWIRE_REMOTE=$TMPDIR/nowhere JACK_DEFAULT_SERVER=weir-nowhere-$$ JACK_NO_START_SERVER=1
export XDG_RUNTIME_DIR=$TMPDIR ALSA_CONFIG_PATH=$TMPDIR/none.conf

no_device()
{
	capture -d 10ms gen:silence >a.weir
	local system
	for system in pulse pipewire jack alsa; do
		expect_status 1 play "$system:" <a.weir 2>err
		one_line err "^play: $system:?: "
		expect_status 1 capture "$system:" 2>err >out
		one_line err "^capture: $system:?: "
		empty out
	done
	expect_status 1 play <a.weir 2>err
	one_line err '^play: no device: (none of the sound systems answers|this build has no support)'
}

list()
{
	capture --list >list.txt
	contains list.txt Devices:
	contains list.txt gen:count
	capture --list --json >list.json
	eq "$(json list.json '[x for x in d["devices"] if x["system"] != "alsa"]')" '[]'
	eq "$(json list.json 'len(d["generators"])')" 7
}

usage()
{
	expect_status 2 play a.wav b.wav 2>err </dev/null
	one_line err "one input at most"
	expect_status 2 play --latency 2h pulse: 2>err </dev/null
	one_line err "0.0001 to 60"
	expect_status 2 play --volume 99dB pulse: 2>err </dev/null
	one_line err "40"
	expect_status 2 capture --ring 1ms pulse: 2>err >out
	one_line err "0.01 to 3600"
}

wrong_input()
{
	capture -d 100ms gen:silence | encode >coded.weir
	expect_status 1 play pulse: coded.weir 2>err
	one_line err 'track 1 is coded: put `weir decode` in front'
	expect_status 1 play pulse: /dev/null 2>err
	one_line err '^play: /dev/null: '
	expect_status 1 play -t nobody pulse: coded.weir 2>err
	one_line err 'nobody: no such track'
}

# The libraries of the sound systems are loaded when a device is named, and not before.
not_linked()
{
	have ldd || skip "ldd is not installed"
	local t
	for t in capture play; do
		ldd "$(command -v $t)" >libraries
		! grep -qE 'libjack|libpulse|libpipewire|libasound' libraries
	done
}

test_case "no sound system answers: one line, status 1, no stream" no_device
test_case "the list without devices" list
test_case "wrong usage" usage
test_case "what cannot be played" wrong_input
test_case "the sound libraries are not linked" not_linked
done_testing
