/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Falcon packets to send. Each transmission, also a repeated one, builds a new frame. A short
 * payload is copied into the mbuf of the headers. A long payload is attached as an indirect mbuf if
 * the packet is not encrypted and the port sends frames of several segments; otherwise it is copied
 * or encrypted into an mbuf that holds a full frame.
 */
#include <errno.h>
#include <string.h>

#include "falcon_priv.h"

/* The most bytes of the headers in front of the payload, without eng_falcon_conn.extra. */
#define HEAD_MAX  (ETH_MAX + IP_MAX + UDP_LEN + PSP_LEN + FALCON_MAX)
#define SMALL_MAX (ENG_COPY_MAX + RTE_PKTMBUF_HEADROOM - HEAD_MAX - PSP_ICV_LEN)

struct frame {
	struct eng_falcon_conn *fc;
	const struct fa_out *out;
	uint32_t len; /* bytes of payload */
	bool sealed;
	struct rte_mbuf *m;
};

static struct rte_mbuf *
falcon_tx_attach(struct eng_transport *t, const struct fa_buf *b, uint16_t data_off)
{
	struct rte_mbuf *head = eng_tx_header(t), *a = rte_pktmbuf_alloc(t->tx_pool);

	if (head == NULL || a == NULL) {
		rte_pktmbuf_free(head);
		rte_pktmbuf_free(a);
		return NULL;
	}
	head->data_off = data_off;
	rte_pktmbuf_attach(a, b->owner);
	a->data_off = (uint16_t)(b->data - (uint8_t *)a->buf_addr);
	a->data_len = (uint16_t)b->len;
	a->pkt_len = b->len;
	head->next = a;
	head->nb_segs = 2;
	head->pkt_len = b->len;
	return head;
}

/* Returns an mbuf, or a chain, with the payload, room for the headers in front of it and for an ICV
 * behind it, or NULL when a pool is empty. The payload of a sealed packet is not copied: the cipher
 * writes it. */
static struct rte_mbuf *
falcon_tx_payload_mbuf(struct eng_transport *t, const struct eng_port *p, const struct frame *f)
{
	const struct fa_buf *b = f->out->payload;
	uint16_t extra = f->fc->extra;
	bool small = f->len + extra <= SMALL_MAX;
	struct rte_mbuf *m;
	uint8_t *at;

	if (!small && !f->sealed && (p == NULL || p->multi_seg))
		return falcon_tx_attach(t, b, (uint16_t)(HEAD_MAX + extra));
	m = small ? eng_tx_header(t) : rte_pktmbuf_alloc(t->rx_pool);
	if (m == NULL)
		return NULL;
	m->data_off = (uint16_t)(HEAD_MAX + extra);
	at = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)(f->len + (f->sealed ? PSP_ICV_LEN : 0)));
	if (at == NULL) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	if (!f->sealed && f->len > 0)
		memcpy(at, b->data, f->len);
	return m;
}

/* Writes the PSP and Falcon headers in front of the payload, and seals the packet. Returns 0, or
 * -EAGAIN when no IV is left. */
static int
falcon_tx_seal(struct eng_transport *t, struct frame *f)
{
	unsigned falcon_len = wire_falcon_len(f->out->hdr->type);
	struct eng_falcon_conn *fc = f->fc;
	unsigned before = PSP_LEN + fc->extra; /* bytes before the Falcon header */
	uint8_t *payload = rte_pktmbuf_mtod(f->m, uint8_t *), *falcon, *at;
	struct psp_part parts[2];
	struct psp_pkt pkt;

	if (!psp_iv_next(&fc->iv, t->now, &fc->tx_psp.iv))
		return -EAGAIN;
	falcon = (uint8_t *)rte_pktmbuf_prepend(f->m, (uint16_t)falcon_len);
	wire_falcon_emit(falcon, f->out->hdr);
	/* `extra` is in a cache line that each packet uses. */
	if (fc->extra != 0 && fc->tunnel != NULL)
		eng_falcon_inner_emit(t, fc, falcon - fc->tunnel->len, falcon_len + f->len);
	at = (uint8_t *)rte_pktmbuf_prepend(f->m, (uint16_t)before);
	wire_psp_emit(at, &fc->tx_psp);
	if (!f->sealed)
		return 0;
	parts[0] = (struct psp_part){falcon + FALCON_CLEAR_LEN, falcon + FALCON_CLEAR_LEN,
		falcon_len - FALCON_CLEAR_LEN};
	parts[1] = (struct psp_part){f->len > 0 ? f->out->payload->data : payload, payload, f->len};
	pkt = (struct psp_pkt){.sa = fc->tx_sa,
		.hdr = at,
		.hdr_len = before + FALCON_CLEAR_LEN,
		.parts = parts,
		.nparts = 2,
		.icv = payload + f->len};
	psp_seal(eng_falcon_of(t)->crypto, &pkt, 1);
	return 0;
}

/* Requests the UDP checksum from the port or from fill_udp_sums(); until then, the field holds the
 * sum of the pseudo-header. If the payload carries its sum and the port computes none, the field
 * holds both sums, and l4_len is the number of bytes that are missing in it, an even one: those of
 * the headers from UDP to Falcon. A frame on the loop port has no checksum. */
static void
ask_checksum(struct frame *f, const struct eng_port *p, uint8_t *udp, uint32_t len, bool v6)
{
	const struct net_path *path = &f->fc->path;
	const struct fa_buf *b = f->out->payload;
	uint32_t wide = eng_pseudo_sum(f->fc->addr_sum, len), head = 0;
	uint16_t sum;

	if (!p->udp_cksum && !f->sealed && b != NULL && b->sum != 0) {
		head = len - f->len;
		wide += b->sum;
	}
	sum = (uint16_t)~wire_sum_fold(wide);
	f->m->tx_offload = rte_mbuf_tx_offload(path->l2_len, path->l3_len, head, 0, 0, 0, 0);
	f->m->ol_flags |= RTE_MBUF_F_TX_UDP_CKSUM | (v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4);
	memcpy(udp + UDP_CKSUM_OFFSET, &sum, sizeof(sum));
}

/* Writes the UDP header and the headers in front of it. */
static void
lower_headers(struct eng_transport *t, struct frame *f, const struct eng_port *p)
{
	struct net_path *path = &f->fc->path;
	uint32_t path_id = f->out->path, len = f->m->pkt_len + UDP_LEN;
	bool v6 = path->l3_len == IP6_LEN;
	struct wire_udp udp = {
		.sport = eng_falcon_sport(path_id),
		.dport = PSP_UDP_PORT,
		.payload_len = (uint16_t)f->m->pkt_len,
	};
	uint8_t *at = (uint8_t *)rte_pktmbuf_prepend(f->m, UDP_LEN);

	wire_udp_emit(at, &udp);
	if ((!f->sealed || v6) && p != NULL)
		ask_checksum(f, p, at, len, v6);
	at = (uint8_t *)rte_pktmbuf_prepend(f->m, (uint16_t)(path->l2_len + path->l3_len));
	net_head_emit(at, path, len, IP_ECN_ECT0, t->ip_id++, false);
	if (v6)
		wire_ip6_flow_set(at + path->l2_len, path_id);
}

static __attribute__((noinline)) int
output_general(struct eng_transport *t, struct eng_falcon_conn *fc, const struct fa_out *out)
{
	struct frame f = {.fc = fc, .out = out};
	struct net_path *path = &f.fc->path;
	const struct eng_port *p;
	int rc;

	/* The check may find another port, and may send frames, so it comes before the room. */
	rc = net_path_check(t->net, path, t->now);
	if (rc < 0)
		return rc;
	if (!eng_tx_room(t, path->port)) {
		eng_falcon_of(t)->work = true; /* the stack tries again in the next turn */
		return -EAGAIN;
	}
	p = path->port == t->loop_port ? NULL : &t->e->ports[path->port];
	f.len = out->payload == NULL ? 0 : out->payload->len;
	f.sealed = f.fc->tx_psp.version != PSP_NO_CRYPTO;
	f.m = falcon_tx_payload_mbuf(t, p, &f);
	if (f.m == NULL) {
		sk_count(t->counters, ENG_TX_NO_MBUF);
		eng_falcon_of(t)->work = true;
		return -EAGAIN;
	}
	if (falcon_tx_seal(t, &f) < 0) {
		rte_pktmbuf_free(f.m);
		return -EKEYEXPIRED;
	}
	lower_headers(t, &f, p);
	if (rc == 0)
		eng_tx_put(t, path->port, f.m);
	else
		net_hold(t->net, path, f.m);
	return 0;
}

int
eng_falcon_output(void *ctx, struct fa_conn *conn, const struct fa_out *out)
{
	struct eng_falcon_conn *fc = fa_conn_user(conn);

	if (eng_falcon_output_fast(ctx, fc, out))
		return 0;
	if (eng_falcon_of(ctx)->seals.n > 0)
		eng_falcon_seal(ctx);
	return output_general(ctx, fc, out);
}
