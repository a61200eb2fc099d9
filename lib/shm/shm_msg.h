/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of the mailbox: the commands of a client, their replies, and events. */
#ifndef SAKER_SHM_MSG_H
#define SAKER_SHM_MSG_H

#include "../base/addr.h"
#include "shm.h"

/*
 * The members of shm_msg.body in a command and in its reply (with status 0):
 *
 *	PD_CREATE		none; handle
 *	*_DESTROY, UNLISTEN	handle; none
 *	QP_QUERY		handle; qp
 *	REGION_DROP		handle (the region's number); none
 *	QP_MODIFY		move; none
 *	QP_OPEN			qp.xrcd, qp.qpn; qp
 *	SRQ_MODIFY		srq.srq, srq.limit; none
 *	SRQ_RESIZE		srq.srq, srq.depth; srq
 *	LISTEN			cm.local, lport, backlog, v6only, space, revision, crc,
 *				markers, rtr, modes, class; cm.listener, lport
 *	CONNECT			cm.qp and the fields of struct shm_cm for commands; none
 *	RESOLVE			cm.qp, local, remote, rport, class, private data; none
 *	ACCEPT			cm.request, qp, ird, ord, crc, markers, rtr, dialect,
 *				modes, class, private data; none
 *	REJECT			cm.request, ird, ord (the depths that would have been
 *				needed), private data; none
 *	DISCONNECT		cm.qp, abort; none
 *	all others		their own struct, completed in the reply
 */
enum shm_op {
	/* Commands. The reply has the same op and tag. */
	SHM_QUERY_DEVICE = 1,
	SHM_PD_CREATE,
	SHM_PD_DESTROY,
	SHM_MR_CREATE,
	SHM_MR_DESTROY,
	SHM_CQ_CREATE,
	SHM_CQ_DESTROY,
	SHM_SRQ_CREATE,
	SHM_SRQ_DESTROY,
	SHM_QP_CREATE,
	SHM_QP_MODIFY,
	SHM_QP_QUERY,
	SHM_QP_DESTROY,
	SHM_LISTEN,
	SHM_UNLISTEN,
	SHM_CONNECT,
	SHM_ACCEPT,
	SHM_REJECT,
	SHM_DISCONNECT,
	SHM_REGION_DROP, /* a memory region that the client passed over the socket */
	SHM_MW_CREATE,
	SHM_MW_DESTROY,
	SHM_AH_CREATE,
	SHM_AH_DESTROY,
	SHM_XRCD_OPEN,
	SHM_XRCD_CLOSE,
	SHM_SRQ_MODIFY,
	SHM_QP_OPEN, /* SHM_QP_DESTROY destroys this handle, not the QP itself */
	SHM_RESOLVE,
	SHM_CQ_RESIZE,
	SHM_SRQ_RESIZE,
	SHM_OP_COUNT,
	/* Events. Their tag is 0. */
	SHM_EV_CONNECT_REQUEST = 100, /* body.cm: listener, request, addresses, private data */
	/* body.cm: qp, ird and ord as negotiated, private data (active side); after a lookup:
	 * remote_qpn, remote_qkey, private data */
	SHM_EV_ESTABLISHED,
	SHM_EV_REJECTED,     /* body.cm: qp, private data */
	SHM_EV_UNREACHABLE,  /* body.cm: qp; status -errno: refused, timed out, no route */
	SHM_EV_DISCONNECTED, /* body.cm: qp */
	SHM_EV_QP_FATAL,     /* body.async: qp, code */
	SHM_EV_CQ_OVERFLOW,  /* body.async: cq */
	SHM_EV_SRQ_LIMIT,    /* body.async: srq, whose limit is disarmed then */
};

#define SHM_HOME        0 /* region number of the home region */
#define SHM_MAX_REGIONS 64
#define SHM_MAX_EXTENTS 32
#define SHM_PRIVATE_MAX 512

struct shm_device {
	char name[SHM_NAME_MAX];
	uint32_t max_qp, max_cq, max_mr, max_pd, max_srq;
	uint32_t max_sq_depth, max_rq_depth, max_cq_depth;
	uint32_t max_send_sge, max_recv_sge, max_inline;
	uint32_t max_ird, max_ord;
	uint32_t mtu; /* of the first port: bytes of an IP packet */
	uint64_t max_mr_size;
	uint8_t mac[6], naddrs;
	uint8_t falcon;          /* 1: QPs can have transport SHM_FALCON */
	struct sk_addr addrs[8]; /* the addresses of the client's interfaces */
	uint32_t max_mw;
	uint32_t max_ah; /* 0: no datagrams and no XRC, because Falcon is not enabled */
	uint32_t max_xrcd;
	uint32_t speed; /* of the first port's link: Mb/s; 0: unknown */
};

struct shm_extent {
	uint32_t region, rsv; /* region number */
	uint64_t offset, len; /* in the region, bytes */
};

struct shm_mr {
	uint32_t pd, access; /* enum rd_access */
	uint64_t base, len;  /* base: the client's virtual address of the first byte */
	uint32_t mr;         /* reply: handle */
	uint32_t stag;       /* reply: lkey and rkey */
	uint32_t nextents;
	/* MR_CREATE: 1 + the handle of a region that ends with this command, and whose STag the new
	 * one takes over; 0: none */
	uint32_t replaces;
	struct shm_extent extents[SHM_MAX_EXTENTS];
};

struct shm_mw {
	uint32_t pd, type; /* enum rd_mw_type */
	uint32_t mw;       /* reply: handle */
	uint32_t stag;     /* reply; bits 31..8 never change, a bind changes bits 7..0 */
};

struct shm_cq_info {
	uint32_t depth; /* entries; the reply contains the rounded-up value */
	uint32_t cq;    /* handle; CQ_CREATE: in the reply */
	uint64_t at;    /* reply: offset of struct shm_cq; CQ_RESIZE: of the new sub-rings */
	uint32_t nsubs; /* reply of CQ_RESIZE: sub-rings that moved; 0: the depth is the former */
	uint32_t rsv;
};

struct shm_srq_info {
	uint32_t pd, depth, max_sge;
	/* SHM_EV_SRQ_LIMIT is sent, once, when fewer receives remain; 0: never */
	uint32_t limit;
	/* XRC: handles of the domain and of the CQ for its completions; else SHM_NONE */
	uint32_t xrcd, cq;
	uint32_t srq;  /* reply: handle */
	uint32_t srqn; /* reply: XRC: the queue's number for senders, 24 bits; else 0 */
	struct shm_ring_at rq;
};

/*
 * An SRQ grows in two steps. SHM_SRQ_RESIZE with a larger depth allocates a ring for it. The client
 * makes all entries of that ring invalid, and copies those of the queue that may not be taken yet,
 * each under its number. SHM_SRQ_RESIZE with depth 0 then moves the queue to that ring, and frees
 * the former one. The client posts nothing in between.
 */

/*
 * The class of the packets that this side sends. A member counts if its bit is in `set`; the others
 * are left to the QP, then (ACCEPT) to the listener, then to the configuration of the client.
 * Replies: the class in effect.
 */
enum shm_class_set { SHM_CLASS_TRAFFIC = 1, SHM_CLASS_PRIORITY = 2, SHM_CLASS_FLOW = 4 };
struct shm_class {
	uint8_t set;           /* bits of enum shm_class_set */
	uint8_t traffic_class; /* DSCP in the upper six bits; the lower two do not count */
	uint8_t priority;      /* 0 to 7: the configuration maps it to the PCP of a VLAN tag */
	uint8_t rsv;
	uint32_t flow_label; /* of IPv6, 20 bits; 0: the engine chooses one */
};
_Static_assert(sizeof(struct shm_class) == 8, "layout");

/* An address handle: the receivers at one address, for datagrams. */
struct shm_ah {
	uint32_t pd;
	uint32_t ah; /* reply: handle */
	struct sk_addr remote;
	/* enum shm_ordering without ..._ANY. SHM_ORDER_STRONG: the datagrams arrive in order. */
	uint8_t ordering;
	uint8_t rsv[7];
	struct shm_class class;
};

/* An XRC domain. Clients of one tenant that name the same file share a domain. */
struct shm_xrcd {
	uint64_t dev, ino; /* of the file; ino 0: a domain that is not shared */
	uint8_t create;    /* 0: the domain must exist already */
	uint8_t exclusive; /* with create: the domain must not exist yet */
	uint8_t rsv[2];
	uint32_t xrcd; /* reply: handle */
};

enum shm_transport { SHM_IWARP = 0, SHM_FALCON = 1 };

/* The ordering and error modes of RDMA over Falcon (6.2, 6.3). */
enum shm_ordering {
	SHM_ORDER_CONFIGURED = 0,
	SHM_ORDER_STRONG,
	SHM_ORDER_WEAK,
	SHM_ORDER_NONE,
	SHM_ORDER_ANY, /* LISTEN, ACCEPT: the mode that the peer requests */
};
enum shm_errors {
	SHM_ERRORS_CONFIGURED = 0,
	SHM_ERRORS_VERBS,
	SHM_ERRORS_COMPLETE,
	SHM_ERRORS_ANY, /* LISTEN, ACCEPT: the mode that the peer requests */
};

/*
 * The properties of a Falcon connection. Commands: the properties that one side requests; 0 leaves
 * a property to the listener (ACCEPT) or to the configuration. Events: the properties that the peer
 * requests (CONNECT_REQUEST), or that both sides agreed on (ESTABLISHED); 0 for iWARP.
 */
struct shm_modes {
	uint8_t ordering; /* enum shm_ordering */
	uint8_t errors;   /* enum shm_errors */
	uint8_t flows;    /* 1 or 4 */
	uint8_t rsv;
	uint16_t psp; /* versions that a connection may use, bits 1 << enum psp_version */
	uint16_t mtu; /* RDMA payload of a packet, bytes: a power of two */
};
_Static_assert(sizeof(struct shm_modes) == 8, "layout");

/* The types of QPs. All but SHM_RC require Falcon. */
enum shm_qp_type {
	SHM_RC = 0,
	SHM_UD, /* datagrams: each request names its receiver */
	/* Reliable; each request names a shared receive queue of the peer's XRC domain. */
	SHM_XRC_SEND,
	/* The receiving end of SHM_XRC_SEND: it has no queues and no CQs of its own, and its only
	 * protection domain is that of the XRC domain. */
	SHM_XRC_RECV,
};

struct shm_qp_info {
	uint32_t pd, send_cq, recv_cq, srq; /* handles; srq: SHM_NONE for an own receive queue */
	/* The reply contains the rounded-up values. */
	uint32_t sq_depth, rq_depth, max_send_sge, max_recv_sge, max_inline;
	uint8_t sig_all, transport, state, type; /* enum shm_transport, rd_qp_state, shm_qp_type */
	uint32_t access;                         /* remote rights that the QP grants; 0: all */
	/* Reply: the QP's handle and number, and the engine stage at which the client rings its
	 * doorbell. */
	uint32_t qp, qpn, stage;
	uint32_t ird, ord;
	uint32_t xrcd; /* SHM_XRC_RECV: the domain; else SHM_NONE */
	uint32_t qkey; /* SHM_UD */
	uint32_t rsv;
	struct shm_class class;
	uint64_t at; /* reply: offset of struct shm_qp */
	struct shm_ring_at sq, rq;
};

/*
 * A transition of a QP's state by a program that exchanges (GID, QPN) itself and modifies its QP.
 * Each field belongs to one transition and is ignored in the others. INIT uses access and, for
 * datagrams, qkey. RTR uses remote, remote_qpn, local, ird, min_rnr_timer, modes and
 * class; for datagrams, modes.ordering, the order of completions, and modes.errors only. RTS uses
 * ord, timeout, retry and rnr_retry. RTR and RTS with an unspecified `remote` and remote_qpn 0 do
 * not change a QP that the connection manager connects.
 */
struct shm_qp_move {
	uint32_t qp;   /* handle */
	uint8_t state; /* enum rd_qp_state: RESET, INIT, RTR, RTS, ERR */
	uint8_t ird, ord;
	/* The least time that the peer waits before it retries while no receive is posted
	 * here: 5 bits, encoded as in verbs. */
	uint8_t min_rnr_timer;
	uint8_t timeout; /* 4.096 us * 2^timeout; 0: infinite */
	/* Number of further periods of that length in which the peer may still respond. */
	uint8_t retry;
	/* Number of times that this side retries while no receive is posted at the peer;
	 * 7: infinite. */
	uint8_t rnr_retry;
	uint8_t rsv;
	uint32_t access; /* remote rights that the QP grants: enum rd_access */
	uint32_t remote_qpn, qkey;
	struct sk_addr remote; /* the peer's GID */
	/* The local GID that the peer uses; unspecified: chosen by the route. */
	struct sk_addr local;
	struct shm_modes modes;
	struct shm_class class;
};

/* A depth that is not negotiated (RFC 6581 9.1): each endpoint keeps its own. */
#define SHM_DEPTH_AUTO 0x3fff

/* The ready-to-receive messages that a side offers for the peer-to-peer model (RFC 6581 9.2). */
enum shm_rtr {
	SHM_RTR_ANY = 0, /* all messages that the revision allows */
	SHM_RTR_SEND = 1,
	SHM_RTR_WRITE = 2,
	SHM_RTR_READ = 4,
	SHM_RTR_NONE = 8, /* client/server model: the side that connected sends first */
};

/* The treatment of a peer that implements only revision 1 (RFC 6581 10). */
enum shm_enhanced {
	SHM_ENHANCED_CONFIGURED = 0,
	SHM_ENHANCED_ONLY = 1, /* the connection fails */
	/* A second attempt is made at revision 1: the depths are not negotiated, and the side that
	 * connected sends first. */
	SHM_ENHANCED_TRY = 2,
};

/* The port number spaces. Datagram services have a space of their own. */
enum shm_space { SHM_SPACE_TCP = 0, SHM_SPACE_UDP = 1 };

/* The specification of Atomics that a connection uses; both sides must choose the same. */
enum shm_dialect {
	SHM_DIALECT_CONFIGURED = 0,
	SHM_DIALECT_RFC7306 = 1,
	SHM_DIALECT_DRAFT = 2, /* draft-ietf-storm-rdmap-ext-00, which includes Swap */
};

struct shm_cm {
	uint32_t qp;       /* handle; SHM_NONE in a request event */
	uint32_t listener; /* handle */
	uint32_t request;  /* handle of a connect request */
	/* An unspecified `local` means an address that the engine chooses (CONNECT), every address
	 * (LISTEN, ::) or every IPv4 address (LISTEN, 0.0.0.0). */
	struct sk_addr local, remote;
	uint16_t lport, rport; /* host order; lport 0: the engine chooses */
	/* Commands: the application's depths, or SHM_DEPTH_AUTO. Events: the depths in use or, in a
	 * request event, the depths if the request were accepted with the device's limits. */
	uint16_t ird, ord;
	uint8_t revision;     /* first MPA revision to try, 1 or 2; 0: as configured */
	uint8_t crc, markers; /* 0, 1, or 2: as configured */
	uint8_t abort;        /* SHM_DISCONNECT: reset instead of an orderly end */
	uint32_t backlog;
	uint16_t private_len;
	/* Events: the depths that the peer stated (RFC 6581 9.1), or SHM_DEPTH_AUTO if it stated
	 * none. */
	uint16_t peer_ird, peer_ord;
	/* Commands: the messages offered, enum shm_rtr bits. Events: the message in use, or
	 * SHM_RTR_NONE. */
	uint8_t rtr;
	uint8_t enhanced;  /* CONNECT: enum shm_enhanced; events: 1 for an enhanced exchange */
	uint8_t dialect;   /* CONNECT, ACCEPT, ESTABLISHED: enum shm_dialect */
	uint8_t transport; /* CONNECT_REQUEST: enum shm_transport of the QP that can accept it */
	uint8_t space;     /* LISTEN, CONNECT_REQUEST: enum shm_space */
	uint8_t type;      /* CONNECT_REQUEST: enum shm_qp_type of the QP that can accept it */
	/* LISTEN with `local` ::, 1: IPv6 addresses only; 0: addresses of both families */
	uint8_t v6only;
	uint8_t rsv[3];
	struct shm_modes modes;
	struct shm_class class; /* LISTEN, CONNECT, RESOLVE, ACCEPT */
	/* ESTABLISHED after a lookup: the QP that serves the port */
	uint32_t remote_qpn, remote_qkey;
	uint8_t private_data[SHM_PRIVATE_MAX];
};

struct shm_async {
	uint32_t object; /* handle of the QP, CQ or SRQ */
	uint32_t code;   /* a reason of the transport */
	char reason[64]; /* the reason's name */
};

struct shm_msg {
	uint32_t turn;
	uint16_t op; /* enum shm_op */
	uint16_t rsv;
	uint64_t tag;
	int32_t status; /* replies: 0 or -errno; events: 0 or -errno */
	uint32_t rsv2;
	union {
		uint32_t handle; /* destroy, query, unlisten, ... */
		struct shm_device device;
		struct shm_mr mr;
		struct shm_mw mw;
		struct shm_cq_info cq;
		struct shm_srq_info srq;
		struct shm_ah ah;
		struct shm_xrcd xrcd;
		struct shm_qp_info qp;
		struct shm_qp_move move;
		struct shm_cm cm;
		struct shm_async async;
		char text[256]; /* status < 0: one sentence that names what was wrong */
		uint8_t raw[1000];
	} body;
};
_Static_assert(sizeof(struct shm_msg) == 1024, "layout");

/* The bytes of a message with body.cm that are in front of its private data. The commands about
 * connections and listeners, and their events, end with their private data: neither side reads the
 * bytes behind it. */
#define SHM_CM_BYTES offsetof(struct shm_msg, body.cm.private_data)
/* Returns the bytes of such a message that are in use. */
static inline size_t
shm_cm_bytes(const struct shm_msg *m)
{
	uint16_t len = m->body.cm.private_len;

	return SHM_CM_BYTES + (len < SHM_PRIVATE_MAX ? len : SHM_PRIVATE_MAX);
}
/* Returns whether a command or an event has body.cm. */
static inline bool
shm_has_cm(uint16_t op)
{
	return op == SHM_CONNECT || op == SHM_ACCEPT || op == SHM_LISTEN || op == SHM_RESOLVE ||
	       op == SHM_REJECT || op == SHM_DISCONNECT ||
	       (op >= SHM_EV_CONNECT_REQUEST && op <= SHM_EV_DISCONNECTED);
}

#endif
