# For tests of srtp://, after netlib.sh and net_begin: a file of noise, and keys.

frames=24000
make_wav "$TMPDIR/a.wav" 48000 2 s16 $frames
tail -c +45 "$TMPDIR/a.wav" >"$TMPDIR/a.raw"
for profile in aead sha1; do
	keygen --profile $profile -o "$TMPDIR/$profile.key" || skip_all "keygen does not run"
	keygen --profile $profile -o "$TMPDIR/$profile-other.key"
done

# listen KEYFILE OPTION…: hear, with this key.
listen()
{
	hear --no-retime --latency 100ms --key-file "$@" srtp://127.0.0.1:5004
}

# got: what was heard is the file, to the bit.
got()
{
	wait_for 10 heard frames_out $frames
	stop
	samples out.weir >got.raw
	same "$TMPDIR/a.raw" got.raw
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
