/* SPDX-License-Identifier: BSD-3-Clause */
/* Two instances in one process, connected by a pair of rings. The thread of the test polls them. */
#ifndef SAKER_TEST_ENGINE_PAIR_H
#define SAKER_TEST_ENGINE_PAIR_H

#include "../../../lib/engine/common/instance.h"
#include "../../support/addr.h"

#define PAIR_QUEUES 4
#define PAIR_ADDR_A "10.0.0.1"
#define PAIR_ADDR_B "10.0.0.2"

struct pair {
	struct eng_config cfg[2];
	struct eng *e[2];
	uint16_t port[2];
};

/* Initializes EAL without huge pages or files: for the .init of a Criterion test. */
void pair_eal(void);
/* Does the same with memory for several stages. */
void pair_eal_large(void);
/* Creates the ports, and fills in both configurations, which the test may change before
 * pair_start(). */
void pair_init(struct pair *p);
/* Does the same with ports of `queues` queues, at most PAIR_QUEUES. */
void pair_init_queues(struct pair *p, unsigned queues);
void pair_start(struct pair *p);
/* Runs one turn of each loop of both instances. */
void pair_turn(struct pair *p);
/* Destroys both instances, and checks that all mbufs are back in their pools. */
void pair_end(struct pair *p);
/* Returns the keys of a host whose pre-shared key for all peers has 32 bytes of the value `fill`.
 * They exist until the end of the program. */
struct rofx_tls *pair_tls(uint8_t fill);
uint64_t pair_counter(struct eng *e, const char *layer, const char *name);

#endif
