/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: what a bind grants, to which QP, until when, and which binds are refused. */
#include "../../../lib/rdma/rdma.h"

#include <criterion/criterion.h>
#include <string.h>

#define BASE 0x10000
#define LEN  4096

#define READ   RD_ACC_REMOTE_READ
#define WRITE  RD_ACC_REMOTE_WRITE
#define ATOMIC RD_ACC_REMOTE_ATOMIC
#define ALL    (READ | WRITE | ATOMIC)

static const struct sk_key key = {{0x1122334455667788ull, 0x99aabbccddeeff00ull}};
static const struct rd_pd pd, other_pd;
static const struct rd_qp qp = {.qpn = 5, .pd = &pd, .access = ALL};
static const struct rd_qp other_qp = {.qpn = 6, .pd = &pd, .access = ALL};
static const struct rd_qp foreign_qp = {.qpn = 7, .pd = &other_pd, .access = ALL};
static struct rd_mr_table *t;
static struct rd_mr region, plain, unwritable, foreign; /* all but `plain` allow windows */
static struct rd_mw one, two;

static void
enter(struct rd_mr *mr, uint64_t base, uint32_t access, const struct rd_pd *of)
{
	*mr = (struct rd_mr){.access = access, .pd = of, .base = base, .len = LEN, .valid = true};
	cr_assert_eq(rd_mr_add(t, mr, 9), 0);
}

static void
up(void)
{
	t = rd_mr_table_create(64, &key);
	enter(&region, BASE, RD_ACC_LOCAL_WRITE | RD_ACC_MW_BIND, &pd);
	enter(&plain, 2 * BASE, RD_ACC_LOCAL_WRITE | ALL, &pd);
	enter(&unwritable, 3 * BASE, RD_ACC_MW_BIND, &pd);
	enter(&foreign, 4 * BASE, RD_ACC_LOCAL_WRITE | RD_ACC_MW_BIND, &other_pd);
	rd_mw_init(&one, &pd, RD_MW_TYPE_1);
	rd_mw_init(&two, &pd, RD_MW_TYPE_2);
	cr_assert_eq(rd_mr_add(t, &one.mr, 0x10), 0);
	cr_assert_eq(rd_mr_add(t, &two.mr, 0x20), 0);
}

static void
down(void)
{
	rd_mw_fini(&one);
	rd_mw_fini(&two);
	cr_assert_eq(region.windows & ~RD_MR_CLOSED, 0, "a window kept its region");
	rd_mr_table_destroy(t);
}

TestSuite(rdma_mw, .init = up, .fini = down);

/* Binds bytes 64 to 191 of the region. */
static struct rd_bind
bind_to(const struct rd_mw *mw, uint8_t new_key, uint32_t access)
{
	return (struct rd_bind){
		.stag = (mw->mr.stag & ~0xffu) | new_key,
		.region = region.stag,
		.addr = BASE + 64,
		.len = 128,
		.access = access,
	};
}

static enum rd_bind_result
bind(const struct rd_qp *by, const struct rd_mw *mw, uint8_t new_key, uint32_t access)
{
	struct rd_bind b = bind_to(mw, new_key, access);

	return rd_mw_bind(t, by, &b);
}

/* Checks an access of `by`'s peer. The bytes behind a granted access must be inside the region. */
static enum rd_fault
use(const struct rd_qp *by, uint32_t stag, uint64_t addr, uint64_t len, uint32_t need)
{
	struct rd_mr *mr;
	enum rd_fault f = rd_remote_check(t, by, stag, &addr, len, need, &mr);

	if (f == RD_OK) {
		cr_assert_eq(mr, &region);
		cr_assert(addr >= BASE + 64 && addr + len <= BASE + 192, "%lx", addr);
	}
	return f;
}

Test(rdma_mw, a_window_that_is_not_bound_grants_nothing)
{
	struct rd_mr *mr;

	cr_assert_eq(use(&qp, one.mr.stag, BASE + 64, 1, 0), RD_FAULT_STAG);
	cr_assert_eq(use(&qp, two.mr.stag, BASE + 64, 1, 0), RD_FAULT_STAG);
	cr_assert_eq(rd_invalidate_check(t, &qp, one.mr.stag, false, &mr), RD_FAULT_STAG);
	cr_assert_eq(rd_invalidate_check(t, &qp, two.mr.stag, true, &mr), RD_FAULT_STAG);
}

static void
inside_and_outside(const struct rd_mw *mw, const struct rd_qp *by, uint64_t at)
{
	uint32_t stag = mw->mr.stag;

	cr_assert_eq(use(by, stag, at, 128, READ), RD_OK);
	cr_assert_eq(use(by, stag, at + 127, 1, WRITE), RD_OK);
	cr_assert_eq(use(by, stag, at + 127, 2, READ), RD_FAULT_BOUNDS);
	cr_assert_eq(use(by, stag, at - 1, 1, READ), RD_FAULT_BOUNDS);
	cr_assert_eq(use(by, stag, at + 128, 1, READ), RD_FAULT_BOUNDS);
	cr_assert_eq(use(by, stag, at + 2, ~0ull, READ), RD_FAULT_WRAP);
	cr_assert_eq(use(by, stag, at, 8, ATOMIC), RD_FAULT_ACCESS);
	cr_assert_eq(use(by, stag ^ 1, at, 1, READ), RD_FAULT_STAG);
	cr_assert_eq(use(&foreign_qp, stag, at, 1, READ), RD_FAULT_PD);
}

Test(rdma_mw, a_bound_window_grants_its_bytes_and_rights_rfc5040_7_2)
{
	cr_assert_eq(bind(&qp, &one, 0x11, READ | WRITE), RD_BIND_DONE);
	inside_and_outside(&one, &qp, BASE + 64);
	inside_and_outside(&one, &other_qp, BASE + 64);
	cr_assert_eq(bind(&qp, &two, 0x20, READ | WRITE), RD_BIND_DONE);
	inside_and_outside(&two, &qp, BASE + 64);
	cr_assert_eq(region.windows, 2);
}

Test(rdma_mw, a_zero_based_window_counts_from_its_first_byte)
{
	uint64_t addr = 100;
	struct rd_mr *mr;

	cr_assert_eq(bind(&qp, &two, 1, READ | WRITE | RD_ACC_ZERO_BASED), RD_BIND_DONE);
	inside_and_outside(&two, &qp, 0);
	cr_assert_eq(rd_remote_check(t, &qp, two.mr.stag, &addr, 28, READ, &mr), RD_OK);
	cr_assert_eq(addr, BASE + 64 + 100);
	cr_assert_eq(use(&qp, two.mr.stag, BASE + 64, 1, READ), RD_FAULT_BOUNDS);
}

Test(rdma_mw, a_bind_may_name_the_local_write_of_its_region)
{
	struct rd_mw *const windows[] = {&one, &two};

	for (int i = 0; i < 2; i++) {
		struct rd_mr *mr;

		cr_assert_eq(bind(&qp, windows[i], 9, READ | RD_ACC_LOCAL_WRITE), RD_BIND_DONE);
		cr_assert_eq(windows[i]->mr.access, READ, "a window grants remote rights alone");
		cr_assert_neq(rd_mr_check(t, &pd, 5, windows[i]->mr.stag, BASE + 64, 1,
				      RD_ACC_LOCAL_WRITE, &mr),
			RD_OK);
	}
}

Test(rdma_mw, a_window_gives_no_local_access)
{
	struct rd_mr *mr;

	cr_assert_eq(bind(&qp, &one, 0x11, READ | WRITE), RD_BIND_DONE);
	cr_assert_eq(rd_mr_check(t, &pd, 5, one.mr.stag, BASE + 64, 1, 0, &mr), RD_FAULT_ACCESS);
	cr_assert_eq(rd_mr_check(t, &pd, 5, one.mr.stag, BASE + 64, 1, RD_ACC_LOCAL_WRITE, &mr),
		RD_FAULT_ACCESS);
	cr_assert_eq(rd_mr_check(t, &other_pd, 5, one.mr.stag, BASE + 64, 1, 0, &mr), RD_FAULT_PD);
}

Test(rdma_mw, what_the_qp_does_not_grant_a_window_does_not_either)
{
	struct rd_qp narrow = {.qpn = 5, .pd = &pd, .access = READ};

	cr_assert_eq(bind(&qp, &one, 0x11, READ | WRITE), RD_BIND_DONE);
	cr_assert_eq(use(&narrow, one.mr.stag, BASE + 64, 1, READ), RD_OK);
	cr_assert_eq(use(&narrow, one.mr.stag, BASE + 64, 1, WRITE), RD_FAULT_ACCESS);
	cr_assert_eq(use(&narrow, one.mr.stag, BASE + 63, 1, WRITE), RD_FAULT_BOUNDS);
}

/* Verbs: each bind of a type 1 window sets a new key and ends the previous bind. */
Test(rdma_mw, a_type_1_window_is_bound_anew_and_unbound)
{
	struct rd_bind b;
	uint32_t first;

	cr_assert_eq(bind(&qp, &one, 0x11, READ), RD_BIND_DONE);
	first = one.mr.stag;
	cr_assert_eq(bind(&qp, &one, 0x11, READ), RD_BIND_REFUSED, "the key that it has");
	b = bind_to(&one, 0x12, WRITE);
	b.region = unwritable.stag;
	b.addr = unwritable.base;
	b.access = READ;
	cr_assert_eq(rd_mw_bind(t, &other_qp, &b), RD_BIND_CHANGED);
	cr_assert(region.windows == 0 && unwritable.windows == 1);
	cr_assert_eq(use(&qp, first, BASE + 64, 1, READ), RD_FAULT_STAG);
	cr_assert_eq(use(&qp, one.mr.stag, BASE + 64, 1, READ), RD_FAULT_BOUNDS);
	b = (struct rd_bind){.stag = first + 2, .region = 0x12345678};
	cr_assert_eq(rd_mw_bind(t, &qp, &b), RD_BIND_CHANGED);
	cr_assert_eq(unwritable.windows, 0);
	cr_assert_eq(use(&qp, first + 2, unwritable.base, 1, READ), RD_FAULT_STAG);
	b.stag++;
	cr_assert_eq(rd_mw_bind(t, &qp, &b), RD_BIND_DONE, "unbound twice");
	cr_assert_eq(bind(&qp, &one, 0x80, READ), RD_BIND_DONE);
	cr_assert_eq(use(&qp, one.mr.stag, BASE + 64, 128, READ), RD_OK);
}

Test(rdma_mw, a_type_2_window_belongs_to_its_qp_until_it_is_invalidated)
{
	struct rd_mr *mr;
	uint32_t stag;

	cr_assert_eq(bind(&qp, &two, 0x99, READ), RD_BIND_DONE);
	stag = two.mr.stag;
	cr_assert_eq(stag & 0xff, 0x99, "the consumer's key");
	cr_assert_eq(use(&qp, stag, BASE + 64, 1, READ), RD_OK);
	cr_assert_eq(use(&other_qp, stag, BASE + 64, 1, READ), RD_FAULT_PD);
	cr_assert_eq(bind(&qp, &two, 0x9a, READ), RD_BIND_REFUSED);
	cr_assert_eq(rd_invalidate_check(t, &other_qp, stag, false, &mr), RD_FAULT_PD);
	cr_assert_eq(rd_invalidate_check(t, &other_qp, stag, true, &mr), RD_FAULT_PD);
	cr_assert_eq(rd_invalidate_check(t, &qp, stag + 1, true, &mr), RD_FAULT_STAG);
	cr_assert_eq(rd_invalidate_check(t, &qp, stag, true, &mr), RD_OK);
	cr_assert_eq(rd_invalidate_check(t, &qp, stag, false, &mr), RD_OK);
	cr_assert(rd_mr_invalidate(mr));
	cr_assert_eq(region.windows, 0);
	cr_assert_eq(use(&qp, stag, BASE + 64, 1, READ), RD_FAULT_STAG);
	cr_assert_eq(bind(&other_qp, &two, 0x99, READ), RD_BIND_DONE, "the same key will do");
	cr_assert_eq(use(&qp, stag, BASE + 64, 1, READ), RD_FAULT_PD);
	cr_assert_eq(use(&other_qp, stag, BASE + 64, 1, READ), RD_OK);
}

Test(rdma_mw, a_type_1_window_is_not_invalidated)
{
	struct rd_mr *mr;

	cr_assert_eq(bind(&qp, &one, 0x11, READ), RD_BIND_DONE);
	cr_assert_eq(rd_invalidate_check(t, &qp, one.mr.stag, true, &mr), RD_FAULT_ACCESS);
	cr_assert_eq(rd_invalidate_check(t, &qp, one.mr.stag, false, &mr), RD_FAULT_ACCESS);
	cr_assert_eq(use(&qp, one.mr.stag, BASE + 64, 1, READ), RD_OK);
}

/* A refused bind must leave no traces. */
Test(rdma_mw, binds_that_are_refused_verbs)
{
	const struct rd_bind of_one = bind_to(&one, 0x11, READ);
	const struct rd_bind of_two = bind_to(&two, 0x11, READ);
	const struct {
		const char *name;
		const struct rd_qp *qp;
		struct rd_bind b;
	} rows[] = {
		{"another domain's QP", &foreign_qp, of_one},
		{"another domain's QP, type 2", &foreign_qp, of_two},
		{"another domain's region", &qp,
			{of_one.stag, foreign.stag, foreign.base, 1, READ}},
		{"a region without the right", &qp, {of_one.stag, plain.stag, plain.base, 1, READ}},
		{"write without local write", &qp,
			{of_one.stag, unwritable.stag, unwritable.base, 1, WRITE}},
		{"atomic without local write", &qp,
			{of_two.stag, unwritable.stag, unwritable.base, 8, ATOMIC}},
		{"no region", &qp, {of_one.stag, region.stag ^ 1, BASE, 1, READ}},
		{"a window for a region", &qp, {of_one.stag, two.mr.stag, BASE, 1, READ}},
		{"a region for a window", &qp, {region.stag, region.stag, BASE, 1, READ}},
		{"no window", &qp, {of_one.stag ^ 0x100, region.stag, BASE, 1, READ}},
		{"before the region", &qp, {of_one.stag, region.stag, BASE - 1, 2, READ}},
		{"beyond the region", &qp, {of_one.stag, region.stag, BASE, LEN + 1, READ}},
		{"behind the region", &qp, {of_two.stag, region.stag, BASE + LEN, 1, READ}},
		{"wraps", &qp, {of_two.stag, region.stag, BASE + 1, ~0ull, READ}},
		{"bind", &qp, {of_two.stag, region.stag, BASE, 1, READ | RD_ACC_MW_BIND}},
		{"no such right", &qp, {of_two.stag, region.stag, BASE, 1, 0x80000000}},
		{"zero-based type 1", &qp,
			{of_one.stag, region.stag, BASE, 1, READ | RD_ACC_ZERO_BASED}},
		{"no bytes, type 2", &qp, {of_two.stag, region.stag, BASE, 0, READ}},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		cr_assert_eq(
			rd_mw_bind(t, rows[i].qp, &rows[i].b), RD_BIND_REFUSED, "%s", rows[i].name);
		cr_assert_not(one.mr.valid || two.mr.valid, "%s", rows[i].name);
		cr_assert(one.mr.stag != of_one.stag && two.mr.stag != of_two.stag, "%s",
			rows[i].name);
		cr_assert(
			region.windows + plain.windows + unwritable.windows + foreign.windows == 0,
			"%s: a region is held", rows[i].name);
	}
}

Test(rdma_mw, a_region_with_windows_bound_stays)
{
	struct rd_mr *mr;

	cr_assert_eq(bind(&qp, &one, 0x11, READ), RD_BIND_DONE);
	cr_assert_eq(bind(&qp, &two, 0x11, READ), RD_BIND_DONE);
	cr_assert_not(rd_mr_close(&region));
	cr_assert_not(rd_mr_invalidate(&region));
	cr_assert(region.valid);
	cr_assert_eq(rd_invalidate_check(t, &qp, region.stag, false, &mr), RD_FAULT_ACCESS);
	rd_mr_invalidate(&two.mr);
	cr_assert_not(rd_mr_close(&region));
	rd_mw_fini(&one);
	cr_assert(rd_mr_close(&region));
	cr_assert(rd_mr_close(&region), "it stays closed");
	cr_assert_eq(bind(&qp, &two, 0x12, READ), RD_BIND_REFUSED);
	cr_assert(rd_mr_invalidate(&region));
	cr_assert_not(region.valid);
}

Test(rdma_mw, an_invalidated_region_is_not_bound_to)
{
	cr_assert(rd_mr_invalidate(&region));
	cr_assert_eq(bind(&qp, &one, 0x11, READ), RD_BIND_REFUSED);
	cr_assert_eq(region.windows, RD_MR_CLOSED);
}

/* A peer may not invalidate a region to which it never had access; the owner may. */
Test(rdma_mw, a_peer_without_access_invalidates_no_region_rfc5040_7_2)
{
	struct rd_mr *mr;

	cr_assert_eq(rd_invalidate_check(t, &qp, plain.stag, true, &mr), RD_OK);
	cr_assert_eq(rd_invalidate_check(t, &qp, region.stag, true, &mr), RD_FAULT_ACCESS);
	cr_assert_eq(rd_invalidate_check(t, &qp, region.stag, false, &mr), RD_OK);
	cr_assert_eq(rd_invalidate_check(t, &qp, foreign.stag, false, &mr), RD_FAULT_PD);
	cr_assert(rd_mr_invalidate(&plain));
	cr_assert_eq(rd_invalidate_check(t, &qp, plain.stag, true, &mr), RD_FAULT_STAG);
}

/* While another stage binds the window, it is neither bound nor used here; the caller tries
 * again. */
Test(rdma_mw, a_window_that_is_being_bound_is_busy)
{
	cr_assert_eq(bind(&qp, &one, 0x11, READ), RD_BIND_DONE);
	one.seq++;
	cr_assert_eq(bind(&qp, &one, 0x12, READ), RD_BIND_BUSY);
	cr_assert_eq(use(&qp, one.mr.stag, BASE + 64, 1, READ), RD_FAULT_STAG);
	cr_assert_eq(region.windows, 1);
	one.seq++;
	cr_assert_eq(bind(&qp, &one, 0x12, READ), RD_BIND_CHANGED);
	cr_assert_eq(region.windows, 1);
}

Test(rdma_mw, a_request_names_what_to_bind)
{
	struct rd_wr wr = {.rkey = 0x111,
		.imm = 0xffffffff00000222ull,
		.remote_addr = 3,
		.data = 1ull << 40,
		.compare = READ};
	struct rd_bind b = rd_bind_of(&wr);

	cr_assert(b.stag == 0x111 && b.region == 0x222 && b.addr == 3 && b.len == 1ull << 40);
	cr_assert_eq(b.access, READ);
	wr.compare |= 1ull << 32;
	cr_assert_neq(rd_bind_of(&wr).access, READ, "no bit is lost");
}
