// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks documents against their schemas in `docs/schemas`, for the schema keywords that these
//! use. Stricter than a validator for readers: a member without a schema is an error.

use serde_json::Value;
use std::path::{Path, PathBuf};

/// Returns the schema of a document.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schemas/{name}.schema.json"))
}

/// Asserts that a document matches its schema; reports every mismatch.
pub fn assert_fits(name: &str, document: &Value) {
    let wrong = misfits(&read(&path(name)), document, name);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Returns every place where a value does not match a schema.
pub fn misfits(whole: &Value, value: &Value, place: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    Check { whole, wrong: &mut wrong }.value(whole, value, place);
    wrong
}

struct Check<'a> {
    whole: &'a Value,
    wrong: &'a mut Vec<String>,
}

impl Check<'_> {
    fn value(&mut self, schema: &Value, value: &Value, place: &str) {
        match schema["$ref"].as_str().map(|named| named.split_once('#').unwrap_or((named, ""))) {
            None => self.plain(schema, value, place),
            Some(("", pointer)) => {
                let whole = self.whole;
                self.plain(whole.pointer(pointer).unwrap(), value, place);
            }
            Some((file, pointer)) => {
                let whole = read(&path(file.trim_end_matches(".schema.json")));
                Check { whole: &whole, wrong: self.wrong }.plain(
                    whole.pointer(pointer).unwrap(),
                    value,
                    place,
                );
            }
        }
    }

    fn plain(&mut self, schema: &Value, value: &Value, place: &str) {
        let allowed = schema["enum"].as_array().is_none_or(|allowed| allowed.contains(value));
        if !allowed
            || schema.get("const").is_some_and(|only| only != value)
            || !has_type(&schema["type"], value)
        {
            self.wrong.push(format!("{place}: {value}"));
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            let own = schema["prefixItems"].get(index).unwrap_or(&schema["items"]);
            self.value(own, item, &format!("{place}[{index}]"));
        }
        self.choices(schema, value, place);
        self.members(schema, value, place);
    }

    /// Checks for one of several schemas, and for exactly one with `oneOf`.
    fn choices(&mut self, schema: &Value, value: &Value, place: &str) {
        for (word, most) in [("anyOf", usize::MAX), ("oneOf", 1)] {
            let Some(choices) = schema[word].as_array() else { continue };
            let fitting = choices.iter().filter(|choice| {
                let mut wrong = Vec::new();
                Check { whole: self.whole, wrong: &mut wrong }.value(choice, value, place);
                wrong.is_empty()
            });
            let count = fitting.count();
            if count == 0 || count > most {
                self.wrong.push(format!("{place}: {value} fits {count} of {word}"));
            }
        }
    }

    fn members(&mut self, schema: &Value, value: &Value, place: &str) {
        let Some(members) = value.as_object().filter(|_| schema["properties"].is_object()) else {
            return;
        };
        let required =
            schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap());
        self.wrong.extend(
            required
                .filter(|name| !members.contains_key(*name))
                .map(|name| format!("{place}: no {name}")),
        );
        for (name, member) in members {
            match schema["properties"].get(name) {
                Some(schema) => self.value(schema, member, &format!("{place}.{name}")),
                None => self.wrong.push(format!("{place}.{name} is not in the schema")),
            }
        }
    }
}

/// Returns `true` if a value has one of the types, or if no type is required.
fn has_type(types: &Value, value: &Value) -> bool {
    match types {
        Value::Array(types) => types.iter().any(|one| has_type(one, value)),
        Value::Null => true,
        one => match one.as_str().unwrap() {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64(),
            "number" => value.is_number(),
            "null" => value.is_null(),
            other => panic!("unknown type {other}"),
        },
    }
}
