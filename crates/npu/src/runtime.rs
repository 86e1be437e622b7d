//! ONNX Runtime as a library found while the program runs: nothing is linked, so a
//! machine without it runs everything else.

use ort::environment::Environment;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Names the library's file; set by users and by `ort` itself.
pub const LIBRARY_VARIABLE: &str = "ORT_DYLIB_PATH";

/// Why ONNX Runtime could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// Neither a path nor the variable was given.
    #[error("the path of ONNX Runtime is unknown: set {LIBRARY_VARIABLE} to its library file")]
    NotNamed,
    /// The file is not a library this program can use.
    #[error("{}: {reason}", path.display())]
    Load { path: PathBuf, reason: String },
}

/// Proof that ONNX Runtime is loaded; cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    environment: Environment,
}

impl Runtime {
    /// Loads the library at `path`, or the one `ORT_DYLIB_PATH` names. A process has one:
    /// later calls return the first again.
    pub fn load(path: Option<&Path>) -> Result<Self, RuntimeError> {
        static LOADED: OnceLock<Result<Runtime, RuntimeError>> = OnceLock::new();
        let named = Self::library(path)?;
        LOADED.get_or_init(|| Self::load_once(&named)).clone()
    }

    /// The library that would be loaded.
    pub fn library(path: Option<&Path>) -> Result<PathBuf, RuntimeError> {
        let by_variable = || std::env::var_os(LIBRARY_VARIABLE).map(PathBuf::from);
        path.map(Path::to_path_buf).or_else(by_variable).ok_or(RuntimeError::NotNamed)
    }

    fn load_once(path: &Path) -> Result<Self, RuntimeError> {
        let failed = |reason: String| RuntimeError::Load { path: path.into(), reason };
        let builder = ort::init_from(path).map_err(|error| failed(error.to_string()))?;
        let environment = builder
            .with_name("motley")
            .with_telemetry(false)
            .build()
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self { environment })
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }
}
