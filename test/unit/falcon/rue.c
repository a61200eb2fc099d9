/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between data path and algorithms (10.6): the algorithms by name, their parameters,
 * and an algorithm of this file's own between two whole stacks.
 */
#include <errno.h>
#include <string.h>

#include "../../../lib/falcon/rue.h"
#include "pair.h"

static char why[256];

Test(rue, algorithms_have_names)
{
	cr_assert_eq(fa_algorithm_find("swift"), &fa_swift);
	cr_assert_eq(fa_algorithm_find("dctcp"), &fa_dctcp);
	cr_assert_eq(fa_algorithm_find("fixed"), &fa_fixed);
	cr_assert_null(fa_algorithm_find("cubic"));
	cr_assert_null(fa_algorithm_find(""));
}

Test(rue, the_defaults_are_valid)
{
	cr_assert_eq(fa_rue_check(&fa_rue_defaults, why, sizeof(why)), 0, "%s", why);
}

Test(rue, parameters_that_cannot_be_are_refused)
{
	static const struct {
		size_t at;
		uint32_t value;
		const char *why;
	} rows[] = {
#define ROW(f, v, w) {offsetof(struct fa_rue_params, f), v, w}
		ROW(swift.min, 0, "least window of Swift (0 packets)"),
		ROW(swift.min, 33 * FA_CWND_ONE,
			"least window of Swift (33 packets), the initial "
			"one (32)"),
		ROW(swift.max, 31 * FA_CWND_ONE, "the largest one (31)"),
		ROW(swift.max, 2048 * FA_CWND_ONE, "within 0..2047"),
		ROW(dctcp.min, 0, "of DCTCP"),
		ROW(nic.initial, 257 * FA_CWND_ONE, "of the NIC"),
		ROW(rtt_alpha, 1025, "the round trip of 1.001 exceeds 1"),
		ROW(swift.max_md, 2048, "Swift's largest cut of 2 "),
		ROW(nic.max_md, 2048, "NIC's largest cut"),
		ROW(dctcp.gain, 1025, "DCTCP's gain"),
		ROW(plb.fraction, 1025, "PLB's fraction"),
		ROW(swift.delay_alpha, 1025, "smoothing of the delay"),
		ROW(swift.flow_from, 0, "from 0 to 256 packets"),
		ROW(swift.flow_from, 129 * FA_CWND_ONE, "from 129 to 256 packets"),
		ROW(swift.flow_max, 40000, "by 40000 ticks"),
		ROW(fixed.fcwnd, 1023, "fixed windows of 0.999 "),
		ROW(fixed.ncwnd, 0, "fixed windows"),
	};

	for (unsigned i = 0; i < SK_ARRAY_LEN(rows); i++) {
		struct fa_rue_params p = fa_rue_defaults;

		memcpy((char *)&p + rows[i].at, &rows[i].value, sizeof(rows[i].value));
		cr_assert_eq(fa_rue_check(&p, why, sizeof(why)), -EINVAL, "row %u", i);
		cr_assert_not_null(strstr(why, rows[i].why), "row %u: %s", i, why);
	}
}

/* flow_a fits into 32 bits for the widest curve that is accepted. */
Test(rue, the_steepest_flow_scaling_fits)
{
	struct fa_rue_params p = fa_rue_defaults;

	p.swift.flow_max = 38147; /* 5 ms */
	p.swift.flow_to = FA_CWND_MAX;
	p.swift.flow_from = FA_CWND_MAX / 2;
	cr_assert_eq(fa_rue_check(&p, why, sizeof(why)), 0, "%s", why);
	fa_swift_flow_scaling(&p.swift);
	cr_assert_gt(p.swift.flow_a, 0xf0000000u);
	cr_assert_gt(p.swift.flow_a, p.swift.flow_b);
}

/* ---- An algorithm outside of the library ---- */

/* Each end reports in its metadata the window that the other may use. */
struct grant {
	uint32_t mine; /* packets that this end grants */
};

static void
grant_init(struct fa_cc *cc, struct fa_cc_nic *nic, const void *param)
{
	const struct grant *g = param;

	cc->fcwnd = FA_CWND_ONE;
	cc->metadata = g->mine;
	cc->rto = cc->rto_min;
	if (nic != NULL)
		nic->ncwnd = FA_CWND_MAX;
}

static void
grant_run(struct fa_cc *cc, struct fa_cc_nic *nic, const struct fa_rue_event *ev,
	struct fa_rue_result *res, const void *param)
{
	res->randomize_path = false;
	if (ev->type == FA_RUE_RETRANSMIT)
		return;
	cc->fcwnd = SK_MAX(ev->metadata, 1u) * FA_CWND_ONE;
	fa_rue_round_trip(cc, ev, &fa_rue_defaults);
	fa_rue_times(cc, &fa_rue_defaults);
}

static bool
take(unsigned node, unsigned conn, const struct fa_delivery *d)
{
	struct fa_outcome o = {.rsn = d->rsn, .verdict = FA_TAKEN};

	if (d->type == FA_PUSH) {
		pair_buf_free(d->buf);
		fa_outcome(pair.n[node].c[conn], pair.now, &o);
	}
	return true;
}

static uint32_t
window_of(unsigned node)
{
	struct fa_info info;

	fa_get_info(pair.n[node].c[0], &info);
	return info.fcwnd_milli;
}

Test(rue, an_algorithm_of_another_library_exchanges_its_metadata_7_7_1)
{
	static const struct grant grants[2] = {{5}, {23}};
	struct fa_algorithm a[2];

	pair_init();
	pair.deliver = take;
	for (unsigned i = 0; i < 2; i++) {
		a[i] = (struct fa_algorithm){
			.name = "grant", .init = grant_init, .run = grant_run, .param = &grants[i]};
		pair.n[i].params.algorithm = &a[i];
	}
	pair_start();
	cr_assert_eq(window_of(0), 1000);
	for (unsigned i = 0; i < 2; i++)
		fa_push(pair.n[i].c[0], pair.now, pair_buf(100));
	pair_run(1000 * PAIR_US);
	cr_assert_eq(window_of(0), 23000);
	cr_assert_eq(window_of(1), 5000);
	pair_stop();
}
