/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line behind "--". */
#ifndef APP_SAKER_OPTIONS_H
#define APP_SAKER_OPTIONS_H

#include "settings.h"

/* The request that a command line makes. */
enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_REFUSED };

/* Fills *s from the defaults, the configuration file, the environment and argv[1..argc), in this
 * order. With the result OPTIONS_REFUSED, `why` holds one sentence. */
enum options_result options_read(struct settings *s, int argc, char **argv, char why[WHY_LEN]);
/* Prints the usage to standard output. */
void options_usage(const char *program);

#endif
