/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports whose device is out of use (device.h). Every transport stage sets its bit in p->left, and
 * uses the device no more. If the device was removed, the stage ends its connections on the port
 * first. If the device starts again by itself, the connections stay, and repair what they lose.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>

#include "../../base/log.h"
#include "transport_priv.h"

static bool
is_on_port(const void *port, const struct tcp_tuple *tuple)
{
	return tuple->port == *(const uint16_t *)port;
}

void
eng_port_leave(struct eng_transport *t, uint16_t port)
{
	struct eng_port *p = &t->e->ports[port];
	uint64_t bit = 1ull << t->index;

	if (__atomic_load_n(&p->left, __ATOMIC_ACQUIRE) & bit)
		return;
	if (!eng_device_is_gone(&p->dev))
		return; /* it has come back since the caller looked; see eng_port_back() */
	for (uint32_t i = 0; i < t->fresh && !eng_device_is_again(&p->dev); i++) {
		struct eng_conn *c = &t->conns[i];

		if (c->state == ECONN_FREE || !eng_conn_alive(c) || c->path.port != port)
			continue;
		if (c->state == ECONN_CARRIER) {
			tcp_abort(c->tcp, t->now);
			continue;
		}
		sk_count(t->counters, ENG_PORT_GONE);
		eng_startup_fail(t, c, -ENETDOWN);
	}
	if (eng_device_is_again(&p->dev))
		net_port_forget(t->net, port);
	else
		tcp_left_reset(t->tcp, t->now, is_on_port, &port);
	/* Frames in the queue of this stage are dropped at the end of the turn (send_burst()). */
	__atomic_fetch_or(&p->left, bit, __ATOMIC_RELEASE);
}

void
eng_port_release(struct eng *e, unsigned i)
{
	struct eng_port *p = &e->ports[i];

	eng_intr_close(e, i);
	p->started = false;
	eng_device_release(&p->dev);
}

/* ---- The device comes back ---- */

/* A stage that finds its bit in p->left cleared sees the other two stores as well. */
void
eng_port_back(struct eng_port *p)
{
	eng_device_back(&p->dev);
	__atomic_store_n(&p->left, 0, __ATOMIC_RELEASE);
}

int
eng_port_attach(struct eng *e, unsigned i, char *err, size_t errlen)
{
	struct eng_port *p = &e->ports[i];
	uint16_t tx_queues = p->tx_queues;
	struct rte_ether_addr mac;
	int rc = eng_device_probe(&p->dev, p->started, err, errlen);

	if (rc != 0)
		return rc;
	rc = eng_port_open(e, i, err, errlen);
	if (rc == 0 && p->tx_queues != tx_queues) {
		snprintf(err, errlen, "port %u: the device has %u send queues now, and not %u",
			p->dev.id, p->tx_queues, tx_queues);
		rc = -EINVAL;
	}
	if (rc != 0) {
		eng_port_release(e, i);
		return rc;
	}
	memcpy(&mac, p->mac, sizeof(mac));
	if (rte_eth_dev_default_mac_addr_set(p->dev.id, &mac) != 0)
		(void)rte_eth_promiscuous_enable(p->dev.id);
	eng_port_back(p);
	sk_log(SK_LOG_INFO, "port %u: its device %s is back", p->dev.id, p->dev.name);
	eng_wake(e, UINT32_MAX);
	return 0;
}
