/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates the switch's devices: an engine's port (net_ring) and a guest's card (vhost-user).
 * Starts Ethernet devices. */
#include "gateway_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <rte_bus_vdev.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include "../../lib/base/listen.h"

#define DESCRIPTORS 1024
#define SOCKET_MODE 0660

#define REFUSE(rc, ...) (snprintf(err, errlen, __VA_ARGS__), (rc))

int
gw_vport_make(struct gw *g, struct gw_vport *v, const char *device_name, char *err, size_t errlen)
{
	char name[24];
	int device;

	v->port = -1;
	snprintf(name, sizeof(name), "gw%u_in", ++g->made);
	v->in = rte_ring_create(name, GW_RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	snprintf(name, sizeof(name), "gw%u_out", g->made);
	v->out = rte_ring_create(name, GW_RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (v->in == NULL || v->out == NULL)
		return REFUSE(-ENOMEM, "out of memory for the rings of an engine's port");
	if (device_name != NULL)
		snprintf(name, sizeof(name), "%s", device_name);
	else
		snprintf(name, sizeof(name), "gw%u", g->made);
	snprintf(v->name, sizeof(v->name), "net_ring_%s", name);
	device = rte_eth_from_rings(name, &v->out, 1, &v->in, 1, SOCKET_ID_ANY);
	if (device < 0)
		return REFUSE(-ENODEV,
			"the port %s cannot be created; the net_ring driver may be missing",
			v->name);
	v->device = (uint16_t)device;
	v->made = true;
	return 0;
}

static void
ring_free(struct rte_ring *r)
{
	struct rte_mbuf *m;

	while (r != NULL && rte_ring_sc_dequeue(r, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(r);
}

void
gw_vport_free(struct gw_vport *v)
{
	/* The engine has stopped the device. */
	if (v->made) {
		rte_eth_dev_close(v->device);
		rte_vdev_uninit(v->name);
	}
	ring_free(v->in);
	ring_free(v->out);
	memset(v, 0, sizeof(*v));
}

int
gw_device_start(struct gw *g, uint16_t device, bool *multi_seg, char *err, size_t errlen)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	uint16_t rxd = DESCRIPTORS, txd = DESCRIPTORS;
	int rc = rte_eth_dev_info_get(device, &info);

	if (rc != 0)
		return REFUSE(rc, "port %u cannot be queried: %s", device, strerror(-rc));
	if (g->cfg.mtu >= info.min_mtu && g->cfg.mtu <= info.max_mtu &&
		g->cfg.mtu + RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN <= info.max_rx_pktlen)
		conf.rxmode.mtu = g->cfg.mtu;
	conf.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
	*multi_seg = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
	if (*multi_seg)
		conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	rc = rte_eth_dev_configure(device, 1, 1, &conf);
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(device, &rxd, &txd);
	if (rc == 0)
		rc = rte_eth_rx_queue_setup(device, 0, rxd, SOCKET_ID_ANY, NULL, g->pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(device, 0, txd, SOCKET_ID_ANY, NULL);
	if (rc == 0) {
		rc = rte_eth_dev_set_mtu(device, (uint16_t)g->cfg.mtu);
		rc = rc == -ENOTSUP ? 0 : rc;
	}
	if (rc == 0)
		rc = rte_eth_dev_start(device);
	if (rc != 0)
		return REFUSE(rc, "port %u cannot be started: %s", device, strerror(-rc));
	/* The device must accept frames to the machines' MAC addresses. */
	(void)rte_eth_promiscuous_enable(device);
	(void)rte_eth_allmulticast_enable(device);
	return 0;
}

int
gw_nic_make(struct gw *g, struct gw_nic *n, const char *socket, bool *multi_seg, char *err,
	size_t errlen)
{
	char args[GW_PATH_MAX + 32];
	int rc;

	n->port = -1;
	rc = sk_listen_clear(socket, SOCK_STREAM, err, errlen);
	if (rc < 0)
		return rc;
	snprintf(n->name, sizeof(n->name), "net_vhost_gw%u", ++g->made);
	/* A guest may describe a frame as long as all of the pool. vhost drops one that is longer
	 * than an mbuf before it copies a byte. */
	snprintf(args, sizeof(args), "iface=%s,queues=1,linear-buffer=1", socket);
	if (rte_vdev_init(n->name, args) != 0)
		return REFUSE(-ENODEV, "the vhost-user socket %s cannot be created", socket);
	n->made = true;
	if (rte_eth_dev_get_port_by_name(n->name, &n->device) != 0)
		return REFUSE(-ENODEV, "the vhost-user port of socket %s does not exist", socket);
	rc = gw_device_start(g, n->device, multi_seg, err, errlen);
	/* QEMU's group must be able to connect, whatever the umask is. */
	if (rc == 0 && chmod(socket, SOCKET_MODE) < 0)
		rc = REFUSE(
			-errno, "the mode of socket %s cannot be set: %s", socket, strerror(errno));
	return rc;
}

void
gw_nic_free(struct gw_nic *n)
{
	if (n->made) {
		rte_eth_dev_stop(n->device);
		rte_eth_dev_close(n->device);
		rte_vdev_uninit(n->name);
	}
	memset(n, 0, sizeof(*n));
}
