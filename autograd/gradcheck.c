/* The table of properties, and an op as a whole. */
#include "autograd/gradcheck_impl.h"

const ttn_property ttn_properties[] = {
#define TTN_PROPERTY(name, applies, check, on_devices) {name, applies, check, on_devices},
    TTN_PROPERTIES(TTN_PROPERTY)
#undef TTN_PROPERTY
        {NULL, NULL, NULL, 0},
};

const ttn_property *ttn_property_find(const char *name)
{
    for (const ttn_property *p = ttn_properties; p->name; p++)
        if (strcmp(p->name, name) == 0) return p;
    return NULL;
}

int ttn_case_is_good(const ttn_op *op, const ttn_case *k)
{
    (void)op;
    return !k->refused && !k->fails;
}

ttn_status ttn_gradcheck_op(const ttn_op *op, const ttn_gradcheck_options *o, int *ret_checks, ttn_error *err)
{
    int checks = 2;
    ttn_status status = ttn_gradcheck_descriptor(op, err);
    for (int k = 0; k < op->n_cases && status == TTN_OK; k++)
        for (const ttn_property *p = ttn_properties; p->name && status == TTN_OK; p++) {
            if (!p->applies(op, &op->cases[k])) continue;
            status = p->check(op, &op->cases[k], o, err);
            checks++;
        }
    if (status == TTN_OK) status = ttn_gradcheck_idle_reads(op, o, err);
    if (ret_checks) *ret_checks = checks;
    return status;
}
