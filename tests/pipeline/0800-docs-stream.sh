#!/bin/bash
# weir-stream(5) is the specification: its tables add up, agree with the headers, and its hex is what the tools write
# and read.
. "$(dirname "$0")/../lib.sh"

page=$TOP/man/weir-stream.5

# page.py COMMAND: works on the page by its own tables and hex blocks.
cat >"$TMPDIR/page.py" <<'PY'
import json, re, struct, sys

page = open(sys.argv[2], encoding="utf-8").read()

def table(name):
    """Rows (offset, size, name) of a table of offsets, and its length and beginning."""
    m = re.search(r'^\.\\" table: %s (\d+)(?: from (\d+))?\n(.*?)^\.El' % re.escape(name), page, re.S | re.M)
    rows = re.findall(r'^\.It (\d+) Ta (\d+) Ta (\\&-|Va (\w+)) Ta (.*)$', m.group(3), re.M)
    return [(int(o), int(s), n, text) for o, s, _, n, text in rows], int(m.group(1)), int(m.group(2) or 0)

def hexes(name):
    m = re.search(r'^\.\\" hex: %s\n\.Bd[^\n]*\n(.*?)^\.Ed' % name, page, re.S | re.M)
    return bytes.fromhex(re.sub(r"\s", "", m.group(1)))

def decode(name, b):
    """The fields of a table, by what it says of them."""
    rows, _, base = table(name)
    out = {}
    for off, size, field, text in rows:
        raw = b[off:off + size]
        assert len(raw) == size, (name, field)
        if not field:
            assert not any(raw), (name, off, "is not 0")
        elif size > 8 or field in ("uuid", "boot_id"):
            out[field] = raw.hex()
        else:
            out[field] = int.from_bytes(raw, "little", signed=bool(re.match(r"i\d+", text)))
    return out

def tlvs(b):
    out, at = {}, 0
    while at < len(b):
        tag, zero, n = struct.unpack_from("<HHI", b, at)
        assert zero == 0
        out[tag] = b[at + 8:at + 8 + n]
        pad = -n % 8
        assert not any(b[at + 8 + n:at + 8 + n + pad])
        at += 8 + n + pad
    assert at == len(b)
    return out

def crc(b):
    c = 0xFFFFFFFF
    for x in b:
        c ^= x
        for _ in range(8):
            c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    return c ^ 0xFFFFFFFF

def packet(b):
    """Header fields, payload and the bytes behind it."""
    h = decode("header", b)
    assert h["sync"] == 0xD2494557 and h["version"] == 0x10
    assert crc(b[:60]) == h["hcrc"], "hcrc"
    n = 64 * h["hunits"]
    payload = b[n:n + h["payload_bytes"]]
    if h["flags"] & 0x20:
        assert crc(payload) == h["pcrc"], "pcrc"
    end = n + (h["payload_bytes"] + 63) // 64 * 64
    assert len(b) >= end and not any(b[n + len(payload):end]), "padding"
    return h, payload, b[end:]

def tables():
    names = re.findall(r'^\.\\" table: (\S+)', page, re.M)
    assert len(names) >= 8, names
    for name in names:
        rows, length, base = table(name)
        at = base
        for off, size, field, _ in rows:
            assert off == at, f"{name}: {field or 'a row'} is at {off}, the row before ends at {at}"
            at += size
        assert at == base + length, f"{name} ends at {at}, not {base + length}"

def vector():
    parts = [hexes(n) for n in ("STREAM", "TRACK", "DATA", "END")]
    assert [len(p) for p in parts] == [192, 256, 192, 128], [len(p) for p in parts]
    whole = b"".join(parts)
    said = re.search(r"CRC-32C\s+of\s+all\s+768\s+bytes\s+is\s+0x([0-9A-F]{8})", page)
    assert crc(whole) == int(said.group(1), 16) == 0xA4F927CF
    open("vector.weir", "wb").write(whole)

    h, p, rest = packet(whole)
    s = decode("STREAM", p)
    assert h["type"] == 1 and h["track"] == 0
    assert s["uuid"][:8] == struct.pack("<I", h["sid"]).hex() == "78563412"
    assert (s["t0_utc_ns"], s["flags"], s["max_payload_bytes"], s["announce_ms"]) == (1700000000000000000, 1, 65536, 500)
    assert (s["n_tracks"], s["clock_quality"], s["tai_utc_s"], s["n_packets"]) == (1, 2, 37, 0)
    assert tlvs(p[64:]) == {1: b"demo"}
    h, p, rest = packet(rest)
    t = decode("TRACK", p)
    a = decode("TRACK-audio", p)
    assert h["type"] == 2 and h["track"] == 1
    assert (t["kind"], t["policy"], t["codec"], t["rate_num"], t["rate_den"], t["nominal_dur"]) == (1, 0, 1, 48000, 1, 64)
    assert (a["channels"], a["sample"], a["layout"], a["frame_bytes"], a["valid_bits"], a["wave_mask"]) == (1, 1, 1, 2, 16, 4)
    assert a["original_rate_hz"] == 48000
    assert tlvs(p[128:]) == {1: b"mic"}
    h, p, rest = packet(rest)
    assert (h["type"], h["flags"], h["pos"], h["dur"], h["seq"], h["object_bytes"]) == (3, 0x21, 0, 64, 0, 128)
    assert h["utc_ns"] == 1700000000000000000
    assert struct.unpack("<64h", p) == tuple(range(64))
    h, p, rest = packet(rest)
    e = decode("END", p)
    assert h["type"] == 6 and h["utc_ns"] == -2**63
    assert (e["reason"], e["n_packets"], e["n_payload_bytes"]) == (0, 3, 80 + 144 + 128)
    assert rest == b""

def others():
    h, p, rest = packet(hexes("GAP"))
    g = decode("GAP", p)
    assert rest == b"" and (h["type"], h["track"], h["pos"], h["dur"]) == (4, 1, 64, 480)
    assert (g["reason"], g["n_objects"], g["skipped_bytes"], g["utc_ns"]) == (2, 1, 0, -2**63)
    assert tlvs(hexes("TAGS")) == {9: b"TITLE=Reed\0ARTIST=Weir\0"}

def values():
    headers = "".join(open(f, encoding="utf-8").read() for f in sys.argv[3:])
    headers = re.sub(r"/\*.*?\*/", "", headers, flags=re.S)
    marks = re.findall(r'^\.\\" values: enum (\w+) (\w+)\n(.*?)^\.El', page, re.S | re.M)
    assert len(marks) >= 8, len(marks)
    for enum, prefix, body in marks:
        said = {n: int(v, 0) for v, n in re.findall(r"^\.It (0x[0-9A-F]+|\d+)(?: to \S+)? Ta (\w+) Ta", body, re.M)}
        source = re.search(r"enum %s \{(.*?)\}" % enum, headers, re.S).group(1)
        real, at = {}, 0
        for item in filter(None, (i.strip() for i in source.split(","))):
            name, _, value = (x.strip() for x in item.partition("="))
            at = int(value, 0) if value else at
            real[name] = at
            at += 1
        real = {n[len(prefix):]: v for n, v in real.items() if "_N_" not in n}
        assert said == real, f"enum {enum}: the page has {said}, the header {real}"

def fields():
    """Names in the tables are those of the structs, so that code, page and JSON speak of the same things."""
    headers = "".join(open(f, encoding="utf-8").read() for f in sys.argv[3:])
    headers = re.sub(r"/\*.*?\*/", "", headers, flags=re.S)
    for name in re.findall(r'^\.\\" table: (\S+)', page, re.M):
        if name in ("TRACK-video", "TRACK-data"):
            continue
        for _, _, field, _ in table(name)[0]:
            if field and field not in ("sync", "hcrc"):
                assert re.search(r"\b%s\b" % field, headers), f"{name}: no struct has a field {field}"

def inspected():
    """What the page says of its stream against what inspect says."""
    lines = [json.loads(l) for l in open("inspect.jsonl", encoding="utf-8")]
    by_type = {}
    for l in lines:
        if "type" in l:
            by_type.setdefault(l["type"], l)
    rest = hexes("STREAM") + hexes("TRACK") + hexes("DATA") + hexes("END")
    compared = 0
    for kind, tabs in (("STREAM", ["STREAM"]), ("TRACK", ["TRACK", "TRACK-audio"]), ("DATA", []), ("END", ["END"])):
        h, p, rest = packet(rest)
        got = by_type[kind]
        want = {k: h[k] for k in ("track", "pos", "dur", "seq", "dropped")}
        if kind != "DATA":
            # The header's words mean little in control packets.
            want = {"track": h["track"]}
        else:
            want["bytes"] = h["payload_bytes"]
            want["utc_ns"] = h["utc_ns"]
        for t in tabs:
            want.update({k: v for k, v in decode(t, p).items() if k not in ("flags",)})
        for k, v in want.items():
            if k not in got or isinstance(got[k], str) and not isinstance(v, str):
                continue
            g = got[k].replace("-", "") if k == "uuid" else got[k]
            if g is None:
                assert v == -2**63, (kind, k)
                continue
            assert g == v, f"{kind}: {k} is {v} in the page, {got[k]} in inspect --json"
            compared += 1
    assert compared >= 25, f"only {compared} fields could be compared"
    s = lines[-1]["summary"]
    assert s["complete"] is True and s["frames"]["1"] == 64 and s["gaps"] == 0, s

globals()[sys.argv[1]]()
PY

by_page() { "$PYTHON" "$TMPDIR/page.py" "$1" "$page" "$TOP/libcore/wire/packet.h" "$TOP/libcore/wire/track.h"; }

inspects()
{
	by_page vector
	expect_status 0 inspect --verify vector.weir
	inspect --json vector.weir >inspect.jsonl
	by_page inspected
}

# Each byte matters: a stream with any one byte changed is not what it was, except in padding.
damaged()
{
	by_page vector
	local at
	for at in 4 12 16 24 63 64 100 200 260 390 450 500 600 650 700; do
		cp vector.weir bad.weir
		printf '\377' | dd of=bad.weir bs=1 seek=$at conv=notrunc status=none
		cmp -s vector.weir bad.weir && printf '\376' | dd of=bad.weir bs=1 seek=$at conv=notrunc status=none
		status_of inspect --verify bad.weir >out 2>&1
		[ "$status" = 3 ] || [ "$status" = 1 ] || fail "byte $at changed: status $status"
	done
}

passes_routing()
{
	# Through tools that only route the audio and its places stay as they are.
	by_page vector
	mux <vector.weir | demux >routed.weir
	expect_status 0 inspect --verify routed.weir
	inspect --json routed.weir | grep '"DATA"' >data.json
	eq "$(json data.json 'd["utc_ns"], d["pos"], d["dur"], d["bytes"]')" '[1700000000000000000, 0, 64, 128]'
	mux -o out.raw <vector.weir
	eq "$(od -An -v -tu2 -w128 out.raw | tr -s ' ')" " $(seq -s ' ' 0 63)"
}

gap_is_read()
{
	"$PYTHON" - "$page" <<'PY'
import re, sys
page = open(sys.argv[1], encoding="utf-8").read()
def hexes(name):
    m = re.search(r'^\.\\" hex: %s\n\.Bd[^\n]*\n(.*?)^\.Ed' % name, page, re.S | re.M)
    return bytes.fromhex(re.sub(r"\s", "", m.group(1)))
open("gap.weir", "wb").write(b"".join(map(hexes, ("STREAM", "TRACK", "DATA", "GAP", "END"))))
PY
	status_of inspect --json gap.weir >gap.jsonl
	eq "$(json gap.jsonl 'd["summary"]["gaps"], d["summary"]["lost_frames"]')" '[1, 480]'
	grep '"GAP"' gap.jsonl >gap.json
	eq "$(json gap.json 'd["track"], d["pos"], d["dur"], d["n_objects"]')" '[1, 64, 480, 1]'
}

test_case "the tables of offsets have no hole and no overlap" by_page tables
test_case "the stream in hex is what the tables say, CRCs included" by_page vector
test_case "the other hex is what the tables say" by_page others
test_case "the codes are those of the headers" by_page values
test_case "the names are those of the headers" by_page fields
test_case "inspect reads the stream in hex as the page does" inspects
test_case "no byte of it can change unseen" damaged
test_case "it passes the routing tools and comes out as samples" passes_routing
test_case "the GAP in hex is a loss of 480 frames" gap_is_read
done_testing
