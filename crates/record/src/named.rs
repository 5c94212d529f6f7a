// SPDX-License-Identifier: MIT OR Apache-2.0
//! Enums whose variants have names.

/// Declares an enum with a name for each variant. The comment of a variant is its description for
/// users.
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        $vis:vis enum $enum:ident { $($(#[doc = $about:literal])* $variant:ident = $name:literal,)+ }
    ) => {
        $(#[$meta])*
        $vis enum $enum {
            $($(#[doc = $about])* $variant,)+
        }

        #[allow(dead_code, reason = "not all of it is needed for each enum")]
        impl $enum {
            /// All, in the order of their declaration.
            $vis const ALL: [$enum; [$($name),+].len()] = [$($enum::$variant),+];

            /// Returns the name.
            $vis fn name(self) -> &'static str {
                match self { $($enum::$variant => $name,)+ }
            }

            /// Returns the one with this name.
            $vis fn named(name: &str) -> Option<$enum> {
                $enum::ALL.into_iter().find(|one| one.name() == name)
            }

            /// Returns the description, a sentence.
            $vis fn about(self) -> &'static str {
                match self { $($enum::$variant => concat!($($about),*),)+ }.trim_ascii_start()
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
