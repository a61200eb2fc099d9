/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads scenario files: sections of keys, [sweep], which defines several runs, and [plot]. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/conf/conf.h"
#include "scenario.h"

/* Splits "section.key" into its parts. */
static int
split(const char *name, char section[SIM_WORD], char key[SIM_WORD])
{
	const char *dot = strchr(name, '.');

	if (dot == NULL || dot - name >= SIM_WORD || strlen(dot + 1) >= SIM_WORD)
		return -EINVAL;
	memcpy(section, name, (size_t)(dot - name));
	section[dot - name] = '\0';
	strcpy(key, dot + 1);
	return 0;
}

static int
add_sweep(struct sim_file *f, const char *name, const char *values, char why[SIM_WHY])
{
	struct sim_sweep *w = &f->sweep[f->nsweeps];
	struct sim_scenario scratch = f->base;
	char *copy, *word, *save;
	int rc = 0;

	if (f->nsweeps == SIM_SWEEPS)
		return sim_refuse(
			why, -EINVAL, "[sweep] %s is more than %d keys", name, SIM_SWEEPS);
	memset(w, 0, sizeof(*w));
	if (split(name, w->section, w->key) < 0)
		return sim_refuse(why, -EINVAL, "[sweep] %s is not section.key", name);
	copy = strdup(values);
	if (copy == NULL)
		return sim_refuse(why, -ENOMEM, "out of memory");
	for (word = strtok_r(copy, " \t", &save); word != NULL && rc == 0;
		word = strtok_r(NULL, " \t", &save)) {
		if (w->nvalues == SIM_VALUES)
			rc = sim_refuse(why, -EINVAL, "[sweep] %s has more than %d values", name,
				SIM_VALUES);
		else if (strlen(word) >= SIM_WORD)
			rc = sim_refuse(why, -EINVAL,
				"[sweep] %s: the value %s has more than %d characters", name, word,
				SIM_WORD - 1);
		else
			rc = sim_scenario_set(&scratch, w->section, w->key,
				strcpy(w->value[w->nvalues++], word), why);
	}
	free(copy);
	if (rc == 0 && w->nvalues == 0)
		rc = sim_refuse(why, -EINVAL, "[sweep] %s has no value", name);
	f->nsweeps += rc == 0;
	return rc;
}

static int
set_plot(struct sim_file *f, const char *key, const char *value, char why[SIM_WHY])
{
	if (strcmp(key, "y") == 0 && strlen(value) < SIM_WORD)
		strcpy(f->plot_y, value);
	else if (strcmp(key, "log") == 0)
		f->plot_log = strcmp(value, "yes") == 0;
	else
		return sim_refuse(why, -EINVAL,
			"[plot] %s = %s is not y = COLUMN or log = yes | no", key, value);
	return 0;
}

static int
file_section(void *arg, const struct conf_place *at, char sentence[CONF_SENTENCE])
{
	char shown[CONF_SHOWN];

	if (strcmp(at->section, "sweep") == 0 || strcmp(at->section, "plot") == 0 ||
		sim_scenario_has(at->section))
		return 0;
	snprintf(
		sentence, CONF_SENTENCE, "section [%s] is unknown", conf_shown(at->section, shown));
	return -EINVAL;
}

static int
file_entry(void *arg, const struct conf_place *at, const char *key, const char *value,
	char sentence[CONF_SENTENCE])
{
	struct sim_file *f = arg;
	char why[SIM_WHY] = "";
	int rc;

	if (strcmp(at->section, "sweep") == 0)
		rc = add_sweep(f, key, value, why);
	else if (strcmp(at->section, "plot") == 0)
		rc = set_plot(f, key, value, why);
	else
		rc = sim_scenario_set(&f->base, at->section, key, value, why);
	snprintf(sentence, CONF_SENTENCE, "%s", why);
	return rc;
}

static int
count_runs(struct sim_file *f, char why[SIM_WHY])
{
	f->nruns = 1;
	for (unsigned i = 0; i < f->nsweeps; i++)
		f->nruns *= f->sweep[i].nvalues;
	if (f->nruns > SIM_MAX_RUNS)
		return sim_refuse(why, -EINVAL, "[sweep] makes %u runs, more than %d", f->nruns,
			SIM_MAX_RUNS);
	return 0;
}

int
sim_file_load(struct sim_file *f, const char *path, char why[SIM_WHY])
{
	static const struct conf_reader reader = {file_section, file_entry};
	int rc;

	memset(f, 0, sizeof(*f));
	sim_scenario_default(&f->base);
	rc = conf_read(path, &reader, f, why, SIM_WHY);
	return rc < 0 ? rc : count_runs(f, why);
}

int
sim_file_override(struct sim_file *f, const char *text, char why[SIM_WHY])
{
	char section[SIM_WORD], key[SIM_WORD], name[2 * SIM_WORD];
	const char *eq = strchr(text, '=');

	if (eq == NULL || (size_t)(eq - text) >= sizeof(name))
		return sim_refuse(why, -EINVAL, "-s %s is not section.key=value", text);
	memcpy(name, text, (size_t)(eq - text));
	name[eq - text] = '\0';
	if (split(name, section, key) < 0)
		return sim_refuse(why, -EINVAL, "-s %s is not section.key=value", text);
	for (unsigned i = 0; i < f->nsweeps; i++)
		if (strcmp(f->sweep[i].section, section) == 0 &&
			strcmp(f->sweep[i].key, key) == 0) {
			f->nsweeps--;
			memmove(&f->sweep[i], &f->sweep[i + 1],
				(f->nsweeps - i) * sizeof(f->sweep[0]));
			break;
		}
	if (strchr(eq + 1, ' ') != NULL) {
		int rc = add_sweep(f, name, eq + 1, why);

		return rc < 0 ? rc : count_runs(f, why);
	}
	if (sim_scenario_set(&f->base, section, key, eq + 1, why) < 0)
		return -EINVAL;
	return count_runs(f, why);
}

int
sim_file_run(const struct sim_file *f, unsigned run, struct sim_scenario *out,
	const char *values[SIM_SWEEPS], char why[SIM_WHY])
{
	*out = f->base;
	/* The last key varies fastest. */
	for (unsigned i = f->nsweeps; i-- > 0;) {
		const struct sim_sweep *w = &f->sweep[i];

		values[i] = w->value[run % w->nvalues];
		run /= w->nvalues;
		if (sim_scenario_set(out, w->section, w->key, values[i], why) < 0)
			return -EINVAL;
	}
	return sim_scenario_check(out, why);
}
