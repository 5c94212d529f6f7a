// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options for hot keys: which they are, and where `tipme record` sees them itself.

use clap::{Args, ValueEnum};
use tipme_desktop::hotkeys::{Bindings, Chord, HotKeyAction};

/// Where the recorder takes hot keys from the keyboards.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum HotKeysChoice {
    /// On text consoles only; in an X session tipme agent has them
    Console,
    /// In graphical sessions too, for a Wayland desktop that binds no keys
    Always,
    /// Nowhere
    Off,
}

#[derive(Args)]
pub struct HotKeyArguments {
    /// Where to take hot keys from the keyboards themselves
    #[arg(long, value_name = "WHERE", value_enum, default_value = "console")]
    pub hot_keys: HotKeysChoice,
    #[command(flatten)]
    pub keys: KeyArguments,
}

/// The keys themselves, in the session and on the console.
#[derive(Args)]
pub struct KeyArguments {
    /// Key that marks
    #[arg(long, value_name = "KEY", default_value = "ctrl+alt+minus")]
    pub mark_key: Chord,
    /// Key that starts recording
    #[arg(long, value_name = "KEY", default_value = "ctrl+alt+plus")]
    pub start_key: Chord,
    /// Key that stops the recording of input
    #[arg(long, value_name = "KEY", default_value = "ctrl+alt+0")]
    pub stop_keys_key: Chord,
    /// Key that restarts the recording of input
    #[arg(long, value_name = "KEY", default_value = "ctrl+alt+1")]
    pub start_keys_key: Chord,
}

impl KeyArguments {
    /// Which key does what.
    pub fn bindings(&self) -> Bindings {
        let chords = [
            (HotKeyAction::Start, &self.start_key),
            (HotKeyAction::Mark, &self.mark_key),
            (HotKeyAction::StopKeys, &self.stop_keys_key),
            (HotKeyAction::StartKeys, &self.start_keys_key),
        ];
        Bindings(chords.map(|(action, chord)| (action, chord.clone())).to_vec())
    }
}
