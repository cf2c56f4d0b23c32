/* survey.h: the channel between controller and surveyor, which reads inputs beside the run.
 *
 *   controller                       surveyor
 *   START (plan)              ->
 *   INPUT (index, folder)*    ->
 *   GO                        ->
 *                             <-     SECRET*, CHANGED*, SURVEYED for each input; then end of file
 *   CUT                       ->              what nobody named is left where it is
 *
 * End of file from the controller means: exit.
 * runs in: controller, surveyor (what it says comes of hostile bytes: bounded, shown only neutralised) */
#pragma once

#include "wire/wire.h"

enum survey_type {
    SURVEY_START = 1, /* u32 1: only what must be known before the start (scan: refuse); fd: plan (plan_pack, sealed) */
    SURVEY_INPUT,     /* u32 index in the plan; fd: the input, O_PATH */
    SURVEY_GO,        /* - */
    SURVEY_CUT,       /* - */

    SURVEY_SECRET = 64, /* u32 index, u64 line (0: the name), text rule, text path */
    SURVEY_CHANGED,     /* u32 index, u32 enum survey_change, text path */
    SURVEY_SURVEYED, /* u32 index, u32 1: complete, u64 files, u64 bytes, u64 changed, text digest, text commit, text ref, text
                           why it is not complete */
};

/* How a path of a repository differs from its index. */
enum survey_change { SURVEY_MODIFIED, SURVEY_DELETED, SURVEY_UNMERGED, SURVEY_UNTRACKED, SURVEY_CHANGE_N };

enum {
    SURVEY_TOLD_MAX = 100, /* secrets, and changes, of one input that are told by name; all are counted */
    SURVEY_REF_MAX = 256,
    SURVEY_WHY_MAX = 512,
    SURVEY_PATH_MAX = 4096,
    SURVEY_OID_MAX = 65, /* a commit's name: 40 or 64 digits and NUL */
};
