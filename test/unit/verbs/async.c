/* SPDX-License-Identifier: BSD-3-Clause */
/* The asynchronous events of queue pairs: which error raises which event, or none. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>

#include "../../../drivers/verbs/events_priv.h"
#include "../../../drivers/verbs/ops_priv.h"
#include "../../../drivers/verbs/verbs_priv.h"

static struct vb_context context;
static struct vb_kind kind = {.modified_by_program = true};
static struct vb_qp qp;

/* ---- The functions of other files that async.c calls ---- */

int
vb_alive(struct ibv_context *c)
{
	return 0;
}

bool
vb_dispatch_running(const struct vb_attachment *a)
{
	return true;
}

bool
vb_dispatch(struct vb_attachment *a)
{
	return false;
}

static int failures;

void
vb_qp_failed(struct vb_qp *q)
{
	failures++;
}

void
vb_qp_set_state(struct vb_qp *q, enum ibv_qp_state state)
{
	q->ex.qp_base.state = state;
}

/* ---- Events ---- */

static void
start(void)
{
	cr_assert_eq(vb_waitq_init(&context.async, vb_async_taken), 0);
	context.vctx.context.async_fd = context.async.event;
	cr_assert_eq(fcntl(context.async.event, F_SETFL, O_NONBLOCK), 0);
	context.kind = &kind;
	qp.ex.qp_base.context = &context.vctx.context;
	qp.ex.qp_base.state = IBV_QPS_RTS;
}

static void
end(void)
{
	vb_waitq_fini(&context.async);
}

TestSuite(verbs_async, .init = start, .fini = end);

/* Returns the event of a queue pair that fails for that reason, or -1. */
static int
event(const char *reason)
{
	struct saker_async why = {0};
	struct ibv_async_event ev;

	strncpy(why.reason, reason, sizeof(why.reason) - 1);
	vb_qp_fatal(&qp, &why);
	if (ibv_get_async_event(&context.vctx.context, &ev) != 0)
		return -1;
	cr_assert_eq(ev.element.qp, &qp.ex.qp_base);
	ibv_ack_async_event(&ev);
	return (int)ev.event_type;
}

/* A retry counter that has run out is the status of a completion (IBTA 1.7, 10.10.2.2). */
Test(verbs_async, an_error_that_a_completion_reports_raises_no_event)
{
	cr_assert_eq(event("ROF_CONNECTION_LOST"), -1);
	cr_assert_eq(event("ROF_UNREACHABLE"), -1);
	cr_assert_eq(event("ROF_REMOTE_ERROR"), -1);
}

Test(verbs_async, an_error_without_a_completion_raises_the_event_of_its_kind)
{
	cr_assert_eq(event("ROF_ACCESS"), IBV_EVENT_QP_ACCESS_ERR);
	cr_assert_eq(event("IW_DDP_T_STAG"), IBV_EVENT_QP_ACCESS_ERR);
	cr_assert_eq(event("ROF_SEQUENCE"), IBV_EVENT_QP_REQ_ERR);
	cr_assert_eq(event("ROF_RECEIVE_FAULT"), IBV_EVENT_QP_FATAL);
}

/* The state that the program sees follows the error, with an event or without. */
Test(verbs_async, the_state_of_a_queue_pair_of_a_connection_follows_its_errors)
{
	event("ROF_CONNECTION_LOST");
	cr_assert_eq(qp.ex.qp_base.state, IBV_QPS_RTS, "a program that modifies it sets the state");
	kind.modified_by_program = false;
	event("ROF_CONNECTION_LOST");
	cr_assert_eq(qp.ex.qp_base.state, IBV_QPS_ERR);
}

/* ibv_get_async_event(3): IBV_EVENT_QP_LAST_WQE_REACHED. The state of a queue pair that the program
 * modifies shows no error yet. */
Test(verbs_async, an_error_ends_the_use_of_a_shared_queue_whatever_the_state_shows)
{
	event("ROF_CONNECTION_LOST");
	cr_assert_eq(failures, 1);
	event("ROF_SEQUENCE");
	cr_assert_eq(failures, 2);
}
