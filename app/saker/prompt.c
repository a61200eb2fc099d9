/* SPDX-License-Identifier: BSD-3-Clause */
/* The prompt. One table of commands is the source of librte_cmdline's parser, with its completion,
 * and of the help. */
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

#define MAX_WORDS 5

static void help(struct app *a, const char *arg);
static void prompt_start(struct app *a, const char *arg);
static void prompt_stop(struct app *a, const char *arg);
static void quit(struct app *a, const char *arg);

static const struct command {
	const char *words; /* "*" stands for the argument, "**" for the rest of the line */
	void (*run)(struct app *a, const char *arg);
	const char *help;
} commands[] = {
	{"help", help, "print this list"},
	{"show port stats *", show_port_stats, "statistics of a port: all or N"},
	{"show port info *", show_port_info, "name, addresses and link of a port: all or N"},
	{"show qp *", show_qps, "queue pairs: all or QPN"},
	{"show client all", show_clients, "clients and their objects"},
	{"show counters", show_counters, "all counters of all layers"},
	{"show counters *", show_counters, "counters that are not 0: nonzero"},
	{"show vms", gateway_show, "virtual machines, their objects, and the switch"},
	{"show falcon", show_falcon,
		"protection of Falcon's exchange and packets, and its connections"},
	{"show neighbors", show_neighbors,
		"neighbours with their MAC addresses, from ARP and neighbour discovery"},
	{"show loops", show_loops, "the stages of each loop, and its load"},
	{"show config", show_config, "the effective configuration, and the source of each value"},
	{"clear port stats *", clear_port_stats, "reset the statistics of a port: all or N"},
	{"clear counters", clear_counters, "reset the counters"},
	{"falcon reload", falcon_reload,
		"read Falcon's keys and certificates again, for later connections"},
	{"vm **", gateway_command,
		"add or remove a virtual machine: add NAME KEY=VALUE..., del NAME"},
	{"start", prompt_start, "start the loops again"},
	{"stop", prompt_stop, "stop the loops: saker sends and answers nothing until 'start'"},
	{"quit", quit, "end saker"},
};
#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

/* librte_cmdline stores the words of a line here. The last one that matches "*" is the argument. */
struct result {
	cmdline_fixed_string_t word[MAX_WORDS];
	cmdline_multi_string_t rest;
};

struct instance {
	cmdline_parse_inst_t *inst; /* a list of its tokens follows it in memory */
	struct cmdline_token_string token[MAX_WORDS];
	char word[MAX_WORDS][16];
	int arg; /* index of the argument; -1: none */
	bool rest;
	const struct command *command;
};

static struct {
	struct app *a;
	struct cmdline *cl;
	struct instance instance[NCOMMANDS];
	cmdline_parse_inst_t *ctx[NCOMMANDS + 1];
} prompt;

static void
dispatch(void *parsed, struct cmdline *cl, void *data)
{
	const struct instance *in = data;
	const struct result *r = parsed;

	in->command->run(prompt.a, in->rest ? r->rest : in->arg >= 0 ? r->word[in->arg] : "");
	fflush(stdout);
}

static bool
instance_make(struct instance *in, const struct command *c)
{
	char copy[64], *save = NULL;
	unsigned n = 0;

	in->inst = calloc(1, sizeof(*in->inst) + (MAX_WORDS + 1) * sizeof(in->inst->tokens[0]));
	if (in->inst == NULL)
		return false;
	in->command = c;
	in->arg = -1;
	snprintf(copy, sizeof(copy), "%s", c->words);
	for (char *w = strtok_r(copy, " ", &save); w != NULL && n < MAX_WORDS;
		w = strtok_r(NULL, " ", &save)) {
		struct cmdline_token_string *t = &in->token[n];
		bool any = strcmp(w, "*") == 0;

		snprintf(in->word[n], sizeof(in->word[n]), "%s", w);
		t->hdr.ops = &cmdline_token_string_ops;
		t->hdr.offset = offsetof(struct result, word) + n * sizeof(cmdline_fixed_string_t);
		t->string_data.str = any ? NULL : in->word[n];
		if (any)
			in->arg = (int)n;
		if (strcmp(w, "**") == 0) {
			t->hdr.offset = offsetof(struct result, rest);
			t->string_data.str = TOKEN_STRING_MULTI;
			in->rest = true;
		}
		in->inst->tokens[n++] = (void *)t;
	}
	in->inst->f = dispatch;
	in->inst->data = in;
	in->inst->help_str = c->help;
	return true;
}

static bool
commands_make(struct app *a)
{
	prompt.a = a;
	for (size_t i = 0; i < NCOMMANDS && prompt.ctx[i] == NULL; i++) {
		if (!instance_make(&prompt.instance[i], &commands[i]))
			return false;
		prompt.ctx[i] = prompt.instance[i].inst;
	}
	return true;
}

/* Returns whether the words of a line are those of a command. Changes the line. */
static bool
prompt_is_command(const struct command *c, char *line)
{
	char words[64], *save = NULL, *rest = NULL, *given = strtok_r(line, " \t\r\n", &rest);
	char *w;

	snprintf(words, sizeof(words), "%s", c->words);
	for (w = strtok_r(words, " ", &save); w != NULL && given != NULL;
		w = strtok_r(NULL, " ", &save)) {
		if (strcmp(w, "**") == 0)
			return true;
		if (strcmp(w, "*") != 0 && strcmp(w, given) != 0)
			return false;
		given = strtok_r(NULL, " \t\r\n", &rest);
	}
	return w == NULL && given == NULL;
}

/* Checks that each line of a file is a command, a comment or empty. */
static int
check_lines(FILE *f, const char *path, char why[WHY_LEN])
{
	char *line = NULL, *copy, shown[CONF_SHOWN];
	unsigned number = 0;
	size_t room = 0, at = 0;
	bool good = true;

	while (good && getline(&line, &room, f) >= 0) {
		number++;
		at = strspn(line, " \t\r\n");
		good = line[at] == '\0' || line[at] == '#';
		for (size_t i = 0; i < NCOMMANDS && !good; i++) {
			copy = strdup(line);
			good = copy != NULL && prompt_is_command(&commands[i], copy);
			free(copy);
		}
	}
	if (!good) {
		line[strcspn(line, "\r\n")] = '\0';
		settings_refuse(why, "%s:%u: '%s' is not a command", path, number,
			conf_shown(line + at, shown));
	}
	free(line);
	return good ? 0 : -EINVAL;
}

int
prompt_file_check(const char *path, char why[WHY_LEN])
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
	rc = check_lines(f, path, why);
	fclose(f);
	return rc;
}

int
prompt_file(struct app *a, const char *path)
{
	struct cmdline *cl;

	cl = commands_make(a) ? cmdline_file_new(prompt.ctx, "", path) : NULL;
	if (cl == NULL) {
		fprintf(stderr, "saker: the command file %s cannot be read\n", path);
		return -EINVAL;
	}
	cmdline_interact(cl);
	cmdline_free(cl);
	return 0;
}

bool
prompt_open(struct app *a)
{
	if (commands_make(a))
		prompt.cl = cmdline_stdin_new(prompt.ctx, "saker> ");
	return prompt.cl != NULL;
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
	for (size_t i = 0; i < NCOMMANDS; i++) {
		free(prompt.ctx[i]);
		prompt.ctx[i] = NULL;
	}
}

static void
help(struct app *a, const char *arg)
{
	for (size_t i = 0; i < NCOMMANDS; i++)
		printf("  %-22s %s\n", commands[i].words, commands[i].help);
}

static void
prompt_start(struct app *a, const char *arg)
{
	printf(run_start(a) == 0 ? "Started.\n" : "The loops are running already.\n");
}

static void
prompt_stop(struct app *a, const char *arg)
{
	printf(run_stop(a) == 0 ? "Stopped.\n" : "The loops are stopped already.\n");
}

static void
quit(struct app *a, const char *arg)
{
	run_quit();
}
