/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange from within: frames as records, the state of a stream, and who calls whom: stream
 * (exchange_stream.c) gathers frames and hands them to the state machine (exchange.c), which builds
 * answers by the codec (exchange_frame.c) and the rules (exchange_settle.c).
 */
#ifndef SAKER_ROF_EXCHANGE_PRIV_H
#define SAKER_ROF_EXCHANGE_PRIV_H

#include "exchange.h"

/* ---- Frames (doc/falcon-cm.md) ---- */

#define ROFX_OPENING_LEN 20
#define ROFX_HEADER_LEN  4
#define ROFX_SIDE_LEN    92
#define ROFX_CONNECT_LEN (ROFX_SIDE_LEN + 4)
#define ROFX_ACCEPT_LEN  (ROFX_SIDE_LEN + 4 + PSP_KEY_MAX)
#define ROFX_OUTER_LEN   16 /* behind CONNECT and ACCEPT in tunnel mode */
#define ROFX_READY_LEN   (4 + PSP_KEY_MAX)
#define ROFX_REJECT_LEN  4
#define ROFX_LATER_LEN   4
#define ROFX_LOOKUP_LEN  36
#define ROFX_FOUND_LEN   12
#define ROFX_REKEY_LEN   (8 + PSP_KEY_MAX)
#define ROFX_REKEYED_LEN 4
#define ROFX_FRAME_MAX   (ROFX_HEADER_LEN + ROFX_ACCEPT_LEN + ROFX_OUTER_LEN + ROFX_PRIVATE_MAX)
#define ROFX_FRAME_LIVE  (ROFX_HEADER_LEN + ROFX_REKEY_LEN) /* the longest, once established */
#define ROFX_OUT_LIVE    (2 * ROFX_FRAME_LIVE)              /* room for what is said then */

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
	ROFX_F_COUNT,
};

enum rofx_security { ROFX_CLEAR, ROFX_SECURE };

struct rofx_opening {
	bool reply;
	uint8_t version, security;
	uint8_t status; /* of a reply: 0, or why this is the end; as in REJECT */
};

/* A frame's body as a record; which members count is the type's business. */
struct rofx_frame {
	uint8_t type;
	struct rofx_side side;       /* CONNECT, ACCEPT */
	struct rofx_sa sa;           /* REKEY; its key also of ACCEPT and READY */
	uint8_t key_len;             /* of it */
	enum rofx_reason why;        /* REJECT */
	uint32_t delay_ms;           /* LATER */
	uint16_t service;            /* LOOKUP */
	struct sk_addr gid, to_gid;  /* LOOKUP */
	uint32_t qpn, qkey;          /* FOUND */
	uint32_t spi;                /* REKEYED */
	const uint8_t *private_data; /* within the frame that was parsed */
	uint16_t private_len;
};

/* The status or REJECT code of a reason and back; codes are the wire's and never change. */
uint8_t rofx_code(enum rofx_reason why);
enum rofx_reason rofx_reason_of(uint8_t code);

void rofx_opening_emit(uint8_t *p, const struct rofx_opening *o);
/* 0, or ROFX_BAD_KEY. */
int rofx_opening_parse(struct rofx_opening *o, const uint8_t p[ROFX_OPENING_LEN]);
/* The length of the body that this header announces, or -reason. */
int rofx_header_parse(uint8_t *type, const uint8_t p[ROFX_HEADER_LEN]);
/* Writes header and body, at most ROFX_FRAME_MAX bytes. Returns the length. */
size_t rofx_frame_emit(uint8_t *p, const struct rofx_frame *f);
/* The body of a frame of `f->type`. 0, or ROFX_MALFORMED. */
int rofx_frame_parse(struct rofx_frame *f, const uint8_t *p, size_t len);

/* ---- Rules (exchange_settle.c) ---- */

/* Can packets be sent there? Always outside of tunnel mode. */
bool rofx_outer_valid(const struct rofx_side *s);
/* Is each other field within its bounds? `any`: ROFX_ANY may stand. */
bool rofx_side_valid(const struct rofx_side *s, bool any);
/* Responder: what `ours` makes of a request, and the side to reply with. 0, or the reason. */
int rofx_settle_request(const struct rofx_side *peer, const struct rofx_side *ours, bool secure,
	struct rofx_agreed *a, struct rofx_side *reply);
/* Initiator: what came back. 0, or ROFX_CONTRADICTION. */
int rofx_settle_reply(
	const struct rofx_side *ours, const struct rofx_side *reply, struct rofx_agreed *a);

/* ---- A stream ---- */

#define ROFX_LATER_MAX_MS 10000

enum rofx_state {
	ROFX_S_ASKED,    /* initiator: CONNECT sent */
	ROFX_S_AGAIN,    /* initiator: "not ready yet" came; asks again at the deadline */
	ROFX_S_LOOKUP,   /* initiator: LOOKUP sent */
	ROFX_S_AGREED,   /* initiator: ACCEPT came; the application gets ready */
	ROFX_S_WAIT,     /* responder: for CONNECT or LOOKUP */
	ROFX_S_DECIDE,   /* responder: the application decides */
	ROFX_S_SEARCH,   /* responder: the application looks for the service */
	ROFX_S_ANSWERED, /* responder: ACCEPT sent */
	ROFX_S_LIVE,
	ROFX_S_DONE, /* nothing more is said or listened to */
	ROFX_S_FAILED,
	ROFX_S_COUNT,
};

/* What only the start-up needs. */
struct rofx_startup {
	struct rofx_side ours;
	uint16_t private_len; /* ours, to be sent again */
	uint8_t private_data[ROFX_PRIVATE_MAX];
	union { /* what the peer said; one of them in the life of a stream */
		struct rofx_request request;
		struct rofx_question question;
		struct rofx_answer answer;
	};
};

struct rofx {
	uint8_t state, why; /* enum rofx_state, rofx_reason */
	bool initiator;
	bool opened;   /* the peer's opening has come */
	bool secure;   /* frames travel in TLS */
	bool rekeying; /* REKEY sent */
	bool rekeyed;  /* REKEY came and waits for rofx_rekeyed() */
	uint8_t peer_version;
	uint16_t events; /* bits of enum rofx_event */
	struct rofx_config cfg;
	struct sk_addr peer_addr; /* cfg.peer */
	uint64_t deadline, patience_end;
	struct rofx_startup *su; /* NULL after rofx_trim() */
	struct rofx_agreed *agreed;
	struct rofx_link *link;            /* TLS; NULL in clear */
	uint8_t opening[ROFX_OPENING_LEN]; /* ours, to be sent first */
	uint8_t opening_at;                /* bytes of it that were taken; LEN also before it is
					      known */
	uint8_t *frame, *out;
	uint16_t frame_room, frame_have;
	uint16_t out_room, out_at, out_len;
};

/* Ends the exchange; the peer is told why, as far as that can help it. Returns -why. */
int rofx_fail(struct rofx *x, enum rofx_reason why);
/* The peer knows already, or cannot be told. */
int rofx_fail_silent(struct rofx *x, enum rofx_reason why);
void rofx_say(struct rofx *x, enum rofx_event ev);
/* A frame whose body is `f`; the state machine's step. 0 or -reason. */
int rofx_step(struct rofx *x, uint64_t now, const struct rofx_frame *f);
/* May a frame of this type come now? */
bool rofx_expected(const struct rofx *x, uint8_t type);
/* The peer's opening. 0 or -reason. */
int rofx_opened(struct rofx *x, const struct rofx_opening *o);
/* 0, or -ENOBUFS: the peer does not read. */
int rofx_send(struct rofx *x, const struct rofx_frame *f);
void rofx_send_opening(struct rofx *x, const struct rofx_opening *o);
int rofx_ask(struct rofx *x, uint64_t now);

/* ---- TLS (exchange_tls.c) ---- */

#define ROFX_BACKLOG_MAX 32768 /* bytes to send, of TLS's own making: handshake, key updates */

/* NULL: no memory. */
struct rofx_link *rofx_link_create(
	const struct rofx_tls *t, bool initiator, const struct sk_addr *peer);
void rofx_link_destroy(struct rofx_link *l);
/* Bytes from the peer. 0 or -reason. */
int rofx_link_feed(struct rofx_link *l, const uint8_t *data, size_t len);
/* What they say: bytes read, 0 for none now, or -ROFX_TLS. */
int rofx_link_read(struct rofx_link *l, uint8_t *buf, size_t room);
/* Seals: bytes taken, 0 before the handshake is over, or -ROFX_TLS. */
int rofx_link_write(struct rofx_link *l, const uint8_t *data, size_t len);
/* Bytes for the peer. */
size_t rofx_link_pending(const struct rofx_link *l);
size_t rofx_link_take(struct rofx_link *l, uint8_t *buf, size_t room);

#endif
