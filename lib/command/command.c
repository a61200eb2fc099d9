/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define BLANKS   " \t\r\n"
#define SHOWN    60 /* bytes of a line that a sentence repeats */
#define WORD_LEN 32

bool
cmd_optional(const struct cmd *c)
{
	return c->arg != NULL && c->arg[0] == '[';
}

bool
cmd_takes_rest(const struct cmd *c)
{
	return c->arg != NULL && strlen(c->arg) > 3 &&
	       strcmp(c->arg + strlen(c->arg) - 3, "...") == 0;
}

/* Copies the next alternative of an argument, without brackets, to `word`. Returns false at the
 * end. */
static bool
command_next(const char **arg, char word[WORD_LEN])
{
	size_t n;

	*arg += strspn(*arg, "[|]");
	n = strcspn(*arg, "[|]");
	snprintf(word, WORD_LEN, "%.*s", (int)n, *arg);
	*arg += n;
	return n > 0;
}

/* Returns whether a word is one that the argument of the command permits. */
static bool
command_permits(const struct cmd *c, const char *given)
{
	const char *arg = c->arg;
	char word[WORD_LEN];

	while (command_next(&arg, word))
		if (isupper((unsigned char)word[0]) || strcmp(word, given) == 0)
			return true;
	return false;
}

/* Makes the spaces of a line single, and removes those at its ends. */
static void
command_tidy(char *line)
{
	char *to = line;

	for (const char *from = line + strspn(line, BLANKS); *from != '\0'; from++) {
		if (strchr(BLANKS, *from) == NULL)
			*to++ = *from;
		else if (strchr(BLANKS, from[1]) == NULL)
			*to++ = ' ';
	}
	while (to > line && to[-1] == ' ')
		to--;
	*to = '\0';
}

/* Returns what follows the name of the command in a line, or NULL if the line is another one's. */
static const char *
command_rest(const struct cmd *c, const char *line)
{
	size_t n = strlen(c->name);

	if (strncmp(line, c->name, n) != 0 || (line[n] != ' ' && line[n] != '\0'))
		return NULL;
	return line + n + (line[n] == ' ');
}

static bool
command_accepts(const struct cmd *c, const char *rest)
{
	if (rest[0] == '\0')
		return c->arg == NULL || cmd_optional(c);
	if (c->arg == NULL)
		return false;
	return cmd_takes_rest(c) || (strchr(rest, ' ') == NULL && command_permits(c, rest));
}

const struct cmd *
cmd_find(const struct cmd_table *t, char line[CMD_LINE], const char **arg, struct cmd_out *out)
{
	command_tidy(line);
	for (size_t i = 0; i < t->n; i++) {
		const struct cmd *c = &t->cmds[i];

		*arg = command_rest(c, line);
		if (*arg == NULL)
			continue;
		if (command_accepts(c, *arg))
			return c;
		cmd_refuse(out, "'%.*s' is wrong: the command is '%s%s%s'", SHOWN, line, c->name,
			c->arg != NULL ? " " : "", c->arg != NULL ? c->arg : "");
		return NULL;
	}
	cmd_refuse(out, "'%.*s' is not a command; 'help' lists all", SHOWN, line);
	return NULL;
}

int
cmd_run(const struct cmd_table *t, const char *line, struct cmd_out *out)
{
	const struct cmd *c;
	char copy[CMD_LINE];
	const char *arg;

	if (snprintf(copy, sizeof(copy), "%s", line) >= (int)sizeof(copy))
		return cmd_refuse(out, "the line is longer than %d bytes", CMD_LINE - 1);
	c = cmd_find(t, copy, &arg, out);
	return c != NULL ? c->run(t->app, arg, out) : -EINVAL;
}

void
cmd_help(const struct cmd_table *t, struct cmd_out *out)
{
	cmd_list(out, "commands");
	for (size_t i = 0; i < t->n; i++) {
		const struct cmd *c = &t->cmds[i];

		cmd_record(out, NULL);
		cmd_text(out, "command", "%s%s%s", c->name, c->arg != NULL ? " " : "",
			c->arg != NULL ? c->arg : "");
		cmd_text(out, "what_it_does", "%s", c->help);
		cmd_end(out);
	}
	cmd_end(out);
}

/* ---- Completion ---- */

/* A line that is being completed: its whole words, and the beginning of the next one. */
struct partial {
	char words[CMD_LINE]; /* separated by single spaces, with one at the end; or empty */
	const char *begin;
};

static bool
partial_offer(const struct partial *p, const char *word)
{
	return strncmp(word, p->begin, strlen(p->begin)) == 0;
}

/* Copies to `word` the word of the command's name that continues the line. Returns whether there is
 * one. */
static bool
partial_name(const struct partial *p, const struct cmd *c, char word[WORD_LEN])
{
	size_t n = strlen(p->words);

	if (strncmp(c->name, p->words, n) != 0)
		return false;
	snprintf(word, WORD_LEN, "%.*s", (int)strcspn(c->name + n, " "), c->name + n);
	return partial_offer(p, word);
}

static void
complete_argument(const struct partial *p, const struct cmd *c, FILE *to)
{
	const char *arg = c->arg;
	size_t n = strlen(c->name);
	char word[WORD_LEN];

	if (arg == NULL || cmd_takes_rest(c) || strncmp(p->words, c->name, n) != 0 ||
		strcmp(p->words + n, " ") != 0)
		return;
	while (command_next(&arg, word))
		if (islower((unsigned char)word[0]) && partial_offer(p, word))
			fprintf(to, "%s\n", word);
}

void
cmd_complete(const struct cmd_table *t, const char *line, FILE *to)
{
	char word[WORD_LEN], before[WORD_LEN] = "";
	struct partial p;
	size_t n = strlen(line);

	while (n > 0 && strchr(BLANKS, line[n - 1]) == NULL)
		n--;
	p.begin = line + n;
	if (snprintf(p.words, sizeof(p.words) - 1, "%.*s", (int)n, line) >=
		(int)sizeof(p.words) - 1)
		return;
	command_tidy(p.words);
	if (p.words[0] != '\0')
		strcat(p.words, " ");
	for (size_t i = 0; i < t->n; i++) {
		/* Commands with the same words stand together in the table. */
		if (partial_name(&p, &t->cmds[i], word) && strcmp(word, before) != 0) {
			fprintf(to, "%s\n", word);
			strcpy(before, word);
		}
		complete_argument(&p, &t->cmds[i], to);
	}
}
