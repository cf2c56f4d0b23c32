/* cmd_doctor.c: `doorward doctor`: does every wall and limit hold on this host, and if not, what to type.
 *
 * As root it also asks for an ordinary user, as that user: by itself, started anew with that user's ids.
 * runs in: cli (untrusted input: none; holds: nothing) */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/output.h"
#include "control/helper.h"

static bool as_json, profile;

static const struct cli_option options[] = {
    {"apparmor-profile", 0, CLI_FLAG, &profile, NULL, "print the AppArmor profile that lets doorward make its walls"},
    CLI_JSON_OPTION(&as_json),
    {.kind = CLI_END},
};

enum { NOBODY = 65534, ANSWER_MAX = 1 << 20 };

/* The profile that Ubuntu wants of a program that makes user namespaces: it confines nothing and grants that one thing. Only the
 * launcher, at its own path, gets it. */
static int put_profile(struct buf *page, const char *indent, struct error *err) {
    _cleanup_free_ char *path = NULL;
    int r = spawn_path("doorward-launch", &path, err);
    if (r < 0)
        return r;
    if (strpbrk(path, "\"*?[]{}^\\\n")) /* they mean something in a profile */
        return error_set(err, -EINVAL, "no AppArmor profile can name this path: install doorward elsewhere");
    buf_printf(page,
               "%sabi <abi/4.0>,\n%sinclude <tunables/global>\n%sprofile doorward-launch \"%s\" flags=(unconfined) {\n"
               "%s  userns,\n%s}\n",
               indent, indent, indent, path, indent, indent);
    return page->failed ? error_set(err, -ENOMEM, "out of memory") : 0;
}

static bool is_state(const json_t *row, enum doctor_state state) {
    const char *word = json_string_value(json_object_get(row, "state"));
    return word && !strcmp(word, doctor_state_names[state]);
}

static bool all_there(const json_t *rows) {
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row) {
        if (is_state(row, DOCTOR_MISSING))
            return false;
    }
    return true;
}

/* --- an ordinary user, for root --- */

static unsigned ordinary_uid(void) {
    const char *sudo = getenv("SUDO_UID");
    char *end;
    unsigned long uid = sudo ? strtoul(sudo, &end, 10) : 0;
    return uid > 0 && uid < UINT32_MAX && !*end ? (unsigned)uid : NOBODY;
}

static void become(unsigned uid, int out, int self) {
    char *const args[] = {(char *)"doorward", (char *)"doctor", (char *)"--json", NULL};
    char *const env[] = {(char *)"HOME=/nonexistent", NULL};
    if (dup2(out, 1) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || setgroups(0, NULL) < 0 ||
        setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
        _exit(126);
    fexecve(self, args, env);
    _exit(127);
}

static json_t *read_answer(int from) {
    json_t *answer = NULL;
    _cleanup_free_ char *text = malloc(ANSWER_MAX);
    ssize_t n = text ? fd_read_all(from, text, ANSWER_MAX) : 0;
    if (n > 0)
        json_read(text, (size_t)n, &answer, NULL);
    return answer;
}

/* Where its state would lie is that user's to say, and not known here. */
static void drop_state(json_t *rows) {
    for (size_t i = json_array_size(rows); i-- > 0;) {
        const char *name = json_string_value(json_object_get(json_array_get(rows, i), "name"));
        if (name && !strcmp(name, "state"))
            json_array_remove(rows, i);
    }
}

/* What an ordinary user gets; NULL where that cannot be told (doorward lies where that user may not go). */
static json_t *ask_as_ordinary(void) {
    int pair[2], status;
    _cleanup_fd_ int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (self < 0 || pipe2(pair, O_CLOEXEC) < 0)
        return NULL;
    unsigned uid = ordinary_uid();
    pid_t pid = fork();
    if (pid == 0)
        become(uid, pair[1], self);
    fd_close(pair[1]);
    json_t *answer = pid > 0 ? read_answer(pair[0]) : NULL;
    fd_close(pair[0]);
    if (pid > 0)
        waitpid(pid, &status, 0);
    json_t *rows = json_object_get(answer, "rows");
    drop_state(rows);
    if (json_is_array(rows))
        json_object_set_new(answer, "ok", json_boolean(all_there(rows)));
    return answer;
}

/* --- the page --- */

static const char *text_of(const json_t *row, const char *key) {
    const char *s = json_string_value(json_object_get(row, key));
    return s ? s : "";
}

static void put_rows(const json_t *rows, bool faults_only, struct buf *page) {
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row) {
        if (faults_only && is_state(row, DOCTOR_HELD))
            continue;
        buf_printf(page, "  %-5s %-16s %-8s  ", text_of(row, "kind"), text_of(row, "name"), text_of(row, "state"));
        const char *by = text_of(row, "by");
        str_put_safe(page, by, strlen(by));
        buf_puts(page, "\n");
    }
}

static bool told_before(const json_t *rows, size_t n) {
    const json_t *row = json_array_get(rows, n);
    for (size_t i = 0; i < n; i++) {
        const json_t *other = json_array_get(rows, i);
        if (!strcmp(text_of(other, "why"), text_of(row, "why")) &&
            !strcmp(text_of(other, "remedy"), text_of(row, "remedy")))
            return true;
    }
    return false;
}

/* Each reason once, with the names of all that it is the reason of. */
static int put_remedies(const json_t *rows, struct buf *page, struct error *err) {
    size_t i, k;
    const json_t *row, *other;
    json_array_foreach(rows, i, row) {
        const char *why = text_of(row, "why"), *remedy = text_of(row, "remedy"), *comma = "";
        if (!*why || told_before(rows, i))
            continue;
        buf_puts(page, "\n");
        json_array_foreach(rows, k, other) {
            if (strcmp(text_of(other, "why"), why) != 0 || strcmp(text_of(other, "remedy"), remedy) != 0)
                continue;
            buf_printf(page, "%s%s", comma, text_of(other, "name"));
            comma = ", ";
        }
        buf_puts(page, ": ");
        str_put_safe(page, why, strlen(why));
        buf_puts(page, *remedy ? "\n    " : "");
        str_put_safe(page, remedy, strlen(remedy));
        buf_puts(page, "\n");
        if (strstr(remedy, "--apparmor-profile")) {
            buf_puts(page, "    The profile is:\n");
            int r = put_profile(page, "        ", err);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static int put_answer(const json_t *answer, struct buf *page, struct error *err) {
    const json_t *rows = json_object_get(answer, "rows"), *ordinary = json_object_get(answer, "ordinary_user");
    int uid = (int)json_integer_value(json_object_get(answer, "uid"));
    buf_printf(page, "this host for %s (uid %d):\n", uid == 0 ? "root" : "this user", uid);
    put_rows(rows, false, page);
    int r = put_remedies(rows, page, err);
    if (r < 0 || !ordinary)
        return r;
    if (json_is_null(ordinary)) {
        buf_puts(page,
                 "\nan ordinary user: cannot be told from here, since such a user may not go where doorward lies\n");
        return 0;
    }
    rows = json_object_get(ordinary, "rows");
    buf_printf(page, "\nan ordinary user (uid %d)%s\n", (int)json_integer_value(json_object_get(ordinary, "uid")),
               all_there(rows) ? ": everything is there" : " would not have:");
    put_rows(rows, true, page);
    return put_remedies(rows, page, err);
}

static int examine(json_t **ret, struct error *err) {
    _cleanup_doctor_ struct doctor d = {.root = -1, .place = PLACE_EMPTY};
    int r = doctor_open(&d, err);
    if (r == 0)
        r = doctor_walls(&d, err);
    if (r == 0)
        r = doctor_facts(&d, err);
    if (r < 0)
        return r;
    *ret = json_pack("{s:s, s:i, s:b, s:O}", "doorward", DOORWARD_VERSION, "uid", (int)geteuid(), "ok",
                     all_there(d.rows), "rows", d.rows);
    if (*ret && d.superuser) {
        json_t *ordinary = ask_as_ordinary();
        json_object_set_new(*ret, "ordinary_user", ordinary ? ordinary : json_null());
    }
    return *ret && !d.failed ? 0 : error_set(err, -ENOMEM, "doctor: out of memory");
}

static int run_doctor(const struct cli_words *words, struct error *err) {
    _cleanup_json_ json_t *answer = NULL;
    _cleanup_buf_ struct buf page = {0};
    int r;
    if (profile) {
        r = put_profile(&page, "", err);
        return r < 0 ? r : output_page(&page, err);
    }
    r = examine(&answer, err);
    if (r == 0 && as_json)
        r = output_json(answer, err);
    else if (r == 0 && (r = put_answer(answer, &page, err)) == 0)
        r = output_page(&page, err);
    return r < 0 ? r : !json_is_true(json_object_get(answer, "ok"));
}

const struct verb verb_doctor = {
    .name = "doctor",
    .args = "",
    .summary = "try every wall and limit on this host, and say what to do where one does not hold",
    .options = options,
    .run = run_doctor,
};
