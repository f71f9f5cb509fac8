#!/usr/bin/env python3
"""SRTP from the RFCs, with nothing of any library: what the tests compare with.  Slow, and only for tests.

Checks itself against the published vectors of RFC 3711 (appendix B) and RFC 7714 (section 16) when it is run.
usage: srtp.py vectors    the check, and packets for tests/unit/test_srtp.c
"""
import hashlib
import hmac
import struct
import sys


def _tables():
    box, inverse = [0] * 256, [0] * 256
    p = q = 1
    while True:
        p = (p ^ p << 1 ^ (0x11b if p & 0x80 else 0)) & 0xff
        q ^= q << 1
        q ^= q << 2
        q ^= q << 4
        q &= 0xff
        q ^= 0x09 if q & 0x80 else 0
        x = q ^ (q << 1 | q >> 7) ^ (q << 2 | q >> 6) ^ (q << 3 | q >> 5) ^ (q << 4 | q >> 4)
        box[p] = (x ^ 0x63) & 0xff
        if p == 1:
            break
    box[0] = 0x63
    return box


BOX = _tables()


def _twice(x):
    return (x << 1 ^ (0x1b if x & 0x80 else 0)) & 0xff


class Aes128:
    """FIPS 197, encryption only."""

    def __init__(self, key):
        words = [list(key[i:i + 4]) for i in range(0, 16, 4)]
        rcon = 1
        for i in range(4, 44):
            w = list(words[i - 1])
            if i % 4 == 0:
                w = [BOX[b] for b in w[1:] + w[:1]]
                w[0] ^= rcon
                rcon = _twice(rcon)
            words.append([a ^ b for a, b in zip(words[i - 4], w)])
        self.round_keys = [sum(words[i:i + 4], []) for i in range(0, 44, 4)]

    def block(self, data):
        s = [a ^ b for a, b in zip(data, self.round_keys[0])]
        for n in range(1, 11):
            s = [BOX[b] for b in s]
            s = [s[(i + 4 * (i % 4)) % 16] for i in range(16)]
            if n < 10:
                t = []
                for c in range(0, 16, 4):
                    a = s[c:c + 4]
                    every = a[0] ^ a[1] ^ a[2] ^ a[3]
                    t += [a[i] ^ every ^ _twice(a[i] ^ a[(i + 1) % 4]) for i in range(4)]
                s = t
            s = [a ^ b for a, b in zip(s, self.round_keys[n])]
        return bytes(s)


def xor(a, b):
    return bytes(x ^ y for x, y in zip(a, b))


def counter_stream(key, iv, n):
    """AES in counter mode from the 16 bytes iv on, the last two counting (RFC 3711 section 4.1.1)."""
    aes, start = Aes128(key), int.from_bytes(iv, "big")
    return b"".join(aes.block((start + i).to_bytes(16, "big")) for i in range((n + 15) // 16))[:n]


def gcm(key, iv, aad, plain=None, cipher=None):
    """NIST SP 800-38D with a 96-bit IV.  Returns: (text, tag)."""
    aes = Aes128(key)
    h = int.from_bytes(aes.block(bytes(16)), "big")

    def multiply(x, y):
        z = 0
        for i in range(127, -1, -1):
            if x >> i & 1:
                z ^= y
            y = y >> 1 ^ (0xe1 << 120 if y & 1 else 0)
        return z

    def keystream(n):
        return b"".join(aes.block(iv + struct.pack(">I", 2 + i)) for i in range((n + 15) // 16))[:n]

    text = xor(plain, keystream(len(plain))) if plain is not None else cipher
    y = 0
    for part in (aad, text):
        for i in range(0, len(part), 16):
            y = multiply(y ^ int.from_bytes(part[i:i + 16].ljust(16, b"\0"), "big"), h)
    y = multiply(y ^ (len(aad) * 8 << 64 | len(text) * 8), h)
    tag = xor(y.to_bytes(16, "big"), aes.block(iv + b"\0\0\0\1"))
    return (text if plain is not None else xor(cipher, keystream(len(cipher)))), tag


def derive(master_key, master_salt, label, n):
    """RFC 3711 section 4.3.1, rate 0; a salt of 12 bytes is padded on the right (RFC 7714 section 11)."""
    x = int.from_bytes(master_salt.ljust(14, b"\0"), "big") ^ label << 48
    return counter_stream(master_key, (x << 16).to_bytes(16, "big"), n)


class Srtp:
    """One SSRC.  profile: "aead" or "sha1"; key: master key and salt in one."""

    def __init__(self, profile, key):
        self.profile = profile
        mk, ms = key[:16], key[16:]
        self.k, self.salt, self.a = (derive(mk, ms, l, n) for l, n in ((0, 16), (2, len(ms)), (1, 20)))
        self.ck, self.csalt, self.ca = (derive(mk, ms, l, n) for l, n in ((3, 16), (5, len(ms)), (4, 20)))

    def _header(self, packet):
        n = 12 + 4 * (packet[0] & 15)
        if packet[0] & 0x10:
            n += 4 + 4 * struct.unpack(">H", packet[n + 2:n + 4])[0]
        return n

    def _cm_iv(self, salt, ssrc, index):
        return (int.from_bytes(salt, "big") << 16 ^ ssrc << 64 ^ index << 16).to_bytes(16, "big")

    def protect(self, packet, roc=0):
        n = self._header(packet)
        seq, ssrc = struct.unpack(">H", packet[2:4])[0], struct.unpack(">I", packet[8:12])[0]
        if self.profile == "aead":
            iv = xor(struct.pack(">HIIH", 0, ssrc, roc, seq), self.salt)
            text, tag = gcm(self.k, iv, packet[:n], plain=packet[n:])
            return packet[:n] + text + tag
        body = packet[:n] + xor(packet[n:], counter_stream(self.k, self._cm_iv(self.salt, ssrc, roc << 16 | seq), len(packet) - n))
        return body + hmac.new(self.a, body + struct.pack(">I", roc), hashlib.sha1).digest()[:10]

    def unprotect(self, packet, roc=0):
        """Returns: the packet, None if it is not authentic."""
        n = self._header(packet)
        seq, ssrc = struct.unpack(">H", packet[2:4])[0], struct.unpack(">I", packet[8:12])[0]
        if self.profile == "aead":
            iv = xor(struct.pack(">HIIH", 0, ssrc, roc, seq), self.salt)
            text, tag = gcm(self.k, iv, packet[:n], cipher=packet[n:-16])
            return packet[:n] + text if tag == packet[-16:] else None
        body = packet[:-10]
        if hmac.new(self.a, body + struct.pack(">I", roc), hashlib.sha1).digest()[:10] != packet[-10:]:
            return None
        return body[:n] + xor(body[n:], counter_stream(self.k, self._cm_iv(self.salt, ssrc, roc << 16 | seq), len(body) - n))

    def protect_rtcp(self, packet, index):
        ssrc, e = struct.unpack(">I", packet[4:8])[0], struct.pack(">I", 1 << 31 | index)
        if self.profile == "aead":
            iv = xor(struct.pack(">HIHI", 0, ssrc, 0, index), self.csalt)
            text, tag = gcm(self.ck, iv, packet[:8] + e, plain=packet[8:])
            return packet[:8] + text + tag + e
        body = packet[:8] + xor(packet[8:], counter_stream(self.ck, self._cm_iv(self.csalt, ssrc, index), len(packet) - 8)) + e
        return body + hmac.new(self.ca, body, hashlib.sha1).digest()[:10]

    def unprotect_rtcp(self, packet):
        """Returns: the compound packet and its index, None if it is not authentic."""
        ssrc = struct.unpack(">I", packet[4:8])[0]
        if self.profile == "aead":
            body, e = packet[:-4], packet[-4:]
            index = struct.unpack(">I", e)[0] & 0x7fffffff
            text, tag = gcm(self.ck, xor(struct.pack(">HIHI", 0, ssrc, 0, index), self.csalt), packet[:8] + e, cipher=body[8:-16])
            return (packet[:8] + text, index) if tag == body[-16:] else None
        body, e = packet[:-14], packet[-14:-10]
        index = struct.unpack(">I", e)[0] & 0x7fffffff
        if hmac.new(self.ca, body + e, hashlib.sha1).digest()[:10] != packet[-10:]:
            return None
        return body[:8] + xor(body[8:], counter_stream(self.ck, self._cm_iv(self.csalt, ssrc, index), len(body) - 8)), index


def check():
    h = bytes.fromhex
    # FIPS 197 appendix B
    assert Aes128(h("2b7e151628aed2a6abf7158809cf4f3c")).block(h("3243f6a8885a308d313198a2e0370734")) == h("3925841d02dc09fbdc118597196a0b32")
    # RFC 3711 B.2
    assert counter_stream(h("2B7E151628AED2A6ABF7158809CF4F3C"), h("F0F1F2F3F4F5F6F7F8F9FAFBFCFD0000"), 48) == h(
        "E03EAD0935C95E80E166B16DD92B4EB4D23513162B02D0F72A43A2FE4A5F97AB41E95B3BB0A2E8DD477901E4FCA894C0")
    # RFC 3711 B.3
    s = Srtp("sha1", h("E1F97A0D3E018BE0D64FA32C06DE41390EC675AD498AFEEBB6960B3AABE6"))
    assert s.k == h("C61E7A93744F39EE10734AFE3FF7A087")
    assert s.salt == h("30CBBC08863D8C85D49DB34A9AE1")
    assert s.a == h("CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4")
    # RFC 7714 16.1.1, which begins at the session keys
    g = Srtp("aead", bytes(28))
    g.k, g.salt = bytes(range(16)), h("517569642070726f2071756f")
    packet = h("8040f17b8041f8d35501a0b2") + b"Gallia est omnis divisa in partes tres"
    sealed = h("8040f17b8041f8d35501a0b2f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d19b36de3adf8833"
               "899d7f27beb16a9152cf765ee4390cce")
    assert g.protect(packet) == sealed
    assert g.unprotect(sealed) == packet
    assert g.unprotect(sealed[:-1] + b"\0") is None


def vectors():
    """A packet under the master keys of RFC 3711 B.3, for both profiles."""
    h = bytes.fromhex
    rtp = h("800f1234decafbadcafebabe") + b"\xab" * 16
    rtcp = h("81c8000bcafebabe") + b"\xab" * 40
    for profile, key in (("sha1", h("E1F97A0D3E018BE0D64FA32C06DE41390EC675AD498AFEEBB6960B3AABE6")),
                         ("aead", h("000102030405060708090a0b0c0d0e0fa0a1a2a3a4a5a6a7a8a9aaab"))):
        s = Srtp(profile, key)
        print(profile, "rtp ", s.protect(rtp).hex())
        print(profile, "roc5", s.protect(rtp, 5).hex())
        print(profile, "rtcp", s.protect_rtcp(rtcp, 1).hex())


if __name__ == "__main__":
    if sys.argv[1:] != ["vectors"]:
        sys.exit(__doc__)
    check()
    vectors()
