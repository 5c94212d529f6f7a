// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an application of ours does at its next key, before it draws: it finds its orders in a file,
//! carries them out, and notes how long each took.
//!
//! The file is looked for at every key, so that a key without orders takes the same way.

mod resources;
mod waits;

use anyhow::{Context, Result};
use std::io::{ErrorKind, Write};
use std::path::Path;
use tipme_desktop::clock;
use tipme_record::Nanos;

const ORDERS: &str = "orders";
const DONE_ORDERS: &str = "done-orders";

/// One order that was carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DoneOrder {
    /// The order's first word.
    pub name: String,
    /// The process that carried it out.
    pub pid: u32,
    pub begun: Nanos,
    pub done: Nanos,
}

/// Tells the application what to do at its next key: one order a line, words apart by spaces.
pub(super) fn order(folder: &Path, orders: &[String]) -> Result<()> {
    let (new, path) = (folder.join("orders.new"), folder.join(ORDERS));
    std::fs::write(&new, orders.join("\n")).with_context(|| format!("cannot write {}", new.display()))?;
    std::fs::rename(&new, &path).with_context(|| format!("cannot write {}", path.display()))
}

/// Carries out the orders that are there, each once.
pub(super) fn obey(folder: &Path) -> Result<()> {
    let path = folder.join(ORDERS);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    let done_orders = text.lines().map(carry_out).collect::<Result<Vec<DoneOrder>>>()?;
    note(folder, &done_orders)
}

fn carry_out(line: &str) -> Result<DoneOrder> {
    let words: Vec<&str> = line.split(' ').collect();
    let (name, words) = words.split_first().context("an empty order")?;
    let known = resources::OPERATIONS.iter().chain(waits::OPERATIONS).find(|(known, _)| known == name);
    let (_, operation) = known.with_context(|| format!("there is no order \"{name}\""))?;
    let begun = clock::now();
    operation(words).with_context(|| format!("cannot carry out \"{line}\""))?;
    Ok(DoneOrder { name: (*name).to_string(), pid: std::process::id(), begun, done: clock::now() })
}

fn note(folder: &Path, done_orders: &[DoneOrder]) -> Result<()> {
    let path = folder.join(DONE_ORDERS);
    let file = std::fs::File::options().create(true).append(true).open(&path);
    let mut file = file.with_context(|| format!("cannot write {}", path.display()))?;
    let line = |order: &DoneOrder| format!("{} {} {} {}\n", order.name, order.pid, order.begun.0, order.done.0);
    let lines: String = done_orders.iter().map(line).collect();
    file.write_all(lines.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
}

/// What the application has done so far.
pub(super) fn done_orders(folder: &Path) -> Result<Vec<DoneOrder>> {
    let path = folder.join(DONE_ORDERS);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    text.lines().map(read_done).collect()
}

fn read_done(line: &str) -> Result<DoneOrder> {
    let words: Vec<&str> = line.split(' ').collect();
    let [name, pid, begun, done] = words[..] else { anyhow::bail!("\"{line}\" is not an order") };
    Ok(DoneOrder {
        name: name.to_string(),
        pid: pid.parse()?,
        begun: Nanos(begun.parse()?),
        done: Nanos(done.parse()?),
    })
}
