// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that `docs/reference/format.md` matches the declarations that its tables are made of.

use std::fmt::Write;
use std::path::Path;
use tipme_record::incident::Section;
use tipme_record::packed::{Bits, LAYOUT};
use tipme_record::wayland::HINTS;
use tipme_record::{Column, TABLES, Table};

const BEGIN: &str = "<!-- made from the declarations: begin -->\n";
const END: &str = "<!-- made from the declarations: end -->\n";
const HINTS_BEGIN: &str = "<!-- hints of Wayland messages: begin -->\n";
const HINTS_END: &str = "<!-- hints of Wayland messages: end -->\n";
const PACKED_BEGIN: &str = "<!-- fields of packed records: begin -->\n";
const PACKED_END: &str = "<!-- fields of packed records: end -->\n";
const REWRITE: &str = "TIPME_WRITE_DOCS=1 cargo test -p tipme-store format";

fn tables() -> String {
    TABLES.iter().map(table).collect()
}

fn hints() -> String {
    let rows =
        HINTS.iter().map(|(_, value, meaning)| format!("| {value} | {} |\n", meaning.trim()));
    format!("\n| hint | meaning |\n|---|---|\n{}\n", rows.collect::<String>())
}

fn packed() -> String {
    let rows = LAYOUT.iter().map(|Bits { name, at, count, doc }| {
        let last = at + count - 1;
        let bits = if last == *at { format!("{at}") } else { format!("{at} to {last}") };
        format!("| {bits} | `{name}` | {doc} |\n")
    });
    format!("\n| bits | name | meaning |\n|---|---|---|\n{}\n", rows.collect::<String>())
}

fn table(table: &Table) -> String {
    let mut text = format!(
        "\n### {}, kind {}, {} bytes\n\n{}\n\n",
        table.name,
        table.kind,
        table.size,
        table.doc.trim()
    );
    text += "| offset | type | name | meaning |\n|---|---|---|---|\n";
    for column in table.columns {
        let Column { offset, name, doc, .. } = column;
        writeln!(text, "| {offset} | {} | `{name}` | {} |", type_name(column.c_type), doc.trim())
            .expect("a string grows");
    }
    text
}

/// Returns the name of a C type in the document: `__u32` is u32, `char %[16]` is 16 bytes.
fn type_name(c_type: &str) -> String {
    match c_type.split_once(" %") {
        None => c_type.trim_start_matches("__").replace('s', "i"),
        Some((element, count)) => format!("{}{count}", type_name(element).replace("char", "u8")),
    }
}

/// Returns the text with the part between two markers replaced.
fn filled(text: &str, begin: &str, end: &str, content: &str) -> String {
    let (before, rest) = text.split_once(begin).expect("the document has the mark of the begin");
    let (_, after) = rest.split_once(end).expect("the document has the mark of the end");
    format!("{before}{begin}{content}{end}{after}")
}

#[test]
fn the_format_document_has_every_record() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/format.md");
    let text = std::fs::read_to_string(&path).expect("docs/reference/format.md is there");
    let with_hints = filled(&text, HINTS_BEGIN, HINTS_END, &hints());
    let with_packed = filled(&with_hints, PACKED_BEGIN, PACKED_END, &packed());
    let made = filled(&with_packed, BEGIN, END, &(tables() + "\n"));
    if std::env::var_os("TIPME_WRITE_DOCS").is_some() {
        // Rename, since the other test may be reading the file.
        std::fs::write(path.with_extension("new"), &made).expect("docs can be written");
        std::fs::rename(path.with_extension("new"), &path).expect("docs can be written");
    } else {
        assert!(made == text, "format.md is behind the declarations; run: {REWRITE}");
    }
}

#[test]
fn the_format_document_has_every_section() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/format.md");
    let text = std::fs::read_to_string(&path).expect("docs/reference/format.md is there");
    for section in Section::ALL {
        let row = format!("\n| {} | `{section:?}` |", section as u32);
        assert!(
            text.contains(&row),
            "docs/reference/format.md has no row for section {section:?}, number {}",
            section as u32
        );
    }
}
