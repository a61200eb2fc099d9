/* SPDX-License-Identifier: BSD-3-Clause */
/* The prompt of sakerctl, with editing, history and completion by libedit. saker completes. */
#include <stdlib.h>
#include <string.h>

#include <editline/readline.h>

#include "sakerctl.h"

static struct {
	const struct ctl *ctl;
	char *words, *next; /* the rest of saker's words for the line */
} prompt;

/* Requests the words that can continue the line up to the cursor. */
static void
prompt_ask(void)
{
	struct cmd_answer a;
	char *line = strndup(rl_line_buffer, (size_t)rl_point);

	free(prompt.words);
	prompt.words = NULL;
	if (line != NULL && cmd_ask(prompt.ctl->path, "complete", line, &a) == 0) {
		prompt.words = a.text;
		prompt.next = a.text;
	}
	free(line);
}

/* Implements rl_compentry_func_t: returns one word with each call, and NULL after the last. */
static char *
prompt_word(const char *text, int state)
{
	char *word;

	if (state == 0)
		prompt_ask();
	if (prompt.words == NULL || *prompt.next == '\0')
		return NULL;
	word = prompt.next;
	prompt.next += strcspn(word, "\n");
	if (*prompt.next != '\0')
		*prompt.next++ = '\0';
	return strdup(word);
}

static char **
prompt_complete(const char *text, int start, int end)
{
	/* Without this, libedit completes the names of files when there is no word. */
	rl_attempted_completion_over = 1;
	return rl_completion_matches(text, prompt_word);
}

int
ctl_prompt(const struct ctl *c)
{
	char *line, *at;

	prompt.ctl = c;
	rl_attempted_completion_function = prompt_complete;
	using_history();
	while ((line = readline("saker> ")) != NULL) {
		at = line + strspn(line, " \t");
		if (*at != '\0') {
			add_history(line);
			ctl_execute(c, at);
		}
		free(line);
	}
	putchar('\n');
	free(prompt.words);
	return CTL_DONE;
}
