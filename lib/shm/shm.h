/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract between a client and the engine: the layout of the memory that they share.
 * shm_msg.h has the messages in its mailbox, and shm_sock.h those of the Unix socket. The layout
 * contains offsets and no pointers. Entries have fixed sizes. All values are in host byte order,
 * because both sides run on one host.
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

#include "../rdma/rdma.h"

#define SHM_MAGIC      0x53414b4552303031ull /* "SAKER001" */
#define SHM_VERSION    7
#define SHM_LINE       64
#define SHM_MAX_STAGES 64          /* limit of engine stages in this layout */
#define SHM_NAME_MAX   32          /* bytes of a name, with its NUL */
#define SHM_NONE       0xffffffffu /* in the place of a handle: no object */

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

/* The messages that wake a client. */
enum shm_sleep {
	SHM_AWAKE = 0,        /* none */
	SHM_SLEEPS = 1,       /* replies, events and completion events */
	SHM_SLEEPS_EVENTS = 2 /* events and completion events */
};

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
	_Alignas(SHM_LINE) uint32_t client_sleeps; /* client writes: enum shm_sleep */
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
 * 0 over all laps, modulo 2^32, as entry numbers are. */
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

/* A completion. The content of the last member depends on the others: with another status than
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

#endif
