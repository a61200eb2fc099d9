/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flows of RDMA over Falcon 7.1 and 7.2, packet by packet, with the numbers of the text: two
 * MTUs, whose requests overtake each other in the network.
 */
#include "pair.h"

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
