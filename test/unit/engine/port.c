/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports with limits, ports that refuse what they offer, and devices that are removed. The linker
 * replaces functions of ethdev, so that the net_ring port of node 0 has the driver of this file.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/transport/transport.h"
#include "falcon_rig.h"

#define TX                                                                                         \
	(RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM |                            \
		RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_TSO |                        \
		RTE_ETH_TX_OFFLOAD_MULTI_SEGS)
#define RSS (RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV4_UDP)

TestSuite(engine_port, .init = pair_eal_large);

/* The driver of port 0, and what the engine requested of it. */
static struct driver {
	bool own; /* the functions below are its own, not those of net_ring */
	uint64_t tx, rss;
	uint16_t reta, reta_configured; /* entries of its table: before and after configure */
	uint8_t key_size;
	uint16_t segs, mtu_segs;
	const char *name;      /* of the driver */
	unsigned starts, fail; /* starts so far; starts that fail */
	/* It refuses configurations with these; and to set the MTU, before it runs or always. */
	uint64_t refuses_tx;
	bool refuses_rss, mtu_late, mtu_never, running, configured;
	bool tx_late;                          /* it has its offloads only when it is configured */
	int allmulticast, groups, promiscuous; /* results */
	const uint8_t *key;                    /* that it uses, if it reports one */
	bool no_key, keeps_table, peer_open;
	enum rte_eth_fc_mode pause;
	struct rte_eth_conf conf;
	struct rte_ether_addr group[8];
	unsigned ngroups, attempts, probes, removes;
	unsigned speed, links; /* Mb/s; calls that ask for the link */
	rte_eth_dev_cb_fn report;
	void *report_arg;
} driver;

#define REAL(name, ...) __real_##name(__VA_ARGS__)
#define OWN(port)       (driver.own && (port) == frig.p.port[0])
#define WRAP(name, ...)                                                                            \
	int __real_##name(__VA_ARGS__);                                                            \
	int __wrap_##name(__VA_ARGS__);                                                            \
	int __wrap_##name(__VA_ARGS__)

WRAP(rte_eth_dev_info_get, uint16_t port, struct rte_eth_dev_info *info)
{
	int rc = REAL(rte_eth_dev_info_get, port, info);

	if (!OWN(port) || rc != 0)
		return rc;
	if (driver.name != NULL)
		info->driver_name = driver.name;
	info->tx_offload_capa |= driver.tx_late && !driver.configured ? 0 : driver.tx;
	info->flow_type_rss_offloads = driver.rss;
	info->hash_key_size = driver.key_size;
	info->reta_size = driver.configured ? driver.reta_configured : driver.reta;
	info->tx_desc_lim.nb_seg_max = driver.segs;
	info->tx_desc_lim.nb_mtu_seg_max = driver.mtu_segs;
	return 0;
}

WRAP(rte_eth_dev_configure, uint16_t port, uint16_t rx, uint16_t tx, const struct rte_eth_conf *c)
{
	struct rte_eth_conf plain = *c;

	if (!OWN(port))
		return REAL(rte_eth_dev_configure, port, rx, tx, c);
	driver.attempts++;
	driver.conf = *c;
	if ((c->txmode.offloads & driver.refuses_tx) ||
		(driver.refuses_rss && c->rxmode.mq_mode == RTE_ETH_MQ_RX_RSS))
		return -EINVAL;
	driver.configured = true;
	plain.txmode.offloads &= ~(uint64_t)TX | RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	plain.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE;
	memset(&plain.rx_adv_conf, 0, sizeof(plain.rx_adv_conf));
	return REAL(rte_eth_dev_configure, port, rx, tx, &plain);
}

WRAP(rte_eth_dev_start, uint16_t port)
{
	if (OWN(port) && driver.fail > 0 && driver.starts > 0) {
		driver.fail--;
		return -ECONNREFUSED;
	}
	if (OWN(port)) {
		driver.starts++;
		driver.running = true;
	}
	return REAL(rte_eth_dev_start, port);
}

WRAP(rte_eth_dev_set_mtu, uint16_t port, uint16_t mtu)
{
	if (!OWN(port))
		return REAL(rte_eth_dev_set_mtu, port, mtu);
	if (driver.mtu_never)
		return -EPERM;
	return driver.mtu_late && !driver.running ? -EBUSY : 0;
}

WRAP(rte_eth_dev_get_mtu, uint16_t port, uint16_t *mtu)
{
	*mtu = driver.conf.rxmode.mtu;
	return OWN(port) ? 0 : REAL(rte_eth_dev_get_mtu, port, mtu);
}

WRAP(rte_eth_allmulticast_enable, uint16_t port)
{
	return OWN(port) ? driver.allmulticast : REAL(rte_eth_allmulticast_enable, port);
}

WRAP(rte_eth_promiscuous_enable, uint16_t port)
{
	if (!OWN(port))
		return REAL(rte_eth_promiscuous_enable, port);
	driver.promiscuous++;
	return 0;
}

WRAP(rte_eth_dev_set_mc_addr_list, uint16_t port, struct rte_ether_addr *group, uint32_t n)
{
	if (!OWN(port))
		return REAL(rte_eth_dev_set_mc_addr_list, port, group, n);
	cr_assert_leq(n, RTE_DIM(driver.group));
	memcpy(driver.group, group, n * sizeof(group[0]));
	driver.ngroups = n;
	return driver.groups;
}

WRAP(rte_eth_dev_rss_hash_conf_get, uint16_t port, struct rte_eth_rss_conf *conf)
{
	if (!OWN(port))
		return REAL(rte_eth_dev_rss_hash_conf_get, port, conf);
	if (driver.no_key)
		return -ENOTSUP;
	conf->rss_hf = driver.conf.rx_adv_conf.rss_conf.rss_hf;
	memcpy(conf->rss_key, driver.key, 40);
	return 0;
}

WRAP(rte_eth_dev_rss_reta_update, uint16_t port, struct rte_eth_rss_reta_entry64 *t, uint16_t n)
{
	if (!OWN(port))
		return REAL(rte_eth_dev_rss_reta_update, port, t, n);
	return driver.keeps_table ? -ENOTSUP : 0;
}

/* The table that a driver which has no function to change it might have: i % 2. */
WRAP(rte_eth_dev_rss_reta_query, uint16_t port, struct rte_eth_rss_reta_entry64 *t, uint16_t n)
{
	if (!OWN(port))
		return REAL(rte_eth_dev_rss_reta_query, port, t, n);
	for (unsigned i = 0; i < n; i++)
		t[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE] = i % 2;
	return 0;
}

WRAP(rte_eth_dev_flow_ctrl_get, uint16_t port, struct rte_eth_fc_conf *fc)
{
	if (!OWN(port))
		return REAL(rte_eth_dev_flow_ctrl_get, port, fc);
	fc->mode = driver.pause;
	return 0;
}

WRAP(rte_eth_dev_flow_ctrl_set, uint16_t port, struct rte_eth_fc_conf *fc)
{
	if (!OWN(port))
		return REAL(rte_eth_dev_flow_ctrl_set, port, fc);
	driver.pause = fc->mode;
	return 0;
}

WRAP(rte_eth_dev_callback_register, uint16_t port, enum rte_eth_event_type type,
	rte_eth_dev_cb_fn fn, void *arg)
{
	if (port == frig.p.port[0] && type == RTE_ETH_EVENT_INTR_RMV) {
		driver.report = fn;
		driver.report_arg = arg;
	}
	return 0;
}

bool __real_eng_device_peer_open(const char *args);
WRAP(rte_eth_link_get_nowait, uint16_t port, struct rte_eth_link *link)
{
	int rc = REAL(rte_eth_link_get_nowait, port, link);

	driver.links++;
	if (OWN(port) && driver.speed != 0)
		link->link_speed = driver.speed;
	return rc;
}

bool __wrap_eng_device_peer_open(const char *args);
bool
__wrap_eng_device_peer_open(const char *args)
{
	return driver.peer_open;
}

WRAP(rte_eth_dev_callback_unregister, uint16_t port, enum rte_eth_event_type type,
	rte_eth_dev_cb_fn fn, void *arg)
{
	if (port == frig.p.port[0] && type == RTE_ETH_EVENT_INTR_RMV)
		driver.report = NULL;
	return 0;
}

WRAP(rte_dev_remove, struct rte_device *device)
{
	driver.removes++;
	return 0;
}

WRAP(rte_dev_probe, const char *text)
{
	driver.probes++;
	return strncmp(text, "net_ring_a", strlen("net_ring_a")) == 0 ? 0 : -ENODEV;
}

/* ---- Ports at their start ---- */

/* Creates the engine of node 0 with two transport stages on the driver's port. */
static struct eng_port_view
created(void)
{
	struct eng_config *cfg = &frig.p.cfg[0];
	struct eng_port_view v;
	char err[256];

	pair_init_queues(&frig.p, 2);
	cfg->ntransports = 2;
	driver.own = true;
	frig.p.e[0] = eng_create(cfg, err, sizeof(err));
	cr_assert_not_null(frig.p.e[0], "%s", err);
	eng_port_look(frig.p.e[0], 0, &v);
	return v;
}

static void
ended(void)
{
	driver.own = false;
	pair_end(&frig.p);
}

Test(engine_port, a_port_with_all_offloads_uses_them)
{
	struct eng_port_view v;

	driver.tx = TX;
	v = created();
	cr_assert(v.tcp_cksum && v.ip_cksum && v.udp_cksum && v.multi_seg);
	cr_assert_gt(v.tso, 0);
	cr_assert_eq(driver.attempts, 1);
	cr_assert_eq(driver.ngroups, 0);
	ended();
}

Test(engine_port, a_port_that_refuses_tso_does_without)
{
	struct eng_port_view v;

	driver.tx = TX;
	driver.refuses_tx = RTE_ETH_TX_OFFLOAD_TCP_TSO;
	v = created();
	cr_assert_eq(v.tso, 0);
	cr_assert(v.tcp_cksum && v.multi_seg);
	ended();
}

Test(engine_port, a_port_that_refuses_all_it_offers_carries_plain_frames)
{
	struct eng_port_view v;

	driver.tx = TX;
	driver.rss = RSS;
	driver.refuses_tx = TX;
	driver.refuses_rss = true;
	v = created();
	cr_assert_not(v.tcp_cksum || v.ip_cksum || v.udp_cksum || v.multi_seg);
	cr_assert_eq(v.tso, 0);
	cr_assert_eq(v.rss, 0);
	ended();
}

Test(engine_port, a_bond_is_configured_before_it_is_asked_for_its_offloads)
{
	struct eng_port_view v;

	driver.name = "net_bonding";
	driver.tx = TX;
	driver.tx_late = true;
	v = created();
	cr_assert(v.tcp_cksum && v.ip_cksum && v.udp_cksum && v.multi_seg);
	cr_assert_gt(v.tso, 0);
	ended();
}

Test(engine_port, the_82540em_has_one_queue_although_its_driver_reports_two)
{
	struct eng_port_view v;

	driver.name = "net_e1000_em";
	v = created();
	cr_assert_eq(v.rx_queues, 1);
	cr_assert_eq(v.tx_queues, 1);
	ended();
}

Test(engine_port, the_segments_of_a_tso_frame_are_those_that_the_port_permits)
{
	struct eng_port_view v;

	driver.tx = TX;
	driver.segs = 9;
	driver.mtu_segs = 5;
	v = created();
	cr_assert_eq(v.tso, 4 * 2048);
	cr_assert_eq(frig.p.e[0]->ports[0].most_segs, 5);
	ended();
}

Test(engine_port, an_mtu_may_be_set_after_the_start)
{
	driver.mtu_late = true;
	created();
	ended();
}

Test(engine_port, an_mtu_of_the_configuration_need_not_be_set_again)
{
	driver.mtu_never = true;
	created();
	ended();
}

Test(engine_port, pause_frames_are_turned_off)
{
	driver.pause = RTE_ETH_FC_FULL;
	created();
	cr_assert_eq(driver.pause, RTE_ETH_FC_NONE);
	ended();
}

/* ---- Multicast: RFC 4291 2.7.1 ---- */

Test(engine_port, without_allmulticast_the_groups_of_the_addresses_are_accepted)
{
	static const uint8_t all[] = {0x33, 0x33, 0, 0, 0, 1}, one[] = {0x33, 0x33, 0xff};
	const uint8_t *mac;

	driver.allmulticast = -EPERM;
	created();
	mac = frig.p.e[0]->ports[0].mac;
	cr_assert_eq(driver.ngroups, 2, "of all nodes, and of the link-local address");
	cr_assert_arr_eq(driver.group[0].addr_bytes, all, 6);
	cr_assert_arr_eq(driver.group[1].addr_bytes, one, 3);
	cr_assert_arr_eq(driver.group[1].addr_bytes + 3, mac + 3, 3);
	ended();
}

Test(engine_port, without_groups_the_port_is_promiscuous)
{
	unsigned before;

	driver.allmulticast = driver.groups = -ENOTSUP;
	created();
	before = driver.promiscuous;
	cr_assert_geq(before, 1);
	ended();
}

/* ---- RSS ---- */

static void
rss_driver(void)
{
	driver.rss = RSS;
	driver.key_size = 40;
	driver.reta = driver.reta_configured = 128;
}

/* A key that the driver chose itself. */
static const uint8_t *
own_key(void)
{
	static uint8_t key[40];

	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 77 + i / 3 * 13 + 5);
	return key;
}

Test(engine_port, a_port_that_cannot_report_its_key_is_trusted_with_ours)
{
	rss_driver();
	driver.no_key = true;
	cr_assert_eq(created().rss, RSS);
	ended();
}

Test(engine_port, a_port_with_a_key_of_its_own_decides_the_homes)
{
	struct eng_port_view v;

	rss_driver();
	driver.key_size = 0;
	driver.key = own_key();
	v = created();
	cr_assert(v.rss & RTE_ETH_RSS_NONFRAG_IPV4_TCP);
	cr_assert_eq(driver.conf.rx_adv_conf.rss_conf.rss_key_len, 40);
	cr_assert_arr_eq(frig.p.e[0]->ports[0].rss_key, own_key(), 40);
	ended();
}

Test(engine_port, a_port_without_a_known_key_hands_off)
{
	rss_driver();
	driver.key_size = 0;
	driver.no_key = true;
	cr_assert_eq(created().rss, 0);
	ended();
}

Test(engine_port, a_table_may_have_its_size_only_when_the_port_is_configured)
{
	rss_driver();
	driver.key = own_key();
	driver.reta = 0;
	driver.reta_configured = 64;
	cr_assert(created().rss & RTE_ETH_RSS_NONFRAG_IPV4_TCP);
	cr_assert_eq(frig.p.e[0]->ports[0].reta_mask, 63);
	ended();
}

Test(engine_port, a_fixed_table_with_our_entries_will_do)
{
	rss_driver();
	driver.key = own_key();
	driver.keeps_table = true;
	cr_assert(created().rss & RTE_ETH_RSS_NONFRAG_IPV4_TCP);
	ended();
}

/* ---- Segments of a frame ---- */

static void
jumbo(struct eng_config *cfg, int node)
{
	cfg->ports[0].mtu = 9000;
}

Test(engine_port, a_frame_of_too_many_segments_is_copied_into_one)
{
	frig_start(jumbo);
	frig_connect_over(SAKER_IWARP);
	cr_assert_eq(frig_count(0, "eng", "ENG_TX_COPIED"), 0);
	frig.n[0].e->ports[0].most_segs = 1;
	frig_works();
	memset(frig.n[0].mem, 0x77, 30000);
	memset(frig.n[1].mem, 0, 30000);
	frig_post(0, RD_WRITE, 30000, 0);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	cr_assert_arr_eq(frig.n[0].mem, frig.n[1].mem, 30000);
	cr_assert_gt(frig_count(0, "eng", "ENG_TX_COPIED"), 0);
	frig_stop();
}

/* A driver may take long to read the link, and must not be called while its device is removed: no
 * client makes a loop do that. */
Test(engine_port, the_link_is_read_by_the_thread_that_looks_at_the_ports)
{
	struct saker_device dev;
	unsigned links;

	frig_start(NULL);
	driver.own = true;
	driver.speed = RTE_ETH_SPEED_NUM_40G;
	eng_ports_look(frig.n[0].e);
	links = driver.links;
	cr_assert_eq(saker_device(frig.n[0].s, &dev), 0);
	cr_assert_eq(dev.speed, RTE_ETH_SPEED_NUM_40G);
	driver.speed = RTE_ETH_SPEED_NUM_UNKNOWN;
	cr_assert_eq(driver.links, links, "a command asked the driver");
	eng_ports_look(frig.n[0].e);
	cr_assert_eq(saker_device(frig.n[0].s, &dev), 0);
	cr_assert_eq(dev.speed, 0);
	frig_stop();
}

/* ---- Removal ---- */

static void
removed(void)
{
	cr_assert_not_null(driver.report);
	driver.report(frig.p.port[0], RTE_ETH_EVENT_INTR_RMV, driver.report_arg, NULL);
}

static void
looks(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		frig_turns(3);
		eng_ports_look(frig.n[0].e);
	}
}

static void
connections_end(enum saker_transport transport)
{
	struct saker_conn_param p = {0};
	struct eng_port_view v;
	struct saker_event ev;
	char err[256];

	frig_start(NULL);
	frig_connect_over(transport);
	frig_works();
	removed();
	ev = frig_event(0, SAKER_EV_DISCONNECTED);
	cr_assert_eq(ev.status, -ENETDOWN, "status %d", ev.status);
	cr_assert_geq(frig_count(0, "eng", "ENG_PORT_GONE"), 1);
	eng_port_look(frig.n[0].e, 0, &v);
	cr_assert(v.removed);
	/* A connect fails at once. */
	frig.n[0].qp = frig_qp(0, SAKER_IWARP);
	frig_ask(&p);
	ev = frig_event(0, SAKER_EV_UNREACHABLE);
	cr_assert_eq(ev.status, -ENETDOWN, "status %d", ev.status);
	cr_assert_eq(driver.removes, 0, "a thread may still read the port");
	looks(3);
	cr_assert_eq(driver.removes, 1);
	cr_assert_null(driver.report);
	/* The peer learns of the end when the device is back. */
	cr_assert_eq(eng_port_attach(frig.n[0].e, 0, err, sizeof(err)), 0, "%s", err);
	memset(frig.n[1].mem, 1, 8);
	frig_post(1, RD_WRITE, 8, 0);
	frig_event(1, SAKER_EV_DISCONNECTED);
	frig_stop();
}

Test(engine_port, iwarp_connections_of_a_removed_device_end_with_the_reason)
{
	connections_end(SAKER_IWARP);
}

Test(engine_port, falcon_connections_of_a_removed_device_end_with_the_reason)
{
	connections_end(SAKER_FALCON);
}

Test(engine_port, a_device_that_is_back_is_used_again_with_the_same_address)
{
	struct eng_port_view v;
	uint8_t mac[6];
	char err[256];

	frig_start(NULL);
	memcpy(mac, frig.n[0].e->ports[0].mac, 6);
	cr_assert_eq(eng_port_attach(frig.n[0].e, 0, err, sizeof(err)), -EEXIST);
	removed();
	cr_assert_eq(eng_port_attach(frig.n[0].e, 0, err, sizeof(err)), -EBUSY, "%s", err);
	looks(3);
	cr_assert_eq(eng_port_attach(frig.n[0].e, 0, err, sizeof(err)), 0, "%s", err);
	cr_assert_eq(driver.probes, 1);
	eng_port_look(frig.n[0].e, 0, &v);
	cr_assert_not(v.removed);
	cr_assert_arr_eq(frig.n[0].e->ports[0].mac, mac, 6);
	frig_connect_over(SAKER_IWARP);
	frig_works();
	frig_stop();
}

Test(engine_port, an_engine_ends_cleanly_with_its_device_removed)
{
	frig_start(NULL);
	removed();
	frig_turns(3);
	frig_stop();
	cr_assert_eq(driver.removes, 1);
}

/* ---- Ports that start again ---- */

static void
a_peer_that_comes_back(enum saker_transport transport)
{
	struct eng_port_view v;
	char err[256];

	driver = (struct driver){.own = true, .name = "net_memif", .fail = 2};
	frig_start(NULL);
	frig_connect_over(transport);
	frig_works();
	looks(1);
	cr_assert_eq(rte_eth_dev_set_link_down(frig.p.port[0]), 0);
	looks(2);
	cr_assert_eq(eng_port_attach(frig.n[0].e, 0, err, sizeof(err)), -EEXIST);
	/* The next server listens at the third attempt. */
	looks(2);
	eng_port_look(frig.n[0].e, 0, &v);
	cr_assert_not(v.removed);
	cr_assert_eq(driver.starts, 1);
	cr_assert_eq(driver.fail, 0);
	frig_post(0, RD_WRITE, 8, 0);
	looks(1);
	cr_assert_eq(driver.starts, 2);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS, "sent again");
	frig_works();
	cr_assert_eq(frig_count(0, "eng", "ENG_PORT_GONE"), 0);
	frig_stop();
	driver = (struct driver){0};
}

Test(engine_port, iwarp_connections_outlive_a_port_that_starts_again)
{
	a_peer_that_comes_back(SAKER_IWARP);
}

Test(engine_port, falcon_connections_outlive_a_port_that_starts_again)
{
	a_peer_that_comes_back(SAKER_FALCON);
}

/* net_memif ends a server that accepts a connection after its client has closed it. */
Test(engine_port, a_slow_server_does_not_lose_the_connection_of_a_port_that_starts)
{
	driver = (struct driver){.own = true, .name = "net_memif", .peer_open = true};
	frig_start(NULL);
	cr_assert_eq(rte_eth_dev_set_link_down(frig.p.port[0]), 0);
	looks(20);
	cr_assert_eq(driver.starts, 1, "at first");
	cr_assert_eq(rte_eth_dev_set_link_up(frig.p.port[0]), 0);
	looks(1);
	cr_assert_eq(rte_eth_dev_set_link_down(frig.p.port[0]), 0);
	looks(3);
	cr_assert_eq(driver.starts, 2, "a link that has been up is not awaited");
	cr_assert_eq(rte_eth_dev_set_link_down(frig.p.port[0]), 0);
	looks(20);
	cr_assert_eq(driver.starts, 2, "and later");
	driver.peer_open = false;
	looks(2);
	cr_assert_eq(driver.starts, 3, "the server refuses");
	cr_assert_eq(rte_eth_dev_set_link_down(frig.p.port[0]), 0);
	driver.peer_open = true;
	looks(40);
	cr_assert_eq(driver.starts, 4, "the server does not answer");
	frig_stop();
	driver = (struct driver){0};
}

Test(engine_port, the_connection_of_a_memif_port_is_found_by_its_socket)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char name[64], args[128];
	socklen_t len;
	int server = socket(AF_UNIX, SOCK_SEQPACKET, 0), fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(name, sizeof(name), "/tmp/saker-unit-%d", getpid());
	snprintf(args, sizeof(args), "role=client,xsocket=a,socket=%s,zero-copy=no", name);
	snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "%s", name); /* an abstract name */
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	cr_assert_eq(bind(server, (struct sockaddr *)&un, len), 0);
	cr_assert_eq(listen(server, 1), 0);
	cr_assert_not(__real_eng_device_peer_open(args));
	cr_assert_eq(connect(fd, (struct sockaddr *)&un, len), 0);
	cr_assert(__real_eng_device_peer_open(args), "not accepted yet");
	cr_assert_not(__real_eng_device_peer_open("role=client"));
	args[strlen(args) - strlen("0,zero-copy=no")] = '\0';
	cr_assert_not(__real_eng_device_peer_open(args), "a part of the name");
	close(fd);
	close(server);
}

Test(engine_port, a_port_of_another_driver_waits_for_its_link)
{
	driver = (struct driver){.own = true};
	frig_start(NULL);
	frig_connect_over(SAKER_IWARP);
	cr_assert_eq(rte_eth_dev_set_link_down(frig.p.port[0]), 0);
	looks(4);
	cr_assert_eq(driver.starts, 1);
	cr_assert_eq(rte_eth_dev_set_link_up(frig.p.port[0]), 0);
	looks(1);
	frig_works();
	frig_stop();
	driver = (struct driver){0};
}

Test(engine_port, an_engine_ends_cleanly_while_its_port_starts_again)
{
	driver = (struct driver){.own = true, .name = "net_memif", .fail = UINT_MAX};
	frig_start(NULL);
	looks(1);
	cr_assert_eq(rte_eth_dev_set_link_down(frig.p.port[0]), 0);
	looks(4);
	frig_stop();
	cr_assert_eq(driver.starts, 1);
	cr_assert_eq(driver.removes, 0);
	driver = (struct driver){0};
}
