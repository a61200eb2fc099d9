/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests two machines that share the outer address of their Falcon packets (Falcon 7.1.2). Packets
 * reach each machine through its own Destination Function (7.2) only, and the switch drops packets
 * with any other function.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "../../../drivers/gateway/gateway_priv.h"
#include "../../../lib/wire/falcon.h"
#include "../../support/udp_sum.h"
#include "host.h"

#define OUTER  "10.9.0.9"
#define OUTER6 "fd00:9::9"
#define ONE    0x010101
#define TWO    0x020202
#define NOBODY 0x030303
#define L4     (ETH_LEN + IP4_LEN)
#define PSP    (L4 + UDP_LEN)

TestSuite(gw_tunnel, .init = pair_eal, .timeout = 100);

static uint8_t psp;

static void
speaks_falcon(struct eng_config *c)
{
	c->falcon.enabled = true;
	c->falcon.tunnel = true;
	c->falcon.pcid = true;
	c->falcon.psps = (uint16_t)(1u << psp);
	if (psp != PSP_NO_CRYPTO) {
		c->falcon.tls = pair_tls('k');
	}
}

static void
falcon_qp(struct prog *p)
{
	struct saker_qp_attr attr = {.send_cq = p->cq,
		.recv_cq = p->cq,
		.transport = SAKER_FALCON,
		.sq_depth = 16,
		.rq_depth = 16,
		.max_send_sge = 1,
		.max_recv_sge = 1};

	cr_assert_eq(saker_qp_create(p->pd, &attr, &p->qp), 0, "%s", saker_error());
}

struct tenants {
	struct rig a, b;
	struct prog far[2], one, two;
};

/* Starts two machines, each with a program that is connected to a program of the host. */
static void
start(struct tenants *t, uint8_t version, const char *keys)
{
	char line[256];

	psp = version;
	host_start(speaks_falcon);
	snprintf(line, sizeof(line), "ip=10.9.0.2/24 function=%u %s", ONE, keys);
	t->a = vm_add("one", line);
	snprintf(line, sizeof(line), "ip=10.9.0.3/24 function=%u %s", TWO, keys);
	t->b = vm_add("two", line);
	prog_open_far(&host.rig, &t->far[0]);
	prog_open(&t->a, &t->one);
	prog_open(&t->b, &t->two);
	t->far[1] = t->far[0];
	falcon_qp(&t->far[0]);
	falcon_qp(&t->far[1]);
	falcon_qp(&t->one);
	falcon_qp(&t->two);
}

static void
end(struct tenants *t)
{
	prog_close(&t->one);
	prog_close(&t->two);
	prog_close(&t->far[0]);
	vm_del(&t->a, "one");
	vm_del(&t->b, "two");
	host_end();
}

static void
both_work(struct tenants *t)
{
	prog_connect(&t->far[0], &t->one, "10.9.0.2", RIG_PORT);
	prog_connect(&t->two, &t->far[1], HOST_ADDR, RIG_PORT);
	prog_write(&t->far[0], &t->one, 3);
	prog_write(&t->one, &t->far[0], 3);
	prog_write(&t->far[1], &t->two, 3);
	prog_write(&t->two, &t->far[1], 3);
	cr_assert_eq(host_counted("GW_FUNCTION"), 0);
	cr_assert_eq(host_counted("GW_TUNNELED"), 0);
	cr_assert_eq(host_counted("GW_SPOOFED_IP"), 0);
	cr_assert_eq(host_counted("GW_SPOOFED_ARP"), 0);
}

Test(gw_tunnel, s7_1_2_two_machines_behind_one_address)
{
	struct tenants t;
	char *text;

	start(&t, PSP_NO_CRYPTO, "tunnel=" OUTER "/24");
	both_work(&t);
	text = host_show();
	cr_assert_not_null(
		strstr(text, "\"falcon_function\":65793,\"pcid\":true,\"tunnel\":\"" OUTER), "%s",
		text);
	end(&t);
}

Test(gw_tunnel, s7_1_2_two_machines_behind_one_address_sealed)
{
	struct tenants t;

	start(&t, PSP_AES_GCM_256, "tunnel=" OUTER "/24");
	both_work(&t);
	end(&t);
}

Test(gw_tunnel, s7_1_2_machines_without_an_outer_address_have_their_own)
{
	struct tenants t;

	start(&t, PSP_AES_GCM_128, "");
	both_work(&t);
	end(&t);
}

/* Both ends of the outer header are the same address. */
Test(gw_tunnel, s7_1_2_two_machines_are_each_others_peers)
{
	struct tenants t;

	start(&t, PSP_AES_GCM_128, "peers=yes tunnel=" OUTER "/24");
	prog_connect(&t.one, &t.two, "10.9.0.3", RIG_PORT);
	prog_write(&t.one, &t.two, 3);
	prog_write(&t.two, &t.one, 3);
	end(&t);
}

Test(gw_tunnel, s7_1_2_an_outer_address_of_ipv6)
{
	struct tenants t;

	start(&t, PSP_AES_GCM_128, "");
	prog_close(&t.one);
	vm_del(&t.a, "one");
	/* The inner header is IPv4. The host does not have this outer address, but another machine
	 * does. */
	t.a = vm_add("one", "ip=10.9.0.2/24,fd00:9::2/64 peers=yes tunnel=" OUTER6 "/64");
	prog_close(&t.two);
	vm_del(&t.b, "two");
	t.b = vm_add("two", "ip=10.9.0.3/24,fd00:9::3/64 peers=yes tunnel=" OUTER6 "/64");
	prog_open(&t.a, &t.one);
	prog_open(&t.b, &t.two);
	falcon_qp(&t.one);
	falcon_qp(&t.two);
	prog_connect(&t.one, &t.two, "10.9.0.3", RIG_PORT);
	prog_write(&t.one, &t.two, 3);
	cr_assert_eq(host_counted("GW_SPOOFED_ND"), 0);
	end(&t);
}

/* ---- Packets with a wrong function ---- */

struct frame {
	uint8_t b[2048];
	uint32_t len;
};

static void
copy_out(const struct rte_mbuf *m, struct frame *f)
{
	const void *at = rte_pktmbuf_read(m, 0, m->pkt_len, f->b);

	cr_assert_not_null(at);
	if (at != f->b)
		memcpy(f->b, at, m->pkt_len);
	f->len = m->pkt_len;
}

/* Captures the packet that carries a Write of the host's program to machine `one`. */
static struct frame
capture(struct tenants *t)
{
	struct rd_sge sge = {
		.addr = (uintptr_t)t->far[0].mem, .len = 64, .lkey = saker_mr_stag(t->far[0].mr)};
	const struct saker_wr wr = {.opcode = RD_WRITE,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.rkey = saker_mr_stag(t->one.mr),
		.remote_addr = (uintptr_t)t->one.mem};
	struct frame f = {.len = 0};
	struct rte_mbuf *m = NULL;
	struct rd_wc wc;

	host_pause();
	cr_assert_eq(saker_post_send(t->far[0].qp, &wr, 1), 1);
	while (f.len == 0) {
		/* A turn begins with the switch, which forwards the frames of the previous turn. */
		eng_poll(host.e, 0, eng_clock());
		for (unsigned n = rte_ring_count(host.g->host.in); n > 0; n--) {
			cr_assert_eq(rte_ring_sc_dequeue(host.g->host.in, (void **)&m), 0);
			if (m->pkt_len > PSP + PSP_MAX + IP4_LEN + FALCON_PUSH_DATA_LEN + 64)
				copy_out(m, &f);
			rte_ring_sp_enqueue(host.g->host.in, m);
		}
	}
	host_go();
	while (saker_cq_poll(t->far[0].cq, &wc, 1) == 0)
		saker_wait(t->far[0].s, 1);
	cr_assert_eq(wc.status, RD_SUCCESS);
	return f;
}

static void
checksum(struct frame *f)
{
	struct sk_addr src = sk_addr_v4(f->b + ETH_LEN + 12), dst = sk_addr_v4(f->b + ETH_LEN + 16);

	udp_sum_set(f->b + L4, f->len - L4, &src, &dst);
}

/* Sends a frame as if the engine of `port` had sent it, and waits for a turn of the switch. */
static void
inject(struct gw_vport *port, const struct frame *f)
{
	struct rte_mbuf *m;

	host_pause();
	m = rte_pktmbuf_alloc(host.g->pool);
	memcpy(rte_pktmbuf_append(m, (uint16_t)f->len), f->b, f->len);
	cr_assert_eq(rte_ring_sp_enqueue(port->in, m), 0);
	for (unsigned i = 0; i < 4; i++)
		eng_poll(host.e, 0, eng_clock());
	host_go();
}

static void
to_function(struct frame *f, uint32_t function)
{
	f->b[PSP + PSP_LEN] = (uint8_t)(function >> 16);
	f->b[PSP + PSP_LEN + 1] = (uint8_t)(function >> 8);
	f->b[PSP + PSP_LEN + 2] = (uint8_t)function;
	checksum(f);
}

/* The machine accepts none of these packets, and the connection continues. */
Test(gw_tunnel, s7_2_each_is_reached_through_its_own_function_only)
{
	struct gw_vport *from;
	struct frame real, f;
	struct tenants t;
	uint64_t before;

	start(&t, PSP_NO_CRYPTO, "tunnel=" OUTER "/24");
	both_work(&t);
	from = &host.g->host;
	real = capture(&t);
	before = vm_counted("one", "fa", "FA_DUPLICATE");
	inject(from, &real);
	cr_assert_gt(vm_counted("one", "fa", "FA_DUPLICATE"), before, "as it is, it gets there");
	f = real;
	to_function(&f, NOBODY);
	inject(from, &f);
	cr_assert_eq(host_counted("GW_FUNCTION"), 1);
	to_function(&f, TWO);
	inject(from, &f);
	cr_assert_eq(host_counted("GW_FUNCTION"), 1);
	cr_assert_eq(vm_counted("two", "eng", "ENG_FALCON_NO_CONN"), 1, "no connection of two's");
	cr_assert_eq(vm_counted("one", "eng", "ENG_RX_BAD"), 0);
	/* The cookie of another tunnel, and another's function behind the right cookie. */
	f = real;
	f.b[PSP + PSP_LEN + 7] ^= 1;
	checksum(&f);
	inject(from, &f);
	cr_assert_eq(vm_counted("one", "psp", "PSP_WRONG_COOKIE"), 1);
	f = real;
	f.b[PSP + PSP_MAX + IP4_LEN + 6] ^= 3;
	checksum(&f);
	inject(from, &f);
	cr_assert_eq(vm_counted("one", "fa", "FA_FUNCTION"), 1);
	/* A packet in transport mode is not for a tunnel. */
	f = real;
	f.b[PSP] = PSP_NEXT_FALCON;
	checksum(&f);
	inject(from, &f);
	cr_assert_eq(host_counted("GW_TUNNELED"), 1);
	prog_write(&t.far[0], &t.one, 2);
	prog_write(&t.far[1], &t.two, 2);
	end(&t);
}

/* Changes the frame to one from the shared address to the shared address, as between two machines
 * of the tunnel. */
static void
from_outer(struct frame *f)
{
	wire_ip_emit(f->b + ETH_LEN, &(struct wire_ip){.src = addr(OUTER),
					     .dst = addr(OUTER),
					     .proto = IP_UDP,
					     .ttl = 64,
					     .payload_len = f->len - L4});
	checksum(f);
}

/* A tenant that has all data of another's connection cannot reach it. */
Test(gw_tunnel, another_tenants_connection_is_out_of_reach)
{
	struct gw_vm *two;
	struct frame f;
	struct tenants t;

	start(&t, PSP_NO_CRYPTO, "tunnel=" OUTER "/24");
	both_work(&t);
	f = capture(&t);
	two = host_machine("two");
	/* Through the tunnel, from the peer's address and from its own, and then directly. */
	memcpy(f.b + 6, two->cfg.mac, 6);
	inject(&two->vport, &f);
	cr_assert_eq(host_counted("GW_SPOOFED_IP"), 1);
	from_outer(&f);
	inject(&two->vport, &f);
	cr_assert_eq(host_counted("GW_TENANT"), 1);
	memcpy(f.b, host_machine("one")->cfg.mac, 6);
	inject(&two->vport, &f);
	cr_assert_eq(host_counted("GW_TENANT"), 2);
	cr_assert_eq(vm_counted("one", "eng", "ENG_RX_BAD"), 0);
	prog_write(&t.far[0], &t.one, 2);
	end(&t);
}

/* A peer that may send to the other's engine finds no connection there, either. */
Test(gw_tunnel, another_tenants_cid_is_no_connection)
{
	struct gw_vm *two;
	struct frame f;
	struct tenants t;

	start(&t, PSP_NO_CRYPTO, "peers=yes tunnel=" OUTER "/24");
	both_work(&t);
	f = capture(&t);
	two = host_machine("two");
	memcpy(f.b + 6, two->cfg.mac, 6);
	from_outer(&f);
	inject(&two->vport, &f);
	cr_assert_eq(vm_counted("one", "eng", "ENG_FALCON_NO_CONN"), 1);
	prog_write(&t.far[0], &t.one, 2);
	end(&t);
}
