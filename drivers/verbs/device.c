/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The devices that a program sees: one for each transport of the saker. They are static, because
 * programs compare pointers to devices and use them after they have freed the list.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process_priv.h"
#include "verbs_priv.h"

static struct vb_device devices[VB_NKINDS]; /* by enum saker_transport */
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns an EUI-64 that is made from the MAC address. The two bytes between the halves of the
 * address, 0xff 0xfe in the standard, differ between the devices of one MAC address. */
static __be64
guid_of(const struct saker_device *info, const struct vb_kind *kind)
{
	const uint8_t *m = info->mac;
	const uint8_t eui[8] = {m[0] ^ 2, m[1], m[2], 0xff, kind->guid_byte, m[3], m[4], m[5]};
	__be64 guid;

	memcpy(&guid, eui, sizeof(guid));
	return guid;
}

/* Returns whether $SAKER_DEVICES, a list of transports, contains the kind; without it, all do. */
static bool
selected(const struct vb_kind *kind)
{
	const char *list = getenv("SAKER_DEVICES");

	return list == NULL || strstr(list, kind->transport) != NULL;
}

/* Fills in what a program reads of the device. A program may hold the device already: its names are
 * written once. Call with devices_lock held. */
static void
device_fill(struct vb_device *d, const struct vb_kind *kind, const struct saker_device *info)
{
	d->guid = guid_of(info, kind);
	if (d->kind != NULL)
		return;
	d->kind = kind;
	d->dev.node_type = kind->node_type;
	d->dev.transport_type = kind->transport_type;
	snprintf(d->dev.name, sizeof(d->dev.name), "%s", kind->name);
	snprintf(d->dev.dev_name, sizeof(d->dev.dev_name), "uverbs-%s", kind->name);
	snprintf(d->dev.dev_path, sizeof(d->dev.dev_path), "/sys/class/infiniband_verbs/uverbs-%s",
		kind->name);
	snprintf(d->dev.ibdev_path, sizeof(d->dev.ibdev_path), "/sys/class/infiniband/%s",
		kind->name);
}

struct vb_device *
vb_device_of(enum saker_transport transport)
{
	const struct saker_device *info = vb_saker_device();
	const struct vb_kind *kind = &vb_kinds[transport];
	struct vb_device *d = &devices[transport];

	if (info == NULL)
		return NULL;
	if (!selected(kind) || !kind->offered(info)) {
		errno = ENODEV;
		return NULL;
	}
	pthread_mutex_lock(&devices_lock);
	device_fill(d, kind, info);
	pthread_mutex_unlock(&devices_lock);
	return d;
}

VB_EXPORT struct ibv_device **
ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = calloc(VB_NKINDS + 1, sizeof(*list));
	int n = 0;

	if (list == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	for (int i = 0; i < VB_NKINDS; i++) {
		struct vb_device *d = vb_device_of(vb_kind_listed(i));

		if (d != NULL)
			list[n++] = &d->dev;
	}
	if (num_devices != NULL)
		*num_devices = n;
	errno = 0;
	return list;
}

VB_EXPORT void
ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

VB_EXPORT const char *
ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

VB_EXPORT int
ibv_get_device_index(struct ibv_device *device)
{
	for (int i = 0; i < VB_NKINDS; i++)
		if (&devices[i].dev == device)
			return i;
	return -1;
}

VB_EXPORT __be64
ibv_get_device_guid(struct ibv_device *device)
{
	struct vb_device *d = (struct vb_device *)device;
	__be64 guid;

	pthread_mutex_lock(&devices_lock);
	guid = d->guid;
	pthread_mutex_unlock(&devices_lock);
	return guid;
}

/* ---- fork(2) ---- */

void
vb_devices_fork_prepare(void)
{
	pthread_mutex_lock(&devices_lock);
}

void
vb_devices_fork_parent(void)
{
	pthread_mutex_unlock(&devices_lock);
}

void
vb_devices_fork_child(void)
{
	pthread_mutex_init(&devices_lock, NULL);
}
