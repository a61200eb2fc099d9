/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fast path of a short push, pull request or pull data in transport mode over IPv4: a list of
 * guards, then straight code. The headers are composed in registers. In clear, the words of the UDP
 * datagram are added to its checksum as they are stored. A packet that a guard rejects takes the
 * general path (falcon_tx.c), which builds the same bytes.
 *
 * Sealed packets of a run are sealed together when their headers are complete: the cipher would
 * wait for a header that was written just before. Until then, their frames are not in the queue of
 * the port, so that no packet can leave in clear.
 */
#include <string.h>

#include "../../../base/check.h"
#include "falcon_priv.h"

#define FAST_HEAD (ETH_MAX + IP4_LEN + UDP_LEN + PSP_LEN + FALCON_PULL_REQUEST_LEN)
/* The frame begins at a cache line. */
#define FAST_OFF   RTE_CACHE_LINE_MIN_SIZE
#define FAST_MAX   (ENG_COPY_MAX + RTE_PKTMBUF_HEADROOM - FAST_OFF - FAST_HEAD - PSP_ICV_LEN)
#define FAST_WORDS 128 /* bytes of payload up to which one loop copies and adds */

/* Stores a word and adds it to the sum. */
static inline uint64_t
put(uint8_t *at, uint64_t word, uint64_t sum)
{
	memcpy(at, &word, sizeof(word));
	return wire_sum_word(sum, word);
}

/* Copies a payload longer than FAST_WORDS, and adds its bytes to the sum. */
static __attribute__((noinline)) uint64_t
copy_sum_long(uint8_t *at, const struct fa_buf *b, uint64_t sum)
{
	if (b->sum == 0)
		return sk_sum_copy(sum, at, b->data, b->len);
	memcpy(at, b->data, b->len);
	return wire_sum_word(sum, b->sum);
}

/* Copies the payload, and adds its bytes to the sum. */
static inline uint64_t
copy_sum(uint8_t *at, const struct fa_buf *b, uint64_t sum)
{
	const uint8_t *from = b->data;
	uint32_t n = b->len;
	uint64_t word;

	if (n > FAST_WORDS)
		return copy_sum_long(at, b, sum);
	for (; n >= sizeof(word); at += sizeof(word), from += sizeof(word), n -= sizeof(word)) {
		memcpy(&word, from, sizeof(word));
		sum = put(at, word, sum);
	}
	if (n == 4) {
		uint32_t half;

		memcpy(&half, from, sizeof(half));
		memcpy(at, &half, sizeof(half));
		return wire_sum_word(sum, half);
	}
	if (n == 0)
		return sum;
	word = 0;
	memcpy(&word, from, n);
	memcpy(at, &word, n);
	return wire_sum_word(sum, word);
}

/* Returns whether the fast path can build the packets of the connection, and its path is valid.
 * Within one call of fa_stack_send() no frame arrives and no key changes, so that one check serves
 * a run of packets. */
static inline bool
conn_plain(struct eng_transport *t, struct eng_falcon *f, struct eng_falcon_conn *fc)
{
	const struct net_path *path = &fc->path;

	if (f->checked == fc)
		return true;
	if (f->seals.n > 0 || f->general || fc->tx_psp.version != PSP_NO_CRYPTO || fc->extra != 0)
		return false;
	/* The check may find another port and other headers, so it comes before their guards. */
	if (net_path_check(t->net, &fc->path, t->now) != 0 || !net_head_is_v4(path) ||
		path->port == t->loop_port || t->e->ports[path->port].udp_cksum)
		return false;
	f->checked = fc;
	return true;
}

/* Returns a header mbuf for a frame of `len` bytes, which begins at FAST_OFF, and sets the IV of
 * the connection's next packet. Returns NULL when there is no mbuf or no IV. */
static inline struct rte_mbuf *
frame_begin(struct eng_transport *t, struct eng_falcon_conn *fc, uint32_t len)
{
	struct rte_mbuf *m;

	eng_tx_spare(t);
	if (eng_tx_spares(t) == 0 || !psp_iv_next(&fc->iv, t->now, &fc->tx_psp.iv))
		return NULL;
	m = t->spare[t->spare_out++ % ENG_SPARE];
	rte_pktmbuf_reset(m);
	m->data_off = FAST_OFF;
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	return m;
}

/* Writes the UDP datagram at `at`, whose Falcon header has `head` bytes and whose checksum begins
 * with `sum`. */
static inline void
fast_datagram(uint8_t *at, const struct eng_falcon_conn *fc, const struct fa_out *out,
	uint32_t head, uint64_t sum)
{
	uint32_t n = out->payload->len;
	uint64_t word[4], udp = wire_udp_word(eng_falcon_sport(out->path), PSP_UDP_PORT,
				  (uint16_t)(PSP_LEN + head + n));
	uint16_t check;

	sum = put(at, udp, sum);
	wire_psp_words(word, &fc->tx_psp);
	sum = put(at + UDP_LEN, word[0], sum);
	sum = put(at + UDP_LEN + 8, word[1], sum);
	at += UDP_LEN + PSP_LEN;
	wire_falcon_words(word, out->hdr);
	sum = put(at, word[0], sum);
	sum = put(at + 8, word[1], sum);
	sum = put(at + 16, word[2], sum);
	/* The payload of Push Data begins in the second half of this word, which is 0. */
	if (head > FALCON_PULL_DATA_LEN)
		sum = put(at + 24, word[3], sum);
	sum = copy_sum(at + head, out->payload, sum);
	check = (uint16_t)~sk_sum_fold(sum);
	if (check == 0)
		check = 0xffff; /* 0 means "no checksum" (RFC 768) */
	memcpy(at - UDP_LEN - PSP_LEN + UDP_CKSUM_OFFSET, &check, sizeof(check));
}

/* Writes the UDP datagram at `at`, whose Falcon header has `head` bytes, without a checksum, which
 * the ICV replaces over IPv4, and notes the frame for eng_falcon_seal(). */
static inline void
sealed_datagram(struct eng_falcon *f, struct rte_mbuf *m, uint8_t *at,
	const struct eng_falcon_conn *fc, const struct fa_out *out, uint32_t head)
{
	uint32_t n = out->payload->len, text = head - FALCON_CLEAR_LEN + n;
	uint64_t word[4], udp = wire_udp_word(eng_falcon_sport(out->path), PSP_UDP_PORT,
				  (uint16_t)(PSP_LEN + head + n + PSP_ICV_LEN));
	struct eng_falcon_seals *s = &f->seals;
	uint8_t *psp = at + UDP_LEN, *clear = psp + PSP_LEN, *in = clear + FALCON_CLEAR_LEN;

	memcpy(at, &udp, sizeof(udp));
	wire_psp_words(word, &fc->tx_psp);
	memcpy(psp, word, PSP_LEN);
	wire_falcon_words(word, out->hdr);
	/* The payload or the ICV begins in the rest of the last word. */
	memcpy(clear, word, sizeof(word));
	memcpy(clear + head, out->payload->data, n);
	s->part[s->n] = (struct psp_part){in, in, text};
	s->pkt[s->n] = (struct psp_pkt){.sa = fc->tx_sa,
		.hdr = psp,
		.hdr_len = PSP_LEN + FALCON_CLEAR_LEN,
		.parts = &s->part[s->n],
		.nparts = 1,
		.icv = in + text};
	s->m[s->n++] = m;
}

void
eng_falcon_seal(struct eng_transport *t)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct eng_falcon_seals *s = &f->seals;
	struct eng_tx *tx = &t->tx[s->fc->path.port];

	psp_seal(f->crypto, s->pkt, s->n);
	memcpy(tx->m + tx->n, s->m, s->n * sizeof(s->m[0]));
	tx->n += (uint16_t)s->n;
	t->tx_waiting += s->n;
	s->n = 0;
}

/* Writes the Ethernet and IP headers for a UDP datagram of `len` bytes. */
static inline void
fast_lower(struct eng_transport *t, uint8_t *at, const struct net_path *path, uint32_t len)
{
	if (path->l2_len == ETH_LEN)
		net_head_emit_v4(at, path, len, IP_ECN_ECT0, t->ip_id++);
	else
		net_head_emit(at, path, len, IP_ECN_ECT0, t->ip_id++, false);
}

/* Returns whether the fast path can build the sealed packets of the connection, and its path is
 * valid. The check of a path may send frames, which take places in the queue of a port, and may
 * change the port and the headers of the path. So the frames that wait are sealed before it. */
static bool
conn_sealed(struct eng_transport *t, struct eng_falcon *f, struct eng_falcon_conn *fc)
{
	struct eng_falcon_seals *s = &f->seals;

	if (s->n > 0 && s->n < ENG_FALCON_SEALS && s->fc == fc)
		return true;
	if (f->general || fc->tx_psp.version == PSP_NO_CRYPTO || fc->extra != 0)
		return false;
	if (s->n > 0)
		eng_falcon_seal(t);
	return net_path_check(t->net, &fc->path, t->now) == 0 && fc->path.l3_len == IP4_LEN &&
	       fc->path.port != t->loop_port;
}

/* Does the same as fast_output() for a packet that is to be sealed, and notes its frame. */
static __attribute__((noinline)) bool
output_sealed(struct eng_transport *t, struct eng_falcon_conn *fc, const struct fa_out *out,
	uint32_t head)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct net_path *path = &fc->path;
	uint32_t len, lower;
	struct rte_mbuf *m;
	uint8_t *at;

	if (!conn_sealed(t, f, fc) || t->tx[path->port].n + f->seals.n >= ENG_TX_BUFFER)
		return false;
	lower = path->l2_len + IP4_LEN;
	len = UDP_LEN + PSP_LEN + head + out->payload->len + PSP_ICV_LEN;
	m = frame_begin(t, fc, lower + len);
	if (m == NULL)
		return false;
	at = rte_pktmbuf_mtod(m, uint8_t *);
	fast_lower(t, at, path, len);
	f->checked = NULL;
	f->seals.fc = fc;
	sealed_datagram(f, m, at + lower, fc, out, head);
	return true;
}

/* Sends a packet whose Falcon header has `head` bytes. Returns false, without any effect, when the
 * general path has to do it. */
static inline __attribute__((always_inline)) bool
fast_output(struct eng_transport *t, struct eng_falcon_conn *fc, const struct fa_out *out,
	uint32_t head)
{
	struct eng_falcon *f = eng_falcon_of(t);
	uint32_t udp_len;
	uint16_t port;
	struct rte_mbuf *m;
	uint8_t *at;

	if (out->payload == NULL || out->payload->len > FAST_MAX)
		return false;
	if (!conn_plain(t, f, fc))
		return output_sealed(t, fc, out, head);
	port = fc->path.port;
	if (t->tx[port].n >= ENG_TX_BUFFER)
		return false;
	udp_len = UDP_LEN + PSP_LEN + head + out->payload->len;
	m = frame_begin(t, fc, ETH_LEN + IP4_LEN + udp_len);
	if (m == NULL)
		return false;
	at = rte_pktmbuf_mtod(m, uint8_t *);
	net_head_emit_v4(at, &fc->path, udp_len, IP_ECN_ECT0, t->ip_id++);
	fast_datagram(at + ETH_LEN + IP4_LEN, fc, out, head, eng_pseudo_sum(fc->addr_sum, udp_len));
	t->tx[port].m[t->tx[port].n++] = m;
	t->tx_waiting++;
	return true;
}

/* Each type has its own code, in which the length of its header is a constant. */
bool
eng_falcon_output_fast(
	struct eng_transport *t, struct eng_falcon_conn *fc, const struct fa_out *out)
{
	switch (out->hdr->type) {
	case FALCON_PUSH_DATA:
		return fast_output(t, fc, out, FALCON_PUSH_DATA_LEN);
	case FALCON_PULL_REQUEST:
		return fast_output(t, fc, out, FALCON_PULL_REQUEST_LEN);
	case FALCON_PULL_DATA:
		return fast_output(t, fc, out, FALCON_PULL_DATA_LEN);
	default:
		return false;
	}
}
