/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of a QP's iWARP state machine and the file that owns each of them:
 *
 *	iw_qp.c		life: create, start, disconnect, close, entry into ERR
 *	iw_sq.c		requests sent but not yet completed (in posting order), flush
 *	iw_tx.c		the transmit loop: choice of the next message, records
 *	iw_tx_msg.c	the send queue: Send, Write, Immediate Data
 *	iw_tx_local.c	requests that send nothing: bind, local invalidate
 *	iw_tx_fast.c	the fast path of a Send or Write that is one FPDU
 *	iw_tx_run.c	the fast path of a run of small Writes
 *	iw_tx_read.c	outgoing Read Requests and Read Responses
 *	iw_tx_atomic.c	outgoing Atomic Requests; execution of the peer's Atomics
 *	iw_rx.c		incoming FPDUs: versions, opcodes, the table of handlers
 *	iw_rx_run.c	the fast path of small Writes that arrive together
 *	iw_rx_tagged.c	incoming Write and Read Response
 *	iw_rx_untagged.c	incoming Send, Immediate Data and Read Request
 *	iw_rx_atomic.c	incoming Atomic Request and Atomic Response
 *	iw_terminate.c	reason to Terminate; incoming and outgoing Terminates
 */
#ifndef SAKER_IWARP_PRIV_H
#define SAKER_IWARP_PRIV_H

#include "iwarp.h"

/* The least EMSS, in bytes, with which the longest header, a Read Request and a Terminate each fit
 * an FPDU. */
#define IW_EMSS_MIN 256
#define IW_RING_MIN 16 /* the first capacity of a queue, in entries */
/* The number of bytes of a segment that a Terminate may quote. */
#define IW_SEG_HEAD (DDP_MAX + RDMAP_READ_REQUEST_LEN)

enum iw_phase {
	IW_PHASE_NEW, /* not connected */
	IW_PHASE_OPEN,
	IW_PHASE_DRAIN, /* an orderly end: messages in progress are sent, then the stream closes */
	IW_PHASE_ERROR, /* placement has stopped; a Terminate may still have to be sent */
	IW_PHASE_CLOSED,
};

/* A message that a work request describes: outgoing, or a receive that is being filled. It occupies
 * the stage's spare buffer, unless it has to outlast a call. */
struct iw_op {
	uint64_t total; /* bytes of the message, or of the receive's buffers */
	uint64_t taken; /* ns: when an outgoing request left the send queue */
	uint64_t done;
	uint32_t sge, sge_off; /* the element and offset of byte number `done` */
	uint32_t inv_stag;     /* receive: the STag that the peer invalidates */
	uint8_t opcode;        /* RDMAP opcode on the wire */
	uint8_t status;        /* enum rd_status of the completion if the request fails */
	bool checked;          /* mrs[] is valid: it was looked up during this call */
	bool written;          /* RD_WRITE_IMM: the Write has been sent, Immediate Data follows */
	struct rd_local local; /* state of a bind or local invalidate */
	struct rd_mr *mrs[RD_MAX_SGE];
	struct rd_wr wr;
};

enum iw_sqe_flags {
	IW_SQE_READ = 1, /* its Read or Atomic Response has not arrived yet */
	IW_SQE_LAST = 2, /* the last entry of its work request */
	IW_SQE_SIGNALED = 4,
	IW_SQE_INV = 8,      /* the sink's STag is invalidated when the Read is done */
	IW_SQE_ATOMIC = 16,  /* with IW_SQE_READ: an Atomic */
	IW_SQE_SAMPLED = 32, /* its latency counts; without IW_SQE_LAST it has no completion */
};

/* An outstanding Read or Atomic Request, or a request that is sent and completes after the entries
 * before it. */
struct iw_sqe {
	uint64_t wr_id;
	uint64_t to;    /* Read: address in the sink of the next byte */
	uint64_t taken; /* IW_SQE_SAMPLED: when the request left the send queue, ns */
	uint32_t stag;  /* Read: STag of the sink */
	uint32_t left;  /* Read: bytes that have not arrived yet */
	uint32_t total; /* bytes of the work request */
	uint8_t opcode; /* enum rd_opcode */
	uint8_t flags;  /* enum iw_sqe_flags */
};

/* An inbound Read or Atomic Request that has not been answered yet. Both kinds share queue number
 * 1, its message sequence numbers and the IRD (RFC 7306 5.2), and are answered in order. */
struct iw_irqe {
	uint64_t src_to;
	uint32_t src_stag;
	bool atomic;
	uint8_t op; /* enum rdmap_atomic_op */
	union {
		struct {
			uint64_t sink_to;
			uint32_t sink_stag;
			uint32_t len, done;
		};
		struct {
			uint64_t data, data_mask, compare, compare_mask;
			uint32_t request_id;
		};
	};
};

/* Head and tail count entries without bound (modulo 2^32); capacities are powers of two. */
struct iw_sq {
	struct iw_sqe *e;
	uint32_t head, tail, cap;
	uint32_t sent; /* all records of the entries before this index have been handed over */
};

struct iw_irq {
	struct iw_irqe *e;
	uint32_t head, tail, cap;
};

enum iw_midst { IW_MIDST_NONE, IW_MIDST_SQ, IW_MIDST_IRQ };

/* An outgoing message uses the first three cache lines, an incoming one these and the line of the
 * receiver: with thousands of QPs that take turns, each line is a cache miss. */
struct iw_qp {
	_Alignas(64) struct rd_qp *rd;
	struct iw_stage *st;
	struct tcp_rec *rec; /* the record being filled, or one that the transport stage refused */
	struct iw_op *tx_op; /* the request in progress, or waiting for ORD, a fence or room */
	int64_t space;
	struct mpa_tx mtx;
	uint32_t rec_cap;
	uint32_t mulpdu;
	uint8_t phase; /* enum iw_phase */
	/* enum iw_midst: the queue whose message has begun and not ended; no other may intervene */
	uint8_t midst;
	/* Responder: no FPDU has arrived yet, so none may be sent (RFC 5044 7.1.2). */
	bool hold;
	uint8_t rtr; /* the ready-to-receive message still to be sent (enum in mpa_result) */

	struct iw_sq sq;
	struct iw_irq irq;
	uint16_t ird, ord;
	bool irq_turn;
	/* iw_tx() stopped for lack of send space, of a completed Read */
	bool want_space, want_reads;
	bool tx_pages; /* iw_tx() stopped because pages of the memory to send are missing */
	bool kick;     /* iw_rx() has created work for iw_tx() */
	/* The next FPDU needs pages that are missing; the peer's FIN has arrived behind it. */
	bool rx_pages, fin_waits;
	bool write_open; /* the current Write has not ended yet */
	bool peer_fin;
	bool close_called : 1, swallow_rtr : 1;
	bool may_leave : 1;      /* iw_may_leave(), when iw_disconnect() aborted the QP */
	bool draft_ext : 1;      /* iw_params.draft_ext */
	struct rd_sample sample; /* which requests' latencies count */

	uint32_t send_msn, recv_msn; /* of the next outgoing and the next incoming Send */
	uint32_t write_len;          /* bytes of the last or current incoming Write */
	uint32_t reads_out;
	struct iw_info info; /* the counts of messages and bytes are in this cache line */

	uint32_t read_msn, irq_msn; /* of the next outgoing and the next incoming Read Request */
	uint32_t answer_msn;        /* of the next outgoing Atomic Response */
	/* The nth outgoing Atomic Request, counted from 1, carries n as its identifier; its
	 * response carries n as its message sequence number. */
	uint32_t atomic_next, atomic_due;
	struct iw_op *rx_op;
	_Alignas(64) struct mpa_rx mrx;

	/* Fields for the end of the stream. */
	uint32_t drain_left; /* number of requests that may still be taken from the send queue */
	uint32_t bad_read;   /* index in sq of the Read that the peer refused */
	uint8_t bad_status;  /* enum rd_status of that Read; 0: none was refused */
	bool started;
	uint8_t term_len;
	uint8_t term[RDMAP_TERMINATE_MAX];
	int error; /* the first reason for which the QP failed */
};
_Static_assert(offsetof(struct iw_qp, sq) == 64 && offsetof(struct iw_qp, send_msn) == 128 &&
		       offsetof(struct iw_qp, info.bytes_in) == 168,
	"the cache lines that each message uses");

static inline void
iw_count(struct iw_qp *q, enum iw_reason reason)
{
	sk_count(q->st->counters, reason);
}

/* A handler of a segment returns it when pages of the target are missing. The handler has changed
 * nothing that a second call for the same segment would change again. */
#define IW_RX_LATER (-1)

/* Returns whether `n` bytes (at least 1) of a checked range can be accessed now. Otherwise the
 * pages of `ahead` bytes are requested, and iw_pages() follows. */
static inline bool
iw_ready(struct iw_qp *q, const struct rd_mr *mr, uint64_t addr, uint64_t n, uint64_t ahead)
{
	return rd_ready(&q->st->ops.rd, q->st->ctx, q->rd, mr, addr, n, ahead);
}

/* iw_qp.c */
struct iw_op *iw_op_take(struct iw_stage *st);
void iw_op_release(struct iw_stage *st, struct iw_op *op);
/* Moves the QP to ERR: stops placement, flushes all work and reports `reason` to the engine. */
void iw_enter_error(struct iw_qp *q, int reason);
void iw_close_once(struct iw_qp *q, enum iw_close how);

/* iw_sq.c */
/* Reserves one more entry. Returns false if the queue has reached its limit (send queue depth plus
 * ORD), if no memory is available, or if the queue was never used and no request is posted. */
bool iw_sq_reserve(struct iw_qp *q);
/* Appends the reserved entry and returns it. */
struct iw_sqe *iw_sq_push(struct iw_qp *q);
/* Queues the completion of the request `op`, whose message of `bytes` payload bytes is complete.
 * The completion is reported in posting order, after the record has been handed over. An unsignaled
 * request has none. */
void iw_sq_done(struct iw_qp *q, const struct iw_op *op, uint32_t bytes);
/* Makes the latency of the request count for whose entry rd_sample_due() returned true. `taken`:
 * when the request left the send queue, ns. */
void iw_sq_sample(struct iw_qp *q, struct iw_sqe *e, uint64_t taken);
/* Does the same for a request that was sent in this call, and whose entry, if it is signaled, is
 * the last one. Otherwise takes the reserved entry. */
void iw_sq_sample_last(struct iw_qp *q, bool signaled);
/* Marks all entries as sent, because all records have been handed over, and reports the completions
 * that no Read or Atomic holds back. */
void iw_sq_sent(struct iw_qp *q);
/* Returns the Read or Atomic whose response is due next, or NULL if none is outstanding. */
struct iw_sqe *iw_sq_read(struct iw_qp *q);
/* Ends the Read or Atomic that iw_sq_read() returns: its response is complete. Returns false if its
 * sink's STag was to be invalidated and cannot be. */
bool iw_sq_read_done(struct iw_qp *q);
/* Returns whether an outstanding Read or Atomic fills the region with this STag. */
bool iw_sq_fills(const struct iw_qp *q, uint32_t stag);
/* Records that the peer refused the Read or Atomic Request with this message sequence number. Its
 * work request completes with `status` at the flush. */
void iw_sq_read_refused(struct iw_qp *q, uint32_t msn, enum rd_status status);
/* Does the same for a Terminate that does not identify the message: assigns `status` to the oldest
 * outstanding Atomic, if there is one. */
void iw_sq_atomic_refused(struct iw_qp *q, enum rd_status status);
/* Flush the requests, and the receive, that were taken from the queues. */
void iw_sq_flush(struct iw_qp *q);
void iw_rq_flush(struct iw_qp *q);
/* Flush up to `most` of those that are in the queues. Return whether there may be more. */
bool iw_sq_flush_queue(struct iw_qp *q, uint32_t most);
bool iw_rq_flush_queue(struct iw_qp *q, uint32_t most);
bool iw_signaled(const struct iw_qp *q, const struct rd_wr *wr);

/* iw_tx.c */
enum iw_step {
	IW_STEP_DID,   /* a segment was written into a record */
	IW_STEP_NONE,  /* there is nothing to do */
	IW_STEP_WAIT,  /* waiting for outstanding Reads, a fence or the first FPDU */
	IW_STEP_NOBUF, /* no record is available, or the transport stage refused one */
	IW_STEP_PAGES, /* waiting for pages of the client's memory (iw_pages()) */
	IW_STEP_DEAD,  /* the QP has failed */
};
/* Makes room in q->rec for an FPDU whose ULPDU has `ulpdu_len` bytes; hands over a record that is
 * too full and gets a new one. Returns false if the transport stage refuses the full record or no
 * record is available. */
bool iw_rec_room(struct iw_qp *q, uint32_t ulpdu_len);
/* Hands the record over to the transport stage, if there is one. Returns false, and keeps the
 * record, if the stage's ring is full. */
bool iw_rec_send(struct iw_qp *q);
/* Adds an FPDU of `len` bytes that was written behind the record's bytes. `sum` is its Internet
 * checksum, or 0 on a connection without CRCs, whose bytes are not passed over for a sum alone. */
static inline void
iw_rec_add(struct iw_qp *q, uint32_t len, uint64_t sum)
{
	q->rec->len += len;
	q->rec->sum = sk_sum_fold(sk_sum_add(q->rec->sum, sum));
	q->space -= len;
}
/* Writes `pad` bytes of pad (at most 3) and the CRC behind the bytes of `c`, which end at `at`, of
 * an FPDU without markers. Returns the Internet checksum of all bytes. */
static inline uint64_t
iw_fpdu_end(uint8_t *at, uint32_t pad, struct sk_check c, bool use_crc)
{
	static const uint8_t zero[4];

	if (pad > 0) {
		memcpy(at, zero, 4);
		c.crc = sk_crc32c((uint32_t)c.crc, zero, pad);
	}
	mpa_crc_put(at + pad, &c, use_crc);
	return c.sum;
}
/* Writes one FPDU, the header and `n` bytes of body, into the room that iw_rec_room() made. */
void iw_emit(struct iw_qp *q, const struct wire_ddp *d, const void *body, uint32_t n);
/* Begin and end an FPDU whose body of `n` bytes the caller gathers with mpa_write_put() in
 * between. */
void iw_emit_begin(struct iw_qp *q, struct mpa_writer *w, const struct wire_ddp *d, uint32_t n);
void iw_emit_end(struct iw_qp *q, struct mpa_writer *w);
/* Returns the payload bytes of the next segment of a message with `left` bytes to go, behind a
 * header of `hdr_len` bytes. */
uint32_t iw_seg_len(const struct iw_qp *q, uint32_t hdr_len, uint64_t left);

/* iw_tx_msg.c */
enum iw_step iw_sq_step(struct iw_qp *q);
/* Refuses a wrong request: it completes with `status`, all others are flushed, and the stream ends
 * (RFC 5040 7.1). */
enum iw_step iw_refuse(struct iw_qp *q, struct iw_op *op, enum rd_status status);
/* Completes a Send or Write whose last segment has been built. */
void iw_message_done(struct iw_qp *q, struct iw_op *op, uint32_t bytes);

/* iw_tx_local.c */
enum iw_step iw_local_step(struct iw_qp *q, struct iw_op *op);

/* iw_tx_fast.c: Sends all of a request that has just been taken from the queue. Returns false,
 * without an effect, if the request needs the general path. */
bool iw_tx_fast(struct iw_qp *q, struct iw_op *op);

/* iw_tx_run.c: Sends the next requests of the send queue as long as they are small Writes that need
 * nothing of the general path, at most `budget`, and sets *sent to their number. Returns
 * IW_STEP_DID if some were sent, IW_STEP_NONE if nothing is left to send, IW_STEP_WAIT if the
 * general path has to continue, or IW_STEP_NOBUF. */
enum iw_step iw_tx_run(struct iw_qp *q, unsigned budget, unsigned *sent);

/* iw_tx_read.c */
enum iw_step iw_read_step(struct iw_qp *q, struct iw_op *op);
enum iw_step iw_irq_step(struct iw_qp *q);
/* Writes a Read or Atomic Request into the room that iw_rec_room() made. */
void iw_request_emit(struct iw_qp *q, uint8_t opcode, const uint8_t *body, uint32_t n);
/* Returns whether one more Read or Atomic may be outstanding (ORD, entries). If not, iw_tx() is
 * called again when one is done. */
bool iw_request_may(struct iw_qp *q);
/* Fails the QP because the oldest inbound request cannot be answered any more. The Terminate quotes
 * the request as it arrived (RFC 5040 7.2). */
enum iw_step iw_irq_fail(struct iw_qp *q, const struct iw_irqe *e, enum iw_reason reason);

/* iw_tx_atomic.c */
/* Checks that the sink has one element of 8 bytes, and that the connection supports the
 * operation. */
enum rd_status iw_atomic_check(const struct iw_qp *q, const struct iw_op *op);
enum iw_step iw_atomic_step(struct iw_qp *q, struct iw_op *op);
/* Executes the oldest inbound request, which is an Atomic, and answers it. */
enum iw_step iw_atomic_answer(struct iw_qp *q, const struct iw_irqe *e);
/* Sends the ready-to-receive message of RFC 6581 9.2 (iw_tx_read.c). */
enum iw_step iw_rtr_step(struct iw_qp *q);

/* iw_rx_run.c: Places the next FPDUs as long as they are small Writes that need nothing of the
 * general path. Returns the stream bytes that were consumed. */
uint32_t iw_rx_run(struct iw_qp *q);

/* iw_rx_tagged.c, iw_rx_untagged.c, iw_rx_atomic.c: each function handles one segment and returns
 * 0, IW_RX_LATER, or the reason why it refuses the segment. `head` holds the segment's first
 * IW_SEG_HEAD bytes, or all of it if it is shorter. */
int iw_rx_write(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head);
int iw_rx_read_response(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head);
int iw_rx_send(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head);
int iw_rx_immediate(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head);
int iw_rx_read_request(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head);
int iw_rx_atomic_request(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head);
int iw_rx_atomic_response(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head);
/* iw_rx.c: Fails the oldest outstanding Read or Atomic, whose response is refused, with `status`.
 * Returns `reason`. */
int iw_rx_response_refuse(struct iw_qp *q, enum rd_status status, int reason);
/* Checks that a segment on queue number 1 is the next message, complete, with `want` bytes behind
 * the DDP header. Returns 0 or a reason; the reason for fewer bytes is `too_short`. */
int iw_rx_queue1(const struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d,
	uint32_t want, enum iw_reason too_short);
/* Reserves an entry for one more inbound request, within the IRD. Returns 0 and sets *e, or returns
 * a reason. The entry counts after iw_irq_push(). */
int iw_irq_reserve(struct iw_qp *q, struct iw_irqe **e);
void iw_irq_push(struct iw_qp *q);
/* Returns the reason for a Read or Atomic that is refused because of `fault` at its target. */
enum iw_reason iw_rdmap_reason(enum rd_fault fault);
/* Places `len` bytes of the ULPDU, from offset `off`, in a checked range; stores the last bytes
 * last. */
void iw_place(const struct mpa_fpdu *f, uint32_t off, const struct rd_mr *mr, uint64_t addr,
	uint32_t len);
/* Does the same for at least 1 byte if the pages are present. Otherwise places nothing, requests
 * the pages of `ahead` bytes, and returns false. */
static inline bool
iw_place_ready(struct iw_qp *q, const struct mpa_fpdu *f, uint32_t off, const struct rd_mr *mr,
	uint64_t addr, uint32_t len, uint64_t ahead)
{
	uint8_t *p = rd_mr_page(mr, addr, len);

	if (p == NULL && !rd_fetch(&q->st->ops.rd, q->st->ctx, q->rd, mr, addr, len, ahead))
		return false;
	if (p != NULL && f->flat != NULL)
		rd_copy(p, f->flat + off, len);
	else
		iw_place(f, off, mr, addr, len);
	return true;
}

/* iw_terminate.c */
/* Fails the QP for `reason` and prepares the Terminate. `seg` points to the first `have` bytes of
 * the faulty segment, which has seg_len bytes in all, or is NULL. */
void iw_fail(struct iw_qp *q, enum iw_reason reason, const uint8_t *seg, uint32_t have,
	uint32_t seg_len);
int iw_rx_terminate(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head);
/* Sends the pending Terminate, then closes the stream. Returns false if it must be called again. */
bool iw_terminate_step(struct iw_qp *q);

#endif
