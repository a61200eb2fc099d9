/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both sublayers of lib/falcon between two ends that exchange requests, while forged packets arrive
 * at both: around the live windows, or of any bytes. The input is a list of steps. After any
 * packets, all requests that an end has started end once and in order after the noise (if necessary
 * because the connection fails), a new connection between the same stacks works, and every buffer
 * is freed.
 */
#include "../../lib/falcon/conn_priv.h"
#include "../unit/falcon/duo.h"
#include "fuzz.h"

#define STEPS_MAX   500
#define UNDER_WAY   100
#define PATIENCE_NS 60000000000ull

/* Returns a number near `base`, sometimes any number. */
static uint32_t
near(struct fuzz_input *in, uint32_t base)
{
	uint8_t b = (uint8_t)fuzz_take(in, 1);

	return b == 0x80 ? fuzz_take(in, 4) : base + (uint32_t)(int8_t)b;
}

static uint64_t
map(struct fuzz_input *in)
{
	uint8_t kind = (uint8_t)fuzz_take(in, 1);

	return kind < 64 ? 1ull << kind : kind < 128 ? ~0ull << (kind - 64) : fuzz_take(in, 4);
}

static void
forge_ack(struct fuzz_input *in, const struct pdl_conn *d, struct wire_falcon *h)
{
	h->rbpsn = near(in, d->tx[PDL_REQUEST].base);
	h->dbpsn = near(in, d->tx[PDL_DATA].base);
	h->t2 = fuzz_take(in, 1);
	h->hops = fuzz_take(in, 1) & 15;
	h->rx_level = fuzz_take(in, 1) & 31;
	if (h->type == FALCON_EACK) {
		h->own_request = fuzz_take(in, 1) & 1;
		h->own_data = fuzz_take(in, 1) & 1;
		for (unsigned i = 0; i < 2; i++) {
			h->data_ack[i] = map(in);
			h->data_rx[i] = map(in);
		}
		h->req_map = map(in);
	} else if (h->type == FALCON_NACK) {
		h->nack_request = fuzz_take(in, 1) & 1;
		h->psn = near(in, d->tx[h->nack_request ? PDL_REQUEST : PDL_DATA].base);
		h->nack_code = (uint8_t)fuzz_take(in, 1) % 10;
		h->rnr_timeout = fuzz_take(in, 1) & 31;
		h->ulp_code = (uint8_t)fuzz_take(in, 1);
	}
}

static void
forge_packet(struct fuzz_input *in, const struct duo_end *e, struct wire_falcon *h)
{
	const struct pdl_conn *d = &e->c->pdl;
	const struct duo_end *peer = &e->duo->end[!e->id];
	bool request = h->type == FALCON_PULL_REQUEST;

	h->ar = fuzz_take(in, 1) & 1;
	h->proto = FALCON_RDMA;
	if (h->type == FALCON_RESYNC) {
		h->resync_code = (uint8_t)fuzz_take(in, 1);
		h->resync_type = (const uint8_t[]){FALCON_PULL_REQUEST, FALCON_PULL_DATA,
			FALCON_PUSH_DATA, FALCON_RESYNC}[fuzz_take(in, 1) & 3];
		request = h->resync_type == FALCON_PULL_REQUEST;
	}
	h->rbpsn = near(in, d->tx[PDL_REQUEST].base);
	h->dbpsn = near(in, d->tx[PDL_DATA].base);
	h->psn = near(in, request ? d->rx.rbase : d->rx.dbase);
	h->rsn = near(in, h->type == FALCON_PULL_DATA ? e->first_rsn + e->finished
						      : peer->first_rsn + peer->finished);
	h->request_len = (uint16_t)fuzz_take(in, 1);
}

/* Sends a forged packet in its wire format, as all packets. */
static void
forge(struct fuzz_input *in, struct duo *d, unsigned to)
{
	static const uint8_t types[] = {FALCON_PULL_REQUEST, FALCON_PULL_DATA, FALCON_PUSH_DATA,
		FALCON_RESYNC, FALCON_NACK, FALCON_BACK, FALCON_EACK, FALCON_EACK};
	struct duo_end *e = &d->end[to];
	struct wire_falcon h = {.type = types[fuzz_take(in, 1) % sizeof(types)]};
	struct fa_buf b = {0};
	struct fa_out out = {.hdr = &h, .path = fuzz_take(in, 1), .stamp = fa_ticks(d->now)};
	uint8_t bytes[512] = {0};

	if (h.type == FALCON_NACK || h.type == FALCON_BACK || h.type == FALCON_EACK)
		forge_ack(in, &e->c->pdl, &h);
	else
		forge_packet(in, e, &h);
	h.t1 = out.stamp - fuzz_take(in, 1);
	out.stamp = h.t2 + fuzz_take(in, 1) / 8;
	if (h.type == FALCON_PUSH_DATA || h.type == FALCON_PULL_DATA) {
		b.data = bytes;
		b.len = b.data_len = h.request_len;
		out.payload = &b;
	}
	wire_send(&d->wire, d->now, !to, &out);
}

static void
raw(struct fuzz_input *in, struct duo *d, unsigned to)
{
	unsigned len = fuzz_take(in, 1) % 80;
	struct wire_falcon h;
	struct fa_buf b = {0};
	uint8_t bytes[80];
	struct fa_out out = {.hdr = &h, .path = fuzz_take(in, 1), .stamp = fuzz_take(in, 4)};
	int rc;

	for (unsigned i = 0; i < len; i++)
		bytes[i] = (uint8_t)fuzz_take(in, 1);
	rc = wire_falcon_parse(&h, bytes, len);
	if (rc < 0)
		return;
	if (len > (unsigned)rc) {
		b.data = bytes + rc;
		b.len = b.data_len = len - (unsigned)rc;
		out.payload = &b;
	}
	wire_send(&d->wire, d->now, !to, &out);
}

static void
step(struct fuzz_input *in, struct duo *d)
{
	uint8_t op = (uint8_t)fuzz_take(in, 1);
	unsigned end = op & 1;
	bool room = duo_outstanding(d, end) < UNDER_WAY && !d->end[end].dead;

	if (op < 48 && room)
		duo_push(d, end, fuzz_take(in, 1));
	else if (op < 80 && room)
		duo_pull(d, end, fuzz_take(in, 1));
	else if (op < 144)
		duo_step(d, 200 * fuzz_take(in, 1), 1 + 10000ull * fuzz_take(in, 1));
	else if (op < 160)
		raw(in, d, end);
	else
		forge(in, d, end);
}

/* Checks that all started requests end, whatever must fail for it. */
static void
ends(struct duo *d)
{
	uint64_t limit = d->now + PATIENCE_NS;

	while ((duo_outstanding(d, 0) || duo_outstanding(d, 1)) && d->now < limit && !d->fault)
		duo_step(d, 1000, 1000000000);
	CLAIM(!d->fault);
	CLAIM(!duo_outstanding(d, 0) && !duo_outstanding(d, 1));
}

static void
works(struct duo *d)
{
	d->hostile = false;
	CLAIM(duo_reconnect(d));
	for (unsigned i = 0; i < 40; i++) {
		duo_push(d, i & 1, i);
		duo_pull(d, i & 1, 100 + i);
	}
	CLAIM(duo_settle(d, 1000000000));
	for (unsigned i = 0; i < 40; i++)
		CLAIM(d->end[0].done[i] == 1 + FA_DONE && d->end[1].done[i] == 1 + FA_DONE);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {.p = data, .len = size};
	uint8_t flags = (uint8_t)fuzz_take(&in, 1);
	static struct duo d;

	duo_init(&d, 1 + fuzz_take(&in, 1));
	d.hostile = true;
	d.rsns = 4096;
	d.cfg.rack = flags & 1;
	d.cfg.max_retransmits = 3;
	d.cfg.reclaim_ns = 500000000;
	d.params[0].ordered = d.params[1].ordered = flags & 2;
	d.params[0].flows = d.params[1].flows = flags & 4 ? FA_FLOWS_MAX : 1;
	d.think_ns = flags & 8 ? 20000 : 0;
	d.rnr = flags & 16 ? 100000 : 0;
	d.cie = flags & 32 ? 100000 : 0;
	d.busy = flags & 64 ? 50000 : 0;
	d.wire.loss = flags & 128 ? 50000 : 0;
	duo_small_pools(&d);
	if (fuzz_take(&in, 1) & 1) {
		d.cfg.pools.rx_pkt_net = d.cfg.pools.tx_pkt_data = 128;
		d.cfg.pools.rx_buf_net = d.cfg.pools.tx_buf_data = 128 * 64;
	}
	CLAIM(duo_start(&d));
	for (unsigned i = 0; i < STEPS_MAX && in.at < in.len; i++)
		step(&in, &d);
	d.rnr = d.cie = d.busy = d.wire.loss = 0;
	ends(&d);
	works(&d);
	CLAIM(duo_end(&d));
	return 0;
}
