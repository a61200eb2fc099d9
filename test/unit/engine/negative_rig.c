/* SPDX-License-Identifier: BSD-3-Clause */
/* The victim, its neighbours, and their turns: see negative.h. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/common/mbuf.h"
#include "negative.h"
#include "pair.h"

#define HOME    (8u << 20)
#define MEM     (1u << 20)
#define MSG     16384u /* bytes of a neighbour's message */
#define N_PORT  7472
#define LAYOUT  ((2u * NEG_REGIONS + 1) * NEG_REGION)
#define ALL_REM (RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ | RD_ACC_REMOTE_ATOMIC)

struct neg neg;

struct client {
	struct saker *s;
	struct saker_pd *pd;
	struct saker_cq *cq;
	struct saker_qp *qp;
	struct saker_mr *mr;
	uint8_t *mem; /* one message to send, one to receive */
	void *home;
	struct eng *eng;
	int number;
	uint32_t serial; /* of the message that this client is sending */
	bool sent, come;
};

static struct client victim, near, far; /* near: the victim's neighbour; far: the peer of near */

static void
idle(void *arg)
{
	for (int i = 0; i < 2; i++)
		eng_poll(neg.eng[i], 0, eng_clock());
	raw_switch_turn(&neg.sw);
}

static struct eng *
engine(int i)
{
	struct eng_config *cfg = calloc(1, sizeof(*cfg));
	struct eng *e;
	char err[256];

	eng_config_default(cfg);
	cfg->nports = cfg->nifs = 1;
	cfg->ports[0] = (struct eng_port_config){
		.port_id = neg.sw.port[i], .mtu = 1500, .rxd = 512, .txd = 512};
	cfg->ifs[0] = (struct eng_if_config){.vlan = ETH_NO_VLAN,
		.addr = addr(i == 0 ? PAIR_ADDR_A : PAIR_ADDR_B),
		.prefix = 24};
	cfg->limits.qps = cfg->limits.client_qps = 64;
	cfg->limits.conns = 1024; /* ended connections stay in TIME_WAIT */
	cfg->limits.rx_mbufs = cfg->limits.tx_mbufs = 2048;
	e = eng_create(cfg, err, sizeof(err));
	cr_assert_not_null(e, "%s", err);
	free(cfg);
	return e;
}

static void
attach(struct client *c, struct eng *e)
{
	c->eng = e;
	c->home = aligned_alloc(4096, HOME);
	memset(c->home, 0, HOME);
	c->number = eng_attach_flat(e, "test", c->home, HOME, MEM);
	cr_assert_geq(c->number, 0);
	cr_assert_eq(saker_open_flat(c->home, HOME, idle, NULL, &c->s), 0, "%s", saker_error());
	cr_assert_eq(saker_pd_create(c->s, &c->pd), 0);
	cr_assert_eq(saker_cq_create(c->s, 64, NULL, &c->cq), 0);
}

static void
detach(struct client *c)
{
	saker_close(c->s);
	eng_detach(c->eng, c->number);
	NEG_UNTIL(eng_client_gone(c->eng, c->number), "a client does not go");
	free(c->home);
}

/* ---- The neighbours: a message each way at a time, each byte verified ---- */

static void
fill(uint8_t *p, uint32_t serial)
{
	for (uint32_t i = 0; i < MSG; i++)
		p[i] = (uint8_t)(i * 5 + (i >> 8) + serial * 31);
}

static void
neighbour_receive(struct client *c)
{
	struct rd_sge sge = {(uintptr_t)c->mem + MSG, MSG, saker_mr_stag(c->mr)};
	struct saker_wr wr = {.wr_id = RD_RECV, .nsge = 1, .sge = &sge};

	cr_assert_eq(saker_post_recv(c->qp, &wr, 1), 1);
}

static void
neighbour_send(struct client *c)
{
	struct rd_sge sge = {(uintptr_t)c->mem, MSG, saker_mr_stag(c->mr)};
	struct saker_wr wr = {
		.wr_id = RD_SEND, .opcode = RD_SEND, .flags = RD_SIGNALED, .nsge = 1, .sge = &sge};

	fill(c->mem, ++c->serial);
	c->sent = false;
	cr_assert_eq(saker_post_send(c->qp, &wr, 1), 1);
}

static void
neighbour_look(struct client *c, const struct client *from)
{
	static uint8_t want[MSG];
	struct rd_wc wc;

	if (saker_cq_poll(c->cq, &wc, 1) == 0)
		return;
	cr_assert_eq(wc.status, RD_SUCCESS, "a neighbour's request failed: %u", wc.status);
	if (wc.wr_id == RD_SEND) {
		c->sent = true;
		return;
	}
	fill(want, from->serial);
	cr_assert_eq(wc.byte_len, MSG);
	cr_assert_eq(memcmp(c->mem + MSG, want, MSG), 0, "a neighbour's bytes are wrong");
	neg.moved += MSG;
	c->come = true;
}

/* Sends the next message of `c` when the previous one has completed at both ends. */
static void
neighbour_step(struct client *c, struct client *to)
{
	if (!c->sent || !to->come)
		return;
	to->come = false;
	neighbour_receive(to);
	neighbour_send(c);
}

void
neg_turn(void)
{
	idle(NULL);
	if (near.qp == NULL || far.qp == NULL)
		return;
	neighbour_look(&near, &far);
	neighbour_look(&far, &near);
	neighbour_step(&near, &far);
	neighbour_step(&far, &near);
}

void
neg_neighbours(const char *name)
{
	uint64_t before = neg.moved;
	struct saker_event ev;

	NEG_UNTIL(neg.moved >= before + 4 * MSG, "%s: the neighbours stand still", name);
	cr_assert_eq(saker_event(near.s, &ev), 0, "%s: a neighbour's event %d", name, ev.type);
	cr_assert_eq(saker_event(far.s, &ev), 0, "%s: a neighbour's event %d", name, ev.type);
}

static void
neighbour_qp(struct client *c)
{
	struct saker_qp_attr attr = {.send_cq = c->cq,
		.recv_cq = c->cq,
		.sq_depth = 4,
		.rq_depth = 4,
		.max_send_sge = 1,
		.max_recv_sge = 1};

	c->mem = saker_alloc(c->s, 2 * MSG);
	cr_assert_eq(saker_mr_create(c->pd, c->mem, 2 * MSG, RD_ACC_LOCAL_WRITE, &c->mr), 0);
	cr_assert_eq(saker_qp_create(c->pd, &attr, &c->qp), 0, "%s", saker_error());
}

static struct saker_event
event_of(struct saker *s, const char *name, enum saker_event_type type)
{
	struct saker_event ev = {0};

	NEG_UNTIL(saker_event(s, &ev) == 1, "%s: event %d does not come", name, type);
	cr_assert_eq(ev.type, type, "%s: event %d instead of %d, status %d (%s)", name, ev.type,
		type, ev.status, ev.async.reason);
	return ev;
}

static void
neighbours_connect(void)
{
	struct saker_conn_param p = {.ird = 4, .ord = 4, .crc = 2, .markers = 2};
	struct sk_addr to = addr(PAIR_ADDR_A);
	struct saker_listener *l;
	struct saker_event ev;
	struct saker_qp *qp;

	neighbour_qp(&near);
	neighbour_qp(&far);
	qp = far.qp;
	far.qp = NULL; /* the neighbours start when both QPs are connected */
	cr_assert_eq(saker_listen(near.s, NULL, N_PORT, 4, NULL, &l), 0);
	cr_assert_eq(saker_connect(qp, NULL, &to, N_PORT, &p), 0);
	ev = event_of(near.s, "neighbours", SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(saker_accept(near.s, ev.request, near.qp, &p), 0);
	event_of(near.s, "neighbours", SAKER_EV_ESTABLISHED);
	event_of(far.s, "neighbours", SAKER_EV_ESTABLISHED);
	far.qp = qp;
	near.sent = near.come = far.sent = far.come = true;
	neg_neighbours("at first");
}

/* ---- The victim ---- */

uint8_t
neg_pattern(uint64_t off)
{
	return (uint8_t)(off * 7 + (off >> 8) * 13 + 1);
}

uint64_t
neg_base(enum neg_stag s)
{
	bool window = s >= WINDOW && s <= UNBOUND;
	unsigned nth = s < NEG_REGIONS ? (unsigned)s : window ? UNDER : WRITABLE;

	return (uintptr_t)neg.mem + (2 * nth + 1) * NEG_REGION + (window ? 64 : 0);
}

uint32_t
neg_stag(enum neg_stag s)
{
	if (s == OTHER_KEY)
		return saker_mr_stag(neg.mr[WRITABLE]) ^ 0x40;
	if (s == NO_SLOT)
		return saker_mr_stag(neg.mr[WRITABLE]) ^ 0x5a5a5a00;
	if (s >= WINDOW)
		return saker_mw_stag(neg.mw[s - WINDOW]);
	return saker_mr_stag(neg.mr[s]);
}

void
neg_untouched(const char *name)
{
	for (uint64_t i = 0; i < LAYOUT; i++)
		cr_assert_eq(neg.mem[i], neg_pattern(i), "%s: byte %ld of region %lu has changed",
			name, (long)(i % (2ul * NEG_REGION)) - NEG_REGION, i / (2ul * NEG_REGION));
}

static void
victim_init(void)
{
	static const uint32_t access[NEG_REGIONS] = {
		[WRITABLE] = RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE,
		[READABLE] = RD_ACC_REMOTE_READ, /* not writable by messages to the owner, either */
		[FOREIGN] = RD_ACC_LOCAL_WRITE | ALL_REM,
		[GONE] = RD_ACC_LOCAL_WRITE | ALL_REM,
		[LOCAL] = RD_ACC_LOCAL_WRITE,
		[ATOMIC] = RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_ATOMIC,
		[UNDER] = RD_ACC_LOCAL_WRITE | RD_ACC_MW_BIND,
	};

	attach(&victim, neg.eng[0]);
	neg.s = victim.s;
	neg.pd = victim.pd;
	neg.send_cq = victim.cq;
	cr_assert_eq(saker_cq_create(neg.s, 64, NULL, &neg.recv_cq), 0);
	cr_assert_eq(saker_pd_create(neg.s, &neg.other_pd), 0);
	neg.mem = saker_alloc(neg.s, LAYOUT);
	cr_assert_not_null(neg.mem);
	for (uint64_t i = 0; i < LAYOUT; i++)
		neg.mem[i] = neg_pattern(i);
	for (unsigned i = 0; i < NEG_REGIONS; i++)
		cr_assert_eq(
			saker_mr_create(i == FOREIGN ? neg.other_pd : neg.pd,
				(void *)(uintptr_t)neg_base(i), NEG_REGION, access[i], &neg.mr[i]),
			0, "%s", saker_error());
	cr_assert_eq(saker_listen(neg.s, NULL, NEG_PORT, 8, NULL, &neg.listener), 0);
}

static void
bind_window(enum neg_stag s, uint32_t access)
{
	struct saker_mw_bind b = {.wr_id = s,
		.flags = RD_SIGNALED,
		.key = 0x5a,
		.mr = neg.mr[UNDER],
		.addr = neg_base(s),
		.len = 128,
		.access = access};

	cr_assert_eq(saker_mw_bind(neg.qp, neg.mw[s - WINDOW], &b), 0);
	neg_expect_wc("bind", neg.send_cq, s, RD_SUCCESS);
}

/* The victim's program invalidates GONE and binds its windows, on a connection that ends before the
 * rows begin. */
static void
invalidate_and_bind(void)
{
	struct saker_wr wr = {
		.wr_id = 1, .opcode = RD_LOCAL_INV, .flags = RD_SIGNALED, .imm = neg_stag(GONE)};
	struct neg_mode mode = {.sq = SQ_EMPTY};

	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(
			saker_mw_alloc(neg.pd, i == 0 ? RD_MW_TYPE_1 : RD_MW_TYPE_2, &neg.mw[i]), 0,
			"%s", saker_error());
	neg_victim(&mode);
	cr_assert_eq(saker_post_send(neg.qp, &wr, 1), 1);
	neg_expect_wc("invalidation", neg.send_cq, 1, RD_SUCCESS);
	bind_window(WINDOW, RD_ACC_REMOTE_WRITE);
	bind_window(BOUND, ALL_REM);
	raw_fin(&neg.conn);
	neg_end("invalidation", false);
}

void
neg_start(void)
{
	pair_eal();
	raw_switch_init(&neg.sw);
	neg.sw.addr = addr("10.0.0.66");
	neg.sw.victim = addr(PAIR_ADDR_A);
	for (int i = 0; i < 2; i++)
		neg.eng[i] = engine(i);
	raw_switch_greet(&neg.sw);
	attach(&near, neg.eng[0]);
	attach(&far, neg.eng[1]);
	neighbours_connect();
	victim_init();
	invalidate_and_bind();
}

void
neg_stop(void)
{
	near.qp = NULL;
	detach(&victim);
	detach(&near);
	detach(&far);
	for (int i = 0; i < 2; i++)
		eng_destroy(neg.eng[i]);
	raw_switch_fini(&neg.sw);
	cr_assert_eq(eng_pools_waiting(), 0, "mbufs are still out");
}

struct saker_event
neg_event(const char *name, enum saker_event_type type)
{
	return event_of(neg.s, name, type);
}

uint64_t
neg_counter(const char *layer, const char *reason)
{
	return pair_counter(neg.eng[0], layer, reason);
}
