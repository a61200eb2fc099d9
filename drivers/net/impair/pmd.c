/* SPDX-License-Identifier: BSD-3-Clause */
/* The vdev driver net_impair: its life, and the operations that it passes to the lower port. */
#include <errno.h>
#include <stdlib.h>

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_malloc.h>

#include "../../../lib/base/log.h"
#include "pmd_priv.h"

#define NIC_TX_OFFLOADS                                                                            \
	(RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM |                            \
		RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_TSO |                        \
		RTE_ETH_TX_OFFLOAD_MULTI_SEGS)
#define NIC_RX_OFFLOADS (RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_RSS_HASH)
/* The offloads that may be passed to the lower port. Checksums may not: a lower port that fills
 * them in would repair the corruption. */
#define PLAIN_TX_OFFLOADS RTE_ETH_TX_OFFLOAD_MULTI_SEGS
#define PLAIN_RX_OFFLOADS (RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_RSS_HASH)
#define NIC_RSS                                                                                    \
	(RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV4_UDP |                             \
		RTE_ETH_RSS_NONFRAG_IPV6_TCP | RTE_ETH_RSS_NONFRAG_IPV6_UDP)

static struct impair *
priv(const struct rte_eth_dev *dev)
{
	return dev->data->dev_private;
}

static int
dev_infos_get(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	const struct impair *im = priv(dev);
	int rc = rte_eth_dev_info_get(im->lower, info);

	if (rc != 0)
		return rc;
	info->max_rx_queues = RTE_MIN(info->max_rx_queues, (uint16_t)IMPAIR_MAX_QUEUES);
	info->max_tx_queues = RTE_MIN(info->max_tx_queues, (uint16_t)IMPAIR_MAX_QUEUES);
	info->tx_offload_capa &= PLAIN_TX_OFFLOADS;
	info->rx_offload_capa &= PLAIN_RX_OFFLOADS;
	info->tx_queue_offload_capa = 0;
	info->rx_queue_offload_capa = 0;
	info->dev_capa = 0;
	if (im->args.nic) {
		info->tx_offload_capa |= NIC_TX_OFFLOADS;
		info->rx_offload_capa |= NIC_RX_OFFLOADS;
		info->flow_type_rss_offloads = NIC_RSS;
		info->hash_key_size = IMPAIR_RSS_KEY_LEN;
	}
	return 0;
}

/* Prepares the configuration of the lower port. In NIC mode it only has to carry frames. */
static void
lower_conf(const struct impair *im, struct rte_eth_conf *conf)
{
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(im->lower, &info) != 0)
		return;
	conf->rxmode.offloads &= info.rx_offload_capa & ~(uint64_t)NIC_RX_OFFLOADS;
	conf->txmode.offloads &= info.tx_offload_capa & PLAIN_TX_OFFLOADS;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
	conf->rx_adv_conf.rss_conf = (struct rte_eth_rss_conf){0};
	if (conf->rxmode.mtu > info.max_mtu)
		conf->rxmode.mtu = info.max_mtu;
}

static int
dev_configure(struct rte_eth_dev *dev)
{
	const struct rte_eth_rss_conf *rss = &dev->data->dev_conf.rx_adv_conf.rss_conf;
	struct rte_eth_conf conf = dev->data->dev_conf;
	struct impair *im = priv(dev);

	im->nrx = dev->data->nb_rx_queues;
	im->ntx = dev->data->nb_tx_queues;
	im->mtu = dev->data->mtu;
	im->rss = (conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_RSS_HASH) != 0;
	memcpy(im->rss_key, impair_nic_rss_key, sizeof(im->rss_key));
	if (rss->rss_key != NULL && rss->rss_key_len == sizeof(im->rss_key))
		memcpy(im->rss_key, rss->rss_key, sizeof(im->rss_key));
	if (im->args.nic)
		lower_conf(im, &conf);
	return rte_eth_dev_configure(im->lower, im->nrx, im->ntx, &conf);
}

static struct impair_queue *
new_queue(struct impair *im, uint16_t id, unsigned socket, struct rte_mempool *pool)
{
	struct impair_queue *q = rte_zmalloc_socket("impair", sizeof(*q), 64, (int)socket);

	if (q == NULL)
		return NULL;
	q->dev = im;
	q->id = id;
	if (impair_lane_init(&q->lane, im->args.queue, pool, (int)socket) == 0)
		return q;
	rte_free(q);
	return NULL;
}

static void
free_queue(struct impair_queue **q)
{
	if (*q == NULL)
		return;
	impair_lane_fini(&(*q)->lane);
	rte_free(*q);
	*q = NULL;
}

static int
rx_queue_setup(struct rte_eth_dev *dev, uint16_t id, uint16_t descs, unsigned socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	struct rte_eth_rxconf below = *conf;
	struct impair *im = priv(dev);
	int rc;

	below.offloads = 0; /* the port's default offloads suffice */
	rc = rte_eth_rx_queue_setup(im->lower, id, descs, socket, &below, pool);
	if (rc != 0)
		return rc;
	im->rx[id] = new_queue(im, id, socket, pool);
	dev->data->rx_queues[id] = im->rx[id];
	return im->rx[id] != NULL ? 0 : -ENOMEM;
}

static int
tx_queue_setup(struct rte_eth_dev *dev, uint16_t id, uint16_t descs, unsigned socket,
	const struct rte_eth_txconf *conf)
{
	struct rte_eth_txconf below = *conf;
	struct impair *im = priv(dev);
	int rc;

	below.offloads = 0;
	rc = rte_eth_tx_queue_setup(im->lower, id, descs, socket, &below);
	if (rc != 0)
		return rc;
	im->tx[id] = new_queue(im, id, socket, NULL);
	dev->data->tx_queues[id] = im->tx[id];
	return im->tx[id] != NULL ? 0 : -ENOMEM;
}

static void
rx_queue_release(struct rte_eth_dev *dev, uint16_t id)
{
	free_queue(&priv(dev)->rx[id]);
}

static void
tx_queue_release(struct rte_eth_dev *dev, uint16_t id)
{
	free_queue(&priv(dev)->tx[id]);
}

/* Gives the lanes the mempools of the receive queues for their copies: these are the pools that the
 * user sized for this port. */
static void
lend_pools(struct impair *im)
{
	for (uint16_t i = 0; i < im->ntx && im->nrx != 0; i++)
		if (im->tx[i] != NULL && im->rx[i % im->nrx] != NULL)
			im->tx[i]->lane.pool = im->rx[i % im->nrx]->lane.pool;
}

static int
dev_start(struct rte_eth_dev *dev)
{
	struct impair *im = priv(dev);

	lend_pools(im);
	impair_apply(im);
	im->mtu = dev->data->mtu;
	return rte_eth_dev_start(im->lower);
}

static int
dev_stop(struct rte_eth_dev *dev)
{
	struct impair *im = priv(dev);

	for (unsigned i = 0; i < IMPAIR_MAX_QUEUES; i++) {
		if (im->tx[i] != NULL)
			impair_lane_free_held(&im->tx[i]->lane);
		if (im->rx[i] != NULL)
			impair_lane_free_held(&im->rx[i]->lane);
	}
	dev->data->dev_link.link_status = RTE_ETH_LINK_DOWN;
	/* EAL's cleanup may have removed the lower port already. */
	return rte_eth_dev_is_valid_port(im->lower) ? rte_eth_dev_stop(im->lower) : 0;
}

static int
dev_close(struct rte_eth_dev *dev)
{
	struct impair *im = priv(dev);

	for (unsigned i = 0; i < IMPAIR_MAX_QUEUES; i++) {
		free_queue(&im->rx[i]);
		free_queue(&im->tx[i]);
	}
	impair_register(im, false);
	return rte_eth_dev_is_valid_port(im->lower) ? rte_eth_dev_close(im->lower) : 0;
}

static int
link_update(struct rte_eth_dev *dev, int wait)
{
	struct rte_eth_link link;
	int rc;

	rc = wait ? rte_eth_link_get(priv(dev)->lower, &link)
		  : rte_eth_link_get_nowait(priv(dev)->lower, &link);
	if (rc == 0)
		dev->data->dev_link = link;
	return rc;
}

static int
promiscuous_enable(struct rte_eth_dev *dev)
{
	return rte_eth_promiscuous_enable(priv(dev)->lower);
}

static int
promiscuous_disable(struct rte_eth_dev *dev)
{
	return rte_eth_promiscuous_disable(priv(dev)->lower);
}

static int
allmulticast_enable(struct rte_eth_dev *dev)
{
	return rte_eth_allmulticast_enable(priv(dev)->lower);
}

static int
allmulticast_disable(struct rte_eth_dev *dev)
{
	return rte_eth_allmulticast_disable(priv(dev)->lower);
}

static int
mac_addr_set(struct rte_eth_dev *dev, struct rte_ether_addr *mac)
{
	int rc = rte_eth_dev_default_mac_addr_set(priv(dev)->lower, mac);

	/* A port without filters accepts all frames. */
	return rc == -ENOTSUP ? 0 : rc;
}

static int
mtu_set(struct rte_eth_dev *dev, uint16_t mtu)
{
	int rc = rte_eth_dev_set_mtu(priv(dev)->lower, mtu);

	if (rc == -ENOTSUP && priv(dev)->args.nic)
		rc = 0;
	if (rc == 0)
		priv(dev)->mtu = mtu;
	return rc;
}

static const abi_fn ops[ABI_OPS] = {
	[ABI_CONFIGURE] = (abi_fn)dev_configure,
	[ABI_START] = (abi_fn)dev_start,
	[ABI_STOP] = (abi_fn)dev_stop,
	[ABI_CLOSE] = (abi_fn)dev_close,
	[ABI_LINK_UPDATE] = (abi_fn)link_update,
	[ABI_PROMISCUOUS_ENABLE] = (abi_fn)promiscuous_enable,
	[ABI_PROMISCUOUS_DISABLE] = (abi_fn)promiscuous_disable,
	[ABI_ALLMULTICAST_ENABLE] = (abi_fn)allmulticast_enable,
	[ABI_ALLMULTICAST_DISABLE] = (abi_fn)allmulticast_disable,
	[ABI_MAC_ADDR_SET] = (abi_fn)mac_addr_set,
	[ABI_MTU_SET] = (abi_fn)mtu_set,
	[ABI_STATS_GET] = (abi_fn)impair_stats_get,
	[ABI_STATS_RESET] = (abi_fn)impair_stats_reset,
	[ABI_XSTATS_GET] = (abi_fn)impair_xstats_get,
	[ABI_XSTATS_RESET] = (abi_fn)impair_stats_reset,
	[ABI_XSTATS_GET_NAMES] = (abi_fn)impair_xstats_get_names,
	[ABI_INFOS_GET] = (abi_fn)dev_infos_get,
	[ABI_RX_QUEUE_SETUP] = (abi_fn)rx_queue_setup,
	[ABI_RX_QUEUE_RELEASE] = (abi_fn)rx_queue_release,
	[ABI_TX_QUEUE_SETUP] = (abi_fn)tx_queue_setup,
	[ABI_TX_QUEUE_RELEASE] = (abi_fn)tx_queue_release,
};

static int
find_lower(const char *text, uint16_t *lower)
{
	char *end;
	unsigned long n;

	if (rte_eth_dev_get_port_by_name(text, lower) == 0)
		return 0;
	n = strtoul(text, &end, 10);
	if (end == text || *end != '\0' || n >= RTE_MAX_ETHPORTS ||
		!rte_eth_dev_is_valid_port((uint16_t)n))
		return -ENODEV;
	*lower = (uint16_t)n;
	return 0;
}

/* Takes ownership of the lower port, so that loops over ports without an owner skip it. */
static int
own_lower(uint16_t lower, const char *name)
{
	struct rte_eth_dev_owner owner = {0};
	int rc = rte_eth_dev_owner_new(&owner.id);

	if (rc != 0)
		return rc;
	snprintf(owner.name, sizeof(owner.name), "%s", name);
	return rte_eth_dev_owner_set(lower, &owner);
}

/* Checks that a fresh port has the layout of ethdev_abi.h. */
static bool
abi_fits(const struct rte_eth_dev *dev, const char *name)
{
	return strncmp(dev->data->name, name, sizeof(dev->data->name)) == 0 &&
	       dev->data->dev_private == NULL && dev->data->mac_addrs == NULL &&
	       dev->data->port_id < RTE_MAX_ETHPORTS && dev->data->mtu == RTE_ETHER_MTU &&
	       strncmp(rte_version(), "DPDK 22.11", strlen("DPDK 22.11")) == 0;
}

static int
fill_dev(struct rte_eth_dev *dev, const struct impair_args *args, uint16_t lower)
{
	struct impair *im = rte_zmalloc("impair", sizeof(*im), 64);
	struct rte_ether_addr *mac = rte_zmalloc("impair", sizeof(*mac), 0);

	/* rte_eth_dev_release_port() frees both. */
	dev->data->dev_private = im;
	dev->data->mac_addrs = mac;
	if (im == NULL || mac == NULL)
		return -ENOMEM;
	im->args = *args;
	im->port = dev->data->port_id;
	im->lower = lower;
	if (rte_eth_macaddr_get(lower, mac) != 0 || rte_is_zero_ether_addr(mac))
		*mac = (struct rte_ether_addr){{0x02, 'S', 'K', 0, 0, (uint8_t)im->port}};
	dev->dev_ops = ops;
	dev->rx_pkt_burst = impair_rx_burst;
	dev->tx_pkt_burst = impair_tx_burst;
	dev->tx_pkt_prepare = args->nic ? impair_nic_tx_prepare : NULL;
	return 0;
}

static int
probe(struct rte_vdev_device *vdev)
{
	struct rte_device *device = (struct rte_device *)vdev->device;
	const struct rte_devargs *devargs = rte_dev_devargs(device);
	const char *name = rte_dev_name(device);
	struct impair_args args;
	struct rte_eth_dev *dev;
	uint16_t lower;
	int rc;

	if (impair_args_parse(devargs != NULL ? devargs->args : "", &args) != 0)
		return -EINVAL;
	if (find_lower(args.port, &lower) != 0) {
		sk_log(SK_LOG_ERR, "impair: there is no lower port \"%s\"", args.port);
		return -ENODEV;
	}
	dev = rte_eth_dev_allocate(name);
	if (dev == NULL)
		return -ENOMEM;
	rc = abi_fits(dev, name) ? fill_dev(dev, &args, lower) : -ENOTSUP;
	if (rc == 0)
		rc = own_lower(lower, name);
	if (rc != 0) {
		sk_log(SK_LOG_ERR, "impair: cannot create %s: %s", name, strerror(-rc));
		rte_eth_dev_release_port(dev);
		return rc;
	}
	dev->device = device;
	impair_register(dev->data->dev_private, true);
	rte_eth_dev_probing_finish(dev);
	return 0;
}

static int
remove_dev(struct rte_vdev_device *vdev)
{
	uint16_t port;

	if (rte_eth_dev_get_port_by_name(rte_dev_name((struct rte_device *)vdev->device), &port) !=
		0)
		return 0; /* closed already */
	rte_eth_dev_stop(port);
	return rte_eth_dev_close(port);
}

static struct rte_vdev_driver driver = {
	.driver = {.name = "net_impair"},
	.probe = probe,
	.remove = remove_dev,
};

RTE_INIT(impair_register_driver)
{
	rte_vdev_register(&driver);
}
