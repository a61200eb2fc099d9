/* SPDX-License-Identifier: BSD-3-Clause */
/* The home stage of a connection, as handoff_priv.h defines it, and the configuration of RSS that
 * makes a port compute the same. */
#include <string.h>

#include <rte_ethdev.h>
#include <rte_thash.h>

#include "handoff_priv.h"

#define RSS_WANTED (RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV6_TCP)
#define RETA_MAX   2048 /* entries of the largest table that is filled in; a power of two */
#define RETA_MASK  127  /* of a port without a table */

/* Writes an address in the form that rte_softrss() requires, as 32-bit words in host byte order.
 * Returns the number of words. */
static unsigned
home_put_addr(uint32_t *to, const struct sk_addr *a)
{
	uint32_t w[4];
	unsigned first = sk_addr_is_v4(a) ? 3 : 0;

	memcpy(w, a->b, sizeof(w));
	for (unsigned i = first; i < 4; i++)
		to[i - first] = rte_be_to_cpu_32(w[i]);
	return 4 - first;
}

unsigned
eng_home(const struct eng *e, const struct tcp_tuple *key)
{
	uint32_t mask = key->port < e->cfg.nports ? e->ports[key->port].reta_mask : RETA_MASK;
	uint32_t words[9];
	unsigned n;

	if (e->cfg.ntransports == 1)
		return 0;
	n = home_put_addr(words, &key->raddr);
	n += home_put_addr(words + n, &key->laddr);
	words[n++] = (uint32_t)key->rport << 16 | key->lport;
	return (rte_softrss(words, n, e->rss_key) & mask) % e->cfg.ntransports;
}

void
eng_home_configure(struct eng *e, struct eng_port *p, const struct rte_eth_dev_info *info,
	struct rte_eth_conf *conf)
{
	struct rte_eth_rss_conf *rss = &conf->rx_adv_conf.rss_conf;

	p->reta_mask = RETA_MASK;
	if (p->rx_queues == 1 || !(info->flow_type_rss_offloads & RSS_WANTED))
		return;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	rss->rss_hf = info->flow_type_rss_offloads & RSS_WANTED;
	if (info->hash_key_size > 0 && info->hash_key_size <= sizeof(e->rss_key)) {
		rss->rss_key = e->rss_key;
		rss->rss_key_len = info->hash_key_size;
	}
	if (info->reta_size > 0 && info->reta_size <= RETA_MAX &&
		rte_is_power_of_2(info->reta_size))
		p->reta_mask = info->reta_size - 1u;
}

void
eng_home_spread(struct eng *e, struct eng_port *p, const struct rte_eth_dev_info *info)
{
	struct rte_eth_rss_reta_entry64 table[RETA_MAX / RTE_ETH_RETA_GROUP_SIZE] = {0};

	if (p->rx_queues == 1 || info->reta_size != p->reta_mask + 1)
		return;
	for (unsigned i = 0; i < info->reta_size; i++) {
		struct rte_eth_rss_reta_entry64 *group = &table[i / RTE_ETH_RETA_GROUP_SIZE];

		group->mask |= 1ull << i % RTE_ETH_RETA_GROUP_SIZE;
		group->reta[i % RTE_ETH_RETA_GROUP_SIZE] =
			(uint16_t)(i % e->cfg.ntransports % p->rx_queues);
	}
	(void)rte_eth_dev_rss_reta_update(p->id, table, info->reta_size);
}
