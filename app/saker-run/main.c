/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * saker-run PROGRAM ARGS...: runs a program that was built for libibverbs and librdmacm on Saker,
 * by preloading libsaker-verbs.so into it. All else is said by environment variables, which options
 * set; the program takes this process's place.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/client/saker.h"

#define EXIT_CANNOT    126 /* as a shell says: found, and could not be run */
#define EXIT_NOT_FOUND 127

struct option_row {
	struct option opt;
	const char *variable; /* that it sets */
	const char *value;    /* without an argument of its own */
	const char *arg, *help;
};

static const struct option_row rows[] = {
	{{"socket", required_argument, NULL, 's'}, "SAKER_SOCKET", NULL, "PATH",
		"the saker to attach to (" SHM_SOCKET_DEFAULT
		", else a virtual machine's ivshmem:)"},
	{{"devices", required_argument, NULL, 'd'}, "SAKER_DEVICES", NULL, "LIST",
		"which devices the program sees: iwarp, falcon (both)"},
	{{"transport", required_argument, NULL, 't'}, "SAKER_DEVICE", NULL, "NAME",
		"what rdma_cm connects over where both devices could: iwarp or falcon"},
	{{"poll", required_argument, NULL, 'p'}, "SAKER_POLL", NULL, "MODE",
		"spin (as the program does), or yield: leave the core to others between polls"},
	{{"verbose", no_argument, NULL, 'v'}, "SAKER_VERBOSE", "1", NULL,
		"say on stderr why a call failed"},
	{{"library", required_argument, NULL, 'l'}, NULL, NULL, "PATH",
		"the library to preload, if not the installed one"},
	{{"help", no_argument, NULL, 'h'}, NULL, NULL, NULL, "this text"},
};
#define NROWS (sizeof(rows) / sizeof(rows[0]))

static void
run_main_usage(FILE *out)
{
	fprintf(out, "usage: saker-run [OPTIONS] PROGRAM [ARGS...]\n"
		     "Runs a program of libibverbs and librdmacm on a Saker.\n\n");
	for (size_t i = 0; i < NROWS; i++)
		fprintf(out, "  -%c, --%s%s%-*s %s\n", rows[i].opt.val, rows[i].opt.name,
			rows[i].arg != NULL ? " " : "",
			(int)(16 - strlen(rows[i].opt.name) - (rows[i].arg != NULL)),
			rows[i].arg != NULL ? rows[i].arg : "", rows[i].help);
}

/* The library stands before whatever else is preloaded. */
static int
preload(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	char *list;
	int rc;

	if (access(library, R_OK) < 0) {
		fprintf(stderr, "saker-run: %s: %s\n", library, strerror(errno));
		return -1;
	}
	if (asprintf(&list, "%s%s%s", library, others != NULL ? ":" : "",
		    others != NULL ? others : "") < 0)
		return -1;
	rc = setenv("LD_PRELOAD", list, 1);
	free(list);
	return rc;
}

/* Where it was installed, or, in the tree, built: beside this program. */
static void
library_find(char path[PATH_MAX])
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	snprintf(path, PATH_MAX, "%s", SAKER_VERBS_LIBRARY);
	if (n <= 0)
		return;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (slash == NULL || (size_t)(slash - self) + sizeof(SAKER_VERBS_BUILT) > PATH_MAX)
		return;
	strcpy(slash, SAKER_VERBS_BUILT);
	if (access(self, R_OK) == 0)
		strcpy(path, self);
}

static const struct option_row *
run_main_row_of(int c)
{
	for (size_t i = 0; i < NROWS; i++)
		if (rows[i].opt.val == c)
			return &rows[i];
	return NULL;
}

/* 0: go on; else the exit status plus 1. */
static int
options(int argc, char **argv, char library[PATH_MAX])
{
	struct option longs[NROWS + 1] = {0};
	int c;

	for (size_t i = 0; i < NROWS; i++)
		longs[i] = rows[i].opt;
	while ((c = getopt_long(argc, argv, "+s:d:t:p:vl:h", longs, NULL)) != -1) {
		const struct option_row *r = run_main_row_of(c);

		if (r == NULL || c == 'h') {
			run_main_usage(c == 'h' ? stdout : stderr);
			return c == 'h' ? 1 : EXIT_FAILURE + 1;
		}
		if (c == 'l')
			snprintf(library, PATH_MAX, "%s", optarg);
		else
			setenv(r->variable, optarg != NULL ? optarg : r->value, 1);
	}
	if (optind < argc)
		return 0;
	run_main_usage(stderr);
	return EXIT_FAILURE + 1;
}

int
main(int argc, char **argv)
{
	char library[PATH_MAX];
	int rc;

	library_find(library);
	rc = options(argc, argv, library);
	if (rc != 0)
		return rc - 1;
	/* Said here, once, instead of by a program that finds no device. */
	if (saker_look(NULL) < 0) {
		fprintf(stderr, "saker-run: %s\n", saker_error());
		return EXIT_CANNOT;
	}
	if (preload(library) < 0)
		return EXIT_CANNOT;
	execvp(argv[optind], argv + optind);
	rc = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT;
	fprintf(stderr, "saker-run: %s: %s\n", argv[optind], strerror(errno));
	return rc;
}
