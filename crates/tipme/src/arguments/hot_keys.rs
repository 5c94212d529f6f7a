// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options for hot keys: the keys, and the places in which `tipme record` reads them itself.

use clap::Args;
use clap::builder::TypedValueParser;
use tipme_command::choice;
use tipme_desktop::hotkeys::{Bindings, Chord, HotKeyAction};
use tipme_recorder::HotKeyScope;

/// Scope in which the recorder reads hot keys from the keyboards; `None` if it does not.
type ScopeChoice = Option<HotKeyScope>;

#[derive(Args)]
pub struct HotKeyArguments {
    /// Where the recorder reads hot keys from the keyboards
    #[arg(long, value_name = "WHERE", value_parser = scope(), default_value = "console")]
    pub hot_keys: ScopeChoice,
    #[command(flatten)]
    pub keys: KeyArguments,
}

fn scope() -> impl TypedValueParser<Value = ScopeChoice> {
    let all = HotKeyScope::ALL.map(Some).into_iter().chain([None]);
    choice(
        all,
        |scope| scope.map_or("off", HotKeyScope::name),
        |scope| scope.map_or("Nowhere", HotKeyScope::about),
    )
}

/// The keys themselves, in the session and on the console.
#[derive(Args)]
pub struct KeyArguments {
    /// Key to mark
    #[arg(long, value_name = "KEY", default_value = "Ctrl+Alt+Minus")]
    pub mark_key: Chord,
    /// Key to start recording
    #[arg(long, value_name = "KEY", default_value = "Ctrl+Alt+Plus")]
    pub start_key: Chord,
    /// Key to stop recording input
    #[arg(long, value_name = "KEY", default_value = "Ctrl+Alt+0")]
    pub stop_keys_key: Chord,
    /// Key to restart recording input
    #[arg(long, value_name = "KEY", default_value = "Ctrl+Alt+1")]
    pub start_keys_key: Chord,
}

impl KeyArguments {
    /// Returns the key of each action.
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
