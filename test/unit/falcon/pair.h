/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two stacks in virtual time, both sublayers at work, with a wire in between that does to each
 * packet what the test says. Headers pass through their wire format, payloads are copied. All that
 * is sent stands in a trace.
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

/* What the wire does to a packet; zero: nothing. */
struct pair_fate {
	bool lose;
	uint64_t extra;     /* ns of delay */
	uint64_t duplicate; /* != 0: comes a second time, so much later */
};

struct pair_node {
	struct fa_config cfg;
	struct fa_stack *s;
	struct fa_conn *c[PAIR_CONNS];
	struct fa_params params; /* of each connection; CIDs are filled in */
	bool xoff;
	unsigned deaths;
};

struct pair {
	struct pair_node n[2];
	unsigned conns;
	uint64_t now;
	long bufs; /* alive */
	/* The test's. */
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

/* Defaults: one ordered connection, MTU 4096, PSN and RSN as in section 6.6: node 0 has request PSN
 * 100, data PSN 300; node 1 data PSN 200; RSN 1. The test may change all before pair_start(). */
void pair_init(void);
void pair_start(void);
/* Destroys both stacks; nothing may be left. */
void pair_stop(void);
struct fa_buf *pair_buf(uint32_t len);
void pair_buf_free(struct fa_buf *b);
/* Lets time pass. */
void pair_run(uint64_t ns);
uint64_t pair_counted(unsigned node, enum fa_reason r);

/* The next packet of the trace is this one; returns it. */
const struct pair_packet *pair_expect(unsigned from, uint8_t type, uint32_t psn, uint32_t rsn);
/* ... an acknowledgement (BACK, EACK, NACK) of node `from`. */
const struct pair_packet *pair_expect_ack(unsigned from, uint8_t type);
void pair_quiet(void);

#endif
