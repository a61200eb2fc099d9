/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sakerctl [OPTIONS] [COMMAND...]: sends commands to a running saker through its control socket,
 * and prints the answers. saker executes and prints; sakerctl has no commands of its own.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sakerctl.h"

static void
main_usage(FILE *to)
{
	fprintf(to,
		"usage: sakerctl [-s PATH] [-j] [COMMAND...]\n"
		"  -s, --socket PATH  the control socket of saker (default: $SAKER_CONTROL, or\n"
		"                     " CMD_SOCKET_DEFAULT ")\n"
		"  -j, --json         print answers as JSON\n"
		"  -c, --complete     print the words that can continue COMMAND\n"
		"  -h, --help         print this text\n"
		"Without a command, sakerctl reads commands from its standard input; at a\n"
		"terminal it has a prompt. 'sakerctl help' lists the commands of saker.\n"
		"Exit status: 0, or 1 if saker has refused a command, or 2 without an answer.\n");
}

int
ctl_execute(const struct ctl *c, const char *line)
{
	struct cmd_answer a;
	int rc = cmd_ask(c->path, c->mode, line, &a);

	if (rc < 0) {
		fprintf(stderr, "sakerctl: no saker answers at %s: %s\n", c->path, strerror(-rc));
		return CTL_ERROR;
	}
	if (a.status == 0)
		fwrite(a.text, 1, a.bytes, stdout);
	else
		fprintf(stderr, "sakerctl: %s", a.text);
	free(a.text);
	if (fflush(stdout) == 0)
		return a.status == 0 ? CTL_DONE : CTL_REFUSED;
	fprintf(stderr, "sakerctl: the output cannot be written: %s\n", strerror(errno));
	return CTL_ERROR;
}

/* Executes each line of standard input that is neither empty nor a comment. Returns the worst
 * status; ends when no saker answers. */
static int
main_lines(const struct ctl *c)
{
	int worst = CTL_DONE, rc;
	char *line = NULL, *at;
	size_t room = 0;

	while (worst != CTL_ERROR && getline(&line, &room, stdin) >= 0) {
		line[strcspn(line, "\r\n")] = '\0';
		at = line + strspn(line, " \t");
		if (*at == '\0' || *at == '#')
			continue;
		rc = ctl_execute(c, at);
		worst = rc > worst ? rc : worst;
	}
	free(line);
	return worst;
}

/* Executes the words of the command line as one line. */
static int
main_words(const struct ctl *c, int n, char **words)
{
	size_t len = 1;
	char *line;
	int rc;

	for (int i = 0; i < n; i++)
		len += strlen(words[i]) + 1;
	line = calloc(1, len);
	if (line == NULL)
		return CTL_ERROR;
	for (int i = 0; i < n; i++) {
		strcat(line, i > 0 ? " " : "");
		strcat(line, words[i]);
	}
	line[strcspn(line, "\r\n")] = '\0';
	rc = ctl_execute(c, line);
	free(line);
	return rc;
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {{"socket", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'}, {"complete", no_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	const char *from = getenv("SAKER_CONTROL");
	struct ctl c = {.path = from != NULL ? from : CMD_SOCKET_DEFAULT, .mode = "text"};
	int o;

	/* The first word that is no option begins the command. */
	while ((o = getopt_long(argc, argv, "+s:jch", options, NULL)) != -1) {
		switch (o) {
		case 's':
			c.path = optarg;
			break;
		case 'j':
			c.mode = "json";
			break;
		case 'c':
			c.mode = "complete";
			break;
		case 'h':
			main_usage(stdout);
			return CTL_DONE;
		default:
			main_usage(stderr);
			return CTL_ERROR;
		}
	}
	if (optind < argc || strcmp(c.mode, "complete") == 0)
		return main_words(&c, argc - optind, argv + optind);
	return isatty(STDIN_FILENO) ? ctl_prompt(&c) : main_lines(&c);
}
