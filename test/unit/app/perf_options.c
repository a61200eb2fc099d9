/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the command line of saker-perf: combinations of options, and errors. */
#include <criterion/criterion.h>
#include <string.h>

#include "../../../app/saker-perf/perf.h"

#define WORDS(...) ((char *[]){"saker-perf", ##__VA_ARGS__})
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

Test(perf_options, a_histogram_needs_latencies)
{
	struct perf_options o;

	cr_assert_eq(PARSE(&o, "--histogram", "--json"), 0);
	cr_assert(o.histogram);
	cr_assert_eq(PARSE(&o, "--histogram"), 0);
	cr_assert_eq(PARSE(&o, "--histogram", "--json", "--test", "rate"), -1);
}

Test(perf_options, a_value_follows_its_option_or_an_equals_sign)
{
	struct perf_options o;

	cr_assert_eq(PARSE(&o, "--size=64k", "-n", "2k", "-q=3"), 0);
	cr_assert_eq(o.size, 64 << 10);
	cr_assert_eq(o.iters, 2000);
	cr_assert_eq(o.qps, 3);
	cr_assert_eq(PARSE(&o, "--size", "1m"), 0);
	cr_assert_eq(o.size, 1 << 20);
	cr_assert_eq(PARSE(&o, "--size", "0x100"), 0);
	cr_assert_eq(o.size, 256);
	cr_assert_eq(PARSE(&o, "--op=read"), 0);
	cr_assert_eq(o.op, PERF_READ);
}

Test(perf_options, wrong_words_are_refused)
{
	static char *const wrong[] = {"--size=", "--size=64x", "--size=-1", "--size=2g",
		"--size=64kk", "--size=0", "--iters", "--verify=yes", "--siz=64", "-s", "-z",
		"size", "-", "--", "--sizes=8", "--sizes=8:", "--sizes=64:8", "--sizes=0:8",
		"--sizes=8:2g", "--sizes=8:64:", "--duration=0", "--duration=1us", "--duration=-1",
		"--duration=2x", "--duration=", "--duration=nan", "--duration=86401", "--depth=0",
		"--cq-mod=0", "--qps=99999999999"};
	struct perf_options o;

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_expect_eq(PARSE(&o, wrong[i]), -1, "%s", wrong[i]);
}

Test(perf_options, sizes_double_up_to_the_last_one)
{
	struct perf_options o;

	cr_assert_eq(PARSE(&o, "-a"), 0);
	cr_assert_eq(perf_steps(&o), 23);
	cr_assert_eq(perf_step(&o, 0).size, 2);
	cr_assert_eq(perf_step(&o, 22).size, 8 << 20);
	cr_assert(o.duration > 0, "each size has a limit");
	cr_assert_eq(PARSE(&o, "--sizes", "3:20"), 0);
	cr_assert_eq(perf_steps(&o), 4);
	cr_assert_eq(perf_step(&o, 2).size, 12);
	cr_assert_eq(perf_step(&o, 3).size, 20);
	cr_assert_eq(PARSE(&o, "--sizes", "8:8"), 0);
	cr_assert_eq(perf_steps(&o), 1);
	cr_assert_eq(PARSE(&o), 0);
	cr_assert_eq(perf_steps(&o), 1);
	cr_assert_eq(perf_step(&o, 0).size, 64);
	cr_assert_eq(PARSE(&o, "-a", "--size", "64"), -1);
	cr_assert_eq(PARSE(&o, "-a", "--op", "atomic_fa"), -1);
}

Test(perf_options, a_duration_lifts_the_limit_of_messages)
{
	struct perf_options o;

	cr_assert_eq(PARSE(&o), 0);
	cr_assert_eq(o.iters, 100000);
	cr_assert_eq(o.duration, 0);
	cr_assert_eq(PARSE(&o, "-D", "2"), 0);
	cr_assert_eq(o.duration, 2000000000);
	cr_assert_eq(o.iters, 1000000000);
	cr_assert_eq(PARSE(&o, "--duration", "1.5ms", "--iters", "7"), 0);
	cr_assert_eq(o.duration, 1500000);
	cr_assert_eq(o.iters, 7);
}

Test(perf_options, combinations_that_mean_nothing_are_refused)
{
	struct perf_options o;

	cr_assert_eq(PARSE(&o, "--bidirectional"), -1, "a ping-pong has both directions");
	cr_assert_eq(PARSE(&o, "-b", "--test", "rate"), 0);
	cr_assert_eq(PARSE(&o, "-b", "--test", "rate", "--op", "atomic_cs"), -1);
	cr_assert_eq(PARSE(&o, "--events", "--op", "send"), -1, "the engine polls");
	cr_assert_eq(PARSE(&o, "--events", "--op", "send", "--client=x", "--listen"), 0);
	cr_assert_eq(PARSE(&o, "--events", "--client=x", "--listen"), -1);
	cr_assert_eq(PARSE(&o, "--cq-mod", "8"), -1);
	cr_assert_eq(PARSE(&o, "--cq-mod", "8", "--test", "bw", "--depth", "15"), -1);
	cr_assert_eq(PARSE(&o, "--cq-mod", "8", "--test", "bw", "--depth", "16"), 0);
	cr_assert_eq(PARSE(&o, "--transport", "falcon", "--no-crc"), -1);
	cr_assert_eq(PARSE(&o, "--transport", "falcon", "--markers"), -1);
	cr_assert_eq(PARSE(&o, "--markers", "--no-crc"), 0);
}

static void
shared(char text[400], const struct perf_options *o)
{
	perf_options_shared(o, text, 400);
}

Test(perf_options, both_ends_share_what_decides_the_messages)
{
	struct perf_options o;
	char mine[400], theirs[400];

	cr_assert_eq(PARSE(&o, "--op", "read", "--versus=send", "-b", "--test=bw", "-s", "9"), 0);
	shared(mine, &o);
	cr_assert_eq(perf_options_compare(mine, mine), 0);
	cr_assert(strstr(mine, " --op read --versus send --test bw --size 9 ") == mine, "%s", mine);
	cr_assert(strlen(mine) < 300, "with the longest values it still has room");
	cr_assert_eq(PARSE(&o, "--op", "read", "--versus=send", "-b", "--test=bw", "-s", "9", "-n",
			     "8", "--no-floor", "--json", "--no-offload"),
		0);
	shared(theirs, &o);
	cr_assert_eq(perf_options_compare(mine, theirs), 0, "each end has its own");
	cr_assert_eq(PARSE(&o, "--op", "read", "--versus=send", "-b", "--test=bw", "-s", "99"), 0);
	shared(theirs, &o);
	cr_assert_eq(perf_options_compare(mine, theirs), -1);
	cr_assert_eq(perf_options_compare(mine, ""), -1);
	cr_assert_eq(perf_options_compare("", mine), -1);
	cr_assert_eq(perf_options_compare(mine, " --"), -1);
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

Test(perf_options, numbers_have_the_notation_of_lib_conf)
{
	struct perf_options o;

	cr_assert_eq(PARSE(&o, "--size", "64k", "--iters", "0x10", "--duration", "2s"), 0);
	cr_assert_eq(o.size, 65536);
	cr_assert_eq(o.iters, 16);
	cr_assert_eq(o.duration, 2000000000);
	cr_assert_eq(PARSE(&o, "--iters", "1.5k"), 0);
	cr_assert_eq(o.iters, 1500);
}
