/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two engines (or one) with a client at each end, whose QPs are connected one to one. Engines with
 * one loop are polled by the test's own thread, those with more have a thread for each.
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

/* Engines, loops and clients, connected from ends[0] to ends[1]. `lport`: the first connection's
 * local port, the others follow; 0: chosen. */
void ends_start(uint16_t lport);
/* The same with both clients at the first engine. */
void ends_start_one(void);
/* All goes, and every mbuf comes home. */
void ends_finish(void);
struct saker_event ends_event(struct end *n, enum saker_event_type type);
/* A Send and a Write on each QP at once, what was written is read back; every byte compared. */
void ends_exchange(struct end *from, struct end *to, unsigned round);

#endif
