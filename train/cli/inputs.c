#include "core/text.h"
#include "train/cli/configured.h"
#include "train/cli/inputs.h"

ttn_status ttn_inputs_find(const ttn_cli_call *call, ttn_files *ret, ttn_error *err)
{
    *ret = (ttn_files){0};
    ttn_status status = TTN_OK;
    for (int i = 0; i < call->n_argument && status == TTN_OK; i++)
        if (!ttn_is_setting(call->argument[i]))
            status = ttn_files_add(ret, call->argument[i], ttn_cli_given(call, "recursive"), err);
    if (status == TTN_OK && ret->n == 0) {
        char usage[TTN_USAGE_TEXT];
        status = TTN_FAIL(err, TTN_EINVAL, "no file is named; titin %s", ttn_usage(call->command, usage));
    }
    return status;
}

void ttn_inputs_tell(const ttn_files *in, ttn_facts *f)
{
    char shown[TTN_TAIL_ROOM];
    if (in->passed_over > 0)
        ttn_facts_warn(f,
                       "not read, since they are no files whose names end as FASTA does: %d in folders, the first %s",
                       in->passed_over, ttn_text_tail(in->first_passed_over, shown));
}
