/* doctor_facts.c: what else of this host decides how doorward runs. See doctor.h.
 * runs in: cli (untrusted input: none, the files are the kernel's and the host's) */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/common.h"
#include "cli/doctor.h"
#include "control/helper.h"
#include "host/host.h"

static void kernel_row(struct doctor *d) {
    struct utsname u;
    char by[300];
    if (uname(&u) < 0)
        return;
    bool windows = strcasestr(u.release, "microsoft");
    snprintf(by, sizeof(by), "Linux %.100s %.60s%s", u.release, u.machine, windows ? ", WSL" : "");
    doctor_row(d, "fact", "kernel", DOCTOR_HELD, by, NULL, NULL);
}

/* What doorward itself runs inside of: no fault, but the reason of many. */
static void surroundings_row(struct doctor *d) {
    static const struct {
        enum host_test test;
        const char *file, *text, *what;
    } rows[] = {
        {HOST_EXISTS, "/run/doorward/dw", NULL, "inside a sandbox of doorward's"},
        {HOST_EXISTS, "/.dockerenv", NULL, "inside a Docker container"},
        {HOST_EXISTS, "/run/.containerenv", NULL, "inside a Podman container"},
        {HOST_EXISTS, "/var/run/secrets/kubernetes.io", NULL, "inside a Kubernetes pod"},
        {HOST_LACKS, "/proc/self/uid_map", "4294967295", "inside somebody's user namespace"},
        {HOST_HAS, "/proc/1/cgroup", "docker", "inside a container"},
        {HOST_HAS, "/proc/1/cgroup", "lxc", "inside a container"},
        {HOST_ALWAYS, NULL, NULL, "not inside a container that is known"},
    };
    size_t i = 0;
    while (!host_shows(d->root, rows[i].test, rows[i].file, rows[i].text))
        i++;
    doctor_row(d, "fact", "surroundings", DOCTOR_HELD, rows[i].what, NULL, NULL);
}

static void modules_row(struct doctor *d) {
    static const struct {
        enum host_test test;
        const char *file, *text, *what;
    } rows[] = {
        {HOST_IS, "/sys/fs/selinux/enforce", "1", "SELinux is enforcing"},
        {HOST_IS, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
         "AppArmor keeps user namespaces for programs with a profile"},
        {HOST_IS, "/sys/module/apparmor/parameters/enabled", "Y", "AppArmor is enabled"},
        {HOST_ALWAYS, NULL, NULL, "neither SELinux nor AppArmor stands in the way"},
    };
    size_t i = 0;
    while (!host_shows(d->root, rows[i].test, rows[i].file, rows[i].text))
        i++;
    doctor_row(d, "fact", "security-modules", DOCTOR_HELD, rows[i].what, NULL, NULL);
}

/* Which of Landlock's scopes the second layer has: landlock.rst, "Previous limitations". */
static void landlock_row(struct doctor *d) {
    static const struct {
        int abi;
        const char *lacks;
    } rows[] = {
        {2, "renames between folders, truncation, device controls, scopes of signals and abstract sockets"},
        {3, "truncation, device controls, scopes of signals and abstract sockets"},
        {5, "device controls, scopes of signals and abstract sockets"},
        {6, "scopes of signals and abstract sockets"},
    };
    int abi = host_landlock();
    char by[32], why[200];
    size_t i = 0;
    snprintf(by, sizeof(by), "ABI %d", abi);
    while (i < ELEMENTS(rows) && abi >= rows[i].abi)
        i++;
    if (abi <= 0) {
        const struct host_reason *r = host_explain(d->root, "landlock", abi, d->superuser);
        doctor_row(d, "fact", "landlock-abi", DOCTOR_MISSING, NULL, r ? r->what : "no Landlock", r ? r->remedy : NULL);
    } else if (i == ELEMENTS(rows)) {
        doctor_row(d, "fact", "landlock-abi", DOCTOR_HELD, by, NULL, NULL);
    } else {
        snprintf(why, sizeof(why), "it does not know of %s: there the other walls stand alone", rows[i].lacks);
        doctor_row(d, "fact", "landlock-abi", DOCTOR_DEGRADED, by, why, "do: boot Linux 6.12 or newer");
    }
}

static void proc_row(struct doctor *d) {
    bool hidden = host_shows(d->root, HOST_HAS, "/proc/self/mounts", "hidepid=");
    doctor_row(d, "fact", "proc", DOCTOR_HELD,
               hidden ? "hidepid is set; doorward needs to see only its own processes" : "shown to every user", NULL,
               NULL);
}

/* /tmp may be mounted noexec: a sandbox's is its own. Where doorward's own programs lie must not be. */
static void programs_row(struct doctor *d) {
    _cleanup_free_ char *path = NULL;
    struct error err = {0};
    struct statvfs st;
    if (spawn_path("doorward-launch", &path, &err) < 0)
        doctor_failure(d, "fact", "programs", &err);
    else if (statvfs(path, &st) == 0 && st.f_flag & ST_NOEXEC)
        doctor_row(d, "fact", "programs", DOCTOR_MISSING, path, "it lies on a file system that is mounted noexec",
                   "do: install doorward on another one, or mount this one with exec");
    else
        doctor_row(d, "fact", "programs", DOCTOR_HELD, path, NULL, NULL);
}

static int write_and_remove(int folder) {
    static const char name[] = ".doctor", block[4096] = "";
    _cleanup_fd_ int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = fd_write_all(fd, block, sizeof(block));
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    return unlinkat(folder, name, 0) < 0 && r == 0 ? -errno : r;
}

static void state_row(struct doctor *d) {
    struct error err = {0};
    int r = place_open(&d->place, &err);
    if (r == 0 && (r = write_and_remove(d->place.state_fd)) < 0)
        place_error(&err, r, "cannot write in %s", d->place.state);
    if (r < 0)
        doctor_failure(d, "fact", "state", &err);
    else
        doctor_row(d, "fact", "state", DOCTOR_HELD, d->place.state, NULL, NULL);
}

static int add_input(struct plan *p, enum plan_input_kind kind, const char *source, const char *target) {
    struct plan_input in = {.kind = kind, .directory = true, .source = strdup(source), .target = strdup(target)};
    if (!in.source || !in.target) {
        free(in.source);
        free(in.target);
        return -ENOMEM;
    }
    p->inputs[p->n_inputs++] = in;
    return 0;
}

/* The current folder as a workspace: an overlay of it, which nothing reads. As root that takes an id-mapped mount of its
 * file system too. */
static int overlay_row(struct doctor *d, struct error *err) {
    _cleanup_plan_ struct plan p = {0};
    _cleanup_trial_ struct trial trial = {0};
    _cleanup_free_ char *folder = NULL;
    struct error why = {0};
    char by[4200];
    int r = cli_current_folder(&folder, err);
    if (r < 0)
        return r;
    const char *source = strcmp(folder, "/") != 0 ? folder : "/usr";
    if (doctor_plan(d, &p) < 0 || !(p.inputs = calloc(1, sizeof(*p.inputs))) ||
        add_input(&p, PLAN_OVERLAY, source, "/work") < 0)
        return error_set(err, -ENOMEM, "doctor: out of memory");
    snprintf(by, sizeof(by), "of %s%s", source, d->superuser ? ", id-mapped" : "");
    if (trial_run(&d->place, &p, &trial, &why) == 0)
        doctor_row(d, "fact", "overlay", DOCTOR_HELD, by, NULL, NULL);
    else
        doctor_failure(d, "fact", "overlay", &why);
    return 0;
}

static bool sandbox_is_there(const struct doctor *d) {
    size_t i;
    const json_t *row;
    json_array_foreach(d->rows, i, row) {
        const char *state = json_string_value(json_object_get(row, "state"));
        if (state && !strcmp(state, doctor_state_names[DOCTOR_UNTRIED]))
            return false;
    }
    return !d->off[PLAN_WALL_MOUNTS];
}

int doctor_facts(struct doctor *d, struct error *err) {
    kernel_row(d);
    surroundings_row(d);
    modules_row(d);
    landlock_row(d);
    proc_row(d);
    programs_row(d);
    state_row(d);
    if (sandbox_is_there(d))
        return overlay_row(d, err);
    doctor_row(d, "fact", "overlay", DOCTOR_UNTRIED, NULL, "nothing can be tried until what is missing above is there",
               NULL);
    return 0;
}
