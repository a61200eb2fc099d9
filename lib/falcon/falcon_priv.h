/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between the two sublayers of lib/falcon: packet delivery (pdl_*: PSN, windows,
 * acknowledgement, retransmission, pacing) below, transactions (tl_*: RSN, ordering, resources, the
 * ULP) above. Neither accesses the other's part of a connection.
 */
#ifndef SAKER_FALCON_PRIV_H
#define SAKER_FALCON_PRIV_H

#include "../base/wheel.h"
#include "../wire/falcon.h"
#include "falcon.h"

/* A reliable packet to send, from pdl_send() to tl_sent(). It comes from TL's pool. */
struct fa_pkt {
	struct fa_pkt *next; /* in the list that holds the packet */
	struct fa_buf *buf;  /* NULL: a Resync, or pull data without bytes */
	uint32_t rsn;
	uint32_t request_len;
	uint8_t type; /* FALCON_PULL_REQUEST, FALCON_PULL_DATA, FALCON_PUSH_DATA */
	/* The time (fa_observed()) from which the transaction's age counts. TL sets it when the
	 * transaction begins. PDL sets it when the packet is the next to go, when it is
	 * sent, and when an RNR NACK arrives for it, since the peer is alive then. */
	uint64_t since;
	/* ---- Used by PDL only ---- */
	uint8_t resync;               /* nonzero: the packet goes out as a Resync with this code */
	uint8_t completion, ulp_code; /* what tl_sent() will report */
	uint8_t flow;
	uint8_t flags;
	uint16_t timeouts; /* since the first transmission, or since the packet became a Resync */
	uint32_t psn;
	uint64_t sent_at, deadline; /* last transmission; time of the next one */
	uint64_t counted_at; /* fa_observed(): first transmission, or last change of `timeouts` */
};

/* ---- Functions of PDL that TL calls ---- */

/* Queues a packet. fa_stack_send() sends it when its window permits (9.1.2). The caller queues
 * requests in RSN order, and nothing on a dead connection. */
void pdl_send(struct fa_conn *c, uint64_t now, struct fa_pkt *p);
/*
 * Gives up a packet because its transaction took too long (11). Returns true when the packet was
 * not sent and no RSN depends on it (it is pull data, or the connection is unordered): PDL does not
 * refer to it any more, and TL frees it. Returns false when a Resync with `code` replaces the
 * packet under its PSN: PDL frees the payload, and calls tl_sent() with `how` when the peer
 * acknowledges the Resync. Must not be called from inside tl_sent().
 */
bool pdl_withdraw(
	struct fa_conn *c, uint64_t now, struct fa_pkt *p, uint8_t code, enum fa_completion how);
/* Treats a pull request as acknowledged, since its pull data is here; calls tl_sent() from inside.
 * May be called from inside tl_rx() only, in each state of `p` before tl_sent(). */
void pdl_implied_ack(struct fa_conn *c, uint64_t now, struct fa_pkt *p);
/* Acknowledges the push with `psn`, which the ULP took. Does nothing when the window has no
 * received and unacknowledged packet there (the push's Resync may have arrived). */
void pdl_ulp_ack(struct fa_conn *c, uint64_t now, uint32_t psn);
/* Does the same for `n` pushes from `psn` on. */
void pdl_ulp_acks(struct fa_conn *c, uint64_t now, uint32_t psn, unsigned n);
/* Sends a NACK for `psn`, which is of the request window if `request` is true. PDL keeps a NACK of
 * CIE, non-recoverable or invalid CID, and repeats it when the push arrives again, until its Resync
 * arrives. After a NACK for RNR, PDL passes the same push to tl_rx() when it arrives again. */
void pdl_nack(struct fa_conn *c, uint64_t now, bool request, uint32_t psn, uint8_t code,
	uint8_t rnr, uint8_t ulp_code);

/* Returns the number of sent packets of the data window that the peer may have received though it
 * has not acknowledged them: its acknowledgements are cumulative, wait to be sent, and wait for its
 * ULP where they are those of pushes. It is 0 while the oldest such packet is younger than an
 * eighth of the round trip, which includes the delays at both ends. */
uint32_t pdl_data_in_doubt(const struct fa_conn *c, uint64_t now);

/* ---- Functions of TL that PDL calls ---- */

enum tl_take {
	/* TL keeps the payload. PDL acknowledges a pull request or pull data immediately. */
	TL_TAKEN,
	/* No resources: PDL sends a NACK with code 1, treats the packet as not received, frees the
	 * payload. */
	TL_REFUSED,
	/* TL counted the reason. PDL treats the packet as received and acknowledged, and frees the
	 * payload. */
	TL_DROPPED,
};
/* Accepts a pull request, pull data or a push inside the window that TL has not taken before; or,
 * if `again` is true, a push after pdl_nack() for RNR, whose first copy TL may still have. TL may
 * call pdl_ulp_ack() and pdl_nack() from inside, but not the ULP: deliveries wait for tl_run(). */
/* Returns whether a payload need not wait for others: a request is the head of its line, pull data
 * belongs to the oldest request, or the connection is not ordered. */
bool tl_rx_is_next(const struct fa_conn *c, const struct wire_falcon *h);
enum tl_take tl_rx(struct fa_conn *c, uint64_t now, const struct wire_falcon *h,
	struct fa_buf *payload, bool again);
/* The parts of a run (fa_run_begin()): whether packets may pass to the ULP one after the other as
 * they arrive; and the acceptance of a packet, which returns false, and changes nothing, when the
 * packet needs tl_rx(). The owner delivers an accepted packet to the ULP. */
bool tl_run_ready(const struct fa_conn *c);
bool tl_run_accept(struct fa_conn *c, uint64_t now, const struct wire_falcon_plain *h);
/* Return how many more pushes like the last one, which was accepted, tl_run_accept() would accept;
 * and accept `n` of them. */
uint32_t tl_run_room(const struct fa_conn *c);
void tl_run_pushes(struct fa_conn *c, uint32_t n);
/* Reports that a packet is done: the peer acknowledged it (FA_DONE); or it acknowledged the
 * packet's Resync (`how` comes from the NACK or from pdl_withdraw(), or is FA_LOCAL_TIMEOUT after
 * the last retransmission); or the connection has failed. TL frees the packet with its payload. */
void tl_sent(struct fa_conn *c, uint64_t now, struct fa_pkt *p, enum fa_completion how,
	uint8_t ulp_code);
/* Does the same with FA_DONE for `n` packets, none of which is a Resync, on a stack with fast
 * paths. */
void tl_all_sent(struct fa_conn *c, uint64_t now, struct fa_pkt *const *p, unsigned n);
/*
 * Processes a Resync that replaces the peer's packet with this PSN and RSN. The packet will not
 * arrive; if it has arrived (a push that the ULP has), PDL needs no answer to it. Returns
 * TL_REFUSED when no resource is free to record that the RSN must be skipped: PDL then sends a NACK
 * with code 1, as for the packet itself.
 */
enum tl_take tl_resynced(struct fa_conn *c, uint64_t now, const struct wire_falcon *h);
/* Makes the deliveries that tl_rx(), tl_resynced() and tl_sent() made possible. PDL calls it at the
 * end of fa_input(), and after a timer that led to tl_sent(), when its own state is consistent: the
 * ULP may call back from inside. */
void tl_run(struct fa_conn *c, uint64_t now);
/* Completes all transactions with `code` and sends FA_EV_DEAD, after the connection has failed and
 * all packets went to tl_sent(). Calls the ULP. */
void tl_dead(struct fa_conn *c, uint64_t now, enum fa_completion code);
/* Returns the receive level, 0..31: the higher one of the packet and buffer pools (10.2). */
uint8_t tl_rx_level(const struct fa_stack *s);

/* ---- Functions of TL that stack.c and conn.c call ---- */

/* Sets TL's part of the defaults: pools, reclaim_ns, conn_*, push_reoffer, rx_*. */
void tl_config_default(struct fa_config *cfg);
/* Initializes TL's part of a stack, whose cfg and ops are set. Returns 0, -ENOMEM, or -EINVAL when
 * cfg->pools are invalid. */
int tl_stack_init(struct fa_stack *s, uint64_t now);
void tl_stack_fini(struct fa_stack *s);
/* Initializes TL's part of a connection, whose s and params are set and whose other bytes are zero.
 * Returns 0, or -EINVAL when the pools cannot hold one request of the connection's MTU. */
int tl_conn_init(struct fa_conn *c, uint64_t now);
/* Frees what TL holds for a connection that is being destroyed, without deliveries. PDL has
 * returned its packets through tl_pkt_free() before. */
void tl_conn_fini(struct fa_conn *c);
void tl_pkt_free(struct fa_conn *c, struct fa_pkt *p);
/* Resumes pull data and requests that wait for resources, and sends FA_EV_XON. Once per
 * fa_stack_send(). */
void tl_poll(struct fa_stack *s, uint64_t now);
/* Runs when the deadline of fa_tl_timer() has come. */
void tl_timer(struct fa_conn *c, uint64_t now);
/* Returns when tl_poll() has work though no packet arrives (s->now: immediately), or SK_NEVER. The
 * deadline need not include timers. */
uint64_t tl_deadline(const struct fa_stack *s);

/* Sets TL's only timer of the connection (reclaim, local RNR); SK_NEVER stops it. */
void fa_tl_timer(struct fa_conn *c, uint64_t deadline);

#endif
