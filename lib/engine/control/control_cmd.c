/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients' commands. A command is copied out of shared memory once; the copy is checked and
 * executed by the handler that the table names. Some handlers ask other stages first: then an
 * operation carries the reply until they have answered.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "attach/client_priv.h"
#include "cm/cm_priv.h"

#define BODY(member) ((uint16_t)sizeof(((struct shm_msg *)0)->body.member))

static const struct command {
	ctl_handler *handler;
	uint16_t body; /* bytes of the reply's body */
} commands[SHM_OP_COUNT] = {
	[SHM_QUERY_DEVICE] = {ctl_query_device, BODY(device)},
	[SHM_PD_CREATE] = {ctl_pd_create, BODY(handle)},
	[SHM_PD_DESTROY] = {ctl_pd_destroy, BODY(handle)},
	[SHM_MR_CREATE] = {ctl_mr_create, BODY(mr)},
	[SHM_MR_DESTROY] = {ctl_mr_destroy, BODY(handle)},
	[SHM_CQ_CREATE] = {ctl_cq_create, BODY(cq)},
	[SHM_CQ_DESTROY] = {ctl_cq_destroy, BODY(handle)},
	[SHM_SRQ_CREATE] = {ctl_srq_create, BODY(srq)},
	[SHM_SRQ_DESTROY] = {ctl_srq_destroy, BODY(handle)},
	[SHM_QP_CREATE] = {ctl_qp_create, BODY(qp)},
	[SHM_QP_MODIFY] = {ctl_qp_modify, BODY(move)},
	[SHM_QP_QUERY] = {ctl_qp_query, BODY(qp)},
	[SHM_QP_DESTROY] = {ctl_qp_destroy, BODY(handle)},
	[SHM_LISTEN] = {cm_listen, BODY(cm)},
	[SHM_UNLISTEN] = {cm_unlisten, BODY(handle)},
	[SHM_CONNECT] = {cm_connect, BODY(cm)},
	[SHM_RESOLVE] = {cm_resolve, BODY(cm)},
	[SHM_ACCEPT] = {cm_accept, BODY(cm)},
	[SHM_REJECT] = {cm_reject, BODY(cm)},
	[SHM_DISCONNECT] = {cm_disconnect, BODY(cm)},
	[SHM_REGION_DROP] = {ctl_region_drop, BODY(handle)},
	[SHM_MW_CREATE] = {ctl_mw_create, BODY(mw)},
	[SHM_MW_DESTROY] = {ctl_mw_destroy, BODY(handle)},
	[SHM_AH_CREATE] = {ctl_ah_create, BODY(ah)},
	[SHM_AH_DESTROY] = {ctl_ah_destroy, BODY(handle)},
	[SHM_XRCD_OPEN] = {ctl_xrcd_open, BODY(xrcd)},
	[SHM_XRCD_CLOSE] = {ctl_xrcd_close, BODY(handle)},
	[SHM_SRQ_MODIFY] = {ctl_srq_modify, BODY(srq)},
	[SHM_QP_OPEN] = {ctl_qp_open, BODY(qp)},
};

static int
control_cmd_refuse(struct shm_msg *m, int status, const char *fmt, va_list ap)
{
	char text[sizeof(m->body.text)];

	/* The arguments may stand in the body that the sentence overwrites. */
	vsnprintf(text, sizeof(text), fmt, ap);
	memcpy(m->body.text, text, sizeof(text));
	m->status = status;
	return status;
}

int
ctl_refuse(struct eng_control *c, struct shm_msg *m, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	control_cmd_refuse(m, status, fmt, ap);
	va_end(ap);
	sk_count(c->counters, ENG_BAD_COMMAND);
	return status;
}

int
ctl_refuse_quota(struct eng_control *c, struct shm_msg *m, const char *what, uint32_t most)
{
	snprintf(m->body.text, sizeof(m->body.text), "no more than %u %s are allowed", most, what);
	m->status = -EDQUOT;
	sk_count(c->counters, ENG_QUOTA);
	return -EDQUOT;
}

int
ctl_refuse_all(struct eng_control *c, struct shm_msg *m, const char *what, uint32_t most)
{
	snprintf(m->body.text, sizeof(m->body.text),
		"no more than %u %s are allowed to all clients together", most, what);
	m->status = -ENOSPC;
	sk_count(c->counters, ENG_QUOTA);
	return -ENOSPC;
}

/* No byte of our stack goes to a client: behind a sentence's end there are zeros. */
static uint32_t
reply_len(const struct shm_msg *m)
{
	if (m->status < 0)
		return (uint32_t)strnlen(m->body.text, sizeof(m->body.text) - 1) + 1;
	return commands[m->op].body;
}

void
ctl_command(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	int rc;

	m->status = 0;
	if (m->op >= SHM_OP_COUNT || commands[m->op].handler == NULL)
		rc = ctl_refuse(c, m, -EOPNOTSUPP, "there is no command %u", m->op);
	else
		rc = commands[m->op].handler(c, cl, m);
	if (rc != CTL_LATER)
		ctl_tell(c, cl, m, reply_len(m));
}

bool
ctl_mailbox_poll(struct eng_control *c, struct ctl_client *cl)
{
	struct shm_msg m;
	const void *e;
	unsigned n;

	for (n = 0; n < CTL_CLIENT_COMMANDS && cl->phase == CTL_LIVE; n++) {
		/* Who does not read replies, or waits for many, waits with the next command too. */
		if (cl->nevents || cl->commands >= CTL_CLIENT_COMMANDS || !ctl_has_reserve(c))
			break;
		e = shm_take_peek(&cl->cmd);
		if (e == NULL)
			break;
		memcpy(&m, e, sizeof(m));
		shm_take_pop(&cl->cmd);
		shm_take_publish(&cl->cmd);
		ctl_command(c, cl, &m);
	}
	return cl->phase == CTL_LIVE && !cl->nevents && shm_take_peek(&cl->cmd) != NULL;
}

void
ctl_ring_client(struct eng_control *c, struct ctl_client *cl)
{
	if (cl->has_rung || cl->phase != CTL_LIVE)
		return;
	cl->has_rung = true;
	TAILQ_INSERT_TAIL(&c->rung, cl, rung);
}

/* ---- Commands that wait for other stages ---- */

struct ctl_op *
ctl_op_new(struct eng_control *c, struct ctl_client *cl, const struct shm_msg *m, void *object,
	ctl_finish *finish)
{
	struct ctl_op *op = calloc(1, sizeof(*op));

	if (op == NULL)
		return NULL;
	op->client = cl;
	op->object = object;
	op->finish = finish;
	op->quiet = m == NULL;
	if (m != NULL) {
		op->reply = *m;
		cl->commands++;
	}
	TAILQ_INSERT_TAIL(&c->ops, op, all);
	return op;
}

void
ctl_op_free(struct eng_control *c, struct ctl_op *op)
{
	TAILQ_REMOVE(&c->ops, op, all);
	if (!op->quiet)
		op->client->commands--;
	free(op);
}

static void
op_answered(struct eng_control *c, struct ctl_msg *m)
{
	struct ctl_op *op = m->op;

	if (m->m.status < 0 && op->status == 0)
		op->status = m->m.status;
	if (--op->waiting == 0)
		op->finish(c, op, &m->m);
}

void
ctl_op_send_transport(
	struct eng_control *c, struct ctl_op *op, unsigned transport, struct ctl_msg *m)
{
	m->op = op;
	m->done = op_answered;
	op->waiting++;
	ctl_send_transport(c, transport, m);
}

void
ctl_op_send_stage(struct eng_control *c, struct ctl_op *op, unsigned stage, struct ctl_msg *m)
{
	m->op = op;
	m->done = op_answered;
	op->waiting++;
	ctl_send_stage(c, stage, m);
}

void
ctl_op_reply(struct eng_control *c, struct ctl_op *op)
{
	if (!op->quiet)
		ctl_tell(c, op->client, &op->reply, reply_len(&op->reply));
	ctl_op_free(c, op);
}

/* ---- The device ---- */

int
ctl_query_device(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	const struct eng_limits *l = &c->cfg->limits;
	struct shm_device *d = &m->body.device;

	memset(d, 0, sizeof(*d));
	memcpy(d->name, c->cfg->name, sizeof(d->name));
	d->max_qp = l->client_qps;
	d->max_cq = l->client_cqs;
	d->max_mr = l->client_mrs;
	d->max_mw = l->client_mws;
	d->max_pd = cl->pds.cap;
	d->max_srq = cl->srqs.cap;
	d->max_ah = c->cfg->falcon.enabled ? cl->ahs.cap : 0;
	d->max_xrcd = c->cfg->falcon.enabled ? cl->xrcds.cap : 0;
	d->max_sq_depth = l->sq_depth;
	d->max_rq_depth = l->rq_depth;
	d->max_cq_depth = l->cq_depth;
	d->max_send_sge = d->max_recv_sge = RD_MAX_SGE;
	d->max_inline = RD_MAX_INLINE;
	d->max_ird = l->ird;
	d->max_ord = l->ord;
	d->mtu = c->cfg->ports[0].mtu;
	d->falcon = c->cfg->falcon.enabled;
	d->max_mr_size = SK_MAX(l->client_mem_bytes, cl->mem_len);
	memcpy(d->mac, c->a.mac, sizeof(d->mac));
	for (unsigned i = 0; i < c->cfg->nifs && i < SK_ARRAY_LEN(d->addrs); i++)
		if (!c->cfg->ifs[i].shared)
			d->addrs[d->naddrs++] = c->cfg->ifs[i].addr;
	return 0;
}
