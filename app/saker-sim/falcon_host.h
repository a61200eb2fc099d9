/* SPDX-License-Identifier: BSD-3-Clause */
/* A host with Falcon: the stack and its packets, and above it one of two ULPs, plain messages
 * (falcon_raw.c) or RDMA (falcon_rof.c). */
#ifndef SAKER_SIM_FALCON_HOST_H
#define SAKER_SIM_FALCON_HOST_H

#include "../../lib/falcon/falcon.h"
#include "../../lib/falcon/rue.h"
#include "world.h"

struct falcon_host;

struct falcon_ulp {
	uint32_t headers; /* bytes that the ULP adds to a packet's payload at most */
	/* `create`, `destroy`, `open` and `xon` may be NULL. */
	int (*create)(struct falcon_host *t);
	void (*destroy)(struct falcon_host *t);
	/* The connection of `e` exists. */
	int (*open)(struct falcon_host *t, struct sim_end *e);
	/* As fa_ops.deliver and fa_ops.event: `dead` for FA_EV_DEAD, `xon` for FA_EV_XON. */
	bool (*deliver)(void *ctx, struct fa_conn *c, const struct fa_delivery *d);
	void (*dead)(struct falcon_host *t, struct sim_end *e);
	void (*xon)(struct falcon_host *t);
};

struct falcon_host {
	struct sim_host *h;
	struct fa_stack *s;
	const struct falcon_ulp *ulp;
	void *ulp_state;
	struct fa_pools pools;
	struct sim_pool bufs; /* struct falcon_buf */
	struct sim_random random;
	bool xoff;
	uint32_t last; /* the flow that pushed or pulled last, before FA_EV_XOFF */
	unsigned turn; /* alternates pushes and pulls */
	struct fa_algorithm algorithm;
	struct fa_rue_params rue;
	uint64_t nacks; /* received */
};

/* A payload: a length, headers of the ULP, and (as its owner) the message that it belongs to. */
struct falcon_buf {
	struct fa_buf buf;
	uint8_t headers[SIM_ULP_MAX];
};

/* Returns an empty buffer. Its data is the room for the ULP's headers. */
struct fa_buf *sim_falcon_buf_get(struct falcon_host *t, void *owner);
void sim_falcon_buf_free(void *ctx, struct fa_buf *b);
/* Offers all flows of the host that have something to send, beginning behind the last one that
 * sent. */
void sim_falcon_offer_all(struct falcon_host *t);

/* Functions of struct sim_transport. The `create` of each ULP calls sim_falcon_create(). */
int sim_falcon_create(struct sim_host *h, const struct falcon_ulp *ulp);
void sim_falcon_destroy(struct sim_host *h);
int sim_falcon_connect(struct sim_flow *f);
void sim_falcon_input(struct sim_host *h, struct sim_packet *p, uint64_t now);
unsigned sim_falcon_poll(struct sim_host *h, uint64_t now, unsigned budget);
uint64_t sim_falcon_deadline(struct sim_host *h);
void sim_falcon_count(struct sim_host *h, struct sim_counts *c);

#endif
