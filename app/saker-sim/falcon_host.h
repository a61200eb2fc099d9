/* SPDX-License-Identifier: BSD-3-Clause */
/* A host that speaks Falcon: the stack and its packets, and above it one of two ULPs: none to speak
 * of (falcon_raw.c), or RDMA (falcon_rof.c). */
#ifndef SAKER_SIM_FALCON_HOST_H
#define SAKER_SIM_FALCON_HOST_H

#include "../../lib/falcon/falcon.h"
#include "../../lib/falcon/rue.h"
#include "world.h"

struct falcon_host;

struct falcon_ulp {
	uint32_t headers; /* bytes that it adds to a packet's payload, at most */
	/* These, and `xon`, may be NULL. */
	int (*create)(struct falcon_host *t);
	void (*destroy)(struct falcon_host *t);
	/* The connection of `e` is there. */
	int (*open)(struct falcon_host *t, struct sim_end *e);
	/* fa_ops.deliver, fa_ops.event: `dead` for FA_EV_DEAD, `xon` for FA_EV_XON. */
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
	uint32_t last; /* flow that pushed or pulled when it came */
	unsigned turn; /* pushes and pulls take turns */
	struct fa_algorithm algorithm;
	struct fa_swift_params swift;
	uint64_t nacks; /* received */
};

/* A payload: a length, headers of the ULP, and the message that it is part of. */
struct falcon_buf {
	struct fa_buf buf;
	uint8_t headers[SIM_ULP_MAX];
};

/* Empty, its data the headers' room. */
struct fa_buf *falcon_buf_get(struct falcon_host *t, void *owner);
void falcon_buf_free(void *ctx, struct fa_buf *b);
/* Every flow of the host's that has something to send gets its turn, behind the one that was
 * stopped. */
void falcon_offer_all(struct falcon_host *t);

/* Of struct sim_transport; `create` is called by the ULP's own. */
int falcon_create(struct sim_host *h, const struct falcon_ulp *ulp);
void falcon_destroy(struct sim_host *h);
int falcon_connect(struct sim_flow *f);
void falcon_input(struct sim_host *h, struct sim_packet *p, uint64_t now);
unsigned falcon_poll(struct sim_host *h, uint64_t now, unsigned budget);
uint64_t falcon_deadline(struct sim_host *h);
void falcon_count(struct sim_host *h, struct sim_counts *c);

#endif
