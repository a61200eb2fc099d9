/* SPDX-License-Identifier: BSD-3-Clause */
/* The device of the uplink is removed and comes back, or starts again. It is a net_ring whose
 * frames come back to it. The tests run the turns themselves, in virtual time. */
#include <criterion/criterion.h>

#include <rte_bus_vdev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "../../../drivers/gateway/gateway_priv.h"
#include "host.h"

#define DEVICE "net_ring_wire"

static rte_eth_dev_cb_fn report;
static void *report_arg;
static uint64_t now;

int __real_rte_eth_dev_callback_register(
	uint16_t port, enum rte_eth_event_type type, rte_eth_dev_cb_fn fn, void *arg);
int __wrap_rte_eth_dev_callback_register(
	uint16_t port, enum rte_eth_event_type type, rte_eth_dev_cb_fn fn, void *arg);
int
__wrap_rte_eth_dev_callback_register(
	uint16_t port, enum rte_eth_event_type type, rte_eth_dev_cb_fn fn, void *arg)
{
	char name[RTE_ETH_NAME_MAX_LEN];

	if (type == RTE_ETH_EVENT_INTR_RMV && rte_eth_dev_get_name_by_port(port, name) == 0 &&
		strcmp(name, DEVICE) == 0) {
		report = fn;
		report_arg = arg;
	}
	return __real_rte_eth_dev_callback_register(port, type, fn, arg);
}

static void
looks(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		gw_switch_poll(host.g->sw, now);
		gw_tend(host.g, now += 1000000000);
	}
}

static struct gw_uplink *
start(void)
{
	uint16_t id;

	pair_eal();
	cr_assert_eq(rte_vdev_init(DEVICE, NULL), 0);
	cr_assert_eq(rte_eth_dev_get_port_by_name(DEVICE, &id), 0);
	host_start_at(id, NULL);
	host_pause();
	now = eng_clock();
	looks(3); /* the host's engine may have sent frames when it started */
	return &host.g->uplink;
}

static void
end(void)
{
	host_go();
	host_end();
	rte_vdev_uninit(DEVICE);
}

static struct gw_port_view
view(int port)
{
	struct gw_port_view v;

	gw_switch_port_view(host.g->sw, port, &v);
	return v;
}

/* Lets the host's engine send a broadcast frame. Returns how many frames came from the wire. */
static uint64_t
broadcast(void)
{
	uint64_t before = view(host.g->uplink.port).frames_in;
	struct rte_mbuf *m = rte_pktmbuf_alloc(host.g->pool);

	cr_assert_not_null(m);
	memset(rte_pktmbuf_append(m, 60), 0xff, 60);
	cr_assert_eq(rte_ring_sp_enqueue(host.g->host.in, m), 0);
	for (unsigned i = 0; i < 3; i++)
		gw_switch_poll(host.g->sw, now);
	return view(host.g->uplink.port).frames_in - before;
}

static int
attach(const struct gw_uplink *u)
{
	uint16_t port = u->dev.id;
	char err[256];
	int rc = gw_uplink_attach(host.g, &port, err, sizeof(err));

	cr_assert(rc < 0 || port == u->dev.id);
	return rc;
}

Test(gateway_uplink, the_switch_goes_on_without_a_removed_device_until_it_is_back)
{
	struct gw_uplink *u = start();
	uint16_t other = 99;
	char err[256];

	cr_assert_eq(broadcast(), 1);
	cr_assert_eq(attach(u), -EEXIST);
	cr_assert_eq(gw_uplink_attach(host.g, &other, err, sizeof(err)), -ENOENT);
	report(u->dev.id, RTE_ETH_EVENT_INTR_RMV, report_arg, NULL);
	cr_assert_eq(broadcast(), 0);
	cr_assert_eq(host_counted("GW_NO_WIRE"), 1);
	cr_assert_not_null(strstr(host_show(), "\"wire_removed\":true"));
	looks(1);
	cr_assert_eq(attach(u), -EBUSY);
	looks(4);
	cr_assert_not(u->started, "it is released");
	cr_assert_not(rte_eth_dev_is_valid_port(u->dev.id));
	cr_assert_eq(broadcast(), 0);
	cr_assert_eq(host_counted("GW_NO_WIRE"), 2);
	cr_assert_eq(attach(u), 0);
	cr_assert_eq(broadcast(), 1);
	cr_assert_not_null(strstr(host_show(), "\"wire_removed\":false"));
	end();
}

Test(gateway_uplink, a_gateway_ends_cleanly_with_its_device_removed)
{
	struct gw_uplink *u = start();

	report(u->dev.id, RTE_ETH_EVENT_INTR_RMV, report_arg, NULL);
	looks(1);
	end();
}

/* As net_memif does when its server has ended. */
Test(gateway_uplink, a_device_without_a_link_starts_again)
{
	struct gw_uplink *u = start();

	looks(1);
	u->dev.connects = true;
	cr_assert_eq(rte_eth_dev_set_link_down(u->dev.id), 0);
	looks(2);
	cr_assert(eng_device_is_gone(&u->dev));
	cr_assert_eq(broadcast(), 0);
	cr_assert_eq(host_counted("GW_NO_WIRE"), 1);
	looks(3);
	cr_assert_not(eng_device_is_gone(&u->dev));
	cr_assert_eq(broadcast(), 1);
	end();
}
