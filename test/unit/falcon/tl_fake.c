/* SPDX-License-Identifier: BSD-3-Clause */
#include "tl_fake.h"

#include <stdlib.h>
#include <string.h>

struct fake fk;

static struct fake_entry *
note(enum fake_kind kind, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	struct fake_entry *e = &fk.log[fk.count];

	cr_assert_lt(fk.count, FAKE_LOG - 1);
	fk.count++;
	*e = (struct fake_entry){kind, a, b, c, d, false, NULL};
	return e;
}

/* ---- Packet delivery, as declared in lib/falcon/falcon_priv.h ---- */

void
pdl_send(struct fa_conn *c, uint64_t now, struct fa_pkt *p)
{
	cr_assert(!c->dead);
	cr_assert_lt(fk.sent_count, FAKE_SENT);
	fk.sent[fk.sent_count] = p;
	fk.sent_by[fk.sent_count++] = c;
	note(F_SEND, p->type, p->rsn, p->buf != NULL ? p->buf->len : 0, p->request_len);
}

static void
forget(unsigned i)
{
	fk.sent_count--;
	memmove(&fk.sent[i], &fk.sent[i + 1], (fk.sent_count - i) * sizeof(fk.sent[0]));
	memmove(&fk.sent_by[i], &fk.sent_by[i + 1], (fk.sent_count - i) * sizeof(fk.sent_by[0]));
}

static unsigned
index_of(const struct fa_pkt *p)
{
	unsigned i;

	for (i = 0; i < fk.sent_count && fk.sent[i] != p; i++)
		;
	cr_assert_lt(i, fk.sent_count, "a packet that PDL does not have");
	return i;
}

bool
pdl_withdraw(
	struct fa_conn *c, uint64_t now, struct fa_pkt *p, uint8_t code, enum fa_completion how)
{
	note(F_WITHDRAW, p->type, p->rsn, code, 0);
	if (fk.withdraw) {
		forget(index_of(p));
		return true;
	}
	fa_buf_free(c->s, p->buf);
	p->buf = NULL;
	return false;
}

void
pdl_implied_ack(struct fa_conn *c, uint64_t now, struct fa_pkt *p)
{
	forget(index_of(p));
	tl_sent(c, now, p, FA_DONE, 0);
}

void
pdl_ulp_ack(struct fa_conn *c, uint64_t now, uint32_t psn)
{
	note(F_ACK, 0, psn, 0, 0);
}

void
pdl_ulp_acks(struct fa_conn *c, uint64_t now, uint32_t psn, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		pdl_ulp_ack(c, now, psn + i);
}

void
pdl_nack(struct fa_conn *c, uint64_t now, bool request, uint32_t psn, uint8_t code, uint8_t rnr,
	uint8_t ulp_code)
{
	cr_assert(!request);
	note(F_NACK, code, psn, rnr, ulp_code);
}

uint32_t
pdl_data_in_doubt(const struct fa_conn *c, uint64_t now)
{
	return fk.in_doubt;
}

void
fa_tl_timer(struct fa_conn *c, uint64_t deadline)
{
	fk.timer[c - fk.c] = deadline;
}

void
fa_conn_fail(struct fa_conn *c, uint64_t now, enum fa_completion code)
{
	if (c->dead)
		return;
	c->dead = true;
	c->fail_code = (uint8_t)code;
	note(F_FAIL, code, (uint32_t)(c - fk.c), 0, 0);
}

void
fake_bury(unsigned i)
{
	struct fa_conn *c = &fk.c[i];
	struct fa_pkt *p;
	unsigned j;

	cr_assert(c->dead);
	for (j = 0; j < fk.sent_count;) {
		if (fk.sent_by[j] != c) {
			j++;
			continue;
		}
		p = fk.sent[j];
		forget(j);
		tl_sent(c, fk.now, p, c->fail_code, 0);
	}
	tl_dead(c, fk.now, c->fail_code);
}

/* ---- The ULP ---- */

static bool
deliver(void *ctx, struct fa_conn *c, const struct fa_delivery *d)
{
	struct fake_entry *e;

	if (fk.room == 0)
		return false;
	fk.room--;
	e = note(F_DELIVER, d->type, d->rsn, d->completion,
		d->type == FA_COMPLETION ? d->ulp_code : d->request_len);
	e->buf = d->buf;
	e->restart = d->restart;
	if (fk.react != NULL)
		fk.react(c, d);
	return true;
}

static void
buf_free(void *ctx, struct fa_buf *b)
{
	fk.bufs--;
	free(b);
}

static void
event(void *ctx, struct fa_conn *c, enum fa_event ev)
{
	note(F_EVENT, ev, c != NULL ? 1 + (uint32_t)(c - fk.c) : 0, 0, 0);
}

static const struct fa_ops ops = {.deliver = deliver, .buf_free = buf_free, .event = event};

/* ---- The harness ---- */

void
fake_start(bool ordered, void (*tune)(struct fa_config *cfg, struct fa_params *p))
{
	struct fa_params p = {
		.ordered = ordered, .mtu = 4096, .tx_rsn = 1, .rx_rsn = 1, .protocol = FALCON_RDMA};
	unsigned i;

	fk = (struct fake){.now = 1000000, .room = UINT32_MAX};
	tl_config_default(&fk.s.cfg);
	if (tune != NULL)
		tune(&fk.s.cfg, &p);
	fk.s.ops = ops;
	cr_assert_eq(tl_stack_init(&fk.s, fk.now), 0);
	for (i = 0; i < FAKE_CONNS; i++) {
		fk.c[i].s = &fk.s;
		fk.c[i].params = p;
		fk.timer[i] = SK_NEVER;
		cr_assert_eq(tl_conn_init(&fk.c[i], fk.now), 0);
		cr_assert_eq(fa_conn_share(&fk.c[i], i % SK_MAX(fk.s.cfg.shares.users, 1u)), 0);
	}
}

static void
assert_empty(const struct tl_stack *t)
{
	const struct tl_region *r[] = {&t->tx_pkt_req, &t->tx_buf_req, &t->rx_pkt_ulp,
		&t->rx_buf_ulp, &t->tx_pkt_data, &t->tx_buf_data, &t->rx_pkt_net, &t->rx_buf_net};
	unsigned i;

	for (i = 0; i < SK_ARRAY_LEN(r); i++)
		cr_assert_eq(r[i]->used, 0, "region %u still has %u", i, r[i]->used);
	for (i = 0; i < 1u << t->pulls.bits; i++)
		cr_assert_null(t->pulls.bucket[i]);
	for (i = 0; i < 1u << t->requests.bits; i++)
		cr_assert_null(t->requests.bucket[i]);
	for (i = 0; i < TL_KINDS; i++)
		cr_assert(t->waits[i].count == 0 && TAILQ_EMPTY(&t->waits[i].users));
	cr_assert_eq(tl_shares_held(t), 0);
	cr_assert(TAILQ_EMPTY(&t->evictable));
}

void
fake_stop(void)
{
	unsigned i;

	while (fk.sent_count) {
		fk.sent_count--;
		tl_pkt_free(fk.sent_by[fk.sent_count], fk.sent[fk.sent_count]);
	}
	for (i = 0; i < FAKE_CONNS; i++) {
		tl_conn_fini(&fk.c[i]);
		cr_assert_eq(fk.timer[i], SK_NEVER);
	}
	assert_empty(&fk.s.tl);
	tl_stack_fini(&fk.s);
	for (i = 0; i < fk.count; i++) { /* payloads that the ULP still has */
		if (fk.log[i].buf != NULL)
			buf_free(NULL, fk.log[i].buf);
	}
	cr_assert_eq(fk.bufs, 0, "%ld payloads leaked", fk.bufs);
}

struct fa_buf *
fake_buf(uint32_t len)
{
	struct fa_buf *b = calloc(1, sizeof(*b));

	cr_assert_not_null(b);
	b->len = len;
	fk.bufs++;
	return b;
}

/* As fa_input() does: frees what TL does not keep, and calls tl_run() last. */
static enum tl_take
rx(unsigned i, struct wire_falcon *h, uint32_t len, bool again)
{
	struct fa_buf *b = fake_buf(len);
	enum tl_take take = tl_rx(&fk.c[i], fk.now, h, b, again);

	if (take != TL_TAKEN)
		buf_free(NULL, b);
	tl_run(&fk.c[i], fk.now);
	return take;
}

enum tl_take
fake_rx(unsigned i, uint8_t type, uint32_t rsn, uint32_t psn, uint32_t len)
{
	struct wire_falcon h = {.type = type, .rsn = rsn, .psn = psn};

	h.request_len = type == FALCON_PUSH_DATA ? (uint16_t)len : 0;
	return rx(i, &h, len, false);
}

enum tl_take
fake_rx_again(unsigned i, uint32_t rsn, uint32_t psn, uint32_t len)
{
	struct wire_falcon h = {
		.type = FALCON_PUSH_DATA, .rsn = rsn, .psn = psn, .request_len = (uint16_t)len};

	return rx(i, &h, len, true);
}

enum tl_take
fake_rx_pull(unsigned i, uint32_t rsn, uint32_t psn, uint32_t response_len)
{
	struct wire_falcon h = {.type = FALCON_PULL_REQUEST,
		.rsn = rsn,
		.psn = psn,
		.request_len = (uint16_t)response_len};

	return rx(i, &h, 28, false);
}

enum tl_take
fake_resync(unsigned i, uint8_t type, uint32_t rsn, uint32_t psn)
{
	struct wire_falcon h = {.type = FALCON_RESYNC, .resync_type = type, .rsn = rsn, .psn = psn};
	enum tl_take take = tl_resynced(&fk.c[i], fk.now, &h);

	tl_run(&fk.c[i], fk.now);
	return take;
}

void
fake_sent(unsigned i, uint8_t type, uint32_t rsn, enum fa_completion how, uint8_t ulp_code)
{
	struct fa_pkt *p;
	unsigned j;

	for (j = 0; j < fk.sent_count; j++) {
		p = fk.sent[j];
		if (fk.sent_by[j] != &fk.c[i] || p->type != type || p->rsn != rsn)
			continue;
		forget(j);
		tl_sent(&fk.c[i], fk.now, p, how, ulp_code);
		tl_run(&fk.c[i], fk.now);
		return;
	}
	cr_assert_fail("no packet of type %u with RSN %u", type, rsn);
}

/* Returns the delivery of a request that is with the ULP. */
static struct fake_entry *
ulp_has(uint32_t rsn)
{
	unsigned i = fk.count;

	while (i--) {
		struct fake_entry *e = &fk.log[i];

		if (e->kind == F_DELIVER && e->b == rsn && e->buf != NULL &&
			(e->a == FA_PUSH || e->a == FA_PULL))
			return e;
	}
	return NULL;
}

void
fake_outcome(unsigned i, uint32_t rsn, enum fa_verdict v)
{
	struct fa_outcome o = {.rsn = rsn, .verdict = v, .ulp_code = 0x5a};
	struct fake_entry *e = ulp_has(rsn);

	if (e != NULL) {
		buf_free(NULL, e->buf);
		e->buf = NULL;
	}
	fa_outcome(&fk.c[i], fk.now, &o);
}

void
fake_rnr(unsigned i, uint32_t rsn, uint8_t code)
{
	struct fake_entry *e = ulp_has(rsn);
	struct fa_outcome o = {.rsn = rsn, .verdict = FA_RNR, .rnr = code};

	cr_assert_not_null(e);
	o.buf = e->buf;
	e->buf = NULL;
	fa_outcome(&fk.c[i], fk.now, &o);
}

void
fake_wait(uint64_t ns)
{
	uint64_t end = fk.now + ns;
	unsigned i;

	for (;;) {
		i = fk.timer[0] <= fk.timer[1] ? 0 : 1;
		if (fk.timer[i] > end)
			break;
		fk.now = SK_MAX(fk.now, fk.timer[i]);
		fk.timer[i] = SK_NEVER;
		tl_timer(&fk.c[i], fk.now);
	}
	fk.now = end;
}

/* ---- Reading the log ---- */

struct fake_entry *
fake_next(enum fake_kind kind)
{
	struct fake_entry *e = &fk.log[fk.read];

	cr_assert_lt(fk.read, fk.count, "nothing more happened; wanted kind %d", kind);
	cr_assert_eq(e->kind, kind, "entry %u is of kind %d, not %d", fk.read, e->kind, kind);
	fk.read++;
	return e;
}

struct fake_entry *
fake_expect(enum fa_delivery_type type, uint32_t rsn)
{
	struct fake_entry *e = fake_next(F_DELIVER);

	cr_assert_eq(e->a, (uint32_t)type, "delivery of type %u, not %u", e->a, type);
	cr_assert_eq(e->b, rsn, "delivery of RSN %u, not %u", e->b, rsn);
	return e;
}

void
fake_quiet(void)
{
	cr_assert_eq(fk.read, fk.count, "kind %d, rsn or psn %u was not expected",
		fk.log[fk.read].kind, fk.log[fk.read].b);
}

uint64_t
fake_counted(enum fa_reason r)
{
	return fk.s.counters[r];
}
