/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of RDMA over Falcon without Falcon, for peers that violate the protocol. The packets of a
 * scripted peer go to rof_rx() unchanged. The script records and checks all messages to Falcon: one
 * verdict for each delivery, one answer for each pull that was taken.
 *
 * Memory: SCRIPT_LEN bytes of 0x77 at address SCRIPT_BASE. The peer may access one region of it;
 * receives and sinks are in another; the rest is in no region.
 */
#ifndef ROF_SCRIPT_H
#define ROF_SCRIPT_H

#include "../../../lib/rof/rof_priv.h"
#include "../../support/rd_end.h"

#define SCRIPT_BASE    0x10000ull
#define SCRIPT_LEN     0x8000u
#define SCRIPT_GRANTED 0x1000u /* offset of the region that the peer may access */
#define SCRIPT_LOCAL   0x4000u /* offset of the region for receives and sinks */
#define SCRIPT_REGION  0x1000u /* length of either region in bytes */
#define SCRIPT_MAX     256     /* messages, completions and requests */
#define SCRIPT_SRQ     70
#define SCRIPT_RSN     1000 /* RSN of this side's first request */
#define SCRIPT_PEER    0x222
#define SCRIPT_QPN     0x111
#define SCRIPT_QKEY    0x5ca1ab1e

struct script_msg {
	uint8_t kind, verdict, rnr, ulp_code;
	uint32_t rsn, len, response_len;
	struct wire_rof h; /* headers of its buffer, if it has one */
};

/* A delivery that was refused, to be delivered again. */
struct script_refused {
	uint8_t type;
	uint32_t rsn;
	struct fa_buf *buf;
};

struct script {
	RD_END;
	struct rof_stage st;
	struct rof_qp *q;
	struct rof_chan *c;
	struct rd_mr granted, local;
	struct rd_extent extents[2];
	uint8_t *mem;
	struct script_msg msgs[SCRIPT_MAX]; /* the last SCRIPT_MAX messages */
	unsigned nmsgs;
	struct script_refused refused[SCRIPT_MAX];
	unsigned nrefused;
	/* Messages that the ring still accepts; calls of buf_get that will fail. */
	unsigned room, no_buffers;
	uint32_t sn, rsn; /* of the peer's next request */
	unsigned deliveries, verdicts, pulls_taken, answers;
	uint32_t requests; /* of this side */
	int live;
	bool closed;
	/* fa_delivery.restart of new requests; no `restart` in repeated ones. */
	bool restart, silent;
};

void script_init(struct script *s, uint8_t transport, uint8_t ordering, uint8_t errors);
/* Destroys all. Returns true when every buffer was freed and Falcon got its verdicts and answers. A
 * pull that waits for requests before it needs no answer when its connection has been closed. */
bool script_fini(struct script *s);
/* Delivers a request of the peer: the headers `h` (0 in sn and dest_qp: the correct value), and
 * `len` bytes of 0x5a with h->pad bytes of padding. */
void script_request(struct script *s, uint8_t type, const struct wire_rof *h, uint32_t len);
/* Delivers a request of raw bytes. */
void script_raw(struct script *s, uint8_t type, uint32_t rsn, const void *bytes, uint32_t len);
/* Delivers the completion of a request of this side. */
void script_completion(struct script *s, uint32_t rsn, uint8_t completion, uint8_t ulp_code);
/* Delivers the oldest refused request again. Returns false when there is none. */
bool script_again(struct script *s);
void script_recv(struct script *s, uint64_t wr_id, uint32_t off, uint32_t len);
/* Posts a request of one element in the local region. */
struct rd_wr *script_post(
	struct script *s, uint8_t opcode, uint64_t wr_id, uint32_t off, uint32_t len);
/* Returns the last message to Falcon. */
const struct script_msg *script_last(const struct script *s);
/* Returns whether each byte outside of [off, off + len) has its first value. */
bool script_untouched(const struct script *s, uint32_t off, uint32_t len);

#endif
