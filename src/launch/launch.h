/* launch.h: one step, from its plan to its end: what the stages of the launcher share.
 *
 * The stages, each with what it should and must not do, in the order they run:
 *   begin     clone the set-up child into its namespaces, write its id maps; before the plan is there, where it can be
 *   prepare   as doorward's own user: open what the plan names, make the space (root), make the control groups
 *   set up    in the child, two halves side by side: init's makes the network namespace, the reaper's builds the new root
 *             by descriptor and enters it; both give up everything
 *   confirm   outside: read back from the kernel what holds
 *   watch     outside: deadline, reports, denied calls, the end
 * runs in: launcher */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/error.h"
#include "jail/cgroup.h"
#include "jail/ns.h"
#include "plan/plan.h"
#include "wire/inner.h"
#include "wire/launch.h"

#define LAUNCH_CHANNEL  3
#define LAUNCH_ID_RANGE 65536         /* ids of one run, root mode */
#define LAUNCH_AGENT    PLAN_AGENT_ID /* the worker's uid and gid inside */

/* What holds, as asked of the kernel: the content of ENFORCED. */
enum { NOTES_MAX = 20, NOTE_ROOM = 300, WALL_ROOM = 200 };
struct held {
    struct {
        const char *by;    /* NULL: not judged (the lab took the limit off) */
        uint64_t in_force; /* UINT64_MAX: nothing holds it, as the policy allows */
    } limits[PLAN_LIMIT_N];
    char walls[PLAN_WALL_N][WALL_ROOM];
    char notes[NOTES_MAX][NOTE_ROOM];
    unsigned n_notes;
};

struct launch {
    struct plan plan;
    char run[ULID_TEXT];
    unsigned step;
    uint32_t uid_base;
    uint64_t core;    /* confine_core_value when the launcher began */
    bool root;        /* real root: id maps of a range, id-mapped inputs, overlays made outside */
    int plan_fd;      /* the packed plan as it came */
    int std[3];       /* the worker's standard streams */
    int program;      /* doorward-init, O_PATH */
    int program_tree; /* the same as a detached mount (root mode), else -1 */
    struct cgroup group;
    struct held held; /* what ENFORCED says */

    int space; /* the one writable, limited file system; -1 until there */
    int space_inside; /* the mount of it that the set-up child gets, where that is another one (mount_knows_detached), else -1 */
    int devices; /* a detached /dev with nodes (root mode), else -1 */
    int *trees;  /* for each input: its detached mount, -1 where the set-up child makes it */
    int *shows;  /* for each input: a descriptor that shows its content outside (overlays, copies), or -1 */
    uint32_t id; /* the worker's uid and gid as seen inside */

    pid_t init;
    int pidfd, inner, build, listener;
    int loopback;      /* INNER_LISTENER; -1 once the interface is up */
    int freezer;       /* a v2 group made to freeze in; -1 where none was needed */
    bool running;      /* the worker was let go */
    uint64_t begun_us; /* CLOCK_MONOTONIC when the worker began to run */
    struct launch_end end;
    struct wire_message m;
};

/* True unless the lab has taken this wall off. */
static inline bool wall_stands(const struct launch *l, enum plan_wall w) {
    return !l->plan.lab_off[w];
}

/* prepare.c: finds doorward-init beside this program. 0 or -errno. */
int launch_find_program(struct launch *l, struct error *err);
/* Opens the inputs, makes the space and, as root, the mounts that only host root can make. Must not run
 * anything and must not write outside the space. 0 or -errno with door, object, rule and remedy. */
int launch_prepare(struct launch *l, struct error *err);

/* space.c: the detached, limited file system with its folders; *ret is its descriptor. Owned by `owner` where >= 0. */
int space_make(const struct plan *p, long owner, int *ret, struct error *err);
/* One input's folder in the space, `kind` is "up", "wk", "mask" or "copy": made, owned, opened O_PATH. */
int space_folder(int space, const char *kind, size_t input, long owner);
/* Writes what became of the space's blocks and inodes into the end. */
void space_figures(int space, struct launch_end *end);

/* input.c: opens the host's side of an input (canonical path, no link followed, the type that the plan saw). */
int input_open(const struct plan_input *in, struct error *err);
/* The rows of an id map from the disk's ids to the host's: `owner` and the worker's id `self` change places, the rest of
 * 0..65535 stays in place from `base` on. `e` has room for NS_EXTENTS_MAX. */
void input_swap_ids(struct ns_extent *e, size_t *n, uint32_t base, uint32_t owner, uint32_t self);
/* The detached mount of an input. `source` from input_open. `owner` >= 0: as host root, for the worker with that host
 * id (map of the mount, trusted overlay); else within the set-up child. Fills *ret_show for overlays and copies. */
int input_mount(const struct launch *l, size_t i, int source, long owner, int *ret_show, struct error *err);

/* sight.c: what `exclude` and `only` let the worker see. */
enum sight {
    SIGHT_SHOWN,  /* it, and what lies below unless excluded */
    SIGHT_HIDDEN, /* it and all below */
    SIGHT_SEARCH, /* a folder that `only` does not name: shown if something below is */
};
/* `path` is relative to the input; `within` = a folder above it was named by `only`. */
enum sight sight_of(const struct plan_input *in, const char *path, bool directory, bool within);
/* The same, with SEARCH decided by looking for one visible thing below `dirfd`/`name`. 1 shown, 0 hidden, or -errno. */
int sight_decide(const struct plan_input *in, int dirfd, const char *name, const char *path, bool directory,
                 bool *within);
/* Asks the file system where readdir(3) leaves the type open (DT_UNKNOWN), as some do. */
bool sight_is_folder(int dirfd, const struct dirent *e);
enum { SIGHT_DEPTH_MAX = 256 }; /* folders below each other; each holds a descriptor while it is walked */

/* copy.c: copies the tree or file `from` (any descriptor of it) into the empty folder `to` (a file becomes "file"), as
 * `owner` (-1: leave). Regular files, folders, links and FIFOs, with modes (without set-id) and times; others are
 * counted in *ret_left. Follows nothing. `in` gives the patterns. 0 or -errno. */
int copy_tree(const struct plan_input *in, int from, int to, long owner, unsigned *ret_left, struct error *err);
/* mask.c: fills the folder `to` with whiteouts for what `exclude` and `only` hide in `from`, and makes it like `from`.
 * 0 or -errno. */
int mask_tree(const struct plan_input *in, int from, int to, long owner, struct error *err);
/* Gives the folder `to` the mode and times of `from`, and its owner where `owner` >= 0: the top of an overlay looks as its
 * topmost layer does. 0 or -errno. */
int mask_like(int from, int to, long owner);

/* root.c: the new root: a small tmpfs with system folders, made-up /etc, devices. All by descriptor. */
struct root_part {
    int tree; /* detached mount, owned; -1 for a link */
    char target[64];
    char link[256]; /* where the link points, which the host has in this place */
};
enum { ROOT_PARTS_MAX = 40 };
struct root {
    int fd;              /* the root's mount */
    int terminals, proc; /* detached, until they are attached */
    struct root_part parts[ROOT_PARTS_MAX];
    size_t n_parts;
};
/* What the host gives, opened while its paths are still reachable. Needs neither a plan nor ids. */
int root_open_parts(struct root *r, struct error *err);
/* The root's file system with its folders, files and links, a /dev/pts, and a /proc of this process's pid namespace.
 * Needs ids, and no plan but the lab's. */
int root_make(const struct launch *l, struct root *r, struct error *err);
/* The host's device nodes, where there is no /dev made by host root. */
int root_open_devices(struct root *r, struct error *err);
/* Attaches the root, makes the folders, attaches parts, space and inputs. */
int root_build(struct launch *l, struct root *r, struct error *err);
/* proc of the calling process's pid namespace, masked. */
int root_attach_proc(struct root *r, struct error *err);
/* The links and folders of /dev, in a mount of its own that carries the nodes already (host root). 0 or -errno. */
int root_furnish_devices(int devices);
/* Enters the root and lets the old one go. */
int root_enter(const struct root *r, struct error *err);

/* setup.c: the set-up child; never returns. `inner` becomes init's channel, `build` is the reaper's half's. */
void setup_run(struct launch *l, int inner, int build) __attribute__((noreturn));
/* The bits of the walls that stand, as both halves are told. */
uint32_t setup_walls(const struct launch *l);

/* sandbox.c: clones the set-up child, with the walls of l->plan (all of them while there is no plan). 0 or -errno. */
int sandbox_clone(struct launch *l, struct error *err);
/* The error of a launcher that is root of a user namespace without the ids of this run. Returns code. */
int sandbox_lacks_ids(const struct launch *l, int code, struct error *err);
/* Writes its id maps, for which it waits. 0 or -errno. */
int sandbox_map(struct launch *l, struct error *err);
/* When a half of the set-up has died it has said why: that replaces `err`, which is only what came of it. */
void sandbox_explain(struct launch *l, struct error *err);
/* Ends a sandbox that was begun before the plan and does not fit it. */
void sandbox_discard(struct launch *l);
/* Hands the reaper's half what it builds from; then both halves their control groups. 0 or -errno. */
int sandbox_build(struct launch *l, struct error *err);
int sandbox_enter_groups(struct launch *l, struct error *err);

/* limits.c: the control groups and what is in force. */
int limits_make(struct launch *l, struct error *err);
/* Limits that the worker's processes carry themselves (setrlimit), in the reaper before it confines itself. */
int limits_carry(const struct launch *l, struct error *err);
/* The same, read back: `text` is the worker's /proc/PID/limits. 0, or -EPERM with the limit that is not in force. */
int limits_check(const struct launch *l, const char *text, struct error *err);
enum { LIMITS_CARRIED = 5 };
/* True when the launcher decided that an rlimit of the worker's holds this limit. */
bool limits_by_rlimit(const struct launch *l, enum plan_limit limit);
/* How many processes of ours count against the worker's processes: init and the reaper. */
enum { LIMITS_OUR_PROCESSES = 2 };

/* The content of ENFORCED as JSON. 0 or -ENOMEM. */
int held_print(const struct launch *l, struct buf *out);

/* confirm.c: finds the reaper's half and what can be known of it early; a failure shows in confirm_walls. */
void confirm_prepare(const struct launch *l);
/* Asks the kernel whether the walls hold around init and the reaper; fills l->held.walls. */
int confirm_walls(struct launch *l, struct error *err);

/* watch.c: from the set-up's first word to the end. 0 when the step ended and everything of it is confirmed gone. */
int watch_run(struct launch *l, struct error *err);
/* Ends every process of the step and waits until the kernel confirms. */
int watch_end(struct launch *l, struct error *err);

/* denied.c: seccomp notifications, counted. */
void denied_answer(struct launch *l);
void denied_flush(struct launch *l);

/* memory.c: the memory of all processes of the step and of the space, in bytes, where no control group counts it. */
uint64_t memory_watch(const struct launch *l);

/* tree.c: calls `visit` for init (depth 0), the reaper (1) and everything below. The tree may change meanwhile. */
typedef void (*tree_visit)(void *data, pid_t parent, pid_t pid, int depth);
void tree_each(pid_t init, tree_visit visit, void *data);
/* Reads /proc/PID/`name` into `to`, NUL-terminated; how many bytes, or negative. */
ssize_t tree_read(pid_t pid, const char *name, char *to, size_t room);
/* State and parent in the text of /proc/PID/stat; what follows the state, or NULL for a text that is none. */
const char *tree_stat(char *text, char *ret_state, pid_t *ret_parent);

/* freeze.c: stops every process of the step and confirms it. */
enum frozen_by { FROZEN_BY_CGROUP, FROZEN_BY_SIGNALS };
struct frozen {
    enum frozen_by by;
    uint32_t processes;
    uint64_t took_us;
};
/* 0 when nothing of the worker runs any more; or -errno with words, and the step goes on as before. */
int freeze_step(struct launch *l, struct frozen *ret, struct error *err);
int freeze_undo(struct launch *l, const struct frozen *f, struct error *err);

/* figures.c: what the step uses now. */
void figures_now(struct launch *l, struct launch_figures *ret);

/* A note for the record, shown to a person ("disk is held in memory ..."). */
void launch_note(struct launch *l, const char *format, ...) _printf_(2, 3);
