/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the table of commands: which line is which command, and what can continue a line. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/command/command.h"

static int
note(void *app, const char *arg, struct cmd_out *out)
{
	snprintf(app, CMD_LINE, "%s", arg);
	return cmd_say(out, "Done.");
}

static int
refuse(void *app, const char *arg, struct cmd_out *out)
{
	return cmd_refuse(out, "never");
}

static char noted[CMD_LINE];
static const struct cmd commands[] = {
	{"show qp", "all|QPN", "queue pairs", note},
	{"show client", "all|N", "clients", note},
	{"show counters", "[nonzero]", "counters", note},
	{"show loops", NULL, "loops", note},
	{"clear counters", NULL, "reset", note},
	{"vm add", "NAME KEY=VALUE...", "add", note},
	{"quit", NULL, "end", refuse},
};
static const struct cmd_table table = {commands, sizeof(commands) / sizeof(commands[0]), noted};

/* Checks the argument with which a line is executed; NULL: it is refused. */
static void
executes(const char *line, const char *arg)
{
	struct cmd_out *out = cmd_out_new();
	int rc = cmd_run(&table, line, out);

	cr_assert_eq(rc == 0, arg != NULL, "%s: %d", line, rc);
	cr_assert_eq(cmd_refusal(out) == NULL, arg != NULL);
	if (arg != NULL)
		cr_assert_str_eq(noted, arg, "%s: %s", line, noted);
	cmd_out_free(out);
}

/* Checks the sentence with which a line is refused. */
static void
refused(const char *line, const char *why)
{
	struct cmd_out *out = cmd_out_new();

	cr_assert_lt(cmd_run(&table, line, out), 0);
	cr_assert_str_eq(cmd_refusal(out), why);
	cmd_out_free(out);
}

static void
completes(const char *line, const char *words)
{
	char *got = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&got, &len);

	cmd_complete(&table, line, to);
	fclose(to);
	cr_assert_str_eq(got, words, "%s: %s", line, got);
	free(got);
}

Test(command, a_line_is_executed_with_its_argument)
{
	executes("show qp all", "all");
	executes("  show\tqp   0x17 \r\n", "0x17");
	executes("show counters", "");
	executes("show counters nonzero", "nonzero");
	executes("show loops", "");
	executes("vm add web path=/x  ip=1", "web path=/x ip=1");
}

Test(command, other_lines_are_refused)
{
	static const char *const lines[] = {"", " ", "show", "sho qp all", "show qpx all",
		"show qp", "show qp all now", "show counters zero", "show loops all", "vm add",
		"vm", "quit"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		executes(lines[i], NULL);
	refused("show qp", "'show qp' is wrong: the command is 'show qp all|QPN'");
	refused("show loops 1", "'show loops 1' is wrong: the command is 'show loops'");
	refused("sho loops", "'sho loops' is not a command; 'help' lists all");
	refused("quit", "never");
}

Test(command, a_line_that_is_too_long_is_refused)
{
	char line[CMD_LINE + 1];

	memset(line, ' ', sizeof(line));
	memcpy(line, "show loops", 10);
	line[CMD_LINE - 1] = '\0';
	executes(line, "");
	line[CMD_LINE - 1] = ' ';
	line[CMD_LINE] = '\0';
	refused(line, "the line is longer than 1023 bytes");
}

Test(command, each_word_that_can_follow_completes_a_line)
{
	completes("", "show\nclear\nvm\nquit\n");
	completes("sh", "show\n");
	completes("show ", "qp\nclient\ncounters\nloops\n");
	completes("show  c", "client\ncounters\n");
	completes("show qp ", "all\n");
	completes("show qp al", "all\n");
	completes("show qp b", "");
	completes("show counters n", "nonzero\n");
	completes("show loops ", "");
	completes("vm add ", "");
	completes("shox ", "");
}

Test(command, help_lists_each_command_with_its_argument)
{
	struct cmd_out *out = cmd_out_new();
	char *got = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&got, &len);

	cmd_help(&table, out);
	cmd_print_text(out, to);
	fclose(to);
	cr_assert_not_null(strstr(got, "show qp all|QPN           queue pairs\n"), "%s", got);
	free(got);
	cmd_out_free(out);
}
