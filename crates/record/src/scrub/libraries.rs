// SPDX-License-Identifier: MIT OR Apache-2.0
//! Libraries that every desktop has: their use identifies no user.

/// Names before `.so`.
const LIBRARIES: [&str; 72] = [
    "ld-linux-x86-64",
    "libEGL",
    "libGL",
    "libGLX",
    "libGLdispatch",
    "libICE",
    "libSM",
    "libX11",
    "libX11-xcb",
    "libXau",
    "libXaw",
    "libXaw7",
    "libXcomposite",
    "libXcursor",
    "libXdamage",
    "libXdmcp",
    "libXext",
    "libXfixes",
    "libXft",
    "libXi",
    "libXinerama",
    "libXmu",
    "libXpm",
    "libXrandr",
    "libXrender",
    "libXt",
    "libXtst",
    "libasound",
    "libatk-1.0",
    "libc",
    "libcairo",
    "libcrypto",
    "libdbus-1",
    "libdl",
    "libdrm",
    "libepoxy",
    "libevent-2.1",
    "libexpat",
    "libffi",
    "libfontconfig",
    "libfreetype",
    "libfribidi",
    "libgcc_s",
    "libgdk_pixbuf-2.0",
    "libgio-2.0",
    "libglib-2.0",
    "libgmodule-2.0",
    "libgobject-2.0",
    "libharfbuzz",
    "libinput",
    "libm",
    "libncursesw",
    "libnspr4",
    "libnss3",
    "libpng16",
    "libpthread",
    "libpulse",
    "librt",
    "libsqlite3",
    "libssl",
    "libstdc++",
    "libsystemd",
    "libtinfo",
    "libudev",
    "libwayland-client",
    "libwayland-server",
    "libxcb",
    "libxcb-shm",
    "libxkbcommon",
    "libxml2",
    "libz",
    "libzstd",
];

/// Prefixes of families of libraries.
const FAMILIES: [&str; 6] = ["libQt5", "libQt6", "libgdk-", "libgtk-", "libpango-", "libpixman-"];

/// Returns `true` if a module is the vDSO or a common library.
pub(super) fn is_common(module: &[u8]) -> bool {
    let Ok(module) = std::str::from_utf8(module) else { return false };
    let Some((name, version)) = module.split_once(".so") else { return module == "[vdso]" };
    let versioned = version.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit());
    let mut members = FAMILIES.iter().filter_map(|family| name.strip_prefix(family));
    let is_of_family = members.any(|rest| {
        rest.len() <= 12 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
    });
    versioned && (LIBRARIES.contains(&name) || is_of_family)
}

#[cfg(test)]
mod tests {
    use super::is_common;

    #[test]
    fn common_libraries_are_known_and_no_others() {
        for common in [
            "libc.so.6",
            "libQt6Core.so.6.7.2",
            "libgtk-3.so.0",
            "ld-linux-x86-64.so.2",
            "libm.so",
            "[vdso]",
        ] {
            assert!(is_common(common.as_bytes()), "{common}");
        }
        for other in [
            "libpayroll.so.1",
            "libc.so.6.secret",
            "my.so-called.life",
            "libQt6 of Ann.so",
            "xterm",
            "",
        ] {
            assert!(!is_common(other.as_bytes()), "{other}");
        }
    }
}
