/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DDP (RFC 5041), RDMAP (RFC 5040) and its extensions (RFC 7306) for one connected QP: work
 * requests become FPDUs in records, FPDUs become placed bytes and completions. Runs on the QP's
 * engine stage. Knows no port, no lcore, no shared memory.
 */
#ifndef SAKER_IWARP_H
#define SAKER_IWARP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/reason.h"
#include "../rdma/rdma.h"
#include "../tcp/tcp.h"
#include "mpa.h"

struct iw_qp;

/* How a stream ends (RFC 5040 6.2 and 7, RFC 5044 7.2). */
enum iw_close { IW_CLOSE_ORDERLY, IW_CLOSE_ABORT };

struct iw_ops {
	struct rd_ops rd;
	/* A record with at least `room` writable bytes at rec->data (len 0). NULL: none now;
	 * iw_tx() stops and is called again later. */
	struct tcp_rec *(*rec_get)(void *ctx, uint32_t room);
	void (*rec_put)(void *ctx, struct tcp_rec *rec);
	/* Hands a record (len set) to the transport stage. false: the ring is full; iw keeps the
	 * record and tries again at the next iw_tx(). */
	bool (*send)(void *ctx, struct iw_qp *qp, struct tcp_rec *rec);
	/* Stream bytes were consumed: the transport may open its window. */
	void (*consumed)(void *ctx, struct iw_qp *qp, uint32_t bytes);
	void (*slice_free)(void *ctx, struct tcp_slice *chain);
	/* The stream is to end after what was sent. Comes once. */
	void (*close)(void *ctx, struct iw_qp *qp, enum iw_close how);
};

/* One per engine stage: what its QPs share. */
struct iw_stage {
	struct iw_ops ops;
	void *ctx;
	uint64_t counters[64]; /* by enum iw_reason; iw_reason_count <= 64 */
	uint64_t mpa_counters[mpa_reason_count];
	/* iw's own; zero at first */
	uint32_t qps;        /* freed with the last one: */
	struct iw_op *spare; /* a work request's buffer, for whichever QP is being served */
};

struct iw_params {
	bool initiator;
	bool crc, tx_markers, rx_markers;
	uint16_t ird, ord;
	uint32_t emss;      /* TCP's now */
	int64_t send_space; /* bytes that the transport takes without asking */
	uint8_t rtr; /* mpa_result.rtr: the initiator sends that message first; the responder takes
			it in silence */
	/* The peer speaks draft-ietf-storm-rdmap-ext-00: Swap is known, as operation code 1. */
	bool draft_ext;
};

/* Creates the transport's part of `qp` (small: queues for inbound and outbound reads come when
 * first needed). NULL: no memory. */
struct iw_qp *iw_qp_create(struct iw_stage *st, struct rd_qp *qp);
/* Frees everything; no completions. */
void iw_qp_destroy(struct iw_qp *q);
struct rd_qp *iw_qp_rd(const struct iw_qp *q);
/* FPDUs may flow. The QP goes to RTS. Posted requests start at the next iw_tx(). A responder holds
 * its send queue until the first FPDU has come (RFC 5044 7.1.2). */
void iw_qp_start(struct iw_qp *q, uint64_t now, const struct iw_params *p);
/* The responder waits for the initiator's first FPDU no longer: a peer that never sends one is
 * served against the letter of RFC 5044 7.1.2. Returns true if iw_tx() may have something to do
 * now. */
bool iw_release(struct iw_qp *q);

enum iw_tx_result {
	IW_TX_IDLE,    /* nothing to do: wait for a doorbell or for something to arrive */
	IW_TX_MORE,    /* the budget is used up: call again */
	IW_TX_BLOCKED, /* no send space (wait for iw_space), no ORD left, a fence, or no buffer */
	IW_TX_NOBUF,   /* rec_get or send refused: call again soon */
};
/* Works off inbound Read Requests and the send queue, in the order that RFC 5040 5.5 asks; packs
 * small FPDUs into records up to the EMSS; hands the last record over before it returns. `budget`:
 * messages or segments, whichever comes first. */
enum iw_tx_result iw_tx(struct iw_qp *q, uint64_t now, unsigned budget);
/* In-order stream bytes. All whole FPDUs in them are checked, placed and completed before it
 * returns. Returns true if iw_tx() has something to do now that it had not before. */
bool iw_rx(struct iw_qp *q, uint64_t now, struct tcp_slice *chain);
/* The transport took or freed so many bytes: send space grows. Returns true if iw_tx() was blocked
 * by it. */
bool iw_space(struct iw_qp *q, uint32_t bytes);
void iw_emss(struct iw_qp *q, uint32_t emss);
/* The application disconnects, or moves the QP to ERR. Orderly: what stands in the send queue goes
 * out first, as much of it as the queue is deep; call iw_tx() until it is idle; ops->close comes
 * then, ERR and the flush at iw_closed(). Abort: flush and ops->close at once. */
void iw_disconnect(struct iw_qp *q, uint64_t now, enum iw_close how);
/* The peer's FIN, or the end of the stream (0 or -errno). All outstanding work is flushed on the
 * latter; the QP is then in ERR. */
void iw_peer_fin(struct iw_qp *q, uint64_t now);
void iw_closed(struct iw_qp *q, uint64_t now, int error);
/* Flush: also when the client posts to a QP in ERR. */
void iw_flush(struct iw_qp *q);

struct iw_info {
	uint64_t msgs_out, msgs_in, bytes_out, bytes_in, fpdus_out, fpdus_in;
	uint32_t ord_used, ird_used;
	bool terminate_sent, terminate_received;
	uint8_t term_layer, term_etype, term_code;
	uint32_t mulpdu;
};
void iw_get_info(const struct iw_qp *q, struct iw_info *out);
/* Engine-private bytes of an idle connected QP (16-deep queues), this library's part. */
size_t iw_qp_size(void);

/* One reason per error that RFC 5040, 5041 and 5044 define; the Terminate follows from a table
 * (layer, type, code, header bits). */
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
	X(IW_RDMAP_CATASTROPHIC_GLOBAL, SK_FATAL, "RDMAP: catastrophic error, global")             \
	X(IW_RDMAP_CANNOT_INV, SK_WARNING, "RDMAP: STag cannot be invalidated")                    \
	X(IW_RDMAP_UNSPECIFIED, SK_WARNING, "RDMAP: unspecified error")                            \
	X(IW_RDMAP_LOCAL, SK_WARNING, "RDMAP: local catastrophic error (a bad work request)")      \
	X(IW_DDP_LOCAL, SK_WARNING, "DDP: local catastrophic error (a bad receive or Read sink)")  \
	X(IW_IRD_EXCEEDED, SK_WARNING, "more Read Requests than IRD allows (untagged: no buffer)") \
	X(IW_READ_RESPONSE_BAD, SK_WARNING, "a Read Response that matches no outstanding Read")    \
	X(IW_ATOMIC_UNALIGNED, SK_WARNING, "Atomic: the target is not aligned to 64 bits")         \
	X(IW_ATOMIC_OPERATION, SK_WARNING, "Atomic: an operation code that is not supported")      \
	X(IW_ATOMIC_CONTENDED, SK_WARNING, "Atomic: the target did not stand still for it")        \
	X(IW_ATOMIC_RESPONSE_BAD, SK_WARNING, "an Atomic Response that is not the one awaited")    \
	X(IW_EXT_LENGTH, SK_WARNING, "Immediate Data or an Atomic of the wrong length")            \
	X(IW_TERMINATE_IN, SK_NOTICE, "the peer sent a Terminate")                                 \
	X(IW_TERMINATE_OUT, SK_NOTICE, "a Terminate was sent")                                     \
	X(IW_AFTER_TERMINATE, SK_NORMAL, "bytes behind a Terminate were thrown away")

SK_REASONS_DECLARE(iw, IW_NONE, IW_REASONS)

#endif
