/* SPDX-License-Identifier: BSD-3-Clause */
/* The content of each command, the effect of its reply, and the sentence of a refusal. */
#include <criterion/criterion.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static struct fake f;
static struct saker *s;
static struct saker_pd *pd;
static struct saker_cq *cq;

static void
setup(void)
{
	s = fake_flat(&f, 1 << 20, 1 << 17);
	cr_assert_eq(saker_pd_create(s, &pd), 0);
	cr_assert_eq(saker_cq_create(s, 5, &f, &cq), 0);
}

static void
teardown(void)
{
	saker_close(s);
	free(f.home);
}

TestSuite(client_command, .init = setup, .fini = teardown);

static struct saker_qp *
make_qp(struct saker_srq *srq)
{
	struct saker_qp_attr attr = {.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.sq_depth = 5,
		.rq_depth = 3,
		.max_send_sge = 2,
		.max_recv_sge = 1,
		.max_inline = 64,
		.sig_all = true,
		.access = RD_ACC_REMOTE_READ,
		.user = &attr};
	struct saker_qp *qp;

	cr_assert_eq(saker_qp_create(pd, &attr, &qp), 0, "%s", saker_error());
	cr_assert_eq(attr.sq_depth, 8, "rounded up in place");
	cr_assert_eq(saker_qp_user(qp), &attr);
	return qp;
}

Test(client_command, mr_create_names_region_offset_base_and_rights)
{
	uint8_t *mem = saker_alloc(s, 8192);
	struct saker_mr *mr;

	cr_assert_not_null(mem);
	cr_assert_eq(saker_mr_create(pd, mem + 100, 5000, RD_ACC_REMOTE_WRITE, &mr), 0);
	cr_assert_eq(f.last.body.mr.pd, 40);
	cr_assert_eq(f.last.body.mr.access, RD_ACC_REMOTE_WRITE);
	cr_assert_eq(f.last.body.mr.base, (uintptr_t)mem + 100);
	cr_assert_eq(f.last.body.mr.len, 5000);
	cr_assert_eq(f.last.body.mr.nextents, 1);
	cr_assert_eq(f.last.body.mr.extents[0].region, SHM_HOME);
	cr_assert_eq(f.last.body.mr.extents[0].offset, (uint64_t)(mem + 100 - f.home));
	cr_assert_eq(f.last.body.mr.extents[0].len, 5000);
	cr_assert_eq(saker_mr_stag(mr), 0x1234500u + 501);
	cr_assert_eq(saker_mr_destroy(mr), 0);
	cr_assert_eq(f.last.op, SHM_MR_DESTROY);
	cr_assert_eq(f.last.body.handle, 501);
}

Test(client_command, mr_create_refuses_memory_that_is_not_ours)
{
	uint8_t own[64], *mem = saker_alloc(s, 4096);
	struct saker_mr *mr;

	cr_assert_eq(saker_mr_create(pd, own, sizeof(own), 0, &mr), -EFAULT);
	cr_assert_not_null(strstr(saker_error(), "64 bytes at"));
	cr_assert_eq(saker_mr_create(pd, mem, 4097, 0, &mr), -EFAULT, "a page that is not taken");
	cr_assert_eq(saker_mr_create(pd, mem, 0, 0, &mr), -EFAULT);
	cr_assert_eq(saker_mr_create(pd, mem, SIZE_MAX, 0, &mr), -EFAULT);
	cr_assert_eq(f.seen[SHM_MR_CREATE], 0, "the engine was not even asked");
}

Test(client_command, mw_alloc_names_domain_and_type)
{
	struct saker_mw *mw;

	cr_assert_eq(saker_mw_alloc(pd, RD_MW_TYPE_2, &mw), 0);
	cr_assert_eq(f.last.op, SHM_MW_CREATE);
	cr_assert_eq(f.last.body.mw.pd, 40);
	cr_assert_eq(f.last.body.mw.type, RD_MW_TYPE_2);
	cr_assert_eq(saker_mw_stag(mw), 0xabcd00fe);
	cr_assert_eq(saker_mw_free(mw), 0);
	cr_assert_eq(f.last.op, SHM_MW_DESTROY);
	cr_assert_eq(f.last.body.handle, 701);
	f.refuse_op = SHM_MW_CREATE;
	f.refuse_status = -EDQUOT;
	f.refuse_text = "no more";
	cr_assert_eq(saker_mw_alloc(pd, RD_MW_TYPE_1, &mw), -EDQUOT);
}

Test(client_command, qp_create_names_its_queues_and_limits)
{
	struct saker_qp *qp = make_qp(NULL);
	const struct shm_qp_info *q = &f.last.body.qp;

	cr_assert_eq(q->pd, 40);
	cr_assert_eq(q->send_cq, 100);
	cr_assert_eq(q->recv_cq, 100);
	cr_assert_eq(q->srq, SHM_NONE);
	cr_assert_eq(q->sq_depth, 5);
	cr_assert_eq(q->rq_depth, 3);
	cr_assert_eq(q->max_send_sge, 2);
	cr_assert_eq(q->max_recv_sge, 1);
	cr_assert_eq(q->max_inline, 64);
	cr_assert_eq(q->sig_all, 1);
	cr_assert_eq(q->access, RD_ACC_REMOTE_READ);
	cr_assert_eq(saker_qp_num(qp), 0xabc000);
	cr_assert_eq(saker_qp_find(s, 0xabc000), qp);
	cr_assert_null(saker_qp_find(s, 7), "a handle is no number");
	cr_assert_eq(saker_qp_destroy(qp), 0);
	cr_assert_eq(f.last.body.handle, 7);
	cr_assert_null(saker_qp_find(s, 0xabc000));
}

Test(client_command, qp_create_without_completion_queues_is_refused)
{
	struct saker_qp_attr attr = {.send_cq = cq};
	struct saker_qp *qp;

	cr_assert_eq(saker_qp_create(pd, &attr, &qp), -EINVAL);
	cr_assert_eq(f.seen[SHM_QP_CREATE], 0);
}

Test(client_command, a_qp_with_an_srq_has_no_receive_queue)
{
	struct saker_srq *srq;
	struct saker_qp *qp;

	cr_assert_eq(saker_srq_create(pd, 16, 4, &srq), 0);
	cr_assert_eq(f.last.body.srq.depth, 16);
	cr_assert_eq(f.last.body.srq.max_sge, 4);
	qp = make_qp(srq);
	cr_assert_eq(f.last.body.qp.srq, 300);
	cr_assert_eq(f.last.body.qp.rq_depth, 0);
	cr_assert_eq(saker_post_recv(qp, &(struct saker_wr){0}, 1), -EINVAL);
}

Test(client_command, query_and_modify_name_the_handle)
{
	struct saker_qp *qp = make_qp(NULL);
	struct saker_qp_info info;

	cr_assert_eq(saker_qp_query(qp, &info), 0);
	cr_assert_eq(info.qpn, 7);
	cr_assert_eq(info.state, RD_QP_RTS);
	cr_assert_eq(saker_qp_modify(qp, RD_QP_ERR), 0);
	cr_assert_eq(f.last.body.move.qp, 7);
	cr_assert_eq(f.last.body.move.state, RD_QP_ERR);
}

Test(client_command, a_move_carries_all_that_the_program_requests)
{
	struct saker_qp *qp = make_qp(NULL);
	struct saker_qp_move m = {.state = RD_QP_RTR,
		.remote_qpn = 0x123456,
		.qkey = 0x80010000,
		.access = RD_ACC_REMOTE_READ,
		.ird = 1,
		.ord = 2,
		.rnr_retry = 3,
		.retry = 4,
		.min_rnr_timer = 5,
		.timeout = 6};
	const struct shm_qp_move *to = &f.last.body.move;

	sk_addr_parse("2001:db8::1", &m.remote);
	sk_addr_parse("2001:db8::2", &m.local);
	cr_assert_eq(saker_qp_move(qp, &m), 0);
	cr_assert_eq(f.last.op, SHM_QP_MODIFY);
	cr_assert_eq(to->qp, 7);
	cr_assert_eq(to->state, RD_QP_RTR);
	cr_assert_eq(to->remote_qpn, 0x123456);
	cr_assert_eq(to->qkey, 0x80010000);
	cr_assert_eq(to->access, RD_ACC_REMOTE_READ);
	cr_assert_eq(to->ird, 1);
	cr_assert_eq(to->ord, 2);
	cr_assert_eq(to->rnr_retry, 3);
	cr_assert_eq(to->retry, 4);
	cr_assert_eq(to->min_rnr_timer, 5);
	cr_assert_eq(to->timeout, 6);
	cr_assert(sk_addr_eq(&to->remote, &m.remote));
	cr_assert(sk_addr_eq(&to->local, &m.local));
}

Test(client_command, a_refusal_is_the_engines_sentence_and_status)
{
	struct saker_qp_attr attr = {.send_cq = cq, .recv_cq = cq};
	struct saker_srq *srq;
	struct saker_mr *mr;
	struct saker_qp *qp;
	struct saker_pd *more;
	struct saker_cq *other;
	void *mem = saker_alloc(s, 4096);

	f.refuse_status = -EDQUOT;
	f.refuse_text = "the quota of 7 things is used up";
	f.refuse_op = SHM_PD_CREATE;
	cr_assert_eq(saker_pd_create(s, &more), -EDQUOT);
	cr_assert_str_eq(saker_error(), f.refuse_text);
	f.refuse_op = SHM_MR_CREATE;
	cr_assert_eq(saker_mr_create(pd, mem, 4096, 0, &mr), -EDQUOT);
	f.refuse_op = SHM_CQ_CREATE;
	cr_assert_eq(saker_cq_create(s, 1, NULL, &other), -EDQUOT);
	f.refuse_op = SHM_SRQ_CREATE;
	cr_assert_eq(saker_srq_create(pd, 1, 1, &srq), -EDQUOT);
	f.refuse_op = SHM_QP_CREATE;
	cr_assert_eq(saker_qp_create(pd, &attr, &qp), -EDQUOT);
	f.refuse_op = SHM_CQ_DESTROY;
	f.refuse_text = "";
	cr_assert_eq(saker_cq_destroy(cq), -EDQUOT);
	cr_assert_str_eq(saker_error(), strerror(EDQUOT), "an empty sentence is replaced");
	f.refuse_op = 0;
	cr_assert_eq(saker_cq_destroy(cq), 0, "what was refused is still there");
}

Test(client_command, a_reason_that_is_no_errno_is_a_protocol_error)
{
	const int32_t reasons[] = {INT32_MIN, INT32_MIN + 1, -4096};
	struct saker_pd *more;

	f.refuse_op = SHM_PD_CREATE;
	f.refuse_text = "";
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		f.refuse_status = reasons[i];
		cr_assert_eq(saker_pd_create(s, &more), -EPROTO);
		cr_assert_str_eq(saker_error(), strerror(EPROTO));
	}
	f.refuse_status = -4095;
	cr_assert_eq(saker_pd_create(s, &more), -4095);
}

#define MANY 20

Test(client_command, many_qps_are_created_with_several_commands_under_way)
{
	struct saker_qp_attr attr = {.send_cq = cq, .recv_cq = cq, .sq_depth = 5};
	struct saker_qp *qp[MANY];

	f.backwards = true;
	cr_assert_eq(saker_qp_create_many(pd, &attr, MANY, qp), MANY);
	cr_assert_eq(f.seen[SHM_QP_CREATE], MANY);
	cr_assert_gt(f.most, 4);
	cr_assert_eq(attr.sq_depth, 8, "rounded up in place");
	for (int i = 0; i < MANY; i++) {
		cr_assert_eq(saker_qp_find(s, saker_qp_num(qp[i])), qp[i]);
		for (int k = 0; k < i; k++)
			cr_assert_neq(saker_qp_num(qp[i]), saker_qp_num(qp[k]));
	}
	cr_assert_eq(saker_qp_create_many(pd, &attr, 0, qp), 0);
}

static void
refuse_from_the_sixth(void)
{
	f.refuse_op = SHM_QP_CREATE;
	f.refuse_status = -EDQUOT;
	f.refuse_text = "no more";
	f.refuse_after = 5;
}

Test(client_command, qps_in_front_of_a_refused_one_remain)
{
	struct saker_qp_attr attr = {.send_cq = cq, .recv_cq = cq};
	struct saker_qp *qp[MANY];

	refuse_from_the_sixth();
	cr_assert_eq(saker_qp_create_many(pd, &attr, MANY, qp), 5);
	cr_assert_str_eq(saker_error(), "no more");
	cr_assert_eq(f.seen[SHM_QP_DESTROY], 0);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(saker_qp_destroy(qp[i]), 0);
}

Test(client_command, qps_behind_a_refused_one_are_destroyed)
{
	struct saker_qp_attr attr = {.send_cq = cq, .recv_cq = cq};
	struct saker_qp *qp[MANY];

	refuse_from_the_sixth();
	f.backwards = true; /* the first commands of the first batch of 8 are refused */
	cr_assert_eq(saker_qp_create_many(pd, &attr, MANY, qp), -EDQUOT);
	cr_assert_str_eq(saker_error(), "no more");
	cr_assert_eq(f.seen[SHM_QP_DESTROY], 5);
}

Test(client_command, a_reply_that_points_outside_the_region_is_not_followed)
{
	struct saker_qp_attr attr = {.send_cq = cq, .recv_cq = cq, .max_send_sge = 1};
	struct saker_cq *other;
	struct saker_qp *qp;

	f.nonsense = true;
	cr_assert_eq(saker_cq_create(s, 4, NULL, &other), -EPROTO);
	cr_assert_eq(f.seen[SHM_CQ_DESTROY], 1, "what was made is given back");
	cr_assert_eq(saker_qp_create(pd, &attr, &qp), -EPROTO);
	cr_assert_eq(f.seen[SHM_QP_DESTROY], 1);
}

Test(client_command, an_engine_that_goes_makes_commands_fail_and_destroying_succeed)
{
	struct saker_event ev;
	struct saker_pd *more;
	struct saker_qp *qp = make_qp(NULL);

	f.h->engine_alive = 0;
	cr_assert_eq(saker_pd_create(s, &more), -EPIPE);
	cr_assert_str_eq(saker_error(), "the saker has gone away");
	cr_assert_eq(saker_post_send(qp, &(struct saker_wr){0}, 1), -EPIPE);
	cr_assert_eq(saker_post_recv(qp, &(struct saker_wr){0}, 1), -EPIPE);
	cr_assert_eq(saker_wait(s, 0), 1, "there is an event");
	cr_assert_eq(saker_event(s, &ev), 1);
	cr_assert_eq(ev.type, SAKER_EV_ENGINE_GONE);
	cr_assert_eq(saker_event(s, &ev), 0, "it is told once");
	cr_assert_eq(saker_wait(s, -1), -EPIPE);
	cr_assert_eq(saker_qp_destroy(qp), 0, "it is gone with its engine");
}

/* ---- Threads ---- */

#define THREADS 6
#define ROUNDS  200

static uint32_t stop;

static void *
engine_thread(void *arg)
{
	while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0)
		fake_poll(arg);
	return NULL;
}

/* The reply to a query contains the handle that was queried, so a reply to the wrong thread is
 * detected. */
static void *
query_thread(void *arg)
{
	struct saker_qp_info info;
	struct saker_qp *qp = arg;

	for (int i = 0; i < ROUNDS; i++)
		if (saker_qp_query(qp, &info) != 0 ||
			info.qpn != 7 + (saker_qp_num(qp) - 0xabc000) / 3)
			return qp;
	return NULL;
}

Test(client_threads, each_thread_gets_the_reply_to_its_own_command)
{
	pthread_t t[THREADS], engine;
	void *base = aligned_alloc(4096, 1 << 20), *failed;

	memset(base, 0, 1 << 20);
	fake_init(&f, base, 1 << 20, 0);
	f.backwards = true;
	pthread_create(&engine, NULL, engine_thread, &f);
	cr_assert_eq(saker_open_flat(base, 1 << 20, NULL, NULL, &s), 0);
	cr_assert_eq(saker_pd_create(s, &pd), 0);
	cr_assert_eq(saker_cq_create(s, 5, &f, &cq), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, query_thread, make_qp(NULL));
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], &failed);
		cr_assert_null(failed);
	}
	saker_close(s);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(engine, NULL);
	cr_assert_eq(f.seen[SHM_QP_QUERY], THREADS * ROUNDS);
	free(base);
}
