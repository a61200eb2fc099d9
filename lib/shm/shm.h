/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract between a client and the engine: the layout of the memory that they share, and the
 * messages in it. The layout contains offsets and no pointers. Entries have fixed sizes. All values
 * are in host byte order, because both sides run on one host.
 *
 * A client sees one *home region*: a header, a mailbox, doorbells, event queues, and a heap in
 * which the engine places the queues that the client creates. In a flat client (a machine behind
 * one BAR, or a program in the engine's process) the home region also contains the memory that the
 * client registers. Other clients pass memory regions to the engine over the Unix socket.
 *
 * The engine trusts nothing in this memory. It keeps its own copy of every offset, size, mask and
 * index, reads an entry once, and then validates the copy. It writes the header once and never
 * reads it afterwards.
 */
#ifndef SAKER_SHM_H
#define SAKER_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/addr.h"
#include "../rdma/rdma.h"

#define SHM_MAGIC      0x53414b4552303031ull /* "SAKER001" */
#define SHM_VERSION    7
#define SHM_LINE       64
#define SHM_MAX_STAGES 64 /* limit of engine stages in this layout */

/* ---- Rings ---- */

/*
 * The format of all rings: entries with a power-of-two stride, and a power-of-two count of at least
 * 2. The first four bytes of an entry are its `turn`. Entry number i (counted from 0, 32 bits,
 * wrapping) is valid when turn == (i / count) + 1. The producer writes the body of the entry, then
 * `turn` with release semantics; the consumer reads `turn` with acquire semantics. The consumer
 * publishes the number of entries that it has taken, which the producer reads when its cached copy
 * means "full". The engine publishes that it took a request before it completes the request.
 *
 * The memory of the rings in the header is zero at first. The memory of a new SQ, RQ, SRQ or CQ may
 * have belonged to an older queue of the client. The producer sets
 * the turn of entry 0 to 0 before the consumer can poll the ring: the engine before it names the
 * sub-ring of a CQ, the client before its first doorbell or command for a QP or SRQ. Before the
 * producer publishes entry i < count - 1, it sets the turn of entry i + 1 to 0 (shm_prod_start(),
 * shm_prod_push()). The engine sets struct shm_qp, struct shm_cq and struct shm_cons to 0 when it
 * creates the queue, and does not depend on their contents.
 */
struct shm_cons {
	uint32_t taken;
};

/* The location of a ring in the home region. */
struct shm_ring_at {
	uint64_t entries; /* offset, aligned to SHM_LINE */
	uint64_t cons;    /* offset of its struct shm_cons, aligned to 4 */
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

/* Returns the smallest log2_count whose ring holds `n` entries: 1 to 31. */
uint8_t shm_log2(uint32_t n);
/* Return the strides, in bytes, of send and receive queue entries with so many elements or inline
 * bytes, or 0 if a limit (RD_MAX_SGE, RD_MAX_INLINE) is exceeded. */
uint16_t shm_sqe_stride(uint32_t max_sge, uint32_t max_inline);
uint16_t shm_rqe_stride(uint32_t max_sge);
/* Returns whether the ring lies within a region of `size` bytes and each of its entries has at
 * least `least_stride` bytes. */
bool shm_ring_ok(const struct shm_ring_at *at, uint64_t size, size_t least_stride);

/* ---- The header, at offset 0 of the home region ---- */

struct shm_header {
	uint64_t magic; /* written last */
	uint32_t version;
	/* Number of engine stages, each with a doorbell ring and an event queue. */
	uint32_t nstages;
	uint64_t size;           /* of the home region, bytes */
	uint64_t heap, heap_len; /* used by the engine */
	/* Flat clients: the client's own memory, region SHM_HOME; else 0. */
	uint64_t mem, mem_len;
	struct shm_ring_at cmd;                      /* client to engine: struct shm_msg */
	struct shm_ring_at evt;                      /* engine to client: struct shm_msg */
	struct shm_ring_at doorbell[SHM_MAX_STAGES]; /* client to stage: struct shm_doorbell */
	struct shm_ring_at event[SHM_MAX_STAGES];    /* stage to client: struct shm_cq_event */
	/* Flags for wake-ups. A side that goes to sleep sets its flag, executes a fence, polls its
	 * rings once more and sleeps. A producer pushes, executes a fence and reads the flag. Each
	 * flag has one writer. The attachment defines how the wake-up travels (eventfd, socket,
	 * doorbell) and may have none. */
	_Alignas(SHM_LINE) uint32_t engine_sleeps; /* engine writes */
	_Alignas(SHM_LINE) uint32_t client_sleeps; /* client writes */
	/* Engine writes: 1 (before `magic`); 0 when it has detached this client. */
	_Alignas(SHM_LINE) uint32_t engine_alive;
	uint8_t end[60];
};

/* The contents of a home region. Numbers of entries are rounded up to powers of two. */
struct shm_home {
	uint32_t nstages;
	uint32_t commands, events; /* of the mailbox */
	/* For each stage: more doorbells than the client can have QPs and commands in flight; more
	 * CQ events than it can have CQs. */
	uint32_t doorbells, cq_events;
	uint64_t mem_len; /* flat clients: bytes for their own use at the region's end */
};
/* Fills in all fields of *h but `magic` and `engine_alive`. Returns 0, -EINVAL for impossible
 * numbers, or -ENOSPC if `size` bytes are too few. */
int shm_header_lay(struct shm_header *h, uint64_t size, const struct shm_home *home);

/* ---- Doorbells and completion events ---- */

/* A client rings for each command at stage 0. It rings for a QP when the QP's `pending` was 0, so
 * each QP has at most one entry in flight, and the ring, which has more entries than the client has
 * QPs, cannot overflow. */
struct shm_doorbell {
	uint32_t turn;
	uint32_t what; /* QP handle, or SHM_RING_MAILBOX for a command */
};
#define SHM_RING_MAILBOX 0xffffffffu

/* An event of an armed CQ. It reports the first `until` completions of sub-ring `sub`, counted from
 * the beginning as struct shm_ring counts them. */
struct shm_cq_event {
	uint32_t turn;
	uint32_t cq; /* CQ handle */
	uint32_t sub;
	uint32_t until;
};

/* ---- Queues ---- */

/* The shared part of a QP, at the offset in the reply to SHM_QP_CREATE. It is one cache line, and
 * the entries of the send queue follow it, so that a QP that was idle costs few cache misses. */
struct shm_qp {
	/* The client sets it (by an exchange) after posting; the engine clears it before it polls
	 * the queue. */
	_Alignas(SHM_LINE) uint32_t pending;
	struct shm_cons sq, rq;
};
_Static_assert(sizeof(struct shm_qp) == SHM_LINE, "layout");

/*
 * An entry of a send queue. It has a fixed part of SHM_SQE_BASE bytes, and a tail of `len` bytes.
 * The ring's stride is 1, 2, 4 or 8 units of SHM_SQE_UNIT bytes. A request uses as many units of
 * its entry as its tail needs; the engine reads no others. A request with one element or 24 inline
 * bytes uses one unit.
 *
 * The tail, by `opcode`:
 *	RD_FETCH_ADD	element, data_mask; `data` is the number to add
 *	RD_CMP_SWAP	element, compare [, data_mask, compare_mask]; `data` is the value to store;
 *			without masks, all bits count
 *	RD_SWAP		element; `data` is the value to store
 *	RD_BIND_MW	length and access rights (rd_bind_of()); rkey is the window's STag with the
 *			new key, imm is the region's STag, remote_addr is the address of the range
 *			in the region
 *	all others	with RD_INLINE the inline data, else `len` / 16 elements
 *
 * Only the tail of a Compare and Swap with masks can be longer than the entry. It continues in the
 * next entry of the ring, behind `turn` and four unused bytes. The client publishes that entry
 * before this one.
 */
struct shm_sqe {
	union {
		struct {
			uint32_t turn;
			uint8_t opcode, flags; /* enum rd_opcode, enum rd_wr_flags */
			uint16_t len;          /* bytes */
		};
		uint64_t head; /* the four fields, which the client publishes with one store */
	};
	uint64_t wr_id;
	union {
		uint64_t remote_addr;
		struct { /* datagrams */
			uint32_t remote_qpn, remote_qkey;
		};
	};
	union {
		uint64_t imm;
		uint64_t data; /* Atomics */
	};
	union {
		uint32_t rkey;
		uint32_t ah; /* datagrams: handle of an address handle */
	};
	uint32_t remote_srqn; /* XRC: number of the receiver's shared receive queue */
	union {
		struct rd_sge sge[RD_MAX_SGE];
		uint8_t inl[RD_MAX_INLINE];
		struct {
			struct rd_sge sink;
			union {
				uint64_t add_mask; /* RD_FETCH_ADD: data_mask */
				uint64_t compare;
			};
			uint64_t data_mask, compare_mask;
		} atomic;
		struct {
			uint64_t len, access;
		} bind;
	};
};
#define SHM_SQE_BASE 40
#define SHM_SQE_UNIT 64
#define SHM_SQE_MORE 8 /* offset of the rest of a tail in the next entry */
_Static_assert(offsetof(struct shm_sqe, sge) == SHM_SQE_BASE, "layout");
_Static_assert(sizeof(struct shm_sqe) <= 8 * SHM_SQE_UNIT, "layout");
_Static_assert(offsetof(struct shm_sqe, atomic.data_mask) == SHM_SQE_UNIT,
	"an Atomic without masks uses one unit");

struct shm_rqe {
	uint32_t turn;
	uint8_t nsge, rsv[3];
	uint64_t wr_id;
	struct rd_sge sge[RD_MAX_SGE];
};
#define SHM_RQE_BASE 16
#define SHM_RQE_UNIT 32 /* a receive with one element. Strides: 32, 64, 128, 256 or 512 */
_Static_assert(offsetof(struct shm_rqe, sge) == SHM_RQE_BASE, "layout");

/* A completion. What its last member holds depends on the others: with another status than
 * RD_SUCCESS, vendor_err; else with RD_WC_INV, inv_stag; else with RD_WC_GRH, the sender of a
 * datagram and its immediate data, which have 32 bits; else imm. */
struct shm_cqe {
	uint32_t turn;
	uint8_t opcode, status, flags, rsv;
	uint64_t wr_id;
	uint32_t qpn;
	uint32_t byte_len;
	union {
		uint64_t detail; /* all of it */
		uint64_t imm;
		uint32_t inv_stag;
		uint32_t vendor_err;
		struct {
			uint32_t src_qpn, imm;
		} datagram;
	};
};
_Static_assert(sizeof(struct shm_cqe) == 32, "layout");

/*
 * The shared part of a CQ, at the offset in the reply to SHM_CQ_CREATE, and the directory of its
 * sub-rings. A sub-ring holds the completions of the QPs of one engine stage; the client merges
 * them. The engine makes a sub-ring when the first queue of a stage needs it, at any time during
 * the life of the CQ: it prepares the ring, stores its offset in `sub`, and then increments `nsubs`
 * with release semantics. Sub-rings stay until the end of the CQ. Neither their order nor their
 * number depends on the numbers of the stages.
 *
 * A sub-ring begins with the cache line of its struct shm_cons. struct shm_cqe follow, as many as
 * the CQ is deep (shm_cq_ring()).
 *
 * SHM_CQ_RESIZE with a larger depth moves the first `nsubs` sub-rings of the reply to larger ones,
 * which lie in a row at `at`, each shm_cq_ring_bytes() long. `sub` keeps the former offsets, and a
 * sub-ring that the engine makes later has the new depth. By the time of the reply the engine
 * writes to the new rings only, from entry shm_ring_moved() on. The client, which takes no entry of
 * the queue between the command and the reply, then copies the entries that are left in a former
 * ring in front of that entry. The former rings stay allocated, too.
 */
enum shm_arm { SHM_ARM_NONE = 0, SHM_ARM_ANY = 1, SHM_ARM_SOLICITED = 2 };
struct shm_cq {
	/* The client stores an enum shm_arm. A stage that has produced completions exchanges it
	 * with SHM_ARM_NONE and, if one of them matches the previous value, writes a shm_cq_event.
	 * The client polls once more after arming. */
	_Alignas(SHM_LINE) uint32_t arm;
	uint32_t nsubs; /* engine writes; at most shm_header.nstages */
	uint64_t sub[]; /* [shm_header.nstages]: offsets, aligned to SHM_LINE */
};

/* Returns the bytes of a struct shm_cq for so many stages, in whole cache lines. */
static inline uint64_t
shm_cq_bytes(uint32_t nstages)
{
	uint64_t n = offsetof(struct shm_cq, sub) + nstages * sizeof(uint64_t);

	return (n + SHM_LINE - 1) & ~(uint64_t)(SHM_LINE - 1);
}

/* Returns the place of the sub-ring at offset `at` of a CQ with 2^log2_depth entries. */
static inline struct shm_ring_at
shm_cq_ring(uint64_t at, uint8_t log2_depth)
{
	const struct shm_ring_at ring = {.entries = at + SHM_LINE,
		.cons = at,
		.stride = sizeof(struct shm_cqe),
		.log2_count = log2_depth};

	return ring;
}

/* Returns the bytes of a sub-ring with 2^log2_depth entries. */
static inline uint64_t
shm_cq_ring_bytes(uint8_t log2_depth)
{
	return SHM_LINE + (sizeof(struct shm_cqe) << log2_depth);
}

/* ---- The mailbox ---- */

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
 *	LISTEN			cm.local, lport, backlog, space, revision, crc,
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
#define SHM_NAME_MAX    32

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
#define SHM_NONE 0xffffffffu

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

/* ---- The Unix socket (SOCK_SEQPACKET) ---- */

/*
 * The socket attaches a client, passes memory regions and signals the end of either side. The
 * client sends HELLO. The engine replies WELCOME with the home region's memfd, a descriptor that
 * becomes readable to wake the client (a read returns 8 bytes for each wake-up, then EAGAIN), and
 * an eventfd that wakes the engine (a write of the number 1; the engine never reads it). The client
 * sends REGION with a memfd that is sealed against shrinking (F_SEAL_SHRINK); the engine replies
 * REGION_IS with the region's number. After a REFUSED HELLO the engine closes the connection; a
 * REFUSED REGION changes nothing. An engine that has no place for another connection sends REFUSED
 * without a HELLO, which the client then cannot send. When either end closes the socket, the client
 * is detached.
 */
enum shm_sock_op { SHM_HELLO = 1, SHM_WELCOME, SHM_REGION, SHM_REGION_IS, SHM_REFUSED };
struct shm_sock_msg {
	uint64_t magic;
	uint32_t version;
	uint32_t op;     /* enum shm_sock_op */
	uint64_t size;   /* bytes; WELCOME: of the home region; REGION: of the memfd */
	uint32_t region; /* REGION_IS */
	int32_t status;  /* REFUSED: -errno */
	char text[124];  /* HELLO: the program's name; REFUSED: one sentence */
	uint32_t flags;  /* REGION: enum shm_region_flags */
};
_Static_assert(sizeof(struct shm_sock_msg) == 160, "layout");
/* SHM_REGION_SPARSE: a memfd that consists mostly of holes, of at most SHM_SPARSE_MAX bytes. The
 * memory registered in it counts against the client's quota (each time that it is registered), not
 * the memfd's size.
 * SHM_REGION_OBJECT: memory that the program shares with others: a file on tmpfs (a memfd, POSIX or
 * System V shared memory) or on hugetlbfs, open for reading and writing. It needs no seal, is at
 * least `size` bytes long, in whole pages, and counts as a sparse memfd does. Both kinds of a
 * client together have at most SHM_OBJECT_MAX bytes: 128 clients then fit into half of an address
 * space. */
enum shm_region_flags { SHM_REGION_SPARSE = 1, SHM_REGION_OBJECT = 2 };
#define SHM_SPARSE_MAX     (4ull << 30)
#define SHM_OBJECT_MAX     (1ull << 39)
#define SHM_SOCKET_DEFAULT "/run/saker/saker.sock"

#endif
