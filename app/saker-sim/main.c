/* SPDX-License-Identifier: BSD-3-Clause */
/* saker-sim: runs the scenarios of a file in virtual time and reports the results. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "report.h"

#define OVERRIDES 32

struct options {
	const char *file, *dir;
	const char *set[OVERRIDES];
	unsigned nset;
};

static void
sim_main_usage(void)
{
	printf("usage: saker-sim [-o DIR] [-s section.key=value]... FILE.ini\n\n"
	       "  -o, --output DIR             write NAME.csv (and NAME-series.csv, NAME.gp,\n"
	       "                               NAME.png) to DIR\n"
	       "  -s, --set section.key=value  set a key instead of the value in the file\n"
	       "  -k, --keys                   print the keys of a scenario file, with default\n"
	       "                               and meaning\n"
	       "  -h, --help                   print this\n\n"
	       "Exit status: 0 if all runs finished; 1 if a run did not finish or lost a\n"
	       "connection; 2 if the file or an option is wrong.\n");
}

static int
sim_main_parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
		{"set", required_argument, NULL, 's'}, {"keys", no_argument, NULL, 'k'},
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "o:s:kh", longs, NULL)) != -1) {
		if (c == 'o') {
			o->dir = optarg;
		} else if (c == 's' && o->nset < OVERRIDES) {
			o->set[o->nset++] = optarg;
		} else if (c == 'k') {
			sim_scenario_help();
			exit(0);
		} else if (c == 'h') {
			sim_main_usage();
			exit(0);
		} else {
			return -EINVAL;
		}
	}
	if (optind + 1 != argc)
		return -EINVAL;
	o->file = argv[optind];
	return 0;
}

static FILE *
open_csv(const struct sim_file *file, const char *dir, const char *what)
{
	char path[1024];

	if (dir == NULL)
		return NULL;
	mkdir(dir, 0777);
	snprintf(path, sizeof(path), "%s/%s%s.csv", dir, file->base.name, what);
	return fopen(path, "w");
}

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Executes run `n`. Returns the exit status: 0 if it finished, 1 if not, 2 if it cannot start. */
static int
sim_main_run(const struct sim_file *file, unsigned n, FILE *csv, FILE *series)
{
	const char *values[SIM_SWEEPS] = {NULL};
	struct sim_scenario sc;
	struct sim_result r;
	struct sim_world *w;
	char why[SIM_WHY];
	double start = seconds();

	if (sim_file_run(file, n, &sc, values, why) < 0 ||
		(w = sim_world_create(&sc, why)) == NULL) {
		fprintf(stderr, "saker-sim: %s\n", why);
		return 2;
	}
	if (series != NULL)
		sim_series_start(w, series, n);
	sim_result_of(w, sim_world_run(w), &r);
	sim_world_destroy(w);
	sim_table_row(stdout, file, values, &r);
	fflush(stdout);
	fprintf(stderr, "%.1f s, %.1f million events\n", seconds() - start, (double)r.events / 1e6);
	if (csv != NULL)
		sim_csv_row(csv, file, values, &r);
	return r.finished && r.wrong + r.dead + r.failed == 0 ? 0 : 1;
}

static int
run_all(const struct sim_file *file, const char *dir)
{
	FILE *csv = open_csv(file, dir, "");
	FILE *series = file->base.sample_us ? open_csv(file, dir, "-series") : NULL;
	int worst = 0, rc;

	if (dir != NULL && csv == NULL) {
		fprintf(stderr, "saker-sim: no file can be created in %s: %s\n", dir,
			strerror(errno));
		return 2;
	}
	if (csv != NULL)
		sim_csv_head(csv, file);
	sim_table_head(stdout, file);
	for (unsigned n = 0; n < file->nruns && worst < 2; n++) {
		rc = sim_main_run(file, n, csv, series);
		worst = rc > worst ? rc : worst;
	}
	if (series != NULL)
		fclose(series);
	if (csv != NULL)
		fclose(csv);
	return worst;
}

static int
picture(const struct sim_file *file, const char *dir)
{
	int rc = sim_plot(file, dir);

	if (rc == 1)
		fprintf(stderr, "saker-sim: gnuplot is not installed, so there is no picture\n");
	else if (rc < 0)
		fprintf(stderr, "saker-sim: the picture cannot be drawn: %s\n", strerror(-rc));
	return rc < 0 ? 2 : 0;
}

int
main(int argc, char **argv)
{
	struct options o = {0};
	struct sim_file file;
	char why[SIM_WHY];
	int rc;

	if (sim_main_parse(&o, argc, argv) < 0) {
		sim_main_usage();
		return 2;
	}
	rc = sim_file_load(&file, o.file, why);
	for (unsigned i = 0; i < o.nset && rc == 0; i++)
		rc = sim_file_override(&file, o.set[i], why);
	if (rc < 0) {
		fprintf(stderr, "saker-sim: %s\n", why);
		return 2;
	}
	rc = run_all(&file, o.dir);
	if (rc < 2 && o.dir != NULL && file.plot_y[0] != '\0' && picture(&file, o.dir) != 0)
		rc = 2;
	return rc;
}
