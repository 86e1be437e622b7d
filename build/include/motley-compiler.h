// Forced into every C and C++ file of the llama.cpp build (see .cargo/config.toml).
//
// gcc before 13 treats `_tile_loadconfig` as reading only the first 8 bytes of
// the tile configuration and drops the stores to the rest, so ggml's AMX kernels
// stop with SIGILL on the first prefill. Without these macros ggml compiles its
// AVX-512 kernels instead. clang and newer gcc keep AMX.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
#undef __AMX_TILE__
#undef __AMX_INT8__
#undef __AMX_BF16__
#endif
