/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Missing pages of a client's memory: a QP waits for them and continues when they are present, in
 * each ordering mode; nothing that waits is lost or leaks.
 */
#include "pair.h"

#include <criterion/criterion.h>
#include <string.h>

#include "../../support/absent.h"

#define LEN  10000u
#define WAIT 1000000u /* ns of virtual time */
#define LONG 2000000000u

static struct pair p;
static struct end *const a = &p.e[0], *const b = &p.e[1];
static struct absent absent;
static struct end *fetched; /* the end that called rd_ops.fetch last */
static unsigned fetches;

static const struct rof_chan_params modes[] = {
	{.ordering = ROF_ORDER_STRONG, .errors = ROF_ERRORS_VERBS},
	{.ordering = ROF_ORDER_WEAK, .errors = ROF_ERRORS_COMPLETE},
	{.ordering = ROF_ORDER_NONE, .errors = ROF_ERRORS_COMPLETE},
};
#define MODES (sizeof(modes) / sizeof(modes[0]))

static void
fetch(void *ctx, struct rd_qp *qp, const uint8_t *at, uint64_t len)
{
	fetched = ctx;
	fetches++;
}

static void
start(struct end *poor, const struct rof_chan_params *mode)
{
	pair_init(&p, mode, 11);
	absent_init(&absent, END_MEM);
	memset(a->mem, 0xa5, END_MEM);
	memset(b->mem, 0xa5, END_MEM);
	poor->extent.host = absent.mem;
	a->st.ops.rd.fetch = b->st.ops.rd.fetch = fetch;
	fetched = NULL;
	fetches = 0;
}

static void
waits(struct end *poor)
{
	pair_run(&p, WAIT, NULL);
	cr_assert_eq(fetched, poor);
	cr_assert_eq(fetches, 1);
}

static void
provide(struct end *poor)
{
	absent_provide(&absent, END_MEM);
	rof_pages(poor->q);
	pair_run(&p, LONG, pair_sent);
	pair_run(&p, WAIT, NULL);
	cr_assert_eq(fetches, 1);
	cr_assert_eq(a->errors + b->errors, 0);
}

static void
finish(void)
{
	cr_assert(pair_fini(&p));
	absent_fini(&absent);
}

static bool
all_are(const uint8_t *bytes, uint8_t value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

Test(rof_pages, a_request_whose_source_is_missing_waits_with_those_behind_it)
{
	for (unsigned m = 0; m < MODES; m++) {
		start(a, &modes[m]);
		end_recv(b, 2);
		end_msg(a, RD_WRITE, 1, 0, LEN);
		end_post(a, RD_SEND, 2);
		waits(a);
		cr_assert_eq(a->nsend + b->nrecv, 0);
		provide(a);
		cr_assert_eq(a->nsend, 2);
		cr_assert_eq(b->nrecv, 1);
		cr_assert(all_are(b->mem, 0, LEN) && b->mem[LEN] == 0xa5);
		finish();
	}
}

Test(rof_pages, a_write_to_missing_memory_waits_with_all_deliveries_behind_it)
{
	for (unsigned m = 0; m < MODES; m++) {
		start(b, &modes[m]);
		end_recv(b, 2);
		end_msg(a, RD_WRITE, 1, 0, LEN);
		end_post(a, RD_SEND, 2);
		waits(b);
		cr_assert_eq(b->nrecv, 0);
		cr_assert_eq(b->st.counters[ROF_NO_PAGE], 1);
		provide(b);
		cr_assert_eq(a->nsend, 2);
		cr_assert_eq(b->nrecv, 1);
		cr_assert(all_are(absent.mem, 0xa5, LEN) && absent.mem[LEN] == 0);
		finish();
	}
}

Test(rof_pages, a_send_to_a_missing_receive_waits_and_takes_one_receive)
{
	start(b, &modes[0]);
	end_recv_at(b, 5, 0, LEN);
	end_recv(b, 6);
	end_msg(a, RD_SEND, 1, 0, LEN);
	end_post(a, RD_SEND, 2);
	waits(b);
	provide(b);
	cr_assert_eq(b->nrecv, 2);
	cr_assert_eq(b->recv_wc[0].wr_id, 5);
	cr_assert_eq(b->recv_wc[0].byte_len, LEN);
	cr_assert_eq(b->recv_wc[0].status, RD_SUCCESS);
	cr_assert_eq(b->recv_wc[1].wr_id, 6);
	cr_assert(all_are(absent.mem, 0xa5, LEN));
	finish();
}

Test(rof_pages, a_read_waits_for_its_sink_and_for_its_source)
{
	for (unsigned m = 0; m < MODES; m++) {
		start(a, &modes[m]);
		end_msg(a, RD_READ, 1, 0, LEN);
		waits(a);
		cr_assert_eq(b->ncame, 0, "the request is not sent before the sink is present");
		provide(a);
		cr_assert_eq(a->nsend, 1);
		cr_assert(all_are(absent.mem, 0xa5, LEN));
		finish();
		start(b, &modes[m]);
		end_msg(a, RD_READ, 1, 0, LEN);
		waits(b);
		provide(b);
		cr_assert_eq(a->nsend, 1);
		cr_assert(all_are(a->mem, 0, LEN) && a->mem[LEN] == 0xa5);
		finish();
	}
}

/* Removes the pages of the sink when the first request is on its way. */
static bool
hook_remove(void *arg, unsigned from, const struct wire_falcon *h)
{
	if (from == 0 && h->type == FALCON_PULL_REQUEST)
		absent_provide(&absent, 0);
	return true;
}

Test(rof_pages, a_response_waits_for_a_sink_that_was_removed_again)
{
	for (unsigned m = 0; m < MODES; m++) {
		start(a, &modes[m]);
		absent_provide(&absent, END_MEM);
		p.hook = hook_remove;
		end_msg(a, RD_READ, 1, 0, 512);
		waits(a);
		cr_assert_eq(a->st.counters[ROF_NO_PAGE], 1);
		cr_assert_eq(a->nsend, 0);
		p.hook = NULL;
		provide(a);
		cr_assert_eq(a->nsend, 1);
		cr_assert_eq(a->send_wc[0].status, RD_SUCCESS);
		cr_assert(all_are(absent.mem, 0xa5, 512));
		finish();
	}
}

Test(rof_pages, an_atomic_on_missing_memory_is_executed_once)
{
	struct rd_wr *wr;
	uint64_t word;

	start(b, &modes[0]);
	wr = end_msg(a, RD_FETCH_ADD, 1, 0, 8);
	wr->data = 3;
	waits(b);
	provide(b);
	cr_assert_eq(a->nsend, 1);
	cr_assert_eq(a->send_wc[0].status, RD_SUCCESS);
	memcpy(&word, absent.mem, sizeof(word));
	cr_assert_eq(word, 3);
	finish();
}

Test(rof_pages, the_end_of_a_qp_or_its_connection_frees_what_waits)
{
	for (unsigned how = 0; how < 3; how++) {
		start(b, &modes[0]);
		end_recv(b, 2);
		end_msg(a, RD_WRITE, 1, 0, LEN);
		end_post(a, RD_SEND, 2);
		waits(b);
		if (how == 1) {
			rof_chan_drop(b->c);
			rof_closed(b->q, 1);
			cr_assert_not(rof_pages(b->q));
		} else if (how == 2) { /* what waited is answered without touching memory */
			rof_disconnect(b->q);
			rof_pages(b->q);
		}
		cr_assert_eq(fetches, 1);
		finish();
	}
}
