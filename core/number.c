#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/number.h"

/* ---- units ---- */

typedef struct {
    const char *name;
    int64_t factor;
} unit_row;

/* Each list ends with a name that is NULL; durations from large to small, which is the order of their parts. */
static const unit_row counts[] = {
    {"k", 1000}, {"M", 1000000}, {"G", 1000000000}, {"T", 1000000000000}, {NULL, 0},
};
static const unit_row bytes[] = {
    {"B", 1},
    {"k", 1000},
    {"kB", 1000},
    {"M", 1000000},
    {"MB", 1000000},
    {"G", 1000000000},
    {"GB", 1000000000},
    {"T", 1000000000000},
    {"TB", 1000000000000},
    {"Ki", INT64_C(1) << 10},
    {"KiB", INT64_C(1) << 10},
    {"Mi", INT64_C(1) << 20},
    {"MiB", INT64_C(1) << 20},
    {"Gi", INT64_C(1) << 30},
    {"GiB", INT64_C(1) << 30},
    {"Ti", INT64_C(1) << 40},
    {"TiB", INT64_C(1) << 40},
    {NULL, 0},
};
/* In milliseconds, the smallest of them. */
static const unit_row durations[] = {
    {"d", 86400000}, {"h", 3600000}, {"min", 60000}, {"m", 60000}, {"s", 1000}, {"ms", 1}, {NULL, 0},
};
enum { MS_PER_S = 1000, MS_DIGITS = 3 };

static const struct {
    const unit_row *row;
    const char *known;
} units[] = {
    [TTN_UNIT_COUNT] = {counts, "k, M, G and T (times 1,000 each)"},
    [TTN_UNIT_BYTES] = {bytes,
                        "k, M, G, T (times 1,000 each) and Ki, Mi, Gi, Ti (times 1,024 each), with or without B"},
    [TTN_UNIT_SECONDS] = {durations, "ms, s, m, h and d"},
};

/* The unit that begins the text: the longest that is not followed by another letter. */
static const unit_row *find_unit(const unit_row *row, const char *text, size_t n)
{
    for (; row->name; row++)
        if (strlen(row->name) == n && memcmp(row->name, text, n) == 0) return row;
    return NULL;
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t letters(const char *text)
{
    size_t n = 0;
    while (is_letter(text[n]))
        n++;
    return n;
}

/* ---- decimals: digits and an exponent, without rounding ---- */

enum { MOST_TEXT = 64, MOST_EXPONENT = 100000 };

/* 0.digits is never formed: the value is (the integer `digits`) times 10^exponent. */
typedef struct {
    int negative;
    char digits[MOST_TEXT + 1]; /* no zeros at either end; "" is 0 */
    int n_digit;
    int exponent;
} decimal;

static ttn_status no_number(const char *text, const char *why, ttn_error *err)
{
    return TTN_FAIL(err, TTN_EINVAL, "'%s' %s", text, why);
}

/* Digits with '_' between two of them. Returns what follows them; NULL: an underscore elsewhere. */
static const char *take_digits(const char *at, decimal *d)
{
    const char *begin = at;
    for (; is_digit(*at) || *at == '_'; at++) {
        if (*at != '_') {
            d->digits[d->n_digit] = *at;
            d->n_digit++;
        } else if (at == begin || !is_digit(at[-1]) || !is_digit(at[1])) {
            return NULL;
        }
    }
    return at;
}

static void strip_zeros(decimal *d)
{
    int lead = 0;
    while (lead < d->n_digit && d->digits[lead] == '0')
        lead++;
    int n = d->n_digit - lead;
    assert(n >= 0 && n <= MOST_TEXT);
    memmove(d->digits, d->digits + lead, (size_t)n);
    while (n > 0 && d->digits[n - 1] == '0') {
        n--;
        d->exponent++;
    }
    if (n == 0) d->exponent = 0;
    d->digits[n] = 0;
    d->n_digit = n;
}

/* e, a sign, digits: only when digits are there, else the e is a unit that nobody knows. */
static const char *take_exponent(const char *at, decimal *d)
{
    if (*at != 'e' && *at != 'E') return at;
    const char *c = at + 1;
    int negative = *c == '-';
    if (*c == '-' || *c == '+') c++;
    if (!is_digit(*c)) return at;
    int e = 0;
    for (; is_digit(*c); c++)
        if (e < MOST_EXPONENT) e = 10 * e + (*c - '0');
    d->exponent += negative ? -e : e;
    return c;
}

/* Words that strtod would take for numbers, and spellings of other languages. */
static ttn_status check_spelling(const char *text, const char *number, ttn_error *err)
{
    static const char *const words[] = {"inf", "infinity", "nan"};
    size_t n = letters(number[0] == '.' ? number + 1 : number);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *word = number[0] == '.' ? number + 1 : number;
        size_t same = 0;
        while (same < n && words[i][same] && (word[same] | 0x20) == words[i][same])
            same++;
        if (n > 0 && same == n && !words[i][same]) return no_number(text, "is not finite, and a number here is", err);
    }
    if (number[0] == '0' &&
        (number[1] == 'x' || number[1] == 'X' || number[1] == 'o' || number[1] == 'O' || number[1] == 'b'))
        return no_number(text, "is not decimal: write the number in decimal digits", err);
    if (number[0] == '0' && is_digit(number[1]))
        return no_number(text, "begins with 0, which elsewhere means octal: leave the 0 out", err);
    return TTN_OK;
}

/* One number at the beginning of `at`, a part of text; *ret_end: what follows it. */
static ttn_status take_decimal(const char *text, const char *at, decimal *ret, const char **ret_end, ttn_error *err)
{
    *ret = (decimal){.negative = *at == '-'};
    if (*at == '-' || *at == '+') at++;
    ttn_status status = check_spelling(text, at, err);
    if (status != TTN_OK) return status;
    if (!is_digit(*at) && !(*at == '.' && is_digit(at[1]))) return no_number(text, "is not a number", err);
    static const char underscore[] = "has a '_' that is not between two digits";
    at = take_digits(at, ret);
    if (!at) return no_number(text, underscore, err);
    if (*at == '.') {
        int before = ret->n_digit;
        at = take_digits(at + 1, ret);
        if (!at) return no_number(text, underscore, err);
        ret->exponent = before - ret->n_digit;
    }
    if (*at == ',') return no_number(text, "has a comma: write 0.5 with a point, and 1_000 for a thousand", err);
    if (*at == ':') return no_number(text, "has a colon: write a time as 1h30m", err);
    *ret_end = take_exponent(at, ret);
    strip_zeros(ret);
    return TTN_OK;
}

/* The unit that follows a number, or `none`; *at moves behind it. */
static ttn_status take_unit(const char *text, ttn_number_unit unit, const unit_row *none, const char **at,
                            const unit_row **ret, ttn_error *err)
{
    const char *c = *at;
    while (*c == ' ')
        c++;
    size_t n = letters(c);
    if (n == 0 && *c) return TTN_FAIL(err, TTN_EINVAL, "'%s' is not a number: it ends in '%s'", text, c);
    *at = c + n;
    *ret = n ? find_unit(units[unit].row, c, n) : none;
    if (*ret) return TTN_OK;
    return TTN_FAIL(err, TTN_EINVAL, "'%s' ends in '%.*s', which is no unit here; there are %s", text, (int)n, c,
                    units[unit].known);
}

static ttn_status check_text(const char *text, ttn_error *err)
{
    size_t n = strlen(text);
    if (n > MOST_TEXT)
        return TTN_FAIL(err, TTN_EINVAL, "'%.20s...' has %zu bytes, and a number at most %d", text, n, MOST_TEXT);
    return n > 0 ? TTN_OK : no_number(text, "is empty, and a number is expected", err);
}

static ttn_status not_negative(const char *text, const decimal *d, ttn_number_unit unit, ttn_error *err)
{
    if (!d->negative || d->n_digit == 0 || unit == TTN_UNIT_COUNT) return TTN_OK;
    return no_number(
        text, unit == TTN_UNIT_BYTES ? "is below 0, and a size is not" : "is below 0, and a duration is not", err);
}

/* ---- integers ---- */

/* Digits times factor times 10^exponent in 128 bits: 20 digits times a TiB fit. */
enum { MOST_DIGITS = 20 };

static ttn_status to_integer(const char *text, const decimal *d, int64_t factor, int64_t *ret, ttn_error *err)
{
    static const char large[] = "does not fit: the largest number is 9223372036854775807";
    if (d->n_digit + d->exponent > MOST_DIGITS) return no_number(text, large, err);
    if (d->n_digit > MOST_DIGITS) return no_number(text, "has more digits than an integer can", err);
    unsigned __int128 value = 0;
    for (int i = 0; i < d->n_digit; i++)
        value = 10 * value + (unsigned)(d->digits[i] - '0');
    value *= (unsigned __int128)factor;
    int whole = 1;
    for (int e = d->exponent; e < 0 && whole; e++) {
        whole = value % 10 == 0;
        value /= 10;
    }
    if (!whole) return no_number(text, "is not a whole number", err);
    const unsigned __int128 most = (unsigned __int128)INT64_MAX + (d->negative ? 1 : 0);
    for (int e = d->exponent; e > 0 && value <= most; e--)
        value *= 10;
    if (value > most) return no_number(text, large, err);
    *ret = d->negative ? (int64_t) - (__int128)value : (int64_t)value;
    return TTN_OK;
}

ttn_status ttn_number_integer(const char *text, ttn_number_unit unit, int64_t *ret, ttn_error *err)
{
    static const unit_row one = {"", 1};
    decimal d;
    const char *at = text;
    const unit_row *row = &one;
    ttn_status status = check_text(text, err);
    if (status == TTN_OK) status = take_decimal(text, text, &d, &at, err);
    if (status == TTN_OK) status = take_unit(text, unit, &one, &at, &row, err);
    if (status == TTN_OK && *at) status = no_number(text, "goes on after its unit", err);
    if (status == TTN_OK) status = not_negative(text, &d, unit, err);
    return status == TTN_OK ? to_integer(text, &d, row->factor, ret, err) : status;
}

/* ---- reals ---- */

/* Digits and exponent without a point mean the same to strtod in every locale. */
static ttn_status to_real(const char *text, const decimal *d, double *ret, ttn_error *err)
{
    char plain[MOST_TEXT + 16];
    if (d->n_digit > 0)
        snprintf(plain, sizeof plain, "%s%se%d", d->negative ? "-" : "", d->digits, d->exponent);
    else
        snprintf(plain, sizeof plain, "%s0", d->negative ? "-" : "");
    double value = strtod(plain, NULL);
    if (isinf(value)) return no_number(text, "does not fit: the largest number is 1.797e308", err);
    if (value == 0 && d->n_digit > 0) return no_number(text, "is so small that it would be 0", err);
    *ret = value;
    return TTN_OK;
}

/* Exact: the factors of counts are powers of ten. */
static int power_of_ten(int64_t factor)
{
    int e = 0;
    for (; factor > 1; factor /= 10)
        e++;
    return e;
}

static ttn_status read_count(const char *text, double *ret, ttn_error *err)
{
    static const unit_row one = {"", 1};
    decimal d;
    const char *at = text;
    const unit_row *row = &one;
    ttn_status status = take_decimal(text, text, &d, &at, err);
    if (status == TTN_OK) status = take_unit(text, TTN_UNIT_COUNT, &one, &at, &row, err);
    if (status == TTN_OK && *at) status = no_number(text, "goes on after its unit", err);
    if (status != TTN_OK) return status;
    d.exponent += power_of_ten(row->factor);
    return to_real(text, &d, ret, err);
}

/* Times a whole factor, without rounding. */
static ttn_status scale(const char *text, decimal *d, int64_t factor, ttn_error *err)
{
    if (d->n_digit > MOST_DIGITS) return no_number(text, "has more digits than a duration needs", err);
    unsigned __int128 value = 0;
    for (int i = 0; i < d->n_digit; i++)
        value = 10 * value + (unsigned)(d->digits[i] - '0');
    value *= (unsigned __int128)factor;
    char reversed[MOST_TEXT];
    int n = 0;
    for (; value > 0; value /= 10) {
        reversed[n] = (char)('0' + (int)(value % 10));
        n++;
    }
    d->n_digit = n;
    for (int i = 0; i < n; i++)
        d->digits[i] = reversed[n - 1 - i];
    strip_zeros(d);
    return TTN_OK;
}

/* Parts from large to small. */
static ttn_status read_duration(const char *text, double *ret, ttn_error *err)
{
    static const unit_row second = {"s", MS_PER_S};
    double sum = 0;
    int64_t previous = INT64_MAX;
    const char *at = text;
    do {
        decimal d;
        const unit_row *row = &second;
        double value = 0;
        const int is_first = previous == INT64_MAX;
        ttn_status status = take_decimal(text, at, &d, &at, err);
        if (status == TTN_OK) status = not_negative(text, &d, TTN_UNIT_SECONDS, err);
        if (status == TTN_OK && !*at && !is_first) /* 90 alone is seconds, 1h30 may be meant otherwise */
            status = no_number(text, "ends in a number without a unit: write 1h30m", err);
        if (status == TTN_OK) status = take_unit(text, TTN_UNIT_SECONDS, &second, &at, &row, err);
        if (status == TTN_OK && row->factor >= previous)
            status = no_number(text, "has parts that do not go from large to small: write 1h30m", err);
        if (status == TTN_OK) status = scale(text, &d, row->factor, err);
        d.exponent -= MS_DIGITS;
        if (status == TTN_OK) status = to_real(text, &d, &value, err);
        if (status != TTN_OK) return status;
        sum += value;
        previous = row->factor;
        while (*at == ' ')
            at++;
    } while (*at);
    if (isinf(sum)) return no_number(text, "does not fit: the largest number is 1.797e308", err);
    *ret = sum;
    return TTN_OK;
}

ttn_status ttn_number_real(const char *text, ttn_number_unit unit, double *ret, ttn_error *err)
{
    assert(unit != TTN_UNIT_BYTES);
    ttn_status status = check_text(text, err);
    if (status != TTN_OK) return status;
    return unit == TTN_UNIT_SECONDS ? read_duration(text, ret, err) : read_count(text, ret, err);
}

/* ---- back to text ---- */

static char *digits_and_unit(int64_t value, const char *unit, char *text)
{
    snprintf(text, TTN_NUMBER_TEXT, "%" PRId64 "%s", value, unit);
    return text;
}

char *ttn_number_integer_text(int64_t value, ttn_number_unit unit, char *text)
{
    /* from large to small: the largest unit makes the shortest text */
    static const unit_row best[] = {
        {"TiB", INT64_C(1) << 40}, {"TB", 1000000000000}, {"GiB", INT64_C(1) << 30}, {"GB", 1000000000},
        {"MiB", INT64_C(1) << 20}, {"MB", 1000000},       {"KiB", INT64_C(1) << 10}, {"kB", 1000},
    };
    if (unit == TTN_UNIT_BYTES && value > 0)
        for (size_t i = 0; i < sizeof best / sizeof *best; i++)
            if (value % best[i].factor == 0) return digits_and_unit(value / best[i].factor, best[i].name, text);
    return digits_and_unit(value, "", text);
}

/* "1e-05" to "1e-5", and whatever the locale has for a point to '.'. */
static void tidy(const char *printed, char *text)
{
    int in_exponent = 0;
    for (const char *c = printed; *c; c++) {
        if (*c == 'e') {
            in_exponent = 1;
        } else if (in_exponent && (*c == '+' || (*c == '0' && !is_digit(text[-1]) && is_digit(c[1])))) {
            continue;
        } else if (!is_digit(*c) && *c != '-') {
            if (text[-1] == '.') continue; /* a point of several bytes */
            *text = '.';
            text++;
            continue;
        }
        *text = *c;
        text++;
    }
    *text = 0;
}

static void shortest(double value, char *text)
{
    enum { MOST_PRECISION = 17 };
    char printed[TTN_NUMBER_TEXT];
    for (int precision = 1; precision <= MOST_PRECISION; precision++) {
        snprintf(printed, sizeof printed, "%.*g", precision, value);
        tidy(printed, text);
        double back = 0;
        if (ttn_number_real(text, TTN_UNIT_COUNT, &back, NULL) == TTN_OK && back == value) return;
    }
}

char *ttn_number_real_text(double value, ttn_number_unit unit, char *text)
{
    static const unit_row best[] = {{"d", 86400}, {"h", 3600}, {"m", 60}};
    const double exact = 9007199254740992.0; /* 2^53: whole numbers up to here are exact */
    const double plain = 1e6;                /* whole numbers below are written out */
    const int64_t whole = fabs(value) < exact ? (int64_t)value : 0;
    const int is_whole = whole != 0 && (double)whole == value;
    if (unit == TTN_UNIT_SECONDS && is_whole)
        for (size_t i = 0; i < sizeof best / sizeof *best; i++)
            if (whole % best[i].factor == 0) return digits_and_unit(whole / best[i].factor, best[i].name, text);
    if (is_whole && fabs(value) < plain)
        digits_and_unit(whole, "", text);
    else
        shortest(value, text);
    if (unit == TTN_UNIT_SECONDS) strcat(text, "s");
    return text;
}
