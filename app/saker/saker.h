/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the launcher share. */
#ifndef APP_SAKER_H
#define APP_SAKER_H

#include "../../drivers/gateway/gateway.h"
#include "../../lib/engine/engine.h"
#include "settings.h"

struct app {
	struct settings s;
	struct eng *e;
	uint64_t *cleared; /* counters as they stood at the last clear */
	unsigned ncleared;
};

/* ---- ports.c */
/* Turns what was said about ports, addresses and routes into the engine's configuration. `why` is
 * one sentence. */
int ports_resolve(struct settings *s, char why[WHY_LEN]);

/* ---- run.c */
/* Runs the loops on this and other lcores until somebody asks for the end. 0, or -errno with a
 * sentence. */
int run(struct app *a, char why[WHY_LEN]);
/* From any thread or signal handler: the clean end. */
void run_quit(void);
/* From the prompt: -EALREADY when nothing changes. */
int run_stop(struct app *a);
int run_start(struct app *a);
bool run_running(void);

/* ---- prompt.c */
/* Runs the commands in a file. */
int prompt_file(struct app *a, const char *path);
/* Feeds what standard input has; false: it has ended. */
bool prompt_open(struct app *a);
bool prompt_read(void);
void prompt_close(void);

/* ---- show.c: the prompt's words; `arg` is what followed, "" when nothing did. Output goes to
 * standard output. */
void show_qps(struct app *a, const char *arg);
void show_clients(struct app *a, const char *arg);
void show_counters(struct app *a, const char *arg);
void show_neighbors(struct app *a, const char *arg);
void show_loops(struct app *a, const char *arg);
void show_config(struct app *a, const char *arg);
void clear_counters(struct app *a, const char *arg);

/* ---- stats.c */
void show_port_stats(struct app *a, const char *arg);
void show_port_info(struct app *a, const char *arg);
void clear_port_stats(struct app *a, const char *arg);
/* All that is worth saying when the end has come. */
void stats_final(struct app *a);
/* A line of hashes or dashes with a title in it. */
void stats_rule(char c, const char *title);

/* ---- gateway.c: virtual machines. 0, or -errno with a sentence. */
/* Before ports_resolve(), which then finds the gateway's port where there is no uplink; and behind
 * it, when the uplink becomes the gateway's. */
int gateway_prepare(struct app *a, char why[WHY_LEN]);
int gateway_plug(struct app *a, char why[WHY_LEN]);
/* The engine is there: machines may come. */
int gateway_start(struct app *a, char why[WHY_LEN]);
/* The loops still may run; then, when they do not: */
void gateway_stop(void);
void gateway_free(void);
/* The prompt's words. */
void vm_command(struct app *a, const char *arg);
void show_vms(struct app *a, const char *arg);

/* ---- notify.c */
/* Tells the service manager ($NOTIFY_SOCKET), if there is one. */
void notify(const char *state);

#endif
