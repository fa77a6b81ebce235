/* A text to a tree, by the events of libyaml. What YAML can do beyond sections, keys, lists and values (anchors, aliases,
 * tags, merge keys, several documents) is refused by name: it makes a value's place and meaning hard to see. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>
#include "core/text.h"
#include "train/config_impl.h"

/* ---- bytes that no configuration has ---- */

/* Why a character cannot stand in a configuration, or NULL. */
static const char *refused_character(uint32_t c, int is_before_newline)
{
    if (c == 0) return "a NUL byte: this is no text";
    if (c == '\r')
        return is_before_newline ? NULL
                                 : "a carriage return without a line feed: save the file with line ends of today";
    if ((c < ' ' && c != '\t' && c != '\n') || c == 0x7F || (c >= 0x80 && c < 0xA0 && c != 0x85))
        return "a control character that cannot be seen: remove it";
    if (c == 0x85 || c == 0x2028 || c == 0x2029)
        return "a line end that cannot be seen, and that not every editor counts: remove it";
    if (c == 0xFEFF) return "a byte order mark inside the text: remove it";
    if (c == 0xFFFE || c == 0xFFFF) return "a code that is no character: remove it";
    return NULL;
}

static const char bom[] = "\xEF\xBB\xBF";
enum { BOM = 3 };

static int begins_with(const char *text, size_t n, const char *with, size_t n_with)
{
    return n >= n_with && memcmp(text, with, n_with) == 0;
}

void ttn_config_make_plain(char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n;) {
        uint32_t character = 0;
        const size_t length = (size_t)ttn_text_character(text + i, n - i, &character);
        const int is_good = length > 0 && character >= ' ' && !refused_character(character, 0);
        if (!is_good) text[i] = '?';
        i += is_good ? length : 1;
    }
}

ttn_status ttn_config_check_bytes(ttn_config *c, const ttn_config_source *s, size_t at, size_t n, int *ret,
                                  ttn_error *err)
{
    const char *text = s->text;
    *ret = 0;
    ttn_config_place place = {.source = s, .at = at, .n = 1, .line = 1};
    if (s->has_lines && (begins_with(text, n, "\xFF\xFE", 2) || begins_with(text, n, "\xFE\xFF", 2)))
        return ttn_config_blame(c, place, err, "this is UTF-16: save the file as UTF-8");
    const size_t end = at + n;
    size_t i = s->has_lines && begins_with(text, n, bom, BOM) ? BOM : at;
    while (i < end) {
        uint32_t character = 0;
        const size_t length = (size_t)ttn_text_character(text + i, end - i, &character);
        place.at = i;
        if (length == 0)
            return ttn_config_blame(c, place, err, "byte 0x%02X is not UTF-8: save the file as UTF-8",
                                    (unsigned char)text[i]);
        place.n = length;
        const char *why = refused_character(character, i + 1 < end && text[i + 1] == '\n');
        if (why) return ttn_config_blame(c, place, err, "U+%04X is %s", (unsigned)character, why);
        if (character == '\n') place.line++;
        i += length;
    }
    *ret = 1;
    return TTN_OK;
}

/* ---- places ---- */

/* libyaml counts characters; bytes are found by going on from where the last place was. */
typedef struct {
    ttn_config *c;
    const ttn_config_source *s;
    size_t begin, end; /* of what is parsed */
    yaml_parser_t *parser;
    size_t index, at; /* a character's number, and its byte */
    int is_over;      /* nothing more is to be read */
} reader;

static int is_continuation(const reader *r, size_t at)
{
    return ttn_text_is_continuation(r->s->text[at]);
}

static size_t byte_of(reader *r, size_t index)
{
    for (; r->index < index && r->at < r->end; r->index++) {
        r->at++;
        while (r->at < r->end && is_continuation(r, r->at))
            r->at++;
    }
    for (; r->index > index && r->at > r->begin; r->index--) {
        r->at--;
        while (r->at > r->begin && is_continuation(r, r->at))
            r->at--;
    }
    return r->at;
}

static ttn_config_place place_of(reader *r, yaml_mark_t from, yaml_mark_t to)
{
    const size_t at = byte_of(r, from.index);
    const size_t end = byte_of(r, to.index);
    return (ttn_config_place){.source = r->s, .at = at, .n = end > at ? end - at : 0, .line = (int64_t)from.line + 1};
}

static ttn_config_place place_of_mark(reader *r, yaml_mark_t mark)
{
    ttn_config_place place = place_of(r, mark, mark);
    place.n = 1;
    return place;
}

/* ---- what libyaml refuses ---- */

/* Its words are right but not for everybody. `at_context`: the place to look at is where the thing began. */
static const struct {
    const char *problem, *context; /* context NULL: any */
    const char *sentence;
    int at_context;
} said[] = {
    {"mapping values are not allowed in this context", NULL,
     "a ':' where no key can stand: quote a value that has ': ' in it, and look at the indentation", 0},
    {"could not find expected ':'", NULL, "there is no ': ' behind this: a line is KEY: VALUE", 1},
    {"did not find expected key", NULL, "this line is not indented like the keys before it", 0},
    {"did not find expected '-' indicator", NULL, "this line stands in a list, and does not begin with '- '", 0},
    {"did not find expected ',' or ']'", NULL, "a ',' or a ']' is missing in the list that begins here", 1},
    {"did not find expected ',' or '}'", NULL, "a ',' or a '}' is missing in the section that begins here", 1},
    {"found unexpected end of stream", "while scanning a quoted scalar", "this quote is not closed", 1},
    {"found unexpected document indicator", "while scanning a quoted scalar", "this quote is not closed", 1},
    {"found unknown escape character", NULL,
     "an escape that there is none: between \" a backslash is written \\\\, between ' it stands for itself", 0},
    {"block sequence entries are not allowed in this context", NULL,
     "a list that begins with '- ' begins on a line of its own", 0},
    {"block mapping entries are not allowed in this context", NULL, "a '?' where no key can stand: quote the value", 0},
    {"mapping keys are not allowed in this context", NULL, "a '?' where no key can stand: quote the value", 0},
    {"found unexpected ':'", NULL, "a ':' behind a key wants a space after it", 0},
    {"found a tab character that violates indentation", NULL, "a tab in the indentation: YAML wants spaces", 0},
    {"found a tab character where an indentation space is expected", NULL,
     "a tab in the indentation: YAML wants spaces", 0},
    {"did not find expected <document start>", NULL,
     "this does not belong to what stands before it: is it indented less, or a second document?", 0},
    {"did not find expected node content", NULL, "a value is missing here", 0},
    {"did not find expected alphabetic or numeric character", NULL,
     "'*' and '&' begin an alias and an anchor, which are not read here: quote the value", 1},
};

static ttn_status blame_syntax(reader *r, ttn_error *err)
{
    const yaml_parser_t *p = r->parser;
    const char *problem = p->problem ? p->problem : "cannot be read";
    const ttn_config_place place = place_of_mark(r, p->problem_mark);
    if (strcmp(problem, "found character that cannot start any token") == 0) {
        const char what = place.at < r->end ? r->s->text[place.at] : ' ';
        if (what == '\t') return ttn_config_blame(r->c, place, err, "a tab in the indentation: YAML wants spaces");
        return ttn_config_blame(r->c, place, err, "a value cannot begin with '%c': quote it", what);
    }
    const char stray = place.at < r->end ? r->s->text[place.at] : 0;
    if (stray && strchr("]},", stray) && strcmp(problem, "did not find expected key") == 0)
        return ttn_config_blame(r->c, place, err, "nothing is open here that a '%c' could belong to", stray);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        if (strcmp(problem, said[i].problem) != 0) continue;
        if (said[i].context && (!p->context || strcmp(p->context, said[i].context) != 0)) continue;
        const ttn_config_place where = said[i].at_context ? place_of_mark(r, p->context_mark) : place;
        return ttn_config_blame(r->c, where, err, "%s", said[i].sentence);
    }
    return ttn_config_blame(r->c, place, err, "this is no YAML: %s%s%s", p->context ? p->context : "",
                            p->context ? ", " : "", problem);
}

/* ---- events to nodes ---- */

/* An open list or map. */
typedef struct {
    ttn_config_node *node, *last;
    int has_key; /* of a map: the next node is a value */
    const char *key;
    ttn_config_place key_place;
    int key_is_void;
} frame;

typedef struct {
    reader *r;
    ttn_config_node *root;
    ttn_config_node *scalar; /* the last one */
    frame open[TTN_CONFIG_DEPTH];
    int n_open;
    int n_document;
} builder;

static ttn_status refuse_extras(reader *r, const yaml_char_t *anchor, const yaml_char_t *tag, ttn_config_place place,
                                ttn_error *err)
{
    if (anchor)
        return ttn_config_blame(r->c, place, err,
                                "an anchor (&%s) is not read here: write the value where it is wanted",
                                (const char *)anchor);
    if (tag)
        return ttn_config_blame(r->c, place, err,
                                "a tag (%s) is not read here: the type of a value is known from its key",
                                (const char *)tag);
    return TTN_OK;
}

static void hang(builder *b, ttn_config_node *node)
{
    if (b->n_open == 0) {
        b->root = node;
        return;
    }
    frame *f = &b->open[b->n_open - 1];
    if (f->node->kind == TTN_NODE_MAP) {
        node->key = f->key;
        node->key_place = f->key_place;
        node->is_void |= f->key_is_void;
        f->has_key = 0;
    }
    if (f->last)
        f->last->next = node;
    else
        f->node->first = node;
    f->last = node;
}

static int wants_key(const builder *b)
{
    return b->n_open > 0 && b->open[b->n_open - 1].node->kind == TTN_NODE_MAP && !b->open[b->n_open - 1].has_key;
}

static ttn_status set_key(builder *b, const char *key, ttn_config_place place, int is_void)
{
    frame *f = &b->open[b->n_open - 1];
    f->has_key = 1;
    f->key = key;
    f->key_place = place;
    f->key_is_void = is_void;
    return TTN_OK;
}

static ttn_status take_scalar(builder *b, const yaml_event_t *e, ttn_error *err)
{
    reader *r = b->r;
    const ttn_config_place place = place_of(r, e->start_mark, e->end_mark);
    ttn_status status = refuse_extras(r, e->data.scalar.anchor, e->data.scalar.tag, place, err);
    if (status != TTN_OK) return status;
    const size_t n = e->data.scalar.length;
    char *text = ttn_arena_alloc(r->c->memory, n + 1);
    if (!text) return ttn_config_no_memory(err);
    memcpy(text, e->data.scalar.value, n);
    const int is_plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (wants_key(b)) {
        const int is_merge = is_plain && strcmp(text, "<<") == 0;
        if (is_merge) {
            status =
                ttn_config_blame(r->c, place, err, "merge keys (<<) are not read here: give several files instead");
            if (status != TTN_OK) return status;
        }
        return set_key(b, text, place, is_merge);
    }
    ttn_config_node *node = ttn_arena_alloc(r->c->memory, sizeof *node);
    if (!node) return ttn_config_no_memory(err);
    b->scalar = node;
    node->kind = TTN_NODE_SCALAR;
    node->text = text;
    node->has_nul = strlen(text) < n;
    node->is_plain = is_plain;
    node->is_void = e->data.scalar.anchor || e->data.scalar.tag;
    node->place = place;
    hang(b, node);
    return TTN_OK;
}

static ttn_status take_alias(builder *b, const yaml_event_t *e, ttn_error *err)
{
    const ttn_config_place place = place_of(b->r, e->start_mark, e->end_mark);
    ttn_status status = ttn_config_blame(
        b->r->c, place, err, "an alias (*%s) is not read here: write the value again, or quote what is a pattern",
        (const char *)e->data.alias.anchor);
    if (status != TTN_OK) return status;
    if (wants_key(b)) return set_key(b, "", place, 1);
    ttn_config_node *node = ttn_arena_alloc(b->r->c->memory, sizeof *node);
    if (!node) return ttn_config_no_memory(err);
    node->is_void = 1;
    node->place = place;
    hang(b, node);
    return TTN_OK;
}

static ttn_status open_node(builder *b, ttn_config_node_kind kind, const yaml_event_t *e, const yaml_char_t *anchor,
                            const yaml_char_t *tag, ttn_error *err)
{
    reader *r = b->r;
    const ttn_config_place place = place_of(r, e->start_mark, e->end_mark);
    if (b->n_open == TTN_CONFIG_DEPTH) {
        r->is_over = 1;
        b->root = NULL; /* whatever this is, it is no configuration: more need not be said */
        return ttn_config_blame(r->c, place, err, "sections and lists stand in each other more than %d deep",
                                TTN_CONFIG_DEPTH);
    }
    ttn_status status = refuse_extras(r, anchor, tag, place, err);
    if (status != TTN_OK) return status;
    ttn_config_node *node = ttn_arena_alloc(r->c->memory, sizeof *node);
    if (!node) return ttn_config_no_memory(err);
    node->kind = kind;
    node->is_void = anchor || tag;
    node->place = place;
    if (wants_key(b)) { /* it is read, and not hung anywhere */
        status = ttn_config_blame(r->c, place, err, "a key is one word, and here stands a list or a section");
        if (status != TTN_OK) return status;
        set_key(b, "", place, 1);
    } else {
        hang(b, node);
    }
    b->open[b->n_open] = (frame){.node = node};
    b->n_open++;
    return TTN_OK;
}

static void close_node(builder *b, const yaml_event_t *e)
{
    b->n_open--;
    ttn_config_node *node = b->open[b->n_open].node;
    assert(node); /* it was opened */
    const size_t end = byte_of(b->r, e->end_mark.index);
    if (node->kind == TTN_NODE_LIST && end > node->place.at) node->place.n = end - node->place.at;
}

static ttn_status take_document(builder *b, const yaml_event_t *e, ttn_error *err)
{
    b->n_document++;
    ttn_config_place place = place_of(b->r, e->start_mark, e->end_mark);
    if (b->n_document > 1) {
        b->r->is_over = 1;
        return ttn_config_blame(b->r->c, place, err, "a second document begins here: a file is one configuration");
    }
    const int has_tags = e->data.document_start.tag_directives.start != e->data.document_start.tag_directives.end;
    if (e->data.document_start.version_directive || has_tags)
        return ttn_config_blame(b->r->c, place, err, "a directive (%%YAML, %%TAG) is not read here: remove it");
    return TTN_OK;
}

static ttn_status take_event(builder *b, const yaml_event_t *e, ttn_error *err)
{
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        return take_document(b, e, err);
    case YAML_SCALAR_EVENT:
        return take_scalar(b, e, err);
    case YAML_ALIAS_EVENT:
        return take_alias(b, e, err);
    case YAML_SEQUENCE_START_EVENT:
        return open_node(b, TTN_NODE_LIST, e, e->data.sequence_start.anchor, e->data.sequence_start.tag, err);
    case YAML_MAPPING_START_EVENT:
        return open_node(b, TTN_NODE_MAP, e, e->data.mapping_start.anchor, e->data.mapping_start.tag, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        close_node(b, e);
        return TTN_OK;
    case YAML_STREAM_END_EVENT:
        b->r->is_over = 1;
        return TTN_OK;
    default:
        return TTN_OK;
    }
}

static ttn_status take_events(builder *b, ttn_error *err)
{
    ttn_status status = TTN_OK;
    while (status == TTN_OK && !b->r->is_over) {
        yaml_event_t event;
        if (yaml_parser_parse(b->r->parser, &event)) {
            status = take_event(b, &event, err);
            yaml_event_delete(&event);
            continue;
        }
        b->r->is_over = 1;
        if (b->scalar) b->scalar->is_void = 1; /* it may have swallowed what comes behind a bracket that is missing */
        status = b->r->parser->error == YAML_MEMORY_ERROR ? ttn_config_no_memory(err) : blame_syntax(b->r, err);
    }
    return status;
}

ttn_status ttn_config_parse(ttn_config *c, const ttn_config_source *s, size_t at, size_t n, ttn_config_node **ret,
                            ttn_error *err)
{
    *ret = NULL;
    int is_text = 0;
    ttn_status status = ttn_config_check_bytes(c, s, at, n, &is_text, err);
    if (status != TTN_OK || !is_text) return status;
    const size_t skip = s->has_lines && begins_with(s->text, n, bom, BOM) ? BOM : 0;
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) return ttn_config_no_memory(err);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)s->text + at + skip, n - skip);
    reader r = {.c = c, .s = s, .begin = at + skip, .end = at + n, .parser = &parser, .at = at + skip};
    builder b = {.r = &r};
    status = take_events(&b, err);
    yaml_parser_delete(&parser);
    if (status == TTN_OK) *ret = b.root;
    return status;
}
