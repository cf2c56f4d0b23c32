/* inputs.h: the bytes of file inputs, fixed when the run starts.
 *
 * Each input that is a regular file is put into the blob store and the plan names the blob instead, so that no step
 * sees a file that changed after the run began, and the plan's digest stands for the input's bytes. Folders stay live.
 * runs in: controller (untrusted input: bytes that are never interpreted) */
#pragma once

#include "base/json.h"
#include "control/place.h"
#include "plan/plan.h"

/* Larger files, and `sensitive` ones (a copy of a secret would outlive the run), stay live where a run has one step:
 * there is no later step that could see a change. */
#define INPUTS_LIVE_FROM (64u << 20)

/* Replaces sources in `plans`; *ret is a list of what was found: {step,target,source,digest,size,mode} or {...,
 * live:true}. */
int inputs_fix(const struct place *p, const char run[ULID_TEXT], struct plan *plans, size_t n, json_t **ret,
               struct error *err);
