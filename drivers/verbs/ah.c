/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address handles: the destinations of datagrams. Of a global route the library uses the GID, which
 * is the peer's address, and the class of packets. A receive has the sender's address in the 40
 * bytes before the payload.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_priv.h"

#define IP4_AT    20 /* offset of an IPv4 header in the 40 bytes */
#define IP4_SRC   12
#define VERSION_4 0x45
#define HOPS      64

/* The bits of a path's members that count, as with RoCE devices. UCX sets all bits of the flow
 * label, which has 20 on the wire, and a service level of InfiniBand has one bit more than a
 * priority. */
#define FLOW_BITS 0xfffff
#define SL_BITS   7

struct saker_class
vb_class_of(const struct ibv_ah_attr *path)
{
	const struct ibv_global_route *g = &path->grh;
	struct saker_class c = {.traffic_class = g->traffic_class,
		.priority = path->sl & SL_BITS,
		.flow_label = g->flow_label & FLOW_BITS};

	if (c.traffic_class != 0)
		c.set |= SAKER_CLASS_TRAFFIC;
	if (c.priority != 0)
		c.set |= SAKER_CLASS_PRIORITY;
	if (c.flow_label != 0)
		c.set |= SAKER_CLASS_FLOW;
	return c;
}

VB_EXPORT struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	const struct saker_class traffic = vb_class_of(attr);
	struct saker_modes modes = {0};
	struct sk_addr remote;
	struct vb_ah *ah = NULL;
	int rc = vb_alive(pd->context);

	if (rc == 0 && !attr->is_global)
		rc = vb_fail(EINVAL, "the address handle names no GID (is_global is 0)");
	if (rc == 0 && vb_kind_of(pd->context)->max_ah == 0)
		rc = vb_fail(EOPNOTSUPP, "the device %s has no address handles",
			vb_kind_of(pd->context)->name);
	if (rc == 0)
		rc = vb_modes(pd->context, &modes);
	if (rc == 0 && (ah = calloc(1, sizeof(*ah))) == NULL)
		rc = ENOMEM;
	if (rc == 0) {
		memcpy(remote.b, attr->grh.dgid.raw, sizeof(remote.b));
		rc = vb_rc(saker_ah_create_class(vb_pd(pd)->saker, &remote,
				   (enum saker_ordering)modes.ordering, &traffic, &ah->saker),
			"ibv_create_ah");
	}
	if (rc != 0) {
		free(ah);
		errno = rc;
		return NULL;
	}
	ah->ah.context = pd->context;
	ah->ah.pd = pd;
	vb_owned_enter(pd->context, &ah->owned, VB_AH);
	return &ah->ah;
}

VB_EXPORT int
ibv_destroy_ah(struct ibv_ah *p)
{
	struct vb_ah *ah = (struct vb_ah *)p;
	int rc = 0;

	if (vb_owned_live(p->context, &ah->owned))
		rc = vb_rc(saker_ah_destroy(ah->saker), "ibv_destroy_ah");
	if (rc != 0)
		return rc;
	vb_owned_leave(&ah->owned);
	free(ah);
	return 0;
}

VB_EXPORT int
ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
	struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	const uint8_t *bytes = (const uint8_t *)grh;

	memset(attr, 0, sizeof(*attr));
	if ((wc->wc_flags & IBV_WC_GRH) == 0)
		return vb_fail(EINVAL, "the completion has no address (no IBV_WC_GRH)"), -1;
	attr->is_global = 1;
	attr->port_num = port_num;
	attr->grh.hop_limit = HOPS;
	if (bytes[IP4_AT] == VERSION_4 && bytes[0] >> 4 != 6) {
		struct sk_addr from = sk_addr_v4(bytes + IP4_AT + IP4_SRC);

		memcpy(attr->grh.dgid.raw, from.b, sizeof(from.b));
	} else {
		attr->grh.dgid = grh->sgid;
	}
	return 0;
}

VB_EXPORT struct ibv_ah *
ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0)
		return NULL;
	return ibv_create_ah(pd, &attr);
}
