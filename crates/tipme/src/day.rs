// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tipme day`: the interactive performance of a day, as counted by the recorder.

use crate::arguments::{DateChoice, Day};
use crate::incidents::lookup::{all, is_own};
use crate::incidents::times;
use crate::record::user_id;
use crate::report::file;
use crate::suggestion;
use anyhow::{Context, Result, bail};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use schemars::JsonSchema;
use serde::Serialize;
use std::process::ExitCode;
use tipme_command::output::layout;
use tipme_control::{Client, RecorderRequest, RecorderResponse};
use tipme_measure::lived::DayFigures;
use tipme_recorder::StateDirs;
use tipme_report::day::{picture, text};
use tipme_store::IncidentFolder;

/// Time after a wait within which a mark still contains it, in seconds.
const MARKED_WITHIN_S: f64 = 40.0;

/// Output of `tipme day --json`: a user's delays on one day.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "tipme day --json")]
pub struct DayDocument {
    pub schema: u32,
    /// Date in local time.
    pub date: String,
    pub figures: DayFigures,
}

/// Prints the figures. Exit code 1 if there are none.
pub fn run(arguments: &Day) -> Result<ExitCode> {
    let dirs = StateDirs::choose(arguments.state_dir.as_deref());
    let client = Client::new(dirs.run_dir());
    if arguments.forget {
        client.call(&RecorderRequest::ForgetDays)?;
        println!("all counts are deleted; counting starts over");
        return Ok(ExitCode::SUCCESS);
    }
    let date = date(arguments.date)?;
    let (from_s, to_s) = bounds(date)?;
    let user = arguments.user.as_deref().map(user_id).transpose()?;
    let figures = match client.call(&RecorderRequest::Day { from_s, to_s, user })? {
        RecorderResponse::Day(figures) => {
            with_incidents(*figures, &IncidentFolder::at(dirs.incidents()))
        }
        _ => bail!("unexpected reply from the recorder; restart it"),
    };
    let counted = figures.all.n > 0;
    let document = DayDocument { schema: 1, date: date.to_string(), figures };
    if let Some(place) = &arguments.output {
        file::write(
            place,
            &picture(&document.date, &document.figures, &time_of_day),
            arguments.force,
        )?;
        println!("{}", place.display());
    } else if arguments.json {
        println!("{}", serde_json::to_string(&document)?);
    } else {
        print!("{}", text(&document.date, &document.figures, &time_of_day, &layout()));
        if let Some(words) = suggestion::ask(dirs.run_dir()) {
            println!("\n{words}");
        }
    }
    Ok(if counted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn date(choice: DateChoice) -> Result<Date> {
    let today = TimeZone::system().to_datetime(Timestamp::now()).date();
    match choice {
        DateChoice::Today => Ok(today),
        DateChoice::Yesterday => today.yesterday().context("there is no day before"),
        DateChoice::On(date) => Ok(date),
    }
}

/// Returns the start of a day and of the next one, in seconds since 1970.
fn bounds(date: Date) -> Result<(u64, u64)> {
    let bounds = midnight(date).zip(date.tomorrow().ok().and_then(midnight));
    bounds.with_context(|| {
        format!("{date} is out of range; name one of the last 32 days, such as yesterday")
    })
}

/// Returns the start of a day in seconds since 1970.
fn midnight(date: Date) -> Option<u64> {
    let midnight = TimeZone::system().to_timestamp(date.at(0, 0, 0, 0)).ok()?;
    midnight.as_second().try_into().ok()
}

/// Formats a time as `14:03:21` in local time.
fn time_of_day(at_s: f64) -> String {
    let time = Timestamp::from_second(at_s as i64);
    time.map(|time| TimeZone::system().to_datetime(time).strftime("%H:%M:%S").to_string())
        .unwrap_or_default()
}

/// Adds the caller's first incident that was marked soon enough after each wait.
fn with_incidents(mut figures: DayFigures, folder: &IncidentFolder) -> DayFigures {
    let listed = all(folder).unwrap_or_default();
    let own = listed.into_iter().filter(is_own);
    let marks: Vec<(f64, String)> =
        own.filter_map(|one| Some((times::seconds(&one.id)? as f64, one.id))).collect();
    for long in &mut figures.longest {
        // Ids have a resolution of one second.
        let (from, to) = (long.at_s - long.latency_ms / 1e3 - 1.0, long.at_s + MARKED_WITHIN_S);
        long.incident =
            marks.iter().find(|(at, _)| (from..to).contains(at)).map(|(_, id)| id.clone());
    }
    figures
}
