/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two complete stacks over a wire with one connection, and at each end a ULP that is initiator and
 * target. The ULP fills and checks every byte, counts how often each request was delivered and
 * completed, checks their order on an ordered connection, and, as configured, is slow, not ready,
 * or refuses. The harness needs no test framework, so that a fuzz target may use it: duo.fault is
 * NULL as long as no rule is broken.
 */
#ifndef TEST_FALCON_DUO_H
#define TEST_FALCON_DUO_H

#include "../../../lib/base/wheel.h"
#include "wire.h"

#define DUO_RSNS 65536 /* requests of an end at most, unless duo.rsns is smaller */

struct duo_later { /* A delayed outcome. */
	uint64_t at;
	uint32_t rsn;
	bool pull, restart;
	uint32_t len;
	struct fa_buf *buf;
};

struct duo_end {
	struct duo *duo;
	unsigned id;
	struct fa_stack *s;
	struct fa_conn *c;
	/* ---- As initiator ---- */
	uint32_t first_rsn, posted, finished;
	uint8_t *done;      /* [duo.rsns]: 0, or 1 + completion code */
	bool *is_pull;      /* [duo.rsns] */
	uint32_t next_done; /* ordered: RSN of the next completion */
	/* ---- As target ---- */
	uint8_t *taken;      /* [duo.rsns]: number of deliveries */
	uint32_t last_taken; /* ordered: no earlier RSN may follow */
	bool any_taken, refusing, busy, dead;
	struct duo_later *later; /* [duo.rsns] */
	uint32_t laters;
	uint32_t rnrs, refusals;
};

struct duo {
	struct fa_config cfg;
	struct fa_params params[2]; /* duo_init() sets them so that they match */
	struct wire wire;
	struct duo_end end[2];
	uint64_t now;
	/* The ULPs; probabilities in a million. */
	uint32_t rnr, cie, busy; /* FA_RNR, FA_CIE, queue to the ULP full */
	uint64_t think_ns;       /* largest delay of outcomes; 0: from inside the delivery */
	uint32_t rsns;           /* requests of an end at most */
	uint32_t payload;        /* bytes of a payload at most */
	/* Packets are forged: the only check is that each started request ends once, and in
	 * order. */
	bool hostile;
	uint32_t bufs;     /* payloads that are not freed */
	const char *fault; /* the first broken rule; NULL: none */
	uint32_t fault_rsn;
};

void duo_init(struct duo *d, uint64_t seed);
/* Sets pools at the target that hold next to nothing, so that it refuses most requests. Call it
 * before duo_start(). */
void duo_small_pools(struct duo *d);
/* Returns false when a stack or a connection could not be created. */
bool duo_start(struct duo *d);
/* Start a request of `end`: a push, or a pull. */
void duo_push(struct duo *d, unsigned end, uint32_t len);
void duo_pull(struct duo *d, unsigned end, uint32_t len);
/* Returns the number of outstanding requests of `end`. */
uint32_t duo_outstanding(const struct duo *d, unsigned end);
/* Advances time to the next event, by at least `min_ns` and at most `max_ns`, and runs it. */
void duo_step(struct duo *d, uint64_t min_ns, uint64_t max_ns);
/* Runs until all requests have completed and both ends are quiet. Returns false after `ns`. */
bool duo_settle(struct duo *d, uint64_t ns);
/* Replaces the connection by a new one between the same stacks, and forgets the old one's
 * requests. */
bool duo_reconnect(struct duo *d);
/* Destroys all. Returns false with d->fault when payloads are left. */
bool duo_end(struct duo *d);

#endif
