/* SPDX-License-Identifier: BSD-3-Clause */
/* The Internet checksum that comes with a record, and the CRC that goes with a slice. */
#include <criterion/criterion.h>

#include "transport_rig.h"

TestSuite(engine_sums, .init = pair_eal);

static struct world w;
static uint32_t conn[2];

static void
begin(uint16_t mtu_a, uint16_t mtu_b)
{
	pair_init(&w.pair);
	w.pair.cfg[SIDE_A].ports[0].mtu = mtu_a;
	w.pair.cfg[SIDE_B].ports[0].mtu = mtu_b;
	world_start(&w);
	listen_at(&w, SIDE_B);
	connect_both(&w, conn);
}

static uint64_t
wrong_sums(void)
{
	return pair_counter(w.pair.e[SIDE_B], "wire", "WIRE_TCP_CHECKSUM");
}

/* Sends a record of `len` bytes from A. Its checksum is correct, except for the bits `wrong`. */
static void
send_summed(uint8_t first, uint32_t len, uint16_t wrong)
{
	struct tcp_rec *rec = eng_rec_alloc(w.pair.e[SIDE_A]->stages[0]->store);

	cr_assert_not_null(rec);
	rec->len = len;
	for (uint32_t i = 0; i < len; i++)
		rec->data[i] = (uint8_t)(first + i);
	rec->sum = sk_sum_fold(sk_sum(0, rec->data, len)) ^ wrong;
	say(&w, SIDE_A, ENG_T_RECORD, conn[SIDE_A], rec, 0);
}

/* Makes B's engine stage use the CRCs of slices. */
static void
use_crc(bool use)
{
	say(&w, SIDE_B, ENG_T_CONSUMED, conn[SIDE_B], (void *)(uintptr_t)use, 0);
	turn(&w);
}

/* Receives the next slices at B, which have no more than `len` bytes. Checks that the first one has
 * a CRC if `crc` is true, and that none has one otherwise. Returns the number of bytes. */
static uint32_t
receive(uint32_t len, bool crc)
{
	struct eng_dmsg m = expect_told(&w, SIDE_B, ENG_E_DATA);
	struct tcp_slice *chain = (struct tcp_slice *)(uintptr_t)m.u;
	uint32_t n = 0;

	for (const struct tcp_slice *s = chain; s != NULL; n += s->len, s = s->next) {
		cr_assert_eq(s->crc_len, crc ? s->len - 4 : 0, "%u bytes", s->len);
		if (crc)
			cr_assert_eq(s->crc, sk_crc32c(SK_CRC32C_INIT, s->data, s->crc_len));
	}
	cr_assert(n > 0 && n <= len);
	eng_slice_free(chain);
	say(&w, SIDE_B, ENG_T_CONSUMED, conn[SIDE_B], (void *)(uintptr_t)crc, n);
	return n;
}

Test(engine_sums, the_frame_uses_the_sum_of_its_record)
{
	begin(1500, 1500);
	send_summed(1, 1000, 0);
	expect_bytes(&w, SIDE_B, conn[SIDE_B], 1, 1000);
	cr_assert_eq(wrong_sums(), 0);
	send_summed(2, 1000, 1);
	for (int i = 0; i < 20; i++)
		turn(&w);
	cr_assert_gt(wrong_sums(), 0, "the sum of the record was not used");
	pair_end(&w.pair);
}

Test(engine_sums, long_frames_use_the_sums_of_all_their_records)
{
	begin(9000, 9000);
	send_summed(1, 3000, 0);
	send_summed((uint8_t)(1 + 3000), 4000, 0);
	expect_bytes(&w, SIDE_B, conn[SIDE_B], 1, 7000);
	cr_assert_eq(wrong_sums(), 0);
	close_both(&w, conn);
	pair_end(&w.pair);
}

Test(engine_sums, one_record_without_a_sum_makes_the_stage_compute_it)
{
	begin(9000, 9000);
	send_bytes(&w, SIDE_A, conn[SIDE_A], 1, 3001);
	send_summed((uint8_t)(1 + 3001), 3000, 0x55);
	expect_bytes(&w, SIDE_B, conn[SIDE_B], 1, 6001);
	cr_assert_eq(wrong_sums(), 0);
	close_both(&w, conn);
	pair_end(&w.pair);
}

Test(engine_sums, the_parts_of_a_cut_record_are_summed_anew)
{
	begin(9000, 1500);
	send_summed(1, 4000, 0x55);
	expect_bytes(&w, SIDE_B, conn[SIDE_B], 1, 4000);
	cr_assert_eq(wrong_sums(), 0);
	close_both(&w, conn);
	pair_end(&w.pair);
}

Test(engine_sums, a_slice_of_a_whole_segment_has_a_crc_if_the_engine_stage_uses_it)
{
	static const struct {
		uint32_t len;
		bool use, crc;
	} cases[] = {{1000, false, false}, {1000, true, true}, {256, true, true},
		{1448, true, true}, {200, true, false}, {998, true, false}, {1000, false, false}};

	begin(1500, 1500);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		use_crc(cases[i].use);
		send_summed(1, cases[i].len, 0);
		cr_assert_eq(receive(cases[i].len, cases[i].crc), cases[i].len);
	}
	close_both(&w, conn);
	pair_end(&w.pair);
}

Test(engine_sums, a_payload_in_one_piece_of_several_has_a_crc)
{
	begin(9000, 9000);
	use_crc(true);
	send_summed(1, 8000, 0); /* an mbuf of headers, and one of the record */
	cr_assert_eq(receive(8000, true), 8000);
	use_crc(true);
	send_summed(1, 3000, 0);
	send_summed(2, 3000, 0); /* two pieces */
	for (uint32_t have = 0; have < 6000;)
		have += receive(6000, false);
	close_both(&w, conn);
	pair_end(&w.pair);
}

Test(engine_sums, a_wrong_checksum_is_refused_in_the_pass_that_computes_the_crc)
{
	struct eng_dmsg m;
	uint64_t bad;

	begin(1500, 1500);
	use_crc(true);
	bad = pair_counter(w.pair.e[SIDE_B], "eng", "ENG_RX_BAD");
	send_summed(1, 1000, 0x100);
	for (int i = 0; i < 20; i++) {
		turn(&w);
		cr_assert(!told(&w, SIDE_B, &m) || (m.id_type & 15) != ENG_E_DATA);
	}
	cr_assert_gt(wrong_sums(), 0);
	cr_assert_eq(pair_counter(w.pair.e[SIDE_B], "eng", "ENG_RX_BAD"), bad + wrong_sums());
	pair_end(&w.pair);
}
