// SPDX-License-Identifier: MIT OR Apache-2.0
//! JSON schemas of documents, from the types that are printed.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// Returns the schema of a type as it is serialised: fields that may be left out are not required.
pub fn schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}
