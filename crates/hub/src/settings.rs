//! Variables of the environment that the hub's other tools read too. Reads them once; uses none.

use crate::limits::MAX_TOKEN_BYTES;
use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The hub itself.
const ENDPOINT: &str = "https://huggingface.co";

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The system names no home folder.
    #[error("no folder for models is known; set HF_HOME (and MOTLEY_CACHE)")]
    NoFolder,
    /// An endpoint that is no URL.
    #[error("HF_ENDPOINT is {value:?}, not a URL such as {ENDPOINT}")]
    Endpoint { value: String },
    /// A token that no header can carry.
    #[error("{from} holds no token: it is empty, or has blanks or characters beyond ASCII")]
    Token { from: String },
}

/// Where models come from and lie.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `HF_ENDPOINT`, without a `/` at its end.
    pub endpoint: String,
    /// `HF_HUB_CACHE`, else `HF_HOME/hub`, else `<cache>/huggingface/hub`.
    pub hub_cache: PathBuf,
    /// `MOTLEY_CACHE/urls`, else `<cache>/motley/urls`: what came from plain URLs.
    pub url_cache: PathBuf,
    /// `HF_TOKEN`, else the file the hub's own tools keep it in.
    pub token: Option<Token>,
    /// `HF_HUB_OFFLINE`: no request leaves.
    pub offline: bool,
}

/// A secret, never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Settings {
    /// Reads the settings; `variable` gives the value of one, and nothing for an empty one.
    pub fn read(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, SettingsError> {
        let path = |name: &str| variable(name).map(PathBuf::from);
        let cache = || {
            path("XDG_CACHE_HOME")
                .or_else(|| Some(path("HOME").or_else(|| path("USERPROFILE"))?.join(".cache")))
        };
        let home = path("HF_HOME").or_else(|| Some(cache()?.join("huggingface")));
        let hub_cache = path("HF_HUB_CACHE")
            .or_else(|| path("HUGGINGFACE_HUB_CACHE"))
            .or_else(|| Some(home.as_ref()?.join("hub")));
        let own = path("MOTLEY_CACHE").or_else(|| Some(cache()?.join("motley")));
        Ok(Self {
            endpoint: endpoint(variable("HF_ENDPOINT"))?,
            hub_cache: hub_cache.ok_or(SettingsError::NoFolder)?,
            url_cache: own.ok_or(SettingsError::NoFolder)?.join("urls"),
            token: token(variable, home.as_deref())?,
            offline: variable("HF_HUB_OFFLINE").is_some_and(|value| is_true(&value)),
        })
    }

    /// Of this process.
    pub fn of_environment() -> Result<Self, SettingsError> {
        Self::read(&|name| std::env::var_os(name).filter(|value| !value.is_empty()))
    }
}

fn endpoint(value: Option<OsString>) -> Result<String, SettingsError> {
    let Some(value) = value else { return Ok(ENDPOINT.to_owned()) };
    let value = value.to_string_lossy().into_owned();
    let rest = value.strip_prefix("https://").or_else(|| value.strip_prefix("http://"));
    let sound = |rest: &str| {
        let plain = rest.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '@'));
        plain && !rest.starts_with('/') && !rest.is_empty()
    };
    match rest.is_some_and(sound) {
        true => Ok(value.trim_end_matches('/').to_owned()),
        false => Err(SettingsError::Endpoint { value }),
    }
}

fn is_true(value: &OsString) -> bool {
    matches!(value.to_string_lossy().to_ascii_uppercase().as_str(), "1" | "TRUE" | "YES" | "ON")
}

fn token(
    variable: &dyn Fn(&str) -> Option<OsString>,
    home: Option<&Path>,
) -> Result<Option<Token>, SettingsError> {
    if variable("HF_HUB_DISABLE_IMPLICIT_TOKEN").is_some_and(|value| is_true(&value)) {
        return Ok(None);
    }
    if let Some(value) = variable("HF_TOKEN") {
        return sound_token(&value.to_string_lossy(), "HF_TOKEN").map(Some);
    }
    let named = variable("HF_TOKEN_PATH").map(PathBuf::from);
    let Some(path) = named.or_else(|| Some(home?.join("token"))) else { return Ok(None) };
    let Ok(file) = std::fs::File::open(&path) else { return Ok(None) };
    let mut text = String::new();
    let read = file.take(MAX_TOKEN_BYTES).read_to_string(&mut text);
    let from = path.display().to_string();
    match read {
        Ok(_) if text.trim().is_empty() => Ok(None),
        Ok(_) => sound_token(&text, &from).map(Some),
        Err(_) => Err(SettingsError::Token { from }),
    }
}

fn sound_token(text: &str, from: &str) -> Result<Token, SettingsError> {
    let text = text.trim();
    match !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic()) {
        true => Ok(Token(text.to_owned())),
        false => Err(SettingsError::Token { from: from.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        Settings::read(&|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn folders_are_those_of_the_hubs_own_tools() {
        let of = |pairs: &[(&str, &str)]| settings(pairs).unwrap().hub_cache;
        assert_eq!(of(&[("HOME", "/h")]), Path::new("/h/.cache/huggingface/hub"));
        assert_eq!(
            of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")]),
            Path::new("/c/huggingface/hub")
        );
        assert_eq!(of(&[("HOME", "/h"), ("HF_HOME", "/f")]), Path::new("/f/hub"));
        assert_eq!(
            of(&[("HOME", "/h"), ("HF_HOME", "/f"), ("HF_HUB_CACHE", "/k")]),
            Path::new("/k")
        );
        assert!(matches!(settings(&[]), Err(SettingsError::NoFolder)));
    }

    #[test]
    fn a_token_comes_from_its_variable_or_its_file_and_is_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "hf_file\n").unwrap();
        let home = folder.path().to_str().unwrap();
        let from_file = settings(&[("HOME", "/h"), ("HF_HOME", home)]).unwrap();
        assert_eq!(from_file.token.as_ref().map(Token::secret), Some("hf_file"));
        assert!(!format!("{from_file:?}").contains("hf_file"));
        let both = [("HOME", "/h"), ("HF_HOME", home), ("HF_TOKEN", "hf_own")];
        assert_eq!(settings(&both).unwrap().token.unwrap().secret(), "hf_own");
        assert!(settings(&[("HOME", "/h"), ("HF_TOKEN", "a b")]).is_err());
    }

    #[test]
    fn an_endpoint_is_a_url() {
        let of = |value| settings(&[("HOME", "/h"), ("HF_ENDPOINT", value)]).map(|s| s.endpoint);
        assert_eq!(of("http://localhost:80/").unwrap(), "http://localhost:80");
        for wrong in ["localhost", "ftp://x", "https://", "https://a@b", "http://x y"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
