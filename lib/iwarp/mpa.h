/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPA (RFC 5044, enhanced by RFC 6581): the start-up exchange, and FPDUs on a TCP stream. The
 * library has no clock and performs no I/O: it receives slices of TCP payload and writes into
 * memory of the caller. Values in structures are in host byte order.
 */
#ifndef SAKER_MPA_H
#define SAKER_MPA_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include "../base/check.h"
#include "../base/reason.h"
#include "../base/share.h"
#include "../tcp/tcp.h"
#include "../wire/wire.h"

#define MPA_REASONS(X)                                                                             \
	X(MPA_BAD_STARTUP, SK_WARNING, "a malformed start-up frame, or one of the wrong kind")     \
	X(MPA_BAD_REVISION, SK_WARNING, "an MPA revision that is neither 1 nor 2")                 \
	X(MPA_PRIVATE_TOO_LONG, SK_WARNING, "more private data than the revision allows")          \
	X(MPA_ENHANCED_SHORT, SK_WARNING, "an enhanced frame without its IRD/ORD word")            \
	X(MPA_EARLY_DATA, SK_WARNING, "bytes after a request, before the reply was sent")          \
	X(MPA_PARAMETERS, SK_WARNING,                                                              \
		"a reply that contradicts the request (CRC, enhanced or not, flag A)")             \
	X(MPA_REJECTED, SK_NORMAL, "the peer rejected the connection")                             \
	X(MPA_CRC, SK_WARNING, "an FPDU whose CRC is wrong")                                       \
	X(MPA_MARKER, SK_WARNING, "a marker that does not point to its FPDU")                      \
	X(MPA_SHORT_ULPDU, SK_WARNING, "an FPDU too short for a DDP header")                       \
	X(MPA_NO_MEMORY, SK_FATAL, "no memory to gather a scattered FPDU")                         \
	X(MPA_NO_IRD, SK_WARNING,                                                                  \
		"the responder's ORD exceeds the local IRD (Terminate LLP 0x06)")                  \
	X(MPA_NO_RTR, SK_WARNING, "no common ready-to-receive message (Terminate LLP 0x07)")       \
	X(MPA_LOCAL, SK_WARNING, "the start-up failed on this side (Terminate LLP 0x05)")          \
	X(MPA_GATHERED, SK_NORMAL, "bytes of an unfinished FPDU were copied out of their mbufs")   \
	X(MPA_UNFINISHED, SK_WARNING,                                                              \
		"a stream was ended: unfinished FPDUs held all of the memory for them")

SK_REASONS_DECLARE(mpa, MPA_NONE, MPA_REASONS)

/* ---- Start-up ---- */

#define MPA_IRD_AUTO    0x3fff /* no limit stated (RFC 6581 9.1) */
#define MPA_STARTUP_MAX (MPA_STARTUP_LEN + MPA_PRIVATE_MAX)

/* The parameters that one side offers. */
struct mpa_offer {
	uint8_t revision; /* 1 or 2 */
	/* CRC required; it is used in both directions if either side requires it */
	bool crc;
	bool markers;      /* this side requires markers in the FPDUs that it receives */
	uint16_t ird, ord; /* revision 2: 0..16382, or MPA_IRD_AUTO */
	/* The ready-to-receive messages that may be used in the peer-to-peer model (RFC 6581 9.2).
	 * All false: the client/server model. */
	bool rtr_send, rtr_write, rtr_read;
	/* Revision 2: the application needs the enhancements, so there is no fall-back to revision
	 * 1 (RFC 6581 10). */
	bool enhanced_only;
};

/* The outcome of the exchange. Valid from MPA_REQUESTED on (responder: the peer's parameters), or
 * from MPA_ACCEPTED on. */
struct mpa_result {
	uint8_t revision;
	bool enhanced;
	bool peer_to_peer; /* the peer set control flag A (RFC 6581 9.2) */
	bool crc;
	bool tx_markers, rx_markers;
	/* The depths of this side: the number of Reads that the peer may have outstanding here, and
	 * that this side may have outstanding there. MPA_IRD_AUTO: the endpoint keeps its
	 * configured depth (RFC 6581 9.1). */
	uint16_t ird, ord;
	uint16_t peer_ird, peer_ord; /* as the peer stated them; MPA_IRD_AUTO if it stated none */
	bool peer_crc;               /* the peer requires CRCs */
	bool peer_send, peer_write, peer_read; /* the ready-to-receive messages of the peer */
	/* Initiator: the first FPDU must be this message. Responder: the initiator chooses among
	 * the messages that both sides support; this is the one of them that needs the most
	 * preparation: a Send without bytes must be accepted without a completion, a Read needs an
	 * IRD of 1, a Write needs nothing. */
	enum { MPA_RTR_NONE, MPA_RTR_SEND, MPA_RTR_WRITE, MPA_RTR_READ } rtr;
};

/* Private data of an application, without the IRD/ORD word. */
struct mpa_private {
	uint16_t len;
	uint8_t data[MPA_PRIVATE_MAX];
};

enum mpa_state {
	MPA_IDLE,
	MPA_WAIT_REPLY,   /* initiator: the request has been sent */
	MPA_WAIT_REQUEST, /* responder */
	MPA_REQUESTED,    /* responder: the application has to decide */
	MPA_ACCEPTED,     /* FPDUs may be sent */
	MPA_REFUSED,      /* the peer rejected; result.private_data may hold its reason */
	MPA_FAILED,
};

struct mpa_startup {
	enum mpa_state state;
	enum mpa_reason why; /* valid in MPA_FAILED */
	bool initiator;
	bool accepted; /* initiator: the peer is in FPDU mode, even if this side has failed since */
	struct mpa_offer offer;
	struct mpa_result result;
	struct mpa_private peer_private; /* valid whenever `result` is */
	uint16_t have;                   /* bytes of the frame gathered so far */
	uint8_t frame[MPA_STARTUP_MAX];
};

/* Begins an exchange with the given offer, which is copied. */
void mpa_startup_init(struct mpa_startup *s, bool initiator, const struct mpa_offer *offer);
/* Initiator: writes the request frame (at most MPA_STARTUP_MAX bytes at `buf`) with `len` bytes of
 * the application's private data. Returns the frame's length, -EMSGSIZE if there is too much
 * private data, or -EINVAL in another state than MPA_IDLE or for an invalid offer. */
int mpa_request_emit(struct mpa_startup *s, uint8_t *buf, const void *private_data, size_t len);
/* Either side: takes start-up bytes as they arrive. Returns the number of bytes that it took, which
 * never includes a byte behind the frame, or -reason; the state is then MPA_FAILED. The caller
 * reads from s->state what has arrived. */
int mpa_startup_input(struct mpa_startup *s, const uint8_t *data, size_t len);
/* Responder in MPA_REQUESTED: replaces the listener's offer by the application's offer for this
 * connection (CRC, markers, ready-to-receive messages). The revision remains the request's. */
void mpa_startup_choose(struct mpa_startup *s, const struct mpa_offer *o);
/* Computes into *r, which is in the condition of MPA_REQUESTED, what an acceptance with offer `o`
 * will agree on, depths included (RFC 6581 9). For callers that need the outcome before the reply
 * is built. */
void mpa_result_accept(struct mpa_result *r, const struct mpa_offer *o);
/* Responder in MPA_REQUESTED: writes the reply, which accepts (with the application's ird and ord,
 * reduced as RFC 6581 9.1 requires) or rejects. Returns the frame's length, -EMSGSIZE if there is
 * too much private data, or -EINVAL in another state or for invalid depths. */
int mpa_reply_emit(struct mpa_startup *s, uint8_t *buf, bool accept, uint16_t ird, uint16_t ord,
	const void *private_data, size_t len);
/* Returns the number of private data bytes that the revision leaves to the application. */
size_t mpa_private_max(uint8_t revision);
/* Moves the exchange to MPA_FAILED (MPA_LOCAL) after a failure outside of it, such as no memory or
 * no QP. */
void mpa_startup_abandon(struct mpa_startup *s);
/* In MPA_FAILED: writes the Terminate that the peer must receive before the stream closes (RFC 6581
 * 8: LLP, MPA, code 5, 6 or 7) as the first and last FPDU of the stream, at most MPA_TERMINATE_FPDU
 * bytes at `buf`. Returns its length. Returns 0 if the peer does not accept FPDUs; the caller then
 * resets the connection. */
unsigned mpa_terminate_emit(const struct mpa_startup *s, uint8_t *buf);
#define MPA_TERMINATE_FPDU                                                                         \
	(MPA_MARKER_LEN + MPA_LEN_FIELD + DDP_UNTAGGED_LEN + RDMAP_TERMINATE_LEN + 4)
/* Initiator whose TCP connection ended before a reply arrived: returns whether it may try again
 * without the enhancements over a new connection (RFC 6581 10). If so, sets *again to the offer for
 * the second attempt, whose IRD, ORD and first sender are then the application's responsibility. */
bool mpa_fall_back(const struct mpa_startup *s, struct mpa_offer *again);

/* ---- FPDUs sent ---- */

/* The sending side of a stream. 12 bytes. */
struct mpa_tx {
	uint32_t pos;  /* number of stream bytes sent in FPDU mode, with markers */
	uint32_t emss; /* TCP's effective maximum segment size: an FPDU must fit into it */
	bool crc, markers;
};

/* Begins FPDU mode at stream position 0. */
void mpa_tx_init(struct mpa_tx *t, bool crc, bool markers, uint32_t emss);
/* Returns the largest ULPDU, in bytes, that fits a segment: EMSS - 6 - EMSS mod 4 without markers
 * (RFC 5044 4.5), less with markers (RFC 5044 4.3). The result is at most 65535 - 18 and at least
 * the 128 bytes that DDP relies on; TCP cuts a record that is longer than a segment. */
uint32_t mpa_mulpdu(const struct mpa_tx *t);
/* Returns the number of stream bytes of an FPDU with this ULPDU at stream position `pos` (length
 * field, pad, CRC and markers included). */
uint32_t mpa_fpdu_len(const struct mpa_tx *t, uint32_t pos, uint32_t ulpdu_len);

/*
 * Writes one FPDU into mpa_fpdu_len() bytes of contiguous memory: mpa_write_begin(), any number of
 * mpa_write_put() with ulpdu_len bytes in all, mpa_write_end(). Only one FPDU may be in progress
 * for each mpa_tx.
 */
struct mpa_writer {
	struct mpa_tx *tx;
	uint8_t *start, *at; /* first byte (of the marker, if one leads), next byte */
	/* CRC and Internet checksum of the bytes so far: of connections with CRCs. With markers,
	 * they are computed at the end, over the finished FPDU. */
	struct sk_check check;
	uint32_t left;      /* ULPDU bytes that have not been put yet */
	uint32_t start_pos; /* stream position of the length field */
};

/* Called by the inline functions below when the connection uses markers. */
void mpa_write_marker(struct mpa_writer *w);
void mpa_write_marked(struct mpa_writer *w, const void *src, uint32_t len);
/* Called by mpa_write_put() when the connection uses CRCs and no markers. */
void mpa_write_checked(struct mpa_writer *w, const void *src, uint32_t len);

/* Begins an FPDU with an ULPDU of `ulpdu_len` bytes at `dst`. */
static inline void
mpa_write_begin(struct mpa_writer *w, struct mpa_tx *t, uint8_t *dst, uint32_t ulpdu_len)
{
	w->tx = t;
	w->start = dst;
	w->at = dst;
	w->left = ulpdu_len;
	w->check = SK_CHECK_INIT;
	if (t->markers)
		mpa_write_marker(w);
	w->start_pos = t->pos + (uint32_t)(w->at - dst);
	wire_mpa_len_emit(w->at, (uint16_t)ulpdu_len);
	if (t->crc && !t->markers)
		w->check = sk_check(w->check, w->at, MPA_LEN_FIELD);
	w->at += MPA_LEN_FIELD;
}

/* Appends `len` bytes of the ULPDU. */
static inline void
mpa_write_put(struct mpa_writer *w, const void *src, uint32_t len)
{
	assert(len <= w->left);
	w->left -= len;
	if (w->tx->markers) {
		mpa_write_marked(w, src, len);
		return;
	}
	if (w->tx->crc)
		mpa_write_checked(w, src, len);
	else
		memcpy(w->at, src, len);
	w->at += len;
}

/* Writes the CRC field behind the bytes of `c`, 0 if the connection uses none, and adds it to the
 * Internet checksum. */
static inline void
mpa_crc_put(uint8_t *at, struct sk_check *c, bool use_crc)
{
	uint32_t crc = use_crc ? sk_crc32c_final((uint32_t)c->crc) : 0;

	wire_mpa_crc_emit(at, crc);
	c->sum = sk_sum_add(c->sum, htole32(crc));
}

/* Appends pad and CRC (0 if the connection uses none). Returns the FPDU's stream bytes, which are
 * added to the position t->pos. If the connection uses CRCs, w->check.sum is then their Internet
 * checksum. */
static inline uint32_t
mpa_write_end(struct mpa_writer *w)
{
	struct mpa_tx *t = w->tx;
	uint32_t pad = -(uint32_t)(w->at - w->start) % 4, len;

	assert(w->left == 0);
	memset(w->at, 0, 4); /* a fixed size, for speed; the CRC overwrites all but the pad */
	if (t->crc && !t->markers && pad > 0)
		w->check.crc = sk_crc32c((uint32_t)w->check.crc, w->at, pad);
	w->at += pad;
	if (t->markers) {
		mpa_write_marker(w);
		if (t->crc)
			w->check = sk_check(w->check, w->start, (size_t)(w->at - w->start));
	}
	mpa_crc_put(w->at, &w->check, t->crc);
	len = (uint32_t)(w->at - w->start) + MPA_CRC_LEN;
	t->pos += len;
	return len;
}

/* ---- FPDUs received ---- */

/* The number of slices that may be held from one mpa_rx_add() to the next if they have fewer than
 * MPA_TINY bytes on average. */
#define MPA_SLICES_MAX 32
#define MPA_TINY       256

/* The most memory, in bytes, that an unfinished FPDU takes after its bytes were gathered: its
 * length, and what is unused of the buffer that is filled last. */
#define MPA_UNFINISHED_MAX (96 * 1024)

struct mpa_rx;
TAILQ_HEAD(mpa_holders, mpa_rx);

/*
 * The limits on what the unfinished FPDUs of all receivers of a stage hold. `slices` counts TCP's
 * slices, each of which pins a buffer of the network. When a user's share of them is used up, the
 * held bytes are gathered into buffers of this library, which `bytes` counts. When this share is
 * used up, too, a stream has to end: mpa_store_victim() chooses it.
 */
struct mpa_store {
	struct sk_share slices; /* in slices */
	struct sk_share bytes;
	/* [nusers]: the receivers that hold something, by the time of their last progress */
	struct mpa_holders *holders;
	uint64_t *counters; /* by enum mpa_reason */
};

/* Initializes a store for `slices` slices and `bytes` bytes, with users 0 to nusers - 1, of which
 * the first `reserved` ones have a minimum of `percent_min` percent of each (0: none). A minimum
 * has room for one unfinished FPDU; `bytes` grows where that needs more. A user holds at most
 * `percent_most` percent (0: all). `counters` (by enum mpa_reason) stays the caller's. Returns 0 or
 * -ENOMEM; mpa_store_fini() frees what the store holds, in any case. */
int mpa_store_init(struct mpa_store *st, uint32_t slices, uint32_t bytes, uint32_t nusers,
	uint32_t reserved, unsigned percent_min, unsigned percent_most, uint64_t *counters);
void mpa_store_fini(struct mpa_store *st);

/*
 * The receiving side of a stream: takes slices and finds whole FPDUs in them, whatever their
 * position in the segments.
 *
 * The bytes of a peer that sends tiny segments are gathered into buffers of this library, so that
 * the peer pins few of the network's buffers: at most SK_MAX(MPA_SLICES_MAX, held bytes /
 * MPA_TINY), and the chain that arrived last.
 */
struct mpa_rx {
	struct tcp_slice *head, *tail; /* bytes received and not yet consumed */
	uint32_t off;                  /* offset of the next FPDU in head */
	uint32_t have;                 /* number of bytes held from there on */
	uint32_t pos;                  /* stream position of the next FPDU */
	/* TCP's slices only, without the buffers into which tiny ones were gathered */
	uint32_t nslices;
	uint32_t slice_bytes; /* sum of their lengths */
	bool crc, markers;
	bool checked;   /* the next FPDU has passed its checks, but is not consumed yet */
	bool no_memory; /* gathering failed: the stream must end */
	bool starved;   /* gathering failed: the user's share of the store is used up */
	bool whole;     /* the FPDU whose CRC was checked last was a whole slice */
	bool listed;    /* in store->holders[user] */
	uint16_t user;
	void (*slice_free)(void *ctx, struct tcp_slice *chain);
	void *ctx;
	/* Usually not used: the receiver then holds nothing between two calls. */
	struct mpa_store *store;     /* NULL: no limits */
	uint32_t counted, allocated; /* slices and bytes that the store counts */
	TAILQ_ENTRY(mpa_rx) link;
};

/* A whole FPDU whose CRC and markers are correct. Valid until mpa_rx_done(), mpa_rx_add() or
 * mpa_rx_clear(). */
struct mpa_fpdu {
	struct mpa_rx *rx;
	uint32_t ulpdu_len;
	uint32_t stream_len; /* with length field, pad, CRC and markers */
	const uint8_t *flat; /* the ULPDU if it lies in one piece, else NULL */
};

/* Begins FPDU mode at stream position 0. The receiver returns each slice that it was given through
 * slice_free(). */
void mpa_rx_init(struct mpa_rx *r, bool crc, bool markers,
	void (*slice_free)(void *ctx, struct tcp_slice *chain), void *ctx);
/* Makes the receiver, which holds nothing, count what it holds in `store`, for the user number
 * `user`. */
void mpa_rx_limit(struct mpa_rx *r, struct mpa_store *store, uint16_t user);
/* Returns false when mpa_rx_keep() has nothing to do. */
static inline bool
mpa_rx_holds(const struct mpa_rx *r)
{
	return r->head != NULL || r->listed;
}
/* Counts the bytes that the receiver holds after all whole FPDUs are consumed, and gathers them
 * when the user's share of slices is used up. `progress`: an FPDU was consumed since the last call.
 * Returns false when the store has no room for them: the caller ends a stream
 * (mpa_store_victim()), and calls again unless it was the one of `r`. */
bool mpa_rx_keep(struct mpa_rx *r, bool progress);
/* Returns the receiver whose stream ends so that `r` has room. Its user is that of `r` if a limit
 * of this user is reached, and otherwise the user that holds the most bytes. Among the eight
 * receivers of this user that made no progress for the longest time, it is the one that holds the
 * most. */
struct mpa_rx *mpa_store_victim(struct mpa_rx *r);
/* Takes ownership of a chain of in-order slices with data (s->data is not NULL). They are returned
 * through slice_free(), in order. */
void mpa_rx_add(struct mpa_rx *r, struct tcp_slice *chain);
/* Returns 1 and sets *f to the next FPDU, which stays the same until mpa_rx_done(). Returns 0 if
 * the FPDU has not arrived completely. Returns -reason if the stream is broken: MPA_CRC,
 * MPA_MARKER, MPA_SHORT_ULPDU or MPA_NO_MEMORY. The CRC is checked before any field of the FPDU
 * other than its length is used. */
int mpa_rx_next(struct mpa_rx *r, struct mpa_fpdu *f);
/* Copies bytes [off, off + len) of the ULPDU to `dst`. The caller stays within ulpdu_len. */
void mpa_fpdu_copy(const struct mpa_fpdu *f, uint32_t off, void *dst, uint32_t len);
/* Consumes the FPDU and frees the slices that are used up. Returns the number of stream bytes
 * consumed, for tcp_consumed(). */
uint32_t mpa_rx_done(struct mpa_rx *r, const struct mpa_fpdu *f);
/* Frees all slices that are held. */
void mpa_rx_clear(struct mpa_rx *r);

#endif
