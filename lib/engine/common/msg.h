/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stages say to each other. A stage touches no other stage's state: it sends one of these
 * through a single-producer single-consumer rte_ring.
 *
 *  - `eng_dmsg`, 16 bytes, by value: the data path between a transport stage and an engine stage.
 *  - `eng_ctl`, by pointer: control. The control stage allocates one (from its pool), sends it, and
 * gets it back answered. What a stage has to say unasked (a SYN came, a QP died) travels in an
 * eng_ctl of that stage's own pool and comes back to be freed.
 */
#ifndef SAKER_ENGINE_MSG_H
#define SAKER_ENGINE_MSG_H

#include <stddef.h>
#include <stdint.h>

#include "../../net/net.h"
#include "connect.h"

struct eng_qp;
struct eng_client;

/* ---- Data path ---- */

enum eng_to_transport { /* engine stage to transport stage; `id` is the connection's index there */
	ENG_T_CLOSE,    /* FIN after what was sent */
	ENG_T_ABORT,    /* RST */
	ENG_T_RELEASE,  /* answer to ENG_E_CLOSED: the connection's index may be used again */
	/* iWARP */
	ENG_T_RECORD,   /* ptr: struct tcp_rec * (chain of one) */
	ENG_T_CONSUMED, /* arg: stream bytes that were placed */
	/* Falcon; ptr: struct fa_buf * */
	ENG_T_PUSH,      /* fa_push() */
	ENG_T_PULL,      /* fa_pull(); arg: bytes that may come back */
	ENG_T_PULL_DATA, /* fa_pull_data(); arg: RSN */
	ENG_T_OUTCOME,   /* fa_outcome(); arg: RSN; u: ENG_OUTCOME(verdict, ULP code) */
	ENG_T_RNR,       /* the same for FA_RNR; ptr: the request, which has the code */
};

enum eng_to_stage {   /* transport stage to engine stage; `id` is the QP's index there */
	ENG_E_FIN,    /* the peer will send no more */
	ENG_E_CLOSED, /* arg: errno or 0; the last message about this connection */
	/* iWARP */
	ENG_E_DATA,  /* ptr: struct tcp_slice * chain, in order */
	ENG_E_SPACE, /* arg: bytes that were acknowledged */
	ENG_E_EMSS,  /* arg: new EMSS */
	ENG_E_SPEAK, /* iw_release() */
	/* Falcon */
	ENG_E_OPEN, /* ptr: struct eng_falcon_start *, to be freed: the QP may start */
	/* ptr: struct fa_buf *, arg: RSN */
	ENG_E_PUSH,
	ENG_E_PULL,
	ENG_E_PULL_DATA,
	ENG_E_COMPLETION, /* u: ENG_OUTCOME(completion, ULP code) */
};
#define ENG_OUTCOME(what, ulp_code) ((uint64_t)(what) | (uint64_t)(ulp_code) << 8)

struct eng_dmsg {
	uint64_t u; /* pointer or nothing */
	uint32_t arg;
	uint32_t id_type; /* index in bits 31..4, the type in 3..0 */
};
_Static_assert(sizeof(struct eng_dmsg) == 16, "ring element");
#define ENG_DMSG(type, id) (((uint32_t)(id) << 4) | (uint32_t)(type))

/* What a QP has done. */
struct eng_work {
	uint64_t msgs_in, msgs_out, bytes_in, bytes_out;
};

static inline void
eng_work_add(struct eng_work *to, const struct eng_work *w)
{
	to->msgs_in += w->msgs_in;
	to->msgs_out += w->msgs_out;
	to->bytes_in += w->bytes_in;
	to->bytes_out += w->bytes_out;
}

/* ---- Control ---- */

#define ENG_CTL_RING     1024 /* what rte_ring_create() is to be given */
#define ENG_CTL_COMMANDS 512  /* unanswered commands at one stage */
#define ENG_CTL_NOTICES  256  /* a stage's own messages */

/* The comment behind a type names the member of eng_ctl's union that carries its arguments. Private
 * data travels with those that say so. control/control.h has the rules that stages keep. */
enum eng_ctl_type {
	/* control stage to a transport stage, answered with `status` */
	ENG_CT_LISTEN,   /* listen */
	ENG_CT_UNLISTEN, /* listen.number */
	ENG_CT_CONNECT,  /* connect, private data: an active open. Answered at once with `conn`, or
			  * with -EXDEV and the transport stage that the connection belongs to.
			  * ENG_TC_ESTABLISHED, _REJECTED or _FAILED reports the outcome. */
	ENG_CT_LOOKUP,   /* connect, private data: requests which datagram QP serves a port; else as
			  * ENG_CT_CONNECT, and ENG_TC_FOUND reports the answer */
	ENG_CT_ACCEPT, /* connect.offer, stage, qp_index, private data: the reply is sent, then the
			* connection is bound */
	ENG_CT_SELF,   /* the request of a QP that connects to itself is accepted */
	ENG_CT_FOUND,  /* lookup, private data: the answer to ENG_TC_LOOKUP */
	ENG_CT_REJECT, /* reject, private data: of a request or a lookup */
	ENG_CT_BIND,  /* stage, qp_index: an active connection whose QP is started: data may flow */
	ENG_CT_ABORT, /* abort: before the connection is bound */
	ENG_CT_QUERY, /* answered with conn_info */
	ENG_CT_NEIGHBORS, /* neighbors */
	/* control stage to an engine stage, answered */
	ENG_CE_CLIENT_ADD, /* client: its doorbells are polled from here on */
	ENG_CE_CLIENT_DEL, /* client: the stage never touches it again */
	ENG_CE_QP_ADD,     /* qp: answered with qp_index */
	ENG_CE_QP_START,   /* qp, transport, conn, start: connected */
	ENG_CE_QP_CLOSE,   /* qp, close: disconnects, or moves the QP to the error state */
	ENG_CE_QP_DEL,     /* qp: aborts what is left; answered when nothing of it is in flight */
	ENG_CE_QP_MOVE,    /* qp, move: what the program sets before the QP starts */
	ENG_CE_QP_FAIL,    /* qp: the peer did not appear in time, unless it has by now */
	ENG_CE_QP_RESET,   /* qp: as ENG_CE_QP_DEL, but the QP stays, as new */
	ENG_CE_QP_QUERY,   /* qp: answered with qp_info */
	ENG_CE_AH_ADD,     /* client, object */
	ENG_CE_AH_DEL,     /* client, object */
	ENG_CE_SRQ_ADD,    /* object */
	ENG_CE_SRQ_DEL,    /* object */
	ENG_CE_SRQ_LIMIT,  /* object: `number` is the limit */
	ENG_CE_CQ_DEL,     /* object: no stage touches the CQ after the answer */
	/* notices of a transport stage to the control stage */
	ENG_TC_REQUEST,     /* conn, peer, private data: a peer requests a connection */
	ENG_TC_LOOKUP,      /* conn, lookup, private data: a peer requests a datagram service */
	ENG_TC_ESTABLISHED, /* conn, cookie, peer, private data: both sides have agreed */
	ENG_TC_FOUND,       /* conn is gone; cookie, lookup, private data */
	ENG_TC_REJECTED,    /* conn is gone; cookie, peer, private data */
	ENG_TC_FAILED,      /* conn is gone; cookie, status; connect and private data if
			     * connect.offer.retry: the second attempt */
	/* notices of an engine stage to the control stage */
	ENG_EC_MAILBOX,      /* the client rang for its mailbox */
	ENG_EC_DISCONNECTED, /* qp: its stream has ended; event.code: 1 if it had never started */
	ENG_EC_QP_WAITS,     /* qp, modified by the program: there is work, and no connection */
	ENG_EC_QP_FATAL,     /* qp, event */
	ENG_EC_CQ_OVERFLOW,  /* object */
	ENG_EC_SRQ_LIMIT,    /* object: the SRQ has no limit any more */
	ENG_EC_CLIENT_BAD,   /* the client harmed itself: SIGBUS, or invalid entries in its rings */
	ENG_CTL_TYPES
};
#define ENG_CTL_NOTICE ENG_TC_REQUEST /* types from here on are notices */

#define ENG_ABORT_UNANSWERED 1

struct eng_ctl {
	uint16_t type; /* enum eng_ctl_type */
	uint8_t from;  /* notices: index of the stage that the message returns to */
	uint8_t transport, stage;
	int status;        /* 0 or -errno */
	uint32_t conn;     /* a transport stage's connection index */
	uint32_t qp_index; /* an engine stage's */
	uint64_t cookie;   /* the control stage's: returned as it was */
	struct eng_qp *qp;
	struct eng_client *client;
	union {
		struct { /* the address is unspecified: all; port 0: the control stage chooses */
			uint32_t number; /* the control stage's listener number */
			uint32_t backlog;
			struct sk_addr addr;
			uint16_t port;
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
			uint32_t listener; /* notices: that it came to */
			uint16_t service;  /* the port of the datagram service */
			uint32_t qpn, qkey;
		} lookup;
		struct {
			uint8_t why; /* enum rofx_reason; 0: the application's decision */
			uint16_t ird, ord;
		} reject;
		struct {
			int how; /* ENG_ABORT_UNANSWERED: -EBUSY once the peer has accepted */
		} abort;
		struct eng_start start;
		struct {
			enum eng_close how;
		} close;
		struct {
			uint8_t state;   /* enum rd_qp_state, of a datagram QP */
			bool modified;   /* by the program, which names the peer */
			uint32_t access; /* enum rd_access */
			uint32_t qkey;
		} move;
		struct {
			void *object;    /* AH, SRQ or CQ */
			uint32_t number; /* AH: its handle; SRQ: the limit */
		} object;
		struct {
			int code; /* of the transport's reasons */
		} event;
		struct {
			struct tcp_tuple tuple;
			struct tcp_info tcp;
		} conn_info;
		struct {
			uint8_t state; /* enum rd_qp_state */
			struct eng_work work;
		} qp_info;
		struct {
			struct net_neighbor_view *view; /* [n] */
			uint32_t n;                     /* answered with how many there are */
		} neighbors;
	};
	uint16_t private_len;
	uint8_t private_data[SHM_PRIVATE_MAX]; /* last: a command without it is not cleared so far
						*/
};
_Static_assert(offsetof(struct eng_ctl, private_len) < 400, "a message without private data");

#endif
