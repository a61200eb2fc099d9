/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a program with the user, capabilities and system calls of a systemd unit, on a machine where
 * systemd does not run. The unit's SystemCallFilter=, CapabilityBoundingSet=,
 * AmbientCapabilities=, RestrictAddressFamilies= and MemoryDenyWriteExecute= apply as systemd
 * applies them, except that a forbidden system call ends the process with SIGSYS, unless the filter
 * names it with an error: no test passes because a program ignores an error.
 *
 *   confined UNIT UID GID PROGRAM [ARGUMENT...]
 */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST  1024 /* system calls, groups' lines, words */
#define LINE  512
#define EXTRA 0077

static struct {
	char group[32], name[40];
} members[4 * MOST]; /* of systemd's groups of system calls */
static unsigned nmembers;

static struct call {
	char name[40];
	int err; /* the error that the call returns; 0: it is allowed */
} allowed[MOST];
static unsigned nallowed;
static bool filtered, no_write_exec;
static uint64_t bounding, ambient;
static int families[16];
static unsigned nfamilies;

static void __attribute__((format(printf, 1, 2), noreturn)) give_up(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "confined: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(1);
}

static void
need(bool ok, const char *what)
{
	if (!ok)
		give_up("%s: %s", what, strerror(errno));
}

/* ---- The unit ---- */

struct word {
	const char *name;
	int value;
};
static const struct word capabilities[] = {{"CAP_CHOWN", CAP_CHOWN},
	{"CAP_DAC_OVERRIDE", CAP_DAC_OVERRIDE}, {"CAP_NET_ADMIN", CAP_NET_ADMIN},
	{"CAP_NET_RAW", CAP_NET_RAW}, {"CAP_IPC_LOCK", CAP_IPC_LOCK},
	{"CAP_SYS_RAWIO", CAP_SYS_RAWIO}, {"CAP_SYS_ADMIN", CAP_SYS_ADMIN},
	{"CAP_SYS_NICE", CAP_SYS_NICE}, {NULL, 0}};
static const struct word address_families[] = {{"AF_UNIX", AF_UNIX}, {"AF_INET", AF_INET},
	{"AF_INET6", AF_INET6}, {"AF_NETLINK", AF_NETLINK}, {"AF_PACKET", AF_PACKET}, {NULL, 0}};

static int
value_of(const struct word *w, const char *name)
{
	for (; w->name != NULL; w++)
		if (strcmp(w->name, name) == 0)
			return w->value;
	give_up("this program has no number for %s", name);
}

/* Reads systemd's groups of system calls. */
static void
groups_read(void)
{
	FILE *f = popen("systemd-analyze syscall-filter --no-pager", "r");
	char line[LINE], group[32] = "";

	need(f != NULL, "systemd-analyze");
	while (fgets(line, sizeof(line), f) != NULL) {
		char *name = line + strspn(line, " \t");

		name[strcspn(name, " \t\n")] = '\0';
		if (line[0] == '@')
			snprintf(group, sizeof(group), "%.31s", name);
		else if (name[0] != '#' && name[0] != '\0' && name != line && group[0] != '\0' &&
			 nmembers < sizeof(members) / sizeof(members[0])) {
			snprintf(members[nmembers].group, sizeof(members[0].group), "%s", group);
			snprintf(members[nmembers++].name, sizeof(members[0].name), "%.39s", name);
		}
	}
	if (pclose(f) != 0 || nmembers == 0)
		give_up("systemd-analyze prints no groups of system calls");
}

/* Allows a system call, or a group of them, or takes the permission back. "iopl:EPERM" that is not
 * permitted stands for a call whose error the program expects. */
static void
permit(const char *name, bool yes)
{
	size_t len = strcspn(name, ":");
	unsigned found = 0;

	for (unsigned i = 0; name[0] == '@' && i < nmembers; i++)
		if (strcmp(members[i].group, name) == 0) {
			permit(members[i].name, yes);
			found++;
		}
	if (name[0] == '@') {
		if (found == 0)
			give_up("systemd has no group %s", name);
		return;
	}
	for (unsigned i = 0; i < nallowed; i++)
		if (strlen(allowed[i].name) == len && memcmp(allowed[i].name, name, len) == 0) {
			if (!yes)
				allowed[i] = allowed[--nallowed];
			return;
		}
	if (yes != (name[len] == '\0') || nallowed == MOST)
		return;
	if (name[len] == ':' && strcmp(name + len, ":EPERM") != 0)
		give_up("this program has no number for the error of %s", name);
	allowed[nallowed].err = name[len] == ':' ? EPERM : 0;
	snprintf(allowed[nallowed++].name, sizeof(allowed[0].name), "%.*s",
		(int)(len < 39 ? len : 39), name);
}

static void
words_apply(const char *key, char *words)
{
	bool yes = words[0] != '~';
	char *save = NULL;

	for (char *w = strtok_r(words + !yes, " \t\n", &save); w != NULL;
		w = strtok_r(NULL, " \t\n", &save)) {
		if (strcmp(key, "SystemCallFilter") == 0) {
			if (!filtered && !yes)
				give_up("the unit's filter does not begin with a list of what is "
					"allowed");
			if (!filtered)
				permit("@default", true);
			filtered = true;
			permit(w, yes);
		} else if (strcmp(key, "CapabilityBoundingSet") == 0 && yes) {
			bounding |= 1ull << value_of(capabilities, w);
		} else if (strcmp(key, "AmbientCapabilities") == 0 && yes) {
			ambient |= 1ull << value_of(capabilities, w);
		} else if (strcmp(key, "RestrictAddressFamilies") == 0 && yes && nfamilies < 16) {
			families[nfamilies++] = value_of(address_families, w);
		} else if (strcmp(key, "MemoryDenyWriteExecute") == 0) {
			no_write_exec = strcmp(w, "yes") == 0;
		}
	}
}

static void
unit_read(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[LINE];

	need(f != NULL, path);
	while (fgets(line, sizeof(line), f) != NULL) {
		char *value = strchr(line, '=');

		if (line[0] == '#' || value == NULL)
			continue;
		*value = '\0';
		words_apply(line, value + 1);
	}
	fclose(f);
	if (!filtered || nfamilies == 0)
		give_up("%s has no SystemCallFilter= or no RestrictAddressFamilies=", path);
}

/* ---- What applies to the process ---- */

static void
user_become(uid_t uid, gid_t gid)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};

	need(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0, "PR_SET_KEEPCAPS");
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if ((bounding & 1ull << cap) == 0)
			need(prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0, "PR_CAPBSET_DROP");
	need(setgroups(0, NULL) == 0 && setresgid(gid, gid, gid) == 0 &&
			setresuid(uid, uid, uid) == 0,
		"the user");
	for (int i = 0; i < 2; i++)
		d[i].effective = d[i].permitted = d[i].inheritable = (uint32_t)(ambient >> 32 * i);
	need(syscall(SYS_capset, &h, d) == 0, "capset");
	for (int cap = 0; cap < 64; cap++)
		if ((ambient & 1ull << cap) != 0)
			need(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) == 0,
				"PR_CAP_AMBIENT_RAISE");
	need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS");
	umask(EXTRA);
}

static void
rule(scmp_filter_ctx f, int nr, unsigned n, struct scmp_arg_cmp cmp)
{
	int rc = seccomp_rule_add_array(f, SCMP_ACT_ALLOW, nr, n, &cmp);

	if (rc < 0)
		give_up("a rule for system call %d: %s", nr, strerror(-rc));
}

/* Allows one system call, with the unit's conditions on its arguments. */
static void
rules_of(scmp_filter_ctx f, int nr)
{
	const uint64_t wx = PROT_WRITE | PROT_EXEC;

	if (nr == SYS_socket) {
		for (unsigned i = 0; i < nfamilies; i++)
			rule(f, nr, 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]));
	} else if (no_write_exec && nr == SYS_mmap) {
		rule(f, nr, 1, SCMP_A2(SCMP_CMP_MASKED_EQ, wx, 0));
		rule(f, nr, 1, SCMP_A2(SCMP_CMP_MASKED_EQ, wx, PROT_WRITE));
		rule(f, nr, 1, SCMP_A2(SCMP_CMP_MASKED_EQ, wx, PROT_EXEC));
	} else if (no_write_exec && (nr == SYS_mprotect || nr == SYS_pkey_mprotect)) {
		rule(f, nr, 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	} else {
		rule(f, nr, 0, (struct scmp_arg_cmp){0});
	}
}

static void
filter_load(void)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_KILL_PROCESS);

	need(f != NULL, "seccomp_init");
	for (unsigned i = 0; i < nallowed; i++) {
		int nr = seccomp_syscall_resolve_name(allowed[i].name);

		/* The groups name system calls of other architectures, too. */
		if (nr >= 0 && allowed[i].err == 0)
			rules_of(f, nr);
		else if (nr >= 0)
			need(seccomp_rule_add(f, SCMP_ACT_ERRNO((uint16_t)allowed[i].err), nr, 0) ==
					0,
				allowed[i].name);
	}
	need(seccomp_load(f) == 0, "seccomp_load");
	seccomp_release(f);
}

int
main(int argc, char **argv)
{
	if (argc < 5)
		give_up("usage: confined UNIT UID GID PROGRAM [ARGUMENT...]");
	groups_read();
	unit_read(argv[1]);
	user_become((uid_t)atoi(argv[2]), (gid_t)atoi(argv[3]));
	filter_load();
	execv(argv[4], argv + 4);
	give_up("%s: %s", argv[4], strerror(errno));
}
