/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages between stages. A stage does not access the state of another stage: it sends a
 * message through a single-producer single-consumer rte_ring.
 *
 *  - struct eng_dmsg, 16 bytes, by value: the data path between a transport stage and an engine
 *    stage.
 *  - struct eng_ctl, by pointer: commands and notices. The control stage allocates a command from
 *    its pool and sends it to a stage, which answers by sending the same message back. The other
 *    stages send notices (a connect request has arrived, a QP has failed) in messages of their own
 *    pools. The control stage returns each notice to the stage that sent it.
 */
#ifndef SAKER_ENGINE_MSG_H
#define SAKER_ENGINE_MSG_H

#include <stddef.h>
#include <stdint.h>

#include "../../net/net.h"
#include "../engine.h"
#include "connect.h"

struct eng_qp;
struct eng_qp_view;
struct eng_client;

/* ---- Data path ---- */

/* Messages of an engine stage to a transport stage. The index in `id_type` is the index of the
 * connection on the transport stage. */
enum eng_to_transport {
	ENG_T_CLOSE,   /* send a FIN after all bytes that were queued */
	ENG_T_ABORT,   /* send an RST */
	ENG_T_RELEASE, /* answer to ENG_E_CLOSED: the index of the connection is free */
	/* iWARP */
	/* u: struct tcp_rec *, a chain of one; send it. arg: as of ENG_T_CONSUMED */
	ENG_T_RECORD,
	/* arg: stream bytes that were placed; u: 1 if the engine stage uses tcp_slice.crc
	 * (iw_rx_whole()), else 0 */
	ENG_T_CONSUMED,
	/* ENG_T_ABORT of a QP that has nothing to receive: TCP sends what it has and a FIN. arg: as
	 * of ENG_T_CONSUMED */
	ENG_T_LEAVE,
	/* Falcon; u: struct fa_buf * */
	ENG_T_REQUEST, /* call fa_request() for each payload of a chain (fa_buf.next) */
	/* call fa_answer(); arg: RSN; u: NULL, or a chain: the answers to pulls with consecutive
	 * RSNs from `arg` on */
	ENG_T_ANSWER,
	/* call fa_outcome(); arg: RSN; u: ENG_OUTCOME(verdict, ULP code), from bit 16 on
	 * fa_outcome.more, and from bit 32 on fa_outcome.rnr */
	ENG_T_OUTCOME,
	ENG_T_DATA, /* call fa_pull_data(); arg: RSN; u: NULL, too */
	/* call fa_outcome() with FA_RNR; arg: RSN; u: struct fa_buf * of the request, with the RNR
	 * timeout code. A request without a payload has no buffer: it gets ENG_T_OUTCOME. */
	ENG_T_RNR,
};

/* Messages of a transport stage to an engine stage. The index in `id_type` is the index of the QP
 * on the engine stage. */
enum eng_to_stage {
	ENG_E_FIN,    /* the peer has closed its direction of the stream */
	ENG_E_CLOSED, /* arg: errno or 0; the last message about this connection */
	/* iWARP */
	ENG_E_DATA,  /* u: struct tcp_slice *, a chain in the order of the stream */
	ENG_E_SPACE, /* arg: bytes that the peer acknowledged */
	/* arg: EMSS, bytes. It may be the old one: the answer to each is ENG_T_CONSUMED with the
	 * bytes that were placed and not reported yet. */
	ENG_E_EMSS,
	ENG_E_SPEAK, /* call iw_release(): the responder may send now */
	/* Falcon */
	ENG_E_OPEN, /* u: struct eng_falcon_start *, which the receiver frees; the QP may start */
	/* u: struct fa_buf *, with fa_delivery.restart in bit 0; arg: RSN. A chain is packets with
	 * consecutive RSNs from `arg` on. */
	ENG_E_PUSH,
	ENG_E_PULL,
	ENG_E_PULL_DATA,
	/* u: ENG_OUTCOME(completion, ULP code) | ENG_MORE(fa_delivery.more); arg: RSN */
	ENG_E_COMPLETION,
};
#define ENG_OUTCOME(what, ulp_code) ((uint64_t)(what) | (uint64_t)(ulp_code) << 8)
#define ENG_MORE(n)                 ((uint64_t)(n) << 32)

struct eng_dmsg {
	uint64_t u; /* a pointer or an ENG_OUTCOME(), as the type defines */
	uint32_t arg;
	uint32_t id_type; /* the index in bits 31..4, the type in bits 3..0 */
};
_Static_assert(sizeof(struct eng_dmsg) == 16, "ring element");
#define ENG_DMSG(type, id) (((uint32_t)(id) << 4) | (uint32_t)(type))

/* Counters of a QP: messages and payload bytes received and sent. */
struct eng_work {
	uint64_t msgs_in, msgs_out, bytes_in, bytes_out;
};

/* ---- Control ---- */

#define ENG_CTL_RING     1024 /* the `count` of a ring: it holds one message less */
#define ENG_CTL_COMMANDS 512  /* most unanswered commands at one stage */
#define ENG_CTL_NOTICES  256  /* notices that a stage has */

/* The comment of a type begins with the members of eng_ctl that carry its arguments.
 * control/control.h defines the rules that the stages follow. */
enum eng_ctl_type {
	/* Commands to a transport stage, answered with `status`. */
	ENG_CT_LISTEN,   /* listen: opens a listener */
	ENG_CT_UNLISTEN, /* listen.number: closes a listener */
	/* connect, private data: opens an active connection. The stage answers immediately with
	 * `conn`, or with -EXDEV and in `transport` the home stage of the connection.
	 * ENG_TC_ESTABLISHED, _REJECTED or _FAILED reports the outcome. */
	ENG_CT_CONNECT,
	/* connect, private data: requests the QPN of the datagram QP that serves connect.service;
	 * otherwise like ENG_CT_CONNECT. ENG_TC_FOUND, _REJECTED or _FAILED reports the outcome. */
	ENG_CT_LOOKUP,
	/* connect.offer, stage, qp_index, private data: accepts a request. The stage sends the
	 * reply and binds the connection to the QP. */
	ENG_CT_ACCEPT,
	ENG_CT_SELF,   /* accepts the connect request of a self-connected QP */
	ENG_CT_FOUND,  /* lookup, private data: answers ENG_TC_LOOKUP */
	ENG_CT_REJECT, /* reject, private data: rejects a connect request or a lookup */
	/* stage, qp_index: binds an active connection to its QP, which has started; from then on,
	 * bytes flow to the engine stage. */
	ENG_CT_BIND,
	ENG_CT_ABORT,     /* abort: ends a connection that is not bound yet */
	ENG_CT_QUERY,     /* answered with conn_info */
	ENG_CT_NEIGHBORS, /* neighbors: copies the table of neighbours */
	ENG_CT_EVENTS,    /* conn, flight: copies the last events of a connection */
	ENG_CT_FAILED,    /* flight: copies those of the connections that failed last */
	ENG_CT_CHANGE,    /* change: a step of eng_change(); answered with change.ended */
	/* Commands to an engine stage, answered with `status`. */
	ENG_CE_CLIENT_ADD,   /* client: the stage polls its doorbells from now on */
	ENG_CE_CLIENT_DEL,   /* client: after the answer, the stage does not access it any more */
	ENG_CE_CLIENT_RATES, /* client, rates: replaces the rates of the client and of its user */
	ENG_CE_QP_ADD,       /* qp: answered with qp_index */
	ENG_CE_QP_START,     /* qp, transport, conn, start: the QP is connected */
	ENG_CE_QP_CLOSE,     /* qp, close: disconnects the QP, or moves it to the error state */
	/* qp: removes the QP, after an abort if it is connected. The stage answers when nothing of
	 * the QP is in flight. */
	ENG_CE_QP_DEL,
	ENG_CE_QP_MOVE, /* qp, move: the attributes that the program sets before the QP starts */
	/* qp: the peer did not appear in time, or a change of the configuration forbids the QP's
	 * modes. The stage ignores it when the QP is connected by now. */
	ENG_CE_QP_FAIL,
	ENG_CE_QP_RESET,  /* qp: like ENG_CE_QP_DEL, but the QP remains, in its initial state */
	ENG_CE_QP_QUERY,  /* qp: answered with qp_info */
	ENG_CE_AH_ADD,    /* client, object */
	ENG_CE_AH_DEL,    /* client, object */
	ENG_CE_SRQ_ADD,   /* object */
	ENG_CE_SRQ_DEL,   /* object */
	ENG_CE_SRQ_LIMIT, /* object: sets the limit to object.number */
	ENG_CE_SRQ_MOVE,  /* object: moves to the ring object.ring, under the present numbers */
	ENG_CE_CQ_DEL,    /* object: after the answer, the stage does not access the CQ any more */
	ENG_CE_CQ_MOVE,   /* object: moves the stage's sub-ring to object.ring, which is larger */
	/* Notices of a transport stage to the control stage. "Without conn" means that the
	 * connection has ended. */
	ENG_TC_REQUEST,     /* conn, peer, private data: a peer requests a connection */
	ENG_TC_LOOKUP,      /* conn, lookup, private data: a peer requests a datagram service */
	ENG_TC_ESTABLISHED, /* conn, cookie, peer, private data: both sides have agreed */
	ENG_TC_FOUND,       /* without conn; cookie, lookup, private data: the peer's answer */
	ENG_TC_REJECTED,    /* without conn; cookie, peer, private data: the peer has rejected */
	/* without conn; cookie, status: the start-up has failed. If connect.offer.retry is set,
	 * `connect` and the private data describe the second attempt. */
	ENG_TC_FAILED,
	/* Notices of an engine stage to the control stage. */
	ENG_EC_MAILBOX, /* client: a doorbell announced a command in its mailbox */
	/* qp: its stream has ended; event.code is 1 if the QP had not started. */
	ENG_EC_DISCONNECTED,
	ENG_EC_QP_WAITS,    /* qp, modified by the program: it has work, but no connection */
	ENG_EC_QP_FATAL,    /* qp, event: the QP is in the error state */
	ENG_EC_CQ_OVERFLOW, /* object: the CQ had no free entry for a completion */
	ENG_EC_SRQ_LIMIT,   /* object: the SRQ limit was reached, and is not armed any more */
	ENG_EC_CLIENT_BAD,  /* client: SIGBUS, or an invalid entry in one of its rings */
	ENG_CTL_TYPES
};
#define ENG_CTL_NOTICE ENG_TC_REQUEST /* the first type that is a notice */

#define ENG_ABORT_UNANSWERED 1

/* The steps of eng_change() on a transport stage. */
enum eng_change_step {
	/* Checks that the change is possible. All transport stages have the same addresses, so one
	 * of them answers for all. */
	ENG_CHANGE_CHECK,
	/* Ends the connections whose local address disappears, while it can still send. */
	ENG_CHANGE_END,
	ENG_CHANGE_APPLY,
};

struct eng_ctl {
	uint16_t type; /* enum eng_ctl_type */
	uint8_t from;  /* notices: index of the stage that sent the message */
	uint8_t transport, stage;
	/* ENG_CT_LISTEN, ENG_CT_CONNECT, ENG_CT_LOOKUP, ENG_CT_ACCEPT: eng_client.user, or
	 * SK_USER_INSTANCE */
	uint16_t user;
	int status;        /* 0 or -errno */
	uint32_t conn;     /* index of the connection on its transport stage */
	uint32_t qp_index; /* index of the QP on its engine stage */
	uint64_t cookie;   /* a number of the control stage, which the stage returns unchanged */
	struct eng_qp *qp;
	struct eng_client *client;
	union {
		struct {
			uint32_t number;     /* the control stage's listener number */
			uint32_t backlog;    /* most connect requests that are not answered yet */
			struct sk_addr addr; /* and `v6only`: see eng_listens_at() */
			bool v6only;
			uint16_t port; /* host byte order */
			struct eng_offer offer;
		} listen;
		struct {
			struct tcp_tuple tuple;
			struct eng_offer offer;
			uint16_t service; /* lookups: the port of the datagram service */
		} connect;
		struct eng_peer peer;
		struct {
			uint8_t kind; /* enum eng_kind */
			struct tcp_tuple tuple;
			uint32_t listener; /* notices: the listener that received the lookup */
			uint16_t service;  /* the port of the datagram service */
			uint32_t qpn, qkey;
		} lookup;
		struct {
			uint8_t why; /* enum rofx_reason; 0: the application rejected the request */
			uint16_t ird, ord;
		} reject;
		struct {
			/* ENG_ABORT_UNANSWERED: answered with -EBUSY if the peer has accepted. */
			int how;
		} abort;
		struct eng_start start;
		struct {
			enum eng_close how;
		} close;
		struct {
			uint8_t state;    /* enum rd_qp_state; datagram QPs only */
			uint8_t ordering; /* enum rof_ordering; datagram QPs, RTR */
			uint8_t errors;   /* enum rof_errors; datagram QPs, RTR */
			bool modified;    /* the program modifies the QP, and names its peer */
			uint32_t access;  /* enum rd_access */
			uint32_t qkey;
		} move;
		struct {
			void *object;    /* AH, SRQ or CQ */
			uint32_t number; /* AH: the handle; SRQ: the limit */
			struct shm_ring_at ring;
		} object;
		struct {
			int code; /* one of the transport's reasons */
		} event;
		struct {
			struct eng_qp_view *view; /* which the stage completes */
		} conn_info;
		struct {
			uint8_t state; /* enum rd_qp_state */
			struct eng_work work;
		} qp_info;
		struct {
			uint8_t step; /* enum eng_change_step */
			const struct eng_config *was, *next;
			uint32_t ended; /* answer: connections */
		} change;
		struct {
			struct eng_rates client, user;
		} rates;
		struct {
			struct eng_flight *view; /* [n] */
			uint32_t n;              /* places in `view`; in the answer: those used */
		} flight;
		struct {
			struct net_neighbor_view *view; /* [n] */
			uint32_t n; /* places in `view`; in the answer: the number of neighbours */
		} neighbors;
	};
	uint16_t private_len;
	/* The last member: a message without private data is cleared only up to here. */
	uint8_t private_data[SHM_PRIVATE_MAX];
};
_Static_assert(offsetof(struct eng_ctl, private_len) < 400, "a message without private data");

#endif
