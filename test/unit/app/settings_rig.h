/* SPDX-License-Identifier: BSD-3-Clause */
/* Files, options and sentences for the tests of settings. */
#ifndef SAKER_TEST_SETTINGS_RIG_H
#define SAKER_TEST_SETTINGS_RIG_H

#include <stdio.h>

#include "../../../app/saker/options.h"

extern struct settings s; /* what options() read last */
extern char why[WHY_LEN]; /* the sentence of a refusal */
extern char path[];       /* the file of file_is() */

/* The init and fini of a suite: create and remove an empty file. */
void settings_setup(void);
void settings_teardown(void);

/* Writes the configuration file, which SAKER_CONFIG then names. */
void file_is(const char *text);
/* Parses the words of `line` as a command line. */
enum options_result options(const char *line);
/* Checks that a command line is refused with a sentence. */
void refused(const char *line, const char *sentence);
/* Checks the sentence about the last line of a file. */
void file_refused(const char *text, const char *end);
/* Checks the sentence about keys that do not fit together: about line `line`, or 0. */
void together_refused(const char *text, unsigned line, const char *end);
/* Prints the effective values in the form of the configuration file, each with its source. Omits
 * secrets. */
void settings_print(const struct settings *from, FILE *to);

#endif
