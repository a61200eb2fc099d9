/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The devices that a program sees: one for each transport of the saker. They are static, since
 * programs compare and keep pointers to them beyond the list.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_priv.h"

#define NDEVICES 2

static struct vb_device devices[NDEVICES] = {
	{
		.dev = {.node_type = IBV_NODE_RNIC,
			.transport_type = IBV_TRANSPORT_IWARP,
			.name = "saker0",
			.dev_name = "uverbs-saker0",
			.dev_path = "/sys/class/infiniband_verbs/uverbs-saker0",
			.ibdev_path = "/sys/class/infiniband/saker0"},
		.transport = SHM_IWARP,
	},
	{
		.dev = {.node_type = IBV_NODE_CA,
			.transport_type = IBV_TRANSPORT_IB,
			.name = "sakerf0",
			.dev_name = "uverbs-sakerf0",
			.dev_path = "/sys/class/infiniband_verbs/uverbs-sakerf0",
			.ibdev_path = "/sys/class/infiniband/sakerf0"},
		.transport = SHM_FALCON,
	},
};
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

/* An EUI-64 from the MAC; the two devices of one MAC differ in what the standard puts in between.
 */
static __be64
guid_of(const struct shm_device *info, enum shm_transport transport)
{
	const uint8_t *m = info->mac;
	const uint8_t between = transport == SHM_FALCON ? 0xfa : 0xfe;
	const uint8_t eui[8] = {m[0] ^ 2, m[1], m[2], 0xff, between, m[3], m[4], m[5]};
	__be64 guid;

	memcpy(&guid, eui, sizeof(guid));
	return guid;
}

/* Whether the user wants to see it: $SAKER_DEVICES, a list of `iwarp` and `falcon`. */
static bool
wanted(enum shm_transport transport)
{
	const char *list = getenv("SAKER_DEVICES");

	return list == NULL || strstr(list, transport == SHM_FALCON ? "falcon" : "iwarp") != NULL;
}

struct vb_device *
vb_device_of(enum shm_transport transport)
{
	const struct shm_device *info = vb_saker_device();

	if (info == NULL)
		return NULL;
	if (!wanted(transport) || (transport == SHM_FALCON && !info->falcon)) {
		errno = ENODEV;
		return NULL;
	}
	for (int i = 0; i < NDEVICES; i++) {
		if (devices[i].transport != transport)
			continue;
		pthread_mutex_lock(&devices_lock);
		devices[i].guid = guid_of(info, transport);
		pthread_mutex_unlock(&devices_lock);
		return &devices[i];
	}
	errno = ENODEV;
	return NULL;
}

VB_EXPORT struct ibv_device **
ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list = calloc(NDEVICES + 1, sizeof(*list));
	int n = 0;

	if (list == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	for (int i = 0; i < NDEVICES; i++) {
		struct vb_device *d = vb_device_of(devices[i].transport);

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
	for (int i = 0; i < NDEVICES; i++)
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
