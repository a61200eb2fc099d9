/* SPDX-License-Identifier: BSD-3-Clause */
/* The prompt, for which the table of commands becomes librte_cmdline's parser, and files of
 * commands. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmdline.h>
#include <cmdline_parse.h>
#include <cmdline_parse_string.h>
#include <cmdline_socket.h>

#include "saker.h"

#define MAX_WORDS       5
#define PROMPT_WORD     32
#define PROMPT_CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define INSTANCES_MAX   64

/* librte_cmdline stores the words of a line here. */
struct result {
	cmdline_fixed_string_t word[MAX_WORDS];
	cmdline_multi_string_t rest;
};

struct instance {
	cmdline_parse_inst_t *inst; /* a list of its tokens follows it in memory */
	struct cmdline_token_string token[MAX_WORDS];
	char word[MAX_WORDS][PROMPT_WORD];
	int arg; /* index of the argument; -1: none */
	bool rest;
	const struct cmd *command;
};

static struct {
	const struct cmd_table *table;
	struct cmdline *cl;
	struct instance instance[INSTANCES_MAX];
	cmdline_parse_inst_t *ctx[INSTANCES_MAX + 1];
	unsigned n;
} prompt;

void
prompt_print(const struct cmd_out *out)
{
	const char *refusal = cmd_refusal(out);

	if (refusal != NULL)
		printf("%c%s.\n", toupper((unsigned char)refusal[0]), refusal + 1);
	else
		cmd_print_text(out, stdout);
	fflush(stdout);
}

static void
dispatch(void *parsed, struct cmdline *cl, void *data)
{
	const struct instance *in = data;
	const struct result *r = parsed;
	struct cmd_out *out = cmd_out_new();

	if (out == NULL)
		return;
	in->command->run(prompt.table->app,
		in->rest       ? r->rest
		: in->arg >= 0 ? r->word[in->arg]
			       : "",
		out);
	prompt_print(out);
	cmd_out_free(out);
}

static void
token_add(struct instance *in, unsigned n, const char *word)
{
	struct cmdline_token_string *t = &in->token[n];

	snprintf(in->word[n], sizeof(in->word[n]), "%s", word);
	t->hdr.ops = &cmdline_token_string_ops;
	t->hdr.offset = offsetof(struct result, word) + n * sizeof(cmdline_fixed_string_t);
	t->string_data.str = in->word[n];
	in->inst->tokens[n] = (void *)t;
}

/* Adds the token of the argument. librte_cmdline takes "a#b" for a choice. */
static void
token_argument(struct instance *in, unsigned n)
{
	struct cmdline_token_string *t = &in->token[n];
	const struct cmd *c = in->command;
	char choice[PROMPT_WORD] = "";
	size_t len = 0;

	for (size_t i = 0; c->arg[i] != '\0' && len + 1 < sizeof(choice); i++)
		if (strchr("[]", c->arg[i]) == NULL)
			choice[len++] = c->arg[i] == '|' ? '#' : c->arg[i];
	token_add(in, n, choice);
	in->arg = (int)n;
	in->rest = cmd_takes_rest(c);
	if (in->rest) {
		t->hdr.offset = offsetof(struct result, rest);
		t->string_data.str = TOKEN_STRING_MULTI;
	} else if (strpbrk(choice, PROMPT_CAPITALS) != NULL) {
		t->string_data.str = NULL; /* any word */
	}
}

/* Adds a command to librte_cmdline's, with its argument or without. */
static bool
instance_add(const struct cmd *c, bool argument)
{
	struct instance *in = &prompt.instance[prompt.n];
	char copy[64], *save = NULL;
	unsigned n = 0;

	if (prompt.n == INSTANCES_MAX)
		return false;
	in->inst = calloc(1, sizeof(*in->inst) + (MAX_WORDS + 1) * sizeof(in->inst->tokens[0]));
	if (in->inst == NULL)
		return false;
	in->command = c;
	in->arg = -1;
	snprintf(copy, sizeof(copy), "%s", c->name);
	for (char *w = strtok_r(copy, " ", &save); w != NULL && n < MAX_WORDS - 1;
		w = strtok_r(NULL, " ", &save))
		token_add(in, n++, w);
	if (argument)
		token_argument(in, n);
	in->inst->f = dispatch;
	in->inst->data = in;
	in->inst->help_str = c->help;
	prompt.ctx[prompt.n++] = in->inst;
	return true;
}

static bool
commands_make(const struct cmd_table *table)
{
	bool good = true;

	if (prompt.n > 0)
		return true;
	prompt.table = table;
	for (size_t i = 0; i < table->n && good; i++) {
		const struct cmd *c = &table->cmds[i];

		if (c->arg == NULL || cmd_optional(c))
			good = instance_add(c, false);
		if (good && c->arg != NULL)
			good = instance_add(c, true);
	}
	return good;
}

/* Reads a line without its end, as getline() does. Returns false at the end of the file. */
static bool
prompt_line(FILE *f, char **line, size_t *room)
{
	if (getline(line, room, f) < 0)
		return false;
	(*line)[strcspn(*line, "\r\n")] = '\0';
	return true;
}

/* Returns whether the line is neither empty nor a comment. */
static bool
prompt_line_counts(const char *line)
{
	char first = line[strspn(line, " \t")];

	return first != '\0' && first != '#';
}

/* Checks that each line of a file is a command, a comment or empty. */
static int
check_lines(FILE *f, const struct cmd_table *table, const char *path, char why[WHY_LEN])
{
	struct cmd_out *out = cmd_out_new();
	char *line = NULL, copy[CMD_LINE];
	const char *arg;
	size_t room = 0;
	int rc = out != NULL ? 0 : settings_refuse(why, "memory is exhausted");

	for (unsigned number = 1; rc == 0 && prompt_line(f, &line, &room); number++) {
		if (!prompt_line_counts(line))
			continue;
		if (snprintf(copy, sizeof(copy), "%s", line) >= (int)sizeof(copy))
			rc = settings_refuse(why, "%s:%u: the line is longer than %d bytes", path,
				number, CMD_LINE - 1);
		else if (cmd_find(table, copy, &arg, out) == NULL)
			rc = settings_refuse(why, "%s:%u: %s", path, number, cmd_refusal(out));
	}
	free(line);
	cmd_out_free(out);
	return rc;
}

int
prompt_file_check(const struct cmd_table *table, const char *path, char why[WHY_LEN])
{
	struct stat st;
	FILE *f = NULL;
	int rc;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		errno = EISDIR;
	else if (access(path, R_OK) == 0 && !S_ISREG(st.st_mode))
		return 0; /* a pipe can be read only once */
	else
		f = fopen(path, "re");
	if (f == NULL)
		return settings_refuse(
			why, "the command file %s cannot be read: %s", path, strerror(errno));
	rc = check_lines(f, table, path, why);
	fclose(f);
	return rc;
}

static void
prompt_line_run(const struct cmd_table *table, const char *line)
{
	struct cmd_out *out = cmd_out_new();

	if (out == NULL)
		return;
	cmd_run(table, line, out);
	prompt_print(out);
	cmd_out_free(out);
}

/* librte_cmdline would cut off what follows the first 512 bytes of a line. */
int
prompt_file(const struct cmd_table *table, const char *path, char why[WHY_LEN])
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;

	if (f == NULL)
		return settings_refuse(
			why, "the command file %s cannot be read: %s", path, strerror(errno));
	while (prompt_line(f, &line, &room))
		if (prompt_line_counts(line))
			prompt_line_run(table, line);
	free(line);
	fclose(f);
	return 0;
}

int
prompt_open(const struct cmd_table *table, char why[WHY_LEN])
{
	if (commands_make(table))
		prompt.cl = cmdline_stdin_new(prompt.ctx, "saker> ");
	return prompt.cl != NULL ? 0 : settings_refuse(why, "the prompt cannot be opened");
}

bool
prompt_read(void)
{
	char buf[256];
	ssize_t n = read(STDIN_FILENO, buf, sizeof(buf));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	return n > 0 && cmdline_in(prompt.cl, buf, (int)n) >= 0;
}

void
prompt_close(void)
{
	if (prompt.cl != NULL)
		cmdline_stdin_exit(prompt.cl);
	prompt.cl = NULL;
	while (prompt.n > 0) {
		prompt.n--;
		free(prompt.ctx[prompt.n]);
		prompt.ctx[prompt.n] = NULL;
	}
}
