/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Live connections change their keys (Falcon 6.5, 9.2.2.3; doc/falcon-cm.md, section 7) while data
 * flows both ways over a wire that loses, duplicates and reorders frames. Every byte is correct,
 * and no packet is refused because of its key. The clock is virtual.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <rte_mbuf.h>
#include <string.h>

#include "falcon_rig.h"

#define PSP  (ETH_LEN + IP4_LEN + UDP_LEN)
#define STEP 10000ull /* ns */
#define MS   1000000ull
#define LEN  20000u

TestSuite(engine_falcon_keys, .init = pair_eal);

static uint8_t psp;
static uint64_t rekey_ns, rekey_packets, device_key_ns;

static void
aging(struct eng_config *cfg, int node)
{
	cfg->falcon.psps = ROFX_PSP(psp);
	cfg->falcon.rekey_ns = rekey_ns;
	cfg->falcon.rekey_packets = rekey_packets;
	cfg->falcon.device_key_ns = device_key_ns;
	if (psp == PSP_NO_CRYPTO)
		return;
	cfg->falcon.tls = pair_tls('k');
}

static void
start(uint8_t version)
{
	psp = version;
	frig_start(aging);
	frig.step = STEP;
	frig_connect();
}

/* Runs a Write or a Read, and checks every byte. */
static void
transfer(int node, unsigned round)
{
	struct fnode *from = &frig.n[node], *to = &frig.n[!node];
	uint8_t opcode = round % 3 == 0 ? RD_READ : RD_WRITE;

	for (unsigned i = 0; i < LEN; i++) {
		from->mem[i] = (uint8_t)(i * 5 + round);
		to->mem[i] = (uint8_t)(i * 3 + round + 100);
	}
	frig_post(node, opcode, LEN, 0);
	cr_assert_eq(frig_wc(node).status, RD_SUCCESS);
	cr_assert_arr_eq(from->mem, to->mem, LEN, "round %u", round);
	cr_assert_eq(to->mem[LEN - 1], (uint8_t)((LEN - 1) * (opcode == RD_READ ? 3 : 5) + round +
						 (opcode == RD_READ ? 100 : 0)));
}

/* Runs transfers for `ns`. */
static void
traffic(uint64_t ns)
{
	uint64_t until = frig.now + ns;

	for (unsigned round = 0; frig.now < until; round++) {
		transfer(round % 2, round);
		frig_turns(60);
	}
}

/* Checks that no packet was refused for its key, and that only the wire lost packets. */
static void
nothing_refused(void)
{
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(frig_count(i, "psp", "PSP_WRONG_SPI"), 0);
		cr_assert_eq(frig_count(i, "psp", "PSP_BAD_ICV"), 0);
		cr_assert_eq(frig_count(i, "psp", "PSP_WRONG_VERSION"), 0);
		cr_assert_eq(frig_count(i, "psp", "PSP_REPLAYED"), 0);
		cr_assert_eq(frig_count(i, "eng", "ENG_FALCON_NO_CONN"), 0);
		cr_assert_eq(frig_count(i, "fa", "FA_GIVEN_UP"), 0);
		cr_assert_eq(frig_count(i, "fa", "FA_RECLAIMED"), 0);
	}
}

static unsigned
rekeyed(int node)
{
	return (unsigned)frig_count(node, "eng", "ENG_FALCON_REKEYED");
}

/* ---- Changes after a time and after packets ---- */

static void
by_time(uint8_t version, unsigned bad)
{
	rekey_ns = 30 * MS;
	start(version);
	frig.bad = bad;
	/* The old key stays valid for a second, and the next change waits for its end. */
	traffic(3200 * MS);
	nothing_refused();
	for (int i = 0; i < 2; i++)
		cr_assert(rekeyed(i) >= 3 && rekeyed(i) <= 4, "%u", rekeyed(i));
	cr_assert(bad == 0 || frig.lost > 100);
	frig_stop();
}

Test(engine_falcon_keys, change_by_time_under_gcm)
{
	by_time(PSP_AES_GCM_128, 0);
}

Test(engine_falcon_keys, change_by_time_over_a_bad_wire)
{
	by_time(PSP_AES_GCM_256, 20);
}

Test(engine_falcon_keys, change_by_time_where_there_are_none)
{
	by_time(PSP_NO_CRYPTO, 20);
}

Test(engine_falcon_keys, change_after_so_many_packets)
{
	rekey_packets = 500;
	start(PSP_GMAC_128);
	frig.bad = 20;
	traffic(50 * MS);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(rekeyed(i), 1, "another one waits until the old key has gone");
	traffic(2400 * MS);
	for (int i = 0; i < 2; i++)
		cr_assert(rekeyed(i) == 3 || rekeyed(i) == 2, "%u", rekeyed(i));
	nothing_refused();
	frig_stop();
}

Test(engine_falcon_keys, never_if_so_configured)
{
	start(PSP_AES_GCM_128);
	traffic(200 * MS);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(rekeyed(i), 0);
	frig_stop();
}

/* ---- The device key ---- */

static bool
changed_twice(void)
{
	return frig_count(0, "eng", "ENG_FALCON_DEVICE_KEY") >= 2 &&
	       frig_count(1, "eng", "ENG_FALCON_DEVICE_KEY") >= 2;
}

Test(engine_falcon_keys, the_device_key_changes_under_live_connections_9_2_2_3)
{
	struct saker_qp *first[2];

	device_key_ns = 1500 * MS;
	start(PSP_AES_GCM_128);
	frig.bad = 10;
	for (int i = 0; i < 2; i++)
		first[i] = frig.n[i].qp;
	frig_connect();
	/* The age of the key includes the time that the start of the engines took. */
	for (unsigned k = 0; k < 40 && !changed_twice(); k++)
		traffic(100 * MS);
	traffic(100 * MS);
	for (int i = 0; i < 2; i++)
		frig.n[i].qp = first[i];
	traffic(10 * MS); /* the idle connection has new keys, too */
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(frig_count(i, "eng", "ENG_FALCON_DEVICE_KEY"), 2);
		cr_assert_eq(rekeyed(i), 4, "%u", rekeyed(i));
	}
	nothing_refused();
	frig_stop();
}

/* ---- Recorded packets ---- */

static struct rte_mbuf *
recorded(uint32_t min_len)
{
	struct rte_mbuf *m = NULL;

	frig.keep = 1;
	transfer(0, 1);
	frig.keep = -1;
	while (frig.nkept > 0) {
		struct rte_mbuf *k = frig.kept[--frig.nkept];

		if (m == NULL && k->pkt_len > min_len)
			m = k;
		else
			rte_pktmbuf_free(k);
	}
	cr_assert_not_null(m);
	return m;
}

Test(engine_falcon_keys, a_retired_key_opens_nothing)
{
	struct rte_mbuf *m;

	rekey_ns = 100 * MS;
	start(PSP_AES_GCM_128);
	m = recorded(500);
	traffic(130 * MS);
	cr_assert_eq(rekeyed(1), 1);
	frig_inject(1, rte_pktmbuf_mtod(m, void *), m->pkt_len);
	frig_turns(5);
	cr_assert_eq(frig_count(1, "psp", "PSP_REPLAYED"), 1, "the old key's time goes on");
	traffic(1050 * MS);
	frig_inject(1, rte_pktmbuf_mtod(m, void *), m->pkt_len);
	frig_turns(5);
	cr_assert_eq(frig_count(1, "psp", "PSP_WRONG_SPI"), 1, "it is gone");
	rte_pktmbuf_free(m);
	frig_stop();
}

/* Returns the SPI of a frame to a node. */
static uint32_t
spi_to(int node)
{
	uint32_t spi = 0;

	frig.keep = node;
	transfer(0, 2);
	frig.keep = -1;
	while (frig.nkept > 0) {
		struct rte_mbuf *k = frig.kept[--frig.nkept];
		const uint8_t *p = rte_pktmbuf_mtod(k, const uint8_t *);

		if (p[ETH_LEN + 9] == IP_UDP)
			spi = (uint32_t)p[PSP + 4] << 24 | (uint32_t)p[PSP + 5] << 16 |
			      (uint32_t)p[PSP + 6] << 8 | p[PSP + 7];
		rte_pktmbuf_free(k);
	}
	cr_assert_neq(spi, 0);
	return spi;
}

Test(engine_falcon_keys, each_direction_gets_its_own_and_the_phase_follows_the_device)
{
	uint32_t before[2], after[2];

	device_key_ns = 200 * MS;
	start(PSP_AES_GCM_128);
	for (int i = 0; i < 2; i++)
		before[i] = spi_to(i);
	traffic(220 * MS);
	for (int i = 0; i < 2; i++) {
		after[i] = spi_to(i);
		cr_assert_neq(after[i], before[i]);
		cr_assert_eq((after[i] ^ before[i]) & PSP_SPI_PHASE, PSP_SPI_PHASE);
	}
	frig_stop();
}

/* ---- Peers ---- */

/* The exchange cannot complete: the connection whose key had to change ends, and no side waits for
 * ever. */
Test(engine_falcon_keys, a_peer_that_never_confirms_is_given_up)
{
	rekey_ns = 20 * MS;
	start(PSP_AES_GCM_128);
	frig.silent = true;
	frig_turns(3000); /* 30 ms: the key has changed, and no peer has confirmed it */
	cr_assert_eq(frig_event(0, SAKER_EV_DISCONNECTED).status, -ETIMEDOUT);
	frig_event(1, SAKER_EV_DISCONNECTED);
	frig_stop();
}
