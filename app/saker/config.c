/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the configuration file and sets each key in the table of settings. */
#include <errno.h>

#include "settings.h"

static int
config_section(void *arg, const struct conf_place *at, char sentence[CONF_SENTENCE])
{
	struct settings *s = arg;
	char reason[WHY_LEN], shown[CONF_SHOWN];

	s->line = at->line;
	if (settings_section(s, at->section, reason) == 0)
		return 0;
	snprintf(
		sentence, CONF_SENTENCE, "section [%s] %s", conf_shown(at->section, shown), reason);
	return -EINVAL;
}

static int
config_entry(void *arg, const struct conf_place *at, const char *key, const char *value,
	char sentence[CONF_SENTENCE])
{
	struct settings *s = arg;
	char reason[WHY_LEN], name[CONF_SHOWN], shown[CONF_SHOWN];
	int rc;

	s->line = at->line;
	conf_shown(key, name);
	rc = settings_set(s, at->section, key, value, FROM_FILE, reason);
	if (rc == -ESRCH)
		snprintf(sentence, CONF_SENTENCE, "[%s] has no key '%s'", at->section, name);
	else if (rc < 0)
		snprintf(sentence, CONF_SENTENCE, "[%s] %s = %s %s", at->section, name,
			settings_shown(key, value, shown), reason);
	return rc < 0 ? -EINVAL : 0;
}

int
settings_file(struct settings *s, const char *path, char why[WHY_LEN])
{
	static const struct conf_reader reader = {config_section, config_entry};
	int rc = conf_read(path, &reader, s, why, WHY_LEN);

	s->line = 0;
	return rc;
}
