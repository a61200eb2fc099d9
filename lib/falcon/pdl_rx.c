/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive windows (9.2.2.4, 9.2.5, 11): which packets are new and go to the transaction
 * sublayer, which are duplicates, and which are out of window. A push is received when TL has it,
 * and acknowledged when the ULP has taken it; every other packet is both at once. Acknowledged
 * packets move the base.
 */
#include <stdlib.h>

#include "conn_priv.h"

/* A packet on its way through the receive side. */
struct arrival {
	const struct wire_falcon *h;
	struct fa_buf *payload;
	unsigned flow;
};

/* ---- Moving the windows ---- */

static void
shift(uint64_t map[2], unsigned n)
{
	if (n >= 64) {
		map[0] = n >= 128 ? 0 : map[1] >> (n - 64);
		map[1] = 0;
	} else if (n) {
		map[0] = map[0] >> n | map[1] << (64 - n);
		map[1] >>= n;
	}
}

static unsigned
run_of_ones(const uint64_t map[2])
{
	if (~map[0])
		return (unsigned)__builtin_ctzll(~map[0]);
	return ~map[1] ? 64 + (unsigned)__builtin_ctzll(~map[1]) : 128;
}

static void
request_taken(struct pdl_rx *rx, uint32_t psn)
{
	unsigned n;

	rx->req |= 1ull << (psn - rx->rbase);
	n = ~rx->req ? (unsigned)__builtin_ctzll(~rx->req) : 64;
	rx->rbase += n;
	rx->req = n == 64 ? 0 : rx->req >> n;
}

/* Marks a PSN in the window as received and acknowledged, and moves the base. */
static void
data_acked(struct pdl_rx *rx, uint32_t psn)
{
	uint32_t at = psn - rx->dbase;
	unsigned n;

	rx->ack[at / 64] |= 1ull << (at % 64);
	rx->rx[at / 64] |= 1ull << (at % 64);
	n = run_of_ones(rx->ack);
	if (!n)
		return;
	rx->dbase += n;
	shift(rx->ack, n);
	shift(rx->rx, n);
}

static bool
at_base(const uint64_t map[2], uint32_t at)
{
	return map[at / 64] >> (at % 64) & 1;
}

/* ---- Later answers of TL ---- */

static unsigned
flow_of(const struct pdl_rx *rx, uint32_t psn)
{
	return (unsigned)pdl_bit(rx->flow[0], FA_DATA_WINDOW, psn) |
	       (unsigned)pdl_bit(rx->flow[1], FA_DATA_WINDOW, psn) << 1;
}

void
pdl_ulp_ack(struct fa_conn *c, uint64_t now, uint32_t psn)
{
	struct pdl_rx *rx = &c->pdl.rx;
	uint32_t at = psn - rx->dbase;

	if (at >= FA_DATA_WINDOW || !at_base(rx->rx, at))
		return; /* the push's Resync has arrived meanwhile */
	data_acked(rx, psn);
	pdl_ack_note(c, now, flow_of(rx, psn), 1, pdl_bit(rx->ar, FA_DATA_WINDOW, psn));
}

/* Sets the first n of 128 bits, and clears the others. */
static void
ones(uint64_t map[2], unsigned n)
{
	map[0] = n >= 64 ? UINT64_MAX : (1ull << n) - 1;
	map[1] = n >= 128 ? UINT64_MAX : n > 64 ? (1ull << (n - 64)) - 1 : 0;
}

/* Returns whether one of `n` pushes from `psn` on has the bit of AR. */
static bool
any_ar(const struct pdl_rx *rx, uint32_t psn, unsigned n)
{
	bool any = false;

	if ((rx->ar[0] | rx->ar[1]) == 0)
		return false;
	for (unsigned i = 0; i < n && !any; i++)
		any = pdl_bit(rx->ar, FA_DATA_WINDOW, psn + i);
	return any;
}

void
pdl_ulp_acks(struct fa_conn *c, uint64_t now, uint32_t psn, unsigned n)
{
	struct pdl_rx *rx = &c->pdl.rx;
	uint64_t all[2];
	unsigned moved;

	ones(all, n);
	if (psn != rx->dbase || n > FA_DATA_WINDOW || c->pdl.flows > 1 ||
		((rx->rx[0] & all[0]) ^ all[0]) | ((rx->rx[1] & all[1]) ^ all[1]) |
			(rx->ack[0] & all[0]) | (rx->ack[1] & all[1])) {
		for (unsigned i = 0; i < n; i++)
			pdl_ulp_ack(c, now, psn + i);
		return;
	}
	rx->ack[0] |= all[0];
	rx->ack[1] |= all[1];
	moved = run_of_ones(rx->ack);
	rx->dbase += moved;
	shift(rx->ack, moved);
	shift(rx->rx, moved);
	pdl_ack_note(c, now, 0, n, any_ar(rx, psn, n));
}

/* Stores the codes of a refusal. When memory is exhausted, the peer's retransmissions reach their
 * limit instead. */
static void
remember(struct pdl_conn *d, uint32_t psn, uint8_t code, uint8_t ulp_code)
{
	struct pdl_rx *rx = &d->rx;

	if (rx->refusal == NULL)
		rx->refusal = calloc(FA_DATA_WINDOW, sizeof(*rx->refusal));
	if (rx->refusal == NULL)
		return;
	pdl_bit_set(rx->refused, FA_DATA_WINDOW, psn);
	d->answered = true;
	rx->refusal[psn % FA_DATA_WINDOW][0] = code;
	rx->refusal[psn % FA_DATA_WINDOW][1] = ulp_code;
}

void
pdl_nack(struct fa_conn *c, uint64_t now, bool request, uint32_t psn, uint8_t code, uint8_t rnr,
	uint8_t ulp_code)
{
	struct pdl_rx *rx = &c->pdl.rx;
	uint32_t at = psn - rx->dbase;

	if (!request && (at >= FA_DATA_WINDOW || at_base(rx->ack, at)))
		return;
	if (!request && code == FALCON_NACK_RNR) {
		pdl_bit_set(rx->rnr, FA_DATA_WINDOW, psn);
		c->pdl.answered = true;
		fa_trace(c, FA_RNR_OUT);
	} else if (!request && code != FALCON_NACK_RESOURCES) {
		pdl_bit_clear(rx->rnr, FA_DATA_WINDOW, psn);
		remember(&c->pdl, psn, code, ulp_code);
	}
	pdl_nack_queue(c, request, psn, code, rnr, ulp_code, request ? 0 : flow_of(rx, psn));
}

/* ---- One packet ---- */

/* Drops a packet but acknowledges it, since its acknowledgement may have been lost (11). AR is
 * ignored. */
static void
pdl_rx_drop(struct fa_conn *c, uint64_t now, const struct arrival *a, enum fa_reason why)
{
	fa_count(c->s, why);
	fa_buf_free(c->s, a->payload);
	pdl_ack_note(c, now, a->flow, 2, false);
}

/* Sends a NACK for a packet for which TL has no resources (8.2, 11). */
static void
pdl_rx_no_room(struct fa_conn *c, const struct arrival *a, bool request)
{
	fa_buf_free(c->s, a->payload);
	pdl_nack_queue(c, request, a->h->psn, FALCON_NACK_RESOURCES, 0, 0, a->flow);
}

static enum tl_take
pdl_rx_hand_over(struct fa_conn *c, uint64_t now, const struct arrival *a, bool again)
{
	enum tl_take take;

	if (a->h->type == FALCON_RESYNC) {
		take = tl_resynced(c, now, a->h);
		if (take != TL_REFUSED)
			fa_trace(c, FA_RESYNC_IN);
		return take;
	}
	take = tl_rx(c, now, a->h, a->payload, again);
	if (take == TL_DROPPED)
		fa_buf_free(c->s, a->payload);
	return take;
}

static void
request_window(struct fa_conn *c, uint64_t now, const struct arrival *a)
{
	struct pdl_rx *rx = &c->pdl.rx;
	uint32_t at = a->h->psn - rx->rbase;

	if ((int32_t)at < 0 || (at < FA_REQUEST_WINDOW && rx->req >> at & 1)) {
		pdl_rx_drop(c, now, a, FA_DUPLICATE);
	} else if (at >= FA_REQUEST_WINDOW) {
		c->pdl.own_request = true;
		pdl_rx_drop(c, now, a, FA_OUT_OF_WINDOW);
	} else if (pdl_rx_hand_over(c, now, a, false) == TL_REFUSED) {
		pdl_rx_no_room(c, a, true);
	} else {
		request_taken(rx, a->h->psn);
		pdl_ack_note(c, now, a->flow, 2, a->h->ar);
	}
}

static void
mark_push(struct pdl_conn *d, uint32_t psn, bool ar, unsigned flow)
{
	struct pdl_rx *rx = &d->rx;
	uint32_t at = psn - rx->dbase;

	rx->rx[at / 64] |= 1ull << (at % 64);
	(ar ? pdl_bit_set : pdl_bit_clear)(rx->ar, FA_DATA_WINDOW, psn);
	if (d->flows > 1) {
		(flow & 1 ? pdl_bit_set : pdl_bit_clear)(rx->flow[0], FA_DATA_WINDOW, psn);
		(flow & 2 ? pdl_bit_set : pdl_bit_clear)(rx->flow[1], FA_DATA_WINDOW, psn);
	}
	/* These bits belong to the push that had this place one window ago. */
	if (d->answered) {
		pdl_bit_clear(rx->rnr, FA_DATA_WINDOW, psn);
		pdl_bit_clear(rx->refused, FA_DATA_WINDOW, psn);
		d->answered = (rx->rnr[0] | rx->rnr[1] | rx->refused[0] | rx->refused[1]) != 0;
	}
}

/* Passes a push to TL that is new, or for which the ULP was not ready. The push is marked first,
 * since TL may acknowledge it from inside. */
static void
take_push(struct fa_conn *c, uint64_t now, const struct arrival *a, bool again)
{
	struct pdl_rx *rx = &c->pdl.rx;
	uint32_t psn = a->h->psn, at;
	enum tl_take take;

	mark_push(&c->pdl, psn, a->h->ar, a->flow);
	take = pdl_rx_hand_over(c, now, a, again);
	at = psn - rx->dbase;
	if (take == TL_REFUSED) {
		c->pdl.answered |= again;
		if (again)
			pdl_bit_set(rx->rnr, FA_DATA_WINDOW, psn);
		else if (at < FA_DATA_WINDOW)
			rx->rx[at / 64] &= ~(1ull << (at % 64));
		pdl_rx_no_room(c, a, false);
		return;
	}
	if (take != TL_DROPPED) {
		pdl_ack_received(c, now, a->flow, 1);
		return;
	}
	if (at < FA_DATA_WINDOW)
		data_acked(rx, psn);
	pdl_ack_note(c, now, a->flow, 2, a->h->ar);
}

/* Processes the duplicate of a push that is received and not acknowledged: the ULP has it, had no
 * room for it, or refused it. */
static void
push_again(struct fa_conn *c, uint64_t now, const struct arrival *a)
{
	struct pdl_rx *rx = &c->pdl.rx;
	uint32_t psn = a->h->psn;

	if (pdl_bit(rx->rnr, FA_DATA_WINDOW, psn)) {
		take_push(c, now, a, true);
		return;
	}
	if (pdl_bit(rx->refused, FA_DATA_WINDOW, psn)) {
		const uint8_t *r = rx->refusal[psn % FA_DATA_WINDOW];

		pdl_nack_queue(c, false, psn, r[0], 0, r[1], a->flow);
	}
	pdl_rx_drop(c, now, a, FA_DUPLICATE);
}

/* Returns whether a packet would hold a buffer, of which few are left, until others arrive. */
static bool
is_too_early(const struct fa_conn *c, const struct arrival *a)
{
	return c->s->scarce && a->payload != NULL && a->h->type != FALCON_RESYNC &&
	       !tl_rx_is_next(c, a->h);
}

static void
data_window(struct fa_conn *c, uint64_t now, const struct arrival *a)
{
	struct pdl_rx *rx = &c->pdl.rx;
	uint32_t at = a->h->psn - rx->dbase;
	bool push = a->h->type == FALCON_PUSH_DATA;

	if ((int32_t)at < 0 || (at < FA_DATA_WINDOW && at_base(rx->ack, at))) {
		pdl_rx_drop(c, now, a, FA_DUPLICATE);
	} else if (at >= FA_DATA_WINDOW) {
		c->pdl.own_data = true;
		pdl_rx_drop(c, now, a, FA_OUT_OF_WINDOW);
	} else if (push && at_base(rx->rx, at)) {
		push_again(c, now, a);
	} else if (is_too_early(c, a)) {
		fa_count(c->s, FA_SCARCE);
		fa_buf_free(c->s, a->payload);
	} else if (push) {
		take_push(c, now, a, false);
	} else if (pdl_rx_hand_over(c, now, a, false) == TL_REFUSED) {
		pdl_rx_no_room(c, a, false);
	} else {
		data_acked(rx, a->h->psn);
		pdl_ack_note(c, now, a->flow, 2, a->h->ar);
	}
}

/* ---- Any packet ---- */

static void
count_ce(struct fa_conn *c, struct pdl_flow *f)
{
	f->ecn = (f->ecn + 1) & FALCON_ECN_MASK;
	fa_count(c->s, FA_ECN_CE);
}

/* Records the fields that acknowledgements report about the last packet, whatever happens to it
 * (10.1). */
static void
pdl_rx_measure(struct fa_conn *c, uint64_t now, const struct fa_in *in, struct pdl_flow *f)
{
	uint8_t ttl = c->s->cfg.ttl;

	f->t1 = in->stamp;
	f->t2 = fa_ticks(now) - in->waited;
	f->rx_path = in->path;
	f->hops = in->ttl < ttl ? (uint8_t)SK_MIN(ttl - in->ttl, 15) : 0;
	if (in->ce)
		count_ce(c, f);
}

static void
pdl_rx_reliable(struct fa_conn *c, uint64_t now, const struct fa_in *in)
{
	const struct wire_falcon *h = in->hdr;
	struct arrival a = {h, in->payload, pdl_flow_of(&c->pdl, in->path)};
	uint8_t type = h->type == FALCON_RESYNC ? h->resync_type : h->type;
	enum fa_reason bad = FA_NONE;

	if (h->proto != c->params.protocol)
		bad = FA_PROTOCOL;
	else if (h->function != c->params.function)
		bad = FA_FUNCTION;
	else if (in->payload != NULL && in->payload->len > c->params.mtu)
		bad = FA_LENGTH;
	else if (type != FALCON_PULL_REQUEST && type != FALCON_PULL_DATA &&
		 type != FALCON_PUSH_DATA)
		bad = FA_TYPE;
	if (bad) {
		fa_count(c->s, bad);
		fa_buf_free(c->s, in->payload);
		return;
	}
	pdl_rx_measure(c, now, in, &c->pdl.flow[a.flow]);
	bad = pdl_piggyback(c, now, h->rbpsn, h->dbpsn);
	if (bad)
		fa_count(c->s, bad);
	if (type == FALCON_PULL_REQUEST)
		request_window(c, now, &a);
	else
		data_window(c, now, &a);
}

/* ---- Runs of packets ---- */

/* Returns whether a packet is valid and has not arrived before. */
static inline bool
run_new(const struct fa_conn *c, const struct wire_falcon_plain *h)
{
	const struct pdl_rx *rx = &c->pdl.rx;
	bool pull = h->type == FALCON_PULL_REQUEST;
	uint32_t at = h->psn - (pull ? rx->rbase : rx->dbase);

	if (pull ? at >= FA_REQUEST_WINDOW || (rx->req >> at & 1)
		 : at >= FA_DATA_WINDOW || at_base(rx->rx, at))
		return false;
	return h->len <= c->params.mtu && h->proto == c->params.protocol &&
	       h->function == c->params.function;
}

static inline bool
run_bases(const struct pdl_conn *d, const struct wire_falcon_plain *h)
{
	return h->rbpsn == d->tx[PDL_REQUEST].base && h->dbpsn == d->tx[PDL_DATA].base;
}

bool
pdl_run_acks(struct fa_conn *c, uint64_t now, const struct wire_falcon_plain *h)
{
	return !run_bases(&c->pdl, h) && run_new(c, h) &&
	       pdl_piggyback(c, now, h->rbpsn, h->dbpsn) == FA_NONE;
}

bool
pdl_run_fits(const struct fa_conn *c, const struct wire_falcon_plain *h)
{
	return run_new(c, h) && run_bases(&c->pdl, h);
}

void
pdl_run_add(struct fa_conn *c, struct fa_run *run, const struct wire_falcon_plain *h,
	const struct fa_in *in)
{
	struct pdl_conn *d = &c->pdl;
	unsigned flow = pdl_flow_of(d, in->path);

	d->n.packets_in++;
	if (in->ce)
		count_ce(c, &d->flow[flow]);
	if (h->type == FALCON_PUSH_DATA) {
		mark_push(d, h->psn, h->ar, flow);
		run->halves++;
		return;
	}
	if (h->type == FALCON_PULL_REQUEST)
		request_taken(&d->rx, h->psn);
	else
		data_acked(&d->rx, h->psn);
	run->halves = (uint16_t)(run->halves + 2);
	run->ar |= h->ar;
}

void
pdl_run_end(struct fa_conn *c, uint64_t now, const struct fa_run *run)
{
	const struct fa_in last = {
		.stamp = run->stamp, .path = run->path, .ttl = run->ttl, .waited = run->waited};
	unsigned flow = pdl_flow_of(&c->pdl, run->path);

	pdl_rx_measure(c, now, &last, &c->pdl.flow[flow]);
	if (run->type == FALCON_PUSH_DATA)
		pdl_ack_received(c, now, flow, run->halves);
	else
		pdl_ack_note(c, now, flow, run->halves, run->ar);
}

uint32_t
pdl_run_room(const struct fa_conn *c, uint32_t psn)
{
	const struct pdl_rx *rx = &c->pdl.rx;
	uint32_t at = psn - rx->dbase;
	uint64_t map[2] = {rx->rx[0], rx->rx[1]};

	if (c->pdl.flows > 1 || c->pdl.answered || at >= FA_DATA_WINDOW)
		return 0;
	shift(map, at);
	return (map[0] | map[1]) == 0 ? FA_DATA_WINDOW - at : 0;
}

/* Rotates 128 bits to the left. */
static void
rotate_left(uint64_t map[2], unsigned n)
{
	uint64_t low = map[n / 64 % 2], high = map[(n / 64 + 1) % 2];

	n %= 64;
	map[0] = n ? low << n | high >> (64 - n) : low;
	map[1] = n ? high << n | low >> (64 - n) : high;
}

void
pdl_run_pushes(struct fa_conn *c, uint32_t psn, uint32_t n, const uint64_t ar[2])
{
	uint64_t here[2], own[2], bits[2] = {ar[0], ar[1]};
	struct pdl_rx *rx = &c->pdl.rx;

	ones(here, n);
	ones(own, n);
	rotate_left(here, psn - rx->dbase);
	rotate_left(own, psn % FA_DATA_WINDOW);
	rotate_left(bits, psn % FA_DATA_WINDOW);
	for (unsigned i = 0; i < 2; i++) {
		rx->rx[i] |= here[i];
		rx->ar[i] = (rx->ar[i] & ~own[i]) | bits[i];
	}
	c->pdl.n.packets_in += n;
}

void
pdl_input(struct fa_conn *c, uint64_t now, const struct fa_in *in)
{
	c->pdl.n.packets_in++;
	switch (in->hdr->type) {
	case FALCON_NACK:
		c->pdl.n.nacks_in++;
		break;
	case FALCON_BACK:
	case FALCON_EACK:
		c->pdl.n.acks_in++;
		break;
	default:
		pdl_rx_reliable(c, now, in);
		return;
	}
	fa_buf_free(c->s, in->payload);
	pdl_ack_input(c, now, in);
}
