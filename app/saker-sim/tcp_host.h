/* SPDX-License-Identifier: BSD-3-Clause */
/* A host with TCP: the stack and its segments, and above it one of two ULPs, plain messages
 * (tcp_raw.c) or iWARP (tcp_iwarp.c). */
#ifndef SAKER_SIM_TCP_HOST_H
#define SAKER_SIM_TCP_HOST_H

#include "../../lib/tcp/tcp.h"
#include "world.h"

struct tcp_host;

struct tcp_ulp {
	uint32_t headers; /* bytes that the ULP adds to a segment's payload at most */
	bool bytes;       /* payloads are bytes, not lengths */
	/* `create`, `destroy`, `open`, `closed` and `emss` may be NULL. */
	int (*create)(struct tcp_host *t);
	void (*destroy)(struct tcp_host *t);
	/* The connection of `e` is established. Called at each end. */
	void (*open)(struct tcp_host *t, struct sim_end *e);
	/* In-order payload has arrived. The ULP owns the chain. */
	void (*deliver)(struct tcp_host *t, struct sim_end *e, struct tcp_slice *chain);
	/* The peer has acknowledged records of `bytes` bytes. */
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
	struct sim_flow *arriving; /* the flow of the segment that is being processed */
	struct sim_pool recs, slices;
	uint32_t room; /* bytes of data in a record; 0: records are lengths */
};

/* Returns a record with `t->room` bytes of data, or without data. Its owner is `e`. */
struct tcp_rec *sim_tcp_rec_new(struct tcp_host *t, struct sim_end *e);
void sim_tcp_slices_free(struct tcp_host *t, struct tcp_slice *chain);

/* Functions of struct sim_transport. The `create` of each ULP calls sim_tcp_create(). */
int sim_tcp_create(struct sim_host *h, const struct tcp_ulp *ulp);
void sim_tcp_destroy(struct sim_host *h);
int sim_tcp_open(struct sim_flow *f);
void sim_tcp_packet_input(struct sim_host *h, struct sim_packet *p, uint64_t now);
unsigned sim_tcp_poll(struct sim_host *h, uint64_t now, unsigned budget);
uint64_t sim_tcp_deadline(struct sim_host *h);
void sim_tcp_count(struct sim_host *h, struct sim_counts *c);

#endif
