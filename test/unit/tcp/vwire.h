/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two TCP stacks, joined by a wire in virtual time. The wire delays segments, limits their rate
 * with a finite buffer, and loses, reorders, duplicates and marks them. All of it depends on one
 * seed, so a run can be repeated. Headers pass through wire_tcp_emit() and wire_tcp_parse(). The
 * harness counts every record and slice.
 *
 *	struct vwire *w = vw_create(&(struct vw_params){.seed = 1, .delay_ns = 10000}, NULL);
 *	struct tcp_conn *c = vw_connect(w, user); (w->end[1].listener exists already)
 *	vw_send(&w->end[0], c, data, len, 0);
 *	vw_run(w, 1000000000);
 *	vw_destroy(w); (asserts that all records and slices came back)
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
	uint64_t delay_ns; /* one way */
	/* Added, uniformly distributed, to the share `reorder` of the segments. */
	uint64_t jitter_ns;
	double loss, dup, reorder, ce; /* probabilities */
	uint64_t rate_bps;             /* 0: unlimited */
	uint32_t buffer;               /* bytes before the rate limit; 0: unlimited */
	uint32_t ce_above;             /* marks ECT segments when more bytes wait; 0: never */
	uint32_t path_mtu; /* larger packets are dropped with an ICMP "too big"; 0: no limit */
	uint32_t mtu;      /* MTU of both ends; 0: 1500 */
	double busy;       /* probability that output() returns -EAGAIN */
	double refuse;     /* probability that deliver() refuses */
	uint64_t poll_ns;  /* time between polls of a busy stack; 0: 1000 */
	uint32_t tso;      /* argument of tcp_set_tso() for both ends */
	bool v6;
};

struct vw_hooks { /* any may be NULL; `arg` is the end's */
	/* Receives bytes in order. The harness owns them, and reports them as consumed
	 * afterwards. */
	void (*bytes)(struct vw_end *e, struct tcp_conn *c, const uint8_t *data, uint32_t len);
	void (*event)(struct vw_end *e, struct tcp_conn *c, enum tcp_event ev);
	/* Receives each sent segment before the wire processes it. Returns false to lose the
	 * segment. */
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
	uint64_t link_free;   /* time when the rate limit has sent all waiting bytes */
	int64_t recs, slices; /* not freed yet */
	uint64_t gso_out;
};

struct vw_packet {
	uint64_t at, order;
	unsigned to; /* index of the receiving end */
	uint8_t ecn;
	uint8_t hdr[TCP_MAX];
	unsigned hdr_len;
	uint32_t len;
	uint8_t *data;
	/* Not 0: a "too big" about hdr's sequence number, instead of a segment. */
	uint32_t icmp_mtu;
};

struct vwire {
	struct vw_params p;
	uint64_t now, rng, order;
	struct vw_end end[2];
	struct vw_packet **heap;
	unsigned nheap, heap_size;
	uint16_t next_port;
};

/* Sets the defaults of a stack for tests: a fixed key, and small tables. */
void vw_config(struct tcp_config *cfg);
/* Returns a wire with two stacks. `cfg` NULL: that of vw_config(). */
struct vwire *vw_create(const struct vw_params *p, const struct tcp_config *cfg);
void vw_destroy(struct vwire *w);
/* Connects end 0 to end 1. */
struct tcp_conn *vw_connect(struct vwire *w, void *user);
/* Sends a copy of the data in records of at most `rec` bytes (0: one record). */
int vw_send(struct vw_end *e, struct tcp_conn *c, const uint8_t *data, uint32_t len, uint32_t rec);
/* Runs for `ns`, or until no event is left. Returns the time that passed. */
uint64_t vw_run(struct vwire *w, uint64_t ns);
/* As vw_run(), but also ends when *stop is set. */
uint64_t vw_run_until(struct vwire *w, uint64_t ns, const bool *stop);
uint64_t vw_random(struct vwire *w);
bool vw_chance(struct vwire *w, double p);

#endif
