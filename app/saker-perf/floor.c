/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floor: what the same bytes cost on the same ports with no protocol at all. A frame has room
 * for the headers that the transport would send, and then as many FPDU-sized pieces as the
 * transport packs into a segment; each piece is copied with its CRC when it is built, and checked
 * and copied when it comes. A receiver that finds a wrong CRC counts it.
 */
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <string.h>

#include "../../lib/base/crc32c.h"
#include "../../lib/base/mem.h"
#include "perf.h"

#define HEADERS    66u    /* Ethernet 14, IPv4 20, TCP with timestamps 32 */
#define PIECE_HEAD 16u    /* MPA length 2, DDP tagged header 14 */
#define PIECE_TAIL 4u     /* CRC */
#define ETHERTYPE  0xb588 /* 0x88b5, for local experiments (IEEE 802), as it lies in memory */
#define BURST      32u

struct head { /* in place of the headers' bytes */
	uint8_t mac[12];
	uint16_t type;
	uint16_t pieces;
	uint32_t len; /* of a piece */
	uint32_t off; /* of the first piece in its message */
};

struct shape {
	uint32_t piece;  /* largest piece */
	uint32_t packed; /* pieces of that size in a frame */
};

static struct shape
shape_of(const struct perf_options *o)
{
	uint32_t segment = o->mtu - 52, overhead = PIECE_HEAD + PIECE_TAIL;
	struct shape s;

	s.piece = SK_MIN(o->size, segment - segment % 4 - overhead);
	s.packed = o->test == PERF_LAT ? 1 : segment / ((s.piece + 3) / 4 * 4 + overhead);
	return s;
}

/* A frame of `pieces` pieces of `len` bytes from `off` on; 0 pieces: a signal. */
static struct rte_mbuf *
build(struct perf_floor *f, uint32_t off, uint32_t len, uint32_t pieces)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(f->pool);
	struct head h = {.type = ETHERTYPE, .pieces = (uint16_t)pieces, .len = len, .off = off};
	uint8_t *p;

	if (!m)
		return NULL;
	p = rte_pktmbuf_mtod(m, uint8_t *);
	memset(p, 0, HEADERS);
	memcpy(p, &h, sizeof(h));
	p += HEADERS;
	for (uint32_t i = 0; i < pieces; i++) {
		uint32_t crc;

		memset(p, 0, PIECE_HEAD);
		crc = sk_crc32c(SK_CRC32C_INIT, p, PIECE_HEAD);
		crc = sk_crc32c_copy(crc, p + PIECE_HEAD, f->buf + off, len);
		memcpy(p + PIECE_HEAD + len, &crc, sizeof(crc));
		p += PIECE_HEAD + len + PIECE_TAIL;
	}
	m->data_len = (uint16_t)(p - rte_pktmbuf_mtod(m, uint8_t *));
	m->pkt_len = m->data_len;
	return m;
}

static void
flush(struct perf_floor *f)
{
	uint32_t sent = rte_eth_tx_burst(f->port, 0, f->pending, (uint16_t)f->npending);

	f->npending -= sent;
	if (sent && f->npending)
		memmove(f->pending, f->pending + sent, f->npending * sizeof(f->pending[0]));
}

/* Builds and queues one frame; false: no room now. */
static bool
queue(struct perf_floor *f, uint32_t off, uint32_t len, uint32_t pieces)
{
	struct rte_mbuf *m;

	if (f->npending >= BURST)
		flush(f);
	if (f->npending >= BURST)
		return false;
	m = build(f, off, len, pieces);
	if (m)
		f->pending[f->npending++] = m;
	return m != NULL;
}

/* Checks and copies; returns how many messages the frame ended, and sets *signal. */
static uint32_t
take(struct perf_floor *f, struct rte_mbuf *m, bool *signal)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);
	uint8_t *in = f->buf + ((uint64_t)f->o->size + 63) / 64 * 64;
	struct head h;
	uint32_t ended;

	memcpy(&h, p, sizeof(h));
	if (h.type != ETHERTYPE)
		return 0; /* a late acknowledgement of the real thing */
	*signal = *signal || h.pieces == 0;
	p += HEADERS;
	for (uint32_t i = 0; i < h.pieces; i++) {
		uint32_t crc = sk_crc32c(SK_CRC32C_INIT, p, PIECE_HEAD + h.len);

		f->bad += memcmp(&crc, p + PIECE_HEAD + h.len, sizeof(crc)) != 0;
		memcpy(in + h.off, p + PIECE_HEAD, h.len);
		p += PIECE_HEAD + h.len + PIECE_TAIL;
	}
	ended = h.off + h.len == f->o->size ? h.pieces : 0;
	return ended;
}

static uint32_t
receive(struct perf_floor *f, bool *signal)
{
	struct rte_mbuf *m[BURST];
	uint16_t n = rte_eth_rx_burst(f->port, 0, m, BURST);
	uint32_t ended = 0;

	for (uint16_t i = 0; i < n; i++)
		ended += take(f, m[i], signal);
	if (n)
		rte_pktmbuf_free_bulk(m, n);
	return ended;
}

/* One whole message, in as many frames as it needs. */
static void
send_message(struct perf_floor *f, const struct shape *s)
{
	for (uint32_t off = 0; off < f->o->size;) {
		uint32_t len = SK_MIN(s->piece, f->o->size - off);

		if (queue(f, off, len, 1))
			off += len;
	}
	while (f->npending)
		flush(f);
}

static void
send_signal(struct perf_floor *f)
{
	while (!queue(f, 0, 0, 0))
		;
	while (f->npending)
		flush(f);
}

/* `iters` messages, as many of them in a frame as the transport packs. */
static void
stream_out(struct perf_floor *f, uint32_t iters)
{
	struct shape s = shape_of(f->o);

	if (s.piece < f->o->size) {
		while (iters--)
			send_message(f, &s);
		return;
	}
	while (iters > 0) {
		uint32_t n = SK_MIN(s.packed, iters);

		if (queue(f, 0, s.piece, n))
			iters -= n;
	}
	while (f->npending)
		flush(f);
}

static void
stream_in(struct perf_floor *f, uint32_t iters)
{
	bool signal = false;
	uint64_t got = 0;

	while (got < iters)
		got += receive(f, &signal);
}

static void
wait_signal(struct perf_floor *f)
{
	bool signal = false;

	while (!signal)
		receive(f, &signal);
}

static void
lat_run(struct perf_floor *f, uint32_t iters, struct perf_figures *out)
{
	struct shape s = shape_of(f->o);
	bool asks = perf_op_asks(f->o->op);

	for (uint32_t i = 0; i < iters; i++) {
		uint64_t start = eng_clock(), ns;

		if (asks)
			send_signal(f);
		else
			send_message(f, &s);
		stream_in(f, 1);
		ns = eng_clock() - start;
		sk_hist_add(out->lat, asks ? ns : ns / 2);
	}
}

static void
lat_serve(struct perf_floor *f, uint32_t iters)
{
	struct shape s = shape_of(f->o);

	while (iters--) {
		if (perf_op_asks(f->o->op))
			wait_signal(f);
		else
			stream_in(f, 1);
		send_message(f, &s);
	}
}

int
perf_floor_run(struct perf_floor *f, uint32_t iters, struct perf_figures *out)
{
	uint64_t start;

	send_signal(f);
	wait_signal(f);
	start = eng_clock();
	if (f->o->test == PERF_LAT) {
		lat_run(f, iters, out);
	} else if (perf_op_asks(f->o->op)) {
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
	wait_signal(f);
	send_signal(f);
	if (f->o->test == PERF_LAT) {
		lat_serve(f, iters);
	} else if (perf_op_asks(f->o->op)) {
		stream_out(f, iters);
	} else {
		stream_in(f, iters);
		send_signal(f);
	}
	return f->bad ? -1 : 0;
}
