/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run came to: one table of columns makes the lines on the screen and the CSV file. */
#ifndef SAKER_SIM_REPORT_H
#define SAKER_SIM_REPORT_H

#include <stdio.h>

#include "world.h"

struct sim_result {
	bool finished;
	double seconds;      /* virtual, measured */
	double goodput_gbps; /* payload bytes delivered, all hosts */
	double share;        /* of what the receivers' links could carry, percent */
	double jain;         /* fairness between flows, 0..1 */
	double fct_us[6];    /* p50, p90, p99, p99.9, max, mean of messages */
	uint64_t messages, events, delivered, wrong, dead, failed;
	struct sim_totals totals;
	uint64_t depth_p50, depth_p99; /* bytes found waiting in switch ports */
};

/* After sim_world_run(), whose return value is `rc`. */
void sim_result_of(struct sim_world *w, int rc, struct sim_result *r);
/* Jain's index of `n` values: 1 when all are equal, 1 / n when one has all; 1 when all are 0. */
double sim_jain(const double *value, size_t n);

/* The number of a column by its name; -1: there is none. */
int sim_column(const char *name);
double sim_value(const struct sim_result *r, unsigned column);

/* Into a CSV file: the swept keys first. */
void sim_csv_head(FILE *f, const struct sim_file *file);
void sim_csv_row(FILE *f, const struct sim_file *file, const char *const values[SIM_SWEEPS],
	const struct sim_result *r);
/* For people: the columns that matter most. */
void sim_table_head(FILE *f, const struct sim_file *file);
void sim_table_row(FILE *f, const struct sim_file *file, const char *const values[SIM_SWEEPS],
	const struct sim_result *r);

/* Writes a line to `f` every sc->sample_us (more than 0) of the run. */
void sim_series_start(struct sim_world *w, FILE *f, unsigned run);

/* Writes DIR/NAME.gp, which draws DIR/NAME.png from the CSV file, and runs gnuplot if it is there.
 * 0, 1 when gnuplot is missing, or a negative errno. */
int sim_plot(const struct sim_file *file, const char *dir);

#endif
