/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions: access checks, the location of their bytes, and the order of stores. */
#include "../../../lib/base/check.h"
#include "../../../lib/rdma/rdma.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct sk_key key = {{0x1122334455667788ull, 0x99aabbccddeeff00ull}};
static const struct rd_pd pd, other_pd;
static struct rd_mr_table *t;

static void
up(void)
{
	t = rd_mr_table_create(64, &key);
	cr_assert(t);
}

static void
down(void)
{
	rd_mr_table_destroy(t);
}

TestSuite(rdma_mr, .init = up, .fini = down);

static struct rd_mr
region(uint64_t base, uint64_t len, uint32_t access)
{
	return (struct rd_mr){.access = access, .pd = &pd, .base = base, .len = len, .valid = true};
}

static enum rd_fault
check(const struct rd_mr *mr, uint64_t addr, uint64_t len, uint32_t need)
{
	struct rd_mr *out;
	enum rd_fault f = rd_mr_check(t, &pd, 5, mr->stag, addr, len, need, &out);

	if (f == RD_OK)
		cr_assert_eq(out, mr);
	return f;
}

Test(rdma_mr, an_stag_leads_to_its_region_until_it_is_removed)
{
	struct rd_mr mr[64];

	for (unsigned i = 0; i < 64; i++) {
		mr[i] = region(0, 1, 0);
		cr_assert_eq(rd_mr_add(t, &mr[i], (uint8_t)i), 0);
		cr_assert_eq(mr[i].stag & 0xff, i);
		cr_assert_eq(rd_mr_count(t), i + 1);
	}
	for (unsigned i = 0; i < 64; i++) {
		cr_assert_eq(rd_mr_lookup(t, mr[i].stag), &mr[i]);
		for (unsigned k = 0; k < i; k++)
			cr_assert_neq(mr[i].stag >> 8, mr[k].stag >> 8, "two regions in a slot");
	}
	for (int i = 0; i < 64; i += 2)
		rd_mr_del(t, &mr[i]);
	rd_mr_del(t, &mr[0]);
	cr_assert_eq(rd_mr_count(t), 32);
	for (int i = 0; i < 64; i++)
		cr_assert_eq(rd_mr_lookup(t, mr[i].stag), i % 2 ? &mr[i] : NULL);
}

Test(rdma_mr, all_32_bits_of_an_stag_count)
{
	struct rd_mr mr = region(0, 1, 0);

	rd_mr_add(t, &mr, 0x42);
	for (int bit = 0; bit < 32; bit++)
		cr_assert_null(rd_mr_lookup(t, mr.stag ^ 1u << bit), "bit %d", bit);
}

Test(rdma_mr, a_full_table_refuses_and_a_freed_slot_serves_again)
{
	struct rd_mr mr[65];

	for (int i = 0; i < 65; i++) {
		mr[i] = region(0, 1, 0);
		cr_assert_eq(rd_mr_add(t, &mr[i], 0), i < 64 ? 0 : -ENOSPC);
	}
	rd_mr_del(t, &mr[17]);
	cr_assert_eq(rd_mr_add(t, &mr[64], 0), 0);
	cr_assert_eq(rd_mr_lookup(t, mr[64].stag), &mr[64]);
}

Test(rdma_mr, a_table_has_a_power_of_two_of_slots)
{
	cr_assert_null(rd_mr_table_create(0, &key));
	cr_assert_null(rd_mr_table_create(3, &key));
	cr_assert_null(rd_mr_table_create(1u << 25, &key));
	down();
	t = rd_mr_table_create(1, &key);
	cr_assert(t);
}

/* ReDMArk: neither the STags that a peer has seen nor the order in which slots are used allow it to
 * predict the next STag. */
Test(rdma_mr, stags_are_spread_over_24_bits_and_depend_on_the_key)
{
	struct sk_key other = key;
	struct rd_mr_table *u;
	uint32_t seen_top = 0, same = 0, steps[63];
	struct rd_mr a[64], b[64];

	other.k[1] ^= 1;
	u = rd_mr_table_create(64, &other);
	for (unsigned i = 0; i < 64; i++) {
		a[i] = b[i] = region(0, 1, 0);
		rd_mr_add(t, &a[i], 0);
		rd_mr_add(u, &b[i], 0);
		seen_top |= 1u << (a[i].stag >> 28);
		same += a[i].stag == b[i].stag;
	}
	cr_assert_leq(same, 1);
	cr_assert_geq(__builtin_popcount(seen_top), 12, "upper bits: %x", seen_top);
	for (int i = 0; i < 63; i++)
		steps[i] = a[i + 1].stag - a[i].stag;
	for (int i = 0; i < 63; i++) {
		unsigned equal = 0;

		for (int k = 0; k < 63; k++)
			equal += steps[k] == steps[i];
		cr_assert_leq(equal, 4, "a constant step of %x", steps[i]);
	}
	rd_mr_table_destroy(u);
}

Test(rdma_mr, each_violation_has_its_fault_rfc5040_7_2)
{
	struct rd_mr mr = region(0x1000, 0x100, RD_ACC_REMOTE_WRITE);
	struct rd_mr *out;

	rd_mr_add(t, &mr, 7);
	cr_assert_eq(check(&mr, 0x1000, 0x100, RD_ACC_REMOTE_WRITE), RD_OK);
	cr_assert_eq(check(&mr, 0x10ff, 1, RD_ACC_REMOTE_WRITE), RD_OK);
	cr_assert_eq(check(&mr, 0x10ff, 2, RD_ACC_REMOTE_WRITE), RD_FAULT_BOUNDS);
	cr_assert_eq(check(&mr, 0x1100, 1, RD_ACC_REMOTE_WRITE), RD_FAULT_BOUNDS);
	cr_assert_eq(check(&mr, 0xfff, 1, RD_ACC_REMOTE_WRITE), RD_FAULT_BOUNDS);
	cr_assert_eq(check(&mr, 0, 0x100, RD_ACC_REMOTE_WRITE), RD_FAULT_BOUNDS);
	cr_assert_eq(check(&mr, 0x1000, ~0ull - 0x1000, 0), RD_FAULT_BOUNDS);
	cr_assert_eq(check(&mr, 0x1000, ~0ull, 0), RD_FAULT_WRAP);
	cr_assert_eq(check(&mr, ~0ull, 2, 0), RD_FAULT_WRAP);
	cr_assert_eq(check(&mr, ~0ull, 1, 0), RD_FAULT_BOUNDS);
	cr_assert_eq(check(&mr, 0x1000, 1, RD_ACC_REMOTE_READ), RD_FAULT_ACCESS);
	cr_assert_eq(
		check(&mr, 0x1000, 1, RD_ACC_REMOTE_WRITE | RD_ACC_LOCAL_WRITE), RD_FAULT_ACCESS);
	cr_assert_eq(rd_mr_check(t, &other_pd, 5, mr.stag, 0x1000, 1, 0, &out), RD_FAULT_PD);
	cr_assert_eq(rd_mr_check(t, &pd, 5, mr.stag ^ 1, 0x1000, 1, 0, &out), RD_FAULT_STAG);
	mr.bound_qpn = 6;
	cr_assert_eq(check(&mr, 0x1000, 1, 0), RD_FAULT_PD);
	mr.bound_qpn = 5;
	cr_assert_eq(check(&mr, 0x1000, 1, 0), RD_OK);
	mr.valid = false;
	cr_assert_eq(check(&mr, 0x1000, 1, 0), RD_FAULT_STAG);
}

Test(rdma_mr, a_length_of_zero_needs_no_valid_stag_rfc5040)
{
	struct rd_mr mr = region(0x1000, 0x100, 0), *out = &mr;

	cr_assert_eq(rd_mr_check(t, &pd, 5, 0x12345678, ~0ull, 0, ~0u, &out), RD_OK);
	cr_assert_null(out);
}

Test(rdma_mr, a_region_may_end_at_the_last_address)
{
	struct rd_mr mr = region((uint64_t)0 - 0x100, 0x100, 0);

	rd_mr_add(t, &mr, 0);
	cr_assert_eq(check(&mr, (uint64_t)0 - 0x100, 0x100, 0), RD_OK);
	cr_assert_eq(check(&mr, ~0ull, 1, 0), RD_OK);
	cr_assert_eq(check(&mr, ~0ull, 2, 0), RD_FAULT_WRAP);
}

/* Three extents of 10, 1 and 21 bytes. */
static struct rd_extent extents[] = {{0, 10, NULL}, {10, 1, NULL}, {11, 21, NULL}};

static struct rd_mr
scattered(uint8_t store[64])
{
	struct rd_mr mr = region(0x1000, 32, 0);

	extents[0].host = store + 40;
	extents[1].host = store + 3;
	extents[2].host = store + 10;
	mr.nextents = 3;
	mr.extents = extents;
	return mr;
}

Test(rdma_mr, bytes_are_found_in_their_extents)
{
	uint8_t store[64];
	struct rd_mr mr = scattered(store);
	uint64_t run;

	cr_assert_eq(rd_mr_at(&mr, 0x1000, &run), store + 40);
	cr_assert_eq(run, 10);
	cr_assert_eq(rd_mr_at(&mr, 0x1009, &run), store + 49);
	cr_assert_eq(run, 1);
	cr_assert_eq(rd_mr_at(&mr, 0x100a, &run), store + 3);
	cr_assert_eq(run, 1);
	cr_assert_eq(rd_mr_at(&mr, 0x100b, &run), store + 10);
	cr_assert_eq(run, 21);
	cr_assert_eq(rd_mr_at(&mr, 0x101f, &run), store + 30);
	cr_assert_eq(run, 1);
}

Test(rdma_mr, copies_cross_extents_and_touch_nothing_else)
{
	for (uint32_t off = 0; off < 32; off++) {
		for (uint32_t len = 0; off + len <= 32; len++) {
			uint8_t store[64], src[32], got[32], flat[32];
			struct rd_mr mr = scattered(store);
			uint64_t sum;

			memset(store, 0xcc, sizeof(store));
			for (int i = 0; i < 32; i++)
				src[i] = (uint8_t)(i + 1);
			rd_mr_write(&mr, 0x1000 + off, src, len);
			rd_mr_read(&mr, 0x1000, flat, 32);
			for (uint32_t i = 0; i < 32; i++) {
				bool in = i >= off && i < off + len;

				cr_assert_eq(flat[i], in ? src[i - off] : 0xcc, "%u+%u: byte %u",
					off, len, i);
			}
			cr_assert(store[2] == 0xcc && store[4] == 0xcc && store[9] == 0xcc &&
				  store[31] == 0xcc && store[39] == 0xcc && store[50] == 0xcc);
			sum = rd_mr_read_sum(&mr, 0x1000 + off, got, len);
			cr_assert_eq(memcmp(got, src, len), 0);
			cr_assert_eq(sk_sum_fold(sum), sk_sum_fold(sk_sum(0, got, len)));
			memset(got, 0, sizeof(got));
			rd_mr_read(&mr, 0x1000 + off, got, len);
			cr_assert_eq(memcmp(got, src, len), 0);
		}
	}
}

/* Copies all lengths at all alignments: the ordered store at the end must neither omit a byte nor
 * exceed the range. */
Test(rdma_mr, an_ordered_copy_is_exact_at_each_alignment)
{
	for (uint32_t at = 0; at < 16; at++) {
		for (uint32_t len = 1; len < 80; len++) {
			_Alignas(16) uint8_t store[128];
			struct rd_extent x = {0, 128, store};
			struct rd_mr mr = region(0, 128, 0);
			uint8_t src[80];

			mr.nextents = 1;
			mr.extents = &x;
			memset(store, 0xcc, sizeof(store));
			for (uint32_t i = 0; i < len; i++)
				src[i] = (uint8_t)(at + i);
			rd_mr_write(&mr, at, src, len);
			for (uint32_t i = 0; i < 128; i++) {
				bool in = i >= at && i < at + len;

				cr_assert_eq(store[i], in ? (uint8_t)i : 0xcc, "%u+%u: byte %u", at,
					len, i);
			}
		}
	}
}
