/* SPDX-License-Identifier: BSD-3-Clause */
/* The rig of the ordering tests; see ordering.h. */
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rte_eal.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/common/instance.h"
#include "../../../lib/wire/wire.h"
#include "ordering.h"

#define SLOT    32768u
#define PORT    7474
#define HOSTILE "drop=0.05,dup=0.05,reorder=0.1,reorder_us=200"

struct rig ord_rig;
struct saker_cq *ord_cq[2];
struct ord_link ord_links[LINKS];
static struct saker_pd *pd[2];
static struct saker_mr *mr[2];
static uint64_t rng;

static uint32_t
pick(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)((rng >> 32) * n >> 32);
}

uint8_t
ord_pattern(uint8_t key, uint32_t i)
{
	return (uint8_t)((i * 7 + (i >> 8) * 3 + key) | 1);
}

static void
fill(uint8_t *p, uint32_t len, uint8_t key)
{
	for (uint32_t i = 0; i < len; i++)
		p[i] = ord_pattern(key, i);
}

bool
ord_is(const uint8_t *p, uint32_t len, uint8_t key)
{
	for (uint32_t i = 0; i < len; i++)
		if (p[i] != ord_pattern(key, i))
			return false;
	return true;
}

bool
ord_answered(enum op op)
{
	return op == READ || op == ATOMIC;
}

static bool
receives(enum op op)
{
	return op == IMM || op == SEND;
}

/* Two acts that both read or change memory at the remote peer use the same place. */
unsigned
ord_target_of(const struct ord_link *l, unsigned nth)
{
	return ord_answered(l->act[0].op) && ord_answered(l->act[1].op) ? 0 : nth;
}

static uint8_t *
source(const struct ord_link *l, unsigned nth)
{
	return l->mem[0] + nth * SLOT;
}

uint8_t *
ord_sink(const struct ord_link *l, unsigned nth)
{
	return l->mem[0] + (2 + nth) * SLOT;
}

uint8_t *
ord_target(const struct ord_link *l, unsigned nth)
{
	return l->mem[1] + ord_target_of(l, nth) * SLOT;
}

uint8_t *
ord_receive(const struct ord_link *l, unsigned nth)
{
	return l->mem[1] + (2 + nth) * SLOT;
}

/* ---- A repetition ---- */

static void
post_receive(struct ord_link *l, unsigned nth)
{
	struct rd_sge sge = {(uintptr_t)ord_receive(l, nth), SLOT, saker_mr_stag(mr[1])};
	struct saker_wr wr = {
		.wr_id = (uint64_t)(l - ord_links) << 8 | nth, .nsge = 1, .sge = &sge};

	cr_assert_eq(saker_post_recv(l->qp[1], &wr, 1), 1);
}

static void
prepare(struct ord_link *l, unsigned nth)
{
	struct ord_act *a = &l->act[nth];

	*a = (struct ord_act){.op = a->op, .key = (uint8_t)pick(256), .imm = rng};
	a->len = a->op == ATOMIC ? 8 : a->op == IMM ? 0 : pick(4) ? pick(SLOT - 8) + 8 : pick(64);
	if (a->op == READ && a->len < 8)
		a->len = 8;
	fill(source(l, nth), a->len, a->key);
	memset(ord_sink(l, nth), OLD, a->len + 8);
	memset(ord_target(l, nth), OLD, SLOT);
	if (receives(a->op)) {
		memset(ord_receive(l, nth), OLD, a->len);
		post_receive(l, nth);
	}
}

/* Fills the memory that a Read or an Atomic accesses. */
static void
prepare_target(struct ord_link *l, unsigned nth)
{
	struct ord_act *a = &l->act[nth];

	if (!ord_answered(a->op))
		return;
	a->key = l->act[ord_target_of(l, nth)].key;
	fill(ord_target(l, nth), SLOT, a->key);
	memcpy(&a->word, ord_target(l, nth), 8);
}

void
ord_begin(struct ord_link *l)
{
	prepare(l, 0);
	prepare(l, 1);
	prepare_target(l, 0);
	prepare_target(l, 1);
	l->posted = 0;
	l->wait = pick(2) ? 0 : pick(8);
}

/* Chooses one of the four Sends (a row of the table means all of them), an Immediate or an
 * Atomic. */
static void
choose(struct ord_act *a, struct saker_wr *wr)
{
	switch (a->op) {
	case SEND:
		wr->opcode = RD_SEND;
		wr->flags |= pick(2) ? RD_SOLICITED : 0;
		if (pick(4) > 0)
			break;
		cr_assert_eq(saker_mr_create(pd[1], ord_links[0].mem[1], 4096, RD_ACC_REMOTE_READ,
				     &a->doomed),
			0, "%s", saker_error());
		wr->opcode = RD_SEND_INV;
		wr->imm = saker_mr_stag(a->doomed);
		break;
	case IMM:
		wr->opcode = RD_IMM;
		wr->flags |= pick(2) ? RD_SOLICITED : 0;
		wr->imm = a->imm;
		break;
	case ATOMIC: /* both add 2 to any value of the word */
		wr->opcode = RD_FETCH_ADD;
		wr->data = 2;
		break;
	default:
		wr->opcode = a->op == WRITE ? RD_WRITE : RD_READ;
		break;
	}
}

void
ord_post(struct ord_link *l)
{
	unsigned nth = l->posted;
	struct ord_act *a = &l->act[nth];
	struct rd_sge sge = {(uintptr_t)(ord_answered(a->op) ? ord_sink(l, nth) : source(l, nth)),
		a->len, saker_mr_stag(mr[0])};
	struct saker_wr wr = {.wr_id = (uint64_t)(l - ord_links) << 8 | nth,
		.flags = RD_SIGNALED,
		.nsge = a->len > 0,
		.sge = &sge,
		.rkey = saker_mr_stag(mr[1]),
		.remote_addr = (uintptr_t)ord_target(l, nth)};

	choose(a, &wr);
	cr_assert_eq(saker_post_send(l->qp[0], &wr, 1), 1);
	l->posted++;
}

/* ---- The fixture ---- */

uint64_t
ord_clock(void)
{
	return eng_clock() + ord_rig.hand[0].ahead;
}

static struct saker_event
event(int i, enum saker_event_type type)
{
	struct saker_event ev;

	while (saker_event(ord_rig.end[i].s, &ev) == 0)
		rig_turn(&ord_rig.hand[0]);
	cr_assert_eq(ev.type, type, "event %d instead of %d", ev.type, type);
	return ev;
}

static struct saker_qp *
make_qp(int i)
{
	struct saker_qp_attr attr = {.send_cq = ord_cq[i],
		.recv_cq = ord_cq[i],
		.sq_depth = 4,
		.rq_depth = 4,
		.max_send_sge = 1,
		.max_recv_sge = 1};
	struct saker_qp *qp;

	cr_assert_eq(saker_qp_create(pd[i], &attr, &qp), 0, "%s", saker_error());
	return qp;
}

static void
connect_links(void)
{
	struct saker_conn_param p = {.ird = 4, .ord = 4, .crc = 1, .markers = 2};
	struct saker_listener *listener;

	cr_assert_eq(saker_listen(ord_rig.end[1].s, NULL, PORT, LINKS, NULL, &listener), 0);
	for (unsigned i = 0; i < LINKS; i++) {
		struct saker_event ev;

		ord_links[i].qp[0] = make_qp(0);
		ord_links[i].qp[1] = make_qp(1);
		cr_assert_eq(
			saker_connect(ord_links[i].qp[0], NULL, &ord_rig.end[1].addr, PORT, &p), 0);
		ev = event(1, SAKER_EV_CONNECT_REQUEST);
		cr_assert_eq(saker_accept(ord_rig.end[1].s, ev.request, ord_links[i].qp[1], &p), 0);
		event(1, SAKER_EV_ESTABLISHED);
		event(0, SAKER_EV_ESTABLISHED);
	}
}

void
ord_start(enum op first, enum op second)
{
	static char *args[] = {"test", "--no-huge", "--no-shconf", "--no-pci", "-m", "256", "-l",
		"0", "--no-telemetry", "--log-level=error"};
	struct rig_options o = {.vlan = ETH_NO_VLAN,
		.mtu = 1500,
		.mem_len = (4 * LINKS + 16) * SLOT,
		.ring_len = 4 << 20};
	char hostile[128];

	rng = 0x9e3779b97f4a7c15ull * (1 + first * 5 + second);
	cr_assert_geq(rte_eal_init(SK_ARRAY_LEN(args), args), 0);
	snprintf(hostile, sizeof(hostile), HOSTILE ",seed=%lu", rng);
	o.impair = hostile;
	cr_assert_eq(rig_open(&ord_rig, &o), 0);
	for (int i = 0; i < 2; i++) {
		uint8_t *mem;

		ord_rig.eng[i]->clock = ord_clock;
		ord_rig.hand[0] =
			(struct rig_hand){.eng = {ord_rig.eng[0], ord_rig.eng[1]}, .n = 2};
		cr_assert_eq(rig_attach(&ord_rig, i, &ord_rig.hand[0]), 0);
		cr_assert_eq(saker_pd_create(ord_rig.end[i].s, &pd[i]), 0);
		cr_assert_eq(saker_cq_create(ord_rig.end[i].s, 4 * LINKS, NULL, &ord_cq[i]), 0);
		mem = saker_alloc(ord_rig.end[i].s, 4 * LINKS * SLOT);
		cr_assert_not_null(mem);
		cr_assert_eq(saker_mr_create(pd[i], mem, 4 * LINKS * SLOT,
				     RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ |
					     RD_ACC_REMOTE_ATOMIC,
				     &mr[i]),
			0, "%s", saker_error());
		for (unsigned k = 0; k < LINKS; k++)
			ord_links[k].mem[i] = mem + 4 * k * SLOT;
	}
	connect_links();
	for (unsigned i = 0; i < LINKS; i++) {
		ord_links[i].act[0].op = first;
		ord_links[i].act[1].op = second;
		ord_begin(&ord_links[i]);
	}
}

void
ord_stop(void)
{
	for (int i = 0; i < 2; i++)
		cr_assert_eq(rig_detach(&ord_rig, i), 0);
	cr_assert_eq(rig_all_home(&ord_rig), 0);
	rig_close(&ord_rig);
}
