/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads configuration files line by line. libinih reports neither empty sections nor duplicates,
 * and rte_cfgfile skips what it cannot read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"

#define BLANKS " \t\r"

/* Names that were read, with their lines: for duplicates. */
struct names {
	struct {
		const char *name; /* in the text */
		unsigned line;
	} * all;
	size_t n, room;
};

struct reading {
	const struct conf_reader *r;
	void *arg;
	struct conf_place at;
	struct names sections, keys; /* keys: those of this section */
	char *why;
	size_t len;
};

/* Writes the place before the sentence of a receiver. */
static int
read_placed(struct reading *g, int rc, const char *sentence)
{
	if (rc < 0)
		snprintf(g->why, g->len, "%s:%u: %s", g->at.file, g->at.line, sentence);
	return rc;
}

static int
read_refuse(struct reading *g, const char *what, const char *shown, const char *end)
{
	char buf[CONF_SHOWN];

	snprintf(g->why, g->len, "%s:%u: %s%s%s", g->at.file, g->at.line, what,
		conf_shown(shown, buf), end);
	return -EINVAL;
}

/* Notes a name. Returns 0, -ENOMEM, or -EEXIST with the earlier line in *line. */
static int
names_add(struct names *t, const char *name, unsigned at, unsigned *line)
{
	void *more;

	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->all[i].name, name) == 0) {
			*line = t->all[i].line;
			return -EEXIST;
		}
	if (t->n == t->room) {
		more = realloc(t->all, (2 * t->room + 16) * sizeof(*t->all));
		if (more == NULL)
			return -ENOMEM;
		t->all = more;
		t->room = 2 * t->room + 16;
	}
	t->all[t->n].name = name;
	t->all[t->n++].line = at;
	return 0;
}

/* Refuses a name that the table has, or notes it. `what` begins the sentence. */
static int
names_note(struct reading *g, struct names *t, const char *what, const char *name, const char *end)
{
	unsigned line = 0;
	char tail[64];
	int rc = names_add(t, name, g->at.line, &line);

	if (rc == -ENOMEM)
		return read_refuse(g, "out of memory", "", "");
	if (rc == 0)
		return 0;
	snprintf(tail, sizeof(tail), "%s stands in line %u already", end, line);
	return read_refuse(g, what, name, tail);
}

static char *
trimmed(char *text)
{
	size_t n;

	text += strspn(text, BLANKS);
	n = strlen(text);
	while (n > 0 && strchr(BLANKS, text[n - 1]) != NULL)
		text[--n] = '\0';
	return text;
}

static int
read_section_line(struct reading *g, char *line)
{
	char *close = strchr(line, ']'), sentence[CONF_SENTENCE] = "";

	if (close == NULL || close[1] != '\0')
		return read_refuse(g, "the line '", line, "' is not [section]");
	*close = '\0';
	g->at.section = trimmed(line + 1);
	g->keys.n = 0;
	if (names_note(g, &g->sections, "section [", g->at.section, "]") < 0)
		return -EINVAL;
	return g->r->section == NULL
		       ? 0
		       : read_placed(g, g->r->section(g->arg, &g->at, sentence), sentence);
}

static int
read_entry_line(struct reading *g, char *line)
{
	char *equals = strchr(line, '='), *key, *value, what[CONF_SHOWN + 8], shown[CONF_SHOWN];
	char sentence[CONF_SENTENCE] = "";

	if (equals == NULL || equals == line)
		return read_refuse(g, "the line '", line, "' is neither [section] nor key = value");
	*equals = '\0';
	key = trimmed(line);
	value = trimmed(equals + 1);
	if (g->at.section == NULL)
		return read_refuse(g, "the key '", key, "' stands before the first [section]");
	snprintf(what, sizeof(what), "[%s] ", conf_shown(g->at.section, shown));
	if (*value == '\0')
		return read_refuse(g, what, key, " has no value");
	if (names_note(g, &g->keys, what, key, "") < 0)
		return -EINVAL;
	return read_placed(g, g->r->entry(g->arg, &g->at, key, value, sentence), sentence);
}

static int
read_line_of(struct reading *g, char *line)
{
	if (strlen(line) >= CONF_LINE)
		return read_refuse(g, "the line '", line, "' is longer than 1023 bytes");
	line[strcspn(line, ";")] = '\0';
	line = trimmed(line);
	if (*line == '\0' || *line == '#')
		return 0;
	return *line == '[' ? read_section_line(g, line) : read_entry_line(g, line);
}

int
conf_read_text(char *text, size_t size, const char *name, const struct conf_reader *r, void *arg,
	char *why, size_t len)
{
	struct reading g = {.r = r, .arg = arg, .at = {.file = name}, .why = why, .len = len};
	char *end = text + size, *next;
	int rc = 0;

	for (; text < end && rc == 0; text = next) {
		next = memchr(text, '\n', (size_t)(end - text));
		g.at.line++;
		next = next == NULL ? end : next;
		*next++ = '\0';
		if (strlen(text) != (size_t)(next - 1 - text))
			rc = read_refuse(&g, "the line contains a zero byte", "", "");
		else
			rc = read_line_of(&g, text);
	}
	free(g.sections.all);
	free(g.keys.all);
	return rc;
}

int
conf_read(const char *path, const struct conf_reader *r, void *arg, char *why, size_t len)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t n = 0;
	int rc = 0;

	errno = f == NULL ? errno : 0;
	if (f != NULL && (text = malloc(CONF_FILE_MAX + 1)) != NULL)
		n = fread(text, 1, CONF_FILE_MAX + 1, f);
	if (f == NULL || text == NULL || ferror(f)) {
		rc = errno != 0 ? -errno : -EIO;
		snprintf(why, len, "the file %s cannot be read: %s", path, strerror(-rc));
	} else if (n > CONF_FILE_MAX) {
		snprintf(why, len, "the file %s has more than %d bytes", path, CONF_FILE_MAX);
		rc = -EFBIG;
	} else {
		rc = conf_read_text(text, n, path, r, arg, why, len);
	}
	if (f != NULL)
		fclose(f);
	free(text);
	return rc;
}
