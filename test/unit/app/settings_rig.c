/* SPDX-License-Identifier: BSD-3-Clause */
/* Files, options and sentences for the tests of settings. */
#include "settings_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

struct settings s;
char why[WHY_LEN];
char path[] = "/tmp/saker-test-XXXXXX";

void
settings_teardown(void)
{
	unlink(path);
}

void
settings_setup(void)
{
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	close(fd);
	unsetenv("SAKER_CONFIG");
}

void
file_is(const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
	setenv("SAKER_CONFIG", path, 1);
}

enum options_result
options(const char *line)
{
	static char copy[1024];
	char *argv[32] = {"saker"}, *save = NULL;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	why[0] = '\0';
	return options_read(&s, argc, argv, why);
}

void
refused(const char *line, const char *sentence)
{
	cr_assert_eq(options(line), OPTIONS_REFUSED, "%s", line);
	cr_assert_str_eq(why, sentence);
}

void
file_refused(const char *text, const char *end)
{
	char sentence[WHY_LEN];
	unsigned lines = 0;

	file_is(text);
	for (const char *p = text; *p != '\0'; p++)
		lines += *p == '\n';
	snprintf(sentence, sizeof(sentence), "%s:%u: %s", path, lines, end);
	refused("", sentence);
}

void
together_refused(const char *text, unsigned line, const char *end)
{
	char sentence[WHY_LEN];

	file_is(text);
	if (line != 0)
		snprintf(sentence, sizeof(sentence), "%s:%u: %s", path, line, end);
	else
		snprintf(sentence, sizeof(sentence), "%s", end);
	refused("", sentence);
}

struct printing {
	FILE *to;
	bool more; /* a section was printed */
};

static void
print_visit(void *arg, const char *section, const char *key, const char *value, const char *source)
{
	struct printing *p = arg;

	if (key == NULL) {
		fprintf(p->to, "%s[%s]\n", p->more ? "\n" : "", section);
		p->more = true;
	} else if (source == NULL) {
		fprintf(p->to, "%s = %s\n", key, value);
	} else {
		fprintf(p->to, "%s = %s%*s; %s\n", key, value,
			(int)(40 - (int)strlen(key) - (int)strlen(value)), " ", source);
	}
}

void
settings_print(const struct settings *from, FILE *to)
{
	struct printing p = {.to = to};

	settings_each(from, print_visit, &p);
}
