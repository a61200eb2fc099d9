/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the command line of saker-perf: combinations of options, and errors. */
#include <criterion/criterion.h>

#include "../../../app/saker-perf/perf.h"

#define WORDS(...) ((char *[]){"saker-perf", __VA_ARGS__})
#define PARSE(o, ...)                                                                              \
	perf_options_parse(                                                                        \
		o, (int)(sizeof(WORDS(__VA_ARGS__)) / sizeof(char *)), WORDS(__VA_ARGS__))

Test(perf_options, a_message_has_64_bytes_and_an_atomic_8)
{
	struct perf_options o;

	cr_assert_eq(PARSE(&o, "--op", "write_imm"), 0);
	cr_assert_eq(o.op, PERF_WRITE_IMM);
	cr_assert_eq(o.size, 64);
	cr_assert_eq(o.versus, PERF_NO_OP);
	cr_assert_eq(PARSE(&o, "--op", "atomic_fa", "--test", "rate"), 0);
	cr_assert_eq(o.op, PERF_ATOMIC_FA);
	cr_assert_eq(o.size, 8);
	cr_assert_eq(PARSE(&o, "--op", "read", "--versus", "atomic_cs"), 0);
	cr_assert_eq(o.op, PERF_READ);
	cr_assert_eq(o.versus, PERF_ATOMIC_CS);
	cr_assert_eq(o.size, 8, "both have the size of the Atomic");
	cr_assert_eq(PARSE(&o, "--op", "atomic_cs", "--size", "8"), 0);
}

Test(perf_options, an_atomic_of_another_size_is_refused)
{
	struct perf_options o;

	cr_assert_eq(PARSE(&o, "--op", "atomic_fa", "--size", "16"), -1);
	cr_assert_eq(PARSE(&o, "--op", "atomic_cs", "--size", "4"), -1);
	cr_assert_eq(PARSE(&o, "--op", "write", "--versus", "atomic_cs", "--size", "64"), -1);
	cr_assert_eq(PARSE(&o, "--op", "write", "--versus", "read", "--size", "64"), 0);
}

Test(perf_options, atomics_have_no_bandwidth)
{
	struct perf_options o;

	cr_assert_eq(PARSE(&o, "--op", "atomic_fa", "--test", "bw"), -1);
	cr_assert_eq(PARSE(&o, "--op", "read", "--versus", "atomic_fa", "--test", "bw"), -1);
	cr_assert_eq(PARSE(&o, "--op", "write_imm", "--test", "bw"), 0);
	cr_assert_eq(o.test, PERF_BW);
}

Test(perf_options, an_operation_that_does_not_exist_is_refused)
{
	struct perf_options o;

	cr_assert_eq(PARSE(&o, "--op", "swap"), -1);
	cr_assert_eq(PARSE(&o, "--versus", "none"), -1);
	cr_assert_eq(PARSE(&o, "--op"), -1);
}

Test(perf_options, a_histogram_needs_json_and_latencies)
{
	struct perf_options o;

	cr_assert_eq(PARSE(&o, "--histogram", "--json"), 0);
	cr_assert(o.histogram);
	cr_assert_eq(PARSE(&o, "--histogram"), -1);
	cr_assert_eq(PARSE(&o, "--histogram", "--json", "--test", "rate"), -1);
}

Test(perf_options, the_first_1000_messages_do_not_count)
{
	struct perf_options o;

	cr_assert_eq(PARSE(&o, "--json"), 0);
	cr_assert_eq(o.warmup, 1000);
	cr_assert_eq(PARSE(&o, "--warm-up", "0"), 0);
	cr_assert_eq(o.warmup, 0);
	cr_assert_eq(PARSE(&o, "--warm-up", "20", "--listen", "--client", "x"), -1);
}

Test(perf_options, many_qps_use_several_listener_ports_and_addresses)
{
	struct perf_options o;

	cr_assert_eq(PARSE(&o, "--idle-qps", "15999"), 0);
	cr_assert_eq(perf_locals(&o), 1);
	cr_assert_eq(perf_ports(&o), 1);
	cr_assert_eq(PARSE(&o, "--idle-qps", "16000"), 0);
	cr_assert_eq(perf_locals(&o), PERF_LOCALS);
	cr_assert_eq(perf_ports(&o), 1);
	cr_assert_eq(PARSE(&o, "--idle-qps", "100000"), 0);
	cr_assert_eq(perf_ports(&o), 4);
	cr_assert_eq(PARSE(&o, "--idle-qps", "100000", "--listen", "--client", "x"), 0);
	cr_assert_eq(perf_locals(&o), 1, "one end has the addresses of its saker");
	cr_assert_eq(perf_ports(&o), 7);
}

Test(perf_options, listener_ports_end_at_65535)
{
	struct perf_options o;

	cr_assert_eq(PARSE(&o, "--idle-qps", "100000", "--tcp-port", "65532"), 0);
	cr_assert_eq(PARSE(&o, "--idle-qps", "100000", "--tcp-port", "65533"), -1);
	cr_assert_eq(PARSE(&o, "--qps", "65537"), -1);
	cr_assert_eq(PARSE(&o, "--idle-qps", "1000001"), -1);
}
