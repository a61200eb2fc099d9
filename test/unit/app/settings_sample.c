/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests that config/saker.ini names every key with its default. */
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "settings_rig.h"

TestSuite(app_settings_sample, .init = settings_setup, .fini = settings_teardown);

struct sample {
	const char *text;
	const char *at; /* the section that the visit is in */
};

/* Checks that a section of the sample has the key. */
static void
sample_names(void *arg, const char *section, const char *key, const char *value, const char *source)
{
	struct sample *sample = arg;
	char line[80];
	const char *found;

	if (key == NULL) {
		snprintf(line, sizeof(line), "[%s]", section);
		sample->at = strstr(sample->text, line);
		cr_assert_not_null(sample->at, "config/saker.ini lacks %s", line);
		return;
	}
	snprintf(line, sizeof(line), "%s = ", key);
	for (found = strstr(sample->at, line); found != NULL; found = strstr(found + 1, line))
		if (found[-1] == ';' || (found[-1] == ' ' && found[-2] == ';'))
			return;
	cr_assert_fail("config/saker.ini lacks [%s] %s", section, key);
}

Test(app_settings_sample, the_sample_file_names_every_key)
{
	static char text[1 << 16];
	struct sample sample = {.text = text};
	FILE *in = fopen(SAMPLE, "r");

	cr_assert_not_null(in);
	cr_assert_lt(fread(text, 1, sizeof(text), in), sizeof(text) - 1);
	fclose(in);
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	settings_each(&s, sample_names, &sample);
	cr_assert_not_null(sample.at);
}

/* Accepts the sections with a number, which no default has, the key that the test sets, and the
 * lists of loops, whose default saker derives. */
static void
differs(void *arg, const char *section, const char *key, const char *was, const char *next,
	enum takes_effect when)
{
	static const char *const accepted[][2] = {
		{"gateway", "enabled"},
		{"saker", "transport-loops"},
		{"saker", "stage-loops"},
	};

	if (key == NULL)
		return;
	for (size_t i = 0; i < SK_ARRAY_LEN(accepted); i++)
		if (strcmp(section, accepted[i][0]) == 0 && strcmp(key, accepted[i][1]) == 0)
			return;
	cr_assert_fail(
		"config/saker.ini has [%s] %s = %s, the default is '%s'", section, key, next, was);
}

Test(app_settings_sample, the_sample_file_is_accepted_and_has_the_defaults)
{
	static struct settings plain;
	char line[300];

	setenv("SAKER_CONFIG", SAMPLE, 1);
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	/* Uncomments each key; its value must be the default. */
	FILE *in = fopen(SAMPLE, "r"), *out = fopen(path, "w");

	cr_assert(in != NULL && out != NULL);
	while (fgets(line, sizeof(line), in) != NULL) {
		char *equals = strstr(line, " = ");
		bool key = line[0] == ';' && line[1] != ' ' && equals != NULL;

		fputs(key || strncmp(line, ";[", 2) == 0 ? line + 1 : line, out);
	}
	fclose(in);
	fclose(out);
	plain = s;
	setenv("SAKER_CONFIG", path, 1);
	setenv("SAKER_GATEWAY_ENABLED", "yes", 1); /* which [vm 0] requires */
	cr_assert_eq(options(""), OPTIONS_RUN, "%s", why);
	cr_assert(s.ports[0].present && s.ifs[0].present && s.routes[0].present);
	cr_assert_eq(s.ports[0].mtu, 1500);
	cr_assert_eq(settings_source(&s, "limits", "ord"), FROM_FILE);
	settings_diff(&plain, &s, differs, NULL);
	cr_assert_eq(s.eng.transport_loop[0], plain.eng.transport_loop[0]);
	cr_assert_eq(s.eng.stage_loop[0], plain.eng.stage_loop[0]);
}
