/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames to send. Each segment gets a new header mbuf. A short payload is copied into it. A longer
 * payload follows in indirect mbufs that are attached to the mbufs of the records. lib/tcp keeps
 * the records until they are acknowledged; their own mbufs are never sent.
 */
#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>

#include "../../base/mem.h"
#include "../../base/prf.h"
#include "handoff_priv.h"
#include "transport_priv.h"

/* The most bytes of the headers in front of the TCP payload. */
#define HEAD_MAX (ETH_MAX + IP_MAX + TCP_MAX)

/* Computes the UDP checksums of a burst for a port without this offload. At this point, the cache
 * lines of the headers have arrived, and the sum of one frame does not wait for that of another. If
 * l4_len is not 0, the field has the sum of all bytes but the first l4_len ones. */
static void
fill_udp_sums(struct rte_mbuf **m, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		uint32_t len;
		unsigned l4;
		uint16_t sum;

		if ((m[i]->ol_flags & RTE_MBUF_F_TX_L4_MASK) != RTE_MBUF_F_TX_UDP_CKSUM)
			continue;
		m[i]->ol_flags = 0;
		l4 = m[i]->l2_len + m[i]->l3_len;
		len = m[i]->l4_len != 0 ? m[i]->l4_len : m[i]->pkt_len - l4;
		sum = wire_sum_fold(eng_mbuf_sum(0, m[i], l4, len));
		if (sum == 0)
			sum = 0xffff; /* 0 means "no checksum" (RFC 768) */
		memcpy(rte_pktmbuf_mtod_offset(m[i], uint8_t *, l4 + UDP_CKSUM_OFFSET), &sum,
			sizeof(sum));
	}
}

/* Calls rte_eth_tx_prepare(), as a port with checksum offload requires. Frees the frames that the
 * port refuses. */
static void
show(struct eng_transport *t, uint16_t port, struct eng_tx *tx)
{
	while (tx->prepared < tx->n) {
		uint16_t n = tx->n - tx->prepared, good;
		struct rte_mbuf **m = tx->m + tx->prepared;

		good = rte_eth_tx_prepare(port, (uint16_t)t->index, m, n);
		for (uint16_t i = 0; i < good; i++) {
			if (m[i]->ol_flags & RTE_MBUF_F_TX_TCP_SEG)
				sk_count(t->counters, ENG_TX_TSO);
			else if (m[i]->ol_flags & RTE_MBUF_F_TX_L4_MASK)
				sk_count(t->counters, ENG_TX_CKSUM);
		}
		tx->prepared += good;
		if (good == n)
			return;
		sk_count(t->counters, ENG_TX_REFUSED);
		rte_pktmbuf_free(m[good]);
		memmove(m + good, m + good + 1, (n - good - 1u) * sizeof(m[0]));
		tx->n--;
	}
}

/* Prepares the frames of a queue. A frame is prepared once, also when the port does not accept it
 * at the first attempt. */
static void
transport_tx_prepare(struct eng_transport *t, const struct eng_port *p, struct eng_tx *tx)
{
	if (!p->udp_cksum && t->npacket_links > 0)
		fill_udp_sums(tx->m + tx->prepared, tx->n - tx->prepared);
	if (p->cksum)
		show(t, p->dev.id, tx);
	tx->prepared = tx->n;
}

static uint16_t
send_burst(struct eng_transport *t, uint16_t port, struct eng_tx *tx)
{
	const struct eng_port *p = &t->e->ports[port];

	if (eng_device_is_gone(&p->dev)) {
		sk_count_n(t->counters, ENG_TX_LINK_DOWN, tx->n);
		rte_pktmbuf_free_bulk(tx->m, tx->n);
		return tx->n;
	}
	if (t->index >= p->tx_queues) {
		fill_udp_sums(tx->m, tx->n);
		return eng_handoff_send(t, port, tx->m, tx->n);
	}
	transport_tx_prepare(t, p, tx);
	return rte_eth_tx_burst(p->dev.id, (uint16_t)t->index, tx->m, tx->n);
}

/* Keeps the frames that the port did not accept, or drops them when the port has no link. */
static void
transport_tx_keep(
	struct eng_transport *t, const struct eng_port *p, struct eng_tx *tx, uint16_t sent)
{
	if (__atomic_load_n(&p->dev.down, __ATOMIC_RELAXED)) {
		sk_count_n(t->counters, ENG_TX_LINK_DOWN, tx->n);
		rte_pktmbuf_free_bulk(tx->m + sent, tx->n);
		tx->n = tx->prepared = 0;
		return;
	}
	sk_count(t->counters, ENG_TX_FULL);
	memmove(tx->m, tx->m + sent, tx->n * sizeof(tx->m[0]));
	t->tx_waiting += tx->n;
}

void
eng_tx_flush(struct eng_transport *t)
{
	t->tx_waiting = 0;
	for (unsigned i = 0; i < t->e->cfg.nports; i++) {
		struct eng_tx *tx = &t->tx[i];
		uint16_t sent;

		if (tx->n == 0)
			continue;
		sent = send_burst(t, (uint16_t)i, tx);
		tx->n -= sent;
		tx->prepared = tx->n;
		if (tx->n > 0)
			transport_tx_keep(t, &t->e->ports[i], tx, sent);
	}
}

bool
eng_tx_room(struct eng_transport *t, uint16_t port)
{
	if (port == t->loop_port)
		return t->loop_tail - t->loop_head < ENG_LOOP_QUEUE;
	if (t->tx[port].n < ENG_TX_BUFFER)
		return true;
	eng_tx_flush(t);
	return t->tx[port].n < ENG_TX_BUFFER;
}

void
eng_tx_put(struct eng_transport *t, uint16_t port, struct rte_mbuf *m)
{
	struct eng_tx *tx = &t->tx[port];

	if (port == t->loop_port) {
		sk_count(t->counters, ENG_LOOP_PORT);
		t->loop[t->loop_tail++ & (ENG_LOOP_QUEUE - 1)] = m;
		return;
	}
	tx->m[tx->n++] = m;
	t->tx_waiting++;
}

void
eng_net_send(void *ctx, uint16_t port, const uint8_t *frame, size_t len)
{
	struct eng_transport *t = ctx;
	struct rte_mbuf *m;
	char *at;

	if (!eng_tx_room(t, port))
		return; /* transport_tx_keep() has counted it */
	/* The reply to a long echo request needs an mbuf of rx_pool, which holds a full frame. */
	m = rte_pktmbuf_alloc(len > ENG_COPY_MAX ? t->rx_pool : t->tx_pool);
	at = m == NULL ? NULL : rte_pktmbuf_append(m, (uint16_t)len);
	if (at == NULL) {
		rte_pktmbuf_free(m);
		sk_count(t->counters, ENG_TX_NO_MBUF);
		return;
	}
	memcpy(at, frame, len);
	eng_tx_put(t, port, m);
}

void
eng_net_release(void *ctx, uint16_t port, void *frame, const uint8_t *dst_mac)
{
	struct eng_transport *t = ctx;
	struct rte_mbuf *m = frame;

	if (dst_mac == NULL || !eng_tx_room(t, port)) {
		rte_pktmbuf_free(m);
		return;
	}
	memcpy(rte_pktmbuf_mtod(m, void *), dst_mac, RTE_ETHER_ADDR_LEN);
	eng_tx_put(t, port, m);
}

/* Appends a copy of the bytes [off, off + len) of the chain of records to `m`. Returns false when
 * `m` has no room for them. */
static bool
append_copy(struct rte_mbuf *m, const struct tcp_out *out)
{
	const struct tcp_rec *rec = out->first;
	uint32_t off = out->off, left = out->len;
	uint8_t *at = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)left);

	if (at == NULL)
		return false;
	for (; left > 0; rec = rec->next) {
		uint32_t n = RTE_MIN(rec->len - off, left);

		rte_memcpy(at, rec->data + off, n);
		at += n;
		left -= n;
		off = 0;
	}
	return true;
}

/* Appends a new mbuf to the frame `m`, after *last, and returns it, or NULL when the pool is
 * empty. */
static struct rte_mbuf *
append_mbuf(struct eng_transport *t, struct rte_mbuf *m, struct rte_mbuf **last)
{
	struct rte_mbuf *a = rte_pktmbuf_alloc(t->tx_pool);

	if (a == NULL)
		return NULL;
	(*last)->next = a;
	*last = a;
	m->nb_segs++;
	return a;
}

/* Appends a copy of `n` bytes of `rec` from `off` on to the frame. Copies share an mbuf, so that
 * the frame has few segments. */
static int
chain_copy(struct eng_transport *t, struct rte_mbuf *m, struct rte_mbuf **last,
	const struct tcp_rec *rec, uint32_t off, uint32_t n)
{
	while (n > 0) {
		bool full = RTE_MBUF_HAS_EXTBUF(*last) || RTE_MBUF_CLONED(*last) ||
			    rte_pktmbuf_tailroom(*last) == 0;
		uint32_t here;

		if (full && append_mbuf(t, m, last) == NULL)
			return -ENOBUFS;
		here = RTE_MIN(n, (uint32_t)rte_pktmbuf_tailroom(*last));
		rte_memcpy(rte_pktmbuf_mtod_offset(*last, uint8_t *, (*last)->data_len),
			rec->data + off, here);
		(*last)->data_len += (uint16_t)here;
		m->pkt_len += here;
		off += here;
		n -= here;
	}
	return 0;
}

/* Appends `n` bytes of `rec` from `off` on to the frame, in an indirect mbuf. */
static int
chain_attach(struct eng_transport *t, struct rte_mbuf *m, struct rte_mbuf **last,
	const struct tcp_rec *rec, uint32_t off, uint32_t n)
{
	struct rte_mbuf *a = append_mbuf(t, m, last);

	if (a == NULL)
		return -ENOBUFS;
	rte_pktmbuf_attach(a, rec->owner);
	a->data_off = (uint16_t)(rec->data + off - (uint8_t *)a->buf_addr);
	a->data_len = (uint16_t)n;
	a->pkt_len = n;
	m->pkt_len += n;
	return 0;
}

static int
append_chain(struct eng_transport *t, struct rte_mbuf *m, const struct tcp_out *out)
{
	const struct tcp_rec *rec = out->first;
	uint32_t off = out->off, left = out->len;
	struct rte_mbuf *last = m;
	int rc;

	for (; left > 0; rec = rec->next) {
		uint32_t n = RTE_MIN(rec->len - off, left);

		rc = n > ENG_COPY_MAX ? chain_attach(t, m, &last, rec, off, n)
				      : chain_copy(t, m, &last, rec, off, n);
		if (rc != 0)
			return rc;
		left -= n;
		off = 0;
	}
	return 0;
}

/* Allocates header mbufs for later frames and prefetches their cache lines, which may still be in
 * the cache of the lcore that freed them. */
static void
fetch_spares(struct eng_transport *t)
{
	void *m[ENG_SPARE / 4];

	if (rte_mempool_get_bulk(t->tx_pool, m, RTE_DIM(m)) != 0)
		return;
	for (unsigned i = 0; i < RTE_DIM(m); i++) {
		char *data = rte_mbuf_data_addr_default(m[i]);

		sk_prefetch_write(m[i]);
		sk_prefetch_write((char *)m[i] + RTE_CACHE_LINE_MIN_SIZE);
		for (int line = -1; line < 2; line++) /* the lines of the headers */
			sk_prefetch_write(data + line * RTE_CACHE_LINE_SIZE);
		t->spare[t->spare_in++ % ENG_SPARE] = m[i];
	}
}

void
eng_tx_spare(struct eng_transport *t)
{
	if (eng_tx_spares(t) <= ENG_SPARE / 2)
		fetch_spares(t);
}

struct rte_mbuf *
eng_tx_header(struct eng_transport *t)
{
	struct rte_mbuf *m;

	eng_tx_spare(t);
	if (eng_tx_spares(t) == 0) /* the pool had fewer than a bulk */
		return rte_pktmbuf_alloc(t->tx_pool);
	m = t->spare[t->spare_out++ % ENG_SPARE];
	rte_pktmbuf_reset(m);
	return m;
}

/* Copies the payload of `out` into the empty mbuf `m`, behind room for the headers, and returns it.
 * `m` is NULL if a pool is empty, and so is the result. A long frame in one segment needs an mbuf
 * of rx_pool, which holds a full frame. */
static inline struct rte_mbuf *
payload_copy(struct eng_transport *t, const struct tcp_out *out, struct rte_mbuf *m)
{
	if (m == NULL) {
		sk_count(t->counters, ENG_TX_NO_MBUF);
		return NULL;
	}
	m->data_off = HEAD_MAX;
	if (append_copy(m, out))
		return m;
	rte_pktmbuf_free(m);
	sk_count(t->counters, ENG_TX_NO_MBUF);
	return NULL;
}

/* Returns an mbuf, or a chain, with the payload of `out` and room for the headers in front of it,
 * or NULL when a pool is empty. */
static struct rte_mbuf *
transport_tx_payload_mbuf(
	struct eng_transport *t, const struct eng_port *p, const struct tcp_out *out)
{
	bool chain = out->len > ENG_COPY_MAX && (p == NULL || p->multi_seg);
	struct rte_mbuf *m;

	if (out->len > ENG_COPY_MAX && !chain)
		return payload_copy(t, out, rte_pktmbuf_alloc(t->rx_pool));
	m = eng_tx_header(t);
	if (m == NULL || !chain)
		return payload_copy(t, out, m);
	m->data_off = HEAD_MAX;
	if (append_chain(t, m, out) != 0) {
		rte_pktmbuf_free(m);
		return payload_copy(t, out, NULL);
	}
	if (p == NULL || p->most_segs == 0 || m->nb_segs <= p->most_segs || out->gso_size != 0)
		return m;
	sk_count(t->counters, ENG_TX_COPIED);
	rte_pktmbuf_free(m);
	return payload_copy(t, out, rte_pktmbuf_alloc(t->rx_pool));
}

/* Returns the Internet checksum of the payload if its records carry it. Returns 0 if not: a record
 * has none, was cut, or begins before the segment. */
static uint64_t
records_sum(const struct tcp_out *out)
{
	const struct tcp_rec *rec = out->first;
	uint64_t sum = 0;

	if (out->off != 0)
		return 0;
	for (uint32_t left = out->len; left > 0; rec = rec->next) {
		if (rec->sum == 0 || rec->len > left)
			return 0;
		sum += rec->sum;
		left -= rec->len;
	}
	return sum;
}

/* Returns the TCP checksum of a frame. */
static uint16_t
software_sum(const struct rte_mbuf *m, const struct tcp_out *out, unsigned l4, unsigned tcp_len,
	uint16_t addr_sum)
{
	uint32_t len = tcp_len + out->len, pseudo = eng_pseudo_sum(addr_sum, len);
	uint64_t sum = records_sum(out);

	if (sum == 0 && out->len > 0)
		return wire_sum_fold(eng_mbuf_sum(pseudo, m, l4, len));
	sum = sk_sum(sum + pseudo, rte_pktmbuf_mtod_offset(m, const uint8_t *, l4), tcp_len);
	return (uint16_t)~sk_sum_fold(sum);
}

/* Sets the offload flags of the frame, or computes its TCP checksum for a port without offload. */
static void
finish_checksum(struct rte_mbuf *m, const struct eng_port *p, const struct net_path *path,
	const struct tcp_out *out, unsigned tcp_len, uint16_t addr_sum)
{
	unsigned l4 = path->l2_len + path->l3_len;
	uint8_t *tcp = rte_pktmbuf_mtod_offset(m, uint8_t *, l4);
	uint32_t len = tcp_len + out->len;
	bool v4 = path->l3_len == IP4_LEN;
	uint16_t sum;

	if (p == NULL || !p->cksum) {
		sum = software_sum(m, out, l4, tcp_len, addr_sum);
		memcpy(tcp + TCP_CKSUM_OFFSET, &sum, sizeof(sum));
		return;
	}
	m->l2_len = path->l2_len;
	m->l3_len = path->l3_len;
	m->l4_len = tcp_len;
	m->ol_flags |= RTE_MBUF_F_TX_TCP_CKSUM | (v4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6);
	if (v4 && p->ip_cksum)
		m->ol_flags |= RTE_MBUF_F_TX_IP_CKSUM;
	if (out->gso_size != 0) {
		m->ol_flags |= RTE_MBUF_F_TX_TCP_SEG;
		m->tso_segsz = (uint16_t)out->gso_size;
		len = 0; /* the port adds the length of each segment */
	}
	sum = (uint16_t)~wire_sum_fold(eng_pseudo_sum(addr_sum, len));
	memcpy(tcp + TCP_CKSUM_OFFSET, &sum, sizeof(sum));
}

/* Writes the TCP header in front of the payload, and returns its length in bytes. */
static inline unsigned
prepend_tcp(struct rte_mbuf *m, const struct wire_tcp *tcp)
{
	uint8_t head[TCP_MAX];
	unsigned len;

	if (wire_plain_shape(tcp)) {
		len = PLAIN_LEN - PLAIN_L4;
		wire_plain_emit((uint8_t *)rte_pktmbuf_prepend(m, (uint16_t)len), tcp);
		return len;
	}
	len = wire_tcp_emit(head, tcp);
	memcpy(rte_pktmbuf_prepend(m, (uint16_t)len), head, len);
	return len;
}

/* Returns whether TCP has made the segment for a port with TSO, and the path has moved to one that
 * does not send it. */
static inline bool
is_misfit(const struct eng_port *p, const struct tcp_out *out)
{
	return out->gso_size != 0 && p != NULL && out->len > p->tso;
}

/* Builds one frame and queues it for the port of `path`, or in lib/net while the MAC address of the
 * neighbour is not resolved. */
static int
send_segment(struct eng_transport *t, struct net_path *path, const struct tcp_out *out,
	uint16_t addr_sum)
{
	unsigned tcp_len, ip_len;
	const struct eng_port *p;
	struct rte_mbuf *m;
	int rc;

	/* The check may find another port, and may send frames, so it comes before the room. */
	rc = net_path_check(t->net, path, t->now);
	if (rc < 0)
		return 0; /* the segment is lost; TCP retransmits it or gives up */
	if (!eng_tx_room(t, path->port))
		return -EAGAIN; /* TCP tries again in the next turn */
	p = path->port == t->loop_port ? NULL : &t->e->ports[path->port];
	if (is_misfit(p, out))
		return 0; /* lost: TCP retransmits it in the form that eng_conn_use_path() sets */
	m = transport_tx_payload_mbuf(t, p, out);
	if (m == NULL)
		return -EAGAIN;
	tcp_len = prepend_tcp(m, &out->tcp);
	ip_len = path->l2_len + path->l3_len;
	net_head_emit((uint8_t *)rte_pktmbuf_prepend(m, (uint16_t)ip_len), path, tcp_len + out->len,
		out->ecn, t->ip_id++, p != NULL && p->ip_cksum);
	finish_checksum(m, p, path, out, tcp_len, addr_sum);
	if (rc == 0)
		eng_tx_put(t, path->port, m);
	else
		net_hold(t->net, path, m);
	return 0;
}

void
eng_path_class(struct eng_transport *t, struct net_path *path, const struct tcp_tuple *tuple,
	const struct net_class *class)
{
	const struct sk_key key = {{t->hit_key, ~t->hit_key}};
	struct net_class c = *class;

	if (c.flow == 0 && path->l3_len == IP6_LEN)
		c.flow = (uint32_t)sk_siphash(&key, tuple, sizeof(*tuple)) & 0xfffff;
	net_path_set_class(path, &c);
}

static int
send_of_conn(struct eng_transport *t, struct eng_conn *c, const struct tcp_out *out)
{
	int16_t ifindex = c->path.ifindex;
	int rc = send_segment(t, &c->path, out, c->addr_sum);

	if (c->path.ifindex != ifindex)
		eng_conn_pend(t, c, ECONN_P_MOVED);
	return rc;
}

int
eng_tcp_output(
	void *ctx, struct tcp_conn *conn, const struct tcp_tuple *to, const struct tcp_out *out)
{
	struct eng_transport *t = ctx;
	struct eng_conn *c = conn == NULL ? NULL : tcp_user(conn);
	static const struct net_class none;
	const struct net_class *class;
	const struct eng_listener *l;
	struct eng_left left;
	struct net_path path;
	struct sk_addr src;

	if (c != NULL)
		return send_of_conn(t, c, out);
	if (conn != NULL)
		to = tcp_tuple(conn);
	/* A half-open connection, one that was left, or a segment without connection: this is rare,
	 * and the path is looked up each time. */
	src = to->laddr;
	if (net_path_init(t->net, &path, &src, &to->raddr, IP_TCP, t->now) != 0)
		return 0;
	l = eng_listener_find(t, &to->laddr, to->lport);
	class = l != NULL ? &l->offer.class : &none;
	if (conn != NULL && eng_conn_left(conn, &left))
		class = &left.class;
	eng_path_class(t, &path, to, class);
	return send_segment(t, &path, out, eng_addr_sum(to, IP_TCP));
}
