/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports: one queue pair for each transport stage, the offloads that the configuration wants and the
 * port offers, and nothing that it does not offer.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>

#include "eng_priv.h"
#include "transport_priv.h"

#define RSS_WANTED (RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV6_TCP)

static int
refuse(char *err, size_t errlen, const struct eng_port *p, const char *what, int rc)
{
	snprintf(err, errlen, "port %u: %s: %s", p->id, what, strerror(-rc));
	return rc;
}

/* Of what is offered, that which is wanted. */
static void
choose_offloads(struct eng_port *p, const struct eng_port_config *pc,
	const struct rte_eth_dev_info *info, struct rte_eth_conf *conf, unsigned queues)
{
	const uint64_t tx_cksum = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
	const uint64_t rx_cksum = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
	uint64_t tx = info->tx_offload_capa, rx = info->rx_offload_capa;

	p->multi_seg = (tx & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
	p->cksum = pc->offload_cksum && (tx & tx_cksum) == tx_cksum;
	p->rx_cksum = pc->offload_cksum && (rx & rx_cksum) == rx_cksum;
	p->tso = pc->offload_tso && p->cksum && p->multi_seg && (tx & RTE_ETH_TX_OFFLOAD_TCP_TSO);
	if (p->multi_seg)
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	if (p->cksum)
		conf->txmode.offloads |= tx_cksum;
	if (p->tso)
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_TCP_TSO;
	if (p->rx_cksum)
		conf->rxmode.offloads |= rx_cksum;
	if (rx & RTE_ETH_RX_OFFLOAD_SCATTER)
		conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
	if (queues > 1 && (info->flow_type_rss_offloads & RSS_WANTED)) {
		conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf->rx_adv_conf.rss_conf.rss_hf = info->flow_type_rss_offloads & RSS_WANTED;
	}
}

static int
setup_queues(struct eng *e, struct eng_port *p, const struct eng_port_config *pc)
{
	uint16_t rxd = pc->rxd, txd = pc->txd;
	int socket = rte_eth_dev_socket_id(p->id);
	int rc = rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &rxd, &txd);

	for (unsigned q = 0; q < e->cfg.ntransports && rc == 0; q++) {
		rc = rte_eth_rx_queue_setup(
			p->id, (uint16_t)q, rxd, (unsigned)socket, NULL, e->transports[q]->rx_pool);
		if (rc == 0)
			rc = rte_eth_tx_queue_setup(
				p->id, (uint16_t)q, txd, (unsigned)socket, NULL);
	}
	return rc;
}

/* A port that has no address of its own (a ring) gets a random one. */
static int
take_mac(struct eng_port *p)
{
	struct rte_ether_addr mac;
	int rc = rte_eth_macaddr_get(p->id, &mac);

	if (rc != 0)
		return rc;
	if (!rte_is_valid_assigned_ether_addr(&mac)) {
		sk_random(&mac, sizeof(mac));
		mac.addr_bytes[0] = (mac.addr_bytes[0] & 0xfc) | RTE_ETHER_LOCAL_ADMIN_ADDR;
		if (rte_eth_dev_default_mac_addr_set(p->id, &mac) != 0)
			(void)rte_eth_promiscuous_enable(p->id);
	}
	memcpy(p->mac, mac.addr_bytes, sizeof(p->mac));
	return 0;
}

int
eng_port_start(struct eng *e, unsigned i, char *err, size_t errlen)
{
	const struct eng_port_config *pc = &e->cfg.ports[i];
	struct eng_port *p = &e->ports[i];
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	uint16_t queues = (uint16_t)e->cfg.ntransports;
	int rc;

	p->id = pc->port_id;
	p->mtu = pc->mtu;
	rc = rte_eth_dev_info_get(p->id, &info);
	if (rc != 0)
		return refuse(err, errlen, p, "no such port", rc);
	if (queues > info.max_rx_queues || queues > info.max_tx_queues)
		return refuse(err, errlen, p, "fewer queues than transport stages", -EINVAL);
	if (p->mtu < info.min_mtu || p->mtu > info.max_mtu)
		return refuse(err, errlen, p, "it does not carry this MTU", -EINVAL);
	conf.rxmode.mtu = p->mtu;
	choose_offloads(p, pc, &info, &conf, queues);
	rc = rte_eth_dev_configure(p->id, queues, queues, &conf);
	if (rc != 0)
		return refuse(err, errlen, p, "cannot be configured", rc);
	rc = setup_queues(e, p, pc);
	if (rc != 0)
		return refuse(err, errlen, p, "its queues cannot be set up", rc);
	/* A port without the notion of an MTU takes what fits the mbufs. */
	rc = rte_eth_dev_set_mtu(p->id, (uint16_t)p->mtu);
	if (rc != 0 && rc != -ENOTSUP)
		return refuse(err, errlen, p, "refuses the MTU", rc);
	rc = rte_eth_dev_start(p->id);
	if (rc != 0)
		return refuse(err, errlen, p, "does not start", rc);
	p->started = true;
	/* Neighbour solicitations come to multicast addresses. */
	(void)rte_eth_allmulticast_enable(p->id);
	rc = take_mac(p);
	return rc == 0 ? 0 : refuse(err, errlen, p, "has no MAC address", rc);
}

void
eng_port_stop(struct eng *e, unsigned i)
{
	struct eng_port *p = &e->ports[i];
	struct rte_mbuf *burst[ENG_BURST];
	uint16_t n;

	if (!p->started)
		return;
	for (unsigned q = 0; q < e->cfg.ntransports; q++) {
		/* A port that still receives would keep this up for ever. */
		for (unsigned k = 0; k < UINT16_MAX / ENG_BURST; k++) {
			n = rte_eth_rx_burst(p->id, (uint16_t)q, burst, ENG_BURST);
			if (n == 0)
				break;
			rte_pktmbuf_free_bulk(burst, n);
		}
	}
	(void)rte_eth_tx_done_cleanup(p->id, 0, 0);
	rte_eth_dev_stop(p->id);
	p->started = false;
}
