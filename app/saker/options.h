/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line behind "--". */
#ifndef APP_SAKER_OPTIONS_H
#define APP_SAKER_OPTIONS_H

#include "settings.h"

/* What a command line asks for. */
enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_REFUSED };

/* Fills `s` from defaults, configuration file, environment and argv[1..argc), in this order. With
 * OPTIONS_REFUSED `why` is one sentence. */
enum options_result options_read(struct settings *s, int argc, char **argv, char why[WHY_LEN]);
void options_usage(const char *program);

#endif
