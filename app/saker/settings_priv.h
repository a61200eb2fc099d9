/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of the table of settings, for settings.c and settings_change.c. */
#ifndef APP_SAKER_SETTINGS_PRIV_H
#define APP_SAKER_SETTINGS_PRIV_H

#include "settings.h"
#include "values.h"

struct row {
	const char *section, *key;
	enum kind kind;
	size_t at;
	uint64_t min, max;
	enum takes_effect when; /* not used for a section with a number */
};

/* A kind of sections with a number. */
struct numbered {
	const char *section;
	size_t at, size, present; /* offsets in struct settings, and in a member */
	unsigned count;
	enum takes_effect when;
};

/* Return the rows of the table one after the other, and NULL at its end. */
const struct row *settings_row(size_t i);
const struct row *settings_numbered_row(size_t i);
const struct numbered *settings_numbered(size_t i);
/* Finds the kind and the number of a section: "port 3" is number 3 of the kind "port". Returns 0,
 * or -ENOENT with the end of a sentence. */
int settings_numbered_find(
	const char *section, const struct numbered **kind, unsigned *number, char *why);

#endif
