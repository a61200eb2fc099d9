/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPA (RFC 5044, enhanced by RFC 6581): the start-up exchange, and FPDUs on a TCP stream.
 * No clock and no I/O; bytes come as slices of TCP payload and leave as records.
 */
#ifndef SAKER_MPA_H
#define SAKER_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/reason.h"
#include "../tcp/tcp.h"
#include "../wire/wire.h"

#define MPA_REASONS(X)                                                                             \
	X(MPA_BAD_STARTUP, SK_WARNING, "a start-up frame that is not one, or of the wrong kind")   \
	X(MPA_BAD_REVISION, SK_WARNING, "an MPA revision that is neither 1 nor 2")                 \
	X(MPA_PRIVATE_TOO_LONG, SK_WARNING, "more private data than the revision allows")          \
	X(MPA_ENHANCED_SHORT, SK_WARNING, "an enhanced frame without its IRD/ORD word")            \
	X(MPA_EARLY_DATA, SK_WARNING, "bytes behind a request before it was answered")             \
	X(MPA_PARAMETERS, SK_WARNING, "a reply that contradicts the request (CRC, markers, IRD/ORD)") \
	X(MPA_REJECTED, SK_NORMAL, "the peer rejected the connection")                             \
	X(MPA_CRC, SK_WARNING, "an FPDU whose CRC is wrong")                                       \
	X(MPA_MARKER, SK_WARNING, "a marker that does not point to its FPDU")                      \
	X(MPA_SHORT_ULPDU, SK_WARNING, "an FPDU too short for a DDP header")                       \
	X(MPA_FIRST_FPDU, SK_WARNING, "the responder sent before the initiator")                   \
	X(MPA_NO_MEMORY, SK_FATAL, "no memory to gather a scattered FPDU")

SK_REASONS_DECLARE(mpa, MPA_NONE, MPA_REASONS)

/* ---- Start-up ---------------------------------------------------------------------------------------- */

#define MPA_IRD_AUTO 0x3fff /* RFC 6581: no limit stated */
#define MPA_STARTUP_MAX (MPA_STARTUP_LEN + MPA_PRIVATE_MAX)

/* What one side wants. */
struct mpa_offer {
	uint8_t revision; /* 1 or 2 */
	bool crc;	  /* CRC in both directions if either side wants it */
	bool markers;	  /* we want to receive markers */
	uint16_t ird, ord; /* revision 2: 0..16382, or MPA_IRD_AUTO */
	/* Peer-to-peer (RFC 6581 9.2): which ready-to-receive messages may be used; all false: client/server. */
	bool rtr_send, rtr_write, rtr_read;
};

/* What came of it; valid from MPA_REQUESTED (responder: the peer's wishes) or MPA_ACCEPTED on. */
struct mpa_result {
	uint8_t revision;
	bool enhanced;
	bool crc;
	bool tx_markers, rx_markers;
	uint16_t ird, ord; /* ours: how many reads the peer may have outstanding here, and we there */
	uint16_t peer_ird, peer_ord; /* as stated by the peer; MPA_IRD_AUTO when it did not say */
	enum { MPA_RTR_NONE, MPA_RTR_SEND, MPA_RTR_WRITE, MPA_RTR_READ } rtr;
	uint16_t private_len; /* the peer's private data, the IRD/ORD word taken off */
	uint8_t private_data[MPA_PRIVATE_MAX];
};

enum mpa_state {
	MPA_IDLE,
	MPA_WAIT_REPLY,	  /* initiator: request sent */
	MPA_WAIT_REQUEST, /* responder */
	MPA_REQUESTED,	  /* responder: the application decides */
	MPA_ACCEPTED,	  /* FPDUs may flow */
	MPA_REFUSED,	  /* the peer rejected; result.private_* has its reason */
	MPA_FAILED,
};

struct mpa_startup {
	enum mpa_state state;
	bool initiator;
	struct mpa_offer offer;
	struct mpa_result result;
	uint16_t have; /* bytes of the frame gathered so far */
	uint8_t frame[MPA_STARTUP_MAX];
};

void mpa_startup_init(struct mpa_startup *s, bool initiator, const struct mpa_offer *offer);
/* Initiator: writes the request (at most MPA_STARTUP_MAX bytes) with the application's private data; returns its length, or -EMSGSIZE. */
int mpa_request_emit(struct mpa_startup *s, uint8_t *buf, const void *private_data, size_t len);
/* Either side: takes start-up bytes as they come. Returns how many it took (never a byte behind the frame), or -reason (state is then
 * MPA_FAILED). The state tells what has come. */
int mpa_startup_input(struct mpa_startup *s, const uint8_t *data, size_t len);
/* Responder in MPA_REQUESTED: accepts (with its own ird/ord, which are reduced as RFC 6581 9.1 says) or rejects. Returns the
 * length, or -EMSGSIZE, -EINVAL. */
int mpa_reply_emit(struct mpa_startup *s, uint8_t *buf, bool accept, uint16_t ird, uint16_t ord,
	const void *private_data, size_t len);
/* Most private data that the offer's revision leaves to the application. */
size_t mpa_private_max(uint8_t revision);

/* ---- FPDUs out ------------------------------------------------------------------------------------------- */

/* The sending half of a stream. 16 bytes. */
struct mpa_tx {
	uint32_t pos;  /* stream bytes sent in FPDU mode (markers stand at multiples of 512) */
	uint32_t emss; /* TCP's: an FPDU must fit into it */
	bool crc, markers;
};

void mpa_tx_init(struct mpa_tx *t, bool crc, bool markers, uint32_t emss);
/* Largest ULPDU that fits a segment: EMSS - 6 - EMSS mod 4 without markers (RFC 5044 5.1, 4.3 with). Never more than 65535 - 18. */
uint32_t mpa_mulpdu(const struct mpa_tx *t);
/* Bytes that an FPDU with this ULPDU will take on the stream at position `pos` (length field, pad, CRC, markers). */
uint32_t mpa_fpdu_len(const struct mpa_tx *t, uint32_t pos, uint32_t ulpdu_len);

/* Writes one FPDU: begin, put (any number, ulpdu_len bytes in all), end. */
struct mpa_writer {
	struct mpa_tx *tx;
	uint8_t *start, *at;
	uint32_t crc;
	uint32_t left;	    /* ULPDU bytes still to be put */
	uint32_t start_pos; /* stream position of the length field */
};
void mpa_write_begin(struct mpa_writer *w, struct mpa_tx *t, uint8_t *dst, uint32_t ulpdu_len);
void mpa_write_put(struct mpa_writer *w, const void *src, uint32_t len);
/* Pad and CRC; returns the FPDU's stream bytes, by which t->pos has grown. */
uint32_t mpa_write_end(struct mpa_writer *w);

/* ---- FPDUs in ------------------------------------------------------------------------------------------- */

/* The receiving half of a stream: slices in, whole FPDUs out, however they lie across segments. */
struct mpa_rx {
	struct tcp_slice *head, *tail; /* bytes that have come and are not yet consumed */
	uint32_t off;	   /* of the next FPDU in head */
	uint32_t have;	   /* bytes held from there */
	uint32_t pos;	   /* stream position of the next FPDU */
	uint32_t nslices;
	bool crc, markers;
	uint8_t *gathered; /* only while a peer sends an FPDU in many tiny segments */
	void (*slice_free)(void *ctx, struct tcp_slice *chain);
	void *ctx;
};

/* A whole FPDU whose CRC and markers have been checked. Valid until mpa_rx_done(). */
struct mpa_fpdu {
	struct mpa_rx *rx;
	uint32_t ulpdu_len;
	uint32_t stream_len; /* with length field, pad, CRC, markers */
	const uint8_t *flat; /* the ULPDU when it lies in one piece, else NULL */
};

void mpa_rx_init(struct mpa_rx *r, bool crc, bool markers,
	void (*slice_free)(void *ctx, struct tcp_slice *chain), void *ctx);
/* Takes a chain of in-order slices. */
void mpa_rx_add(struct mpa_rx *r, struct tcp_slice *chain);
/* 1: *f is the next FPDU; 0: not all of it is here; -reason: the stream is broken (MPA_CRC, MPA_MARKER, ...). */
int mpa_rx_next(struct mpa_rx *r, struct mpa_fpdu *f);
/* Copies ULPDU bytes [off, off + len) to `dst`; the caller keeps within ulpdu_len. */
void mpa_fpdu_copy(const struct mpa_fpdu *f, uint32_t off, void *dst, uint32_t len);
/* Consumes it: slices that are used up are freed. Returns the stream bytes consumed (for tcp_consumed). */
uint32_t mpa_rx_done(struct mpa_rx *r, const struct mpa_fpdu *f);
/* Frees all that is held. */
void mpa_rx_clear(struct mpa_rx *r);

#endif
