/* How often numbers of a short range occur. */
#ifndef FLAMBEAU_COUNTS_H
#define FLAMBEAU_COUNTS_H
#include "runtime/cpu_level.h"
#include "runtime/levels.h"
#include <stdint.h>
#include <string.h>

#define TURNS 4 /* tables that are counted in by turns: equal numbers in a row don't wait for each other */
#define BY_TURNS 2048 /* bins of such tables at most: they stay in the first-level cache */

/* Widens [least, most] to what lies in x. */
BY_LEVEL(static inline void, flb_range_of, (const int64_t *x, int64_t n, int64_t *least, int64_t *most),
         (x, n, least, most)) {
    int64_t low = *least, high = *most;
    for (int64_t i = 0; i < n; i++) high = x[i] > high ? x[i] : high, low = x[i] < low ? x[i] : low;
    *least = low, *most = high;
}

/* counts[k] = how many of x are k; numbers beyond the bins (other threads may write meanwhile) are left out.
 */
static void flb_count(const int64_t *x, int64_t n, int64_t *counts, int64_t bins) {
    int64_t i = 0;
    memset(counts, 0, (size_t)bins * sizeof *counts);
    if (bins <= BY_TURNS && n >= 4 * bins) {
        uint32_t tables[TURNS][BY_TURNS + 1]; /* the last bin takes numbers beyond the others */
        for (int64_t end; n - i >= TURNS; i = end) {
            end = n - i < (int64_t)1 << 31 ? n - (n - i) % TURNS : i + ((int64_t)1 << 31);
            for (int t = 0; t < TURNS; t++) memset(tables[t], 0, (size_t)(bins + 1) * sizeof(uint32_t));
            for (int64_t k = i; k < end; k += TURNS)
                for (int t = 0; t < TURNS; t++) {
                    uint64_t at = (uint64_t)x[k + t];
                    tables[t][at < (uint64_t)bins ? at : (uint64_t)bins]++;
                }
            for (int t = 0; t < TURNS; t++)
                for (int64_t k = 0; k < bins; k++) counts[k] += tables[t][k];
        }
    }
    for (; i < n; i++)
        if ((uint64_t)x[i] < (uint64_t)bins) counts[x[i]]++;
}
#endif
