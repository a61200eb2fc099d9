/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface between the files of sakerctl. */
#ifndef APP_SAKERCTL_H
#define APP_SAKERCTL_H

#include "../../lib/command/server.h"

struct ctl {
	const char *path; /* of the control socket */
	const char *mode; /* as in lib/command/server.h */
};

/* Exit statuses. */
enum { CTL_DONE, CTL_REFUSED, CTL_ERROR };

/* Sends a command, and prints the answer to standard output or the refusal to standard error.
 * Returns an exit status. */
int ctl_execute(const struct ctl *c, const char *line);

/* Executes the commands that are entered at a prompt, until the end of input. Returns an exit
 * status. */
int ctl_prompt(const struct ctl *c);

#endif
