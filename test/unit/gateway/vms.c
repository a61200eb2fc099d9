/* SPDX-License-Identifier: BSD-3-Clause */
/* Machines as tenants: added and removed by command, each on the wire as itself, each with its own
 * numbers and quotas. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <rte_ethdev.h>

#include "../../../drivers/gateway/gateway.h"
#include "../../../lib/engine/mbuf_priv.h"
#include "../../../lib/wire/wire.h"
#include "rig.h"

TestSuite(vms, .init = pair_eal, .timeout = 100);

#define HOST_HOME (8u << 20)

/* The host's engine and its gateway; `r` lends a thread, which turns what it finds in its pair. */
static struct {
	struct eng_config cfg;
	struct gw *g;
	struct eng *host;
	struct rig host_rig;
	void *home;
	int client;
	pthread_t poll, tend;
	bool stop;
} t;

static bool
hook(void *arg, uint64_t now)
{
	return gw_poll(arg, now);
}

static void *
poll_main(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&t.stop, __ATOMIC_ACQUIRE)) {
		eng_poll(t.host, 0, eng_clock());
		sched_yield();
	}
	return NULL;
}

static void *
tend_main(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&t.stop, __ATOMIC_ACQUIRE)) {
		gw_tend(t.g, eng_clock());
		usleep(500);
	}
	return NULL;
}

static bool
running(void *arg)
{
	(void)arg;
	return !__atomic_load_n(&t.stop, __ATOMIC_ACQUIRE);
}

static void
setup(void)
{
	struct eng_config *c = &t.cfg;
	struct gw_config gc = {
		.base = c, .uplink = -1, .mtu = 1500, .mbufs = 2048, .running = running};
	char err[256];

	eng_config_default(c);
	c->limits.qps = c->limits.conns = c->limits.cqs = c->limits.client_qps =
		c->limits.client_cqs = 32;
	c->limits.mrs = c->limits.client_mrs = 64;
	c->limits.rx_mbufs = c->limits.tx_mbufs = 1024;
	c->tcp.max_half_open = c->tcp.max_time_wait = 64;
	t.g = gw_create(&gc, err, sizeof(err));
	cr_assert_not_null(t.g, "%s", err);
	c->nports = c->nifs = 1;
	c->ports[0] = (struct eng_port_config){.mtu = 1500};
	c->ports[0].port_id = gw_host_port(t.g, c->ports[0].mac);
	c->ifs[0] = (struct eng_if_config){
		.vlan = ETH_NO_VLAN, .addr = pair_addr("10.9.0.1"), .prefix = 24};
	c->hook = hook;
	c->hook_arg = t.g;
	t.host = eng_create(c, err, sizeof(err));
	cr_assert_not_null(t.host, "%s", err);
	t.home = aligned_alloc(4096, HOST_HOME);
	memset(t.home, 0, HOST_HOME);
	t.client = eng_attach_flat(t.host, "host", t.home, HOST_HOME, 1u << 20);
	cr_assert_geq(t.client, 0);
	t.host_rig.home = t.home;
	t.stop = false;
	cr_assert_eq(pthread_create(&t.poll, NULL, poll_main, NULL), 0);
	cr_assert_eq(pthread_create(&t.tend, NULL, tend_main, NULL), 0);
}

static void
teardown(void)
{
	__atomic_store_n(&t.stop, true, __ATOMIC_RELEASE);
	pthread_join(t.poll, NULL);
	pthread_join(t.tend, NULL);
	eng_destroy(t.host);
	gw_destroy(t.g);
	cr_assert_eq(eng_pools_waiting(), 0, "mbufs are still out");
	free(t.home);
}

/* What the command says; *rc its result. */
static char *
say(const char *line, int *rc)
{
	static char text[8192];
	FILE *to = fmemopen(text, sizeof(text), "w");

	memset(text, 0, sizeof(text));
	*rc = gw_command(t.g, line, to);
	fclose(to);
	return text;
}

static struct rig
vm_rig(const char *name)
{
	struct rig r = {0};

	snprintf(r.path, sizeof(r.path), "/dev/shm/saker-vm-%s-%d", name, getpid());
	snprintf(r.where, sizeof(r.where), "ivshmem:%s", r.path);
	return r;
}

static struct rig
vm_add(const char *name, const char *keys)
{
	struct rig r = vm_rig(name);
	char line[512], *text;
	int rc;

	unlink(r.path);
	snprintf(line, sizeof(line),
		"add %s path=%s size=16m slots=2 timeout=1000 mbufs=512 qps=8 mrs=8 %s", name,
		r.path, keys);
	text = say(line, &rc);
	cr_assert_eq(rc, 0, "%s", text);
	return r;
}

static void
vm_del(struct rig *r, const char *name)
{
	unsigned before = gw_vms(t.g);

	cr_assert_eq(gw_vm_del(t.g, name), 0);
	while (gw_vms(t.g) == before)
		sched_yield();
	unlink(r->path);
}

Test(vms, a_machine_and_the_host_and_two_machines_are_peers)
{
	struct prog host, one, two;
	struct rig a, b;

	setup();
	a = vm_add("one", "ip=10.9.0.2/24 peers=yes");
	b = vm_add("two", "ip=10.9.0.3/24 peers=yes");
	prog_open_far(&t.host_rig, &host);
	prog_open(&a, &one);
	prog_connect(&one, &host, "10.9.0.1", RIG_PORT);
	prog_write(&one, &host, 3);
	prog_write(&host, &one, 3);
	prog_close(&one);
	prog_event(&host, SAKER_EV_DISCONNECTED);
	prog_open(&a, &one);
	prog_open(&b, &two);
	prog_connect(&one, &two, "10.9.0.3", RIG_PORT);
	prog_write(&one, &two, 3);
	prog_write(&two, &one, 3);
	prog_close(&two);
	prog_event(&one, SAKER_EV_DISCONNECTED);
	prog_close(&one);
	prog_close(&host);
	vm_del(&a, "one");
	vm_del(&b, "two");
	teardown();
}

Test(vms, machines_that_are_not_to_meet_do_not)
{
	const struct saker_conn_param cp = {.ird = 8, .ord = 8, .crc = 2, .markers = 2};
	struct sk_addr to = pair_addr("10.9.0.3");
	struct saker_listener *l;
	struct prog one, two;
	struct rig a, b;
	int rc;

	setup();
	a = vm_add("one", "ip=10.9.0.2/24 peers=yes");
	b = vm_add("two", "ip=10.9.0.3/24");
	prog_open(&a, &one);
	prog_open(&b, &two);
	cr_assert_eq(saker_listen(two.s, NULL, RIG_PORT, 4, NULL, &l), 0);
	cr_assert_eq(saker_connect(one.qp, NULL, &to, RIG_PORT, &cp), 0);
	prog_event(&one, SAKER_EV_UNREACHABLE);
	cr_assert_null(strstr(say("show", &rc), "GW_SPOOFED"));
	prog_close(&one);
	prog_close(&two);
	vm_del(&a, "one");
	vm_del(&b, "two");
	teardown();
}

/* The same addresses and port numbers, on two VLANs. */
Test(vms, tenants_do_not_share_addresses_or_numbers)
{
	struct prog one, two, peer[2];
	struct rig a, b;

	setup();
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
	teardown();
}

Test(vms, a_quota_is_the_machines_whole)
{
	struct saker_qp_attr attr;
	struct saker_qp *qp;
	struct prog one, two;
	struct rig a;
	unsigned n = 0;
	int rc;

	setup();
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
	teardown();
}

Test(vms, a_machine_that_is_removed_takes_its_programs_along)
{
	struct prog host, one;
	struct rig a;

	setup();
	a = vm_add("one", "ip=10.9.0.2/24");
	prog_open_far(&t.host_rig, &host);
	prog_open(&a, &one);
	prog_connect(&one, &host, "10.9.0.1", RIG_PORT);
	vm_del(&a, "one");
	prog_event(&host, SAKER_EV_DISCONNECTED);
	prog_event(&one, SAKER_EV_ENGINE_GONE);
	prog_close(&one);
	/* Its name and addresses are free again. */
	a = vm_add("one", "ip=10.9.0.2/24");
	prog_open(&a, &one);
	prog_close(&one);
	prog_close(&host);
	vm_del(&a, "one");
	teardown();
}

Test(vms, what_a_command_says_wrong_is_named)
{
	static const struct {
		const char *line, *word;
	} rows[] = {
		{"", "Refused"},
		{"add", "Refused"},
		{"add a/b ip=1.2.3.4/24", "name"},
		{"add x path=/dev/shm/x", "ip="},
		{"add x ip=10.9.0.9/24", "path="},
		{"add x path=/dev/shm/x ip=10.9.0.9", "ADDRESS/LENGTH"},
		{"add x path=/dev/shm/x ip=10.9.0.9/33", "ADDRESS/LENGTH"},
		{"add x size=1", "size"},
		{"add x size=64x", "size"},
		{"add x vlan=4095", "vlan"},
		{"add x mac=01:00:00:00:00:01", "mac"},
		{"add x mac=02:00:00:00:00", "mac"},
		{"add x peers=maybe", "peers"},
		{"add x colour=red", "colour"},
		{"add x path", "KEY=VALUE"},
		{"add y path=/nowhere/x mbufs=512 ip=10.9.0.9/24", "/nowhere/x"},
		{"del x", "x"},
	};
	char *text;
	int rc;

	setup();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		text = say(rows[i].line, &rc);
		cr_assert_lt(rc, 0, "%s", rows[i].line);
		cr_assert_not_null(strstr(text, rows[i].word), "%s: %s", rows[i].line, text);
	}
	while (gw_vms(t.g) != 0)
		sched_yield();
	teardown();
}

Test(vms, the_control_socket_takes_the_same_commands)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char err[256], answer[4096] = "";
	size_t got = 0;
	ssize_t n;
	int fd;

	snprintf(un.sun_path, sizeof(un.sun_path), "/tmp/saker-control-%d", getpid());
	setup();
	__atomic_store_n(&t.stop, true, __ATOMIC_RELEASE);
	pthread_join(t.tend, NULL);
	pthread_join(t.poll, NULL);
	cr_assert_eq(gw_control_open(t.g, un.sun_path, err, sizeof(err)), 0, "%s", err);
	t.stop = false;
	cr_assert_eq(pthread_create(&t.poll, NULL, poll_main, NULL), 0);
	cr_assert_eq(pthread_create(&t.tend, NULL, tend_main, NULL), 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	cr_assert_eq(send(fd, "vm sh", 5, 0), 5);
	cr_assert_eq(send(fd, "ow\n", 3, 0), 3);
	while ((n = recv(fd, answer + got, sizeof(answer) - 1 - got, 0)) > 0)
		got += (size_t)n;
	cr_assert_not_null(strstr(answer, "the switch:"), "%s", answer);
	close(fd);
	teardown();
	cr_assert_neq(access(un.sun_path, F_OK), 0);
}
