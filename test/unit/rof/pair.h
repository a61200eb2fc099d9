/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two QPs over lib/falcon in one process and in virtual time: each end plays client, engine stage
 * and transport stage; between its two stages are queues as long as a test wants, and between the
 * ends a wire that loses, doubles and reorders packets by a seeded generator.
 */
#ifndef ROF_PAIR_H
#define ROF_PAIR_H

#include "../../../lib/rof/rof.h"
#include "../../../lib/wire/falcon.h"

#define END_WRS   1024
#define END_WCS   8192
#define END_QUEUE 4096
#define END_MEM   (1u << 20)
#define END_SRQ   70 /* XRC: the number of the first shared receive queue */
#define END_SRQS  2

/* What a test may look at, or change, of each packet on its way. Returns false to lose it. */
typedef bool (*packet_hook)(void *arg, unsigned from, const struct wire_falcon *h);

struct packet {
	struct packet *next;
	uint64_t due;
	struct wire_falcon h;
	struct fa_buf *buf;
	uint32_t stamp, path;
};

struct end {
	struct pair *pair;
	unsigned index;
	/* engine stage */
	struct rof_stage st;
	struct rd_pd pd;
	struct rd_qp rd;
	struct rof_qp *q;
	struct rof_chan *c;
	struct rd_mr_table *mrs;
	struct rd_mr mr; /* END_MEM bytes at address 0x10000, all rights */
	struct rd_extent extent;
	uint8_t *mem;
	bool closed;
	int errors, error_code;
	/* transport stage */
	struct fa_stack *fa;
	struct fa_conn *conn;
	bool dead;
	/* between them; `room` is how long each may be */
	unsigned room;
	struct rof_msg down[END_QUEUE];
	struct fa_delivery up[END_QUEUE];
	unsigned down_head, down_tail, up_head, up_tail;
	bool up_refused, more;
	uint32_t came[64]; /* RSNs of the peer's requests, as Falcon delivered them */
	unsigned ncame;
	/* client */
	struct rd_wr sq[END_WRS], rq[END_WRS];
	unsigned sq_head, sq_tail, rq_head, rq_tail;
	struct rd_wr srq[END_SRQS][16]; /* XRC */
	unsigned srq_head[END_SRQS], srq_tail[END_SRQS];
	struct rd_wc send_wc[END_WCS], recv_wc[END_WCS];
	unsigned nsend, nrecv;
	unsigned no_buffers; /* so many times buf_get says no */
	int live;            /* buffers that have not come home */
	uint64_t payload;    /* bytes of real payload that it sent */
};

struct pair {
	struct end e[2];
	uint64_t now, rng;
	struct packet *wire;         /* by time */
	uint32_t loss, dup, reorder; /* of 10000 packets */
	uint64_t delay;              /* ns */
	packet_hook hook;
	void *hook_arg;
	uint64_t packets, lost;
};

/* What differs from the usual. */
struct pair_options {
	struct rof_chan_params chan; /* transport, ordering, errors; the following if not 0: MTU,
					credits; rnr_retry is one more than it says */
	void (*tune)(struct fa_config *cfg);
	bool lengths_only;
	bool numbers; /* the next three are valid */
	uint32_t tx_rsn, request_psn, data_psn;
};

uint32_t rng_below(uint64_t *state, uint32_t n);
void pair_init_with(struct pair *p, const struct pair_options *o, uint64_t seed);
/* MTU 1024, ORD 16, 64-deep queues; `p` (NULL: defaults) gives modes and MTU. */
void pair_init(struct pair *p, const struct rof_chan_params *params, uint64_t seed);
/* true: every buffer came home. */
bool pair_fini(struct pair *p);
/* Runs until nothing is on its way and no timer has anything to do before `until` (virtual ns from
 * now), or `done` says so. */
void pair_run(struct pair *p, uint64_t until, bool (*done)(struct pair *p));
struct rd_wr *end_post(struct end *e, uint8_t opcode, uint64_t wr_id);
struct rd_wr *end_recv(struct end *e, uint64_t wr_id);
/* An element in the end's region. */
void wr_sge(struct end *e, struct rd_wr *wr, uint64_t off, uint32_t len);
/* A request of one element, at the same offset in both ends' regions; imm is wr_id. */
struct rd_wr *end_msg(struct end *e, uint8_t opcode, uint64_t wr_id, uint64_t off, uint32_t len);
/* A receive of one element. */
struct rd_wr *end_recv_at(struct end *e, uint64_t wr_id, uint64_t off, uint32_t len);
/* For pair_run(): each request of both ends has completed. */
bool pair_sent(struct pair *p);
/* The completion with this wr_id; NULL: none. `n` are there. */
const struct rd_wc *wc_find(const struct rd_wc *wc, unsigned n, uint64_t wr_id);
/* One more region over the end's memory from `off` on, with its address at END_BASE + off. */
void end_region(struct end *e, struct rd_mr *mr, struct rd_extent *x, uint64_t off, uint64_t len,
	uint32_t access);
#define END_BASE 0x10000ull

#endif
