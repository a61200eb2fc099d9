/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares settings, takes over what can change while saker runs, and saves settings to a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "settings_priv.h"

static const uint8_t *
change_member(const struct settings *s, const struct numbered *n, unsigned i)
{
	return (const uint8_t *)s + n->at + i * n->size;
}

static bool
change_present(const struct settings *s, const struct numbered *n, unsigned i)
{
	return *(const bool *)(change_member(s, n, i) + n->present);
}

/* ---- Differences ---- */

struct diff {
	settings_differs *visit;
	void *arg;
};

static void
diff_row(const struct diff *d, const struct row *row, const char *section, const uint8_t *was,
	const uint8_t *next, enum takes_effect when)
{
	char old[FILE_LEN], new[FILE_LEN];

	value_format(row->kind, was + row->at, old, sizeof(old));
	value_format(row->kind, next + row->at, new, sizeof(new));
	if (strcmp(old, new) != 0)
		d->visit(d->arg, section, row->key, old, new, when);
}

/* A section with the name of another machine replaces the machine at once. The other keys of a
 * machine apply when it is created. */
static void
diff_numbered(const struct diff *d, const struct numbered *n, unsigned i,
	const struct settings *was, const struct settings *next)
{
	bool before = change_present(was, n, i), after = change_present(next, n, i);
	bool keeps = n->when == AS_MACHINE &&
		     strcmp(was->vms[i].value[VM_NAME], next->vms[i].value[VM_NAME]) == 0;
	const struct row *row;
	char section[NAME_LEN];

	snprintf(section, sizeof(section), "%s %u", n->section, i);
	if (before != after)
		d->visit(d->arg, section, NULL, before ? section : "", after ? section : "",
			n->when);
	for (size_t r = 0; before && after && (row = settings_numbered_row(r)) != NULL; r++)
		if (strcmp(row->section, n->section) == 0)
			diff_row(d, row, section, change_member(was, n, i),
				change_member(next, n, i), keeps ? AT_RESTART : n->when);
}

void
settings_diff(
	const struct settings *was, const struct settings *next, settings_differs *visit, void *arg)
{
	const struct diff d = {visit, arg};
	const struct numbered *n;
	const struct row *row;

	for (size_t i = 0; (row = settings_row(i)) != NULL; i++)
		diff_row(&d, row, row->section, (const uint8_t *)was, (const uint8_t *)next,
			row->when);
	for (size_t k = 0; (n = settings_numbered(k)) != NULL; k++)
		for (unsigned i = 0; i < n->count; i++)
			diff_numbered(&d, n, i, was, next);
}

/* ---- Changes ---- */

static size_t
value_size(enum kind kind, uint64_t max)
{
	switch (kind) {
	case KIND_TEXT:
	case KIND_SOURCE:
		return max;
	case KIND_BYTES:
		return sizeof(uint64_t);
	case KIND_LEVEL:
		return sizeof(uint8_t);
	default:
		return sizeof(uint32_t);
	}
}

void
settings_adopt(struct settings *s, const struct settings *next, bool identity)
{
	const struct numbered *n;
	const struct row *row;

	for (size_t i = 0; (row = settings_row(i)) != NULL; i++) {
		if (row->when != AT_ONCE && !(identity && row->when == WITH_IDENTITY))
			continue;
		memcpy((uint8_t *)s + row->at, (const uint8_t *)next + row->at,
			value_size(row->kind, row->max));
		s->source[i] = next->source[i];
		s->key_line[i] = next->key_line[i];
	}
	for (size_t k = 0; (n = settings_numbered(k)) != NULL; k++) {
		if (n->when != AT_ONCE && !(identity && n->when == WITH_IDENTITY))
			continue;
		memcpy((uint8_t *)s + n->at, (const uint8_t *)next + n->at, n->count * n->size);
		memcpy(s->section_line[k], next->section_line[k], sizeof(s->section_line[k]));
	}
	memcpy(s->eng.falcon.modes, next->eng.falcon.modes, sizeof(s->eng.falcon.modes));
}

enum takes_effect
settings_when(const char *section, const char *key)
{
	const struct numbered *kind;
	const struct row *row;
	char why[WHY_LEN];
	unsigned number;

	for (size_t i = 0; (row = settings_row(i)) != NULL; i++)
		if (strcmp(row->section, section) == 0 && strcmp(row->key, key) == 0)
			return row->when;
	return settings_numbered_find(section, &kind, &number, why) == 0 ? kind->when : AT_RESTART;
}

int
settings_unset(struct settings *s, const char *section, char why[WHY_LEN])
{
	const struct numbered *kind;
	struct settings *fresh;
	unsigned number;

	if (settings_numbered_find(section, &kind, &number, why) < 0)
		return -ENOENT;
	if (!change_present(s, kind, number)) {
		settings_refuse(why, "does not exist");
		return -ENOENT;
	}
	fresh = malloc(sizeof(*fresh));
	if (fresh == NULL) {
		settings_refuse(why, "cannot be removed: memory is exhausted");
		return -ENOENT;
	}
	settings_default(fresh);
	memcpy((uint8_t *)s + kind->at + number * kind->size, change_member(fresh, kind, number),
		kind->size);
	free(fresh);
	if (strcmp(kind->section, "connection") == 0)
		s->eng.falcon.modes[number].present = false;
	return 0;
}

/* ---- Saving ---- */

struct saving {
	FILE *to;
	char printed[NAME_LEN];
};

static void
save_visit(void *arg, const char *section, const char *key, const char *value, const char *source)
{
	struct saving *v = arg;

	if (source != NULL && strcmp(source, "default") == 0)
		return;
	if (key == NULL && strchr(section, ' ') == NULL)
		return; /* printed with its first key */
	if (strcmp(v->printed, section) != 0)
		fprintf(v->to, "\n[%s]\n", section);
	snprintf(v->printed, sizeof(v->printed), "%s", section);
	if (key != NULL)
		fprintf(v->to, "%s = %s\n", key, value);
}

/* Writes the file, and makes it permanent. */
static bool
save_write(const struct settings *s, int fd)
{
	struct saving v = {.to = fdopen(fd, "w")};
	bool good;

	if (v.to == NULL) {
		close(fd);
		return false;
	}
	fprintf(v.to, "; Saved by saker: the values in force that differ from the defaults.\n");
	settings_each(s, save_visit, &v);
	good = fflush(v.to) == 0 && fsync(fd) == 0;
	return fclose(v.to) == 0 && good;
}

int
settings_save(const struct settings *s, const char *path, char why[WHY_LEN])
{
	char *real = realpath(path, NULL), temp[FILE_LEN + 16];
	struct stat st = {.st_mode = 0640};
	bool good = false;
	int fd;

	if (real != NULL && stat(real, &st) == 0 && !S_ISREG(st.st_mode)) {
		free(real);
		return settings_refuse(why, "%s is not a file", path);
	}
	snprintf(temp, sizeof(temp), "%s.new", real != NULL ? real : path);
	fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && fchmod(fd, st.st_mode & 0777) == 0)
		good = save_write(s, fd) && rename(temp, real != NULL ? real : path) == 0;
	else if (fd >= 0)
		close(fd);
	if (!good) {
		settings_refuse(why, "%s cannot be written: %s", path, strerror(errno));
		if (fd >= 0)
			unlink(temp);
	}
	free(real);
	return good ? 0 : -EINVAL;
}
