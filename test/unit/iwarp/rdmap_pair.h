/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two QPs in one process for tests of DDP and RDMAP. Each end is engine and client; the wire
 * between them is a byte string that is cut at random before each delivery. A scripted peer can
 * drive one end alone.
 */
#ifndef RDMAP_PAIR_H
#define RDMAP_PAIR_H

#include "../../../lib/iwarp/iwarp.h"
#include "../../support/rd_end.h"
#include "../../support/rng.h"

#define END_WRS 1024
#define END_WCS 8192
#define END_MRS 16
#define END_MWS 4

struct end {
	RD_END;
	struct iw_stage st;
	struct iw_qp *q;
	struct rd_mr *mr[END_MRS];
	unsigned nmr;
	struct rd_mw mw[END_MWS];
	unsigned nmw;

	/* The wire. */
	uint8_t *wire;
	size_t wire_len, wire_cap;
	unsigned records;
	uint32_t longest_record;

	/* Calls of rec_get and of send that will fail. */
	unsigned refuse_rec, refuse_send;

	unsigned live_recs, live_slices;
	uint64_t consumed;
	unsigned closes;
	enum iw_close close_how;
};

struct pair {
	struct end e[2];
	uint64_t rng;
};

/* Initializes an end with 64-deep queues, IRD and ORD 8, CRC, EMSS 1448 and ample send space, or
 * with `p` if it is not NULL. */
void end_init(struct end *e, const struct iw_params *p, bool initiator);
struct iw_params end_params(void);
void pair_init(struct pair *p, const struct iw_params *params, uint64_t seed);
/* Destroys an end. Returns true when every record and slice was freed. */
bool end_fini(struct end *e);
bool pair_fini(struct pair *p);

/* Registers a region of `len` bytes with memory of its own, at client address `base` (0:
 * zero-based), in `extents` pieces, filled with the pattern of `seed`. */
struct rd_mr *end_mr(struct end *e, uint64_t base, uint64_t len, uint32_t access, unsigned extents,
	uint8_t seed);
void mr_get(const struct rd_mr *mr, uint64_t off, void *dst, size_t len);
void mr_put(struct rd_mr *mr, uint64_t off, const void *src, size_t len);
/* Returns true when the bytes of each region are as end_mr() filled it. */
bool end_untouched(const struct end *e);
/* Creates an unbound window; posts a request that binds a window, with the key after its present
 * one. */
struct rd_mw *end_mw(struct end *e, enum rd_mw_type type);
struct rd_wr *end_bind(struct end *e, uint64_t wr_id, const struct rd_mw *mw,
	const struct rd_mr *mr, uint64_t off, uint64_t len, uint32_t access);
/* Returns the byte of a pattern at `off`. */
uint8_t pattern(uint8_t seed, uint64_t off);

struct rd_wr *end_post(struct end *e, uint8_t opcode, uint64_t wr_id);
struct rd_wr *end_recv(struct end *e, uint64_t wr_id);
void wr_sge(struct rd_wr *wr, const struct rd_mr *mr, uint64_t off, uint32_t len);

/* Runs iw_tx() until it has nothing to send. */
void end_tx(struct end *e);
/* Delivers stream bytes, cut into slices of at most `cut` bytes (0: one slice). */
void end_feed(struct end *e, const uint8_t *data, size_t len, uint32_t cut, uint64_t *rng);
/* Runs both directions until nothing moves. Returns false when that takes too many turns. */
bool pair_run(struct pair *p);

/* The scripted peer: delivers one FPDU (no markers, with CRC) to the end. */
void end_fpdu(struct end *e, const struct wire_ddp *d, const void *body, uint32_t len);
/* Removes the next FPDU that the end has sent. Returns false when there is none. */
bool end_sent(struct end *e, struct wire_ddp *d, uint8_t *body, uint32_t *len);

#endif
