/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The devices of librdmacm: one open context of each device for the whole process, and a protection
 * domain for ids whose program has none.
 *
 * All devices of a saker have the same addresses, so that an address does not determine the device
 * to which an id is bound. $SAKER_DEVICE names the transport: `iwarp` (the default) or `falcon`. An
 * id is bound to a device that has the QPs of its port space; datagrams (UD) exist on Falcon alone.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cm_priv.h"

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cm_device *devices[VB_NKINDS]; /* by enum saker_transport; atomic */
/* Devices whose saker has gone, and that others have replaced; guarded by open_lock. */
static SLIST_HEAD(, cm_device) past = SLIST_HEAD_INITIALIZER(past);

static struct cm_device *
device_new(enum saker_transport transport)
{
	struct vb_device *d = vb_device_of(transport);
	struct cm_device *dev;

	if (d == NULL)
		return NULL;
	dev = calloc(1, sizeof(*dev));
	if (dev == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	dev->epoch = vb_cm_epoch();
	dev->verbs = ibv_open_device(&d->dev);
	dev->pd = dev->verbs != NULL ? ibv_alloc_pd(dev->verbs) : NULL;
	if (dev->pd != NULL)
		return dev;
	if (dev->verbs != NULL)
		ibv_close_device(dev->verbs);
	free(dev);
	return NULL;
}

struct cm_device *
vb_cm_device_have(enum saker_transport transport)
{
	struct cm_device *dev = __atomic_load_n(&devices[transport], __ATOMIC_ACQUIRE);

	return dev != NULL && dev->epoch == vb_cm_epoch() &&
			       !__atomic_load_n(&dev->removed, __ATOMIC_RELAXED)
		       ? dev
		       : NULL;
}

void
vb_cm_device_hold(struct cm_device *dev)
{
	vb_hold(&dev->refs);
}

void
vb_cm_device_release(struct cm_device *dev)
{
	vb_release(&dev->refs);
}

void
vb_cm_device_removed(const struct vb_attachment *a)
{
	for (int i = 0; i < VB_NKINDS; i++) {
		struct cm_device *dev = vb_cm_device_have((enum saker_transport)i);

		if (dev != NULL && vb_context(dev->verbs)->at == a)
			__atomic_store_n(&dev->removed, true, __ATOMIC_RELAXED);
	}
}

/* Returns how many objects of the attachment are the default objects of its devices. Call with
 * open_lock held. */
static uint32_t
default_objects(const struct saker *s)
{
	struct cm_device *dev;
	uint32_t n = 0;

	SLIST_FOREACH(dev, &past, next)
	if (vb_context(dev->verbs)->saker == s)
		n += dev->xrcd != NULL ? 3 : 1; /* an XRC domain has a PD of its own */
	return n;
}

/* Programs destroy the objects of a device before or behind the id that is bound to it. */
static bool
device_unused(const struct cm_device *dev)
{
	const struct saker *s = vb_context(dev->verbs)->saker;

	return !dev->listed && !vb_held(&dev->refs) && saker_objects(s) <= default_objects(s);
}

static void
device_close(struct cm_device *dev)
{
	if (dev->xrcd != NULL)
		ibv_close_xrcd(dev->xrcd);
	ibv_dealloc_pd(dev->pd);
	ibv_close_device(dev->verbs);
	free(dev);
}

/* Closes the devices that nothing uses any more. Call with open_lock held. */
static void
devices_sweep(void)
{
	struct cm_device *dev, *next;

	for (dev = SLIST_FIRST(&past); dev != NULL; dev = next) {
		next = SLIST_NEXT(dev, next);
		if (!device_unused(dev))
			continue;
		SLIST_REMOVE(&past, dev, cm_device, next);
		device_close(dev);
	}
}

/* Makes place for the successors of devices whose saker has gone. Call with open_lock held. */
static void
devices_retire(void)
{
	for (int i = 0; i < VB_NKINDS; i++) {
		struct cm_device *dev = devices[i];

		if (dev == NULL || dev->epoch != vb_cm_epoch() ||
			!__atomic_load_n(&dev->removed, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&devices[i], NULL, __ATOMIC_RELEASE);
		SLIST_INSERT_HEAD(&past, dev, next);
	}
}

void
vb_cm_device_sweep(void)
{
	pthread_mutex_lock(&open_lock);
	devices_retire();
	devices_sweep();
	pthread_mutex_unlock(&open_lock);
}

struct cm_device *
vb_cm_device_open(enum saker_transport transport)
{
	struct cm_device *dev;

	pthread_mutex_lock(&open_lock);
	devices_retire();
	devices_sweep();
	dev = vb_cm_device_have(transport);
	if (dev == NULL) {
		/* A device of the parent process is not freed: the child's copies of the parent's
		 * ids point to it. */
		dev = device_new(transport);
		if (dev != NULL)
			__atomic_store_n(&devices[transport], dev, __ATOMIC_RELEASE);
	}
	if (dev != NULL)
		vb_cm_device_hold(dev);
	pthread_mutex_unlock(&open_lock);
	return dev;
}

/* A thread that was opening a device in the parent does not exist in the child. */
void
vb_cm_device_forked(void)
{
	pthread_mutex_init(&open_lock, NULL);
	SLIST_INIT(&past);
}

struct cm_device *
vb_cm_device_of(struct ibv_context *verbs)
{
	for (int i = 0; i < VB_NKINDS; i++) {
		struct cm_device *dev = vb_cm_device_have((enum saker_transport)i);

		if (dev != NULL && dev->verbs == verbs)
			return dev;
	}
	return NULL;
}

/* Returns whether a device of this kind has the QPs that the port space connects. */
static bool
serves(const struct vb_kind *kind, enum rdma_port_space ps)
{
	return vb_kind_has_qp_type(kind, vb_cm_qp_type_of(ps));
}

enum saker_transport
vb_cm_device_choice(enum rdma_port_space ps)
{
	const char *name = getenv("SAKER_DEVICE");
	int first = -1, last = 0;

	for (int i = 0; i < VB_NKINDS; i++) {
		if (!serves(&vb_kinds[i], ps))
			continue;
		if (name != NULL && strcmp(name, vb_kinds[i].transport) == 0)
			return (enum saker_transport)i;
		/* Without a name, a device that the program cannot open is not chosen. */
		if (first < 0 && (name != NULL || vb_device_of((enum saker_transport)i) != NULL))
			first = i;
		last = i;
	}
	return (enum saker_transport)(first >= 0 ? first : last);
}

void
vb_cm_device_bind(struct cm_id *id, struct cm_device *dev)
{
	if (id->dev != NULL)
		vb_cm_device_release(id->dev);
	id->dev = dev;
	id->id.verbs = dev->verbs;
	id->id.port_num = 1;
	if (id->id.pd == NULL)
		id->id.pd = dev->pd;
}

void
vb_cm_device_unbind(struct cm_id *id)
{
	struct cm_device *dev = id->dev;

	if (dev == NULL)
		return;
	if (id->id.pd == dev->pd)
		id->id.pd = NULL;
	id->id.port_num = 0;
	id->id.verbs = NULL;
	id->dev = NULL;
	vb_cm_device_release(dev);
}

VB_EXPORT struct ibv_context **
rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = calloc(VB_NKINDS + 1, sizeof(*list));
	int n = 0;

	if (list == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	for (int i = 0; i < VB_NKINDS; i++) {
		struct cm_device *dev = vb_cm_device_open(vb_kind_listed(i));

		if (dev == NULL)
			continue;
		dev->listed = true;
		vb_cm_device_release(dev);
		list[n++] = dev->verbs;
	}
	if (num_devices != NULL)
		*num_devices = n;
	if (n > 0)
		return list;
	free(list);
	errno = ENODEV;
	return NULL;
}

VB_EXPORT void
rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
