/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests scenario files: valid and invalid contents, and the runs that a sweep makes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../../app/saker-sim/scenario.h"

static char why[SIM_WHY];

static int
load(struct sim_file *f, const char *text)
{
	char path[] = "/tmp/saker-sim-scenario-XXXXXX";
	int fd = mkstemp(path), rc;

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	rc = sim_file_load(f, path, why);
	unlink(path);
	return rc;
}

Test(scenario, defaults_make_a_run)
{
	struct sim_scenario s;

	sim_scenario_default(&s);
	cr_assert_eq(sim_scenario_check(&s, why), 0);
	cr_assert_eq(s.hosts, 2);
	cr_assert_eq(s.link_gbps, 200);
	cr_assert_eq(s.link_delay_ns, 12500);
	cr_assert(s.rack);
	cr_assert_not(s.ordered);
}

Test(scenario, values_are_checked)
{
	struct sim_scenario s;

	sim_scenario_default(&s);
	cr_assert_eq(sim_scenario_set(&s, "link", "loss", "2.5", why), 0);
	cr_assert_eq(s.link_loss, 2.5);
	cr_assert_eq(sim_scenario_set(&s, "host", "transport", "falcon", why), 0);
	cr_assert_eq(s.transport, SIM_FALCON);
	cr_assert_eq(sim_scenario_set(&s, "falcon", "ordered", "yes", why), 0);
	cr_assert(s.ordered);
	cr_assert_eq(sim_scenario_set(&s, "link", "loss", "101", why), -EINVAL);
	cr_assert_eq(sim_scenario_set(&s, "link", "loss", "nan", why), -EINVAL);
	cr_assert_eq(sim_scenario_set(&s, "link", "loss", "1x", why), -EINVAL);
	cr_assert_eq(sim_scenario_set(&s, "topology", "hosts", "2.5", why), -EINVAL);
	cr_assert_eq(sim_scenario_set(&s, "topology", "hosts", "1", why), -EINVAL);
	cr_assert_eq(sim_scenario_set(&s, "host", "transport", "sctp", why), -EINVAL);
	cr_assert(strstr(why, "not one of tcp, iwarp, falcon, rof") != NULL, "%s", why);
	cr_assert_eq(sim_scenario_set(&s, "falcon", "ordered", "perhaps", why), -EINVAL);
	cr_assert_eq(sim_scenario_set(&s, "link", "colour", "1", why), -ESRCH);
	cr_assert_eq(sim_scenario_set(&s, "links", "loss", "1", why), -ENOENT);
	cr_assert_eq(s.link_loss, 2.5, "what is refused changes nothing");
}

Test(scenario, what_cannot_be_together_is_refused)
{
	static const char *const wrong[][3] = {
		{"topology", "hosts", "3"},
		{"falcon", "flows", "3"},
		{"fabric", "slow-spines", "9"},
		{"run", "duration-us", "0"},
	};
	struct sim_scenario s;

	for (unsigned i = 0; i < 4; i++) {
		sim_scenario_default(&s);
		cr_assert_eq(sim_scenario_set(&s, wrong[i][0], wrong[i][1], wrong[i][2], why), 0);
		cr_assert_eq(sim_scenario_check(&s, why), -EINVAL, "%s", wrong[i][1]);
	}
}

/* A sweep runs every combination once; the last key varies fastest. */
Test(scenario, a_sweep_makes_all_combinations)
{
	struct sim_file f;
	struct sim_scenario s;
	const char *v[SIM_SWEEPS];

	cr_assert_eq(load(&f, "[run]\nname = x\n[sweep]\nhost.transport = tcp falcon\n"
			      "link.loss = 0 1 2.5\n[plot]\ny = jain\n"),
		0, "%s", why);
	cr_assert_eq(f.nruns, 6);
	cr_assert_str_eq(f.plot_y, "jain");
	for (unsigned i = 0; i < 6; i++) {
		static const double loss[] = {0, 1, 2.5};

		cr_assert_eq(sim_file_run(&f, i, &s, v, why), 0);
		cr_assert_eq(s.transport, i / 3 ? SIM_FALCON : SIM_TCP);
		cr_assert_eq(s.link_loss, loss[i % 3]);
		cr_assert_str_eq(v[0], i / 3 ? "falcon" : "tcp");
		cr_assert_str_eq(s.name, "x");
	}
}

Test(scenario, the_command_line_has_the_last_word)
{
	struct sim_file f;
	struct sim_scenario s;
	const char *v[SIM_SWEEPS];

	cr_assert_eq(load(&f, "[sweep]\nhost.transport = tcp falcon\nlink.loss = 0 1\n"), 0);
	cr_assert_eq(sim_file_override(&f, "link.loss=5", why), 0);
	cr_assert_eq(f.nruns, 2);
	cr_assert_eq(sim_file_run(&f, 1, &s, v, why), 0);
	cr_assert_eq(s.link_loss, 5);
	cr_assert_eq(s.transport, SIM_FALCON);
	cr_assert_eq(sim_file_override(&f, "run.seed=3 4 5", why), 0);
	cr_assert_eq(f.nruns, 6);
	cr_assert_eq(sim_file_override(&f, "loss=5", why), -EINVAL);
	cr_assert_eq(sim_file_override(&f, "link.loss", why), -EINVAL);
	cr_assert_eq(sim_file_override(&f, "link.loss=", why), -EINVAL);
}

Test(scenario, files_that_make_no_sense)
{
	struct sim_file f;

	cr_assert_eq(sim_file_load(&f, "/nonexistent/x.ini", why), -ENOENT);
	cr_assert_lt(load(&f, "[link]\nloss = much\n"), 0);
	cr_assert_lt(load(&f, "[link]\nspeed = 1\n"), 0);
	cr_assert_lt(load(&f, "[sweep]\nloss = 1 2\n"), 0);
	cr_assert_lt(load(&f, "[sweep]\nlink.loss = 1 two\n"), 0);
	cr_assert_lt(load(&f, "[plot]\nz = jain\n"), 0);
}

Test(scenario, the_files_that_come_with_it_are_right)
{
	struct sim_scenario s;
	const char *v[SIM_SWEEPS];
	struct sim_file f;
	glob_t g;

	cr_assert_eq(glob(SCENARIOS "/*.ini", 0, NULL, &g), 0);
	cr_assert_geq(g.gl_pathc, 5);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		cr_assert_eq(
			sim_file_load(&f, g.gl_pathv[i], why), 0, "%s: %s", g.gl_pathv[i], why);
		for (unsigned n = 0; n < f.nruns; n++)
			cr_assert_eq(
				sim_file_run(&f, n, &s, v, why), 0, "%s: %s", g.gl_pathv[i], why);
	}
	globfree(&g);
}

Test(scenario, a_wrong_line_of_a_file_is_named)
{
	static const struct {
		const char *text, *end;
	} rows[] = {
		{"[link]\nloss 1\n", ":2: the line 'loss 1' is neither [section] nor key = value"},
		{"[links]\n", ":1: section [links] is unknown"},
		{"[link]\nloss = 1\nloss = 2\n", ":3: [link] loss stands in line 2 already"},
		{"[link]\nspeed = 1\n", ":2: [link] has no key 'speed'"},
		{"[link]\nloss = 101\n", ":2: [link] loss = 101 is not a number within 0..100"},
		{"[run]\nlimit-ms = 1us\n", ":2: [run] limit-ms = 1us is not a time within"},
		{"[sweep]\nlink.loss = 1 200\n",
			":2: [link] loss = 200 is not a number within 0..100"},
	};
	char path[] = "/tmp/saker-sim-XXXXXX";
	struct sim_file f;
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_assert_eq(ftruncate(fd, 0), 0);
		cr_assert_eq(pwrite(fd, rows[i].text, strlen(rows[i].text), 0),
			(ssize_t)strlen(rows[i].text));
		cr_assert_lt(sim_file_load(&f, path, why), 0);
		cr_assert_eq(strncmp(why, path, strlen(path)), 0, "%s", why);
		cr_assert_eq(strncmp(why + strlen(path), rows[i].end, strlen(rows[i].end)), 0, "%s",
			why);
	}
	close(fd);
	unlink(path);
}

Test(scenario, numbers_have_the_notation_of_lib_conf)
{
	struct sim_scenario s;

	sim_scenario_default(&s);
	cr_assert_eq(sim_scenario_set(&s, "run", "limit-ms", "2s", why), 0);
	cr_assert_eq(s.limit_ms, 2000);
	cr_assert_eq(sim_scenario_set(&s, "switch", "queue-kib", "1m", why), 0);
	cr_assert_eq(s.queue_kib, 1024);
	cr_assert_eq(sim_scenario_set(&s, "host", "payload", "4k", why), 0);
	cr_assert_eq(s.payload, 4096);
	cr_assert_eq(sim_scenario_set(&s, "topology", "hosts", "0x10", why), 0);
	cr_assert_eq(s.hosts, 16);
	cr_assert_eq(sim_scenario_set(&s, "link", "delay-ns", "12.5us", why), 0);
	cr_assert_eq(s.link_delay_ns, 12500);
}
