/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two QPs in one process for tests of DDP and RDMAP: each end plays engine and client, and the wire
 * between them is a byte string that is cut anew, at random, before it is delivered. One end alone
 * can be driven by a scripted peer.
 */
#ifndef RDMAP_PAIR_H
#define RDMAP_PAIR_H

#include "../../../lib/iwarp/iwarp.h"

#define END_WRS 1024
#define END_WCS 8192
#define END_MRS 16
#define END_MWS 4

struct end {
	struct iw_stage st;
	struct rd_pd pd;
	struct rd_qp rd;
	struct iw_qp *q;
	struct rd_mr_table *mrs;
	struct rd_mr *mr[END_MRS];
	unsigned nmr;
	struct rd_mw mw[END_MWS];
	unsigned nmw;

	/* The client's side. */
	struct rd_wr sq[END_WRS], rq[END_WRS];
	unsigned sq_head, sq_tail, rq_head, rq_tail;
	struct rd_wc send_wc[END_WCS], recv_wc[END_WCS];
	unsigned nsend, nrecv;

	/* The wire. */
	uint8_t *wire;
	size_t wire_len, wire_cap;
	unsigned records;
	uint32_t longest_record;
	uint64_t unreturned; /* bytes for which no space has been given back */

	/* What the other stages would refuse; counted down. */
	unsigned refuse_rec, refuse_send;

	unsigned live_recs, live_slices;
	uint64_t consumed;
	unsigned closes, errors, invalidations;
	enum iw_close close_how;
	int error_code;
};

struct pair {
	struct end e[2];
	uint64_t rng;
};

uint64_t rng_next(uint64_t *state);
static inline uint32_t
rng_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(rng_next(state) % n);
}

/* 64-deep queues, IRD and ORD 8, CRC, EMSS 1448, plenty of send space; `p` changes that when not
 * NULL. */
void end_init(struct end *e, const struct iw_params *p, bool initiator);
struct iw_params end_params(void);
void pair_init(struct pair *p, const struct iw_params *params, uint64_t seed);
/* Destroys; true when every record and slice came home. */
bool end_fini(struct end *e);
bool pair_fini(struct pair *p);

/* A region of `len` bytes at host memory of its own, at client address `base` (0: zero-based), in
 * `extents` pieces. Filled by a pattern of `seed`. */
struct rd_mr *end_mr(struct end *e, uint64_t base, uint64_t len, uint32_t access, unsigned extents,
	uint8_t seed);
void mr_get(const struct rd_mr *mr, uint64_t off, void *dst, size_t len);
void mr_put(struct rd_mr *mr, uint64_t off, const void *src, size_t len);
/* A window, unbound; and a request that binds it, with the key after the one that it has. */
struct rd_mw *end_mw(struct end *e, enum rd_mw_type type);
struct rd_wr *end_bind(struct end *e, uint64_t wr_id, const struct rd_mw *mw,
	const struct rd_mr *mr, uint64_t off, uint64_t len, uint32_t access);
/* The pattern's byte. */
uint8_t pattern(uint8_t seed, uint64_t off);

struct rd_wr *end_post(struct end *e, uint8_t opcode, uint64_t wr_id);
struct rd_wr *end_recv(struct end *e, uint64_t wr_id);
void wr_sge(struct rd_wr *wr, const struct rd_mr *mr, uint64_t off, uint32_t len);

/* Sends what can be sent. */
void end_tx(struct end *e);
/* Delivers stream bytes, cut in slices of at most `cut` bytes (0: one slice). */
void end_feed(struct end *e, const uint8_t *data, size_t len, uint32_t cut, uint64_t *rng);
/* Both directions until nothing moves any more. false: still moving after very long. */
bool pair_run(struct pair *p);

/* The scripted peer: one FPDU (no markers, with CRC) to the end. */
void end_fpdu(struct end *e, const struct wire_ddp *d, const void *body, uint32_t len);
/* The next FPDU that the end has sent, taken off; false: none. */
bool end_sent(struct end *e, struct wire_ddp *d, uint8_t *body, uint32_t *len);

#endif
