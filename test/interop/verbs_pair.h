/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends of a connection in one process, created in one thread through rdma_cm. Any failure ends
 * the program with a sentence. */
#ifndef TEST_INTEROP_VERBS_PAIR_H
#define TEST_INTEROP_VERBS_PAIR_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define PAIR_BYTES 4096
#define PAIR_CQE   64

extern uint16_t pair_port; /* at which pairs listen; 7471 */

struct side {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_mr *mr;
	uint8_t *mem; /* PAIR_BYTES */
};

struct pair {
	struct side a, b; /* a has connected, b has accepted */
	struct rdma_cm_id *listener;
	bool guest; /* the listener belongs to another pair */
};

/* Connects. `host`: the pair whose listener is used; NULL: a listener of its own. */
void pair_connect(struct pair *p, const char *address, const struct pair *host);
/* Frees all objects. */
void pair_end(struct pair *p);
/* Returns the status of the next completion. */
int pair_status(struct ibv_cq *cq);
/* Returns whether the end of the connection is reported to both sides within `ms`. */
bool pair_ended(struct pair *p, int ms);
/* Takes an asynchronous event of the device. Returns false if none arrives within `ms`. */
bool pair_async(struct pair *p, int ms, struct ibv_async_event *ev);
/* Returns the next event; sets *id to the event's id unless `id` is NULL. */
int pair_event(struct rdma_event_channel *channel, struct rdma_cm_id **id);

/* Creates an id with an address and a route. */
void side_resolve(struct side *s, const char *address, uint16_t port);
/* Creates the side's objects on the id's device. */
void side_make(struct side *s, struct rdma_cm_id *id);
void side_unmake(struct side *s);

#endif
