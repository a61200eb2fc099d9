/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints and synchronous ids. A synchronous id has a channel of its own, on which each call
 * waits for the event of the operation that it started. The event stays at id->event until the next
 * call.
 */
#include <stdlib.h>
#include <string.h>

#include "cm_priv.h"

#define RESOLVE_MS 2000

static void
event_forget(struct cm_id *id)
{
	if (id->id.event != NULL)
		rdma_ack_cm_event(id->id.event);
	id->id.event = NULL;
}

/* Returns the errno with which the call fails that waited for this event, or 0. */
static int
endpoint_verdict(const struct rdma_cm_event *ev)
{
	if (ev->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return ENODEV;
	if (ev->event == RDMA_CM_EVENT_REJECTED)
		return ECONNREFUSED;
	return ev->status < 0 ? -ev->status : ev->status;
}

int
vb_cm_complete(struct cm_id *id)
{
	if (!id->sync)
		return 0;
	event_forget(id);
	if (rdma_get_cm_event(id->id.channel, &id->id.event) != 0)
		return errno;
	return endpoint_verdict(id->id.event);
}

int
vb_cm_complete_past(struct cm_id *id)
{
	struct vb_wait_item *item;

	if (!id->sync)
		return 0;
	event_forget(id);
	item = vb_waitq_pop(&vb_cm_channel_of(id->id.channel)->queue);
	if (item == NULL)
		return 0;
	id->id.event = &vb_container(item, struct cm_event, item)->ev;
	return endpoint_verdict(id->id.event);
}

/* Makes the new id of a request synchronous and, where the listening endpoint has QP attributes,
 * creates its QP. Returns 0 or errno. */
static int
request_equip(struct cm_id *listen, struct rdma_cm_event *ev)
{
	struct ibv_qp_init_attr attr;
	int rc = rdma_migrate_id(ev->id, NULL);

	if (rc == 0 && listen->qp_init != NULL) {
		attr = *listen->qp_init;
		rc = rdma_create_qp(ev->id, listen->ep_pd, &attr);
	}
	return rc == 0 ? 0 : errno;
}

VB_EXPORT int
rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct cm_id *p = vb_cm_id_of(listen);
	struct rdma_cm_event *ev;
	int err;

	if (!p->sync || p->state != CM_LISTENING)
		return vb_cm_end(EINVAL);
	event_forget(p);
	if (rdma_get_cm_event(listen->channel, &ev) != 0)
		return -1;
	err = endpoint_verdict(ev);
	if (err == 0 && ev->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		err = EINVAL;
	if (err != 0) {
		listen->event = ev;
		return vb_cm_end(err);
	}
	err = request_equip(p, ev);
	if (err != 0) {
		vb_cm_event_drop(vb_container(ev, struct cm_event, ev));
		return vb_cm_end(err);
	}
	/* From here on the new id owns the event, so that the program may destroy the listener
	 * before it. */
	vb_cm_event_give(vb_container(ev, struct cm_event, ev), vb_cm_id_of(ev->id));
	*id = ev->id;
	(*id)->event = ev;
	return 0;
}

static int
passive(struct rdma_cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
	const struct ibv_qp_init_attr *init)
{
	struct cm_id *p = vb_cm_id_of(id);

	if (rdma_bind_addr(id, res->ai_src_addr) != 0)
		return -1;
	if (init == NULL)
		return 0;
	p->qp_init = malloc(sizeof(*init));
	if (p->qp_init == NULL)
		return vb_cm_end(ENOMEM);
	*p->qp_init = *init;
	p->qp_init->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	p->ep_pd = pd;
	if (pd != NULL)
		id->pd = pd;
	return 0;
}

static int
active(struct rdma_cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
	struct ibv_qp_init_attr *init)
{
	if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS) != 0 ||
		rdma_resolve_route(id, RESOLVE_MS) != 0)
		return -1;
	if (init == NULL)
		return 0;
	init->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	return rdma_create_qp(id, pd, init);
}

VB_EXPORT int
rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
	struct ibv_qp_init_attr *qp_init_attr)
{
	struct rdma_cm_id *new;
	int rc, err;

	if (res == NULL)
		return vb_cm_end(EINVAL);
	if (rdma_create_id(NULL, &new, NULL, (enum rdma_port_space)res->ai_port_space) != 0)
		return -1;
	if ((res->ai_flags & RAI_PASSIVE) != 0)
		rc = passive(new, res, pd, qp_init_attr);
	else
		rc = active(new, res, pd, qp_init_attr);
	if (rc == 0) {
		*id = new;
		return 0;
	}
	err = errno;
	rdma_destroy_ep(new);
	return vb_cm_end(err);
}

VB_EXPORT void
rdma_destroy_ep(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	rdma_destroy_id(id);
}
