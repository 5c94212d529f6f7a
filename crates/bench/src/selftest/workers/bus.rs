// SPDX-License-Identifier: MIT OR Apache-2.0
//! A message bus: a service that answers late, and the call to it. As little of D-Bus as that needs.

use super::work::{TIMEOUT, compute, limit_life, millis, word};
use crate::worker::say_ready;
use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

const CALL: u8 = 1;
const RETURN: u8 = 2;

const PATH: u8 = 1;
const INTERFACE: u8 = 2;
const MEMBER: u8 = 3;
const REPLY_SERIAL: u8 = 5;
const DESTINATION: u8 = 6;
const SENDER: u8 = 7;
const SIGNATURE: u8 = 8;

/// The service's name, and its interface's.
const SERVICE: &str = "io.tipme.Dictionary";
const SERVICE_PATH: &str = "/io/tipme/Dictionary";
const LOOK_UP: &str = "LookUp";
const BUS: &str = "org.freedesktop.DBus";
const BUS_PATH: &str = "/org/freedesktop/DBus";
/// Bytes of one message at most; the bus's own greetings have some hundred.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// The value of a header's field.
#[derive(Clone, PartialEq, Eq, Debug)]
enum HeaderValue {
    Text(String),
    Number(u32),
}

/// A message: its header's fields, and its body as bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
struct BusMessage {
    kind: u8,
    serial: u32,
    fields: Vec<(u8, HeaderValue)>,
    body: Vec<u8>,
}

impl BusMessage {
    fn text(&self, wanted: u8) -> Option<&str> {
        self.fields.iter().find_map(|(code, value)| match value {
            HeaderValue::Text(text) if *code == wanted => Some(text.as_str()),
            _ => None,
        })
    }

    fn answers(&self, serial: u32) -> bool {
        self.kind == RETURN && self.fields.contains(&(REPLY_SERIAL, HeaderValue::Number(serial)))
    }

    fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        for (code, value) in &self.fields {
            align(&mut fields, 8);
            put_field(&mut fields, *code, value);
        }
        let mut bytes = vec![b'l', self.kind, 0, 1];
        for number in [self.body.len() as u32, self.serial, fields.len() as u32] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(fields);
        align(&mut bytes, 8);
        bytes.extend(&self.body);
        bytes
    }

    /// From the 16 bytes at the start and what comes behind them.
    fn decode(head: &[u8; 16], rest: &[u8]) -> Option<BusMessage> {
        let (_, fields) = lengths(head);
        let (body_at, serial) = (fields.next_multiple_of(8), number_at(head, 8)?);
        let mut message = BusMessage { kind: head[1], serial, fields: Vec::new(), body: rest.get(body_at..)?.to_vec() };
        let (fields, mut at) = (rest.get(..fields)?, 0);
        while at < fields.len() {
            let (field, next) = take_field(fields, at)?;
            message.fields.push(field);
            at = next.next_multiple_of(8);
        }
        Some(message)
    }
}

fn align(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

fn put_field(out: &mut Vec<u8>, code: u8, value: &HeaderValue) {
    let letter = match code {
        PATH => b'o',
        REPLY_SERIAL => b'u',
        SIGNATURE => b'g',
        _ => b's',
    };
    out.extend([code, 1, letter, 0]);
    match value {
        HeaderValue::Number(number) => out.extend(number.to_le_bytes()),
        HeaderValue::Text(text) if code == SIGNATURE => put_short(out, text),
        HeaderValue::Text(text) => put_text(out, text),
    }
}

fn put_short(out: &mut Vec<u8>, text: &str) {
    out.push(text.len() as u8);
    out.extend(text.bytes().chain([0]));
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    align(out, 4);
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.bytes().chain([0]));
}

/// A field with its code, and where it ends. Fields begin at multiples of eight, so a value does at one of four.
fn take_field(bytes: &[u8], at: usize) -> Option<((u8, HeaderValue), usize)> {
    let (code, letter, value_at) = (*bytes.get(at)?, *bytes.get(at + 2)?, at + 4);
    let (value, end) = match letter {
        b'u' => (HeaderValue::Number(number_at(bytes, value_at)?), value_at + 4),
        b'g' => take_text(bytes, value_at + 1, usize::from(*bytes.get(value_at)?))?,
        b's' | b'o' => take_text(bytes, value_at + 4, number_at(bytes, value_at)? as usize)?,
        _ => return None,
    };
    Some(((code, value), end))
}

fn take_text(bytes: &[u8], at: usize, length: usize) -> Option<(HeaderValue, usize)> {
    let text = bytes.get(at..at.checked_add(length)?)?;
    Some((HeaderValue::Text(String::from_utf8_lossy(text).into_owned()), at + length + 1))
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

/// Bytes of the body and of the fields, as the head tells.
fn lengths(head: &[u8; 16]) -> (usize, usize) {
    let at = |place| number_at(head, place).unwrap_or_default() as usize;
    (at(4), at(12))
}

/// A connection to the bus.
struct BusConnection {
    stream: UnixStream,
    serial: u32,
}

impl BusConnection {
    /// Connects as the user that this process runs as, and greets.
    fn open(path: &str) -> Result<BusConnection> {
        let stream = UnixStream::connect(path).with_context(|| format!("cannot connect to {path}"))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut bus = BusConnection { stream, serial: 0 };
        let user = rustix::process::geteuid().as_raw().to_string();
        let user: String = user.bytes().map(|digit| format!("{digit:02x}")).collect();
        bus.stream.write_all(format!("\0AUTH EXTERNAL {user}\r\n").as_bytes())?;
        if !bus.line()?.starts_with("OK ") {
            bail!("the message bus refuses this user");
        }
        bus.stream.write_all(b"BEGIN\r\n")?;
        bus.call((BUS, BUS_PATH, "Hello"), None)?;
        Ok(bus)
    }

    fn line(&mut self) -> Result<String> {
        let (mut line, mut byte) = (String::new(), [0]);
        while !line.ends_with("\r\n") && line.len() < 200 {
            self.stream.read_exact(&mut byte)?;
            line.push(char::from(byte[0]));
        }
        Ok(line)
    }

    fn send(&mut self, kind: u8, fields: Vec<(u8, HeaderValue)>, body: Vec<u8>) -> Result<u32> {
        self.serial += 1;
        let message = BusMessage { kind, serial: self.serial, fields, body };
        self.stream.write_all(&message.encode()).context("the message bus is gone")?;
        Ok(self.serial)
    }

    fn receive(&mut self) -> Result<BusMessage> {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head).context("nothing comes from the message bus")?;
        let (body, fields) = lengths(&head);
        let length = fields.next_multiple_of(8).saturating_add(body);
        if length > MESSAGE_BYTES_MAX {
            bail!("a message of {length} bytes is too long");
        }
        let mut rest = vec![0; length];
        self.stream.read_exact(&mut rest)?;
        BusMessage::decode(&head, &rest).context("a message is damaged")
    }

    /// Calls a method of a service, with its path, and waits for the answer.
    fn call(&mut self, (service, path, member): (&str, &str, &str), body: Option<(&str, Vec<u8>)>) -> Result<()> {
        let mut fields: Vec<(u8, HeaderValue)> =
            [(PATH, path), (INTERFACE, service), (MEMBER, member), (DESTINATION, service)]
                .map(|(code, text)| (code, HeaderValue::Text(text.to_string())))
                .into();
        let (signature, body) = body.unwrap_or_default();
        if !signature.is_empty() {
            fields.push((SIGNATURE, HeaderValue::Text(signature.to_string())));
        }
        let serial = self.send(CALL, fields, body)?;
        while !self.receive()?.answers(serial) {}
        Ok(())
    }

    fn answer(&mut self, call: &BusMessage) -> Result<()> {
        let caller = call.text(SENDER).context("a call without a sender")?.to_string();
        let fields = vec![(REPLY_SERIAL, HeaderValue::Number(call.serial)), (DESTINATION, HeaderValue::Text(caller))];
        self.send(RETURN, fields, Vec::new()).map(|_| ())
    }
}

/// Asks the service that [`serve`] stands for.
pub(in crate::selftest) fn look_up(words: &[&str]) -> Result<()> {
    BusConnection::open(word(words, 0)?)?.call((SERVICE, SERVICE_PATH, LOOK_UP), None)
}

/// `bus-service SOCKET MS`: computes before it answers a call.
pub(super) fn serve(words: &[&str]) -> Result<()> {
    limit_life();
    let mut bus = BusConnection::open(word(words, 0)?)?;
    let mut name = Vec::new();
    put_text(&mut name, SERVICE);
    align(&mut name, 4);
    name.extend(0u32.to_le_bytes());
    bus.call((BUS, BUS_PATH, "RequestName"), Some(("su", name)))?;
    say_ready("")?;
    loop {
        let message = bus.receive()?;
        if message.kind == CALL && message.text(MEMBER) == Some(LOOK_UP) {
            compute(millis(words, 1)?);
            return bus.answer(&message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_back() {
        let text = |code, text: &str| (code, HeaderValue::Text(text.to_string()));
        let fields = vec![
            text(PATH, "/a"),
            text(MEMBER, "LookUp"),
            text(SIGNATURE, "su"),
            (REPLY_SERIAL, HeaderValue::Number(7)),
            text(SENDER, ":1.4"),
        ];
        let message = BusMessage { kind: RETURN, serial: 3, fields, body: vec![1, 2, 3] };
        let bytes = message.encode();
        let (head, rest) = bytes.split_first_chunk().expect("sixteen bytes");
        assert_eq!(BusMessage::decode(head, rest), Some(message.clone()));
        assert!(message.answers(7) && !message.answers(8));
        for cut in 0..rest.len().saturating_sub(4) {
            assert_eq!(BusMessage::decode(head, &rest[..cut]), None, "{cut} of {}", rest.len());
        }
    }
}
