/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the messages of the shared memory and the types of <saker/saker.h>. */
#include <string.h>

#include "../wire/falcon.h"
#include "client_priv.h"

/* The client passes numbers unchanged between the two. */
_Static_assert((int)SAKER_IWARP == SHM_IWARP && (int)SAKER_FALCON == SHM_FALCON, "transports");
_Static_assert((int)SAKER_RC == SHM_RC && (int)SAKER_UD == SHM_UD &&
		       (int)SAKER_XRC_SEND == SHM_XRC_SEND && (int)SAKER_XRC_RECV == SHM_XRC_RECV,
	"types of QPs");
_Static_assert((int)SAKER_RTR_ANY == SHM_RTR_ANY && (int)SAKER_RTR_SEND == SHM_RTR_SEND &&
		       (int)SAKER_RTR_WRITE == SHM_RTR_WRITE &&
		       (int)SAKER_RTR_READ == SHM_RTR_READ && (int)SAKER_RTR_NONE == SHM_RTR_NONE,
	"ready-to-receive messages");
_Static_assert((int)SAKER_ENHANCED_CONFIGURED == SHM_ENHANCED_CONFIGURED &&
		       (int)SAKER_ENHANCED_ONLY == SHM_ENHANCED_ONLY &&
		       (int)SAKER_ENHANCED_TRY == SHM_ENHANCED_TRY,
	"enhanced attempts");
_Static_assert((int)SAKER_DIALECT_CONFIGURED == SHM_DIALECT_CONFIGURED &&
		       (int)SAKER_DIALECT_RFC7306 == SHM_DIALECT_RFC7306 &&
		       (int)SAKER_DIALECT_DRAFT == SHM_DIALECT_DRAFT,
	"dialects");
_Static_assert((int)SAKER_SPACE_TCP == SHM_SPACE_TCP && (int)SAKER_SPACE_UDP == SHM_SPACE_UDP,
	"port spaces");
_Static_assert((int)SAKER_ORDER_CONFIGURED == SHM_ORDER_CONFIGURED &&
		       (int)SAKER_ORDER_STRONG == SHM_ORDER_STRONG &&
		       (int)SAKER_ORDER_WEAK == SHM_ORDER_WEAK &&
		       (int)SAKER_ORDER_NONE == SHM_ORDER_NONE &&
		       (int)SAKER_ORDER_ANY == SHM_ORDER_ANY,
	"ordering modes");
_Static_assert((int)SAKER_ERRORS_CONFIGURED == SHM_ERRORS_CONFIGURED &&
		       (int)SAKER_ERRORS_VERBS == SHM_ERRORS_VERBS &&
		       (int)SAKER_ERRORS_COMPLETE == SHM_ERRORS_COMPLETE &&
		       (int)SAKER_ERRORS_ANY == SHM_ERRORS_ANY,
	"error modes");
_Static_assert((int)SAKER_PSP_GCM128 == 1 << PSP_AES_GCM_128 &&
		       (int)SAKER_PSP_GCM256 == 1 << PSP_AES_GCM_256 &&
		       (int)SAKER_PSP_GMAC128 == 1 << PSP_GMAC_128 &&
		       (int)SAKER_PSP_GMAC256 == 1 << PSP_GMAC_256 &&
		       (int)SAKER_PSP_NONE == 1 << PSP_NO_CRYPTO,
	"versions of PSP");
_Static_assert((int)SAKER_CLASS_TRAFFIC == SHM_CLASS_TRAFFIC &&
		       (int)SAKER_CLASS_PRIORITY == SHM_CLASS_PRIORITY &&
		       (int)SAKER_CLASS_FLOW == SHM_CLASS_FLOW,
	"classes of packets");
_Static_assert(SAKER_PRIVATE_MAX == SHM_PRIVATE_MAX && SAKER_NAME_MAX == SHM_NAME_MAX &&
		       SAKER_DEPTH_AUTO == SHM_DEPTH_AUTO,
	"constants");
_Static_assert(sizeof(SAKER_SOCKET_DEFAULT) == sizeof(SHM_SOCKET_DEFAULT), "the socket's path");
_Static_assert(sizeof(((struct saker_device *)0)->addrs) == sizeof(((struct shm_device *)0)->addrs),
	"as many addresses");
_Static_assert(sizeof(((struct saker_async *)0)->reason) == sizeof(((struct shm_async *)0)->reason),
	"as long a name");

void
cl_device_of(const struct shm_device *d, struct saker_device *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->name, d->name, sizeof(out->name));
	out->name[sizeof(out->name) - 1] = '\0';
	out->max_qp = d->max_qp;
	out->max_cq = d->max_cq;
	out->max_mr = d->max_mr;
	out->max_pd = d->max_pd;
	out->max_srq = d->max_srq;
	out->max_sq_depth = d->max_sq_depth;
	out->max_rq_depth = d->max_rq_depth;
	out->max_cq_depth = d->max_cq_depth;
	out->max_send_sge = d->max_send_sge;
	out->max_recv_sge = d->max_recv_sge;
	out->max_inline = d->max_inline;
	out->max_ird = d->max_ird;
	out->max_ord = d->max_ord;
	out->mtu = d->mtu;
	out->max_mr_size = d->max_mr_size;
	memcpy(out->mac, d->mac, sizeof(out->mac));
	out->naddrs = d->naddrs;
	out->falcon = d->falcon;
	memcpy(out->addrs, d->addrs, sizeof(out->addrs));
	out->max_mw = d->max_mw;
	out->max_ah = d->max_ah;
	out->max_xrcd = d->max_xrcd;
	out->speed = d->speed;
}

void
cl_qp_info_of(const struct shm_qp_info *q, struct saker_qp_info *out)
{
	memset(out, 0, sizeof(*out));
	out->state = q->state;
	out->transport = q->transport;
	out->type = q->type;
	out->sig_all = q->sig_all;
	out->qpn = q->qpn;
	out->stage = q->stage;
	out->sq_depth = q->sq_depth;
	out->rq_depth = q->rq_depth;
	out->max_send_sge = q->max_send_sge;
	out->max_recv_sge = q->max_recv_sge;
	out->max_inline = q->max_inline;
	out->access = q->access;
	out->ird = q->ird;
	out->ord = q->ord;
	out->qkey = q->qkey;
	out->traffic = (struct saker_class){.set = q->class.set,
		.traffic_class = q->class.traffic_class,
		.priority = q->class.priority,
		.flow_label = q->class.flow_label};
}

void
cl_class_to(const struct saker_class *traffic, struct shm_class *out)
{
	*out = (struct shm_class){.set = traffic->set,
		.traffic_class = traffic->traffic_class,
		.priority = traffic->priority,
		.flow_label = traffic->flow_label};
}

void
cl_modes_to(const struct saker_modes *modes, struct shm_modes *out)
{
	*out = (struct shm_modes){.ordering = modes->ordering,
		.errors = modes->errors,
		.flows = modes->flows,
		.psp = modes->psp,
		.mtu = modes->mtu};
}

static void
modes_of(const struct shm_modes *modes, struct saker_modes *out)
{
	*out = (struct saker_modes){.ordering = modes->ordering,
		.errors = modes->errors,
		.flows = modes->flows,
		.psp = modes->psp,
		.mtu = modes->mtu};
}

void
cl_conn_info_of(const struct shm_cm *cm, struct saker_conn_info *out)
{
	memset(out, 0, sizeof(*out));
	out->local = cm->local;
	out->remote = cm->remote;
	out->lport = cm->lport;
	out->rport = cm->rport;
	out->ird = cm->ird;
	out->ord = cm->ord;
	out->peer_ird = cm->peer_ird;
	out->peer_ord = cm->peer_ord;
	out->revision = cm->revision;
	out->crc = cm->crc;
	out->markers = cm->markers;
	out->rtr = cm->rtr;
	out->enhanced = cm->enhanced;
	out->dialect = cm->dialect;
	out->transport = cm->transport;
	out->space = cm->space;
	out->type = cm->type;
	modes_of(&cm->modes, &out->modes);
	out->remote_qpn = cm->remote_qpn;
	out->remote_qkey = cm->remote_qkey;
	/* A client does not trust lengths that another process wrote. */
	if (cm->private_len > SAKER_PRIVATE_MAX)
		return;
	out->private_len = cm->private_len;
	memcpy(out->private_data, cm->private_data, cm->private_len);
}

void
cl_async_of(const struct shm_async *a, struct saker_async *out)
{
	out->code = a->code;
	memcpy(out->reason, a->reason, sizeof(out->reason));
	out->reason[sizeof(out->reason) - 1] = '\0';
}
