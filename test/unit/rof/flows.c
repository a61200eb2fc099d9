/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flows of RDMA over Falcon 7.1 and 7.2, packet by packet, with the numbers of the text: two
 * MTUs, whose requests overtake each other in the network.
 */
#include "pair.h"

#include "../../../lib/falcon/conn_priv.h"

#include <criterion/criterion.h>
#include <string.h>

struct seen {
	struct pair *p;
	unsigned n, requests;
	struct {
		unsigned from;
		uint8_t type;
		uint32_t psn, rsn;
	} data[8];
	uint32_t request_base[2], data_base[2]; /* the last bases that each end acknowledged */
};

static bool
watch(void *arg, unsigned from, const struct wire_falcon *h)
{
	struct seen *s = arg;

	s->request_base[from] = h->rbpsn;
	s->data_base[from] = h->dbpsn;
	s->p->delay = 5000;
	if (h->type != FALCON_PULL_REQUEST && h->type != FALCON_PULL_DATA &&
		h->type != FALCON_PUSH_DATA)
		return true;
	cr_assert_lt(s->n, 8);
	s->data[s->n].from = from;
	s->data[s->n].type = h->type;
	s->data[s->n].psn = h->psn;
	s->data[s->n++].rsn = h->rsn;
	if (from == 0 && s->requests++ == 0)
		s->p->delay = 9000; /* the first request arrives after the second */
	return true;
}

static void
expect(const struct seen *s, unsigned i, unsigned from, uint8_t type, uint32_t psn, uint32_t rsn)
{
	cr_assert_eq(s->data[i].from, from);
	cr_assert_eq(s->data[i].type, type);
	cr_assert_eq(s->data[i].psn, psn);
	cr_assert_eq(s->data[i].rsn, rsn);
}

static struct pair p;

static void
flow(struct seen *s, uint8_t opcode, uint32_t data_psn)
{
	struct pair_options o = {
		.numbers = true, .tx_rsn = 1, .request_psn = 100, .data_psn = data_psn};
	struct end *src = &p.e[opcode == RD_READ];

	pair_init_with(&p, &o, 1);
	*s = (struct seen){.p = &p};
	p.hook = watch;
	p.hook_arg = s;
	for (unsigned i = 0; i < 2000; i++)
		src->mem[i] = (uint8_t)(i * 7 + (i >> 8));
	end_msg(&p.e[0], opcode, 5, 0, 2000);
	pair_run(&p, 100000, NULL);
	cr_assert_eq(p.e[1].ncame, 2);
	cr_assert_eq(p.e[1].came[0], 1, "by RSN");
	cr_assert_eq(p.e[1].came[1], 2);
	cr_assert_eq(p.e[0].nsend, 1, "one completion for both transactions");
	cr_assert_eq(p.e[0].send_wc[0].wr_id, 5);
	cr_assert_eq(p.e[0].send_wc[0].status, RD_SUCCESS);
	cr_assert_eq(p.e[0].send_wc[0].byte_len, 2000);
	cr_assert_eq(p.e[0].send_wc[0].vendor_err, 0);
	cr_assert_eq(memcmp(p.e[0].mem, p.e[1].mem, END_MEM), 0);
}

Test(rof_flows, a_read_of_two_mtus_is_two_pulls_rof_7_1)
{
	struct seen s;

	flow(&s, RD_READ, 200);
	cr_assert_eq(s.n, 4, "nothing was sent twice");
	expect(&s, 0, 0, FALCON_PULL_REQUEST, 100, 1);
	expect(&s, 1, 0, FALCON_PULL_REQUEST, 101, 2);
	expect(&s, 2, 1, FALCON_PULL_DATA, 200, 1);
	expect(&s, 3, 1, FALCON_PULL_DATA, 201, 2);
	cr_assert_eq(s.request_base[1], 102, "the requests were acknowledged");
	cr_assert_eq(s.data_base[0], 202, "so was the data");
	cr_assert(pair_fini(&p));
}

Test(rof_flows, a_write_of_two_mtus_is_two_pushes_rof_7_2)
{
	struct seen s;

	flow(&s, RD_WRITE, 300);
	cr_assert_eq(s.n, 2);
	expect(&s, 0, 0, FALCON_PUSH_DATA, 300, 1);
	expect(&s, 1, 0, FALCON_PUSH_DATA, 301, 2);
	cr_assert_eq(s.data_base[1], 302);
	cr_assert(pair_fini(&p));
}

/* ---- A peer that does not respect IRD ---- */

struct pulls {
	unsigned at_once, nacks, answers;
};

static bool
count_pulls(void *arg, unsigned from, const struct wire_falcon *h)
{
	struct pulls *n = arg;
	uint32_t now = p.e[1].conn->tl.pulls;

	n->at_once = SK_MAX(n->at_once, now);
	n->answers += h->type == FALCON_PULL_DATA;
	if (h->type == FALCON_NACK) {
		cr_assert_eq(from, 1);
		cr_assert_eq(h->nack_code, FALCON_NACK_RESOURCES);
		cr_assert(h->nack_request);
		n->nacks++;
	}
	return true;
}

/* Posts 16 Reads at once to a target with an IRD of `ird`, and runs until all are done or `limit`
 * ns have passed. */
static void
excess(uint8_t ordering, uint16_t ird, uint64_t limit, struct pulls *n)
{
	struct pair_options o = {.ird = ird};

	o.chan.ordering = ordering;
	o.chan.errors = ordering == ROF_ORDER_NONE ? ROF_ERRORS_COMPLETE : ROF_ERRORS_VERBS;
	pair_init_with(&p, &o, 1);
	*n = (struct pulls){0};
	p.hook = count_pulls;
	p.hook_arg = n;
	for (unsigned i = 0; i < 2048; i++)
		p.e[1].mem[i] = (uint8_t)(i * 7 + 1);
	for (unsigned i = 0; i < 16; i++)
		end_msg(&p.e[0], RD_READ, i, i * 128, 128);
	pair_run(&p, limit, pair_sent);
	cr_assert_eq(fa_stack_counters(p.e[1].fa)[FA_PULLS_EXCESS], n->nacks);
}

static void
excess_all(uint8_t ordering, uint16_t ird, struct pulls *n)
{
	excess(ordering, ird, 10000000000, n);
	cr_assert_eq(p.e[0].nsend, 16);
	for (unsigned i = 0; i < 16; i++)
		cr_assert_eq(p.e[0].send_wc[i].status, RD_SUCCESS);
	cr_assert_eq(memcmp(p.e[0].mem, p.e[1].mem, 2048), 0);
	pair_run(&p, 1000000000, NULL);
	cr_assert(pair_fini(&p));
}

Test(rof_flows, reads_beyond_ird_get_a_nack_and_come_again_falcon_8_2_1_1)
{
	static const uint8_t orderings[] = {ROF_ORDER_STRONG, ROF_ORDER_NONE};
	struct pulls n;

	for (unsigned i = 0; i < SK_ARRAY_LEN(orderings); i++) {
		excess_all(orderings[i], 1, &n);
		cr_assert_geq(n.nacks, 15, "%u", n.nacks);
		cr_assert_leq(n.at_once, 2,
			"one, and one that waits for its order or may be done: %u", n.at_once);
		excess_all(orderings[i], 5, &n);
		cr_assert_geq(n.nacks, 11);
		excess_all(orderings[i], 16, &n);
		cr_assert_eq(n.nacks, 0);
	}
	excess_all(ROF_ORDER_WEAK, 16, &n);
	cr_assert_eq(n.nacks, 0);
}

/* The pulls that wait for their order may then use up IRD, so that the one that they wait for gets
 * a NACK each time. */
Test(rof_flows, weakly_ordered_reads_beyond_ird_block_their_own_connection_only)
{
	struct pulls n;

	excess(ROF_ORDER_WEAK, 1, 100000000, &n);
	cr_assert_leq(p.e[0].nsend, 16);
	cr_assert_leq(n.at_once, 2);
	cr_assert_geq(n.nacks, 15);
	cr_assert(pair_fini(&p));
}
