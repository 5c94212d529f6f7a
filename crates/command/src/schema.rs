// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a JSON document looks like, from the very type that is printed.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// The schema of a type as it is printed: what may be left out there is not required.
pub fn schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}
