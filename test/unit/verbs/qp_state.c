/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of a queue pair from state to state and the attributes of each: the table of
 * InfiniBand, as in ibv_modify_qp(3), and the steps of a queue pair whose state follows its
 * connection. */
#include <criterion/criterion.h>
#include <stdarg.h>

#include "../../../drivers/verbs/qp_priv.h"

static struct {
	int steps, modifies, cleaned, rc;
	enum ibv_qp_state last;
} engine;

/* ---- The functions of other files that qp_state.c calls ---- */

int
vb_alive(struct ibv_context *c)
{
	return vb_is_dead(c) ? EIO : 0;
}

int
vb_qp_step(struct vb_qp *qp, const struct ibv_qp_attr *now, enum ibv_qp_state to)
{
	engine.steps++;
	engine.last = to;
	return engine.rc;
}

static uint32_t last_wqe; /* events IBV_EVENT_QP_LAST_WQE_REACHED */

void
vb_async_raise(struct ibv_context *c, enum ibv_event_type type, void *element)
{
	cr_assert_eq(type, IBV_EVENT_QP_LAST_WQE_REACHED);
	last_wqe++;
}

void
vb_cq_clean(struct ibv_cq *cq, uint32_t qpn)
{
	cr_assert_eq(qpn, 5);
	engine.cleaned++;
}

int
saker_qp_modify(struct saker_qp *qp, enum rd_qp_state state)
{
	engine.modifies++;
	return -engine.rc;
}

/* ---- Queue pairs ---- */

static struct vb_context context;

static void
make(struct vb_qp *qp, enum saker_transport transport, enum ibv_qp_type type)
{
	memset(&engine, 0, sizeof(engine));
	memset(qp, 0, sizeof(*qp));
	memset(&context, 0, sizeof(context));
	context.kind = &vb_kinds[transport];
	context.info.max_ird = context.info.max_ord = 16;
	qp->ex.qp_base.context = &context.vctx.context;
	qp->ex.qp_base.qp_type = type;
	qp->ex.qp_base.qp_num = 5;
	qp->attr.dest_qp_num = 77; /* the peer's QP, which the program has set */
}

static struct ibv_qp_attr
attr_to(enum ibv_qp_state state)
{
	struct ibv_qp_attr a = {.qp_state = state,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.dest_qp_num = 77};

	a.ah_attr.is_global = 1;
	return a;
}

static int
step(struct vb_qp *qp, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr a = attr_to(to);

	return ibv_modify_qp(&qp->ex.qp_base, &a, mask | IBV_QP_STATE);
}

static const struct row {
	enum ibv_qp_type type;
	enum ibv_qp_state from, to;
	int needs;
} rows[] = {
	{IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT,
		IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
		IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC},
	{IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
	{IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0},
	{IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN},
	{IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_RTR,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN},
	{IBV_QPT_XRC_RECV, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT},
};

Test(qp_state, takes_each_step_with_all_that_it_needs_and_not_with_less)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct vb_qp qp;

		for (int bit = 0; bit < 26; bit++) {
			make(&qp, SAKER_FALCON, r->type);
			vb_qp_set_state(&qp, r->from);
			if ((r->needs & 1 << bit) == 0)
				continue;
			cr_assert_eq(step(&qp, r->to, r->needs & ~(1 << bit)), EINVAL,
				"row %zu without bit %d", i, bit);
			cr_assert_eq(engine.steps, 0);
			cr_assert_eq(qp.ex.qp_base.state, r->from);
		}
		make(&qp, SAKER_FALCON, r->type);
		vb_qp_set_state(&qp, r->from);
		cr_assert_eq(step(&qp, r->to, r->needs), 0, "row %zu", i);
		cr_assert_eq(engine.steps, 1);
		cr_assert_eq(engine.last, r->to);
		cr_assert_eq(qp.ex.qp_base.state, r->to);
	}
}

Test(qp_state, reset_removes_the_completions_of_both_queues)
{
	struct ibv_cq one, other;
	struct vb_qp qp;

	make(&qp, SAKER_FALCON, IBV_QPT_RC);
	qp.ex.qp_base.send_cq = qp.ex.qp_base.recv_cq = &one;
	vb_qp_set_state(&qp, IBV_QPS_RTS);
	cr_assert_eq(step(&qp, IBV_QPS_ERR, 0), 0);
	cr_assert_eq(engine.cleaned, 0);
	cr_assert_eq(step(&qp, IBV_QPS_RESET, 0), 0);
	cr_assert_eq(engine.cleaned, 1, "both queues are one");
	qp.ex.qp_base.recv_cq = &other;
	cr_assert_eq(step(&qp, IBV_QPS_RESET, 0), 0);
	cr_assert_eq(engine.cleaned, 3);
	engine.rc = EIO;
	cr_assert_eq(step(&qp, IBV_QPS_RESET, 0), EIO);
	cr_assert_eq(engine.cleaned, 3);
}

Test(qp_state, takes_no_step_that_there_is_not)
{
	struct vb_qp qp;

	make(&qp, SAKER_FALCON, IBV_QPT_RC);
	cr_assert_eq(step(&qp, IBV_QPS_RTS, rows[2].needs), EINVAL);
	cr_assert_eq(step(&qp, IBV_QPS_RTR, rows[1].needs), EINVAL);
	cr_assert_eq(step(&qp, IBV_QPS_SQD, 0), EINVAL);
	cr_assert_eq(step(&qp, IBV_QPS_INIT, rows[0].needs | IBV_QP_QKEY), EINVAL,
		"only datagram QPs have a Q_Key");
	cr_assert_eq(engine.steps, 0);
	cr_assert_eq(step(&qp, IBV_QPS_ERR, 0), 0, "ERR is reached from every state");
	cr_assert_eq(step(&qp, IBV_QPS_RESET, 0), 0);
	cr_assert_eq(qp.ex.qp_base.state, IBV_QPS_RESET);
}

Test(qp_state, refuses_values_that_the_device_has_not)
{
	struct ibv_qp_attr a = attr_to(IBV_QPS_RTR);
	struct vb_qp qp;

	make(&qp, SAKER_FALCON, IBV_QPT_RC);
	vb_qp_set_state(&qp, IBV_QPS_INIT);
	a.ah_attr.is_global = 0;
	cr_assert_eq(ibv_modify_qp(&qp.ex.qp_base, &a, rows[1].needs | IBV_QP_STATE), EINVAL,
		"a path without a GID");
	a = attr_to(IBV_QPS_RTR);
	a.max_dest_rd_atomic = 17;
	cr_assert_eq(ibv_modify_qp(&qp.ex.qp_base, &a, rows[1].needs | IBV_QP_STATE), EINVAL);
	a = attr_to(IBV_QPS_RTR);
	a.path_mtu = IBV_MTU_4096 + 1;
	cr_assert_eq(ibv_modify_qp(&qp.ex.qp_base, &a, rows[1].needs | IBV_QP_STATE), EINVAL);
	cr_assert_eq(engine.steps, 0);
}

Test(qp_state, stays_where_it_was_when_the_engine_refuses)
{
	struct vb_qp qp;

	make(&qp, SAKER_FALCON, IBV_QPT_RC);
	engine.rc = EBUSY;
	cr_assert_eq(step(&qp, IBV_QPS_INIT, rows[0].needs), EBUSY);
	cr_assert_eq(qp.ex.qp_base.state, IBV_QPS_RESET);
	cr_assert_eq(qp.attr.port_num, 0);
}

Test(qp_state, of_a_connection_is_moved_by_it_alone)
{
	struct vb_qp qp;

	make(&qp, SAKER_IWARP, IBV_QPT_RC);
	cr_assert_eq(step(&qp, IBV_QPS_INIT, 0), 0);
	cr_assert_eq(qp.ex.qp_base.state, IBV_QPS_INIT);
	cr_assert_eq(step(&qp, IBV_QPS_RTS, 0), 0, "the step is accepted");
	cr_assert_eq(qp.ex.qp_base.state, IBV_QPS_INIT, "the step changes no state");
	vb_qp_set_state(&qp, IBV_QPS_RTS);
	cr_assert_eq(step(&qp, IBV_QPS_INIT, 0), 0);
	cr_assert_eq(qp.ex.qp_base.state, IBV_QPS_RTS, "the state never goes back");
	cr_assert_eq(step(&qp, IBV_QPS_RESET, 0), EINVAL);
	cr_assert_eq(engine.modifies, 0);
	cr_assert_eq(step(&qp, IBV_QPS_ERR, 0), 0);
	cr_assert_eq(engine.modifies, 1);
	cr_assert_eq(qp.ex.qp_base.state, IBV_QPS_ERR);
	cr_assert_eq(step(&qp, IBV_QPS_RTS, 0), EINVAL);
	cr_assert_eq(engine.steps, 0);
}

Test(qp_state, of_an_rdma_cm_id_on_Falcon_is_moved_by_its_connection)
{
	struct vb_qp qp;

	make(&qp, SAKER_FALCON, IBV_QPT_RC);
	qp.cm = &qp;
	cr_assert_eq(step(&qp, IBV_QPS_RTR, 0), 0);
	cr_assert_eq(engine.steps, 0, "the engine is not called");
	cr_assert_eq(qp.ex.qp_base.state, IBV_QPS_RTR);
}

Test(qp_state, of_a_parent_process_is_not_touched)
{
	struct vb_qp qp;

	make(&qp, SAKER_FALCON, IBV_QPT_RC);
	context.dead = 1;
	cr_assert_eq(step(&qp, IBV_QPS_ERR, 0), EIO);
	cr_assert_eq(engine.steps + engine.modifies, 0);
}

/* ---- IBV_EVENT_QP_LAST_WQE_REACHED ---- */

Test(verbs_qp_state, the_last_receive_of_a_shared_queue_has_one_event_ibv_get_async_event_3)
{
	struct ibv_srq srq;
	struct vb_qp qp;

	for (int i = 0; i < VB_NKINDS; i++) {
		make(&qp, (enum saker_transport)i, IBV_QPT_RC);
		qp.init.srq = &srq;
		last_wqe = 0;
		vb_qp_set_state(&qp, IBV_QPS_RTS);
		cr_assert_eq(last_wqe, 0);
		vb_qp_failed(&qp);
		cr_assert_eq(last_wqe, 1, "the engine reports an error");
		cr_assert_eq(step(&qp, IBV_QPS_ERR, 0), 0);
		vb_qp_set_state(&qp, IBV_QPS_ERR);
		cr_assert_eq(last_wqe, 1, "the program, and the end of the connection");
	}
}

Test(verbs_qp_state, a_program_that_ends_a_queue_pair_gets_the_event_of_its_shared_queue)
{
	struct ibv_srq srq;
	struct vb_qp qp;

	for (int i = 0; i < VB_NKINDS; i++) {
		make(&qp, (enum saker_transport)i, IBV_QPT_RC);
		qp.init.srq = &srq;
		last_wqe = 0;
		cr_assert_eq(step(&qp, IBV_QPS_ERR, 0), 0);
		cr_assert_eq(last_wqe, 1);
	}
	cr_assert_eq(step(&qp, IBV_QPS_RESET, 0), 0);
	cr_assert_eq(step(&qp, IBV_QPS_ERR, 0), 0);
	cr_assert_eq(last_wqe, 2, "a queue pair that was reset fails anew");
}

Test(verbs_qp_state, a_queue_pair_with_a_queue_of_its_own_has_no_such_event)
{
	struct vb_qp qp;

	make(&qp, SAKER_FALCON, IBV_QPT_RC);
	last_wqe = 0;
	cr_assert_eq(step(&qp, IBV_QPS_ERR, 0), 0);
	cr_assert_eq(last_wqe, 0);
}
