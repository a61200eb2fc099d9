/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the two sublayers of lib/falcon. Packet delivery (pdl_*: PSN, windows, acknowledgement,
 * retransmission, pacing) below; transactions (tl_*: RSN, ordering, resources, the ULP) above.
 * Neither looks into the other's part of a connection.
 */
#ifndef SAKER_FALCON_PRIV_H
#define SAKER_FALCON_PRIV_H

#include "../base/wheel.h"
#include "../wire/wire.h"
#include "falcon.h"

/* A reliable packet on its way out: from the hand-over to tl_sent(). Comes from TL's pool. */
struct fa_pkt {
	struct fa_pkt *next; /* in whichever list it stands */
	struct fa_buf *buf;  /* NULL: a Resync, or pull data of no bytes */
	uint32_t rsn;
	uint32_t request_len;
	uint8_t type; /* FALCON_PULL_REQUEST, FALCON_PULL_DATA, FALCON_PUSH_DATA */
	/* ---- PDL's from here on ---- */
	uint8_t resync;               /* != 0: goes out as a Resync with this code */
	uint8_t completion, ulp_code; /* what tl_sent() will say */
	uint8_t flow;
	uint8_t flags;
	uint16_t timeouts; /* since the first transmission, or since it became a Resync */
	uint32_t psn;
	uint64_t sent_at, deadline; /* last transmission; when it is due again */
};

/* ---- What TL asks of PDL ---- */

struct pdl_conn; /* embedded: see fa_conn */

/* Queues a packet; it goes out in fa_stack_poll() when its window's gate lets it (9.1.2). Requests
 * come in RSN order. */
void pdl_send(struct fa_conn *c, uint64_t now, struct fa_pkt *p);
/* TL withdraws a packet (reclaim, or a dead connection): PDL forgets it, TL frees it. */
void pdl_forget(struct fa_conn *c, struct fa_pkt *p);
/* The ULP took the push that came with `psn`: it counts as acknowledged now. */
void pdl_ulp_ack(struct fa_conn *c, uint64_t now, uint32_t psn);
/* Sends a NACK; one of CIE, non-recoverable and invalid CID is kept and repeated when the push
 * comes again, until its Resync arrives; after one for RNR the same push is handed to tl_rx() again
 * when it comes again. `request`: PSN is of the request window. */
void pdl_nack(struct fa_conn *c, uint64_t now, bool request, uint32_t psn, uint8_t code,
	uint8_t rnr, uint8_t ulp_code);

/* ---- What PDL asks of TL ---- */

enum tl_take {
	TL_TAKEN,   /* payload is TL's; a pull request or pull data is acknowledged at once */
	TL_REFUSED, /* no resources: PDL NACKs with code 1, forgets it was here, frees the payload
		     */
	TL_DROPPED, /* counted by TL; it counts as received and acknowledged, PDL frees the payload
		     */
};
/* A pull request, pull data or push inside the window that was not taken before; or a push after
 * pdl_nack() for RNR (`again`). */
enum tl_take tl_rx(struct fa_conn *c, uint64_t now, const struct wire_falcon *h,
	struct fa_buf *payload, bool again);
/* The packet is done: acknowledged (FA_DONE), or its Resync was (what the NACK said), or it was
 * given up (FA_DEAD_CONNECTION). TL frees it. */
void tl_sent(struct fa_conn *c, uint64_t now, struct fa_pkt *p, enum fa_completion how,
	uint8_t ulp_code);
/* A Resync replaced the peer's packet with this RSN: it will not come. */
void tl_resynced(struct fa_conn *c, uint64_t now, const struct wire_falcon *h);
/* Retransmissions have no end: all transactions are to be completed, then FA_EV_DEAD. */
void tl_dead(struct fa_conn *c, uint64_t now);
/* 0..31: the higher of the levels of the receive packet and buffer pools (10.2). */
uint8_t tl_rx_level(const struct fa_stack *s);

#endif
