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

#include <stdint.h>

#include "../../iwarp/iwarp.h"
#include "../../iwarp/mpa.h"
#include "../../rof/rof.h"
#include "../../shm/shm.h"
#include "../../tcp/tcp.h"

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
#define ENG_CTL_UNASKED  256  /* a stage's own messages */

enum eng_ctl_type {
	/* control stage to a transport stage, answered with `status` */
	ENG_CT_LISTEN,   /* cm.local, cm.lport (0: not allowed here; control has chosen), listener:
			    cookie */
	ENG_CT_UNLISTEN, /* listener */
	ENG_CT_CONNECT, /* active open; answered at once with conn, or -EXDEV and the transport that
			   it belongs to; ENG_TC_* tells the outcome */
	ENG_CT_ACCEPT,  /* conn, stage, qp_index: MPA reply, then the connection is bound */
	ENG_CT_FOUND,   /* conn, ask.qpn, ask.qkey, private data: the answer to a lookup */
	ENG_CT_REJECT,  /* conn, private data; code: enum rofx_reason, 0: the application's will */
	ENG_CT_BIND,    /* conn, stage, qp_index: an active connection whose QP is started: data may
			   flow */
	ENG_CT_ABORT,   /* conn: before it is bound; code ENG_ABORT_UNANSWERED: -EBUSY once the peer
			   has accepted */
	ENG_CT_QUERY,   /* conn: tcp_info */
	ENG_CT_NEIGHBORS, /* object: net_neighbor_view[code]; answered with how many in code */
	/* control stage to an engine stage, answered */
	ENG_CE_CLIENT_ADD, /* client: poll its doorbells */
	ENG_CE_CLIENT_DEL, /* client: never touch it again */
	ENG_CE_QP_ADD,     /* qp: answered with qp_index */
	ENG_CE_QP_START,   /* qp, transport, conn, params: connected */
	ENG_CE_QP_CLOSE,   /* qp, how: disconnect, or to ERR */
	ENG_CE_QP_DEL,     /* qp: abort what is left; answered when nothing of it is in flight */
	ENG_CE_QP_MOVE,    /* qp, access, by_hand: what the program says of it before it starts */
	ENG_CE_QP_FAIL,    /* qp: its peer has not shown itself in time, unless it has by now */
	ENG_CE_QP_RESET,   /* qp: as ENG_CE_QP_DEL, but the QP stays, as new */
	ENG_CE_QP_QUERY,
	ENG_CE_AH_ADD, /* object, client, code: handle */
	ENG_CE_AH_DEL,
	ENG_CE_SRQ_ADD,
	ENG_CE_SRQ_DEL,
	ENG_CE_SRQ_LIMIT, /* object; code: the limit */
	ENG_CE_CQ_DEL,    /* cq: no stage touches it after the answer */
	/* a transport stage to the control stage, unasked */
	ENG_TC_REQUEST,     /* conn, listener, tuple, mpa: a peer wants to connect */
	ENG_TC_ESTABLISHED, /* conn, qp cookie, mpa result, emss, send_space: MPA is through (either
			       side) */
	ENG_TC_REJECTED,    /* conn gone: qp cookie, mpa result's private data */
	ENG_TC_FAILED,      /* conn gone: qp cookie, status: start-up did not come through */
	/* an engine stage to the control stage, unasked */
	ENG_EC_MAILBOX,      /* client rang for its mailbox */
	ENG_EC_DISCONNECTED, /* qp: its stream has ended; code: 1 if it had never started */
	ENG_EC_QP_WAITS,     /* qp, moved by hand: there is work, and no connection */
	ENG_EC_QP_FATAL,     /* qp, code */
	ENG_EC_CQ_OVERFLOW,  /* cq */
	ENG_EC_SRQ_LIMIT,    /* object: srq; the limit is none any more */
	ENG_EC_CLIENT_BAD,   /* client harmed itself: SIGBUS, nonsense in its rings */
};

#define ENG_ABORT_UNANSWERED 1

/* What a Falcon QP wants of its connection: ENG_CT_CONNECT, ENG_CT_ACCEPT. What a peer has asked
 * for: ENG_TC_REQUEST. */
struct eng_falcon_ask {
	bool falcon;        /* false: an iWARP QP */
	uint8_t transport;  /* ROF_RC, ROF_XRC, ROF_UD */
	uint8_t addressing; /* enum rofx_addressing; ROFX_ADDRESS: `to_qpn` is asked for */
	uint8_t ordering, errors;
	uint8_t rnr_retry, rnr_code;
	bool mirror; /* accept: the peer is the QP itself, whose end there is */
	/* Which datagram QP serves port `service`? Such a connection is gone with its answer:
	 * ENG_TC_REJECTED, with `found`, `qpn` and `qkey` if it is a good one. */
	bool lookup, found;
	uint16_t service;
	uint32_t qkey;
	uint32_t qpn, to_qpn, function;
	uint16_t ird, ord;
};

/* How a Falcon QP starts. */
struct eng_falcon_start {
	struct rof_chan_params chan;
	struct sk_addr laddr, raddr; /* of the two hosts */
	uint32_t peer_qpn;
	uint16_t ird, ord;
};

struct eng_ctl {
	uint16_t type; /* enum eng_ctl_type */
	uint8_t from;  /* index of the stage that is to get it back (unasked ones) */
	uint8_t transport, stage;
	int status;        /* 0 or -errno */
	uint32_t conn;     /* a transport stage's connection index */
	uint32_t qp_index; /* an engine stage's */
	uint64_t cookie;   /* the control stage's: returned as it was */
	struct eng_qp *qp;
	struct eng_client *client;
	void *object;      /* CQ, SRQ */
	uint32_t listener; /* the control stage's listener number */
	int code;
	uint32_t access; /* enum rd_access */
	uint32_t qkey;   /* ENG_CE_QP_MOVE of a datagram QP, whose new state is `code` */
	bool by_hand;
	enum iw_close how;
	struct tcp_tuple tuple;
	struct mpa_offer offer; /* connect, accept, reject (ird, ord); failed: see fall_back */
	bool fall_back; /* connect: may be tried again unenhanced; failed: it should be, and tuple,
			   offer, private data are those of the second attempt */
	struct mpa_result mpa; /* requests, outcomes */
	struct iw_params params;
	bool falcon; /* requests: of which kind the connection is; and ask.transport */
	struct eng_falcon_ask ask;
	uint16_t private_len;
	uint8_t private_data[SHM_PRIVATE_MAX];
	union {
		struct tcp_info tcp;
		struct eng_work work;
	} info;
};

#endif
