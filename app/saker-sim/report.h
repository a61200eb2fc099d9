/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of a run. One table of columns defines the output on the screen and the CSV file. */
#ifndef SAKER_SIM_REPORT_H
#define SAKER_SIM_REPORT_H

#include <stdio.h>

#include "world.h"

struct sim_result {
	bool finished;
	double seconds;      /* virtual time of the measurement */
	double goodput_gbps; /* delivered payload of all hosts */
	double share;        /* goodput in percent of the receivers' link rates */
	double jain;         /* fairness between flows, 0..1 */
	double fct_us[6];    /* completion times of messages: p50, p90, p99, p99.9, max, mean */
	uint64_t messages, events, delivered, wrong, dead, failed;
	struct sim_totals totals;
	uint64_t depth_p50, depth_p99; /* queue length that packets found in switch ports, bytes */
};

/* Computes the results after sim_world_run(), which has returned `rc`. */
void sim_result_of(struct sim_world *w, int rc, struct sim_result *r);
/* Returns Jain's index of `n` values: 1 if all are equal (or 0), 1 / n if only one is not 0. */
double sim_jain(const double *value, size_t n);

/* Returns the number of a column by its name, or -1. */
int sim_column(const char *name);
double sim_value(const struct sim_result *r, unsigned column);

/* Write the head and a row of the CSV file. The first columns are the swept keys. */
void sim_csv_head(FILE *f, const struct sim_file *file);
void sim_csv_row(FILE *f, const struct sim_file *file, const char *const values[SIM_SWEEPS],
	const struct sim_result *r);
/* Write the head and a row of the table on the screen, with the most important columns. */
void sim_table_head(FILE *f, const struct sim_file *file);
void sim_table_row(FILE *f, const struct sim_file *file, const char *const values[SIM_SWEEPS],
	const struct sim_result *r);

/* Writes the time series of a run to `f`, one line each sc->sample_us (more than 0). */
void sim_series_start(struct sim_world *w, FILE *f, unsigned run);

/* Writes DIR/NAME.gp, which draws DIR/NAME.png from the CSV file, and runs gnuplot. Returns 0, 1 if
 * gnuplot is missing, or a negative errno. */
int sim_plot(const struct sim_file *file, const char *dir);

#endif
