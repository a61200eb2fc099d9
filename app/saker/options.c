/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the options from one table, from which it also prints the usage. Options that testpmd has,
 * too, have testpmd's names. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "values.h"

#define LONG_ONLY 256 /* getopt_long's value for an option without a letter: LONG_ONLY + row */

/* Columns of the usage: where the explanations begin, and how many they have. */
#define USAGE_AT    32
#define USAGE_WIDTH 48

enum special {
	SET_KEY,
	HELP,
	VERSION,
	CHECK,
	INTERACTIVE,
	CMDLINE_FILE,
	CONFIG,
	STATS_PERIOD,
	ADDRESS
};

static const struct row {
	const char *name;
	char letter;
	const char *arg; /* NULL: the option has no argument */
	enum special special;
	const char *section, *key; /* SET_KEY */
	const char *help;
} rows[] = {
	{"help", 'h', NULL, HELP, NULL, NULL, "print this and exit"},
	{"version", 'v', NULL, VERSION, NULL, NULL, "print the version and exit"},
	{"check", 0, NULL, CHECK, NULL, NULL, "check configuration and options, and exit"},
	{"interactive", 'i', NULL, INTERACTIVE, NULL, NULL, "open a prompt on standard input"},
	{"cmdline-file", 0, "FILE", CMDLINE_FILE, NULL, NULL,
		"execute the prompt's commands in FILE at the start"},
	{"stats-period", 0, "N", STATS_PERIOD, NULL, NULL, "print port statistics each N seconds"},
	{"config", 0, "FILE", CONFIG, NULL, NULL, "read the configuration FILE (or $SAKER_CONFIG)"},
	{"address", 0, "PORT=ADDR/LEN", ADDRESS, NULL, NULL,
		"add an address to a port; may be repeated"},
	{"socket", 0, "PATH", SET_KEY, "saker", "socket", "Unix socket to which clients attach"},
	{"name", 0, "NAME", SET_KEY, "saker", "name", "name of the RDMA device"},
	{"idle", 0, "HOW", SET_KEY, "saker", "idle", "idle lcores poll, yield or sleep"},
	{"mtu", 0, "N", SET_KEY, "saker", "mtu", "bytes of an IP packet, for every port"},
	{"rxd", 0, "N", SET_KEY, "saker", "rxd", "receive descriptors, for every port"},
	{"txd", 0, "N", SET_KEY, "saker", "txd", "transmit descriptors, for every port"},
	{"total-num-mbufs", 0, "N", SET_KEY, "saker", "total-num-mbufs",
		"mbufs of all stages together"},
	{"loops", 0, "N", SET_KEY, "saker", "loops", "number of loops, each on an lcore"},
	{"transports", 0, "N", SET_KEY, "saker", "transports", "number of transport stages"},
	{"stages", 0, "N", SET_KEY, "saker", "stages", "number of engine stages"},
	{"transport-loops", 0, "LIST", SET_KEY, "saker", "transport-loops",
		"the loop of each transport stage"},
	{"stage-loops", 0, "LIST", SET_KEY, "saker", "stage-loops",
		"the loop of each engine stage"},
	{"control-loop", 0, "N", SET_KEY, "saker", "control-loop", "the loop of the control stage"},
	{"cc", 0, "NAME", SET_KEY, "tcp", "cc", "TCP congestion control: cubic, dctcp or none"},
	{"mpa-revision", 0, "N", SET_KEY, "mpa", "revision", "MPA revision: 1 or 2"},
	{"crc", 0, "YES|NO", SET_KEY, "mpa", "crc", "request the MPA CRC"},
	{"markers", 0, "YES|NO", SET_KEY, "mpa", "markers", "request MPA markers"},
	{"fall-back", 0, "YES|NO", SET_KEY, "mpa", "fall-back",
		"connect again with revision 1 to a peer that does not support revision 2"},
	{"draft-ext", 0, "YES|NO", SET_KEY, "rdmap", "draft-ext",
		"use draft-ietf-storm-rdmap-ext-00 instead of RFC 7306"},
	{"falcon", 0, "YES|NO", SET_KEY, "falcon", "enabled", "serve RDMA over Falcon, too"},
	{"psp", 0, "LIST", SET_KEY, "falcon", "psp",
		"PSP versions for Falcon: none, gcm128, gcm256, gmac128, gmac256"},
};
#define NROWS (sizeof(rows) / sizeof(rows[0]))

/* Prints `text` in lines of 80 columns, from column USAGE_AT on. The cursor is there already. */
static void
usage_explain(const char *text)
{
	size_t len;

	while ((len = strlen(text)) > USAGE_WIDTH) {
		for (len = USAGE_WIDTH; text[len] != ' '; len--)
			;
		printf("%.*s\n%*s", (int)len, text, USAGE_AT, "");
		text += len + 1;
	}
	printf("%s\n", text);
}

void
options_usage(const char *program)
{
	printf("Usage: %s [EAL options] -- [options]\n\n", program);
	for (size_t i = 0; i < NROWS; i++) {
		char left[64];

		snprintf(left, sizeof(left), "%c%c%c --%s%s%s", rows[i].letter ? '-' : ' ',
			rows[i].letter ? rows[i].letter : ' ', rows[i].letter ? ',' : ' ',
			rows[i].name, rows[i].arg != NULL ? " " : "",
			rows[i].arg != NULL ? rows[i].arg : "");
		printf("  %-*s", USAGE_AT - 2, left);
		usage_explain(rows[i].help);
	}
	printf("\nEach key of the configuration file is also an environment variable: [tcp]\n"
	       "rto-min is SAKER_TCP_RTO_MIN, [saker] idle is SAKER_IDLE. An option takes\n"
	       "precedence over the environment, and the environment over the file.\n");
}

static void
getopt_table(struct option longs[NROWS + 1], char shorts[2 * NROWS + 2])
{
	char *p = shorts;

	*p++ = ':'; /* requests the value ':' for a missing argument */
	for (size_t i = 0; i < NROWS; i++) {
		longs[i] = (struct option){
			.name = rows[i].name,
			.has_arg = rows[i].arg != NULL ? required_argument : no_argument,
			.val = rows[i].letter ? rows[i].letter : LONG_ONLY + (int)i,
		};
		if (rows[i].letter)
			*p++ = rows[i].letter;
	}
	longs[NROWS] = (struct option){0};
	*p = '\0';
}

static const struct row *
saker_options_row_of(int val)
{
	for (size_t i = 0; i < NROWS; i++)
		if (val == (rows[i].letter ? rows[i].letter : LONG_ONLY + (int)i))
			return &rows[i];
	return NULL;
}

static int
apply(struct settings *s, const struct row *row, const char *arg, char reason[WHY_LEN])
{
	switch (row->special) {
	case SET_KEY:
		return settings_set(s, row->section, row->key, arg, FROM_OPTION, reason);
	case CHECK:
		s->check = true;
		return 0;
	case INTERACTIVE:
		s->interactive = true;
		return 0;
	case CMDLINE_FILE:
		return value_parse(
			KIND_TEXT, 0, sizeof(s->cmdline_file), arg, s->cmdline_file, reason);
	case STATS_PERIOD:
		return value_parse(KIND_U32, 1, 86400, arg, &s->stats_period, reason);
	case ADDRESS:
		return settings_add_address(s, arg, reason);
	default: /* the first pass has handled the others */
		return 0;
	}
}

/* Handles an option in the first pass, which finds the configuration file, --help and --version,
 * and refuses unknown options. */
static enum options_result
first_pass(struct settings *s, const struct row *row, const char *arg, char why[WHY_LEN])
{
	char reason[CONF_WHY], shown[CONF_SHOWN];

	if (row->special == CONFIG &&
		conf_text(arg, sizeof(s->config_file), s->config_file, reason) < 0) {
		settings_refuse(why, "--config %s %s", conf_shown(arg, shown), reason);
		return OPTIONS_REFUSED;
	}
	if (row->special == HELP)
		return OPTIONS_HELP;
	return row->special == VERSION ? OPTIONS_VERSION : OPTIONS_RUN;
}

static enum options_result
refuse_unknown(int val, char **argv, char why[WHY_LEN])
{
	char shown[CONF_SHOWN];

	conf_shown(argv[optind - 1], shown);
	if (optopt != 0 && optopt < LONG_ONLY && saker_options_row_of(optopt) == NULL)
		settings_refuse(why, "option '-%c' is unknown", optopt);
	else if (val == ':')
		settings_refuse(why, "option '%s' needs an argument", shown);
	else
		settings_refuse(why, "option '%s' is unknown", shown);
	return OPTIONS_REFUSED;
}

/* Parses the arguments once. */
static enum options_result
saker_options_pass(struct settings *s, int argc, char **argv, bool first, char why[WHY_LEN])
{
	struct option longs[NROWS + 1];
	char shorts[2 * NROWS + 2], reason[WHY_LEN], shown[CONF_SHOWN];
	enum options_result result = OPTIONS_RUN;
	int val;

	getopt_table(longs, shorts);
	optind = 0; /* with glibc, restarts the scan */
	opterr = 0;
	while (result == OPTIONS_RUN &&
		(val = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct row *row = val == '?' || val == ':' ? NULL : saker_options_row_of(val);

		if (row == NULL)
			return refuse_unknown(val, argv, why);
		if (first) {
			result = first_pass(s, row, optarg, why);
		} else if (apply(s, row, optarg, reason) < 0) {
			settings_refuse(
				why, "--%s %s %s", row->name, conf_shown(optarg, shown), reason);
			return OPTIONS_REFUSED;
		}
	}
	if (result == OPTIONS_RUN && optind < argc) {
		settings_refuse(why, "'%s' is not an option", conf_shown(argv[optind], shown));
		return OPTIONS_REFUSED;
	}
	return result;
}

enum options_result
options_read(struct settings *s, int argc, char **argv, char why[WHY_LEN])
{
	const char *env = getenv("SAKER_CONFIG");
	char reason[CONF_WHY], shown[CONF_SHOWN];
	enum options_result result;

	settings_default(s);
	if (env != NULL && conf_text(env, sizeof(s->config_file), s->config_file, reason) < 0) {
		settings_refuse(why, "environment variable SAKER_CONFIG: '%s' %s",
			conf_shown(env, shown), reason);
		return OPTIONS_REFUSED;
	}
	result = saker_options_pass(s, argc, argv, true, why);
	if (result != OPTIONS_RUN)
		return result;
	if (s->config_file[0] != '\0' && settings_file(s, s->config_file, why) < 0)
		return OPTIONS_REFUSED;
	if (settings_environment(s, why) < 0)
		return OPTIONS_REFUSED;
	result = saker_options_pass(s, argc, argv, false, why);
	if (result == OPTIONS_RUN && settings_finish(s, why) < 0)
		return OPTIONS_REFUSED;
	return result;
}
