//! Records of which something cannot be read.
//!
//! [`salvage`] takes a record apart: what can be read stays, each figure that cannot is
//! kept as [`Figure::unread`], so that it is listed with a reason and spoils no other.

use super::Figure;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What is left of a record.
pub(super) enum Salvaged<R, F> {
    /// The record without its figures, and each figure or what stands for it.
    Figures(Box<R>, Vec<Result<F, Figure>>),
    /// Nothing but its name, and what stands for its figures.
    Name(String, Vec<Figure>),
}

/// Takes the `number`-th record apart, whose figures are under `key`.
pub(super) fn salvage<R, F>(value: &Value, key: &str, number: usize) -> Salvaged<R, F>
where
    R: DeserializeOwned,
    F: DeserializeOwned,
{
    let figures = value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut bare = value.clone();
    if let Some(fields) = bare.as_object_mut() {
        fields.remove(key);
    }
    match serde_json::from_value::<R>(bare) {
        Ok(record) => {
            let each = figures.into_iter().map(|f| {
                let stand_in = unread(&f);
                serde_json::from_value::<F>(f).map_err(|_| stand_in)
            });
            let mut each: Vec<_> = each.collect();
            if value.get(key).is_some_and(|list| !list.is_array()) {
                each.push(Err(unread(&Value::Null)));
            }
            Salvaged::Figures(Box::new(record), each)
        }
        Err(_) => {
            let name = value.get("id").map(|id| match id.as_str() {
                Some(text) => text.to_owned(),
                None => id.to_string(),
            });
            let mut stand_ins: Vec<Figure> = figures.iter().map(unread).collect();
            if stand_ins.is_empty() {
                stand_ins.push(unread(&Value::Null));
            }
            Salvaged::Name(name.unwrap_or_else(|| format!("record {number}")), stand_ins)
        }
    }
}

/// Stands for a figure that cannot be read, with its words and time where those can.
fn unread(value: &Value) -> Figure {
    let what = value.get("what").and_then(Value::as_str).unwrap_or("the whole record");
    let ms = ["time_ms", "ms"].iter().find_map(|key| value.get(key)?.as_f64());
    Figure { what: what.into(), ms, unread: true, ..Figure::default() }
}
