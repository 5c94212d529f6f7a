// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a result is what its schema in `docs/results` says; of the words of schemas, those that ours use.

use serde_json::Value;
use std::path::Path;

/// Fails with every place where a result is not as `docs/results/NAME.schema.json` says.
pub fn assert_fits(name: &str, result: &Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let text = std::fs::read(folder.join(format!("{name}.schema.json"))).unwrap();
    let whole: Value = serde_json::from_slice(&text).unwrap();
    let mut wrong = Vec::new();
    Check { whole: &whole, wrong: &mut wrong }.value(&whole, result, name);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

struct Check<'a> {
    whole: &'a Value,
    wrong: &'a mut Vec<String>,
}

impl Check<'_> {
    fn value(&mut self, schema: &Value, value: &Value, place: &str) {
        let named = schema["$ref"].as_str().map(|path| self.whole.pointer(path.trim_start_matches('#')).unwrap());
        let schema = named.unwrap_or(schema);
        let allowed = schema["enum"].as_array().is_none_or(|allowed| allowed.contains(value));
        if !allowed || schema.get("const").is_some_and(|only| only != value) || !has_type(&schema["type"], value) {
            self.wrong.push(format!("{place}: {value}"));
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            let own = schema["prefixItems"].get(index).unwrap_or(&schema["items"]);
            self.value(own, item, &format!("{place}[{index}]"));
        }
        self.members(schema, value, place);
    }

    fn members(&mut self, schema: &Value, value: &Value, place: &str) {
        let Some(members) = value.as_object().filter(|_| schema["properties"].is_object()) else { return };
        let required = schema["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        self.wrong
            .extend(required.filter(|name| !members.contains_key(*name)).map(|name| format!("{place}: no {name}")));
        for (name, member) in members {
            match schema["properties"].get(name) {
                Some(schema) => self.value(schema, member, &format!("{place}.{name}")),
                None => self.wrong.push(format!("{place}.{name} is not in the schema")),
            }
        }
    }
}

/// Whether a value is of one of the types; of any where none is named.
fn has_type(types: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("unknown type {other}"),
    };
    match types {
        Value::Array(types) => types.iter().any(is),
        Value::Null => true,
        one => is(one),
    }
}
