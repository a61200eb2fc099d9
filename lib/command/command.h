/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of commands, from which come the prompt, the control socket and the manual page. A line
 * consists of the words of a command's name and of its argument, which spaces and tabs separate.
 */
#ifndef SAKER_COMMAND_H
#define SAKER_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output.h"

#define CMD_LINE 1024 /* bytes of a line, with its end */

struct cmd {
	const char *name; /* words: "show qp" */
	/* NULL: no argument. "all|QPN": one word, which is one of the words in small letters or
	 * what a word in capitals stands for. "[nonzero]": one such word, or none. "NAME
	 * KEY=VALUE...": the rest of the line, which is not empty. */
	const char *arg;
	const char *help; /* a phrase without its point */
	/* `arg`: the argument, or "". Returns 0, or below 0 after cmd_refuse(). */
	int (*run)(void *app, const char *arg, struct cmd_out *out);
};

struct cmd_table {
	const struct cmd *cmds;
	size_t n;
	void *app; /* argument of each `run` */
};

/* Returns the command of a line, and points *arg at the argument in it; the line's spaces are made
 * single. Returns NULL, with a sentence in `out`, when there is none. */
const struct cmd *cmd_find(
	const struct cmd_table *t, char line[CMD_LINE], const char **arg, struct cmd_out *out);
/* Executes a line. Returns 0, or below 0 when `out` has become a refusal. */
int cmd_run(const struct cmd_table *t, const char *line, struct cmd_out *out);
/* Adds the commands with their sentences to `out`, for the command "help". */
void cmd_help(const struct cmd_table *t, struct cmd_out *out);
/* Prints each word that can continue a line, one per line: those that begin with the line's last
 * word, or all if the line ends with a space. */
void cmd_complete(const struct cmd_table *t, const char *line, FILE *to);

/* ---- Words of a command, for parsers of other libraries ---- */

/* Returns whether the argument may be missing, and whether it is the rest of the line. */
bool cmd_optional(const struct cmd *c);
bool cmd_takes_rest(const struct cmd *c);

#endif
