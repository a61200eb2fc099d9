/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A short talk over a connection that has just been made: both sides say what they were told of
 * each other's depths, then each reads as many words of the other at once as the connection lets
 * it, twice over. Written once over the exchange's verbs, for libsaker and for libibverbs.
 *
 * Whoever connects says by its private data what it wants the other side to do.
 */
#ifndef TEST_INTEROP_TALK_H
#define TEST_INTEROP_TALK_H

#include "exchange.h"

#define TALK_DEPTH    288  /* send requests that a talk has outstanding at most */
#define TALK_SOURCE   4096 /* offsets in the buffer: words to be read, */
#define TALK_SINK     8192 /* and where they go */
#define TALK_WORDS    256
#define TALK_NO_SIW   "siw will not have it"
#define TALK_NO_SAKER "saker will not have it"
#define TALK_WISH_LEN 12

enum talk_kind {
	TALK_PLAIN = 1, /* accept; whoever connected speaks first */
	TALK_REVERSED,  /* accept; whoever accepted speaks first (RFC 6581 9.2) */
	TALK_REJECT,    /* reject with private data */
	TALK_BREAK,     /* accept; the stream will end in the midst of the talk */
	TALK_END,       /* reject, and be done */
};

/* What whoever connects wants; its private data. */
struct talk_wish {
	uint16_t kind;     /* enum talk_kind */
	uint16_t ird, ord; /* the other side's */
};
unsigned talk_wish_write(uint8_t *to, const struct talk_wish *w);
int talk_wish_read(struct talk_wish *w, const uint8_t *from, unsigned len);

struct talk_note { /* what one side says */
	uint32_t what, stag;
	uint64_t addr;
	uint16_t ird, ord;           /* that hold for it */
	uint16_t seen_ird, seen_ord; /* that its peer stated */
};

struct talk {
	struct ex_peer *p;
	struct talk_note mine, peer;
	unsigned in, taken, out, sent, reads;
	/* Never more Reads posted than may be outstanding: siw rounds its ORD up to a power of two,
	 * and with it what it sends. */
	bool careful;
};

/* All return 0, or -1 after having said what failed. Before connecting or accepting: */
int talk_prepare(struct talk *t, struct ex_peer *p);
/* The steps of a talk. `first`: this side speaks first. */
int talk_greet(struct talk *t, bool first);
int talk_reads(struct talk *t);
int talk_part(struct talk *t, bool first);
/* All of them. */
int talk(struct talk *t, bool first);
/* Anything, so that the peer looks at its socket. */
int talk_nudge(struct talk *t);
/* Until a completion tells that the stream has ended; nobody has changed a word of the source. */
int talk_broken(struct talk *t);

#endif
