/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two TCP stacks joined by a wire in virtual time. The wire delays, limits the rate with a finite
 *buffer, loses, reorders, duplicates and marks, all from one seed, so that a run can be repeated.
 *Headers pass through wire_tcp_emit() and wire_tcp_parse(). Every record and slice is counted.
 *
 *	struct vwire *w = vw_create(&(struct vw_params){.seed = 1, .delay_ns = 10000}, NULL);
 *	tcp_listen(w->end[1].s, ...) is there already: w->end[1].listener
 *	struct tcp_conn *c = vw_connect(w, user);
 *	vw_send(&w->end[0], c, data, len);
 *	vw_run(w, 1000000000);
 *	vw_destroy(w);   asserts that all records and slices came home
 */
#ifndef SAKER_TEST_VWIRE_H
#define SAKER_TEST_VWIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "../../../lib/tcp/tcp.h"

#define VW_MAX_CONNS 64

struct vwire;
struct vw_end;

struct vw_params {
	uint64_t seed;
	uint64_t delay_ns;             /* one way */
	uint64_t jitter_ns;            /* uniformly added for `reorder` of the segments */
	double loss, dup, reorder, ce; /* probabilities */
	uint64_t rate_bps;             /* 0: unlimited */
	uint32_t buffer;               /* bytes in front of the rate limit; 0: unlimited */
	uint32_t ce_above; /* mark ECT segments when more than so many bytes wait; 0: never */
	uint32_t path_mtu; /* larger packets vanish with an ICMP "too big"; 0: no limit */
	uint32_t mtu;      /* both ends' own; 0: 1500 */
	double busy;       /* probability that output() says -EAGAIN */
	double refuse;     /* probability that deliver() refuses */
	uint64_t poll_ns;  /* between polls of a stack while something happens; 0: 1000 */
	uint32_t tso;      /* tcp_set_tso() for both */
	bool v6;
};

struct vw_hooks { /* all may be NULL; `arg` is the end's */
	/* In-order bytes. The harness has taken them over and reports them consumed afterwards. */
	void (*bytes)(struct vw_end *e, struct tcp_conn *c, const uint8_t *data, uint32_t len);
	void (*event)(struct vw_end *e, struct tcp_conn *c, enum tcp_event ev);
	/* Sees each segment that leaves, before the wire decides; false: lose it. */
	bool (*segment)(struct vw_end *e, const struct wire_tcp *t, const uint8_t *data,
		uint32_t len, uint8_t ecn);
};

struct vw_end {
	struct vwire *w;
	unsigned index;
	struct tcp_stack *s;
	struct tcp_listener *listener; /* end 1 listens at port 4000 */
	struct vw_hooks hooks;
	void *arg;
	struct {
		struct tcp_tuple t;
		struct tcp_conn *c;
	} conns[VW_MAX_CONNS];
	unsigned nconns;
	uint64_t link_free;   /* when the rate limit has sent what it has */
	int64_t recs, slices; /* alive */
	uint64_t segs_out, bytes_out, lost, gso_out;
};

struct vw_packet {
	uint64_t at, order;
	unsigned to; /* index of the receiving end */
	uint8_t ecn;
	uint8_t hdr[TCP_MAX];
	unsigned hdr_len;
	uint32_t len;
	uint8_t *data;
	uint32_t icmp_mtu; /* not 0: "too big" instead, about hdr's sequence number */
};

struct vwire {
	struct vw_params p;
	uint64_t now, rng, order;
	struct vw_end end[2];
	struct vw_packet **heap;
	unsigned nheap, heap_size;
	uint16_t next_port;
};

/* `cfg` NULL: the defaults with a fixed key and small tables. */
void vw_config(struct tcp_config *cfg);
struct vwire *vw_create(const struct vw_params *p, const struct tcp_config *cfg);
void vw_destroy(struct vwire *w);
/* From end 0 to end 1. */
struct tcp_conn *vw_connect(struct vwire *w, void *user);
/* Copies into records of at most `rec` bytes (0: one record). */
int vw_send(struct vw_end *e, struct tcp_conn *c, const uint8_t *data, uint32_t len, uint32_t rec);
/* Runs for so long, or until nothing is left to do. Returns the time that passed. */
uint64_t vw_run(struct vwire *w, uint64_t ns);
/* ... or until *stop. */
uint64_t vw_run_until(struct vwire *w, uint64_t ns, const bool *stop);
uint64_t vw_random(struct vwire *w);
bool vw_chance(struct vwire *w, double p);

#endif
