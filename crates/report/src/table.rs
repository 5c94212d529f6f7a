// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text tables: the first column is left-aligned, the others are right-aligned.

/// Formats rows of cells; rows may differ in length.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths = vec![0; columns];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
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
        let rows = [vec!["", "one"], vec!["Maximum µs", "7"], vec!["title"]]
            .map(|cells| cells.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(table(&rows), "            one\nMaximum µs    7\ntitle\n");
        assert_eq!(table(&[]), "");
    }
}
