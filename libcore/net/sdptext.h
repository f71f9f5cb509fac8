/*
 * The text of a session description while it is read: where in it we are, and what stands there.
 */
#ifndef NET_SDPTEXT_H
#define NET_SDPTEXT_H

#include "net/sdp.h"

/* Where in the text we are, and what the session's lines left for the media. */
struct sdptext {
	struct sdp *sdp;
	struct sdp_media *media;      /* NULL before the first m= */
	const char *name;
	struct err_why *why;
	unsigned line;
	char text[SDP_MAX_LINE_BYTES + 1]; /* of the line, terminated */
	/* session level, handed down to every media */
	struct sdp_filter filter;
	enum sdp_direction direction;
	char ts_refclk[SDP_TEXT_BYTES], mediaclk[SDP_TEXT_BYTES];
	bool rtcp_mux;
};

/* Say what is wrong, with the number of the line.  Returns: ERR_FORMAT. */
WEIR_PRINTF(2, 3) enum err sdptext_bad(struct sdptext *p, const char *fmt, ...) WEIR_MUSTUSE;

/* Text up to the room there is, cut at a whole character. */
void sdptext_keep(char *to, size_t room, const char *from, size_t n);

/* The next word of *at, which moves on.  Returns: its length; 0 if there is none. */
size_t sdptext_word(const char **at, const char **begin);
/* The same copied and terminated.  Returns: there is one, and it fits. */
bool sdptext_keep_word(const char **at, char *to, size_t room);

/* Digits at *at, which moves behind them.  Returns: there are some, and they are not more than high. */
bool sdptext_number(const char **at, unsigned long high, unsigned long *v);

/* "20", "0.125", "1.0": milliseconds, and nothing behind them.  Returns: likewise. */
bool sdptext_decimal(const char *text, double high, double *v);

#endif
