/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of RDMA over Falcon without Falcon: what a peer says is handed to rof_rx() as it stands,
 * and all that is said to Falcon is kept and checked: one verdict for each delivery, one answer for
 * each pull that was taken. For peers that keep to no rule.
 *
 * Memory: SCRIPT_LEN bytes at address SCRIPT_BASE, of 0x77. The peer was granted one region of it,
 * receives and sinks lie in another, the rest is nobody's.
 */
#ifndef ROF_SCRIPT_H
#define ROF_SCRIPT_H

#include "../../../lib/rof/rof_priv.h"

#define SCRIPT_BASE    0x10000ull
#define SCRIPT_LEN     0x8000u
#define SCRIPT_GRANTED 0x1000u /* offset of the region that the peer may use */
#define SCRIPT_LOCAL   0x4000u /* of the one for receives and sinks */
#define SCRIPT_REGION  0x1000u /* bytes of each */
#define SCRIPT_MAX     256     /* messages, completions, requests */
#define SCRIPT_SRQ     70
#define SCRIPT_RSN     1000 /* of our first request */
#define SCRIPT_PEER    0x222
#define SCRIPT_QPN     0x111
#define SCRIPT_QKEY    0x5ca1ab1e

struct script_told {
	uint8_t kind, verdict, rnr, ulp_code;
	uint32_t rsn, len, response_len;
	struct wire_rof h; /* of what has a buffer */
};

/* A delivery that was refused and comes again. */
struct script_refused {
	uint8_t type;
	uint32_t rsn;
	struct fa_buf *buf;
};

struct script {
	struct rof_stage st;
	struct rd_pd pd;
	struct rd_qp rd;
	struct rof_qp *q;
	struct rof_chan *c;
	struct rd_mr_table *mrs;
	struct rd_mr granted, local;
	struct rd_extent extents[2];
	uint8_t *mem;
	struct rd_wr sq[SCRIPT_MAX], rq[SCRIPT_MAX];
	unsigned sq_head, sq_tail, rq_head, rq_tail;
	struct rd_wc send_wc[SCRIPT_MAX], recv_wc[SCRIPT_MAX];
	unsigned nsend, nrecv;
	struct script_told told[SCRIPT_MAX]; /* the last ones */
	unsigned ntold;
	struct script_refused refused[SCRIPT_MAX];
	unsigned nrefused;
	unsigned room, no_buffers; /* so many messages may be told; so often there is no buffer */
	uint32_t sn, rsn;          /* of the peer's next request */
	unsigned deliveries, verdicts, pulls_taken, answers;
	uint32_t requests; /* of ours */
	int live, errors;
	bool closed;
	bool restart, silent; /* requests say "restart"; those that come again do not */
};

void script_init(struct script *s, uint8_t transport, uint8_t ordering, uint8_t errors);
/* Takes everything down. true: every buffer came home, and Falcon got its verdicts. */
bool script_fini(struct script *s);
/* A request of the peer: headers as given (0 in sn, dest_qp: the right one), `len` bytes of 0x5a
 * with the padding that `h->pad` says. */
void script_request(struct script *s, uint8_t type, const struct wire_rof *h, uint32_t len);
/* The same, of raw bytes. */
void script_raw(struct script *s, uint8_t type, uint32_t rsn, const void *bytes, uint32_t len);
/* What ends a request of ours. */
void script_completion(struct script *s, uint32_t rsn, uint8_t completion, uint8_t ulp_code);
/* Offers what was refused first again; false: nothing was. */
bool script_again(struct script *s);
void script_recv(struct script *s, uint64_t wr_id, uint32_t off, uint32_t len);
/* A request of ours of one element in the local region. */
struct rd_wr *script_post(
	struct script *s, uint8_t opcode, uint64_t wr_id, uint32_t off, uint32_t len);
/* The message that was told last. */
const struct script_told *script_last(const struct script *s);
/* Does each byte outside of [off, off + len) have its first value? */
bool script_untouched(const struct script *s, uint32_t off, uint32_t len);

#endif
