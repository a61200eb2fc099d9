/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of handlers: for clients' commands, for notices of the other stages, and for messages
 * of other threads. */
#include <string.h>

#include "attach/client.h"
#include "cm/cm.h"
#include "query_priv.h"
#include "tables_priv.h"

/* ---- Clients' commands ---- */

/* Returns the depth of the largest completion queue, which takes no more than half of the client's
 * heap, whichever stages need a sub-ring. */
static uint32_t
cq_depth_most(const struct eng_control *c, const struct ctl_client *cl)
{
	uint64_t room = cl->heap.len / 2 / c->cfg->nstages / sizeof(struct shm_cqe);
	uint64_t depth = 1;

	while (2 * depth <= room)
		depth *= 2;
	return (uint32_t)SK_MIN(depth, (uint64_t)c->cfg->limits.cq_depth);
}

static int
query_device(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct eng_limits *l = &c->cfg->limits;
	struct shm_device *d = &m->body.device;

	memset(d, 0, sizeof(*d));
	memcpy(d->name, c->cfg->name, sizeof(d->name));
	d->max_qp = ctl_most(c, cl, CTL_POOL_QP);
	d->max_cq = ctl_most(c, cl, CTL_POOL_CQ);
	d->max_mr = ctl_most(c, cl, CTL_POOL_MR);
	d->max_mw = ctl_most(c, cl, CTL_POOL_MW);
	d->max_pd = ctl_most(c, cl, CTL_POOL_PD);
	d->max_srq = ctl_most(c, cl, CTL_POOL_SRQ);
	d->max_ah = c->datagrams ? ctl_most(c, cl, CTL_POOL_AH) : 0;
	d->max_xrcd = c->xrc ? ctl_most(c, cl, CTL_POOL_XRCD) : 0;
	d->max_sq_depth = l->sq_depth;
	d->max_rq_depth = l->rq_depth;
	d->max_cq_depth = cq_depth_most(c, cl);
	d->max_send_sge = d->max_recv_sge = RD_MAX_SGE;
	d->max_inline = RD_MAX_INLINE;
	d->max_ird = l->ird;
	d->max_ord = l->ord;
	d->mtu = c->cfg->ports[0].mtu;
	d->speed = c->a.speed != NULL ? __atomic_load_n(c->a.speed, __ATOMIC_RELAXED) : 0;
	d->falcon = c->qp_types[ENG_FALCON] != 0;
	d->max_mr_size = SK_MAX(l->client_mem_bytes, cl->mem_len);
	memcpy(d->mac, c->a.mac, sizeof(d->mac));
	for (unsigned i = 0; i < c->cfg->nifs && i < SK_ARRAY_LEN(d->addrs); i++)
		if (!c->cfg->ifs[i].shared)
			d->addrs[d->naddrs++] = c->cfg->ifs[i].addr;
	return 0;
}

/* The costs of commands that cause work on other stages, which the same loop may poll. */
enum { C_STAGE = 1, C_STAGES = 3, C_QP = 3, C_CONNECT = 7 };

#define BODY(member) ((uint16_t)sizeof(((struct shm_msg *)0)->body.member))

const struct ctl_command ctl_commands[SHM_OP_COUNT] = {
	[SHM_QUERY_DEVICE] = {query_device, BODY(device)},
	[SHM_PD_CREATE] = {ctl_pd_create, BODY(handle)},
	[SHM_PD_DESTROY] = {ctl_pd_destroy, BODY(handle)},
	[SHM_MR_CREATE] = {ctl_mr_create, BODY(mr)},
	[SHM_MR_DESTROY] = {ctl_mr_destroy, BODY(handle)},
	[SHM_CQ_CREATE] = {ctl_cq_create, BODY(cq)},
	[SHM_CQ_DESTROY] = {ctl_cq_destroy, BODY(handle), C_STAGES},
	[SHM_SRQ_CREATE] = {ctl_srq_create, BODY(srq), C_STAGE},
	[SHM_SRQ_DESTROY] = {ctl_srq_destroy, BODY(handle), C_STAGE},
	[SHM_QP_CREATE] = {ctl_qp_create, BODY(qp), C_QP},
	[SHM_QP_MODIFY] = {ctl_qp_modify, BODY(move), C_STAGE},
	[SHM_QP_QUERY] = {ctl_qp_query, BODY(qp), C_STAGE},
	[SHM_QP_DESTROY] = {ctl_qp_destroy, BODY(handle), C_QP},
	[SHM_LISTEN] = {cm_listen, offsetof(struct shm_cm, private_data), C_STAGES},
	[SHM_UNLISTEN] = {cm_unlisten, BODY(handle), C_STAGES},
	[SHM_CONNECT] = {cm_connect, 0, C_CONNECT},
	[SHM_RESOLVE] = {cm_resolve, 0, C_CONNECT},
	[SHM_ACCEPT] = {cm_accept, 0, C_CONNECT},
	[SHM_REJECT] = {cm_reject, 0, C_STAGE},
	[SHM_DISCONNECT] = {cm_disconnect, 0, C_STAGE},
	[SHM_REGION_DROP] = {ctl_region_drop, BODY(handle)},
	[SHM_MW_CREATE] = {ctl_mw_create, BODY(mw)},
	[SHM_MW_DESTROY] = {ctl_mw_destroy, BODY(handle)},
	[SHM_AH_CREATE] = {ctl_ah_create, BODY(ah), C_QP},
	[SHM_AH_DESTROY] = {ctl_ah_destroy, BODY(handle), C_STAGE},
	[SHM_XRCD_OPEN] = {ctl_xrcd_open, BODY(xrcd)},
	[SHM_XRCD_CLOSE] = {ctl_xrcd_close, BODY(handle)},
	[SHM_SRQ_MODIFY] = {ctl_srq_modify, BODY(srq), C_STAGE},
	[SHM_QP_OPEN] = {ctl_qp_open, BODY(qp)},
	[SHM_SRQ_RESIZE] = {ctl_srq_resize, BODY(srq), C_STAGE},
	[SHM_CQ_RESIZE] = {ctl_cq_resize, BODY(cq), C_STAGES},
};

/* ---- Notices ---- */

static bool
notice_mailbox(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m)
{
	ctl_ring_client(c, (struct ctl_client *)m->client);
	return true;
}

static bool
notice_srq_limit(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m)
{
	const struct rd_srq *srq = m->object.object;

	ctl_client_send_async(
		c, (struct ctl_client *)m->client, SHM_EV_SRQ_LIMIT, srq->handle, 0, "");
	return true;
}

static bool
notice_cq_overflow(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m)
{
	const struct rd_cq *cq = m->object.object;

	ctl_client_send_async(c, (struct ctl_client *)m->client, SHM_EV_CQ_OVERFLOW, cq->handle, 0,
		eng_reasons.reasons[ENG_CQ_OVERFLOW].name);
	return true;
}

static bool
notice_client_bad(struct eng_control *c, struct ctl_target *t, struct eng_ctl *m)
{
	ctl_client_put_out(
		c, (struct ctl_client *)m->client, "its rings or its memory became invalid");
	return true;
}

ctl_notice *const ctl_notices[ENG_CTL_TYPES] = {
	[ENG_TC_REQUEST] = cm_notice_request,
	[ENG_TC_LOOKUP] = cm_notice_lookup,
	[ENG_TC_ESTABLISHED] = cm_notice_outcome,
	[ENG_TC_FOUND] = cm_notice_outcome,
	[ENG_TC_REJECTED] = cm_notice_outcome,
	[ENG_TC_FAILED] = cm_notice_outcome,
	[ENG_EC_MAILBOX] = notice_mailbox,
	[ENG_EC_DISCONNECTED] = cm_notice_disconnected,
	[ENG_EC_QP_WAITS] = cm_notice_waits,
	[ENG_EC_QP_FATAL] = cm_notice_fatal,
	[ENG_EC_CQ_OVERFLOW] = notice_cq_overflow,
	[ENG_EC_SRQ_LIMIT] = notice_srq_limit,
	[ENG_EC_CLIENT_BAD] = notice_client_bad,
};

/* ---- Messages of other threads ---- */

static void
inbox_add(struct eng_control *c, struct ctl_inbox *in)
{
	ctl_client_add(c, in->add);
}

static void
inbox_detach(struct eng_control *c, struct ctl_inbox *in)
{
	struct ctl_client *cl = ctl_client_of(c, in->detach);

	if (cl != NULL)
		ctl_client_put_out(c, cl, "it has left");
}

/* The mapping of a region that arrives after its client was removed stays with the socket's thread,
 * which unmaps it when it frees the client. */
static void
inbox_region(struct eng_control *c, struct ctl_inbox *in)
{
	struct ctl_client *cl = ctl_client_of(c, in->region.id);

	if (cl == NULL || cl->phase > CTL_LIVE)
		return;
	cl->region[in->region.number] = in->region.map;
	cl->nregions++;
	ctl_total(&c->totals.regions, 1);
}

static void
inbox_query(struct eng_control *c, struct ctl_inbox *in)
{
	ctl_query_start(c, in->query);
}

ctl_inbox_handler *const ctl_inbox_handlers[CTL_IN_KINDS] = {
	[CTL_IN_ADD] = inbox_add,
	[CTL_IN_DETACH] = inbox_detach,
	[CTL_IN_REGION] = inbox_region,
	[CTL_IN_QUERY] = inbox_query,
};
