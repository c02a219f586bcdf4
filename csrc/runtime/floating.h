/* The status flags of floating-point arithmetic, in NumPy's numbering: what the native code of this thread
 * has raised since they were cleared.
 *
 * Reading and clearing has to cost nothing beside a call, so on x86 the SSE unit's register is used directly:
 * fenv.h would go through the x87's. */
#ifndef FLB_FLOATING_H
#define FLB_FLOATING_H

enum { FLB_DIVIDE = 1, FLB_OVER = 2, FLB_UNDER = 4, FLB_INVALID = 8 };

#if defined(__x86_64__)
#include <xmmintrin.h>
enum { FLB_MXCSR_FLAGS = 0x1d }; /* all of them: invalid 1, zero 4, overflow 8, underflow 16 */
static inline unsigned flb_floating_flags(void) {
    unsigned s = _mm_getcsr();
    return (s >> 2 & 7) | (s & 1) << 3;
}
static inline void flb_floating_clear(void) {
    unsigned s = _mm_getcsr();
    if (s & FLB_MXCSR_FLAGS) _mm_setcsr(s & ~(unsigned)FLB_MXCSR_FLAGS);
}
static inline void flb_floating_raise(unsigned flags) {
    if (flags) _mm_setcsr(_mm_getcsr() | (flags & 7) << 2 | (flags >> 3 & 1));
}
#else
#include <fenv.h>
static inline unsigned flb_floating_flags(void) {
    int s = fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID);
    return (s & FE_DIVBYZERO ? FLB_DIVIDE : 0) | (s & FE_OVERFLOW ? FLB_OVER : 0) |
        (s & FE_UNDERFLOW ? FLB_UNDER : 0) | (s & FE_INVALID ? FLB_INVALID : 0);
}
static inline void flb_floating_clear(void) {
    feclearexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID);
}
static inline void flb_floating_raise(unsigned flags) {
    feraiseexcept((flags & FLB_DIVIDE ? FE_DIVBYZERO : 0) | (flags & FLB_OVER ? FE_OVERFLOW : 0) |
                  (flags & FLB_UNDER ? FE_UNDERFLOW : 0) | (flags & FLB_INVALID ? FE_INVALID : 0));
}
#endif

/* Of a thread whose call of a graph is watched: `noted` keeps what was raised before somebody else's code
 * cleared the flags. */
typedef struct {
    int watching;
    unsigned noted;
} FlbFloating;

static inline void flb_floating_note(FlbFloating *f) {
    if (f->watching) f->noted |= flb_floating_flags();
}
#endif
