/* SPDX-License-Identifier: BSD-3-Clause */
/* The home stage of a connection, as handoff_priv.h defines it, and the configuration of RSS that
 * makes a port compute the same. */
#include <string.h>

#include <rte_ethdev.h>
#include <rte_thash.h>

#include "../../base/log.h"
#include "handoff_priv.h"

#define RSS_WANTED                                                                                 \
	(RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV6_TCP |                             \
		RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP)
#define RETA_MAX   2048 /* entries of the largest table that is filled in; a power of two */
#define RETA_BITS  11   /* of an index in this table */
#define RETA_MASK  127  /* of a port without a table */
#define WORDS_MAX  9    /* of the input of the hash, with IPv6 */
#define PORT_BITS  14   /* of a source port that vary: from ENG_HOME_PORT_MIN to 65535 */
#define CLASS_BITS 2    /* of these bits: the class of a port */
#define KEY_LEN    40   /* bytes of a key that the hash of TCP and UDP packets uses */
#define KEY_DRAWS  100  /* a third of all keys are good */
_Static_assert(1 << CLASS_BITS == ENG_HOME_CLASSES && RETA_MAX == 1 << RETA_BITS, "bits");

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

/* Returns the key of a port. */
static const uint8_t *
home_key(const struct eng *e, uint16_t port)
{
	return port < e->cfg.nports ? e->ports[port].rss_key : e->rss_key;
}

static uint32_t
home_hash(const struct eng *e, const struct tcp_tuple *key)
{
	uint32_t words[WORDS_MAX];
	unsigned n = home_put_addr(words, &key->raddr);

	n += home_put_addr(words + n, &key->laddr);
	words[n++] = (uint32_t)key->rport << 16 | key->lport;
	return rte_softrss(words, n, home_key(e, key->port));
}

unsigned
eng_home(const struct eng *e, const struct tcp_tuple *key)
{
	uint32_t mask = key->port < e->cfg.nports ? e->ports[key->port].reta_mask : RETA_MASK;

	if (e->cfg.ntransports == 1)
		return 0;
	return (home_hash(e, key) & mask) % e->cfg.ntransports;
}

/* ---- Source ports for a home stage ---- */

/* The hash is linear: a bit of the input that changes inverts the same bits of the hash, whatever
 * the other bits are. Sets bit[i] to what bit i of the source port inverts, in a packet whose
 * addresses have `words` words. */
static void
home_port_bits(const uint8_t *rss_key, unsigned words, uint32_t bit[PORT_BITS])
{
	uint32_t in[WORDS_MAX] = {0};

	for (unsigned i = 0; i < PORT_BITS; i++) {
		in[words] = 1u << (16 + i);
		bit[i] = rte_softrss(in, words + 1, rss_key);
	}
}

/* Returns whether the bits of a source port that are not its class can produce every value of the
 * low RETA_BITS bits of the hash: by Gaussian elimination. */
static bool
ports_reach_all(const uint8_t *rss_key, unsigned words)
{
	uint32_t bit[PORT_BITS], row[RETA_BITS] = {0};
	unsigned rank = 0;

	home_port_bits(rss_key, words, bit);
	for (unsigned i = CLASS_BITS; i < PORT_BITS; i++) {
		uint32_t v = bit[i] & (RETA_MAX - 1);

		for (unsigned k = RETA_BITS; k-- > 0 && v != 0;) {
			if (!(v >> k & 1))
				continue;
			if (row[k] == 0) {
				row[k] = v;
				rank++;
				break;
			}
			v ^= row[k];
		}
	}
	return rank == RETA_BITS;
}

void
eng_home_key(struct eng *e)
{
	unsigned draws = 0;

	do
		sk_random(e->rss_key, sizeof(e->rss_key));
	while ((!ports_reach_all(e->rss_key, 2) || !ports_reach_all(e->rss_key, 8)) &&
		++draws < KEY_DRAWS);
}

/* Returns whether UDP packets of the tuple arrive at the queue of their home stage, and `stage` has
 * such a queue. */
static bool
home_spreads(const struct eng *e, unsigned stage, const struct tcp_tuple *key)
{
	uint64_t type = sk_addr_is_v4(&key->raddr) ? RTE_ETH_RSS_NONFRAG_IPV4_UDP
						   : RTE_ETH_RSS_NONFRAG_IPV6_UDP;
	const struct eng_port *p = &e->ports[key->port];

	return key->port < e->cfg.nports && (p->rss & type) && stage < p->rx_queues &&
	       stage <= p->reta_mask;
}

bool
eng_home_rports(const struct eng *e, unsigned stage, const struct tcp_tuple *key,
	uint16_t ports[ENG_HOME_RPORTS])
{
	unsigned have[ENG_HOME_CLASSES] = {0}, all = 0;
	uint32_t bit[PORT_BITS], hash, mask;
	struct tcp_tuple k = *key;

	if (e->cfg.ntransports == 1 || !home_spreads(e, stage, key))
		return false;
	mask = e->ports[key->port].reta_mask;
	sk_random(&k.rport, sizeof(k.rport));
	k.rport |= ENG_HOME_PORT_MIN;
	hash = home_hash(e, &k);
	home_port_bits(home_key(e, key->port), sk_addr_is_v4(&key->raddr) ? 2 : 8, bit);
	/* Each step inverts one bit of the port, so that all ports come (Gray code). */
	for (uint32_t i = 1; i <= 1u << PORT_BITS; i++) {
		unsigned class = k.rport % ENG_HOME_CLASSES;
		unsigned flip = RTE_MIN((unsigned)__builtin_ctz(i), PORT_BITS - 1u);

		if ((hash & mask) % e->cfg.ntransports == stage &&
			have[class] < ENG_HOME_RPORTS / ENG_HOME_CLASSES) {
			ports[have[class]++ * ENG_HOME_CLASSES + class] = k.rport;
			if (++all == ENG_HOME_RPORTS)
				return true;
		}
		k.rport ^= (uint16_t)(1u << flip);
		hash ^= bit[flip];
	}
	return false;
}

/* ---- Ports ---- */

void
eng_home_configure(struct eng *e, struct eng_port *p, const struct rte_eth_dev_info *info,
	struct rte_eth_conf *conf)
{
	struct rte_eth_rss_conf *rss = &conf->rx_adv_conf.rss_conf;

	if (p->rx_queues == 1 || !(info->flow_type_rss_offloads & RSS_WANTED))
		return;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	rss->rss_hf = p->rss = info->flow_type_rss_offloads & RSS_WANTED;
	/* A driver that reports no size may use a key of the usual one nevertheless. */
	if (info->hash_key_size <= sizeof(e->rss_key)) {
		rss->rss_key = e->rss_key;
		rss->rss_key_len = info->hash_key_size > 0 ? info->hash_key_size : KEY_LEN;
	}
}

/* Reads the key and the types of packets that the port uses, and takes over a key that is not the
 * requested one. Returns false when they are unknown. */
static bool
home_read_key(struct eng *e, struct eng_port *p, uint8_t len)
{
	uint8_t key[UINT8_MAX + 1] = {0};
	struct rte_eth_rss_conf rss = {.rss_key = key, .rss_key_len = len > 0 ? len : KEY_LEN};
	int rc = rte_eth_dev_rss_hash_conf_get(p->dev.id, &rss);

	if (rc != 0)
		return len > 0 && len <= sizeof(e->rss_key);
	if (memcmp(key, p->rss_key, KEY_LEN) != 0) {
		static const uint8_t none[KEY_LEN];

		if (memcmp(key, none, sizeof(none)) == 0)
			return false;
		memcpy(p->rss_key, key, sizeof(p->rss_key));
		sk_log(SK_LOG_INFO, "port %u uses an RSS key of its own", p->dev.id);
	}
	p->rss &= rss.rss_hf;
	if (!ports_reach_all(p->rss_key, 2))
		p->rss &= ~(uint64_t)RTE_ETH_RSS_NONFRAG_IPV4_UDP;
	if (!ports_reach_all(p->rss_key, 8))
		p->rss &= ~(uint64_t)RTE_ETH_RSS_NONFRAG_IPV6_UDP;
	return true;
}

/* Fills in the redirection table of `size` entries, or finds that the port has these entries
 * already. Returns false when it has others. */
static bool
home_fill_table(const struct eng *e, const struct eng_port *p, uint16_t size)
{
	struct rte_eth_rss_reta_entry64 table[RETA_MAX / RTE_ETH_RETA_GROUP_SIZE] = {0};
	struct rte_eth_rss_reta_entry64 has[RETA_MAX / RTE_ETH_RETA_GROUP_SIZE] = {0};

	for (unsigned i = 0; i < size; i++) {
		struct rte_eth_rss_reta_entry64 *group = &table[i / RTE_ETH_RETA_GROUP_SIZE];

		group->mask |= 1ull << i % RTE_ETH_RETA_GROUP_SIZE;
		group->reta[i % RTE_ETH_RETA_GROUP_SIZE] =
			(uint16_t)(i % e->cfg.ntransports % p->rx_queues);
		has[i / RTE_ETH_RETA_GROUP_SIZE].mask = group->mask;
	}
	if (rte_eth_dev_rss_reta_update(p->dev.id, table, size) == 0)
		return true;
	return rte_eth_dev_rss_reta_query(p->dev.id, has, size) == 0 &&
	       memcmp(has, table, sizeof(table)) == 0;
}

void
eng_home_spread(struct eng *e, struct eng_port *p)
{
	uint64_t requested = p->rss;
	struct rte_eth_dev_info info;

	p->reta_mask = RETA_MASK;
	memcpy(p->rss_key, e->rss_key, sizeof(p->rss_key));
	p->rss = 0;
	/* Some drivers report the size of the table only when the port is configured. */
	if (requested == 0 || rte_eth_dev_info_get(p->dev.id, &info) != 0)
		return;
	if (info.reta_size == 0 || info.reta_size > RETA_MAX || !rte_is_power_of_2(info.reta_size))
		return;
	p->reta_mask = info.reta_size - 1u;
	p->rss = requested;
	if (!home_read_key(e, p, info.hash_key_size) || !home_fill_table(e, p, info.reta_size))
		p->rss = 0;
}
