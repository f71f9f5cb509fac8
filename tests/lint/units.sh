#!/bin/bash
# A billion nanoseconds a second are known in one place, base/units.h; everyone else calls it.
. "$(dirname "$0")/../lib.sh"

units()
{
	cd "$TOP"
	# The range of an option is no conversion.
	! grep -nE '(^|[^0-9A-Za-z_.])(1000000000|1e9|1\.0e9)([^0-9]|$)' \
		$(ls libcore/*/*.[ch] cmd/*.c | command grep -v '^libcore/base/units\.') | command grep -v 'OPT_'
}

test_case "only base/units converts seconds to nanoseconds" units
done_testing
