/* SPDX-License-Identifier: BSD-3-Clause */
#include "fixture.h"

#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>

#define BURST 32

struct rte_mempool *pool;
struct rte_ring *wire_out, *wire_in;
uint16_t lower;

void
impair_fixture(void)
{
	static char *argv[] = {(char *)"test", (char *)"--no-huge", (char *)"--no-shconf",
		(char *)"--no-pci", (char *)"-m", (char *)"64", (char *)"-l", (char *)"0",
		(char *)"--no-telemetry", (char *)"--log-level=3"};
	int port;

	cr_assert_geq(rte_eal_init((int)(sizeof(argv) / sizeof(argv[0])), argv), 0);
	pool = rte_pktmbuf_pool_create("test", POOL, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM, 0);
	cr_assert_not_null(pool);
	wire_out = rte_ring_create("out", 1024, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
	wire_in = rte_ring_create("in", 4096, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
	port = rte_eth_from_rings("lower", &wire_in, 1, &wire_out, 1, 0);
	cr_assert_geq(port, 0);
	lower = (uint16_t)port;
}

void
impair_fixture_end(void)
{
	struct rte_mbuf *m;

	while (rte_ring_dequeue(wire_out, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	while (rte_ring_dequeue(wire_in, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	cr_assert_eq(rte_mempool_avail_count(pool), POOL, "all mbufs are home");
	rte_eal_cleanup();
}

uint16_t
start_nic(const char *args, uint64_t tx_offloads, uint64_t rx_offloads)
{
	struct rte_eth_conf conf = {0};
	char text[256];
	uint16_t port;

	snprintf(text, sizeof(text), "port=%u%s%s", lower, *args != '\0' ? "," : "", args);
	cr_assert_eq(rte_vdev_init("net_impair0", text), 0, "%s", text);
	cr_assert_eq(rte_eth_dev_get_port_by_name("net_impair0", &port), 0);
	conf.txmode.offloads = tx_offloads;
	conf.rxmode.offloads = rx_offloads;
	if (rx_offloads & RTE_ETH_RX_OFFLOAD_RSS_HASH) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_NONFRAG_IPV4_TCP;
	}
	cr_assert_eq(rte_eth_dev_configure(port, 1, 1, &conf), 0);
	cr_assert_eq(rte_eth_rx_queue_setup(port, 0, 512, 0, NULL, pool), 0);
	cr_assert_eq(rte_eth_tx_queue_setup(port, 0, 512, 0, NULL), 0);
	cr_assert_eq(rte_eth_dev_start(port), 0);
	return port;
}

uint16_t
start(const char *args)
{
	return start_nic(args, 0, 0);
}

void
stop(uint16_t port)
{
	cr_assert_eq(rte_eth_dev_stop(port), 0);
	cr_assert_eq(rte_eth_dev_close(port), 0);
	cr_assert_not(rte_eth_dev_is_valid_port(lower), "the port below goes with it");
}

struct rte_mbuf *
tcp_frame(uint32_t n, unsigned payload, uint8_t ecn, bool v6)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 2};
	struct wire_eth eth = {.type = v6 ? ETH_IPV6 : ETH_IPV4, .vlan = ETH_NO_VLAN};
	struct wire_ip ip = {.proto = IP_TCP, .ttl = 64, .ecn = ecn, .payload_len = 20 + payload};
	struct wire_tcp tcp = {.sport = 1, .dport = 2, .seq = n, .flags = TCP_ACK, .wscale = 0xff};
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	unsigned len, l4;
	uint16_t sum;
	uint8_t *p;

	cr_assert_not_null(m);
	sk_addr_parse(v6 ? "2001:db8::1" : "192.0.2.1", &ip.src);
	sk_addr_parse(v6 ? "2001:db8::2" : "192.0.2.2", &ip.dst);
	p = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)((v6 ? HEAD + 20 : HEAD) + payload));
	cr_assert_not_null(p);
	memcpy(eth.dst, mac, 6);
	memcpy(eth.src, mac, 6);
	l4 = wire_eth_emit(p, &eth);
	l4 += wire_ip_emit(p + l4, &ip);
	len = l4 + wire_tcp_emit(p + l4, &tcp);
	for (unsigned i = 0; i < payload; i++)
		p[len + i] = (uint8_t)(i < 4 ? n >> (24 - 8 * i) : n * 31 + i * 7);
	sum = wire_sum_fold(wire_sum(
		wire_pseudo_sum(&ip.src, &ip.dst, IP_TCP, ip.payload_len), p + l4, ip.payload_len));
	memcpy(p + l4 + TCP_CKSUM_OFFSET, &sum, 2);
	return m;
}

uint32_t
frame_number(struct rte_mbuf *m, bool v6)
{
	const uint8_t *p = rte_pktmbuf_mtod_offset(m, uint8_t *, v6 ? HEAD + 20 : HEAD);

	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Returns the frame's bytes in one piece, copied to `buf` if they are scattered. */
static const uint8_t *
flat(struct rte_mbuf *m, uint8_t *buf)
{
	return rte_pktmbuf_read(m, 0, m->pkt_len, buf);
}

bool
ip4_checksum_right(struct rte_mbuf *m)
{
	uint8_t buf[16384];
	const uint8_t *p = flat(m, buf);
	unsigned l3 = p[12] == 0x81 ? 18 : 14;

	return wire_sum_fold(wire_sum(0, p + l3, IP4_LEN)) == 0;
}

bool
l4_checksum_right(struct rte_mbuf *m)
{
	uint8_t buf[16384];
	const uint8_t *p = flat(m, buf);
	unsigned l3 = p[12] == 0x81 ? 18 : 14;
	struct wire_ip ip;
	int n;

	n = p[l3] >> 4 == 4 ? wire_ip4_parse(&ip, p + l3, m->pkt_len - l3)
			    : wire_ip6_parse(&ip, p + l3, m->pkt_len - l3);
	cr_assert_gt(n, 0);
	return wire_sum_fold(wire_sum(wire_pseudo_sum(&ip.src, &ip.dst, ip.proto, ip.payload_len),
		       p + l3 + n, ip.payload_len)) == 0;
}

unsigned
take_out(uint16_t port, struct rte_mbuf **got, unsigned max)
{
	rte_eth_tx_burst(port, 0, NULL, 0);
	return rte_ring_dequeue_burst(wire_out, (void **)got, max, NULL);
}

unsigned
send_all(uint16_t port, uint32_t n, unsigned count, struct rte_mbuf **got, unsigned max)
{
	struct rte_mbuf *burst[BURST];
	unsigned out = 0;

	for (unsigned done = 0; done < count; done += BURST) {
		unsigned k = RTE_MIN(count - done, (unsigned)BURST);

		for (unsigned i = 0; i < k; i++)
			burst[i] = tcp_frame(n + done + i, 100, IP_ECN_ECT0, false);
		cr_assert_eq(rte_eth_tx_burst(port, 0, burst, (uint16_t)k), k);
		out += take_out(port, got + out, max - out);
	}
	return out;
}

void
free_all(struct rte_mbuf **m, unsigned n)
{
	rte_pktmbuf_free_bulk(m, n);
}

struct impair_cfg
config(uint16_t port)
{
	struct impair_cfg cfg;

	cr_assert_eq(impair_get(port, &cfg), 0);
	return cfg;
}
