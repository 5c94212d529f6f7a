// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text chart of time over load level, like figure 2 of the paper: seconds on a logarithmic axis.

use super::Arm;
use super::figures::ArmRow;
use super::scale::KeyFigure;

/// Rows of a decade, and columns of the whole width.
const ROWS_PER_DECADE: i32 = 2;
const COLUMNS: usize = 50;
/// Maximum number of decades; lower values are drawn in the lowest row.
const DECADES_MAX: i32 = 6;
const MS_PER_S: f64 = 1e3;

/// Draws a chart with a sign for each arm: `o` unmanaged and `x` managed, as in the paper. Empty if
/// there are no times.
///
/// `of` names the quantity, such as the delay of keys.
pub(super) fn chart(rows: &[ArmRow], key_figure: KeyFigure, of: &str) -> String {
    let points: Vec<(u32, char, f64)> = rows
        .iter()
        .filter_map(|row| {
            Some((row.level, sign(row.arm), (key_figure.value)(&row.figures)? / MS_PER_S))
        })
        .filter(|point| point.2 > 0.0 && point.2.is_finite())
        .collect();
    let Some(most) = points.iter().map(|point| point.2).reduce(f64::max) else {
        return String::new();
    };
    let least = points.iter().map(|point| point.2).fold(most, f64::min);
    let top = most.log10().ceil() as i32;
    let bottom = (least.log10().floor() as i32).clamp(top - DECADES_MAX, top - 1);
    let level_max = points.iter().map(|point| point.0).max().unwrap_or_default().max(1);
    let mut lines = vec![vec![' '; COLUMNS + 1]; ((top - bottom) * ROWS_PER_DECADE + 1) as usize];
    for (level, sign, seconds) in points {
        let height = ((seconds.log10() - f64::from(bottom)) * f64::from(ROWS_PER_DECADE))
            .round()
            .max(0.0) as usize;
        let row = lines.len().saturating_sub(1 + height);
        let column = (level as usize * COLUMNS + level_max as usize / 2) / level_max as usize;
        put(&mut lines[row], column, sign);
    }
    let labelled = lines.iter().enumerate().map(|(row, line)| labelled(row, line, top));
    let axis = format!("{:>8} +{}\n", "", "-".repeat(COLUMNS + 1));
    let foot = format!("{:>8}  0{:>COLUMNS$}\n", "", level_max);
    let legend = "          o unmanaged  x managed  n nice 19  a autogroup  w weight  i idle I/O  l limit  * several\n";
    format!("{} of {of}, seconds, over the load\n", key_figure.name)
        + &labelled.collect::<String>()
        + &axis
        + &foot
        + legend
}

fn sign(arm: Arm) -> char {
    match arm {
        Arm::Unmanaged => 'o',
        Arm::Managed => 'x',
        Arm::Nice19 => 'n',
        Arm::Autogroup => 'a',
        Arm::Weight => 'w',
        Arm::IdleIo => 'i',
        Arm::Limit => 'l',
    }
}

/// Puts a sign in its column, or a star if the column is taken.
fn put(line: &mut [char], column: usize, sign: char) {
    if let Some(place) = line.get_mut(column) {
        *place = if *place == ' ' || *place == sign { sign } else { '*' };
    }
}

fn labelled(row: usize, line: &[char], top: i32) -> String {
    let row = row as i32;
    let label = match row % ROWS_PER_DECADE {
        0 => format!("{}", 10f64.powi(top - row / ROWS_PER_DECADE)),
        _ => String::new(),
    };
    format!("{label:>8} |{}\n", line.iter().collect::<String>().trim_end())
}

#[cfg(test)]
mod tests {
    use super::super::ArmScale;
    use super::super::ArmTurn;
    use super::super::figures::ArmFigures;
    use super::*;

    fn row(arm: Arm, level: u32, ms: f64) -> ArmRow {
        let figures = ArmFigures { p95_ms: Some(ms), n: 100, ..ArmFigures::default() };
        ArmRow::new(ArmTurn { level, arm }, figures, None)
    }

    fn drawn(rows: &[ArmRow]) -> String {
        chart(rows, KeyFigure::choose(rows, ArmScale::Latency), "the delay")
    }

    #[test]
    fn what_the_table_hides_is_not_drawn() {
        let mut few = row(Arm::Managed, 20, 50.0);
        few.figures = ArmFigures::new(vec![7; 99], 0);
        assert!(drawn(&[few, row(Arm::Unmanaged, 20, 50.0)]).starts_with("median of the delay"));
    }

    #[test]
    fn signs_stand_where_their_figures_are() {
        let rows = [
            row(Arm::Unmanaged, 0, 50.0),
            row(Arm::Managed, 0, 50.0),
            row(Arm::Unmanaged, 10, 1_000.0),
            row(Arm::Managed, 10, 50.0),
            row(Arm::Unmanaged, 20, 10_000.0),
            row(Arm::Managed, 20, 50.0),
        ];
        insta::assert_snapshot!(drawn(&rows), @r"
        p95 of the delay, seconds, over the load
              10 |                                                  o
                 |
               1 |                         o
                 |
             0.1 |
                 |*                        x                        x
            0.01 |
                 +---------------------------------------------------
                  0                                                20
                  o unmanaged  x managed  n nice 19  a autogroup  w weight  i idle I/O  l limit  * several
        ");
    }

    #[test]
    fn no_time_makes_no_chart() {
        assert_eq!(drawn(&[]), "");
        assert_eq!(drawn(&[row(Arm::Managed, 3, 0.0)]), "");
        let wide = drawn(&[row(Arm::Managed, 3, 1e-9), row(Arm::Managed, 0, 1e9)]);
        assert!(wide.lines().count() < 20, "{wide}");
    }
}
