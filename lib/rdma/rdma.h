/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RDMA objects, common to both transports: protection domains, memory regions, memory windows,
 * queue pairs and work requests. This library contains no wire format and no shared memory: struct
 * rd_ops supplies work requests and takes completions.
 *
 * Opcodes, status codes, access rights, elements and completions are part of libsaker's interface,
 * and declared there.
 */
#ifndef SAKER_RDMA_H
#define SAKER_RDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../base/prf.h"
#include "../base/probe.h"
#include "../saker/types.h"

/* A work request, copied to memory that the client cannot write. */
struct rd_wr {
	uint64_t wr_id;
	uint8_t opcode; /* enum rd_opcode; not yet checked, so any value */
	uint8_t flags;  /* enum rd_wr_flags */
	uint8_t nsge;   /* at most RD_MAX_SGE */
	uint32_t rkey;  /* remote STag */
	uint64_t remote_addr;
	/* Immediate data (verbs use the low 32 bits). In the low 32 bits: the STag to invalidate;
	 * of a bind, the region's STag. */
	uint64_t imm;
	uint32_t inline_len;            /* bytes at inl, with RD_INLINE */
	uint64_t data, data_mask;       /* swap or add operand; of a bind, the length in bytes */
	uint64_t compare, compare_mask; /* compare operand; of a bind, the rights */
	/* Datagrams: handle of the address handle; QP and Q_Key of the receiver. */
	uint32_t ah, remote_qpn, remote_qkey;
	uint32_t remote_srqn; /* XRC: number of the receiver's shared receive queue */
	union {
		struct rd_sge sge[RD_MAX_SGE];
		uint8_t inl[RD_MAX_INLINE];
	};
};

/* A Write with one element, as rd_ops.sq_writes() copies it. 48 bytes. */
struct rd_write {
	uint64_t wr_id;
	uint64_t remote_addr, addr; /* in the peer's region; in the local one */
	uint32_t rkey, lkey;
	uint32_t len; /* bytes */
	uint8_t flags;
};

/* ---- Memory ---- */

struct rd_pd {
	uint32_t client; /* its owner */
	uint32_t refs;   /* regions, windows and QPs in it; the control stage counts them */
};

/* A part of a region that is contiguous in the engine's address space. */
struct rd_extent {
	uint64_t off;  /* bytes from the start of the region */
	uint64_t len;  /* bytes */
	uint8_t *host; /* its address in the engine */
};

struct rd_mr {
	uint32_t stag;   /* bits 31..8: keyed permutation of the slot; 7..0: key */
	uint32_t access; /* enum rd_access */
	const struct rd_pd *pd;
	uint64_t base; /* address of the first byte; 0 when zero-based */
	uint64_t len;
	uint32_t bound_qpn; /* != 0: only this QP's stream may use it (RFC 5040 7.2) */
	bool valid;         /* false: it has been invalidated, and every access fails */
	bool window;        /* part of a struct rd_mw: no memory of its own, no local access */
	uint32_t windows;   /* atomic: how many are bound to it | RD_MR_CLOSED */
	uint32_t nextents;  /* usually 1 */
	struct rd_extent *extents; /* ascending, gapless, [nextents] */
};
#define RD_MR_CLOSED 0x80000000u /* no window can be bound to the region any more */

struct rd_mr_table;
struct rd_qp;

/* Creates a table of `slots` entries, a power of two up to 2^24. `key` makes STags unpredictable.
 * Returns NULL when memory is exhausted. */
struct rd_mr_table *rd_mr_table_create(uint32_t slots, const struct sk_key *key);
void rd_mr_table_destroy(struct rd_mr_table *t);
/* Enters `mr`, which is complete except for `stag`, and sets that; `key`: its low 8 bits. Readers
 * on other lcores see the whole region or none. Returns 0, or -ENOSPC when the table is full. */
int rd_mr_add(struct rd_mr_table *t, struct rd_mr *mr, uint8_t key);
/* Puts `mr`, which is complete except for `stag`, in the place of `old`, whose STag it gets.
 * Readers on other lcores see the one or the other. The caller frees `old` as after rd_mr_del(). */
void rd_mr_replace(struct rd_mr_table *t, const struct rd_mr *old, struct rd_mr *mr);
/* Removes `mr`. The caller frees it after all stages have passed a quiet point. */
void rd_mr_del(struct rd_mr_table *t, struct rd_mr *mr);
/* Returns the region with this STag, or NULL, with one array access. */
struct rd_mr *rd_mr_lookup(const struct rd_mr_table *t, uint32_t stag);
uint32_t rd_mr_count(const struct rd_mr_table *t);

/* Why an access was refused. The transports map it to their own errors (RFC 5040 7.2, verbs). */
enum rd_fault {
	RD_OK = 0,
	RD_FAULT_STAG,   /* no such STag, or invalidated */
	RD_FAULT_PD,     /* of another protection domain, or bound to another stream */
	RD_FAULT_ACCESS, /* a right is missing; of an invalidation: it cannot be invalidated */
	RD_FAULT_BOUNDS, /* base or bounds violation */
	RD_FAULT_WRAP,   /* address + length exceeds 2^64 */
};

/* Checks a local access of `len` bytes at `addr`. `need`: the rights that must all be present;
 * `qpn`: the QP. A window fails with RD_FAULT_ACCESS, because it has no lkey (verbs). With a length
 * of zero only the arithmetic is checked, and an STag that does not exist gives RD_OK with *mr NULL
 * (RFC 5040: operations of length zero need no valid STag). */
enum rd_fault rd_mr_check(const struct rd_mr_table *t, const struct rd_pd *pd, uint32_t qpn,
	uint32_t stag, uint64_t addr, uint64_t len, uint32_t need, struct rd_mr **mr);
/* Checks an access of the peer of `qp`; last, the QP itself must grant the rights. For a window's
 * STag, *mr becomes the region behind the window and *addr the address in that region. The result
 * is valid until the next quiet point of the stage. */
enum rd_fault rd_remote_check(const struct rd_mr_table *t, const struct rd_qp *qp, uint32_t stag,
	uint64_t *addr, uint64_t len, uint32_t need, struct rd_mr **mr);
/* Checks that a request of `qp` may invalidate `stag`: a region, or a type 2 window that was bound
 * on `qp`. `remote`: the request is the peer's, and the region must grant a remote right. A region
 * with windows bound to it, and a type 1 window, give RD_FAULT_ACCESS. */
enum rd_fault rd_invalidate_check(const struct rd_mr_table *t, const struct rd_qp *qp,
	uint32_t stag, bool remote, struct rd_mr **mr);
/* Makes a region or window invalid. Returns false, and changes nothing, when a window has been
 * bound to the region meanwhile. */
bool rd_mr_invalidate(struct rd_mr *mr);
/* Prevents that windows are bound to a region, before its end. Returns false when one is bound. */
bool rd_mr_close(struct rd_mr *mr);
/* Returns where the engine finds `addr` of a checked range. *run: the number of contiguous bytes
 * from there on. */
uint8_t *rd_mr_at(const struct rd_mr *mr, uint64_t addr, uint64_t *run);
/* A region that consecutive accesses use, looked up once, and its only extent. Valid until the next
 * quiet point of the stage; zero: no region. */
struct rd_span {
	uint64_t base, len; /* addresses of the region, bytes */
	uint8_t *host;      /* NULL: no region */
	uint32_t stag;
};
/* Makes the checks of rd_mr_check() that do not depend on the address, or with `remote` those of
 * rd_remote_check(). Returns false if one fails, or if each access needs those functions: the STag
 * is a window's, or the region has several extents. */
bool rd_span_find(const struct rd_mr_table *t, const struct rd_qp *qp, uint32_t stag, uint32_t need,
	bool remote, struct rd_span *out);
/* Returns the engine's address of `n` bytes (n > 0) at `addr`, or NULL if they exceed the region.
 */
static inline uint8_t *
rd_span_at(const struct rd_span *s, uint64_t addr, uint64_t n)
{
	uint64_t off = addr - s->base;

	return off < s->len && n <= s->len - off ? s->host + off : NULL;
}
/* Copies bytes to a checked range, in ascending order: the last bytes are stored last, with release
 * semantics, for programs that poll on them. */
void rd_mr_write(const struct rd_mr *mr, uint64_t addr, const void *src, size_t len);
/* Copies bytes from a checked range. */
void rd_mr_read(const struct rd_mr *mr, uint64_t addr, void *dst, size_t len);
/* Does the same, and returns the Internet checksum of the bytes copied (sk_sum_copy()). */
uint64_t rd_mr_read_sum(const struct rd_mr *mr, uint64_t addr, void *dst, size_t len);
/* Copies bytes to `dst`, in the order of rd_mr_write(). len > 0. */
void rd_copy(uint8_t *dst, const uint8_t *src, size_t len);
/* Does the same, with a short way for an aligned word. */
static inline void
rd_place(uint8_t *dst, const uint8_t *src, size_t len)
{
	uint64_t word;

	if (len != sizeof(word) || (uintptr_t)dst % sizeof(word) != 0) {
		rd_copy(dst, src, len);
		return;
	}
	memcpy(&word, src, sizeof(word));
	__atomic_store_n((uint64_t *)(void *)dst, word, __ATOMIC_RELEASE);
}
/* Returns the engine's address of a checked range (len > 0) that lies on one page, which is
 * present; otherwise NULL. */
static inline uint8_t *
rd_mr_page(const struct rd_mr *mr, uint64_t addr, uint64_t len)
{
	uint8_t *p = mr->extents->host + (addr - mr->base);

	if ((uintptr_t)p % SK_PROBE_PAGE + len > SK_PROBE_PAGE || mr->nextents != 1)
		return NULL;
	return sk_probe(p) ? p : NULL;
}
/* Returns the engine's address of the first byte of a checked range whose page is missing, because
 * its owner never touched it or has removed it, and sets *addr to its address in the region; NULL:
 * all pages are present. len > 0. *run: the number of contiguous bytes from that byte on. */
const uint8_t *rd_mr_missing(const struct rd_mr *mr, uint64_t *addr, uint64_t len, uint64_t *run);

/* ---- Memory windows: verbs' types 1 and 2B ---- */

/*
 * A window is an STag that grants a peer access to a part of a region, with rights of its own, from
 * the moment when a QP executes the bind. A type 1 window belongs to the protection domain: any QP
 * of the domain binds it, and each bind replaces the one before. A type 2 window belongs to the QP
 * that binds it: it serves that stream only, and must be invalidated before the next bind.
 */

struct rd_mw {
	struct rd_mr mr; /* first member. STag and PD; while `valid`: range, rights, QP (type 2) */
	uint8_t type;    /* enum rd_mw_type */
	/* Sequence lock: odd while a bind changes the window. Readers on other stages use values
	 * that they read between two reads of the same even number. */
	uint32_t seq;
	struct rd_mr *region; /* while `valid`: the region that the window is bound to */
	uint64_t shift;       /* address in the region minus address in the window */
};

struct rd_bind {
	uint32_t stag;   /* the window's, with its new key */
	uint32_t region; /* STag */
	uint64_t addr;   /* in the region */
	uint64_t len;    /* bytes; 0: unbind (type 1) */
	uint32_t access; /* remote rights; type 2: also RD_ACC_ZERO_BASED */
};

enum rd_bind_result {
	RD_BIND_DONE,
	RD_BIND_CHANGED, /* done; other stages use the former bind up to their next quiet point */
	RD_BIND_BUSY,    /* another stage is binding the window: call again */
	RD_BIND_REFUSED,
};

/* Initialises an unbound window. It enters the table as &mw->mr, and keeps its slot, and with it
 * bits 31..8 of its STag, until its end. */
void rd_mw_init(struct rd_mw *mw, const struct rd_pd *pd, enum rd_mw_type type);
/* Returns the bind that a work request with RD_BIND_MW describes. */
struct rd_bind rd_bind_of(const struct rd_wr *wr);
/* Binds a window on behalf of `qp`. RD_BIND_REFUSED: window, region and QP are not of one PD; an
 * STag is not a window's, or not a region's; type 2: the window is bound, or the bind has no bytes;
 * type 1: the key is the present one; the range exceeds the region; rights that are not remote
 * ones; the region lacks RD_ACC_MW_BIND, or RD_ACC_LOCAL_WRITE for a right to write (verbs). */
enum rd_bind_result rd_mw_bind(
	const struct rd_mr_table *t, const struct rd_qp *qp, const struct rd_bind *b);
/* Ends a window before its memory is freed. No stage uses it any more. */
void rd_mw_fini(struct rd_mw *mw);

/* ---- Queue pairs ---- */

/* Returns the name of a state, in lower case; "unknown" for other values. */
const char *rd_qp_state_name(enum rd_qp_state s);

struct rd_cq;  /* defined by the engine */
struct rd_srq; /* defined by the engine */

struct rd_qp_caps {
	uint32_t sq_depth, rq_depth; /* powers of two */
	uint16_t max_send_sge, max_recv_sge, max_inline;
};

struct rd_qp {
	uint32_t qpn; /* 24 bits, unpredictable, never 0 or 1 */
	enum rd_qp_state state;
	const struct rd_pd *pd;
	struct rd_cq *send_cq, *recv_cq;
	struct rd_srq *srq; /* NULL: the QP has a receive queue of its own */
	struct rd_qp_caps caps;
	bool sig_all;      /* each request has a completion */
	uint32_t access;   /* remote rights that the QP grants: enum rd_access */
	uint16_t ird, ord; /* as negotiated */
};

/* The functions of the engine stage that a transport's QP operations call. All calls are made on
 * the stage that the QP belongs to. */
struct rd_ops {
	const struct rd_mr_table *mrs;
	/* Takes the next request of the send queue. The result is a copy in private memory; nsge
	 * and inline_len are within the QP's capabilities (a request that exceeds them has opcode
	 * 0xff). Returns false when the queue is empty. */
	bool (*sq_next)(void *ctx, struct rd_qp *qp, struct rd_wr *wr);
	/* Returns whether the send queue has a request, and leaves it there. */
	bool (*sq_pending)(void *ctx, struct rd_qp *qp);
	/* Copies the next requests of the send queue, at most `n`, as long as they are Writes with
	 * one element and no other flags than RD_SIGNALED and RD_SOLICITED. The requests stay in
	 * the queue; what a client makes of them later does not change the copies. Returns their
	 * number, and sets *more: whether the queue may have further requests. NULL: a transport
	 * takes one request after the other. */
	unsigned (*sq_writes)(
		void *ctx, struct rd_qp *qp, struct rd_write *out, unsigned n, bool *more);
	/* Takes the first `n` of the requests that sq_writes() has copied since. */
	void (*sq_took)(void *ctx, struct rd_qp *qp, unsigned n);
	/* Takes the next receive (wr_id, nsge, sge) of the QP's own or shared queue. Returns false
	 * when the queue is empty. */
	bool (*rq_next)(void *ctx, struct rd_qp *qp, struct rd_wr *wr);
	/* Puts a completion into the send CQ, or, with `recv`, the receive CQ. When the CQ is full,
	 * the completion is lost and the engine raises an event. */
	void (*complete)(void *ctx, struct rd_qp *qp, bool recv, const struct rd_wc *wc);
	/* Reports that the QP entered the error state and that its work was flushed; the engine
	 * raises an event. `code`: a reason of the transport, 0 after an orderly end. With
	 * `flush_later`, only the requests were flushed that had been taken from the queues: the
	 * engine then calls iw_flush() or rof_flush() until the queues are empty. */
	void (*qp_error)(void *ctx, struct rd_qp *qp, int code);
	bool flush_later;
	/* Executes a local or remote invalidation that has been checked: rd_mr_invalidate(). */
	bool (*invalidate)(void *ctx, struct rd_mr *mr);
	/* quiesce() returns a token, or 0 when there is no other stage. quiesced() returns whether
	 * every other stage has passed a quiet point since then. Both may be NULL when there is one
	 * stage only. */
	uint64_t (*quiesce)(void *ctx);
	bool (*quiesced)(void *ctx, uint64_t token);
	/* Requests missing pages: `len` bytes at `at`, of which the owner may fetch a part. The QP
	 * waits until the owner calls the transport's function that continues (iw_pages(),
	 * rof_pages()). NULL: no page is ever missing. */
	void (*fetch)(void *ctx, struct rd_qp *qp, const uint8_t *at, uint64_t len);
};

/* Does the work of rd_ready() for a range that is not on one page that is present. */
bool rd_fetch(const struct rd_ops *ops, void *ctx, struct rd_qp *qp, const struct rd_mr *mr,
	uint64_t addr, uint64_t len, uint64_t ahead);

/* Returns whether all pages of a checked range are present, so that an access neither allocates
 * memory nor waits. Otherwise requests the missing pages: those of `ahead` bytes (at least `len`),
 * which the QP will access next. */
static inline bool
rd_ready(const struct rd_ops *ops, void *ctx, struct rd_qp *qp, const struct rd_mr *mr,
	uint64_t addr, uint64_t len, uint64_t ahead)
{
	if (rd_mr_page(mr, addr, len) != NULL)
		return true;
	return rd_fetch(ops, ctx, qp, mr, addr, len, ahead);
}

/* The progress of a bind or a local invalidate; zero at first. */
struct rd_local {
	uint64_t token; /* of quiesce() */
	bool acted;     /* it has taken effect */
	uint8_t status; /* with RD_LOCAL_REFUSED: enum rd_status */
};

enum rd_local_result {
	RD_LOCAL_DONE,
	RD_LOCAL_AGAIN, /* call again: other stages have not passed a quiet point yet */
	RD_LOCAL_REFUSED,
};

/* Executes RD_BIND_MW or RD_LOCAL_INV when it is the next request in order. The caller first waits
 * for the QP's Reads and Atomics that still write to the region that is to be invalidated. */
enum rd_local_result rd_local_step(const struct rd_ops *ops, void *ctx, const struct rd_qp *qp,
	const struct rd_wr *wr, struct rd_local *l);

/* Checks the local elements of a request: lkey, rights and bounds of each, and for RD_READ_INV that
 * all are in one region. *total: their length in bytes. Returns RD_SUCCESS or the status of the
 * completion. */
enum rd_status rd_sges_check(const struct rd_ops *ops, const struct rd_qp *qp,
	const struct rd_wr *wr, uint32_t need, uint64_t *total, struct rd_mr *mrs[RD_MAX_SGE]);

#endif
