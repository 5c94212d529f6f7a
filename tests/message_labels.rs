// SPDX-License-Identifier: MIT OR Apache-2.0
//! `message-labels INCIDENT` prints the decoded meaning of each Wayland message: time, client, and
//! message, with a star if its object is known only by its behaviour. `tests/field/run labels`
//! compares that with the protocol.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("message-labels INCIDENT")?;
    let incident = tipme_store::read(path.as_ref())?;
    for label in tipme_analysis::message_labels(&incident)? {
        println!(
            "{} {} {}{}",
            label.at_ns,
            label.client_pid,
            label.name,
            if label.inferred { "*" } else { "" }
        );
    }
    Ok(())
}
