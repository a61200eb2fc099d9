/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two engines (or one) with two clients, whose QPs are connected in pairs. The thread of the test
 * polls an engine with one loop; an engine with several loops has a thread for each of them.
 */
#ifndef TEST_ENGINE_ENDS_H
#define TEST_ENGINE_ENDS_H

#include <saker/saker.h>

#include "pair.h"

#define ENDS_QPS  6u
#define ENDS_PORT 7000

struct end {
	struct eng *e;
	struct saker *s;
	struct saker_pd *pd;
	struct saker_cq *cq;
	struct saker_qp *qp[ENDS_QPS];
	struct saker_mr *mr;
	uint8_t *mem;
	void *home;
	int client;
};

extern struct pair ends_pair; /* the test initializes and configures it */
extern struct end ends[2];

/* Starts engines, loops and clients, and connects the QPs of ends[0] to those of ends[1]. The local
 * ports of the connections are lport, lport + 1, and so on; with 0, the engine chooses them. */
void ends_start(uint16_t lport);
/* Does the same with both clients at the first engine and chosen ports. */
void ends_start_one(void);
/* Ends clients and engines, and checks that all mbufs are back in their pools. */
void ends_finish(void);
struct saker_event ends_event(struct end *n, enum saker_event_type type);
/* Performs a Send and an RDMA Write on each QP at the same time, reads the written bytes back, and
 * compares all bytes. */
void ends_exchange(struct end *from, struct end *to, unsigned round);

#endif
