# For tests of srtp://, after lib.sh and net_begin: a file of noise, keys, and a netrecv to hear with.

frames=24000
make_wav "$TMPDIR/a.wav" 48000 2 s16 $frames
tail -c +45 "$TMPDIR/a.wav" >"$TMPDIR/a.raw"
for profile in aead sha1; do
	keygen --profile $profile -o "$TMPDIR/$profile.key" || skip_all "keygen does not run"
	keygen --profile $profile -o "$TMPDIR/$profile-other.key"
done

# hear PORT KEYFILE OPTION…: netrecv there in the background: out.weir, err, stats; ready when this returns.
hear()
{
	local port=$1 key=$2
	shift 2
	netrecv --no-retime --latency 100ms --key-file "$key" --stats=0.05 --stats-file stats "$@" "srtp://127.0.0.1:$port" >out.weir 2>err &
	receiver=$!
	wait_for 5 udp_bound "$port"
}

stop()
{
	kill -INT "$receiver"
	wait "$receiver"
}

said()
{
	[ -s stats ] && [ "$(tail -n 1 stats | json - "int(d.get('$1', 0) >= $2)" 2>/dev/null)" = 1 ]
}

# got [FRAMES]: what was heard is the file, to the bit.
got()
{
	wait_for 5 said frames_out "${1-$frames}"
	stop
	"$PYTHON" "$TOP/tests/pipeline/weirfile.py" pcm out.weir 1 got.raw >/dev/null
	head -c $((4 * ${1-$frames})) "$TMPDIR/a.raw" >want.raw
	same want.raw got.raw
}

# sdes PROFILE FILE: the key as SDES has it; prints base64.
sdes()
{
	keygen --profile "$1" --sdes -o "$2"
	cut -d : -f 2 "$2"
}

hex()
{
	base64 -d | od -A n -v -t x1 | tr -d ' \n'
}
