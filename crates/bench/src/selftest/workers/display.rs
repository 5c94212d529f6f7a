// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clients that keep a display server from serving others: by work, or by a grab.
//!
//! They speak the protocol themselves, a dozen bytes a request, so that nothing but the requests
//! named here is sent.

use super::work::{limit_life, millis, number, word};
use crate::worker::say_ready;
use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

const CREATE_PIXMAP: u8 = 53;
const CREATE_GC: u8 = 55;
const POLY_ARC: u8 = 68;
const GRAB_SERVER: u8 = 36;
const UNGRAB_SERVER: u8 = 37;
const GET_INPUT_FOCUS: u8 = 43;

/// Width and height of the picture that is drawn to.
const SIDE: u16 = 1000;
/// Requests by which the server's speed is learnt, and arcs of each.
const SAMPLES: usize = 5;
const SAMPLE_ARCS: usize = 4;
/// Arcs in one request at most, by the protocol's 16 bits of length.
const ARCS_MAX: usize = 20_000;
/// Requests that follow each other without a gap.
const REQUESTS_MAX: u64 = 8;
/// How long the server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A connection with a picture and a pen.
struct DrawingClient {
    stream: UnixStream,
    picture: u32,
    pen: u32,
    root: u32,
}

impl DrawingClient {
    fn open(display: u64, authority: &str) -> Result<DrawingClient> {
        let stream = UnixStream::connect(format!("/tmp/.X11-unix/X{display}"))
            .with_context(|| format!("display :{display} cannot be reached"))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut client = DrawingClient { stream, picture: 0, pen: 0, root: 0 };
        client.greet(&cookie(authority)?)?;
        Ok(client)
    }

    fn greet(&mut self, cookie: &[u8]) -> Result<()> {
        let name = b"MIT-MAGIC-COOKIE-1";
        let lengths = [11, 0, name.len() as u16, cookie.len() as u16, 0].map(u16::to_le_bytes).concat();
        let hello = [b"l\0", &lengths[..], &padded(name), &padded(cookie)].concat();
        self.stream.write_all(&hello)?;
        let mut head = [0; 8];
        self.stream.read_exact(&mut head)?;
        let mut rest = vec![0; usize::from(u16::from_le_bytes([head[6], head[7]])) * 4];
        self.stream.read_exact(&mut rest)?;
        if head[0] != 1 {
            bail!("the display refuses the cookie");
        }
        let ids = number_at(&rest, 4)?;
        (self.picture, self.pen, self.root) = (ids + 1, ids + 2, first_root(&rest)?);
        Ok(())
    }

    /// Makes the picture, and a pen so wide and round that an arc is much work.
    fn make_picture(&mut self) -> Result<()> {
        let size = u32::from(SIDE) * 0x1_0001;
        let (line_width, wide) = (1 << 4, 40);
        self.send(CREATE_PIXMAP, 24, &[self.picture, self.root, size])?;
        self.send(CREATE_GC, 0, &[self.pen, self.picture, line_width, wide])
    }

    fn send(&mut self, opcode: u8, detail: u8, words: &[u32]) -> Result<()> {
        let length = (words.len() as u16 + 1).to_le_bytes();
        let mut bytes = vec![opcode, detail, length[0], length[1]];
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        self.stream.write_all(&bytes).context("the display is gone")
    }

    /// One request with many arcs, each almost as large as the picture.
    fn draw_arcs(&mut self, count: usize) -> Result<()> {
        let arcs = (0..count as u32).flat_map(|number| {
            let side = u32::from(SIDE) - 100 - number % 100;
            [50 * 0x1_0001, side * 0x1_0001 - 0x1_0000, (360 * 64) << 16]
        });
        let words: Vec<u32> = [self.picture, self.pen].into_iter().chain(arcs).collect();
        self.send(POLY_ARC, 0, &words)
    }

    /// Waits until the server has done everything so far.
    fn settle(&mut self) -> Result<()> {
        self.send(GET_INPUT_FOCUS, 0, &[])?;
        self.stream.read_exact(&mut [0; 32]).context("the display does not answer")
    }

    /// How many arcs the server is busy with for a time, judged by its fastest of some samples.
    fn arcs_for(&mut self, time: Duration) -> Result<usize> {
        let mut fastest = time;
        for _ in 0..SAMPLES {
            let begun = Instant::now();
            self.draw_arcs(SAMPLE_ARCS)?;
            self.settle()?;
            fastest = fastest.min(begun.elapsed());
        }
        let share = time.as_secs_f64() / fastest.as_secs_f64().max(1e-6);
        Ok(((share * SAMPLE_ARCS as f64) as usize).clamp(1, ARCS_MAX))
    }
}

/// The first cookie of an authority file.
fn cookie(path: &str) -> Result<Vec<u8>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {path}"))?;
    let mut fields = bytes.get(2..).unwrap_or_default();
    let mut last = Vec::new();
    for _ in ["host", "display", "name", "data"] {
        let (length, rest) = fields.split_at_checked(2).with_context(|| format!("{path} is cut off"))?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        let (field, rest) = rest.split_at_checked(length).with_context(|| format!("{path} is cut off"))?;
        (last, fields) = (field.to_vec(), rest);
    }
    Ok(last)
}

/// With zeros to a multiple of four bytes.
fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn number_at(bytes: &[u8], at: usize) -> Result<u32> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk()).context("the display's greeting is cut off")?;
    Ok(u32::from_le_bytes(*found))
}

/// The root window of the first screen, behind the vendor's name and the formats.
fn first_root(greeting: &[u8]) -> Result<u32> {
    let (vendor, formats) = (number_at(greeting, 16)? & 0xffff, number_at(greeting, 20)? >> 8 & 0xff);
    number_at(greeting, 32 + (vendor as usize).next_multiple_of(4) + formats as usize * 8)
}

/// `x-flood DISPLAY AUTHORITY MS COUNT`: requests that each keep the server busy for a time.
pub(super) fn flood(words: &[&str]) -> Result<()> {
    limit_life();
    let mut client = DrawingClient::open(number(words, 0)?, word(words, 1)?)?;
    let (time, count) = (millis(words, 2)?, number(words, 3)?.min(REQUESTS_MAX));
    client.make_picture()?;
    client.settle()?;
    let arcs = client.arcs_for(time)?;
    for _ in 0..count {
        client.draw_arcs(arcs)?;
    }
    say_ready("")?;
    client.settle()
}

/// `x-grab DISPLAY AUTHORITY MS`: the server serves nobody else for a time.
pub(super) fn grab(words: &[&str]) -> Result<()> {
    limit_life();
    let mut client = DrawingClient::open(number(words, 0)?, word(words, 1)?)?;
    client.send(GRAB_SERVER, 0, &[])?;
    client.settle()?;
    say_ready("")?;
    sleep(millis(words, 2)?);
    client.send(UNGRAB_SERVER, 0, &[])?;
    client.settle()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_found_in_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("authority");
        std::fs::write(&path, tipme_desktop::authority_file("7", &[5; 16])).expect("a file");
        let path = path.to_str().expect("plain letters");
        assert_eq!(cookie(path).expect("a cookie"), vec![5; 16]);
        std::fs::write(path, [0; 5]).expect("a file");
        assert!(cookie(path).is_err());
    }

    #[test]
    fn the_root_window_lies_behind_vendor_and_formats() {
        let mut greeting = vec![0; 32];
        (greeting[16], greeting[21]) = (5, 2);
        greeting.extend([0; 8 + 16]);
        greeting.extend(0x123u32.to_le_bytes());
        assert_eq!(first_root(&greeting).expect("a root"), 0x123);
        assert!(first_root(&greeting[..40]).is_err());
    }
}
