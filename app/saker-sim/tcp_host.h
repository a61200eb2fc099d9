/* SPDX-License-Identifier: BSD-3-Clause */
/* A host that speaks TCP: the stack and its segments, and above it either nothing to speak of
 * (tcp_raw.c) or iWARP (tcp_iwarp.c). */
#ifndef SAKER_SIM_TCP_HOST_H
#define SAKER_SIM_TCP_HOST_H

#include "../../lib/tcp/tcp.h"
#include "world.h"

struct tcp_host;

struct tcp_ulp {
	uint32_t headers; /* bytes that it adds to a segment's payload, at most */
	bool bytes;       /* payloads are bytes, not lengths */
	/* `create`, `destroy`, `open` (once both sides are connected, of each), `closed`, `emss`
	 * may be NULL. */
	int (*create)(struct tcp_host *t);
	void (*destroy)(struct tcp_host *t);
	void (*open)(struct tcp_host *t, struct sim_end *e);
	/* In-order payload, which is the ULP's now, and records that were acknowledged. */
	void (*deliver)(struct tcp_host *t, struct sim_end *e, struct tcp_slice *chain);
	void (*acked)(struct tcp_host *t, struct sim_end *e, uint32_t bytes);
	void (*closed)(struct tcp_host *t, struct sim_end *e, int reason);
	void (*emss)(struct tcp_host *t, struct sim_end *e);
};

struct tcp_host {
	struct sim_host *h;
	struct tcp_stack *s;
	struct tcp_listener *listener;
	const struct tcp_ulp *ulp;
	void *ulp_state;
	struct sim_flow *arriving; /* whose SYN is being taken */
	struct sim_pool recs, slices;
	uint32_t room; /* bytes that a record may have, if they are bytes */
};

/* With `t->room` bytes at data, or none; `owner` is the end. */
struct tcp_rec *tcp_rec_new(struct tcp_host *t, struct sim_end *e);
void tcp_slices_free(struct tcp_host *t, struct tcp_slice *chain);

/* Of struct sim_transport; `create` is called by the ULP's own. */
int tcp_create(struct sim_host *h, const struct tcp_ulp *ulp);
void tcp_destroy(struct sim_host *h);
int tcp_open(struct sim_flow *f);
void tcp_packet_input(struct sim_host *h, struct sim_packet *p, uint64_t now);
unsigned tcp_poll(struct sim_host *h, uint64_t now, unsigned budget);
uint64_t tcp_deadline(struct sim_host *h);
void tcp_count(struct sim_host *h, struct sim_counts *c);

#endif
