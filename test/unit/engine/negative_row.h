/* SPDX-License-Identifier: BSD-3-Clause */
/* A row of the negative suite's tables: a message that is wrong, and what must be seen of it. */
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
	struct neg_msg before; /* a right message that goes first, this often: */
	unsigned nbefore;      /* its MSN counts up */
	unsigned received;     /* receives that complete before the error */
	uint8_t recv, send;    /* status of the oldest receive and request left; 0: flushed */
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

/* Sends each row twice, in one segment and cut in two somewhere, and checks all of it. */
void neg_rows(const struct neg_row *rows, unsigned n);
/* The completions that a row asks for. */
void neg_row_completions(const struct neg_row *r);

#endif
