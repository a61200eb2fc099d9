/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two whole stacks over a wire, one connection between them, and at each end a ULP that is both
 * initiator and target: it fills and checks every byte, counts how often each request was taken and
 * completed, checks their order on an ordered connection, and, as it is told, is slow, not ready,
 * or refuses. Nothing here needs a test framework: duo.fault is NULL while all is well, so that a
 * fuzzer may use it, too.
 */
#ifndef TEST_FALCON_DUO_H
#define TEST_FALCON_DUO_H

#include "../../../lib/base/wheel.h"
#include "wire.h"

#define DUO_RSNS 65536 /* requests of an end at most, unless duo.rsns says less */

struct duo_later { /* an outcome that the ULP takes its time with */
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
	/* As initiator. */
	uint32_t first_rsn, posted, finished;
	uint8_t *done;      /* [duo.rsns] 0, or 1 + completion */
	bool *is_pull;      /* [duo.rsns] */
	uint32_t next_done; /* ordered: what completes next */
	/* As target. */
	uint8_t *taken;      /* [duo.rsns] how often */
	uint32_t last_taken; /* ordered: none earlier comes any more */
	bool any_taken, refusing, busy, dead;
	struct duo_later *later; /* [duo.rsns] */
	uint32_t laters;
	uint32_t rnrs, refusals, xoffs;
};

struct duo {
	struct fa_config cfg;
	struct fa_params params[2]; /* duo_init() fills them in to fit each other */
	struct wire wire;
	struct duo_end end[2];
	uint64_t now;
	/* The ULPs: in a million. */
	uint32_t rnr, cie, busy; /* not ready, complete in error, way to the ULP is full */
	uint64_t think_ns; /* outcomes come up to so much later; 0: from inside the delivery */
	uint32_t rsns;     /* requests of an end at most */
	uint32_t payload;  /* bytes at most */
	bool hostile;  /* packets were forged: all that is checked is that what an end started ends
			  once,  and in order */
	uint32_t bufs; /* not freed */
	const char *fault; /* the first rule that was broken */
	uint32_t fault_rsn;
};

void duo_init(struct duo *d, uint64_t seed);
/* Pools at the target that hold next to nothing: refusals are the rule. To be called before
 * duo_start(). */
void duo_small_pools(struct duo *d);
/* false: a stack or a connection could not be made. */
bool duo_start(struct duo *d);
/* `end` hands over a request: a push, or a pull. */
void duo_push(struct duo *d, unsigned end, uint32_t len);
void duo_pull(struct duo *d, unsigned end, uint32_t len);
/* Requests that `end` has under way. */
uint32_t duo_outstanding(const struct duo *d, unsigned end);
/* One step: time goes on to the next thing that happens, at least `min_ns`, at most `max_ns`. */
void duo_step(struct duo *d, uint64_t min_ns, uint64_t max_ns);
/* Until all requests have completed and both ends are quiet, or `ns` have passed: false. */
bool duo_settle(struct duo *d, uint64_t ns);
/* A new connection between the same stacks, in place of the old one, whose requests are forgotten.
 */
bool duo_reconnect(struct duo *d);
/* Destroys all; false with d->fault when buffers are left. */
bool duo_end(struct duo *d);

#endif
