/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of the exchange. The carrier (exchange_carrier.c) gathers frames, and its owner passes
 * each one to the state machine of an exchange (exchange.c), which builds answers with the codec
 * (exchange_frame.c) and the rules (exchange_settle.c). Answers wait in the exchange until its
 * owner passes them to a carrier (exchange_queue.c). Frames are records here.
 */
#ifndef SAKER_ROF_EXCHANGE_PRIV_H
#define SAKER_ROF_EXCHANGE_PRIV_H

#include <openssl/types.h>

#include "exchange.h"

/* ---- Frames (doc/falcon-cm.md) ---- */

#define ROFX_OPENING_LEN 20
#define ROFX_HEADER_LEN  12
#define ROFX_SIDE_LEN    92
#define ROFX_CONNECT_LEN (ROFX_SIDE_LEN + 8)
#define ROFX_ACCEPT_LEN  (ROFX_SIDE_LEN + 4 + PSP_KEY_MAX)
#define ROFX_OUTER_LEN   16 /* follows CONNECT and ACCEPT in tunnel mode */
#define ROFX_READY_LEN   (4 + PSP_KEY_MAX)
#define ROFX_REJECT_LEN  4
#define ROFX_LATER_LEN   4
#define ROFX_LOOKUP_LEN  36
#define ROFX_FOUND_LEN   12
#define ROFX_REKEY_LEN   (8 + PSP_KEY_MAX)
#define ROFX_REKEYED_LEN 4
#define ROFX_END_LEN     0
#define ROFX_CHECK_LEN   0
#define ROFX_LIST_LEN    (2 * ROFX_PORTS) /* may follow the address in ACCEPT, and READY */
#define ROFX_FRAME_MAX                                                                             \
	(ROFX_HEADER_LEN + ROFX_ACCEPT_LEN + ROFX_OUTER_LEN + ROFX_LIST_LEN + ROFX_PRIVATE_MAX)
/* The queue of an established connection: two frames that are at most as long as REKEY, and two
 * without a body. REKEY, REKEYED, REJECT, END and CHECK fit once each: what waits is not queued
 * again when a carrier ends. READY waits only while there is the room of the start-up. */
#define ROFX_OUT_LIVE (2 * (ROFX_HEADER_LEN + ROFX_REKEY_LEN) + 2 * ROFX_HEADER_LEN)

enum rofx_frame_type {
	ROFX_F_CONNECT = 1,
	ROFX_F_ACCEPT,
	ROFX_F_READY,
	ROFX_F_REJECT,
	ROFX_F_LATER,
	ROFX_F_LOOKUP,
	ROFX_F_FOUND,
	ROFX_F_REKEY,
	ROFX_F_REKEYED,
	ROFX_F_END,
	ROFX_F_CHECK,
	ROFX_F_COUNT,
};

enum rofx_security { ROFX_CLEAR, ROFX_SECURE };

/* Whether the sender of CONNECT, ACCEPT or READY sends its packets from listed ports, and whether
 * the frame has a list of its own. */
enum rofx_list {
	ROFX_LIST_UNKNOWN, /* an earlier release: it neither sends nor accepts a list */
	ROFX_LIST_NONE,
	ROFX_LIST_FOLLOWS, /* not in CONNECT: its receiver may not support the list */
};

struct rofx_opening {
	bool reply;
	uint8_t version, security;
	uint8_t status; /* of a reply: 0, or the code of the reason for its end, as in REJECT */
	/* The sender's part of its host, which has the exchanges of the carrier, and the number of
	 * its parts: 1 to ROFX_STAGES; 0 stands for 1 in rofx_opening_emit(). */
	uint8_t stage, stages;
};

/* The body of a frame as a record; the type determines which members are valid. */
struct rofx_frame {
	uint8_t type;
	uint32_t to, from;     /* the names of the exchange at the receiver and at the sender */
	struct rofx_side side; /* CONNECT, ACCEPT */
	struct rofx_sa sa;     /* REKEY; the key also of ACCEPT and READY */
	uint8_t key_len;       /* of sa.key, in bytes */
	uint8_t list;          /* CONNECT, ACCEPT, READY: enum rofx_list */
	uint16_t ports[ROFX_PORTS];  /* valid with ROFX_LIST_FOLLOWS */
	enum rofx_reason why;        /* REJECT */
	uint32_t delay_ms;           /* LATER */
	uint16_t service;            /* CONNECT, LOOKUP: the port that the peer serves */
	uint16_t port;               /* CONNECT: the port of the sender */
	struct sk_addr gid, to_gid;  /* LOOKUP */
	uint32_t qpn, qkey;          /* FOUND */
	uint32_t spi;                /* REKEYED */
	uint64_t digest;             /* CONNECT, LOOKUP: of the body */
	const uint8_t *private_data; /* inside the parsed frame */
	uint16_t private_len;
};

/* Convert a reason to the code of a status or REJECT, and back. The codes on the wire never
 * change. */
uint8_t rofx_code(enum rofx_reason why);
enum rofx_reason rofx_reason_of(uint8_t code);

void rofx_opening_emit(uint8_t *p, const struct rofx_opening *o);
/* Returns 0 or ROFX_BAD_KEY. */
int rofx_opening_parse(struct rofx_opening *o, const uint8_t p[ROFX_OPENING_LEN]);
/* Fills in type, `to` and `from`. Returns the length of the body that the header announces, or
 * -reason. */
int rofx_header_parse(struct rofx_frame *f, const uint8_t p[ROFX_HEADER_LEN]);
/* Writes header and body, at most ROFX_FRAME_MAX bytes. Returns their length. */
size_t rofx_frame_emit(uint8_t *p, const struct rofx_frame *f);
/* Parses the body of a frame of f->type. Returns 0 or ROFX_MALFORMED. */
int rofx_frame_parse(struct rofx_frame *f, const uint8_t *p, size_t len);

/* ---- Rules (exchange_settle.c) ---- */

/* Checks that packets can be sent to the outer address; true outside of tunnel mode. */
bool rofx_outer_valid(const struct rofx_side *s);
/* Checks the bounds of all other fields. `any`: ROFX_ANY is valid. */
bool rofx_side_valid(const struct rofx_side *s, bool any);
/* Responder: combines a request with `ours` to *a, and to the side to reply with. Returns 0 or the
 * reason. */
int rofx_settle_request(const struct rofx_side *peer, const struct rofx_side *ours, bool secure,
	struct rofx_agreed *a, struct rofx_side *reply);
/* Initiator: combines the reply with `ours`. Returns 0 or ROFX_CONTRADICTION. */
int rofx_settle_reply(
	const struct rofx_side *ours, const struct rofx_side *reply, struct rofx_agreed *a);

/* ---- An exchange ---- */

#define ROFX_LATER_MAX_MS 10000

enum rofx_state {
	ROFX_S_ASKED,    /* initiator: CONNECT sent */
	ROFX_S_AGAIN,    /* initiator: LATER arrived; repeats CONNECT at the deadline */
	ROFX_S_LOOKUP,   /* initiator: LOOKUP sent */
	ROFX_S_AGREED,   /* initiator: ACCEPT arrived; the application prepares */
	ROFX_S_WAIT,     /* responder: waits for CONNECT or LOOKUP */
	ROFX_S_DECIDE,   /* responder: the application decides */
	ROFX_S_SEARCH,   /* responder: the application searches the service */
	ROFX_S_ANSWERED, /* responder: ACCEPT sent */
	ROFX_S_LIVE,
	ROFX_S_DONE, /* no frame is sent or accepted any more */
	ROFX_S_FAILED,
	ROFX_S_COUNT,
};

/* The fields that only the start-up needs. */
struct rofx_startup {
	struct rofx_config cfg; /* the pointers are not valid */
	uint64_t patience_end;
	uint8_t repeats;       /* initiator: how often the request was repeated */
	uint64_t digest;       /* responder: of the request */
	struct rofx_side ours; /* of CONNECT, or of ACCEPT */
	bool listed;           /* `ports` is the list of this side */
	bool lists;            /* the peer supports lists of ports */
	uint16_t ports[ROFX_PORTS];
	uint16_t service, port;
	uint16_t private_len; /* of this side's private data, which a repeated frame needs */
	uint8_t private_data[ROFX_PRIVATE_MAX];
	union { /* the peer's frame; one of them in the life of an exchange */
		struct rofx_request request;
		struct rofx_question question;
		struct rofx_answer answer;
	};
};

struct rofx {
	uint8_t state, why; /* enum rofx_state, rofx_reason */
	bool initiator;
	bool secure;          /* its frames travel in TLS only */
	bool passed;          /* a frame has left for a carrier */
	bool unconfirmed;     /* initiator: READY may not have arrived */
	bool trims;           /* rofx_trim() was called */
	bool rekeying;        /* REKEY was sent */
	bool rekeyed;         /* REKEY arrived and waits for rofx_rekeyed() */
	bool finished;        /* END was sent */
	bool ended;           /* END arrived */
	uint8_t psp;          /* the agreed enum psp_version */
	uint16_t events;      /* bits of enum rofx_event */
	uint16_t out_len;     /* bytes of frames in `out` */
	uint32_t id, peer_id; /* the names of the exchange at this side and at the peer */
	uint32_t rx_spi, tx_spi;
	uint32_t was_spi; /* rx_spi before the last change of keys */
	uint64_t deadline, reply_ns;
	struct rofx_startup *su;    /* NULL after rofx_trim() */
	struct rofx_agreed *agreed; /* NULL after rofx_trim() */
	/* The key of REKEY, until the peer has confirmed it; the key of the peer's REKEY, until
	 * rofx_rekeyed(). In secret memory. */
	struct rofx_sa *ours, *theirs;
	uint8_t *out; /* frames to send, [out_room]; NULL: none */
	uint16_t out_room;
};

/* Ends the exchange, and sends the reason to the peer if possible. Returns -why. */
int rofx_fail(struct rofx *x, enum rofx_reason why);
/* Ends the exchange when the peer has the reason, or cannot receive it. Returns -why. */
int rofx_fail_silent(struct rofx *x, enum rofx_reason why);
/* Queues a frame, with the names of the exchange. Returns 0, or -ENOBUFS when the peer does not
 * read or there is no memory. */
int rofx_send(struct rofx *x, struct rofx_frame *f);
/* Does the same, but the frame leaves before all others that wait. */
int rofx_send_first(struct rofx *x, struct rofx_frame *f);
int rofx_send_connect(struct rofx *x, uint64_t now);
/* Queues the CONNECT or LOOKUP. Returns 0 or -ENOBUFS. */
int rofx_send_request(struct rofx *x);
int rofx_send_rekey(struct rofx *x);
/* Queue the frame again that was sent last in the start-up. Return 0 or -ENOBUFS. */
int rofx_send_accept(struct rofx *x);
int rofx_send_ready(struct rofx *x);
/* Returns whether a frame of this type waits. */
bool rofx_queued(const struct rofx *x, uint8_t type);
/* Removes the first frame of this type that waits, if there is one. */
void rofx_unqueue(struct rofx *x, uint8_t type);
/* Removes the frames that have not passed. */
void rofx_forget(struct rofx *x);
/* Frees the queue of an established connection when it is empty. */
void rofx_shrink(struct rofx *x);

/* ---- A carrier (exchange_carrier.c) ---- */

#define ROFX_CARRIER_OUT 2048 /* bytes of frames that wait in a carrier */

struct rofx_carrier {
	uint8_t why; /* enum rofx_reason; ROFX_NONE: it has not failed */
	bool initiator;
	bool opened; /* the peer's opening has arrived */
	bool secure; /* frames travel in TLS */
	bool used;   /* a frame has arrived, or left */
	uint8_t peer_version;
	uint8_t stage, stages, peer_stage, peer_stages;
	bool require_psp;
	struct sk_addr local_addr, peer_addr;
	bool has_local, has_peer;       /* the addresses are configured */
	struct rofx_identity *identity; /* NULL: in clear, or the handshake has ended */
	uint64_t loads;                 /* the generation of `identity`; 0: in clear */
	uint64_t deadline;
	struct rofx_link *link; /* TLS; NULL in clear */
	rofx_frame_fn *on_frame;
	void *ctx;
	uint8_t opening[ROFX_OPENING_LEN]; /* this side's opening, sent first */
	/* Bytes of it that were taken; ROFX_OPENING_LEN, too, before the opening exists. */
	uint8_t opening_at;
	uint16_t frame_have, out_at, out_len;
	uint32_t parts; /* rofx_carrier_parts() */
	uint8_t *frame; /* [ROFX_FRAME_MAX] */
	uint8_t *out;   /* [ROFX_CARRIER_OUT] */
};

/* Notes that the carrier, if it is ready, carries frames in one direction at least. */
void rofx_carrier_use(struct rofx_carrier *k);
/* Returns the place for a frame of `len` bytes in the carrier, or NULL. */
uint8_t *rofx_carrier_room(struct rofx_carrier *k, size_t len);

/* ---- Identities (exchange_identity.c) ---- */

#define ROFX_NAME_MAX 253 /* characters of a DNS name */

/* The key or certificate with which the peers of one range of addresses prove their identity. */
struct rofx_member {
	struct sk_addr addr;
	unsigned bits; /* of the 128 of `addr` that a peer's address has in common; 0: all peers */
	uint8_t psk[ROFX_PSK_MAX];
	size_t psk_len;               /* bytes; 0: a certificate */
	char name[ROFX_NAME_MAX + 1]; /* of the certificate; empty: the peer's address */
};

/* One generation of keys and certificates. It is constant, except for `refs`. */
struct rofx_identity {
	uint32_t refs;               /* atomic */
	SSL_CTX *psk_ctx, *cert_ctx; /* cert_ctx is NULL without a certificate */
	struct rofx_member *members; /* [nmembers], secret memory; longest prefix first */
	unsigned nmembers, room;
};

/* Returns the current generation, with a reference for the caller. Any thread. */
struct rofx_identity *rofx_identity_hold(struct rofx_tls *t);
/* Returns the number of the current generation, which may become another one at any time. */
uint64_t rofx_identity_loads(const struct rofx_tls *t);
/* Returns a reference; `id` may be NULL. The last one frees the generation. */
void rofx_identity_release(struct rofx_identity *id);
/* Returns the member with the address `peer`, or NULL when there is none. NULL stands for a peer
 * without an address. */
const struct rofx_member *rofx_identity_member(
	const struct rofx_identity *id, const struct sk_addr *peer);

/* ---- TLS (exchange_tls.c) ---- */

#define ROFX_BACKLOG_MAX 32768 /* bytes to send of TLS itself: the handshake */

/* Sets the callbacks that links need in a context of OpenSSL. */
void rofx_link_prepare(SSL_CTX *ctx);
/* Creates one end of a TLS connection between the addresses `local` and `peer`, which may be NULL.
 * The caller holds `id` until the end of the handshake. Returns 0; -ROFX_NO_KEY when no key or
 * certificate is configured for the peer; -ROFX_NO_RESOURCE when memory is exhausted. */
int rofx_link_create(struct rofx_link **out, const struct rofx_identity *id, bool initiator,
	const struct sk_addr *local, const struct sk_addr *peer);
/* Returns whether the handshake has not ended. */
bool rofx_link_busy(const struct rofx_link *l);
void rofx_link_destroy(struct rofx_link *l);
/* Passes bytes from the peer to TLS, or ignores them after the peer's close_notify. Returns 0 or
 * -reason. */
int rofx_link_feed(struct rofx_link *l, const uint8_t *data, size_t len);
/* Reads opened bytes. Returns their number, 0 when there are none now, or -reason. */
int rofx_link_read(struct rofx_link *l, uint8_t *buf, size_t room);
/* Returns whether TLS has left bytes from the peer: never after rofx_link_read() has returned 0. */
bool rofx_link_unread(const struct rofx_link *l);
/* Seals bytes. Returns the number of those taken, 0 before the end of the handshake, or
 * -reason. Neither opens nor seals anything unless the peer has proved its identity. */
int rofx_link_write(struct rofx_link *l, const uint8_t *data, size_t len);
/* Return the number of bytes for the peer, and take them. rofx_link_take() also makes the
 * initiator's first message. */
size_t rofx_link_pending(const struct rofx_link *l);
size_t rofx_link_take(struct rofx_link *l, uint8_t *buf, size_t room);

#endif
