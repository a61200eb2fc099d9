/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PSP's tunnel mode in a running engine (Falcon 7.1.2), the cookie (PCID, 9.2.2.3) and the
 * Destination Function (7.2): the bytes on the wire, and the packets that the engine drops because
 * they do not match.
 */
#include <criterion/criterion.h>
#include <rte_mbuf.h>
#include <string.h>

#include "../../../lib/base/mem.h"
#include "../../support/udp_sum.h"
#include "falcon_rig.h"

#define L4    (ETH_LEN + IP4_LEN)
#define PSP   (L4 + UDP_LEN)
#define VC    (PSP + PSP_LEN)
#define INNER (VC + PSP_VC_LEN)
#define LEN   100
#define MARK  0x5c

TestSuite(engine_falcon_tunnel, .init = pair_eal);

static uint8_t psp;
static const char *outer[2];
static bool one_sided;

static void
tunnelled(struct eng_config *cfg, int node)
{
	struct eng_falcon_config *f = &cfg->falcon;

	f->tunnel = !one_sided || node == 0;
	f->pcid = true;
	f->function = 0x010203u + (uint32_t)node;
	f->psps = ROFX_PSP(psp);
	if (psp != PSP_NO_CRYPTO) {
		f->tls = pair_tls('k');
	}
	if (outer[node] == NULL)
		return;
	f->tunnel_source = addr(outer[node]);
	cfg->ifs[cfg->nifs] = cfg->ifs[0];
	cfg->ifs[cfg->nifs].addr = f->tunnel_source;
	cfg->ifs[cfg->nifs++].prefix = 64;
	if (sk_addr_is_v4(&f->tunnel_source))
		cfg->ifs[cfg->nifs - 1].prefix = 24;
}

static void
outer_are(const char *a, const char *b)
{
	outer[0] = a;
	outer[1] = b;
}

struct frame {
	uint8_t b[2048];
	uint32_t len;
};

/* Returns the packet with which a Write of node 0 arrives at node 1. */
static struct frame
capture(uint16_t ethertype)
{
	struct frame f = {.len = 0};

	memset(frig.n[0].mem, MARK, LEN);
	frig.keep = 1;
	frig_post(0, RD_WRITE, LEN, 0);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	frig.keep = -1;
	while (frig.nkept > 0) {
		struct rte_mbuf *m = frig.kept[--frig.nkept];
		const uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

		if (m->pkt_len > PSP + LEN && (p[12] << 8 | p[13]) == ethertype) {
			f.len = m->pkt_len;
			memcpy(f.b, p, SK_MIN(f.len, (uint32_t)m->data_len));
		}
		rte_pktmbuf_free(m);
	}
	cr_assert_gt(f.len, 0, "the Write did not come past");
	memset(frig.n[1].mem, 0, FRIG_MEM);
	return f;
}

static bool
same_addr(const uint8_t *p, const char *text)
{
	struct sk_addr a = sk_addr_v4(p), b = addr(text);

	return sk_addr_eq(&a, &b);
}

static void
works_between(uint8_t version, const char *a, const char *b)
{
	psp = version;
	outer_are(a, b);
	frig_start(tunnelled);
	frig_connect();
	frig_works();
	cr_assert_eq(frig_count(1, "eng", "ENG_RX_BAD"), 0);
}

/* ---- On the wire ---- */

Test(engine_falcon_tunnel, s7_1_2_inner_addresses_are_the_connections_outer_ones_the_hosts)
{
	struct wire_falcon h;
	struct wire_psp p;
	struct wire_ip in;
	struct frame f;

	works_between(PSP_NO_CRYPTO, "192.0.2.1", "192.0.2.2");
	f = capture(ETH_IPV4);
	cr_assert(same_addr(f.b + ETH_LEN + 12, "192.0.2.1"));
	cr_assert(same_addr(f.b + ETH_LEN + 16, "192.0.2.2"));
	cr_assert_eq(wire_psp_parse(&p, f.b + PSP, f.len - PSP), PSP_MAX);
	cr_assert_eq(p.next, PSP_NEXT_IP4);
	cr_assert(p.has_vc && p.vc != 0);
	cr_assert_eq(p.crypt_offset, 2 + 5 + 1, "cookie, inner header and the CID are readable");
	cr_assert_eq(wire_ip4_parse(&in, f.b + INNER, f.len - INNER), IP4_LEN);
	cr_assert_eq(in.proto, PSP_NEXT_FALCON);
	cr_assert(same_addr(f.b + INNER + 12, PAIR_ADDR_A));
	cr_assert(same_addr(f.b + INNER + 16, PAIR_ADDR_B));
	cr_assert_eq(in.payload_len, f.len - INNER - IP4_LEN);
	cr_assert_gt(wire_falcon_parse(&h, f.b + INNER + IP4_LEN, in.payload_len), 0);
	cr_assert_eq(h.function, 0x010204, "the receiver's function");
	frig_stop();
}

Test(engine_falcon_tunnel, sealed_over_ipv4)
{
	works_between(PSP_AES_GCM_128, "192.0.2.1", "192.0.2.2");
	frig_stop();
}

Test(engine_falcon_tunnel, sealed_over_ipv6)
{
	struct frame f;

	works_between(PSP_AES_GCM_256, "fd00:7::1", "fd00:7::2");
	f = capture(ETH_IPV6);
	cr_assert_eq(f.b[ETH_LEN + IP6_LEN + UDP_LEN], PSP_NEXT_IP4);
	frig_stop();
}

Test(engine_falcon_tunnel, authenticated_between_the_same_addresses)
{
	works_between(PSP_GMAC_128, NULL, NULL);
	frig_stop();
}

/* The outer path carries 1500 bytes: no frame is longer, and none is a fragment. */
Test(engine_falcon_tunnel, the_mtu_counts_both_headers)
{
	unsigned frames = 0;

	works_between(PSP_AES_GCM_128, "fd00:7::1", "fd00:7::2");
	frig.keep = 1;
	frig_post(0, RD_WRITE, 30000, 0);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	frig.keep = -1;
	while (frig.nkept > 0) {
		cr_assert_leq(frig.kept[--frig.nkept]->pkt_len, 1500 + ETH_LEN);
		frames++;
		rte_pktmbuf_free(frig.kept[frig.nkept]);
	}
	cr_assert_gt(frames, 20);
	frig_stop();
}

Test(engine_falcon_tunnel, both_sides_must_have_it_configured)
{
	struct saker_conn_param p = {0};
	struct saker_event ev;

	psp = PSP_NO_CRYPTO;
	one_sided = true;
	frig_start(tunnelled);
	frig_listen(1);
	frig_qp(0, SAKER_FALCON);
	frig_qp(1, SAKER_FALCON);
	frig_ask(&p);
	ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p), 0);
	cr_assert_lt(frig_event(0, SAKER_EV_UNREACHABLE).status, 0);
	cr_assert_eq(frig_count(0, "rofx", "ROFX_ENCAPSULATION"), 1);
	frig_stop();
}

Test(engine_falcon_tunnel, a_source_that_is_not_ours_is_refused)
{
	struct saker_conn_param p = {0};
	struct saker_event ev;

	psp = PSP_NO_CRYPTO;
	outer_are("192.0.2.1", "192.0.2.2");
	frig_start(tunnelled);
	for (int i = 0; i < 2; i++) /* no interface has the address any more */
		frig.n[i].e->cfg.falcon.tunnel_source = addr("198.51.100.9");
	frig_listen(1);
	frig_qp(0, SAKER_FALCON);
	frig_qp(1, SAKER_FALCON);
	frig_ask(&p);
	ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
	saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p);
	cr_assert_lt(frig_event(0, SAKER_EV_UNREACHABLE).status, 0);
	frig_stop();
}

/* ---- Packets that do not match ---- */

static void
sums(struct frame *f)
{
	struct sk_addr src = sk_addr_v4(f->b + ETH_LEN + 12), dst = sk_addr_v4(f->b + ETH_LEN + 16);
	uint16_t sum;

	memset(f->b + INNER + 10, 0, 2);
	sum = wire_sum_fold(wire_sum(0, f->b + INNER, IP4_LEN));
	memcpy(f->b + INNER + 10, &sum, 2);
	udp_sum_set(f->b + L4, f->len - L4, &src, &dst);
}

static void
changed(const struct frame *real, unsigned at, const char *layer, const char *reason)
{
	uint64_t before = frig_count(1, layer, reason);
	struct frame f = *real;

	f.b[at] ^= 0x11;
	sums(&f);
	frig_inject(1, f.b, f.len);
	frig_turns(20);
	cr_assert_eq(frig_count(1, layer, reason), before + 1, "byte %u: %s", at, reason);
	for (unsigned i = 0; i < LEN; i++)
		cr_assert_eq(frig.n[1].mem[i], 0, "byte %u: it was placed", at);
}

Test(engine_falcon_tunnel, what_is_not_the_connections_is_dropped)
{
	struct frame real, f;
	uint64_t before;
	uint16_t sum;

	works_between(PSP_NO_CRYPTO, "192.0.2.1", "192.0.2.2");
	real = capture(ETH_IPV4);
	changed(&real, VC, "psp", "PSP_WRONG_COOKIE");
	changed(&real, VC + 7, "psp", "PSP_WRONG_COOKIE");
	changed(&real, PSP + 7, "psp", "PSP_WRONG_SPI");
	changed(&real, INNER + 15, "eng", "ENG_FALCON_INNER"); /* source */
	changed(&real, INNER + 19, "eng", "ENG_FALCON_INNER"); /* destination */
	changed(&real, INNER + 9, "eng", "ENG_FALCON_INNER");  /* protocol */
	changed(&real, INNER + 3, "eng", "ENG_FALCON_INNER");  /* length */
	changed(&real, INNER, "eng", "ENG_FALCON_INNER");      /* version, header length */
	changed(&real, INNER + IP4_LEN + 6, "fa", "FA_FUNCTION");
	changed(&real, ETH_LEN + IP4_LEN - 5, "wire", "WIRE_IP_CHECKSUM"); /* outer source */
	/* The same packet in transport mode. */
	f = real;
	memmove(f.b + INNER, f.b + INNER + IP4_LEN, f.len - INNER - IP4_LEN);
	f.len -= IP4_LEN;
	f.b[PSP] = PSP_NEXT_FALCON;
	f.b[ETH_LEN + 3] = (uint8_t)(f.b[ETH_LEN + 3] - IP4_LEN);
	f.b[L4 + 5] = (uint8_t)(f.b[L4 + 5] - IP4_LEN);
	memset(f.b + ETH_LEN + 10, 0, 2);
	sum = wire_sum_fold(wire_sum(0, f.b + ETH_LEN, IP4_LEN));
	memcpy(f.b + ETH_LEN + 10, &sum, 2);
	udp_sum_set(f.b + L4, f.len - L4, &frig.p.cfg[0].falcon.tunnel_source,
		&frig.p.cfg[1].falcon.tunnel_source);
	before = frig_count(1, "eng", "ENG_FALCON_INNER");
	frig_inject(1, f.b, f.len);
	frig_turns(20);
	cr_assert_eq(frig_count(1, "eng", "ENG_FALCON_INNER"), before + 1);
	/* The frame is the same, wherever it is split. */
	for (uint32_t cut = PSP; cut < real.len; cut += 3) {
		before = frig_count(1, "fa", "FA_DUPLICATE");
		frig_inject_cut(1, real.b, real.len, cut);
		frig_turns(3);
		cr_assert_eq(frig_count(1, "fa", "FA_DUPLICATE"), before + 1, "cut at %u", cut);
	}
	frig_works();
	frig_stop();
}

/* The network marks congestion in the outer header, or has marked it in the inner one (RFC
 * 6040). */
Test(engine_falcon_tunnel, congestion_is_seen_in_either_header)
{
	struct frame real, f;
	uint64_t before;

	works_between(PSP_NO_CRYPTO, "192.0.2.1", "192.0.2.2");
	real = capture(ETH_IPV4);
	cr_assert_eq(real.b[INNER + 1] & 3, IP_ECN_ECT0);
	before = frig_count(1, "fa", "FA_ECN_CE");
	f = real;
	f.b[INNER + 1] |= IP_ECN_CE;
	sums(&f);
	frig_inject(1, f.b, f.len);
	frig_turns(5);
	cr_assert_eq(frig_count(1, "fa", "FA_ECN_CE"), before + 1);
	frig_stop();
}
