/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two QPs over lib/falcon in one process and in virtual time. Each end is client, engine stage and
 * transport stage; the queues between its two stages are as long as a test sets, and the wire
 * between the ends loses, duplicates and reorders packets by a seeded generator.
 */
#ifndef ROF_PAIR_H
#define ROF_PAIR_H

#include "../../../lib/rof/rof.h"
#include "../../../lib/wire/falcon.h"
#include "../../support/rd_end.h"
#include "../../support/rng.h"

#define END_WRS   1024
#define END_WCS   8192
#define END_QUEUE 4096
#define END_MEM   (1u << 20)
#define END_SRQ   70 /* XRC: the number of the first shared receive queue */
#define END_SRQS  2

/* Observes or changes a packet on its way. Returns false to lose it. */
typedef bool (*packet_hook)(void *arg, unsigned from, const struct wire_falcon *h);

struct packet {
	struct packet *next;
	uint64_t due;
	struct wire_falcon h;
	struct fa_buf *buf;
	uint32_t stamp, path;
};

struct end {
	RD_END;
	struct pair *pair;
	unsigned index;
	/* ---- Engine stage ---- */
	struct rof_stage st;
	struct rof_qp *q;
	struct rof_chan *c;
	struct rd_mr mr; /* END_MEM bytes at address END_BASE, all access rights */
	struct rd_extent extent;
	uint8_t *mem;
	bool closed;
	/* ---- Transport stage ---- */
	struct fa_stack *fa;
	struct fa_conn *conn;
	bool dead;
	/* ---- Between the stages; `room` is the length of either queue ---- */
	unsigned room;
	struct rof_msg down[END_QUEUE];
	struct fa_delivery up[END_QUEUE];
	unsigned down_head, down_tail, up_head, up_tail;
	bool up_refused, more;
	uint32_t came[64]; /* RSNs of the peer's requests, as Falcon delivered them */
	unsigned ncame;
	/* ---- Client ---- */
	struct rd_wr srq[END_SRQS][16]; /* XRC */
	unsigned srq_head[END_SRQS], srq_tail[END_SRQS];
	unsigned no_buffers; /* calls of buf_get that will fail */
	int live;            /* buffers that are not freed */
	uint64_t payload;    /* bytes of payload sent, without those that are lengths only */
	uint64_t sums;       /* packets sent whose payload carried its sum, which was right */
};

struct pair {
	struct end e[2];
	uint64_t now, rng;
	struct packet *wire;         /* by time of arrival */
	uint32_t loss, dup, reorder; /* probabilities, of 10000 packets */
	uint64_t delay;              /* ns */
	packet_hook hook;
	void *hook_arg;
	uint64_t packets, lost;
	uint64_t digest; /* of the bytes, stamps, paths and times of all packets */
};

/* Options of a pair; zero means the default. */
struct pair_options {
	/* Transport, ordering and errors; MTU and credits, if not 0; rnr_retry, increased by
	 * one. */
	struct rof_chan_params chan;
	void (*tune)(struct fa_config *cfg);
	bool lengths_only;
	bool general; /* rof_stage.general */
	uint16_t ird; /* if not 0: IRD of both QPs, which no peer respects */
	bool numbers; /* the next three are valid */
	uint32_t tx_rsn, request_psn, data_psn;
};

void pair_init_with(struct pair *p, const struct pair_options *o, uint64_t seed);
/* Initializes a pair with MTU 1024, ORD 16 and 64-deep queues. `params` (NULL: defaults) sets modes
 * and MTU. */
void pair_init(struct pair *p, const struct rof_chan_params *params, uint64_t seed);
/* Destroys the pair. Returns true when every buffer was freed. */
bool pair_fini(struct pair *p);
/* Runs for `until` ns of virtual time, or until `done` returns true. */
void pair_run(struct pair *p, uint64_t until, bool (*done)(struct pair *p));
struct rd_wr *end_post(struct end *e, uint8_t opcode, uint64_t wr_id);
struct rd_wr *end_recv(struct end *e, uint64_t wr_id);
/* Appends an element in the end's region. */
void wr_sge(struct end *e, struct rd_wr *wr, uint64_t off, uint32_t len);
/* Posts a request of one element, at the same offset in both ends' regions; imm is wr_id. */
struct rd_wr *end_msg(struct end *e, uint8_t opcode, uint64_t wr_id, uint64_t off, uint32_t len);
/* Posts a receive of one element. */
struct rd_wr *end_recv_at(struct end *e, uint64_t wr_id, uint64_t off, uint32_t len);
/* A `done` for pair_run(): each request of both ends has completed. */
bool pair_sent(struct pair *p);
/* Returns the completion with this wr_id among `n`, or NULL. */
const struct rd_wc *wc_find(const struct rd_wc *wc, unsigned n, uint64_t wr_id);
/* Registers another region over the end's memory from `off` on, at address END_BASE + off. */
void end_region(struct end *e, struct rd_mr *mr, struct rd_extent *x, uint64_t off, uint64_t len,
	uint32_t access);
#define END_BASE 0x10000ull

#endif
