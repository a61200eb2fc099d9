/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two Sakers make a Falcon connection, of which Falcon says nothing: a request and a reply on a
 * TCP connection to the listener's port. doc/falcon-cm.md is the protocol; this is one side of one
 * such stream, without clock and without I/O: bytes come in and go out, events tell what has come.
 * The stream stays open as long as the Falcon connection lives: keys are rotated on it, and its end
 * is the connection's end. TLS 1.3, where it is configured, is inside.
 *
 *   initiator                                     responder
 *   rofx_connect(ours)     -- CONNECT -->         ROFX_EV_REQUEST: rofx_request()
 *   ROFX_EV_AGREED:        <-- ACCEPT --          rofx_accept(ours): rofx_agreed(), make the
 *     rofx_agreed(), make the fa_conn, then         fa_conn, which may answer but not yet send
 *   rofx_ready()           -- READY -->           ROFX_EV_ESTABLISHED: it may send
 *
 * After each call of rofx_input() and rofx_timeout(): all of rofx_event(); after each call at all:
 * rofx_output() while it has bytes, and rofx_deadline().
 */
#ifndef SAKER_ROF_EXCHANGE_H
#define SAKER_ROF_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/addr.h"
#include "../base/reason.h"
#include "../falcon/falcon.h"
#include "../falcon/psp.h"
#include "rof.h"

#define ROFX_VERSION     1
#define ROFX_KEY_LEN     16 /* first bytes of the stream, which tell it from MPA */
#define ROFX_PRIVATE_MAX 512
#define ROFX_DEPTH_MAX   0x3fff /* of IRD and ORD; as such: no limit of this side's (RFC 6581) */
#define ROFX_ANY         0xff   /* a responder's ordering or errors: as the initiator wants it */

#define ROFX_REASONS(X)                                                                            \
	X(ROFX_BAD_KEY, SK_WARNING, "a stream that does not begin as an exchange does")            \
	X(ROFX_BAD_VERSION, SK_WARNING, "the peer speaks another version of the exchange")         \
	X(ROFX_BAD_FRAME, SK_WARNING, "a frame of an unknown type, or longer than any may be")     \
	X(ROFX_MALFORMED, SK_WARNING, "a frame whose fields cannot be")                            \
	X(ROFX_UNEXPECTED, SK_WARNING, "a frame that may not come now")                            \
	X(ROFX_CONTRADICTION, SK_WARNING, "a reply that goes beyond what was offered")             \
	X(ROFX_FLOOD, SK_WARNING, "more to answer than the peer reads")                            \
	X(ROFX_TIMEOUT, SK_NOTICE, "no frame came in time")                                        \
	X(ROFX_CLOSED, SK_NOTICE, "the stream ended before the exchange did")                      \
	X(ROFX_TLS, SK_WARNING, "TLS failed: wrong key, wrong certificate, or damage")             \
	X(ROFX_NO_TLS, SK_WARNING, "the peer wants TLS, which is not configured")                  \
	X(ROFX_TLS_NEEDED, SK_WARNING, "the peer came in clear; TLS is configured")                \
	X(ROFX_CRYPTO_IN_CLEAR, SK_WARNING, "PSP with keys was asked for on a clear stream")       \
	X(ROFX_NO_PSP, SK_WARNING, "no PSP version suits both sides")                              \
	X(ROFX_TRANSPORT, SK_WARNING, "another transport than the one listened for")               \
	X(ROFX_ORDERING, SK_WARNING, "the two sides want different ordering modes")                \
	X(ROFX_ERRORS, SK_WARNING, "the two sides want different error modes")                     \
	X(ROFX_ENCAPSULATION, SK_WARNING, "one side wants tunnel mode, the other does not")        \
	X(ROFX_REFUSED, SK_NORMAL, "the application refused the connection")                       \
	X(ROFX_CROSSED, SK_NORMAL, "of two crossing attempts this one gave way")                   \
	X(ROFX_NO_QP, SK_NOTICE, "no such QP, or one that waits for another peer")                 \
	X(ROFX_NO_SERVICE, SK_NOTICE, "nobody listens there")                                      \
	X(ROFX_NO_RESOURCE, SK_WARNING, "a table or memory is full")                               \
	X(ROFX_NOT_READY, SK_NOTICE, "the peer's QP was not ready in all the time we waited")

SK_REASONS_DECLARE(rofx, ROFX_NONE, ROFX_REASONS)

/* ---- What one side wants ---- */

enum rofx_addressing {
	ROFX_LISTENER, /* the service is the port that the stream goes to */
	ROFX_ADDRESS,  /* (to_gid, to_qpn): a QP that a program moved itself; a host, for datagrams
			  (qpn and to_qpn 0) */
};

#define ROFX_PSP(version) ((uint16_t)(1u << (version))) /* of enum psp_version */
#define ROFX_PSP_KEYED                                                                             \
	(ROFX_PSP(PSP_AES_GCM_128) | ROFX_PSP(PSP_AES_GCM_256) | ROFX_PSP(PSP_GMAC_128) |          \
		ROFX_PSP(PSP_GMAC_256))

/* Host byte order. Numbers of 24 bits have their upper byte 0. */
struct rofx_side {
	uint8_t transport;          /* ROF_RC, ROF_XRC, ROF_UD */
	uint8_t addressing;         /* enum rofx_addressing; a responder's is the request's */
	uint8_t ordering;           /* enum rof_ordering; a responder's may be ROFX_ANY */
	uint8_t errors;             /* enum rof_errors; likewise */
	uint32_t cid;               /* 24 bits: in the packets that this side receives */
	uint32_t qpn;               /* 24 bits: this side's; 0 for ROF_UD */
	uint32_t to_qpn;            /* 24 bits: ROFX_ADDRESS */
	struct sk_addr gid, to_gid; /* this side's and the other's address */
	uint32_t request_psn, data_psn, rsn; /* first of this side */
	uint16_t mtu;                        /* ROF_MTU_MIN to ROF_MTU_MAX */
	uint16_t ird, ord;                   /* 0 to ROFX_DEPTH_MAX */
	uint8_t request_window;              /* receives: 1 to FA_REQUEST_WINDOW packets */
	uint8_t data_window;                 /* 1 to FA_DATA_WINDOW */
	uint8_t flows;                       /* 1 or FA_FLOWS_MAX */
	uint8_t rnr_retry;                   /* how often it wants to be asked to wait: 3 bits */
	uint8_t rnr_code;                    /* what it asks others to wait: 5 bits */
	uint8_t ttl;                         /* its packets start with; not 0 */
	uint32_t function;                   /* 24 bits: destination function of this side */
	bool tunnel;                         /* PSP tunnel mode; both sides alike */
	struct sk_addr outer;                /* of this side's outer IP header, if so */
	bool has_pcid;                       /* packets to this side carry `pcid` as cookie */
	uint64_t pcid;
	uint16_t psp; /* ROFX_PSP() bits of what it can do; as such, of a request: what it offers */
	uint32_t spi; /* under which this side receives */
	/* Keys that belong to `spi`; the one that the chosen version needs is sent. Only read where
	 * `psp` says so; never shown of a peer's side. */
	uint8_t key128[16], key256[32];
};

/* ---- What came of it ---- */

/* One direction's security association. */
struct rofx_sa {
	uint8_t version; /* enum psp_version */
	uint32_t spi;
	uint8_t key[PSP_KEY_MAX]; /* psp_key_len(version) bytes */
};

struct rofx_agreed {
	uint8_t transport, ordering, errors, flows;
	uint16_t mtu;      /* the smaller one */
	uint16_t ird, ord; /* ours: what the peer may have outstanding here, and we there */
	bool tunnel;
	uint16_t tx_window;          /* fa_params.tx_window */
	uint8_t rnr_retry, rnr_code; /* rof_chan_params: the peer's wish, our wish */
	uint8_t psp;                 /* enum psp_version, of both directions */
	/* `rx` has our SPI and key. `tx` has the peer's: at the responder from ROFX_EV_ESTABLISHED
	 * on (spi at once, key then). */
	struct rofx_sa rx, tx;
	struct rofx_side ours, peer;
	uint16_t private_len; /* the peer's */
	uint8_t private_data[ROFX_PRIVATE_MAX];
};

/* What the exchange settles of the two; the rest of *p (pools, credits, algorithm, user) is left
 * alone. */
void rofx_fill_falcon(const struct rofx_agreed *a, struct fa_params *p);
void rofx_fill_channel(const struct rofx_agreed *a, struct rof_chan_params *p);

/* ---- A stream ---- */

struct rofx;
struct rofx_tls;

/* 0 in a time: the default. */
struct rofx_config {
	const struct rofx_tls *tls; /* NULL: in clear, so without keys. Outlives the streams */
	bool allow_clear;           /* a responder with TLS takes peers in clear, too */
	const struct sk_addr
		*peer;        /* TLS by certificate: it must be issued for this address; NULL:
				 any that the CA has signed. Read by rofx_connect() etc. only */
	uint64_t request_ns;  /* responder: until the request is whole (3 s) */
	uint64_t reply_ns;    /* initiator: until an answer; responder: until READY (10 s) */
	uint64_t patience_ns; /* initiator: while the peer says "not ready yet" (60 s) */
};

/* In order. */
enum rofx_event {
	ROFX_EV_NONE,
	ROFX_EV_REQUEST,     /* responder: accept, reject, or ask to come again */
	ROFX_EV_LOOKUP,      /* responder: rofx_question(); rofx_found() or rofx_reject() */
	ROFX_EV_AGREED,      /* initiator: rofx_agreed(), then rofx_ready() */
	ROFX_EV_ESTABLISHED, /* responder: the initiator is ready, too */
	ROFX_EV_FOUND,       /* initiator: rofx_answer(); the stream may be closed */
	ROFX_EV_REKEY,       /* agreed.tx is new: send with it, then rofx_rekeyed() */
	ROFX_EV_REKEYED,  /* the peer sends with agreed.rx as of rofx_rekey(): the old SPI may go */
	ROFX_EV_REJECTED, /* initiator: rofx_why(), rofx_agreed()->private_*; close the stream */
	ROFX_EV_FAILED,   /* rofx_why(); close the stream once rofx_output() is empty */
	ROFX_EV_ENDED,    /* an established connection ended: rofx_closed() */
};

/* What a request asks for: the peer's side, and private data. */
struct rofx_request {
	struct rofx_side peer;
	bool secure; /* came in TLS */
	uint16_t private_len;
	uint8_t private_data[ROFX_PRIVATE_MAX];
};

/* Which datagram QP serves a port? */
struct rofx_question {
	uint16_t service; /* of the datagrams' port space */
	struct sk_addr gid, to_gid;
	uint16_t private_len;
	uint8_t private_data[ROFX_PRIVATE_MAX];
};

struct rofx_answer {
	uint32_t qpn, qkey;
	uint16_t private_len;
	uint8_t private_data[ROFX_PRIVATE_MAX];
};

/* Is this the beginning of an exchange? 1: yes; 0: no; -1: ROFX_KEY_LEN bytes are needed. */
int rofx_match(const uint8_t *data, size_t len);

/* Starts a stream over which it will ask for a connection. NULL with *err: -EINVAL (`ours` cannot
 * be; or needs keys in clear), -EMSGSIZE, -ENOMEM. */
struct rofx *rofx_connect(const struct rofx_config *cfg, uint64_t now, const struct rofx_side *ours,
	const void *private_data, size_t len, int *err);
/* Likewise, over which it will ask for a datagram QP. */
struct rofx *rofx_lookup(
	const struct rofx_config *cfg, uint64_t now, const struct rofx_question *q, int *err);
/* The other end of such a stream, from its first byte on. NULL: no memory. */
struct rofx *rofx_listen(const struct rofx_config *cfg, uint64_t now);
/* Wipes the keys. */
void rofx_destroy(struct rofx *x);

/* Takes bytes of the stream: all of them, or returns -reason (and ROFX_EV_FAILED comes). */
int rofx_input(struct rofx *x, uint64_t now, const uint8_t *data, size_t len);
/* Bytes to send: returns how many were written to `buf`. */
size_t rofx_output(struct rofx *x, uint8_t *buf, size_t room);
/* The stream has ended, on the peer's part or altogether. */
void rofx_closed(struct rofx *x);
/* When rofx_timeout() is to be called; UINT64_MAX: never. */
uint64_t rofx_deadline(const struct rofx *x);
void rofx_timeout(struct rofx *x, uint64_t now);
/* The next event; ROFX_EV_NONE: there is none. */
enum rofx_event rofx_event(struct rofx *x);
/* The reason of ROFX_EV_REJECTED and ROFX_EV_FAILED. */
enum rofx_reason rofx_why(const struct rofx *x);
/* The version that the peer speaks, after ROFX_BAD_VERSION; else ours. */
uint8_t rofx_peer_version(const struct rofx *x);

/* Valid from the event on: the first three until rofx_trim(), NULL then. */
const struct rofx_request *rofx_request(const struct rofx *x);
const struct rofx_question *rofx_question(const struct rofx *x);
const struct rofx_answer *rofx_answer(const struct rofx *x);
const struct rofx_agreed *rofx_agreed(const struct rofx *x);

/* ---- The responder's answers: once for each request ---- */

/* 0: the ACCEPT is on its way, rofx_agreed() is valid. -EPROTO: the two sides do not go together;
 * the peer is being told (rofx_output()), ROFX_EV_FAILED comes, rofx_why() says why. -EINVAL (not
 * the time, or `ours` cannot be), -EMSGSIZE: nothing has happened. All of these and those below:
 * -ENOBUFS when the peer does not read, and ROFX_EV_FAILED comes. */
int rofx_accept(struct rofx *x, uint64_t now, const struct rofx_side *ours,
	const void *private_data, size_t len);
/* Also for a lookup. `why`: ROFX_REFUSED, ROFX_CROSSED, ROFX_NO_QP, ROFX_NO_SERVICE,
 * ROFX_NO_RESOURCE, or what the sides differ in. Close the stream once the output is empty. */
int rofx_reject(struct rofx *x, enum rofx_reason why, const void *private_data, size_t len);
/* The QP is not ready to receive yet: the initiator asks again on this stream after `delay_ms`, and
 * ROFX_EV_REQUEST comes again. */
int rofx_later(struct rofx *x, uint64_t now, uint32_t delay_ms);
int rofx_found(struct rofx *x, uint32_t qpn, uint32_t qkey, const void *private_data, size_t len);

/* ---- The initiator ---- */

/* After ROFX_EV_AGREED: packets can be received. 0 or -EINVAL. */
int rofx_ready(struct rofx *x);

/* ---- A live connection ---- */

/* The peer shall send under another SPI and key, of the version agreed. One at a time: -EBUSY until
 * ROFX_EV_REKEYED; -EINVAL: not the time, or another version. agreed.rx is `sa` from then on. */
int rofx_rekey(struct rofx *x, uint64_t now, const struct rofx_sa *sa);
/* After ROFX_EV_REKEY. 0 or -EINVAL. */
int rofx_rekeyed(struct rofx *x);
/* The connection has failed, or ends without warning: the peer hears why, and nothing is said
 * behind it; close the stream. 0 or -EINVAL (not the time, or it has ended already). */
int rofx_give_up(struct rofx *x, enum rofx_reason why);
/* Established: gives back what only the start-up needed. rofx_agreed() stays. */
void rofx_trim(struct rofx *x);

/* ---- Crossing attempts ---- */

enum rofx_crossing {
	ROFX_OURS,   /* ours goes on: reject theirs with ROFX_CROSSED */
	ROFX_THEIRS, /* accept theirs, close ours */
	ROFX_SELF,   /* both are the same QP */
};

/* Both sides of an ROFX_ADDRESS connection have asked and neither has got an answer: the attempt of
 * the greater (gid, qpn) survives. Whoever is rejected with ROFX_CROSSED waits for the other's. */
enum rofx_crossing rofx_cross(const struct rofx_side *ours, const struct rofx_side *theirs);

/* ---- TLS ---- */

struct rofx_tls_config {
	/* Pre-shared key, 16 to 64 bytes; psk_len 0: certificates. */
	const uint8_t *psk;
	size_t psk_len;
	/* PEM texts; both sides show a certificate and check the other's. */
	const char *certificate, *private_key, *ca;
};

/* NULL with one sentence in `err`. */
struct rofx_tls *rofx_tls_create(const struct rofx_tls_config *cfg, char *err, size_t err_len);
void rofx_tls_destroy(struct rofx_tls *t);

#endif
