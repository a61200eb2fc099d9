/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange: how two instances of Saker create a Falcon connection, for which the Falcon
 * specifications define no protocol. doc/falcon-cm.md specifies it. All exchanges of two hosts
 * share one TCP connection, the *carrier* (struct rofx_carrier), with TLS 1.3 if configured. An
 * exchange (struct rofx) is a request and a reply in frames of the carrier. It lives as long as its
 * Falcon connection: it rotates keys and ends the connection, over whichever carrier there is then.
 * This library is one side of each, without a clock and without I/O: the caller passes received
 * bytes in and takes bytes to send, and events report what has happened.
 *
 *   initiator                                     responder
 *   rofx_connect(ours)     -- CONNECT -->         rofx_listen(), rofx_take():
 *                                                 ROFX_EV_REQUEST: rofx_request()
 *   ROFX_EV_AGREED:        <-- ACCEPT --          rofx_accept(ours): rofx_agreed(), create the
 *     rofx_agreed(), create the fa_conn,            fa_conn, which may answer but not yet send
 *     then rofx_ready()    -- READY -->           ROFX_EV_ESTABLISHED: it may send
 *
 * A carrier calls its owner for each received frame. The owner finds the exchange by
 * rofx_frame_to() and passes it the frame (rofx_take()), and then takes all events by rofx_event().
 * After each call on an exchange it passes the exchange's frames to a carrier (rofx_pass()) when it
 * has a turn, and reads rofx_deadline(). After each call on a carrier it takes
 * rofx_carrier_output() while there are bytes, and reads rofx_carrier_deadline(). Times are
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

#define ROFX_VERSION     2
#define ROFX_KEY_LEN     16 /* first bytes of the stream; they differ from MPA's */
#define ROFX_PRIVATE_MAX 512
#define ROFX_STAGES      64 /* parts of a host that have exchanges */
#define ROFX_NO_ID       0  /* no name of an exchange: in the frame that begins it */
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
	X(ROFX_UNKNOWN, SK_NOTICE, "a frame for an exchange that does not exist")                  \
	X(ROFX_CONTRADICTION, SK_WARNING, "a reply that exceeds the request's offer")              \
	X(ROFX_FLOOD, SK_WARNING, "the peer does not read its answers")                            \
	X(ROFX_TIMEOUT, SK_NOTICE, "no frame arrived in time")                                     \
	X(ROFX_CLOSED, SK_NOTICE, "the carrier ended before the exchange did")                     \
	X(ROFX_GONE, SK_NOTICE, "the peer has no such connection any more")                        \
	X(ROFX_RETIRED, SK_NORMAL, "a request on a carrier that begins nothing any more")          \
	X(ROFX_TLS, SK_WARNING, "TLS failed: wrong key, refused by the peer, or corrupt bytes")    \
	X(ROFX_TLS_NAME, SK_WARNING, "the peer's key or certificate is not for its address")       \
	X(ROFX_TLS_EXPIRED, SK_WARNING, "the peer's certificate has expired, or is not valid yet") \
	X(ROFX_TLS_CA, SK_WARNING, "the peer's certificate is not one of the configured CA")       \
	X(ROFX_NO_KEY, SK_WARNING, "no key or certificate is configured for the peer's address")   \
	X(ROFX_NO_TLS, SK_WARNING, "the peer requires TLS, which is not configured")               \
	X(ROFX_TLS_NEEDED, SK_WARNING, "the peer connected in clear, but TLS is configured")       \
	X(ROFX_CRYPTO_IN_CLEAR, SK_WARNING, "PSP with keys was requested on a carrier in clear")   \
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
	ROFX_LISTENER, /* the port that the request names has a listener */
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

/* ---- Carriers ---- */

struct rofx;
struct rofx_carrier;
struct rofx_frame;
struct rofx_tls;

/* Configuration of a carrier and of an exchange. A time of 0 means the default in parentheses. */
struct rofx_config {
	/* NULL: in clear, and therefore without keys. A carrier uses the identities that are loaded
	 * when it begins. A responder with TLS refuses carriers in clear. */
	struct rofx_tls *tls;
	/* A responder refuses carriers in clear, and requests without a PSP version with keys. */
	bool require_psp;
	/* Addresses of both ends of the carrier. `peer` determines the key or certificate that the
	 * peer must have; NULL: those of all peers, and any address. Only rofx_carrier_create()
	 * reads the two pointers. */
	const struct sk_addr *local, *peer;
	/* The part of this host that has the exchanges of the carrier, and the number of such
	 * parts, at most ROFX_STAGES; 0 stands for 1. */
	uint8_t stage, stages;
	/* Responder: until the first frame of a carrier, until a request after LATER, and until a
	 * request is repeated whose carrier has ended before the answer (3 s). */
	uint64_t request_ns;
	/* Initiator: until an answer arrives; responder: until READY arrives; both: until END is
	 * answered (10 s). */
	uint64_t reply_ns;
	uint64_t patience_ns; /* initiator: while the peer is not ready yet (60 s) */
};

/* Handles a frame of a carrier, which is valid during the call. The function must not destroy the
 * carrier. */
typedef void rofx_frame_fn(void *ctx, struct rofx_carrier *k, const struct rofx_frame *f);

/* Checks whether a stream begins as a carrier does, of any version. Returns 1 (yes), 0 (no), or -1
 * when it needs more bytes, at most ROFX_KEY_LEN. */
int rofx_match(const uint8_t *data, size_t len);

/* Creates one end of a carrier: `initiator` opens the TCP connection. Returns NULL and sets *err:
 * -ENOKEY when no key or certificate is configured for the peer of an initiator; -EINVAL when
 * `stage` and `stages` of the configuration are invalid; -ENOMEM. */
struct rofx_carrier *rofx_carrier_create(const struct rofx_config *cfg, uint64_t now,
	bool initiator, rofx_frame_fn *on_frame, void *ctx, int *err);
void rofx_carrier_destroy(struct rofx_carrier *k);
/* Processes received bytes. Returns `len`, or -reason: then the carrier has failed, and the caller
 * closes it once rofx_carrier_output() is empty. */
int rofx_carrier_input(struct rofx_carrier *k, uint64_t now, const uint8_t *data, size_t len);
/* Returns how often TLS has returned less than a frame lacked: the peer has put frames into several
 * records, each of which costs a decryption. The number wraps. */
uint32_t rofx_carrier_parts(const struct rofx_carrier *k);
/* Returns whether the next rofx_carrier_input(), or the first rofx_carrier_output() of an
 * initiator, may compute with public keys, which takes 50 us to some ms. */
bool rofx_carrier_handshakes(const struct rofx_carrier *k);
/* Writes bytes to send to `buf`. Returns their number. */
size_t rofx_carrier_output(struct rofx_carrier *k, uint8_t *buf, size_t room);
/* Returns whether both openings have passed, and in TLS both sides have proved their identity. */
bool rofx_carrier_ready(const struct rofx_carrier *k);
bool rofx_carrier_secure(const struct rofx_carrier *k);
/* Returns whether a frame has arrived, or left when the carrier was ready. */
bool rofx_carrier_used(const struct rofx_carrier *k);
/* Returns the part of the peer's host that has the exchanges of the carrier, when it is ready. */
uint8_t rofx_carrier_peer_stage(const struct rofx_carrier *k);
/* Returns the number of such parts, 1 to ROFX_STAGES. */
uint8_t rofx_carrier_peer_stages(const struct rofx_carrier *k);
/* Returns whether `tls`, which may be NULL, has other identities than the carrier began with. */
bool rofx_carrier_outdated(const struct rofx_carrier *k, const struct rofx_tls *tls);
/* Returns when the caller must call rofx_carrier_timeout(), in ns; UINT64_MAX: never. */
uint64_t rofx_carrier_deadline(const struct rofx_carrier *k);
void rofx_carrier_timeout(struct rofx_carrier *k, uint64_t now);
/* Returns why the carrier has failed, or ROFX_NONE. */
enum rofx_reason rofx_carrier_why(const struct rofx_carrier *k);
/* Returns the peer's version of the protocol after ROFX_BAD_VERSION, otherwise ROFX_VERSION. */
uint8_t rofx_carrier_peer_version(const struct rofx_carrier *k);

/* Return the names of a frame's exchange at this side, and at the peer. */
uint32_t rofx_frame_to(const struct rofx_frame *f);
uint32_t rofx_frame_from(const struct rofx_frame *f);
/* Returns whether the frame begins an exchange: CONNECT or LOOKUP. */
bool rofx_frame_begins(const struct rofx_frame *f);
/* Returns whether the frame withdraws a request that has no answer yet: its exchange is the one
 * whose rofx_peer_id() is rofx_frame_from(). */
bool rofx_frame_withdraws(const struct rofx_frame *f);
/* Returns whether the frame reports that the peer begins nothing more on the carrier: the exchange
 * repeats its request, which the owner passes to another carrier. */
bool rofx_frame_retires(const struct rofx_frame *f);
/* Answers a frame that begins an exchange with a REJECT, if the carrier has room for it. */
void rofx_refuse(struct rofx_carrier *k, const struct rofx_frame *f, enum rofx_reason why);
/* Answers a frame for an exchange that does not exist, if its sender has to learn that and the
 * carrier has room. */
void rofx_unknown(struct rofx_carrier *k, const struct rofx_frame *f);

/* ---- Exchanges ---- */

/* The events, in the order in which rofx_event() returns them. */
enum rofx_event {
	ROFX_EV_NONE,
	ROFX_EV_REQUEST,     /* responder: call rofx_accept(), rofx_reject() or rofx_later() */
	ROFX_EV_LOOKUP,      /* responder: rofx_question(), then rofx_found() or rofx_reject() */
	ROFX_EV_AGREED,      /* initiator: rofx_agreed(), then rofx_ready() */
	ROFX_EV_ESTABLISHED, /* responder: the initiator is ready, too */
	ROFX_EV_FOUND,       /* initiator: rofx_answer(); the exchange may be destroyed */
	ROFX_EV_REKEY,       /* rofx_tx() is new: send with it, then call rofx_rekeyed() */
	/* The peer sends with the SA of rofx_rekey(): the old SPI may be released. */
	ROFX_EV_REKEYED,
	/* Initiator: rofx_why() and rofx_agreed()->private_* are valid; destroy the exchange. */
	ROFX_EV_REJECTED,
	ROFX_EV_FAILED, /* rofx_why() is valid; destroy the exchange when its frames have passed */
	ROFX_EV_ENDED,  /* the peer ends the established connection in order: rofx_finish() */
};

/* A request: the peer's side, and its private data. */
struct rofx_request {
	struct rofx_side peer;
	uint16_t service, port; /* of ROFX_LISTENER: the port that is asked for; the peer's own */
	bool secure;            /* it arrived in TLS */
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

/* Creates an exchange that requests a connection. `id` is its name at this side, not ROFX_NO_ID.
 * `service` is the port that is asked for, and `port` the port of this side; both are 0 with
 * ROFX_ADDRESS. Returns NULL and sets *err: -EINVAL when `ours` is invalid, or needs keys without
 * TLS; -EMSGSIZE when `len` exceeds ROFX_PRIVATE_MAX; -ENOMEM. */
struct rofx *rofx_connect(const struct rofx_config *cfg, uint64_t now, uint32_t id,
	const struct rofx_side *ours, uint16_t service, uint16_t port, const void *private_data,
	size_t len, int *err);
/* Creates an exchange that looks up a datagram QP. Returns NULL and sets *err: -EMSGSIZE or
 * -ENOMEM. */
struct rofx *rofx_lookup(const struct rofx_config *cfg, uint64_t now, uint32_t id,
	const struct rofx_question *q, int *err);
/* Creates the responder's end of the exchange that the frame begins, which the caller passes to
 * rofx_take() then. Returns NULL when memory is exhausted. */
struct rofx *rofx_listen(const struct rofx_config *cfg, uint64_t now, uint32_t id,
	const struct rofx_carrier *k, const struct rofx_frame *f);
/* Wipes the keys and frees the exchange. */
void rofx_destroy(struct rofx *x);

/* Processes a frame to this exchange. Returns 0; -ROFX_UNKNOWN when the frame is not one of the
 * exchange's peer, or arrived in clear for an exchange in TLS, and has had no effect; or another
 * -reason, after which ROFX_EV_FAILED follows. */
int rofx_take(
	struct rofx *x, uint64_t now, const struct rofx_carrier *k, const struct rofx_frame *f);
/* Passes the first frame that waits to a carrier. Returns 0; -ENOENT when none waits; -EAGAIN when
 * the carrier has no room; -EPERM when the carrier is in clear and the exchange is not. */
int rofx_pass(struct rofx *x, struct rofx_carrier *k);
/* Returns whether a frame waits. */
bool rofx_waits(const struct rofx *x);
/* Returns whether the frame that waits begins an exchange of this side. */
bool rofx_begins(const struct rofx *x);
/* Reports that a carrier has ended, over which frames of the exchange may have been lost. An
 * initiator repeats its request, some times at most (then ROFX_EV_FAILED with ROFX_CLOSED follows);
 * the responder answers it once. An established connection repeats what is not confirmed, and asks
 * whether the peer still has the connection: ROFX_EV_FAILED with ROFX_GONE follows if not. */
void rofx_lost(struct rofx *x, uint64_t now);
/* Returns whether the exchange is established and known to be so at both sides. */
bool rofx_confirmed(const struct rofx *x);
/* Returns the name of the exchange at the peer, or ROFX_NO_ID before the peer's answer. */
uint32_t rofx_peer_id(const struct rofx *x);
/* Returns when the caller must call rofx_timeout(), in ns; UINT64_MAX: never. */
uint64_t rofx_deadline(const struct rofx *x);
void rofx_timeout(struct rofx *x, uint64_t now);
/* Returns the next event, or ROFX_EV_NONE. */
enum rofx_event rofx_event(struct rofx *x);
/* Returns the reason of ROFX_EV_REJECTED and ROFX_EV_FAILED. */
enum rofx_reason rofx_why(const struct rofx *x);

/* Valid from their event on. The exchange owns the results. They return NULL after rofx_trim(). */
const struct rofx_request *rofx_request(const struct rofx *x);
const struct rofx_question *rofx_question(const struct rofx *x);
const struct rofx_answer *rofx_answer(const struct rofx *x);
const struct rofx_agreed *rofx_agreed(const struct rofx *x);
/* Returns what this side sends with, from ROFX_EV_REKEY to rofx_rekeyed(), else NULL. */
const struct rofx_sa *rofx_tx(const struct rofx *x);

/* Lists the UDP source ports of the peer's packets, for a side whose port of the network chooses a
 * receive queue by them: at least ROFX_PORT_BASE, and those of entry i and i itself have the same
 * low two bits. Called before rofx_accept() or rofx_ready(). A peer of an earlier release, which
 * does not support the list, chooses its ports as without it. */
void rofx_list_ports(struct rofx *x, const uint16_t ports[ROFX_PORTS]);

/* ---- The responder's answers: one for each request ---- */

/*
 * Accepts a request. Returns 0 when the ACCEPT is queued and rofx_agreed() is valid; -EPROTO when
 * the two sides do not match: the exchange sends the reason to the peer, and ROFX_EV_FAILED
 * follows; -EINVAL when no request waits or `ours` is invalid, or -EMSGSIZE, both without an
 * effect. All answers return -ENOBUFS when frames that have not passed fill the queue;
 * ROFX_EV_FAILED follows.
 */
int rofx_accept(struct rofx *x, uint64_t now, const struct rofx_side *ours,
	const void *private_data, size_t len);
/* Rejects a request or a lookup. `why` is ROFX_REFUSED, ROFX_CROSSED, ROFX_NO_QP, ROFX_NO_SERVICE,
 * ROFX_NO_RESOURCE, or the parameter in which the sides differ. Destroy the exchange when its
 * frames have passed. */
int rofx_reject(struct rofx *x, enum rofx_reason why, const void *private_data, size_t len);
/* Postpones a request whose QP is not ready to receive: the initiator repeats it after `delay_ms`,
 * and ROFX_EV_REQUEST follows again. Returns 0, or -EINVAL when no request waits. */
int rofx_later(struct rofx *x, uint64_t now, uint32_t delay_ms);
/* Answers a lookup with the number and the Q_Key of a datagram QP. Returns 0; -EINVAL when no
 * lookup waits or `qpn` has more than 24 bits, or -EMSGSIZE, both without an effect. Destroy the
 * exchange when its frames have passed. */
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
/* Ends an established connection in order, when this side has nothing more to send: the exchange
 * sends END. Returns 0, or -EINVAL when the connection is not established. */
int rofx_finish(struct rofx *x, uint64_t now);
/* Returns whether both sides have ended the connection in order. */
bool rofx_finished(const struct rofx *x);
/* Ends an exchange or connection that has failed, or that ends without notice: the reason is the
 * exchange's last frame. Returns 0, or -EINVAL when it has ended already, or the peer cannot have
 * its request. */
int rofx_give_up(struct rofx *x, enum rofx_reason why);
/* Frees, for an established connection, the memory that only the start-up needed. */
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

#define ROFX_PSK_MIN 16 /* bytes of a pre-shared key */
#define ROFX_PSK_MAX 64

/* The key or certificate with which the peers of one range of addresses prove their identity. */
struct rofx_peer {
	struct sk_addr addr;
	unsigned prefix; /* bits of `addr`, in its own family: up to 32 or 128 */
	/* pre-shared key, ROFX_PSK_MIN to ROFX_PSK_MAX bytes; psk_len 0: a certificate */
	const uint8_t *psk;
	size_t psk_len;
	/* DNS name that the certificate must have; NULL: it must have the peer's address */
	const char *name;
};

struct rofx_tls_config {
	/* Pre-shared key of the peers that have no entry, as above; psk_len 0: certificates,
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
/* Replaces the identities for carriers that begin later. Any thread, one at a time, while others
 * create carriers. Returns 0, or -EINVAL with one sentence in `err`, and then nothing has changed.
 */
int rofx_tls_load(struct rofx_tls *t, const struct rofx_tls_config *cfg, char *err, size_t err_len);
/* Frees the context. Carriers that exist keep the identities that they need. `t` may be NULL. */
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
