# Every tool, with heap calls that fail or are disturbed: see faults.py.
. "$(dirname "$0")/../lib.sh"
cd "$TMPDIR" || exit 1
"$PYTHON" "$TOP/tests/faults/faults.py" heap
