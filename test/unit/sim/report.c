/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the report: fairness, columns, CSV. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../app/saker-sim/report.h"

Test(report, jains_index)
{
	static const double equal[] = {3, 3, 3, 3}, one[] = {0, 0, 7, 0}, none[] = {0, 0};
	static const double half[] = {1, 3}; /* 16 / (2 * 10) */

	cr_assert_float_eq(sim_jain(equal, 4), 1, 1e-12);
	cr_assert_float_eq(sim_jain(one, 4), 0.25, 1e-12);
	cr_assert_float_eq(sim_jain(half, 2), 0.8, 1e-12);
	cr_assert_float_eq(sim_jain(none, 2), 1, 1e-12);
}

Test(report, columns_have_names)
{
	struct sim_result r = {.finished = true, .jain = 0.5, .wrong = 12};
	int c = sim_column("jain");

	cr_assert_geq(c, 0);
	cr_assert_eq(sim_value(&r, (unsigned)c), 0.5);
	cr_assert_eq(sim_value(&r, (unsigned)sim_column("wrong_bytes")), 12);
	cr_assert_eq(sim_value(&r, (unsigned)sim_column("finished")), 1);
	cr_assert_eq(sim_column("colour"), -1);
}

static unsigned
commas(const char *line)
{
	unsigned n = 0;

	for (; *line; line++)
		n += *line == ',';
	return n;
}

Test(report, rows_have_the_columns_of_the_head)
{
	static const char *const values[SIM_SWEEPS] = {"falcon", "0.5"};
	struct sim_file file = {.nsweeps = 2};
	struct sim_result r = {.goodput_gbps = 191.25, .messages = 7};
	char head[4096] = "", row[4096] = "", *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	strcpy(file.sweep[0].section, "host");
	strcpy(file.sweep[0].key, "transport");
	strcpy(file.sweep[1].section, "link");
	strcpy(file.sweep[1].key, "loss");
	sim_csv_head(f, &file);
	sim_csv_row(f, &file, values, &r);
	fclose(f);
	cr_assert_eq(sscanf(text, "%4095[^\n]\n%4095[^\n]", head, row), 2);
	cr_assert_eq(commas(head), commas(row));
	cr_assert_eq(strncmp(head, "host.transport,link.loss,finished,", 34), 0);
	cr_assert_eq(strncmp(row, "falcon,0.5,0,", 13), 0);
	cr_assert(strstr(row, "191.250000") != NULL);
	free(text);
}
