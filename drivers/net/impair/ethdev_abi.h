/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of DPDK that a vdev driver needs beyond the public headers. Distributions package DPDK
 * without its driver headers, but the libraries export the functions. The layouts below are those
 * of ABI 23 (DPDK 22.11), as far as this driver reads or writes them, and the build refuses any
 * other release. abi_fits() in pmd.c checks them against a live port.
 */
#ifndef IMPAIR_ETHDEV_ABI_H
#define IMPAIR_ETHDEV_ABI_H

#include <rte_ethdev.h>
#include <rte_version.h>

#if RTE_VER_YEAR != 22 || RTE_VER_MONTH != 11
#error "ethdev_abi.h describes DPDK 22.11 only"
#endif

/* Indices in struct eth_dev_ops, which is an array of function pointers. */
enum abi_op {
	ABI_CONFIGURE = 0,
	ABI_START = 1,
	ABI_STOP = 2,
	ABI_CLOSE = 5,
	ABI_LINK_UPDATE = 7,
	ABI_PROMISCUOUS_ENABLE = 9,
	ABI_PROMISCUOUS_DISABLE = 10,
	ABI_ALLMULTICAST_ENABLE = 11,
	ABI_ALLMULTICAST_DISABLE = 12,
	ABI_MAC_ADDR_SET = 15,
	ABI_MTU_SET = 17,
	ABI_STATS_GET = 18,
	ABI_STATS_RESET = 19,
	ABI_XSTATS_GET = 20,
	ABI_XSTATS_RESET = 21,
	ABI_XSTATS_GET_NAMES = 22,
	ABI_INFOS_GET = 24,
	ABI_RX_QUEUE_SETUP = 41,
	ABI_RX_QUEUE_RELEASE = 42,
	ABI_TX_QUEUE_SETUP = 45,
	ABI_TX_QUEUE_RELEASE = 46,
	ABI_OPS = 128, /* at least the number of entries in struct eth_dev_ops */
};

typedef void (*abi_fn)(void);

struct abi_eth_data {
	char name[RTE_ETH_NAME_MAX_LEN];
	void **rx_queues, **tx_queues;
	uint16_t nb_rx_queues, nb_tx_queues;
	struct rte_eth_dev_sriov sriov;
	void *dev_private; /* freed with rte_free() by rte_eth_dev_release_port() */
	struct rte_eth_link dev_link;
	struct rte_eth_conf dev_conf;
	uint16_t mtu;
	uint32_t min_rx_buf_size;
	uint64_t rx_mbuf_alloc_failed;
	struct rte_ether_addr *mac_addrs; /* freed likewise */
	uint64_t mac_pool_sel[RTE_ETH_NUM_RECEIVE_MAC_ADDR];
	struct rte_ether_addr *hash_mac_addrs;
	uint16_t port_id;
};

struct rte_eth_dev {
	eth_rx_burst_t rx_pkt_burst;
	eth_tx_burst_t tx_pkt_burst;
	eth_tx_prep_t tx_pkt_prepare;
	eth_rx_queue_count_t rx_queue_count;
	eth_rx_descriptor_status_t rx_descriptor_status;
	eth_tx_descriptor_status_t tx_descriptor_status;
	struct abi_eth_data *data;
	void *process_private;
	const abi_fn *dev_ops;
	struct rte_device *device;
};

struct rte_eth_dev *rte_eth_dev_allocate(const char *name);
void rte_eth_dev_probing_finish(struct rte_eth_dev *dev);
int rte_eth_dev_release_port(struct rte_eth_dev *dev);

struct abi_list_entry {
	void *next;
	void **prev;
};

struct abi_driver {
	struct abi_list_entry entry;
	const char *name, *alias;
};

/* Needed only to reach the struct rte_device behind the list entry; rte_dev.h describes that
 * structure. */
struct rte_vdev_device {
	struct abi_list_entry entry;
	char device[];
};

struct rte_vdev_driver {
	struct abi_list_entry entry;
	struct abi_driver driver;
	int (*probe)(struct rte_vdev_device *dev);
	int (*remove)(struct rte_vdev_device *dev);
	abi_fn dma_map, dma_unmap;
	uint32_t drv_flags;
};

void rte_vdev_register(struct rte_vdev_driver *driver);

#endif
