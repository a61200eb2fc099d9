/* SPDX-License-Identifier: BSD-3-Clause */
/* Two instances in one process, joined by a pair of rings, polled by the test's own thread. */
#ifndef SAKER_TEST_ENGINE_PAIR_H
#define SAKER_TEST_ENGINE_PAIR_H

#include "../../../lib/engine/common/instance.h"

#define PAIR_QUEUES 4
#define PAIR_ADDR_A "10.0.0.1"
#define PAIR_ADDR_B "10.0.0.2"

struct pair {
	struct eng_config cfg[2];
	struct eng *e[2];
	uint16_t port[2];
};

/* A Criterion .init: EAL without huge pages or files. */
void pair_eal(void);
struct sk_addr pair_addr(const char *text);
/* Ports and configurations; the test may change these before pair_start(). */
void pair_init(struct pair *p);
/* The same with ports of several queues, at most PAIR_QUEUES. */
void pair_init_queues(struct pair *p, unsigned queues);
void pair_start(struct pair *p);
/* One turn of every loop of both. */
void pair_turn(struct pair *p);
/* Ends both and asserts that all mbufs came home. */
void pair_end(struct pair *p);
uint64_t pair_counter(struct eng *e, const char *layer, const char *name);

#endif
