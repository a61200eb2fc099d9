/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands for ports, and the statistics at the end of the run. */
#include <inttypes.h>
#include <string.h>

#include <rte_ethdev.h>

#include "saker.h"

#define WIDTH 76

/* Calls `each` for the ports that `arg` selects: all, or one, as ports_index() finds it. */
static int
each_port(struct app *a, const char *arg, struct cmd_out *out,
	void (*each)(const struct app *a, unsigned index, struct cmd_out *out))
{
	bool all = strcmp(arg, "all") == 0;
	int one = all ? -1 : ports_index(&a->s.eng, arg);

	if (!all && one < 0)
		return cmd_refuse(out, "there is no port '%s'", arg);
	cmd_list(out, "ports");
	for (unsigned i = 0; i < a->s.eng.nports; i++) {
		if (!all && i != (unsigned)one)
			continue;
		cmd_record(out, NULL);
		cmd_number(out, "port", ports_label(i));
		each(a, i, out);
		cmd_end(out);
	}
	cmd_end(out);
	return 0;
}

static void
one_stats(const struct app *a, unsigned index, struct cmd_out *out)
{
	struct rte_eth_stats st;

	if (rte_eth_stats_get(a->s.eng.ports[index].port_id, &st) != 0)
		memset(&st, 0, sizeof(st));
	cmd_number(out, "rx_packets", st.ipackets);
	cmd_number(out, "rx_bytes", st.ibytes);
	cmd_number(out, "rx_missed", st.imissed);
	cmd_number(out, "rx_errors", st.ierrors);
	cmd_number(out, "rx_nombuf", st.rx_nombuf);
	cmd_number(out, "tx_packets", st.opackets);
	cmd_number(out, "tx_bytes", st.obytes);
	cmd_number(out, "tx_errors", st.oerrors);
}

int
show_port_stats(void *app, const char *arg, struct cmd_out *out)
{
	return each_port(app, arg, out, one_stats);
}

void
stats_period(struct app *a)
{
	struct cmd_out *out = cmd_out_new();

	if (out == NULL)
		return;
	show_port_stats(a, "all", out);
	prompt_print(out);
	cmd_out_free(out);
}

static void
info_device(uint16_t id, struct cmd_out *out)
{
	char name[RTE_ETH_NAME_MAX_LEN] = "", mac[RTE_ETHER_ADDR_FMT_SIZE] = "";
	struct rte_eth_dev_info info;
	struct rte_ether_addr ea;
	struct rte_eth_link link = {0};

	rte_eth_dev_get_name_by_port(id, name);
	if (rte_eth_macaddr_get(id, &ea) == 0)
		rte_ether_format_addr(mac, sizeof(mac), &ea);
	cmd_text(out, "device", "%s", name);
	if (rte_eth_dev_info_get(id, &info) == 0)
		cmd_text(out, "driver", "%s", info.driver_name);
	cmd_text(out, "mac", "%s", mac);
	if (rte_eth_link_get_nowait(id, &link) == 0) {
		cmd_flag(out, "link_up", link.link_status);
		cmd_number(out, "speed_mbps", link.link_speed);
	}
}

static void
info_rss(struct cmd_out *out, uint64_t rss)
{
	static const struct {
		uint64_t bits;
		const char *name;
	} all[] = {{RTE_ETH_RSS_NONFRAG_IPV4_TCP, "ipv4-tcp"},
		{RTE_ETH_RSS_NONFRAG_IPV6_TCP, "ipv6-tcp"},
		{RTE_ETH_RSS_NONFRAG_IPV4_UDP, "ipv4-udp"},
		{RTE_ETH_RSS_NONFRAG_IPV6_UDP, "ipv6-udp"}};
	char text[64] = "";

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (rss & all[i].bits)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
				text[0] != '\0' ? " " : "", all[i].name);
	cmd_text(out, "rss", "%s", text[0] != '\0' ? text : "none");
}

static void
info_queues(const struct app *a, unsigned index, struct cmd_out *out)
{
	struct eng_port_view v;

	eng_port_look(a->e, index, &v);
	cmd_number(out, "rx_queues", v.rx_queues);
	cmd_number(out, "tx_queues", v.tx_queues);
	cmd_flag(out, "removed", v.removed);
	cmd_flag(out, "rx_interrupts", v.interrupts);
	info_rss(out, v.rss);
	cmd_flag(out, "tx_ip_checksum", v.ip_cksum);
	cmd_flag(out, "tx_tcp_checksum", v.tcp_cksum);
	cmd_flag(out, "tx_udp_checksum", v.udp_cksum);
	cmd_flag(out, "tx_segments", v.multi_seg);
	cmd_number(out, "tso_bytes", v.tso);
}

static int
attach_own(struct app *a, unsigned index, char why[WHY_LEN])
{
	struct eng_port_view v;
	int rc = eng_port_attach(a->e, index, why, WHY_LEN);

	if (rc < 0)
		return rc;
	eng_port_look(a->e, index, &v);
	a->s.eng.ports[index].port_id = v.id;
	return 0;
}

/* Takes the removed device of a port into use again. */
int
port_attach(void *app, const char *arg, struct cmd_out *out)
{
	struct app *a = app;
	int port = ports_index(&a->s.eng, arg), rc;
	char why[WHY_LEN];

	if (port < 0)
		return cmd_refuse(out, "there is no port '%s'", arg);
	rc = gateway_attach((unsigned)port, why);
	if (rc == -ENOENT)
		rc = attach_own(a, (unsigned)port, why);
	if (rc < 0)
		return cmd_refuse(out, "%s", why);
	return cmd_say(out, "Port %u is in use again.", ports_label((unsigned)port));
}

static void
one_info(const struct app *a, unsigned index, struct cmd_out *out)
{
	const struct eng_port_config *p = &a->s.eng.ports[index];
	char addr[SK_ADDR_STRLEN];

	info_device(p->port_id, out);
	cmd_number(out, "mtu", p->mtu);
	cmd_number(out, "rx_descriptors", p->rxd);
	cmd_number(out, "tx_descriptors", p->txd);
	info_queues(a, index, out);
	cmd_list(out, "addresses");
	for (unsigned i = 0; i < a->s.eng.nifs; i++) {
		if (a->s.eng.ifs[i].port != index)
			continue;
		cmd_record(out, NULL);
		cmd_text(out, "address", "%s/%u", sk_addr_str(&a->s.eng.ifs[i].addr, addr),
			a->s.eng.ifs[i].prefix);
		if (a->s.eng.ifs[i].vlan != ETH_NO_VLAN)
			cmd_number(out, "vlan", a->s.eng.ifs[i].vlan);
		cmd_end(out);
	}
	cmd_end(out);
}

int
show_port_info(void *app, const char *arg, struct cmd_out *out)
{
	return each_port(app, arg, out, one_info);
}

static void
one_clear(const struct app *a, unsigned index, struct cmd_out *out)
{
	cmd_flag(out, "cleared", rte_eth_stats_reset(a->s.eng.ports[index].port_id) == 0);
}

int
clear_port_stats(void *app, const char *arg, struct cmd_out *out)
{
	return each_port(app, arg, out, one_clear);
}

/* ---- The end of the run, in testpmd's format ---- */

static void
stats_rule(char c, const char *title)
{
	char line[WIDTH + 1];
	size_t len = strlen(title), left;

	memset(line, c, WIDTH);
	line[WIDTH] = '\0';
	if (len > 0 && len + 4 <= WIDTH) {
		left = (WIDTH - len) / 2;
		memcpy(line + left, title, len);
		line[left - 1] = line[left + len] = ' ';
	}
	printf("  %s\n", line);
}

static void
final_port(uint16_t id, unsigned label)
{
	struct rte_eth_stats st;
	char title[48];

	if (rte_eth_stats_get(id, &st) != 0)
		return;
	snprintf(title, sizeof(title), "Forward statistics for port %u", label);
	stats_rule('-', title);
	printf("  RX-packets: %-14" PRIu64 " RX-dropped: %-14" PRIu64 " RX-total: %" PRIu64 "\n",
		st.ipackets, st.imissed + st.rx_nombuf, st.ipackets + st.imissed + st.rx_nombuf);
	printf("  TX-packets: %-14" PRIu64 " TX-dropped: %-14" PRIu64 " TX-total: %" PRIu64 "\n",
		st.opackets, st.oerrors, st.opackets + st.oerrors);
	stats_rule('-', "");
	printf("\n");
}

void
stats_final(struct app *a)
{
	struct cmd_out *out = cmd_out_new();
	struct eng_totals t;

	printf("\n");
	for (unsigned i = 0; i < a->s.eng.nports; i++)
		final_port(a->s.eng.ports[i].port_id, ports_label(i));
	eng_totals(a->e, &t);
	stats_rule('+', "Accumulated RDMA statistics");
	printf("  Messages-in: %-13" PRIu64 " Bytes-in: %" PRIu64 "\n", t.msgs_in, t.bytes_in);
	printf("  Messages-out: %-12" PRIu64 " Bytes-out: %" PRIu64 "\n", t.msgs_out, t.bytes_out);
	stats_rule('+', "");
	printf("\n");
	stats_rule('+', "Counters");
	if (out != NULL) {
		show_counters(a, "nonzero", out);
		prompt_print(out);
	}
	cmd_out_free(out);
	stats_rule('+', "");
	fflush(stdout);
}
