// What llama.cpp takes from Windows' headers and mingw-w64 before release 11 has not. Included before
// every C and C++ file.

#ifndef MOTLEY_MISSING_H
#define MOTLEY_MISSING_H

#ifndef __ASSEMBLER__
#include <_mingw.h>

#if __MINGW64_VERSION_MAJOR < 11
#define THREAD_POWER_THROTTLING_CURRENT_VERSION 1
#define THREAD_POWER_THROTTLING_EXECUTION_SPEED 0x1

typedef struct _THREAD_POWER_THROTTLING_STATE {
    unsigned long Version;
    unsigned long ControlMask;
    unsigned long StateMask;
} THREAD_POWER_THROTTLING_STATE;
#endif
#endif

#endif
