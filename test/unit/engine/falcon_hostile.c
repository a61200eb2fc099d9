/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forged frames to a running engine. Each is dropped and counted with its own reason, nothing of it
 * is placed, and the connections continue. Without encryption an attacker who has all values of a
 * connection can act as its peer, so here the attacker lacks some of them. Under PSP the attacker
 * may have everything except the keys.
 */
#include <criterion/criterion.h>
#include <rte_mbuf.h>
#include <string.h>

#include "../../../lib/engine/stage/stage_priv.h"
#include "../../../lib/engine/transport/falcon/falcon_priv.h"
#include "../../support/udp_sum.h"
#include "falcon_rig.h"

#define L4          (ETH_LEN + IP4_LEN)
#define PSP         (L4 + UDP_LEN)
#define FLAGS       (PSP + 3) /* S, D, version */
#define SPI         (PSP + 4)
#define FALCON      (PSP + PSP_LEN)
#define CID         (FALCON + 1)
#define PSN         (FALCON + 16)
#define RSN         (FALCON + 20)
#define REQUEST_LEN (FALCON + 26)
#define PAYLOAD     (FALCON + FALCON_PUSH_DATA_LEN)
#define LEN         100 /* bytes of the Write whose packet is forged */
#define MARK        0x5c

TestSuite(engine_falcon_hostile, .init = pair_eal);

struct frame {
	uint8_t b[2048];
	uint32_t len;
};

static struct fnode attacked[2]; /* the QPs of the connection whose frames are forged */
static struct frame real, foreign;
static uint64_t rng = 0x9e3779b97f4a7c15ull;

static uint32_t
pick(uint32_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng >> 32) % n;
}

static void
put16(struct frame *f, unsigned at, uint32_t v)
{
	f->b[at] = (uint8_t)(v >> 8);
	f->b[at + 1] = (uint8_t)v;
}

/* Adds 1 to the 32-bit number, big-endian, at byte `at`. */
static void
next_number(struct frame *f, unsigned at)
{
	for (unsigned i = at + 4; i-- > at && ++f->b[i] == 0;)
		;
}

static void
ip_sum(struct frame *f)
{
	uint16_t sum;

	put16(f, ETH_LEN + 10, 0);
	sum = wire_sum_fold(wire_sum(0, f->b + ETH_LEN, IP4_LEN));
	memcpy(f->b + ETH_LEN + 10, &sum, 2);
}

/* Makes the IP and UDP checksums correct for the contents of the frame. */
static void
sums(struct frame *f)
{
	struct sk_addr src = sk_addr_v4(f->b + ETH_LEN + 12), dst = sk_addr_v4(f->b + ETH_LEN + 16);

	ip_sum(f);
	udp_sum_set(f->b + L4, f->len - L4, &src, &dst);
}

/* Sets the IP and UDP lengths to those of the frame. */
static void
lengths(struct frame *f)
{
	put16(f, ETH_LEN + 2, f->len - ETH_LEN);
	put16(f, L4 + 4, f->len - L4);
	sums(f);
}

/* Ends keeping frames, and returns the packet with the LEN bytes that node 0 sent. */
static struct frame
kept(void)
{
	struct frame f = {.len = 0};

	frig.keep = -1;
	while (frig.nkept > 0) {
		struct rte_mbuf *m = frig.kept[--frig.nkept];

		if (m->pkt_len > PAYLOAD + LEN) {
			f.len = m->pkt_len;
			cr_assert_not_null(rte_pktmbuf_read(m, 0, f.len, f.b));
			memcpy(f.b, rte_pktmbuf_mtod(m, uint8_t *), f.len);
		}
		rte_pktmbuf_free(m);
	}
	cr_assert_gt(f.len, 0, "the packet did not come past");
	return f;
}

/* Returns the packet with which a Write of node 0 arrives at node 1. */
static struct frame
capture(void)
{
	memset(frig.n[0].mem, MARK, LEN);
	frig.keep = 1;
	frig_post(0, RD_WRITE, LEN, 0);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	return kept();
}

/* Starts two connections between the same hosts, and captures a frame of each. */
static void
start(void (*tweak)(struct eng_config *cfg, int node))
{
	frig_start(tweak);
	frig_connect();
	real = capture();
	attacked[0] = frig.n[0];
	attacked[1] = frig.n[1];
	frig_connect();
	foreign = capture();
	memset(frig.n[1].mem, 0, FRIG_MEM);
}

/* Checks that both connections still work, and stops the rig. */
static void
stop(void)
{
	struct saker_qp *neighbour[2] = {frig.n[0].qp, frig.n[1].qp};

	frig_works();
	for (int i = 0; i < 2; i++)
		frig.n[i].qp = attacked[i].qp;
	frig_works();
	for (int i = 0; i < 2; i++)
		frig.n[i].qp = neighbour[i];
	frig_stop();
}

/* Injects a frame, and checks that it is dropped and counted with the reason. */
static void
dropped(const struct frame *f, const char *layer, const char *reason)
{
	uint64_t before = frig_count(1, layer, reason), bad = frig_count(1, "eng", "ENG_RX_BAD");

	frig_inject(1, f->b, f->len);
	frig_turns(20);
	cr_assert_eq(frig_count(1, layer, reason), before + 1, "%s did not count", reason);
	if (strcmp(layer, "fa") != 0)
		cr_assert_eq(frig_count(1, "eng", "ENG_RX_BAD"), bad + 1);
	for (unsigned i = 0; i < LEN; i++)
		cr_assert_eq(frig.n[1].mem[i], 0, "%s: it was placed", reason);
}

/* Injects the real frame with one byte changed and correct checksums. */
static void
changed(unsigned at, uint8_t by, const char *layer, const char *reason)
{
	struct frame f = real;

	f.b[at] ^= by;
	sums(&f);
	dropped(&f, layer, reason);
}

/* ---- In clear ---- */

Test(engine_falcon_hostile, headers_that_cannot_be_are_counted_each_by_its_reason)
{
	struct frame f;

	start(NULL);
	changed(CID, 0x55, "eng", "ENG_FALCON_NO_CONN");
	changed(ETH_LEN + 15, 0x07, "eng", "ENG_FALCON_NO_CONN"); /* the source address */
	changed(SPI + 3, 0x01, "psp", "PSP_WRONG_SPI");
	changed(FLAGS, PSP_NO_CRYPTO << 2, "psp", "PSP_WRONG_VERSION"); /* GCM-128 */
	changed(FLAGS, 0x08 << 2, "wire", "WIRE_PSP_VERSION");
	changed(PSP + 1, 0x01, "wire", "WIRE_PSP_HEADER");
	changed(PSP, 0xff, "wire", "WIRE_IP_PROTOCOL"); /* the next header */
	changed(FALCON, 0x20, "wire", "WIRE_FALCON_VERSION");
	f = real;
	f.b[L4 + UDP_CKSUM_OFFSET] ^= 0x10;
	dropped(&f, "wire", "WIRE_UDP_CHECKSUM");
	f = real;
	put16(&f, L4 + UDP_CKSUM_OFFSET, 0);
	dropped(&f, "wire", "WIRE_UDP_CHECKSUM");
	f = real;
	f.b[PAYLOAD + 20] ^= 1;
	dropped(&f, "wire", "WIRE_UDP_CHECKSUM");
	f = real;
	f.b[ETH_LEN + 6] |= 0x20; /* more fragments */
	ip_sum(&f);
	dropped(&f, "wire", "WIRE_IP_FRAGMENT");
	stop();
}

Test(engine_falcon_hostile, udp_lengths_must_be_ips_9_2_2_1)
{
	struct frame f = {0};

	start(NULL);
	f = real;
	put16(&f, L4 + 4, f.len - L4 - 1);
	sums(&f);
	dropped(&f, "wire", "WIRE_UDP_HEADER");
	f = real;
	put16(&f, L4 + 4, f.len - L4 + 1);
	sums(&f);
	dropped(&f, "wire", "WIRE_UDP_HEADER");
	f = real;
	put16(&f, L4 + 4, 7);
	sums(&f);
	dropped(&f, "wire", "WIRE_UDP_HEADER");
	stop();
}

/* The frame comes from the same host, so only the SPI shows that it belongs to another connection
 * (9.2.2.3). */
Test(engine_falcon_hostile, another_connections_cid_is_of_no_use)
{
	struct frame f;

	start(NULL);
	f = real;
	memcpy(f.b + CID, foreign.b + CID, 3);
	cr_assert_arr_neq(f.b + CID, real.b + CID, 3);
	sums(&f);
	dropped(&f, "psp", "PSP_WRONG_SPI");
	stop();
}

/* Returns a packet of a type that arrived at node 1 while node 1 ran `something`. */
static struct frame
answer(uint8_t type, void (*something)(void))
{
	struct frame f = {.len = 0};

	frig.keep = 1;
	something();
	frig.keep = -1;
	while (frig.nkept > 0) {
		struct rte_mbuf *m = frig.kept[--frig.nkept];
		const uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

		if (m->pkt_len >= FALCON + FALCON_BASE_LEN && p[ETH_LEN + 9] == IP_UDP &&
			(p[FALCON + 7] >> 1 & 15) == type && f.len == 0) {
			f.len = m->pkt_len;
			memcpy(f.b, p, f.len);
		}
		rte_pktmbuf_free(m);
	}
	cr_assert_gt(f.len, 0, "no packet of type %u", type);
	return f;
}

static void
write_something(void)
{
	frig_post(1, RD_WRITE, 2000, 0);
	cr_assert_eq(frig_wc(1).status, RD_SUCCESS);
	frig_turns(50);
}

/* The receive is posted later than the Send. */
static void
send_something(void)
{
	frig_post(1, RD_SEND, 100, 0);
	frig_turns(200);
	frig_recv(0, 3);
	cr_assert_eq(frig_wc(1).status, RD_SUCCESS);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
}

/* The engine does not use the window bases of such a packet, which acknowledge here what was never
 * sent. It reports to the connection manager, though not for each packet (9.2.2.3). */
Test(engine_falcon_hostile, the_spi_of_acks_and_nacks_is_checked_9_2_2_3)
{
	static const uint8_t types[] = {FALCON_BACK, FALCON_NACK};
	uint64_t future;

	start(NULL);
	for (unsigned i = 0; i < 2; i++) {
		struct frame f = answer(types[i], i == 0 ? write_something : send_something);

		f.b[FALCON + 8] ^= 0x40; /* data window base */
		f.b[SPI + 3] ^= 1;
		sums(&f);
		future = frig_count(1, "fa", "FA_FUTURE_ACK") + frig_count(1, "fa", "FA_STALE_ACK");
		for (unsigned k = 0; k < 5; k++)
			dropped(&f, "psp", "PSP_WRONG_SPI");
		cr_assert_eq(
			frig_count(1, "fa", "FA_FUTURE_ACK") + frig_count(1, "fa", "FA_STALE_ACK"),
			future);
		f.b[SPI + 3] ^= 1; /* with the correct SPI the packet reaches the window */
		sums(&f);
		frig_inject(1, f.b, f.len);
		frig_turns(20);
		cr_assert_eq(
			frig_count(1, "fa", "FA_FUTURE_ACK") + frig_count(1, "fa", "FA_STALE_ACK"),
			future + 1);
	}
	cr_assert_geq(frig_count(1, "eng", "ENG_FALCON_SPI_TOLD"), 1);
	cr_assert_leq(frig_count(1, "eng", "ENG_FALCON_SPI_TOLD"), 3, "of ten");
	stop();
}

Test(engine_falcon_hostile, a_replayed_packet_places_nothing)
{
	struct saker_qp *neighbour;

	start(NULL);
	neighbour = frig.n[0].qp;
	dropped(&real, "fa", "FA_DUPLICATE");
	/* When the connection's time has advanced far enough, PSP drops the packet before the
	 * window. */
	frig_sleep(30000000);
	frig.n[0].qp = attacked[0].qp;
	memset(frig.n[0].mem, 0, LEN);
	frig_post(0, RD_WRITE, LEN, 0);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	frig.n[0].qp = neighbour;
	dropped(&real, "psp", "PSP_REPLAYED");
	stop();
}

/* A port may split a frame anywhere behind the UDP header. The packet is then still a duplicate of
 * the one that arrived before, and not a damaged one. */
Test(engine_falcon_hostile, a_frame_in_two_pieces_is_the_same_frame)
{
	start(NULL);
	for (uint32_t cut = PSP; cut < real.len; cut++) {
		uint64_t before = frig_count(1, "fa", "FA_DUPLICATE");

		frig_inject_cut(1, real.b, real.len, cut);
		frig_turns(3);
		cr_assert_eq(frig_count(1, "fa", "FA_DUPLICATE"), before + 1, "cut at %u", cut);
	}
	stop();
}

/* The frame is cut at every byte, with and without lengths that match. */
Test(engine_falcon_hostile, truncated_packets_place_nothing)
{
	start(NULL);
	for (uint32_t len = 1; len < real.len; len++) {
		uint64_t bad = frig_count(1, "eng", "ENG_RX_BAD");
		struct frame f = real;

		f.len = len;
		frig_inject(1, f.b, f.len);
		frig_turns(3);
		if (len > ETH_LEN)
			cr_assert_gt(frig_count(1, "eng", "ENG_RX_BAD"), bad, "%u bytes", len);
		bad = frig_count(1, "eng", "ENG_RX_BAD");
		if (len >= L4 + UDP_LEN && len < PAYLOAD) {
			lengths(&f);
			frig_inject(1, f.b, f.len);
			frig_turns(3);
			cr_assert_gt(frig_count(1, "eng", "ENG_RX_BAD"), bad, "%u bytes", len);
		}
	}
	for (unsigned i = 0; i < LEN; i++)
		cr_assert_eq(frig.n[1].mem[i], 0);
	stop();
}

/* Random datagrams to the port of PSP do not affect the connections. */
Test(engine_falcon_hostile, garbage_for_psps_port)
{
	uint64_t bad;

	start(NULL);
	bad = frig_count(1, "eng", "ENG_RX_BAD");
	for (unsigned i = 0; i < 3000; i++) {
		struct frame f = real;

		f.len = PSP + pick(200);
		for (unsigned k = PSP; k < f.len; k++)
			f.b[k] = (uint8_t)pick(256);
		if (i % 2 && f.len > FLAGS) { /* with correct headers, so that the packet passes
						 more checks */
			memcpy(f.b + PSP, real.b + PSP, 4);
			f.b[PSP + 2] = (uint8_t)pick(64);
		}
		lengths(&f);
		frig_inject(1, f.b, f.len);
		frig_turn();
	}
	frig_turns(10);
	cr_assert_eq(frig_count(1, "eng", "ENG_RX_BAD"), bad + 3000);
	for (unsigned i = 0; i < LEN; i++)
		cr_assert_eq(frig.n[1].mem[i], 0);
	stop();
}

/* Without encryption, an attacker who reads the wire can end a connection, but cannot affect the
 * engine or the connection beside it. */
Test(engine_falcon_hostile, forged_packets_harm_their_own_connection_at_most)
{
	start(NULL);
	for (unsigned i = 0; i < 3000; i++) {
		struct frame f = real;

		for (unsigned n = 1 + pick(6); n > 0; n--)
			f.b[FALCON + 4 + pick(FALCON_PUSH_DATA_LEN + 12)] = (uint8_t)pick(256);
		sums(&f);
		frig_inject(1, f.b, f.len);
		frig_turn();
	}
	frig_turns(100);
	frig_works();
	frig_stop();
}

/* ---- Under PSP ---- */

static void
sealed(struct eng_config *cfg, int node)
{
	cfg->falcon.psps = ROFX_PSP(PSP_AES_GCM_128);
	cfg->falcon.tls = pair_tls('k');
}

static void
authenticated(struct eng_config *cfg, int node)
{
	sealed(cfg, node);
	cfg->falcon.psps = ROFX_PSP(PSP_GMAC_256);
}

/* Checks that a change of any byte of the datagram is detected. */
static void
no_byte(void)
{
	uint64_t bad, icv = frig_count(1, "psp", "PSP_BAD_ICV");

	for (unsigned at = PSP; at < real.len; at++) {
		struct frame f = real;

		bad = frig_count(1, "eng", "ENG_RX_BAD");
		f.b[at] ^= (uint8_t)(1 + pick(255));
		sums(&f);
		frig_inject(1, f.b, f.len);
		frig_turns(3);
		cr_assert_eq(frig_count(1, "eng", "ENG_RX_BAD"), bad + 1, "byte %u", at - PSP);
	}
	cr_assert_geq(frig_count(1, "psp", "PSP_BAD_ICV") - icv, real.len - FALCON - 4);
	for (unsigned i = 0; i < LEN; i++)
		cr_assert_eq(frig.n[1].mem[i], 0);
}

Test(engine_falcon_hostile, no_byte_of_an_encrypted_packet_can_be_changed)
{
	start(sealed);
	for (unsigned i = PAYLOAD; i + 8 <= real.len; i++)
		cr_assert(memcmp(real.b + i, "\x5c\x5c\x5c\x5c\x5c\x5c\x5c\x5c", 8) != 0,
			"the payload can be read");
	no_byte();
	stop();
}

Test(engine_falcon_hostile, no_byte_of_an_authenticated_packet_can_be_changed)
{
	start(authenticated);
	no_byte();
	stop();
}

Test(engine_falcon_hostile, a_sealed_packet_is_good_for_its_connection_only)
{
	struct frame f;

	start(sealed);
	f = real;
	memcpy(f.b + CID, foreign.b + CID, 3);
	sums(&f);
	dropped(&f, "psp", "PSP_WRONG_SPI");
	memcpy(f.b + SPI, foreign.b + SPI, 4);
	sums(&f);
	dropped(&f, "psp", "PSP_BAD_ICV");
	f = real;
	f.b[FLAGS] ^= (PSP_AES_GCM_128 ^ PSP_GMAC_128) << 2;
	sums(&f);
	dropped(&f, "psp", "PSP_WRONG_VERSION");
	f = real;
	f.b[FLAGS] ^= (PSP_AES_GCM_128 ^ PSP_NO_CRYPTO) << 2;
	sums(&f);
	dropped(&f, "psp", "PSP_WRONG_VERSION");
	dropped(&real, "fa", "FA_DUPLICATE");
	stop();
}

/* The answer has no payload: nothing of the request can be trusted. */
Test(engine_falcon_hostile, a_pull_with_invalid_headers_is_answered_falcon_8_5_3_5)
{
	struct eng_transport *t;
	struct eng_falcon *f;
	struct fa_buf *b;

	frig_start(NULL);
	frig_connect();
	t = frig.n[0].e->transports[0];
	f = eng_falcon_of(t);
	b = eng_fbuf_alloc(t->rx_pool);
	cr_assert_not_null(b);
	memset(b->data, 0, 8);
	b->data_len = b->len = 8;
	fa_pull(f->conns[0].fa, frig.now, b, 64);
	f->work = true;
	frig_turns(100);
	cr_assert_eq(frig_count(1, "rof", "ROF_BAD_HEADER"), 1);
	cr_assert_eq(frig_count(0, "rof", "ROF_BAD_RESPONSE"), 1, "of a request it did not make");
	frig_stop();
}

/* ---- A peer that does not respect IRD ---- */

/* Makes the engine of node 0 start `ord` Reads at once on its last QP, whatever was agreed. */
static void
break_ord(uint32_t ord)
{
	struct eng_stage *s = frig.n[0].e->stages[0];
	struct eng_qp *last = NULL;

	for (uint32_t i = 0; i < s->nqps; i++)
		if (s->qps[i] != NULL && s->qps[i]->rd.qpn == saker_qp_num(frig.n[0].qp))
			last = s->qps[i];
	cr_assert_not_null(last);
	cr_assert_eq(last->rd.ord, 1);
	last->rd.ord = ord;
}

Test(engine_falcon_hostile, reads_beyond_ird_get_a_nack_and_come_again_falcon_8_2_1_1)
{
	frig_start(NULL);
	frig_connect();
	attacked[0] = frig.n[0];
	attacked[1] = frig.n[1];
	frig_connect_reads(SAKER_FALCON, 1);
	break_ord(FRIG_DEPTH);
	for (unsigned i = 0; i < 1024; i++)
		frig.n[1].mem[i] = (uint8_t)(3 * i + 1);
	for (unsigned i = 0; i < FRIG_DEPTH; i++)
		frig_post(0, RD_READ, 1024, 0);
	for (unsigned i = 0; i < FRIG_DEPTH; i++)
		cr_assert_eq(frig_wc(0).status, RD_SUCCESS, "%u", i);
	cr_assert_arr_eq(frig.n[0].mem, frig.n[1].mem, 1024);
	cr_assert_geq(frig_count(1, "fa", "FA_PULLS_EXCESS"), FRIG_DEPTH - 1);
	stop();
}

/* ---- A peer that sends requests without a byte ---- */

/* A push without a payload has no buffer. Behind a Send that waits for a receive, it has to come
 * again as every other request. */
Test(engine_falcon_hostile, empty_push_behind_a_refused_send_comes_again_falcon_7_8)
{
	struct saker_qp *neighbour[2];
	struct frame send, empty;

	frig_start(NULL);
	frig_connect();
	neighbour[0] = frig.n[0].qp;
	neighbour[1] = frig.n[1].qp;
	frig_connect();
	frig.keep = 1;
	frig.silent = true;
	frig_post(0, RD_SEND, LEN, 0);
	frig_turns(30);
	send = kept();
	frig.silent = false;
	sums(&send);
	empty = send;
	empty.len = PAYLOAD;
	next_number(&empty, PSP + 12); /* low half of the IV */
	next_number(&empty, PSN);
	next_number(&empty, RSN);
	put16(&empty, REQUEST_LEN, 0);
	lengths(&empty);
	frig_inject(1, send.b, send.len);
	frig_inject(1, empty.b, empty.len);
	frig_turns(5);
	cr_assert_geq(frig_count(1, "rof", "ROF_NO_RECEIVE"), 1);
	cr_assert_geq(frig_count(1, "fa", "FA_RNR_OUT"), 2, "that of the push counts, too");
	for (int i = 0; i < 2; i++)
		frig.n[i].qp = neighbour[i];
	frig_works();
	frig_stop();
}
