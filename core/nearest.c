#include <string.h>
#include "core/nearest.h"

static int least(int a, int b)
{
    return a < b ? a : b;
}

int ttn_edits(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    if (n > TTN_NEAREST_WORD || m > TTN_NEAREST_WORD) return TTN_NEAREST_FAR;
    /* row[i % 3][j]: edits between the first i bytes of a and the first j of b */
    int row[3][TTN_NEAREST_WORD + 1];
    for (size_t j = 0; j <= m; j++)
        row[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int *now = row[i % 3];
        const int *before = row[(i - 1) % 3], *before_that = row[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            const int same = a[i - 1] == b[j - 1];
            now[j] = least(before[j - 1] + !same, least(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], before_that[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

int ttn_is_near(const char *word, int edits)
{
    const int third = (int)(strlen(word) / 3);
    return edits <= (third > 1 ? third : 1);
}

const char *ttn_nearest(const char *word, const char *const *name, int n)
{
    const char *best = NULL;
    int fewest = TTN_NEAREST_FAR;
    for (int i = 0; i < n; i++) {
        const int edits = name[i] ? ttn_edits(word, name[i]) : TTN_NEAREST_FAR;
        if (edits >= fewest) continue;
        fewest = edits;
        best = name[i];
    }
    return best && ttn_is_near(word, fewest) ? best : NULL;
}
