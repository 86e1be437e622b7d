//! Where `motley serve` sends traces: the flag, and the collector it names. Built with feature
//! `otel`; without it there is no flag and nothing is sent.

#[cfg(not(feature = "otel"))]
mod disabled;
#[cfg(feature = "otel")]
mod enabled;

#[cfg(not(feature = "otel"))]
pub(crate) use disabled::OtlpArgs;
#[cfg(feature = "otel")]
pub(crate) use enabled::OtlpArgs;
