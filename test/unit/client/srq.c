/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues that grow. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdlib.h>

#include "../../../lib/client/path.h"
#include "fake.h"

#define DEPTH 8

static struct fake f;
static struct saker *s;
static struct saker_srq *srq;
static uint64_t in, out;

static void
setup(void)
{
	struct saker_pd *pd;

	s = fake_flat(&f, 1 << 20, 0);
	cr_assert_eq(saker_pd_create(s, &pd), 0);
	cr_assert_eq(saker_srq_create(pd, DEPTH, 1, &srq), 0);
	in = out = 0;
}

static void
teardown(void)
{
	saker_close(s);
	free(f.home);
}

TestSuite(client_srq, .init = setup, .fini = teardown);

/* Posts a receive. Returns false when the queue is full. */
static bool
post(void)
{
	struct rd_sge sge = {.addr = in, .len = 100};
	struct saker_wr wr = {.wr_id = in, .nsge = 1, .sge = &sge};

	if (saker_post_srq(srq, &wr, 1) != 1)
		return false;
	in++;
	return true;
}

/* Takes receives as the engine does, and checks that they come in order. Returns their number. */
static unsigned
take(unsigned most)
{
	const struct shm_rqe *e;
	unsigned n = 0;

	while (n < most && (e = shm_take_peek(&f.srq[0])) != NULL) {
		cr_assert_eq(e->wr_id, out);
		cr_assert_eq(e->sge[0].addr, out++);
		shm_take_pop(&f.srq[0]);
		n++;
	}
	shm_take_publish(&f.srq[0]);
	return n;
}

static unsigned
fill(void)
{
	unsigned n = 0;

	while (post())
		n++;
	return n;
}

Test(client_srq, a_queue_grows_with_its_receives)
{
	for (unsigned done = 0; done < DEPTH; done++) {
		cr_assert(post());
		cr_assert_eq(take(1), 1);
	}
	for (uint32_t depth = DEPTH; depth <= 32 * DEPTH; depth *= 2) {
		fill();
		cr_assert_eq(cl_srq_count(srq), depth);
		cr_assert_eq(take(3), 3);
		cr_assert_eq(cl_srq_count(srq), depth - 3);
		/* The engine takes two more while the client copies. */
		f.take_first = 2;
		out += 2;
		cr_assert_eq(saker_srq_resize(srq, depth + 1), 2 * (int)depth);
		cr_assert_eq(cl_srq_count(srq), depth - 5);
		cr_assert_eq(fill(), depth + 5);
		cr_assert_eq(take(UINT32_MAX), 2 * depth);
		cr_assert(post() && post());
	}
}

Test(client_srq, a_queue_that_holds_more_stays_as_it_is)
{
	cr_assert_eq(saker_srq_resize(srq, 1), DEPTH);
	cr_assert_eq(saker_srq_resize(srq, DEPTH), DEPTH);
	cr_assert_eq(f.seen[SHM_SRQ_RESIZE], 0);
}

/* Both steps may be refused. */
Test(client_srq, a_resize_that_is_refused_changes_nothing)
{
	cr_assert_eq(fill(), DEPTH);
	f.refuse_op = SHM_SRQ_RESIZE;
	f.refuse_status = -ENOMEM;
	f.refuse_text = "no room";
	cr_assert_eq(saker_srq_resize(srq, 2 * DEPTH), -ENOMEM);
	f.refuse_after = 2;
	cr_assert_eq(saker_srq_resize(srq, 2 * DEPTH), -ENOMEM);
	cr_assert_eq(f.seen[SHM_SRQ_RESIZE], 3);
	cr_assert_eq(take(UINT32_MAX), DEPTH);
	cr_assert_eq(fill(), DEPTH);
	f.refuse_op = 0;
	f.nonsense = true;
	cr_assert_eq(saker_srq_resize(srq, 2 * DEPTH), -EPROTO);
	cr_assert_eq(take(UINT32_MAX), DEPTH);
}
