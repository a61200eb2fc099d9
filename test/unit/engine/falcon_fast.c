/* SPDX-License-Identifier: BSD-3-Clause */
/* The fast path of Falcon frames to send, compared with the general one: same bytes. */
#include <criterion/criterion.h>
#include <rte_ring.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/base/check.h"
#include "../../../lib/base/mem.h"
#include "../../../lib/engine/transport/falcon/falcon_priv.h"
#include "falcon_rig.h"

TestSuite(engine_falcon_fast, .init = pair_eal);

#define LONGEST 2200u

static uint64_t rng = 1;

static uint32_t
draw(void)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(rng >> 32);
}

/* Sends `out` and sets frame[] to the frame on the wire. Returns its length, or 0 when none was
 * sent. The state of the connection is then as before. */
static uint32_t
frame_of(struct eng_falcon_conn *fc, const struct fa_out *out, bool fast, uint8_t *frame)
{
	struct eng_transport *t = frig.n[0].e->transports[0];
	struct psp_iv iv = fc->iv;
	uint16_t ip_id = t->ip_id;
	struct rte_mbuf *m;
	uint32_t len = 0;
	void *p;

	eng_falcon_of(t)->general = !fast;
	eng_falcon_of(t)->checked = NULL;
	if (fast && !eng_falcon_output_fast(t, fc, out))
		return 0;
	if (!fast)
		cr_assert_eq(eng_falcon_output(t, fc->fa, out), 0);
	if (eng_falcon_of(t)->seals.n > 0)
		eng_falcon_seal(t);
	eng_tx_flush(t);
	while (rte_ring_dequeue(frig.to[1], &p) == 0) {
		const uint8_t *at;

		m = p;
		len = m->pkt_len;
		at = rte_pktmbuf_read(m, 0, len, frame);
		if (at != frame)
			memcpy(frame, at, len);
		rte_pktmbuf_free(m);
	}
	fc->iv = iv;
	t->ip_id = ip_id;
	return len;
}

static struct eng_falcon_conn *
start(void (*tweak)(struct eng_config *cfg, int node))
{
	frig_start(tweak);
	frig_connect();
	return &eng_falcon_of(frig.n[0].e->transports[0])->conns[0];
}

static struct fa_buf *
payload(void)
{
	struct fa_buf *b = eng_fbuf_alloc(frig.n[0].e->transports[0]->rx_pool);

	cr_assert_not_null(b);
	return b;
}

/* Compares the frames of one push. Returns whether the fast path built it. */
static bool
compare(struct eng_falcon_conn *fc, const struct fa_out *out)
{
	static uint8_t fast[4096], general[4096];
	uint32_t n = frame_of(fc, out, true, fast), len;

	if (n == 0)
		return false;
	len = frame_of(fc, out, false, general);
	cr_assert_eq(n, len);
	cr_assert_arr_eq(fast, general, n);
	return true;
}

static uint8_t psp_version;

static void
sealed(struct eng_config *cfg, int node)
{
	cfg->falcon.psps = ROFX_PSP(psp_version);
	cfg->falcon.tls = pair_tls('k');
}

static struct eng_falcon_conn *
start_sealed(uint8_t version)
{
	psp_version = version;
	return start(sealed);
}

/* Puts a VLAN tag into the headers of the connection's path. */
static void
tag(struct eng_falcon_conn *fc)
{
	static const uint8_t vlan[] = {0x81, 0x00, 0x00, 0x2a};
	uint8_t *at = fc->path.head + ETH_LEN - 2;

	memmove(at + sizeof(vlan), at, IP_MAX + 2);
	memcpy(at, vlan, sizeof(vlan));
	fc->path.l2_len = ETH_LEN + sizeof(vlan);
}

/* Compares the frames of packets of one type with payloads of all lengths. */
static void
compare_lengths(struct eng_falcon_conn *fc, uint8_t type)
{
	uint8_t bytes[LONGEST];
	unsigned taken = 0;

	for (uint32_t len = 0; len < LONGEST; len++) {
		struct wire_falcon h = {.type = type,
			.ar = len & 1,
			.proto = FALCON_RDMA,
			.cid = draw() & FALCON_CID_MAX,
			.function = draw() & 0xffffff,
			.dbpsn = draw(),
			.rbpsn = draw(),
			.psn = draw(),
			.rsn = draw(),
			.request_len = (uint16_t)len};
		struct fa_buf *b = payload();
		struct fa_out out = {.hdr = &h, .payload = b, .path = draw() & 0xfffff};

		/* Bytes of 0xff make sums with many carries. */
		for (uint32_t i = 0; i < len; i++)
			bytes[i] = len % 3 == 0 ? 0xff : (uint8_t)draw();
		memcpy(b->data, bytes, len);
		b->data_len = b->len = len;
		taken += compare(fc, &out);
		eng_fbuf_free(b);
	}
	cr_assert_gt(taken, 1000);
}

/* Compares the frames of a connection in clear. */
static void
compare_clear(uint8_t type)
{
	compare_lengths(start(NULL), type);
	frig_stop();
}

/* Compares the sealed frames of a connection, whose path has a VLAN or not. */
static void
compare_sealed(uint8_t version, bool vlan)
{
	struct eng_falcon_conn *fc = start_sealed(version);

	if (vlan)
		tag(fc);
	compare_lengths(fc, FALCON_PUSH_DATA);
	compare_lengths(fc, FALCON_PULL_REQUEST);
	compare_lengths(fc, FALCON_PULL_DATA);
	frig_stop();
}

Test(engine_falcon_fast, frames_of_short_pushes_are_those_of_the_general_path)
{
	compare_clear(FALCON_PUSH_DATA);
}

Test(engine_falcon_fast, so_are_frames_of_pull_requests)
{
	compare_clear(FALCON_PULL_REQUEST);
}

Test(engine_falcon_fast, so_are_frames_of_pull_data)
{
	compare_clear(FALCON_PULL_DATA);
}

Test(engine_falcon_fast, frames_sealed_by_gcm_are_those_of_the_general_path_falcon_9_2_2_1)
{
	compare_sealed(PSP_AES_GCM_256, false);
}

Test(engine_falcon_fast, frames_sealed_by_gmac_are_those_of_the_general_path_falcon_9_2_2_1)
{
	compare_sealed(PSP_GMAC_128, false);
}

Test(engine_falcon_fast, sealed_frames_with_a_vlan_are_those_of_the_general_path)
{
	compare_sealed(PSP_AES_GCM_128, true);
}

#define RUN (2 * ENG_FALCON_SEALS + 5)

/* Sends a run of packets, some of which take the general path in any case, and returns their
 * frames one behind the other. */
static uint32_t
run_of(struct eng_falcon_conn *fc, bool fast, uint8_t *frames, uint32_t size)
{
	struct eng_transport *t = frig.n[0].e->transports[0];
	struct psp_iv iv = fc->iv;
	uint16_t ip_id = t->ip_id;
	uint32_t len = 0;
	void *p;

	eng_falcon_of(t)->general = !fast;
	eng_falcon_of(t)->checked = NULL;
	for (uint32_t i = 0; i < RUN; i++) {
		static const uint8_t types[] = {
			FALCON_PUSH_DATA, FALCON_PULL_REQUEST, FALCON_PULL_DATA, FALCON_PUSH_DATA};
		bool resync = i % 11 == 10; /* it has no payload */
		struct wire_falcon h = {.type = resync ? FALCON_RESYNC : types[i & 3],
			.psn = i,
			.request_len = (uint16_t)(8 + i)};
		struct fa_buf *b = payload();
		struct fa_out out = {.hdr = &h, .payload = resync ? NULL : b, .path = i & 3};

		memset(b->data, (int)i, 8 + i);
		b->data_len = b->len = 8 + i;
		cr_assert_eq(eng_falcon_output(t, fc->fa, &out), 0);
		eng_fbuf_free(b); /* the source is not used after the call */
	}
	if (eng_falcon_of(t)->seals.n > 0)
		eng_falcon_seal(t);
	eng_tx_flush(t);
	while (rte_ring_dequeue(frig.to[1], &p) == 0) {
		struct rte_mbuf *m = p;

		cr_assert_leq(len + m->pkt_len, size);
		memcpy(frames + len, rte_pktmbuf_mtod(m, void *), m->pkt_len);
		len += m->pkt_len;
		rte_pktmbuf_free(m);
	}
	fc->iv = iv;
	t->ip_id = ip_id;
	return len;
}

Test(engine_falcon_fast, a_run_of_sealed_packets_leaves_in_order_and_sealed)
{
	struct eng_falcon_conn *fc = start_sealed(PSP_AES_GCM_256);
	static uint8_t fast[RUN * 256], general[RUN * 256];
	uint32_t n = run_of(fc, false, general, sizeof(general));

	cr_assert_gt(n, RUN * 100);
	cr_assert_eq(run_of(fc, true, fast, sizeof(fast)), n);
	cr_assert_arr_eq(fast, general, n);
	frig_stop();
}

/* The check of a path may send frames and change the path. */
Test(engine_falcon_fast, frames_are_sealed_before_the_path_of_another_connection_is_checked)
{
	struct eng_falcon_conn *fc = start_sealed(PSP_AES_GCM_256), other = *fc;
	struct eng_transport *t = frig.n[0].e->transports[0];
	struct eng_falcon *f = eng_falcon_of(t);
	struct eng_tx *tx = &t->tx[fc->path.port];
	struct wire_falcon h = {.type = FALCON_PUSH_DATA, .request_len = 8};
	struct fa_buf *b = payload();
	struct fa_out out = {.hdr = &h, .payload = b};

	memset(b->data, 1, 8);
	b->data_len = b->len = 8;
	f->checked = NULL;
	eng_tx_flush(t);
	for (unsigned i = 0; i < ENG_FALCON_SEALS + 8; i++)
		cr_assert(eng_falcon_output_fast(t, fc, &out));
	cr_assert_eq(f->seals.n, 8);
	cr_assert_eq(tx->n, ENG_FALCON_SEALS);
	other.path.generation = 0; /* the path is to be resolved again */
	cr_assert(eng_falcon_output_fast(t, &other, &out));
	cr_assert_eq(f->seals.n, 1);
	cr_assert_eq(tx->n, ENG_FALCON_SEALS + 8);
	eng_falcon_seal(t);
	eng_tx_flush(t);
	cr_assert_eq(tx->n, 0);
	eng_fbuf_free(b);
	frig_stop();
}

Test(engine_falcon_fast, a_payload_that_carries_its_sum_gives_the_same_frames_rfc_1071)
{
	struct eng_falcon_conn *fc = start(NULL);
	static uint8_t want[4096], got[4096];
	unsigned taken = 0;

	for (uint32_t len = 1; len < LONGEST; len++) {
		struct wire_falcon h = {.type = len & 2 ? FALCON_PUSH_DATA : FALCON_PULL_DATA,
			.proto = FALCON_RDMA,
			.cid = draw() & FALCON_CID_MAX,
			.psn = draw(),
			.rsn = draw(),
			.request_len = (uint16_t)len};
		struct fa_buf *b = payload();
		struct fa_out out = {.hdr = &h, .payload = b, .path = draw() & 0xfffff};
		uint32_t n;

		for (uint32_t i = 0; i < len; i++)
			b->data[i] = len % 3 == 0 ? 0xff : (uint8_t)draw();
		b->data_len = b->len = len;
		n = frame_of(fc, &out, false, want);
		cr_assert_gt(n, len);
		b->sum = sk_sum_fold(sk_sum(0, b->data, len));
		cr_assert_eq(frame_of(fc, &out, false, got), n);
		cr_assert_arr_eq(got, want, n, "%u bytes", len);
		if (frame_of(fc, &out, true, got) > 0) {
			cr_assert_arr_eq(got, want, n, "%u bytes", len);
			taken++;
		}
		eng_fbuf_free(b);
	}
	cr_assert_gt(taken, 500);
	frig_stop();
}

/* The frame shows that the sum is used: a wrong one is found by the receiver only. */
Test(engine_falcon_fast, the_sum_of_a_payload_is_not_computed_again)
{
	struct eng_falcon_conn *fc = start(NULL);
	static uint8_t right[4096], wrong[4096];

	for (uint32_t len = 300; len < LONGEST; len += 200) {
		struct wire_falcon h = {.type = FALCON_PUSH_DATA, .proto = FALCON_RDMA};
		struct fa_buf *b = payload();
		struct fa_out out = {.hdr = &h, .payload = b};
		uint32_t n;

		memset(b->data, 1, len);
		b->data_len = b->len = len;
		b->sum = sk_sum_fold(sk_sum(0, b->data, len));
		n = frame_of(fc, &out, false, right);
		b->sum ^= 0x100;
		cr_assert_eq(frame_of(fc, &out, false, wrong), n);
		cr_assert_arr_neq(right, wrong, n, "%u bytes", len);
		eng_fbuf_free(b);
	}
	frig_stop();
}

Test(engine_falcon_fast, a_sum_of_zero_becomes_all_ones_rfc_768)
{
	struct eng_falcon_conn *fc = start(NULL);
	struct wire_falcon h = {.type = FALCON_PUSH_DATA, .proto = FALCON_RDMA, .request_len = 2};
	struct fa_buf *b = payload();
	struct fa_out out = {.hdr = &h, .payload = b};
	unsigned ones = 0;
	uint8_t frame[256];

	b->data_len = b->len = 2;
	/* Some value of these two bytes makes the sum zero. */
	for (uint32_t v = 0; v < 0x10000; v++) {
		b->data[0] = (uint8_t)v;
		b->data[1] = (uint8_t)(v >> 8);
		cr_assert_gt(frame_of(fc, &out, true, frame), 0);
		ones += frame[ETH_LEN + IP4_LEN + UDP_CKSUM_OFFSET] == 0xff &&
			frame[ETH_LEN + IP4_LEN + UDP_CKSUM_OFFSET + 1] == 0xff;
		cr_assert(frame[ETH_LEN + IP4_LEN + UDP_CKSUM_OFFSET] != 0 ||
			  frame[ETH_LEN + IP4_LEN + UDP_CKSUM_OFFSET + 1] != 0);
	}
	cr_assert_gt(ones, 0);
	eng_fbuf_free(b);
	frig_stop();
}

Test(engine_falcon_fast, other_packets_take_the_general_path)
{
	struct eng_falcon_conn *fc = start(NULL);
	struct wire_falcon h = {.type = FALCON_RESYNC, .proto = FALCON_RDMA};
	struct fa_buf *b = payload();
	struct fa_out out = {.hdr = &h};

	b->data_len = b->len = 8;
	cr_assert_not(compare(fc, &out), "a Resync");
	h.type = FALCON_PULL_DATA;
	cr_assert_not(compare(fc, &out), "pull data without bytes");
	h.type = FALCON_PUSH_DATA;
	h.request_len = 8;
	out.payload = b;
	cr_assert(compare(fc, &out));
	fc->extra = PSP_VC_LEN;
	cr_assert_not(compare(fc, &out), "a cookie");
	fc->extra = 0;
	frig.n[0].e->ports[0].udp_cksum = true;
	cr_assert_not(compare(fc, &out), "a port that computes checksums");
	frig.n[0].e->ports[0].udp_cksum = false;
	fc->path.l3_len = IP6_LEN;
	cr_assert_not(eng_falcon_output_fast(frig.n[0].e->transports[0], fc, &out), "IPv6");
	fc->path.l3_len = IP4_LEN;
	eng_fbuf_free(b);
	frig_stop();
}
