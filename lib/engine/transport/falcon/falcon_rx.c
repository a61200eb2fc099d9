/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Received Falcon packets. The order of the checks is that of Falcon 9.2.2: integrity, replay, SPI;
 * lib/falcon then checks the window. A packet that fails a check is dropped without a response, and
 * its contents have no effect.
 */
#include <string.h>

#include "falcon_priv.h"
#include "../handoff_priv.h"

static bool
falcon_rx_refuse(struct eng_transport *t, uint64_t *counters, int reason)
{
	sk_count(counters, (unsigned)reason);
	sk_count(t->counters, ENG_RX_BAD);
	return false;
}

/* Returns whether the headers are in the first segment. The payload may begin in the second one. */
static bool
headers_whole(const struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	return off + RTE_MIN(len, (uint32_t)(PSP_MAX + IP_MAX + FALCON_MAX)) <= m->data_len ||
	       (m->nb_segs > 1 && off + PSP_LEN + FALCON_BASE_LEN <= m->data_len);
}

/* Copies a frame whose headers or ciphertext are in several segments into one mbuf. */
static bool
in_one_piece(struct eng_transport *t, struct eng_datagram *d)
{
	uint64_t verdict = d->m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
	struct fa_buf *b;

	/* The copy begins with the first byte of the frame, because the UDP checksum is not checked
	 * yet. */
	b = eng_fbuf(t->rx_pool, d->m, 0, d->off + d->len);
	d->m = NULL;
	if (b == NULL) {
		sk_count(t->counters, ENG_RX_NO_MBUF);
		return false;
	}
	d->m = b->owner;
	d->m->ol_flags |= verdict; /* the port's result is valid for the copy */
	d->off += (uint32_t)(b->data - rte_pktmbuf_mtod(d->m, uint8_t *));
	return true;
}

static bool
copy_if_shared(struct eng_transport *t, struct eng_datagram *d)
{
	struct rte_mbuf *m = d->m, *own;

	if (m->nb_segs > 1)
		return in_one_piece(t, d);
	if (RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1)
		return true;
	own = rte_pktmbuf_copy(m, t->rx_pool, d->off, d->len);
	rte_pktmbuf_free(m);
	d->m = own;
	d->off = 0;
	if (own == NULL)
		sk_count(t->counters, ENG_RX_NO_MBUF);
	return own != NULL;
}

/* Checks the UDP checksum, except that of a packet with an ICV, which covers the same bytes. */
static bool
check_udp(struct eng_transport *t, uint16_t port, const struct wire_pkt *pkt,
	const struct eng_datagram *d, const struct eng_falcon_conn *fc)
{
	uint32_t len = pkt->ip.payload_len;

	if (d->psp.version != PSP_NO_CRYPTO || port == t->loop_port)
		return true;
	if (pkt->udp.checksum == 0)
		return falcon_rx_refuse(t, t->wire_counters, WIRE_UDP_CHECKSUM);
	if (eng_rx_l4_intact(
		    t, d->m, pkt->l4, len, eng_pseudo_sum(fc->addr_sum, len), WIRE_UDP_CHECKSUM))
		return true;
	sk_count(t->counters, ENG_RX_BAD);
	return false;
}

static bool
refuse_psp(struct eng_transport *t, const struct eng_falcon_conn *fc, const struct eng_datagram *d,
	int rc)
{
	if (rc == -PSP_WRONG_SPI)
		eng_falcon_spi_wrong(t, fc, &d->psp);
	return falcon_rx_refuse(t, eng_falcon_of(t)->psp_counters, -rc);
}

static bool
open_packet(struct eng_transport *t, struct eng_falcon_conn *fc, struct eng_datagram *d)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct psp_part part;
	struct psp_pkt pkt;
	const struct psp_sa *sa = fc->rx_sa;
	int rc = psp_sa_check(sa, &d->psp);

	if (rc == -PSP_WRONG_SPI && fc->prev_sa != NULL) {
		sa = fc->prev_sa;
		rc = psp_sa_check(sa, &d->psp);
	}
	if (rc < 0)
		return refuse_psp(t, fc, d, rc);
	if (d->psp.version != PSP_NO_CRYPTO) {
		if (!copy_if_shared(t, d))
			return false;
		psp_pkt_in_place(&pkt, &part, sa, rte_pktmbuf_mtod_offset(d->m, uint8_t *, d->off),
			d->len, &d->psp);
		if (psp_open(f->crypto, &pkt, 1) != 1)
			return falcon_rx_refuse(t, f->psp_counters, PSP_BAD_ICV);
	}
	rc = psp_rx_accept(&fc->accept, f->device, &d->psp, t->now);
	if (rc < 0)
		return refuse_psp(t, fc, d, rc);
	if (--fc->rx_left == 0)
		eng_falcon_key_worn(t, fc);
	return true;
}

/* Checks that the packet has the mode of the connection (transport or tunnel) and, in tunnel mode,
 * its inner addresses. */
static bool
check_inner(struct eng_transport *t, const struct eng_falcon_conn *fc, struct eng_datagram *d)
{
	uint32_t icv = wire_psp_icv_len(d->psp.version);
	int rc;

	if (fc->tunnel == NULL && d->inner == 0)
		return true;
	if (d->len < d->head + icv)
		return falcon_rx_refuse(t, t->wire_counters, WIRE_SHORT);
	rc = eng_falcon_inner_check(fc,
		rte_pktmbuf_mtod_offset(d->m, const uint8_t *, d->off + d->head - d->inner),
		d->inner, d->len - d->head - icv, &d->ce);
	return rc < 0 ? falcon_rx_refuse(t, t->counters, -rc) : true;
}

static int
falcon_rx_parse(const struct eng_datagram *d, uint32_t len, struct wire_falcon *h)
{
	return wire_falcon_parse(
		h, rte_pktmbuf_mtod_offset(d->m, const uint8_t *, d->off + d->head), len);
}

void
eng_falcon_rx_input(struct eng_transport *t, struct eng_falcon_conn *fc, struct eng_datagram *d,
	const struct eng_falcon_outer *outer)
{
	uint32_t len = d->len - d->head - wire_psp_icv_len(d->psp.version);
	struct wire_falcon h;
	struct fa_in in = {
		.hdr = &h,
		.stamp = wire_psp_iv_ticks(d->psp.iv),
		.path = outer->path,
		.ttl = outer->ttl,
		.ce = outer->ce || d->ce,
		.waited = fa_ticks(t->waited),
	};
	int n = falcon_rx_parse(d, len, &h);

	/* The first segment may end within the Falcon header. */
	if (d->m->nb_segs > 1 && (n < 0 || d->off + d->head + (uint32_t)n > d->m->data_len)) {
		if (!in_one_piece(t, d))
			return;
		n = falcon_rx_parse(d, len, &h);
	}
	if (n < 0) {
		falcon_rx_refuse(t, t->wire_counters, -n);
		rte_pktmbuf_free(d->m);
		return;
	}
	t->pulled |= h.type == FALCON_PULL_REQUEST;
	if (len > (uint32_t)n) {
		in.payload = eng_fbuf(
			t->rx_pool, d->m, d->off + d->head + (uint32_t)n, len - (uint32_t)n);
		if (in.payload == NULL) {
			sk_count(t->counters, ENG_RX_NO_MBUF);
			return;
		}
	} else {
		rte_pktmbuf_free(d->m);
	}
	eng_falcon_of(t)->work = true;
	fa_input(fc->fa, t->now, &in);
}

const struct eng_falcon_cid *
eng_falcon_cid_known(struct eng_transport *t, uint32_t cid)
{
	struct eng_falcon_cid *k = &eng_falcon_of(t)->cids[cid % ENG_FALCON_CIDS];

	if (k->key != cid + 1) {
		k->key = cid + 1;
		k->stage = eng_falcon_stage(t->e, cid, &k->slot);
	}
	return k;
}

/* Returns the connection of a packet by its CID, which is never encrypted, and by its source; NULL
 * when this stage has none. Sets *stage to the stage that owns the CID. */
static struct eng_falcon_conn *
connection(struct eng_transport *t, uint16_t port, const struct wire_pkt *pkt, uint32_t cid,
	unsigned *stage)
{
	const struct eng_falcon_cid *k = eng_falcon_cid_known(t, cid);
	struct eng_falcon_conn *fc;

	*stage = k->stage;
	if (k->stage != t->index || k->slot >= eng_falcon_of(t)->fresh)
		return NULL;
	fc = &eng_falcon_of(t)->conns[k->slot];
	if (fc->fa == NULL || fc->cid != cid || fc->port != port || fc->vlan != pkt->eth.vlan ||
		!sk_addr_eq(&fc->raddr, &pkt->ip.src))
		return NULL;
	return fc;
}

static bool
parse_psp(
	struct eng_transport *t, const struct wire_pkt *pkt, struct eng_datagram *d, uint32_t *cid)
{
	const uint8_t *p;
	int rc = wire_psp_udp_check(&pkt->ip, &pkt->udp);

	if (rc < 0)
		return falcon_rx_refuse(t, t->wire_counters, -rc);
	if (!headers_whole(d->m, d->off, d->len) && !in_one_piece(t, d))
		return false;
	p = rte_pktmbuf_mtod_offset(d->m, const uint8_t *, d->off);
	rc = wire_psp_parse(&d->psp, p, d->len);
	if (rc < 0)
		return falcon_rx_refuse(t, t->wire_counters, -rc);
	d->head = (uint32_t)rc;
	rc = eng_falcon_inner_len(d->psp.next);
	if (rc < 0)
		return falcon_rx_refuse(t, t->wire_counters, -rc);
	d->inner = (uint32_t)rc;
	d->head += d->inner;
	if (d->head > d->len)
		return falcon_rx_refuse(t, t->wire_counters, WIRE_SHORT);
	if (d->inner > 0 && d->m->nb_segs > 1) {
		if (!in_one_piece(t, d))
			return false;
		p = rte_pktmbuf_mtod_offset(d->m, const uint8_t *, d->off);
	}
	rc = wire_falcon_cid(p + d->head, d->len - d->head);
	if (rc < 0)
		return falcon_rx_refuse(t, t->wire_counters, -rc);
	*cid = (uint32_t)rc;
	return true;
}

void
eng_falcon_rx(
	struct eng_transport *t, uint16_t port, const struct wire_pkt *pkt, struct rte_mbuf *m)
{
	struct eng_datagram d = {.m = m, .off = pkt->payload, .len = pkt->payload_len};
	const struct eng_falcon_outer outer = {
		.path = pkt->ip.flow ? pkt->ip.flow : (uint32_t)(pkt->udp.sport & 0x3fff),
		.ttl = pkt->ip.ttl,
		.ce = pkt->ip.ecn == IP_ECN_CE,
	};
	struct eng_falcon_conn *fc;
	unsigned stage;
	uint32_t cid;

	if (net_accept(t->net, port, pkt) != 0 || !parse_psp(t, pkt, &d, &cid))
		goto drop;
	fc = connection(t, port, pkt, cid, &stage);
	if (fc == NULL) {
		if (stage != t->index && d.m == m && eng_handoff_frame(t, stage, port, m))
			return;
		falcon_rx_refuse(t, t->counters, ENG_FALCON_NO_CONN);
		goto drop;
	}
	if (!check_udp(t, port, pkt, &d, fc) || !check_inner(t, fc, &d) || !open_packet(t, fc, &d))
		goto drop;
	net_path_confirm(t->net, &fc->path, t->now);
	eng_falcon_rx_input(t, fc, &d, &outer);
	return;
drop:
	rte_pktmbuf_free(d.m);
}
