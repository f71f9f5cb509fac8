# Every tool under valgrind: see faults.py.
. "$(dirname "$0")/../lib.sh"
cd "$TMPDIR" || exit 1
"$PYTHON" "$TOP/tests/faults/faults.py" leak
