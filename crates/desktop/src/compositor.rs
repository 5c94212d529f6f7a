// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wayland compositors: their sockets, their users, and their screens.

mod clipboard_news;
mod frame;
mod frames;
mod link;

use crate::error::DisplayError;
use crate::server::find_compositors;
pub use frames::FrameWatch;
pub(crate) use link::{CompositorLink, CompositorState};
use rustix::net::sockopt;
use std::path::{Path, PathBuf};

/// Returns the socket of a compositor by its path or name, such as `wayland-0`: in
/// `XDG_RUNTIME_DIR`, else the only one of that name on this machine.
///
/// # Errors
/// Fails if there is none, or several of that name.
pub fn socket(name: &str) -> Result<PathBuf, DisplayError> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).unwrap_or_default();
    let own = runtime.join(name);
    if own.is_absolute() && own.exists() {
        return Ok(own);
    }
    choose(name, find_compositors())
}

/// Returns the only socket of this name.
fn choose(name: &str, known: Vec<String>) -> Result<PathBuf, DisplayError> {
    let mut fit: Vec<String> =
        known.into_iter().filter(|path| Path::new(path).ends_with(name)).collect();
    let reason = match fit.len() {
        0 => {
            "no compositor with this name is running; tipme status lists those that are".to_owned()
        }
        1 => return Ok(PathBuf::from(fit.remove(0))),
        _ => {
            format!("several compositors have this name; give the path of one: {}", fit.join(", "))
        }
    };
    Err(DisplayError::Compositor { display: name.to_owned(), reason })
}

/// Process and user of a compositor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompositorOwner {
    /// The process that listens at the socket.
    pub pid: u32,
    pub user: u32,
    pub group: u32,
}

/// Returns process and user of a compositor.
///
/// # Errors
/// Fails if no process listens at the socket.
pub fn owner(socket: &Path) -> Result<CompositorOwner, DisplayError> {
    let found = link::dial(socket).and_then(|stream| Ok(sockopt::socket_peercred(&stream)?));
    let credentials = found.map_err(|error| link::failed(socket, error))?;
    let (pid, user, group) =
        (credentials.pid.as_raw_nonzero().get() as u32, credentials.uid, credentials.gid);
    Ok(CompositorOwner { pid, user: user.as_raw(), group: group.as_raw() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_must_stand_for_one_socket() {
        let known = ["/run/user/1/wayland-0", "/run/user/2/wayland-0", "/tmp/x/wayland-1"];
        for (name, chosen) in [
            ("wayland-1", Some(known[2])),
            (known[1], Some(known[1])),
            ("wayland-0", None),
            ("wayland-10", None),
            ("0", None),
        ] {
            let found = choose(name, known.map(str::to_owned).to_vec()).ok();
            assert_eq!(found, chosen.map(PathBuf::from), "{name}");
        }
        let several = choose("wayland-0", known[..2].iter().map(|path| path.to_string()).collect());
        assert_eq!(
            several.expect_err("two have this name").to_string(),
            format!(
                "wayland-0: several compositors have this name; give the path of one: {}",
                known[..2].join(", ")
            )
        );
    }

    #[test]
    fn an_error_names_the_socket() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("wayland-3");
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let closes = std::thread::spawn(move || drop(listener.accept()));
        let error = CompositorLink::open(&path).err().expect("nobody speaks there");
        assert!(error.to_string().starts_with(&format!("{}: ", path.display())), "{error}");
        closes.join().expect("it ends");
        let (user, group) =
            (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let own = CompositorOwner { pid: std::process::id(), user, group };
        let _listener = std::os::unix::net::UnixListener::bind(folder.path().join("wayland-4"))
            .expect("a socket");
        assert_eq!(owner(&folder.path().join("wayland-4")).ok(), Some(own));
        assert!(owner(&folder.path().join("wayland-5")).is_err());
    }
}
