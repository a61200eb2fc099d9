/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rig of the tests of the table in RFC 7306 7: two engines, a hostile wire between them, and
 * connections on which two operations are posted one after the other.
 */
#ifndef TEST_ENGINE_ORDERING_H
#define TEST_ENGINE_ORDERING_H

#include "../../interop/rig.h"

#define LINKS 16
#define REPS  30   /* repetitions on each link */
#define OLD   0xee /* an even byte; all bytes of the patterns are odd */

enum op { IMM, SEND, WRITE, READ, ATOMIC };

struct ord_act {
	enum op op;
	uint32_t len;
	uint64_t word, imm; /* word: the original value at the target of an Atomic */
	uint8_t key;
	bool acked; /* completed at the local peer */
	bool there; /* at the remote peer: completed (Send, Immediate) or placed (Write) */
	struct saker_mr *doomed; /* the region that a Send with Invalidate invalidates */
};

struct ord_link {
	struct saker_qp *qp[2];
	uint8_t *
		mem[2]; /* [0]: sources and sinks; [1]: targets and receives; a slot for each act */
	struct ord_act act[2];
	unsigned reps, wait, posted; /* wait: turns before the second act is posted */
};

extern struct rig ord_rig;
extern struct saker_cq *ord_cq[2];
extern struct ord_link ord_links[LINKS];

/* Returns the time of the engines: eng_clock() plus ord_rig.hand[0].ahead. */
uint64_t ord_clock(void);
/* Starts the rig for a pair of operations, which also determine the seed. */
void ord_start(enum op first, enum op second);
/* Starts the next repetition: fills the buffers and posts the receives. */
void ord_begin(struct ord_link *l);
/* Posts the next one of the two operations. */
void ord_post(struct ord_link *l);
/* Detaches both clients, and checks that no object is left. */
void ord_stop(void);

/* Returns whether the peer answers the operation (Read, Atomic), so that its effect at the local
 * peer is a response. */
bool ord_answered(enum op op);
/* Returns the act whose slot at the remote peer act `nth` uses: two answered acts share one. */
unsigned ord_target_of(const struct ord_link *l, unsigned nth);
uint8_t *ord_sink(const struct ord_link *l, unsigned nth);
uint8_t *ord_target(const struct ord_link *l, unsigned nth);
uint8_t *ord_receive(const struct ord_link *l, unsigned nth);
uint8_t ord_pattern(uint8_t key, uint32_t i);
/* Returns whether `p` holds `len` bytes of the pattern. */
bool ord_is(const uint8_t *p, uint32_t len, uint8_t key);

#endif
