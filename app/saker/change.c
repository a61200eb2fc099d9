/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes while saker runs: the commands reload, set, unset and save, and SIGHUP. A change either
 * applies as a whole or not at all: everything that can fail is checked before the engine changes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../lib/base/clock.h"
#include "../../lib/base/log.h"
#include "../../lib/rof/exchange.h"
#include "identity.h"
#include "options.h"
#include "saker.h"

/* ---- The differences that the output shows ---- */

struct listing {
	struct cmd_out *out;
	bool identity;       /* keys and certificates take effect at once */
	unsigned now, later; /* differences that take effect at once, and at the next start */
};

static void
change_list(void *arg, const char *section, const char *key, const char *was, const char *next,
	enum takes_effect when)
{
	struct listing *l = arg;
	bool now = when == AT_ONCE || when == AS_MACHINE || (when == WITH_IDENTITY && l->identity);

	l->now += now;
	l->later += !now;
	cmd_record(l->out, NULL);
	cmd_text(l->out, "section", "%s", section);
	cmd_text(l->out, "key", "%s", key != NULL ? key : "(all)");
	cmd_text(l->out, "was", "%s", key != NULL ? was : was[0] != '\0' ? "present" : "-");
	cmd_text(l->out, "is", "%s", key != NULL ? next : next[0] != '\0' ? "present" : "-");
	cmd_text(l->out, "takes_effect", "%s", now ? "now" : "after a restart");
	cmd_end(l->out);
}

static void
change_say(struct cmd_out *out, const struct listing *l, const struct eng_changed *ended)
{
	if (l->now + l->later == 0)
		cmd_say(out, "Nothing differs.");
	else if (l->now == 0)
		cmd_say(out, "Nothing has changed: all that differs needs a restart.");
	else
		cmd_say(out,
			"In force.%s %" PRIu32 " connections and %" PRIu32
			" listeners at removed addresses ended.",
			l->later > 0 ? " Some values need a restart." : "", ended->conns,
			ended->listeners);
}

/* ---- The change ---- */

/* Checks keys and certificates by loading them into a context that nobody uses. */
static int
change_check_identity(const struct settings *next, char why[WHY_LEN])
{
	struct rofx_tls *used = next->eng.falcon.tls;
	struct settings *trial = malloc(sizeof(*trial));
	int rc;

	if (trial == NULL)
		return settings_refuse(why, "memory is exhausted");
	*trial = *next;
	trial->eng.falcon.tls = NULL;
	rc = used != NULL ? identity_load(trial, why) : 0;
	identity_free(trial);
	free(trial);
	return rc;
}

/* Brings *eff, a copy of the settings in force with the new values, into force. */
static int
change_apply(struct app *a, struct settings *eff, struct eng_changed *ended, char why[WHY_LEN])
{
	bool level;

	if (settings_finish(eff, why) < 0 || ports_addresses(eff, why) < 0 ||
		change_check_identity(eff, why) < 0 ||
		eng_change(a->e, &eff->eng, ended, why, WHY_LEN) < 0)
		return -EINVAL;
	if (eff->eng.falcon.tls != NULL && identity_load(eff, why) < 0)
		sk_log(SK_LOG_ERR, "the keys and certificates are the old ones: %s", why);
	/* The level of the start, without a configured one, is that of EAL's options. */
	level = a->s.log_level != eff->log_level ||
		settings_source(eff, "saker", "log") != FROM_DEFAULT;
	a->s = *eff;
	if (level)
		commands_log_level(a->s.log_level);
	return 0;
}

/* Changes what is in force to `next`, as far as that is possible at once. */
static int
change_to(struct app *a, const struct settings *next, struct cmd_out *out)
{
	/* The exchange of Falcon cannot begin to use keys while it runs, nor stop using them. */
	struct listing l = {
		.out = out, .identity = a->s.eng.falcon.tls != NULL && identity_configured(next)};
	struct settings *eff = malloc(sizeof(*eff));
	struct eng_changed ended = {0};
	char why[WHY_LEN];
	int rc;

	if (eff == NULL)
		return cmd_refuse(out, "memory is exhausted");
	*eff = a->s;
	settings_adopt(eff, next, l.identity);
	cmd_list(out, "changes");
	settings_diff(&a->s, next, change_list, &l);
	cmd_end(out);
	rc = gateway_check(next, why) < 0 ? -EINVAL : change_apply(a, eff, &ended, why);
	free(eff);
	if (rc < 0)
		return cmd_refuse(out, "nothing has changed: %s", why);
	gateway_change(a, next, out);
	change_say(out, &l, &ended);
	return 0;
}

static int
change_possible(struct cmd_out *out)
{
	return run_running() ? 0 : cmd_refuse(out, "the loops are stopped; enter 'start' first");
}

int
change_reload(void *app, const char *arg, struct cmd_out *out)
{
	struct app *a = app;
	struct settings *next = malloc(sizeof(*next));
	char why[WHY_LEN];
	int rc = change_possible(out);

	if (rc == 0 && next == NULL)
		rc = cmd_refuse(out, "memory is exhausted");
	if (rc == 0 && options_read(next, a->argc, a->argv, why) != OPTIONS_RUN)
		rc = cmd_refuse(out, "nothing has changed: %s", why);
	if (rc == 0) {
		gateway_keep(a, next);
		rc = change_to(a, next, out);
	}
	free(next);
	return rc;
}

/* ---- Single values ---- */

/* Splits "SECTION KEY=VALUE..." before the first word that has '='. Returns the words, or NULL. */
static char *
change_split(char *line)
{
	char *equals = strchr(line, '=');
	char *at = equals;

	while (at != NULL && at > line && *at != ' ')
		at--;
	if (at == NULL || at == line)
		return NULL;
	*at = '\0';
	return at + 1;
}

static int
change_value(struct settings *next, const char *section, char *word, struct cmd_out *out)
{
	char why[WHY_LEN], shown[CONF_SHOWN], name[CONF_SHOWN], *value = strchr(word, '=');
	int rc;

	if (value == NULL)
		return cmd_refuse(out, "'%s' is not KEY=VALUE", conf_shown(word, shown));
	*value++ = '\0';
	rc = settings_set(next, section, word, value, FROM_COMMAND, why);
	conf_shown(section, name);
	if (rc == -ENOENT)
		return cmd_refuse(out, "section [%s] %s", name, why);
	if (rc == -ESRCH)
		return cmd_refuse(out, "[%s] has no key '%s'", name, conf_shown(word, shown));
	if (rc < 0)
		return cmd_refuse(out, "[%s] %s = %s %s", name, word,
			settings_shown(word, value, shown), why);
	if (settings_when(section, word) == AT_RESTART)
		return cmd_refuse(out,
			"[%s] %s changes by a restart only: set it in the configuration file", name,
			word);
	if (settings_when(section, word) == AS_MACHINE)
		return cmd_refuse(out, "machines change by 'vm add' and 'vm del'");
	return 0;
}

int
change_set(void *app, const char *arg, struct cmd_out *out)
{
	struct app *a = app;
	char line[CMD_LINE], *words, *save = NULL;
	struct settings *next;
	int rc = change_possible(out);

	if (rc < 0)
		return rc;
	snprintf(line, sizeof(line), "%s", arg);
	words = change_split(line);
	if (words == NULL)
		return cmd_refuse(out, "a section is followed by KEY=VALUE");
	next = malloc(sizeof(*next));
	if (next == NULL)
		return cmd_refuse(out, "memory is exhausted");
	*next = a->s;
	for (char *w = strtok_r(words, " ", &save); rc == 0 && w != NULL;
		w = strtok_r(NULL, " ", &save))
		rc = change_value(next, line, w, out);
	if (rc == 0)
		rc = change_to(a, next, out);
	free(next);
	return rc;
}

int
change_unset(void *app, const char *arg, struct cmd_out *out)
{
	struct app *a = app;
	char why[WHY_LEN], shown[CONF_SHOWN];
	struct settings *next;
	int rc = change_possible(out);

	if (rc < 0)
		return rc;
	next = malloc(sizeof(*next));
	if (next == NULL)
		return cmd_refuse(out, "memory is exhausted");
	*next = a->s;
	conf_shown(arg, shown);
	if (settings_unset(next, arg, why) < 0)
		rc = cmd_refuse(out, "section [%s] %s", shown, why);
	else if (settings_when(arg, "") == AT_RESTART)
		rc = cmd_refuse(out, "[%s] changes by a restart only", shown);
	else
		rc = change_to(a, next, out);
	free(next);
	return rc;
}

int
change_save(void *app, const char *arg, struct cmd_out *out)
{
	const struct app *a = app;
	const char *path = arg[0] != '\0' ? arg : a->s.config_file;
	char why[WHY_LEN];

	if (path[0] == '\0')
		return cmd_refuse(out, "saker was started without a configuration file; name one");
	if (arg[0] != '\0' && arg[0] != '/')
		return cmd_refuse(out, "the path of the file begins with /");
	if (settings_save(&a->s, path, why) < 0)
		return cmd_refuse(out, "%s", why);
	return cmd_say(out, "Saved to %s.", path);
}

/* ---- SIGHUP ---- */

/* Logs a command's output, line by line. */
static void
change_log(const struct cmd_out *out)
{
	char *text = NULL, *save = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	if (to == NULL)
		return;
	cmd_print_text(out, to);
	fclose(to);
	for (char *line = strtok_r(text, "\n", &save); line != NULL;
		line = strtok_r(NULL, "\n", &save))
		sk_log(SK_LOG_INFO, "reload: %s", line);
	free(text);
}

void
change_on_signal(struct app *a)
{
	struct cmd_out *out = cmd_out_new();
	char state[WHY_LEN + 64];

	if (out == NULL)
		return;
	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		sk_clock_ns(CLOCK_MONOTONIC) / 1000);
	notify_manager(state);
	if (change_reload(a, "", out) < 0) {
		sk_log(SK_LOG_ERR, "reload: %s", cmd_refusal(out));
		snprintf(state, sizeof(state), "READY=1\nSTATUS=The last reload was refused: %s",
			cmd_refusal(out));
	} else {
		change_log(out);
		snprintf(state, sizeof(state), "READY=1\nSTATUS=Running; reloaded");
	}
	notify_manager(state);
	cmd_out_free(out);
}
