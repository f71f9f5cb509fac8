#!/bin/bash
# A file of libcore includes only its own layer and those below it (libcore/LAYERS, lowest first), and a library's
# headers are included only by the adapters in media and net.
. "$(dirname "$0")/../lib.sh"

layers()
{
	cd "$TOP/libcore"
	awk '
	FNR == NR { rank[$1] = ++n; next }
	FNR == 1 { split(FILENAME, part, "/"); mine = part[1]; files++
		if (!(mine in rank)) { print FILENAME ": " mine " is not in LAYERS"; bad = 1 } }
	/^#[ \t]*include[ \t]*"/ {
		split($0, quoted, "\""); split(quoted[2], part, "/"); other = part[1]
		if (quoted[2] !~ /\//) {
			if (quoted[2] !~ /\.inc$/ && quoted[2] !~ /_(table|kernel|pairs)\.h$/) {
				print FILENAME ":" FNR ": \"" quoted[2] "\" has no layer in front"; bad = 1 }
			next
		}
		if (!(other in rank)) { print FILENAME ":" FNR ": " other " is not in LAYERS"; bad = 1 }
		else if (rank[other] > rank[mine]) { print FILENAME ":" FNR ": " mine " includes " quoted[2]; bad = 1 }
	}
	END { if (files < 20) { print "only " files " files were read"; bad = 1 } exit bad }' LAYERS */*.[ch]
}

adapters()
{
	cd "$TOP"
	! grep -nE '^# *include *<(opus|ogg|sndfile|soxr|FLAC|mpg123|cairo|pulse|pipewire|spa/|jack|alsa|srtp|sodium|nettle|wavpack)[/.a-z0-9_]*' \
		libcore/base/* libcore/rt/* libcore/wire/* libcore/dsp/* libcore/meter/* libcore/mix/* libcore/tool/* libcore/leg/* libcore/stage/* cmd/*.c
}

test_case "every include goes downhill" layers
test_case "a library's headers stay in its adapter" adapters
done_testing
