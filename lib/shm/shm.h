/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole contract between a client and the engine: what stands where in the memory that they
 * share, and the messages that pass through it. Offsets and no pointers; fixed-size entries; host
 * byte order (both sides are one machine).
 *
 * A client sees one *home region*: a header, a mailbox, doorbells, event queues and a heap in which
 * the engine places the queues that the client asks for. In a flat client (a VM behind one BAR, or
 * a program in the engine's process) the home region also holds the memory that the client
 * registers. Other clients bring memory regions of their own over the Unix socket.
 *
 * The engine believes nothing here: it keeps its own copy of every offset, size, mask and index,
 * reads an entry once, and then validates the copy. It writes the header once, and reads none of it
 * afterwards.
 */
#ifndef SAKER_SHM_H
#define SAKER_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/addr.h"
#include "../rdma/rdma.h"

#define SHM_MAGIC      0x53414b4552303031ull /* "SAKER001" */
#define SHM_VERSION    2
#define SHM_LINE       64
#define SHM_MAX_STAGES 8 /* engine stages */

/* ---- Rings ---- */

/*
 * One format for every ring: entries of a power-of-two stride, a power-of-two count of at least 2.
 * An entry's first four bytes are its `turn`: entry number i (counted from 0, 32 bits, wrapping) is
 * there when turn == (i / count) + 1. Memory starts zeroed. The producer writes the body, then turn
 * with release; the consumer reads turn with acquire. The consumer publishes how many it has taken
 * in a cache line of its own, which the producer reads when its cached copy says "full". An engine
 * that completes a request has published before that it took it.
 */
struct shm_cons {
	_Alignas(SHM_LINE) uint32_t taken;
};
_Static_assert(sizeof(struct shm_cons) == SHM_LINE, "own line");

/* Where a ring is. `log2_count` entries; both offsets in the home region. */
struct shm_ring_at {
	uint64_t entries; /* offset, aligned to SHM_LINE */
	uint64_t cons;    /* offset of its struct shm_cons */
	uint16_t stride;  /* bytes */
	uint8_t log2_count;
	uint8_t rsv[5];
};
_Static_assert(sizeof(struct shm_ring_at) == 24, "layout");

static inline uint64_t
shm_ring_bytes(const struct shm_ring_at *at)
{
	return (uint64_t)at->stride << at->log2_count;
}

/* The smallest log2_count that holds `n` entries: 1..31. */
uint8_t shm_log2(uint32_t n);
/* Strides of send and receive queue entries; 0 when no stride holds so much. */
uint16_t shm_sqe_stride(uint32_t max_sge, uint32_t max_inline);
uint16_t shm_rqe_stride(uint32_t max_sge);
/* Whether a ring lies within a region of `size` bytes and its entries hold `least_stride` bytes. */
bool shm_ring_ok(const struct shm_ring_at *at, uint64_t size, size_t least_stride);

/* ---- The header, at offset 0 of the home region ---- */

struct shm_header {
	uint64_t magic; /* written last */
	uint32_t version;
	uint32_t nstages;        /* engine stages: doorbell rings and event queues */
	uint64_t size;           /* of the home region, bytes */
	uint64_t heap, heap_len; /* the engine's */
	uint64_t mem, mem_len;   /* flat clients: the client's memory, region SHM_HOME; else 0 */
	struct shm_ring_at cmd;  /* client to engine: struct shm_msg */
	struct shm_ring_at evt;  /* engine to client: struct shm_msg */
	struct shm_ring_at doorbell[SHM_MAX_STAGES]; /* client to stage: struct shm_doorbell */
	struct shm_ring_at event[SHM_MAX_STAGES];    /* stage to client: struct shm_cq_event */
	/* Wake-ups. A side that goes to sleep sets its flag, fences, looks once more at its rings
	 * and sleeps; a producer fences and looks at the flag. Each flag has one writer. How the
	 * wake-up travels is the attachment's business (eventfd, socket, doorbell); it may be
	 * absent. */
	_Alignas(SHM_LINE) uint32_t engine_sleeps; /* engine writes */
	_Alignas(SHM_LINE) uint32_t client_sleeps; /* client writes */
	_Alignas(SHM_LINE) uint32_t engine_alive;  /* engine writes: 1 (before the magic), or 0 when
						      it has let go of this client */
	uint8_t end[60];
};

/* What a home region is to hold, in entries (rounded up to powers of two). */
struct shm_home {
	uint32_t nstages;
	uint32_t commands, events; /* of the mailbox */
	/* Of each stage: more than the client may have QPs and commands; more than CQs. */
	uint32_t doorbells, cq_events;
	uint64_t mem_len; /* flat clients: bytes at the region's end for their own use */
};
/* Fills in all but `magic` and `engine_alive`. 0, -EINVAL, or -ENOSPC when `size` bytes are too
 * few. */
int shm_header_lay(struct shm_header *h, uint64_t size, const struct shm_home *home);

/* ---- Doorbells and completion events ---- */

/* Commands ring at stage 0, one doorbell for each. A QP rings when its `pending` was 0, so each QP
 * has at most one entry in flight, and the ring (more entries than QPs) cannot overflow. */
struct shm_doorbell {
	uint32_t turn;
	uint32_t what; /* QP handle, or SHM_RING_MAILBOX: there is a command */
};
#define SHM_RING_MAILBOX 0xffffffffu

struct shm_cq_event {
	uint32_t turn;
	uint32_t cq; /* CQ handle */
};

/* ---- Queues ---- */

/* At the offset that the reply to SHM_QP_CREATE names. */
struct shm_qp {
	_Alignas(SHM_LINE) uint32_t pending; /* client sets (exchange) after posting; the engine
						clears before it looks */
	struct shm_cons sq;
	struct shm_cons rq;
};

/* A bind: rkey is the window's STag with the new key, imm the region's, remote_addr and data are
 * the range in it, compare the rights (rd_bind_of()). */
struct shm_sqe { /* SHM_SQE_BASE bytes and then SGEs or inline data, up to the ring's stride */
	uint32_t turn;
	uint8_t opcode, flags, nsge, rsv;
	uint64_t wr_id;
	union {
		uint64_t remote_addr;
		struct { /* datagrams */
			uint32_t remote_qpn, remote_qkey;
		};
	};
	uint32_t rkey;
	uint32_t inline_len;
	uint64_t imm;
	uint64_t data, compare;
	uint32_t ah;          /* datagrams: handle of an address handle */
	uint32_t remote_srqn; /* XRC */
	union {
		struct rd_sge sge[RD_MAX_SGE];
		uint8_t inl[RD_MAX_INLINE];
		struct { /* atomics: one SGE, then the masks */
			struct rd_sge sink;
			uint64_t data_mask, compare_mask;
		} atomic;
	};
};
#define SHM_SQE_BASE 64
_Static_assert(offsetof(struct shm_sqe, sge) == SHM_SQE_BASE, "layout");
_Static_assert(sizeof(struct shm_sqe) == 512, "layout"); /* strides: 128, 256 or 512 */

struct shm_rqe {
	uint32_t turn;
	uint8_t nsge, rsv[3];
	uint64_t wr_id;
	struct rd_sge sge[RD_MAX_SGE];
};
#define SHM_RQE_BASE 16 /* strides: 64, 128, 256 or 512 */
_Static_assert(offsetof(struct shm_rqe, sge) == SHM_RQE_BASE, "layout");

struct shm_cqe {
	uint32_t turn;
	uint8_t opcode, status, flags, rsv;
	uint64_t wr_id;
	uint32_t qpn;
	uint32_t byte_len;
	uint64_t imm;
	uint32_t inv_stag;
	uint32_t vendor_err;
	uint32_t src_qpn;
	uint32_t rsv2;
	uint64_t rsv3[2];
};
_Static_assert(sizeof(struct shm_cqe) == 64, "layout");

/* At the offset that the reply to SHM_CQ_CREATE names, followed by `nsubs` sub-rings, one per
 * engine stage; the client merges them. */
enum shm_arm { SHM_ARM_NONE = 0, SHM_ARM_ANY = 1, SHM_ARM_SOLICITED = 2 };
struct shm_cq {
	/* Client stores; a stage that produced exchanges it with NONE and, when it was armed for
	 * that, writes a shm_cq_event. The client polls once more after arming. */
	_Alignas(SHM_LINE) uint32_t arm;
	uint32_t rsv[15];
	struct shm_cons sub[SHM_MAX_STAGES];
};

/* ---- The mailbox ---- */

/*
 * What a command and its reply (status 0) have in the body. PD_CREATE: none, handle. Each _DESTROY,
 * UNLISTEN, QP_QUERY: handle, none (QUERY: qp). REGION_DROP: handle is the region's number.
 * QP_MODIFY: move. QP_OPEN: qp.xrcd and qp.qpn; qp.
 * SRQ_MODIFY: srq.srq and srq.limit. LISTEN: cm.local, lport, backlog, space, revision, crc,
 * markers, rtr; cm.listener, lport. CONNECT: cm.qp and what it says there. RESOLVE: cm.qp, local,
 * remote, rport, private data. ACCEPT: cm.request, qp, ird, ord, crc, markers, rtr, dialect,
 * private data. REJECT: cm.request, ird, ord (what would have been needed), private data.
 * DISCONNECT: cm.qp, abort. The others: their own struct, completed in the reply.
 */
enum shm_op {
	/* Commands; the reply has the same op and tag. */
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
	SHM_REGION_DROP, /* a memory region that was brought over the socket */
	SHM_MW_CREATE,
	SHM_MW_DESTROY,
	SHM_AH_CREATE,
	SHM_AH_DESTROY,
	SHM_XRCD_OPEN,
	SHM_XRCD_CLOSE,
	SHM_SRQ_MODIFY,
	SHM_QP_OPEN, /* destroyed by SHM_QP_DESTROY, which leaves the QP itself alone */
	SHM_RESOLVE,
	SHM_OP_COUNT,
	/* Events; tag 0. */
	SHM_EV_CONNECT_REQUEST = 100, /* body.cm: listener, request, addresses, private data */
	SHM_EV_ESTABLISHED,  /* body.cm: qp, ird/ord as negotiated, private data (active side);
				of a lookup: remote_qpn, remote_qkey, private data */
	SHM_EV_REJECTED,     /* body.cm: qp, private data */
	SHM_EV_UNREACHABLE,  /* body.cm: qp, status -errno: refused, timed out, no route */
	SHM_EV_DISCONNECTED, /* body.cm: qp */
	SHM_EV_QP_FATAL,     /* body.async: qp, code */
	SHM_EV_CQ_OVERFLOW,  /* body.async: cq */
	SHM_EV_SRQ_LIMIT,    /* body.async: srq; it has disarmed itself */
};

#define SHM_HOME        0 /* region number of the home region */
#define SHM_MAX_REGIONS 64
#define SHM_MAX_EXTENTS 32
#define SHM_PRIVATE_MAX 512
#define SHM_NAME_MAX    32

struct shm_device {
	char name[SHM_NAME_MAX];
	uint32_t max_qp, max_cq, max_mr, max_pd, max_srq;
	uint32_t max_sq_depth, max_rq_depth, max_cq_depth;
	uint32_t max_send_sge, max_recv_sge, max_inline;
	uint32_t max_ird, max_ord;
	uint32_t mtu; /* of the first port: IP packet bytes */
	uint64_t max_mr_size;
	uint8_t mac[6], naddrs;
	uint8_t falcon;          /* 1: QPs can be SHM_FALCON */
	struct sk_addr addrs[8]; /* the addresses of its interfaces */
	uint32_t max_mw;
	uint32_t max_ah; /* 0: there are no datagrams and no XRC: Falcon is not enabled */
	uint32_t max_xrcd, rsv2;
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
	uint32_t nextents, rsv;
	struct shm_extent extents[SHM_MAX_EXTENTS];
};

struct shm_mw {
	uint32_t pd, type; /* enum rd_mw_type */
	uint32_t mw;       /* reply: handle */
	uint32_t stag;     /* reply: bits 31..8 are the window's for good, a bind changes the others
			    */
};

struct shm_cq_info {
	uint32_t depth; /* rounded up in the reply */
	uint32_t cq;    /* reply: handle */
	uint32_t nsubs, rsv;
	uint64_t at; /* reply: offset of struct shm_cq */
	struct shm_ring_at sub[SHM_MAX_STAGES];
};

struct shm_srq_info {
	uint32_t pd, depth, max_sge;
	uint32_t limit;    /* below which so many receives SHM_EV_SRQ_LIMIT comes, once; 0: never */
	uint32_t xrcd, cq; /* XRC: the domain, and where its completions go; else SHM_NONE */
	uint32_t srq;      /* reply: handle */
	uint32_t srqn;     /* reply: XRC: its number, 24 bits, for senders; else 0 */
	struct shm_ring_at rq;
};

/* Receives at one address, for datagrams: an address handle. */
struct shm_ah {
	uint32_t pd;
	uint32_t ah; /* reply: handle */
	struct sk_addr remote;
};

/* An XRC domain: clients of one tenant that name the same file share it. */
struct shm_xrcd {
	uint64_t dev, ino; /* of a file; ino 0: nobody else's */
	uint8_t create;    /* 0: it must exist already */
	uint8_t exclusive; /* with create: it must not */
	uint8_t rsv[2];
	uint32_t xrcd; /* reply: handle */
};

enum shm_transport { SHM_IWARP = 0, SHM_FALCON = 1 };

/* All but SHM_RC are Falcon's alone. */
enum shm_qp_type {
	SHM_RC = 0,
	SHM_UD,       /* datagrams: each request names its receiver */
	SHM_XRC_SEND, /* reliable; each request names a shared receive queue of the peer's domain */
	SHM_XRC_RECV, /* the other end of one: no queues of its own, no CQs, no domain but XRC's */
};

struct shm_qp_info {
	uint32_t pd, send_cq, recv_cq, srq; /* srq: SHM_NONE for an own receive queue */
	/* Rounded up in the reply. */
	uint32_t sq_depth, rq_depth, max_send_sge, max_recv_sge, max_inline;
	uint8_t sig_all, transport, state, type; /* enum shm_transport, rd_qp_state, shm_qp_type */
	uint32_t access;                         /* remote rights that it grants; 0: all */
	/* Reply: handle, number, the engine stage whose doorbell it rings. */
	uint32_t qp, qpn, stage;
	uint32_t ird, ord;
	uint32_t xrcd; /* SHM_XRC_RECV: the domain; else SHM_NONE */
	uint32_t qkey; /* SHM_UD */
	uint32_t rsv;
	uint64_t at; /* reply: offset of struct shm_qp */
	struct shm_ring_at sq, rq;
};
#define SHM_NONE 0xffffffffu

/*
 * A move of a QP's state, as programs make it that exchange (GID, QPN) by themselves. Each field
 * belongs to one move and is not looked at in others: INIT has access and, of datagrams, qkey; RTR
 * has remote, remote_qpn, local, ird and min_rnr_timer; RTS has ord, timeout, retry and rnr_retry.
 * RTR and RTS with an unspecified `remote` and remote_qpn 0 leave a QP alone that the connection
 * manager connects.
 */
struct shm_qp_move {
	uint32_t qp;   /* handle */
	uint8_t state; /* enum rd_qp_state: RESET, INIT, RTR, RTS, ERR */
	uint8_t ird, ord;
	uint8_t min_rnr_timer; /* how long a peer is asked to wait for a receive: 5 bits */
	uint8_t timeout;       /* 4.096 us * 2^timeout; 0: without end */
	uint8_t retry;         /* so often again: the time that the peer has to show itself */
	uint8_t rnr_retry;     /* how often we may be asked to wait; 7: without end */
	uint8_t rsv;
	uint32_t access; /* remote rights that it grants: enum rd_access */
	uint32_t remote_qpn, qkey;
	struct sk_addr remote; /* the peer's GID */
	struct sk_addr local;  /* ours, as the peer names us; unspecified: by the route */
};

/* A depth that is not negotiated (RFC 6581 9.1): each endpoint keeps what it has. */
#define SHM_DEPTH_AUTO 0x3fff

/* Which ready-to-receive messages a side offers for the peer-to-peer model (RFC 6581 9.2). */
enum shm_rtr {
	SHM_RTR_ANY = 0, /* all that the revision allows */
	SHM_RTR_SEND = 1,
	SHM_RTR_WRITE = 2,
	SHM_RTR_READ = 4,
	SHM_RTR_NONE = 8, /* client and server: whoever connected sends first */
};

/* What a peer may do that knows only revision 1 (RFC 6581 10). */
enum shm_enhanced {
	SHM_ENHANCED_CONFIGURED = 0,
	SHM_ENHANCED_ONLY = 1, /* the connection fails */
	SHM_ENHANCED_TRY = 2,  /* a second attempt at revision 1: nobody negotiates depths, and
				  whoever connected sends first */
};

/* Datagram services have ports of their own. */
enum shm_space { SHM_SPACE_TCP = 0, SHM_SPACE_UDP = 1 };

/* Whose atomics a connection speaks; both sides must say the same. */
enum shm_dialect {
	SHM_DIALECT_CONFIGURED = 0,
	SHM_DIALECT_RFC7306 = 1,
	SHM_DIALECT_DRAFT = 2, /* draft-ietf-storm-rdmap-ext-00: with Swap */
};

struct shm_cm {
	uint32_t qp;       /* handle; in a request event SHM_NONE */
	uint32_t listener; /* handle */
	uint32_t request;  /* handle of a connect request */
	/* local unspecified: Saker chooses (connect), every address (listen). */
	struct sk_addr local, remote;
	uint16_t lport, rport; /* host order; lport 0: chosen */
	/* Commands: what the application wants, or SHM_DEPTH_AUTO; events: what holds, or would if
	 * the request were accepted with all that the device can do. */
	uint16_t ird, ord;
	uint8_t revision;     /* MPA revision to start with: 1 or 2; 0: the configuration's */
	uint8_t crc, markers; /* 0, 1, or 2: the configuration's */
	uint8_t abort;        /* SHM_DISCONNECT: reset instead of an orderly end */
	uint32_t backlog;
	uint16_t private_len;
	uint16_t peer_ird, peer_ord; /* events: as the peer stated them (RFC 6581 9.1), or
					SHM_DEPTH_AUTO, also when it stated none */
	uint8_t rtr;       /* commands: what is offered, enum shm_rtr bits; events: the one message
			      in use, or SHM_RTR_NONE */
	uint8_t enhanced;  /* CONNECT: enum shm_enhanced; events: 1 for an enhanced exchange */
	uint8_t dialect;   /* CONNECT, ACCEPT, ESTABLISHED: enum shm_dialect */
	uint8_t transport; /* CONNECT_REQUEST: enum shm_transport; only such a QP can accept it */
	uint8_t space;     /* LISTEN, CONNECT_REQUEST: enum shm_space */
	uint8_t type;      /* CONNECT_REQUEST: enum shm_qp_type of the QP that can accept it */
	uint8_t rsv[4];
	uint32_t remote_qpn, remote_qkey; /* ESTABLISHED, of a lookup: who serves the port */
	uint8_t private_data[SHM_PRIVATE_MAX];
};

struct shm_async {
	uint32_t object; /* handle of the QP, CQ or SRQ */
	uint32_t code;   /* a reason of the transport */
	char reason[64]; /* its name */
};

struct shm_msg {
	uint32_t turn;
	uint16_t op; /* enum shm_op */
	uint16_t rsv;
	uint64_t tag;
	int32_t status; /* replies: 0 or -errno; events: 0 or -errno */
	uint32_t rsv2;
	union {
		uint32_t handle; /* destroy, query, unlisten */
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

/* ---- The Unix socket (SOCK_SEQPACKET) ---- */

/*
 * The socket only attaches a client, brings memory and tells of death. Client: HELLO; engine:
 * WELCOME with the home region's memfd, a descriptor that becomes readable to wake the client
 * (reads give 8 bytes a wake-up, until EAGAIN), and an eventfd that wakes the engine. Client:
 * REGION with a memfd sealed against shrinking (F_SEAL_SHRINK); engine: REGION_IS with its number.
 * A REFUSED HELLO is followed by the end of the connection; a REFUSED REGION leaves everything as
 * it was. When either end closes, the client is gone.
 */
enum shm_sock_op { SHM_HELLO = 1, SHM_WELCOME, SHM_REGION, SHM_REGION_IS, SHM_REFUSED };
struct shm_sock_msg {
	uint64_t magic;
	uint32_t version;
	uint32_t op;     /* enum shm_sock_op */
	uint64_t size;   /* WELCOME: the home region's; REGION: the memfd's */
	uint32_t region; /* REGION_IS */
	int32_t status;  /* REFUSED: -errno */
	char text[124];  /* HELLO: the program's name; REFUSED: one sentence */
	uint32_t flags;  /* REGION: enum shm_region_flags */
};
_Static_assert(sizeof(struct shm_sock_msg) == 160, "layout");
/* SPARSE: a memfd that is mostly holes, at most SHM_SPARSE_MAX bytes: what is registered in it
 * counts against the client's quota of memory (as often as it is registered), not its size. */
enum shm_region_flags { SHM_REGION_SPARSE = 1 };
#define SHM_SPARSE_MAX     (4ull << 30)
#define SHM_SOCKET_DEFAULT "/run/saker/saker.sock"

#endif
