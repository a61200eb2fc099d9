/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Falcon on a transport stage: its stack, the connections by their CIDs, and PSP around their
 * packets. A Falcon connection belongs to an eng_conn, whose TCP connection made it and remains its
 * control channel: when one of the two ends, the other ends, too. Times are in ns.
 */
#ifndef SAKER_ENGINE_FALCON_PRIV_H
#define SAKER_ENGINE_FALCON_PRIV_H

#include "../../../falcon/psp.h"
#include "../../../rof/exchange.h"
#include "../link.h"

/* The UDP source port of path 0; its low bits are the path. */
#define ENG_FALCON_SPORT      49152
#define ENG_FALCON_SPORT_BITS 14

/* The state of a connection in tunnel mode: the inner header of the packets that it sends. The
 * packets of the peer have the same header with the addresses exchanged. */
struct eng_falcon_tunnel {
	struct wire_ip ip;
	unsigned len; /* bytes */
};

/* How eng_falcon_rx_known() compares packets with eng_falcon_conn.want. */
struct eng_falcon_known {
	uint8_t kind;   /* index in eng_falcon.known_masks */
	uint8_t l3, l4; /* offsets of the IP and UDP headers in the frame */
	uint8_t least;  /* bytes of the shortest frame */
	uint8_t lines;  /* steps of the comparison */
	bool on;        /* false: every packet takes the general path */
};
#define ENG_FALCON_KNOWN 96

/* A received packet uses the first two cache lines and the fourth, one that is sent the first, and
 * the third one from there on. */
struct eng_falcon_conn {
	_Alignas(64) struct fa_conn *fa; /* NULL: reserved, not open yet */
	struct eng_conn *c;
	uint32_t slot, cid;             /* index in f->conns; Destination CID of received packets */
	struct eng_falcon_start *start; /* the contents of ENG_E_OPEN; NULL after it was sent */
	uint64_t rx_left; /* packets that may arrive until the receive key is changed */
	/* The source of received packets: port, VLAN and address. */
	uint16_t port, vlan;
	uint16_t addr_sum; /* eng_addr_sum() of the UDP pseudo-header */
	uint16_t extra;    /* bytes of the cookie and of the inner header in sent packets */
	uint8_t why;       /* enum rofx_reason of the REJECT that ends the connection */
	bool busy;         /* the engine stage's ring was full for a delivery: in f->busy */
	struct eng_falcon_known known;
	/* The bytes from the Ethernet header to the CID that are the same in all packets of the
	 * peer; the others are 0. */
	_Alignas(64) uint8_t want[ENG_FALCON_KNOWN];
	struct psp_rx accept;
	struct net_path path;
	struct wire_psp tx_psp; /* the PSP header of sent packets, except the IV */
	struct psp_iv iv;

	struct sk_addr raddr;
	struct rofx *x; /* the exchange that made the connection, and its control channel */
	struct psp_sa *tx_sa, *rx_sa;
	struct eng_falcon_tunnel *tunnel; /* NULL: transport mode */
	struct psp_sa *prev_sa; /* the previous rx_sa, which the peer may still use; or NULL */
	/* When the next change of the receive key begins, and when prev_sa is freed; SK_NEVER: no
	 * such event is due. */
	uint64_t rekey_at, retire_at;
	uint64_t key_since; /* when rx_sa was created */
	struct sk_timer timer;
	uint32_t generation;               /* of the device key of rx_sa */
	bool self;                         /* the connection of a self-connected QP */
	TAILQ_ENTRY(eng_falcon_conn) next; /* in f->free or f->busy */
};
_Static_assert(offsetof(struct eng_falcon_conn, accept.remote) == 192 &&
		       offsetof(struct eng_falcon_conn, path.head) < 320 &&
		       offsetof(struct eng_falcon_conn, tx_psp) >= 320,
	"the cache lines that packets use");

/* The state of an exchange during its start-up: c->su->part. */
struct eng_falcon_half {
	struct eng_conn *c;
	/* The exchange of a passive connection until its first request, which takes a place in
	 * f->conns; NULL afterwards, and for an active connection. */
	struct rofx *x;
	bool waits;  /* in f->waiting */
	bool begins; /* the turn is for the first message of an active connection */
	TAILQ_ENTRY(eng_falcon_half) next;
};

/* A cached result of eng_falcon_stage(), which costs more than the rest of the lookup of a
 * connection. */
#define ENG_FALCON_CIDS 64
struct eng_falcon_cid {
	uint32_t key; /* CID + 1; 0: none */
	uint32_t slot;
	unsigned stage;
};

/* Frames of one connection that are complete but for their seal, in the order of sending. */
#define ENG_FALCON_SEALS 32
struct eng_falcon_seals {
	unsigned n;
	const struct eng_falcon_conn *fc; /* valid while n > 0 */
	struct psp_pkt pkt[ENG_FALCON_SEALS];
	struct psp_part part[ENG_FALCON_SEALS];
	struct rte_mbuf *m[ENG_FALCON_SEALS];
};

struct eng_falcon {
	struct fa_stack *fa;
	struct fa_algorithm algorithm; /* congestion control, with the configured parameters */
	struct psp_crypto *crypto;
	struct psp_device *device;     /* in secret memory */
	struct sk_wheel wheel;         /* timers of the connections' keys, and device_timer */
	struct sk_timer device_timer;  /* of the device key */
	uint64_t rotate_at, keys_due;  /* when the device key changes; when to poll `wheel` */
	uint64_t alarm_at;             /* when a wrong SPI is logged again */
	uint32_t sweep;                /* conns[sweep..] are to be checked after a rotation */
	uint64_t due;                  /* when to poll the timers again */
	bool work;                     /* the stack may have something to send in this turn */
	struct eng_falcon_conn *conns; /* [nconns] */
	uint32_t nconns, fresh;        /* conns[fresh..] have never been used */
	struct eng_falcon_cid cids[ENG_FALCON_CIDS]; /* by the low bits of the CID */
	/* The bytes of eng_falcon_conn.want that count: with a VLAN or not, IPv4 or IPv6. */
	_Alignas(16) uint8_t known_masks[4][ENG_FALCON_KNOWN];
	/* eng_falcon_output(): the fast path is switched off; the connection whose path is known to
	 * be valid until the end of fa_stack_send(), or NULL. */
	bool general;
	const struct eng_falcon_conn *checked;
	struct eng_falcon_seals seals; /* empty outside of fa_stack_send() */
	TAILQ_HEAD(eng_falcon_conns, eng_falcon_conn) free, busy;
	/* The exchanges with work for TLS, in the order of its arrival. */
	TAILQ_HEAD(eng_falcon_halves, eng_falcon_half) waiting;
	const struct eng_conn *turn; /* the connection that may work for TLS now, or NULL */
	/* When TLS last had a turn whose cost is not known yet (SK_NEVER: none), and when the next
	 * turn may begin. */
	uint64_t tls_from, tls_at;
	/* For eng_transport_falcon(), written by relaxed atomic stores. */
	uint32_t nreserved, nstarting, nwaiting, nopen[16];
	uint64_t key_since;
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

/* Returns the exchange of a connection that has not ended. */
static inline struct rofx *
eng_falcon_exchange(const struct eng_conn *c)
{
	const struct eng_falcon_half *half;

	if (c->part != NULL)
		return eng_falcon_conn_of(c)->x;
	half = c->su->part;
	return half->x;
}

/* Adds to a number that other threads read. */
static inline void
eng_falcon_add(uint32_t *n, int by)
{
	__atomic_store_n(n, *n + (uint32_t)by, __ATOMIC_RELAXED);
}

/* ---- falcon.c ---- */

/* The parameters of packets that both sides agreed on in the exchange. */
struct eng_falcon_open {
	struct fa_params fa;         /* eng_falcon_open() sets cid, user and algorithm */
	struct sk_addr laddr, raddr; /* in tunnel mode the addresses of the inner header */
	uint16_t port, vlan;
	bool tunnel;
	struct sk_addr outer_laddr, outer_raddr; /* tunnel mode only */
	bool has_cookie; /* the peer requires tx_cookie in the packets that it receives */
	uint64_t tx_cookie, rx_cookie;
	struct net_class class;
	uint8_t psp; /* enum psp_version */
	uint32_t tx_spi, rx_spi;
	uint8_t tx_key[PSP_KEY_MAX];
};

/* Returns a connection that has a CID but is not open, or NULL when all are in use. */
struct eng_falcon_conn *eng_falcon_reserve(struct eng_transport *t, struct eng_conn *c);
/* Opens a reserved connection: from then on, it sends and receives packets. Returns 0, or -errno,
 * and then the connection stays reserved. */
int eng_falcon_open(
	struct eng_transport *t, struct eng_falcon_conn *fc, const struct eng_falcon_open *o);
/* Closes a connection and frees its CID. The connection sends and delivers nothing any more. */
void eng_falcon_close(struct eng_transport *t, struct eng_falcon_conn *fc);
/* Returns the index of the transport stage that owns `cid`. Sets *slot to the connection's index in
 * the conns of that stage; it may be out of range. */
unsigned eng_falcon_stage(const struct eng *e, uint32_t cid, uint32_t *slot);
/* ---- falcon_tunnel.c ---- */

/* Sets the addresses and headers of sent packets: fc->path, tunnel, extra and tx_psp. Returns 0, or
 * -errno; the caller calls eng_falcon_tunnel_close() in both cases. */
int eng_falcon_tunnel_open(
	struct eng_transport *t, struct eng_falcon_conn *fc, const struct eng_falcon_open *o);
void eng_falcon_tunnel_close(struct eng_falcon_conn *fc);
/* Writes at `at` the inner header of a packet whose Falcon header and payload have `len` bytes. */
void eng_falcon_inner_emit(
	struct eng_transport *t, const struct eng_falcon_conn *fc, uint8_t *at, uint32_t len);
/* Returns the bytes of the inner header for `next`, the Next Header of PSP: 0 to IP_MAX, or the
 * negative of an enum wire_reason when `next` is neither Falcon nor IP. */
int eng_falcon_inner_len(uint8_t next);
/* Checks an inner header of `inner` bytes, which `len` bytes of Falcon follow, against the mode and
 * the addresses of the connection. Sets *ce to whether its ECN field is CE. Returns 0, or the
 * negative of an enum eng_reason. */
int eng_falcon_inner_check(
	const struct eng_falcon_conn *fc, const uint8_t *p, uint32_t inner, uint32_t len, bool *ce);

/* ---- falcon_end.c ---- */

/* Ends a connection that has failed on this side, or that the program aborts: sets ECONN_P_FAIL,
 * because no function of lib/tcp or lib/falcon may be running at the end itself. This side's
 * program receives `error` (-errno), the peer receives `why`. */
void eng_falcon_fail(struct eng_transport *t, struct eng_conn *c, enum rofx_reason why, int error);
/* Performs ECONN_P_FAIL. */
void eng_falcon_failed(struct eng_transport *t, struct eng_conn *c);

/* ---- falcon_keys.c ---- */

void eng_falcon_keys_init(struct eng_transport *t, uint64_t now);
/* Handles the expired timers of keys. */
void eng_falcon_keys_poll(struct eng_transport *t, uint64_t now);
/* Starts the timers of a connection's keys, when it has been opened. */
void eng_falcon_keys_start(struct eng_transport *t, struct eng_falcon_conn *fc);
void eng_falcon_keys_stop(struct eng_transport *t, struct eng_falcon_conn *fc);
/* Sets the timer of a connection again, when its exchange has a new deadline. */
void eng_falcon_keys_arm(struct eng_transport *t, struct eng_falcon_conn *fc);
/* Begins a change of the connection's receive key, or schedules it after the one in progress. */
void eng_falcon_key_worn(struct eng_transport *t, struct eng_falcon_conn *fc);
/* Logs and counts a packet for the connection with a wrong SPI (Falcon 9.2.2.3), at most once per
 * second and stage. */
void eng_falcon_spi_wrong(
	struct eng_transport *t, const struct eng_falcon_conn *fc, const struct wire_psp *psp);
/* Handles ROFX_EV_REKEY: seals packets with the new key of the peer. Returns 0 or -errno. */
int eng_falcon_take_key(struct eng_transport *t, struct eng_falcon_conn *fc);
/* Handles ROFX_EV_REKEYED: the peer seals packets with the new key of this side. */
void eng_falcon_key_taken(struct eng_transport *t, struct eng_falcon_conn *fc);

/* ---- falcon_terms.c ---- */

/* Fills in *s, the terms and keys that this side sends in the exchange. Returns 0, or -ENOSPC when
 * no SPI is free. */
int eng_falcon_terms(struct eng_transport *t, const struct eng_conn *c,
	const struct tcp_tuple *ends, const struct eng_offer *offer, struct rofx_side *s);
/* Lists for the peer the UDP source ports whose packets arrive at this stage, if the port of the
 * network distributes them: before rofx_accept() or rofx_ready(). `ends` is the tuple of the
 * control channel. */
void eng_falcon_list_ports(const struct eng_transport *t, struct rofx *x,
	const struct tcp_tuple *ends, const struct rofx_side *ours, const struct rofx_side *peer);
/* Opens the connection with the terms that both sides agreed on, and sets its `start`. Returns 0 or
 * -errno. */
int eng_falcon_agreed(struct eng_transport *t, struct eng_conn *c);

/* ---- falcon_turns.c: turns of TLS ---- */

/* Allocates c->su->part. Takes `x`, the exchange of a passive connection; NULL for an active one.
 * Returns 0, or -ENOMEM, and then the caller keeps `x`. */
int eng_falcon_half_create(struct eng_transport *t, struct eng_conn *c, struct rofx *x);
/* Moves the exchange to a place in f->conns: c->part. Returns 0, or -ENOBUFS when all are in
 * use. */
int eng_falcon_half_promote(struct eng_transport *t, struct eng_conn *c);
/* Implements startup_free of eng_link_falcon. */
void eng_falcon_half_free(struct eng_transport *t, struct eng_conn *c);
/* Removes a connection that has ended from the queue. */
void eng_falcon_half_forget(struct eng_transport *t, struct eng_conn *c);
/* Returns whether the connection may process what its peer has sent, or, if `begins`, send its
 * first message. After false it gets a turn later: eng_falcon_turn() then delivers again, or calls
 * eng_falcon_begin(). */
bool eng_falcon_may(struct eng_transport *t, struct eng_conn *c, bool begins);
/* Ends the measurement of the last turn, at the beginning of the stage's next turn. */
void eng_falcon_turn_over(struct eng_falcon *f, uint64_t now);
/* Gives a turn to the connection that has waited longest, if it is time. Returns whether there was
 * one. */
bool eng_falcon_turn(struct eng_transport *t, uint64_t now);

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
/* Sends the first message of an active connection. */
void eng_falcon_begin(struct eng_transport *t, struct eng_conn *c);

/* Sends what the exchange has for the peer. Returns 0 or -ENOMEM. */
int eng_falcon_send(struct eng_transport *t, struct eng_conn *c);

/* ---- falcon_rx.c ---- */

/* A received datagram. */
struct eng_datagram {
	struct rte_mbuf *m;
	uint32_t off; /* of the PSP header in `m` */
	uint32_t len; /* bytes from the PSP header on */
	struct wire_psp psp;
	uint32_t head;  /* bytes of the PSP header and the inner IP header */
	uint32_t inner; /* bytes of the inner IP header (tunnel mode), or 0 */
	bool ce;        /* the ECN field of the inner IP header is CE */
};

/* What Falcon uses of the IP and UDP headers. */
struct eng_falcon_outer {
	uint32_t path;
	uint8_t ttl;
	bool ce;
};

/* Handles a UDP datagram to the port of PSP. Takes the frame. */
void eng_falcon_rx(
	struct eng_transport *t, uint16_t port, const struct wire_pkt *pkt, struct rte_mbuf *m);

/* Processes a packet whose integrity, SPI and age were checked. `d` describes the packet from the
 * PSP header on; takes its frame. */
void eng_falcon_rx_input(struct eng_transport *t, struct eng_falcon_conn *fc,
	struct eng_datagram *d, const struct eng_falcon_outer *outer);
/* Returns the index and the stage of a CID, from the cache. */
const struct eng_falcon_cid *eng_falcon_cid_known(struct eng_transport *t, uint32_t cid);

/* ---- falcon_known.c: packets with the expected headers ---- */

/* Fills in f->known_masks. */
void eng_falcon_known_init(struct eng_falcon *f);
/* Prepares fc->known, when the connection has been opened. */
void eng_falcon_expect(struct eng_transport *t, struct eng_falcon_conn *fc);
/* Handles the first frames of `m` as long as they are packets of one connection with the expected
 * headers. Takes these frames and returns their number. */
unsigned eng_falcon_rx_known(
	struct eng_transport *t, uint16_t port, struct rte_mbuf **m, unsigned n);

/* ---- falcon_tx.c ---- */

/* Implements fa_ops.output. */
int eng_falcon_output(void *ctx, struct fa_conn *conn, const struct fa_out *out);

/* Returns the UDP source port of a path: fa_out.path. */
static inline uint16_t
eng_falcon_sport(uint32_t path)
{
	return (uint16_t)(ENG_FALCON_SPORT + (path & ((1u << ENG_FALCON_SPORT_BITS) - 1)));
}

/* ---- falcon_tx_fast.c ---- */

/* Sends a short packet, or notes its frame in f->seals. Returns false when the general path has to
 * send it, after eng_falcon_seal(); the packet has then had no effect. */
bool eng_falcon_output_fast(
	struct eng_transport *t, struct eng_falcon_conn *fc, const struct fa_out *out);
/* Seals the packets in f->seals, and queues them for their port. */
void eng_falcon_seal(struct eng_transport *t);

#endif
