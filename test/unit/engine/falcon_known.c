/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets with the expected headers (falcon_known.c) in running engines: with this path and without
 * it, the same requests have the same completions and bytes, on a clean wire and on one that loses,
 * repeats and delays frames; and a damaged frame has the same effect. The rig starts once in a
 * process, so each test states the results, and runs for one path.
 */
#include <criterion/criterion.h>
#include <rte_mbuf.h>
#include <string.h>

#include "../../../lib/base/be.h"
#include "../../../lib/base/mem.h"
#include "../../../lib/engine/transport/falcon/falcon_priv.h"
#include "falcon_rig.h"

TestSuite(engine_falcon_known, .init = pair_eal, .timeout = 300);

#define ROUNDS 12
#define LEN    2500

static void
general(struct eng_config *cfg, int node)
{
	cfg->falcon.general_rx = true;
}

/* Posts a burst of requests of all kinds, which travel together. Writes, the Read and the Sends
 * have the same bytes, so the memory of the peer is known whichever comes last. */
static void
one_burst(unsigned round)
{
	static const uint8_t kinds[] = {
		RD_WRITE, RD_WRITE, RD_SEND, RD_WRITE, RD_READ, RD_WRITE, RD_WRITE_IMM, RD_WRITE};

	for (uint32_t i = 0; i < LEN; i++)
		frig.n[0].mem[i] = (uint8_t)(i * 7 + round);
	for (unsigned i = 0; i < 2; i++)
		frig_recv(1, i);
	for (unsigned i = 0; i < SK_ARRAY_LEN(kinds); i++)
		frig_post(0, kinds[i], LEN - (i > 0 ? round * 97 + i : 0), i);
	for (unsigned i = 0; i < SK_ARRAY_LEN(kinds); i++) {
		struct rd_wc wc = frig_wc(0);

		cr_assert(wc.status == RD_SUCCESS && wc.wr_id == kinds[i], "round %u, %u: %u",
			round, i, wc.status);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct rd_wc wc = frig_wc(1);

		cr_assert(wc.status == RD_SUCCESS && wc.wr_id == i);
		cr_assert_eq(wc.opcode, i == 0 ? RD_RECV : RD_RECV_IMM);
	}
	cr_assert_arr_eq(frig.n[0].mem, frig.n[1].mem, LEN, "round %u", round);
}

static void
transfer(void (*tweak)(struct eng_config *cfg, int node), unsigned bad)
{
	frig_start(tweak);
	frig_connect();
	frig.bad = bad;
	for (unsigned round = 0; round < ROUNDS; round++)
		one_burst(round);
	frig.bad = 0;
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(frig_count(i, "eng", "ENG_RX_BAD"), 0);
		cr_assert_eq(frig_count(i, "fa", "FA_BAD_OUTCOME"), 0);
	}
	frig_stop();
}

static void
sealed(struct eng_config *cfg, int node)
{
	cfg->falcon.psps = ROFX_PSP(PSP_AES_GCM_256);
	cfg->falcon.tls = pair_tls('k');
}

static void
sealed_general(struct eng_config *cfg, int node)
{
	sealed(cfg, node);
	general(cfg, node);
}

Test(engine_falcon_known, sealed_requests_over_the_general_path)
{
	transfer(sealed_general, 0);
}

Test(engine_falcon_known, sealed_requests_over_the_known_path)
{
	transfer(sealed, 0);
}

Test(engine_falcon_known, sealed_requests_over_the_general_path_of_a_bad_wire)
{
	transfer(sealed_general, 40);
}

Test(engine_falcon_known, sealed_requests_over_the_known_path_of_a_bad_wire)
{
	transfer(sealed, 40);
}

Test(engine_falcon_known, requests_over_the_general_path)
{
	transfer(general, 0);
}

Test(engine_falcon_known, requests_over_the_known_path)
{
	transfer(NULL, 0);
}

Test(engine_falcon_known, requests_over_the_general_path_of_a_bad_wire)
{
	transfer(general, 40);
}

Test(engine_falcon_known, requests_over_the_known_path_of_a_bad_wire)
{
	transfer(NULL, 40);
}

/* Has node 0 write 8 bytes, and copies the frame of the Write, of at most `room` bytes. Returns its
 * length. */
static size_t
frame_of_write(uint8_t *frame, size_t room)
{
	size_t len;

	frig.keep = 1;
	frig_post(0, RD_WRITE, 8, 0);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	frig.keep = -1;
	cr_assert_gt(frig.nkept, 0);
	len = frig.kept[0]->pkt_len;
	cr_assert_leq(len, room);
	memcpy(frame, rte_pktmbuf_mtod(frig.kept[0], void *), len);
	while (frig.nkept > 0)
		rte_pktmbuf_free(frig.kept[--frig.nkept]);
	return len;
}

/* Repeats a frame of a Write with one byte changed at a time. */
static void
damage(void (*tweak)(struct eng_config *cfg, int node))
{
	/* How often the frame counts as ENG_RX_BAD, and as a duplicate of the first one. */
	static const struct {
		size_t at;
		uint8_t bits;
		uint64_t bad, again;
	} rows[] = {
		{0, 0x10, 0, 0},  /* MAC address: not for this host */
		{6, 0x10, 0, 1},  /* the sender's MAC address is not checked */
		{12, 0x10, 1, 0}, /* EtherType */
		{14, 0x01, 1, 0}, /* length of the IPv4 header */
		{16, 0x01, 1, 0}, /* total length */
		{20, 0x20, 1, 0}, /* fragment */
		{22, 0x01, 1, 0}, /* TTL: its checksum is wrong */
		{24, 0x01, 1, 0}, /* checksum */
		{29, 0x01, 1, 0}, /* source */
		{37, 0x01, 0, 0}, /* destination port: for nobody */
		{38, 0x01, 1, 0}, /* UDP length */
		{40, 0x01, 1, 0}, /* UDP checksum */
		{42, 0x01, 1, 0}, /* PSP: next header */
		{46, 0x01, 1, 0}, /* SPI */
		{54, 0x01, 1, 0}, /* IV: the UDP checksum is wrong */
		{59, 0x01, 1, 0}, /* CID */
		{70, 0x01, 1, 0}, /* PSN */
		{99, 0x01, 1, 0}, /* payload */
	};
	uint8_t frame[256];
	size_t len;

	frig_start(tweak);
	frig_connect();
	len = frame_of_write(frame, sizeof(frame));
	cr_assert_gt(len, 100);
	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++) {
		uint64_t bad = frig_count(1, "eng", "ENG_RX_BAD");
		uint64_t again = frig_count(1, "fa", "FA_DUPLICATE");

		frame[rows[i].at] ^= rows[i].bits;
		frig_inject(1, frame, len);
		frame[rows[i].at] ^= rows[i].bits;
		frig_turns(4);
		bad = frig_count(1, "eng", "ENG_RX_BAD") - bad;
		again = frig_count(1, "fa", "FA_DUPLICATE") - again;
		cr_expect(bad == rows[i].bad && again == rows[i].again,
			"byte %zu: %llu bad, %llu duplicates", rows[i].at, (unsigned long long)bad,
			(unsigned long long)again);
	}
	frig_stop();
}

Test(engine_falcon_known, damaged_headers_on_the_general_path)
{
	damage(general);
}

Test(engine_falcon_known, damaged_headers_on_the_known_path)
{
	damage(NULL);
}

/* Injects a frame of the peer under the IV that would be the next one. */
static void
forge(void (*tweak)(struct eng_config *cfg, int node))
{
	struct eng_falcon_conn *fc;
	uint64_t bad, iv;
	uint8_t frame[512];
	be64 next;
	size_t len;

	frig_start(tweak);
	frig_connect();
	len = frame_of_write(frame, sizeof(frame));
	fc = &eng_falcon_of(frig.n[1].e->transports[0])->conns[0];
	cr_assert_eq(fc->known.on, tweak == sealed);
	iv = fc->accept.remote.time;
	next = be64_of(iv + 1);
	memcpy(frame + ETH_LEN + IP4_LEN + UDP_LEN + PSP_LEN - sizeof(next), &next, sizeof(next));
	bad = frig_count(1, "psp", "PSP_BAD_ICV");
	for (unsigned i = 1; i <= 3; i++) {
		frig_inject(1, frame, len);
		frig_turns(4);
		cr_assert_eq(frig_count(1, "psp", "PSP_BAD_ICV"), bad + i);
		cr_assert_eq(frig_count(1, "eng", "ENG_RX_BAD"), i);
		cr_assert_eq(frig_count(1, "fa", "FA_DUPLICATE"), 0);
		cr_assert_eq(fc->accept.remote.time, iv);
	}
	frig_works();
	frig_stop();
}

Test(engine_falcon_known, forged_packets_on_the_general_path_falcon_9_2_2_1)
{
	forge(sealed_general);
}

Test(engine_falcon_known, forged_packets_on_the_known_path_falcon_9_2_2_1)
{
	forge(sealed);
}

/* ---- The length of a turn ---- */

/* Node 0 posts a request that has 64 packets, and sends them all. Returns the number that a turn of
 * node 1 receives. */
static unsigned
received_in_a_turn(uint8_t opcode)
{
	unsigned all, left;

	frig_post(0, opcode, FRIG_MEM, 0);
	for (unsigned i = 0; i < 64; i++)
		eng_poll(frig.p.e[0], 0, frig.now);
	all = rte_ring_count(frig.to[1]);
	cr_assert_geq(all, 64, "%u", all);
	eng_poll(frig.p.e[1], 0, frig.now);
	left = rte_ring_count(frig.to[1]);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	return all - left;
}

static void
turns(void (*tweak)(struct eng_config *cfg, int node))
{
	frig_start(tweak);
	frig_connect_reads(SAKER_FALCON, 128);
	for (unsigned i = 0; i < 100; i++) { /* the windows grow */
		frig_post(0, i % 2 ? RD_READ : RD_WRITE, FRIG_MEM, 0);
		cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	}
	cr_assert_eq(received_in_a_turn(RD_READ), ENG_BURST);
	cr_assert_eq(received_in_a_turn(RD_WRITE), 2 * ENG_BURST);
	frig_stop();
}

Test(engine_falcon_known, a_turn_ends_after_a_burst_of_pull_requests_on_the_general_path)
{
	turns(general);
}

Test(engine_falcon_known, a_turn_ends_after_a_burst_of_pull_requests_on_the_known_path)
{
	turns(NULL);
}
