/* SPDX-License-Identifier: BSD-3-Clause */
/* Opened devices, and the objects that a program leaves in a context that it closes. */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../../../drivers/verbs/events_priv.h"
#include "../../../drivers/verbs/ops_priv.h"
#include "../../../drivers/verbs/process_priv.h"
#include "../../../drivers/verbs/verbs_priv.h"
#include "../../../lib/client/path.h"

static struct vb_kind kind = {.modified_by_program = true};
static struct vb_device device = {.kind = &kind};
static struct vb_attachment attachment;

/* ---- What the tested files need of others ---- */

static uint32_t held; /* references to the attachment */

struct vb_attachment *
vb_attach(void)
{
	held++;
	return &attachment;
}

void
vb_attachment_hold(struct vb_attachment *a)
{
	held++;
}

void
vb_attachment_release(struct vb_attachment *a)
{
	held--;
}

bool
vb_dispatch_running(const struct vb_attachment *a)
{
	return true;
}

bool
vb_dispatch(struct vb_attachment *a)
{
	return true;
}

int
cl_fd_events(struct saker *s)
{
	return -1;
}

void
vb_events_lock(void)
{
}

void
vb_events_unlock(void)
{
}

void
vb_ops_fill(struct verbs_context *v)
{
}

void
vb_ops_refuse(struct verbs_context *v)
{
}

void
vb_qp_failed(struct vb_qp *q)
{
}

void
vb_qp_set_state(struct vb_qp *q, enum ibv_qp_state state)
{
}

/* ---- The engine: the order in which objects end ---- */

static char ends[32]; /* a letter for each object */
static char busy;     /* the engine refuses to destroy this one */

static int
ended(char letter)
{
	if (letter == busy)
		return -EBUSY;
	cr_assert_lt(strlen(ends), sizeof(ends) - 1);
	ends[strlen(ends)] = letter;
	return 0;
}

int
saker_qp_destroy(struct saker_qp *qp)
{
	return ended('q');
}

int
saker_ah_destroy(struct saker_ah *ah)
{
	return ended('a');
}

int
saker_srq_destroy(struct saker_srq *srq)
{
	return ended('s');
}

int
saker_xrcd_close(struct saker_xrcd *x)
{
	return ended('x');
}

int
saker_cq_destroy(struct saker_cq *cq)
{
	return ended('c');
}

int
saker_mw_free(struct saker_mw *mw)
{
	return ended('w');
}

int
saker_mr_destroy(struct saker_mr *mr)
{
	return ended('m');
}

int
saker_pd_destroy(struct saker_pd *pd)
{
	return ended('p');
}

/* ---- Objects that a program leaves ---- */

static struct ibv_context *context;
static struct vb_qp qp;
static struct vb_cq cq;
static struct vb_mw mw;
static struct vb_mr mr;
static struct vb_pd pd;

static void
start(void)
{
	context = ibv_open_device(&device.dev);
	cr_assert_not_null(context);
	pd.pd.context = mr.mr.context = mw.mw.context = context;
	cq.cq.context = qp.ex.qp_base.context = context;
	mr.mr.pd = &pd.pd;
	mr.saker = (struct saker_mr *)&mr;
	vb_pd_enter(&pd);
	vb_mr_enter(&mr);
	vb_owned_enter(context, &mw.owned, VB_MW);
	vb_owned_enter(context, &cq.owned, VB_CQ);
	vb_owned_enter(context, &qp.owned, VB_QP);
}

/* Frees the objects, and with the last one its context. */
static void
forget(void)
{
	vb_owned_leave(&qp.owned);
	vb_owned_leave(&cq.owned);
	vb_owned_leave(&mw.owned);
	vb_mr_leave(&mr);
	vb_pd_leave(&pd);
}

TestSuite(verbs_context, .init = start, .timeout = 60);

Test(verbs_context, a_closed_device_leaves_no_object_that_a_peer_reaches_ibv_close_device_3)
{
	cr_assert_eq(ibv_close_device(context), 0);
	cr_assert_str_eq(ends, "qcwmp", "connections first, domains last");
	cr_assert_eq(held, 0);
	cr_assert_not(vb_owned_live(context, &qp.owned), "its end is not repeated");
	cr_assert_not(vb_owned_live(context, &mr.owned));
	forget();
}

Test(verbs_context, an_object_that_the_engine_keeps_is_destroyed_later)
{
	busy = 'm';
	cr_assert_eq(ibv_close_device(context), 0);
	cr_assert_str_eq(ends, "qcwp");
	cr_assert(vb_owned_live(context, &mr.owned));
	forget();
}

Test(verbs_context, an_object_that_was_destroyed_before_is_not_destroyed_again)
{
	forget();
	cr_assert_eq(ibv_close_device(context), 0);
	cr_assert_str_empty(ends);
}

/* The objects belong to the file, which both contexts have in common. */
Test(verbs_context, objects_stay_until_the_last_imported_context_is_closed_ibv_import_device_3)
{
	struct ibv_context *second = ibv_import_device(dup(context->cmd_fd));
	struct ibv_pd *domain;

	cr_assert_not_null(second);
	domain = ibv_import_pd(second, pd.pd.handle);
	cr_assert_not_null(domain);
	cr_assert_eq(ibv_close_device(context), 0);
	cr_assert_str_empty(ends);
	cr_assert(vb_owned_live(context, &mr.owned));
	cr_assert_eq(ibv_close_device(second), 0);
	cr_assert_str_eq(ends, "qcwmp");
	cr_assert_eq(held, 0);
	ibv_unimport_pd(domain);
	forget();
}

Test(verbs_context, another_device_that_is_closed_ends_no_object_of_this_one)
{
	struct ibv_context *second = ibv_open_device(&device.dev);

	cr_assert_not_null(second);
	cr_assert_eq(ibv_close_device(second), 0);
	cr_assert_str_empty(ends);
	cr_assert_eq(ibv_close_device(context), 0);
	forget();
}

/* The number of the closed descriptor may be another one's. */
Test(verbs_context, an_event_of_an_object_that_is_left_writes_to_no_descriptor)
{
	int was = vb_context(context)->async.event, fd[64];
	struct saker_async why = {.reason = "IW_DDP_T_STAG"};
	struct pollfd p = {.fd = was, .events = POLLIN};

	busy = 'q';
	cr_assert_eq(ibv_close_device(context), 0);
	for (int i = 0; i < 64; i++)
		fd[i] = eventfd(0, EFD_CLOEXEC);
	vb_qp_fatal(&qp, &why);
	cr_assert_eq(poll(&p, 1, 0), 0);
	for (int i = 0; i < 64; i++)
		close(fd[i]);
	forget();
}
