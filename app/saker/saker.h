/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that the files of the launcher offer each other. Each begins with the name of its
 * file or, in show.c and stats.c, with the words of its command. */
#ifndef APP_SAKER_H
#define APP_SAKER_H

#include "../../drivers/gateway/gateway.h"
#include "../../lib/command/server.h"
#include "../../lib/engine/engine.h"
#include "settings.h"

#define CLEARED_MAX (GW_VMS + 1)

/* The values of an engine's counters at the last "clear counters". */
struct cleared {
	char machine[GW_NAME_MAX];
	uint64_t *value; /* [n]; NULL: none */
	unsigned n;
};

struct app {
	struct settings s; /* those in force */
	int argc;          /* the options, for reload: see options_read() */
	char **argv;
	struct eng *e;
	struct cmd_server *control; /* the control socket */
	struct cmd_server *metrics; /* NULL: no metrics */
	struct cleared cleared[CLEARED_MAX];
};

/* ---- commands.c ---- */
/* Returns the table of all commands, which live as long as the process. */
const struct cmd_table *commands_table(struct app *a);

/* Makes saker's messages of this level (enum sk_log_level) and of more severe ones appear. */
void commands_log_level(uint8_t level);

/* ---- capture.c ---- */
/* Commands. */
int capture_start(void *app, const char *arg, struct cmd_out *out);
int capture_stop(void *app, const char *arg, struct cmd_out *out);
/* Ends a capture, if one runs. */
void capture_end(struct app *a);
/* Ends the capture of a port whose device was removed. The thread that calls eng_ports_look() calls
 * this before each call: eng_ports_look() closes such a port at its third call at the earliest. */
void capture_look(struct app *a);

/* ---- change.c: changes while saker runs ---- */
/* Commands: read options and configuration again, change values, remove a section, save. */
int change_reload(void *app, const char *arg, struct cmd_out *out);
int change_set(void *app, const char *arg, struct cmd_out *out);
int change_unset(void *app, const char *arg, struct cmd_out *out);
int change_save(void *app, const char *arg, struct cmd_out *out);
/* Does what the command reload does, after SIGHUP, and logs the result. */
void change_on_signal(struct app *a);

/* ---- ports.c ---- */
/* Translates the settings of ports, addresses and routes into the engine's configuration. Returns
 * 0, or -errno with one sentence in `why`. */
int ports_resolve(struct settings *s, char why[WHY_LEN]);
/* Translates addresses and routes again, for the ports that ports_resolve() has found. */
int ports_addresses(struct settings *s, char why[WHY_LEN]);
/* Returns the index in eng_config.ports of a port by the user's name for it, the N of [port N] or
 * the name of its device, or -1. */
int ports_index(const struct eng_config *c, const char *text);
/* Returns the N of [port N] of a port by its index, which no command changes. */
unsigned ports_label(unsigned index);

/* ---- run.c ---- */
/* Runs the loops on this lcore and the others until run_quit() is called. Returns 0, or -errno with
 * one sentence in `why`. */
int run_loops(struct app *a, char why[WHY_LEN]);
/* Ends run_loops(). Any thread or signal handler may call this. */
void run_quit(void);
/* Stops or starts the loops, for the prompt. Returns 0, or -EALREADY if this changes nothing. */
int run_stop(struct app *a);
int run_start(struct app *a);
/* Returns whether the loops are running. Any thread may call this. */
bool run_running(void);

/* ---- prompt.c ---- */
/* Checks that a file of commands can be read and, if it is a regular file, that each line is a
 * command, a comment (#) or empty. Returns 0, or -EINVAL with one sentence in `why`. */
int prompt_file_check(const struct cmd_table *table, const char *path, char why[WHY_LEN]);
/* The next two functions return 0, or -EINVAL with one sentence in `why`. */
/* Executes the commands in a file. */
int prompt_file(const struct cmd_table *table, const char *path, char why[WHY_LEN]);
/* Opens the prompt on standard input. */
int prompt_open(const struct cmd_table *table, char why[WHY_LEN]);
/* Reads standard input and executes complete lines. Returns false at the end of input. */
bool prompt_read(void);
void prompt_close(void);
/* Prints the output of a command, or the sentence of a refusal, to standard output. */
void prompt_print(const struct cmd_out *out);

/* ---- show.c: commands, as struct cmd describes them ---- */
int show_qps(void *app, const char *arg, struct cmd_out *out);
int show_clients(void *app, const char *arg, struct cmd_out *out);
int show_counters(void *app, const char *arg, struct cmd_out *out);
int show_neighbors(void *app, const char *arg, struct cmd_out *out);
int show_loops(void *app, const char *arg, struct cmd_out *out);
int show_config(void *app, const char *arg, struct cmd_out *out);
int clear_counters(void *app, const char *arg, struct cmd_out *out);
/* Adds an end of a connection: "10.0.0.1:7000" or "[fd00::1]:7000". */
void show_end(struct cmd_out *out, const char *key, const struct sk_addr *addr, uint16_t port);
/* Frees the values that clear_counters() has kept. */
void clear_free(struct app *a);

/* ---- metrics.c ---- */
/* Checks where the metrics are to be read. Returns 0, or -EINVAL with one sentence in `why`. */
int metrics_check(const struct settings *s, char why[WHY_LEN]);
/* Serves the metrics there, if that is configured. Returns 0, or -EINVAL with one sentence in
 * `why`. */
int metrics_open(struct app *a, char why[WHY_LEN]);

/* ---- memory.c ---- */
int show_memory(void *app, const char *arg, struct cmd_out *out);

/* ---- stats.c ---- */
int show_port_stats(void *app, const char *arg, struct cmd_out *out);
int show_port_info(void *app, const char *arg, struct cmd_out *out);
int clear_port_stats(void *app, const char *arg, struct cmd_out *out);
int port_attach(void *app, const char *arg, struct cmd_out *out);
/* Prints the statistics of all ports. */
void stats_period(struct app *a);
/* Prints the statistics of the whole run: ports, RDMA messages and nonzero counters. */
void stats_final(struct app *a);

/* ---- gateway.c: virtual machines ---- */
/* The first four functions return 0, or -errno with one sentence in `why`. */
/* Checks the sections [vm N], before EAL starts. */
int gateway_check(const struct settings *s, char why[WHY_LEN]);
/* Creates a gateway without an uplink if one is configured. Call this before ports_resolve(), which
 * then finds the gateway's port. */
int gateway_prepare(struct app *a, char why[WHY_LEN]);
/* Creates a gateway with an uplink, whose port it takes over, and configures the host's engine for
 * the gateway. Call this after ports_resolve(). */
int gateway_plug(struct app *a, char why[WHY_LEN]);
/* Adds the configured machines and starts the thread that tends them. The engine exists. */
int gateway_start(struct app *a, char why[WHY_LEN]);
/* Stops the thread, if gateway_start() has created it. The loops may still run. */
void gateway_stop(void);
/* Frees the gateway. The loops do not run any more. */
void gateway_free(void);
/* Calls `each` for the host's engine, as machine "-", and for that of each machine. The engine
 * exists until `each` returns. */
void gateway_each(struct app *a, gw_visit *each, void *arg);
/* Copies to *next the machines that a command has added. */
void gateway_keep(struct app *a, struct settings *next);
/* Follows a change of the host's addresses. Removes the machines that no section of *next names,
 * and adds those that no section of a->s names. a->s then has the machines under the numbers that
 * they have in *next. A machine that uses an address or a file of one that is leaving is added by
 * gateway_look(). Adds a sentence for each failure to `out`. */
void gateway_change(struct app *a, const struct settings *next, struct cmd_out *out);
/* Adds the machines that waited for the end of others. Call this once a second, and not while
 * another thread executes a command. */
void gateway_look(struct app *a);
/* Takes the removed device of the uplink into use again. `index` is that of a port in
 * eng_config.ports. Returns 0, or -errno with a sentence: -ENOENT when the port is not the
 * uplink's.
 */
int gateway_attach(unsigned index, char why[WHY_LEN]);
/* Commands. */
int gateway_show(void *app, const char *arg, struct cmd_out *out);
int gateway_add(void *app, const char *arg, struct cmd_out *out);
int gateway_del(void *app, const char *arg, struct cmd_out *out);

/* ---- falcon.c: commands ---- */
int show_falcon(void *app, const char *arg, struct cmd_out *out);
/* Reads the keys and certificates of Falcon again. */
int falcon_reload(void *app, const char *arg, struct cmd_out *out);

/* ---- flight.c: commands ---- */
int show_events(void *app, const char *arg, struct cmd_out *out);
int show_failed(void *app, const char *arg, struct cmd_out *out);

/* ---- folder.c ---- */
/* Creates the folder of the default sockets if it is missing and `path` is in it. A failure appears
 * when the socket is created. */
void folder_make(const char *path);

/* ---- priority.c ---- */
/* Notes the cores of the process. If it has real-time priority, notes that and gives the process
 * ordinary priority. Call this before EAL starts. */
void priority_begin(void);
/* Replaces idle by sleep if lcores with real-time priority leave no core to the other threads. Call
 * this after EAL has started. */
void priority_settle(struct settings *s);
/* Moves the main lcore to the cores that have no lcore, if there are any, or back: threads that it
 * creates in between stay there. */
void priority_aside(bool aside);
/* Gives the calling lcore the noted priority, and takes it back: around its loop. */
void priority_enter(void);
void priority_leave(void);

/* ---- notify.c ---- */
/* Sends `state` to the service manager ($NOTIFY_SOCKET), if there is one. */
void notify_manager(const char *state);
/* Implement struct gw_keeper with the service manager's store of descriptors, which it passes to
 * the next saker. Without a manager they do nothing. */
void notify_keep(const char *name, int fd);
void notify_forget(const char *name);
int notify_kept(const char *name);
/* Closes and forgets the descriptors that came with the start of this process and that
 * notify_kept() has not returned. */
void notify_forget_rest(void);

#endif
