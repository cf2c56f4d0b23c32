/* main.c: the command line of doorward.
 *
 * Finds the verb, has its options read by its table, runs it. Errors come back as one message, are printed once,
 * and end with CLI_EXIT_OWN_ERROR.
 * runs in: cli (untrusted input: the arguments; holds: nothing) */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "cli/cli.h"

extern const struct verb verb_run, verb_check, verb_plan, verb_doctor, verb_lab, verb_schema, verb_ps, verb_show,
    verb_log, verb_verify, verb_artifacts, verb_stop, verb_freeze, verb_thaw, verb_wait, verb_prune;

/* The verbs, in the order of help. A new one is a file cmd_NAME.c and one row here. */
static const struct verb *const verbs[] = {
    &verb_run,  &verb_check, &verb_plan,   &verb_doctor,    &verb_lab,  &verb_schema, &verb_ps,
    &verb_show, &verb_log,   &verb_verify, &verb_artifacts, &verb_stop, &verb_freeze, &verb_thaw,
    &verb_wait, &verb_prune, NULL,
};

/* A caller may start us with 0, 1 or 2 closed. The next file we open would then take that number, and what we or
 * the worker print would go into it. */
static int open_standard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) // NOLINT(android-cloexec-open): children get it
            return -1;
    return 0;
}

static void print_overview(FILE *to) {
    fputs("usage: doorward VERB [OPTIONS] [WORDS]\n\n"
          "Runs untrusted work behind walls and lets it reach the world only through doors.\n\nverbs:\n",
          to);
    for (size_t i = 0; verbs[i]; i++)
        fprintf(to, "  %-10s %s\n", verbs[i]->name, verbs[i]->summary);
    fputs("  help       explain doorward, or one verb: doorward help VERB\n\n"
          "doorward --version prints the version. Exit 125 is a failure of doorward itself.\n",
          to);
}

static const struct verb *find_verb(const char *name, struct error *err) {
    const char *names[ELEMENTS(verbs) + 1] = {"help"};
    char safe[128];
    for (size_t i = 0; verbs[i]; i++) {
        if (!strcmp(verbs[i]->name, name))
            return verbs[i];
        names[i + 1] = verbs[i]->name;
    }
    const char *near = str_near(name, names);
    str_safe(safe, sizeof(safe), name);
    if (near)
        error_set(err, -EINVAL, "\"%s\" is not a verb; did you mean `doorward %s`?", safe, near);
    else
        error_set(err, -EINVAL, "\"%s\" is not a verb; `doorward help` lists them", safe);
    return NULL;
}

static int explain(int argc, char **argv, struct error *err) {
    if (argc < 3) {
        print_overview(stdout);
        return 0;
    }
    const struct verb *verb = find_verb(argv[2], err);
    if (!verb)
        return err->code;
    cli_print_help(stdout, verb);
    return 0;
}

static int print_version(void) {
    puts("doorward " DOORWARD_VERSION);
    return 0;
}

static int dispatch(int argc, char **argv, struct error *err) {
    if (argc < 2) {
        print_overview(stderr);
        return CLI_EXIT_OWN_ERROR;
    }
    if (!strcmp(argv[1], "--version"))
        return print_version();
    if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return explain(argc, argv, err);
    const struct verb *verb = find_verb(argv[1], err);
    if (!verb)
        return err->code;
    struct cli_words words;
    bool help = false;
    int r = cli_read_options(verb, argv + 2, argc - 2, &words, &help, err);
    if (r < 0)
        return r;
    if (help) {
        cli_print_help(stdout, verb);
        return 0;
    }
    return verb->run(&words, err);
}

int main(int argc, char **argv) {
    struct error err = {0};
    umask(077); /* what doorward makes is its user's alone */
    if (open_standard_descriptors() < 0)
        return CLI_EXIT_OWN_ERROR;
    int r = dispatch(argc, argv, &err);
    /* An answer that did not reach its reader (a full disk, a closed pipe) must not look complete. */
    if (fflush(stdout) != 0 && r >= 0 && errno != EPIPE)
        r = error_errno(&err, -errno, "cannot write standard output");
    if (r >= 0)
        return r;
    fprintf(stderr, "doorward: %s\n", err.message);
    return CLI_EXIT_OWN_ERROR;
}
