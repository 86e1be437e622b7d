//! Choices that people write by name: in a flag, in a file, in a message. One trait and one error
//! for policies, prefetchers and strategies; what the names mean is said where each is defined.

use thiserror::Error;

/// A choice with a fixed list of names.
pub trait Named: Copy + 'static {
    /// What it is called in messages, such as `cache policy`.
    const KIND: &'static str;
    /// Every choice, with its default parameters.
    const ALL: &'static [Self];

    /// As flags and files write it.
    fn name(self) -> &'static str;

    /// All names, for messages and help.
    fn names() -> String {
        Self::ALL.iter().map(|choice| choice.name()).collect::<Vec<_>>().join(", ")
    }

    /// The choice of that name.
    fn find(name: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.iter().copied().find(|choice| choice.name() == name);
        found.ok_or_else(|| UnknownName {
            kind: Self::KIND,
            name: name.to_owned(),
            known: Self::names(),
        })
    }
}

/// A name that no choice has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown {kind} `{name}`; there are {known}")]
pub struct UnknownName {
    /// What was looked for.
    pub kind: &'static str,
    pub name: String,
    /// The names there are, with commas between.
    pub known: String,
}

/// Reading and writing by name, for flags (`FromStr`) and files (serde).
macro_rules! by_name {
    ($choice:ty) => {
        impl std::str::FromStr for $choice {
            type Err = $crate::named::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                <Self as $crate::named::Named>::find(name)
            }
        }

        impl serde::Serialize for $choice {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str($crate::named::Named::name(*self))
            }
        }

        impl<'de> serde::Deserialize<'de> for $choice {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let name = <std::borrow::Cow<'de, str>>::deserialize(from)?;
                <Self as $crate::named::Named>::find(&name).map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use by_name;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::PolicyChoice;
    use crate::prefetch::PrefetchChoice;
    use crate::strategy::StrategyChoice;

    fn round_trip<T>()
    where
        T: Named + PartialEq + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
    {
        for &choice in T::ALL {
            assert_eq!(T::find(choice.name()), Ok(choice));
            let text = serde_json::to_string(&choice).unwrap();
            assert_eq!(serde_json::from_str::<T>(&text).unwrap(), choice);
        }
        let error = T::find("magic").expect_err("not there").to_string();
        assert!(error.starts_with(&format!("unknown {} `magic`; there are", T::KIND)), "{error}");
        assert!(serde_json::from_str::<T>("\"magic\"").is_err());
    }

    #[test]
    fn every_choice_is_found_by_its_name() {
        round_trip::<PolicyChoice>();
        round_trip::<PrefetchChoice>();
        round_trip::<StrategyChoice>();
    }
}
