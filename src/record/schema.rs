//! JSON Schemas of the records, for programs that read them: [`SCHEMAS`].
//!
//! They are made from the record types themselves and kept in `docs/schema/`; a test
//! fails when the two differ.

/// Every record's schema in its newest version: what makes the record, and the text.
pub const SCHEMAS: [(&str, &str); 7] = [
    ("compare", include_str!("../../docs/schema/compare.json")),
    ("estimate", include_str!("../../docs/schema/estimate.json")),
    ("sweep", include_str!("../../docs/schema/sweep.json")),
    ("validate", include_str!("../../docs/schema/validate.json")),
    ("calibrate", include_str!("../../docs/schema/calibrate.json")),
    ("lab", include_str!("../../docs/schema/lab.json")),
    ("diff", include_str!("../../docs/schema/diff.json")),
];

#[cfg(test)]
mod tests {
    use super::SCHEMAS;
    use crate::record::any::AnyRecord;
    use crate::record::{calibration, diff, estimate, lab, sweep, validate};
    use schemars::{JsonSchema, schema_for};
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    /// The schema of `T` with what it is called; `known` is the value of `schema`, if
    /// there is only one.
    fn made<T: JsonSchema>(name: &str, known: Option<&str>) -> (String, Value) {
        let mut schema = schema_for!(T).to_value();
        schema["title"] = json!(format!("A record of pageinit {name}"));
        if let Some(known) = known {
            schema["properties"]["schema"]["const"] = json!(known);
        }
        (name.to_owned(), schema)
    }

    fn all() -> Vec<(String, Value)> {
        vec![
            made::<crate::record::Record>("compare", Some(crate::record::COMPARE_SCHEMA)),
            made::<estimate::Estimate>("estimate", Some(estimate::ESTIMATE_SCHEMA)),
            made::<sweep::Sweep>("sweep", Some(sweep::SWEEP_SCHEMA)),
            made::<validate::Validation>("validate", Some(validate::VALIDATE_SCHEMA)),
            made::<calibration::Calibration>("calibrate", Some(calibration::CALIBRATION_SCHEMA)),
            made::<lab::LabRecord>("lab", None),
            made::<diff::Diff>("diff", Some(diff::DIFF_SCHEMA)),
        ]
    }

    #[test]
    fn schemas_are_those_of_the_types() {
        let bless = std::env::var_os("PAGEINIT_BLESS").is_some();
        for ((name, value), (kept_name, kept)) in all().iter().zip(SCHEMAS) {
            assert_eq!(name, kept_name);
            let text = serde_json::to_string_pretty(value).unwrap() + "\n";
            if bless {
                let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/schema");
                std::fs::create_dir_all(dir).unwrap();
                std::fs::write(format!("{dir}/{name}.json"), &text).unwrap();
                continue;
            }
            assert!(text == kept, "docs/schema/{name}.json is old: bless it (PAGEINIT_BLESS=1)");
        }
    }

    /// Records as they are kept have every field that their schema requires, and no
    /// other; below the top, the types see to that.
    #[test]
    fn kept_records_have_the_fields_of_their_schemas() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/records");
        let mut seen = BTreeSet::new();
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let record = match AnyRecord::read(&text) {
                Ok(record) => record,
                Err(error) => panic!("{}: {error}", path.display()),
            };
            let value: Value = serde_json::from_str(&text).unwrap();
            let name = match record.head().schema.split('/').nth(1).unwrap_or_default() {
                "calibration" => "calibrate",
                name if name.starts_with("lab-") => "lab",
                name => name,
            };
            let (_, schema) = SCHEMAS.iter().find(|(known, _)| *known == name).unwrap();
            let schema: Value = serde_json::from_str(schema).unwrap();
            let fields = schema["properties"].as_object().unwrap();
            let required = schema["required"].as_array().unwrap();
            let has = value.as_object().unwrap();
            assert!(required.iter().all(|f| has.contains_key(f.as_str().unwrap())), "{name}");
            assert!(has.keys().all(|field| fields.contains_key(field)), "{name}");
            seen.insert(name.to_owned());
        }
        for name in ["compare", "estimate", "sweep", "validate", "calibrate", "lab"] {
            assert!(seen.contains(name), "no record of {name} is kept");
        }
    }
}
