/* SPDX-License-Identifier: BSD-3-Clause */
#include "host.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <rte_ethdev.h>

#include "../../../drivers/gateway/gateway_priv.h"
#include "../../../lib/engine/common/mbuf.h"
#include "../../../lib/wire/wire.h"

#define HOST_HOME (8u << 20)

struct host host;

static int
wake(void *arg, int fd, bool on)
{
	if (on)
		return eng_wake_on(host.e, fd);
	eng_wake_off(host.e, fd);
	return 0;
}

static void *
poll_main(void *arg)
{
	if (host.cfg.idle == ENG_IDLE_SLEEP) {
		eng_run(host.e, 0);
		return NULL;
	}
	while (!__atomic_load_n(&host.stop, __ATOMIC_ACQUIRE)) {
		eng_poll(host.e, 0, eng_clock());
		sched_yield();
	}
	return NULL;
}

static void *
tend_main(void *arg)
{
	while (!__atomic_load_n(&host.stop, __ATOMIC_ACQUIRE)) {
		gw_tend(host.g, eng_clock());
		usleep(500);
	}
	return NULL;
}

static bool
running(void *arg)
{
	return !__atomic_load_n(&host.stop, __ATOMIC_ACQUIRE);
}

void
host_pause(void)
{
	__atomic_store_n(&host.stop, true, __ATOMIC_RELEASE);
	eng_stop(host.e);
	pthread_join(host.poll, NULL);
	pthread_join(host.tend, NULL);
}

void
host_go(void)
{
	host.stop = false;
	eng_restart(host.e);
	cr_assert_eq(pthread_create(&host.poll, NULL, poll_main, NULL), 0);
	cr_assert_eq(pthread_create(&host.tend, NULL, tend_main, NULL), 0);
}

void
host_start(void (*tweak)(struct eng_config *cfg))
{
	host_start_at(-1, tweak);
}

void
host_start_at(int uplink, void (*tweak)(struct eng_config *cfg))
{
	struct eng_config *c = &host.cfg;
	struct gw_config gc = {.base = c,
		.uplink = uplink,
		.mtu = 1500,
		.mbufs = 2048,
		.running = running,
		.wake = wake};
	char err[256];

	eng_config_default(c);
	c->limits.qps = c->limits.conns = c->limits.cqs = c->limits.client_qps =
		c->limits.client_cqs = 32;
	c->limits.mrs = c->limits.client_mrs = 64;
	c->limits.rx_mbufs = c->limits.tx_mbufs = 1024;
	c->tcp.max_half_open = c->tcp.max_time_wait = c->tcp.max_left = 64;
	if (tweak != NULL)
		tweak(c);
	host.g = gw_create(&gc, err, sizeof(err));
	cr_assert_not_null(host.g, "%s", err);
	c->nports = c->nifs = 1;
	c->ports[0] = (struct eng_port_config){.mtu = 1500};
	c->ports[0].port_id = gw_host_port(host.g, c->ports[0].mac);
	c->ifs[0] =
		(struct eng_if_config){.vlan = ETH_NO_VLAN, .addr = addr(HOST_ADDR), .prefix = 24};
	gw_hook(host.g, c);
	host.e = eng_create(c, err, sizeof(err));
	cr_assert_not_null(host.e, "%s", err);
	host.home = aligned_alloc(4096, HOST_HOME);
	memset(host.home, 0, HOST_HOME);
	host.client = eng_attach_flat(host.e, "host", host.home, HOST_HOME, 1u << 20);
	cr_assert_geq(host.client, 0);
	host.rig.home = host.home;
	host_go();
}

void
host_end(void)
{
	host_pause();
	eng_destroy(host.e);
	gw_destroy(host.g);
	cr_assert_eq(eng_pools_waiting(), 0, "mbufs are still out");
	free(host.home);
}

char *
host_say(const char *line, int *rc)
{
	static char text[8192];
	struct cmd_out *out = cmd_out_new();
	FILE *to = fmemopen(text, sizeof(text), "w");

	memset(text, 0, sizeof(text));
	if (strncmp(line, "add ", 4) == 0)
		*rc = gw_command_add(host.g, line + 4, out);
	else
		*rc = gw_command_del(host.g, line + 4, out);
	if (cmd_refusal(out) != NULL)
		fputs(cmd_refusal(out), to);
	cmd_print_text(out, to);
	fclose(to);
	cmd_out_free(out);
	return text;
}

char *
host_show(void)
{
	static char text[16384];
	struct cmd_out *out = cmd_out_new();
	FILE *to = fmemopen(text, sizeof(text), "w");

	memset(text, 0, sizeof(text));
	gw_command_show(host.g, out);
	cmd_print_json(out, to);
	fclose(to);
	cmd_out_free(out);
	return text;
}

unsigned long long
host_counted(const char *reason)
{
	unsigned long long n = 0;
	char word[64];
	const char *at;

	snprintf(word, sizeof(word), "{\"name\":\"%s\",\"value\":", reason);
	at = strstr(host_show(), word);
	if (at != NULL)
		cr_assert_eq(sscanf(at + strlen(word), "%llu", &n), 1);
	return n;
}

struct gw_vm *
host_machine(const char *name)
{
	for (unsigned i = 0; i < GW_VMS; i++)
		if (host.g->vms[i] != NULL && strcmp(host.g->vms[i]->cfg.name, name) == 0)
			return host.g->vms[i];
	cr_assert_fail("no machine %s", name);
	return NULL;
}

unsigned
host_vms(void)
{
	unsigned n = 0;

	pthread_mutex_lock(&host.g->lock);
	for (unsigned i = 0; i < GW_VMS; i++)
		n += host.g->vms[i] != NULL;
	pthread_mutex_unlock(&host.g->lock);
	return n;
}

uint64_t
vm_counted(const char *name, const char *layer, const char *reason)
{
	return pair_counter(host_machine(name)->e, layer, reason);
}

static struct rig
vm_rig(const char *name)
{
	struct rig r = {0};

	snprintf(r.path, sizeof(r.path), "/dev/shm/saker-vm-%s-%d", name, getpid());
	snprintf(r.where, sizeof(r.where), "ivshmem:%s", r.path);
	return r;
}

struct rig
vm_add(const char *name, const char *keys)
{
	struct rig r = vm_rig(name);
	char line[512], *text;
	int rc;

	unlink(r.path);
	snprintf(line, sizeof(line),
		"add %s path=%s size=16m slots=2 timeout=1000 mbufs=512 qps=8 mrs=8 %s", name,
		r.path, keys);
	text = host_say(line, &rc);
	cr_assert_eq(rc, 0, "%s", text);
	return r;
}

void
vm_del(struct rig *r, const char *name)
{
	unsigned before = host_vms();

	cr_assert_eq(gw_vm_del(host.g, name), 0);
	while (host_vms() == before)
		sched_yield();
	unlink(r->path);
}
