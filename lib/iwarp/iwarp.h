/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DDP (RFC 5041), RDMAP (RFC 5040) and its extensions (RFC 7306) for one connected QP: turns work
 * requests into FPDUs in records, and incoming FPDUs into placed bytes and completions. All
 * functions of a QP are called on its engine stage. The library does not depend on ports, lcores or
 * shared memory: `struct iw_ops` connects it to the engine.
 *
 * Reasons (enum iw_reason) are counted in struct iw_stage and reported through rd_ops.qp_error.
 * Addresses, lengths and immediate values in the structures are in host byte order.
 */
#ifndef SAKER_IWARP_H
#define SAKER_IWARP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/reason.h"
#include "../rdma/latency.h"
#include "../rdma/rdma.h"
#include "../tcp/tcp.h"
#include "mpa.h"

struct iw_qp;

/* How this side ends a stream (RFC 5040 6.2 and 7, RFC 5044 7.2). */
enum iw_close { IW_CLOSE_ORDERLY, IW_CLOSE_ABORT };

struct iw_ops {
	struct rd_ops rd;
	/* Returns an empty record (len 0, sum 0) with at least `room` writable bytes at rec->data,
	 * or NULL if none is available; iw_tx() then stops and is called again later. The QP owns
	 * the record until send() accepts it or rec_put() takes it back. */
	struct tcp_rec *(*rec_get)(void *ctx, uint32_t room);
	void (*rec_put)(void *ctx, struct tcp_rec *rec);
	/* Hands a record (len set) over to the transport stage. Returns false if the ring is full;
	 * the QP then keeps the record and offers it again at the next iw_tx(). */
	bool (*send)(void *ctx, struct iw_qp *qp, struct tcp_rec *rec);
	/* Reports that `bytes` bytes of the stream were consumed, so that TCP may open its
	 * window. */
	void (*consumed)(void *ctx, struct iw_qp *qp, uint32_t bytes);
	void (*slice_free)(void *ctx, struct tcp_slice *chain);
	/* Requests the end of the stream after everything that was sent. Called once per
	 * connection. */
	void (*close)(void *ctx, struct iw_qp *qp, enum iw_close how);
	/* Reports that iw_tx() has work, because the bytes of another QP ended this one. NULL:
	 * iw_stage.store is not used. */
	void (*wake)(void *ctx, struct iw_qp *qp);
};

/* One per engine stage: the state that the stage's QPs share. The caller sets `ops` and `ctx` and
 * zeroes the rest. */
struct iw_stage {
	struct iw_ops ops;
	void *ctx;
	/* The fast paths of single Sends and Writes and of runs are off, for comparisons with the
	 * general path, which has the same results. */
	bool general;
	/* The limits on what unfinished FPDUs hold, which the caller initializes. store.holders
	 * NULL: no limits. */
	struct mpa_store store;
	uint64_t counters[64]; /* by enum iw_reason; iw_reason_count <= 64 */
	uint64_t mpa_counters[mpa_reason_count];
	struct rd_latency latency; /* of requests; the caller sets latency.now in each turn */
	/* Private to the library. */
	uint32_t qps;        /* the number of QPs; `spare` is freed with the last one */
	struct iw_op *spare; /* a buffer for one work request, used by the QP being served */
};

struct iw_params {
	bool initiator;
	bool crc, tx_markers, rx_markers;
	uint16_t ird, ord;
	uint32_t emss;      /* TCP's effective maximum segment size at present, bytes */
	int64_t send_space; /* bytes that the transport accepts before iw_space() grants more */
	/* mpa_result.rtr. The initiator sends that message first; the responder accepts it without
	 * a completion. */
	uint8_t rtr;
	/* The peer implements draft-ietf-storm-rdmap-ext-00: Swap is supported, as operation code
	 * 1. */
	bool draft_ext;
	uint16_t user; /* a user number of iw_stage.store */
};

/* Creates the iWARP part of `qp`, which stays the caller's. The object is small; queues for
 * outstanding and inbound Reads are allocated at first use. Returns NULL if there is no memory. */
struct iw_qp *iw_qp_create(struct iw_stage *st, struct rd_qp *qp);
/* Frees the object and all that it holds. Reports no completions. */
void iw_qp_destroy(struct iw_qp *q);
/* Returns the QP that iw_qp_create() was given. */
struct rd_qp *iw_qp_rd(const struct iw_qp *q);
/* Starts the exchange of FPDUs on a stream whose MPA start-up is complete, and moves the QP to RTS.
 * Posted requests are sent from the next iw_tx() on; a responder holds its send queue until the
 * first FPDU has arrived (RFC 5044 7.1.2). Times (`now`) are in nanoseconds. */
void iw_qp_start(struct iw_qp *q, uint64_t now, const struct iw_params *p);
/* Ends a responder's wait for the initiator's first FPDU, so that a peer that never sends one is
 * served, although RFC 5044 7.1.2 does not allow it. Returns true if iw_tx() may have work now. */
bool iw_release(struct iw_qp *q);

enum iw_tx_result {
	IW_TX_IDLE, /* nothing to do until a doorbell or an arrival */
	IW_TX_MORE, /* the budget is used up; call again */
	/* waiting for send space (iw_space()), ORD, a fence, the first FPDU, or missing pages
	 * (iw_pages()) */
	IW_TX_BLOCKED,
	IW_TX_NOBUF, /* rec_get() or send() refused; call again soon */
};
/* Answers inbound Read and Atomic Requests and sends from the send queue, in the order of RFC 5040
 * 5.5. Packs small FPDUs into records of up to one EMSS, and hands the last record over before it
 * returns. `budget` limits the number of segments. */
enum iw_tx_result iw_tx(struct iw_qp *q, uint64_t now, unsigned budget);
/* Takes a chain of in-order stream bytes; the QP owns the slices until it passes them to
 * slice_free(). Checks, places and completes all whole FPDUs before it returns, unless one of them
 * needs missing pages (iw_pages()). Returns true if the bytes created work for iw_tx(). */
bool iw_rx(struct iw_qp *q, uint64_t now, struct tcp_slice *chain);
/* Returns the number of Read and Atomic Requests that have arrived, modulo 2^32. */
uint32_t iw_requests(const struct iw_qp *q);
/* Returns whether the last FPDU had a CRC and was a whole slice: if the next ones are so too, the
 * caller of iw_rx() saves a pass over them with tcp_slice.crc, the CRC of a slice without its last
 * 4 bytes. */
bool iw_rx_whole(const struct iw_qp *q);
/* Continues after rd_ops.fetch: the pages are present, or could not be fetched. Meanwhile iw_tx()
 * sent nothing that needed them, and iw_rx() kept the FPDU that needed them and all bytes behind
 * it. Returns true if iw_tx() has work. */
bool iw_pages(struct iw_qp *q, uint64_t now);
/* Adds `bytes` to the send space: the transport has sent or dropped so many bytes. Returns true if
 * iw_tx() was waiting for them. */
bool iw_space(struct iw_qp *q, uint32_t bytes);
/* Sets TCP's effective maximum segment size, in bytes, for FPDUs built from now on. */
void iw_emss(struct iw_qp *q, uint32_t emss);
/* Ends the connection on behalf of the application, also when the application moves the QP to ERR.
 * IW_CLOSE_ORDERLY: the requests in the send queue are sent first, at most as many as the queue is
 * deep. The caller calls iw_tx() until it is idle; then iw_tx() calls ops->close(), and iw_closed()
 * moves the QP to ERR and flushes it. IW_CLOSE_ABORT: flushes the QP and calls ops->close()
 * immediately. */
void iw_disconnect(struct iw_qp *q, uint64_t now, enum iw_close how);
/* Returns whether the stream of a QP that is about to be aborted, or that IW_CLOSE_ABORT has
 * aborted, may end in order: this side stands between two messages, no request waits or lacks its
 * completion, and the peer waits for no response. TCP then has whole messages only, whose
 * completions the program may have seen. */
bool iw_may_leave(const struct iw_qp *q);
/* Handle the peer's FIN (iw_peer_fin()) and the end of the stream (iw_closed(); `error` is 0 or
 * -errno). iw_closed() flushes all outstanding work and leaves the QP in ERR. */
void iw_peer_fin(struct iw_qp *q, uint64_t now);
void iw_closed(struct iw_qp *q, uint64_t now, int error);
/* Flushes up to `most` requests and `most` receives in the queues of a QP in ERR. Returns whether
 * there may be more. Call it when the client posts to such a QP, and after rd_ops.qp_error() with
 * rd_ops.flush_later. */
bool iw_flush(struct iw_qp *q, uint32_t most);

/* Counters and present state of a connection. `bytes` are payload bytes; term_* are the layer,
 * error type and code of the Terminate (RFC 5040 4.8). */
struct iw_info {
	uint64_t msgs_out, msgs_in, bytes_out, bytes_in;
	uint32_t ord_used, ird_used;
	bool terminate_received;
	uint8_t term_layer, term_etype, term_code;
	uint32_t mulpdu;
};
void iw_get_info(const struct iw_qp *q, struct iw_info *out);
/* Returns sizeof(struct iw_qp): the private bytes of an idle connected QP in this library. */
size_t iw_qp_size(void);

/* The reasons, one for each error of RFC 5040, 5041, 5044 and 7306 that can occur here. A table in
 * iw_terminate.c derives the Terminate (layer, type, code, header bits) from the reason. */
#define IW_REASONS(X)                                                                              \
	X(IW_LLP_CRC, SK_WARNING, "MPA: wrong CRC (Terminate LLP 0x02)")                           \
	X(IW_LLP_MARKER, SK_WARNING, "MPA: marker mismatch (Terminate LLP 0x03)")                  \
	X(IW_LLP_CLOSED, SK_NOTICE, "MPA: the TCP stream was closed or reset (LLP 0x01)")          \
	X(IW_DDP_T_STAG, SK_WARNING, "DDP tagged: invalid STag")                                   \
	X(IW_DDP_T_BOUNDS, SK_WARNING, "DDP tagged: base or bounds violation")                     \
	X(IW_DDP_T_STREAM, SK_WARNING, "DDP tagged: STag not associated with the stream")          \
	X(IW_DDP_T_WRAP, SK_WARNING, "DDP tagged: TO wrap")                                        \
	X(IW_DDP_T_VERSION, SK_WARNING, "DDP tagged: invalid DDP version")                         \
	X(IW_DDP_U_QN, SK_WARNING, "DDP untagged: invalid queue number")                           \
	X(IW_DDP_U_NO_BUFFER, SK_WARNING, "DDP untagged: no buffer available")                     \
	X(IW_DDP_U_MSN, SK_WARNING, "DDP untagged: MSN out of range")                              \
	X(IW_DDP_U_MO, SK_WARNING, "DDP untagged: invalid message offset")                         \
	X(IW_DDP_U_TOO_LONG, SK_WARNING, "DDP untagged: message too long for its buffer")          \
	X(IW_DDP_U_VERSION, SK_WARNING, "DDP untagged: invalid DDP version")                       \
	X(IW_RDMAP_STAG, SK_WARNING, "RDMAP: invalid STag")                                        \
	X(IW_RDMAP_BOUNDS, SK_WARNING, "RDMAP: base or bounds violation")                          \
	X(IW_RDMAP_ACCESS, SK_WARNING, "RDMAP: access rights violation")                           \
	X(IW_RDMAP_STREAM, SK_WARNING, "RDMAP: STag not associated with the stream")               \
	X(IW_RDMAP_WRAP, SK_WARNING, "RDMAP: TO wrap")                                             \
	X(IW_RDMAP_VERSION, SK_WARNING, "RDMAP: invalid RDMAP version")                            \
	X(IW_RDMAP_OPCODE, SK_WARNING, "RDMAP: unexpected opcode")                                 \
	X(IW_RDMAP_CATASTROPHIC_STREAM, SK_WARNING, "RDMAP: catastrophic error, this stream")      \
	X(IW_RDMAP_CANNOT_INV, SK_WARNING, "RDMAP: STag cannot be invalidated")                    \
	X(IW_RDMAP_UNSPECIFIED, SK_WARNING, "RDMAP: unspecified error")                            \
	X(IW_RDMAP_LOCAL, SK_WARNING, "RDMAP: local catastrophic error (a bad work request)")      \
	X(IW_DDP_LOCAL, SK_WARNING, "DDP: local catastrophic error (a bad receive or Read sink)")  \
	X(IW_IRD_EXCEEDED, SK_WARNING,                                                             \
		"more Reads or Atomics than the IRD allows (untagged: no buffer)")                 \
	X(IW_READ_RESPONSE_BAD, SK_WARNING, "a Read Response that matches no outstanding Read")    \
	X(IW_ATOMIC_UNALIGNED, SK_WARNING, "Atomic: the target is not aligned to 64 bits")         \
	X(IW_ATOMIC_OPERATION, SK_WARNING, "Atomic: an operation code that is not supported")      \
	X(IW_ATOMIC_CONTENDED, SK_WARNING, "Atomic: the target word changed during each attempt")  \
	X(IW_ATOMIC_RESPONSE_BAD, SK_WARNING,                                                      \
		"an Atomic Response that does not match the oldest Atomic")                        \
	X(IW_EXT_LENGTH, SK_WARNING, "Immediate Data or an Atomic of the wrong length")            \
	X(IW_TERMINATE_IN, SK_NOTICE, "the peer sent a Terminate")                                 \
	X(IW_TERMINATE_OUT, SK_NOTICE, "a Terminate was sent")                                     \
	X(IW_AFTER_TERMINATE, SK_NORMAL, "bytes after a Terminate were discarded")

SK_REASONS_DECLARE(iw, IW_NONE, IW_REASONS)

#endif
