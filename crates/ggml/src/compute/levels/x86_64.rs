//! x86-64: asked of the processor, and of the system that has to keep their registers.

/// Those the CPU and system have, as ggml names them.
pub fn offered_features() -> Vec<&'static str> {
    let mut offered = Vec::new();
    if is_x86_feature_detected!("avx2") {
        offered.push("AVX2");
    }
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
        offered.push("AVX512");
    }
    if is_x86_feature_detected!("avx512vnni") {
        offered.push("AVX512_VNNI");
    }
    if has_amx_int8() {
        offered.push("AMX_INT8");
    }
    offered
}

/// CPUID leaf 7: bit 24 of EDX is AMX-TILE, bit 25 AMX-INT8.
fn has_amx_int8() -> bool {
    let edx = std::arch::x86_64::__cpuid_count(7, 0).edx;
    edx & (1 << 24) != 0 && edx & (1 << 25) != 0
}
