// SPDX-License-Identifier: MIT OR Apache-2.0
//! C header for the kernel programs, generated from the declarations.

use crate::chunk::{CHUNK_BYTES, ChunkHead};
use crate::declare::{Table, c_member};
use crate::packed::c_packed;
use crate::records::{Head, TABLES};
use crate::wayland::{HINTS, WlWord, shape};

/// Returns the C header for the kernel programs.
pub fn c_header() -> String {
    let mut text = String::from(
        "/* Made from the declarations of the record crate; do not edit. */\n#pragma once\n\n",
    );
    text += &format!("#define CHUNK_BYTES {CHUNK_BYTES}\n\n");
    text += "struct rec_head { __u64 ts; __u32 tid; __u16 size; __u8 kind; __u8 generation; };\n";
    text += "struct rec_chunk_head { __u64 taken; __u64 opened; __u32 cpu; __u32 class; \
             __u64 closed; };\n";
    text +=
        &format!("_Static_assert(sizeof(struct rec_head) == {}, \"head\");\n", size_of::<Head>());
    text += &format!(
        "_Static_assert(sizeof(struct rec_chunk_head) == {}, \"chunk head\");\n",
        size_of::<ChunkHead>()
    );
    text += &format!("\n#define WL_WORD {}\n", WlWord::SIZE);
    text.extend(HINTS.iter().map(|(name, value, _)| format!("#define HINT_{name} {value}\n")));
    text.extend(
        shape::SHAPES
            .iter()
            .map(|(name, shape)| format!("#define WL_{name} {:#x}u\n", shape.head())),
    );
    text += &c_packed();
    for table in TABLES {
        text += &c_struct(table);
    }
    text
}

fn c_struct(table: &Table) -> String {
    let members: String = table
        .columns
        .iter()
        .map(|column| format!("\t{};\n", c_member(column.c_type, column.name)))
        .collect();
    let name = table.name;
    format!(
        "\n#define REC_{} {}\nstruct rec_{name} {{\n\tstruct rec_head head;\n{members}}};\n\
         _Static_assert(sizeof(struct rec_{name}) == {}, \"{name}\");\n",
        name.to_uppercase(),
        table.kind,
        table.size
    )
}
