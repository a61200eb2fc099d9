/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between the transport stage and a transport: one table of functions. All other
 * files of the stage (conn.c, conn_startup.c, transport*.c) serve every transport alike and call it
 * through this table. Each folder below this one defines one table; eng_links lists them.
 *
 * A connection is made by an exchange in the states of enum eng_conn_state: the MPA request and
 * reply on a TCP connection of its own, or the exchange of doc/falcon-cm.md on a TCP connection
 * that all connections of two hosts share. A connection without a TCP connection of its own has
 * `rides`; a shared TCP connection has an eng_conn in the state ECONN_CARRIER. conn->link is NULL
 * only while a passive TCP connection has not received a byte.
 */
#ifndef SAKER_ENGINE_LINK_H
#define SAKER_ENGINE_LINK_H

#include "transport_priv.h"

struct eng_link {
	/* ---- The transport's part of a stage: t->part[kind]; NULL: not configured ---- */

	/* Allocates the part if the transport is configured. Returns 0 or -errno. */
	int (*create)(struct eng_transport *t, uint64_t now);
	/* Adds the listeners that the transport itself needs, when the ports run. NULL: it needs
	 * none. Returns 0 or -errno. */
	int (*start)(struct eng_transport *t);
	/* Frees the part and all connections on it, also after a create() that failed. */
	void (*destroy)(struct eng_transport *t);
	/* Returns the transport's counters of `list`, [list->count], or NULL when it has none. */
	const uint64_t *(*counters)(
		const struct eng_transport *t, const struct sk_reason_list *list);
	/* Whether a connection has no TCP connection of its own. */
	bool shares;
	/* The next eight members are for a transport that sends packets beside TCP; they are NULL
	 * and 0 for any other. Times are in ns. */
	/* Takes note that the loop has not run for `gap`, before all other functions of the turn.
	 */
	void (*stopped)(struct eng_transport *t, uint64_t gap);
	/* Reports whether few receive mbufs are free. */
	void (*scarce)(struct eng_transport *t, bool scarce);
	/* Handles expired timers, after all frames that had arrived by `now` were received. No call
	 * after a stop until the frames that arrived meanwhile were received. */
	void (*timers)(struct eng_transport *t, uint64_t now);
	/* Delivers to the engine stages and sends packets. Returns whether there was work. */
	bool (*poll)(struct eng_transport *t, uint64_t now);
	/* Returns when the stage has to call poll() again although nothing arrives. */
	uint64_t (*deadline)(const struct eng_transport *t);
	/* Handles a received datagram to `udp_port`. Takes the frame. */
	void (*rx)(struct eng_transport *t, uint16_t port, const struct wire_pkt *pkt,
		struct rte_mbuf *m);
	/* Handles the first frames of a burst of `n`, at least 1, if they are packets of one open
	 * connection that need none of the general checks. Takes these frames, and returns their
	 * number; leaves all others unchanged. */
	unsigned (*rx_known)(
		struct eng_transport *t, uint16_t port, struct rte_mbuf **m, unsigned n);
	uint16_t udp_port;

	/* ---- Start-up of a connection; c->su is not NULL ---- */

	/* Returns whether `chain`, the first bytes of a stream, begins an exchange of this
	 * transport. */
	bool (*begins)(const struct eng_transport *t, const struct tcp_slice *chain);
	/* Prepares the exchange of a passive connection; c->su->offer is the offer of the listener.
	 * Returns 0 or -errno. */
	int (*listen)(struct eng_transport *t, struct eng_conn *c);
	/* Prepares the exchange of an active connection between `ends`: ENG_CT_CONNECT,
	 * ENG_CT_LOOKUP. c->su->offer is the offer of the program. Sets c->rides if the connection
	 * has no TCP connection of its own; then connected() is not called for it. Returns 0, or
	 * -errno, which answers the command. */
	int (*connect)(struct eng_transport *t, struct eng_conn *c, const struct tcp_tuple *ends,
		const struct eng_ctl *m);
	/* Begins the exchange of an active connection whose TCP connection is established. */
	void (*connected)(struct eng_transport *t, struct eng_conn *c);
	/* Handles received bytes of the exchange and takes `chain`. Returns false when it cannot
	 * take the bytes now; TCP then offers them again. */
	bool (*startup)(struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain);
	/* ENG_CT_ACCEPT, _REJECT, _FOUND, _SELF: send the answer to the peer's request. Return 0,
	 * or -errno. */
	int (*accept)(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m);
	int (*reject)(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m);
	int (*found)(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m);
	int (*self)(struct eng_transport *t, struct eng_conn *c);
	/* Handles the expiry of the start-up timer. */
	void (*expired)(struct eng_transport *t, struct eng_conn *c);
	/* Describes the second attempt, if there is one to make, in ENG_TC_FAILED after a failed
	 * start-up: sets m->connect with connect.offer.retry, and the private data. */
	void (*retry)(const struct eng_conn *c, struct eng_ctl *m);
	/* ENG_CT_ABORT: ends a start-up whose result the control stage does not need any more. */
	void (*abandon)(struct eng_transport *t, struct eng_conn *c);
	/* Frees c->su->part, which only the start-up needs. */
	void (*startup_free)(struct eng_transport *t, struct eng_conn *c);

	/* ---- The bound connection ---- */

	/* Sets the ECONN_P_* of the messages that the engine stage must receive, when the
	 * connection is bound to a QP of that stage. */
	void (*bound)(struct eng_transport *t, struct eng_conn *c);
	/* Passes stream bytes on and takes `chain`. Returns false when it cannot take the bytes
	 * now; TCP then offers them again. */
	bool (*deliver)(struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain);
	/* Passes on the bytes that the start-up held, before TCP delivers further ones. Returns
	 * false when a ring is full. */
	bool (*resume)(struct eng_transport *t, struct eng_conn *c);
	/* Prefetches what a message of the engine stage needs behind c->part. NULL: nothing. */
	void (*ahead)(const struct eng_conn *c);
	/* Handle TCP_EV_SENT; TCP_EV_EMSS and TCP_EV_UNREAD. */
	void (*sent)(struct eng_transport *t, struct eng_conn *c);
	void (*emss)(struct eng_transport *t, struct eng_conn *c);
	/* Handles a message of the engine stage except ENG_T_CLOSE, _ABORT and _RELEASE. */
	void (*message)(struct eng_transport *t, struct eng_conn *c, const struct eng_dmsg *m);
	/* Handles ENG_T_CLOSE. */
	void (*close)(struct eng_transport *t, struct eng_conn *c);
	/* Handles ENG_T_ABORT. */
	void (*abort)(struct eng_transport *t, struct eng_conn *c);
	/* Retry the transport's own ECONN_P_*: pending_first() before the notice is sent, pending()
	 * after it. */
	void (*pending_first)(struct eng_transport *t, struct eng_conn *c);
	void (*pending)(struct eng_transport *t, struct eng_conn *c);
	/* Ends a connection without a TCP connection after a failure of its start-up. */
	void (*break_off)(struct eng_transport *t, struct eng_conn *c);
	/* Fills in the addresses and ports of a connection without a TCP connection, and of its
	 * state in view->tcp what the transport has. */
	void (*ends)(const struct eng_transport *t, const struct eng_conn *c,
		struct tcp_tuple *tuple, struct tcp_info *info);
	/* Handles the end of the peer's direction in the state ECONN_CARRIER. */
	void (*peer_fin)(struct eng_transport *t, struct eng_conn *c);
	/* Frees c->part, when TCP has closed or the connection has ended. */
	void (*closed)(struct eng_transport *t, struct eng_conn *c);
	/* Adds what the transport has for the connection to the view. NULL: nothing. */
	void (*look)(
		const struct eng_transport *t, const struct eng_conn *c, struct eng_qp_view *view);
	/* Frees the payload of a message for a connection that does not exist any more. Ignores
	 * messages of other transports. */
	void (*drop)(const struct eng_dmsg *m);
};

extern const struct eng_link eng_link_iwarp, eng_link_falcon;
/* The tables by enum eng_kind. A stream belongs to the last transport whose begins() returns true,
 * and otherwise to the first one. */
extern const struct eng_link *const eng_links[ENG_KINDS];

#endif
