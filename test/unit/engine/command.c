/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of a hostile client: the control stage refuses each with a sentence, and keeps no object
 * of a refused command. */
#include "script.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../../../lib/engine/control/core/core.h"

static struct script *s;
static struct hand a, b;

static void
setup(void)
{
	s = script_new(NULL);
	hand_attach(&a, s);
	hand_attach(&b, s);
}

static void
finish(void)
{
	struct eng_totals t = {0};

	eng_control_detach(s->control, a.number);
	eng_control_detach(s->control, b.number);
	script_turns(s, 50);
	eng_control_totals(s->control, &t);
	cr_assert_eq(t.clients + t.qps + t.cqs + t.mrs + t.mws + t.pds + t.srqs + t.listeners, 0);
	cr_assert_eq(rd_mr_count(s->mrs), 0);
	cr_assert_eq(script_out(s), 0);
	script_free(s);
	hand_free(&a);
	hand_free(&b);
}

TestSuite(engine_command, .init = setup, .fini = finish);

/* ---- Waking the client ---- */

/* Returns how many messages have woken the client since the last call. */
static uint64_t
woken(int fd)
{
	uint64_t n = 0;

	return read(fd, &n, sizeof(n)) < 0 ? 0 : n;
}

Test(engine_command, a_reply_does_not_wake_a_client_that_sleeps_until_an_event_comes)
{
	static const struct {
		uint32_t sleeps;
		uint64_t reply, event;
	} rows[] = {{SHM_AWAKE, 0, 0}, {SHM_SLEEPS, 1, 1}, {SHM_SLEEPS_EVENTS, 0, 1}};
	struct ctl_client *cl = hand_client(&a);
	int fd = eventfd(0, EFD_NONBLOCK);
	struct shm_msg m = {0};

	cl->eng.wake_fd = fd;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cl->eng.header->client_sleeps = rows[i].sleeps;
		cr_assert_eq(hand_do(&a, &m, SHM_QUERY_DEVICE), 0);
		cr_assert_eq(woken(fd), rows[i].reply, "row %zu", i);
		ctl_client_send_async(s->control, cl, SHM_EV_CQ_OVERFLOW, 0, 0, "");
		cr_assert_eq(woken(fd), rows[i].event, "row %zu", i);
		cr_assert(hand_next(&a, &m));
	}
	cl->eng.wake_fd = -1;
	close(fd);
}

/* ---- Commands that are refused ---- */

Test(engine_command, operations_that_do_not_exist)
{
	static const int ops[] = {0, SHM_OP_COUNT, 99, SHM_EV_CONNECT_REQUEST, 65535};

	for (unsigned i = 0; i < 5; i++) {
		struct shm_msg m = {0};

		cr_assert_eq(hand_do(&a, &m, (enum shm_op)ops[i]), -EOPNOTSUPP);
	}
	cr_assert_eq(script_counter(s, ENG_BAD_COMMAND), 5);
}

Test(engine_command, every_operation_with_every_byte_set_or_clear)
{
	for (int fill = 0; fill <= 0xff; fill += 0xff) {
		for (int op = SHM_PD_DESTROY; op < SHM_OP_COUNT; op++) {
			struct shm_msg m;

			/* A command of zeros is a valid SHM_LISTEN: any address, any port. */
			if (op == SHM_LISTEN)
				continue;
			memset(&m, fill, sizeof(m));
			m.rsv2 = 0;
			cr_assert_lt(
				hand_do(&a, &m, (enum shm_op)op), 0, "op %d with %#x", op, fill);
		}
	}
}

static struct shm_mr
good_mr(uint32_t pd)
{
	return (struct shm_mr){.pd = pd,
		.access = RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE,
		.base = 0x1000,
		.len = 8192,
		.nextents = 2,
		.extents = {{.region = SHM_HOME, .offset = a.h.mem, .len = 4096},
			{.region = SHM_HOME, .offset = a.h.mem + 8192, .len = 4096}}};
}

Test(engine_command, memory_regions_outside_of_the_clients_memory)
{
	uint32_t pd = hand_pd(&a);
	const uint64_t end = a.h.mem + a.h.mem_len;
	struct shm_mr bad[24];
	struct shm_msg m = {.body.mr = good_mr(pd)};
	struct rd_mr *mr;
	unsigned n = 0;

	cr_assert_eq(hand_do(&a, &m, SHM_MR_CREATE), 0, "%s", m.body.text);
	mr = rd_mr_lookup(s->mrs, m.body.mr.stag);
	cr_assert_not_null(mr);
	cr_assert_eq(mr->extents[1].host, a.home + a.h.mem + 8192);
	for (unsigned i = 0; i < 24; i++)
		bad[i] = good_mr(pd);
	bad[n++].pd = pd + 1;
	bad[n++].pd = UINT32_MAX;
	bad[n++].access = 0x80;
	bad[n++].access = RD_ACC_REMOTE_WRITE;
	bad[n++].access = RD_ACC_REMOTE_ATOMIC;
	bad[n++].len = 0;
	bad[n++].len = 8191;
	bad[n++].len = 8193;
	bad[n++].len = UINT64_MAX;
	bad[n++].base = UINT64_MAX - 8190;
	bad[n++].nextents = 0;
	bad[n++].nextents = SHM_MAX_EXTENTS + 1;
	bad[n++].nextents = 1;
	bad[n++].nextents = 3;
	bad[n++].nextents = UINT32_MAX;
	bad[n++].extents[0].region = 1;
	bad[n++].extents[0].region = SHM_MAX_REGIONS;
	bad[n++].extents[0].region = UINT32_MAX;
	bad[n++].extents[0].offset = 0; /* in the header */
	bad[n++].extents[0].offset = a.h.mem - 1;
	bad[n++].extents[0].offset = end - 4095;
	bad[n++].extents[0].offset = UINT64_MAX - 100;
	bad[n].extents[0].len = UINT64_MAX;
	bad[n++].extents[1].len = 4097;
	bad[n].extents[0].len = 0;
	bad[n++].extents[1].len = 8192;
	cr_assert_eq(n, 24);
	for (unsigned i = 0; i < n; i++) {
		m.body.mr = bad[i];
		cr_assert_lt(hand_do(&a, &m, SHM_MR_CREATE), 0, "row %u", i);
	}
	cr_assert_eq(rd_mr_count(s->mrs), 1);
	/* The last byte of the home region belongs to the client. */
	m.body.mr = good_mr(pd);
	m.body.mr.extents[0].offset = end - 4096;
	cr_assert_eq(hand_do(&a, &m, SHM_MR_CREATE), 0, "%s", m.body.text);
}

Test(engine_command, a_region_outlives_its_registration_until_all_loops_were_quiet)
{
	struct shm_msg m = {.body.mr = good_mr(hand_pd(&a))};
	uint32_t handle, stag;

	cr_assert_eq(hand_do(&a, &m, SHM_MR_CREATE), 0);
	handle = m.body.mr.mr;
	stag = m.body.mr.stag;
	s->reader_busy = true;
	m.body.handle = handle;
	hand_send(&a, &m, SHM_MR_DESTROY);
	cr_assert_not(hand_next(&a, &m), "answered while a loop may be using it");
	cr_assert_null(rd_mr_lookup(s->mrs, stag));
	/* The protection domain still has a user, and the handle is not valid any more. */
	cr_assert_eq(hand_destroy(&a, SHM_PD_DESTROY, 0), -EBUSY);
	cr_assert_eq(hand_destroy(&a, SHM_MR_DESTROY, handle), -EINVAL);
	s->reader_busy = false;
	cr_assert(hand_next(&a, &m));
	cr_assert_eq(m.op, SHM_MR_DESTROY);
	cr_assert_eq(m.status, 0);
	cr_assert_eq(hand_destroy(&a, SHM_PD_DESTROY, 0), 0);
}

Test(engine_command, a_region_that_replaces_another_has_its_stag)
{
	struct shm_msg m = {.body.mr = good_mr(hand_pd(&a))}, again;
	uint32_t old, stag;

	cr_assert_eq(hand_do(&a, &m, SHM_MR_CREATE), 0);
	old = m.body.mr.mr;
	stag = m.body.mr.stag;
	again = (struct shm_msg){.body.mr = good_mr(0)};
	again.body.mr.access = RD_ACC_REMOTE_READ;
	again.body.mr.replaces = old + 1;
	s->reader_busy = true;
	hand_send(&a, &again, SHM_MR_CREATE);
	cr_assert_not(hand_next(&a, &m), "answered while a loop may be using the old one");
	cr_assert_eq(rd_mr_lookup(s->mrs, stag)->access, RD_ACC_REMOTE_READ);
	s->reader_busy = false;
	cr_assert(hand_next(&a, &m));
	cr_assert_eq(m.status, 0);
	cr_assert_eq(m.body.mr.stag, stag);
	cr_assert_neq(m.body.mr.mr, old);
	cr_assert_eq(rd_mr_count(s->mrs), 1);
	cr_assert_eq(hand_do(&a, &again, SHM_MR_CREATE), -EINVAL, "the old one has ended");
	/* A window that is bound to a region keeps it. */
	again = (struct shm_msg){.body.mr = good_mr(0)}; /* a refusal has overwritten it */
	again.body.mr.replaces = m.body.mr.mr + 1;
	rd_mr_lookup(s->mrs, stag)->windows = 1;
	cr_assert_eq(hand_do(&a, &again, SHM_MR_CREATE), -EBUSY);
	cr_assert_eq(rd_mr_count(s->mrs), 1);
	rd_mr_lookup(s->mrs, stag)->windows = 0;
	cr_assert_eq(hand_destroy(&a, SHM_MR_DESTROY, m.body.mr.mr), 0);
	cr_assert_null(rd_mr_lookup(s->mrs, stag));
}

/* A loop that touched a deep queue as a whole would stand still. */
Test(engine_command, the_deepest_completion_queue_fits_and_is_not_touched)
{
	struct shm_msg m = {0}, qp;
	uint32_t depth, cq;
	uint8_t *at;

	s->cfg.limits.cq_depth = 1u << 22;
	cr_assert_eq(hand_do(&a, &m, SHM_QUERY_DEVICE), 0);
	depth = m.body.device.max_cq_depth;
	cr_assert(depth > 1024 && depth < 1u << 22, "the heap bounds it: %u", depth);
	m = (struct shm_msg){.body.cq.depth = 1u << 22};
	cr_assert_eq(hand_do(&a, &m, SHM_CQ_CREATE), 0, "a queue without a stage needs no ring");
	m = (struct shm_msg){.body.cq.depth = depth};
	cr_assert_eq(hand_do(&a, &m, SHM_CQ_CREATE), 0);
	cq = m.body.cq.cq;
	at = a.home + m.body.cq.at;
	memset(at + 4096, 0x5a, 4096);
	qp = (struct shm_msg){.body.qp = {.pd = hand_pd(&a),
				      .send_cq = cq,
				      .recv_cq = cq,
				      .srq = SHM_NONE,
				      .sq_depth = 8,
				      .rq_depth = 8}};
	cr_assert_eq(hand_do(&a, &qp, SHM_QP_CREATE), 0, "%s", qp.body.text);
	for (int i = 0; i < 4096; i++)
		cr_assert_eq(at[4096 + i], 0x5a, "byte %d of the ring was cleared", i);
}

Test(engine_command, queues_beyond_the_limits)
{
	static const uint32_t depth[] = {0, 1025, UINT32_MAX};
	uint32_t pd = hand_pd(&a), cq = hand_cq(&a);
	struct shm_msg good = {.body.qp = {.pd = pd,
				       .send_cq = cq,
				       .recv_cq = cq,
				       .srq = SHM_NONE,
				       .sq_depth = 8,
				       .rq_depth = 8}};
	struct shm_msg m;

	for (unsigned i = 0; i < 3; i++) {
		m = (struct shm_msg){.body.cq.depth = depth[i]};
		cr_assert_eq(hand_do(&a, &m, SHM_CQ_CREATE), -EINVAL);
		m = (struct shm_msg){.body.srq = {.pd = pd,
					     .depth = depth[i],
					     .max_sge = 1,
					     .xrcd = SHM_NONE,
					     .cq = SHM_NONE}};
		cr_assert_eq(hand_do(&a, &m, SHM_SRQ_CREATE), -EINVAL);
	}
	m = (struct shm_msg){.body.srq = {.pd = pd,
				     .depth = 8,
				     .max_sge = RD_MAX_SGE + 1,
				     .xrcd = SHM_NONE,
				     .cq = SHM_NONE}};
	cr_assert_eq(hand_do(&a, &m, SHM_SRQ_CREATE), -EINVAL);
#define BAD_QP(field, value, status)                                                               \
	do {                                                                                       \
		m = good;                                                                          \
		m.body.qp.field = value;                                                           \
		cr_assert_eq(hand_do(&a, &m, SHM_QP_CREATE), status, #field);                      \
	} while (0)
	BAD_QP(pd, pd + 1, -EINVAL);
	BAD_QP(send_cq, cq + 1, -EINVAL);
	BAD_QP(recv_cq, SHM_NONE, -EINVAL);
	BAD_QP(srq, 0, -EINVAL);
	BAD_QP(sq_depth, 257, -EINVAL);
	BAD_QP(rq_depth, UINT32_MAX, -EINVAL);
	BAD_QP(max_send_sge, RD_MAX_SGE + 1, -EINVAL);
	BAD_QP(max_recv_sge, UINT32_MAX, -EINVAL);
	BAD_QP(max_inline, RD_MAX_INLINE + 1, -EINVAL);
	BAD_QP(transport, SHM_FALCON, -EPROTONOSUPPORT);
	cr_assert_eq(script_count(s, ENG_CE_QP_ADD), 0);
	m = good;
	cr_assert_eq(hand_do(&a, &m, SHM_QP_CREATE), 0);
}

Test(engine_command, a_qp_lies_within_the_heap_and_reports_its_depths)
{
	uint32_t pd = hand_pd(&a), cq = hand_cq(&a);
	struct shm_msg m = hand_qp(&a, pd, cq);
	const struct shm_qp_info *q = &m.body.qp;
	uint64_t heap_end = a.h.heap + a.h.heap_len;

	cr_assert_eq(q->sq_depth, 16);
	cr_assert_eq(q->sq.stride, 128);
	cr_assert_eq(q->max_inline, 88);
	cr_assert_eq(q->max_send_sge, 5);
	cr_assert_eq(q->rq.stride, 64);
	cr_assert_eq(q->max_recv_sge, 3);
	cr_assert_geq(q->at, a.h.heap);
	cr_assert(shm_ring_ok(&q->sq, heap_end, 128) && shm_ring_ok(&q->rq, heap_end, 64));
	cr_assert_geq(q->rq.entries, q->sq.entries + 16 * 128);
	cr_assert_gt(q->qpn, 1);
	cr_assert_lt(q->qpn, 1u << 24);
}

Test(engine_command, handles_of_others_and_of_the_dead_are_nobodys)
{
	uint32_t pd = hand_pd(&a), cq = hand_cq(&a);
	struct shm_msg qp = hand_qp(&a, pd, cq);

	cr_assert_eq(hand_destroy(&b, SHM_PD_DESTROY, pd), -EINVAL);
	cr_assert_eq(hand_destroy(&b, SHM_CQ_DESTROY, cq), -EINVAL);
	cr_assert_eq(hand_destroy(&b, SHM_QP_DESTROY, qp.body.qp.qp), -EINVAL);
	cr_assert_eq(hand_destroy(&b, SHM_QP_QUERY, qp.body.qp.qp), -EINVAL);
	cr_assert_eq(hand_destroy(&a, SHM_QP_DESTROY, qp.body.qp.qp), 0);
	cr_assert_eq(hand_destroy(&a, SHM_QP_DESTROY, qp.body.qp.qp), -EINVAL);
	cr_assert_eq(hand_destroy(&a, SHM_CQ_DESTROY, cq), 0);
	cr_assert_eq(hand_destroy(&a, SHM_CQ_DESTROY, cq), -EINVAL);
	cr_assert_eq(hand_destroy(&a, SHM_PD_DESTROY, pd), 0);
	cr_assert_eq(hand_destroy(&a, SHM_PD_DESTROY, pd), -EINVAL);
}

Test(engine_command, what_is_in_use_is_busy)
{
	uint32_t pd = hand_pd(&a), cq = hand_cq(&a);
	struct shm_msg srq = {
		.body.srq = {.pd = pd, .depth = 8, .max_sge = 1, .xrcd = SHM_NONE, .cq = SHM_NONE}};
	struct shm_msg qp = {.body.qp = {.pd = pd, .send_cq = cq, .recv_cq = cq, .sq_depth = 8}};

	cr_assert_eq(hand_do(&a, &srq, SHM_SRQ_CREATE), 0);
	qp.body.qp.srq = srq.body.srq.srq;
	cr_assert_eq(hand_do(&a, &qp, SHM_QP_CREATE), 0);
	/* The QP is on the engine stage of its shared receive queue. */
	cr_assert_eq(qp.body.qp.stage, script_last(s, ENG_CE_SRQ_ADD)->stage);
	cr_assert_eq(hand_destroy(&a, SHM_PD_DESTROY, pd), -EBUSY);
	cr_assert_eq(hand_destroy(&a, SHM_CQ_DESTROY, cq), -EBUSY);
	cr_assert_eq(hand_destroy(&a, SHM_SRQ_DESTROY, srq.body.srq.srq), -EBUSY);
	cr_assert_eq(hand_destroy(&a, SHM_QP_DESTROY, qp.body.qp.qp), 0);
	cr_assert_eq(hand_destroy(&a, SHM_SRQ_DESTROY, srq.body.srq.srq), 0);
	cr_assert_eq(hand_destroy(&a, SHM_CQ_DESTROY, cq), 0);
	cr_assert_eq(hand_destroy(&a, SHM_PD_DESTROY, pd), 0);
}

Test(engine_command, quotas_hold_per_client_and_in_all)
{
	uint32_t pd = hand_pd(&a), cq = hand_cq(&a), pdb = hand_pd(&b), cqb = hand_cq(&b), i;
	struct shm_msg m, mr = {.body.mr = good_mr(pd)};

	for (i = 0; i < s->cfg.limits.client_qps; i++)
		hand_qp(&a, pd, cq);
	m = (struct shm_msg){.body.qp = {.pd = pd, .send_cq = cq, .recv_cq = cq, .srq = SHM_NONE}};
	cr_assert_eq(hand_do(&a, &m, SHM_QP_CREATE), -EDQUOT);
	hand_qp(&b, pdb, cqb); /* each client has a quota of its own */
	for (i = 1; i < s->cfg.limits.client_cqs; i++)
		hand_cq(&a);
	m = (struct shm_msg){.body.cq.depth = 1};
	cr_assert_eq(hand_do(&a, &m, SHM_CQ_CREATE), -EDQUOT);
	for (i = 0; i < s->cfg.limits.client_mrs; i++) {
		m = mr;
		cr_assert_eq(hand_do(&a, &m, SHM_MR_CREATE), 0);
	}
	m = mr;
	cr_assert_eq(hand_do(&a, &m, SHM_MR_CREATE), -EDQUOT);
	cr_assert_eq(script_counter(s, ENG_QUOTA), 3);
}

/* Creates a CQ of 1024 entries, and a QP that uses it: the sub-ring is made with the QP. Returns
 * the status of the second command. */
static int
fill_heap(uint32_t pd, uint32_t made[2])
{
	struct shm_msg m = {.body.cq.depth = 1024};
	int rc;

	cr_assert_eq(hand_do(&a, &m, SHM_CQ_CREATE), 0);
	made[0] = m.body.cq.cq;
	m = (struct shm_msg){.body.qp = {.pd = pd,
				     .send_cq = made[0],
				     .recv_cq = made[0],
				     .srq = SHM_NONE,
				     .sq_depth = 256,
				     .rq_depth = 1,
				     .max_inline = RD_MAX_INLINE}};
	rc = hand_do(&a, &m, SHM_QP_CREATE);
	made[1] = m.body.qp.qp;
	return rc;
}

Test(engine_command, a_full_heap_refuses_and_gives_all_back)
{
	uint32_t made[32][2], n, pd = hand_pd(&a);

	for (n = 0; n < 32 && fill_heap(pd, made[n]) == 0; n++)
		;
	cr_assert(n >= 20 && n < 32);
	cr_assert_eq(hand_destroy(&a, SHM_CQ_DESTROY, made[n][0]), 0);
	for (uint32_t i = 0; i < n; i++) {
		cr_assert_eq(hand_destroy(&a, SHM_QP_DESTROY, made[i][1]), 0);
		cr_assert_eq(hand_destroy(&a, SHM_CQ_DESTROY, made[i][0]), 0);
	}
	for (uint32_t i = 0; i < n; i++)
		cr_assert_eq(fill_heap(pd, made[i]), 0, "%u of %u", i, n);
	cr_assert_eq(fill_heap(pd, made[n]), -ENOMEM);
}

Test(engine_command, qp_numbers_are_all_different_and_do_not_count_up)
{
	uint32_t pd = hand_pd(&a), cq = hand_cq(&a), qpn[300], steps = 0;

	for (unsigned i = 0; i < 300; i++) {
		struct shm_msg m = hand_qp(&a, pd, cq);

		qpn[i] = m.body.qp.qpn;
		for (unsigned k = 0; k < i; k++)
			cr_assert_neq(qpn[k], qpn[i]);
		steps += i && qpn[i] == qpn[i - 1] + 1;
		cr_assert_eq(hand_destroy(&a, SHM_QP_DESTROY, m.body.qp.qp), 0);
	}
	cr_assert_lt(steps, 3);
}

Test(engine_command, connecting_to_nothing_and_with_nonsense)
{
	uint32_t pd = hand_pd(&a), cq = hand_cq(&a);
	struct shm_msg qp = hand_qp(&a, pd, cq), m, good = {0};

	good.body.cm.qp = qp.body.qp.qp;
	sk_addr_parse("10.0.0.2", &good.body.cm.remote);
	good.body.cm.rport = 5000;
#define BAD_CM(op, field, value, want)                                                             \
	do {                                                                                       \
		m = good;                                                                          \
		m.body.cm.field = value;                                                           \
		cr_assert_eq(hand_do(&a, &m, op), want, "%s: %d", #field, m.status);               \
	} while (0)
	BAD_CM(SHM_CONNECT, qp, 77, -EINVAL);
	BAD_CM(SHM_CONNECT, rport, 0, -EINVAL);
	BAD_CM(SHM_CONNECT, remote, (struct sk_addr){{0}}, -EINVAL);
	BAD_CM(SHM_CONNECT, remote.b[12], 224, -EINVAL);
	BAD_CM(SHM_CONNECT, local, good.body.cm.remote, -EADDRNOTAVAIL);
	BAD_CM(SHM_CONNECT, revision, 3, -EINVAL);
	BAD_CM(SHM_CONNECT, crc, 3, -EINVAL);
	BAD_CM(SHM_CONNECT, markers, 255, -EINVAL);
	BAD_CM(SHM_CONNECT, private_len, SHM_PRIVATE_MAX - 3, -EMSGSIZE);
	BAD_CM(SHM_CONNECT, private_len, UINT16_MAX, -EMSGSIZE);
	BAD_CM(SHM_ACCEPT, request, 0, -ECONNRESET);
	BAD_CM(SHM_REJECT, request, UINT32_MAX, -ECONNRESET);
	BAD_CM(SHM_DISCONNECT, abort, 1, -ENOTCONN);
	BAD_CM(SHM_LISTEN, local, good.body.cm.remote, -EADDRNOTAVAIL);
	cr_assert_eq(script_count(s, ENG_CT_CONNECT), 0);
	m = good;
	m.body.cm.ird = m.body.cm.ord = UINT16_MAX;
	cr_assert_eq(hand_do(&a, &m, SHM_CONNECT), 0);
	script_turns(s, 2);
	cr_assert_eq(script_last(s, ENG_CT_CONNECT)->connect.offer.ird, s->cfg.limits.ird);
	cr_assert_eq(script_last(s, ENG_CT_CONNECT)->connect.offer.ord, s->cfg.limits.ord);
	m = good;
	cr_assert_eq(hand_do(&a, &m, SHM_CONNECT), -EISCONN);
}

Test(engine_command, a_port_has_one_listener)
{
	struct shm_msg m, any = {.body.cm.lport = 7000};

	m = any;
	cr_assert_eq(hand_do(&a, &m, SHM_LISTEN), 0, "%s", m.body.text);
	/* Each transport stage listens, under one number. */
	cr_assert_eq(script_count(s, ENG_CT_LISTEN), SCRIPT_TRANSPORTS);
	m = any;
	cr_assert_eq(hand_do(&b, &m, SHM_LISTEN), -EADDRINUSE);
	m = any;
	m.body.cm.local = s->cfg.ifs[0].addr;
	cr_assert_eq(hand_do(&b, &m, SHM_LISTEN), -EADDRINUSE);
	cr_assert_eq(hand_destroy(&b, SHM_UNLISTEN, 0), -EINVAL);
	cr_assert_eq(hand_destroy(&a, SHM_UNLISTEN, 0), 0);
	m = any;
	cr_assert_eq(hand_do(&b, &m, SHM_LISTEN), 0);
	/* Port 0: the control stage chooses one. */
	m = (struct shm_msg){0};
	cr_assert_eq(hand_do(&a, &m, SHM_LISTEN), 0);
	cr_assert_geq(m.body.cm.lport, s->cfg.port_min);
	cr_assert_leq(m.body.cm.lport, s->cfg.port_max);
	/* If one stage fails, none listens. */
	s->fail = ENG_CT_LISTEN;
	s->fail_status = -ENOMEM;
	m = (struct shm_msg){.body.cm.lport = 7001};
	cr_assert_eq(hand_do(&a, &m, SHM_LISTEN), -ENOMEM);
	cr_assert_eq(script_last(s, ENG_CT_UNLISTEN)->listen.number,
		script_last(s, ENG_CT_LISTEN)->listen.number);
	s->fail = -1;
	m = (struct shm_msg){.body.cm.lport = 7001};
	cr_assert_eq(hand_do(&a, &m, SHM_LISTEN), 0);
}
