/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of commands: of the prompt, the files of commands and the control socket. */
#include <string.h>

#include <rte_log.h>

#include "saker.h"

static int
commands_help(void *app, const char *arg, struct cmd_out *out)
{
	cmd_help(commands_table(app), out);
	return 0;
}

void
commands_log_level(uint8_t level)
{
	static const uint32_t levels[] = {
		RTE_LOG_ERR, RTE_LOG_WARNING, RTE_LOG_NOTICE, RTE_LOG_DEBUG};

	rte_log_set_level_pattern("user.saker", levels[level]);
}

static int
commands_log(void *app, const char *arg, struct cmd_out *out)
{
	struct app *a = app;
	char why[WHY_LEN];

	if (settings_set(&a->s, "saker", "log", arg, FROM_COMMAND, why) < 0)
		return cmd_refuse(out, "%s %s", arg, why);
	commands_log_level(a->s.log_level);
	return cmd_say(out, "The log level is %s.", arg);
}

static int
commands_start(void *app, const char *arg, struct cmd_out *out)
{
	return run_start(app) == 0 ? cmd_say(out, "Started.")
				   : cmd_refuse(out, "the loops are running already");
}

static int
commands_stop(void *app, const char *arg, struct cmd_out *out)
{
	return run_stop(app) == 0 ? cmd_say(out, "Stopped.")
				  : cmd_refuse(out, "the loops are stopped already");
}

static int
commands_quit(void *app, const char *arg, struct cmd_out *out)
{
	run_quit();
	return cmd_say(out, "saker ends.");
}

/* Commands whose names begin with the same words stand together. */
static const struct cmd commands[] = {
	{"help", NULL, "print this list", commands_help},
	{"show port stats", "all|N", "statistics of a port", show_port_stats},
	{"show port info", "all|N", "name, addresses, link and queues of a port", show_port_info},
	{"show qp", "all|QPN", "queue pairs; with a number, the state of its connection", show_qps},
	{"show events", "QPN", "the last events of a QP's connection: losses, timeouts, probes",
		show_events},
	{"show failed", NULL, "connections that failed last, with their last events", show_failed},
	{"show client", "all|N", "clients with their processes, objects and memory", show_clients},
	{"show memory", NULL, "memory of the process, of DPDK's heaps, and mbufs", show_memory},
	{"show counters", "[nonzero]", "counters of all layers, or those that are not 0",
		show_counters},
	{"show vms", NULL, "virtual machines, their objects, and the switch", gateway_show},
	{"show falcon", NULL, "protection of Falcon's exchange and packets, and its connections",
		show_falcon},
	{"show neighbors", NULL,
		"neighbours with their MAC addresses, from ARP and neighbour discovery",
		show_neighbors},
	{"show loops", NULL, "the stages of each loop, and its load", show_loops},
	{"show config", NULL, "the effective configuration, and the source of each value",
		show_config},
	{"port attach", "N", "use the device of a port again that was removed and is back",
		port_attach},
	{"clear port stats", "all|N", "reset the statistics of a port", clear_port_stats},
	{"clear counters", NULL, "reset the counters", clear_counters},
	{"falcon reload", NULL, "read Falcon's keys and certificates again, for later connections",
		falcon_reload},
	{"vm add", "NAME KEY=VALUE...", "add a virtual machine", gateway_add},
	{"vm del", "NAME", "remove a virtual machine", gateway_del},
	{"reload", NULL, "read the configuration again, and apply what can change at once",
		change_reload},
	{"set", "SECTION KEY=VALUE...", "change values of a section, such as 'interface 1'",
		change_set},
	{"unset", "SECTION...", "remove a section with a number", change_unset},
	{"save", "[FILE]", "write the values in force to the configuration file, or to FILE",
		change_save},
	{"capture start", "FILE [N]...",
		"write the frames of port N (or of the first one) to a new pcapng file",
		capture_start},
	{"capture stop", NULL, "end the capture", capture_stop},
	{"log", "error|warning|info|debug", "set the least severe messages that are logged",
		commands_log},
	{"start", NULL, "start the loops again", commands_start},
	{"stop", NULL, "stop the loops: saker sends and answers nothing until 'start'",
		commands_stop},
	{"quit", NULL, "end saker", commands_quit},
};

const struct cmd_table *
commands_table(struct app *a)
{
	static struct cmd_table table = {commands, sizeof(commands) / sizeof(commands[0]), NULL};

	table.app = a;
	return &table;
}
