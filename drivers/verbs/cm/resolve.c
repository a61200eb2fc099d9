/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Resolving addresses and routes. This step chooses the device and the local address of an id. The
 * engine resolves neighbours when it connects; a peer that does not answer causes
 * RDMA_CM_EVENT_UNREACHABLE then.
 */
#include <string.h>

#include "cm_priv.h"

static void
show_local(struct cm_id *id, const struct sk_addr *a, uint32_t scope)
{
	vb_cm_addr_to(a, id->port.port, scope, &id->id.route.addr.src_storage);
}

void
vb_cm_path_fill(struct cm_id *id, const struct sk_addr *src, const struct sk_addr *dst)
{
	struct ibv_sa_path_rec *p = &id->path;

	if (!vb_kind_of(id->id.verbs)->path_record)
		return;
	memset(p, 0, sizeof(*p));
	memcpy(p->sgid.raw, src->b, sizeof(p->sgid.raw));
	memcpy(p->dgid.raw, dst->b, sizeof(p->dgid.raw));
	p->reversible = 1;
	p->numb_path = 1;
	p->pkey = 0xffff;
	p->hop_limit = 64;
	p->mtu_selector = 2; /* exactly */
	p->mtu = IBV_MTU_4096;
	p->rate_selector = 2;
	p->rate = IBV_RATE_100_GBPS;
	memcpy(id->id.route.addr.addr.ibaddr.sgid.raw, src->b, 16);
	memcpy(id->id.route.addr.addr.ibaddr.dgid.raw, dst->b, 16);
	id->id.route.addr.addr.ibaddr.pkey = htons(0xffff);
}

static int
bind_device(struct cm_id *id, enum saker_transport transport)
{
	struct cm_device *dev = vb_cm_device_open(transport);
	int err = dev != NULL ? vb_cm_handler_start(vb_context(dev->verbs)->at) : errno;

	if (err == 0)
		vb_cm_device_bind(id, dev);
	else if (dev != NULL)
		vb_cm_device_release(dev);
	return err;
}

/* Binds an id to an address and a port of the saker `d`; with port 0, to a port that the library
 * chooses. An address other than the unspecified one binds it to a device, too. Returns 0, or
 * errno; then the caller calls unbind(). */
static int
bind_to(struct cm_id *id, const struct saker_device *d, const struct sk_addr *a, uint16_t port,
	uint32_t scope)
{
	bool any = sk_addr_is_any(a);
	int err = 0;

	if (!any && !vb_cm_addr_is_local(d, a))
		return vb_fail(EADDRNOTAVAIL, "the address is not an address of the saker");
	if (!any)
		err = bind_device(id, vb_cm_device_choice(id->id.ps));
	if (err != 0)
		return err;
	vb_cm_lock();
	err = vb_cm_port_take(&id->port, id->id.ps, a, port, id->port.reuse);
	vb_cm_unlock();
	if (err != 0)
		return err;
	if (!any)
		id->local = *a;
	show_local(id, a, scope);
	return 0;
}

/* Makes an id that could not be bound what it was in CM_IDLE: the program may bind it elsewhere,
 * and a listener that is bound to no device must accept the requests of all. */
static void
unbind(struct cm_id *id)
{
	const struct sk_addr none = {{0}};

	vb_cm_lock();
	vb_cm_port_release(&id->port);
	vb_cm_device_unbind(id);
	vb_cm_unlock();
	id->local = none;
	memset(&id->id.route.addr.src_storage, 0, sizeof(id->id.route.addr.src_storage));
}

VB_EXPORT int
rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct cm_id *p = vb_cm_id_of(id);
	const struct saker_device *d = NULL;
	struct sk_addr a;
	uint16_t port;
	int err = vb_cm_addr_from(addr, &a, &port);

	if (err == 0) {
		d = vb_saker_device();
		err = d != NULL ? 0 : errno;
	}
	if (err == 0)
		err = vb_cm_move(p, CM_IDLE, CM_BOUND);
	if (err != 0)
		return vb_cm_end(err);
	err = bind_to(p, d, &a, port, vb_cm_addr_scope(addr));
	if (err == 0)
		err = vb_cm_listen_early(p);
	if (err != 0) {
		unbind(p);
		vb_cm_move(p, CM_BOUND, CM_IDLE);
	}
	return vb_cm_end(err);
}

/* Writes the source address: the one that the program passes, the one to which the id is bound, or
 * the one that the device has for the remote address. Returns 0 or errno. */
static int
choose_source(struct cm_id *id, const struct sockaddr *src, const struct sk_addr *remote,
	uint32_t scope, struct sk_addr *out)
{
	const struct saker_device *d = vb_saker_device();
	struct sk_addr a;
	uint16_t port = 0;
	int err = src != NULL ? vb_cm_addr_from(src, &a, &port) : 0;

	if (d == NULL)
		return errno;
	if (err == 0 && src != NULL && id->port.port == 0)
		err = bind_to(id, d, &a, port, vb_cm_addr_scope(src));
	if (err != 0)
		return err;
	if (sk_addr_is_any(&id->local))
		return vb_cm_addr_choose(d, remote, scope, out);
	*out = id->local;
	return sk_addr_is_v4(out) == sk_addr_is_v4(remote) ? 0 : EINVAL;
}

/* Resolves `remote` for the id. Returns 0, or the errno that the event reports. */
static int
resolve(struct cm_id *id, const struct sockaddr *src, struct sk_addr *remote, uint32_t scope)
{
	static const uint8_t zero[4];
	struct sk_addr local, any4 = sk_addr_v4(zero);
	int err = choose_source(id, src, remote, scope, &local);

	if (err == 0)
		err = bind_device(id, vb_cm_device_choice(id->id.ps));
	if (err == 0 && id->port.port == 0) {
		vb_cm_lock();
		err = vb_cm_port_take(&id->port, id->id.ps, &any4, 0, id->port.reuse);
		vb_cm_unlock();
	}
	if (err != 0)
		return err;
	/* An unspecified or loopback destination means this machine, as in the kernel: here, the
	 * saker itself. */
	if (sk_addr_is_any(remote))
		*remote = local;
	/* The engine needs the source address only if it is link-local; for others it chooses the
	 * address by its routes. */
	if (sk_is_link_local(&local))
		id->local = local;
	id->remote = *remote;
	show_local(id, &local, scope);
	vb_cm_path_fill(id, &local, remote);
	return 0;
}

VB_EXPORT int
rdma_resolve_addr(
	struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr, int timeout_ms)
{
	struct cm_id *p = vb_cm_id_of(id);
	struct sk_addr remote;
	enum cm_state was = p->state;
	uint32_t scope;
	int err = vb_cm_addr_from(dst_addr, &remote, &p->rport);

	if (err == 0)
		err = vb_cm_move(p, CM_IDLE | CM_BOUND, CM_ADDR_RESOLVED);
	if (err != 0)
		return vb_cm_end(err);
	vb_cm_listen_end(p);
	scope = vb_cm_addr_scope(dst_addr);
	err = resolve(p, src_addr, &remote, scope);
	if (err != 0 && was == CM_IDLE)
		unbind(p);
	if (err == EINVAL || err == EAFNOSUPPORT || err == EADDRINUSE || err == EADDRNOTAVAIL) {
		/* The arguments of the call were invalid: no event follows. */
		vb_cm_move(p, CM_ADDR_RESOLVED, was);
		return vb_cm_end(err);
	}
	if (err != 0) {
		vb_cm_move(p, CM_ADDR_RESOLVED, was);
		err = vb_cm_event_raise(p, RDMA_CM_EVENT_ADDR_ERROR, -err);
	} else {
		vb_cm_addr_to(&remote, p->rport, scope, &id->route.addr.dst_storage);
		err = vb_cm_event_raise(p, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	}
	return vb_cm_end(err != 0 ? err : vb_cm_complete(p));
}

VB_EXPORT int
rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct cm_id *p = vb_cm_id_of(id);
	int err = vb_cm_move(p, CM_ADDR_RESOLVED, CM_ROUTE_RESOLVED);

	if (err != 0)
		return vb_cm_end(err);
	if (vb_kind_of(id->verbs)->path_record) {
		id->route.path_rec = &p->path;
		id->route.num_paths = 1;
	}
	if (vb_alive(id->verbs) != 0)
		err = vb_cm_event_raise(p, RDMA_CM_EVENT_ROUTE_ERROR, -ENODEV);
	else
		err = vb_cm_event_raise(p, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return vb_cm_end(err != 0 ? err : vb_cm_complete(p));
}

VB_EXPORT __be16
rdma_get_src_port(struct rdma_cm_id *id)
{
	return htons(vb_cm_addr_port(&id->route.addr.src_addr));
}

VB_EXPORT __be16
rdma_get_dst_port(struct rdma_cm_id *id)
{
	return htons(vb_cm_addr_port(&id->route.addr.dst_addr));
}
