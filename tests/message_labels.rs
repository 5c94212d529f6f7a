// SPDX-License-Identifier: MIT OR Apache-2.0
//! `message-labels INCIDENT` prints what each message of Wayland was taken for: time, client, and what it is; with a
//! star where its object is known by its behaviour only. `tests/field/run labels` holds that against the protocol.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("message-labels INCIDENT")?;
    let incident = tipme_store::read(path.as_ref())?;
    for label in tipme_analysis::message_labels(&incident)? {
        println!("{} {} {}{}", label.at_ns, label.client_pid, label.name, if label.inferred { "*" } else { "" });
    }
    Ok(())
}
