/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting: the content of entries, limits, full and wrapping queues, doorbells. */
#include <criterion/criterion.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/client/path.h"
#include "fake.h"

#define DEPTH 8

static struct fake f;
static struct saker *s;
static struct saker_pd *pd;
static struct saker_cq *cq;
static struct saker_qp *qp;

static struct saker_qp *
make_qp(void)
{
	struct saker_qp_attr attr = {.send_cq = cq,
		.recv_cq = cq,
		.sq_depth = DEPTH,
		.rq_depth = DEPTH,
		.max_send_sge = 3,
		.max_recv_sge = 2,
		.max_inline = 100};
	struct saker_qp *out;

	cr_assert_eq(saker_qp_create(pd, &attr, &out), 0, "%s", saker_error());
	return out;
}

static void
setup(void)
{
	s = fake_flat(&f, 1 << 20, 1 << 17);
	cr_assert_eq(saker_pd_create(s, &pd), 0);
	cr_assert_eq(saker_cq_create(s, 64, NULL, &cq), 0);
	qp = make_qp();
}

static void
teardown(void)
{
	saker_close(s);
	free(f.home);
}

TestSuite(client_post, .init = setup, .fini = teardown);

static const struct rd_sge sges[4] = {
	{0x1000, 10, 1}, {0x2000, 20, 2}, {0x3000, 30, 3}, {0x4000, 40, 4}};

static struct saker_wr
write_wr(uint64_t id)
{
	struct saker_wr wr = {.wr_id = id,
		.opcode = RD_WRITE,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.rkey = 0xaabb,
		.remote_addr = 0x123456789,
		.imm = 77,
		.sge = sges};

	return wr;
}

Test(client_post, an_entry_has_the_fields_of_the_request)
{
	struct saker_wr wr = write_wr(0xfeedfacecafe);
	struct shm_sqe e;

	wr.nsge = 3;
	wr.flags = RD_SIGNALED | RD_SOLICITED | RD_FENCE;
	cr_assert_eq(saker_post_send(qp, &wr, 1), 1);
	cr_assert(fake_sq(&f, 0, &e));
	cr_assert_eq(e.opcode, RD_WRITE);
	cr_assert_eq(e.flags, RD_SIGNALED | RD_SOLICITED | RD_FENCE);
	cr_assert_eq(e.len, 3 * sizeof(struct rd_sge));
	cr_assert_eq(e.wr_id, 0xfeedfacecafe);
	cr_assert_eq(e.rkey, 0xaabb);
	cr_assert_eq(e.remote_addr, 0x123456789);
	cr_assert_eq(e.imm, 77);
	cr_assert_arr_eq(e.sge, sges, 3 * sizeof(sges[0]));
	cr_assert_not(fake_sq(&f, 0, &e));
}

Test(client_post, atomics_carry_one_element_operands_and_masks)
{
	struct saker_wr wr = write_wr(1);
	struct shm_sqe e;

	wr.opcode = RD_CMP_SWAP;
	wr.data = 11;
	wr.data_mask = 12;
	wr.compare = 13;
	wr.compare_mask = 14;
	cr_assert_eq(saker_post_send(qp, &wr, 1), 1);
	cr_assert(fake_sq(&f, 0, &e));
	cr_assert_eq(e.len, 40);
	cr_assert_eq(e.data, 11);
	cr_assert_eq(e.atomic.compare, 13);
	cr_assert_arr_eq(&e.atomic.sink, sges, sizeof(sges[0]));
	cr_assert_eq(e.atomic.data_mask, 12);
	cr_assert_eq(e.atomic.compare_mask, 14);
	wr.data_mask = wr.compare_mask = UINT64_MAX;
	cr_assert_eq(saker_post_send(qp, &wr, 1), 1);
	cr_assert(fake_sq(&f, 0, &e));
	cr_assert_eq(e.len, 24, "a Compare and Swap without masks uses one unit");
	cr_assert(e.data == 11 && e.atomic.compare == 13);
	wr.opcode = RD_FETCH_ADD;
	wr.data_mask = 15;
	cr_assert_eq(saker_post_send(qp, &wr, 1), 1);
	cr_assert(fake_sq(&f, 0, &e));
	cr_assert(e.len == 24 && e.data == 11 && e.atomic.add_mask == 15);
	wr.opcode = RD_SWAP;
	cr_assert_eq(saker_post_send(qp, &wr, 1), 1);
	cr_assert(fake_sq(&f, 0, &e));
	cr_assert(e.len == 16 && e.data == 11 && e.atomic.sink.addr == sges[0].addr);
	for (unsigned i = 0; i < 2; i++) {
		wr.opcode = i == 0 ? RD_FETCH_ADD : RD_CMP_SWAP;
		wr.nsge = 2;
		cr_assert_eq(saker_post_send(qp, &wr, 1), -EINVAL);
		wr.nsge = 0;
		cr_assert_eq(saker_post_send(qp, &wr, 1), -EINVAL);
		wr.nsge = 1;
		wr.flags = RD_INLINE;
		cr_assert_eq(saker_post_send(qp, &wr, 1), -EINVAL);
		wr.flags = 0;
	}
}

/* The masks of a Compare and Swap do not fit into an entry of one unit: they continue in the next
 * entry, also when that is the first of the ring. */
Test(client_post, a_tail_that_is_longer_than_its_entry_continues_in_the_next)
{
	struct saker_qp_attr attr = {
		.send_cq = cq, .recv_cq = cq, .sq_depth = 4, .rq_depth = 2, .max_send_sge = 1};
	struct saker_wr wr = write_wr(1);
	struct saker_qp *small;
	struct shm_sqe e, more;

	cr_assert_eq(saker_qp_create(pd, &attr, &small), 0, "%s", saker_error());
	cr_assert_eq(f.qp[1].sq.stride, SHM_SQE_UNIT);
	for (uint64_t lap = 0; lap < 10; lap++) {
		wr.opcode = RD_CMP_SWAP;
		wr.wr_id = lap;
		wr.data = 21 + lap;
		wr.compare = 22;
		wr.data_mask = 23;
		wr.compare_mask = 24;
		cr_assert_eq(saker_post_send(small, &wr, 1), 1);
		cr_assert(fake_sq(&f, 1, &e));
		cr_assert(e.opcode == RD_CMP_SWAP && e.len == 40 && e.wr_id == lap);
		cr_assert(e.data == 21 + lap && e.atomic.compare == 22);
		cr_assert(fake_sq(&f, 1, &more), "the rest was published before");
		cr_assert_eq(*(uint64_t *)((uint8_t *)&more + SHM_SQE_MORE), 23);
		cr_assert_eq(*(uint64_t *)((uint8_t *)&more + SHM_SQE_MORE + 8), 24);
		/* An odd number of entries, so that the next one begins at another place. */
		wr.opcode = RD_WRITE;
		cr_assert_eq(saker_post_send(small, &wr, 1), 1);
		cr_assert(fake_sq(&f, 1, &e));
		cr_assert_eq(e.opcode, RD_WRITE);
		cr_assert_not(fake_sq(&f, 1, &e));
	}
	wr.opcode = RD_WRITE;
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(saker_post_send(small, &wr, 1), 1);
	wr.opcode = RD_CMP_SWAP;
	cr_assert_eq(saker_post_send(small, &wr, 1), 0, "one entry is free, it needs two");
}

/* Type 1 increments its key within 8 bits; type 2 takes the program's key. */
Test(client_post, a_bind_names_window_region_range_and_rights)
{
	static const uint8_t type_1[] = {0xff, 0x00, 0x01}, type_2[] = {0x77, 0x77, 0x77};
	uint8_t *mem = saker_alloc(s, 4096);
	struct saker_mw_bind b = {.wr_id = 9, .flags = 0xff, .key = 0x77, .access = 6};
	struct saker_mw *mw[2];
	struct saker_mr *mr;
	struct shm_sqe e;

	cr_assert_eq(saker_mr_create(pd, mem, 4096, RD_ACC_MW_BIND, &mr), 0);
	cr_assert_eq(saker_mw_alloc(pd, RD_MW_TYPE_1, &mw[0]), 0);
	cr_assert_eq(saker_mw_alloc(pd, RD_MW_TYPE_2, &mw[1]), 0);
	b.mr = mr;
	b.addr = (uintptr_t)mem + 8;
	b.len = 1ull << 33;
	for (unsigned i = 0; i < 6; i++) {
		cr_assert_eq(saker_mw_bind(qp, mw[i % 2], &b), 0);
		cr_assert(fake_sq(&f, 0, &e));
		cr_assert(e.opcode == RD_BIND_MW && e.wr_id == 9 && e.len == 16);
		cr_assert_eq(e.flags, RD_SIGNALED | RD_FENCE);
		cr_assert_eq(e.rkey, 0xabcd0000u | (i % 2 ? type_2 : type_1)[i / 2]);
		cr_assert_eq(e.rkey, saker_mw_stag(mw[i % 2]));
		cr_assert_eq(e.imm, saker_mr_stag(mr));
		cr_assert(e.remote_addr == b.addr && e.bind.len == b.len && e.bind.access == 6);
	}
	b = (struct saker_mw_bind){.wr_id = 10};
	cr_assert_eq(saker_mw_bind(qp, mw[0], &b), 0);
	cr_assert(fake_sq(&f, 0, &e));
	cr_assert(e.bind.len == 0 && e.imm == 0 && e.flags == 0);
}

Test(client_post, a_bind_that_is_not_posted_leaves_the_key)
{
	struct saker_mw_bind b = {.wr_id = 1};
	struct saker_mw *mw;

	cr_assert_eq(saker_mw_alloc(pd, RD_MW_TYPE_1, &mw), 0);
	for (unsigned i = 0; i < DEPTH; i++)
		cr_assert_eq(saker_mw_bind(qp, mw, &b), 0);
	cr_assert_eq(saker_mw_stag(mw), 0xabcd0006);
	cr_assert_eq(saker_mw_bind(qp, mw, &b), -ENOMEM);
	cr_assert_eq(saker_mw_stag(mw), 0xabcd0006);
}

Test(client_post, inline_data_is_gathered_at_once)
{
	char a[] = "gathered ", b[] = "at once";
	struct rd_sge sge[2] = {{(uintptr_t)a, 9, 0xdead}, {(uintptr_t)b, 7, 0xbeef}};
	struct saker_wr wr = write_wr(1);
	struct shm_sqe e;

	wr.flags = RD_INLINE;
	wr.sge = sge;
	wr.nsge = 2;
	cr_assert_eq(saker_post_send(qp, &wr, 1), 1);
	memset(a, 'x', sizeof(a));
	cr_assert(fake_sq(&f, 0, &e));
	cr_assert_eq(e.len, 16);
	cr_assert_arr_eq(e.inl, "gathered at once", 16);
}

Test(client_post, inline_data_beyond_the_limit_is_refused)
{
	uint8_t bytes[101] = {0};
	struct rd_sge sge[2] = {{(uintptr_t)bytes, 100, 0}, {(uintptr_t)bytes, 1, 0}};
	struct saker_wr wr = write_wr(1);

	wr.flags = RD_INLINE;
	wr.sge = sge;
	wr.nsge = 1;
	cr_assert_eq(saker_post_send(qp, &wr, 1), 1, "just the limit");
	wr.nsge = 2;
	cr_assert_eq(saker_post_send(qp, &wr, 1), -EINVAL);
	sge[1].len = UINT32_MAX;
	cr_assert_eq(saker_post_send(qp, &wr, 1), -EINVAL, "a sum that would wrap");
}

Test(client_post, what_exceeds_the_capabilities_is_refused_and_rings_nothing)
{
	struct saker_wr wr = write_wr(1);
	struct shm_sqe e;

	wr.nsge = 4;
	cr_assert_eq(saker_post_send(qp, &wr, 1), -EINVAL);
	wr.nsge = 1;
	wr.opcode = RD_RECV;
	cr_assert_eq(saker_post_send(qp, &wr, 1), -EINVAL);
	fake_poll(&f);
	cr_assert_eq(f.qp[0].rung, 0);
	cr_assert_not(fake_sq(&f, 0, &e));
}

Test(client_post, a_burst_ends_before_the_request_that_cannot_be)
{
	struct saker_wr wr[3] = {write_wr(1), write_wr(2), write_wr(3)};
	struct shm_sqe e;

	wr[1].nsge = 4;
	cr_assert_eq(saker_post_send(qp, wr, 3), 1);
	cr_assert(fake_sq(&f, 0, &e));
	cr_assert_eq(e.wr_id, 1);
	cr_assert_not(fake_sq(&f, 0, &e));
}

Test(client_post, a_full_queue_takes_no_more_until_the_engine_has_copied)
{
	struct saker_wr wr[DEPTH + 2];
	struct shm_sqe e;

	for (int i = 0; i < DEPTH + 2; i++)
		wr[i] = write_wr((uint64_t)i);
	cr_assert_eq(saker_post_send(qp, wr, DEPTH + 2), DEPTH);
	cr_assert_eq(saker_post_send(qp, wr, 1), 0);
	cr_assert(fake_sq(&f, 0, &e));
	cr_assert_eq(saker_post_send(qp, &wr[DEPTH], 2), 1);
	for (uint64_t i = 1; i <= DEPTH; i++) {
		cr_assert(fake_sq(&f, 0, &e));
		cr_assert_eq(e.wr_id, i);
	}
}

Test(client_post, order_and_content_survive_many_laps)
{
	uint64_t in = 0, out = 0;

	while (out < 1000) {
		struct shm_sqe e;
		struct saker_wr wr[3] = {write_wr(in), write_wr(in + 1), write_wr(in + 2)};

		wr[0].nsge = (uint8_t)(in % 4);
		in += (uint64_t)saker_post_send(qp, wr, 3);
		for (uint64_t n = 1 + out % 4; n > 0 && fake_sq(&f, 0, &e); n--)
			cr_assert_eq(e.wr_id, out++);
	}
	cr_assert_leq(in - out, DEPTH);
}

Test(client_post, a_burst_rings_once_and_again_only_when_the_engine_has_looked)
{
	struct saker_wr wr[4] = {write_wr(0), write_wr(1), write_wr(2), write_wr(3)};

	cr_assert_eq(saker_post_send(qp, wr, 4), 4);
	cr_assert_eq(saker_post_send(qp, wr, 2), 2);
	fake_poll(&f);
	cr_assert_eq(f.qp[0].rung, 1);
	cr_assert_eq(saker_post_send(qp, wr, 1), 1);
	fake_poll(&f);
	cr_assert_eq(f.qp[0].rung, 2);
}

Test(client_post, an_engine_with_a_wrong_index_gives_no_room_that_is_not_there)
{
	struct saker_wr wr = write_wr(0);
	struct shm_sqe e;

	while (saker_post_send(qp, &wr, 1) == 1)
		wr.wr_id++;
	cr_assert_eq(wr.wr_id, DEPTH);
	f.qp[0].shared->sq.taken = 0xfffffff0u;
	cr_assert_eq(saker_post_send(qp, &wr, 1), 0);
	f.qp[0].shared->sq.taken = DEPTH + 1;
	cr_assert_eq(saker_post_send(qp, &wr, 1), 0);
	cr_assert(fake_sq(&f, 0, &e));
	cr_assert_eq(e.wr_id, 0, "nothing was overwritten");
}

Test(client_post, a_full_doorbell_ring_is_tried_again_by_the_next_post)
{
	struct saker_wr wr = write_wr(0);

	/* The engine takes none of 128 doorbells. */
	f.mute = true;
	for (int i = 0; i < 128; i++) {
		cr_assert_eq(saker_post_send(qp, &wr, 1), 1);
		f.qp[0].shared->pending = 0;
		f.qp[0].shared->sq.taken++;
	}
	cr_assert_eq(saker_post_send(qp, &wr, 1), 1);
	cr_assert_eq(f.qp[0].shared->pending, 0, "nothing was rung: it is still due");
	f.mute = false;
	fake_poll(&f);
	cr_assert_eq(saker_post_send(qp, &wr, 1), 1);
	cr_assert_eq(f.qp[0].shared->pending, 1);
}

Test(client_post, receives_carry_id_and_elements_and_ring_nothing)
{
	struct saker_wr wr[DEPTH + 1];
	const struct shm_rqe *e;

	for (int i = 0; i <= DEPTH; i++)
		wr[i] = (struct saker_wr){.wr_id = 100 + (uint64_t)i, .nsge = 2, .sge = sges};
	cr_assert_eq(saker_post_recv(qp, wr, DEPTH + 1), DEPTH);
	cr_assert_eq(saker_post_recv(qp, wr, 1), 0);
	for (uint64_t i = 0; i < DEPTH; i++) {
		e = shm_take_peek(&f.qp[0].rq);
		cr_assert_not_null(e);
		cr_assert_eq(e->wr_id, 100 + i);
		cr_assert_eq(e->nsge, 2);
		cr_assert_arr_eq(e->sge, sges, 2 * sizeof(sges[0]));
		shm_take_pop(&f.qp[0].rq);
	}
	fake_poll(&f);
	cr_assert_eq(f.qp[0].rung, 0);
	shm_take_publish(&f.qp[0].rq);
	wr[0].nsge = 3;
	cr_assert_eq(saker_post_recv(qp, wr, 1), -EINVAL);
	wr[0].nsge = 0;
	cr_assert_eq(saker_post_recv(qp, wr, 1), 1, "a receive of nothing is one");
}

Test(client_post, a_queue_pair_in_error_rings_for_its_receives)
{
	struct saker_wr wr = {.wr_id = 1};
	struct shm_cqe *e = shm_prod_entry(&f.cq[0].sub[0]);
	struct rd_wc wc;

	cr_assert_eq(saker_post_recv(qp, &wr, 1), 1);
	fake_poll(&f);
	cr_assert_eq(f.qp[0].rung, 0);
	e->qpn = saker_qp_num(qp);
	e->status = RD_WR_FLUSH_ERR;
	shm_prod_push(&f.cq[0].sub[0]);
	cr_assert_eq(saker_cq_poll(cq, &wc, 1), 1);
	fake_poll(&f);
	cr_assert_eq(f.qp[0].rung, 1, "what was posted before the error was seen");
	cr_assert_eq(saker_post_recv(qp, &wr, 1), 1);
	fake_poll(&f);
	cr_assert_eq(f.qp[0].rung, 2, "what is posted after");
}

/* Posts a receive. Returns how many doorbells the QP has rung by then. */
static uint32_t
rung_by_receive(void)
{
	struct saker_wr wr = {.wr_id = 1};

	cr_assert_eq(saker_post_recv(qp, &wr, 1), 1);
	fake_poll(&f);
	return f.qp[0].rung;
}

static void
event_of(uint16_t op)
{
	struct shm_msg m = {.op = op, .status = -ECONNRESET};
	struct saker_event ev;

	m.body.cm.qp = 7;
	fake_event(&f, &m);
	cr_assert_eq(saker_event(s, &ev), 1);
	cr_assert_eq(ev.qp, qp);
	fake_poll(&f);
}

Test(client_post, a_queue_pair_that_the_program_moved_to_err_rings_for_its_receives)
{
	cr_assert_eq(rung_by_receive(), 0);
	f.refuse_op = SHM_QP_MODIFY;
	f.refuse_status = -EBUSY;
	f.refuse_text = "it is connecting";
	cr_assert_eq(saker_qp_modify(qp, RD_QP_ERR), -EBUSY);
	cr_assert_eq(rung_by_receive(), 0, "it is not in error");
	f.refuse_op = 0;
	cr_assert_eq(saker_qp_modify(qp, RD_QP_ERR), 0);
	fake_poll(&f);
	cr_assert_eq(f.qp[0].rung, 1, "what was posted before the move");
	cr_assert_eq(rung_by_receive(), 2, "what is posted after");
	cr_assert_eq(saker_qp_modify(qp, RD_QP_RESET), 0);
	cr_assert_eq(rung_by_receive(), 2, "the error is over");
}

/* The connection may have ended during its start-up, and no other event reports the error. */
Test(client_post, a_queue_pair_whose_connection_did_not_come_rings_for_its_receives)
{
	event_of(SHM_EV_UNREACHABLE);
	cr_assert_eq(f.qp[0].rung, 1, "what was posted before the event");
	cr_assert_eq(rung_by_receive(), 2, "what is posted after");
	event_of(SHM_EV_ESTABLISHED);
	cr_assert_eq(rung_by_receive(), 2, "another attempt has succeeded");
}

Test(client_post, a_lookup_of_a_datagram_queue_pair_changes_no_state)
{
	cl_sq_of(qp)->type = SAKER_UD;
	event_of(SHM_EV_UNREACHABLE);
	cr_assert_eq(rung_by_receive(), 0);
	cr_assert_eq(saker_qp_modify(qp, RD_QP_ERR), 0);
	cr_assert_eq(rung_by_receive(), 1);
	event_of(SHM_EV_ESTABLISHED);
	cr_assert_eq(rung_by_receive(), 2, "nor does its success end one");
}

Test(client_post, a_shared_receive_queue_takes_from_each_qp)
{
	struct saker_wr wr = {.wr_id = 5, .nsge = 1, .sge = sges};
	struct saker_srq *srq;
	const struct shm_rqe *e;

	cr_assert_eq(saker_srq_create(pd, 2, 1, &srq), 0);
	cr_assert_eq(saker_post_srq(srq, &wr, 1), 1);
	e = shm_take_peek(&f.srq[0]);
	cr_assert_not_null(e);
	cr_assert_eq(e->wr_id, 5);
	wr.nsge = 2;
	cr_assert_eq(saker_post_srq(srq, &wr, 1), -EINVAL);
	wr.nsge = 1;
	cr_assert_eq(saker_post_srq(srq, &wr, 1), 1);
	cr_assert_eq(saker_post_srq(srq, &wr, 1), 0);
	cr_assert_eq(saker_srq_destroy(srq), 0);
}

/* ---- Threads, a QP each, one doorbell ring ---- */

#define THREADS 3
#define POSTS   20000

static void *
poster(void *arg)
{
	for (uint64_t i = 0; i < POSTS;) {
		struct saker_wr wr = write_wr(i);
		int n = saker_post_send(arg, &wr, 1);

		if (n < 0)
			return arg;
		i += (uint64_t)n;
		if (n == 0)
			sched_yield();
	}
	return NULL;
}

Test(client_post, threads_post_to_their_queues_and_every_request_comes_once)
{
	struct saker_qp *mine[THREADS * FAKE_STAGES];
	uint64_t next[THREADS] = {0};
	pthread_t t[THREADS];
	void *failed;
	bool all = false;

	/* Every third QP belongs to stage 0: these QPs share its doorbell ring. */
	for (int i = 0; i < THREADS * FAKE_STAGES; i++)
		mine[i] = make_qp();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, poster, mine[i * FAKE_STAGES]);
	while (!all) {
		uint32_t before[THREADS];

		for (int i = 0; i < THREADS; i++)
			before[i] = f.qp[1 + i * FAKE_STAGES].rung;
		fake_poll(&f);
		all = true;
		for (int i = 0; i < THREADS; i++) {
			uint32_t q = 1 + (uint32_t)i * FAKE_STAGES;
			struct shm_sqe e;

			/* The engine polls a queue only after a doorbell, so a lost one hangs. */
			while (f.qp[q].rung != before[i] && fake_sq(&f, q, &e))
				cr_assert_eq(e.wr_id, next[i]++);
			all = all && next[i] == POSTS;
		}
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], &failed);
		cr_assert_null(failed);
	}
}
