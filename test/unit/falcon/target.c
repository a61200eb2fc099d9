/* SPDX-License-Identifier: BSD-3-Clause */
/* Swift's delay target (10.3.4), and the units of time. */
#include <criterion/criterion.h>
#include <math.h>

#include "../../../lib/falcon/falcon.h"
#include "rue_event.h"

Test(target, defaults_are_those_of_the_public_models)
{
	struct fa_swift_params p = fa_rue_defaults.swift;

	cr_assert_eq(p.base_delay, 191);
	cr_assert_eq(p.flow_max, 763);
	cr_assert_eq(p.per_hop, 8);
	cr_assert_eq(p.initial, W(32));
	cr_assert_eq(fa_rue_defaults.nic.initial, W(64));
	cr_assert_eq(p.max, W(256));
	cr_assert_eq(fa_rue_defaults.nic.max, W(256));
	cr_assert_eq(fa_rue_defaults.nic.min, W(1));
	cr_assert_eq(p.min, 10); /* 0.01 */
	/* a = 763 / (1 / sqrt(0.1) - 1 / sqrt(256)), b = a / 16; both in 1024ths */
	cr_assert_eq(p.flow_a, lrint(1024 * 763 / (1 / sqrt(0.1) - 1.0 / 16)));
	cr_assert_eq(p.flow_b, lrint(64 * 763 / (1 / sqrt(0.1) - 1.0 / 16)));
}

/* The curve: 763 up to a window of 0.1, 231 at 1, 108 at 4, 46 at 16, 15 at 64, 0 at 256. */
Test(target, flow_scaling_curve_10_3_4)
{
	static const struct {
		uint32_t fcwnd, adder;
	} rows[] = {{1, 763}, {W(0.05), 763}, {W(0.1), 763}, {W(1), 231}, {W(4), 108}, {W(16), 46},
		{W(64), 15}, {W(256), 0}, {W(1000), 0}};
	struct fa_swift_params p = fa_rue_defaults.swift;
	struct fa_cc cc = {.base_delay = 191};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cc.fcwnd = rows[i].fcwnd;
		cr_assert_eq(fa_swift_target(&p, &cc, 0), 191 + rows[i].adder, "fcwnd %u: %u",
			cc.fcwnd, fa_swift_target(&p, &cc, 0));
		cr_assert_eq(fa_swift_target(&p, &cc, 5), 191 + rows[i].adder + 40);
	}
}

/* All windows, compared with floating point. */
Test(target, table_of_roots_is_exact_to_a_tick)
{
	struct fa_swift_params p = fa_rue_defaults.swift;
	struct fa_cc cc = {.base_delay = 0};
	double a = 763 / (1 / sqrt(0.1) - 1.0 / 16);

	for (cc.fcwnd = 1; cc.fcwnd <= W(300); cc.fcwnd++) {
		double want = fmin(763, fmax(0, a / sqrt(cc.fcwnd / 1024.0) - a / 16));

		cr_assert_leq(fabs(fa_swift_target(&p, &cc, 0) - want), 1.0, "fcwnd %u", cc.fcwnd);
	}
}

Test(target, flow_scaling_is_derived_from_its_range)
{
	struct fa_swift_params p = fa_rue_defaults.swift;
	struct fa_cc cc = {.base_delay = 1000};

	p.flow_max = 500;
	p.flow_from = W(0.25);
	p.flow_to = W(64);
	fa_swift_flow_scaling(&p);
	/* a = 500 / (2 - 1/8) = 266.67, b = 33.33 */
	cr_assert_eq(p.flow_a, 273067);
	cr_assert_eq(p.flow_b, 34133);
	cc.fcwnd = W(0.25);
	cr_assert_eq(fa_swift_target(&p, &cc, 0), 1500);
	cc.fcwnd = W(1); /* 233.3 */
	cr_assert_eq(fa_swift_target(&p, &cc, 0), 1233);
	cc.fcwnd = W(64);
	cr_assert_eq(fa_swift_target(&p, &cc, 0), 1000);
}

Test(target, ticks_of_the_wire_10_1)
{
	cr_assert_eq(fa_ticks(0), 0);
	cr_assert_eq(fa_ticks(131), 0);
	cr_assert_eq(fa_ticks(132), 1);
	cr_assert_eq(fa_ticks(25000), 190);
	cr_assert_eq(fa_ticks(1000000), 7629);
	/* 2^32 ticks are 562949953421.312 ns */
	cr_assert_eq(fa_ticks(562949953421ull), UINT32_MAX);
	cr_assert_eq(fa_ticks(562949953422ull), 0);
}
