/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of a QP's iWARP half. Who owns what:
 *
 *	iw_qp.c		life: create, start, disconnect, close, the way into ERR
 *	iw_sq.c		requests that are sent but not yet completed (posting order), flush
 *	iw_tx.c		the loop: which message is next, records
 *	iw_tx_msg.c	the send queue: Send, Write
 *	iw_tx_local.c	requests that send nothing: bind, local invalidate
 *	iw_tx_fast.c	the usual Send or Write, in one go
 *	iw_tx_read.c	Read Requests and Read Responses out
 *	iw_tx_atomic.c	Atomic Requests out; those of the peer executed and answered
 *	iw_rx.c		FPDUs in: versions, opcodes, the table of handlers
 *	iw_rx_tagged.c	Write and Read Response in
 *	iw_rx_untagged.c Send, Immediate Data and Read Request in
 *	iw_rx_atomic.c	Atomic Request and Atomic Response in
 *	iw_terminate.c	reason -> Terminate, Terminates in and out
 */
#ifndef SAKER_IWARP_PRIV_H
#define SAKER_IWARP_PRIV_H

#include "iwarp.h"

#define IW_EMSS_MIN                                                                                \
	256            /* so that the largest header, a Read Request and a Terminate fit an FPDU   \
			*/
#define IW_RING_MIN 16 /* entries of a queue when it is first needed */
#define IW_SEG_HEAD                                                                                \
	(DDP_MAX + RDMAP_READ_REQUEST_LEN) /* as much of a segment as a Terminate may quote */
#define IW_TERM_ROOM (DDP_MAX + RDMAP_TERMINATE_MAX)

enum iw_phase {
	IW_PHASE_NEW, /* not connected */
	IW_PHASE_OPEN,
	IW_PHASE_DRAIN, /* an orderly end: what is under way goes out, then close */
	IW_PHASE_ERROR, /* placement has stopped; perhaps a Terminate has still to go */
	IW_PHASE_CLOSED,
};

/* A message that a work request describes: outgoing, or a receive being filled. Lives in the
 * stage's spare unless it outlasts a call. */
struct iw_op {
	uint64_t total; /* bytes of the message, or of the receive's buffers */
	uint64_t done;
	uint32_t sge, sge_off; /* where byte `done` stands */
	uint32_t inv_stag;     /* receive: the STag that the peer wants invalidated */
	uint8_t opcode;        /* RDMAP opcode on the wire */
	uint8_t status;        /* enum rd_status when it fails */
	bool checked;          /* mrs[] were looked up during this call */
	bool written;          /* RD_WRITE_IMM: the Write is out, Immediate Data follows */
	struct rd_local local; /* bind, local invalidate */
	struct rd_mr *mrs[RD_MAX_SGE];
	struct rd_wr wr;
};

enum iw_sqe_flags {
	IW_SQE_READ = 1, /* its Read or Atomic Response is still to come */
	IW_SQE_LAST = 2, /* ends a work request */
	IW_SQE_SIGNALED = 4,
	IW_SQE_INV = 8,     /* invalidate the sink when the Read is done */
	IW_SQE_ATOMIC = 16, /* with IW_SQE_READ: an Atomic */
};

/* One outstanding Read or Atomic Request, or a request that waits for its turn to complete. */
struct iw_sqe {
	uint64_t wr_id;
	uint64_t to;    /* Read: sink of the next byte */
	uint32_t stag;  /* Read: sink */
	uint32_t left;  /* Read: bytes still to come */
	uint32_t total; /* bytes of the work request */
	uint8_t opcode; /* enum rd_opcode */
	uint8_t flags;  /* enum iw_sqe_flags */
};

/* An inbound Read or Atomic Request that is not yet answered: they share queue number 1, its
 * message sequence numbers and IRD (RFC 7306 5.2), and are answered in order. */
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

/* Indices run freely; capacities are powers of two. */
struct iw_sq {
	struct iw_sqe *e;
	uint32_t head, tail, cap;
	uint32_t sent; /* entries before it have left with their records */
};

struct iw_irq {
	struct iw_irqe *e;
	uint32_t head, tail, cap;
};

enum iw_midst { IW_MIDST_NONE, IW_MIDST_SQ, IW_MIDST_IRQ };

struct iw_qp {
	/* What each outgoing message touches. */
	struct rd_qp *rd;
	struct iw_stage *st;
	struct tcp_rec *rec; /* being filled, or refused by the transport */
	struct iw_op *tx_op; /* under way, or waiting for ORD, a fence, room */
	int64_t space;
	struct mpa_tx mtx;
	uint32_t rec_cap;
	uint32_t mulpdu;
	uint32_t send_msn, read_msn; /* of the next Send and Read Request out */
	uint8_t phase;               /* enum iw_phase */
	uint8_t midst; /* a message has begun and not ended: nothing else may go between */
	bool hold;     /* responder: nothing has come yet */
	bool irq_turn;
	bool want_space, want_reads; /* iw_tx() stopped for lack of it */
	bool kick;                   /* iw_rx() made work for iw_tx() */
	struct iw_sq sq;
	uint32_t reads_out;
	uint16_t ird, ord;

	/* What each incoming message touches. */
	struct iw_op *rx_op;
	uint32_t recv_msn, irq_msn; /* of the next Send and Read Request in */
	struct iw_irq irq;
	struct mpa_rx mrx;
	struct iw_info info;
	uint32_t write_len;  /* bytes of the Write that came last, or is coming */
	bool write_open;     /* it is coming */
	bool draft_ext;      /* iw_params.draft_ext */
	uint32_t answer_msn; /* of the next Atomic Response out */
	/* The nth Atomic Request of ours has n, from 1, as its identifier; its response has it as
	 * message sequence number. */
	uint32_t atomic_next, atomic_due;

	/* The end. */
	uint32_t drain_left; /* requests that may still be taken from the send queue */
	uint32_t bad_read;   /* sq index of the Read that the peer refused */
	uint8_t bad_status;  /* 0: none */
	bool close_called, started, peer_fin, swallow_rtr;
	uint8_t rtr; /* still to be sent */
	uint8_t term_len;
	uint8_t term[RDMAP_TERMINATE_MAX];
	int error; /* the first reason */
};

static inline void
iw_count(struct iw_qp *q, enum iw_reason reason)
{
	sk_count(q->st->counters, reason);
}

/* iw_qp.c */
struct iw_op *iw_op_take(struct iw_stage *st);
void iw_op_release(struct iw_stage *st, struct iw_op *op);
/* ERR: placement stops, all work is flushed, the engine learns of it. */
void iw_enter_error(struct iw_qp *q, int reason);
void iw_close_once(struct iw_qp *q, enum iw_close how);

/* iw_sq.c */
/* Room for one more entry. false: the queue is as long as it may be, or no memory. */
bool iw_sq_reserve(struct iw_qp *q);
/* The reserved entry becomes the last one. */
struct iw_sqe *iw_sq_push(struct iw_qp *q);
/* The message of `wr` has been built: it completes when its turn comes. */
void iw_sq_done(struct iw_qp *q, const struct rd_wr *wr, uint32_t bytes);
/* All that was built has been handed over. */
void iw_sq_sent(struct iw_qp *q);
/* The Read whose response is expected next; NULL: none. */
struct iw_sqe *iw_sq_read(struct iw_qp *q);
/* Its response is complete. false: its sink could not be invalidated. */
bool iw_sq_read_done(struct iw_qp *q);
/* Whether a Read or Atomic that is outstanding has its sink there. */
bool iw_sq_fills(const struct iw_qp *q, uint32_t stag);
/* The peer refused the Read Request with this MSN. */
void iw_sq_read_refused(struct iw_qp *q, uint32_t msn, enum rd_status status);
/* The peer refused an opcode without telling which message had it: the oldest Atomic, if any. */
void iw_sq_atomic_refused(struct iw_qp *q, enum rd_status status);
void iw_sq_flush(struct iw_qp *q);
void iw_rq_flush(struct iw_qp *q);
bool iw_signaled(const struct iw_qp *q, const struct rd_wr *wr);

/* iw_tx.c */
enum iw_step {
	IW_STEP_DID,   /* a segment went into a record */
	IW_STEP_NONE,  /* nothing to do */
	IW_STEP_WAIT,  /* for Reads, a fence, the first FPDU */
	IW_STEP_NOBUF, /* no record, or the transport refused one */
	IW_STEP_DEAD,  /* the QP has failed */
};
/* Makes room for an FPDU in the record. */
bool iw_rec_room(struct iw_qp *q, uint32_t ulpdu_len);
/* Hands the record over. */
bool iw_rec_send(struct iw_qp *q);
/* One FPDU: header and `n` bytes of body, into the room that was made. */
void iw_emit(struct iw_qp *q, const struct wire_ddp *d, const void *body, uint32_t n);
/* An FPDU in two halves, for a body that is gathered. */
void iw_emit_begin(struct iw_qp *q, struct mpa_writer *w, const struct wire_ddp *d, uint32_t n);
void iw_emit_end(struct iw_qp *q, struct mpa_writer *w);
/* Payload of the next segment of a message with `left` bytes to go. */
uint32_t iw_seg_len(const struct iw_qp *q, uint32_t hdr_len, uint64_t left);

/* iw_tx_msg.c */
enum iw_step iw_sq_step(struct iw_qp *q);
/* The request is wrong: it completes with `status`, all others are flushed, and the stream ends
 * (RFC 5040 7.1). */
enum iw_step iw_refuse(struct iw_qp *q, struct iw_op *op, enum rd_status status);
/* The last segment of a Send or Write has been built. */
void iw_message_done(struct iw_qp *q, struct iw_op *op, uint32_t bytes);

/* iw_tx_local.c */
enum iw_step iw_local_step(struct iw_qp *q, struct iw_op *op);

/* iw_tx_fast.c: the whole of a request that has just been taken. false: go the general way; nothing
 * has happened. */
bool iw_tx_fast(struct iw_qp *q, struct iw_op *op);

/* iw_tx_read.c */
enum iw_step iw_read_step(struct iw_qp *q, struct iw_op *op);
enum iw_step iw_irq_step(struct iw_qp *q);
/* A Read or Atomic Request into the room that was made. */
void iw_request_emit(struct iw_qp *q, uint8_t opcode, const uint8_t *body, uint32_t n);
/* May one more Read or Atomic be outstanding (ORD, entries)? Else iw_tx() is called again when one
 * is done. */
bool iw_request_may(struct iw_qp *q);
/* The oldest inbound request cannot be answered any more: the Terminate quotes it as it was (RFC
 * 5040 7.2). */
enum iw_step iw_irq_fail(struct iw_qp *q, const struct iw_irqe *e, enum iw_reason reason);

/* iw_tx_atomic.c */
/* The length of the sink, and whether the connection knows the operation. */
enum rd_status iw_atomic_check(const struct iw_qp *q, const struct iw_op *op);
enum iw_step iw_atomic_step(struct iw_qp *q, struct iw_op *op);
/* Executes the oldest inbound request, which is an Atomic, and answers it. */
enum iw_step iw_atomic_answer(struct iw_qp *q, const struct iw_irqe *e);
/* The ready-to-receive message of RFC 6581 9.2. */
enum iw_step iw_rtr_step(struct iw_qp *q);

/* iw_rx_tagged.c, iw_rx_untagged.c: one segment; 0 or the reason for its refusal. `head` holds its
 * first IW_SEG_HEAD bytes or all of it. */
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
/* What a segment on queue number 1 must be: the next message, whole, of `want` bytes. 0 or the
 * reason, which is `too_short` for fewer. */
int iw_rx_queue1(const struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d,
	uint32_t want, enum iw_reason too_short);
/* A place for one more inbound request, within IRD: 0 and *e, or the reason. It counts once
 * iw_irq_push() was called. */
int iw_irq_reserve(struct iw_qp *q, struct iw_irqe **e);
void iw_irq_push(struct iw_qp *q);
/* The reason for a Read or Atomic whose target is at fault. */
enum iw_reason iw_rdmap_reason(enum rd_fault fault);
/* Places `len` bytes of the ULPDU from `off` in a checked range; the last bytes are stored last. */
void iw_place(const struct mpa_fpdu *f, uint32_t off, const struct rd_mr *mr, uint64_t addr,
	uint32_t len);

/* iw_terminate.c */
/* Takes the QP down for `reason` and prepares the Terminate. `seg`: the first bytes of the segment
 * at fault (`have` of them, of seg_len in all), or NULL. */
void iw_fail(struct iw_qp *q, enum iw_reason reason, const uint8_t *seg, uint32_t have,
	uint32_t seg_len);
int iw_rx_terminate(
	struct iw_qp *q, const struct mpa_fpdu *f, const struct wire_ddp *d, const uint8_t *head);
/* Sends what is left to say, then closes. false: call again. */
bool iw_terminate_step(struct iw_qp *q);

#endif
