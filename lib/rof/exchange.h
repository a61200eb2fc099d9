/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange: how two instances of Saker create a Falcon connection, for which the Falcon
 * specifications define no protocol. It is a request and a reply on a TCP connection to the
 * listener's port. doc/falcon-cm.md specifies the protocol. This library is one side of one such
 * stream, without a clock and without I/O: the caller passes received bytes in and takes bytes to
 * send, and events report what has happened. The stream stays open as long as the Falcon connection
 * lives: it carries the rotation of keys, and its end is the connection's end. TLS 1.3, if
 * configured, is inside the library.
 *
 *   initiator                                     responder
 *   rofx_connect(ours)     -- CONNECT -->         ROFX_EV_REQUEST: rofx_request()
 *   ROFX_EV_AGREED:        <-- ACCEPT --          rofx_accept(ours): rofx_agreed(), create the
 *     rofx_agreed(), create the fa_conn,            fa_conn, which may answer but not yet send
 *     then rofx_ready()    -- READY -->           ROFX_EV_ESTABLISHED: it may send
 *
 * After each rofx_input() and rofx_timeout(), the caller takes all events by rofx_event(). After
 * each call it takes rofx_output() while there are bytes, and reads rofx_deadline(). Times are
 * nanoseconds of any monotonic clock.
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
#define ROFX_KEY_LEN     16 /* first bytes of the stream; they differ from MPA's */
#define ROFX_PRIVATE_MAX 512
/* Of IRD and ORD. This value itself means that a side has no limit (RFC 6581). */
#define ROFX_DEPTH_MAX 0x3fff
/* Entries of a list of UDP source ports (rofx_list_ports()), and its least port. */
#define ROFX_PORTS     FA_PATHS
#define ROFX_PORT_BASE 49152
/* A responder's ordering or errors: the initiator's value is accepted. */
#define ROFX_ANY 0xff

#define ROFX_REASONS(X)                                                                            \
	X(ROFX_BAD_KEY, SK_WARNING, "a stream that does not begin with the exchange's key")        \
	X(ROFX_BAD_VERSION, SK_WARNING, "the peer has another version of the exchange")            \
	X(ROFX_BAD_FRAME, SK_WARNING, "a frame of an unknown type, or longer than permitted")      \
	X(ROFX_MALFORMED, SK_WARNING, "a frame with invalid fields")                               \
	X(ROFX_UNEXPECTED, SK_WARNING, "a frame that is invalid in this state")                    \
	X(ROFX_CONTRADICTION, SK_WARNING, "a reply that exceeds the request's offer")              \
	X(ROFX_FLOOD, SK_WARNING, "the peer does not read its answers")                            \
	X(ROFX_TIMEOUT, SK_NOTICE, "no frame arrived in time")                                     \
	X(ROFX_CLOSED, SK_NOTICE, "the stream ended before the exchange did")                      \
	X(ROFX_TLS, SK_WARNING, "TLS failed: wrong key, refused by the peer, or corrupt bytes")    \
	X(ROFX_TLS_NAME, SK_WARNING, "the peer's key or certificate is not for its address")       \
	X(ROFX_TLS_EXPIRED, SK_WARNING, "the peer's certificate has expired, or is not valid yet") \
	X(ROFX_TLS_CA, SK_WARNING, "the peer's certificate is not one of the configured CA")       \
	X(ROFX_NO_KEY, SK_WARNING, "no key or certificate is configured for the peer's address")   \
	X(ROFX_NO_TLS, SK_WARNING, "the peer requires TLS, which is not configured")               \
	X(ROFX_TLS_NEEDED, SK_WARNING, "the peer connected in clear, but TLS is configured")       \
	X(ROFX_CRYPTO_IN_CLEAR, SK_WARNING, "PSP with keys was requested on a stream in clear")    \
	X(ROFX_NO_PSP, SK_WARNING, "the two sides have no PSP version in common")                  \
	X(ROFX_PSP_REQUIRED, SK_WARNING, "the peer offers no PSP version with keys")               \
	X(ROFX_TRANSPORT, SK_WARNING, "the transport is not the listener's")                       \
	X(ROFX_ORDERING, SK_WARNING, "the two sides have different ordering modes")                \
	X(ROFX_ERRORS, SK_WARNING, "the two sides have different error modes")                     \
	X(ROFX_ENCAPSULATION, SK_WARNING, "one side uses tunnel mode, the other does not")         \
	X(ROFX_REFUSED, SK_NORMAL, "the application refused the connection")                       \
	X(ROFX_CROSSED, SK_NORMAL, "the other one of two crossing attempts continues")             \
	X(ROFX_NO_QP, SK_NOTICE, "no such QP, or one that waits for another peer")                 \
	X(ROFX_NO_SERVICE, SK_NOTICE, "no listener on that service")                               \
	X(ROFX_NO_RESOURCE, SK_WARNING, "a table or memory is full")                               \
	X(ROFX_NOT_READY, SK_NOTICE, "the peer's QP was not ready in time")

SK_REASONS_DECLARE(rofx, ROFX_NONE, ROFX_REASONS)

/* ---- The parameters of one side ---- */

enum rofx_addressing {
	ROFX_LISTENER, /* the service is the TCP port that the stream addresses */
	/* (to_gid, to_qpn) names a QP modified by the program, or, with qpn and to_qpn 0, a host
	 * for datagrams. */
	ROFX_ADDRESS,
};

#define ROFX_PSP(version) ((uint16_t)(1u << (version))) /* bit of an enum psp_version */
#define ROFX_PSP_KEYED                                                                             \
	(ROFX_PSP(PSP_AES_GCM_128) | ROFX_PSP(PSP_AES_GCM_256) | ROFX_PSP(PSP_GMAC_128) |          \
		ROFX_PSP(PSP_GMAC_256))

/* In host byte order, as all structures of this header. */
struct rofx_side {
	uint8_t transport;          /* ROF_RC, ROF_XRC, ROF_UD */
	uint8_t addressing;         /* enum rofx_addressing; a responder's equals the request's */
	uint8_t ordering;           /* enum rof_ordering; a responder's may be ROFX_ANY */
	uint8_t errors;             /* enum rof_errors; a responder's may be ROFX_ANY */
	uint32_t cid;               /* 24 bits: of the packets that this side receives */
	uint32_t qpn;               /* 24 bits: of this side; 0 for ROF_UD */
	uint32_t to_qpn;            /* 24 bits: of the other side, for ROFX_ADDRESS */
	struct sk_addr gid, to_gid; /* addresses of this side and of the other side */
	uint32_t request_psn, data_psn, rsn; /* first values that this side sends */
	/* payload bytes of a packet, ROF_MTU_MIN to ROF_MTU_MAX */
	uint16_t mtu;
	uint16_t ird, ord;      /* 0 to ROFX_DEPTH_MAX */
	uint8_t request_window; /* receive window: 1 to FA_REQUEST_WINDOW packets */
	uint8_t data_window;    /* receive window: 1 to FA_DATA_WINDOW packets */
	uint8_t flows;          /* 1 or FA_FLOWS_MAX */
	uint8_t rnr_retry;      /* 3 bits: RNR retries that this side accepts */
	/* 5 bits: code of the RNR timeout that this side requests */
	uint8_t rnr_code;
	uint8_t ttl;       /* initial TTL of its packets; not 0 */
	uint32_t function; /* 24 bits: destination function of this side */
	bool tunnel;       /* PSP tunnel mode; equal on both sides */
	/* tunnel mode: address of this side in the outer IP header */
	struct sk_addr outer;
	bool has_pcid; /* packets to this side carry `pcid` as cookie */
	uint64_t pcid;
	/* ROFX_PSP() bits of the supported versions; in a request, of the offered ones */
	uint16_t psp;
	uint32_t spi; /* SPI under which this side receives */
	/* The keys that belong to `spi`; the key for the chosen version is sent. They are read only
	 * if `psp` has a version of their length, and a peer's side never has them. */
	uint8_t key128[16], key256[32];
};

/* ---- The result ---- */

/* The security association of one direction. */
struct rofx_sa {
	uint8_t version; /* enum psp_version */
	uint32_t spi;
	uint8_t key[PSP_KEY_MAX]; /* psp_key_len(version) bytes */
};

struct rofx_agreed {
	uint8_t transport, ordering, errors, flows;
	uint16_t mtu; /* the smaller one of the two sides' */
	/* requests that the peer may have outstanding here, and this side there */
	uint16_t ird, ord;
	bool tunnel;
	uint16_t tx_window;          /* fa_params.tx_window */
	uint8_t rnr_retry, rnr_code; /* rof_chan_params: the peer's value, this side's value */
	uint8_t psp;                 /* enum psp_version, of both directions */
	/* `rx` has the SPI and key of this side, `tx` those of the peer. At the responder, the SPI
	 * of `tx` is valid at once, its key from ROFX_EV_ESTABLISHED on. */
	struct rofx_sa rx, tx;
	struct rofx_side ours, peer;
	/* The peer has listed the UDP source ports of the packets to it: fa_params.paths. Valid as
	 * `tx` is. */
	bool listed;
	uint16_t tx_ports[ROFX_PORTS];
	uint16_t private_len; /* of the peer's private data, in bytes */
	uint8_t private_data[ROFX_PRIVATE_MAX];
};

/* Fill in the fields that the exchange determines, and leave the others of *p (pools, credits,
 * algorithm, user) unchanged. p->paths refers to *a. */
void rofx_fill_falcon(const struct rofx_agreed *a, struct fa_params *p);
void rofx_fill_channel(const struct rofx_agreed *a, struct rof_chan_params *p);

/* ---- A stream ---- */

struct rofx;
struct rofx_tls;

/* Configuration of a stream. A time of 0 means the default in parentheses. */
struct rofx_config {
	/* NULL: in clear, and therefore without keys. A stream uses the identities that are loaded
	 * when it begins. */
	struct rofx_tls *tls;
	bool allow_clear; /* a responder with TLS also accepts peers in clear */
	/* A responder refuses streams in clear, and requests without a PSP version with keys. */
	bool require_psp;
	/* Addresses of both ends of the stream. `peer` determines the key or certificate that the
	 * peer must have; NULL: those of all peers, and any address. Only rofx_connect(),
	 * rofx_lookup() and rofx_listen() read the two pointers. */
	const struct sk_addr *local, *peer;
	uint64_t request_ns; /* responder: until the request is complete (3 s) */
	/* Initiator: until an answer arrives; responder: until READY arrives (10 s). */
	uint64_t reply_ns;
	uint64_t patience_ns; /* initiator: while the peer is not ready yet (60 s) */
};

/* The events, in the order in which rofx_event() returns them. */
enum rofx_event {
	ROFX_EV_NONE,
	ROFX_EV_REQUEST,     /* responder: call rofx_accept(), rofx_reject() or rofx_later() */
	ROFX_EV_LOOKUP,      /* responder: rofx_question(), then rofx_found() or rofx_reject() */
	ROFX_EV_AGREED,      /* initiator: rofx_agreed(), then rofx_ready() */
	ROFX_EV_ESTABLISHED, /* responder: the initiator is ready, too */
	ROFX_EV_FOUND,       /* initiator: rofx_answer(); the stream may be closed */
	ROFX_EV_REKEY,       /* agreed.tx is new: send with it, then call rofx_rekeyed() */
	/* The peer sends with the agreed.rx of rofx_rekey(): the old SPI may be released. */
	ROFX_EV_REKEYED,
	/* Initiator: rofx_why() and rofx_agreed()->private_* are valid; close the stream. */
	ROFX_EV_REJECTED,
	ROFX_EV_FAILED, /* rofx_why() is valid; close the stream once rofx_output() is empty */
	ROFX_EV_ENDED,  /* an established connection ended, by rofx_closed() */
};

/* A request: the peer's side, and its private data. */
struct rofx_request {
	struct rofx_side peer;
	bool secure; /* it arrived in TLS */
	uint16_t private_len;
	uint8_t private_data[ROFX_PRIVATE_MAX];
};

/* A lookup: which datagram QP serves a port. */
struct rofx_question {
	uint16_t service; /* port number in the datagrams' port space */
	struct sk_addr gid, to_gid;
	uint16_t private_len;
	uint8_t private_data[ROFX_PRIVATE_MAX];
};

struct rofx_answer {
	uint32_t qpn, qkey;
	uint16_t private_len;
	uint8_t private_data[ROFX_PRIVATE_MAX];
};

/* Checks whether a stream begins as an exchange does. Returns 1 (yes), 0 (no), or -1 when it needs
 * more bytes, at most ROFX_KEY_LEN. */
int rofx_match(const uint8_t *data, size_t len);

/* Starts a stream that requests a connection. Returns NULL and sets *err: -EINVAL when `ours` is
 * invalid, or needs keys on a stream in clear; -EMSGSIZE when `len` exceeds ROFX_PRIVATE_MAX;
 * -ENOKEY when no key or certificate is configured for the peer; -ENOMEM. */
struct rofx *rofx_connect(const struct rofx_config *cfg, uint64_t now, const struct rofx_side *ours,
	const void *private_data, size_t len, int *err);
/* Starts a stream that looks up a datagram QP. Returns NULL and sets *err: -EMSGSIZE, -ENOKEY or
 * -ENOMEM. */
struct rofx *rofx_lookup(
	const struct rofx_config *cfg, uint64_t now, const struct rofx_question *q, int *err);
/* Starts the responder's end of a stream, from its first byte on. Returns NULL when memory is
 * exhausted. */
struct rofx *rofx_listen(const struct rofx_config *cfg, uint64_t now);
/* Wipes the keys and frees the stream. */
void rofx_destroy(struct rofx *x);

/* Processes received bytes. Returns `len`, or -reason after which ROFX_EV_FAILED follows. */
int rofx_input(struct rofx *x, uint64_t now, const uint8_t *data, size_t len);
/* Returns whether the next rofx_input(), or the first rofx_output() of an initiator, may compute
 * with public keys, which takes 50 us to some ms. */
bool rofx_handshakes(const struct rofx *x);
/* Writes bytes to send to `buf`. Returns their number. */
size_t rofx_output(struct rofx *x, uint8_t *buf, size_t room);
/* Reports the end of the stream, from the peer or altogether. */
void rofx_closed(struct rofx *x);
/* Returns when the caller must call rofx_timeout(), in ns; UINT64_MAX: never. */
uint64_t rofx_deadline(const struct rofx *x);
void rofx_timeout(struct rofx *x, uint64_t now);
/* Returns the next event, or ROFX_EV_NONE. */
enum rofx_event rofx_event(struct rofx *x);
/* Returns the reason of ROFX_EV_REJECTED and ROFX_EV_FAILED. */
enum rofx_reason rofx_why(const struct rofx *x);
/* Returns the peer's version of the protocol after ROFX_BAD_VERSION, otherwise ROFX_VERSION. */
uint8_t rofx_peer_version(const struct rofx *x);

/* Valid from their event on. The stream owns the results. The first three return NULL after
 * rofx_trim(). */
const struct rofx_request *rofx_request(const struct rofx *x);
const struct rofx_question *rofx_question(const struct rofx *x);
const struct rofx_answer *rofx_answer(const struct rofx *x);
const struct rofx_agreed *rofx_agreed(const struct rofx *x);

/* Lists the UDP source ports of the peer's packets, for a side whose port of the network chooses a
 * receive queue by them: at least ROFX_PORT_BASE, and those of entry i and i itself have the same
 * low two bits. Called before rofx_accept() or rofx_ready(). A peer of an earlier release, which
 * knows no such list, chooses its ports as without it. */
void rofx_list_ports(struct rofx *x, const uint16_t ports[ROFX_PORTS]);

/* ---- The responder's answers: one for each request ---- */

/*
 * Accepts a request. Returns 0 when the ACCEPT is queued and rofx_agreed() is valid; -EPROTO when
 * the two sides do not match: the stream sends the reason to the peer (rofx_output()), and
 * ROFX_EV_FAILED follows; -EINVAL when no request waits or `ours` is invalid, or -EMSGSIZE, both
 * without an effect. All answers return -ENOBUFS when the peer does not read; ROFX_EV_FAILED
 * follows.
 */
int rofx_accept(struct rofx *x, uint64_t now, const struct rofx_side *ours,
	const void *private_data, size_t len);
/* Rejects a request or a lookup. `why` is ROFX_REFUSED, ROFX_CROSSED, ROFX_NO_QP, ROFX_NO_SERVICE,
 * ROFX_NO_RESOURCE, or the parameter in which the sides differ. Close the stream once the output is
 * empty. */
int rofx_reject(struct rofx *x, enum rofx_reason why, const void *private_data, size_t len);
/* Postpones a request whose QP is not ready to receive: the initiator repeats it on this stream
 * after `delay_ms`, and ROFX_EV_REQUEST follows again. */
int rofx_later(struct rofx *x, uint64_t now, uint32_t delay_ms);
int rofx_found(struct rofx *x, uint32_t qpn, uint32_t qkey, const void *private_data, size_t len);

/* ---- The initiator ---- */

/* Reports, after ROFX_EV_AGREED, that packets can be received. Returns 0 or -EINVAL. */
int rofx_ready(struct rofx *x);

/* ---- An established connection ---- */

/* Requests that the peer sends with another SPI and key, of the agreed version; agreed.rx is `sa`
 * from then on. Returns 0; -EBUSY until ROFX_EV_REKEYED of the request before; -EINVAL when the
 * connection is not established, or for another version. */
int rofx_rekey(struct rofx *x, uint64_t now, const struct rofx_sa *sa);
/* Confirms ROFX_EV_REKEY. Returns 0 or -EINVAL. */
int rofx_rekeyed(struct rofx *x);
/* Ends a connection that has failed, or that ends without notice: the stream sends the reason to
 * the peer as its last frame; close the stream. Returns 0, or -EINVAL when the connection is not
 * agreed or has ended already. */
int rofx_give_up(struct rofx *x, enum rofx_reason why);
/* Frees, for an established connection, the memory that only the start-up needed. rofx_agreed()
 * stays valid. */
void rofx_trim(struct rofx *x);

/* ---- Crossing attempts ---- */

enum rofx_crossing {
	ROFX_OURS,   /* this side's attempt continues: reject the other with ROFX_CROSSED */
	ROFX_THEIRS, /* the peer's attempt continues: accept it, close this one */
	ROFX_SELF,   /* both ends are the same QP (a self-connected QP) */
};

/* Decides between two crossing attempts, when both sides of a ROFX_ADDRESS connection have sent a
 * request and neither has an answer: the attempt of the greater (gid, qpn) continues. A side that
 * receives ROFX_CROSSED waits for the other's attempt. */
enum rofx_crossing rofx_cross(const struct rofx_side *ours, const struct rofx_side *theirs);

/* ---- TLS ---- */

/* What the peers of one range of addresses prove themselves with. */
struct rofx_peer {
	struct sk_addr addr;
	unsigned prefix; /* bits of `addr`, in its own family: up to 32 or 128 */
	/* pre-shared key, 16 to 64 bytes; psk_len 0: a certificate */
	const uint8_t *psk;
	size_t psk_len;
	/* DNS name that the certificate must have; NULL: it must have the peer's address */
	const char *name;
};

struct rofx_tls_config {
	/* Pre-shared key of the peers that have no entry, 16 to 64 bytes; psk_len 0: certificates,
	 * or none. */
	const uint8_t *psk;
	size_t psk_len;
	/* PEM texts; both sides present a certificate and verify the other's. NULL: none. */
	const char *certificate, *private_key, *ca;
	/* DNS name in the certificate of a peer without an entry; NULL: the peer's address */
	const char *peer_name;
	/* The entry with the longest prefix applies. */
	const struct rofx_peer *peers;
	unsigned npeers;
};

/* Creates a TLS context. Returns NULL with one sentence in `err`. */
struct rofx_tls *rofx_tls_create(const struct rofx_tls_config *cfg, char *err, size_t err_len);
/* Replaces the identities for streams that begin later. Any thread, one at a time, while others
 * create streams. Returns 0, or -EINVAL with one sentence in `err`, and then nothing has changed.
 */
int rofx_tls_load(struct rofx_tls *t, const struct rofx_tls_config *cfg, char *err, size_t err_len);
/* Frees the context. Streams that exist keep the identities that they need. `t` may be NULL. */
void rofx_tls_destroy(struct rofx_tls *t);

enum rofx_proof { ROFX_BY_NOTHING, ROFX_BY_PSK, ROFX_BY_CERTIFICATE };

struct rofx_tls_view {
	enum rofx_proof others;                /* what peers without an entry need */
	unsigned psk_peers, certificate_peers; /* numbers of entries */
	uint64_t loads;                /* rofx_tls_create() and successful rofx_tls_load() */
	char subject[128];             /* of this side's certificate; empty: none */
	int64_t not_before, not_after; /* its validity, in seconds since 1970 */
};

/* Describes the identities. Any thread. */
void rofx_tls_look(struct rofx_tls *t, struct rofx_tls_view *out);

#endif
