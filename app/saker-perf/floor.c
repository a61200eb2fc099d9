/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floor: the cost of the same bytes on the same ports without a protocol, in frames of the same
 * shape as the transport's. An iWARP frame has room for the headers up to TCP's, and then for as
 * many pieces of the size of an FPDU as fit into a segment. Each piece has a CRC, and the segment
 * has TCP's checksum. A Falcon frame carries one piece of at most the RDMA MTU, with UDP's
 * checksum, or sealed by the cipher of PSP. A frame takes one pass over its bytes where it is built
 * and one where it arrives. A receiver counts wrong sums.
 */
#include <errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <string.h>

#include "../../lib/base/mem.h"
#include "../../lib/rof/rof.h"
#include "../../lib/wire/rof.h"
#include "floor_pass.h"
#include "floor_seal.h"
#include "perf.h"

/* Bytes of the headers. */
#define TCP_HEADERS  (ETH_LEN + IP4_LEN + 32u) /* with timestamps */
#define MPA_HEAD     16u                       /* MPA length 2, DDP tagged header 14 */
#define MPA_ALIGN    4u                        /* a piece is padded, its CRC follows */
#define CRC_LEN      4u
#define L4_AT        (ETH_LEN + IP4_LEN)
#define TCP_SUM_AT   (L4_AT + 16u)
#define UDP_SUM_AT   (L4_AT + 6u)
#define PSP_AT       (L4_AT + UDP_LEN)
#define PUSH_HEADERS (PSP_AT + PSP_LEN + FALCON_PUSH_DATA_LEN)
#define PULL_HEADERS (PSP_AT + PSP_LEN + FALCON_PULL_DATA_LEN)
#define ETHERTYPE    0xb588 /* 0x88b5, for local experiments (IEEE 802), in network byte order */
#define BURST        32u
#define LINE         64u
#define FRAMES_BYTES (2u << 20) /* of all frames, which thus stay in a cache */
#define FRAMES_MIN   256u
#define FETCH_AHEAD  1536u

/* Lies in the place of the headers up to IP's. */
struct head {
	uint8_t mac[12];
	uint16_t type;
	uint16_t pieces; /* 0: a signal */
	uint32_t len;    /* of a piece */
	uint32_t off;    /* of the first piece in its message */
};
_Static_assert(sizeof(struct head) <= L4_AT, "the head is in front of the transport's header");

static uint32_t
padded(const struct perf_shape *s, uint32_t len)
{
	return s->crc_tail ? (len + MPA_ALIGN - 1) / MPA_ALIGN * MPA_ALIGN : len;
}

static struct perf_shape
iwarp_shape(const struct perf_options *o)
{
	uint32_t segment = o->mtu - 52, overhead = MPA_HEAD + CRC_LEN;
	struct perf_shape s = {.headers = TCP_HEADERS,
		.head = MPA_HEAD,
		.sum_at = TCP_SUM_AT,
		.crc_tail = true,
		.crc = o->crc};

	s.piece = SK_MIN(o->size, segment - segment % MPA_ALIGN - overhead);
	s.packed = o->test == PERF_LAT ? 1 : segment / (padded(&s, s.piece) + overhead);
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
	struct perf_shape s = {.packed = 1, .sum_at = o->psp ? 0 : UDP_SUM_AT};
	uint32_t room, mtu;

	s.headers = perf_op_fetches(o->op) ? PULL_HEADERS : PUSH_HEADERS;
	if (o->tunnel)
		s.headers += PSP_VC_LEN + IP4_LEN;
	s.head = wire_rof_len(falcon_opcode(o->op));
	if (o->psp)
		s.hidden = s.headers + s.head - (PSP_AT + PERF_SEAL_CLEAR);
	room = o->mtu + ETH_LEN - s.headers - s.head - (o->psp ? PSP_ICV_LEN : 0);
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

unsigned
perf_floor_kinds(const struct perf_options *o)
{
	uint32_t piece = shape_of(o).piece;

	return 1 + (piece >= PERF_STREAM_MIN) + (piece >= PERF_STRING_MIN);
}

const char *
perf_floor_kind_name(unsigned kind)
{
	static const char *const names[PERF_FLOOR_KINDS] = {"plain", "streaming", "string"};

	return names[kind];
}

/* Returns the stores of a kind of the floor, a member of enum perf_pass or 0. */
static unsigned
stores_of(unsigned kind)
{
	static const unsigned stores[PERF_FLOOR_KINDS] = {0, PERF_PASS_STREAM, PERF_PASS_STRING};

	return stores[kind];
}

/* ---- Memory: room, outgoing data, room, incoming data ---- */

/* Outgoing and incoming data have so many bytes in front of them, in the place of the encrypted
 * headers: one call of the cipher then takes headers and payload. */
#define ROOM 128u

static size_t
part_of(const struct perf_options *o)
{
	return ROOM + ((size_t)o->size + LINE - 1) / LINE * LINE;
}

static const uint8_t *
floor_out(const struct perf_floor *f)
{
	return f->buf + ROOM;
}

static uint8_t *
floor_in(const struct perf_floor *f)
{
	return f->buf + part_of(f->o) + ROOM;
}

/* Returns the size of a frame's buffer. */
static uint32_t
floor_room(const struct perf_options *o)
{
	return SK_MIN(o->mtu + 14 + RTE_PKTMBUF_HEADROOM + 2 * LINE, 65535u);
}

int
perf_floor_open(struct perf_floor *f, const struct perf_options *o, uint16_t port, const char *pool)
{
	uint32_t room = floor_room(o);
	uint32_t frames = SK_MAX(FRAMES_MIN, FRAMES_BYTES / room);

	perf_pass_init();
	f->o = o;
	f->port = port;
	f->shape = shape_of(o);
	f->buf = sk_mem_alloc(2 * part_of(o));
	/* The frames take turns, oldest first: the receiver's processor has given back the lines of
	 * the oldest one by then. */
	f->pool = rte_pktmbuf_pool_create_by_ops(
		pool, frames, frames / 8, 0, (uint16_t)room, SOCKET_ID_ANY, "ring_mp_mc");
	if (f->buf == NULL || f->pool == NULL)
		return perf_fail("allocating memory for the floor", -12);
	if (o->psp == 0)
		return 0;
	f->scratch = sk_mem_alloc(room);
	f->seal = perf_seal_create(o->psp);
	return f->seal != NULL && f->scratch != NULL
		       ? 0
		       : perf_fail("starting libIPSec_MB for the floor", -12);
}

void
perf_floor_close(struct perf_floor *f)
{
	perf_seal_destroy(f->seal);
	rte_mempool_free(f->pool);
	if (f->scratch != NULL)
		sk_mem_free(f->scratch, floor_room(f->o));
	if (f->buf != NULL)
		sk_mem_free(f->buf, 2 * part_of(f->o));
	memset(f, 0, sizeof(*f));
}

/* ---- Sending ---- */

static unsigned
pass_of(const struct perf_shape *s)
{
	return (s->crc ? PERF_PASS_CRC : 0) | (s->sum_at ? PERF_PASS_SUM : 0);
}

static const uint8_t zeros[LINE];

/* Writes zeros in the place of a header. */
static inline void
floor_clear(uint8_t *p, uint32_t len)
{
	const uint64_t zero = 0;
	uint32_t at = 0;

	for (; at + 8 <= len; at += 8)
		memcpy(p + at, &zero, 8);
	for (; at < len; at++)
		p[at] = 0;
}

/* Writes a piece of `len` bytes with its header and tail, and adds it to the checksum of the frame.
 * Nothing is read back: a load that meets several stores waits for their cache lines, and the zeros
 * of headers add nothing. Returns the end of the piece. */
static uint8_t *
put_piece(const struct perf_floor *f, struct perf_sums *frame, uint8_t *p, const uint8_t *from,
	uint32_t len)
{
	const struct perf_shape *s = &f->shape;
	unsigned how = pass_of(s);
	struct perf_sums sums = PERF_SUMS;
	uint32_t pad = padded(s, len) - len, crc;

	floor_clear(p, s->head);
	perf_pass_take(&sums, zeros, s->head, how & PERF_PASS_CRC);
	p += s->head;
	perf_pass_copy(&sums, p, from, len, how | f->stores);
	p += len;
	if (s->crc_tail) {
		floor_clear(p, pad);
		perf_pass_take(&sums, zeros, pad, how & PERF_PASS_CRC);
		p += pad;
		crc = s->crc ? ~sums.crc : 0;
		memcpy(p, &crc, CRC_LEN);
		perf_pass_add(&sums, crc);
		p += CRC_LEN;
	}
	frame->sum += sums.sum;
	return p;
}

/* Writes a sealed packet from PSP's header on. The cipher has plain stores only: with other
 * ones, it writes to a buffer in the first-level cache, from which the packet is copied. Returns
 * the end of the packet. */
static uint8_t *
put_sealed(struct perf_floor *f, uint8_t *packet, uint32_t off, uint32_t len)
{
	const uint8_t *text = floor_out(f) + off - f->shape.hidden;
	uint32_t total = PERF_SEAL_CLEAR + f->shape.hidden + len + PSP_ICV_LEN;
	struct perf_sums none = PERF_SUMS;

	if (f->stores) {
		memcpy(f->scratch, packet, PERF_SEAL_CLEAR);
		perf_seal_packet(f->seal, f->scratch, text, f->shape.hidden + len);
		perf_pass_copy(&none, packet, f->scratch, total, f->stores);
	} else {
		perf_seal_packet(f->seal, packet, text, f->shape.hidden + len);
	}
	return packet + total;
}

/* Builds a frame with `pieces` pieces of `len` bytes from offset `off` on; 0 pieces: a signal. */
static struct rte_mbuf *
build(struct perf_floor *f, uint32_t off, uint32_t len, uint32_t pieces)
{
	const struct perf_shape *s = &f->shape;
	struct rte_mbuf *m = rte_pktmbuf_alloc(f->pool);
	struct head h = {.type = ETHERTYPE, .pieces = (uint16_t)pieces, .len = len, .off = off};
	struct perf_sums sums = PERF_SUMS;
	uint8_t *frame, *p;
	uint16_t sum;

	if (m == NULL)
		return NULL;
	if (len >= PERF_LONG) /* the payload begins with a cache line */
		m->data_off +=
			(uint16_t)(-(rte_pktmbuf_mtod(m, uintptr_t) + s->headers + s->head) % LINE);
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	floor_clear(frame, s->headers);
	memcpy(frame, &h, sizeof(h));
	p = frame + s->headers;
	if (f->seal != NULL && pieces > 0) {
		p = put_sealed(f, frame + PSP_AT, off, len);
	} else {
		for (uint32_t i = 0; i < pieces; i++)
			p = put_piece(f, &sums, p, floor_out(f) + off, len);
		sum = perf_pass_fold(&sums);
		if (s->sum_at)
			memcpy(frame + s->sum_at, &sum, sizeof(sum));
	}
	m->data_len = (uint16_t)(p - frame);
	m->pkt_len = m->data_len;
	return m;
}

static void
floor_flush(struct perf_floor *f)
{
	uint32_t sent;

	if (f->stores)
		perf_pass_fence();
	sent = rte_eth_tx_burst(f->port, 0, f->pending, (uint16_t)f->npending);
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

static void
floor_drain(struct perf_floor *f)
{
	while (f->npending)
		floor_flush(f);
}

/* Queues one message, in as many frames as necessary. */
static void
queue_message(struct perf_floor *f)
{
	for (uint32_t off = 0; off < f->o->size;) {
		uint32_t len = SK_MIN(f->shape.piece, f->o->size - off);

		if (queue(f, off, len, 1))
			off += len;
	}
}

static void
send_message(struct perf_floor *f)
{
	queue_message(f);
	floor_drain(f);
}

static void
send_signal(struct perf_floor *f)
{
	while (!queue(f, 0, 0, 0))
		;
	floor_drain(f);
}

/* ---- Receiving ---- */

/* Checks a piece and copies it to `to`. Returns its end. */
static const uint8_t *
take_piece(
	struct perf_floor *f, struct perf_sums *frame, const uint8_t *p, uint8_t *to, uint32_t len)
{
	const struct perf_shape *s = &f->shape;
	unsigned how = pass_of(s);
	struct perf_sums sums = PERF_SUMS;
	uint32_t pad = padded(s, len) - len, crc;

	perf_pass_take(&sums, p, s->head, how);
	p += s->head;
	perf_pass_copy(&sums, to, p, len, how);
	p += len;
	if (s->crc_tail) {
		perf_pass_take(&sums, p, pad, how & PERF_PASS_CRC);
		p += pad;
		memcpy(&crc, p, CRC_LEN);
		f->bad += s->crc && crc != ~sums.crc;
		perf_pass_take(&sums, p, CRC_LEN, how & PERF_PASS_SUM);
		p += CRC_LEN;
	}
	frame->sum += sums.sum;
	return p;
}

static void
take_pieces(struct perf_floor *f, const uint8_t *frame, const struct head *h)
{
	uint8_t *in = floor_in(f) + h->off;
	const struct perf_shape *s = &f->shape;
	const uint8_t *p = frame + s->headers;
	struct perf_sums sums = PERF_SUMS;

	if (f->seal != NULL) {
		f->bad += !perf_seal_open(
			f->seal, frame + PSP_AT, in - s->hidden, s->hidden + h->len);
		return;
	}
	if (s->sum_at)
		perf_pass_sum(&sums, frame + L4_AT, s->headers - L4_AT);
	for (uint32_t i = 0; i < h->pieces; i++)
		p = take_piece(f, &sums, p, in, h->len);
	f->bad += s->sum_at && perf_pass_fold(&sums) != 0;
}

/* Returns how many messages the frame completes, and sets *signal if it is a signal. */
static uint32_t
floor_take(struct perf_floor *f, const struct rte_mbuf *m, bool *signal)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	struct head h;

	memcpy(&h, p, sizeof(h));
	if (h.type != ETHERTYPE)
		return 0; /* a delayed acknowledgement of the transport */
	if (h.pieces == 0) {
		*signal = true;
		return 0;
	}
	take_pieces(f, p, &h);
	return h.off + h.len == f->o->size ? h.pieces : 0;
}

/* Requests the first bytes of a frame, or all of a sealed one, while the one in front of it is
 * checked. */
static void
fetch_ahead(const struct perf_floor *f, const struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t len = f->seal != NULL ? m->data_len : SK_MIN(m->data_len, FETCH_AHEAD);

	for (uint32_t at = 0; at < len; at += LINE)
		__builtin_prefetch(p + at);
}

static uint32_t
floor_receive(struct perf_floor *f, bool *signal)
{
	struct rte_mbuf *m[BURST];
	uint16_t n = rte_eth_rx_burst(f->port, 0, m, BURST);
	uint32_t ended = 0;

	for (uint16_t i = 0; i < n; i++) {
		if (i + 1 < n)
			fetch_ahead(f, m[i + 1]);
		ended += floor_take(f, m[i], signal);
	}
	if (n)
		rte_pktmbuf_free_bulk(m, n);
	return ended;
}

/* ---- Tests ---- */

static bool
floor_late(const struct perf_floor *f, uint64_t start)
{
	return perf_late(f->o, start);
}

/* Sends up to `iters` messages until the time of a round is over, with as many in a frame as the
 * transport packs, and then a signal. Returns how many. */
static uint32_t
stream_out(struct perf_floor *f, uint32_t iters)
{
	const struct perf_shape *s = &f->shape;
	uint64_t start = eng_clock();
	uint32_t sent = 0, frames = 0;

	while (sent < iters && (frames % BURST != 0 || !floor_late(f, start))) {
		uint32_t n = SK_MIN(s->packed, iters - sent);

		if (s->piece < f->o->size) {
			queue_message(f);
			sent++;
		} else if (queue(f, 0, s->piece, n)) {
			sent += n;
			frames++;
		}
	}
	send_signal(f);
	return sent;
}

/* Receives messages until a signal comes. Returns how many. */
static uint32_t
stream_in(struct perf_floor *f)
{
	bool signal = false;
	uint32_t got = 0;

	while (!signal)
		got += floor_receive(f, &signal);
	return got;
}

static void
wait_message(struct perf_floor *f)
{
	bool signal = false;

	while (floor_receive(f, &signal) == 0)
		;
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
		wait_message(f);
		ns = eng_clock() - start;
		sk_hist_add(out->lat, fetches ? ns : ns / 2);
	}
}

static void
lat_serve(struct perf_floor *f, uint32_t iters)
{
	while (iters--) {
		if (perf_op_fetches(f->o->op))
			stream_in(f);
		else
			wait_message(f);
		send_message(f);
	}
}

int
perf_floor_run(struct perf_floor *f, uint32_t iters, unsigned kind, struct perf_figures *out)
{
	uint64_t start;

	f->stores = stores_of(kind);
	send_signal(f);
	stream_in(f);
	start = eng_clock();
	if (f->o->test == PERF_LAT) {
		lat_run(f, iters, out);
	} else if (perf_op_fetches(f->o->op)) {
		iters = stream_in(f);
	} else {
		iters = stream_out(f, iters);
		stream_in(f);
	}
	out->ns += eng_clock() - start;
	out->msgs += iters;
	out->bytes += (uint64_t)iters * f->o->size;
	return f->bad ? perf_fail("checking the sums of the floor", -EBADMSG) : 0;
}

int
perf_floor_serve(struct perf_floor *f, uint32_t iters, unsigned kind)
{
	f->stores = stores_of(kind);
	stream_in(f);
	send_signal(f);
	if (f->o->test == PERF_LAT) {
		lat_serve(f, iters);
	} else if (perf_op_fetches(f->o->op)) {
		stream_out(f, iters);
	} else {
		stream_in(f);
		send_signal(f);
	}
	return f->bad ? perf_fail("checking the sums of the floor", -EBADMSG) : 0;
}
