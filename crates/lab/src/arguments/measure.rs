// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of `tipme measure`.

use clap::Args;
use std::path::PathBuf;
use tipme_bench::choice::repeats;
use tipme_bench::measure::MeasureDisplay;
use tipme_bench::place::measure_display;
use tipme_command::choice;
use tipme_measure::ThresholdProfile;

#[derive(Args)]
#[command(after_help = "Examples:
  sudo tipme measure editor
  sudo tipme measure terminal --json result.json --svg plots
  tipme measure browser --no-trace --repeat 3
  sudo tipme measure editor --display wayland
  sudo tipme measure terminal --display wayland -- foot vi {home}/text.txt
  sudo tipme measure my-task.toml -- gedit {home}/text.txt
  tipme measure --list

Each repeat restarts the application in a fresh home folder; {home} stands for that folder. As
root, answers are found by the recorder's display tap. Otherwise they are found by the DAMAGE
extension, or under Wayland by screenshots; each drawing is then assumed to answer the input
before it. Measuring on a running compositor needs root, since the recorder reports the keyboard
focus there, and a compositor with zwlr_screencopy_v1, such as sway. Keys are those of a US
keyboard.

A script is a TOML file with a list of [[step]], each with one of type = \"text\", prose = 300
(made-up characters), key = \"ctrl+s\", click = [x, y], move = [x, y] (the pointer alone),
scroll = \"down\", pause_ms = 500, idle_ms = 300 (until nothing was drawn for this long). A step
that presses may also set `times`, `every_ms`, `label` and `class`: motion, key, click, scroll,
menu, window, start or command; one that moves the pointer may set all of these except `times`.
Above the steps: application, words_per_minute, variation, seed, start_within_s, [threshold_ms] by
class, and [[file]] with path and one of content, prose_bytes, page_sections, slides.

Exit codes: 0 all classes within their thresholds; 1 the 98th percentile of a class, or its
maximum if it has too few events, is over its threshold; 2 nothing could be measured.")]
pub struct Measure {
    /// Script to play: a TOML file, or the name of a script that comes with tipme
    #[arg(value_name = "SCRIPT", required_unless_present = "list")]
    pub script: Option<String>,
    /// Number of repeats, each with the application restarted
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = repeats)]
    pub repeat: usize,
    /// Play only this many inputs of the script
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub inputs: Option<u32>,
    /// Write the result with all events as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the plots into this folder
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Use no recorder: find drawings only from what the display reports
    #[arg(long)]
    pub no_trace: bool,
    /// Display: a private X server, an existing X display with its window manager, a private
    /// Wayland compositor, or a running one by the name or path of its socket; nothing else should
    /// draw on it meanwhile
    #[arg(long, value_name = "x11|:N|wayland|wayland-N|PATH", default_value = "x11", value_parser = measure_display)]
    pub display: MeasureDisplay,
    /// Thresholds to apply
    #[arg(long, value_name = "PROFILE", default_value = ThresholdProfile::Default.name(),
        value_parser = choice(ThresholdProfile::ALL, ThresholdProfile::name, ThresholdProfile::about))]
    pub profile: ThresholdProfile,
    /// List the scripts that come with tipme, without measuring
    #[arg(long)]
    pub list: bool,
    /// The application and its arguments [default: those of the script]
    #[arg(last = true, value_name = "APP")]
    pub app: Vec<String>,
}
