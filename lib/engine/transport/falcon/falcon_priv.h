/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Falcon on a transport stage: its stack, the connections by their CIDs, and PSP around their
 * packets. A Falcon connection belongs to an eng_conn that has no TCP connection. Its exchange runs
 * on a carrier: the TCP connection that all Falcon connections between this stage and a host share
 * (doc/falcon-cm.md). A carrier may end and be made again without an effect on connections. Times
 * are in ns.
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
	uint8_t psp;    /* the PSP version */
	bool on;        /* false: every packet takes the general path */
};
#define ENG_FALCON_KNOWN 96

/* An exchange with frames for its peer, in a lane of its host. */
struct eng_falcon_sender {
	struct rofx *x;
	TAILQ_ENTRY(eng_falcon_sender) next;
	uint16_t user; /* that pays for the connection */
	uint8_t lane;
	uint8_t stage; /* of the peer, which has its end, or for which the request is */
	bool bound;    /* `stage` is valid */
	bool queued;   /* in a lane, or parked */
	bool parked;   /* there is no carrier to `stage` */
	bool orphan;   /* its connection has ended: the sender is freed with its last frame */
};
TAILQ_HEAD(eng_falcon_senders, eng_falcon_sender);

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
	struct eng_falcon_sender out; /* and the exchange that made the connection */
	struct psp_sa *tx_sa, *rx_sa;
	struct eng_falcon_tunnel *tunnel; /* NULL: transport mode */
	struct psp_sa *prev_sa; /* the previous rx_sa, which the peer may still use; or NULL */
	/* When the next change of the receive key begins, and when prev_sa is freed; SK_NEVER: no
	 * such event is due. */
	uint64_t rekey_at, retire_at;
	uint64_t key_since; /* when rx_sa was created */
	struct sk_timer timer;
	uint32_t generation;   /* of the device key of rx_sa */
	bool self;             /* the connection of a self-connected QP */
	bool accepts_self;     /* the other end of it, which ends with READY */
	uint8_t use;           /* the slot's uses, 1 to 255: part of the name */
	uint8_t list;          /* enum eng_falcon_list */
	uint16_t lport, rport; /* as the programs have them */
	uint32_t via;          /* the carrier of its last frame: its number */
	/* ENG_FALCON_LIVE: low bits of rx_left when the host fell silent; ENG_FALCON_ASKING:
	 * eng_falcon.carriers when it joined the host. */
	uint32_t mark;
	uint16_t *paths;              /* fa_params.paths, or NULL */
	struct eng_falcon_host *host; /* NULL: in no list of a host */
	TAILQ_ENTRY(eng_falcon_conn) of_host;
	TAILQ_ENTRY(eng_falcon_conn) next; /* in f->free or f->busy */
};
_Static_assert(offsetof(struct eng_falcon_conn, accept.remote) == 192 &&
		       offsetof(struct eng_falcon_conn, path.head) < 320 &&
		       offsetof(struct eng_falcon_conn, tx_psp) >= 320,
	"the cache lines that packets use");

TAILQ_HEAD(eng_falcon_members, eng_falcon_conn);

/* The lists of a host. */
enum eng_falcon_list {
	ENG_FALCON_ASKING,   /* active connections until they are established */
	ENG_FALCON_STARTING, /* passive ones, in a bucket by the peer's name */
	ENG_FALCON_LIVE,
};

/* One end of a carrier: the part of an eng_conn in the state ECONN_CARRIER. */
struct eng_falcon_carrier {
	struct eng_transport *t;
	struct eng_conn *c;
	struct rofx_carrier *k;
	struct eng_falcon_host *host;
	TAILQ_ENTRY(eng_falcon_carrier) of_host;
	uint32_t number;  /* unique in the stage */
	bool ours;        /* this side has opened the TCP connection */
	bool connected;   /* TCP is established */
	bool up;          /* it was ready */
	bool retired;     /* no exchange begins on it any more */
	bool closing;     /* this side sends nothing any more */
	bool unsent;      /* no mbuf was free for what it has to send */
	bool counted;     /* in f->nstarting: a passive one before its first frame */
	uint64_t used_at; /* of the last frame */
	/* Turns of TLS. */
	bool waits;  /* in f->waiting */
	bool begins; /* the turn is for the first message of an active carrier */
	TAILQ_ENTRY(eng_falcon_carrier) next;
	/* Turns of frames: what has arrived and waits for the next one, in f->behind then, or
	 * NULL. */
	struct tcp_slice *rest;
	TAILQ_ENTRY(eng_falcon_carrier) later;
};

/* The reasons to visit the connections of a host, some in a turn. */
enum eng_falcon_sweep {
	ENG_FALCON_REST,
	ENG_FALCON_CHECK, /* a carrier was made again: does the peer still have them? */
	ENG_FALCON_MARK,  /* the last carrier is lost: how many packets have arrived? */
	ENG_FALCON_LOOK,  /* it cannot be made again: has any packet arrived since? */
	ENG_FALCON_KILL,  /* none has: end them */
};

#define ENG_FALCON_LANES   16
#define ENG_FALCON_BUCKETS 256

/* A pair of addresses: of this host and of a peer. It exists while it has connections, carriers or
 * frames to send. */
struct eng_falcon_host {
	LIST_ENTRY(eng_falcon_host) bucket; /* in f->hosts */
	TAILQ_ENTRY(eng_falcon_host) turn;  /* in f->turns */
	bool in_turn;
	struct sk_addr laddr, raddr;
	uint16_t vlan, port;
	TAILQ_HEAD(eng_falcon_carriers, eng_falcon_carrier) carriers;
	struct eng_falcon_members live, asking, starting[ENG_FALCON_BUCKETS];
	uint32_t nlive, nstarting, nasking;
	/* Exchanges with frames to send. A user has one lane, so that the frames of one user wait
	 * for at most one frame of each other lane. */
	struct eng_falcon_senders lanes[ENG_FALCON_LANES], parked;
	uint16_t filled; /* bits of the lanes that are not empty */
	uint8_t lane;    /* the next one */
	uint32_t norphans;
	/* The sweep of `live`. */
	uint8_t sweep;
	bool heard;
	uint32_t left; /* connections to visit */
	/* The sweep of `asking` and `starting` after the end of a carrier: the connections of the
	 * one and the buckets of the other that are to be visited, and the next bucket. Requests
	 * fail with `gone_error` (0: none does) that joined up to the number `gone` of carriers. */
	uint32_t asking_left, gone;
	uint16_t buckets_left, next_bucket;
	int gone_error;
	uint64_t lost_at;    /* when the last carrier was lost; SK_NEVER: there is one */
	unsigned next_stage; /* of the peer, for the next request */
	uint64_t few_until;  /* until then, requests use the stages that can be reached */
	unsigned tries;      /* to make one again, for one stage of the peer */
	uint64_t retry_at;   /* no carrier is opened before */
	unsigned resets;     /* carriers in a row that the peer has reset before they were ready */
	struct sk_timer timer;
};

#define ENG_FALCON_HOSTS 1024

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
	uint64_t version_alarm_at;     /* and a peer of another version */
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
	/* The hosts by their addresses, those with work for the next turn, and their timers. */
	LIST_HEAD(eng_falcon_hosts, eng_falcon_host) hosts[ENG_FALCON_HOSTS];
	TAILQ_HEAD(eng_falcon_turns, eng_falcon_host) turns;
	struct sk_wheel host_wheel;
	uint64_t hosts_due;
	struct sk_key host_key;
	unsigned index;                        /* of the stage */
	uint32_t carriers;                     /* the number of the last one */
	uint16_t per_prefix[ENG_FALCON_HOSTS]; /* starting exchanges, by their source prefix */
	/* The carriers with work for TLS, in the order of its arrival, and those with frames for
	 * the next turn. */
	TAILQ_HEAD(eng_falcon_waiting, eng_falcon_carrier) waiting, behind;
	uint32_t nframes;                          /* of all carriers, processed in this turn */
	const struct eng_falcon_carrier *tls_turn; /* the one that may work for TLS now, or NULL */
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

static inline struct eng_falcon_carrier *
eng_falcon_carrier_of(const struct eng_conn *c)
{
	return c->part;
}

/* Returns the exchange of a connection that has not ended. */
static inline struct rofx *
eng_falcon_exchange(const struct eng_conn *c)
{
	return eng_falcon_conn_of(c)->out.x;
}

/* Returns the name of a connection's exchange at this side. */
static inline uint32_t
eng_falcon_name(const struct eng_falcon_conn *fc)
{
	return (uint32_t)fc->use << 24 | fc->cid;
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
 * program receives `error` (-errno), the peer receives `why`. With ROFX_NONE both sides have ended
 * it in order. */
void eng_falcon_fail(struct eng_transport *t, struct eng_conn *c, enum rofx_reason why, int error);
/* Performs ECONN_P_FAIL. */
void eng_falcon_failed(struct eng_transport *t, struct eng_conn *c);
/* Ends this side's direction of a connection in order. */
void eng_falcon_finish(struct eng_transport *t, struct eng_conn *c);
/* Frees the connection and its place; its last frames are still sent. */
void eng_falcon_release(struct eng_transport *t, struct eng_conn *c);

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
 * network distributes them: before rofx_accept() or rofx_ready(). `ends` has the addresses of the
 * connection and its network. */
void eng_falcon_list_ports(const struct eng_transport *t, struct rofx *x,
	const struct tcp_tuple *ends, const struct rofx_side *ours, const struct rofx_side *peer);
/* Opens the connection with the terms that both sides agreed on, and sets its `start`. Returns 0 or
 * -errno. */
int eng_falcon_agreed(struct eng_transport *t, struct eng_conn *c);

/* ---- falcon_turns.c: turns of TLS and of frames ---- */

/* Removes a carrier that has ended from the queue. */
void eng_falcon_tls_forget(struct eng_falcon *f, struct eng_falcon_carrier *k);
/* Returns whether the carrier may process what its peer has sent, or, if `begins`, send its first
 * message. After false it gets a turn later: eng_falcon_turn() then delivers again, or calls
 * eng_falcon_carrier_begin(). */
bool eng_falcon_may(struct eng_falcon *f, struct eng_falcon_carrier *k, bool begins);
/* Ends the measurement of the last turn, at the beginning of the stage's next turn. */
void eng_falcon_turn_over(struct eng_falcon *f, uint64_t now);
/* Gives a turn to the carrier that has waited longest, if it is time. Returns whether there was
 * one. */
bool eng_falcon_turn(struct eng_transport *t, uint64_t now);
/* Returns whether a carrier may process one more frame in this turn of the stage. */
bool eng_falcon_frames_left(const struct eng_falcon *f);
/* Begins the frames of the stage's next turn: the carriers in f->behind go on, the first one that
 * had to wait first. Returns whether there was one. */
bool eng_falcon_frames_turn(struct eng_transport *t);

/* ---- falcon_host.c ---- */

void eng_falcon_hosts_init(struct eng_falcon *f, uint64_t now);
/* Frees all hosts, whose connections and carriers have been freed. */
void eng_falcon_hosts_free(struct eng_falcon *f);
/* Returns the host with these ends, or NULL when there is no memory. The caller adds a connection
 * or a carrier to it, or calls eng_falcon_host_put(). */
struct eng_falcon_host *eng_falcon_host_get(struct eng_falcon *f, const struct tcp_tuple *ends);
/* Frees the host if nothing needs it. */
void eng_falcon_host_put(struct eng_falcon *f, struct eng_falcon_host *h);
/* Adds a connection to a list of the host, or moves it to another one. Returns false when the peer
 * has too many starting exchanges. */
bool eng_falcon_join(struct eng_falcon *f, struct eng_falcon_host *h, struct eng_falcon_conn *fc,
	enum eng_falcon_list list);
/* Removes a connection that ends from its host. Destroys its exchange, or keeps that until its last
 * frames have been sent. */
void eng_falcon_leave(struct eng_falcon *f, struct eng_falcon_conn *fc);
/* Returns the passive connection whose request the peer has named so, or NULL. */
struct eng_falcon_conn *eng_falcon_starting(
	const struct eng_falcon *f, const struct eng_falcon_host *h, uint32_t peer_id);
/* Gives the host a turn. */
void eng_falcon_host_wake(struct eng_falcon *f, struct eng_falcon_host *h);

/* ---- falcon_lanes.c ---- */

/* Removes a sender from its lane. */
void eng_falcon_sender_leave(struct eng_falcon_host *h, struct eng_falcon_sender *s);
/* Lets all senders that wait for a carrier look for one again. */
void eng_falcon_unpark(struct eng_falcon_host *h);
/* Moves the exchange of a connection that ends to a sender of its own, if it has frames left. */
void eng_falcon_orphan_create(struct eng_falcon_host *h, struct eng_falcon_conn *fc);
void eng_falcon_orphans_free(struct eng_falcon_host *h);
/* Returns whether both ends of the host's connections are here. */
bool eng_falcon_host_is_self(const struct eng_falcon_host *h);
/* Returns whether a carrier is the one of two that have crossed that survives: the one that the
 * greater address has opened. */
bool eng_falcon_survives(const struct eng_falcon_carrier *k);
/* Returns whether the carrier takes frames. */
bool eng_falcon_usable(const struct eng_transport *t, struct eng_falcon_carrier *k);
/* Sends what the exchange of the connection has for the peer, over a carrier that is made first if
 * there is none. */
void eng_falcon_send(struct eng_transport *t, struct eng_falcon_conn *fc);
/* Sends waiting frames of all exchanges as far as carriers take them. */
void eng_falcon_flush(struct eng_transport *t, struct eng_falcon_host *h);

/* ---- falcon_sweep.c ---- */

/* Handles a carrier that is ready, and one that has ended; `error` is 0 when it ended in order, and
 * all of its frames have arrived. */
void eng_falcon_host_up(struct eng_transport *t, struct eng_falcon_carrier *k);
void eng_falcon_host_down(struct eng_transport *t, struct eng_falcon_carrier *k, int error);
/* Runs the turns of the hosts, and their timers. Returns whether there was work. */
bool eng_falcon_hosts_poll(struct eng_transport *t, uint64_t now);

/* ---- falcon_carrier.c ---- */

/* Opens a carrier to the host, for which the user pays until it is ready. Returns 0 or -errno. */
int eng_falcon_carrier_open(struct eng_transport *t, struct eng_falcon_host *h, uint16_t user);
/* Prepares the passive end of a carrier: c->part. Returns 0 or -errno. */
int eng_falcon_carrier_listen(struct eng_transport *t, struct eng_conn *c);
/* Sends the first message of an active carrier. */
void eng_falcon_carrier_begin(struct eng_transport *t, struct eng_falcon_carrier *k);
bool eng_falcon_carrier_deliver(
	struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain);
/* Goes on with received bytes that had to wait for the next turn of frames. May free the
 * carrier. */
void eng_falcon_carrier_resume(struct eng_transport *t, struct eng_falcon_carrier *k);
/* Passes what the carrier has to TCP. Returns 0 or -ENOMEM. */
int eng_falcon_carrier_flush(struct eng_transport *t, struct eng_falcon_carrier *k);
/* Returns whether TCP's queue has room for more frames. */
bool eng_falcon_carrier_open_for(const struct eng_transport *t, const struct eng_falcon_carrier *k);
/* Closes the carrier in order: frames of the peer still arrive. */
void eng_falcon_carrier_close(struct eng_transport *t, struct eng_falcon_carrier *k);
/* Handles the end of the peer's direction, the carrier's timer, and the end of TCP. */
void eng_falcon_carrier_fin(struct eng_transport *t, struct eng_conn *c);
void eng_falcon_carrier_expired(struct eng_transport *t, struct eng_falcon_carrier *k);
void eng_falcon_carrier_ended(struct eng_transport *t, struct eng_falcon_carrier *k);
/* Frees the carrier; the TCP connection may remain. */
void eng_falcon_carrier_free(struct eng_transport *t, struct eng_falcon_carrier *k, int error);

/* ---- falcon_startup.c: functions of eng_link_falcon ---- */

bool eng_falcon_begins(const struct eng_transport *t, const struct tcp_slice *chain);
int eng_falcon_connect(struct eng_transport *t, struct eng_conn *c, const struct tcp_tuple *ends,
	const struct eng_ctl *m);
int eng_falcon_accept(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m);
int eng_falcon_reject(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m);
int eng_falcon_found(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m);
int eng_falcon_self(struct eng_transport *t, struct eng_conn *c);
void eng_falcon_abandon(struct eng_transport *t, struct eng_conn *c);
void eng_falcon_expired(struct eng_transport *t, struct eng_conn *c);
void eng_falcon_ends(const struct eng_transport *t, const struct eng_conn *c,
	struct tcp_tuple *tuple, struct tcp_info *info);
/* Handles the events of the exchange, and sends its frames. */
void eng_falcon_advance(struct eng_transport *t, struct eng_conn *c);
/* Fills in the configuration of a carrier. The pointers in *cfg are valid as long as
 * `ends`. */
const struct rofx_config *eng_falcon_config(
	const struct eng_transport *t, const struct tcp_tuple *ends, struct rofx_config *cfg);
/* Fills in that of an exchange: the peer's program may need time for its answer. */
const struct rofx_config *eng_falcon_exchange_config(
	const struct eng_transport *t, struct rofx_config *cfg);

/* ---- falcon_frames.c ---- */

/* Handles a frame of a carrier: a rofx_frame_fn. `ctx` is an eng_falcon_carrier. */
void eng_falcon_frame(void *ctx, struct rofx_carrier *k, const struct rofx_frame *f);

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

/* The fields of the IP and UDP headers that Falcon uses. */
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
