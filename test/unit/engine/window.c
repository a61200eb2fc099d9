/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows at the control stage: refused commands, references between windows and regions,
 * quotas, and the end of a client with bound windows. The test binds as an engine stage does.
 */
#include "script.h"

#include <criterion/criterion.h>
#include <errno.h>

static struct script *s;
static struct hand a, b;
static uint32_t pd;

static void
setup(void)
{
	s = script_new(NULL);
	hand_attach(&a, s);
	hand_attach(&b, s);
	pd = hand_pd(&a);
}

static void
finish(void)
{
	struct eng_totals t = {0};

	eng_control_detach(s->control, a.number);
	eng_control_detach(s->control, b.number);
	script_turns(s, 50);
	eng_control_totals(s->control, &t);
	cr_assert_eq(t.clients + t.mrs + t.mws + t.pds, 0);
	cr_assert_eq(rd_mr_count(s->mrs), 0);
	script_free(s);
	hand_free(&a);
	hand_free(&b);
}

TestSuite(engine_window, .init = setup, .fini = finish);

static struct shm_mw
make_mw(enum rd_mw_type type)
{
	struct shm_msg m = {.body.mw = {.pd = pd, .type = type}};

	cr_assert_eq(hand_do(&a, &m, SHM_MW_CREATE), 0, "%s", m.body.text);
	return m.body.mw;
}

static struct shm_mr
make_mr(void)
{
	struct shm_msg m = {.body.mr = {.pd = pd,
				    .access = RD_ACC_LOCAL_WRITE | RD_ACC_MW_BIND,
				    .base = 0x1000,
				    .len = 4096,
				    .nextents = 1,
				    .extents = {{.offset = a.h.mem, .len = 4096}}}};

	cr_assert_eq(hand_do(&a, &m, SHM_MR_CREATE), 0, "%s", m.body.text);
	return m.body.mr;
}

static enum rd_bind_result
bind(struct shm_mw *mw, const struct shm_mr *mr, uint64_t len)
{
	const struct rd_qp qp = {.qpn = 5, .pd = rd_mr_lookup(s->mrs, mw->stag)->pd};
	struct rd_bind bind = {.stag = (mw->stag & ~0xffu) | ((mw->stag + 1) & 0xff),
		.region = mr->stag,
		.addr = 0x1000,
		.len = len,
		.access = RD_ACC_REMOTE_READ};

	mw->stag = bind.stag;
	return rd_mw_bind(s->mrs, &qp, &bind);
}

Test(engine_window, windows_that_are_refused)
{
	const struct shm_mw bad[] = {{.pd = pd + 1, .type = 1}, {.pd = UINT32_MAX, .type = 2},
		{.pd = pd, .type = 0}, {.pd = pd, .type = 3}, {.pd = pd, .type = UINT32_MAX}};
	struct shm_msg m;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		m = (struct shm_msg){.body.mw = bad[i]};
		cr_assert_eq(hand_do(&a, &m, SHM_MW_CREATE), -EINVAL, "row %u", i);
	}
	/* The command names the protection domain of another client, which has the same handle or
	 * none. */
	m = (struct shm_msg){.body.mw = {.pd = pd, .type = 1}};
	cr_assert_eq(hand_do(&b, &m, SHM_MW_CREATE), -EINVAL);
	cr_assert_eq(rd_mr_count(s->mrs), 0);
	cr_assert_eq(hand_destroy(&a, SHM_MW_DESTROY, 0), -EINVAL);
	cr_assert_eq(hand_destroy(&a, SHM_MW_DESTROY, make_mr().mr), -EINVAL, "no window");
	cr_assert_eq(hand_destroy(&a, SHM_MR_DESTROY, UINT32_MAX), -EINVAL);
}

Test(engine_window, a_window_is_in_the_table_until_it_is_freed)
{
	struct shm_mw one = make_mw(RD_MW_TYPE_1), two = make_mw(RD_MW_TYPE_2);
	struct rd_mr *mr = rd_mr_lookup(s->mrs, one.stag);

	cr_assert(mr && mr->window && !mr->valid);
	cr_assert_eq(((struct rd_mw *)mr)->type, RD_MW_TYPE_1);
	cr_assert_neq(one.stag >> 8, two.stag >> 8);
	cr_assert_eq(hand_destroy(&a, SHM_PD_DESTROY, pd), -EBUSY);
	cr_assert_eq(hand_destroy(&a, SHM_MW_DESTROY, one.mw), 0);
	cr_assert_null(rd_mr_lookup(s->mrs, one.stag));
	cr_assert_eq(hand_destroy(&a, SHM_MW_DESTROY, one.mw), -EINVAL);
	cr_assert_eq(hand_destroy(&a, SHM_MW_DESTROY, two.mw), 0);
	cr_assert_eq(hand_destroy(&a, SHM_PD_DESTROY, pd), 0);
}

Test(engine_window, a_region_with_a_window_bound_is_busy)
{
	struct shm_mr mr = make_mr();
	struct shm_mw one = make_mw(RD_MW_TYPE_1), two = make_mw(RD_MW_TYPE_2);

	cr_assert_eq(bind(&one, &mr, 64), RD_BIND_DONE);
	cr_assert_eq(bind(&two, &mr, 64), RD_BIND_DONE);
	cr_assert_eq(hand_destroy(&a, SHM_MR_DESTROY, mr.mr), -EBUSY);
	cr_assert_not_null(rd_mr_lookup(s->mrs, mr.stag), "it stays in use");
	cr_assert_eq(bind(&one, &mr, 0), RD_BIND_CHANGED);
	cr_assert_eq(hand_destroy(&a, SHM_MR_DESTROY, mr.mr), -EBUSY);
	/* A destroyed window no longer holds its region. */
	cr_assert_eq(hand_destroy(&a, SHM_MW_DESTROY, two.mw), 0);
	cr_assert_eq(hand_destroy(&a, SHM_MR_DESTROY, mr.mr), 0);
	cr_assert_eq(bind(&one, &mr, 64), RD_BIND_REFUSED);
}

/* A stage that has looked up the window may bind it until its loop has passed a quiet point. */
Test(engine_window, a_window_holds_its_region_until_all_loops_were_quiet)
{
	struct shm_mr mr = make_mr();
	struct shm_mw one = make_mw(RD_MW_TYPE_1);
	struct shm_msg m = {.body.handle = one.mw};

	cr_assert_eq(bind(&one, &mr, 64), RD_BIND_DONE);
	s->reader_busy = true;
	hand_send(&a, &m, SHM_MW_DESTROY);
	cr_assert_not(hand_next(&a, &m), "answered while a stage may be binding it");
	cr_assert_null(rd_mr_lookup(s->mrs, one.stag));
	cr_assert_eq(hand_destroy(&a, SHM_MR_DESTROY, mr.mr), -EBUSY);
	s->reader_busy = false;
	cr_assert(hand_next(&a, &m));
	cr_assert_eq(m.status, 0);
	cr_assert_eq(hand_destroy(&a, SHM_MR_DESTROY, mr.mr), 0);
}

Test(engine_window, quotas_hold_per_client_and_in_all)
{
	uint32_t pdb = hand_pd(&b), first = 0;
	struct shm_msg m;

	for (uint32_t i = 0; i < s->cfg.limits.client_mws; i++)
		first = make_mw(RD_MW_TYPE_2).mw;
	m = (struct shm_msg){.body.mw = {.pd = pd, .type = 1}};
	cr_assert_eq(hand_do(&a, &m, SHM_MW_CREATE), -EDQUOT);
	cr_assert_eq(script_counter(s, ENG_QUOTA), 1);
	make_mr(); /* memory regions have a quota of their own */
	for (uint32_t i = 0; i < s->cfg.limits.client_mws; i++) {
		m = (struct shm_msg){.body.mw = {.pd = pdb, .type = 1}};
		cr_assert_eq(hand_do(&b, &m, SHM_MW_CREATE), 0);
	}
	cr_assert_eq(hand_destroy(&a, SHM_MW_DESTROY, first), 0);
	make_mw(RD_MW_TYPE_1);
}

static void
one_in_all(struct eng_config *cfg)
{
	cfg->limits.mws = 1;
}

Test(engine_window, the_instance_has_a_limit_too)
{
	struct shm_msg m;

	finish();
	s = script_new(one_in_all);
	hand_attach(&a, s);
	hand_attach(&b, s);
	pd = hand_pd(&a);
	make_mw(RD_MW_TYPE_1);
	m = (struct shm_msg){.body.mw = {.pd = hand_pd(&b), .type = 1}};
	cr_assert_eq(hand_do(&b, &m, SHM_MW_CREATE), -ENOSPC);
}

/* All objects end at once, in any order. finish() checks what is left. */
Test(engine_window, a_client_dies_with_windows_bound)
{
	struct shm_mr mr[2] = {make_mr(), make_mr()};
	struct shm_mw mw[4];

	for (unsigned i = 0; i < 4; i++) {
		mw[i] = make_mw(i % 2 ? RD_MW_TYPE_1 : RD_MW_TYPE_2);
		cr_assert_eq(bind(&mw[i], &mr[i / 2], 64), RD_BIND_DONE);
	}
}

Test(engine_window, the_device_reports_how_many)
{
	struct shm_msg m = {0};

	cr_assert_eq(hand_do(&a, &m, SHM_QUERY_DEVICE), 0);
	cr_assert_eq(m.body.device.max_mw, s->cfg.limits.client_mws);
}
