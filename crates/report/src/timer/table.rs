// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text tables: the first column is left-aligned, the others are right-aligned.

/// Formats rows of cells; rows may differ in length.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    rows.iter().map(|row| line(row, &widths)).collect()
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
        let space = " ".repeat(width.saturating_sub(cell.chars().count()));
        line += &if index == 0 { format!("{cell}{space}") } else { format!("  {space}{cell}") };
    }
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let row =
            |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<String>>();
        let rows = [row(&["", "one"]), row(&["Maximum µs", "7"]), row(&["title"])];
        assert_eq!(table(&rows), "            one\nMaximum µs    7\ntitle\n");
        assert_eq!(table(&[]), "");
    }
}
