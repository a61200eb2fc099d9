/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A short exchange over a new connection: both sides send the depths that were reported to them,
 * then each reads as many words of the other at once as the connection allows, twice over. Written
 * once, on top of the exchange's functions, for libsaker and for libibverbs.
 *
 * The connecting side requests the other side's behaviour by its private data.
 */
#ifndef TEST_INTEROP_TALK_H
#define TEST_INTEROP_TALK_H

#include "exchange.h"

#define TALK_DEPTH    288  /* the most send requests that a talk has outstanding */
#define TALK_SOURCE   4096 /* offset in the buffer of the words that are read */
#define TALK_SINK     8192 /* offset in the buffer of the sink */
#define TALK_WORDS    256
#define TALK_NO_SIW   "siw will not have it"
#define TALK_NO_SAKER "saker will not have it"
#define TALK_WISH_LEN 12

enum talk_kind {
	TALK_PLAIN = 1, /* accept; the connecting side sends first */
	TALK_REVERSED,  /* accept; the accepting side sends first (RFC 6581 9.2) */
	TALK_REJECT,    /* reject with private data */
	TALK_BREAK,     /* accept; the stream will end in the middle of the talk */
	TALK_END,       /* reject, and end the program */
};

/* The connecting side's request: its private data. */
struct talk_wish {
	uint16_t kind;     /* enum talk_kind */
	uint16_t ird, ord; /* depths for the other side */
};
unsigned talk_wish_write(uint8_t *to, const struct talk_wish *w);
int talk_wish_read(struct talk_wish *w, const uint8_t *from, unsigned len);

struct talk_note { /* a message of either side */
	uint32_t what, stag;
	uint64_t addr;
	uint16_t ird, ord;           /* the sender's depths */
	uint16_t seen_ird, seen_ord; /* the depths that the sender's peer stated */
};

struct talk {
	struct ex_peer *p;
	struct talk_note mine, peer;
	unsigned in, taken, out, sent, reads;
	/* No more Reads are posted than may be outstanding: siw rounds its ORD up to a power of two
	 * and uses the result. */
	bool careful;
};

/* All functions return 0, or -1 after they have printed what failed. talk_prepare() is called
 * before connecting or accepting. */
int talk_prepare(struct talk *t, struct ex_peer *p);
/* The steps of a talk. `first`: this side sends first. */
int talk_greet(struct talk *t, bool first);
int talk_reads(struct talk *t);
int talk_part(struct talk *t, bool first);
/* Performs all steps. */
int talk(struct talk *t, bool first);
/* Sends a message so that the peer reads its socket. */
int talk_nudge(struct talk *t);
/* Waits until a completion reports that the stream has ended. Checks that no word of the source has
 * changed. */
int talk_broken(struct talk *t);

#endif
