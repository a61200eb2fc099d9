/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws a picture of one column of the report against the last swept key, with a line for each
 * combination of the other keys. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "report.h"

/* Writes the plot command. The rows of the CSV file have the order of the runs, so each line of the
 * picture is a block of rows. */
static void
lines(FILE *f, const struct sim_file *file, const char *csv, int y)
{
	const struct sim_sweep *x = &file->sweep[file->nsweeps - 1];
	unsigned nlines = file->nruns / x->nvalues;

	fprintf(f, "plot ");
	for (unsigned n = 0; n < nlines; n++) {
		unsigned rest = n;
		char title[SIM_SWEEPS * 2 * SIM_WORD] = "";

		for (unsigned i = file->nsweeps - 1; i-- > 0;) {
			const struct sim_sweep *s = &file->sweep[i];
			char word[2 * SIM_WORD];

			snprintf(word, sizeof(word), "%s %s%s", s->key, s->value[rest % s->nvalues],
				title[0] ? ", " : "");
			rest /= s->nvalues;
			memmove(title + strlen(word), title, strlen(title) + 1);
			memcpy(title, word, strlen(word));
		}
		fprintf(f, "%s'%s' every ::%u::%u using %u:%u with linespoints lw 2 title '%s'",
			n ? ", \\\n     " : "", csv, n * x->nvalues + 1, (n + 1) * x->nvalues,
			file->nsweeps, file->nsweeps + (unsigned)y + 1,
			title[0] ? title : file->base.name);
	}
	fprintf(f, "\n");
}

static int
script(const struct sim_file *file, const char *gp, const char *csv, const char *png, int y)
{
	const struct sim_sweep *x = &file->sweep[file->nsweeps - 1];
	FILE *f = fopen(gp, "w");

	if (f == NULL)
		return -errno;
	fprintf(f,
		"set terminal png size 900,600\nset output '%s'\nset datafile separator ','\n"
		"set title '%s'\nset xlabel '%s.%s'\nset ylabel '%s' noenhanced\n"
		"set key outside below\nset grid\nset yrange [0:*]\n",
		png, file->base.name, x->section, x->key, file->plot_y);
	if (file->plot_log)
		fprintf(f, "set yrange [*:*]\nset logscale y\n");
	lines(f, file, csv, y);
	return fclose(f) == 0 ? 0 : -errno;
}

static int
run_gnuplot(char *gp)
{
	char name[] = "gnuplot";
	char *argv[] = {name, gp, NULL};
	int status;
	pid_t pid;

	if (posix_spawnp(&pid, name, NULL, NULL, argv, environ) != 0)
		return 1;
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return 1;
	return status == 0 ? 0 : -EIO;
}

int
sim_plot(const struct sim_file *file, const char *dir)
{
	char gp[1024], csv[1024], png[1024];
	int y = sim_column(file->plot_y), rc;

	if (y < 0 || file->nsweeps == 0)
		return -EINVAL;
	if (snprintf(gp, sizeof(gp), "%s/%s.gp", dir, file->base.name) >= (int)sizeof(gp))
		return -ENAMETOOLONG;
	snprintf(csv, sizeof(csv), "%s/%s.csv", dir, file->base.name);
	snprintf(png, sizeof(png), "%s/%s.png", dir, file->base.name);
	rc = script(file, gp, csv, png, y);
	return rc < 0 ? rc : run_gnuplot(gp);
}
