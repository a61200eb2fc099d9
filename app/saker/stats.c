/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints port statistics and information in testpmd's format. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "saker.h"

#define WIDTH 76

void
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

/* Calls `each` for the ports that `arg` selects: all, or a number. */
static void
each_port(struct app *a, const char *arg, void (*each)(struct app *a, unsigned index))
{
	unsigned long n;
	char *end;

	if (strcmp(arg, "all") == 0) {
		for (unsigned i = 0; i < a->s.eng.nports; i++)
			each(a, i);
		return;
	}
	n = strtoul(arg, &end, 10);
	for (unsigned i = 0; isdigit((unsigned char)arg[0]) && *end == '\0' && i < a->s.eng.nports;
		i++)
		if (a->s.eng.ports[i].port_id == n) {
			each(a, i);
			return;
		}
	printf("There is no port '%s'.\n", arg);
}

static void
one_stats(struct app *a, unsigned index)
{
	uint16_t id = a->s.eng.ports[index].port_id;
	struct rte_eth_stats st;
	char title[48];

	snprintf(title, sizeof(title), "NIC statistics for port %u", id);
	printf("\n");
	stats_rule('#', title);
	if (rte_eth_stats_get(id, &st) != 0)
		memset(&st, 0, sizeof(st));
	printf("  RX-packets: %-12" PRIu64 " RX-missed: %-12" PRIu64 " RX-bytes: %" PRIu64 "\n",
		st.ipackets, st.imissed, st.ibytes);
	printf("  RX-errors:  %-12" PRIu64 " RX-nombuf: %" PRIu64 "\n", st.ierrors, st.rx_nombuf);
	printf("  TX-packets: %-12" PRIu64 " TX-errors: %-12" PRIu64 " TX-bytes: %" PRIu64 "\n",
		st.opackets, st.oerrors, st.obytes);
	stats_rule('#', "");
}

void
show_port_stats(struct app *a, const char *arg)
{
	each_port(a, arg, one_stats);
	fflush(stdout);
}

static void
one_info(struct app *a, unsigned index)
{
	const struct eng_port_config *p = &a->s.eng.ports[index];
	char name[RTE_ETH_NAME_MAX_LEN] = "", mac[RTE_ETHER_ADDR_FMT_SIZE] = "", title[48];
	char addr[SK_ADDR_STRLEN];
	struct rte_eth_dev_info info;
	struct rte_ether_addr ea;
	struct rte_eth_link link = {0};

	snprintf(title, sizeof(title), "Infos for port %u", p->port_id);
	printf("\n");
	stats_rule('*', title);
	rte_eth_dev_get_name_by_port(p->port_id, name);
	if (rte_eth_macaddr_get(p->port_id, &ea) == 0)
		rte_ether_format_addr(mac, sizeof(mac), &ea);
	printf("  Device name: %s\n  MAC address: %s\n", name, mac);
	if (rte_eth_dev_info_get(p->port_id, &info) == 0)
		printf("  Driver name: %s\n", info.driver_name);
	if (rte_eth_link_get_nowait(p->port_id, &link) == 0)
		printf("  Link status: %s, %u Mbps\n", link.link_status ? "up" : "down",
			link.link_speed);
	printf("  MTU: %" PRIu32 ", RX descriptors: %u, TX descriptors: %u\n", p->mtu, p->rxd,
		p->txd);
	for (unsigned i = 0; i < a->s.eng.nifs; i++)
		if (a->s.eng.ifs[i].port == index)
			printf("  Address: %s/%u\n", sk_addr_str(&a->s.eng.ifs[i].addr, addr),
				a->s.eng.ifs[i].prefix);
	stats_rule('*', "");
}

void
show_port_info(struct app *a, const char *arg)
{
	each_port(a, arg, one_info);
}

static void
one_clear(struct app *a, unsigned index)
{
	uint16_t id = a->s.eng.ports[index].port_id;

	printf("Statistics of port %u %s.\n", id,
		rte_eth_stats_reset(id) == 0 ? "cleared" : "cannot be cleared");
}

void
clear_port_stats(struct app *a, const char *arg)
{
	each_port(a, arg, one_clear);
}

static void
final_port(struct app *a, unsigned index)
{
	uint16_t id = a->s.eng.ports[index].port_id;
	struct rte_eth_stats st;
	char title[48];

	if (rte_eth_stats_get(id, &st) != 0)
		return;
	snprintf(title, sizeof(title), "Forward statistics for port %u", id);
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
	struct eng_totals t;

	printf("\n");
	each_port(a, "all", final_port);
	eng_totals(a->e, &t);
	stats_rule('+', "Accumulated RDMA statistics");
	printf("  Messages-in: %-13" PRIu64 " Bytes-in: %" PRIu64 "\n", t.msgs_in, t.bytes_in);
	printf("  Messages-out: %-12" PRIu64 " Bytes-out: %" PRIu64 "\n", t.msgs_out, t.bytes_out);
	stats_rule('+', "");
	printf("\n");
	stats_rule('+', "Counters");
	show_counters(a, "nonzero");
	stats_rule('+', "");
	fflush(stdout);
}
