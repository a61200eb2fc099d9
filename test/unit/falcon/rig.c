/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rig for packet delivery: recorder of transactions, and a congestion algorithm that the test
 * sets.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

struct rig rig;

/* ---- The algorithm ---- */

static void
alg_init(struct fa_cc *cc, struct fa_cc_nic *nic, const void *param)
{
	cc->fcwnd = rig.fcwnd;
	cc->ipg = rig.ipg;
	cc->metadata = rig.metadata;
	if (nic != NULL)
		nic->ncwnd = rig.ncwnd;
}

static void
alg_run(struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_rue_event *ev,
	struct fa_rue_result *res, const void *param)
{
	cr_assert_lt(rig.evs, RIG_LOG);
	rig.ev[rig.evs++] = *ev;
	if (ev->type != FA_RUE_RETRANSMIT)
		cc->rtt = ev->t4 - ev->t1;
	cc->rto = cc->rto_min;
	cc->fcwnd = rig.fcwnd;
	cc->ipg = rig.ipg;
	cc->metadata = rig.metadata;
	nic->ncwnd = rig.ncwnd;
	res->randomize_path = rig.repath;
	rig.repath = false;
}

static const struct fa_algorithm alg = {.name = "rig", .init = alg_init, .run = alg_run};

/* ---- The owner ---- */

static int
output(void *ctx, struct fa_conn *c, const struct fa_out *out)
{
	uint8_t bytes[FALCON_MAX];
	struct rig_sent *s = &rig.sent[rig.sents];
	unsigned len;

	if (rig.output_rc)
		return rig.output_rc;
	if (c == rig.full)
		return -EAGAIN;
	cr_assert_lt(rig.sents, RIG_LOG);
	rig.sents++;
	*s = (struct rig_sent){.at = rig.now,
		.len = out->payload != NULL ? out->payload->len : 0,
		.stamp = out->stamp,
		.path = out->path,
		.again = out->retransmission};
	/* Through the wire format, so that fields that a type does not carry are not visible. */
	len = wire_falcon_emit(bytes, out->hdr);
	cr_assert_eq(wire_falcon_parse(&s->h, bytes, len + s->len), (int)len);
	return 0;
}

static bool
deliver(void *ctx, struct fa_conn *c, const struct fa_delivery *d)
{
	return true;
}

static void
buf_free(void *ctx, struct fa_buf *b)
{
	rig.bufs--;
	free(b);
}

static void
event(void *ctx, struct fa_conn *c, enum fa_event ev)
{
}

static struct fa_buf *
buf_new(uint32_t len)
{
	struct fa_buf *b = calloc(1, sizeof(*b) + len);

	b->data = (uint8_t *)(b + 1);
	b->len = b->data_len = len;
	rig.bufs++;
	return b;
}

void
rig_init(void)
{
	memset(&rig, 0, sizeof(rig));
	fa_config_default(&rig.cfg);
	rig.cfg.max_conns = 4;
	rig.cfg.rack = false;
	rig.cfg.ar_percent = 0;
	rig.cfg.ar_window = 0;
	rig.params = (struct fa_params){
		.cid = 0x111111,
		.peer_cid = 0x222222,
		.peer_function = 0x333333,
		.protocol = FALCON_RDMA,
		.ordered = true,
		.tx_request_psn = 100,
		.tx_data_psn = 300,
		.rx_request_psn = 1100,
		.rx_data_psn = 1300,
		.mtu = 4096,
		.flows = 1,
		.algorithm = &alg,
	};
	rig.fcwnd = rig.ncwnd = 256 * FA_CWND_ONE;
	rig.take = TL_TAKEN;
	rig.ulp_acks = true;
	rig.now = 1000000000;
}

void
rig_start(void)
{
	static const struct fa_ops ops = {output, deliver, buf_free, event};

	rig.s = fa_stack_create(&rig.cfg, &ops, NULL, rig.now);
	cr_assert_not_null(rig.s);
	cr_assert_eq(fa_conn_create(rig.s, rig.now, &rig.params, &rig.c), 0);
}

void
rig_end(void)
{
	fa_stack_destroy(rig.s);
	cr_assert_eq(rig.packets, 0, "%u packets left", rig.packets);
	cr_assert_eq(rig.bufs, 0, "%u buffers left", rig.bufs);
}

struct fa_pkt *
rig_send(uint8_t type, uint32_t rsn)
{
	struct fa_pkt *p = calloc(1, sizeof(*p));

	p->type = type;
	p->rsn = rsn;
	p->buf = buf_new(8);
	p->request_len = type == FALCON_PULL_REQUEST ? 4096 : 8;
	rig.packets++;
	pdl_send(rig.c, rig.now, p);
	return p;
}

void
rig_pushes(uint32_t rsn, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		rig_send(FALCON_PUSH_DATA, rsn + i);
}

unsigned
rig_run(uint64_t ns)
{
	rig.now += ns;
	return fa_stack_poll(rig.s, rig.now, RIG_LOG);
}

unsigned
rig_let(uint64_t ns)
{
	unsigned n = 0;

	for (uint64_t end = rig.now + ns; rig.now < end;)
		n += rig_run(SK_MIN(2 * US, end - rig.now));
	return n;
}

void
rig_in_as(struct wire_falcon h, uint32_t path, uint8_t ttl, bool ce)
{
	struct fa_in in = {
		.hdr = &h, .path = path, .ttl = ttl, .ce = ce, .stamp = fa_ticks(rig.now)};

	h.cid = rig.params.cid;
	h.proto = rig.params.protocol;
	if (h.type == FALCON_BACK || h.type == FALCON_EACK || h.type == FALCON_NACK) {
		if (!h.t1) {
			h.t1 = fa_ticks(rig.now - RTT);
			h.t2 = fa_ticks(rig.now - RTT / 2);
		}
		in.stamp = h.t2;
	} else if (h.type == FALCON_PUSH_DATA || h.type == FALCON_PULL_DATA) {
		in.payload = buf_new(h.request_len ? h.request_len : 8);
	}
	fa_input(rig.c, rig.now, &in);
}

void
rig_in(struct wire_falcon h)
{
	if (h.type != FALCON_BACK && h.type != FALCON_EACK && h.type != FALCON_NACK && !h.dbpsn) {
		h.rbpsn = rig.c->pdl.tx[PDL_REQUEST].base;
		h.dbpsn = rig.c->pdl.tx[PDL_DATA].base;
	}
	rig_in_as(h, 0, rig.cfg.ttl, false);
}

void
rig_back(uint32_t rbpsn, uint32_t dbpsn)
{
	rig_in((struct wire_falcon){.type = FALCON_BACK, .rbpsn = rbpsn, .dbpsn = dbpsn});
}

const struct rig_sent *
rig_last(uint8_t type)
{
	for (unsigned i = rig.sents; i-- > 0;)
		if (rig.sent[i].h.type == type)
			return &rig.sent[i];
	return NULL;
}

unsigned
rig_count(uint8_t type)
{
	unsigned n = 0;

	for (unsigned i = 0; i < rig.sents; i++)
		n += rig.sent[i].h.type == type;
	return n;
}

void
rig_expect_rsns(unsigned from, const uint32_t *rsn, unsigned n)
{
	cr_assert_eq(rig.sents - from, n, "%u packets were sent, not %u", rig.sents - from, n);
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(rig.sent[from + i].h.rsn, rsn[i], "packet %u has RSN %u, not %u", i,
			rig.sent[from + i].h.rsn, rsn[i]);
}

uint64_t
rig_reason(enum fa_reason r)
{
	return fa_stack_counters(rig.s)[r];
}

/* ---- Transactions ---- */

bool
tl_rx_is_next(const struct fa_conn *c, const struct wire_falcon *h)
{
	return h->rsn == rig.next_rsn;
}

enum tl_take
tl_rx(struct fa_conn *c, uint64_t now, const struct wire_falcon *h, struct fa_buf *payload,
	bool again)
{
	cr_assert_lt(rig.rxs, RIG_LOG);
	rig.rx[rig.rxs++] = (struct rig_rx){h->type, h->psn, h->rsn, again};
	if (rig.take != TL_TAKEN)
		return rig.take;
	if (payload != NULL)
		buf_free(NULL, payload);
	if (h->type == FALCON_PUSH_DATA && rig.ulp_acks)
		pdl_ulp_ack(c, now, h->psn);
	return TL_TAKEN;
}

bool
tl_run_ready(const struct fa_conn *c)
{
	return rig.take == TL_TAKEN;
}

bool
tl_run_accept(struct fa_conn *c, uint64_t now, const struct wire_falcon_plain *h)
{
	cr_assert_lt(rig.rxs, RIG_LOG);
	rig.rx[rig.rxs++] = (struct rig_rx){h->type, h->psn, h->rsn, false};
	return true;
}

uint32_t
tl_run_room(const struct fa_conn *c)
{
	return 0;
}

void
tl_run_pushes(struct fa_conn *c, uint32_t n)
{
}

void
tl_pkt_free(struct fa_conn *c, struct fa_pkt *p)
{
	if (p->buf != NULL)
		buf_free(NULL, p->buf);
	rig.packets--;
	free(p);
}

void
tl_sent(struct fa_conn *c, uint64_t now, struct fa_pkt *p, enum fa_completion how, uint8_t ulp_code)
{
	cr_assert_lt(rig.dones, RIG_LOG);
	rig.done[rig.dones++] = (struct rig_done){p->type, (uint8_t)how, ulp_code, p->psn, p->rsn};
	tl_pkt_free(c, p);
}

void
tl_all_sent(struct fa_conn *c, uint64_t now, struct fa_pkt *const *p, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		tl_sent(c, now, p[i], FA_DONE, p[i]->ulp_code);
}

enum tl_take
tl_resynced(struct fa_conn *c, uint64_t now, const struct wire_falcon *h)
{
	if (rig.take == TL_REFUSED)
		return TL_REFUSED;
	rig.rx[rig.rxs++] = (struct rig_rx){FALCON_RESYNC, h->psn, h->rsn, false};
	return TL_TAKEN;
}

void
tl_dead(struct fa_conn *c, uint64_t now, enum fa_completion code)
{
	rig.deaths++;
	rig.death_code = code;
}

uint8_t
tl_rx_level(const struct fa_stack *s)
{
	return rig.level;
}

void
tl_run(struct fa_conn *c, uint64_t now)
{
}

void
tl_config_default(struct fa_config *cfg)
{
}

int
tl_stack_init(struct fa_stack *s, uint64_t now)
{
	return 0;
}

void
tl_stack_fini(struct fa_stack *s)
{
}

int
tl_conn_init(struct fa_conn *c, uint64_t now)
{
	return 0;
}

void
tl_conn_fini(struct fa_conn *c)
{
}

void
tl_poll(struct fa_stack *s, uint64_t now)
{
}

void
tl_timer(struct fa_conn *c, uint64_t now)
{
}

uint64_t
tl_deadline(const struct fa_stack *s)
{
	return SK_NEVER;
}
