/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that the files of the launcher offer each other. Each begins with the name of its
 * file or, in show.c and stats.c, with the words of its command. */
#ifndef APP_SAKER_H
#define APP_SAKER_H

#include "../../drivers/gateway/gateway.h"
#include "../../lib/engine/engine.h"
#include "settings.h"

struct app {
	struct settings s;
	struct eng *e;
	uint64_t *cleared; /* [ncleared]: values of the counters at the last "clear counters" */
	unsigned ncleared;
};

/* ---- ports.c ---- */
/* Translates the settings of ports, addresses and routes into the engine's configuration. Returns
 * 0, or -errno with one sentence in `why`. */
int ports_resolve(struct settings *s, char why[WHY_LEN]);

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
int prompt_file_check(const char *path, char why[WHY_LEN]);
/* Executes the commands in a file. Returns 0, or -EINVAL after printing a sentence. */
int prompt_file(struct app *a, const char *path);
/* Opens the prompt on standard input. Returns false if this fails. */
bool prompt_open(struct app *a);
/* Reads standard input and executes complete lines. Returns false at the end of input. */
bool prompt_read(void);
void prompt_close(void);

/* ---- show.c: commands of the prompt ---- */
/* `arg` is the argument of the command, or "" if there is none. Output goes to standard output. */
void show_qps(struct app *a, const char *arg);
void show_clients(struct app *a, const char *arg);
void show_counters(struct app *a, const char *arg);
void show_neighbors(struct app *a, const char *arg);
void show_loops(struct app *a, const char *arg);
void show_config(struct app *a, const char *arg);
void clear_counters(struct app *a, const char *arg);

/* ---- stats.c ---- */
void show_port_stats(struct app *a, const char *arg);
void show_port_info(struct app *a, const char *arg);
void clear_port_stats(struct app *a, const char *arg);
/* Prints the statistics of the whole run: ports, RDMA messages and nonzero counters. */
void stats_final(struct app *a);
/* Prints a line of the character `c` with a title in its middle. */
void stats_rule(char c, const char *title);

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
/* Stops the thread. The loops may still run. */
void gateway_stop(void);
/* Frees the gateway. The loops do not run any more. */
void gateway_free(void);
/* Commands of the prompt. */
void gateway_command(struct app *a, const char *arg);
void gateway_show(struct app *a, const char *arg);

/* ---- falcon.c: commands of the prompt ---- */
void show_falcon(struct app *a, const char *arg);
/* Reads the keys and certificates of Falcon again. */
void falcon_reload(struct app *a, const char *arg);

/* ---- folder.c ---- */
/* Creates the folder of the default sockets if it is missing and `path` is in it. A failure appears
 * when the socket is created. */
void folder_make(const char *path);

/* ---- priority.c ---- */
/* If the process has real-time priority, notes it and gives the process ordinary priority. Call
 * this before EAL starts. */
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

#endif
