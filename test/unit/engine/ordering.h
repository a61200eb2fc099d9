/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two engines, a hostile wire between them, and connections on which two operations are posted one
 * behind the other: what the tests of RFC 7306 7's table stand on.
 */
#ifndef TEST_ENGINE_ORDERING_H
#define TEST_ENGINE_ORDERING_H

#include "../../interop/rig.h"

#define LINKS 16
#define REPS  30   /* of each link */
#define OLD   0xee /* an even byte: all that is moved is odd */

enum op { IMM, SEND, WRITE, READ, ATOMIC };

struct ord_act {
	enum op op;
	uint32_t len;
	uint64_t word, imm; /* Atomic: the original */
	uint8_t key;
	bool acked; /* completed at the local peer */
	bool there; /* completed at the remote peer (Send, Immediate) or all of it placed (Write) */
	struct saker_mr *doomed; /* what a Send with Invalidate invalidates */
};

struct ord_link {
	struct saker_qp *qp[2];
	uint8_t *mem[2]; /* local: sources, sinks; remote: targets, receives; a slot for each act */
	struct ord_act act[2];
	unsigned reps, wait, posted; /* wait: turns until the second is posted */
};

extern struct rig ord_rig;
extern struct saker_cq *ord_cq[2];
extern struct ord_link ord_links[LINKS];

/* The engines' clock: the machine's, put forward by ord_rig.hand[0].ahead. */
uint64_t ord_clock(void);
/* Starts everything for a pair of operations; its seed follows from them. */
void ord_start(enum op first, enum op second);
/* The next repetition: buffers filled anew, receives posted. */
void ord_begin(struct ord_link *l);
/* Posts the next of the two. */
void ord_post(struct ord_link *l);
/* Detaches both clients; nothing may be left. */
void ord_stop(void);

/* Read or Atomic: its effect at the local peer is a response. */
bool ord_answered(enum op op);
/* Whose slot at the remote peer it works on: two that are answered share one. */
unsigned ord_target_of(const struct ord_link *l, unsigned nth);
uint8_t *ord_sink(const struct ord_link *l, unsigned nth);
uint8_t *ord_target(const struct ord_link *l, unsigned nth);
uint8_t *ord_receive(const struct ord_link *l, unsigned nth);
uint8_t ord_pattern(uint8_t key, uint32_t i);
/* `len` bytes of the pattern stand there. */
bool ord_is(const uint8_t *p, uint32_t len, uint8_t key);

#endif
