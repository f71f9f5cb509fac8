#!/bin/bash
# A minute of the qualification: 32 channels beside 1080p60, none lost, all counted; rates and waits where the machine is quiet.  It runs alone, and
# has a second try: pictures that take a good part of the memory's rate go beside the sound.
. "$(dirname "$0")/../lib.sh"

a_minute()
{
	local rc=0
	"$PYTHON" "$TOP/tests/qualify/qualify.py" --minutes 0.6 --baseline 4 --artefacts a --json out.json "$B" >report 2>said || rc=$?
	command grep -E '^\| (unique|frames sent|audio|continuity|machine)|^- Missed|^Others' report || :
	[ $rc = 0 ] || fail "$(cat said)"
	json out.json 'all(a["sound"]["dropped_frames"] == 0 for a in d["arms"] if "sound" in a)' | grep -qx true
	eq "$(json out.json 'd["arms"][2]["sound"]["frames"]')" 1728000 "audio frames beside pictures"
	json out.json 'd["arms"][2]["pictures"]["frames_sent"] == 2160' | grep -qx true
}

pictures_in_a_pipe_of_their_own()
{
	"$PYTHON" "$TOP/tests/qualify/qualify.py" --minutes 0.05 --arms both --transport bulk --artefacts a --json out.json "$B" >report 2>said ||
		fail "$(cat said report)"
	eq "$(json out.json 'd["arms"][0]["sound"]["frames"]')" 144000 "audio frames"
}

[ -z "${SAN-}" ] || skip_all "the sanitizers take the time that is measured"
[ -x "$B/tests/qualify/load" ] || skip_all "tests/qualify/load is not built"
test_case "32 channels beside 1080p60 for a minute" a_minute
test_case "with the pictures in a pipe of their own" pictures_in_a_pipe_of_their_own
done_testing
