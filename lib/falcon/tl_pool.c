/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The resource pools of section 8.2.2: four pools (transmit and receive, packets and buffers), each
 * with its regions. They are counts. A request of the local ULP takes the resources for its answer
 * before it goes out, so that an answer never lacks room. Also: the receive level that
 * acknowledgements carry (10.2), and Xoff.
 */
#include "conn_priv.h"

#include <errno.h>
#include <string.h>

#include "../base/mem.h"

#define EMA_SHIFT   8
#define TXN_PART    64
#define POOL_SHARED 1024 /* units of the smallest region that has shares */

static bool
tl_pool_has(const struct tl_region *r, uint32_t n)
{
	return r->cap - r->used >= n;
}

/*
 * Returns whether a connection that holds `held` units of a region with `cap` units, of which
 * `used` are in use, may take more. The more of the region is in use, the less a connection may
 * hold: beyond a 64th only while more than half is free, beyond a 256th while more than a quarter
 * is, beyond a 1024th while more than a 32nd is. So 74 connections that return nothing leave a
 * 256th to the next one. A region of less than 1024 units has no such bounds.
 */
static bool
tl_pool_share(uint32_t cap, uint32_t used, uint32_t held)
{
	uint32_t free = cap - SK_MIN(used, cap);

	if (cap < POOL_SHARED || held < cap / 1024)
		return true;
	if (held < cap / 256)
		return free > cap / 32;
	return held < cap / 64 ? free > cap / 4 : free > cap / 2;
}

bool
tl_data_share(const struct fa_conn *c)
{
	const struct tl_region *pkt = &c->s->tl.tx_pkt_data, *buf = &c->s->tl.tx_buf_data;

	return !c->tl.data_out || (tl_pool_share(pkt->cap, pkt->used, c->tl.data_out) &&
					  tl_pool_share(buf->cap, buf->used, c->tl.data_cells));
}

bool
tl_net_share(const struct fa_conn *c, bool pull)
{
	const struct fa_pools *p = &c->s->cfg.pools;
	const struct tl_stack *tl = &c->s->tl;
	const struct sk_share *pulls = &tl->shares.pulls;

	if (pull && !tl_pool_share(pulls->size, pulls->held, c->tl.pulls))
		return false;
	return tl_pool_share(p->rx_pkt_net - p->rx_pkt_red, tl->rx_pkt_net.used, c->tl.in_net) &&
	       tl_pool_share(p->rx_buf_net - p->rx_buf_red, tl->rx_buf_net.used,
		       c->tl.in_net * tl->pkt_cells);
}

/* Returns the units of a region up to which tl_pool_share() bounds no connection. */
static uint32_t
calm_part(uint32_t cap)
{
	return cap < POOL_SHARED ? cap : cap - cap / 2;
}

static int
objects_init(struct tl_objects *o, uint64_t count)
{
	if (count > UINT32_MAX / 2)
		return -EINVAL;
	o->count = (uint32_t)count;
	o->array = sk_mem_alloc(count * sizeof(*o->array));
	return o->array != NULL ? 0 : -ENOMEM;
}

_Static_assert(sizeof(struct tl_txn) % TXN_PART == 0, "object_get()");

static struct tl_txn *
object_get(struct tl_objects *o, struct fa_conn *c)
{
	struct tl_txn *t = o->free;

	if (t != NULL)
		o->free = t->hash_next;
	else if (o->fresh < o->count)
		t = &o->array[o->fresh++];
	else
		return NULL;
	/* In parts that the compiler clears by vector stores: "rep stos" is slower. */
	for (unsigned i = 0; i < sizeof(*t); i += TXN_PART)
		memset((uint8_t *)t + i, 0, TXN_PART);
	t->c = c;
	return t;
}

static void
object_put(struct tl_objects *o, struct tl_txn *t)
{
	t->state = TL_FREE;
	t->hash_next = o->free;
	o->free = t;
}

static bool
pools_valid(const struct fa_pools *p)
{
	return p->tx_pkt_req && p->tx_buf_req && p->tx_pkt_data && p->tx_buf_data &&
	       p->rx_pkt_ulp && p->rx_buf_ulp && p->rx_pkt_red && p->rx_buf_red &&
	       p->rx_pkt_red <= p->rx_pkt_net && p->rx_buf_red <= p->rx_buf_net && p->pulls &&
	       p->tx_cell && p->rx_cell;
}

int
tl_pools_init(struct fa_stack *s)
{
	const struct fa_pools *p = &s->cfg.pools;
	struct tl_stack *tl = &s->tl;
	int err;

	if (!pools_valid(p) || s->cfg.rx_thresholds_log2 > 31 || s->cfg.rx_ema_shift > 31)
		return -EINVAL;
	tl->tx_pkt_req.cap = p->tx_pkt_req;
	tl->tx_buf_req.cap = p->tx_buf_req;
	tl->rx_pkt_ulp.cap = p->rx_pkt_ulp;
	tl->rx_buf_ulp.cap = p->rx_buf_ulp;
	tl->tx_pkt_data.cap = p->tx_pkt_data;
	tl->tx_buf_data.cap = p->tx_buf_data;
	tl->rx_pkt_net.cap = p->rx_pkt_net;
	tl->rx_buf_net.cap = p->rx_buf_net;
	tl->calm_pkts = calm_part(p->rx_pkt_net - p->rx_pkt_red);
	tl->calm_bufs = calm_part(p->rx_buf_net - p->rx_buf_red);
	tl->calm_pulls = calm_part(p->pulls);
	tl->pkt_cells = SK_MAX(p->rx_buf_net / p->rx_pkt_net, 1u);
	/* A transaction may hold its transmit part alone, or its receive part alone. */
	err = objects_init(&tl->reqs, (uint64_t)p->tx_pkt_req + p->rx_pkt_ulp);
	if (err == 0)
		err = objects_init(&tl->ins, (uint64_t)p->rx_pkt_net + p->pulls + p->tx_pkt_data);
	if (err == 0)
		err = tl_shares_init(s);
	if (err == 0)
		err = tl_table_init(&tl->pulls, p->rx_pkt_ulp, s->cfg.seed);
	if (err == 0)
		err = tl_table_init(&tl->requests, tl->ins.count, s->cfg.seed + 1);
	if (err)
		tl_pools_fini(s);
	return err;
}

void
tl_pools_fini(struct fa_stack *s)
{
	struct tl_stack *tl = &s->tl;

	if (tl->reqs.array != NULL)
		sk_mem_free(tl->reqs.array, (size_t)tl->reqs.count * sizeof(struct tl_txn));
	if (tl->ins.array != NULL)
		sk_mem_free(tl->ins.array, (size_t)tl->ins.count * sizeof(struct tl_txn));
	tl->reqs.array = tl->ins.array = NULL;
	tl_shares_fini(s);
	tl_table_fini(&tl->pulls);
	tl_table_fini(&tl->requests);
}

/* ---- Requests of the local ULP: Tx and Rx from their own region ---- */

struct tl_txn *
tl_request_alloc(struct fa_conn *c, uint32_t tx_cells, uint32_t rx_cells)
{
	struct tl_stack *tl = &c->s->tl;
	uint32_t units = SK_MAX(
		tl_units(tx_cells, tl->shares.tx_cells), tl_units(rx_cells, tl->shares.rx_cells));
	struct tl_txn *t;

	if (!tl_pool_has(&tl->tx_pkt_req, 1) || !tl_pool_has(&tl->rx_pkt_ulp, 1) ||
		!tl_pool_has(&tl->tx_buf_req, tx_cells) || !tl_pool_has(&tl->rx_buf_ulp, rx_cells))
		return NULL;
	if (sk_share_take(&tl->shares.requests, c->tl.share, units) != SK_SHARE_OK)
		return NULL;
	/* There is an object for each packet context. */
	t = object_get(&tl->reqs, c);
	t->units = (uint16_t)units;
	tl->tx_pkt_req.used++;
	tl->rx_pkt_ulp.used++;
	tl->tx_buf_req.used += tx_cells;
	tl->rx_buf_ulp.used += rx_cells;
	t->tx_cells = tx_cells;
	t->rx_cells = rx_cells;
	return t;
}

void
tl_request_tx_done(struct fa_stack *s, struct tl_txn *t)
{
	s->tl.tx_pkt_req.used--;
	s->tl.tx_buf_req.used -= t->tx_cells;
}

void
tl_request_rx_done(struct fa_stack *s, struct tl_txn *t)
{
	s->tl.rx_pkt_ulp.used--;
	s->tl.rx_buf_ulp.used -= t->rx_cells;
}

void
tl_request_free(struct fa_stack *s, struct tl_txn *t)
{
	sk_share_give(&s->tl.shares.requests, t->c->tl.share, t->units);
	object_put(&s->tl.reqs, t);
}

static void
set_marks(struct tl_region *r, uint32_t need)
{
	r->xoff_above = SK_MIN((uint32_t)((uint64_t)r->cap * 3 / 4), r->cap - need);
	r->xon_upto = SK_MIN(r->cap / 2, r->xoff_above);
}

void
tl_pools_mtu(struct fa_stack *s, uint32_t mtu)
{
	const struct fa_pools *p = &s->cfg.pools;

	if (mtu <= s->tl.mtu)
		return;
	s->tl.mtu = mtu;
	set_marks(&s->tl.tx_pkt_req, 1);
	set_marks(&s->tl.rx_pkt_ulp, 1);
	set_marks(&s->tl.tx_buf_req, tl_cells(mtu, p->tx_cell));
	set_marks(&s->tl.rx_buf_ulp, tl_cells(mtu, p->rx_cell));
}

static bool
roomy(const struct tl_region *r)
{
	return r->used <= r->xon_upto;
}

void
tl_xoff(struct fa_stack *s)
{
	if (!tl_scarce(&s->tl))
		return;
	s->tl.xoff = true;
	s->ops.event(s->ctx, NULL, FA_EV_XOFF);
}

void
tl_xon(struct fa_stack *s)
{
	const struct tl_stack *tl = &s->tl;

	if (!tl->xoff || !roomy(&tl->tx_pkt_req) || !roomy(&tl->tx_buf_req) ||
		!roomy(&tl->rx_pkt_ulp) || !roomy(&tl->rx_buf_ulp))
		return;
	s->tl.xoff = false;
	s->ops.event(s->ctx, NULL, FA_EV_XON);
}

/* ---- Requests from the network ---- */

static uint64_t
average(uint64_t ema, uint32_t used, unsigned shift)
{
	int64_t diff = (int64_t)((uint64_t)used << EMA_SHIFT) - (int64_t)ema;

	/* An arithmetic shift: the rest of an average decays. */
	return ema + (uint64_t)(diff >> shift);
}

/* Without averaging, tl_rx_level() reads the occupancy itself. */
static inline void
tl_pool_measure(struct fa_stack *s)
{
	struct tl_stack *tl = &s->tl;

	if (s->cfg.rx_ema_shift == 0)
		return;
	tl->pkt_ema = average(tl->pkt_ema, tl->rx_pkt_net.used, s->cfg.rx_ema_shift);
	tl->buf_ema = average(tl->buf_ema, tl->rx_buf_net.used, s->cfg.rx_ema_shift);
}

uint8_t
tl_rx_level(const struct fa_stack *s)
{
	const struct tl_stack *tl = &s->tl;
	uint64_t pkts = tl->pkt_ema, bufs = tl->buf_ema, ema;

	if (s->cfg.rx_ema_shift == 0) {
		pkts = (uint64_t)tl->rx_pkt_net.used << EMA_SHIFT;
		bufs = (uint64_t)tl->rx_buf_net.used << EMA_SHIFT;
	}
	/* A packet counts as the average number of cells per packet. */
	ema = SK_MAX(pkts * tl->pkt_cells, bufs) >> EMA_SHIFT;
	return (uint8_t)SK_MIN(ema >> s->cfg.rx_thresholds_log2, 31u);
}

bool
tl_net_fits(const struct fa_stack *s, uint32_t cells, bool red)
{
	const struct fa_pools *p = &s->cfg.pools;
	uint32_t pkts = s->tl.rx_pkt_net.used + 1;
	uint64_t bufs = (uint64_t)s->tl.rx_buf_net.used + cells;

	if (red)
		return pkts <= p->rx_pkt_net && bufs <= p->rx_buf_net;
	return pkts <= p->rx_pkt_net - p->rx_pkt_red && bufs <= p->rx_buf_net - p->rx_buf_red;
}

uint32_t
tl_net_room(const struct fa_conn *c, uint32_t cells)
{
	const struct tl_stack *tl = &c->s->tl;
	uint32_t pkts = tl->calm_pkts - SK_MIN(tl->rx_pkt_net.used, tl->calm_pkts);
	uint32_t bufs = tl->calm_bufs - SK_MIN(tl->rx_buf_net.used, tl->calm_bufs);

	if (cells > 0)
		pkts = SK_MIN(pkts, bufs / cells);
	return SK_MIN(pkts,
		sk_share_some(&tl->shares.net, c->tl.share) / tl_units(cells, tl->shares.rx_cells));
}

struct tl_txn *
tl_net_alloc(struct fa_conn *c, uint8_t type, uint32_t cells, bool alone)
{
	struct fa_stack *s = c->s;
	struct tl_shares *sh = &s->tl.shares;
	bool pull = type == FALCON_PULL_REQUEST;
	uint32_t units = tl_units(cells, sh->rx_cells);
	struct tl_txn *t;

	if (sk_share_take(&sh->net, c->tl.share, units) != SK_SHARE_OK) {
		if (!alone)
			return NULL;
		units = 0;
	}
	if (pull && sk_share_take(&sh->pulls, c->tl.share, 1) != SK_SHARE_OK) {
		sk_share_give(&sh->net, c->tl.share, units);
		return NULL;
	}
	t = object_get(&s->tl.ins, c); /* there is one for each packet context */
	t->net_units = (uint16_t)units;
	c->tl.pulls += pull;
	s->tl.rx_pkt_net.used++;
	s->tl.rx_buf_net.used += cells;
	t->rx_cells = cells;
	t->type = type;
	t->in_net = true;
	c->tl.in_net++;
	tl_pool_measure(s);
	return t;
}

/* Takes or returns the resources of `n` requests, one by one where the average depends on it. */
static void
net_use(struct fa_stack *s, uint32_t cells, uint32_t n, uint32_t sign)
{
	uint32_t step = s->cfg.rx_ema_shift != 0 ? 1 : n;

	for (; n > 0; n -= step) {
		s->tl.rx_pkt_net.used += sign * step;
		s->tl.rx_buf_net.used += sign * step * cells;
		tl_pool_measure(s);
	}
}

bool
tl_net_take(struct fa_conn *c, uint32_t cells, uint32_t n)
{
	struct tl_shares *sh = &c->s->tl.shares;

	if (sk_share_take(&sh->net, c->tl.share, n * tl_units(cells, sh->rx_cells)) != SK_SHARE_OK)
		return false;
	c->tl.in_net += n;
	net_use(c->s, cells, n, 1);
	return true;
}

void
tl_net_give(struct fa_conn *c, uint32_t cells, uint32_t n)
{
	struct tl_shares *sh = &c->s->tl.shares;

	c->tl.in_net -= n;
	sk_share_give(&sh->net, c->tl.share, n * tl_units(cells, sh->rx_cells));
	net_use(c->s, cells, n, -1u);
}

/* There is an object for each packet context of the region. */
struct tl_txn *
tl_net_adopt(struct fa_conn *c, uint32_t cells)
{
	struct tl_txn *t = object_get(&c->s->tl.ins, c);

	t->rx_cells = cells;
	t->net_units = (uint16_t)tl_units(cells, c->s->tl.shares.rx_cells);
	t->type = FALCON_PUSH_DATA;
	t->in_net = true;
	return t;
}

void
tl_net_buf_done(struct fa_stack *s, struct tl_txn *t)
{
	s->tl.rx_buf_net.used -= t->rx_cells;
	t->rx_cells = 0;
	tl_pool_measure(s);
}

void
tl_net_done(struct fa_stack *s, struct tl_txn *t)
{
	if (!t->in_net)
		return;
	t->in_net = false;
	t->c->tl.in_net--;
	sk_share_give(&s->tl.shares.net, t->c->tl.share, t->net_units);
	s->tl.rx_pkt_net.used--;
	tl_net_buf_done(s, t);
}

bool
tl_pull_to_data(struct fa_stack *s, struct tl_txn *t, uint32_t len)
{
	uint32_t cells = tl_cells(len, s->cfg.pools.tx_cell);
	uint32_t units = tl_units(cells, s->tl.shares.tx_cells);

	if (!tl_pool_has(&s->tl.tx_pkt_data, 1) || !tl_pool_has(&s->tl.tx_buf_data, cells) ||
		sk_share_take(&s->tl.shares.data, t->c->tl.share, units) != SK_SHARE_OK)
		return false;
	sk_share_give(&s->tl.shares.pulls, t->c->tl.share, 1);
	t->units = (uint16_t)units;
	t->c->tl.data_out++;
	t->c->tl.data_cells += cells;
	s->tl.tx_pkt_data.used++;
	s->tl.tx_buf_data.used += cells;
	t->tx_cells = cells;
	return true;
}

void
tl_data_free(struct fa_stack *s, struct tl_txn *t)
{
	s->tl.tx_pkt_data.used--;
	s->tl.tx_buf_data.used -= t->tx_cells;
	t->c->tl.pulls--;
	t->c->tl.data_out--;
	t->c->tl.data_cells -= t->tx_cells;
	sk_share_give(&s->tl.shares.data, t->c->tl.share, t->units);
	tl_data_list(t->c);
	object_put(&s->tl.ins, t);
}

void
tl_net_free(struct fa_stack *s, struct tl_txn *t)
{
	tl_net_done(s, t);
	if (t->type == FALCON_PULL_REQUEST) {
		t->c->tl.pulls--;
		sk_share_give(&s->tl.shares.pulls, t->c->tl.share, 1);
	}
	object_put(&s->tl.ins, t);
}
