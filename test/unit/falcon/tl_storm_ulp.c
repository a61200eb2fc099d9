/* SPDX-License-Identifier: BSD-3-Clause */
#include "tl_storm.h"

#include <stdlib.h>
#include <string.h>

#include "../../../lib/falcon/conn_priv.h"
#include "../../support/rng.h"

#define MTU       4096
#define QUEUE     2048
#define ORD       2 /* outstanding pulls of a connection */
#define BATCH     8
#define CIE_CODE  0x5a
#define NS_PER_MS 1000000ull

/* The contents of a payload, which the other end checks. */
struct mark {
	uint32_t rsn, conn, from, kind;
};

enum judged { NOTHING, TAKEN, IN_ERROR }; /* the target's verdict on a request */

struct waiting {
	uint64_t due;
	struct fa_delivery d;
	bool data; /* the pull was taken; its data is due */
};

struct end {
	unsigned posted, completed, pulls;
	uint32_t next_completion, next_request; /* ordered: RSN */
	bool refusing, resume;
	uint8_t *judged; /* [requests], of the peer's requests */
	uint8_t *done;   /* [requests], of this end's requests */
	uint32_t *asked;
	struct waiting queue[QUEUE];
	unsigned head, count;
};

uint64_t storm_counted[fa_reason_count];
static struct storm st;
static struct end ends[2][PAIR_CONNS];
static bool killed[PAIR_CONNS];
static unsigned kills;
static uint64_t rng;

static uint32_t
rnd(uint32_t n)
{
	return rng_below(&rng, n);
}

static bool
chance(unsigned in_1000)
{
	return rnd(1000) < in_1000;
}

/* ---- The wire ---- */

static struct pair_fate
wire(const struct pair_packet *p)
{
	struct pair_fate f = {.lose = chance(st.loss)};

	if (chance(st.late))
		f.extra = rnd(30 * PAIR_US);
	if (chance(st.twice))
		f.duplicate = 1 + rnd(50 * PAIR_US);
	return f;
}

/* ---- Initiators ---- */

static struct fa_buf *
marked(uint32_t len, struct mark m)
{
	struct fa_buf *b = pair_buf(len);

	memcpy(b->data, &m, SK_MIN(len, sizeof(m)));
	return b;
}

static void
check_mark(const struct fa_buf *b, struct mark m)
{
	if (b != NULL)
		cr_assert_eq(memcmp(b->data, &m, SK_MIN(b->len, sizeof(m))), 0,
			"another's payload for RSN %u", m.rsn);
}

static uint32_t
size(void)
{
	return chance(st.big) ? rnd(MTU + 1) : rnd(64);
}

static void
post(unsigned node, unsigned conn)
{
	struct end *e = &ends[node][conn];
	struct fa_conn *c = pair.n[node].c[conn];
	uint32_t len = size(), rsn = st.rsn + e->posted;

	e->asked[e->posted] = len;
	e->posted++;
	if (e->pulls < ORD && chance(st.pulls)) {
		e->pulls++;
		fa_pull(c, pair.now,
			marked(28, (struct mark){rsn, conn, node, FALCON_PULL_REQUEST}), len);
	} else {
		fa_push(c, pair.now, marked(len, (struct mark){rsn, conn, node, FALCON_PUSH_DATA}));
	}
}

static void
completed(unsigned node, unsigned conn, const struct fa_delivery *d)
{
	struct end *e = &ends[node][conn];
	uint32_t i = d->rsn - st.rsn;
	uint8_t judged;

	cr_assert_lt(i, e->posted, "RSN %u was never used", d->rsn);
	cr_assert(!e->done[i], "RSN %u is completed twice", d->rsn);
	if (st.ordered)
		cr_assert_eq(d->rsn, e->next_completion, "completed out of order");
	e->next_completion++;
	e->done[i] = 1;
	e->completed++;
	judged = ends[!node][conn].judged[i];
	if (killed[conn] && d->type == FA_COMPLETION &&
		(d->completion == FA_DEAD_CONNECTION || d->completion == FA_LOCAL_TIMEOUT))
		return; /* the result of the request is undefined */
	if (d->type == FA_COMPLETION) {
		cr_assert_eq(d->completion, judged == TAKEN ? FA_DONE : FA_TARGET_CIE,
			"RSN %u: completion %u, but the target's verdict was %u", d->rsn,
			d->completion, judged);
		cr_assert_eq(d->ulp_code, judged == TAKEN ? 0 : CIE_CODE);
		return;
	}
	cr_assert_eq(judged, TAKEN);
	e->pulls--;
	if (d->buf != NULL) {
		cr_assert_leq(d->buf->len, e->asked[i]);
		check_mark(d->buf, (struct mark){d->rsn, conn, !node, FALCON_PULL_DATA});
		pair_buf_free(d->buf);
	}
}

/* ---- Targets: a queue, as over a ring, with a verdict for each in order ---- */

static void
enqueue(struct end *e, const struct fa_delivery *d, bool data)
{
	struct waiting *w = &e->queue[(e->head + e->count) % QUEUE];

	cr_assert_lt(e->count, QUEUE);
	e->count++;
	*w = (struct waiting){pair.now + rnd((uint32_t)st.verdict_ns + 1), *d, data};
}

static bool
deliver(unsigned node, unsigned conn, const struct fa_delivery *d)
{
	struct end *e = &ends[node][conn];

	if (chance(st.full)) {
		e->resume = true;
		return false;
	}
	if (d->type == FA_PUSH || d->type == FA_PULL)
		enqueue(e, d, false);
	else
		completed(node, conn, d);
	return true;
}

static bool
is_refused(struct end *e, const struct fa_delivery *d)
{
	if (st.ordered && d->restart)
		e->refusing = false;
	if (st.ordered && e->refusing)
		return true;
	e->refusing = chance(st.rnr);
	return e->refusing;
}

static void
judge(unsigned node, unsigned conn, struct fa_delivery *d)
{
	struct end *e = &ends[node][conn];
	struct fa_outcome o = {.rsn = d->rsn};
	uint32_t i = d->rsn - st.rsn;
	bool push = d->type == FA_PUSH;

	check_mark(d->buf,
		(struct mark){d->rsn, conn, !node, push ? FALCON_PUSH_DATA : FALCON_PULL_REQUEST});
	cr_assert_lt(i, st.requests);
	cr_assert_eq(e->judged[i], NOTHING, "RSN %u is delivered though it was judged", d->rsn);
	if (is_refused(e, d)) {
		o.verdict = FA_RNR;
		o.rnr = st.rnr_code;
		o.buf = d->buf;
	} else {
		if (st.ordered)
			cr_assert_eq(d->rsn, e->next_request, "requests out of order");
		e->next_request++;
		o.verdict = push && chance(st.cie) ? FA_CIE : FA_TAKEN;
		o.ulp_code = CIE_CODE;
		e->judged[i] = o.verdict == FA_TAKEN ? TAKEN : IN_ERROR;
		if (d->buf != NULL)
			pair_buf_free(d->buf);
		d->buf = NULL;
	}
	fa_outcome(pair.n[node].c[conn], pair.now, &o);
	if (!push && o.verdict == FA_TAKEN)
		enqueue(e, d, true);
}

static void
work(unsigned node, unsigned conn)
{
	struct end *e = &ends[node][conn];
	unsigned n;

	for (n = 0; n < BATCH && e->count && e->queue[e->head].due <= pair.now; n++) {
		struct waiting w = e->queue[e->head];
		uint32_t len = rnd(w.d.request_len + 1);

		e->head = (e->head + 1) % QUEUE;
		e->count--;
		if (!w.data)
			judge(node, conn, &w.d);
		else
			fa_pull_data(pair.n[node].c[conn], pair.now, w.d.rsn,
				len ? marked(len,
					      (struct mark){w.d.rsn, conn, node, FALCON_PULL_DATA})
				    : NULL);
	}
	if (e->resume && chance(300)) {
		e->resume = false;
		fa_deliver_resume(pair.n[node].c[conn], pair.now);
	}
}

/* Fails a connection at one end; the other end must detect it. */
static void
kill_one(void)
{
	unsigned conn = rnd(st.conns), node = rnd(2);

	if (kills == st.kills || killed[conn] || ends[node][conn].completed < 20)
		return;
	kills++;
	killed[conn] = true;
	fa_conn_fail(pair.n[node].c[conn], pair.now, FA_DEAD_CONNECTION);
}

static void
tick(void)
{
	unsigned node, k, conn;

	kill_one();
	for (node = 0; node < 2; node++) {
		unsigned first = rnd(st.conns);

		for (k = 0; k < st.conns; k++) {
			conn = (first + k) % st.conns;
			work(node, conn);
			while ((!pair.n[node].xoff || st.overrun) &&
				ends[node][conn].posted < st.requests &&
				ends[node][conn].posted - ends[node][conn].completed < 256 &&
				chance(800))
				post(node, conn);
		}
	}
}

/* ---- The storm ---- */

void
storm_smallest(struct fa_config *cfg)
{
	cfg->pools = (struct fa_pools){.tx_pkt_req = 1,
		.tx_buf_req = MTU / 64,
		.tx_pkt_data = 1,
		.tx_buf_data = MTU / 64,
		.rx_pkt_ulp = 1,
		.rx_buf_ulp = MTU / 512,
		.rx_pkt_net = 1,
		.rx_buf_net = MTU / 512,
		.rx_pkt_red = 1,
		.rx_buf_red = MTU / 512,
		.pulls = st.conns * ORD,
		.tx_cell = 64,
		.rx_cell = 512};
}

static bool
all_done(void)
{
	unsigned node, conn;

	for (node = 0; node < 2; node++)
		for (conn = 0; conn < st.conns; conn++)
			if (ends[node][conn].completed < st.requests)
				return false;
	return true;
}

static void
assert_pools_empty(unsigned node)
{
	const struct tl_stack *t = &pair.n[node].s->tl;
	const struct tl_region *r[] = {&t->tx_pkt_req, &t->tx_buf_req, &t->rx_pkt_ulp,
		&t->rx_buf_ulp, &t->tx_pkt_data, &t->tx_buf_data, &t->rx_pkt_net, &t->rx_buf_net};
	unsigned i;

	for (i = 0; i < SK_ARRAY_LEN(r); i++)
		cr_assert_eq(r[i]->used, 0, "node %u, region %u still has %u", node, i, r[i]->used);
	cr_assert_eq(tl_shares_held(t), 0);
}

/* Destroys the connections in their present state, and frees the ULP's payloads. */
static void
abandon(void)
{
	unsigned node, conn;

	for (node = 0; node < 2; node++) {
		for (conn = 0; conn < st.conns; conn++) {
			struct end *e = &ends[node][conn];

			fa_conn_destroy(pair.n[node].c[conn]);
			for (; e->count; e->count--, e->head = (e->head + 1) % QUEUE)
				if (e->queue[e->head].d.buf != NULL)
					pair_buf_free(e->queue[e->head].d.buf);
		}
		assert_pools_empty(node);
	}
}

static void
prepare(struct end *e)
{
	memset(e, 0, sizeof(*e));
	e->judged = calloc(st.requests, 1);
	e->done = calloc(st.requests, 1);
	e->asked = calloc(st.requests, sizeof(*e->asked));
	e->next_completion = e->next_request = st.rsn;
}

static void
begin(void)
{
	unsigned node, conn;

	rng = st.seed * 0x9e3779b97f4a7c15ull + 1;
	pair_init();
	pair.no_trace = true;
	pair.conns = st.conns;
	pair.wire = wire;
	pair.deliver = deliver;
	pair.tick = tick;
	memset(killed, 0, sizeof(killed));
	kills = 0;
	for (node = 0; node < 2; node++) {
		struct pair_node *n = &pair.n[node];

		if (st.tune != NULL)
			st.tune(&n->cfg);
		n->cfg.ar_percent = 10;
		n->cfg.ar_window = 2;
		n->params.ordered = st.ordered;
		n->params.tx_rsn = st.rsn;
		n->params.tx_request_psn = UINT32_MAX - 20;
		n->params.tx_data_psn = UINT32_MAX - 50 + node;
		n->params.flows = st.flows ? st.flows : 1;
		for (conn = 0; conn < st.conns; conn++)
			prepare(&ends[node][conn]);
	}
	pair_start();
}

static void
end(void)
{
	unsigned node, conn;

	for (node = 0; node < 2; node++) {
		for (unsigned r = 0; r < fa_reason_count; r++)
			storm_counted[r] += pair_counted(node, r);
		/* An end that only waits for pull data does not detect the failure, but its pulls
		 * time out. */
		cr_assert_leq(pair.n[node].deaths, kills);
		for (conn = 0; conn < st.conns; conn++) {
			free(ends[node][conn].judged);
			free(ends[node][conn].done);
			free(ends[node][conn].asked);
		}
	}
	pair_stop();
}

uint64_t
storm_run(const struct storm *storm)
{
	unsigned node, conn;
	uint64_t start;

	st = *storm;
	begin();
	start = pair.now;
	if (st.abandon_ns) {
		pair_run(st.abandon_ns);
		abandon();
		end();
		return st.abandon_ns;
	}
	while (!all_done() && pair.now - start < st.limit_ns)
		pair_run(NS_PER_MS);
	for (node = 0; node < 2; node++)
		for (conn = 0; conn < st.conns; conn++)
			cr_assert_eq(ends[node][conn].completed, st.requests,
				"seed %lu: node %u, connection %u has completed %u of %u", st.seed,
				node, conn, ends[node][conn].completed, st.requests);
	start = pair.now - start;
	/* Last acknowledgements; and the time until an end without any answers gives up. */
	pair_run((st.kills ? 200000 : 3000) * NS_PER_MS);
	for (node = 0; node < 2; node++)
		assert_pools_empty(node);
	end();
	return start;
}
