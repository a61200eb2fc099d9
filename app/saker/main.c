/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * saker [EAL options] -- [options]: the RNIC as a program. It reads options and configuration
 * before EAL starts, so that it reports mistakes in them immediately. After each error, saker
 * prints one sentence and exits with code 1.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_pdump.h>

#include "../../lib/base/log_queue.h"
#include "identity.h"
#include "options.h"
#include "saker.h"

static int logtype;

static void
log_to_rte(enum sk_log_level level, const char *line)
{
	static const uint32_t levels[] = {
		RTE_LOG_ERR, RTE_LOG_WARNING, RTE_LOG_NOTICE, RTE_LOG_DEBUG};

	rte_log(levels[level], (uint32_t)logtype, "saker: %s\n", line);
}

static int
saker_main_refuse(const char *why)
{
	fflush(stdout);
	fprintf(stderr, "saker: %s\n", why);
	return EXIT_FAILURE;
}

/* Returns the number of EAL's arguments, which end at "--". */
static int
eal_argc(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return i;
	return argc;
}

/* Checks what is possible before EAL starts: the files that the configuration names, the machines,
 * and the engine's configuration but for its ports. */
static int
saker_main_check(struct app *a, char why[WHY_LEN])
{
	struct settings *s = &a->s;

	if (identity_load(s, why) < 0 || gateway_check(s, why) < 0 || metrics_check(s, why) < 0 ||
		eng_config_check(&s->eng, why, WHY_LEN) < 0)
		return -EINVAL;
	return s->cmdline_file[0] != '\0'
		       ? prompt_file_check(commands_table(a), s->cmdline_file, why)
		       : 0;
}

/* Logs a warning when no peer can reach this saker. */
static void
saker_main_warn(const struct settings *s)
{
	identity_warn(s, (int64_t)time(NULL));
	if (s->eng.nifs == 0)
		sk_log(SK_LOG_WARNING, "there is no address: add [interface 0] or --address "
				       "PORT=ADDRESS/LENGTH");
}

static int
control_open(struct app *a, char why[WHY_LEN])
{
	const struct settings *s = &a->s;

	if (strcmp(s->control, "none") == 0)
		return 0;
	folder_make(s->control);
	a->control = cmd_server_open(
		commands_table(a), s->control, s->control_group, s->control_mode, why, WHY_LEN);
	return a->control != NULL ? 0 : -EINVAL;
}

static int
engine_run(struct app *a)
{
	char why[WHY_LEN];
	int rc;

	if (gateway_prepare(a, why) < 0 || ports_resolve(&a->s, why) < 0 ||
		gateway_plug(a, why) < 0)
		return saker_main_refuse(why);
	saker_main_warn(&a->s);
	a->e = eng_create(&a->s.eng, why, sizeof(why));
	if (a->e == NULL)
		return saker_main_refuse(why);
	folder_make(a->s.socket);
	priority_aside(true);
	rc = eng_socket_start(a->e, a->s.socket, why, sizeof(why));
	priority_aside(false);
	if (rc == 0)
		rc = gateway_start(a, why);
	if (rc == 0)
		rc = control_open(a, why);
	if (rc == 0)
		rc = metrics_open(a, why);
	if (rc == 0) {
		if (eng_telemetry_register(a->e) < 0)
			sk_log(SK_LOG_WARNING,
				"the telemetry commands /saker cannot be registered");
		rc = run_loops(a, why);
		capture_end(a);
	}
	/* Both threads use the engine, also when a later step of the start has failed. */
	gateway_stop();
	eng_socket_stop(a->e);
	cmd_server_close(a->control);
	cmd_server_close(a->metrics);
	a->control = a->metrics = NULL;
	if (rc == 0)
		stats_final(a);
	eng_destroy(a->e);
	gateway_free();
	identity_free(&a->s);
	clear_free(a);
	return rc < 0 ? saker_main_refuse(why) : EXIT_SUCCESS;
}

/* Runs the engine on the lcores of EAL. Returns the exit status. */
static int
eal_run(struct app *a, int argc, char **argv)
{
	char why[WHY_LEN];
	int rc;

	if (rte_eal_init(argc, argv) < 0) {
		snprintf(
			why, sizeof(why), "EAL cannot be initialized: %s", rte_strerror(rte_errno));
		return saker_main_refuse(why);
	}
	logtype = rte_log_register_type_and_pick_level("user.saker", RTE_LOG_NOTICE);
	priority_aside(true);
	rc = sk_log_queue_start(log_to_rte);
	priority_aside(false);
	if (rc < 0) {
		snprintf(why, sizeof(why), "the thread that writes messages cannot be started: %s",
			strerror(-rc));
		return saker_main_refuse(why);
	}
	if (settings_source(&a->s, "saker", "log") != FROM_DEFAULT)
		commands_log_level(a->s.log_level);
	priority_settle(&a->s);
	/* For dpdk-dumpcap. Without support for other processes, nobody can ask for a capture. */
	if (rte_pdump_init() < 0)
		sk_log(SK_LOG_WARNING, "dpdk-dumpcap cannot capture: %s", rte_strerror(rte_errno));
	rc = engine_run(a);
	rte_pdump_uninit();
	sk_log_queue_stop();
	rte_eal_cleanup();
	return rc;
}

int
main(int argc, char **argv)
{
	static struct app a;
	char why[WHY_LEN];
	int n = eal_argc(argc, argv);

	rte_set_application_usage_hook(options_usage);
	/* getopt_long() takes the element "--" for the program's name. */
	a.argc = argc - n > 0 ? argc - n : 1;
	a.argv = argc - n > 0 ? argv + n : argv;
	switch (options_read(&a.s, a.argc, a.argv, why)) {
	case OPTIONS_HELP:
		options_usage(argv[0]);
		return EXIT_SUCCESS;
	case OPTIONS_VERSION:
		printf("saker %s\n", SAKER_VERSION);
		return EXIT_SUCCESS;
	case OPTIONS_REFUSED:
		return saker_main_refuse(why);
	case OPTIONS_RUN:
		break;
	}
	if (saker_main_check(&a, why) < 0)
		return saker_main_refuse(why);
	if (a.s.check) {
		identity_free(&a.s);
		return EXIT_SUCCESS;
	}
	priority_begin();
	return eal_run(&a, n, argv);
}
