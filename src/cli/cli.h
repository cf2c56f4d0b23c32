/* cli.h: what a verb of the command line is.
 *
 * A verb is one file cmd_NAME.c with one `const struct verb verb_NAME`, listed in the table of main.c. Its options
 * are rows of a table; each row says where its value goes, and one parser reads them all (options.c). A program
 * handles one verb and ends, so targets are plain static variables of the verb's file.
 * runs in: cli (untrusted input: the arguments; holds: nothing) */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

#define CLI_EXIT_OWN_ERROR 125 /* every failure of doorward itself; policy.md, last table */

enum cli_option_kind {
    CLI_END,  /* marks the end of the table */
    CLI_FLAG, /* bool: no value; given twice is the same as once */
    CLI_TEXT, /* const char *: one value; given twice is an error, since one of the two would be dropped silently */
    CLI_LIST, /* char **: each use adds one value (an owned strv) */
};

struct cli_option {
    const char *name; /* long name without "--" */
    char letter;      /* short form, 0 for none */
    enum cli_option_kind kind;
    void *target;      /* bool *, const char ** or char *** by kind */
    const char *value; /* what the value is called in help, NULL for a flag */
    const char *help;  /* one line */
};

/* The row that every verb with a machine-readable answer carries. */
#define CLI_JSON_OPTION(target)                                                                                        \
    { "json", 0, CLI_FLAG, (target), NULL, "print JSON instead of text" }

/* The words that are no options. */
struct cli_words {
    char **args; /* NULL-terminated */
    int n;
    char **command; /* what stood after "--" in a verb that takes a command; NULL when there was no "--" */
    int n_command;
};

struct verb {
    const char *name;
    const char *args;                 /* "[--] COMMAND [ARG...]" for the usage line, "" for none */
    const char *summary;              /* one line, no full stop */
    const struct cli_option *options; /* ends with CLI_END; NULL for none */
    int least, most;                  /* how many words; most = -1: any number */
    bool command;                     /* words after "--" are a command, kept apart */
    /* Exit status (0..255), or -errno with `err` filled: main prints it and exits with CLI_EXIT_OWN_ERROR. */
    int (*run)(const struct cli_words *words, struct error *err);
};

/* Reads `args` (without the verb's name) by the table of `verb`. The arrays of *ret point into `args`, which is
 * reordered; nothing is freed. *ret_help: --help or -h was given, and then nothing else is checked. */
int cli_read_options(const struct verb *verb, char **args, int n, struct cli_words *ret, bool *ret_help,
                     struct error *err);

/* Usage, summary and options of one verb. */
void cli_print_help(FILE *to, const struct verb *verb);
