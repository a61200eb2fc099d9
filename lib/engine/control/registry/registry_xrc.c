/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC domains, and QPs that one client has created and another client opens. Clients of one tenant
 * that name the same file share a domain. The engine does not check who may open the file, but
 * clients of other tenants never reach the domain. All receive QPs and shared receive queues of a
 * domain are on one engine stage. The domain is freed when the last client has closed it.
 */
#include <errno.h>
#include <stdlib.h>

#include "registry.h"

/* How often a receive QP may be open: an event of the QP goes to all that have opened it. */
#define XRC_OPENERS 256

struct ctl_xrcd_ref *
ctl_xrcd_find(const struct ctl_client *cl, uint32_t handle)
{
	return ctl_table_get(&cl->xrcds, handle);
}

static struct ctl_xrcds *
domain_bucket(const struct eng_control *c, uint64_t tenant, const struct shm_xrcd *x)
{
	uint64_t key[] = {tenant, x->dev, x->ino};

	return &c->xrcds[sk_siphash(&c->srqn_key, key, sizeof(key)) % CTL_XRCD_HASH];
}

static struct ctl_xrcd *
domain_find(const struct eng_control *c, uint64_t tenant, const struct shm_xrcd *x)
{
	struct ctl_xrcd *d;

	if (x->ino == 0)
		return NULL;
	LIST_FOREACH (d, domain_bucket(c, tenant, x), bucket)
		if (d->tenant == tenant && d->dev == x->dev && d->ino == x->ino)
			return d;
	return NULL;
}

static struct ctl_xrcd *
domain_new(struct eng_control *c, uint64_t tenant, const struct shm_xrcd *x)
{
	struct ctl_xrcd *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->tenant = tenant;
	d->dev = x->dev;
	d->ino = x->ino;
	d->eng.stage = ctl_least_loaded(c);
	if (d->ino != 0)
		LIST_INSERT_HEAD(domain_bucket(c, tenant, x), d, bucket);
	return d;
}

static void
domain_close(struct ctl_xrcd *d)
{
	if (d->opens > 0)
		return;
	if (d->ino != 0)
		LIST_REMOVE(d, bucket);
	free(d);
}

int
ctl_xrcd_open(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct shm_xrcd *x = &m->body.xrcd;
	struct ctl_xrcd *d = domain_find(c, cl->tenant, x);
	struct ctl_xrcd_ref *ref;

	if (!c->xrc)
		return ctl_refuse(c, m, -EPROTONOSUPPORT, "no enabled transport has XRC domains");
	if (d != NULL && x->create && x->exclusive)
		return ctl_refuse(c, m, -EEXIST, "an XRC domain of that file exists");
	if (d == NULL && x->ino != 0 && !x->create)
		return ctl_refuse(c, m, -ENOENT, "there is no XRC domain of that file");
	if (ctl_take(c, cl, CTL_POOL_XRCD, m) < 0)
		return m->status;
	if (d == NULL)
		d = domain_new(c, cl->tenant, x);
	ref = d != NULL ? calloc(1, sizeof(*ref)) : NULL;
	if (ref == NULL) {
		if (d != NULL)
			domain_close(d);
		ctl_give(c, cl, CTL_POOL_XRCD);
		return ctl_refuse(c, m, -ENOMEM, "no memory for an XRC domain");
	}
	ref->domain = d;
	d->opens++;
	ref->handle = (uint32_t)ctl_table_add(&cl->xrcds, ref);
	x->xrcd = ref->handle;
	return 0;
}

void
ctl_xrcd_free(struct eng_control *c, struct ctl_client *cl, struct ctl_xrcd_ref *ref)
{
	ref->domain->opens--;
	domain_close(ref->domain);
	ctl_table_del(&cl->xrcds, ref->handle);
	ctl_give(c, cl, CTL_POOL_XRCD);
	free(ref);
}

int
ctl_xrcd_close(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct ctl_xrcd_ref *ref = ctl_xrcd_find(cl, m->body.handle);

	if (ref == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no XRC domain %u", m->body.handle);
	if (ref->users)
		return ctl_refuse(c, m, -EBUSY, "XRC domain %u has %u QPs and queues",
			m->body.handle, ref->users);
	ctl_xrcd_free(c, cl, ref);
	return 0;
}

/* ---- QPs of other clients ---- */

/* Returns the domain's receive QP with that QP number, or NULL. */
static struct ctl_qp *
target_find(const struct eng_control *c, const struct ctl_xrcd *d, uint32_t qpn)
{
	struct cm_conn *conn = ctl_conn_of_qpn(c, qpn);
	struct ctl_qp *q = conn != NULL ? ctl_qp_of(conn) : NULL;

	if (q == NULL || !q->added || conn->dying || q->eng.type != SHM_XRC_RECV ||
		q->eng.xrcd != &d->eng)
		return NULL;
	return q;
}

int
ctl_qp_open(struct eng_control *c, struct ctl_client *cl, struct shm_msg *m)
{
	struct shm_qp_info *i = &m->body.qp;
	struct ctl_xrcd_ref *ref = ctl_xrcd_find(cl, i->xrcd);
	struct ctl_opened *o;
	struct ctl_qp *target;

	if (ref == NULL)
		return ctl_refuse(c, m, -EINVAL, "there is no XRC domain %u", i->xrcd);
	target = target_find(c, ref->domain, i->qpn);
	if (target == NULL)
		return ctl_refuse(c, m, -ENOENT, "there is no receive QP %u in XRC domain %u",
			i->qpn, i->xrcd);
	if (target->nopeners >= XRC_OPENERS)
		return ctl_refuse(c, m, -ENOSPC, "receive QP %u is open %u times already", i->qpn,
			target->nopeners);
	if (ctl_take(c, cl, CTL_POOL_OPENED, m) < 0)
		return m->status;
	o = calloc(1, sizeof(*o));
	if (o == NULL) {
		ctl_give(c, cl, CTL_POOL_OPENED);
		return ctl_refuse(c, m, -ENOMEM, "no memory for a QP");
	}
	o->client = cl;
	o->target = target;
	o->xrcd = ref;
	ref->users++;
	o->ref.opened = true;
	o->ref.handle = (uint32_t)ctl_table_add(&cl->qps, &o->ref);
	LIST_INSERT_HEAD(&target->openers, o, next);
	target->nopeners++;
	i->qp = o->ref.handle;
	return 0;
}

void
ctl_opened_free(struct ctl_opened *o)
{
	if (o->target != NULL) {
		LIST_REMOVE(o, next);
		o->target->nopeners--;
	}
	o->xrcd->users--;
	ctl_give(o->client->control, o->client, CTL_POOL_OPENED);
	ctl_table_del(&o->client->qps, o->ref.handle);
	free(o);
}

void
ctl_qp_notify_openers(struct eng_control *c, struct ctl_qp *q, int code, const char *reason)
{
	struct ctl_opened *o;

	LIST_FOREACH (o, &q->openers, next)
		ctl_client_send_async(c, o->client, SHM_EV_QP_FATAL, o->ref.handle, code, reason);
}

void
ctl_qp_leave_openers(struct eng_control *c, struct ctl_qp *q)
{
	struct ctl_opened *o;

	ctl_qp_notify_openers(c, q, 0, "");
	while ((o = LIST_FIRST(&q->openers)) != NULL) {
		LIST_REMOVE(o, next);
		o->target = NULL;
	}
}
