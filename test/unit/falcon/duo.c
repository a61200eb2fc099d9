/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "duo.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))

static void
fault(struct duo *d, const char *what, uint32_t rsn)
{
	if (d->fault != NULL)
		return;
	d->fault = what;
	d->fault_rsn = rsn;
}

/* Records a fault of the peer's packets, unless packets are forged. */
static void
peer_fault(struct duo *d, const char *what, uint32_t rsn)
{
	if (!d->hostile)
		fault(d, what, rsn);
}

/* ---- Payloads ---- */

static struct fa_buf *
buf_new(struct duo *d, uint32_t len)
{
	struct fa_buf *b = calloc(1, sizeof(*b) + len + 1);

	b->data = (uint8_t *)(b + 1);
	b->len = b->data_len = len;
	d->bufs++;
	return b;
}

static void
buf_free(void *ctx, struct fa_buf *b)
{
	struct duo_end *e = ctx;

	if (b == NULL)
		return;
	e->duo->bufs--;
	free(b);
}

/* Returns a byte of a payload; each request of each end has its own pattern. */
static uint8_t
pattern(unsigned end, uint32_t rsn, unsigned kind, uint32_t i)
{
	return (uint8_t)(rsn * 131 + i * 7 + end * 53 + kind * 29);
}

static struct fa_buf *
payload(struct duo *d, unsigned end, uint32_t rsn, unsigned kind, uint32_t len)
{
	struct fa_buf *b = buf_new(d, len);

	for (uint32_t i = 0; i < len; i++)
		b->data[i] = pattern(end, rsn, kind, i);
	return b;
}

static void
check(struct duo *d, unsigned end, uint32_t rsn, unsigned kind, const struct fa_buf *b)
{
	if (b == NULL)
		return;
	if (b->len != b->data_len)
		peer_fault(d, "a payload's two lengths differ", rsn);
	for (uint32_t i = 0; i < b->len; i++)
		if (b->data[i] != pattern(end, rsn, kind, i))
			peer_fault(d, "a payload has other bytes", rsn);
}

static bool
ordered(const struct duo_end *e)
{
	return e->duo->params[e->id].ordered;
}

/* ---- The ULP as target ---- */

static void
took(struct duo_end *e, uint32_t rsn)
{
	struct duo_end *peer = &e->duo->end[!e->id];
	uint32_t i = rsn - peer->first_rsn;

	if (i >= peer->posted) {
		peer_fault(e->duo, "a request that the peer did not start", rsn);
		return;
	}
	if (e->taken[i]++)
		peer_fault(e->duo, "a request was taken twice", rsn);
	if (ordered(e) && e->any_taken && (int32_t)(rsn - e->last_taken) <= 0)
		peer_fault(e->duo, "requests were taken out of order", rsn);
	e->any_taken = true;
	e->last_taken = rsn;
}

static void
answer(struct duo_end *e, struct duo_later *l)
{
	struct duo *d = e->duo;
	struct fa_outcome o = {.rsn = l->rsn, .verdict = FA_TAKEN};

	if (l->restart)
		e->refusing = false;
	if (e->refusing || wire_chance(&d->wire, d->rnr)) {
		e->rnrs++;
		e->refusing = ordered(e);
		o.verdict = FA_RNR;
		o.rnr = 1;
		o.buf = l->buf;
	} else {
		took(e, l->rsn);
		buf_free(e, l->buf);
		if (!l->pull && wire_chance(&d->wire, d->cie)) {
			e->refusals++;
			o.verdict = FA_CIE;
			o.ulp_code = (uint8_t)l->rsn;
		}
	}
	fa_outcome(e->c, d->now, &o);
	if (o.verdict == FA_TAKEN && l->pull)
		fa_pull_data(e->c, d->now, l->rsn,
			payload(d, e->id, l->rsn, 2, MIN(l->len, d->params[0].mtu)));
}

static void
request(struct duo_end *e, const struct fa_delivery *f)
{
	struct duo *d = e->duo;
	bool pull = f->type == FA_PULL;
	struct duo_later l = {.rsn = f->rsn,
		.pull = pull,
		.len = f->request_len,
		.buf = f->buf,
		.restart = f->restart};

	check(d, !e->id, f->rsn, pull, f->buf);
	if (!d->think_ns) {
		answer(e, &l);
		return;
	}
	if (e->laters == d->rsns) {
		fault(d, "too many deliveries", f->rsn);
		return;
	}
	l.at = d->now + wire_random(&d->wire) % d->think_ns;
	/* Ordered: each outcome comes after the one before it. */
	if (e->laters && ordered(e) && l.at < e->later[e->laters - 1].at)
		l.at = e->later[e->laters - 1].at;
	e->later[e->laters++] = l;
}

static void
think(struct duo_end *e)
{
	uint32_t n = e->laters, kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct duo_later l = e->later[i];

		if (l.at > e->duo->now)
			e->later[kept++] = l;
		else
			answer(e, &l);
	}
	/* Keeps those that were delivered meanwhile. */
	memmove(e->later + kept, e->later + n, (e->laters - n) * sizeof(*e->later));
	e->laters -= n - kept;
}

/* ---- The ULP as initiator ---- */

static void
finished(struct duo_end *e, const struct fa_delivery *f)
{
	struct duo *d = e->duo;
	uint32_t i = f->rsn - e->first_rsn;

	if (i >= e->posted || e->done[i]) {
		fault(d, "a completion of nothing, or a second one", f->rsn);
		buf_free(e, f->buf);
		return;
	}
	if (ordered(e) && i != e->next_done++)
		fault(d, "completions out of order", f->rsn);
	e->done[i] = (uint8_t)(1 + (f->type == FA_COMPLETION ? f->completion : FA_DONE));
	if (f->type == FA_PULL_DATA) {
		if (!e->is_pull[i])
			peer_fault(d, "pull data for a push", f->rsn);
		check(d, !e->id, f->rsn, 2, f->buf);
		buf_free(e, f->buf);
	} else if (f->completion == FA_DONE && e->is_pull[i]) {
		peer_fault(d, "a pull that is done without data", f->rsn);
	} else if (f->completion == FA_TARGET_CIE && f->ulp_code != (uint8_t)f->rsn) {
		peer_fault(d, "another code than the ULP gave", f->rsn);
	}
	e->finished++;
}

static bool
deliver(void *ctx, struct fa_conn *c, const struct fa_delivery *f)
{
	struct duo_end *e = ctx;

	if (e->busy || wire_chance(&e->duo->wire, e->duo->busy)) {
		e->busy = true;
		return false;
	}
	if (f->type == FA_PUSH || f->type == FA_PULL)
		request(e, f);
	else
		finished(e, f);
	return true;
}

static void
event(void *ctx, struct fa_conn *c, enum fa_event ev)
{
	struct duo_end *e = ctx;

	e->dead |= ev == FA_EV_DEAD;
}

static int
output(void *ctx, struct fa_conn *c, const struct fa_out *out)
{
	struct duo_end *e = ctx;

	if (out->hdr->type == FALCON_PUSH_DATA && out->hdr->request_len != out->payload->len)
		fault(e->duo, "request length of a push", out->hdr->rsn);
	wire_send(&e->duo->wire, e->duo->now, e->id, out);
	return 0;
}

void
duo_push(struct duo *d, unsigned end, uint32_t len)
{
	struct duo_end *e = &d->end[end];
	uint32_t rsn = e->first_rsn + e->posted;

	e->is_pull[e->posted++] = false;
	fa_push(e->c, d->now, payload(d, end, rsn, 0, len));
}

void
duo_pull(struct duo *d, unsigned end, uint32_t len)
{
	struct duo_end *e = &d->end[end];
	uint32_t rsn = e->first_rsn + e->posted;

	e->is_pull[e->posted++] = true;
	fa_pull(e->c, d->now, payload(d, end, rsn, 1, 16), len);
}

uint32_t
duo_outstanding(const struct duo *d, unsigned end)
{
	return d->end[end].posted - d->end[end].finished;
}

/* ---- Creation, time and end ---- */

void
duo_init(struct duo *d, uint64_t seed)
{
	memset(d, 0, sizeof(*d));
	fa_config_default(&d->cfg);
	d->cfg.max_conns = 2;
	d->cfg.seed = seed;
	d->wire.seed = seed;
	d->wire.delay_ns = 10000;
	d->wire.jitter_ns = 20000;
	d->now = 5000000000;
	d->payload = 256;
	d->rsns = DUO_RSNS;
	for (unsigned i = 0; i < 2; i++) {
		struct fa_params *p = &d->params[i];

		d->end[i].duo = d;
		d->end[i].id = i;
		p->cid = 0x100 + i;
		p->peer_cid = 0x100 + !i;
		p->protocol = FALCON_RDMA;
		p->ordered = true;
		/* All of them wrap soon. */
		p->tx_request_psn = UINT32_MAX - 20 - i;
		p->tx_data_psn = UINT32_MAX - 40 - i;
		p->tx_rsn = UINT32_MAX - 60 - i;
		p->rx_request_psn = UINT32_MAX - 20 - !i;
		p->rx_data_psn = UINT32_MAX - 40 - !i;
		p->rx_rsn = UINT32_MAX - 60 - !i;
		p->mtu = 4096;
		p->flows = 1;
	}
}

void
duo_small_pools(struct duo *d)
{
	d->cfg.pools = (struct fa_pools){
		.tx_pkt_req = 512,
		.tx_buf_req = 512 * 64,
		.tx_pkt_data = 2,
		.tx_buf_data = 2 * 64,
		.rx_pkt_ulp = 512,
		.rx_buf_ulp = 512 * 8,
		.rx_pkt_net = 3,
		.rx_buf_net = 24,
		.rx_pkt_red = 2,
		.rx_buf_red = 16,
		.pulls = 256, /* the number of requests that tests have outstanding */
		.tx_cell = 64,
		.rx_cell = 512,
	};
}

bool
duo_start(struct duo *d)
{
	static const struct fa_ops ops = {output, deliver, buf_free, event};

	for (unsigned i = 0; i < 2; i++) {
		struct duo_end *e = &d->end[i];

		e->first_rsn = d->params[i].tx_rsn;
		e->done = calloc(d->rsns, 1);
		e->taken = calloc(d->rsns, 1);
		e->is_pull = calloc(d->rsns, sizeof(*e->is_pull));
		e->later = calloc(d->rsns, sizeof(*e->later));
		e->s = fa_stack_create(&d->cfg, &ops, e, d->now);
		if (e->s == NULL || fa_conn_create(e->s, d->now, &d->params[i], &e->c))
			return false;
	}
	return true;
}

static void
arrive(struct duo *d, struct wire_packet *p)
{
	struct duo_end *e = &d->end[p->to];
	struct wire_falcon h;
	struct fa_in in = {.hdr = &h,
		.stamp = p->stamp,
		.path = p->path,
		.ttl = (uint8_t)(d->cfg.ttl - 2),
		.ce = p->ce};
	int rc = wire_falcon_parse(&h, p->bytes, p->len);

	if (rc < 0) {
		peer_fault(d, "a packet that cannot be parsed", 0);
	} else {
		if (p->len > (unsigned)rc) {
			in.payload = buf_new(d, p->len - (unsigned)rc);
			memcpy(in.payload->data, p->bytes + rc, in.payload->len);
		}
		fa_input(e->c, d->now, &in);
	}
	free(p);
}

static uint64_t
next_event(const struct duo *d)
{
	uint64_t next = wire_next(&d->wire);

	for (unsigned i = 0; i < 2; i++) {
		const struct duo_end *e = &d->end[i];

		next = MIN(next, fa_stack_deadline(e->s));
		if (e->busy)
			next = d->now;
		for (uint32_t k = 0; k < e->laters; k++)
			next = MIN(next, e->later[k].at);
	}
	return next;
}

void
duo_step(struct duo *d, uint64_t min_ns, uint64_t max_ns)
{
	uint64_t next = next_event(d);
	struct wire_packet *p;

	d->now = next < d->now + min_ns ? d->now + min_ns : MIN(next, d->now + max_ns);
	while ((p = wire_take(&d->wire, d->now)) != NULL)
		arrive(d, p);
	for (unsigned i = 0; i < 2; i++) {
		struct duo_end *e = &d->end[i];

		think(e);
		if (e->busy) {
			e->busy = false;
			fa_deliver_resume(e->c, d->now);
		}
		fa_stack_poll(e->s, d->now, 64);
	}
}

static void
forget_deliveries(struct duo_end *e)
{
	for (uint32_t k = 0; k < e->laters; k++)
		buf_free(e, e->later[k].buf);
	e->laters = 0;
}

bool
duo_reconnect(struct duo *d)
{
	wire_drop_all(&d->wire);
	for (unsigned i = 0; i < 2; i++) {
		struct duo_end *e = &d->end[i];

		fa_conn_destroy(e->c);
		forget_deliveries(e);
		memset(e->done, 0, d->rsns);
		memset(e->taken, 0, d->rsns);
		e->posted = e->finished = e->next_done = 0;
		e->any_taken = e->refusing = e->busy = e->dead = false;
		if (fa_conn_create(e->s, d->now, &d->params[i], &e->c))
			return false;
	}
	return true;
}

static bool
quiet(const struct duo *d)
{
	struct fa_info info;

	for (unsigned i = 0; i < 2; i++) {
		fa_get_info(d->end[i].c, &info);
		if (duo_outstanding(d, i) || d->end[i].laters || info.queued ||
			info.request_outstanding || info.data_outstanding)
			return false;
	}
	return wire_next(&d->wire) == SK_NEVER;
}

bool
duo_settle(struct duo *d, uint64_t ns)
{
	for (uint64_t end = d->now + ns; d->now < end && d->fault == NULL;) {
		if (quiet(d))
			return true;
		duo_step(d, 1000, end - d->now);
	}
	return false;
}

bool
duo_end(struct duo *d)
{
	for (unsigned i = 0; i < 2; i++) {
		struct duo_end *e = &d->end[i];

		forget_deliveries(e);
		if (e->s != NULL)
			fa_stack_destroy(e->s);
		free(e->done);
		free(e->taken);
		free(e->is_pull);
		free(e->later);
	}
	wire_drop_all(&d->wire);
	if (d->bufs)
		fault(d, "buffers are left", d->bufs);
	return d->fault == NULL;
}
