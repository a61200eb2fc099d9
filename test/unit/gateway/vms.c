/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests machines as tenants: commands add and remove them, and each has its own addresses, numbers
 * and quotas. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <rte_bus_vdev.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "../../../lib/wire/wire.h"
#include "../../../drivers/gateway/gateway_priv.h"
#include "../../../lib/engine/common/instance.h"
#include "host.h"

TestSuite(vms, .init = pair_eal, .timeout = 100);

Test(vms, a_machine_and_the_host_and_two_machines_are_peers)
{
	struct prog far, one, two;
	struct rig a, b;

	host_start(NULL);
	a = vm_add("one", "ip=10.9.0.2/24 peers=yes");
	b = vm_add("two", "ip=10.9.0.3/24 peers=yes");
	prog_open_far(&host.rig, &far);
	prog_open(&a, &one);
	prog_connect(&one, &far, "10.9.0.1", RIG_PORT);
	prog_write(&one, &far, 3);
	prog_write(&far, &one, 3);
	prog_close(&one);
	prog_event(&far, SAKER_EV_DISCONNECTED);
	prog_open(&a, &one);
	prog_open(&b, &two);
	prog_connect(&one, &two, "10.9.0.3", RIG_PORT);
	prog_write(&one, &two, 3);
	prog_write(&two, &one, 3);
	prog_close(&two);
	prog_event(&one, SAKER_EV_DISCONNECTED);
	prog_close(&one);
	prog_close(&far);
	vm_del(&a, "one");
	vm_del(&b, "two");
	host_end();
}

Test(vms, machines_that_are_not_to_meet_do_not)
{
	const struct saker_conn_param cp = {.ird = 8, .ord = 8, .crc = 2, .markers = 2};
	struct sk_addr to = addr("10.9.0.3");
	struct saker_listener *l;
	struct prog one, two;
	struct rig a, b;

	host_start(NULL);
	a = vm_add("one", "ip=10.9.0.2/24 peers=yes");
	b = vm_add("two", "ip=10.9.0.3/24");
	prog_open(&a, &one);
	prog_open(&b, &two);
	cr_assert_eq(saker_listen(two.s, NULL, RIG_PORT, 4, NULL, &l), 0);
	cr_assert_eq(saker_connect(one.qp, NULL, &to, RIG_PORT, &cp), 0);
	prog_event(&one, SAKER_EV_UNREACHABLE);
	cr_assert_null(strstr(host_show(), "GW_SPOOFED"));
	prog_close(&one);
	prog_close(&two);
	vm_del(&a, "one");
	vm_del(&b, "two");
	host_end();
}

/* Both machines have the same address and port number, on two VLANs. */
Test(vms, tenants_do_not_share_addresses_or_numbers)
{
	struct prog one, two, peer[2];
	struct rig a, b;

	host_start(NULL);
	a = vm_add("one", "ip=10.9.0.2/24 vlan=5");
	b = vm_add("two", "ip=10.9.0.2/24 vlan=6");
	prog_open(&a, &one);
	prog_open(&b, &two);
	prog_open(&a, &peer[0]);
	prog_open(&b, &peer[1]);
	prog_connect(&one, &peer[0], "10.9.0.2", RIG_PORT);
	prog_connect(&two, &peer[1], "10.9.0.2", RIG_PORT);
	prog_write(&one, &peer[0], 2);
	prog_write(&two, &peer[1], 2);
	prog_close(&peer[0]);
	prog_close(&peer[1]);
	prog_close(&one);
	prog_close(&two);
	vm_del(&a, "one");
	vm_del(&b, "two");
	host_end();
}

Test(vms, a_quota_is_the_machines_whole)
{
	struct saker_qp_attr attr;
	struct saker_qp *qp;
	struct prog one, two;
	struct rig a;
	unsigned n = 0;
	int rc;

	host_start(NULL);
	a = vm_add("one", "ip=10.9.0.2/24");
	prog_open(&a, &one);
	prog_open(&a, &two);
	do {
		struct prog *p = n % 2 == 0 ? &one : &two;

		attr = (struct saker_qp_attr){.send_cq = p->cq,
			.recv_cq = p->cq,
			.sq_depth = 4,
			.rq_depth = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1};
		rc = saker_qp_create(p->pd, &attr, &qp);
		n += rc == 0;
	} while (rc == 0);
	cr_assert_eq(n, 8 - 2);
	prog_close(&one);
	prog_close(&two);
	vm_del(&a, "one");
	host_end();
}

Test(vms, a_machine_that_is_removed_takes_its_programs_along)
{
	struct prog far, one;
	struct rig a;

	host_start(NULL);
	a = vm_add("one", "ip=10.9.0.2/24");
	prog_open_far(&host.rig, &far);
	prog_open(&a, &one);
	prog_connect(&one, &far, "10.9.0.1", RIG_PORT);
	vm_del(&a, "one");
	prog_event(&far, SAKER_EV_DISCONNECTED);
	prog_event(&one, SAKER_EV_ENGINE_GONE);
	prog_close(&one);
	/* Its name and addresses are free again. */
	a = vm_add("one", "ip=10.9.0.2/24");
	prog_open(&a, &one);
	prog_close(&one);
	prog_close(&far);
	vm_del(&a, "one");
	host_end();
}

/* A removal may begin after the thread that tends has read its clock. */
Test(vms, a_removed_machine_waits_for_its_programs_whatever_the_clock)
{
	struct prog one;
	struct rig r;

	host_start(NULL);
	r = vm_add("one", "ip=10.9.0.2/24");
	prog_open(&r, &one);
	host_pause();
	cr_assert_eq(gw_vm_del(host.g, "one"), 0);
	gw_tend(host.g, 1);
	cr_assert_eq(host_machine("one")->state, GW_VM_LEAVING, "its program is still attached");
	host_go();
	prog_event(&one, SAKER_EV_ENGINE_GONE);
	prog_close(&one);
	while (host_vms() > 0)
		sched_yield();
	unlink(r.path);
	host_end();
}

/* The time of all machines is short, and the size of one is its operator's choice. */
Test(vms, the_queues_of_a_large_slot_are_cleared_in_pieces)
{
	const uint64_t size = 256u << 20;
	struct shm_bar *d;
	unsigned polls = 0;
	char line[256], *text;
	struct rig r;
	int fd, rc;

	host_start(NULL);
	snprintf(r.path, sizeof(r.path), "/dev/shm/saker-large-%d", (int)getpid());
	snprintf(line, sizeof(line),
		"add large path=%s size=256m slots=1 mbufs=512 qps=8 mrs=8 ip=10.9.0.2/24", r.path);
	text = host_say(line, &rc);
	cr_assert_eq(rc, 0, "%s", text);
	host_pause();
	fd = open(r.path, O_RDWR | O_CLOEXEC);
	d = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq((void *)d, MAP_FAILED);
	close(fd);
	memset((uint8_t *)d + d->slot_at, 1, d->slot_size);
	__atomic_store_n(&d->slots[0].want, 7, __ATOMIC_RELEASE);
	for (; d->slots[0].refused != 7 && d->slots[0].serves != 7; polls++)
		gw_tend(host.g, eng_clock());
	cr_assert_geq(polls, d->slot_size / 4 / (8u << 20), "one poll cleared too much");
	cr_assert_eq(d->slots[0].serves, 7);
	munmap(d, size);
	host_go();
	vm_del(&r, "large");
	host_end();
}

Test(vms, the_wrong_part_of_a_command_is_named)
{
	static const struct {
		const char *line, *word;
	} rows[] = {
		{"add ", "a machine needs a name"},
		{"add a/b ip=1.2.3.4/24", "name"},
		{"add x path=/dev/shm/x", "ip="},
		{"add x ip=10.9.0.9/24", "path="},
		{"add x path=/dev/shm/x ip=10.9.0.9",
			"ip=10.9.0.9 is not an address with its prefix length"},
		{"add x path=/dev/shm/x ip=10.9.0.9/33", "prefix length that is not within 0..32"},
		{"add x size=1", "size"},
		{"add x size=64x", "size"},
		{"add x vlan=4095", "vlan"},
		{"add x mac=01:00:00:00:00:01", "mac"},
		{"add x mac=02:00:00:00:00", "mac"},
		{"add x peers=maybe", "peers"},
		{"add x colour=red", "colour"},
		{"add x path", "KEY=VALUE"},
		{"add x function=16777216", "function"},
		{"add x pcid=2", "pcid=2 is neither yes nor no"},
		{"add x tunnel=10.9.0.8", "prefix length"},
		{"add x tunnel=0.0.0.0/0", "tunnel=0.0.0.0/0 is the unspecified address"},
		{"add x ip=10.9.0.255/24", "broadcast address"},
		{"add x timeout=61s", "timeout=61s is not a time within"},
		{"add x nic-ip=10.9.0.8,", "lacks path="},
		{"add x weight=0", "weight=0 is not a number within 1..100"},
		{"add x weight=101", "weight=101"},
		{"add x max-gbps=0", "max-gbps=0 is not a rate in bits per second within 1k"},
		{"add x max-gbps=10000.1", "max-gbps=10000.1"},
		{"add x max-gbps=-1", "max-gbps=-1"},
		{"add x max-mops=1.2345678", "max-mops=1.2345678 is not a multiple of 1"},
		{"add x max-mops=1.", "max-mops=1."},
		{"add x max-mops=.5", "max-mops=.5"},
		{"add x nic-ip=10.9.0.8/24", "is not an IPv4 or IPv6 address"},
		{"add x path=/dev/shm/x ip=10.9.0.9/24 tunnel=10.9.0.8/24 pcid=no", "pcid=yes"},
		{"add x path=/dev/shm/x ip=10.9.0.9/24 tunnel=10.9.0.9/24", "tunnel="},
		{"add x path=/dev/shm/x ip=10.9.0.9/24 tunnel=fd00::1/64", "same family"},
		{"add x path=/dev/shm/x ip=10.9.0.9/24 tunnel=10.9.0.8/24", "not enabled"},
		{"add y path=/nowhere/x mbufs=512 ip=10.9.0.9/24", "/nowhere/x"},
		{"del x", "x"},
	};
	char *text;
	int rc;

	host_start(NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		text = host_say(rows[i].line, &rc);
		cr_assert_lt(rc, 0, "%s", rows[i].line);
		cr_assert_not_null(strstr(text, rows[i].word), "%s: %s", rows[i].line, text);
	}
	while (host_vms() != 0)
		sched_yield();
	host_end();
}

/* No two machines may have the same address or function, and none may have the host's. */
Test(vms, weight_and_limits_reach_the_machines_engine)
{
	const struct eng_rates *rates;
	struct rig r;

	host_start(NULL);
	r = vm_add("one", "ip=10.9.0.2/24 weight=30 max-gbps=2.5 max-mops=0.000001");
	rates = &host_machine("one")->e->cfg.all_rates;
	cr_assert_eq(rates->weight, 30);
	cr_assert_eq(rates->bits, 2500000000ull);
	cr_assert_eq(rates->messages, 1);
	vm_del(&r, "one");
	r = vm_add("two", "ip=10.9.0.2/24");
	rates = &host_machine("two")->e->cfg.all_rates;
	cr_assert(rates->weight == ENG_WEIGHT && rates->bits == 0 && rates->messages == 0);
	vm_del(&r, "two");
	host_end();
}

/* As "show port info" and "show neighbors" do. */
Test(vms, a_mac_address_is_shown_as_everywhere)
{
	struct rig r;

	host_start(NULL);
	r = vm_add("one", "ip=10.9.0.2/24 mac=02:0a:00:bc:00:0f");
	cr_assert_not_null(strstr(host_show(), "\"mac\":\"02:0A:00:BC:00:0F\""));
	vm_del(&r, "one");
	host_end();
}

Test(vms, an_address_or_a_function_in_use_is_refused)
{
	static const struct {
		const char *keys, *word;
	} rows[] = {
		{"ip=" HOST_ADDR "/24", HOST_ADDR},
		{"ip=10.9.0.4/24,10.9.0.2/24", "10.9.0.2"},
		{"ip=10.9.0.102/24", "10.9.0.102"},
		{"ip=10.9.0.4/24 nic-ip=10.9.0.2", "10.9.0.2"},
		{"ip=10.9.0.4/24 nic-ip=10.9.0.5," HOST_ADDR, HOST_ADDR},
		{"ip=10.9.0.4/24 function=77", "one has function 77"},
		{"ip=10.9.0.4/24 nic=%s", "in use by machine one"},
		{"ip=10.9.0.4/24 doorbell=%s", "in use by machine one"},
	};
	char line[256], keys[128], *text;
	struct rig a, b;
	int rc;

	host_start(NULL);
	a = vm_add("one", "ip=10.9.0.2/24 function=77");
	b = vm_add("other", "ip=10.9.0.102/24");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(keys, sizeof(keys), rows[i].keys, a.path);
		snprintf(line, sizeof(line), "add two path=/dev/shm/saker-two %s", keys);
		text = host_say(line, &rc);
		cr_assert_eq(rc, -EEXIST, "%s", rows[i].keys);
		cr_assert_not_null(strstr(text, rows[i].word), "%s: %s", rows[i].keys, text);
	}
	snprintf(line, sizeof(line), "add two path=%s ip=10.9.0.4/24", a.path);
	text = host_say(line, &rc);
	cr_assert_eq(rc, -EEXIST, "%s", text);
	cr_assert_eq(host_vms(), 2);
	vm_del(&b, "other");
	/* The same address in another VLAN is another one, and addresses of removed machines are
	 * free. */
	b = vm_add("two", "ip=10.9.0.2/24 vlan=9");
	vm_del(&b, "two");
	b = vm_add("two", "ip=10.9.0.102/24 nic-ip=10.9.0.103");
	vm_del(&a, "one");
	vm_del(&b, "two");
	host_end();
}

/* ---- Cards ---- */

#define LONG_SEGMENTS 40 /* mbufs of 2 KiB: longer than one mbuf of the gateway */

/* Creates the guest's end of a card at the socket `path`, and returns its port. */
static uint16_t
guest_card(const char *path, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = {.txmode = {.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS}};
	struct rte_eth_link link = {0};
	char args[128];
	uint16_t port;

	snprintf(args, sizeof(args), "path=%s,queues=1", path);
	cr_assert_eq(rte_vdev_init("net_virtio_user0", args), 0);
	cr_assert_eq(rte_eth_dev_get_port_by_name("net_virtio_user0", &port), 0);
	cr_assert_eq(rte_eth_dev_configure(port, 1, 1, &conf), 0);
	cr_assert_eq(rte_eth_rx_queue_setup(port, 0, 64, SOCKET_ID_ANY, NULL, pool), 0);
	cr_assert_eq(rte_eth_tx_queue_setup(port, 0, 256, SOCKET_ID_ANY, NULL), 0);
	cr_assert_eq(rte_eth_dev_start(port), 0);
	while (rte_eth_link_get_nowait(port, &link) == 0 && !link.link_status)
		sched_yield();
	return port;
}

/* Creates a socket file at which nobody listens when its descriptor is closed. */
static int
stale_socket(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	return bind(fd, (struct sockaddr *)&un, sizeof(un)) == 0 ? fd : -1;
}

/* Sends a broadcast of a card in `segments` mbufs. */
static void
card_sends(uint16_t port, struct rte_mempool *pool, const uint8_t *mac, unsigned segments)
{
	struct rte_mbuf *m = NULL, *one;
	uint8_t *frame;

	for (unsigned i = 0; i < segments; i++) {
		one = rte_pktmbuf_alloc(pool);
		cr_assert_not_null(one);
		frame = (uint8_t *)rte_pktmbuf_append(one, segments > 1 ? 2000 : 60);
		memset(frame, 0, one->data_len);
		if (m == NULL) {
			memset(frame, 0xff, 6);
			memcpy(frame + 6, mac, 6);
			m = one;
		} else {
			cr_assert_eq(rte_pktmbuf_chain(m, one), 0);
		}
	}
	while (rte_eth_tx_burst(port, 0, &m, 1) == 0)
		sched_yield();
}

/* A guest may describe a frame as long as its memory, and Saker would copy it into chained mbufs,
 * up to all of the gateway's. */
Test(vms, a_frame_of_a_card_fits_into_an_mbuf)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create(
		"guest", 511, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	struct gw_port_view v;
	char path[64], keys[128];
	uint16_t port;
	struct rig r;
	int fd;

	cr_assert_not_null(pool);
	host_start(NULL);
	snprintf(path, sizeof(path), "/tmp/saker-card-%d.sock", (int)getpid());
	snprintf(keys, sizeof(keys), "ip=10.9.0.2/24 nic=%s", path);
	/* The socket that a killed saker left. */
	fd = stale_socket(path);
	cr_assert_geq(fd, 0);
	close(fd);
	r = vm_add("one", keys);
	port = guest_card(path, pool);
	card_sends(port, pool, host_machine("one")->cfg.nic_mac, LONG_SEGMENTS);
	card_sends(port, pool, host_machine("one")->cfg.nic_mac, 1);
	do {
		sched_yield();
		gw_switch_port_view(host.g->sw, host_machine("one")->nic.port, &v);
	} while (v.frames_in == 0);
	cr_assert_eq(v.frames_in, 1);
	cr_assert_eq(v.bytes_in, 60);
	cr_assert_eq(rte_eth_dev_stop(port), 0);
	cr_assert_eq(rte_vdev_uninit("net_virtio_user0"), 0);
	vm_del(&r, "one");
	cr_assert(rte_mempool_full(pool));
	rte_mempool_free(pool);
	host_end();
}
