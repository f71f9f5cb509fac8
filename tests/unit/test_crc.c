/* wire/crc: CRC-32C by the published vectors, and every version the same over lengths, offsets and cuts. */
#include "check.h"

#include "base/cpu.h"
#include "base/err.h"
#include "wire/crc.h"

typedef uint32_t crc_fn(uint32_t crc, const void *p, size_t n_bytes);

/* The definition, a bit at a time. */
static uint32_t by_bits(uint32_t crc, const void *p, size_t n_bytes)
{
	const uint8_t *b = p;
	uint32_t c = ~crc;
	for (size_t i = 0; i < n_bytes; i++) {
		c ^= b[i];
		for (int k = 0; k < 8; k++)
			c = c >> 1 ^ (0x82F63B78u & (0u - (c & 1u)));
	}
	return ~c;
}

static struct {
	const char *name;
	crc_fn *crc;
	bool is_here;
} versions[] = {
	{"bits", by_bits, true}, {"dispatched", crc_32c, true}, {"portable", crc_32c_portable, true},
#if defined(__x86_64__)
	{"sse42", crc_32c_sse42, false},
#elif defined(__aarch64__)
	{"armv8", crc_32c_armv8, false},
#endif
};

static void test_published_vectors(void)
{
	uint8_t zeros[32] = {0}, ones[32], up[32], down[32];
	/* An iSCSI read command: RFC 3720 B.4. */
	static const uint8_t iscsi[48] = {0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02};
	for (unsigned i = 0; i < 32; i++) {
		ones[i] = 0xff;
		up[i] = (uint8_t)i;
		down[i] = (uint8_t)(31 - i);
	}
	for (size_t v = 0; v < ARRAY_LEN(versions); v++) {
		if (!versions[v].is_here)
			continue;
		crc_fn *crc = versions[v].crc;
		bool ok = CHECK_EQ(crc(0, "123456789", 9), 0xE3069283) & CHECK_EQ(crc(0, zeros, 32), 0x8A9136AA) &
			CHECK_EQ(crc(0, ones, 32), 0x62A8AB43) & CHECK_EQ(crc(0, up, 32), 0x46DD794E) &
			CHECK_EQ(crc(0, down, 32), 0x113FDB5C) & CHECK_EQ(crc(0, iscsi, 48), 0xD9963A56) & CHECK_EQ(crc(0, "", 0), 0);
		if (!ok)
			CHECK_FAIL("version %s", versions[v].name);
	}
}

static void test_all_versions_are_the_same(void)
{
	static uint8_t data[70000];
	check_seed(2);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)check_rand();
	/* Every short length at every offset within a cache line; then lengths about the sizes where loops change. */
	size_t lengths[1200], n = 0;
	for (size_t l = 0; l <= 300; l++)
		lengths[n++] = l;
	static const size_t corners[] = {1024, 4096, 8192, 3 * 4096, 4 * 4096, 6 * 4096, 9 * 4096, 12 * 4096, 65536};
	for (size_t c = 0; c < ARRAY_LEN(corners); c++)
		for (size_t l = corners[c] - 9; l <= corners[c] + 9; l++)
			lengths[n++] = l;
	for (size_t i = 0; i < n; i++) {
		for (size_t offset = 0; offset < (lengths[i] <= 300 ? 16 : 3); offset++) {
			uint32_t start = (uint32_t)check_rand();
			uint32_t want = by_bits(start, data + offset, lengths[i]);
			for (size_t v = 1; v < ARRAY_LEN(versions); v++)
				if (versions[v].is_here && !CHECK_EQ(versions[v].crc(start, data + offset, lengths[i]), want)) {
					CHECK_FAIL("%s, %zu bytes at offset %zu", versions[v].name, lengths[i], offset);
					return;
				}
		}
	}
}

static void test_going_on_is_the_same_as_at_once(void)
{
	static uint8_t data[40000];
	check_seed(3);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)check_rand();
	for (size_t v = 1; v < ARRAY_LEN(versions); v++) {
		if (!versions[v].is_here)
			continue;
		uint32_t whole = versions[v].crc(0, data, sizeof(data));
		for (int i = 0; i < 200; i++) {
			size_t cut = check_rand_below(sizeof(data) + 1);
			uint32_t crc = versions[v].crc(0, data, cut);
			if (!CHECK_EQ(versions[v].crc(crc, data + cut, sizeof(data) - cut), whole)) {
				CHECK_FAIL("%s, cut at %zu", versions[v].name, cut);
				return;
			}
		}
	}
}

int main(void)
{
#if defined(__x86_64__)
	versions[3].is_here = cpu_has(CPU_SSE42);
#elif defined(__aarch64__)
	versions[3].is_here = cpu_has(CPU_CRC);
#endif
	CHECK_RUN(test_published_vectors);
	CHECK_RUN(test_all_versions_are_the_same);
	CHECK_RUN(test_going_on_is_the_same_as_at_once);
	return check_end();
}
