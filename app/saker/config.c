/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the configuration file with rte_cfgfile and sets each key in the table of settings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cfgfile.h>

#include "settings.h"

static int
entry_set(struct settings *s, const char *path, const char *section,
	const struct rte_cfgfile_entry *e, char why[WHY_LEN])
{
	char reason[WHY_LEN];
	int rc = settings_set(s, section, e->name, e->value, FROM_FILE, reason);

	if (rc == -ENOENT)
		settings_refuse(why, "%s: section [%s] %s", path, section, reason);
	else if (rc == -ESRCH)
		settings_refuse(why, "%s: [%s] has no key '%s'", path, section, e->name);
	else if (rc < 0)
		settings_refuse(why, "%s: [%s] %s = %s %s", path, section, e->name,
			settings_shown(e->name, e->value), reason);
	return rc < 0 ? -EINVAL : 0;
}

static int
section_set(struct settings *s, const char *path, struct rte_cfgfile *file, unsigned index,
	char why[WHY_LEN])
{
	char section[CFG_NAME_LEN];
	struct rte_cfgfile_entry *entries;
	int n = rte_cfgfile_section_num_entries_by_index(file, section, (int)index), rc = 0;

	if (n <= 0) /* an empty section has no effect */
		return 0;
	entries = calloc((size_t)n, sizeof(*entries));
	if (entries == NULL) {
		settings_refuse(why, "%s: out of memory", path);
		return -ENOMEM;
	}
	n = rte_cfgfile_section_entries_by_index(file, (int)index, section, entries, n);
	for (int i = 0; i < n && rc == 0; i++)
		rc = entry_set(s, path, section, &entries[i], why);
	free(entries);
	return rc;
}

int
settings_file(struct settings *s, const char *path, char why[WHY_LEN])
{
	struct rte_cfgfile *file;
	int n, rc = 0;

	if (access(path, R_OK) < 0)
		return settings_refuse(
			why, "the configuration file %s cannot be read: %s", path, strerror(errno));
	file = rte_cfgfile_load(path, 0);
	if (file == NULL)
		return settings_refuse(why,
			"the configuration file %s is not made of [section] and key = value lines",
			path);
	n = rte_cfgfile_num_sections(file, NULL, 0);
	for (int i = 0; i < n && rc == 0; i++)
		rc = section_set(s, path, file, (unsigned)i, why);
	rte_cfgfile_close(file);
	return rc;
}
