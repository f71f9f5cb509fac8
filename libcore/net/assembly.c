#include "net/assembly.h"

#include <string.h>

size_t assembly_bytes(unsigned channels, unsigned sample_bytes, uint32_t max_frames)
{
	if (!channels || channels > ASSEMBLY_MAX_CHANNELS || sample_bytes < 1 || sample_bytes > 4 || !max_frames ||
		max_frames > JITTER_MAX_SLOT_BYTES / channels / sample_bytes)
		return 0;
	return (size_t)ASSEMBLY_PLACES * channels * sample_bytes * max_frames;
}

void assembly_init(struct assembly *a, unsigned channels, unsigned sample_bytes, uint32_t max_frames, void *memory)
{
	memset(a, 0, sizeof(*a));
	a->channels = channels;
	a->sample_bytes = sample_bytes;
	a->max_frames = max_frames;
	a->place_bytes = (size_t)channels * sample_bytes * max_frames;
	a->bytes = memory;
}

/* ---- who takes part ---- */

int assembly_join(struct assembly *a, unsigned first_channel, unsigned channels, int64_t now_ns)
{
	int found = -1;

	if (!channels || first_channel >= a->channels || channels > a->channels - first_channel)
		return -1;
	for (int i = ASSEMBLY_MAX_MEMBERS - 1; i >= 0; i--) {
		const struct assembly_member *m = &a->members[i];
		if (!m->used)
			found = i;
		else if (first_channel < m->first_channel + m->channels && m->first_channel < first_channel + channels)
			return -1;
	}
	if (found < 0)
		return -1;
	a->members[found] = (struct assembly_member){ true, first_channel, channels, now_ns };
	a->n_members++;
	a->covered += channels;
	return found;
}

void assembly_leave(struct assembly *a, unsigned member)
{
	if (member >= ASSEMBLY_MAX_MEMBERS || !a->members[member].used)
		return;
	a->members[member].used = false;
	a->n_members--;
	a->covered -= a->members[member].channels;
	/* Its number may be another's soon. */
	for (unsigned i = 0; i < ASSEMBLY_PLACES; i++)
		a->places[i].members &= ~(1u << member);
}

static bool is_whole(const struct assembly *a, const struct assembly_place *p, int64_t now_ns)
{
	if (a->covered < a->channels && now_ns - a->begin_ns < ASSEMBLY_WAIT_NS)
		return false;
	for (unsigned i = 0; i < ASSEMBLY_MAX_MEMBERS; i++) {
		const struct assembly_member *m = &a->members[i];
		if (m->used && !(p->members & 1u << i) && now_ns - m->last_ns < ASSEMBLY_WAIT_NS)
			return false;
	}
	return true;
}

/* ---- positions ---- */

static uint8_t *bytes_of(const struct assembly *a, unsigned place)
{
	return a->bytes + place * a->place_bytes;
}

/* The place of a position: nearly always one of the newest. */
static unsigned place_of(struct assembly *a, int64_t pos, uint32_t frames)
{
	unsigned oldest = 0;

	for (unsigned i = 0; i < ASSEMBLY_PLACES; i++) {
		unsigned at = (a->newest + ASSEMBLY_PLACES - i) % ASSEMBLY_PLACES;
		if (a->places[at].used && a->places[at].pos == pos)
			return at;
	}
	for (unsigned i = 1; i <= ASSEMBLY_PLACES; i++) {
		unsigned at = (a->newest + i) % ASSEMBLY_PLACES;
		oldest = at;
		if (!a->places[at].used)
			break;
		if (i == ASSEMBLY_PLACES) {
			oldest = (a->newest + 1) % ASSEMBLY_PLACES;
			a->n_dropped++;
		}
	}
	a->newest = oldest;
	a->n_waiting += !a->places[oldest].used;
	a->places[oldest] = (struct assembly_place){ .used = true, .follows = true, .pos = pos, .frames = frames };
	memset(bytes_of(a, oldest), 0, (size_t)frames * a->channels * a->sample_bytes);
	return oldest;
}

static void hand_out(struct assembly *a, unsigned at, uint16_t flags, uint16_t tag, struct jitter_packet *out)
{
	struct assembly_place *p = &a->places[at];

	*out = (struct jitter_packet){ .pos = p->pos, .dur_frames = p->frames, .n_bytes = p->frames * a->channels * a->sample_bytes, .bytes = bytes_of(a, at),
		.arrival_ns = p->arrival_ns, .flags = flags, .tag = tag };
	p->used = false;
	a->n_waiting--;
}

static void copy_samples(const struct assembly *a, uint8_t *to, const struct assembly_member *m, uint32_t frames, const uint8_t *from)
{
	unsigned size = a->sample_bytes, stride = a->channels * size;

	to += m->first_channel * size;
	for (uint32_t i = 0; i < frames; i++, to += stride) {
		uint8_t *sample = to;
		for (unsigned c = 0; c < m->channels; c++, sample += size, from += size)
			for (unsigned k = 0; k < size; k++)
				sample[k] = from[size - 1 - k];
	}
}

enum assembly_put assembly_put(struct assembly *a, unsigned member, int64_t pos, uint32_t frames, const uint8_t *samples, bool follows, bool copy,
	int64_t arrival_ns, struct jitter_packet *whole)
{
	struct assembly_member *m = &a->members[member];

	if (!frames || frames > a->max_frames)
		return ASSEMBLY_REFUSED;
	if (!a->begun) {
		a->begun = true;
		a->begin_ns = arrival_ns;
	}
	if (!copy)
		m->last_ns = arrival_ns;
	unsigned at = place_of(a, pos, frames);
	struct assembly_place *p = &a->places[at];
	if (p->frames != frames)
		return ASSEMBLY_REFUSED;
	if (p->members & 1u << member)
		return ASSEMBLY_HAD;
	copy_samples(a, bytes_of(a, at), m, frames, samples);
	p->members |= 1u << member;
	p->follows = p->follows && follows;
	p->arrival_ns = arrival_ns;
	if (!is_whole(a, p, arrival_ns))
		return ASSEMBLY_KEPT;
	hand_out(a, at, (uint16_t)((copy ? JITTER_COPY : 0) | (p->follows ? JITTER_FOLLOWS : 0)), a->covered < a->channels ? ASSEMBLY_PARTIAL : 0, whole);
	for (unsigned i = 0; i < ASSEMBLY_MAX_MEMBERS; i++)
		if (a->members[i].used && !(p->members & 1u << i))
			whole->tag = ASSEMBLY_PARTIAL;
	return ASSEMBLY_WHOLE;
}

bool assembly_give_up(struct assembly *a, int64_t before, struct jitter_packet *partial)
{
	int first = -1;

	for (unsigned i = 0; a->n_waiting && i < ASSEMBLY_PLACES; i++)
		if (a->places[i].used && a->places[i].pos < before && (first < 0 || a->places[i].pos < a->places[first].pos))
			first = (int)i;
	if (first < 0)
		return false;
	/* Of whatever came last: not what the network's delay is measured by. */
	hand_out(a, (unsigned)first, JITTER_COPY, ASSEMBLY_PARTIAL, partial);
	return true;
}
