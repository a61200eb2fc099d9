/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPA (RFC 5044, enhanced by RFC 6581): the start-up exchange, and FPDUs on a TCP stream.
 * No clock and no I/O; bytes come as slices of TCP payload and leave as records.
 */
#ifndef SAKER_MPA_H
#define SAKER_MPA_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../base/crc32c.h"
#include "../base/reason.h"
#include "../tcp/tcp.h"
#include "../wire/wire.h"

#define MPA_REASONS(X)                                                                             \
	X(MPA_BAD_STARTUP, SK_WARNING, "a start-up frame that is not one, or of the wrong kind")   \
	X(MPA_BAD_REVISION, SK_WARNING, "an MPA revision that is neither 1 nor 2")                 \
	X(MPA_PRIVATE_TOO_LONG, SK_WARNING, "more private data than the revision allows")          \
	X(MPA_ENHANCED_SHORT, SK_WARNING, "an enhanced frame without its IRD/ORD word")            \
	X(MPA_EARLY_DATA, SK_WARNING, "bytes behind a request before it was answered")             \
	X(MPA_PARAMETERS, SK_WARNING,                                                              \
		"a reply that contradicts the request (CRC, enhanced or not, flag A)")             \
	X(MPA_REJECTED, SK_NORMAL, "the peer rejected the connection")                             \
	X(MPA_CRC, SK_WARNING, "an FPDU whose CRC is wrong")                                       \
	X(MPA_MARKER, SK_WARNING, "a marker that does not point to its FPDU")                      \
	X(MPA_SHORT_ULPDU, SK_WARNING, "an FPDU too short for a DDP header")                       \
	X(MPA_FIRST_FPDU, SK_WARNING, "the responder sent before the initiator")                   \
	X(MPA_NO_MEMORY, SK_FATAL, "no memory to gather a scattered FPDU")                         \
	X(MPA_NO_IRD, SK_WARNING, "the responder reads deeper than we can (Terminate LLP 0x06)")   \
	X(MPA_NO_RTR, SK_WARNING, "no ready-to-receive message suits both (Terminate LLP 0x07)")   \
	X(MPA_LOCAL, SK_WARNING, "the start-up failed on our side (Terminate LLP 0x05)")

SK_REASONS_DECLARE(mpa, MPA_NONE, MPA_REASONS)

/* ---- Start-up ---- */

#define MPA_IRD_AUTO    0x3fff /* RFC 6581: no limit stated */
#define MPA_STARTUP_MAX (MPA_STARTUP_LEN + MPA_PRIVATE_MAX)

/* What one side wants. */
struct mpa_offer {
	uint8_t revision;  /* 1 or 2 */
	bool crc;          /* CRC in both directions if either side wants it */
	bool markers;      /* we want to receive markers */
	uint16_t ird, ord; /* revision 2: 0..16382, or MPA_IRD_AUTO */
	/* Peer-to-peer (RFC 6581 9.2): which ready-to-receive messages may be used; all false:
	 * client/server. */
	bool rtr_send, rtr_write, rtr_read;
	/* Revision 2: the application cannot do without; no fall-back to revision 1 (RFC 6581 10).
	 */
	bool enhanced_only;
};

/* What came of it; valid from MPA_REQUESTED (responder: the peer's wishes) or MPA_ACCEPTED on. */
struct mpa_result {
	uint8_t revision;
	bool enhanced;
	bool peer_to_peer; /* the peer set control flag A (RFC 6581 9.2) */
	bool crc;
	bool tx_markers, rx_markers;
	/* Ours: reads that the peer may have outstanding here, and we there. MPA_IRD_AUTO: the
	 * endpoint keeps what it has (RFC 6581 9.1). */
	uint16_t ird, ord;
	uint16_t peer_ird, peer_ord; /* as stated by the peer; MPA_IRD_AUTO when it did not say */
	bool peer_crc;               /* the peer wants it */
	bool peer_send, peer_write, peer_read; /* its ready-to-receive messages */
	/* Initiator: the first FPDU must be this one. Responder: the initiator chooses among those
	 * that both know; this is the one that asks most of us (a Send without bytes is to be taken
	 * in silence, a Read needs an IRD of 1, a Write needs nothing). */
	enum { MPA_RTR_NONE, MPA_RTR_SEND, MPA_RTR_WRITE, MPA_RTR_READ } rtr;
	uint16_t private_len; /* the peer's private data, the IRD/ORD word taken off */
	uint8_t private_data[MPA_PRIVATE_MAX];
};

enum mpa_state {
	MPA_IDLE,
	MPA_WAIT_REPLY,   /* initiator: request sent */
	MPA_WAIT_REQUEST, /* responder */
	MPA_REQUESTED,    /* responder: the application decides */
	MPA_ACCEPTED,     /* FPDUs may flow */
	MPA_REFUSED,      /* the peer rejected; result.private_* has its reason */
	MPA_FAILED,
};

struct mpa_startup {
	enum mpa_state state;
	enum mpa_reason why; /* in MPA_FAILED */
	bool initiator;
	bool accepted; /* initiator: the peer is in FPDU mode, though we may have failed then */
	struct mpa_offer offer;
	struct mpa_result result;
	uint16_t have; /* bytes of the frame gathered so far */
	uint8_t frame[MPA_STARTUP_MAX];
};

void mpa_startup_init(struct mpa_startup *s, bool initiator, const struct mpa_offer *offer);
/* Initiator: writes the request (at most MPA_STARTUP_MAX bytes) with the application's private
 * data; returns its length, or -EMSGSIZE (too much private data), -EINVAL (not the time, or an
 * offer that cannot be). */
int mpa_request_emit(struct mpa_startup *s, uint8_t *buf, const void *private_data, size_t len);
/* Either side: takes start-up bytes as they come. Returns how many it took (never a byte behind the
 * frame), or -reason (state is then MPA_FAILED). The state tells what has come. */
int mpa_startup_input(struct mpa_startup *s, const uint8_t *data, size_t len);
/* Responder in MPA_REQUESTED: the application's wishes for this connection (CRC, markers,
 * ready-to-receive messages) take the place of those that it listened with. The revision is the
 * request's. */
void mpa_startup_choose(struct mpa_startup *s, const struct mpa_offer *o);
/* What an acceptance with offer `o` will agree on, depths included (RFC 6581 9): from and to *r,
 * which stands as in MPA_REQUESTED. For whoever must know before the reply is built. */
void mpa_result_accept(struct mpa_result *r, const struct mpa_offer *o);
/* Responder in MPA_REQUESTED: accepts (with its own ird/ord, which are reduced as RFC 6581 9.1
 * says) or rejects. Returns the length, or -EMSGSIZE, -EINVAL. */
int mpa_reply_emit(struct mpa_startup *s, uint8_t *buf, bool accept, uint16_t ird, uint16_t ord,
	const void *private_data, size_t len);
/* Most private data that the offer's revision leaves to the application. */
size_t mpa_private_max(uint8_t revision);
/* Something failed on our side that the exchange knows nothing of (no memory, no QP): the state
 * becomes MPA_FAILED. */
void mpa_startup_abandon(struct mpa_startup *s);
/* In MPA_FAILED: the Terminate that the peer must get before the stream closes (RFC 6581 8: LLP,
 * MPA, code 5, 6 or 7), as the first and last FPDU of the stream, at most MPA_TERMINATE_FPDU bytes.
 * 0: the peer cannot take an FPDU, so the connection is reset without a word. */
unsigned mpa_terminate_emit(const struct mpa_startup *s, uint8_t *buf);
#define MPA_TERMINATE_FPDU                                                                         \
	(MPA_MARKER_LEN + MPA_LEN_FIELD + DDP_UNTAGGED_LEN + RDMAP_TERMINATE_LEN + 4)
/* Initiator whose TCP connection ended before a reply came: may it try again, unenhanced, over a
 * new one (RFC 6581 10)? Then *again is what to offer; IRD, ORD and who sends first are the
 * application's business from there on. */
bool mpa_fall_back(const struct mpa_startup *s, struct mpa_offer *again);

/* ---- FPDUs out ---- */

/* The sending half of a stream. 12 bytes. */
struct mpa_tx {
	uint32_t pos;  /* stream bytes sent in FPDU mode (markers stand at multiples of 512) */
	uint32_t emss; /* TCP's: an FPDU must fit into it */
	bool crc, markers;
};

void mpa_tx_init(struct mpa_tx *t, bool crc, bool markers, uint32_t emss);
/* Largest ULPDU that fits a segment: EMSS - 6 - EMSS mod 4 without markers (RFC 5044 4.5, 4.3
 * with). Never more than 65535 - 18, nor less than the 128 that DDP counts on: TCP cuts such a
 * record. */
uint32_t mpa_mulpdu(const struct mpa_tx *t);
/* Bytes that an FPDU with this ULPDU will take on the stream at position `pos` (length field, pad,
 * CRC, markers). */
uint32_t mpa_fpdu_len(const struct mpa_tx *t, uint32_t pos, uint32_t ulpdu_len);

/*
 * Writes one FPDU into mpa_fpdu_len() bytes of contiguous memory: begin, put (any number, ulpdu_len
 * bytes in all), end. One FPDU at a time for each mpa_tx.
 */
struct mpa_writer {
	struct mpa_tx *tx;
	uint8_t *start, *at; /* first byte (the marker, if one leads), next byte */
	uint32_t crc;        /* running, while copying */
	uint32_t left;       /* ULPDU bytes still to be put */
	uint32_t start_pos;  /* stream position of the length field */
	bool late;           /* the CRC is computed in the end, over the finished FPDU */
};

/* Up to so many ULPDU bytes an FPDU stays in the first-level cache: one CRC pass in the end beats
 * one for each piece. */
#define MPA_LATE_CRC 4096

/* What the inline functions below call when the connection uses markers. */
void mpa_write_marker(struct mpa_writer *w);
void mpa_write_marked(struct mpa_writer *w, const void *src, uint32_t len);

static inline void
mpa_write_begin(struct mpa_writer *w, struct mpa_tx *t, uint8_t *dst, uint32_t ulpdu_len)
{
	w->tx = t;
	w->start = dst;
	w->at = dst;
	w->left = ulpdu_len;
	w->late = t->markers || ulpdu_len <= MPA_LATE_CRC;
	if (t->markers)
		mpa_write_marker(w);
	w->start_pos = t->pos + (uint32_t)(w->at - dst);
	wire_mpa_len_emit(w->at, (uint16_t)ulpdu_len);
	if (t->crc && !w->late)
		w->crc = sk_crc32c(SK_CRC32C_INIT, w->at, MPA_LEN_FIELD);
	w->at += MPA_LEN_FIELD;
}

static inline void
mpa_write_put(struct mpa_writer *w, const void *src, uint32_t len)
{
	assert(len <= w->left);
	w->left -= len;
	if (w->tx->markers) {
		mpa_write_marked(w, src, len);
		return;
	}
	if (w->tx->crc && !w->late)
		w->crc = sk_crc32c_copy(w->crc, w->at, src, len);
	else
		memcpy(w->at, src, len);
	w->at += len;
}

/* Pad and CRC (0 when the connection has none); returns the FPDU's stream bytes, by which t->pos
 * has grown. */
static inline uint32_t
mpa_write_end(struct mpa_writer *w)
{
	struct mpa_tx *t = w->tx;
	uint32_t pad = -(uint32_t)(w->at - w->start) % 4, len;

	assert(w->left == 0);
	memset(w->at, 0, 4); /* a fixed size, for speed: the CRC comes over what is not pad */
	if (t->crc && !w->late)
		w->crc = sk_crc32c(w->crc, w->at, pad);
	w->at += pad;
	if (t->markers)
		mpa_write_marker(w);
	if (t->crc && w->late)
		w->crc = sk_crc32c(SK_CRC32C_INIT, w->start, (size_t)(w->at - w->start));
	wire_mpa_crc_emit(w->at, t->crc ? sk_crc32c_final(w->crc) : 0);
	len = (uint32_t)(w->at - w->start) + MPA_CRC_LEN;
	t->pos += len;
	return len;
}

/* ---- FPDUs in ---- */

/* Slices held from one mpa_rx_add() to the next while their average is under MPA_TINY bytes. */
#define MPA_SLICES_MAX 32
#define MPA_TINY       256

/*
 * The receiving half of a stream: slices in, whole FPDUs out, however they lie across segments.
 * What a peer sends in tiny segments is gathered into buffers of our own, so that it pins few of
 * the network's: never more than SK_MAX(MPA_SLICES_MAX, their bytes / MPA_TINY) and the chain that
 * came last.
 */
struct mpa_rx {
	struct tcp_slice *head, *tail; /* bytes that have come and are not yet consumed */
	uint32_t off;                  /* of the next FPDU in head */
	uint32_t have;                 /* bytes held from there */
	uint32_t pos;                  /* stream position of the next FPDU */
	uint32_t nslices; /* of TCP's; not the buffers into which many tiny ones were gathered */
	uint32_t slice_bytes; /* their lengths */
	bool crc, markers;
	bool checked;   /* the next FPDU has been found good, but not yet consumed */
	bool no_memory; /* gathering failed: the stream ends */
	void (*slice_free)(void *ctx, struct tcp_slice *chain);
	void *ctx;
};

/* A whole FPDU whose CRC and markers have been checked. Valid until mpa_rx_done(), mpa_rx_add() or
 * mpa_rx_clear(). */
struct mpa_fpdu {
	struct mpa_rx *rx;
	uint32_t ulpdu_len;
	uint32_t stream_len; /* with length field, pad, CRC, markers */
	const uint8_t *flat; /* the ULPDU if it lies in one piece, else NULL */
};

void mpa_rx_init(struct mpa_rx *r, bool crc, bool markers,
	void (*slice_free)(void *ctx, struct tcp_slice *chain), void *ctx);
/* Takes a chain of in-order slices with bytes (data is not NULL). They go back through slice_free,
 * in order. */
void mpa_rx_add(struct mpa_rx *r, struct tcp_slice *chain);
/* 1: *f is the next FPDU (the same one until mpa_rx_done()); 0: not all of it is here; -reason: the
 * stream is broken: MPA_CRC, MPA_MARKER, MPA_SHORT_ULPDU, MPA_NO_MEMORY. CRC first, so that nothing
 * is believed of an FPDU that was damaged. */
int mpa_rx_next(struct mpa_rx *r, struct mpa_fpdu *f);
/* Copies ULPDU bytes [off, off + len) to `dst`; the caller keeps within ulpdu_len. */
void mpa_fpdu_copy(const struct mpa_fpdu *f, uint32_t off, void *dst, uint32_t len);
/* Consumes it: slices that are used up are freed. Returns the stream bytes consumed (for
 * tcp_consumed). */
uint32_t mpa_rx_done(struct mpa_rx *r, const struct mpa_fpdu *f);
/* Frees all that is held. */
void mpa_rx_clear(struct mpa_rx *r);

#endif
