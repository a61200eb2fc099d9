/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of open connections whose headers are as expected. All bytes up to the CID that are the
 * same in each packet of the peer are compared at once with what this side expects. Such a packet
 * needs none of the checks of the net stack: its addresses, its VLAN and its port are those of the
 * connection. The fields that differ from packet to packet (lengths, checksums, SPI, IV) are
 * checked here.
 *
 * A frame for which any check fails is left to the general path (falcon_rx.c), unchanged, which
 * decides and counts. Only the ICV of a sealed packet decides here, since opening changes the
 * bytes. A connection in tunnel mode or with cookies, a frame in several mbufs or in a shared one
 * that is sealed, and the loop port always take the general path.
 *
 * Consecutive packets of one connection and one type make a run. Those that lib/falcon accepts as
 * part of one (fa_run_add()) go to the engine stage together, in one message.
 */
#include <string.h>

#include <rte_ring.h>

#include "../../../base/check.h"
#include "../../../base/mem.h"
#include "../../../wire/word.h"
#include "falcon_priv.h"

#define LINE      16 /* bytes that one step of the comparison covers */
#define LINES     4  /* steps for each frame: IPv4 without a VLAN needs no more */
#define MAC_LEN   6
#define VLAN_TCI  14
#define IP4_SIZE  2
#define IP4_FRAG  6
#define IP4_TTL   8
#define IP4_PROTO 9
#define IP4_SRC   12
#define IP6_SIZE  4
#define IP6_NEXT  6
#define IP6_HOPS  7
#define IP6_SRC   8
#define UDP_SIZE  4
#define PSP_FLAGS 3
#define PSP_SPI   4
#define PSP_IV    8
#define PSP_HINTS 0xc0 /* the flags "sample" and "drop", which the receiver ignores */
/* Distances of further prefetches in frames; see conns_ahead(). */
#define AHEAD_CONN 4
#define AHEAD_PART 2
/* Bytes of answers after which a run ends: the engine stage sends them before it copies more. */
#define ANSWERS_MAX 65536u
#define SUM_SMALL   256 /* bytes up to which the loop of known_sum_holds() is faster */

enum { KIND_VLAN = 1, KIND_IP6 = 2 };

typedef uint64_t line __attribute__((vector_size(LINE)));

/* ---- The expectation ---- */

static unsigned
l3_at(unsigned kind)
{
	return kind & KIND_VLAN ? ETH_MAX : ETH_LEN;
}

static unsigned
l4_at(unsigned kind)
{
	return l3_at(kind) + (kind & KIND_IP6 ? IP6_LEN : IP4_LEN);
}

static void
mask_fill(uint8_t *m, unsigned kind)
{
	uint8_t *l3 = m + l3_at(kind), *l4 = m + l4_at(kind), *psp = l4 + UDP_LEN;

	memset(m, 0xff, MAC_LEN); /* the source address is not checked */
	memset(m + ETH_LEN - 2, 0xff, l3_at(kind) - (ETH_LEN - 2));
	if (kind & KIND_VLAN)
		m[VLAN_TCI] = 0x0f; /* without the priority */
	if (kind & KIND_IP6) {
		l3[0] = 0xf0;
		l3[IP6_NEXT] = 0xff;
		memset(l3 + IP6_SRC, 0xff, 2 * sizeof(struct sk_addr));
	} else {
		l3[0] = 0xff;
		l3[IP4_FRAG] = 0x3f; /* without DF */
		l3[IP4_FRAG + 1] = 0xff;
		l3[IP4_PROTO] = 0xff;
		memset(l3 + IP4_SRC, 0xff, 8);
	}
	memset(l4 + 2, 0xff, 2); /* the destination port */
	memset(psp, 0xff, PSP_SPI);
	psp[PSP_FLAGS] = (uint8_t)~PSP_HINTS;
	memset(psp + PSP_LEN, 0xff, FALCON_CLEAR_LEN);
}

void
eng_falcon_known_init(struct eng_falcon *f)
{
	for (unsigned kind = 0; kind < SK_ARRAY_LEN(f->known_masks); kind++)
		mask_fill(f->known_masks[kind], kind);
}

/* Writes the headers of a packet of the peer. The source of the packets that this side sends is
 * their destination. */
static void
want_fill(struct eng_transport *t, struct eng_falcon_conn *fc, const struct wire_ip *sent)
{
	struct eng_falcon_known *k = &fc->known;
	const struct wire_falcon falcon = {.type = FALCON_BACK, .cid = fc->cid};
	const struct wire_udp udp = {.dport = PSP_UDP_PORT};
	struct wire_eth eth = {.vlan = fc->vlan, .type = k->kind & KIND_IP6 ? ETH_IPV6 : ETH_IPV4};
	struct wire_ip ip = {.src = sent->dst, .dst = sent->src, .proto = IP_UDP};
	uint8_t buf[ETH_MAX + IP_MAX + UDP_LEN + PSP_MAX + FALCON_MAX] = {0};

	memcpy(eth.dst, t->e->ports[fc->port].mac, sizeof(eth.dst));
	wire_eth_emit(buf, &eth);
	wire_ip_emit(buf + k->l3, &ip);
	wire_udp_emit(buf + k->l4, &udp);
	wire_psp_emit(buf + k->l4 + UDP_LEN, &fc->tx_psp);
	wire_falcon_emit(buf + k->l4 + UDP_LEN + PSP_LEN, &falcon);
	for (unsigned i = 0; i < ENG_FALCON_KNOWN; i++)
		fc->want[i] = buf[i] & eng_falcon_of(t)->known_masks[k->kind][i];
}

void
eng_falcon_expect(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	struct eng_falcon_known *k = &fc->known;
	const uint8_t *sent = fc->path.head + fc->path.l2_len;
	struct wire_ip ip = {0};

	if (t->e->cfg.falcon.general_rx || fc->port == t->loop_port || fc->tunnel != NULL ||
		fc->tx_psp.has_vc || eng_falcon_of(t)->device->match_cookie)
		return;
	if (fc->path.l3_len == IP6_LEN) {
		memcpy(ip.src.b, sent + IP6_SRC, sizeof(ip.src));
		memcpy(ip.dst.b, sent + IP6_SRC + sizeof(ip.src), sizeof(ip.dst));
	} else {
		ip.src = sk_addr_v4(sent + IP4_SRC);
		ip.dst = sk_addr_v4(sent + IP4_SRC + 4);
	}
	if (!sk_addr_eq(&ip.dst, &fc->raddr))
		return;
	k->kind = (uint8_t)((fc->vlan != ETH_NO_VLAN ? KIND_VLAN : 0) |
			    (fc->path.l3_len == IP6_LEN ? KIND_IP6 : 0));
	k->l3 = (uint8_t)l3_at(k->kind);
	k->l4 = (uint8_t)l4_at(k->kind);
	k->psp = fc->tx_psp.version;
	k->least =
		(uint8_t)(k->l4 + UDP_LEN + PSP_LEN + FALCON_BASE_LEN + wire_psp_icv_len(k->psp));
	k->lines = (uint8_t)((k->l4 + UDP_LEN + PSP_LEN + FALCON_CLEAR_LEN + LINE - 1) / LINE);
	k->on = true;
	want_fill(t, fc, &ip);
}

/* ---- The comparison ---- */

static inline line
differs(const uint8_t *p, const uint8_t *want, const uint8_t *mask, unsigned i)
{
	const line *w = (const line *)__builtin_assume_aligned(want, LINE);
	const line *m = (const line *)__builtin_assume_aligned(mask, LINE);
	line v;

	memcpy(&v, p + (size_t)i * LINE, LINE);
	return (v & m[i]) ^ w[i];
}

static inline bool
headers_match(
	const struct eng_falcon *f, const struct eng_falcon_conn *fc, const struct rte_mbuf *m)
{
	const struct eng_falcon_known *k = &fc->known;
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *), *mask = f->known_masks[k->kind];
	line d;

	/* A frame that is long enough for its headers is long enough for the comparison. */
	if (m->nb_segs != 1 || m->data_len < k->least)
		return false;
	d = differs(p, fc->want, mask, 0) | differs(p, fc->want, mask, 1) |
	    differs(p, fc->want, mask, 2) | differs(p, fc->want, mask, 3);
	for (unsigned i = LINES; i < k->lines; i++)
		d |= differs(p, fc->want, mask, i);
	return (d[0] | d[1]) == 0;
}

/* Returns the element of f->conns for the CID that a frame of its kind has at this place, or NULL.
 * It may be unused, or that of another peer. */
static inline struct eng_falcon_conn *
place_of(struct eng_transport *t, const struct rte_mbuf *m)
{
	struct eng_falcon *f = eng_falcon_of(t);
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct eng_falcon_cid *k;
	unsigned kind = 0, at;

	if (m->data_len < ETH_MAX + IP_MAX)
		return NULL;
	if (wire_be16(p + ETH_LEN - 2) != ETH_IPV4) {
		kind = wire_be16(p + ETH_LEN - 2) == ETH_IPV6 ? 0 : KIND_VLAN;
		if (wire_be16(p + l3_at(kind) - 2) == ETH_IPV6)
			kind |= KIND_IP6;
	}
	at = l4_at(kind);
	if (m->data_len < at + UDP_LEN + PSP_LEN + FALCON_BASE_LEN ||
		wire_be16(p + at + 2) != PSP_UDP_PORT)
		return NULL;
	k = eng_falcon_cid_known(t, wire_be32(p + at + UDP_LEN + PSP_LEN) & FALCON_CID_MAX);
	if (k->stage != t->index || k->slot >= f->fresh)
		return NULL;
	return &f->conns[k->slot];
}

/* Returns the connection of a frame with the expected headers, or NULL. */
static inline struct eng_falcon_conn *
known_conn(struct eng_transport *t, uint16_t port, const struct rte_mbuf *m)
{
	struct eng_falcon_conn *fc = place_of(t, m);

	return fc != NULL && fc->fa != NULL && fc->known.on && fc->port == port &&
			       headers_match(eng_falcon_of(t), fc, m)
		       ? fc
		       : NULL;
}

/* Prefetches the connections of frames behind the first of `n`: first the connection here, and
 * later that of lib/falcon. */
static inline void
conns_ahead(struct eng_transport *t, struct rte_mbuf *const *m, unsigned n)
{
	const struct eng_falcon_conn *fc;

	if (n > AHEAD_CONN)
		sk_prefetch(place_of(t, m[AHEAD_CONN]), 6);
	if (n > AHEAD_PART && (fc = place_of(t, m[AHEAD_PART])) != NULL)
		sk_prefetch(fc->fa, 8);
}

/* ---- Checks of one packet ---- */

/* Adds `len` bytes, at least 8, to the Internet checksum `sum`. Returns whether the result is that
 * of intact bytes. */
static inline bool
known_sum_holds(uint64_t sum, const uint8_t *p, uint32_t len)
{
	uint64_t carries = 0;

	if (len > SUM_SMALL)
		return sk_sum_fold(sk_sum(sum, p, len)) == 0xffff;
	for (; len >= 8; p += 8, len -= 8)
		carries += __builtin_add_overflow(sum, wire_word64(p), &sum);
	if (len > 0) {
		/* The last bytes, and zeros behind them. */
		uint64_t last = rte_le_to_cpu_64(wire_word64(p + len - 8)) >> (64 - 8 * len);

		carries += __builtin_add_overflow(sum, rte_cpu_to_le_64(last), &sum);
	}
	return sk_sum_fold(sk_sum_add(sum, carries)) == 0xffff;
}

/* Sets *len to the bytes from the UDP header on. Returns whether the lengths agree with each other
 * and with the frame, and the checksum of an IPv4 header holds. */
static inline bool
known_lengths(const struct eng_falcon_known *k, const struct rte_mbuf *m, uint32_t *len)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *), *l3 = p + k->l3;

	*len = wire_be16(p + k->l4 + UDP_SIZE);
	if (k->l4 + *len > m->data_len || k->l4 + *len < k->least)
		return false;
	if (k->kind & KIND_IP6)
		return wire_be16(l3 + IP6_SIZE) == *len;
	return wire_be16(l3 + IP4_SIZE) == IP4_LEN + *len && known_sum_holds(0, l3, IP4_LEN);
}

/* Checks the UDP checksum of `len` bytes at `l4`. */
static inline bool
known_intact(
	const struct eng_falcon_conn *fc, const struct rte_mbuf *m, const uint8_t *l4, uint32_t len)
{
	uint16_t sum;

	memcpy(&sum, l4 + UDP_CKSUM_OFFSET, sizeof(sum));
	if (sum == 0)
		return false;
	switch (m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) {
	case RTE_MBUF_F_RX_L4_CKSUM_UNKNOWN:
		return known_sum_holds(eng_pseudo_sum(fc->addr_sum, len), l4, len);
	case RTE_MBUF_F_RX_L4_CKSUM_BAD:
		return false;
	default:
		return true;
	}
}

/* The result for a packet whose headers match. */
enum known {
	KNOWN_NOT,    /* the general path must process it: nothing has changed */
	KNOWN_GOOD,   /* it was accepted */
	KNOWN_FORGED, /* its ICV is wrong: it was counted and freed */
};

/* Opens a sealed packet, which `d` describes, in its place. */
static __attribute__((noinline)) enum known
known_open(struct eng_transport *t, const struct eng_falcon_conn *fc, const struct eng_datagram *d,
	uint32_t spi)
{
	struct eng_falcon *f = eng_falcon_of(t);
	uint8_t *p = rte_pktmbuf_mtod_offset(d->m, uint8_t *, d->off);
	struct wire_psp h = {
		.version = d->psp.version, .crypt_offset = wire_psp_crypt_offset(false, 0)};
	struct psp_part part;
	struct psp_pkt pkt;

	/* The headers before the SPI are those of the connection. */
	if (psp_sa_spi(fc->rx_sa) != spi || psp_sa_version(fc->rx_sa) != d->psp.version ||
		!psp_rx_is_next(&fc->accept, f->device, spi, d->psp.iv, t->now) ||
		!RTE_MBUF_DIRECT(d->m) || rte_mbuf_refcnt_read(d->m) != 1)
		return KNOWN_NOT;
	psp_pkt_in_place(&pkt, &part, fc->rx_sa, p, d->len, &h);
	if (psp_open(f->crypto, &pkt, 1) == 1)
		return KNOWN_GOOD;
	sk_count(f->psp_counters, PSP_BAD_ICV);
	sk_count(t->counters, ENG_RX_BAD);
	rte_pktmbuf_free(d->m);
	return KNOWN_FORGED;
}

/* Checks and opens a packet whose headers match. Fills in *d and *outer of a good one. */
static inline enum known
known_accept(struct eng_transport *t, struct eng_falcon_conn *fc, struct rte_mbuf *m,
	struct eng_datagram *d, struct eng_falcon_outer *outer)
{
	const struct eng_falcon_known *k = &fc->known;
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *), *l3 = p + k->l3, *l4 = p + k->l4;
	uint32_t len, spi;
	enum known rc;

	if (!known_lengths(k, m, &len) || fc->rx_left == 1)
		return KNOWN_NOT;
	d->m = m;
	d->off = k->l4 + UDP_LEN;
	d->len = len - UDP_LEN;
	d->head = PSP_LEN;
	d->inner = 0;
	d->ce = false;
	d->psp.version = k->psp;
	d->psp.iv = wire_be64(l4 + UDP_LEN + PSP_IV);
	spi = wire_be32(l4 + UDP_LEN + PSP_SPI);
	if (d->psp.version == PSP_NO_CRYPTO) {
		if (!known_intact(fc, m, l4, len))
			return KNOWN_NOT;
	} else {
		rc = known_open(t, fc, d, spi);
		if (rc != KNOWN_GOOD)
			return rc;
	}
	if (!psp_rx_accept_next(&fc->accept, eng_falcon_of(t)->device, spi, d->psp.iv, t->now))
		return KNOWN_NOT;
	fc->rx_left--;
	if ((m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) && d->psp.version == PSP_NO_CRYPTO)
		sk_count(t->counters, ENG_RX_CKSUM); /* the port has checked it */
	if (k->kind & KIND_IP6) {
		outer->path = wire_be32(l3) & 0xfffff;
		outer->ttl = l3[IP6_HOPS];
		outer->ce = (l3[1] >> 4 & 3) == IP_ECN_CE;
	} else {
		outer->path = 0;
		outer->ttl = l3[IP4_TTL];
		outer->ce = (l3[1] & 3) == IP_ECN_CE;
	}
	if (outer->path == 0)
		outer->path = wire_be16(l4) & 0x3fffu;
	return KNOWN_GOOD;
}

/* ---- A run of packets ---- */

/* The packets of one message to the engine stage. */
struct known_run {
	struct fa_run fa;
	struct fa_buf *head, **tail;
	bool open;        /* lib/falcon accepts packets */
	uint32_t answers; /* bytes that its pull requests ask for */
};

/* Returns whether the engine stage receives deliveries of the connection, and the ring to it has
 * room for a message. */
static bool
stage_ready(const struct eng_transport *t, const struct eng_falcon_conn *fc)
{
	const struct eng_conn *c = fc->c;

	return c->state == ECONN_BOUND && fc->start == NULL && !fc->busy &&
	       !rte_ring_full(t->to_stage[c->stage]);
}

static inline enum eng_to_stage
known_message(uint8_t type)
{
	return type == FALCON_PUSH_DATA      ? ENG_E_PUSH
	       : type == FALCON_PULL_REQUEST ? ENG_E_PULL
					     : ENG_E_PULL_DATA;
}

static void
run_close(struct eng_transport *t, struct eng_falcon_conn *fc, struct known_run *run)
{
	if (!run->open)
		return;
	run->open = false;
	fa_run_end(fc->fa, t->now, &run->fa);
	if (run->fa.n == 0)
		return;
	/* The ring had room when the run began, and no other stage writes to it. */
	RTE_VERIFY(eng_conn_send(
		t, fc->c, known_message(run->fa.type), (uintptr_t)run->head, run->fa.rsn));
	fa_run_done(fc->fa, t->now);
}

/* Begins a run with a packet. Its bases may complete requests, which takes room in the ring. */
static bool
run_open(struct eng_transport *t, struct eng_falcon_conn *fc, struct known_run *run,
	const struct wire_falcon_plain *h)
{
	run->open = stage_ready(t, fc) && fa_run_begin(fc->fa, t->now, &run->fa, h) &&
		    stage_ready(t, fc);
	run->tail = &run->head;
	run->answers = 0;
	return run->open;
}

/* Adds a packet to the run. Returns false, and has changed nothing, when it cannot be a part of
 * one. */
static inline bool
run_add(struct eng_transport *t, struct eng_falcon_conn *fc, struct known_run *run,
	const struct eng_datagram *d, const struct eng_falcon_outer *outer)
{
	const uint8_t *p = rte_pktmbuf_mtod_offset(d->m, const uint8_t *, d->off + PSP_LEN);
	const struct fa_in in = {.stamp = wire_psp_iv_ticks(d->psp.iv),
		.path = outer->path,
		.ttl = outer->ttl,
		.ce = outer->ce,
		.waited = fa_ticks(t->waited)};
	uint32_t len = d->len - PSP_LEN - wire_psp_icv_len(d->psp.version);
	struct wire_falcon_plain h;
	struct fa_buf *b;

	if (!wire_falcon_plain_parse(&h, p, len))
		return false;
	if (run->open && run->answers >= ANSWERS_MAX)
		run_close(t, fc, run);
	if (!run->open && !run_open(t, fc, run, &h))
		return false;
	if (!fa_run_add(fc->fa, t->now, &run->fa, &h, &in)) {
		/* The packet may be the first one of a new run: its bases may be new. */
		if (run->fa.n == 0)
			return false;
		run_close(t, fc, run);
		if (!run_open(t, fc, run, &h) || !fa_run_add(fc->fa, t->now, &run->fa, &h, &in))
			return false;
	}
	b = eng_fbuf_of(d->m, d->off + PSP_LEN + h.head, h.len);
	*run->tail = b;
	run->tail = &b->next;
	if (h.type == FALCON_PULL_REQUEST) {
		t->pulled = true;
		run->answers += h.request_len;
	}
	return true;
}

unsigned
eng_falcon_rx_known(struct eng_transport *t, uint16_t port, struct rte_mbuf **m, unsigned n)
{
	struct eng_falcon_conn *fc = known_conn(t, port, m[0]);
	struct eng_falcon *f = eng_falcon_of(t);
	struct known_run run = {0};
	unsigned i, forged = 0;

	conns_ahead(t, m, n);
	for (i = 0; fc != NULL && i < n; i++) {
		struct eng_falcon_outer outer;
		struct eng_datagram d;
		enum known rc;

		if (i + ENG_AHEAD_FRAME < n)
			eng_frame_prefetch(m[i + ENG_AHEAD_FRAME]);
		if (i > 0 && !headers_match(f, fc, m[i]))
			break;
		rc = known_accept(t, fc, m[i], &d, &outer);
		if (rc == KNOWN_NOT)
			break;
		if (rc == KNOWN_FORGED) {
			forged++;
			continue;
		}
		if (run_add(t, fc, &run, &d, &outer))
			continue;
		run_close(t, fc, &run);
		eng_falcon_rx_input(t, fc, &d, &outer);
	}
	if (i == forged)
		return i;
	run_close(t, fc, &run);
	f->work = true;
	net_path_confirm(t->net, &fc->path, t->now);
	return i;
}
