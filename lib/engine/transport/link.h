/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The seam of a transport on the transport stage: one table of functions. Everything else on the
 * stage (conn.c, conn_startup.c, transport*.c) serves every transport alike and calls through this
 * table. A folder below this one has one instance each; eng_links lists them.
 *
 * A connection begins on TCP with any transport: the exchange that makes it runs there (MPA's
 * request and reply, or the exchange of doc/falcon-cm.md), in the states of enum eng_conn_state.
 * conn->link is NULL only while a passive connection has received nothing.
 */
#ifndef SAKER_ENGINE_LINK_H
#define SAKER_ENGINE_LINK_H

#include "transport_priv.h"

struct eng_link {
	/* ---- The transport's part of a stage, t->part[kind]; NULL: not configured ---- */

	/* Allocates the part if the transport is configured. Returns 0 or -errno. */
	int (*create)(struct eng_transport *t, uint64_t now);
	/* The ports run: adds listeners of the transport's own. NULL: it has none. Returns 0 or
	 * -errno. */
	int (*start)(struct eng_transport *t);
	/* Frees the part with all connections on it. It may have been created in part. */
	void (*destroy)(struct eng_transport *t);
	/* Returns the transport's counters of that list, or NULL. */
	const uint64_t *(*counters)(
		const struct eng_transport *t, const struct sk_reason_list *list);
	/* A transport with packets of its own beside TCP, else NULL: its timers, once all frames
	 * that had come by `now` are received; its deliveries and packets (returns whether there
	 * was work); when it has to be polled again; a datagram to `udp_port`, whose frame it
	 * takes. */
	void (*timers)(struct eng_transport *t, uint64_t now);
	bool (*poll)(struct eng_transport *t, uint64_t now);
	uint64_t (*deadline)(const struct eng_transport *t);
	void (*rx)(struct eng_transport *t, uint16_t port, const struct wire_pkt *pkt,
		struct rte_mbuf *m);
	uint16_t udp_port;

	/* ---- Start-up of a connection; c->su is there ---- */

	/* Returns whether these first bytes of a stream are this transport's. */
	bool (*begins)(const struct eng_transport *t, const struct tcp_slice *chain);
	/* A passive connection begins; c->su->offer is the listener's. Returns 0 or -errno. */
	int (*listen)(struct eng_transport *t, struct eng_conn *c);
	/* An active one begins between `ends`: ENG_CT_CONNECT, ENG_CT_LOOKUP. c->su->offer is the
	 * program's. Returns 0, or -errno that answers the command. */
	int (*connect)(struct eng_transport *t, struct eng_conn *c, const struct tcp_tuple *ends,
		const struct eng_ctl *m);
	/* The active connection's TCP connection is established. */
	void (*connected)(struct eng_transport *t, struct eng_conn *c);
	/* Takes bytes of the exchange. Returns false when none can be taken now. */
	bool (*startup)(struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain);
	/* ENG_CT_ACCEPT, _REJECT, _FOUND, _SELF: send the answer. Return 0 or negative. */
	int (*accept)(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m);
	int (*reject)(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m);
	int (*found)(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m);
	int (*self)(struct eng_transport *t, struct eng_conn *c);
	/* The start-up timer has expired. */
	void (*expired)(struct eng_transport *t, struct eng_conn *c);
	/* The start-up has failed: fills in m->connect and the private data of a second attempt,
	 * with connect.offer.retry, if there is one to make. */
	void (*retry)(const struct eng_conn *c, struct eng_ctl *m);
	/* ENG_CT_ABORT: ends a start-up that nobody waits for any more. */
	void (*abandon)(struct eng_transport *t, struct eng_conn *c);
	/* Frees what the start-up alone needed (c->su->part). */
	void (*startup_free)(struct eng_transport *t, struct eng_conn *c);

	/* ---- The bound connection ---- */

	/* The engine stage is known: ECONN_P_* that are to be reported to it are set pending. */
	void (*bound)(struct eng_transport *t, struct eng_conn *c);
	/* Takes stream bytes. Returns false when none can be taken now. */
	bool (*deliver)(struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain);
	/* TCP takes bytes again: passes on what the start-up held. Returns false when a ring is
	 * full. */
	bool (*resume)(struct eng_transport *t, struct eng_conn *c);
	/* TCP_EV_SENT, TCP_EV_EMSS */
	void (*sent)(struct eng_transport *t, struct eng_conn *c);
	void (*emss)(struct eng_transport *t, struct eng_conn *c);
	/* A message of the engine stage, other than ENG_T_CLOSE, _ABORT, _RELEASE. */
	void (*message)(struct eng_transport *t, struct eng_conn *c, const struct eng_dmsg *m);
	/* ENG_T_ABORT */
	void (*abort)(struct eng_transport *t, struct eng_conn *c);
	/* Tries the transport's own ECONN_P_* again: before the notice, and behind it. */
	void (*pending_first)(struct eng_transport *t, struct eng_conn *c);
	void (*pending)(struct eng_transport *t, struct eng_conn *c);
	/* TCP has closed, or goes on without the connection: frees c->part. */
	void (*closed)(struct eng_transport *t, struct eng_conn *c);
	/* Frees the payload of a message that no connection takes. */
	void (*drop)(const struct eng_dmsg *m);
};

extern const struct eng_link eng_link_iwarp, eng_link_falcon;
/* By enum eng_kind. A stream belongs to the last one whose begins() returns true. */
extern const struct eng_link *const eng_links[ENG_KINDS];

#endif
