/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains, which processes share by naming the same file, and the receive QPs of other
 * processes in them. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "ops_priv.h"
#include "qp_priv.h"
#include "verbs_priv.h"

static int
domain_open(struct vb_xrcd *x, const struct ibv_xrcd_init_attr *a)
{
	struct saker *s = vb_context(x->xrcd.context)->saker;
	struct stat st = {0};
	int rc;

	if (a->fd >= 0 && fstat(a->fd, &st) < 0)
		return vb_fail(errno, "the file descriptor %d of the XRC domain is invalid", a->fd);
	rc = vb_rc(saker_pd_create(s, &x->pd), "ibv_open_xrcd");
	if (rc != 0)
		return rc;
	rc = vb_rc(saker_xrcd_open(s, st.st_dev, a->fd >= 0 ? st.st_ino : 0,
			   (a->oflags & O_CREAT) != 0 || a->fd < 0, (a->oflags & O_EXCL) != 0,
			   &x->saker),
		"ibv_open_xrcd");
	if (rc != 0)
		saker_pd_destroy(x->pd);
	return rc;
}

struct ibv_xrcd *
vb_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct vb_xrcd *x = NULL;
	int rc = vb_alive(context);

	if (rc == 0 && (vb_kind_of(context)->cap_flags & IBV_DEVICE_XRC) == 0)
		rc = vb_fail(
			EOPNOTSUPP, "the device %s has no XRC domains", vb_kind_of(context)->name);
	if (rc == 0 && attr->comp_mask != needed)
		rc = vb_fail(EINVAL, "an XRC domain needs the attributes FD and OFLAGS");
	if (rc == 0 && (x = calloc(1, sizeof(*x))) == NULL)
		rc = ENOMEM;
	if (rc == 0) {
		x->xrcd.context = context;
		rc = domain_open(x, attr);
	}
	if (rc == 0) {
		vb_owned_enter(context, &x->owned, VB_XRCD);
		return &x->xrcd;
	}
	free(x);
	errno = rc;
	return NULL;
}

int
vb_close_xrcd(struct ibv_xrcd *p)
{
	struct vb_xrcd *x = (struct vb_xrcd *)p;
	int rc = 0;

	if (vb_held(&x->refs))
		return vb_fail(EBUSY, "the XRC domain is in use by %u queue pairs and SRQs",
			__atomic_load_n(&x->refs, __ATOMIC_RELAXED));
	if (vb_owned_live(p->context, &x->owned)) {
		rc = vb_rc(saker_xrcd_close(x->saker), "ibv_close_xrcd");
		if (rc == 0)
			saker_pd_destroy(x->pd);
	}
	if (rc != 0)
		return rc;
	vb_owned_leave(&x->owned);
	free(x);
	return 0;
}

struct ibv_qp *
vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed =
		IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct vb_qp *qp = NULL;
	int rc = vb_alive(context);

	if (rc == 0 && ((attr->comp_mask & needed) != needed || attr->xrcd == NULL ||
			       attr->qp_type != IBV_QPT_XRC_RECV))
		rc = vb_fail(EINVAL,
			"ibv_open_qp: the attributes do not name an XRC receive queue pair");
	if (rc == 0 && (qp = vb_qp_new(context, NULL, attr->qp_type, attr->qp_context)) == NULL)
		rc = ENOMEM;
	if (rc == 0) {
		qp->xrcd = (struct vb_xrcd *)attr->xrcd;
		rc = vb_rc(saker_qp_open(qp->xrcd->saker, attr->qp_num, &qp->saker), "ibv_open_qp");
	}
	if (rc != 0) {
		if (qp != NULL)
			vb_qp_free(qp);
		errno = rc;
		return NULL;
	}
	vb_hold(&qp->xrcd->refs);
	vb_owned_enter(context, &qp->owned, VB_QP);
	qp->init.qp_type = attr->qp_type;
	qp->ex.qp_base.qp_num = qp->ex.qp_base.handle = attr->qp_num;
	return &qp->ex.qp_base;
}
