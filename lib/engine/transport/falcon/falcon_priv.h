/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Falcon on a transport stage: its stack, the connections by CID, PSP around their packets. A
 * connection belongs to an eng_conn, whose TCP connection made it and is its control channel: what
 * ends the one ends the other.
 */
#ifndef SAKER_ENGINE_FALCON_PRIV_H
#define SAKER_ENGINE_FALCON_PRIV_H

#include "../../../falcon/psp.h"
#include "../../../rof/exchange.h"
#include "../link.h"

/* What a connection in tunnel mode has beside the others: the inner header, of ours and, with the
 * addresses swapped, of the peer's. */
struct eng_falcon_tunnel {
	struct wire_ip ip;
	unsigned len;
};

struct eng_falcon_conn {
	struct fa_conn *fa; /* NULL: reserved, not open yet */
	struct eng_conn *c;
	uint32_t slot, cid;  /* the peer puts `cid` into its packets */
	uint16_t port, vlan; /* where they come from, and the address: */
	struct sk_addr raddr;
	uint16_t addr_sum; /* of UDP's pseudo-header, as eng_addr_sum() has it for TCP */
	struct rofx *x;    /* the exchange that made it, and its control channel */
	struct eng_falcon_start *start; /* what the engine stage is to be told once it is bound */
	uint8_t why;                    /* enum rofx_reason: what the peer is told of its end */
	bool busy;                      /* a delivery was refused: in f->busy */
	bool self;                      /* of a QP that is its own peer */
	struct net_path path;
	struct psp_sa *tx_sa, *rx_sa;
	struct wire_psp tx_psp;           /* of our packets, but for the IV */
	struct eng_falcon_tunnel *tunnel; /* NULL: transport mode */
	uint16_t extra;                   /* bytes of cookie and inner header in our packets */
	struct psp_sa *prev_sa; /* what the peer may still seal with; NULL: nothing else */
	struct psp_iv iv;
	struct psp_rx accept;
	uint64_t rx_left; /* packets until the peer shall have another key */
	/* Of the live connection (falcon_keys.c); SK_NEVER: not timed */
	uint64_t rekey_at, retire_at;
	struct sk_timer timer;
	uint32_t generation;               /* of the device key that our SPI belongs to */
	TAILQ_ENTRY(eng_falcon_conn) next; /* f->free or f->busy */
};

/* What eng_falcon_stage() said of a CID, that costs more than all else that is done to find the
 * connection. */
#define ENG_FALCON_CIDS 64
struct eng_falcon_cid {
	uint32_t key; /* CID + 1; 0: none */
	uint32_t slot;
	unsigned stage;
};

struct eng_falcon {
	struct fa_stack *fa;
	struct fa_algorithm swift; /* with the configured parameters */
	struct psp_crypto *crypto;
	struct psp_device device;
	struct sk_wheel wheel; /* keys of live connections, and the device's: */
	struct sk_timer device_timer;
	uint64_t rotate_at, keys_due;  /* when the device key changes; when to look at the wheel */
	uint64_t alarm_at;             /* when the next wrong SPI is told of */
	uint32_t sweep;                /* conns[sweep..] do not know of the last rotation yet */
	uint64_t due;                  /* when to look at the timers again */
	bool work;                     /* something was given to the stack in this turn */
	struct eng_falcon_conn *conns; /* [nconns] */
	uint32_t nconns, fresh;        /* conns[fresh..] have never been used */
	struct eng_falcon_cid cids[ENG_FALCON_CIDS]; /* by the CID's low bits: found lately */
	TAILQ_HEAD(eng_falcon_conns, eng_falcon_conn) free, busy;
	uint64_t psp_counters[psp_reason_count];
	uint64_t rofx_counters[rofx_reason_count];
};

static inline struct eng_falcon *
eng_falcon_of(const struct eng_transport *t)
{
	return t->part[ENG_FALCON];
}

static inline struct eng_falcon_conn *
eng_falcon_conn_of(const struct eng_conn *c)
{
	return c->part;
}

/* ---- falcon.c ---- */

/* What the exchange settled about packets. */
struct eng_falcon_open {
	struct fa_params fa;         /* but for cid, user */
	struct sk_addr laddr, raddr; /* in tunnel mode those of the inner header */
	uint16_t port, vlan;
	bool tunnel;
	struct sk_addr outer_laddr, outer_raddr;
	bool has_cookie; /* the peer wants tx_cookie in its packets */
	uint64_t tx_cookie, rx_cookie;
	uint8_t psp; /* enum psp_version */
	uint32_t tx_spi, rx_spi;
	uint8_t tx_key[PSP_KEY_MAX];
};

/* A connection with a CID and nothing else; NULL: all are in use. */
struct eng_falcon_conn *eng_falcon_reserve(struct eng_transport *t, struct eng_conn *c);
/* Packets may flow. 0 or -errno; a refusal leaves it reserved. */
int eng_falcon_open(
	struct eng_transport *t, struct eng_falcon_conn *fc, const struct eng_falcon_open *o);
/* Nothing is sent or delivered any more; the CID is free. */
void eng_falcon_close(struct eng_transport *t, struct eng_falcon_conn *fc);
/* Which transport stage a CID belongs to, and which of its connections. */
unsigned eng_falcon_stage(const struct eng *e, uint32_t cid, uint32_t *slot);
/* ---- falcon_tunnel.c ---- */

/* Addresses and headers of our packets by what was agreed: fc->path, tunnel, extra. 0 or -errno;
 * eng_falcon_tunnel_close() either way. */
int eng_falcon_tunnel_open(
	struct eng_transport *t, struct eng_falcon_conn *fc, const struct eng_falcon_open *o);
void eng_falcon_tunnel_close(struct eng_falcon_conn *fc);
/* Writes the inner header of a packet with `len` bytes behind it. */
void eng_falcon_inner_emit(
	struct eng_transport *t, const struct eng_falcon_conn *fc, uint8_t *at, uint32_t len);
/* Bytes of the inner header that a Next Header of PSP announces, at most IP_MAX; -reason: none that
 * leads to Falcon. */
int eng_falcon_inner_len(uint8_t next);
/* Is an inner header, of as many bytes, what it must be before `len` bytes of Falcon? Sets *ce to
 * whether it says congestion experienced. 0 or a negative reason: of eng's. */
int eng_falcon_inner_check(
	const struct eng_falcon_conn *fc, const uint8_t *p, uint32_t inner, uint32_t len, bool *ce);

/* ---- falcon_end.c ---- */

/* The connection has failed here: not from inside of a call of TCP's or Falcon's, so it pends. Its
 * own side is told `error`, the peer `why`. */
void eng_falcon_fail(struct eng_transport *t, struct eng_conn *c, enum rofx_reason why, int error);
/* ECONN_P_FAIL */
void eng_falcon_failed(struct eng_transport *t, struct eng_conn *c);

/* ---- falcon_keys.c ---- */

void eng_falcon_keys_init(struct eng_transport *t, uint64_t now);
/* What is due. */
void eng_falcon_keys_poll(struct eng_transport *t, uint64_t now);
/* The connection is open: its keys age from now on. */
void eng_falcon_keys_start(struct eng_transport *t, struct eng_falcon_conn *fc);
void eng_falcon_keys_stop(struct eng_transport *t, struct eng_falcon_conn *fc);
/* The exchange's deadline has changed. */
void eng_falcon_keys_arm(struct eng_transport *t, struct eng_falcon_conn *fc);
/* Our key has been used enough. */
void eng_falcon_key_worn(struct eng_transport *t, struct eng_falcon_conn *fc);
/* A packet for the connection came under an SPI that is not its (9.2.2.3): the connection manager
 * is told, once in a while. */
void eng_falcon_spi_wrong(
	struct eng_transport *t, const struct eng_falcon_conn *fc, const struct wire_psp *psp);
/* ROFX_EV_REKEY: we seal with what the peer gave us. 0 or -errno. */
int eng_falcon_take_key(struct eng_transport *t, struct eng_falcon_conn *fc);
/* ROFX_EV_REKEYED: the peer seals with what we gave it. */
void eng_falcon_key_taken(struct eng_transport *t, struct eng_falcon_conn *fc);

/* ---- falcon_terms.c ---- */

/* What our side says in the exchange, with keys of its own. 0 or -ENOSPC: no SPI is left. */
int eng_falcon_terms(struct eng_transport *t, const struct eng_conn *c,
	const struct tcp_tuple *ends, const struct eng_offer *offer, struct rofx_side *s);
/* Both sides have agreed: packets may come and go, and its `start` is there. 0 or -errno. */
int eng_falcon_agreed(struct eng_transport *t, struct eng_conn *c);

/* ---- falcon_startup.c: functions of eng_link_falcon ---- */

bool eng_falcon_begins(const struct eng_transport *t, const struct tcp_slice *chain);
int eng_falcon_listen(struct eng_transport *t, struct eng_conn *c);
int eng_falcon_connect(struct eng_transport *t, struct eng_conn *c, const struct tcp_tuple *ends,
	const struct eng_ctl *m);
void eng_falcon_connected(struct eng_transport *t, struct eng_conn *c);
bool eng_falcon_deliver(struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain);
int eng_falcon_accept(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m);
int eng_falcon_reject(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m);
int eng_falcon_found(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m);
int eng_falcon_self(struct eng_transport *t, struct eng_conn *c);
void eng_falcon_expired(struct eng_transport *t, struct eng_conn *c);

/* Sends what the exchange has for the peer. Returns 0 or -ENOMEM. */
int eng_falcon_send(struct eng_transport *t, struct eng_conn *c);

/* ---- falcon_rx.c ---- */

/* A UDP datagram to PSP's port. Takes the frame. */
void eng_falcon_rx(
	struct eng_transport *t, uint16_t port, const struct wire_pkt *pkt, struct rte_mbuf *m);

/* ---- falcon_tx.c ---- */

/* fa_ops.output */
int eng_falcon_output(void *ctx, struct fa_conn *conn, const struct fa_out *out);

#endif
