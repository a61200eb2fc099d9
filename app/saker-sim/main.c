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
	       "Exit status: 0 if all runs finished without a fault; 1 if a run did not finish,\n"
	       "lost a connection, failed a transaction or delivered a wrong byte; 2 if the file\n"
	       "or an option is wrong, or a result cannot be written.\n");
}

/* Returns 0, or -EINVAL after a sentence about a wrong argument. */
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
		} else if (c == 's') {
			if (o->nset == OVERRIDES) {
				fprintf(stderr,
					"saker-sim: -s %s is one more than the %u possible\n",
					optarg, OVERRIDES);
				return -EINVAL;
			}
			o->set[o->nset++] = optarg;
		} else if (c == 'k') {
			sim_scenario_help();
			exit(0);
		} else if (c == 'h') {
			sim_main_usage();
			exit(0);
		} else {
			return -EINVAL; /* getopt_long() has written the sentence */
		}
	}
	if (optind == argc) {
		fprintf(stderr, "saker-sim: the file of scenarios is missing (see --help)\n");
		return -EINVAL;
	}
	if (optind + 1 < argc) {
		fprintf(stderr, "saker-sim: '%s' is a second file (see --help)\n",
			argv[optind + 1]);
		return -EINVAL;
	}
	o->file = argv[optind];
	return 0;
}

/* Opens a CSV file in `dir`; NULL: *f is NULL then. Returns 0, or -1 after a sentence. */
static int
open_csv(const struct sim_file *file, const char *dir, const char *what, FILE **f)
{
	char path[1024];

	*f = NULL;
	if (dir == NULL)
		return 0;
	mkdir(dir, 0777);
	snprintf(path, sizeof(path), "%s/%s%s.csv", dir, file->base.name, what);
	*f = fopen(path, "w");
	if (*f != NULL)
		return 0;
	fprintf(stderr, "saker-sim: the file %s cannot be created: %s\n", path, strerror(errno));
	return -1;
}

/* Closes a file, or NULL. Returns 0, or -1 after a sentence when a line was not written. */
static int
close_csv(FILE *f)
{
	bool failed;

	if (f == NULL)
		return 0;
	failed = ferror(f) != 0;
	if (fclose(f) == 0 && !failed)
		return 0;
	fprintf(stderr, "saker-sim: a CSV file cannot be written: %s\n", strerror(errno));
	return -1;
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

/* Executes all runs of the file. Returns the exit status. */
static int
run_all(const struct sim_file *file, const char *dir)
{
	FILE *csv, *series = NULL;
	int worst = 0, rc;

	if (open_csv(file, dir, "", &csv) < 0)
		return 2;
	if (file->base.sample_us != 0 && open_csv(file, dir, "-series", &series) < 0) {
		fclose(csv);
		return 2;
	}
	if (csv != NULL)
		sim_csv_head(csv, file);
	sim_table_head(stdout, file);
	for (unsigned n = 0; n < file->nruns && worst < 2; n++) {
		rc = sim_main_run(file, n, csv, series);
		worst = rc > worst ? rc : worst;
	}
	if (close_csv(series) < 0)
		worst = 2;
	if (close_csv(csv) < 0)
		worst = 2;
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

	if (sim_main_parse(&o, argc, argv) < 0)
		return 2;
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
