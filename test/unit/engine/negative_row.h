/* SPDX-License-Identifier: BSD-3-Clause */
/* A row of the tables of the negative suite: an invalid message, and its expected effects. */
#ifndef TEST_ENGINE_NEGATIVE_ROW_H
#define TEST_ENGINE_NEGATIVE_ROW_H

#include "negative.h"

enum { RDMAP = 0, DDP = 1, LLP = 2 };

struct neg_row {
	const char *name;
	struct neg_msg m;
	const char *reason;
	struct neg_term term;
	struct neg_mode mode;
	struct neg_msg before; /* a valid message that is sent first, */
	unsigned nbefore;      /* this many times, with increasing MSNs */
	unsigned received;     /* receive requests that complete before the error */
	/* Status of the oldest remaining receive request and of the oldest remaining send request;
	 * 0: flushed. */
	uint8_t recv, send;
};

#define TAGGED(o, s, t, l)                                                                         \
	{                                                                                          \
		.op = (o), .tagged = true, .stag = (s), .to = (t), .len = (l)                      \
	}
#define WRITE(s, t, l) TAGGED(RDMAP_WRITE, s, t, l)
#define UNTAGGED(o, q, n, mo_, l)                                                                  \
	{                                                                                          \
		.op = (o), .qn = (q), .msn = (n), .mo = (mo_), .len = (l), .empty_stag = true      \
	}
#define SEND_INV(o, s)                                                                             \
	{                                                                                          \
		.op = (o), .msn = 1, .len = 8, .stag = (s)                                         \
	}
#define READ(n, s, t, l)                                                                           \
	{                                                                                          \
		.op = RDMAP_READ_REQUEST, .qn = 1, .msn = (n), .len = 28, .stag = (s), .to = (t),  \
		.read_len = (l)                                                                    \
	}
#define ATOMICS(o, s, t)                                                                           \
	{                                                                                          \
		.op = RDMAP_ATOMIC_REQUEST, .qn = 1, .msn = 1, .len = 52, .atomic_op = (o),        \
		.stag = (s), .to = (t), .id = 7                                                    \
	}
#define ANSWER(q, n, mo_, i, l)                                                                    \
	{                                                                                          \
		.op = RDMAP_ATOMIC_RESPONSE, .qn = (q), .msn = (n), .mo = (mo_), .id = (i),        \
		.len = (l)                                                                         \
	}

/* Sends the message of each row twice, in one segment and in two, and checks all effects. */
void neg_rows(const struct neg_row *rows, unsigned n);
/* Checks the completions of a row. */
void neg_row_completions(const struct neg_row *r);

#endif
