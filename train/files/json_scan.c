#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "core/text.h"
#include "train/files/json_scan.h"

/* What may come next. */
enum { VALUE, ITEM_OR_END, ITEM, KEY_OR_END, KEY, AFTER, DONE };

const char *ttn_json_token_name(ttn_json_token token)
{
    static const char *const names[] = {
        [TTN_JSON_OBJECT] = "an object",   [TTN_JSON_OBJECT_END] = "the end of an object",
        [TTN_JSON_ARRAY] = "an array",     [TTN_JSON_ARRAY_END] = "the end of an array",
        [TTN_JSON_KEY] = "a key",          [TTN_JSON_TEXT] = "a text",
        [TTN_JSON_INTEGER] = "an integer", [TTN_JSON_REAL] = "a number with a fraction or an exponent",
        [TTN_JSON_TRUE] = "true",          [TTN_JSON_FALSE] = "false",
        [TTN_JSON_NULL] = "null",          [TTN_JSON_END] = "the end of the document",
    };
    return names[token];
}

/* ---- messages ---- */

static void place_of(const ttn_json_scan *s, size_t at, int64_t *line, int64_t *column)
{
    *line = 1;
    size_t begin = 0;
    for (size_t i = 0; i < at; i++) {
        if (s->bytes[i] != '\n') continue;
        *line += 1;
        begin = i + 1;
    }
    *column = (int64_t)(at - begin) + 1;
}

ttn_status ttn_json_fail_at(const ttn_json_scan *s, size_t at, ttn_error *err, const char *format, ...)
{
    char sentence[TTN_ERROR_TEXT] = "";
    va_list args;
    va_start(args, format);
    ttn_text_append(sentence, sizeof sentence, format, args);
    va_end(args);
    if (s->section)
        return TTN_FAIL_AT(err, s->failure, s->file, 0, 0, "byte %zu of %s%s%.200s%s: %s", at, s->section,
                           s->inside ? ", '" : "", s->inside ? s->inside : "", s->inside ? "'" : "", sentence);
    int64_t line, column;
    place_of(s, at, &line, &column);
    return TTN_FAIL_AT(err, s->failure, s->file, line, column, "%s", sentence);
}

/* What stands there is not what was expected. */
static ttn_status unexpected(const ttn_json_scan *s, const char *expected, ttn_error *err)
{
    size_t left = s->n - s->at;
    const char *here = s->bytes + s->at;
    if (left == 0) return ttn_json_fail_at(s, s->at, err, "%s is expected, and the text ends here", expected);
    if (*here == 0)
        return ttn_json_fail_at(
            s, s->at, err, "%s is expected, and a NUL byte stands here; JSON may be padded with spaces only", expected);
    if (s->at == 0 && left >= 3 && memcmp(here, "\xEF\xBB\xBF", 3) == 0)
        return ttn_json_fail_at(s, s->at, err, "begins with a byte order mark; save it as UTF-8 without one");
    if (memcmp(here, "NaN", left < 3 ? left : 3) == 0 || memcmp(here, "Infinity", left < 8 ? left : 8) == 0 ||
        (left >= 2 && memcmp(here, "-I", 2) == 0))
        return ttn_json_fail_at(s, s->at, err, "%s is expected, and NaN and Infinity are no numbers of JSON", expected);
    int shown = 0;
    while (shown < 12 && shown < (int)left && here[shown] > ' ' && here[shown] < 0x7F)
        shown++;
    if (shown == 0)
        return ttn_json_fail_at(s, s->at, err, "%s is expected, and the byte 0x%02x stands here", expected,
                                (unsigned char)*here);
    return ttn_json_fail_at(s, s->at, err, "%s is expected, and this stands here: %.*s", expected, shown, here);
}

/* ---- texts ---- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* The number behind "\u" at p; -1: there are no four digits. */
static int32_t unit_at(const char *p, size_t left)
{
    int32_t unit = 0;
    if (left < 6 || p[0] != '\\' || p[1] != 'u') return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex_value(p[i]);
        if (digit < 0) return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

static int is_high(int32_t unit)
{
    return unit >= 0xD800 && unit <= 0xDBFF;
}
static int is_low(int32_t unit)
{
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

/* The character that the escape at p stands for, and its bytes in *n; -1: it is none. */
static int32_t escaped(const char *p, size_t left, size_t *n)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (left < 2) return -1;
    *n = 2;
    const char *letter = p[1] ? strchr(letters, p[1]) : NULL;
    if (letter) return meanings[letter - letters];
    int32_t unit = unit_at(p, left);
    *n = 6;
    if (unit <= 0 || is_low(unit)) return -1; /* \u0000 would cut a text short */
    if (!is_high(unit)) return unit;
    int32_t low = unit_at(p + 6, left - 6);
    *n = 12;
    if (!is_low(low)) return -1;
    return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
}

/* s->at is behind the opening quote; afterwards behind the closing one. */
static ttn_status take_text(ttn_json_scan *s, ttn_error *err)
{
    s->first = s->at;
    s->has_escape = 0;
    while (s->at < s->n) {
        const char *here = s->bytes + s->at;
        size_t left = s->n - s->at, n = 1;
        unsigned char c = (unsigned char)*here;
        if (c == '"') {
            s->end = s->at;
            s->at++;
            return TTN_OK;
        }
        if (c < ' ')
            return ttn_json_fail_at(s, s->at, err, "a text holds the control character 0x%02x; write it as \\u%04x", c,
                                    c);
        if (c == '\\') {
            s->has_escape = 1;
            if (escaped(here, left, &n) < 0)
                return ttn_json_fail_at(s, s->at, err,
                                        "a backslash must begin one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\uXXXX "
                                        "of a character other than U+0000");
        } else if (c >= 0x80) {
            int length = ttn_text_character(here, left, NULL);
            if (length == 0) return ttn_json_fail_at(s, s->at, err, "the byte 0x%02x is not part of UTF-8", c);
            n = (size_t)length;
        }
        s->at += n;
    }
    return ttn_json_fail_at(s, s->first - 1, err, "the text that begins here has no closing quote");
}

static size_t put_utf8(int32_t c, char *to)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int i = n - 1; i > 0; i--) {
        to[i] = (char)(0x80 | (c & 0x3F));
        c >>= 6;
    }
    to[0] = (char)(leads[n] | c);
    return (size_t)n;
}

size_t ttn_json_decode(const ttn_json_scan *s, char *to)
{
    size_t n = 0;
    for (size_t i = s->first; i < s->end;) {
        if (s->bytes[i] != '\\') {
            to[n] = s->bytes[i];
            n++;
            i++;
            continue;
        }
        size_t length = 0;
        int32_t c = escaped(s->bytes + i, s->end - i, &length);
        n += put_utf8(c, to + n);
        i += length;
    }
    to[n] = 0;
    return n;
}

/* ---- numbers ---- */

static int is_digit(const ttn_json_scan *s, size_t at)
{
    return at < s->n && s->bytes[at] >= '0' && s->bytes[at] <= '9';
}

static size_t after_digits(const ttn_json_scan *s, size_t at)
{
    while (is_digit(s, at))
        at++;
    return at;
}

static int one_of(const ttn_json_scan *s, size_t at, const char *characters)
{
    return at < s->n && s->bytes[at] && strchr(characters, s->bytes[at]);
}

static ttn_status take_number(ttn_json_scan *s, ttn_error *err)
{
    s->first = s->at;
    int negative = s->bytes[s->at] == '-';
    size_t digits = s->at + (negative ? 1 : 0);
    size_t end = after_digits(s, digits);
    if (end == digits) return unexpected(s, "a number", err);
    if (s->bytes[digits] == '0' && end > digits + 1)
        return ttn_json_fail_at(s, s->first, err, "a number begins with 0 and goes on; leave the 0 out");
    s->token = TTN_JSON_INTEGER;
    size_t whole = end;
    if (one_of(s, end, ".")) {
        s->token = TTN_JSON_REAL;
        size_t fraction = end + 1;
        end = after_digits(s, fraction);
        if (end == fraction) return ttn_json_fail_at(s, s->first, err, "a number has a point and no digit behind it");
    }
    if (one_of(s, end, "eE")) {
        s->token = TTN_JSON_REAL;
        size_t exponent = end + (one_of(s, end + 1, "+-") ? 2 : 1);
        end = after_digits(s, exponent);
        if (end == exponent) return ttn_json_fail_at(s, s->first, err, "a number has an e and no digit behind it");
    }
    s->end = s->at = end;
    if (s->token == TTN_JSON_REAL) return TTN_OK;

    int64_t value = 0; /* below zero: there is one more of those */
    for (size_t i = digits; i < whole; i++) {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_sub_overflow(value, s->bytes[i] - '0', &value))
            return ttn_json_fail_at(s, s->first, err, "an integer beyond 64 bits (-2^63 to 2^63 - 1)");
    }
    if (!negative && __builtin_sub_overflow((int64_t)0, value, &value))
        return ttn_json_fail_at(s, s->first, err, "an integer beyond 64 bits (-2^63 to 2^63 - 1)");
    s->integer = value;
    return TTN_OK;
}

/* ---- tokens ---- */

static void skip_space(ttn_json_scan *s)
{
    while (one_of(s, s->at, " \t\n\r"))
        s->at++;
}

static void after_value(ttn_json_scan *s)
{
    s->state = s->depth > 0 ? AFTER : DONE;
}

static int in_object(const ttn_json_scan *s)
{
    return (int)(s->objects >> (s->depth - 1)) & 1;
}

static ttn_status open_one(ttn_json_scan *s, int is_object, ttn_error *err)
{
    if (s->depth == s->most_depth)
        return ttn_json_fail_at(s, s->at, err, "objects and arrays lie more than %d deep in each other", s->most_depth);
    uint64_t bit = (uint64_t)1 << s->depth;
    s->objects = is_object ? s->objects | bit : s->objects & ~bit;
    s->depth++;
    s->token = is_object ? TTN_JSON_OBJECT : TTN_JSON_ARRAY;
    s->first = s->at;
    s->end = ++s->at;
    s->state = is_object ? KEY_OR_END : ITEM_OR_END;
    return TTN_OK;
}

static ttn_status close_one(ttn_json_scan *s)
{
    s->token = in_object(s) ? TTN_JSON_OBJECT_END : TTN_JSON_ARRAY_END;
    s->depth--;
    s->first = s->at;
    s->end = ++s->at;
    after_value(s);
    return TTN_OK;
}

static int take_word(ttn_json_scan *s, const char *word, ttn_json_token token)
{
    size_t n = strlen(word);
    if (s->n - s->at < n || memcmp(s->bytes + s->at, word, n) != 0) return 0;
    s->first = s->at;
    s->end = s->at += n;
    s->token = token;
    return 1;
}

static ttn_status take_value(ttn_json_scan *s, ttn_error *err)
{
    char c = '\0';
    if (s->at < s->n) c = s->bytes[s->at];
    if (c == '{' || c == '[') return open_one(s, c == '{', err);
    ttn_status status = TTN_OK;
    if (c == '"') {
        s->token = TTN_JSON_TEXT;
        s->at++;
        status = take_text(s, err);
    } else if (c == '-' || is_digit(s, s->at)) {
        status = take_number(s, err);
    } else if (!take_word(s, "true", TTN_JSON_TRUE) && !take_word(s, "false", TTN_JSON_FALSE) &&
               !take_word(s, "null", TTN_JSON_NULL)) {
        status = unexpected(s, "a value", err);
    }
    after_value(s);
    return status;
}

static ttn_status take_key(ttn_json_scan *s, const char *expected, ttn_error *err)
{
    if (!one_of(s, s->at, "\"")) return unexpected(s, expected, err);
    s->at++;
    s->token = TTN_JSON_KEY;
    ttn_status status = take_text(s, err);
    if (status != TTN_OK) return status;
    skip_space(s);
    if (!one_of(s, s->at, ":")) return unexpected(s, "a colon", err);
    s->at++;
    s->state = VALUE;
    return TTN_OK;
}

ttn_status ttn_json_next(ttn_json_scan *s, ttn_error *err)
{
    skip_space(s);
    if (s->state == AFTER) {
        if (one_of(s, s->at, in_object(s) ? "}" : "]")) return close_one(s);
        if (!one_of(s, s->at, ",")) return unexpected(s, in_object(s) ? "a comma or }" : "a comma or ]", err);
        s->at++;
        s->state = in_object(s) ? KEY : ITEM;
        skip_space(s);
    }
    switch (s->state) {
    case KEY_OR_END:
        if (one_of(s, s->at, "}")) return close_one(s);
        return take_key(s, "a key in quotes, or }", err);
    case KEY:
        return take_key(s, "a key in quotes", err);
    case ITEM_OR_END:
        if (one_of(s, s->at, "]")) return close_one(s);
        return take_value(s, err);
    case DONE:
        if (s->at < s->n) return unexpected(s, "nothing more", err);
        s->token = TTN_JSON_END;
        s->first = s->end = s->at;
        return TTN_OK;
    default:
        return take_value(s, err);
    }
}

ttn_status ttn_json_skip(ttn_json_scan *s, ttn_error *err)
{
    if (s->token != TTN_JSON_OBJECT && s->token != TTN_JSON_ARRAY) return TTN_OK;
    int outside = s->depth - 1;
    while (s->depth > outside) {
        ttn_status status = ttn_json_next(s, err);
        if (status != TTN_OK) return status;
    }
    return TTN_OK;
}
