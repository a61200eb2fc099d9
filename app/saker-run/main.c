/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * saker-run PROGRAM ARGS...: runs a program that was built for libibverbs and librdmacm on Saker,
 * by preloading libsaker-verbs.so, or libsaker-sockets.so for its sockets as well. Its options set
 * environment variables, which the library reads. The program replaces this process.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <saker/saker.h>

/* The exit statuses of a shell. */
#define EXIT_CANNOT    126 /* the program exists and cannot be run */
#define EXIT_NOT_FOUND 127 /* the program does not exist */

struct option_row {
	struct option opt;
	const char *variable; /* the environment variable that it sets; NULL: none */
	const char *value;    /* the value that it sets if it takes no argument */
	const char *arg;      /* the name of its argument in the help; NULL: it takes none */
	const char *words[2]; /* the values that it may have; NULL: any */
	const char *help;
};

/* The next line of an explanation. */
#define MORE "\n                         "

static const struct option_row rows[] = {
	{{"socket", required_argument, NULL, 's'}, "SAKER_SOCKET", NULL, "PATH", {NULL},
		"the saker's socket, or ivshmem:[PCI-ADDRESS] in a" MORE
		"virtual machine (" SAKER_SOCKET_DEFAULT "," MORE "else an ivshmem device)"},
	{{"devices", required_argument, NULL, 'd'}, "SAKER_DEVICES", NULL, "LIST",
		{"iwarp", "falcon"},
		"the devices that the program sees, a list of iwarp" MORE
		"and falcon (iwarp,falcon)"},
	{{"transport", required_argument, NULL, 't'}, "SAKER_DEVICE", NULL, "NAME",
		{"iwarp", "falcon"},
		"the transport of rdma_cm where both are possible:" MORE "iwarp or falcon (iwarp)"},
	{{"sockets", no_argument, NULL, 'S'}, NULL, NULL, NULL, {NULL},
		"also carry the program's TCP sockets over Saker"},
	{{"ifaddrs", no_argument, NULL, 'i'}, "SAKER_IFADDRS", "1", NULL, {NULL},
		"getifaddrs(3) also lists the saker's addresses"},
	{{"poll", required_argument, NULL, 'p'}, "SAKER_POLL", NULL, "MODE", {"yield", "spin"},
		"yield: a thread gives up its core after polls" MORE
		"without a result; spin (spin)"},
	{{"verbose", no_argument, NULL, 'v'}, "SAKER_VERBOSE", "1", NULL, {NULL},
		"print on stderr why a call failed"},
	{{"library", required_argument, NULL, 'l'}, NULL, NULL, "PATH", {NULL},
		"the library to preload (the installed one, or the" MORE "one of the build)"},
	{{"help", no_argument, NULL, 'h'}, NULL, NULL, NULL, {NULL}, "print this text"},
};
#define NROWS (sizeof(rows) / sizeof(rows[0]))

static void
run_main_usage(FILE *out)
{
	fprintf(out, "usage: saker-run [OPTIONS] PROGRAM [ARGS...]\n"
		     "Runs a program that uses libibverbs or librdmacm on Saker.\n\n");
	for (size_t i = 0; i < NROWS; i++)
		fprintf(out, "  -%c, --%s%s%-*s %s\n", rows[i].opt.val, rows[i].opt.name,
			rows[i].arg != NULL ? " " : "",
			(int)(16 - strlen(rows[i].opt.name) - (rows[i].arg != NULL)),
			rows[i].arg != NULL ? rows[i].arg : "", rows[i].help);
}

/* Writes the path of a library: the one of the build beside this program, or else the installed
 * one. */
static void
library_find(char path[PATH_MAX], const char *name)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash = NULL;

	snprintf(path, PATH_MAX, "%s/%s", SAKER_LIBRARIES, name);
	if (n > 0) {
		self[n] = '\0';
		slash = strrchr(self, '/');
	}
	if (slash == NULL)
		return;
	n = slash - self;
	if (snprintf(slash, sizeof(self) - (size_t)n, "%s/%s", SAKER_LIBRARIES_BUILT, name) <
			(int)sizeof(self) - (int)n &&
		access(self, R_OK) == 0)
		strcpy(path, self);
}

/* Inserts `first` before the other entries of a list of paths in the environment. Returns 0 or
 * -1. */
static int
put_first(const char *variable, const char *first)
{
	const char *others = getenv(variable);
	char *list;
	int rc;

	if (asprintf(&list, "%s%s%s", first, others != NULL ? ":" : "",
		    others != NULL ? others : "") < 0)
		return -1;
	rc = setenv(variable, list, 1);
	free(list);
	return rc;
}

/* Preloads the libraries, and lets the program find the genuine libraries' names. Returns 0 or
 * -1. */
static int
preload(const char *library)
{
	char path[PATH_MAX];

	if (access(library, R_OK) < 0) {
		fprintf(stderr, "saker-run: cannot read the library %s: %s\n", library,
			strerror(errno));
		return -1;
	}
	library_find(path, "libsaker-sysfs.so");
	if (access(path, R_OK) == 0 && put_first("LD_PRELOAD", path) < 0)
		return -1;
	if (put_first("LD_PRELOAD", library) < 0)
		return -1;
	library_find(path, SAKER_NAMES_BUILT);
	if (access(path, R_OK) < 0)
		library_find(path, SAKER_NAMES);
	return access(path, R_OK) == 0 ? put_first("LD_LIBRARY_PATH", path) : 0;
}

static const struct option_row *
run_main_row_of(int c)
{
	for (size_t i = 0; i < NROWS; i++)
		if (rows[i].opt.val == c)
			return &rows[i];
	return NULL;
}

/* Checks that `value` is one of the option's two words, or a list of them where that is allowed. */
static bool
run_main_fits(const struct option_row *r, const char *value)
{
	bool list = strcmp(r->arg, "LIST") == 0;
	size_t len;

	do {
		len = list ? strcspn(value, ",") : strlen(value);
		if ((strlen(r->words[0]) != len || strncmp(r->words[0], value, len) != 0) &&
			(strlen(r->words[1]) != len || strncmp(r->words[1], value, len) != 0))
			return false;
		value += len;
	} while (*value++ == ',');
	return true;
}

/* Processes the options and finds the library to preload. Returns 0 to run the program, else the
 * exit status plus 1. */
static int
options(int argc, char **argv, char library[PATH_MAX])
{
	struct option longs[NROWS + 1] = {0};
	int c;

	for (size_t i = 0; i < NROWS; i++)
		longs[i] = rows[i].opt;
	library_find(library, "libsaker-verbs.so");
	while ((c = getopt_long(argc, argv, "+s:d:t:Sip:vl:h", longs, NULL)) != -1) {
		const struct option_row *r = run_main_row_of(c);

		if (r == NULL || c == 'h') {
			run_main_usage(c == 'h' ? stdout : stderr);
			return c == 'h' ? 1 : EXIT_FAILURE + 1;
		}
		if (r->words[0] != NULL && !run_main_fits(r, optarg)) {
			fprintf(stderr, "saker-run: --%s %s is not %s or %s\n", r->opt.name, optarg,
				r->words[0], r->words[1]);
			return EXIT_FAILURE + 1;
		}
		if (c == 'l')
			snprintf(library, PATH_MAX, "%s", optarg);
		else if (c == 'S')
			library_find(library, "libsaker-sockets.so");
		else
			setenv(r->variable, optarg != NULL ? optarg : r->value, 1);
	}
	if (optind < argc)
		return 0;
	fprintf(stderr, "saker-run: no program is given\n");
	run_main_usage(stderr);
	return EXIT_FAILURE + 1;
}

int
main(int argc, char **argv)
{
	char library[PATH_MAX];
	int rc;

	rc = options(argc, argv, library);
	if (rc != 0)
		return rc - 1;
	/* Checks for a saker, because most programs report only that they find no device. */
	if (saker_look(NULL) < 0) {
		fprintf(stderr, "saker-run: %s\n", saker_error());
		return EXIT_CANNOT;
	}
	if (preload(library) < 0)
		return EXIT_CANNOT;
	execvp(argv[optind], argv + optind);
	rc = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT;
	fprintf(stderr, "saker-run: cannot run %s: %s\n", argv[optind], strerror(errno));
	return rc;
}
