/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The output of a command. A command adds records, lists of records, values and sentences; they are
 * then printed as text for people, in tables of at most CMD_WIDTH columns, or as one JSON object
 * for programs. Both show the same values. Bytes of texts that are not printable ASCII become '?',
 * so that a client's name cannot control the reader's terminal.
 */
#ifndef SAKER_COMMAND_OUTPUT_H
#define SAKER_COMMAND_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CMD_WIDTH 80 /* columns of a line of text */

struct cmd_out;

/* Returns an empty output, which the caller frees, or NULL when memory is exhausted. When memory is
 * exhausted later, the output becomes a refusal. */
struct cmd_out *cmd_out_new(void);
void cmd_out_free(struct cmd_out *o); /* NULL is allowed */

/*
 * A key is a word of letters, digits and '_', which JSON has as it is and text with spaces for '_';
 * a unit stands at its end ("srtt_ns"). The output holds the pointer, so a key lives as long as the
 * output.
 */
/* Begins a record; `key` is NULL in a list. cmd_end() ends it. */
void cmd_record(struct cmd_out *o, const char *key);
/* Begins a list, whose elements are records. cmd_end() ends it. */
void cmd_list(struct cmd_out *o, const char *key);
void cmd_end(struct cmd_out *o);
/* Add a value to the current record. */
void cmd_text(struct cmd_out *o, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void cmd_number(struct cmd_out *o, const char *key, uint64_t value);
void cmd_flag(struct cmd_out *o, const char *key, bool value); /* "yes" or "no"; true or false */
/* Adds a sentence to the current record, which has one at most. Returns 0. */
int cmd_say(struct cmd_out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Replaces the output by one sentence without its point, which says why the command was refused.
 * Returns -EINVAL. */
int cmd_refuse(struct cmd_out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Returns the sentence of cmd_refuse(), or NULL. It lives as long as the output. */
const char *cmd_refusal(const struct cmd_out *o);
/* Print the output if it is no refusal. */
void cmd_print_text(const struct cmd_out *o, FILE *to);
void cmd_print_json(const struct cmd_out *o, FILE *to);

#endif
