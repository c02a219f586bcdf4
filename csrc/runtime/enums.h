/* The enumerations of kernels.def: `ELEMENT_F32` of ENUM(ELEMENT), and `ELEMENT_COUNT`. */
#ifndef FLAMBEAU_ENUMS_H
#define FLAMBEAU_ENUMS_H
#define ENUM(name) enum {
#define MEMBER(e, name) e##_##name,
#define END_ENUM(name) \
    name##_COUNT       \
    }                  \
    ;
#include "runtime/kernels.def"
#endif
