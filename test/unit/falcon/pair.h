/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two stacks in virtual time, with both sublayers, and a wire between them that treats each packet
 * as the test decides. Headers pass through their wire format, payloads are copied. A trace records
 * all packets.
 */
#ifndef TEST_FALCON_PAIR_H
#define TEST_FALCON_PAIR_H

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/base/wheel.h"
#include "../../../lib/falcon/falcon.h"
#include "../../../lib/wire/falcon.h"

#define PAIR_CONNS 8
#define PAIR_US    1000ull
#define PAIR_DELAY (5 * PAIR_US) /* one way */

struct pair_packet {
	uint64_t sent_at;
	unsigned from, conn;
	struct wire_falcon h;
	uint32_t len;
	bool again; /* a retransmission */
	bool lost;
};

/* The wire's treatment of a packet; zero: it arrives unchanged. */
struct pair_fate {
	bool lose;
	uint64_t extra;     /* ns of delay */
	uint64_t duplicate; /* nonzero: the delay of a second copy */
};

struct pair_node {
	struct fa_config cfg;
	struct fa_stack *s;
	struct fa_conn *c[PAIR_CONNS];
	struct fa_params params; /* of each connection; pair_start() sets the CIDs */
	bool xoff;
	uint64_t halted_at, halted_until; /* pair_halt(); 0: it runs */
	unsigned deaths;
};

struct pair {
	struct pair_node n[2];
	unsigned conns;
	uint64_t now;
	long bufs; /* payloads that are not freed */
	/* Functions of the test. */
	struct pair_fate (*wire)(const struct pair_packet *p);
	bool (*deliver)(unsigned node, unsigned conn, const struct fa_delivery *d);
	void (*tick)(void); /* at each step of time */
	bool no_trace;
	/* The trace. */
	struct pair_packet *trace;
	unsigned count, cap, read;
	uint64_t packets, lost;
};
extern struct pair pair;

/* Sets defaults: one ordered connection, MTU 4096, PSN and RSN as in section 6.6: node 0 has
 * request PSN 100, data PSN 300; node 1 has data PSN 200; RSN 1. The test may change all before
 * pair_start(). */
void pair_init(void);
void pair_start(void);
/* Destroys both stacks, and asserts that no payload is left. */
void pair_stop(void);
struct fa_buf *pair_buf(uint32_t len);
void pair_buf_free(struct fa_buf *b);
/* Stops the loop of a node for `ns`, from now on: its stack is not called, and packets to it wait
 * at the port. Then the stack learns of the stop. */
void pair_halt(unsigned node, uint64_t ns);
/* Runs for `ns` of virtual time. */
void pair_run(uint64_t ns);
uint64_t pair_counted(unsigned node, enum fa_reason r);

/* Asserts that the next packet of the trace is this one, and returns it. */
const struct pair_packet *pair_expect(unsigned from, uint8_t type, uint32_t psn, uint32_t rsn);
/* Asserts that it is an acknowledgement (BACK, EACK, NACK) of node `from`, and returns it. */
const struct pair_packet *pair_expect_ack(unsigned from, uint8_t type);
void pair_quiet(void);

#endif
