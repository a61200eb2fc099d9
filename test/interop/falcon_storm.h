/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a connected pair of QPs over Falcon: requests of every opcode, many outstanding,
 * each with its own memory at both ends, so that each expected byte is known in whatever order
 * requests are executed.
 */
#ifndef TEST_INTEROP_FALCON_STORM_H
#define TEST_INTEROP_FALCON_STORM_H

#include "rig.h"

#define STORM_WINDOW 64u /* requests outstanding */
#define STORM_SLOT   16448u
#define STORM_MSG    16384u /* the bytes behind it in the slot must not change */
#define STORM_MEM    (2ul * STORM_WINDOW * STORM_SLOT)
#define STORM_OPS    9

struct storm_end {
	struct saker *s;
	struct saker_pd *pd;
	struct saker_mr *mr;
	struct saker_qp *qp;
	uint8_t *mem; /* STORM_MEM: slots of requests, then of receives */
};

struct storm_request {
	uint32_t number; /* its position among all requests, from 0 */
	uint8_t op;      /* index into the opcodes */
	bool busy, done, received;
	uint32_t len;
	uint64_t word;           /* Atomics: the word's original value */
	struct saker_mr *window; /* the window that a Send invalidates */
};

struct storm {
	struct storm_end from, to;
	int only;          /* index of the one opcode to use; -1: all */
	bool ordered;      /* completions must come in order */
	uint32_t send_max; /* the most bytes of a request that consumes a receive */
	uint64_t rng;
	uint32_t posted, limit, completed, receives, received;
	uint32_t receive_of[STORM_WINDOW]; /* the request that fills a receive */
	struct storm_request req[STORM_WINDOW];
	uint32_t late; /* completions that came after that of a later request */
	uint32_t highest;
	uint64_t bytes, count[STORM_OPS];
	int failed;
};

extern const char *const storm_op_name[STORM_OPS + 1]; /* NULL behind the last */

/* Posts as many requests as there is room for. */
void storm_post(struct storm *st);
void storm_completion(struct storm *st, const struct rd_wc *wc);
static inline bool
storm_over(const struct storm *st)
{
	return st->completed == st->limit && st->received == st->receives;
}

#endif
