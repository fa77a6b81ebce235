/* A model from its rows of the configuration. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autograd/attention.h"
#include "train/model.h"

/* ---- rows ---- */

/* Each in the order of its enum. */
static const char *const activations[] = {"gelu", "gelu-tanh", "relu", "silu", NULL};
static const char *const norms[] = {"layer", "rms", NULL};
static const char *const norm_places[] = {"pre", "post", NULL};
static const char *const final_norms[] = {"auto", "yes", "no", NULL};
static const char *const places[] = {"rotary", "learned", "sinusoid", "none", NULL};
static const char *const rotary_forms[] = {"halves", "interleaved", NULL};
static const char *const frequencies[] = {"computed", "stored", NULL};
static const char *const sinusoid_forms[] = {"interleaved", "halves", NULL};
static const char *const heads[] = {"esm", "bert", "linear", NULL};

/* Those of this build: a new kind is one line of ops.def. */
static const char *const kinds[] = {
    "auto",
#define TTN_OP(name)
#define TTN_ATTENTION(kind) #kind,
#include "autograd/ops.def"
#undef TTN_OP
    NULL,
};

static const ttn_option_condition is_layernorm[] = {{"model.norm", .is = "layer"}, {0}};
static const ttn_option_condition is_learned[] = {{"model.positions", .is = "learned"}, {0}};
static const ttn_option_condition has_numbers[] = {{"model.positions", .is = "learned, sinusoid"}, {0}};
static const ttn_option_condition turns[] = {
    {"model.positions", .is = "rotary"}, {"attention.kind", .is_not = "none"}, {0}};
static const ttn_option_condition is_sinusoid[] = {{"model.positions", .is = "sinusoid"}, {0}};
static const ttn_option_condition drops_tokens[] = {{"model.token_dropout", .is = "yes"}, {0}};
static const ttn_option_condition for_all_layers[] = {
    {"attention.layers", .is = "", .words = "attention.layers is not given"}, {0}};
static const ttn_option_condition chooses[] = {{"attention.kind", .is = "auto"}, {0}};
static const ttn_option_condition compares[] = {{"attention.kind", .is_not = "none"}, {0}};

static const ttn_option options[] = {
    {.name = "model.layers",
     .type = TTN_OPTION_INTEGER,
     .fallback = "6",
     .least = 1,
     .most = 10000,
     .help = "encoder layers, each attention and a feed-forward block",
     .since = "0.1"},
    {.name = "model.width",
     .type = TTN_OPTION_INTEGER,
     .fallback = "256",
     .least = 1,
     .most = 1 << 20,
     .unit = "channels",
     .help = "numbers that stand for a residue between the layers",
     .since = "0.1"},
    {.name = "model.heads",
     .type = TTN_OPTION_INTEGER,
     .fallback = "8",
     .least = 1,
     .most = 1 << 20,
     .help = "heads of attention, which share the width among them",
     .since = "0.1"},
    {.name = "model.ffn",
     .type = TTN_OPTION_INTEGER,
     .fallback = "0",
     .least = 0,
     .most = 1 << 24,
     .unit = "channels",
     .help = "hidden channels of a feed-forward block; 0 stands for 4 times the width, for 8/3 of it (a multiple of 8) "
             "where the block is gated",
     .since = "0.1"},
    {.name = "model.activation",
     .type = TTN_OPTION_CHOICE,
     .fallback = "gelu",
     .choices = activations,
     .help =
         "between the two layers of a feed-forward block; gelu is the exact one, gelu-tanh a fit that some published "
         "models use",
     .since = "0.1"},
    {.name = "model.gated",
     .type = TTN_OPTION_BOOL,
     .fallback = "no",
     .help = "feed-forward blocks multiply by a second layer: GeGLU, and with silu SwiGLU",
     .since = "0.1"},
    {.name = "model.bias",
     .type = TTN_OPTION_BOOL,
     .fallback = "yes",
     .help = "linear layers inside the encoder's layers have biases",
     .since = "0.1"},
    {.name = "model.norm",
     .type = TTN_OPTION_CHOICE,
     .fallback = "layer",
     .choices = norms,
     .help = "layernorm or rmsnorm",
     .since = "0.1"},
    {.name = "model.norm_eps",
     .type = TTN_OPTION_REAL,
     .fallback = "1e-5",
     .least = 1e-30,
     .most = 1,
     .help = "added to the variance; BERT has 1e-12",
     .since = "0.1"},
    {.name = "model.norm_bias",
     .type = TTN_OPTION_BOOL,
     .fallback = "yes",
     .help = "layernorms have biases; rmsnorms never do",
     .since = "0.1",
     .when = is_layernorm},
    {.name = "model.norm_place",
     .type = TTN_OPTION_CHOICE,
     .fallback = "pre",
     .choices = norm_places,
     .help = "norms before attention and feed-forward (ESM-2), or behind the sums (BERT)",
     .since = "0.1"},
    {.name = "model.embed_norm",
     .type = TTN_OPTION_BOOL,
     .fallback = "no",
     .help = "a norm before the first layer: BERT, ESM-1b",
     .since = "0.1"},
    {.name = "model.final_norm",
     .type = TTN_OPTION_CHOICE,
     .fallback = "auto",
     .choices = final_norms,
     .help = "a norm behind the last layer; auto is yes where norms stand before their blocks",
     .since = "0.1"},
    {.name = "model.positions",
     .type = TTN_OPTION_CHOICE,
     .fallback = "rotary",
     .choices = places,
     .help =
         "how the model knows where a residue stands: queries and keys turned, a learned table, sines and cosines, or "
         "not at all",
     .since = "0.1"},
    {.name = "model.max_positions",
     .type = TTN_OPTION_INTEGER,
     .fallback = "1024",
     .least = 1,
     .most = 1 << 24,
     .unit = "tokens",
     .help =
         "how many positions a learned table knows, that of <cls> included; BERT's token type 0 belongs into its rows",
     .since = "0.1",
     .when = is_learned},
    {.name = "model.position_offset",
     .type = TTN_OPTION_INTEGER,
     .fallback = "0",
     .least = 0,
     .most = 1 << 20,
     .help = "the number of the first position in a table or of sines: 2 in ESM-1b and Nystromformer",
     .since = "0.1",
     .when = has_numbers},
    {.name = "model.rotary_base",
     .type = TTN_OPTION_REAL,
     .fallback = "10000",
     .least = 1,
     .most = 1e12,
     .help = "pair j of a head's D/2 turns by base^(-2j/D) a residue",
     .since = "0.1",
     .when = turns},
    {.name = "model.rotary_form",
     .type = TTN_OPTION_CHOICE,
     .fallback = "halves",
     .choices = rotary_forms,
     .help = "which channels are a pair: j and j + D/2 (ESM-2), or 2j and 2j + 1 (AMPLIFY)",
     .since = "0.1",
     .when = turns},
    {.name = "model.rotary_frequencies",
     .type = TTN_OPTION_CHOICE,
     .fallback = "computed",
     .choices = frequencies,
     .help = "from model.rotary_base, or numbers that are saved with the model, as in published ESM-2 files",
     .since = "0.1",
     .when = turns},
    {.name = "model.sinusoid_form",
     .type = TTN_OPTION_CHOICE,
     .fallback = "interleaved",
     .choices = sinusoid_forms,
     .help = "sines and cosines in turns, or sines and then cosines",
     .since = "0.1",
     .when = is_sinusoid},
    {.name = "model.head",
     .type = TTN_OPTION_CHOICE,
     .fallback = "esm",
     .choices = heads,
     .help =
         "before the decoder: a dense layer, gelu and a norm (esm), the same with model.activation (bert), or nothing "
         "(linear)",
     .since = "0.1"},
    {.name = "model.tied",
     .type = TTN_OPTION_BOOL,
     .fallback = "yes",
     .help = "the decoder's matrix is the embedding",
     .since = "0.1"},
    {.name = "model.dropout",
     .type = TTN_OPTION_REAL,
     .fallback = "0",
     .least = 0,
     .most = 0.99,
     .help = "share of embeddings and of what layers add that is dropped in training",
     .since = "0.1"},
    {.name = "model.token_dropout",
     .type = TTN_OPTION_BOOL,
     .fallback = "no",
     .help = "masks are rows of zeros, and a sequence's other rows are scaled to make up for them: ESM-1b, ESM-2",
     .since = "0.1"},
    {.name = "model.token_dropout_share",
     .type = TTN_OPTION_REAL,
     .fallback = "0.12",
     .least = 0,
     .most = 0.99,
     .help = "share of masks in training that token dropout reckons with: mlm.rate times mlm.mask",
     .since = "0.1",
     .when = drops_tokens},
    {.name = "model.init_std",
     .type = TTN_OPTION_REAL,
     .fallback = "0.02",
     .least = 1e-6,
     .most = 10,
     .help = "standard deviation with which matrices and embeddings begin",
     .since = "0.1"},
    {.name = "model.init_scaled",
     .type = TTN_OPTION_BOOL,
     .fallback = "no",
     .help = "matrices whose products are added up over the layers begin smaller, by sqrt(2 layers): GPT-2",
     .since = "0.1"},
    {.name = "attention.kind",
     .type = TTN_OPTION_CHOICE,
     .fallback = "exact",
     .choices = kinds,
     .help = "attention of all layers; auto: exact where no sequence is longer than attention.auto_length, else favor; "
             "none: "
             "each residue sees itself alone",
     .since = "0.1",
     .when = for_all_layers},
    {.name = "attention.layers",
     .type = TTN_OPTION_CHOICE,
     .is_list = 1,
     .fallback = "",
     .choices = kinds,
     .help =
         "kinds layer by layer in the place of attention.kind, from the first layer on and then from the list's start "
         "again",
     .since = "0.1"},
    {.name = "attention.auto_length",
     .type = TTN_OPTION_INTEGER,
     .fallback = "1024",
     .least = 1,
     .most = 1 << 30,
     .unit = "tokens",
     .help = "for auto: the longest sequence of exact attention",
     .since = "0.1",
     .when = chooses},
    {.name = "attention.qk_norm",
     .type = TTN_OPTION_BOOL,
     .fallback = "no",
     .help = "queries and keys have a fixed length with one learned factor a head, which linear attention and large "
             "learning "
             "rates are grateful for",
     .since = "0.1",
     .when = compares},
    {.name = "attention.dropout",
     .type = TTN_OPTION_REAL,
     .fallback = "0",
     .least = 0,
     .most = 0.99,
     .help = "share of attention's weights that is dropped in training, in layers of the kind exact: other kinds do "
             "not make "
             "them one by one",
     .since = "0.1"},
};

static const ttn_config_order orders[] = {
    {"model.heads", "model.width", "every head has at least one channel"},
};

/* As they stand in the configuration. */
typedef struct {
    int64_t layers, width, heads, ffn;
    const char *activation, *norm, *norm_place, *final_norm;
    int gated, bias, norm_bias, embed_norm;
    double norm_eps;
    const char *positions, *rotary_form, *rotary_frequencies, *sinusoid_form;
    int64_t max_positions, position_offset;
    double rotary_base;
    const char *head;
    int tied;
    double dropout;
    int token_dropout;
    double token_dropout_share;
    double init_std;
    int init_scaled;
    const char *kind;
    ttn_list kind_of_layer;
    int64_t auto_length;
    int qk_norm;
    double attention_dropout;
} settings;

static const ttn_option_field fields[] = {
    TTN_FIELD(settings, layers, "model.layers"),
    TTN_FIELD(settings, width, "model.width"),
    TTN_FIELD(settings, heads, "model.heads"),
    TTN_FIELD(settings, ffn, "model.ffn"),
    TTN_FIELD(settings, activation, "model.activation"),
    TTN_FIELD(settings, gated, "model.gated"),
    TTN_FIELD(settings, bias, "model.bias"),
    TTN_FIELD(settings, norm, "model.norm"),
    TTN_FIELD(settings, norm_eps, "model.norm_eps"),
    TTN_FIELD(settings, norm_bias, "model.norm_bias"),
    TTN_FIELD(settings, norm_place, "model.norm_place"),
    TTN_FIELD(settings, embed_norm, "model.embed_norm"),
    TTN_FIELD(settings, final_norm, "model.final_norm"),
    TTN_FIELD(settings, positions, "model.positions"),
    TTN_FIELD(settings, max_positions, "model.max_positions"),
    TTN_FIELD(settings, position_offset, "model.position_offset"),
    TTN_FIELD(settings, rotary_base, "model.rotary_base"),
    TTN_FIELD(settings, rotary_form, "model.rotary_form"),
    TTN_FIELD(settings, rotary_frequencies, "model.rotary_frequencies"),
    TTN_FIELD(settings, sinusoid_form, "model.sinusoid_form"),
    TTN_FIELD(settings, head, "model.head"),
    TTN_FIELD(settings, tied, "model.tied"),
    TTN_FIELD(settings, dropout, "model.dropout"),
    TTN_FIELD(settings, token_dropout, "model.token_dropout"),
    TTN_FIELD(settings, token_dropout_share, "model.token_dropout_share"),
    TTN_FIELD(settings, init_std, "model.init_std"),
    TTN_FIELD(settings, init_scaled, "model.init_scaled"),
    TTN_FIELD(settings, kind, "attention.kind"),
    TTN_FIELD(settings, kind_of_layer, "attention.layers"),
    TTN_FIELD(settings, auto_length, "attention.auto_length"),
    TTN_FIELD(settings, qk_norm, "attention.qk_norm"),
    TTN_FIELD(settings, attention_dropout, "attention.dropout"),
};

static ttn_status read_settings(const ttn_values *v, settings *ret, ttn_error *err)
{
    *ret = (settings){0};
    return ttn_values_fill(v, fields, sizeof fields / sizeof *fields, ret, err);
}

static ttn_status read_module(const void *self, const ttn_values *v, ttn_error *err)
{
    (void)self;
    settings s;
    return read_settings(v, &s, err);
}

const ttn_config_module ttn_model_module = {
    .name = "model",
    .row = options,
    .n_row = sizeof options / sizeof *options,
    .read = read_module,
    .order = orders,
    .n_order = sizeof orders / sizeof *orders,
};

/* ---- what cannot be ---- */

static int is_rotary(const settings *s)
{
    return strcmp(s->positions, "rotary") == 0;
}

static ttn_status check_heads(const settings *s, ttn_error *err)
{
    if (s->width % s->heads != 0)
        return TTN_FAIL(err, TTN_EINVAL,
                        "model.heads: %" PRId64 " heads do not divide model.width, %" PRId64
                        ": the nearest width that they do is %" PRId64,
                        s->heads, s->width, (s->width / s->heads + 1) * s->heads);
    const int64_t D = s->width / s->heads;
    if (is_rotary(s) && D % 2 != 0)
        return TTN_FAIL(err, TTN_EINVAL,
                        "model.positions: rotary turns pairs of channels, and heads have %" PRId64
                        " (model.width %" PRId64 " / model.heads %" PRId64 "): that must be even",
                        D, s->width, s->heads);
    return TTN_OK;
}

static ttn_status check_use(const settings *s, const ttn_model_use *use, ttn_error *err)
{
    if (s->token_dropout && use->causal)
        return TTN_FAIL(
            err, TTN_EINVAL,
            "model.token_dropout makes up for masks, and a model that predicts next residues sees none: set it "
            "to no");
    if (s->token_dropout && use->alphabet->mask == TTN_NO_TOKEN)
        return TTN_FAIL(err, TTN_EINVAL, "model.token_dropout makes up for masks, and the vocabulary '%s' has no mask",
                        use->alphabet->name);
    if (strcmp(s->positions, "learned") == 0 && use->positions > s->max_positions)
        return TTN_FAIL(err, TTN_EINVAL,
                        "model.max_positions: a table of %" PRId64
                        " positions, and sequences that reach position %" PRId64
                        ": raise it, leave out longer sequences, or count each piece from its own start (data.frame: "
                        "always)",
                        s->max_positions, use->positions - 1);
    if (s->kind_of_layer.n > s->layers)
        return TTN_FAIL(err, TTN_EINVAL, "attention.layers has %d kinds, and model.layers is %" PRId64,
                        s->kind_of_layer.n, s->layers);
    return TTN_OK;
}

/* ---- attention of each layer ---- */

/* As the configuration has it. */
static const char *asked_of(const settings *s, int64_t layer)
{
    const ttn_list *list = &s->kind_of_layer;
    return list->n > 0 ? list->item[layer % list->n].text : s->kind;
}

static const char *kind_of(const settings *s, const ttn_model_use *use, int64_t layer)
{
    const char *kind = asked_of(s, layer);
    if (strcmp(kind, "auto") != 0) return kind;
    return use->longest > 0 && use->longest <= s->auto_length ? "exact" : "favor";
}

static ttn_status attention_of(const ttn_values *values, const settings *s, const ttn_model_use *use, int64_t layer,
                               ttn_model_attention *ret, ttn_error *err)
{
    ret->kind = kind_of(s, use, layer);
    const ttn_op *op = ttn_attention_find(ret->kind);
    if (!op)
        return TTN_FAIL(err, TTN_EINVAL,
                        "attention.kind: auto asks for '%s' in layer %" PRId64 ", and this program does not have it",
                        ret->kind, layer);
    ret->qk_gain = op->attention->qk_gain ? op->attention->qk_gain(s->width / s->heads) : 1;
    if (op->attr_bytes == 0) return TTN_OK;
    ret->attr = calloc(1, op->attr_bytes);
    if (!ret->attr) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for the attention of layer %" PRId64, layer);
    const ttn_option_reader reader = ttn_values_reader(values);
    return op->attention->attr(&reader, (int)layer, ret->attr, err);
}

/* Dropout that no layer would do is refused. */
static ttn_status check_dropout(const settings *s, const ttn_model_spec *spec, ttn_error *err)
{
    if (s->attention_dropout == 0) return TTN_OK;
    for (int64_t l = 0; l < spec->layers; l++)
        if (ttn_attention_find(spec->attention[l].kind)->attention->drops) return TTN_OK;
    return TTN_FAIL(
        err, TTN_EINVAL,
        "attention.dropout is %g, and no layer has weights to drop: attention of the kind '%s' does not make "
        "them one by one; set it to 0 (model.dropout drops from what layers add)",
        s->attention_dropout, spec->attention[0].kind);
}

/* ---- the spec ---- */

static int is(const char *value, const char *choice)
{
    return strcmp(value, choice) == 0;
}

/* The place of a choice in its list, which is its enum. */
static int place_of(const char *const *choice, const char *value)
{
    int i = 0;
    while (choice[i] && !is(choice[i], value))
        i++;
    assert(choice[i]); /* values were checked against the same list */
    return i;
}

static int64_t hidden_channels(const settings *s)
{
    enum { MULTIPLE = 8 };
    if (s->ffn > 0) return s->ffn;
    if (!s->gated) return 4 * s->width;
    return (8 * s->width + 3 * MULTIPLE - 1) / (3 * MULTIPLE) * MULTIPLE;
}

static ttn_layer_spec layer_of(const settings *s, const ttn_model_use *use)
{
    const double shrink = s->init_scaled ? sqrt(2 * (double)s->layers) : 1;
    ttn_layer_spec layer = ttn_layer_default(s->width, s->heads, hidden_channels(s));
    layer.post_norm = is(s->norm_place, "post");
    layer.norm = (ttn_norm_form)place_of(norms, s->norm);
    layer.norm_bias = s->norm_bias;
    layer.norm_eps = s->norm_eps;
    layer.causal = use->causal;
    layer.attn_bias = s->bias;
    layer.rotary_form = (ttn_rotary_form)place_of(rotary_forms, s->rotary_form);
    layer.rotary_base = s->rotary_base;
    layer.activation = (ttn_activation)place_of(activations, s->activation);
    layer.gated = s->gated;
    layer.ffn_bias = s->bias;
    layer.dropout = s->dropout;
    layer.attention_dropout = s->attention_dropout;
    layer.weight = (ttn_init){TTN_INIT_NORMAL, s->init_std};
    layer.out = (ttn_init){TTN_INIT_NORMAL, s->init_std / shrink};
    return layer;
}

static void fill_spec(const settings *s, const ttn_model_use *use, ttn_model_spec *ret)
{
    const ttn_alphabet *a = use->alphabet;
    ret->vocabulary = a->n;
    ret->layers = s->layers;
    ret->layer = layer_of(s, use);
    ret->qk_norm = s->qk_norm;
    ret->mask = a->mask == TTN_NO_TOKEN ? -1 : a->mask;
    ret->token_dropout_share = s->token_dropout ? s->token_dropout_share : -1;
    ret->places = (ttn_model_places)place_of(places, s->positions);
    ret->max_positions = s->max_positions;
    ret->position_offset = s->position_offset;
    ret->sinusoid_form = (ttn_sinusoid_form)place_of(sinusoid_forms, s->sinusoid_form);
    ret->stored_frequencies = is(s->rotary_frequencies, "stored");
    ret->embed_norm = s->embed_norm;
    ret->final_norm = is(s->final_norm, "auto") ? !ret->layer.post_norm : is(s->final_norm, "yes");
    ret->head = (ttn_model_head)place_of(heads, s->head);
    ret->tied = s->tied;
}

ttn_status ttn_model_spec_of(const ttn_values *values, const ttn_model_use *use, ttn_model_spec **ret, ttn_error *err)
{
    *ret = NULL;
    settings s;
    ttn_status status = read_settings(values, &s, err);
    if (status == TTN_OK) status = check_heads(&s, err);
    if (status == TTN_OK) status = check_use(&s, use, err);
    if (status != TTN_OK) return status;
    ttn_model_spec *spec = calloc(1, sizeof *spec);
    ttn_model_attention *attention = calloc((size_t)s.layers, sizeof *attention);
    if (!spec || !attention) {
        free(spec);
        free(attention);
        return TTN_FAIL(err, TTN_ENOMEM, "out of memory for a model of %" PRId64 " layers", s.layers);
    }
    fill_spec(&s, use, spec);
    spec->attention = attention;
    for (int64_t l = 0; l < s.layers; l++)
        spec->asks_auto |= is(asked_of(&s, l), "auto");
    for (int64_t l = 0; l < s.layers && status == TTN_OK; l++)
        status = attention_of(values, &s, use, l, &attention[l], err);
    if (status == TTN_OK) status = check_dropout(&s, spec, err);
    if (status == TTN_OK)
        *ret = spec;
    else
        ttn_model_spec_destroy(spec);
    return status;
}

char *ttn_model_kinds(const ttn_model_spec *s, char *text)
{
    text[0] = 0;
    for (int64_t l = 0; l < s->layers; l++) {
        int64_t first = 0;
        while (!is(s->attention[first].kind, s->attention[l].kind))
            first++;
        const size_t n = strlen(text);
        if (first == l) snprintf(text + n, TTN_OPTION_EXPECTED - n, "%s%s", l > 0 ? ", " : "", s->attention[l].kind);
    }
    return text;
}

static const char *note_of(const ttn_model_attention *a)
{
    const ttn_attention *kind = ttn_attention_find(a->kind)->attention;
    return kind->note ? kind->note(a->attr) : NULL;
}

const char *ttn_model_note(const ttn_model_spec *s, int64_t layer)
{
    const char *note = note_of(&s->attention[layer]);
    for (int64_t l = 0; l < layer && note; l++) {
        const char *said = note_of(&s->attention[l]);
        if (said && is(said, note)) note = NULL;
    }
    return note;
}

ttn_status ttn_model_check_positions(const ttn_model_spec *s, int64_t positions, ttn_error *err)
{
    if (s->places != TTN_PLACES_LEARNED || positions <= s->max_positions) return TTN_OK;
    return TTN_FAIL(err, TTN_EINVAL,
                    "the model's table of positions (model.max_positions) has %" PRId64
                    " of them, and a sequence reaches position %" PRId64 ": it must be cut",
                    s->max_positions, positions - 1);
}

void ttn_model_spec_destroy(ttn_model_spec *s)
{
    if (!s) return;
    for (int64_t l = 0; l < s->layers; l++)
        free(s->attention[l].attr);
    free(s->attention);
    free(s);
}
