/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RDMA objects, as both transports see them: protection domains, memory regions, queue pairs,
 * completion queues, shared receive queues, work requests and work completions. No wire format, no
 * shared memory: where requests come from and where completions go is behind struct rd_ops.
 *
 * Numbers of opcodes, status codes and access rights are fixed here, because lib/shm carries them;
 * status codes and access rights have the values of <infiniband/verbs.h>.
 */
#ifndef SAKER_RDMA_H
#define SAKER_RDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/prf.h"
#include "../base/reason.h"

#define RD_MAX_SGE    28          /* scatter/gather elements of a request */
#define RD_MAX_INLINE 448         /* bytes */
#define RD_MAX_MSG    0xffffffffu /* bytes of a message: 4 GiB - 1 */

enum rd_opcode {
	RD_SEND = 0,
	RD_SEND_INV = 1, /* inv_stag is invalidated at the receiver */
	RD_SEND_IMM = 2,
	RD_WRITE = 3,
	RD_WRITE_IMM = 4,
	RD_READ = 5,
	RD_READ_INV = 6, /* the local sink's STag is invalidated when the read is done */
	RD_CMP_SWAP = 7,
	RD_FETCH_ADD = 8,
	RD_IMM = 9,        /* RFC 7306 Immediate Data on its own */
	RD_LOCAL_INV = 10, /* the region or type 2 window whose STag is imm */
	RD_BIND_MW = 11,   /* what it binds: rd_bind_of() */
	RD_SWAP = 12,      /* iWARP in the dialect of draft-ietf-storm-rdmap-ext-00 only */
	/* completions only */
	RD_RECV = 128,
	RD_RECV_IMM =
		129, /* the receive was consumed by an immediate behind a Write, or by RD_IMM */
};

enum rd_wr_flags {
	RD_SIGNALED = 1, /* ask for a completion when it succeeds */
	RD_SOLICITED = 2,
	RD_FENCE = 4, /* wait until earlier reads and atomics are done */
	RD_INLINE = 8,
};

enum rd_status { /* as ibv_wc_status */
	RD_SUCCESS = 0,
	RD_LOC_LEN_ERR = 1,
	RD_LOC_QP_OP_ERR = 2,
	RD_LOC_PROT_ERR = 4,
	RD_WR_FLUSH_ERR = 5,
	RD_MW_BIND_ERR = 6, /* a bind that rd_mw_bind() refused */
	RD_BAD_RESP_ERR = 7,
	RD_LOC_ACCESS_ERR = 8,
	RD_REM_INV_REQ_ERR = 9,
	RD_REM_ACCESS_ERR = 10,
	RD_REM_OP_ERR = 11,
	RD_RETRY_EXC_ERR = 12,
	RD_RNR_RETRY_EXC_ERR = 13,
	RD_REM_ABORT_ERR = 16,
	RD_FATAL_ERR = 19,
	RD_RESP_TIMEOUT_ERR = 20,
	RD_GENERAL_ERR = 21,
};

enum rd_access { /* as ibv_access_flags */
	RD_ACC_LOCAL_WRITE = 1,
	RD_ACC_REMOTE_WRITE = 2,
	RD_ACC_REMOTE_READ = 4,
	RD_ACC_REMOTE_ATOMIC = 8,
	RD_ACC_MW_BIND = 16,
	RD_ACC_ZERO_BASED = 32,
};

struct rd_sge {
	uint64_t addr; /* the client's virtual address, or an offset in a zero-based region */
	uint32_t len;
	uint32_t lkey; /* STag */
};

/* A work request, copied out of the client's reach. */
struct rd_wr {
	uint64_t wr_id;
	uint8_t opcode; /* enum rd_opcode; any value until it was checked */
	uint8_t flags;  /* enum rd_wr_flags */
	uint8_t nsge;   /* at most RD_MAX_SGE */
	uint32_t rkey;  /* remote STag */
	uint64_t remote_addr;
	uint64_t imm; /* immediate (verbs use the low 32 bits) or, in the low 32 bits, the STag to
			 invalidate or the region's, for a bind */
	uint32_t inline_len;            /* bytes at inl, with RD_INLINE */
	uint64_t data, data_mask;       /* swap or add operand; bytes of a bind */
	uint64_t compare, compare_mask; /* compare of a bind: its rights */
	/* Datagrams: address handle, the receiver's QP and its Q_Key. */
	uint32_t ah, remote_qpn, remote_qkey;
	uint32_t remote_srqn; /* XRC: the receiver's shared receive queue */
	union {
		struct rd_sge sge[RD_MAX_SGE];
		uint8_t inl[RD_MAX_INLINE];
	};
};

enum rd_wc_flags {
	RD_WC_IMM = 1,
	RD_WC_INV = 2,
	RD_WC_SOLICITED = 4,
	RD_WC_GRH = 8, /* 40 bytes of addresses stand before the payload */
};

struct rd_wc {
	uint64_t wr_id;
	uint32_t qpn;
	uint8_t opcode; /* enum rd_opcode: of the request, or RD_RECV, RD_RECV_IMM */
	uint8_t status; /* enum rd_status */
	uint8_t flags;  /* enum rd_wc_flags; RD_WC_SOLICITED decides about a solicited-only arm */
	uint32_t byte_len;
	uint64_t imm;
	uint32_t inv_stag;
	uint32_t src_qp;     /* of a datagram */
	uint32_t vendor_err; /* a reason of the transport */
};

/* ---- Memory ---- */

struct rd_pd {
	uint32_t client; /* owner, for quotas and checks across clients */
	uint32_t refs;   /* regions, windows and QPs in it; counted by the control stage */
};

/* A run of a region that is contiguous for the engine. */
struct rd_extent {
	uint64_t off; /* from the region's start */
	uint64_t len;
	uint8_t *host; /* where the engine sees it */
};

struct rd_mr {
	uint32_t stag;   /* bits 31..8: keyed permutation of the slot; 7..0: key */
	uint32_t access; /* enum rd_access */
	const struct rd_pd *pd;
	uint64_t base; /* address of the first byte; 0 when zero-based */
	uint64_t len;
	uint32_t bound_qpn; /* != 0: only this QP's stream may use it (RFC 5040 7.2) */
	bool valid;         /* false: invalidated, fails each access */
	bool window;        /* it is a struct rd_mw: no memory of its own, no local access */
	uint32_t windows;   /* bound to it, and RD_MR_CLOSED: none may be bound any more. Atomic */
	uint32_t nextents;  /* 1 in the usual case */
	struct rd_extent *extents; /* ascending, gapless, [nextents] */
};
#define RD_MR_CLOSED 0x80000000u

struct rd_mr_table;
struct rd_qp;

/* `slots`: a power of two up to 2^24. */
struct rd_mr_table *rd_mr_table_create(uint32_t slots, const struct sk_key *key);
void rd_mr_table_destroy(struct rd_mr_table *t);
/* Enters `mr` (complete but for its stag, which is set; `key` are the low 8 bits). -ENOSPC. Readers
 * on other lcores see it whole or not at all. */
int rd_mr_add(struct rd_mr_table *t, struct rd_mr *mr, uint8_t key);
/* Takes it out; the caller frees it once no stage can be using it any more. */
void rd_mr_del(struct rd_mr_table *t, struct rd_mr *mr);
/* NULL when there is none. One array access. */
struct rd_mr *rd_mr_lookup(const struct rd_mr_table *t, uint32_t stag);
uint32_t rd_mr_count(const struct rd_mr_table *t);

/* Why an access was refused; the transports map it to their own errors (RFC 5040 7.2, verbs). */
enum rd_fault {
	RD_OK = 0,
	RD_FAULT_STAG,   /* no such STag, or invalidated */
	RD_FAULT_PD,     /* of another protection domain, or bound to another stream */
	RD_FAULT_ACCESS, /* right missing; asked to be invalidated: it cannot be */
	RD_FAULT_BOUNDS, /* base or bounds */
	RD_FAULT_WRAP,   /* address + length wraps */
};

/* Checks a local access of `len` bytes at `addr`: regions alone, windows lack the right (verbs: a
 * window has no lkey). `need`: rights that must all be there; `qpn`: the stream. A length of zero
 * checks nothing but arithmetic and returns RD_OK with *mr NULL when the STag does not exist (RFC
 * 5040: zero-length operations need no valid STag). */
enum rd_fault rd_mr_check(const struct rd_mr_table *t, const struct rd_pd *pd, uint32_t qpn,
	uint32_t stag, uint64_t addr, uint64_t len, uint32_t need, struct rd_mr **mr);
/* The same for an access of the peer of `qp`, which the QP must grant too, last. Where the STag is
 * a window's, *mr becomes the region behind it and *addr the place in that. What was found holds
 * until the stage's next quiet point. */
enum rd_fault rd_remote_check(const struct rd_mr_table *t, const struct rd_qp *qp, uint32_t stag,
	uint64_t *addr, uint64_t len, uint32_t need, struct rd_mr **mr);
/* Whether `stag` may be invalidated by a request of `qp` (a region, or a type 2 window that was
 * bound on it) or, with `remote`, by its peer, who must have been granted something. A region with
 * windows bound to it may not be (RD_FAULT_ACCESS), nor may a type 1 window. */
enum rd_fault rd_invalidate_check(const struct rd_mr_table *t, const struct rd_qp *qp,
	uint32_t stag, bool remote, struct rd_mr **mr);
/* Makes it invalid. false: it stays, a window has been bound to it meanwhile. */
bool rd_mr_invalidate(struct rd_mr *mr);
/* No window can be bound to it any more. false: one is. For the end of a region. */
bool rd_mr_close(struct rd_mr *mr);
/* Where byte `addr` of a checked region stands, and how many bytes are contiguous from there
 * (*run). */
uint8_t *rd_mr_at(const struct rd_mr *mr, uint64_t addr, uint64_t *run);
/* Copies to or from a checked range. Writing: bytes ascend and the last ones are stored last, with
 * release. */
void rd_mr_write(const struct rd_mr *mr, uint64_t addr, const void *src, size_t len);
void rd_mr_read(const struct rd_mr *mr, uint64_t addr, void *dst, size_t len);

/* ---- Memory windows: verbs' types 1 and 2B ---- */

/*
 * A window is an STag that grants a peer a part of a region, with rights of its own, from the bind
 * that a QP executes in its turn. Type 1 belongs to the protection domain: any QP of it binds the
 * window, and each bind replaces what was bound before. Type 2 belongs to the QP that binds it: it
 * serves that stream alone, and must have been invalidated before it is bound again.
 */
enum rd_mw_type { RD_MW_TYPE_1 = 1, RD_MW_TYPE_2 = 2 }; /* as ibv_mw_type */

struct rd_mw {
	struct rd_mr mr; /* first. STag and PD; and, while `valid`, range, rights, QP (type 2) */
	uint8_t type;    /* enum rd_mw_type */
	/* Readers on other stages believe what stands between two reads of the same even number. */
	uint32_t seq;
	struct rd_mr *region; /* that it is bound to, while `valid` */
	uint64_t shift;       /* address in the region less address in the window */
};

struct rd_bind {
	uint32_t stag;   /* the window's, with its new key */
	uint32_t region; /* STag */
	uint64_t addr;   /* in the region */
	uint64_t len;    /* bytes; 0: unbind (type 1) */
	uint32_t access; /* remote rights, RD_ACC_ZERO_BASED (type 2): the first byte has address 0
			  */
};

enum rd_bind_result {
	RD_BIND_DONE,
	RD_BIND_CHANGED, /* done; what was bound before may be in use until others are quiet */
	RD_BIND_BUSY,    /* another stage is binding it just now: again */
	RD_BIND_REFUSED,
};

/* Unbound. Enters the table as &mw->mr, where its slot and STag bits 31..8 stay its own. */
void rd_mw_init(struct rd_mw *mw, const struct rd_pd *pd, enum rd_mw_type type);
struct rd_bind rd_bind_of(const struct rd_wr *wr);
/* Binds on behalf of `qp`. Refused: another PD; not a window, not a region; a type 2 window that is
 * bound, or a bind of no bytes or, type 1, of the key that it has; bytes that the region has not;
 * rights that are not remote; RD_ACC_MW_BIND missing there, or RD_ACC_LOCAL_WRITE for a right to
 * write (verbs). */
enum rd_bind_result rd_mw_bind(
	const struct rd_mr_table *t, const struct rd_qp *qp, const struct rd_bind *b);
/* Before its memory is freed, when no stage can be using it any more. */
void rd_mw_fini(struct rd_mw *mw);

/* ---- Queue pairs ---- */

enum rd_qp_state { RD_QP_RESET, RD_QP_INIT, RD_QP_RTR, RD_QP_RTS, RD_QP_SQD, RD_QP_SQE, RD_QP_ERR };
const char *rd_qp_state_name(enum rd_qp_state s);

struct rd_cq;  /* the engine's */
struct rd_srq; /* the engine's */

struct rd_qp_caps {
	uint32_t sq_depth, rq_depth; /* powers of two */
	uint16_t max_send_sge, max_recv_sge, max_inline;
};

struct rd_qp {
	uint32_t qpn; /* 24 bits, unpredictable, never 0 or 1 */
	enum rd_qp_state state;
	const struct rd_pd *pd;
	struct rd_cq *send_cq, *recv_cq;
	struct rd_srq *srq; /* NULL: own receive queue */
	struct rd_qp_caps caps;
	bool sig_all;      /* each request asks for a completion */
	uint32_t access;   /* remote rights that the QP grants at all: enum rd_access */
	uint16_t ird, ord; /* as negotiated */
	void *user;        /* the engine's */
};

/* What a transport's engine half asks of the engine about a QP. All are called on the QP's own
 * stage. */
struct rd_ops {
	const struct rd_mr_table *mrs;
	/* Takes the next request of the send queue into *wr. false: none is there. Arrived here it
	 * has left shared memory for good; nsge, inline_len are within the QP's caps (a request
	 * that exceeds them arrives with opcode 0xff). */
	bool (*sq_next)(void *ctx, struct rd_qp *qp, struct rd_wr *wr);
	/* Is one there? (Without taking it.) */
	bool (*sq_pending)(void *ctx, struct rd_qp *qp);
	/* Takes the next receive (wr_id, nsge, sge), own or shared. */
	bool (*rq_next)(void *ctx, struct rd_qp *qp, struct rd_wr *wr);
	/* Puts a completion into the send or the receive CQ. A full CQ is the owner's loss: the
	 * engine raises its event. */
	void (*complete)(void *ctx, struct rd_qp *qp, bool recv, const struct rd_wc *wc);
	/* The QP entered the error state, after its work was flushed: `code` is a reason of the
	 * transport, 0 after an orderly end. The engine tells the client. */
	void (*qp_error)(void *ctx, struct rd_qp *qp, int code);
	/* Local or remote invalidation, checked: rd_mr_invalidate(). */
	bool (*invalidate)(void *ctx, struct rd_mr *mr);
	/* Both may be NULL where one stage is all. When every other stage has passed a quiet point
	 * since quiesce(), which gave `token` (0: there is no other), quiesced() is true. */
	uint64_t (*quiesce)(void *ctx);
	bool (*quiesced)(void *ctx, uint64_t token);
};

/* A bind or a local invalidate under way; zero at first. */
struct rd_local {
	uint64_t token;
	bool acted;     /* it has taken effect */
	uint8_t status; /* enum rd_status of RD_LOCAL_REFUSED */
};

enum rd_local_result {
	RD_LOCAL_DONE,
	RD_LOCAL_AGAIN, /* call again: others are not quiet yet */
	RD_LOCAL_REFUSED,
};

/* The request's turn has come (RD_BIND_MW, RD_LOCAL_INV). The caller waits before that for Reads
 * and Atomics of the QP that still fill what is to be invalidated. */
enum rd_local_result rd_local_step(const struct rd_ops *ops, void *ctx, const struct rd_qp *qp,
	const struct rd_wr *wr, struct rd_local *l);

/* Checks the local side of a request (each SGE's lkey, rights, bounds; total length to *total).
 * Returns RD_SUCCESS or the status of the completion. */
enum rd_status rd_sges_check(const struct rd_ops *ops, const struct rd_qp *qp,
	const struct rd_wr *wr, uint32_t need, uint64_t *total, struct rd_mr *mrs[RD_MAX_SGE]);

#define RDMA_REASONS(X)                                                                            \
	X(RDMA_BAD_OPCODE, SK_WARNING, "a work request with an opcode that does not exist")        \
	X(RDMA_BAD_REQUEST, SK_WARNING, "a work request beyond the QP's capabilities")             \
	X(RDMA_LOCAL_PROTECTION, SK_WARNING,                                                       \
		"an lkey, right or bound of a local element is wrong")                             \
	X(RDMA_LOCAL_LENGTH, SK_WARNING,                                                           \
		"a message is longer than the transport or the receive allows")                    \
	X(RDMA_FLUSHED, SK_NORMAL, "a work request was flushed: its QP is in error")

SK_REASONS_DECLARE(rdma, RDMA_NONE, RDMA_REASONS)

#endif
