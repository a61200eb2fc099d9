/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the output of commands as text and as JSON (RFC 8259). */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/command/output.h"

/* Checks what an output prints as text and as JSON, and frees it. */
static void
prints(struct cmd_out *o, const char *text, const char *json)
{
	char *got = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&got, &len);

	cmd_print_text(o, to);
	fputc('|', to);
	cmd_print_json(o, to);
	fclose(to);
	cr_assert_eq(strncmp(got, text, strlen(text)), 0, "%s", got);
	cr_assert_str_eq(got + strlen(text) + 1, json);
	free(got);
	cmd_out_free(o);
}

static void
port(struct cmd_out *o, unsigned number, const char *name)
{
	cmd_record(o, NULL);
	cmd_number(o, "port", number);
	cmd_text(o, "name", "%s", name);
	cmd_end(o);
}

Test(command_output, the_values_of_a_record_stand_behind_their_labels)
{
	struct cmd_out *o = cmd_out_new();

	cmd_number(o, "srtt_ns", 12);
	cmd_flag(o, "up", true);
	cmd_record(o, "tcp");
	cmd_text(o, "state", "%s", "OPEN");
	cmd_end(o);
	prints(o, "srtt ns  12\nup       yes\ntcp:\n  state  OPEN\n",
		"{\"srtt_ns\":12,\"up\":true,\"tcp\":{\"state\":\"OPEN\"}}\n");
}

Test(command_output, a_list_is_a_table_with_numbers_at_the_right)
{
	struct cmd_out *o = cmd_out_new();

	cmd_list(o, "ports");
	port(o, 7, "a");
	port(o, 12345, "b");
	cmd_end(o);
	prints(o, " port  name\n    7  a\n12345  b\n",
		"{\"ports\":[{\"port\":7,\"name\":\"a\"},{\"port\":12345,\"name\":\"b\"}]}\n");
}

Test(command_output, an_empty_list_names_what_is_missing)
{
	struct cmd_out *o = cmd_out_new();

	cmd_list(o, "ports");
	cmd_end(o);
	prints(o, "(no ports)\n", "{\"ports\":[]}\n");
}

Test(command_output, a_missing_value_is_a_dash_and_no_member)
{
	struct cmd_out *o = cmd_out_new();

	cmd_list(o, "ports");
	port(o, 1, "a");
	cmd_record(o, NULL);
	cmd_number(o, "port", 2);
	cmd_end(o);
	cmd_end(o);
	prints(o, "port  name\n   1  a\n   2  -\n",
		"{\"ports\":[{\"port\":1,\"name\":\"a\"},{\"port\":2}]}\n");
}

/* A client chooses its name, which must not reach the operator's terminal as a command. */
Test(command_output, no_byte_of_a_text_is_a_command_for_a_terminal)
{
	struct cmd_out *o = cmd_out_new();

	cmd_text(o, "name", "%s", "\x1b[2J\"\\\n\xff");
	prints(o, "name  ?[2J\"\\??\n", "{\"name\":\"?[2J\\\"\\\\??\"}\n");
}

Test(command_output, no_line_is_longer_than_80_columns)
{
	static const char words[] = "many words that fill a line and the next line and the line "
				    "after that until there is no room for any further word in it";
	static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
	struct cmd_out *o = cmd_out_new();
	char *got = NULL, *save = NULL;
	unsigned lines = 0;
	size_t len = 0;
	FILE *to = open_memstream(&got, &len);

	cmd_list(o, "wrapped");
	port(o, 1, words);
	cmd_end(o);
	cmd_list(o, "folded");
	for (unsigned i = 0; i < 3; i++) {
		cmd_record(o, NULL);
		for (unsigned k = 0; k < 5; k++)
			cmd_text(o, keys[k], "%.*s", 20 + (int)k, words);
		cmd_end(o);
	}
	cmd_end(o);
	cmd_list(o, "many");
	cmd_record(o, NULL);
	for (unsigned k = 0; k < 10; k++)
		cmd_text(o, keys[k], "%.*s", 12, words);
	cmd_end(o);
	cmd_end(o);
	cmd_text(o, "long", "%s%s%s%0100d", words, words, words, 0);
	cmd_print_text(o, to);
	fclose(to);
	for (char *l = strtok_r(got, "\n", &save); l != NULL; l = strtok_r(NULL, "\n", &save)) {
		cr_assert_leq(strlen(l), CMD_WIDTH, "%s", l);
		lines++;
	}
	/* The folded rows have two lines each, and the record with many values ten. */
	cr_assert_gt(lines, 3 + 2 * 4 + 10);
	free(got);
	cmd_out_free(o);
}

Test(command_output, a_refusal_replaces_the_output)
{
	struct cmd_out *o = cmd_out_new();

	cmd_number(o, "port", 7);
	cr_assert_null(cmd_refusal(o));
	cr_assert_lt(cmd_refuse(o, "there is no port '%s'", "9"), 0);
	cmd_number(o, "port", 8);
	cmd_end(o);
	cr_assert_str_eq(cmd_refusal(o), "there is no port '9'");
	prints(o, "", "");
}
