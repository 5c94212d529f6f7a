// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options that select the delay to explain.

use clap::Args;
use tipme_analysis::DiagnoseOptions;
use tipme_record::Pid;

#[derive(Args)]
pub struct SelectionArguments {
    /// Consider only this application
    #[arg(long, value_name = "NAME")]
    pub app: Option<String>,
    /// Consider only this process
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Explain the delay this many seconds before the mark
    #[arg(
        long,
        value_name = "SECONDS_BEFORE_MARK",
        value_parser = before_mark,
        allow_negative_numbers = true
    )]
    pub at: Option<f64>,
}

impl SelectionArguments {
    pub fn options(&self) -> DiagnoseOptions {
        DiagnoseOptions { app: self.app.clone(), pid: self.pid.map(Pid), at_s: self.at }
    }
}

/// Parses a number of seconds before the mark.
fn before_mark(text: &str) -> Result<f64, String> {
    let span = text.parse().ok().filter(|span: &f64| *span >= 0.0 && span.is_finite());
    span.ok_or_else(|| "give a number of seconds before the mark, such as 12.5".to_owned())
}
