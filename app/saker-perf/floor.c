/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floor: the cost of the same bytes on the same ports without a protocol, in frames of the same
 * shape as the transport's. An iWARP frame has room for the headers up to TCP's, and then for as
 * many pieces of the size of an FPDU as fit into a segment; the sender copies each with its CRC,
 * and the receiver checks and copies it. A Falcon frame carries one piece of at most the RDMA MTU,
 * with a UDP checksum over the whole frame unless PSP's ICV would replace it. A receiver counts
 * wrong checksums.
 */
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <string.h>

#include "../../lib/base/crc32c.h"
#include "../../lib/base/mem.h"
#include "../../lib/rof/rof.h"
#include "../../lib/wire/rof.h"
#include "perf.h"

/* Bytes of the headers. */
#define TCP_HEADERS  (ETH_LEN + IP4_LEN + 32u) /* with timestamps */
#define MPA_HEAD     16u                       /* MPA length 2, DDP tagged header 14 */
#define MPA_TAIL     4u                        /* CRC */
#define UDP_AT       (ETH_LEN + IP4_LEN)
#define UDP_SUM_AT   (UDP_AT + 6u)
#define PUSH_HEADERS (UDP_AT + UDP_LEN + PSP_LEN + FALCON_PUSH_DATA_LEN)
#define PULL_HEADERS (UDP_AT + UDP_LEN + PSP_LEN + FALCON_PULL_DATA_LEN)
#define ETHERTYPE    0xb588 /* 0x88b5, for local experiments (IEEE 802), in network byte order */
#define BURST        32u

/* Lies in the place of the transport's headers. */
struct head {
	uint8_t mac[12];
	uint16_t type;
	uint16_t pieces;
	uint32_t len; /* of a piece */
	uint32_t off; /* of the first piece in its message */
};

static struct perf_shape
iwarp_shape(const struct perf_options *o)
{
	uint32_t segment = o->mtu - 52, overhead = MPA_HEAD + MPA_TAIL;
	struct perf_shape s = {
		.headers = TCP_HEADERS, .head = MPA_HEAD, .tail = MPA_TAIL, .crc = true};

	s.piece = SK_MIN(o->size, segment - segment % 4 - overhead);
	s.packed = o->test == PERF_LAT ? 1 : segment / ((s.piece + 3) / 4 * 4 + overhead);
	return s;
}

static uint8_t
falcon_opcode(enum perf_op op)
{
	switch (op) {
	case PERF_SEND:
		return ROF_SEND_ONLY;
	case PERF_WRITE_IMM:
		return ROF_WRITE_ONLY_IMM;
	case PERF_READ:
		return ROF_READ_RESPONSE_ONLY;
	case PERF_ATOMIC_FA:
	case PERF_ATOMIC_CS:
		return ROF_ATOMIC_RESPONSE;
	default:
		return ROF_WRITE_ONLY;
	}
}

static struct perf_shape
falcon_shape(const struct perf_options *o)
{
	struct perf_shape s = {.packed = 1, .sum = o->psp == 0, .tail = o->psp ? PSP_ICV_LEN : 0};
	uint32_t room, mtu;

	s.headers = perf_op_fetches(o->op) ? PULL_HEADERS : PUSH_HEADERS;
	if (o->tunnel)
		s.headers += PSP_VC_LEN + IP4_LEN;
	s.head = wire_rof_len(falcon_opcode(o->op));
	room = o->mtu + ETH_LEN - s.headers - s.head - s.tail;
	for (mtu = ROF_MTU_MAX; mtu > room; mtu /= 2)
		;
	s.piece = SK_MIN(o->size, mtu);
	return s;
}

static struct perf_shape
shape_of(const struct perf_options *o)
{
	return o->transport == SAKER_FALCON ? falcon_shape(o) : iwarp_shape(o);
}

/* Builds a frame with `pieces` pieces of `len` bytes from offset `off` on; 0 pieces: a signal. */
static struct rte_mbuf *
build(struct perf_floor *f, uint32_t off, uint32_t len, uint32_t pieces)
{
	const struct perf_shape *s = &f->shape;
	struct rte_mbuf *m = rte_pktmbuf_alloc(f->pool);
	struct head h = {.type = ETHERTYPE, .pieces = (uint16_t)pieces, .len = len, .off = off};
	uint8_t *frame, *p;
	uint16_t sum;

	if (m == NULL)
		return NULL;
	p = frame = rte_pktmbuf_mtod(m, uint8_t *);
	memset(p, 0, s->headers);
	memcpy(p, &h, sizeof(h));
	p += s->headers;
	for (uint32_t i = 0; i < pieces; i++) {
		uint32_t crc;

		memset(p, 0, s->head);
		if (s->crc) {
			crc = sk_crc32c(SK_CRC32C_INIT, p, s->head);
			crc = sk_crc32c_copy(crc, p + s->head, f->buf + off, len);
			memcpy(p + s->head + len, &crc, sizeof(crc));
		} else {
			memcpy(p + s->head, f->buf + off, len);
		}
		p += s->head + len + s->tail;
	}
	if (s->sum) {
		sum = wire_sum_fold(wire_sum(0, frame + UDP_AT, (size_t)(p - frame) - UDP_AT));
		memcpy(frame + UDP_SUM_AT, &sum, sizeof(sum));
	}
	m->data_len = (uint16_t)(p - frame);
	m->pkt_len = m->data_len;
	return m;
}

static void
floor_flush(struct perf_floor *f)
{
	uint32_t sent = rte_eth_tx_burst(f->port, 0, f->pending, (uint16_t)f->npending);

	f->npending -= sent;
	if (sent && f->npending)
		memmove(f->pending, f->pending + sent, f->npending * sizeof(f->pending[0]));
}

/* Builds and queues one frame. Returns false if there is no room at present. */
static bool
queue(struct perf_floor *f, uint32_t off, uint32_t len, uint32_t pieces)
{
	struct rte_mbuf *m;

	if (f->npending >= BURST)
		floor_flush(f);
	if (f->npending >= BURST)
		return false;
	m = build(f, off, len, pieces);
	if (m != NULL)
		f->pending[f->npending++] = m;
	return m != NULL;
}

/* Copies the pieces and checks their CRCs. */
static void
take_pieces(struct perf_floor *f, const uint8_t *p, const struct head *h)
{
	uint8_t *in = f->buf + ((uint64_t)f->o->size + 63) / 64 * 64;
	const struct perf_shape *s = &f->shape;

	for (uint32_t i = 0; i < h->pieces; i++) {
		if (s->crc) {
			uint32_t crc = sk_crc32c(SK_CRC32C_INIT, p, s->head + h->len);

			f->bad += memcmp(&crc, p + s->head + h->len, sizeof(crc)) != 0;
		}
		memcpy(in + h->off, p + s->head, h->len);
		p += s->head + h->len + s->tail;
	}
}

/* Returns how many messages the frame completes, and sets *signal if it is a signal. */
static uint32_t
floor_take(struct perf_floor *f, struct rte_mbuf *m, bool *signal)
{
	const struct perf_shape *s = &f->shape;
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	struct head h;

	memcpy(&h, p, sizeof(h));
	if (h.type != ETHERTYPE)
		return 0; /* a delayed acknowledgement of the transport */
	*signal = *signal || h.pieces == 0;
	if (s->sum)
		f->bad += wire_sum_fold(wire_sum(0, p + UDP_AT, m->data_len - UDP_AT)) != 0;
	take_pieces(f, p + s->headers, &h);
	return h.off + h.len == f->o->size ? h.pieces : 0;
}

static uint32_t
floor_receive(struct perf_floor *f, bool *signal)
{
	struct rte_mbuf *m[BURST];
	uint16_t n = rte_eth_rx_burst(f->port, 0, m, BURST);
	uint32_t ended = 0;

	for (uint16_t i = 0; i < n; i++)
		ended += floor_take(f, m[i], signal);
	if (n)
		rte_pktmbuf_free_bulk(m, n);
	return ended;
}

/* Sends one message, in as many frames as necessary. */
static void
send_message(struct perf_floor *f)
{
	for (uint32_t off = 0; off < f->o->size;) {
		uint32_t len = SK_MIN(f->shape.piece, f->o->size - off);

		if (queue(f, off, len, 1))
			off += len;
	}
	while (f->npending)
		floor_flush(f);
}

static void
send_signal(struct perf_floor *f)
{
	while (!queue(f, 0, 0, 0))
		;
	while (f->npending)
		floor_flush(f);
}

/* Sends `iters` messages, with as many in a frame as the transport packs. */
static void
stream_out(struct perf_floor *f, uint32_t iters)
{
	const struct perf_shape *s = &f->shape;

	if (s->piece < f->o->size) {
		while (iters--)
			send_message(f);
		return;
	}
	while (iters > 0) {
		uint32_t n = SK_MIN(s->packed, iters);

		if (queue(f, 0, s->piece, n))
			iters -= n;
	}
	while (f->npending)
		floor_flush(f);
}

static void
stream_in(struct perf_floor *f, uint32_t iters)
{
	bool signal = false;
	uint64_t got = 0;

	while (got < iters)
		got += floor_receive(f, &signal);
}

static void
wait_signal(struct perf_floor *f)
{
	bool signal = false;

	while (!signal)
		floor_receive(f, &signal);
}

static void
lat_run(struct perf_floor *f, uint32_t iters, struct perf_figures *out)
{
	bool fetches = perf_op_fetches(f->o->op);

	for (uint32_t i = 0; i < iters; i++) {
		uint64_t start = eng_clock(), ns;

		if (fetches)
			send_signal(f);
		else
			send_message(f);
		stream_in(f, 1);
		ns = eng_clock() - start;
		sk_hist_add(out->lat, fetches ? ns : ns / 2);
	}
}

static void
lat_serve(struct perf_floor *f, uint32_t iters)
{
	while (iters--) {
		if (perf_op_fetches(f->o->op))
			wait_signal(f);
		else
			stream_in(f, 1);
		send_message(f);
	}
}

int
perf_floor_run(struct perf_floor *f, uint32_t iters, struct perf_figures *out)
{
	uint64_t start;

	f->shape = shape_of(f->o);
	send_signal(f);
	wait_signal(f);
	start = eng_clock();
	if (f->o->test == PERF_LAT) {
		lat_run(f, iters, out);
	} else if (perf_op_fetches(f->o->op)) {
		stream_in(f, iters);
	} else {
		stream_out(f, iters);
		wait_signal(f);
	}
	out->ns += eng_clock() - start;
	out->msgs += iters;
	out->bytes += (uint64_t)iters * f->o->size;
	return f->bad ? -1 : 0;
}

int
perf_floor_serve(struct perf_floor *f, uint32_t iters)
{
	f->shape = shape_of(f->o);
	wait_signal(f);
	send_signal(f);
	if (f->o->test == PERF_LAT) {
		lat_serve(f, iters);
	} else if (perf_op_fetches(f->o->op)) {
		stream_out(f, iters);
	} else {
		stream_in(f, iters);
		send_signal(f);
	}
	return f->bad ? -1 : 0;
}
