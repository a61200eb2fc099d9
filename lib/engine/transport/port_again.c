/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports that have to start again. net_memif as client connects to its server when the port starts,
 * and never again. When the server has ended, the port has no link, and only a stop and a start
 * connect it to the next server. Both replace what the loops call, so that no stage may use the
 * port meanwhile: they take note of p->gone as for a removed device, but connections stay, and
 * repair what they lose.
 *
 * A port that has started has a connection to the server, but no link until the two have exchanged
 * some messages. A server with little time on its core may need seconds for that. It must not find
 * the connection closed when it accepts it: the driver of DPDK 22.11 then closes a descriptor that
 * EAL still watches, and EAL ends the server's process. A server that is not ready closes the
 * connection itself.
 */
#include <string.h>

#include <rte_ethdev.h>

#include "../../base/log.h"
#include "transport_priv.h"

/* Calls of eng_ports_look(), one per second, that a connection may take until there is a link. */
#define CONNECT_LOOKS 30

void
eng_port_again_watch(struct eng *e, unsigned i)
{
	struct eng_port *p = &e->ports[i];
	struct rte_eth_dev_info info;

	p->connects = rte_eth_dev_info_get(p->id, &info) == 0 && info.driver_name != NULL &&
		      strcmp(info.driver_name, "net_memif") == 0 &&
		      strstr(p->args, "role=server") == NULL &&
		      strstr(p->args, "role=master") == NULL;
	p->connecting = CONNECT_LOOKS;
}

void
eng_port_again_begin(struct eng *e, unsigned i)
{
	struct eng_port *p = &e->ports[i];

	if (!p->connects)
		return;
	if (p->connecting > 0 && eng_port_peer_open(p->args)) {
		p->connecting--;
		return;
	}
	p->looks = 0;
	__atomic_store_n(&p->again, true, __ATOMIC_RELAXED);
	__atomic_store_n(&p->gone, true, __ATOMIC_RELEASE);
	eng_wake(e, UINT32_MAX);
}

void
eng_port_again_look(struct eng *e, unsigned i)
{
	struct eng_port *p = &e->ports[i];
	uint64_t all = UINT64_MAX >> (64 - e->cfg.ntransports);

	if (__atomic_load_n(&p->left, __ATOMIC_ACQUIRE) != all)
		return;
	if (p->looks++ == 0)
		(void)rte_eth_dev_stop(p->id);
	if (rte_eth_dev_start(p->id) != 0)
		return;
	p->connecting = CONNECT_LOOKS;
	eng_port_back(p);
	eng_wake(e, UINT32_MAX);
}
