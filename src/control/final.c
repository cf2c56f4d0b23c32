/* final.c: see final.h. runs in: controller, cli */
#include "control/final.h"

#include "control/control.h"

json_t *final_new(const char *run, const char *stop, int exit_status, const char *message) {
    return json_pack("{s:i, s:s, s:s, s:i, s:n, s:[], s:[], s:[], s:[], s:{}, s:s}", "version", 1, "run", run, "stop",
                     stop, "exit", exit_status, "step", "limits_hit", "revoked", "in_doubt", "artifacts", "used",
                     "message", message);
}

void final_add_step(json_t *final, const char *step, const struct step_result *r) {
    size_t i;
    json_t *hit, *hits = stop_limits_json(&r->stop);
    json_array_foreach(hits, i, hit) json_object_set_new(hit, "step", json_string(step));
    json_array_extend(json_object_get(final, "limits_hit"), hits);
    json_decref(hits);
    json_array_extend(json_object_get(final, "artifacts"), r->artifacts);
    json_object_set(json_object_get(final, "used"), step, r->used);
}

json_t *control_final_error(const struct error *err) {
    return final_new("", "error", stop_exit(STOP_ERROR, 0), err->message);
}
