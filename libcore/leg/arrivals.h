/*
 * What came from a network, recorded: each datagram with its arrival, to be received again without the network, the same
 * to the bit every time.
 *
 * A recording is a weir stream with one data track "datagrams" whose unit is a microsecond.  Each packet is a datagram:
 *   0 i64 arrival, ns since the recording began · 8 u16 number of our port · 10 u8 1: it came to the port for RTCP ·
 *   11 u8 zero · 12 u16 the sender's port · 14 u16 zero · 16 u8[16] its address, IPv4 as ::ffff:a.b.c.d · 32 the datagram
 * all little-endian but the address.  Captures of tcpdump (pcap, either byte order, µs or ns; Ethernet, raw IP, Linux
 * cooked) are read too: UDP, unfragmented.
 */
#ifndef LEG_ARRIVALS_H
#define LEG_ARRIVALS_H

#include "base/units.h"
#include "leg/dgram.h"
#include "media/sinkfile.h"
#include "tool/input.h"
#include "wire/writer.h"

#include <stdio.h>

#define ARRIVALS_HEAD_BYTES 32u
#define ARRIVALS_MAX_BYTES 65535u
#define ARRIVALS_MAX_NS (31 * 86400 * UNITS_NS_PER_S)

struct arrivals_in {
	bool is_pcap, swapped, is_ns, started;
	uint32_t link_type;
	FILE *file;                  /* pcap; has fd then */
	int fd;                      /* −1: not ours */
	int64_t first_ns;            /* of a pcap's clock */
	uint8_t *bytes;
	struct input in;
	bool input_open, has_track;
	uint16_t track;
	char name[256];
};

struct arrivals_datagram {
	int64_t arrival_ns;          /* since the first (pcap) or since the recording began */
	unsigned port;               /* ours, by number; a pcap has numbers in no table: to_port says which */
	uint16_t to_port;            /* 0: not known */
	bool is_rtcp;
	struct dgram_addr from;
	uint8_t *bytes;              /* may be changed; until the next call */
	size_t n_bytes;
};

/* A file, a FIFO, or "-".  Each byte of it is read once.  Returns: ERR_OK; ERR_SYS, ERR_ARG, ERR_NOMEM with *why.  Role: control, may wait. */
enum err arrivals_open(struct arrivals_in *a, const char *path, struct err_why *why) WEIR_MUSTUSE;
/* Returns: ERR_OK; ERR_END; ERR_FORMAT, ERR_SYS with *why. */
enum err arrivals_next(struct arrivals_in *a, struct arrivals_datagram *d, struct err_why *why) WEIR_MUSTUSE;
/* At the end: was the recording cut short, or damaged?  *why says how. */
bool arrivals_is_cut(struct arrivals_in *a, struct err_why *why);
void arrivals_close(struct arrivals_in *a);

struct arrivals_out {
	struct writer writer;
	struct sinkfile file;
	int64_t start_ns;
	bool open;
};

/*
 * A new file, which stands as PATH.part until arrivals_end(); one that is there is only replaced if replace is set.  FIFOs and devices are
 * written as they are.  Role: control.
 */
enum err arrivals_create(struct arrivals_out *a, const char *path, bool replace, int64_t start_ns, struct err_why *why) WEIR_MUSTUSE;
enum err arrivals_write(struct arrivals_out *a, unsigned port, bool is_rtcp, const struct dgram_in *in) WEIR_MUSTUSE;
enum err arrivals_end(struct arrivals_out *a, struct err_why *why) WEIR_MUSTUSE;
void arrivals_release(struct arrivals_out *a);

#endif
