//! Numbers as people write them into JSON: `52`, `52.0` and `"52"` are the same.
//!
//! For `deserialize_with`: [`count`] reads whole numbers, [`real`] any, and [`words`]
//! takes a number for a text. What is none of these is an error of its field.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum Loose {
    Whole(u64),
    Real(f64),
    Text(String),
    Else(serde::de::IgnoredAny),
}

/// A whole number of type `T`, or nothing.
pub(super) fn count<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let wrong = || D::Error::custom("expected a whole number, not negative and not too large");
    let whole = match Option::<Loose>::deserialize(from)? {
        None => return Ok(None),
        Some(Loose::Whole(n)) => Some(n),
        // Beyond this, floating point has no whole numbers of its own.
        Some(Loose::Real(n)) if n.fract() == 0.0 && (0.0..=9e15).contains(&n) => Some(n as u64),
        Some(Loose::Text(text)) => text.trim().parse().ok(),
        Some(_) => None,
    };
    whole.and_then(|n| T::try_from(n).ok()).map(Some).ok_or_else(wrong)
}

/// Any number, or nothing.
pub(super) fn real<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    match Option::<Loose>::deserialize(from)? {
        None => Ok(None),
        Some(Loose::Whole(n)) => Ok(Some(n as f64)),
        Some(Loose::Real(n)) => Ok(Some(n)),
        Some(Loose::Text(text)) if text.trim().parse::<f64>().is_ok() => {
            Ok(text.trim().parse().ok())
        }
        Some(_) => Err(D::Error::custom("expected a number")),
    }
}

/// A text, or a number in its place.
pub(super) fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    match Option::<Loose>::deserialize(from)? {
        None => Ok(None),
        Some(Loose::Whole(n)) => Ok(Some(n.to_string())),
        Some(Loose::Real(n)) => Ok(Some(n.to_string())),
        Some(Loose::Text(text)) => Ok(Some(text)),
        Some(Loose::Else(_)) => Err(D::Error::custom("expected a text")),
    }
}
