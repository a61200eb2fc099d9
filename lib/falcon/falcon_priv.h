/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the two sublayers of lib/falcon. Packet delivery (pdl_*: PSN, windows, acknowledgement,
 * retransmission, pacing) below; transactions (tl_*: RSN, ordering, resources, the ULP) above.
 * Neither looks into the other's part of a connection.
 */
#ifndef SAKER_FALCON_PRIV_H
#define SAKER_FALCON_PRIV_H

#include "../base/wheel.h"
#include "../wire/falcon.h"
#include "falcon.h"

/* A reliable packet on its way out: from the hand-over to tl_sent(). Comes from TL's pool. */
struct fa_pkt {
	struct fa_pkt *next; /* in whichever list it stands */
	struct fa_buf *buf;  /* NULL: a Resync, or pull data of no bytes */
	uint32_t rsn;
	uint32_t request_len;
	uint8_t type; /* FALCON_PULL_REQUEST, FALCON_PULL_DATA, FALCON_PUSH_DATA */
	/* When the transaction began. PDL sets it to now when the packet is the next to go, when it
	 * goes, and when an RNR NACK comes for it: the peer lives, what counts is the time since.
	 */
	uint64_t since;
	/* ---- PDL's from here on ---- */
	uint8_t resync;               /* != 0: goes out as a Resync with this code */
	uint8_t completion, ulp_code; /* what tl_sent() will say */
	uint8_t flow;
	uint8_t flags;
	uint16_t timeouts; /* since the first transmission, or since it became a Resync */
	uint32_t psn;
	uint64_t sent_at, deadline; /* last transmission; when it is due again */
	uint64_t counted_at;        /* first transmission, or when `timeouts` last went on */
};

/* ---- What TL asks of PDL ---- */

/* Queues a packet; it goes out in fa_stack_poll() when its window's gate lets it (9.1.2). Requests
 * come in RSN order. Not on a dead connection. */
void pdl_send(struct fa_conn *c, uint64_t now, struct fa_pkt *p);
/* TL gives the packet up (11: it took too long). true: it had not been sent and nobody waits for
 * its RSN (pull data, or the connection is not ordered), PDL has forgotten it, TL frees it. false:
 * a Resync with `code` goes out in its place, with its PSN; its payload is freed, and tl_sent()
 * comes with `how` when the Resync is acknowledged. Not from inside tl_sent(). */
bool pdl_withdraw(
	struct fa_conn *c, uint64_t now, struct fa_pkt *p, uint8_t code, enum fa_completion how);
/* The pull data for this pull request is here, so the request must have arrived: it counts as
 * acknowledged, and tl_sent() comes from inside. From inside tl_rx() only. `p` may stand in any
 * state but that of having been handed to tl_sent(). */
void pdl_implied_ack(struct fa_conn *c, uint64_t now, struct fa_pkt *p);
/* The ULP took the push that came with `psn`: it counts as acknowledged now. Nothing happens if the
 * packet is not one that is received and not acknowledged (its Resync may have come). */
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
 * pdl_nack() for RNR (`again`; TL may still have the first copy, or not). pdl_ulp_ack() and
 * pdl_nack() may be called from inside. The ULP is not: what becomes deliverable waits for
 * tl_run(). */
enum tl_take tl_rx(struct fa_conn *c, uint64_t now, const struct wire_falcon *h,
	struct fa_buf *payload, bool again);
/* The packet is done: acknowledged (FA_DONE), or its Resync was (what the NACK said, FA_LOCAL_
 * TIMEOUT when retransmissions were exhausted, or what pdl_withdraw() was told), or the connection
 * is given up. TL frees it, with its payload. */
void tl_sent(struct fa_conn *c, uint64_t now, struct fa_pkt *p, enum fa_completion how,
	uint8_t ulp_code);
/* A Resync replaced the peer's packet with this PSN and RSN: it will not come, or, if it did
 * (a push that the ULP has), no answer to it is wanted any more. TL_REFUSED: no room to remember
 * that an RSN is to be passed over; the Resync is to be NACKed with code 1, as if it were the
 * packet itself. */
enum tl_take tl_resynced(struct fa_conn *c, uint64_t now, const struct wire_falcon *h);
/* Deliveries that tl_rx(), tl_resynced() and tl_sent() made possible. The last thing in fa_input(),
 * and after a timer that led to tl_sent(): from in there the ULP may call what falcon.h says, so
 * nothing of PDL's may be half done. */
void tl_run(struct fa_conn *c, uint64_t now);
/* The connection was given up; all packets have been handed to tl_sent(). All transactions are to
 * be completed with `code`, then FA_EV_DEAD; calls the ULP. */
void tl_dead(struct fa_conn *c, uint64_t now, enum fa_completion code);
/* 0..31: the higher of the levels of the receive packet and buffer pools (10.2). */
uint8_t tl_rx_level(const struct fa_stack *s);

/* ---- What stack.c and conn.c ask of TL ---- */

/* Fills in what is TL's: pools, reclaim_ns, conn_requests, push_reoffer, rx_*. */
void tl_config_default(struct fa_config *cfg);
/* 0, -ENOMEM, -EINVAL: cfg->pools make no sense. s->cfg, s->ops are set. */
int tl_stack_init(struct fa_stack *s, uint64_t now);
void tl_stack_fini(struct fa_stack *s);
/* 0, -ENOBUFS, -ENOMEM, -EINVAL: the pools cannot hold one request of that MTU. c->s, c->params are
 * set, the rest is zero. */
int tl_conn_init(struct fa_conn *c, uint64_t now);
/* The connection is destroyed: TL frees all that it holds, in silence. PDL gave back before,
 * through tl_pkt_free(), the packets that it had. */
void tl_conn_fini(struct fa_conn *c);
void tl_pkt_free(struct fa_conn *c, struct fa_pkt *p);
/* Once per fa_stack_poll(): deliveries that wait, credits, Xon. */
void tl_poll(struct fa_stack *s, uint64_t now);
/* The deadline of fa_tl_timer() has come. */
void tl_timer(struct fa_conn *c, uint64_t now);
/* When tl_poll() has something to do though nothing arrives (s->now: at once); SK_NEVER. Timers
 * need not be counted in. */
uint64_t tl_deadline(const struct fa_stack *s);

/* Sets TL's one timer of the connection (reclaim, local RNR); SK_NEVER stops it. */
void fa_tl_timer(struct fa_conn *c, uint64_t deadline);

#endif
