/* SPDX-License-Identifier: BSD-3-Clause */
/* The vdev as an Ethernet device: pmd.c creates and configures it, burst.c forwards its frames. */
#ifndef IMPAIR_PMD_PRIV_H
#define IMPAIR_PMD_PRIV_H

#include "args.h"
#include "ethdev_abi.h"
#include "impair_priv.h"

struct impair;

struct impair_queue {
	struct impair *dev;
	uint16_t id;
	struct lane lane;
};

struct impair {
	uint16_t port, lower;
	uint16_t mtu;
	uint16_t nrx, ntx;
	struct impair_args args; /* args.cfg is the present configuration */
	bool rss;                /* the application requested the RSS hash */
	uint8_t rss_key[IMPAIR_RSS_KEY_LEN];
	struct impair_queue *rx[IMPAIR_MAX_QUEUES], *tx[IMPAIR_MAX_QUEUES];
};

/* burst.c */
uint16_t impair_rx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t impair_tx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n);

/* stats.c */
uint64_t impair_sum(const struct impair *im, bool tx, enum impair_reason reason);
int impair_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats);
int impair_stats_reset(struct rte_eth_dev *dev);
int impair_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *xstats, unsigned n);
int impair_xstats_get_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *names, unsigned n);

/* ---- control.c ---- */

void impair_register(struct impair *im, bool present);
void impair_apply(struct impair *im);

#endif
