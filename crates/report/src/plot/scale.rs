// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mapping of values to positions on an axis, and ticks of the axis.

use super::words::decimal;

/// Minimum range of an axis, so that its ticks differ.
const SPAN_MIN: f64 = 1e-6;
/// Minimum value on a logarithmic axis; lower ones are drawn at its start.
const LOG_MIN: f64 = 1e-6;
/// Maximum number of ticks.
const TICKS_MAX: usize = 100;
/// Number of steps for rounding up a range, low enough for the end of the axis to be a tick.
const STEPS: f64 = 10.0;
/// Relative tolerance for comparisons of computed ticks.
const CLOSE: f64 = 1e-9;

/// Range of an axis and its mapping.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Scale {
    shape: ScaleShape,
    from: f64,
    to: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ScaleShape {
    Linear,
    Log,
    /// 1 / (1 - p), logarithmic, with ticks at common percentiles.
    Tail,
}

/// Mark on an axis.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct AxisTick {
    /// Position: 0 at the start of the axis, 1 at its end.
    pub share: f64,
    /// Empty for a mark between labels.
    pub label: String,
}

impl Scale {
    /// Creates an axis exactly from one value to another.
    pub(super) fn linear(from: f64, to: f64) -> Scale {
        let span_min = SPAN_MIN.max(from.abs() * CLOSE);
        Scale { shape: ScaleShape::Linear, from, to: to.max(from + span_min) }
    }

    /// Creates an axis from zero to a round value that is at least `most`.
    pub(super) fn up_to(most: f64) -> Scale {
        if most <= 0.0 {
            return Scale::linear(0.0, 1.0);
        }
        Scale::linear(0.0, rounded_up(most, round_step(most.max(SPAN_MIN) / STEPS)))
    }

    /// Creates an axis from zero, or from near the minimum if all values are far from zero.
    pub(super) fn around(least: f64, most: f64) -> Scale {
        if least <= most / 2.0 || most - least < SPAN_MIN {
            return Scale::up_to(most);
        }
        let step = round_step((most - least) / STEPS);
        Scale::linear((least / step + CLOSE).floor() * step, rounded_up(most, step))
    }

    /// Creates a logarithmic axis between round values that enclose the given ones.
    pub(super) fn log(least: f64, most: f64) -> Scale {
        let from = round_step(least.max(LOG_MIN) * (1.0 + CLOSE) / 2.5);
        let to = round_step(most.max(LOG_MIN) * (1.0 - CLOSE));
        Scale { shape: ScaleShape::Log, from, to: to.max(from * 10.0) }
    }

    /// Creates a logarithmic axis for numbers of events on which a single event has a height.
    pub(super) fn counts(most: u64) -> Scale {
        Scale {
            shape: ScaleShape::Log,
            from: 0.5,
            to: round_step(most.max(5) as f64 * (1.0 - CLOSE)),
        }
    }

    /// Creates an axis of percentiles up to the largest of `n` values.
    pub(super) fn tail(n: usize) -> Scale {
        Scale { shape: ScaleShape::Tail, from: 1.0, to: (n as f64).max(10.0) }
    }

    /// Returns `true` if a value lies on the axis.
    pub(super) fn holds(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }

    /// Returns the range of the axis.
    pub(super) fn span(&self) -> f64 {
        self.to - self.from
    }

    /// Returns the position of a value: 0 at the start of the axis, 1 at its end, and never
    /// outside.
    pub(super) fn share(&self, value: f64) -> f64 {
        let share = match self.shape {
            ScaleShape::Linear => (value - self.from) / (self.to - self.from),
            ScaleShape::Log | ScaleShape::Tail => {
                (value.max(self.from) / self.from).log10() / self.decades()
            }
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Returns the ticks of an axis with this length in pixels; each label needs `room` pixels.
    pub(super) fn ticks(&self, pixels: f64, room: f64) -> Vec<AxisTick> {
        match self.shape {
            ScaleShape::Linear => self.linear_ticks(pixels, room),
            ScaleShape::Log => self.log_ticks(pixels, room),
            ScaleShape::Tail => self.tail_ticks(pixels, room),
        }
    }

    fn decades(&self) -> f64 {
        (self.to / self.from).log10()
    }

    fn tick(&self, value: f64, label: String) -> AxisTick {
        AxisTick { share: self.share(value), label }
    }

    fn linear_ticks(&self, pixels: f64, room: f64) -> Vec<AxisTick> {
        let step = round_step(self.span() * room / pixels);
        let decimals = (-(step * (1.0 + CLOSE)).log10().floor()).clamp(0.0, 12.0) as usize;
        let first = (self.from / step - CLOSE).ceil();
        let values = (0..TICKS_MAX).map(|index| (first + index as f64) * step + 0.0);
        let values = values.take_while(|value| *value <= self.to + step * CLOSE);
        values.map(|value| self.tick(value, decimal(value, decimals))).collect()
    }

    /// Returns powers of ten, with 2 and 5 if there is room, and unlabelled marks while they are
    /// distinguishable.
    fn log_ticks(&self, pixels: f64, room: f64) -> Vec<AxisTick> {
        let decade = pixels / self.decades();
        let every = (room / decade).ceil().max(1.0) as i32;
        let mut ticks = Vec::new();
        for exponent in self.from.log10().floor() as i32..=self.to.log10().ceil() as i32 {
            for digit in 1..=9 {
                let value = f64::from(digit) * 10f64.powi(exponent);
                if value < self.from * (1.0 - CLOSE) || value > self.to * (1.0 + CLOSE) {
                    continue;
                }
                let labelled = match digit {
                    1 => exponent % every == 0,
                    2 | 5 => decade * 0.3 >= room,
                    _ => false,
                };
                let label = if labelled {
                    decimal(value, (-exponent).max(0) as usize)
                } else {
                    String::new()
                };
                if labelled || decade >= 40.0 {
                    ticks.push(self.tick(value, label));
                }
            }
        }
        ticks
    }

    /// Returns 50%, 90%, 99% and so on; with 75, 95 and 98% if there is room.
    fn tail_ticks(&self, pixels: f64, room: f64) -> Vec<AxisTick> {
        let wide = pixels / self.decades() * 0.3 >= room;
        let more = [4.0, 20.0, 50.0].into_iter().filter(|_| wide);
        let nines = (1..=12).map(|exponent| 10f64.powi(exponent));
        let mut values: Vec<f64> = [1.0, 2.0].into_iter().chain(more).chain(nines).collect();
        values.retain(|value| *value <= self.to * (1.0 + CLOSE));
        values.sort_by(f64::total_cmp);
        let ticks = values.into_iter().map(|value| {
            let decimals = (value.log10().round() - 2.0).max(0.0) as usize;
            self.tick(value, format!("{:.decimals$}%", 100.0 * (1.0 - 1.0 / value)))
        });
        ticks.collect()
    }
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that is at least `least`.
pub(super) fn round_step(least: f64) -> f64 {
    let least = if least.is_finite() && least > 0.0 { least } else { 1.0 };
    let exponent = least.log10().floor() as i32;
    // Powers below one are divided by, since only whole powers of ten are exact.
    let [one, two, five, ten] = [1.0, 2.0, 5.0, 10.0].map(|digit| {
        if exponent < 0 { digit / 10f64.powi(-exponent) } else { digit * 10f64.powi(exponent) }
    });
    [one, two, five].into_iter().find(|step| *step >= least * (1.0 - CLOSE)).unwrap_or(ten)
}

fn rounded_up(value: f64, step: f64) -> f64 {
    (value / step - CLOSE).ceil() * step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[AxisTick]) -> String {
        let shown: Vec<&str> = ticks
            .iter()
            .map(|tick| tick.label.as_str())
            .filter(|label| !label.is_empty())
            .collect();
        shown.join(" ")
    }

    #[test]
    fn steps_are_one_two_or_five() {
        let steps = [0.7, 1.0, 1.1, 2.0, 3.0, 5.1, 12.0, 0.000_3, 0.0, f64::NAN].map(round_step);
        assert_eq!(steps, [1.0, 1.0, 2.0, 2.0, 5.0, 10.0, 20.0, 0.0005, 1.0, 1.0]);
    }

    #[test]
    fn linear_ticks_are_round() {
        insta::assert_snapshot!(labels(&Scale::up_to(938.0).ticks(300.0, 45.0)), @"0 200 400 600 800 1,000");
        insta::assert_snapshot!(labels(&Scale::up_to(0.31).ticks(300.0, 45.0)), @"0.0 0.1 0.2 0.3");
        insta::assert_snapshot!(labels(&Scale::linear(12.3, 14.1).ticks(860.0, 80.0)), @"12.4 12.6 12.8 13.0 13.2 13.4 13.6 13.8 14.0");
        insta::assert_snapshot!(labels(&Scale::linear(-5.0, 5.0).ticks(300.0, 60.0)), @"-4 -2 0 2 4");
        insta::assert_snapshot!(labels(&Scale::around(101.0, 109.0).ticks(860.0, 80.0)), @"101 102 103 104 105 106 107 108 109");
    }

    #[test]
    fn logarithmic_ticks_thin_out_with_the_room() {
        let wide = Scale::log(8.0, 31.0);
        insta::assert_snapshot!(labels(&wide.ticks(860.0, 50.0)), @"5 10 20 50");
        let long = Scale::log(0.002, 90_000.0);
        insta::assert_snapshot!(labels(&long.ticks(860.0, 50.0)), @"0.001 0.01 0.1 1 10 100 1,000 10,000 100,000");
        insta::assert_snapshot!(labels(&Scale::counts(1_300).ticks(110.0, 18.0)), @"1 10 100 1,000");
        assert!(Scale::counts(1).share(1.0) > 0.2);
    }

    #[test]
    fn shares_of_the_tail_are_percentiles() {
        insta::assert_snapshot!(labels(&Scale::tail(50_000).ticks(860.0, 40.0)), @"0% 50% 75% 90% 95% 98% 99% 99.9% 99.99%");
    }

    #[test]
    fn hostile_ranges_have_places_and_few_ticks() {
        for (from, to) in [(0.0, 0.0), (1e12, 1e12), (-1e12, 1e12), (5.0, 4.0), (1e-300, 1e12)] {
            for scale in [
                Scale::linear(from, to),
                Scale::around(from, to),
                Scale::log(from, to),
                Scale::up_to(to),
            ] {
                let ticks = scale.ticks(860.0, 50.0);
                assert!(
                    ticks.len() <= 200
                        && ticks.iter().all(|tick| (0.0..=1.0).contains(&tick.share)),
                    "{scale:?}"
                );
                let places =
                    [from, to, f64::NAN, f64::INFINITY, -1.0].map(|value| scale.share(value));
                assert!(
                    places.iter().all(|share| (0.0..=1.0).contains(share)),
                    "{scale:?} {places:?}"
                );
            }
        }
    }
}
